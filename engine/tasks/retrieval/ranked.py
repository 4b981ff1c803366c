"""Ranked lists: matching of documents by id, counts, and the declaration of a measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...geometry.columns import offsets_of
from ...ingest.ids import encode
from ...kernels.retrieval import (
    ROW,
    by_query,
    count_within,
    log_discounts,
    rank_judgments,
    rank_sums,
    tied_rows,
)
from ...metrics import averages
from ...metrics.registry import Metric, snake_case
from ...schemas.arrays import Array
from ...schemas.errors import InputError
from ...schemas.wording import option
from ...tallies.datums import parameters
from ...tallies.stats import Column
from ..encoding import Workers
from .dialects import USUAL, Settings, unusual

# Ranked lists with judgments, the input of all retrieval measures.


def count(start: Array, chosen: Array) -> Array:
    """Count chosen items per query.

    Args:
        start: int64 [q + 1], CSR offsets.
        chosen: bool [n].

    Returns:
        int64 [q].
    """
    upto = np.r_[0, np.cumsum(chosen, dtype=np.int64)]
    return upto[start[1:]] - upto[start[:-1]]


class Ties(msgspec.Struct, frozen=True):
    """Ranks shared by documents of equal score, if ties are averaged.

    Attributes:
        first: int32 [h], lowest rank among the documents of the hit's score.
        size: int32 [h], number of documents with that score.
    """

    first: Array
    size: Array


class Lists(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The queries of a run; unjudged documents are only counted.

    Two ragged arrays (CSR over queries) contain everything: ``hits``, retrieved documents that have
    a judgment, by rank; and ``golds``, the judgments, by relevance. For ids each hit is one gold.
    For texts a hit may match several golds and a gold several hits.

    Attributes:
        retrieved: int64 [q], documents retrieved.
        start: int64 [q + 1], offsets of the hits of each query.
        rank: int32 [h], ranks from 1, ascending within a query.
        relevance: float64 [h], the highest relevance among the golds that the hit matches;
            negative for an unjudged document of the pool (trec_eval's bpref and infAP).
        gain: float64 [h], relevance with every gold credited once, to the first hit that matches
            it, and one gold per hit; 0.0 for a hit without a gold. For ids the same array as
            ``relevance``.
        gold_start: int64 [q + 1], offsets of the judgments of each query.
        gold: float64 [g], their relevance, descending within a query.
        gold_rank: int32 [g], lowest rank at which each is retrieved, 0 if it is not.
        repeats: int64 [q], golds given more than once, excluded from ``gold``; 0 for ids.
        again: int64 [q], retrieved ids that already occur at a higher rank, or None if there are
            none.
        tokens: float64 [q], estimated tokens of the retrieved texts; None if not needed.
        ties: ranks shared by equal scores if these are averaged, else None. Then ``rank`` follows
            the order of the input, and a measure is its mean over all orders of equal scores.
    """

    retrieved: Array
    start: Array
    rank: Array
    relevance: Array
    gain: Array
    gold_start: Array
    gold: Array
    gold_rank: Array
    repeats: Array
    again: Array | None = None
    tokens: Array | None = None
    ties: Ties | None = None

    def __len__(self) -> int:
        return self.retrieved.size

    @cached_property
    def relevant(self) -> Array:
        """Judgments above 0, int64 [q]."""
        return count(self.gold_start, self.gold > 0)


# Matching of documents by id: positions of the judged ones in every list.

_MIXER = np.uint64(0x9E3779B97F4A7C15)


class Side(msgspec.Struct):
    """Rows of one side.

    Attributes:
        name: its table, for messages.
        query: int32 [n], query of each row.
        doc: ids of documents, row by row.
        value: float64 [n], scores (higher first), or relevance.
        column: column of the values; None for list elements, whose row numbers are meaningless.
        row: int64 [n], row numbers in the whole input; None if rows count from 0.
    """

    name: str
    query: Array
    doc: pl.Series
    value: Array
    column: str | None = "score"
    row: Array | None = None


