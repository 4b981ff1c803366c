"""Retrieval as a task, and bounds due to equal scores and unjudged documents."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from ... import metrics
from ...ingest.frames import Frames
from ...ingest.problems import Note, not_read
from ...ingest.shapes import LISTS
from ...metrics.averages import ratio
from ...metrics.registry import Metric
from ...schemas.arrays import Array
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS
from ...schemas.errors import OptionError
from ...schemas.wording import option
from ...tallies.stats import Column, Stats
from ..contents import DOCUMENTS, Content, Contents, Document, Ranking, by_datum, copied, shortened
from ..encoding import Workers
from ..per_datum import OF_VALUES, Judging, StatsTallies, common, counted, no_labels, truth, values
from ..per_datum import losses as of_stats
from ..task import (
    AT_MOST,
    EXACT,
    RANGE,
    UNKNOWN,
    Bound,
    Common,
    Facts,
    Given,
    Limit,
    Sample,
    Scaling,
    Task,
    Unanswered,
    any_of,
)
from .dialects import MATCHES, SENTENCES, Settings
from .encode import Batch, encode_batch, has_texts, needs_all_rows
from .metrics.gains import gains_of, refuse_endless
from .ranked import WHOLE, Lists, levels_of, log_weights

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
        for end, bounds in zip(result, low_high, strict=True):
            result[end][need] = (msgspec.structs.replace(column, values=bounds),)
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
        yield given.run(given.frames, msgspec.structs.replace(given.settings, ties=end))


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
    divided = _DIVIDED.keys() - _falling(settings)
    return divided - {"nDCG"} if settings.ideal == "retrieved" else divided


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
    if divided := _divided(settings, given.facts):
        batch = encode_batch(filled(SENTINEL), settings, frozenset(), given.workers)
        needs = {_DIVIDED[metric] for metric in divided}
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
        extremes=_by_ties,
        bound=_bound_of_ties,
    ),
    Limit(
        name="unjudged",
        why="retrieved documents without a judgment, of any grade that the judgments have",
        facts=_unjudged,
        whole=_of_all,
        settings=lambda settings, facts: (settings,) * 2,
        extremes=_by_judgments,
        bound=_bound_of_judgments,
    ),
)


# Tally: every measure that is needed, one row per query.


STATUS = ("scored", "no_relevant", "not_retrieved", "not_judged")
"""Status of a query; the first two enter means, the third if all judged queries count."""


def tally(
    frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers
) -> StatsTallies:
    """Encode, match and tally.

    Raises:
        InputError: a document or rank twice in a list, or gains that overflow.
        OptionError: a measure that is undefined for these options.
    """
    begun = time.perf_counter()
    batch = encoded(frames, settings, needs, workers)
    matched = time.perf_counter()
    stats = stats_of(batch, settings, needs, workers)
    seconds = {"match": matched - begun, "measure": time.perf_counter() - matched}
    return StatsTallies(batch.datums, no_labels(), stats, batch.row, batch.height, seconds)


def scaled_by(needs: frozenset[str]) -> str | None:
    """The column whose highest value in the whole input every part has to know; None for none."""
    scaled = any(metrics.measures("retrieval")[need].scaled for need in needs)
    return "relevance" if scaled else None


def with_highest(settings: Settings, highest: float) -> Settings:
    """Settings of a part of an input in which that column goes up to ``highest``."""
    return msgspec.structs.replace(settings, highest=highest)


def encoded(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> Batch:
    """Encode, and check documents, ranks and options.

    Raises:
        InputError: a document or rank twice in a list, or gains that overflow.
        OptionError: a measure that is undefined for these options.
    """
    if settings.ties == "average":
        refuse_unaveraged(needs)
    batch = encode_batch(frames, settings, needs, workers)
    every = metrics.all_metrics("retrieval").values()
    if needs & {need for metric in every if "gains" in metric.params for need in metric.needs}:
        refuse_endless(batch.lists, settings, batch.datums.id)
    return batch


def refuse_unaveraged(needs: frozenset[str]) -> None:
    """Raise OptionError for measures that have no mean over the orders of equal scores."""
    left = {need for need in needs if not metrics.measures("retrieval")[need].averaged}
    if left:
        every = metrics.all_metrics("retrieval").values()
        without = sorted(metric.name for metric in every if left & set(metric.needs))
        raise OptionError(
            f"{option('ties', 'average')}: no formula for the mean over all orders of equal scores"
            f" for {', '.join(without)}; remove these metrics, or write"
            f" {option('ties', 'trec')} or {option('ties', 'input')}.",
            code="metric_unfit",
            option="ties",
            metrics=list(without),
        )


def stats_of(batch: Batch, settings: Settings, needs: frozenset[str], workers: Workers) -> Stats:
    """Compute the columns of all measures, undefined for unjudged queries.

    Queries missing from the run are 0 if the dialect requires it (``Measure.DEFAULT`` of
    ir-measures).
    """
    zero = batch.judged & ~batch.answered
    zero &= settings.rules.missing_zero
    measures = metrics.measures("retrieval")
    columns = {}
    for need in sorted(needs):
        lists = batch.others.get(need, batch.lists)
        measured = measures[need](lists, settings, workers)
        columns[need] = tuple(_filled(column, ~batch.judged, np.nan) for column in measured)
        columns[need] = tuple(_filled(column, zero, 0.0) for column in columns[need])
    counted = batch.judged if settings.complete else batch.judged & batch.answered
    status = np.where(batch.lists.relevant == 0, 1, 0)
    status[~batch.answered] = 2
    status[~batch.judged] = 3
    return Stats(counted, columns, (STATUS, status.astype(np.int8)), batch.truth)


def _filled(column: Column, queries: Array, value: float) -> Column:
    if not bool(queries.any()):
        return column
    values = column.values.copy()
    values[queries] = value
    return msgspec.structs.replace(column, values=values)


# The metrics of a run: the default set is one for ids and one for texts.


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, requested: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the requested metrics, or those of the default set that fit the tables."""
    if requested:
        return metrics, _unread(frames, settings)
    texts, _ = has_texts(frames, settings)
    usual = settings.text_metrics if texts else settings.metrics
    if texts and (settings.match or settings.default_match) in SENTENCES:
        usual = ("PrecisionRecallF1",)
    fitting = tuple(metric for metric in metrics if metric.name in usual)
    return fitting, _unread(frames, settings)


