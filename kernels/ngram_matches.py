"""Clipped n-gram overlap of token codes, order by order.

An n-gram is the pair of the n-gram before it that is one shorter and its last token, so that its
key is exact and short whatever its order; a candidate's n-gram can only match if the shorter one
did stand in a reference.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .coded_texts import coded_texts
from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)


@inner
def _slot_of(key: int, mask: int) -> Any:
    mixed = key * _MIX
    return (mixed >> _SHIFT ^ mixed) & mask


@kernel
def _match(
    begin: int,
    stop: int,
    candidate: Array,
    reference_start: Array,
    c_start: Array,
    c_code: Array,
    r_start: Array,
    r_code: Array,
    n_codes: int,
    orders: int,
    out: Array,
) -> None:
    """Matches of the units [begin, stop)."""
    longest_c, longest_r = 0, 0
    for u in range(begin, stop):
        longest_c = max(longest_c, c_start[candidate[u] + 1] - c_start[candidate[u]])
        r0, r1 = r_start[reference_start[u]], r_start[reference_start[u + 1]]
        longest_r = max(longest_r, r1 - r0)
    room = 16
    while room < 2 * longest_r:
        room *= 2
    slot = np.empty(room, np.int32)
    keys = np.empty(longest_r + 1, np.uint64)
    clip = np.empty(longest_r + 1, np.int32)  # most often in any reference, less what matched
    times = np.empty(longest_r + 1, np.int32)
    last = np.empty(longest_r + 1, np.int64)  # reference that ``times`` counts in
    before_r, before_c = np.empty(longest_r, np.int32), np.empty(longest_c, np.int32)
    one = np.zeros(n_codes, np.int32)
    once = np.zeros(n_codes, np.int32)
    where = np.zeros(n_codes, np.int64)  # one more than the last reference that has the code
    for u in range(begin, stop):
        c0, c1 = c_start[candidate[u]], c_start[candidate[u] + 1]
        g0, g1 = reference_start[u], reference_start[u + 1]
        r0, r1 = r_start[g0], r_start[g1]
        for g in range(g0, g1):
            for i in range(r_start[g], r_start[g + 1]):
                code = r_code[i]
                before_r[i - r0] = code
                if where[code] != g + 1:
                    where[code] = g + 1
                    once[code] = 0
                once[code] += 1
                one[code] = max(one[code], once[code])
        matches, standing = 0, 0
        for i in range(c0, c1):
            code = c_code[i]
            if one[code] > 0:
                one[code] -= 1
                matches += 1
            # What was used up still stands in a reference: its last count is not taken back.
            found = where[code] > g0 and where[code] <= g1
            before_c[i - c0] = code if found else -1
            standing += found
        out[u, 0] = matches
        for i in range(r0, r1):
            one[r_code[i]] = 0
        for order in range(1, orders):
            out[u, order] = 0
            if standing == 0:
                continue
            size = 16
            while size < 2 * (r1 - r0):
                size *= 2
            mask = np.uint64(size - 1)
            for s in range(size):
                slot[s] = -1
            known = 0
            for g in range(g0, g1):
                for i in range(r_start[g], r_start[g + 1] - order):
                    key = np.uint64(before_r[i - r0]) << _SHIFT | np.uint64(r_code[i + order])
                    at = _slot_of(key, mask)
                    found = slot[at]
                    while found >= 0 and keys[found] != key:
                        at = (at + np.uint64(1)) & mask
                        found = slot[at]
                    if found < 0:
                        found = np.int32(known)
                        slot[at] = found
                        keys[found] = key
                        clip[found] = 0
                        last[found] = -1
                        known += 1
                    if last[found] != g:
                        last[found] = g
                        times[found] = 0
                    times[found] += 1
                    clip[found] = max(clip[found], times[found])
                    before_r[i - r0] = found
            matches, standing = 0, 0
            for i in range(c0, c1 - order):
                if before_c[i - c0] < 0:
                    continue
                key = np.uint64(before_c[i - c0]) << _SHIFT | np.uint64(c_code[i + order])
                at = _slot_of(key, mask)
                found = slot[at]
                while found >= 0 and keys[found] != key:
                    at = (at + np.uint64(1)) & mask
                    found = slot[at]
                before_c[i - c0] = found
                if found < 0:
                    continue
                standing += 1
                if clip[found] > 0:
                    clip[found] -= 1
                    matches += 1
            out[u, order] = matches


def ngram_matches(
    first: int,
    last: int,
    units: tuple[Array, Array],
    candidates: tuple[Array, Array],
    references: tuple[Array, Array],
    n_codes: int,
    out: Array,
) -> None:
    """N-grams of candidates that references hold, each at most as often as one of these does.

    Args:
        first: first unit of comparison.
        last: one past the last.
        units: the candidate of each, int64 [u]; offsets of its references, int64 [u + 1]; an
            n-gram may match as often as in the reference that has it most often.
        candidates: offsets of the tokens of each candidate, int64; their codes, int32 in
            [0, n_codes).
        references: the same of the references.
        n_codes: one more than the highest code.
        out: int64 [u, orders], filled with the matches of the orders 1, 2, ...
    """
    _match(
        first,
        last,
        frozen(units[0], np.int64),
        frozen(units[1], np.int64),
        *coded_texts(candidates, references),
        n_codes,
        out.shape[1],
        out,
    )
