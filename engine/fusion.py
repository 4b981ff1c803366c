"""Fusion of several runs of the same queries."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec
import numpy as np
import polars as pl

from .exports.trec import trec_lines
from .ingest.both_sides import same_kind
from .ingest.checks import check_side
from .ingest.dtypes import kind_of
from .ingest.files import Source, write_files
from .ingest.ids import encode
from .ingest.infer import recognise
from .ingest.problems import Problem, refuse
from .ingest.shapes import SHAPES, check_ranks
from .ingest.sources.tables import READ_FAILURES, open_source, schema_of
from .schemas.arrays import Array
from .schemas.contract import Table
from .schemas.errors import InputError, OptionError, invalid, unknown
from .schemas.tables import DOC_ID, QUERY_ID, RANK, RETRIEVAL_PREDICTIONS, RETRIEVAL_SCORE
from .schemas.wording import option

# Runs laid out for fusion: one row per retrieved document, by run, query and rank.


class Pool:
    """Rows of all runs, by run, query and rank, with encoded ids.

    A *list* is the ranking of one run for one query. A *candidate* is a query and a document that
    at least one run has. Ties are broken by descending document id, as in trec_eval.

    Args:
        run: int32 [n], index of the run.
        query: int32 [n], code of the query, ascending with its id.
        document: int32 [n], code of the document, ascending with its id.
        score: float64 [n]; undefined in rows ordered by rank.
        rank: int64 [n], given ranks in rows ordered by them; 0 in rows ordered by score.
    """

    def __init__(
        self, run: Array, query: Array, document: Array, score: Array, rank: Array, n_runs: int
    ) -> None:
        by = np.where(rank > 0, rank.astype(np.float64), -score)
        list_key = run.astype(np.int64) * (int(query.max(initial=0)) + 1) + query
        order = _ordered(list_key, by, document)
        if order is not None:
            run, query, document, list_key = (a[order] for a in (run, query, document, list_key))
            score = score[order]
        self.run, self.query, self.document, self.score = run, query, document, score
        self.n_runs = n_runs
        self.list_start = _starts(list_key)
        self.list_size = np.diff(np.append(self.list_start, run.size))

    @cached_property
    def list_of(self) -> Array:
        """The list of every row, int64 [n]."""
        return np.repeat(np.arange(self.list_start.size), self.list_size)

    @cached_property
    def rank(self) -> Array:
        """Rank of every row in its list, float64 [n], from 1."""
        place = np.arange(self.run.size) - np.repeat(self.list_start, self.list_size)
        return (place + 1).astype(np.float64)

    @cached_property
    def _grouped(self) -> tuple[Array, Array]:
        """Return rows by candidate, then by run, and the start of each candidate."""
        key = self.query.astype(np.int64) * (int(self.document.max(initial=0)) + 1) + self.document
        order = np.argsort(key, kind="stable")
        return order, _starts(key[order])

    @property
    def by_candidate(self) -> Array:
        """Rows by candidate, then by run, int64 [n]."""
        return self._grouped[0]

    @property
    def start(self) -> Array:
        """Start of each candidate in :attr:`by_candidate`, int64 [m]."""
        return self._grouped[1]

    @cached_property
    def run_counts(self) -> Array:
        """Number of runs that have each candidate, int64 [m]."""
        return np.diff(np.append(self.start, self.run.size))

    @cached_property
    def candidate_query(self) -> Array:
        """Query of each candidate, int32 [m], ascending."""
        return self.query[self.by_candidate[self.start]]

    @cached_property
    def candidate_document(self) -> Array:
        """Document of each candidate, int32 [m]."""
        return self.document[self.by_candidate[self.start]]

    @cached_property
    def candidates(self) -> Array:
        """Number of candidates per query, int64 [q], by code."""
        return np.bincount(self.candidate_query)

    def total(self, values: Array) -> Array:
        """Sums of the rows' values by candidate, in the order of the runs, float64 [m]."""
        return self.reduced(np.add, values)

    def reduced(self, ufunc: np.ufunc, values: Array) -> Array:
        """The rows' values reduced by candidate, float64 [m]."""
        if not values.size:
            return values
        return ufunc.reduceat(values[self.by_candidate], self.start)

    def of_lists(self, ufunc: np.ufunc, values: Array) -> Array:
        """The rows' values reduced by list, float64 [lists]."""
        if not values.size:
            return values
        return ufunc.reduceat(values, self.list_start)

    def unranked(self) -> Array:
        """Return the Borda points of each document that is missing in a list, float64 [lists].

        The remaining points of the list are shared by the missing candidates of its query.
        """
        every = self.candidates[self.query[self.list_start]]
        return (every - self.list_size + 1) / 2.0

    def completed(self, values: Array) -> Pool:
        """Return the pool in which every run has every candidate, missing ones with Borda's share.

        Args:
            values: float64 [n], values of the present rows; become ``score``.
        """
        every = self.candidates
        share = np.repeat([(every + 1) / (2.0 * every)], self.n_runs, axis=0)
        query = self.query[self.list_start]
        share[self.run[self.list_start], query] = self.unranked() / every[query]
        worth = share[:, self.candidate_query]
        rows = self.by_candidate
        worth[self.run[rows], np.repeat(np.arange(self.start.size), self.run_counts)] = values[rows]
        return Pool(
            np.repeat(np.arange(self.n_runs, dtype=np.int32), self.start.size),
            np.tile(self.candidate_query, self.n_runs),
            np.tile(self.candidate_document, self.n_runs),
            worth.ravel(),
            np.zeros(worth.size, np.int64),
            self.n_runs,
        )