class _Hits(msgspec.Struct):
    """Judged rows by query, by descending score.

    Attributes:
        start: int64 [q + 1], offsets.
        position: int64 [h], index among the rows sorted by query.
        gold: int32 [h], the judgment of each.
        greater: int32 [h], rows with a greater score.
        equal: int32 [h], rows with the same score, including the row.
    """

    start: Array
    position: Array
    gold: Array
    greater: Array
    equal: Array


class SortedSides(msgspec.Struct):
    """Both sides sorted by query, and their matches.

    Attributes:
        start: int64 [q + 1], offsets of retrieved rows.
        retrieved: uint64 [n, 3], key, bits of the score and row number of each.
        gold_start: int64 [q + 1], offsets of judgments.
        golds: uint64 [g, 3], same for judgments.
        again: int64 [q], rows whose document is already in the query.
        hits: judged rows.
        run: the retrieved side.
        judged: the judgments.
    """

    start: Array
    retrieved: Array
    gold_start: Array
    golds: Array
    again: Array
    hits: _Hits
    run: Side
    judged: Side

    @property
    def rows(self) -> Array:
        """Row number of each retrieved row, uint64 [n]."""
        return self.retrieved[:, ROW]

    @property
    def gold_rows(self) -> Array:
        """Row number of each judgment, uint64 [g]."""
        return self.golds[:, ROW]


def meet_ids(
    run: Side, judged: Side, queries: pl.Series, workers: Workers, *, repeats: bool = False
) -> SortedSides:
    """Find the judged rows of every query.

    Ids are compared by 64-bit hashes, then equal ones by the ids; if hashes collide, the ids are
    coded exactly instead.

    Args:
        run: retrieved documents.
        judged: the judgments, with ids of the same dtype.
        queries: query ids by code, for messages.
        repeats: a document may occur twice in a list.

    Raises:
        InputError: a document twice in one query of either side.
    """
    keys = [_hashed(side.doc) for side in (run, judged)]
    sides, twice = _meet(run, judged, keys, len(queries), workers, repeats=repeats)
    if not _collides(sides, twice, keys):
        _refuse_repeats(sides, twice, queries, repeats=repeats)
        return sides
    del sides
    _, codes = encode([run.doc, judged.doc])
    exact = [code.astype(np.uint64) * _MIXER for code in codes]
    sides, twice = _meet(run, judged, exact, len(queries), workers, repeats=repeats)
    _refuse_repeats(sides, twice, queries, repeats=repeats)
    return sides


def _hashed(ids: pl.Series) -> Array:
    """A key for each id, uint64 [n]: of an integer one that no other has."""
    if ids.dtype.is_integer():
        plain = ids.cast(pl.Int64, wrap_numerical=True).to_numpy().view(np.uint64) * _MIXER
        plain ^= plain >> np.uint64(29)
        return plain
    return ids.hash(seed=0).to_numpy()


def _meet(
    run: Side, judged: Side, keys: list[Array], n: int, workers: Workers, *, repeats: bool
) -> tuple[SortedSides, Array]:
    start, retrieved = by_query(run.query, keys[0], run.value, n)
    gold_start, golds = by_query(judged.query, keys[1], judged.value, n)
    lengths = np.diff(start)
    room = offsets_of(lengths if repeats else np.minimum(lengths, np.diff(gold_start)))
    size = int(room[-1])
    out = (
        np.empty(size, np.int64),
        np.empty(size, np.int32),
        np.zeros(size, np.int32),
        np.zeros(size, np.int32),
        np.zeros(n, np.int64),
        np.zeros((3, n), np.int64),
    )
    workers.over(
        start,
        lambda first, last: rank_judgments(
            first, last, start, retrieved, gold_start, golds, room, out
        ),
    )
    many, twice = out[4:]
    columns: list[Array] = list(out[:4])
    hit_start = offsets_of(many)
    if int(hit_start[-1]) < size:
        indices = np.arange(int(hit_start[-1])) + np.repeat(room[:-1] - hit_start[:-1], many)
        columns = [array[indices] for array in columns]
    hits = _Hits(hit_start, *columns)
    sides = SortedSides(start, retrieved, gold_start, golds, twice[2], hits, run, judged)
    return sides, twice


