"""Bounds due to the order of equal scores, and to unjudged documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from ... import metrics
from ...ingest.frames import Frames
from ...metrics.averages import ratio
from ...schemas.arrays import Array
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS
from ...tallies.stats import Column
from ..task import AT_MOST, EXACT, RANGE, UNKNOWN, Bound, Facts, Given, Limit, any_of
from .by_id import Lists
from .dialects import Settings
from .encode import encode_batch
from .metrics.gains import gains_of
from .ranked import WHOLE, levels_of, log_weights

# Bounds of measures over every way to judge the retrieved but unjudged documents.
#
# A measure that no relevant document ever lowers is lowest with all of them irrelevant and highest
# with all of the highest grade. Others divide by the number of relevant documents: with ``s`` of
# them relevant, average precision, R-precision and DCG are highest for the first ``s`` and lowest
# for the last ``s``, so all ``s`` are tried. Recall and F1 rise with each relevant document up to
# the cut-off, and fall with each after it.
#
# nDCG of several grades is ``D / I``: DCG is linear in the gains of the unjudged documents, the
# ideal is convex. ``D / I`` is therefore quasi-concave, and lowest in a corner, with each gain 0 or
# the highest. For the upper bound, one order ``L <= I`` in place of the ideal gives a ratio of
# linear functions, highest in a corner of the gains that fall with the rank. The least of several
# such outer bounds is used.


SENTINEL = -1.7e308
"""Relevance of unjudged documents that were added to the judgments."""
BOUNDED = ("recall", "f1", "average_precision", "r_precision", "ndcg")
"""Needs whose bounds are computed here."""


class _Query(NamedTuple):
    """One list.

    Attributes:
        rank: int64 [h], ranks of judged documents, ascending.
        relevance: float64 [h], relevance of these.
        gold: float64 [g], all judgments, descending.
        open: int64 [n], ranks of unjudged documents, ascending.
    """

    rank: Array
    relevance: Array
    gold: Array
    open: Array


def bounds(
    lists: Lists, settings: Settings, highest: float, columns_of: dict[str, tuple[Column, ...]]
) -> tuple[dict[str, tuple[Column, ...]], dict[str, tuple[Column, ...]]]:
    """Return the lowest and highest columns of the needs among ``BOUNDED``.

    Args:
        lists: all retrieved documents judged, unjudged ones with ``SENTINEL``.
        highest: highest possible grade.
        columns_of: columns of the run.
    """
    queries = [_query(lists, q) for q in range(len(lists))]
    cuts = _cuts(settings)
    depth = np.where(cuts == WHOLE, lists.retrieved[:, None], cuts)
    result = {"low": dict[str, tuple[Column, ...]](), "high": dict[str, tuple[Column, ...]]()}
    for need in columns_of.keys() & set(BOUNDED):
        (column,) = columns_of[need]
        low_high = np.stack([column.values, column.values])
        for q, query in enumerate(queries):
            limits = _FORMULAS[need](query, depth[q], settings, highest)
            low_high[0, q] = np.minimum(
                low_high[0, q], limits[0]
            )  # NaN of queries without judgments stays
            low_high[1, q] = np.maximum(low_high[1, q], limits[1])
        for end, values in zip(result, low_high, strict=True):
            result[end][need] = (msgspec.structs.replace(column, values=values),)
    return result["low"], result["high"]


def _cuts(settings: Settings) -> Array:
    """Cut-offs with the whole list behind, int64 [k]."""
    return np.array([*(k for k in settings.k if k is not None), WHOLE], np.int64)


def _query(lists: Lists, q: int) -> _Query:
    a, b = lists.start[q : q + 2]
    rank, relevance = lists.rank[a:b].astype(np.int64), lists.relevance[a:b]
    gold = lists.gold[lists.gold_start[q] : lists.gold_start[q + 1]]
    judged = relevance != SENTINEL
    return _Query(rank[judged], relevance[judged], gold[gold != SENTINEL], rank[~judged])


def _levels(query: _Query, settings: Settings, highest: float) -> list[tuple[Array, int, Array]]:
    """Return, per level: ranks and number of relevant documents, and possibly relevant ranks."""
    nowhere = query.open[:0]
    return [
        (
            query.rank[query.relevance >= level],
            int((query.gold >= level).sum()),
            query.open if highest >= level else nowhere,
        )
        for level in levels_of(settings)
    ]


def _at_cuts(
    query: _Query, depth: Array, settings: Settings, highest: float, formula: Any
) -> Array:
    """Both ends, float64 [2, level, k], of a formula of relevant documents up to k and of all."""
    low_high = []
    for ranks, golds, free in _levels(query, settings, highest):
        hits = np.searchsorted(ranks, depth, side="right")
        inside = np.searchsorted(free, depth, side="right")
        low = formula(hits, golds + free.size - inside)
        low_high.append([low, formula(hits + inside, golds + inside)])
    return np.array(low_high).swapaxes(0, 1)


def _r_precision(query: _Query, depth: Array, settings: Settings, highest: float) -> Array:
    low_high = []
    for ranks, golds, free in _levels(query, settings, highest):
        n_added = np.arange(free.size + 1)
        first = golds + n_added
        hits = np.searchsorted(ranks, first, side="right")
        inside = np.searchsorted(free, first, side="right")
        low = ratio(hits + np.maximum(inside - (free.size - n_added), 0), first, 0.0)
        low_high.append([low.min(), ratio(hits + np.minimum(inside, n_added), first, 0.0).max()])
    return np.array(low_high).T[:, :, None]


def _average_precision(query: _Query, depth: Array, settings: Settings, highest: float) -> Array:
    cuts = _cuts(settings)
    out = np.zeros((2, len(settings.relevance_levels), cuts.size))
    for v, (ranks, golds, free) in enumerate(_levels(query, settings, highest)):
        relevant = golds + np.arange(free.size + 1)
        above = np.searchsorted(ranks, free)
        for c, cut in enumerate(cuts):
            within, inside = ranks[ranks <= cut], free <= cut
            parts = np.r_[0.0, np.cumsum(1 / within)]
            start = (np.arange(1, within.size + 1) / within).sum()
            # Contribution of each: the precision at it, and 1 / rank for each relevant one behind
            # it.
            behind = parts[-1] - parts[np.minimum(above, within.size)]
            inverse = np.where(inside, 1 / free, 0.0)
            ahead = np.where(inside, (above + np.arange(1, free.size + 1)) / free + behind, 0.0)
            later = inverse.sum() - np.cumsum(inverse)
            back = np.where(inside, (above + 1) / free + behind + later, 0.0)[::-1]
            out[0, v, c] = ratio(start + np.r_[0.0, np.cumsum(back)], relevant, 0.0).min()
            out[1, v, c] = ratio(start + np.r_[0.0, np.cumsum(ahead)], relevant, 0.0).max()
    return out


def _ndcg(query: _Query, depth: Array, settings: Settings, highest: float) -> Array:
    n, most = query.open.size, float(gains_of(np.array([highest]), settings.gains)[0])
    gold = gains_of(query.gold, settings.gains)
    gold, gain = gold[gold > 0], gains_of(query.relevance, settings.gains)
    longest = int(max(n + gold.size, query.rank.max(initial=0), query.open.max(initial=0), 1))
    cuts = _cuts(settings)
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
        out[0, 0, c] = ratio(down, most * upto[: n + 1] + shifted, 0.0).min()
        tops = []
        for first in {int((gold >= level).sum()) for level in gold} | {gold.size}:
            fixed = (gold[:first] * w[1 : first + 1]).sum()
            fixed += (gold[first:] * w[first + n + 1 : n + gold.size + 1]).sum()
            order = fixed + most * (upto[first : first + n + 1] - upto[first])
            fallback = np.where(up > 0, np.inf, 0)
            tops.append(np.where(order > 0, ratio(up, order, 0.0), fallback).max())
        out[1, 0, c] = min([1.0, *tops])
    return out


_FORMULAS = {
    "recall": lambda query, depth, settings, highest: _at_cuts(
        query, depth, settings, highest, lambda hits, golds: ratio(hits, golds, 0.0)
    ),
    "f1": lambda query, depth, settings, highest: _at_cuts(
        query, depth, settings, highest, lambda hits, golds: ratio(2 * hits, depth + golds, 0.0)
    ),
    "average_precision": _average_precision,
    "r_precision": _r_precision,
    "ndcg": _ndcg,
}


_BY_ORDER = frozenset(
    {"nDCG", "DCG", "MAP", "GMAP", "MRR", "P", "Recall", "Success", "RPrecision", "F1", "RBP"}
)
"""Metrics that no relevant document lowers by moving up."""
_RISING = frozenset(
    {
        "P",
        "MRR",
        "Success",
        "DCG",
        "RBP",
        "SDCG",
        "INSQ",
        "SetPrecision",
        "Utility",
        "NumRetrieved",
        "NumRelevantRetrieved",
    }
)
"""Metrics that no relevant document lowers."""
_DIVIDED = {
    "Recall": "recall",
    "F1": "f1",
    "MAP": "average_precision",
    "GMAP": "average_precision",
    "RPrecision": "r_precision",
    "nDCG": "ndcg",
}
"""Metrics that are bounded one query after the other, and their needs."""


def _tied(frames: Frames, settings: Settings) -> Facts | None:
    run = frames.sides.get(PREDICTIONS)
    if run is None or "doc_id" not in run.columns or "score" not in run.columns:
        return None
    return {"tied": run.select("datum_id", "score").is_duplicated().any()}


def _by_ties(given: Given) -> Iterator[Any]:
    for end in ("worst", "best"):
        settings = msgspec.structs.replace(given.settings, ties=end)
        yield given.run(given.frames, settings)


def _bound_of_ties(settings: Settings, facts: Facts, low_high: Sequence[Any]) -> Bound | None:
    exact = _BY_ORDER - _falling(settings)
    if not facts["tied"]:
        return None
    return lambda metric: EXACT if metric in exact else _unknown(metric, settings)


def _falling(settings: Settings) -> set[str]:
    """Metrics that a document may lower by becoming relevant, or by moving up."""
    rules, mapped = settings.rules, not isinstance(settings.gains, str)
    return {
        *(("MAP", "GMAP") if rules.averaged_over_retrieved else ()),
        *(("RBP",) if rules.graded_persistence else ()),  # shares of the query's highest relevance
        *(("DCG", "nDCG") if mapped else ()),
    }


def _unknown(metric: str, settings: Settings) -> str:
    """Gains of the user's own may lead beyond the range of metrics that take gains."""
    takes = "gains" in metrics.get("retrieval", metric).params
    return UNKNOWN if takes and not isinstance(settings.gains, str) else RANGE