def _unread(frames: Frames, settings: Settings) -> list[Note]:
    """Return a note on an option that texts do not read."""
    if settings.ignore_identical_ids and has_texts(frames, settings)[0]:
        return [not_read(f"{option('ignore_identical_ids', True)} is not read: texts have no ids.")]
    return []


# Contents of single queries: their ranked lists, and missing relevant documents.


def contents(
    frames: Frames, settings: Settings, ids: list[str], made_with: dict[str, Any], workers: Workers
) -> list[Content | None]:
    """See :attr:`..contents.Contents.of_tables`.

    Relevant ranks follow the run's matching rule.
    """
    batch = encode_batch(copied(frames), settings, frozenset(), workers)
    lists, code = batch.lists, {str(one): i for i, one in enumerate(batch.datums.id.to_list())}
    if frames.table is not None:
        table = by_datum(frames.table)
        sides = [
            {
                one: pl.DataFrame(
                    {"doc_id": rows[name].explode(empty_as_null=False, keep_nulls=False)}
                )
                for one, rows in table.items()
            }
            for name in LISTS
        ]
    else:
        sides = [by_datum(side) for side in (frames.predictions, frames.ground_truths)]
    out: list[Content | None] = []
    for one in ids:
        ours, theirs = (side.get(one) for side in sides)
        hits: dict[int, float] = {}
        missed = 0
        if one in code:
            q = code[one]
            at = slice(lists.start[q], lists.start[q + 1])
            hits = dict(zip(lists.rank[at].tolist(), lists.relevance[at].tolist(), strict=True))
            of_query = slice(lists.gold_start[q], lists.gold_start[q + 1])
            missed = int(((lists.gold_rank[of_query] == 0) & (lists.gold[of_query] > 0)).sum())
        out.append(_ranking(ours, theirs, hits, missed, settings))
    return out


def _named(rows: pl.DataFrame) -> pl.DataFrame:
    name = "doc_id" if "doc_id" in rows.columns else "text"
    return rows.with_columns(document=pl.col(name).cast(pl.String))


def _ranking(
    ours: pl.DataFrame | None,
    theirs: pl.DataFrame | None,
    hits: Mapping[int, float],
    missed: int,
    settings: Settings,
) -> Ranking:
    """One query's list; of documents of equal score the order may be another than the run's."""
    documents: list[Document] = []
    retrieved: set[str] = set()
    n = 0
    if ours is not None and ours.height:
        rows = _ordered(_named(ours), settings)
        retrieved, n = set(rows["document"].to_list()), rows.height
        scores = rows["score"].to_list() if "score" in rows.columns else [None] * n
        for i, name in enumerate(rows["document"].to_list()[:DOCUMENTS]):
            text, cut = shortened(name)
            relevance = hits.get(i + 1)
            documents.append(
                Document(
                    document=text,
                    rank=i + 1,
                    score=scores[i],
                    relevance=relevance,
                    relevant=relevance is not None and relevance > 0,
                    cut=cut,
                )
            )
    missing: list[Document] = []
    if theirs is not None and theirs.height:
        golds = _named(theirs)
        if "relevance" not in golds.columns:
            golds = golds.with_columns(relevance=pl.lit(1.0))
        golds = golds.filter(pl.col("relevance") > 0, ~pl.col("document").is_in(list(retrieved)))
        if (
            golds.height != missed
        ):  # matched by a looser rule: only the number of missing texts is known
            golds = golds.clear()
        golds = golds.sort("relevance", descending=True, maintain_order=True)
        for name, grade in golds["document", "relevance"].head(DOCUMENTS).rows():
            text, cut = shortened(name)
            missing.append(Document(document=text, relevance=grade, relevant=True, cut=cut))
    return Ranking(
        documents=tuple(documents),
        left_out=max(0, n - DOCUMENTS),
        missing=tuple(missing),
        missing_left_out=missed - len(missing),
    )


