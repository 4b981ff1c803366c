"""Hashes of tokens, eight bytes at a time, and codes of them that hold within one datum.

A token is two 64-bit hashes from here on, and two tokens are one where both agree: a million
different ones collide with a chance below 1e-26.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]

SEED, OTHER_SEED = np.uint64(0xCBF29CE484222325), np.uint64(0x9AE16A3B2F90404F)
_MIX, _OTHER_MIX = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0x9E3779B97F4A7C15)
_SHIFT, _OTHER_SHIFT = np.uint64(32), np.uint64(29)
_EIGHT = np.uint64(8)


@inner
def add_bytes(a: Any, b: Any, eight: Any) -> tuple[Any, Any]:
    """Both hashes after eight more bytes, the first in the lowest bits."""
    a = (a ^ eight) * _MIX
    b = (b + eight) * _OTHER_MIX
    return a ^ (a >> _SHIFT), b ^ (b >> _OTHER_SHIFT)


@inner
def put_token(data: Array, begin: int, end: int, n: int, first: Array, second: Array) -> None:
    """Write the hashes of the bytes [begin, end) as token ``n``."""
    a, b = SEED, OTHER_SEED
    i = begin
    while i < end:
        eight, shift = np.uint64(0), np.uint64(0)
        stop = min(i + 8, end)
        while i < stop:
            eight |= np.uint64(data[i]) << shift
            shift += _EIGHT
            i += 1
        a, b = add_bytes(a, b, eight)
    first[n], second[n] = add_bytes(a, b, np.uint64(end - begin))


@kernel
def _localise(
    begin: int,
    stop: int,
    group_start: Array,
    c_start: Array,
    c_first: Array,
    c_second: Array,
    r_start: Array,
    r_first: Array,
    r_second: Array,
    c_code: Array,
    r_code: Array,
) -> int:
    """Codes of the datums [begin, stop); returns the most tokens that one of them has."""
    longest = 0
    for d in range(begin, stop):
        g0, g1 = group_start[d], group_start[d + 1]
        longest = max(longest, c_start[d + 1] - c_start[d] + r_start[g1] - r_start[g0])
    room = 16
    while room < 2 * longest:
        room *= 2
    slot = np.empty(room, np.int32)
    seen = np.empty((longest, 2), np.uint64)
    most = 0
    for d in range(begin, stop):
        g0, g1 = group_start[d], group_start[d + 1]
        size = 16
        while size < 2 * (c_start[d + 1] - c_start[d] + r_start[g1] - r_start[g0]):
            size *= 2
        for s in range(size):
            slot[s] = -1
        mask = np.uint64(size - 1)
        known = 0
        for side in range(2):
            if side == 0:
                i0, i1 = r_start[g0], r_start[g1]
                first, second, code = r_first, r_second, r_code
            else:
                i0, i1 = c_start[d], c_start[d + 1]
                first, second, code = c_first, c_second, c_code
            for i in range(i0, i1):
                a, b = first[i], second[i]
                at = a & mask
                found = slot[at]
                while found >= 0 and not (seen[found, 0] == a and seen[found, 1] == b):
                    at = (at + np.uint64(1)) & mask
                    found = slot[at]
                if found < 0:
                    found = np.int32(known)
                    slot[at] = found
                    seen[known, 0] = a
                    seen[known, 1] = b
                    known += 1
                code[i] = found
        most = max(most, known)
    return most


def local_codes(
    first: int,
    last: int,
    group_start: Array,
    candidates: tuple[Array, Array, Array],
    references: tuple[Array, Array, Array],
    out: tuple[Array, Array],
) -> int:
    """Codes of the tokens of each datum: equal tokens of one datum have one code, from 0 on.

    Args:
        first: first datum.
        last: one past the last.
        group_start: int64 [n + 1], offsets of the references of each datum.
        candidates: offsets of the tokens of each datum's candidate, int64 [n + 1]; both hashes of
            each token, uint64.
        references: offsets of the tokens of each reference, int64 [m + 1]; both hashes.
        out: int32, filled: codes of the tokens of candidates, of references.

    Returns:
        the most codes that any datum has.
    """
    return int(
        _localise(
            first,
            last,
            frozen(group_start, np.int64),
            frozen(candidates[0], np.int64),
            frozen(candidates[1], np.uint64),
            frozen(candidates[2], np.uint64),
            frozen(references[0], np.int64),
            frozen(references[1], np.uint64),
            frozen(references[2], np.uint64),
            *out,
        )
    )
