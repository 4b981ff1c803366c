"""Ranked lists, and matching of documents by id."""

from __future__ import annotations

from functools import cached_property

import msgspec
import numpy as np
import polars as pl

from ...geometry.columns import offsets_of
from ...ingest.ids import encode
from ...kernels.retrieval import ROW, by_query, rank_judgments, tied_rows
from ...schemas.arrays import Array
from ...schemas.errors import InputError
from ...schemas.wording import option
from ..encoding import Workers
from .dialects import Settings

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


class LaidOut(msgspec.Struct):
    """Both sides sorted by query, and their matches.

    Attributes:
        start: int64 [q + 1], offsets of retrieved rows.
        laid: uint64 [n, 3], key, bits of the score and row number of each.
        gold_start: int64 [q + 1], offsets of judgments.
        golds: uint64 [g, 3], same for judgments.
        again: int64 [q], rows whose document is already in the query.
        hits: judged rows.
        run: the retrieved side.
        judged: the judgments.
    """

    start: Array
    laid: Array
    gold_start: Array
    golds: Array
    again: Array
    hits: _Hits
    run: Side
    judged: Side

    @property
    def rows(self) -> Array:
        """Row number of each retrieved row, uint64 [n]."""
        return self.laid[:, ROW]

    @property
    def gold_rows(self) -> Array:
        """Row number of each judgment, uint64 [g]."""
        return self.golds[:, ROW]


def meet_ids(
    run: Side, judged: Side, queries: pl.Series, workers: Workers, *, repeats: bool = False
) -> LaidOut:
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
    laid_out, twice = _meet(run, judged, keys, len(queries), workers, repeats=repeats)
    if not _collides(laid_out, twice, keys):
        _refuse_repeats(laid_out, twice, queries, repeats=repeats)
        return laid_out
    del laid_out
    _, codes = encode([run.doc, judged.doc])
    exact = [code.astype(np.uint64) * _MIXER for code in codes]
    laid_out, twice = _meet(run, judged, exact, len(queries), workers, repeats=repeats)
    _refuse_repeats(laid_out, twice, queries, repeats=repeats)
    return laid_out


def _hashed(ids: pl.Series) -> Array:
    """A key for each id, uint64 [n]: of an integer one that no other has."""
    if ids.dtype.is_integer():
        plain = ids.cast(pl.Int64, wrap_numerical=True).to_numpy().view(np.uint64) * _MIXER
        plain ^= plain >> np.uint64(29)
        return plain
    return ids.hash(seed=0).to_numpy()


def _meet(
    run: Side, judged: Side, keys: list[Array], n: int, workers: Workers, *, repeats: bool
) -> tuple[LaidOut, Array]:
    start, laid = by_query(run.query, keys[0], run.value, n)
    gold_start, golds = by_query(judged.query, keys[1], judged.value, n)
    lengths = np.diff(start)
    most = lengths if repeats else np.minimum(lengths, np.diff(gold_start))
    room = offsets_of(most)
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
        lambda first, last: rank_judgments(first, last, start, laid, gold_start, golds, room, out),
    )
    many, twice = out[4:]
    columns: list[Array] = list(out[:4])
    hit_start = offsets_of(many)
    if int(hit_start[-1]) < size:
        indices = np.arange(int(hit_start[-1])) + np.repeat(room[:-1] - hit_start[:-1], many)
        columns = [array[indices] for array in columns]
    hits = _Hits(hit_start, *columns)
    laid_out = LaidOut(start, laid, gold_start, golds, twice[2], hits, run, judged)
    return laid_out, twice


def _collides(laid_out: LaidOut, twice: Array, keys: list[Array]) -> bool:
    """Return True if documents with equal keys differ, among matches and apparent repeats."""
    if laid_out.run.doc.dtype.is_integer():
        return False
    ours = laid_out.run.doc.gather(laid_out.rows[laid_out.hits.position])
    theirs = laid_out.judged.doc.gather(laid_out.gold_rows[laid_out.hits.gold])
    if not ours.equals(theirs):
        return True
    sides = (
        (laid_out.run, laid_out.start, laid_out.rows),
        (laid_out.judged, laid_out.gold_start, laid_out.gold_rows),
    )
    for i, (side, start, rows) in enumerate(sides):
        for q in np.flatnonzero(twice[i]):
            mine = rows[start[q] : start[q + 1]]
            if np.unique(keys[i][mine]).size != side.doc.gather(mine).n_unique():
                return True
    return False


def _refuse_repeats(laid_out: LaidOut, twice: Array, queries: pl.Series, *, repeats: bool) -> None:
    sides = (
        (laid_out.run, laid_out.start, laid_out.rows),
        (laid_out.judged, laid_out.gold_start, laid_out.gold_rows),
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


def lists_of(laid_out: LaidOut, settings: Settings, *, ascending: bool = False) -> Lists:
    """Build ranked lists from matched rows.

    Args:
        settings: order of ties.
        ascending: among equal scores the lowest document id comes first, not the highest.
    """
    hits = laid_out.hits
    n = laid_out.start.size - 1
    query = np.repeat(np.arange(n), np.diff(hits.start))
    rank = hits.greater + 1
    ties = Ties(rank, hits.equal) if settings.ties == "average" else None
    order = np.arange(rank.size)  # hits are already sorted by descending score
    if bool((hits.equal > 1).any()):
        rank = rank + _ahead(laid_out, settings.ties, ascending=ascending)
        order = np.lexsort((rank, query))
    relevance = laid_out.judged.value[laid_out.gold_rows]
    gold, rank = hits.gold[order], rank[order].astype(np.int32)
    if ties is not None:
        ties = Ties(ties.first[order], ties.size[order])
    rank_of = np.zeros(relevance.size, np.int32)
    rank_of[gold[::-1]] = rank[::-1]
    value = relevance[gold]
    first = rank_of[gold] == rank
    gain = value if bool(first.all()) else np.where(first, value, 0.0)
    golds = np.repeat(np.arange(n), np.diff(laid_out.gold_start))
    down = np.lexsort((-relevance, golds))
    return Lists(
        retrieved=np.diff(laid_out.start),
        start=hits.start,
        rank=rank,
        relevance=value,
        gain=gain,
        gold_start=laid_out.gold_start,
        gold=relevance[down],
        gold_rank=rank_of[down],
        repeats=np.zeros(n, np.int64),
        again=laid_out.again,
        ties=ties,
    )


def judged_side(laid_out: LaidOut) -> Side:
    """Return only the judged rows of the retrieved side."""
    rows = np.sort(
        laid_out.rows[
            laid_out.hits.position[
                laid_out.judged.value[laid_out.gold_rows][laid_out.hits.gold] >= 0
            ]
        ]
    )
    run = laid_out.run
    return Side(run.name, run.query[rows], run.doc.gather(rows), run.value[rows], run.column)


def _ahead(laid_out: LaidOut, ties: str, *, ascending: bool) -> Array:
    """Rows of equal score that come before each hit, int32 [h]."""
    hits = laid_out.hits
    position, group = tied_rows(
        laid_out.start, laid_out.laid, hits.start, hits.position, hits.equal
    )
    if ties == "trec":
        ids = laid_out.run.doc.gather(laid_out.rows[position])
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
        worth = np.zeros(laid_out.rows.size)
        worth[hits.position] = laid_out.judged.value[laid_out.gold_rows][hits.gold]
        worth = worth[position] if ties == "worst" else -worth[position]
        order = np.lexsort((laid_out.rows[position], worth, group))
    else:
        order = np.lexsort((laid_out.rows[position], group))
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
