"""Words of 64 bits: eight bytes of text at once, products of 128 bits, and positions of bits.

Operations that Numba does not have are written in LLVM, next to a Python function with the same
result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import inner, instruction


def _word(builder: Any, a: Any, at: Any) -> Any:
    place = builder.bitcast(builder.gep(a, [at]), at.type.as_pointer())
    return builder.load(place, align=1)


@instruction(_word)
def word(a: Any, at: Any) -> Any:
    """Read eight bytes, from any address, as a uint64 in the machine's order.

    Bounds are not checked: bytes ``at`` to ``at + 7`` must exist.

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
    """Position of the lowest set bit, uint64; 64 if no bit is set."""
    value = int(bits)
    return np.uint64((value & -value).bit_length() - 1 if value else 64)


def _set_bits(builder: Any, bits: Any) -> Any:
    return builder.ctpop(bits)


@instruction(_set_bits)
def set_bits(bits: Any) -> Any:
    """Number of set bits of a uint64, uint64."""
    return np.uint64(int(bits).bit_count())


def _high(builder: Any, a: Any, b: Any) -> Any:
    from numba.core.cgutils import ir

    wide = ir.IntType(128)
    product = builder.mul(builder.zext(a, wide), builder.zext(b, wide))
    return builder.trunc(builder.lshr(product, wide(64)), a.type)


@instruction(_high)
def high_word(a: Any, b: Any) -> Any:
    """Upper 64 bits of the product of two uint64."""
    return np.uint64(int(a) * int(b) >> 64)


def _leading(builder: Any, bits: Any) -> Any:
    from numba.core.cgutils import ir

    return builder.ctlz(bits, ir.IntType(1)(0))


@instruction(_leading)
def leading_zeros(bits: Any) -> Any:
    """Number of zero bits above the highest set bit of a uint64."""
    return np.uint64(64 - int(bits).bit_length())


# Eight decimal digits of a byte each.

POWERS_OF_TEN = np.array([10**n for n in range(9)], np.uint64)
ZERO_DIGITS, HIGH_BITS = np.uint64(0x3030303030303030), np.uint64(0x8080808080808080)
ABOVE_NINE = np.uint64(0x7676767676767676)  # added to a byte above 9, it sets the byte's high bit
_FOURS = np.uint64(0x000000FF000000FF)
_LOW_FOURS, _HIGH_FOURS = np.uint64(100 + (10**6 << 32)), np.uint64(1 + (10**4 << 32))


@inner
def decimal(digits: Any) -> Any:
    """Number of eight digits of a byte each, the last one highest: pairs, then fours are added."""
    pairs = digits * np.uint64(10) + (digits >> np.uint64(8))
    low, high = pairs & _FOURS, (pairs >> np.uint64(16)) & _FOURS
    return (low * _LOW_FOURS + high * _HIGH_FOURS) >> np.uint64(32)
