"""Texts as a JSON string in ASCII holds them (RFC 8259; the escapes of Python's ``json.dumps``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel
from .words import code_at

Array = np.ndarray[Any, Any]

_QUOTE, _BACKSLASH = 34, 92


@inner
def _hex(out: Array, n: int, value: int) -> int:
    """Write a UTF-16 unit as a backslash, u and four digits."""
    out[n] = _BACKSLASH
    out[n + 1] = 117
    for d in range(4):
        digit = (value >> (12 - 4 * d)) & 15
        out[n + 2 + d] = 48 + digit if digit < 10 else 87 + digit
    return n + 6


@kernel
def _escape(data: Array, start: Array, before: Array, after: Array, out: Array) -> Any:
    """Write the escaped texts and return their offsets."""
    out_start = np.zeros(start.size, np.int64)
    n = 0
    for t in range(start.size - 1):
        if before[t]:
            out[n] = _QUOTE
            n += 1
        i = start[t]
        while i < start[t + 1]:
            code, width = code_at(data, i)
            i += width
            short = 0
            if code in (_QUOTE, _BACKSLASH):
                short = code
            elif code == 8:
                short = 98
            elif code == 9:
                short = 116
            elif code == 10:
                short = 110
            elif code == 12:
                short = 102
            elif code == 13:
                short = 114
            if short:
                out[n] = _BACKSLASH
                out[n + 1] = short
                n += 2
            elif 32 <= code < 127:
                out[n] = code
                n += 1
            elif code < 0x10000:
                n = _hex(out, n, code)
            else:
                n = _hex(out, n, 0xD800 + ((code - 0x10000) >> 10))
                n = _hex(out, n, 0xDC00 + ((code - 0x10000) & 0x3FF))
        if after[t]:
            out[n] = _QUOTE
            n += 1
        out_start[t + 1] = n
    return out_start


def escape_json(data: Array, start: Array, before: Array, after: Array) -> tuple[Array, Array]:
    """Escape texts, with the quotes that are asked for.

    Args:
        data: uint8, the UTF-8 bytes of all texts.
        start: int64 [n + 1], offsets of the texts.
        before: bool [n], whether the opening quote is written.
        after: bool [n], whether the closing quote is written.

    Returns:
        uint8, the ASCII bytes; their offsets int64 [n + 1].
    """
    out = np.empty(6 * data.size + 2 * start.size, np.uint8)
    out_start = _escape(
        frozen(data, np.uint8),
        frozen(start, np.int64),
        frozen(before, np.bool_),
        frozen(after, np.bool_),
        out,
    )
    return out[: out_start[-1]].copy(), out_start
