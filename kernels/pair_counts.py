"""Joint histogram of two maps of whole numbers that lie anywhere: how many pixels have each pair.

Most pixels have the pair of the pixel before, so that a run is looked up once: in a table of the
pairs that occur, found by a hash of the pair, which grows as they come.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]

_FIRST = 1 << 10  # places of the table at first
_LOW = 1 << 31  # brings the second number of a pair above 0, so that pairs sort as they should


@inner
def _place(pair: Any, pairs: Any, counts: Any) -> Any:
    """Where a pair stands in a table, or is to stand; places without a count are free."""
    mask = np.uint64(pairs.size - 1)
    mixed = np.uint64(pair) * np.uint64(0x9E3779B97F4A7C15)
    at = (mixed ^ (mixed >> np.uint64(32))) & mask
    while counts[at] != 0 and pairs[at] != pair:
        at = (at + np.uint64(1)) & mask
    return at


@inner
def _pair(a: Any, b: Any) -> Any:
    return (np.int64(a) << np.int64(32)) + (np.int64(b) + np.int64(_LOW))


@kernel
def _count(a: Any, b: Any) -> Any:
    """Pairs and how often each occurs, in no order; places without a count mean nothing.

    Args:
        a: int32 [n].
        b: int32 [n], n at least 1.

    Returns:
        int64 [m], int64 [m].
    """
    pairs, counts = np.empty(_FIRST, np.int64), np.zeros(_FIRST, np.int64)
    used, since, i = 0, 0, 0
    while i < a.size:
        first, second = a[i], b[i]
        i += 1
        while i < a.size and (a[i] ^ first) | (b[i] ^ second) == 0:
            i += 1
        pair = _pair(first, second)
        at = _place(pair, pairs, counts)
        if counts[at] == 0:
            used += 1
            pairs[at] = pair
        counts[at] += i - since
        since = i
        if 2 * used > pairs.size:
            more, moved = np.empty(2 * pairs.size, np.int64), np.zeros(2 * pairs.size, np.int64)
            for k in range(pairs.size):
                if counts[k] != 0:
                    to = _place(pairs[k], more, moved)
                    more[to], moved[to] = pairs[k], counts[k]
            pairs, counts = more, moved
    return pairs, counts


def count_wide(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Joint histogram of two maps whose numbers need not fit into bytes.

    Args:
        a: integers within int32, any shape.
        b: the same of the same shape.

    Returns:
        numbers of the first map int64 [m], of the second int64 [m], pixels int64 [m]; by the first
        and then the second, ascending.
    """
    if a.size == 0:
        none = np.empty(0, np.int64)
        return none, none.copy(), none.copy()
    pairs, counts = _count(*(frozen(side.reshape(-1), np.int32) for side in (a, b)))
    here = np.flatnonzero(counts)
    order = here[np.argsort(pairs[here])]
    pair = pairs[order]
    return pair >> 32, (pair & 0xFFFFFFFF) - _LOW, counts[order]
