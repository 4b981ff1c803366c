"""Which needles stand in which haystacks, group by group, on UTF-8 bytes.

Every haystack gets an index of its runs of eight bytes (chains by hash), so that a needle costs a
few look-ups: of several runs of the needle the one that stands in the haystack least often is
followed, and only there bytes are compared. Valid UTF-8 is found as bytes exactly where it is found
as characters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]

_RUN = 8
_PROBES = 4
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@inner
def _run_at(data: Array, at: int) -> np.uint64:
    value = np.uint64(0)
    for i in range(at, at + _RUN):
        value = value << np.uint64(8) | np.uint64(data[i])
    return value


@inner
def _same(a: Array, at: int, b: Array, begin: int, length: int) -> bool:
    for i in range(length):  # noqa: SIM110 - compiled
        if a[at + i] != b[begin + i]:
            return False
    return True


@inner
def _index(data: Array, begin: int, end: int, bits: int, head: Array, link: Array, count: Array):  # type: ignore[no-untyped-def]
    """Chain the places of all runs of data[begin:end] by the hash of the run."""
    shift = np.uint64(64 - bits)
    head[: 1 << bits] = -1
    count[: 1 << bits] = 0
    value = np.uint64(0)
    for i in range(begin, end):
        value = value << np.uint64(8) | np.uint64(data[i])
        at = i - begin - _RUN + 1
        if at >= 0:
            slot = np.int64((value * _MULTIPLIER) >> shift)
            link[at] = head[slot]
            head[slot] = at
            count[slot] += 1


@inner
def _found(
    hay: Array,
    hay_begin: int,
    hay_end: int,
    bits: int,
    head: Array,
    link: Array,
    count: Array,
    needle: Array,
    begin: int,
    end: int,
) -> bool:
    """Whether needle[begin:end], at least a run long, stands in the indexed haystack."""
    length = end - begin
    shift = np.uint64(64 - bits)
    fewest, offset, start = np.int64(1) << 62, 0, -1
    for p in range(_PROBES):
        o = (length - _RUN) * p // (_PROBES - 1)
        slot = np.int64((_run_at(needle, begin + o) * _MULTIPLIER) >> shift)
        if count[slot] < fewest:
            fewest, offset, start = count[slot], o, head[slot]
        if fewest == 0:
            return False
    while start >= 0:
        at = hay_begin + start - offset
        if at >= hay_begin and at + length <= hay_end and _same(hay, at, needle, begin, length):
            return True
        start = link[start]
    return False


@inner
def _scan(hay: Array, hay_begin: int, hay_end: int, needle: Array, begin: int, end: int) -> bool:
    """The same for a short needle, place by place."""
    length = end - begin
    if length == 0:
        return True
    byte = needle[begin]
    for at in range(hay_begin, hay_end - length + 1):
        if hay[at] == byte and _same(hay, at, needle, begin, length):
            return True
    return False


@kernel
def _match(
    first: int,
    last: int,
    r_start: Array,
    r_text: Array,
    g_start: Array,
    g_text: Array,
    hay: Array,
    hay_start: Array,
    needle: Array,
    needle_start: Array,
    asked: Array,
    pair_start: Array,
    out: Array,
) -> None:
    """Set ``out`` where a needle is found, for the groups [first, last)."""
    longest = 0
    for p in range(g_start[first], g_start[last]):
        longest = max(longest, hay_start[g_text[p] + 1] - hay_start[g_text[p]])
    most_bits = 8
    while 1 << most_bits < longest:
        most_bits += 1
    head, count = np.empty(1 << most_bits, np.int32), np.empty(1 << most_bits, np.int32)
    link = np.empty(longest, np.int32)
    for q in range(first, last):
        n_gold = g_start[q + 1] - g_start[q]
        for g in range(n_gold):
            text = g_text[g_start[q] + g]
            begin, end = hay_start[text], hay_start[text + 1]
            bits = 0
            for r in range(r_start[q + 1] - r_start[q]):
                wanted = r_text[r_start[q] + r]
                n0, n1 = needle_start[wanted], needle_start[wanted + 1]
                place = pair_start[q] + r * n_gold + g
                if not asked[wanted] or n1 - n0 > end - begin or out[place]:
                    continue
                if n1 - n0 < _RUN:
                    out[place] = _scan(hay, begin, end, needle, n0, n1)
                    continue
                if bits == 0:
                    bits = 8
                    while 1 << bits < end - begin:
                        bits += 1
                    _index(hay, begin, end, bits, head, link, count)
                out[place] = _found(hay, begin, end, bits, head, link, count, needle, n0, n1)


def match_substrings(
    first: int,
    last: int,
    retrieved: tuple[Array, Array],
    gold: tuple[Array, Array],
    haystacks: tuple[Array, Array],
    needles: tuple[Array, Array],
    asked: Array,
    pair_start: Array,
    out: Array,
) -> None:
    """Set ``out`` to 1 where a retrieved needle is a substring of a gold; the rest stays.

    An empty needle is found everywhere.

    Args:
        first: first query.
        last: one past the last query.
        retrieved: offsets of the components of each query, int64 [q + 1]; needle of each, int32.
        gold: offsets of the golds of each query; haystack of each, below 2 GiB.
        haystacks: bytes uint8; offsets int64 [haystacks + 1].
        needles: bytes uint8; offsets int64 [needles + 1].
        asked: bool [needles], those looked for at all.
        pair_start: int64 [q + 1], offsets into ``out``.
        out: uint8; a row is a retrieved component.
    """
    _match(
        first,
        last,
        frozen(retrieved[0], np.int64),
        frozen(retrieved[1], np.int32),
        frozen(gold[0], np.int64),
        frozen(gold[1], np.int32),
        frozen(haystacks[0], np.uint8),
        frozen(haystacks[1], np.int64),
        frozen(needles[0], np.uint8),
        frozen(needles[1], np.int64),
        frozen(asked, np.bool_),
        frozen(pair_start, np.int64),
        out,
    )