def _ordered(rows: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """Best first; equal scores as the option ``ties`` has them."""
    if "score" in rows.columns:
        if settings.ties == "trec" and "doc_id" in rows.columns:
            return rows.sort("score", "document", descending=True)
        return rows.sort("score", descending=True, maintain_order=True)
    if "rank" in rows.columns:
        return rows.sort("rank", maintain_order=True)
    return rows


# Tiny tables that make every kernel of retrieval run once.


def samples() -> Iterator[Sample]:
    """Runs and judgments by id, and lists of texts by every rule."""
    every = [name for name in metrics.names("retrieval") if name != "TokenCount"]
    run = pl.DataFrame(
        {"query_id": ["a", "b", "a"], "doc_id": ["x", "y", "z"], "score": [1.0, 1.0, 1.0]}
    )
    qrels = pl.DataFrame(
        {"query_id": ["a", "b", "a"], "doc_id": ["x", "y", "w"], "relevance": [1.0, 0.0, 2.0]}
    )
    yield run, qrels, {"metrics": every}
    yield run, qrels, {"metrics": ["RetrievalRecallAll", "MAP", "MRR", "nDCG"], "ties": "average"}
    texts = pl.DataFrame(
        {
            "retrieved": [["One sentence. And another one.", "user: three"]],
            "relevant": [["One sentence. And another.", "three words here"]],
        }
    )
    for match in MATCHES:
        names = ["PrecisionRecallF1"] if match in SENTENCES else ["PrecisionRecallF1", "MRR"]
        for dialect in ("standard", "continuous-eval"):
            yield texts, None, {"metrics": names, "match": match, "dialect": dialect}
    yield texts, None, {"dialect": "remem"}


# Loss of single queries.

_RANK = "MRR"
_UNANSWERED = "not_retrieved"


def _why(tallies: StatsTallies, every: Sequence[Judging], codes: np.ndarray[Any, Any]) -> list[str]:
    """Describe the rank of the first relevant document, if the reciprocal rank is known."""
    texts = values(tallies, every[:1], codes)
    uncut = (one for one in every if one.column.metric == _RANK and one.column.k[one.k] is None)
    inverse = next(uncut, None)
    words, standing = tallies.stats.status
    out = []
    for plain, code in zip(texts, codes.tolist(), strict=True):
        word = words[standing[code]]
        value = float("nan") if inverse is None else inverse.value[code]
        if word == _UNANSWERED:
            out.append("no document retrieved")
        elif value > 0:
            out.append(f"first relevant document at rank {round(1 / value)}")
        else:
            out.append("no relevant document retrieved" if value == 0 else plain)
    return out


losses = partial(of_stats, first=("nDCG", "F1"), skipped="no_relevant", sentences_of=_why)


# The plan of a retrieval run in words.


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step."""
    rule = settings.match or f"{settings.default_match} (texts), equality (ids)"
    over = "all judged queries" if settings.complete else "queries in both tables"
    return [
        f"match     {rule}; equal scores by {settings.ties}",
        f"tally     {len(needs)} measures a query: {', '.join(sorted(needs))}",
        f"mean      over {over}",
    ]


TASK = Task(
    name="retrieval",
    settings=Settings,
    fit=fit,
    tally=tally,
    explain=explain,
    samples=samples,
    limits=LIMITS,
    contents=Contents(of_tables=contents),
    warm=("walks",),
    examine=encoded,
    plain_growth=3.5,
    needs_all_rows=needs_all_rows,
    scaling=Scaling(scaled_by, with_highest),
    **{**OF_VALUES, "losses": losses, "common": Common(partial(common, cuts=True))},
    truth=truth,
    unanswered=Unanswered(
        counted,
        leaves=lambda settings: not settings.complete,
        advice=f"; {option('complete', True)} counts each of the others as 0",
    ),
)