def _collides(sorted_sides: SortedSides, twice: Array, keys: list[Array]) -> bool:
    """Return True if documents with equal keys differ, among matches and apparent repeats."""
    if sorted_sides.run.doc.dtype.is_integer():
        return False
    ours = sorted_sides.run.doc.gather(sorted_sides.rows[sorted_sides.hits.position])
    theirs = sorted_sides.judged.doc.gather(sorted_sides.gold_rows[sorted_sides.hits.gold])
    if not ours.equals(theirs):
        return True
    sides = (
        (sorted_sides.run, sorted_sides.start, sorted_sides.rows),
        (sorted_sides.judged, sorted_sides.gold_start, sorted_sides.gold_rows),
    )
    for i, (side, start, rows) in enumerate(sides):
        for q in np.flatnonzero(twice[i]):
            mine = rows[start[q] : start[q + 1]]
            if np.unique(keys[i][mine]).size != side.doc.gather(mine).n_unique():
                return True
    return False


def _refuse_repeats(
    sorted_sides: SortedSides, twice: Array, queries: pl.Series, *, repeats: bool
) -> None:
    sides = (
        (sorted_sides.run, sorted_sides.start, sorted_sides.rows),
        (sorted_sides.judged, sorted_sides.gold_start, sorted_sides.gold_rows),
    )
    problems: list[str] = []
    facts: dict[str, object] = {}
    for i, (side, start, rows) in enumerate(sides):
        repeated = np.flatnonzero(twice[i])
        if not repeated.size or (i == 0 and repeats):
            continue
        first, named = [], []
        for q in repeated[:3].tolist():
            mine = rows[start[q] : start[q + 1]]
            docs = side.doc.gather(mine)
            doc = docs.gather([int(twice[i, q] - 1 - start[q])]).item()
            where = mine[(docs == doc).to_numpy()]
            where = where if side.row is None else np.sort(side.row[where])
            named += where[:3].tolist()
            at = " and ".join(map(str, where[:3].tolist()))
            place = "" if side.column is None else f" in rows {at}"
            first.append(f"query_id={queries[q]!r}, doc_id={doc!r}{place}")
        rows_from = "" if side.column is None else " (rows count from 0)"
        problems.append(
            f"{side.name}: a document appears more than once in {repeated.size:,}"
            f" {'query' if repeated.size == 1 else 'queries'}, first{rows_from}:"
            f" {'; '.join(first)}. Each may appear once; was a file read twice, or"
            " are these passages of one document? Keep the best of them, e.g."
            f" by {_best_of(side)}."
        )
        facts = facts or {"side": side.name, "count": repeated.size, "rows": named}
    if problems:
        raise InputError("\n".join(problems), code="repeated_values", column="doc_id", **facts)


def _best_of(side: Side) -> str:
    """Return advice on removing repeated documents."""
    if side.column is None:
        return (
            f"pl.col({side.name!r}).list.unique(maintain_order=True), or read them as texts, which"
            f" may be repeated, by {option('match', 'exact_chunk')}"
        )
    best = "min" if side.column == "rank" else "max"
    return f"group_by('query_id', 'doc_id').agg(pl.{best}({side.column!r}))"