def _starts(key: Array) -> Array:
    """Return the starts of runs of equal values, int64."""
    if not key.size:
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1])))


def _ordered(key: Array, by: Array, document: Array) -> Array | None:
    """Rows by ascending key, then ascending ``by``, then descending document; None if they are."""
    start = _starts(key)
    lists = key[start]
    same = np.ones(max(key.size - 1, 0), bool)
    same[start[1:] - 1] = False
    right = (by[1:] > by[:-1]) | ((by[1:] == by[:-1]) & (document[1:] < document[:-1]))
    place = np.argsort(lists, kind="stable")
    contiguous = bool((np.diff(lists[place]) > 0).all())
    if contiguous and bool((right | ~same).all()):  # whole lists in order, as runs mostly are
        if bool((np.diff(lists) > 0).all()):
            return None
        size = np.diff(np.append(start, key.size))[place]
        stops = np.cumsum(size)
        return np.arange(key.size) + np.repeat(start[place] - (stops - size), size)
    rows = pl.DataFrame({"key": key, "by": by, "document": document})
    order = pl.arg_sort_by("key", "by", "document", descending=[False, False, True])
    return rows.select(order).to_series().to_numpy()


# Fusion methods: how the runs' values for a document become one score, as data.


class Settings(msgspec.Struct, frozen=True):
    """Settings of methods.

    Attributes:
        weights: float64 [runs].
        k: of rrf, above 0.
        persistence: of rbc, in (0, 1).
    """

    weights: Array
    k: float = 60.0
    persistence: float = 0.8
    gamma: float = 1.0


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """One fusion method.

    Attributes:
        definition: one sentence with the formula; sums are over the n runs that have the document.
        compute: from the pool, the rows' values (normalised scores; ranks if ``scores`` is False)
            and settings to the candidates' scores, float64 [m].
        scores: whether it takes scores; otherwise ranks.
        weighted: whether it uses weights of runs.
        needs_weights: whether these are required.
    """

    name: str
    definition: str
    source: str
    compute: Callable[[Pool, Array, Settings], Array]
    scores: bool = True
    weighted: bool = False
    needs_weights: bool = False
    aliases: tuple[str, ...] = ()


def _weighed(pool: Pool, values: Array, settings: Settings) -> Array:
    """Sums of values times the weights of their runs."""
    return pool.total(values * settings.weights[pool.run])


