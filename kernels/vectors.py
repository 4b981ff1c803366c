"""What loops over arrays do not become: many bytes compared at once to the bits of one word.

The compiler makes vectors of loops, but no set of bits of what a vector of comparisons found. Here
operations are written in the compiler's own language, which has vectors of any length and makes of
them what the processor can do. Beside each stands a Python function with the same result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import instruction

LANES = 64
"""Bytes that :func:`borders` looks at: a bit each of a word."""


def _borders(builder: Any, a: Any, b: Any, at: Any) -> Any:
    from numba.core.cgutils import ir

    lanes = ir.VectorType(ir.IntType(8), LANES)
    differ = []
    for side in (a, b):
        here = builder.gep(side, [at])
        before = builder.gep(here, [at.type(-1)])
        first, second = (
            builder.load(builder.bitcast(place, lanes.as_pointer()), align=1)
            for place in (here, before)
        )
        differ.append(builder.icmp_unsigned("!=", first, second))
    return builder.bitcast(builder.or_(*differ), at.type)


@instruction(_borders)
def borders(a: Any, b: Any, at: Any) -> Any:
    """Where one of 64 bytes differs from the byte before it, in either of two arrays.

    Nothing is checked: bytes ``at - 1`` to ``at + 63`` must be there.

    Args:
        a: uint8 [n], C-contiguous.
        b: uint8 [n], C-contiguous.
        at: uint64, the first of the bytes, from 1.

    Returns:
        uint64, bit ``k`` for byte ``at + k``.
    """
    here, before = (slice(int(at) - back, int(at) - back + LANES) for back in (0, 1))
    differs = (a[here] != a[before]) | (b[here] != b[before])
    return np.uint64(sum(1 << k for k in np.flatnonzero(differs).tolist()))


def _word(builder: Any, a: Any, at: Any) -> Any:
    place = builder.bitcast(builder.gep(a, [at]), at.type.as_pointer())
    return builder.load(place, align=1)


@instruction(_word)
def word(a: Any, at: Any) -> Any:
    """Eight bytes as a uint64 in the machine's order, wherever they begin.

    Nothing is checked: bytes ``at`` to ``at + 7`` must be there.

    Args:
        a: uint8 [n], C-contiguous.
        at: uint64, the first of the bytes.
    """
    return a[int(at) : int(at) + 8].view(np.uint64)[0]


def _lowest(builder: Any, bits: Any) -> Any:
    from numba.core.cgutils import ir

    return builder.cttz(bits, ir.IntType(1)(0))


@instruction(_lowest)
def lowest(bits: Any) -> Any:
    """The place of the lowest bit that is set, uint64; 64 of a uint64 without any."""
    value = int(bits)
    return np.uint64((value & -value).bit_length() - 1 if value else 64)


def _set_bits(builder: Any, bits: Any) -> Any:
    return builder.ctpop(bits)


@instruction(_set_bits)
def set_bits(bits: Any) -> Any:
    """How many bits of a uint64 are set, uint64."""
    return np.uint64(int(bits).bit_count())