def _judgments(frames: Frames) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return judgments, with relevance 1 by default; and unjudged documents of judged queries."""
    run, qrels = frames.sides[PREDICTIONS], frames.sides[GROUND_TRUTHS]
    if "relevance" not in qrels.columns:
        qrels = qrels.with_columns(relevance=1.0)
    qrels = qrels.with_columns(pl.col("relevance").cast(pl.Float64))
    pair = ["datum_id", "doc_id"]
    unjudged = run.select(pair).join(qrels.select(pair), on=pair, how="anti")
    return qrels, unjudged.join(qrels.select("datum_id").unique(), on="datum_id", how="semi")


def _unjudged(frames: Frames, settings: Settings) -> Facts | None:
    """The grades that judgments have, two of them and the highest."""
    run, qrels = frames.sides.get(PREDICTIONS), frames.sides.get(GROUND_TRUTHS)
    if run is None or qrels is None or settings.judged_only:
        return None  # unjudged documents are skipped on purpose
    if "doc_id" not in run.columns or "doc_id" not in qrels.columns:
        return None
    qrels, unjudged = _judgments(frames)
    grades = qrels["relevance"].filter(qrels["relevance"] > 0).unique().sort()
    return {
        "grades": [*grades.head(1), *grades[1:].tail(1)],
        "twice": unjudged.is_duplicated().any(),
    }


def _of_all(facts: Sequence[Facts]) -> Facts:
    grades = sorted({grade for one in facts for grade in one["grades"]})
    return {"grades": grades, "twice": any(one["twice"] for one in facts)}


def _divided(settings: Settings, facts: Facts) -> set[str]:
    """Metrics that are bounded one query after the other."""
    if settings.ties == "average" or facts["twice"]:
        return set()
    wanted = _DIVIDED.keys() - _falling(settings)
    return wanted - {"nDCG"} if settings.ideal == "retrieved" else wanted


def _by_judgments(given: Given) -> Iterator[Any]:
    """Every retrieved document without a judgment of one grade among those that there are."""
    frames, settings = given.frames, given.settings
    highest = max(given.facts["grades"], default=1.0)
    qrels, missing_judgments = _judgments(frames)
    missing_judgments = missing_judgments.unique(maintain_order=True)

    def filled(relevance: float) -> Frames:
        judged = pl.concat(
            [qrels, missing_judgments.with_columns(relevance=relevance)], how="diagonal_relaxed"
        )
        sides = {role: frame.clone() for role, frame in frames.sides.items()}
        sides[GROUND_TRUTHS] = judged
        return msgspec.structs.replace(frames, sides=sides, notes=[*frames.notes], ids=None)

    low, high = given.tallies, given.run(filled(highest), settings)
    if wanted := _divided(settings, given.facts):
        batch = encode_batch(filled(SENTINEL), settings, frozenset(), given.workers)
        needs = {_DIVIDED[metric] for metric in wanted}
        columns = {need: of for need, of in low.stats.columns.items() if need in needs}
        low_high = bounds(batch.lists, settings, highest, columns)
        low, high = (
            msgspec.structs.replace(
                tallies, stats=msgspec.structs.replace(stats, columns={**stats.columns, **bound})
            )
            for tallies, bound in zip((low, high), low_high, strict=True)
            for stats in (tallies.stats,)
        )
    yield from (low, high)


def _bound_of_judgments(settings: Settings, facts: Facts, low_high: Sequence[Any]) -> Bound:
    exact = (_RISING - _falling(settings)) | _divided(settings, facts)

    def bound(metric: str) -> str:
        if metric not in exact:
            return _unknown(metric, settings)
        return AT_MOST if metric == "nDCG" and len(facts["grades"]) > 1 else EXACT

    return bound


LIMITS = (
    Limit(
        name="ties",
        why="relevant documents last, or first, among equal scores of a query",
        facts=_tied,
        whole=any_of,
        settings=lambda settings, facts: (settings,) * 2,
        ends=_by_ties,
        bound=_bound_of_ties,
    ),
    Limit(
        name="unjudged",
        why="retrieved documents without a judgment, of any grade that the judgments have",
        facts=_unjudged,
        whole=_of_all,
        settings=lambda settings, facts: (settings,) * 2,
        ends=_by_judgments,
        bound=_bound_of_judgments,
    ),
)
