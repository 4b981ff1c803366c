"""Bounds of measures over every way to judge the retrieved documents that nobody judged.

A measure that no relevant document ever lowers is lowest with all of them irrelevant and highest
with all of the highest grade. Others divide by what there is to find. With ``s`` of them relevant,
that is the same whichever ``s`` they are, and average precision, R-precision and DCG are highest
where they are the first ``s`` and lowest where they are the last ``s``: each document that moves
up moves the sorted ranks of the relevant ones up. So that the bounds are found among all ``s``.
Recall and F1 rise by each relevant document up to the cut-off, and fall by each behind it.

nDCG of several grades is ``D / I``: DCG is linear in the gains of the unjudged documents, and the
ideal is the largest of several linear functions, hence convex. ``D - t I`` is concave, ``D / I`` so
quasi-concave, and lowest in a corner, where each gain is nothing or the highest. Above, one order
``L <= I`` in place of the ideal makes ``D / L`` a ratio of linear functions, which is highest in a
corner of the gains that fall with the rank: an outer bound, and the least of several such is taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np

from ...tally.stats import Column
from .lists import Lists
from .measures.common import cuts_of, levels_of, log_weights
from .measures.counts import looked_at
from .measures.gains import gains_of
from .settings import Settings

Array = np.ndarray[Any, Any]

SENTINEL = -1.7e308
"""Relevance that stands for none in tables to which the unjudged documents were added."""
BOUNDED = ("recall", "f1", "average_precision", "r_precision", "ndcg")
"""Needs whose bounds are computed here."""


class _Query(NamedTuple):
    """One list.

    Attributes:
        rank: int64 [h], ranks of judged documents, ascending.
        relevance: float64 [h], of these.
        gold: float64 [g], all judgments, descending.
        open: int64 [n], ranks of unjudged documents, ascending.
    """

    rank: Array
    relevance: Array
    gold: Array
    open: Array


def bounds(
    lists: Lists, settings: Settings, highest: float, known: dict[str, tuple[Column, ...]]
) -> tuple[dict[str, tuple[Column, ...]], dict[str, tuple[Column, ...]]]:
    """Lowest and highest columns of the needs among ``BOUNDED``.

    Args:
        lists: all retrieved documents judged, those that nobody judged with ``SENTINEL``.
        settings: the run's settings.
        highest: the highest grade that there is.
        known: columns of the run.
    """
    queries = [_query(lists, q) for q in range(len(lists))]
    depth = looked_at(lists, cuts_of(settings)[1])
    made = {"low": dict[str, tuple[Column, ...]](), "high": dict[str, tuple[Column, ...]]()}
    for need in known.keys() & set(BOUNDED):
        (column,) = known[need]
        ends = np.stack([column.values, column.values])
        for q, query in enumerate(queries):
            found = _FORMULAS[need](query, depth[q], settings, highest)
            ends[0, q] = np.minimum(ends[0, q], found[0])  # NaN of queries without judgments stays
            ends[1, q] = np.maximum(ends[1, q], found[1])
        for end, values in zip(made, ends, strict=True):
            made[end][need] = (msgspec.structs.replace(column, values=values),)
    return made["low"], made["high"]


def _query(lists: Lists, q: int) -> _Query:
    a, b = lists.start[q : q + 2]
    rank, relevance = lists.rank[a:b].astype(np.int64), lists.relevance[a:b]
    gold = lists.gold[lists.gold_start[q] : lists.gold_start[q + 1]]
    known = relevance != SENTINEL
    return _Query(rank[known], relevance[known], gold[gold != SENTINEL], rank[~known])


def _levels(query: _Query, settings: Settings, highest: float) -> list[tuple[Array, int, Array]]:
    """Of each level: ranks of relevant documents, how many there are, and ranks that may be."""
    nowhere = query.open[:0]
    return [
        (
            query.rank[query.relevance >= level],
            int((query.gold >= level).sum()),
            query.open if highest >= level else nowhere,
        )
        for level in levels_of(settings)
    ]


def _over(part: Any, whole: Any) -> Array:
    """Quotients, 0.0 where there is nothing to divide by."""
    part, whole = np.broadcast_arrays(np.asarray(part, np.float64), whole)
    out = np.zeros(part.shape)
    np.divide(part, whole, out=out, where=whole != 0)
    return out


def _recall(query: _Query, depth: Array, settings: Settings, highest: float) -> Array:
    return _at_cuts(query, depth, settings, highest, lambda hits, golds: _over(hits, golds))


def _f1(query: _Query, depth: Array, settings: Settings, highest: float) -> Array:
    return _at_cuts(
        query, depth, settings, highest, lambda hits, golds: _over(2 * hits, depth + golds)
    )


def _at_cuts(
    query: _Query, depth: Array, settings: Settings, highest: float, formula: Any
) -> Array:
    """Both ends, float64 [2, level, k], of a formula of relevant documents up to k and of all."""
    ends = []
    for ranks, golds, free in _levels(query, settings, highest):
        hits = np.searchsorted(ranks, depth, side="right")
        inside = np.searchsorted(free, depth, side="right")
        low = formula(hits, golds + free.size - inside)
        ends.append([low, formula(hits + inside, golds + inside)])
    return np.array(ends).swapaxes(0, 1)


def _r_precision(query: _Query, depth: Array, settings: Settings, highest: float) -> Array:
    ends = []
    for ranks, golds, free in _levels(query, settings, highest):
        more = np.arange(free.size + 1)
        first = golds + more
        hits = np.searchsorted(ranks, first, side="right")
        inside = np.searchsorted(free, first, side="right")
        low = _over(hits + np.maximum(inside - (free.size - more), 0), first)
        ends.append([low.min(), _over(hits + np.minimum(inside, more), first).max()])
    return np.array(ends).T[:, :, None]


def _average_precision(query: _Query, depth: Array, settings: Settings, highest: float) -> Array:
    cuts = cuts_of(settings)[1]
    out = np.zeros((2, len(settings.relevance_levels), cuts.size))
    for v, (ranks, golds, free) in enumerate(_levels(query, settings, highest)):
        whole = golds + np.arange(free.size + 1)
        above = np.searchsorted(ranks, free)
        for c, cut in enumerate(cuts):
            near, inside = ranks[ranks <= cut], free <= cut
            parts = np.r_[0.0, np.cumsum(1 / near)]
            start = (np.arange(1, near.size + 1) / near).sum()
            # What each adds: its own precision, and 1 / rank to each relevant one behind it.
            behind = parts[-1] - parts[np.minimum(above, near.size)]
            own = np.where(inside, 1 / free, 0.0)
            ahead = np.where(inside, (above + np.arange(1, free.size + 1)) / free + behind, 0.0)
            later = own.sum() - np.cumsum(own)
            back = np.where(inside, (above + 1) / free + behind + later, 0.0)[::-1]
            out[0, v, c] = _over(start + np.r_[0.0, np.cumsum(back)], whole).min()
            out[1, v, c] = _over(start + np.r_[0.0, np.cumsum(ahead)], whole).max()
    return out


def _ndcg(query: _Query, depth: Array, settings: Settings, highest: float) -> Array:
    n, most = query.open.size, float(gains_of(np.array([highest]), settings.gains)[0])
    gold = gains_of(query.gold, settings.gains)
    gold, gain = gold[gold > 0], gains_of(query.relevance, settings.gains)
    longest = int(max(n + gold.size, query.rank.max(initial=0), query.open.max(initial=0), 1))
    cuts = cuts_of(settings)[1]
    out = np.zeros((2, 1, cuts.size))
    weight = np.zeros(longest + n + gold.size + 2)
    weight[1 : longest + 1] = 1 / log_weights(longest, settings.discount).weight[1:]
    for c, cut in enumerate(cuts):
        w = np.where(np.arange(weight.size) <= cut, weight, 0.0)
        upto = np.r_[0.0, np.cumsum(w[1:])]
        start, each = (gain * w[query.rank]).sum(), most * w[query.open]
        none = np.zeros(1)
        up = start + np.r_[none, np.cumsum(each)]
        down = start + np.r_[none, np.cumsum(each[::-1])]
        shifted = np.correlate(w[1 : n + gold.size + 1], gold) if gold.size else np.zeros(n + 1)
        out[0, 0, c] = _over(down, most * upto[: n + 1] + shifted).min()
        tops = []
        for first in {int((gold >= level).sum()) for level in gold} | {gold.size}:
            fixed = (gold[:first] * w[1 : first + 1]).sum()
            fixed += (gold[first:] * w[first + n + 1 : n + gold.size + 1]).sum()
            order = fixed + most * (upto[first : first + n + 1] - upto[first])
            tops.append(np.where(order > 0, _over(up, order), np.where(up > 0, np.inf, 0)).max())
        out[1, 0, c] = min([1.0, *tops])
    return out


_FORMULAS = {
    "recall": _recall,
    "f1": _f1,
    "average_precision": _average_precision,
    "r_precision": _r_precision,
    "ndcg": _ndcg,
}