def lists_of(sides: SortedSides, settings: Settings, *, ascending: bool = False) -> Lists:
    """Build ranked lists from matched rows.

    Args:
        settings: order of ties.
        ascending: among equal scores the lowest document id comes first, not the highest.
    """
    hits = sides.hits
    n = sides.start.size - 1
    query = np.repeat(np.arange(n), np.diff(hits.start))
    rank = hits.greater + 1
    ties = Ties(rank, hits.equal) if settings.ties == "average" else None
    order = np.arange(rank.size)  # hits are already sorted by descending score
    if bool((hits.equal > 1).any()):
        rank = rank + _ahead(sides, settings.ties, ascending=ascending)
        order = np.lexsort((rank, query))
    relevance = sides.judged.value[sides.gold_rows]
    gold, rank = hits.gold[order], rank[order].astype(np.int32)
    if ties is not None:
        ties = Ties(ties.first[order], ties.size[order])
    rank_of = np.zeros(relevance.size, np.int32)
    rank_of[gold[::-1]] = rank[::-1]
    value = relevance[gold]
    first = rank_of[gold] == rank
    gain = value if bool(first.all()) else np.where(first, value, 0.0)
    golds = np.repeat(np.arange(n), np.diff(sides.gold_start))
    down = np.lexsort((-relevance, golds))
    return Lists(
        retrieved=np.diff(sides.start),
        start=hits.start,
        rank=rank,
        relevance=value,
        gain=gain,
        gold_start=sides.gold_start,
        gold=relevance[down],
        gold_rank=rank_of[down],
        repeats=np.zeros(n, np.int64),
        again=sides.again,
        ties=ties,
    )


def judged_side(sides: SortedSides) -> Side:
    """Return only the judged rows of the retrieved side."""
    rows = np.sort(
        sides.rows[sides.hits.position[sides.judged.value[sides.gold_rows][sides.hits.gold] >= 0]]
    )
    run = sides.run
    return Side(run.name, run.query[rows], run.doc.gather(rows), run.value[rows], run.column)


def _ahead(sides: SortedSides, ties: str, *, ascending: bool) -> Array:
    """Rows of equal score that come before each hit, int32 [h]."""
    hits = sides.hits
    position, group = tied_rows(sides.start, sides.retrieved, hits.start, hits.position, hits.equal)
    if ties == "trec":
        ids = sides.run.doc.gather(sides.rows[position])
        order = (
            pl.DataFrame({"group": group, "doc": ids})
            .select(
                pl.arg_sort_by(
                    "group", "doc", descending=[False, not ascending], maintain_order=True
                )
            )
            .to_series()
            .to_numpy()
        )
    elif ties in ("best", "worst"):  # by relevance, for bounds
        worth = np.zeros(sides.rows.size)
        worth[hits.position] = sides.judged.value[sides.gold_rows][hits.gold]
        worth = worth[position] if ties == "worst" else -worth[position]
        order = np.lexsort((sides.rows[position], worth, group))
    else:
        order = np.lexsort((sides.rows[position], group))
    group, position = group[order], position[order]
    first = np.ones(group.size, bool)
    np.not_equal(group[1:], group[:-1], out=first[1:])
    begin = np.maximum.accumulate(np.where(first, np.arange(group.size), 0))
    place = np.arange(group.size) - begin
    by_position = np.argsort(position)
    where = np.searchsorted(position[by_position], hits.position)
    inside = hits.equal > 1
    ahead = np.zeros(hits.position.size, np.int32)
    ahead[inside] = place[by_position[where[inside]]]
    return ahead


# Levels, cut-offs, ranks of equal scores, weights of ranks.

WHOLE = 2**62
"""The cut-off of a whole list, beyond any rank."""
ABOVE_ZERO = 5e-324
"""The smallest positive float64: the level that anything above 0 reaches."""


def levels_of(settings: Settings) -> list[float]:
    """Lowest relevance that is relevant, of each variant."""
    return [ABOVE_ZERO if level is None else level for level in settings.relevance_levels]


ratio = partial(averages.ratio, fill=0.0)


class Weights(msgspec.Struct, frozen=True):
    """Weights by rank, index 0 unused.

    Attributes:
        weight: float64 [longest + 1].
        upto: float64 [longest + 1], running sums of the weights.
        divides: values are divided by ``weight``; then ``upto`` sums the reciprocals.
    """

    weight: Array
    upto: Array
    divides: bool = False


def even_weights(longest: int) -> Weights:
    """Every rank counts 1."""
    return Weights(np.ones(longest + 1), np.arange(longest + 1, dtype=np.float64))