def _median(pool: Pool, values: Array, settings: Settings) -> Array:
    if not values.size:
        return values
    candidate = np.repeat(np.arange(pool.start.size), pool.run_counts)
    ascending = values[pool.by_candidate]
    ascending = ascending[np.lexsort((ascending, candidate))]
    low = ascending[pool.start + (pool.run_counts - 1) // 2]
    return (low + ascending[pool.start + pool.run_counts // 2]) / 2.0


def _biased(pool: Pool, ranks: Array, settings: Settings) -> Array:
    left = settings.persistence
    return _weighed(pool, (1.0 - left) * left ** (ranks - 1.0), settings)


def _borda(pool: Pool, ranks: Array, settings: Settings) -> Array:
    points = pool.candidates[pool.query] - ranks + 1.0
    # Points of missing documents, summed over all lists minus the lists that have them. A run
    # without the query ranks no candidate of it.
    every, query, unranked = pool.candidates, pool.query[pool.list_start], pool.unranked()
    absent = pool.n_runs - np.bincount(query, minlength=every.size)
    total = np.bincount(query, unranked, minlength=every.size) + absent * (every + 1) / 2.0
    missing: Array = total[pool.candidate_query] - pool.total(unranked[pool.list_of])
    return pool.total(points) + missing


def _condorcet(pool: Pool, ranks: Array, settings: Settings) -> Array:
    from .kernels.labels import majority_order

    start = np.concatenate(([0], np.cumsum(pool.candidates)))
    # rank of each candidate in each run
    rank = np.full((pool.start.size, pool.n_runs), np.iinfo(np.int32).max, np.int32)
    candidate = np.repeat(np.arange(pool.start.size), pool.run_counts)
    rank[candidate, pool.run[pool.by_candidate]] = pool.rank[pool.by_candidate].astype(np.int32)
    place = majority_order(rank, start)
    return (pool.candidates[pool.candidate_query] - place).astype(np.float64)


_FOX = "Fox and Shaw, Combination of multiple searches, TREC-2, 1993"
_MOURAO = "Mourao, Martins and Magalhaes, Inverse square rank fusion, CBMI 2014"

METHODS: dict[str, Method] = {
    one.name: one
    for one in (
        Method(
            name="rrf",
            definition="sum of w / (k + rank).",
            source="Cormack, Clarke and Buettcher, Reciprocal rank fusion, SIGIR 2009",
            compute=lambda pool, ranks, settings: _weighed(
                pool, 1.0 / (settings.k + ranks), settings
            ),
            scores=False,
            weighted=True,
            aliases=("reciprocal_rank",),
        ),
        Method(
            name="combsum",
            definition="sum of scores.",
            source=_FOX,
            compute=_weighed,
            weighted=True,
            aliases=("comb_sum", "sum"),
        ),
        Method(
            name="combmnz",
            definition="sum of scores, times n.",
            source=_FOX,
            compute=lambda pool, values, settings: (
                _weighed(pool, values, settings) * pool.run_counts
            ),
            weighted=True,
            aliases=("comb_mnz", "mnz"),
        ),
        Method(
            name="combanz",
            definition="mean of scores.",
            source=_FOX,
            compute=lambda pool, values, settings: pool.total(values) / pool.run_counts,
            aliases=("comb_anz", "anz"),
        ),
        Method(
            name="combmax",
            definition="highest score.",
            source=_FOX,
            compute=lambda pool, values, settings: pool.reduced(np.maximum, values),
            aliases=("comb_max", "max"),
        ),
        Method(
            name="combmin",
            definition="lowest score.",
            source=_FOX,
            compute=lambda pool, values, settings: pool.reduced(np.minimum, values),
            aliases=("comb_min", "min"),
        ),
        Method(
            name="combmed",
            definition="median score; the mean of the middle two if n is even.",
            source=_FOX,
            compute=_median,
            aliases=("comb_med", "med"),
        ),
        Method(
            name="gmnz",
            definition="sum of scores, times n to the power of gamma.",
            source="Lee, Analyses of multiple evidence combination, SIGIR 1997",
            compute=lambda pool, values, settings: (
                _weighed(pool, values, settings) * pool.run_counts**settings.gamma
            ),
            weighted=True,
            aliases=("combgmnz", "comb_gmnz"),
        ),
        Method(
            name="wsum",
            definition="sum of w * score.",
            source="Vogt and Cottrell, Fusion via a linear combination of scores, 1999",
            compute=_weighed,
            weighted=True,
            needs_weights=True,
            aliases=("weighted_sum",),
        ),
        Method(
            name="mixed",
            definition="sum of w * score, times the square root of n.",
            source="Wu and Crestani, Data fusion with estimated weights, CIKM 2002",
            compute=lambda pool, values, settings: (
                _weighed(pool, values, settings) * np.sqrt(pool.run_counts)
            ),
            weighted=True,
            needs_weights=True,
        ),
        Method(
            name="borda",
            definition="sum over all runs of c - rank + 1, with c documents that all runs have for"
            " the query; a run without the document gives it (c - its documents + 1) /"
            " 2.",
            source="Aslam and Montague, Models for metasearch, SIGIR 2001",
            compute=_borda,
            scores=False,
            aliases=("bordafuse",),
        ),
        Method(
            name="isr",
            definition="sum of w / rank^2, times n.",
            source=_MOURAO,
            compute=lambda pool, ranks, settings: (
                _weighed(pool, 1.0 / (ranks * ranks), settings) * pool.run_counts
            ),
            scores=False,
            weighted=True,
        ),
        Method(
            name="log_isr",
            definition="sum of w / rank^2, times log(n): 0 for a document in only one run.",
            source=_MOURAO,
            compute=lambda pool, ranks, settings: (
                _weighed(pool, 1.0 / (ranks * ranks), settings) * np.log(pool.run_counts)
            ),
            scores=False,
            weighted=True,
            aliases=("logisr", "log-isr"),
        ),
        Method(
            name="rbc",
            definition="sum of w * (1 - p) * p^(rank - 1), with the persistence p.",
            source="Bailey, Moffat, Scholer and Thomas, Retrieval consistency in the presence of"
            " query variations, SIGIR 2017",
            compute=_biased,
            scores=False,
            weighted=True,
        ),
        Method(
            name="condorcet",
            definition="documents ordered by majority of pairwise ranks; a run ranks missing"
            " documents last. The score counts the documents from the last one up.",
            source="Montague and Aslam, Condorcet fusion for improved retrieval, CIKM 2002",
            compute=_condorcet,
            scores=False,
            aliases=("condorcet_fuse",),
        ),
    )
}
"""Name -> method."""


# Runs of every kind opened, recognised and checked, and their ids as codes.

_IDS = ("query_id", "doc_id")
_RUN = msgspec.structs.replace(
    RETRIEVAL_PREDICTIONS,
    required=(QUERY_ID, DOC_ID),
    optional=(RETRIEVAL_SCORE, RANK),
    key=_IDS,
    any_of=("score", "rank"),
    shape="",
    either=(),
)
"""Schema of a run as ``score`` takes it, but with required ids and order."""


class Runs(msgspec.Struct, frozen=True):
    """Runs with encoded ids.

    Attributes:
        queries: query ids, ascending; code = index.
        documents: document ids, ascending; code = index.
        unscored: indices of the runs without scores.
        names: source of each run.
    """

    pool: Pool
    queries: pl.Series
    documents: pl.Series
    unscored: tuple[int, ...]
    names: tuple[str, ...]


def open_runs(
    runs: Sequence[Any],
    *,
    columns: Mapping[str, str] | None = None,
    storage_options: dict[str, str] | None = None,
) -> Runs:
    """Open, check and encode runs.

    Args:
        runs: at least one, as ``score`` takes predictions.
        columns: name in the file -> canonical name: query_id, doc_id, score or rank.
        storage_options: for remote paths, as Polars takes them.

    Raises:
        ReadError: a file that is missing or cannot be read.
        InputError: missing columns, nulls, NaN or infinite scores, a document twice in a list, ids
            of different kinds.
    """
    sources = [open_source(run, storage_options=storage_options) for run in runs]
    frames = [_checked(source, i, columns) for i, source in enumerate(sources, 1)]
    names = tuple(source.description for source in sources)
    frames = _same_kinds(frames, sources, names)
    queries, query = encode([frame["query_id"] for frame in frames])
    documents, document = encode([frame["doc_id"] for frame in frames])
    for i, frame in enumerate(frames):
        if "rank" in frame.columns:
            ranks = frame["rank"].to_numpy().astype(np.float64)
            check_ranks(query[i], ranks, queries, f"run {i + 1} ({names[i]})")
    sizes = [frame.height for frame in frames]
    pool = Pool(
        np.repeat(np.arange(len(frames), dtype=np.int32), sizes),
        np.concatenate(query),
        np.concatenate(document),
        np.concatenate([_numbers(frame, "score", np.float64) for frame in frames]),
        np.concatenate([_ranks(frame) for frame in frames]),
        len(frames),
    )
    unscored = tuple(i for i, frame in enumerate(frames) if "score" not in frame.columns)
    return Runs(pool, queries, documents, unscored, names)


def _checked(source: Source, number: int, columns: Mapping[str, str] | None) -> pl.DataFrame:
    """Return a run's canonical columns: scores if present, otherwise ranks."""
    table = msgspec.structs.replace(_RUN, side=f"run_{number}")
    naming = recognise(schema_of(source), table, columns)
    descriptions = {table.side: source.description}
    refuse(naming.problems, descriptions)
    try:
        frame = source.frame.select(naming.exprs.values()).collect()
    except READ_FAILURES as error:
        from .ingest.sources.formats import explain

        raise explain(source, error) from error
    if "score" in frame.columns:
        frame = frame.drop("rank", strict=False)
    problems, _ = check_side(frame, table, SHAPES[table.shape], naming.recognised)
    if not problems and "rank" in frame.columns:
        problems = _fractional(frame, table)
    refuse(problems, descriptions)
    return frame


def _fractional(frame: pl.DataFrame, table: Table) -> list[Problem]:
    rank = frame["rank"]
    bad = frame.filter((rank != rank.floor()) | (rank < 0)) if rank.dtype.is_float() else None
    if bad is None or not bad.height:
        return []
    return [
        Problem(
            table.side,
            "rank",
            f"column 'rank' has {bad.height:,} numbers that are not whole, first {bad.row(0)}."
            ' Ranks count from 1; name a column of scores with columns={"mine": "score"}.',
            bad.height,
            kind="not_whole",
        )
    ]


def _numbers(frame: pl.DataFrame, name: str, dtype: Any) -> Any:
    if name not in frame.columns:
        return np.zeros(frame.height, dtype)
    return frame[name].to_numpy().astype(dtype)


def _ranks(frame: pl.DataFrame) -> Any:
    """Ranks from 1, also of runs that count from 0; 0 in every row of a run that has scores."""
    ranks = _numbers(frame, "rank", np.int64)
    return ranks + 1 if "rank" in frame.columns and ranks.size and ranks.min() == 0 else ranks


def _same_kinds(
    frames: list[pl.DataFrame], sources: Sequence[Source], names: Sequence[str]
) -> list[pl.DataFrame]:
    """Bring ids to one dtype, as ``score`` does; ids of different kinds are refused."""
    roles = [f"run {i} ({name})" for i, name in enumerate(names, 1)]
    sides = dict(zip(roles, frames, strict=True))
    text = {role: source.text for role, source in zip(roles, sources, strict=True)}
    for name in _IDS:
        same_kind(sides, (name,), text)
        kinds = {role: kind_of(side.schema[name]) for role, side in sides.items() if side.height}
        other = next((role for role in kinds if kinds[role] != kinds[next(iter(kinds))]), None)
        if other is not None:
            first = next(iter(kinds))
            raise InputError(
                f"column {name!r}: {first} has {kinds[first]} such as {sides[first][name][0]!r},"
                f" {other} has {kinds[other]} such as {sides[other][name][0]!r}. Cast one of"
                f" them, e.g. frame.with_columns(pl.col({name!r}).cast(pl.String)).",
                code="types_differ",
                column=name,
            )
    return list(sides.values())


# Normalisations: the scores of a list made comparable with those of another run's.


class Normalisation(msgspec.Struct, frozen=True, kw_only=True):
    """One normalisation.

    Attributes:
        name: as users write it.
        definition: one sentence with the formula, of a list's scores s.
        source: origin of the definition.
        scores: whether it needs scores; otherwise only ranks.
        compute: from rows to their values, float64 [n].
        completes: whether documents that are missing in a list have a value too.
        aliases: other names.
    """

    name: str
    definition: str
    source: str
    compute: Callable[[Pool], Array]
    scores: bool = True
    completes: bool = False
    aliases: tuple[str, ...] = ()


def checked(name: str, values: Array, pool: Pool) -> Array:
    """Return the values of rows if all are finite.

    Raises:
        InputError: names the first run whose range of scores exceeds float64.
    """
    bad = np.flatnonzero(~np.isfinite(values))
    if not bad.size:
        return values
    run = int(pool.run[bad[0]])
    scores = pool.score[pool.run == run]
    raise InputError(
        f"normalisation {name!r}: {bad.size:,} documents get no finite value, the first one of run"
        f" {run + 1}, whose scores go from {scores.min():g} to {scores.max():g}. Divide the scores"
        " of that run, or fuse by ranks.",
        code="not_finite",
        normalisation=name,
        count=bad.size,
        run=run + 1,
    )


def _spread(pool: Pool, values: Array) -> Array:
    """Values of lists, in each of their rows."""
    return values[pool.list_of]


def _over(numerator: Array, denominator: Array, otherwise: float | Array) -> Array:
    """Divide; use ``otherwise`` if the denominator is 0, NaN if it is infinite."""
    out = np.broadcast_to(np.asarray(otherwise, np.float64), numerator.shape).copy()
    np.divide(numerator, denominator, out=out, where=denominator != 0)
    out[~np.isfinite(denominator)] = np.nan
    return out


def _min_max(pool: Pool) -> Array:
    score = pool.score
    low = _spread(pool, pool.of_lists(np.minimum, score))
    high = _spread(pool, pool.of_lists(np.maximum, score))
    return _over(score - low, high - low, 1.0)


def _max(pool: Pool) -> Array:
    score = pool.score
    high = pool.of_lists(np.maximum, score)
    bad = np.flatnonzero(high <= 0)
    if bad.size:
        run = int(pool.run[pool.list_start[bad[0]]]) + 1
        raise InputError(
            f"normalisation 'max' divides by each list's highest score, which is {high[bad[0]]:g},"
            f" not above 0, in {bad.size:,} lists, the first one in run {run}. Use 'min-max'.",
            code="too_low",
            normalisation="max",
            count=bad.size,
            run=run,
        )
    return score / _spread(pool, high)


def _sum(pool: Pool) -> Array:
    score = pool.score
    above = score - _spread(pool, pool.of_lists(np.minimum, score))
    total = _spread(pool, pool.of_lists(np.add, above))
    return _over(above, total, 1.0 / _spread(pool, pool.list_size.astype(np.float64)))


def _zmuv(pool: Pool) -> Array:
    score = pool.score
    size = pool.list_size.astype(np.float64)
    # Equal scores have no variance; the rounding of their mean must not make one.
    level = pool.of_lists(np.minimum, score) == pool.of_lists(np.maximum, score)
    away = score - _spread(pool, pool.of_lists(np.add, score) / size)
    deviation = np.sqrt(pool.of_lists(np.add, away * away) / size)
    return _over(away, _spread(pool, np.where(level, 0.0, deviation)), 0.0)


_LEE = "Lee, Analyses of multiple evidence combination, SIGIR 1997"
_MONTAGUE = "Montague and Aslam, Relevance score normalization for metasearch, CIKM 2001"

NORMALISATIONS: dict[str, Normalisation] = {
    one.name: one
    for one in (
        Normalisation(
            name="min-max",
            definition="(s - min) / (max - min); 1 if all scores of a list are equal.",
            source=_LEE,
            compute=_min_max,
            aliases=("min_max", "minmax"),
        ),
        Normalisation(
            name="max",
            definition="s / max; the highest score of a list must be above 0.",
            source="Lee, Combining multiple evidence from different properties, SIGIR 1995",
            compute=_max,
        ),
        Normalisation(
            name="sum",
            definition="(s - min) / sum(s - min); 1 / n if all n scores of a list are equal.",
            source=_MONTAGUE,
            compute=_sum,
        ),
        Normalisation(
            name="zmuv",
            definition="(s - mean) / standard deviation, over n; 0 if all scores are equal.",
            source=_MONTAGUE,
            compute=_zmuv,
            aliases=("z", "z-score", "zscore"),
        ),
        Normalisation(
            name="rank",
            definition="1 - (rank - 1) / n of the n documents of a list.",
            source=_LEE,
            compute=lambda pool: (
                1.0 - (pool.rank - 1.0) / _spread(pool, pool.list_size.astype(np.float64))
            ),
            scores=False,
        ),
        Normalisation(
            name="borda",
            definition="1 - (rank - 1) / c of the c documents that all runs have for the query; a"
            " document that is not in a list of n gets (c - n + 1) / (2 c).",
            source="Renda and Straccia, Web metasearch: rank vs. score based rank aggregation"
            " methods, SAC 2003",
            compute=lambda pool: 1.0 - (pool.rank - 1.0) / pool.candidates[pool.query],
            scores=False,
            completes=True,
        ),
    )
}
"""Name -> normalisation."""


_Kind = TypeVar("_Kind", Method, Normalisation)


def fuse(
    runs: Sequence[Any],
    *,
    method: str = "rrf",
    normalisation: str | None = None,
    weights: Sequence[float] | None = None,
    k: float = 60.0,
    persistence: float = 0.8,
    gamma: float = 1.0,
    columns: Mapping[str, str] | None = None,
    storage_options: dict[str, str] | None = None,
) -> pl.DataFrame:
    """Fuse runs: every document that some run has for a query, with one score.

    A run is ordered by descending score, ties by descending document id; without scores, by its
    ranks. A query that is missing in a run counts as an empty list.

    Args:
        runs: at least two, as ``score`` takes predictions: paths of TREC runs, Parquet and other
            tables, frames, ``{"q1": {"d1": 1.5}}``.
        method: rrf, combsum, combmnz, combanz, combmax, combmin, combmed, gmnz, wsum, mixed, borda,
            isr, log_isr, rbc or condorcet; see ``docs/fusion.md``.
        normalisation: of each list's scores, for methods that take scores: min-max, max, sum, zmuv,
            rank or borda. None uses the scores unchanged.
        weights: one number per run, for weighted methods; by default all 1.
        k: of rrf, 0 or more.
        persistence: of rbc, above 0 and below 1.
        gamma: exponent of gmnz.
        columns: name in the file -> canonical name: query_id, doc_id, score or rank.
        storage_options: for remote paths, as Polars takes them.

    Returns:
        query_id, doc_id (as in the runs), score (Float64) and rank (Int64, from 1), by ascending
        query id and rank; ties by descending document id.

    Raises:
        OptionError: no such method or normalisation, or an option that does not apply to it.
        ReadError: a file that is missing or cannot be read.
        InputError: fewer than two runs, missing columns, nulls, NaN or infinite scores, a document
            or rank twice in a list, ids of different kinds, missing scores that the method
            requires, or scores so large that results are not finite.

    Example:
        >>> ee.fuse(["bm25.run", "dense.parquet"], method="combsum", normalisation="min-max")
    """
    how = _named("fusion method", method, METHODS)
    norm = None
    if normalisation is not None:
        norm = _named("normalisation", normalisation, NORMALISATIONS)
    if isinstance(runs, (str, Mapping)) or not isinstance(runs, Sequence) or len(runs) < 2:
        raise InputError(
            "fuse() needs a list of two or more runs, as in fuse([one, other]).",
            code="runs_missing",
        )
    settings = _settings(how, norm, len(runs), weights, k, persistence, gamma)
    opened = open_runs(runs, columns=columns, storage_options=storage_options)
    _check_scores(how, norm, opened)
    pool = opened.pool
    values = pool.rank
    if how.scores:
        values = pool.score if norm is None else _normalised(norm, pool)
        if norm is not None and norm.completes:
            pool = pool.completed(values)
            values = pool.score
    with np.errstate(over="ignore", invalid="ignore"):
        score = how.compute(pool, values, settings)
    if not bool(np.isfinite(score).all()):
        raise InputError(
            f"method {how.name!r}: {int((~np.isfinite(score)).sum()):,} fused scores exceed the"
            " range of float64. Divide the scores of the runs (the largest is"
            f" {np.abs(opened.pool.score).max():g}), normalise them, or fuse by ranks.",
            code="too_high",
            method=how.name,
        )
    return _ranked(pool.candidate_query, pool.candidate_document, score, opened)


def _normalised(norm: Normalisation, pool: Pool) -> Any:
    with np.errstate(over="ignore", invalid="ignore"):
        return checked(norm.name, norm.compute(pool), pool)


def write(frame: pl.DataFrame, path: str | os.PathLike[str], tag: str = "evalengine") -> None:
    """Write a fused run, by suffix: Parquet, or lines of a TREC run.

    Args:
        frame: result of :func:`fuse`.
        path: ends in .parquet, or in .run, .trec, .res or .txt; written atomically.
        tag: last field of TREC lines.

    Raises:
        OptionError: another suffix.
        InputError: the file cannot be written, or ids that TREC lines cannot contain.
    """
    target = Path(path)
    writer = _WRITERS.get(target.suffix.lower())
    if writer is None:
        raise OptionError(
            f"{target}: a fused run ends in {', '.join(_WRITERS)}.",
            code="format_unknown",
            file=str(target),
        )
    write_files({target.name: lambda file: writer(frame, file, tag)}, target.parent)


def _as_parquet(frame: pl.DataFrame, file: IO[bytes], tag: str) -> None:
    frame.write_parquet(file)


def _as_lines(frame: pl.DataFrame, file: IO[bytes], tag: str) -> None:
    file.write(trec_lines(frame, tag).encode())


_WRITERS: dict[str, Callable[[pl.DataFrame, IO[bytes], str], None]] = {
    ".parquet": _as_parquet,
    **dict.fromkeys((".run", ".trec", ".res", ".txt"), _as_lines),
}


def _named(kind: str, name: str, choices: Mapping[str, _Kind]) -> _Kind:
    """The method or normalisation of a name, whatever its case."""
    folded = name.casefold()
    for one in choices.values():
        if folded == one.name or folded in one.aliases:
            return one
    raise unknown(kind, name, choices)


def _settings(
    how: Method,
    norm: Normalisation | None,
    n_runs: int,
    weights: Sequence[float] | None,
    k: float,
    persistence: float,
    gamma: float,
) -> Settings:
    """Check the options against the method, before any file is read."""
    if norm is not None and not how.scores:
        raise OptionError(
            f"method {how.name!r} uses the ranks of the runs, which no normalisation changes: omit"
            f" {option('normalisation')}.",
            code="options_conflict",
            option="normalisation",
        )
    if weights is None and how.needs_weights:
        raise OptionError(
            f"method {how.name!r} needs {option('weights')}, one number for each run.",
            code="option_missing",
            option="weights",
        )
    if weights is not None and not how.weighted:
        able = ", ".join(one.name for one in METHODS.values() if one.weighted)
        raise OptionError(
            f"method {how.name!r} knows no weights; those that do: {able}.",
            code="options_conflict",
            option="weights",
        )
    if weights is not None and len(weights) != n_runs:
        raise OptionError(
            f"{option('weights')} has {len(weights)} numbers for {n_runs} runs: give one each.",
            code="lengths_differ",
            option="weights",
            count=len(weights),
        )
    run_weights = [1.0] * n_runs if weights is None else [float(weight) for weight in weights]
    if not all(math.isfinite(weight) for weight in run_weights):
        raise invalid("weights", run_weights, "every weight must be a finite number.")
    for name, value, fits, words in (
        ("k", k, k >= 0, "0 or more"),
        ("persistence", persistence, 0 < persistence < 1, "above 0 and below 1"),
        ("gamma", gamma, True, "a finite number"),
    ):
        if not (math.isfinite(value) and fits):
            raise invalid(name, value, f"must be {words}.")
    return Settings(np.array(run_weights), float(k), float(persistence), float(gamma))


def _check_scores(how: Method, norm: Normalisation | None, opened: Runs) -> None:
    if not how.scores or not opened.unscored or (norm is not None and not norm.scores):
        return
    first = opened.unscored[0]
    by_rank = ", ".join(one.name for one in METHODS.values() if not one.scores)
    raise InputError(
        f"method {how.name!r} uses scores, and {len(opened.unscored)} of {opened.pool.n_runs} runs"
        f" have only ranks, the first one run {first + 1} ({opened.names[first]}). Use a method of"
        f" ranks ({by_rank}), or {option('normalisation', 'rank')} or 'borda'.",
        code="scores_missing",
        method=how.name,
        count=len(opened.unscored),
    )


def _ranked(query: Any, document: Any, score: Any, opened: Runs) -> pl.DataFrame:
    """The fused run, ids for codes."""
    frame = pl.DataFrame({"query": query, "document": document, "score": score}).sort(
        "query", "score", "document", descending=[False, True, True]
    )
    codes = frame["query"].to_numpy()
    first = np.flatnonzero(np.concatenate(([True], codes[1:] != codes[:-1]))[: codes.size])
    sizes = np.diff(np.append(first, codes.size))
    return pl.DataFrame(
        {
            "query_id": opened.queries.gather(frame["query"]),
            "doc_id": opened.documents.gather(frame["document"]),
            "score": frame["score"],
            "rank": np.arange(codes.size) - np.repeat(first, sizes) + 1,
        }
    )