def log_weights(longest: int, discount: str) -> Weights:
    """Ranks are discounted by the logarithm that the option ``discount`` names."""
    logs = log_discounts(longest, 1 if discount == "log2(rank+1)" else 0)
    return Weights(logs, np.r_[0.0, np.cumsum(1.0 / logs[1:])], divides=True)


class Ranked:
    """Ranked lists with the settings of a run.

    Args:
        lists: judged documents and judgments of each query.
        cuts: int64 [k], ascending cut-offs; ``WHOLE`` for the whole list.
    """

    def __init__(self, lists: Lists, settings: Settings, workers: Workers, cuts: Array) -> None:
        self.lists, self.settings, self.workers, self.cuts = lists, settings, workers, cuts

    @cached_property
    def places(self) -> Ties:
        """Possible ranks of the judged documents: their ranks, unless ties are averaged."""
        rank = self.lists.rank
        return self.lists.ties or Ties(rank, np.ones(rank.size, np.int32))

    @property
    def longest(self) -> int:
        """The highest of these ranks; 0 without documents."""
        return int((self.places.first + self.places.size).max(initial=1)) - 1

    @property
    def query(self) -> Array:
        """The query of each judged document, int64 [h]."""
        return np.repeat(np.arange(len(self.lists)), np.diff(self.lists.start))

    @property
    def highest(self) -> float:
        """The highest relevance of all judgments, those outside of these lists too."""
        if self.settings.highest is not None:
            return self.settings.highest
        return float(self.lists.gold.max(initial=0.0))

    @property
    def depth(self) -> Array:
        """Documents up to each cut-off, also beyond the end of short lists, int64 [q, k]."""
        return np.where(self.cuts == WHOLE, self.lists.retrieved[:, None], self.cuts)

    @property
    def retrieved_counts(self) -> Array:
        """Documents retrieved up to each cut-off, int64 [q, k]."""
        return np.minimum(self.depth, self.lists.retrieved[:, None])

    def each(
        self,
        kernel: Callable[..., Any],
        shape: tuple[int, ...],
        *arguments: Any,
        start: Array | None = None,
        outs: int = 1,
        **flags: bool,
    ) -> Array:
        """Run a kernel on ranges of queries; its last arguments are the range and the results.

        Args:
            shape: of the result of one query.
            start: int64 [q + 1], offsets of the rows that are read; None for judged documents.
            outs: number of results, the first axis if there are several.
        """
        out = np.empty((outs, len(self.lists), *shape))
        self.workers.over(
            self.lists.start if start is None else start,
            lambda begin, end: kernel(*arguments, begin, end, *out, **flags),
        )
        return out if outs > 1 else out[0]

    def sums(self, value: Array, weights: Weights, cuts: Array | None = None) -> Array:
        """Sum values of judged documents, weighted by rank, up to each cut-off, float64 [q, k].

        Args:
            value: [h].
            cuts: int64 [k], or [q, k] for cut-offs per query; ascending. None for those of the run.
        """
        cuts = np.atleast_2d(self.cuts if cuts is None else cuts)
        places = self.places.first, self.places.size
        return self.each(
            rank_sums,
            (cuts.shape[1],),
            *(self.lists.start, *places, value, weights.weight, weights.upto, cuts),
            divides=weights.divides,
        )

    def counts(self, chosen: Array, cuts: Array | None = None) -> Array:
        """Count the chosen documents, bool [h], up to each cut-off; float64 [q, k]."""
        return self.sums(chosen, even_weights(self.longest), cuts)

    def golds(self, level: float) -> Array:
        """Judgments that reach a level, int64 [q]."""
        return count(self.lists.gold_start, self.lists.gold >= level)

    def golds_within(self, level: float) -> Array:
        """Count relevant judgments found up to each cut-off, float64 [q, k].

        If ties are averaged, every document is one judgment, as for ids.
        """
        lists, cuts = self.lists, self.cuts
        if lists.ties is not None:
            return self.counts(lists.gain >= level)
        read = lists.gold_start, lists.gold, lists.gold_rank
        return self.each(count_within, cuts.shape, *read, level, cuts, start=lists.gold_start)


# Measures: from ranked lists to one row of numbers per query.


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """A measure of ranked lists, which computes the columns of a need.

    Attributes:
        name: metric of its rows.
        of: function of :class:`Ranked`, and a relevance level if there are levels, to float64 [q],
            or [q, n] with cut-offs or several parts.
        params: options of the metric. Those of ``USUAL`` are reported if they are not as usual.
        cut: has the cut-offs of the option ``k``.
        whole: has a value of the whole list.
        parts: metric and parameters of each of several numbers.
        reason: why a value is undefined.
        averaged: its mean over all orders of equal scores has a closed form here.
        scaled: scales relevance by the highest of all judgments, which is reported.
        unleveled: whether rules of the dialect make relevance levels meaningless.
    """

    name: str
    of: Callable[..., Array]
    params: tuple[str, ...]
    cut: bool
    whole: bool = True
    parts: Sequence[tuple[str, dict[str, float]]] = ()
    reason: str | None = None
    averaged: bool = True
    scaled: bool = False
    unleveled: Callable[[Any], bool] = lambda rules: False

    def __call__(self, lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
        """Return columns of float64 [n_queries, n_parameters, n_k]."""
        cutoffs = tuple(k for k in settings.k if k is not None) if self.cut else ()
        ks = (*cutoffs, *((None,) if self.whole else ()))
        cuts = np.array([WHOLE if k is None else k for k in ks], np.int64)
        ranked = Ranked(lists, settings, workers, cuts)
        if "relevance_levels" in self.params and not self.unleveled(settings.rules):
            levels: tuple[float | None, ...] = settings.relevance_levels
            each = levels_of(settings)
            values = np.stack([self.of(ranked, level) for level in each], axis=1)
        else:
            levels, values = (None,), self.of(ranked)[:, None]
        if not self.cut and not self.parts:
            values = values[:, :, None]
        stated = unusual(settings, *(name for name in self.params if name in USUAL))
        if self.scaled:
            stated["max_relevance"] = ranked.highest
        return tuple(
            Column(
                metric=name,
                parameters=tuple(
                    parameters(**given) if given else None
                    for level in levels
                    for given in ({**stated, **more, **_named(level)},)
                ),
                k=ks,
                values=values[:, :, [i]] if self.parts else values,
                reason=self.reason,
            )
            for i, (name, more) in enumerate(self.parts or [(self.name, {})])
        )


def _named(level: float | None) -> dict[str, float]:
    return {} if level is None else {"relevance_level": level}


TREC = "trec_eval 10"
CUT = ("k", "relevance_levels")
"""Parameters of a metric of relevant documents at a cut-off."""
LEVELS = ("relevance_levels",)
"""Parameters of a metric of relevant documents."""


def metric(
    name: str,
    of: Callable[..., Array] | None,
    definition: str,
    formula: str,
    *,
    need: str | None = None,
    source: str = TREC,
    params: tuple[str, ...] = (),
    **rest: Any,
) -> Metric:
    """Define a metric, by default the mean over queries of its need.

    Args:
        of: see :class:`Measure`, as for its other fields; None if another metric has the measure.
        definition: one sentence.
        formula: in TeX.
        need: name of its measure, by default its own in small letters.
        **rest: other fields of :class:`Measure` and of :class:`~evalengine.metrics.Metric`.
    """
    need = need or snake_case(name)
    fields = {field: rest.pop(field) for field in Measure.__struct_fields__ if field in rest}
    if of is not None:
        fields = {"name": name, "of": of, "params": params, "cut": "k" in params, **fields}
        rest["measures"] = {need: Measure(**fields), **rest.get("measures", {})}
    return averages.mean_metric(
        "retrieval",
        name,
        need,
        over="q",
        formula=formula,
        definition=definition,
        source=source,
        params=params,
        **rest,
    )
