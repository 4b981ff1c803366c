"""``fuse``: several runs of the same queries as one."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import polars as pl

from evalengine.exports.trec_run import trec_lines
from evalengine.ingest.sources.writing import write_files
from evalengine.schemas.errors import InputError, OptionError, unknown

from .methods import METHODS, Method, Settings
from .normalisations import NORMALISATIONS, Normalisation, checked
from .pool import Pool
from .runs import Runs, open_runs

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

    A run's order is that of its descending scores, equal scores by descending document id; that of
    its ranks where it has no scores. A query that a run lacks is one for which it retrieved
    nothing.

    Args:
        runs: what ``score`` takes as predictions: paths of TREC runs, Parquet and other tables,
            frames, ``{"q1": {"d1": 1.5}}``; at least two.
        method: rrf, combsum, combmnz, combanz, combmax, combmin, combmed, gmnz, wsum, mixed,
            borda, isr, log_isr, rbc or condorcet; see ``docs/fusion.md``.
        normalisation: of each list's scores, before methods that take scores: min-max, max, sum,
            zmuv, rank or borda. None takes scores as they are.
        weights: one number for each run, for methods that weigh runs; all 1 unless given.
        k: of rrf, 0 or more.
        persistence: of rbc, above 0 and below 1.
        gamma: exponent of gmnz.
        columns: own name to canonical name: query_id, doc_id, score or rank.
        storage_options: for remote paths, as Polars takes them.

    Returns:
        query_id, doc_id (as in the runs), score (Float64) and rank (Int64, from 1), by ascending
        query id and rank; equal scores by descending document id.

    Raises:
        OptionError: no such method or normalisation, or an option that does not fit it.
        ReadError: a file that is missing or cannot be read.
        InputError: fewer than two runs, missing columns, nulls, NaN or infinite scores, a document
            or rank twice in a list, ids of different kinds, scores that are needed and not there,
            or so large that nothing finite comes of them.

    Example:
        >>> ee.fuse(["bm25.run", "dense.parquet"], method="combsum", normalisation="min-max")
    """
    how = _named("fusion method", method, METHODS)
    norm = None
    if normalisation is not None:
        norm = _named("normalisation", normalisation, NORMALISATIONS)
    if isinstance(runs, (str, Mapping)) or not isinstance(runs, Sequence) or len(runs) < 2:
        raise InputError("fuse() needs a list of two or more runs, as in fuse([one, other]).")
    settings = _settings(how, norm, len(runs), weights, k, persistence, gamma)
    found = open_runs(runs, columns=columns, storage_options=storage_options)
    _check_scores(how, norm, found)
    pool = found.pool
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
            f"method {how.name!r}: {int((~np.isfinite(score)).sum()):,} fused scores are beyond"
            f" what a float64 holds. Divide the scores of the runs (the largest is"
            f" {np.abs(found.pool.score).max():g}), normalise them, or fuse by ranks."
        )
    return _ranked(pool.candidate_query, pool.candidate_document, score, found)


def _normalised(norm: Normalisation, pool: Pool) -> Any:
    with np.errstate(over="ignore", invalid="ignore"):
        return checked(norm.name, norm.compute(pool), pool)


def write(frame: pl.DataFrame, path: str | os.PathLike[str], tag: str = "evalengine") -> None:
    """Write a fused run by the path's ending: Parquet, or lines of a TREC run.

    Args:
        frame: what :func:`fuse` returns.
        path: ends in .parquet, or in .run, .trec, .res or .txt; the file takes its name once it
            is whole.
        tag: last field of TREC's lines.

    Raises:
        OptionError: another ending.
        InputError: the file cannot be written, or ids that TREC's lines cannot hold.
    """
    target = Path(path)
    writer = _WRITERS.get(target.suffix.lower())
    if writer is None:
        raise OptionError(f"{target}: a fused run ends in {', '.join(_WRITERS)}.")
    write_files({target.name: lambda file: writer(frame, file, tag)}, target.parent)


def _as_parquet(frame: pl.DataFrame, file: IO[bytes], tag: str) -> None:
    frame.write_parquet(file)


def _as_lines(frame: pl.DataFrame, file: IO[bytes], tag: str) -> None:
    file.write(trec_lines(frame, tag).encode())


_WRITERS: dict[str, Callable[[pl.DataFrame, IO[bytes], str], None]] = {
    ".parquet": _as_parquet,
    **dict.fromkeys((".run", ".trec", ".res", ".txt"), _as_lines),
}


def _named(kind: str, name: str, known: Mapping[str, _Kind]) -> _Kind:
    """The method or normalisation of a name, whatever its case."""
    wanted = name.casefold()
    for one in known.values():
        if wanted == one.name or wanted in one.aliases:
            return one
    raise OptionError(unknown(kind, name, known))


def _settings(
    how: Method,
    norm: Normalisation | None,
    n_runs: int,
    weights: Sequence[float] | None,
    k: float,
    persistence: float,
    gamma: float,
) -> Settings:
    """The options held against the method, before anything is read."""
    if norm is not None and not how.scores:
        raise OptionError(
            f"method {how.name!r} takes the ranks of the runs, which no normalisation changes:"
            " leave normalisation= out."
        )
    if weights is None and how.needs_weights:
        raise OptionError(f"method {how.name!r} needs weights=, one number for each run.")
    if weights is not None and not how.weighted:
        able = ", ".join(one.name for one in METHODS.values() if one.weighted)
        raise OptionError(f"method {how.name!r} knows no weights; those that do: {able}.")
    if weights is not None and len(weights) != n_runs:
        raise OptionError(f"weights= has {len(weights)} numbers for {n_runs} runs: give one each.")
    given = [1.0] * n_runs if weights is None else [float(weight) for weight in weights]
    if not all(math.isfinite(weight) for weight in given):
        raise OptionError(f"weights={given}: every weight must be a finite number.")
    for name, value, fits, words in (
        ("k", k, k >= 0, "0 or more"),
        ("persistence", persistence, 0 < persistence < 1, "above 0 and below 1"),
        ("gamma", gamma, True, "a finite number"),
    ):
        if not (math.isfinite(value) and fits):
            raise OptionError(f"{name}={value}: must be {words}.")
    return Settings(np.array(given), float(k), float(persistence), float(gamma))


def _check_scores(how: Method, norm: Normalisation | None, found: Runs) -> None:
    if not how.scores or not found.unscored or (norm is not None and not norm.scores):
        return
    first = found.unscored[0]
    by_rank = ", ".join(one.name for one in METHODS.values() if not one.scores)
    raise InputError(
        f"method {how.name!r} takes scores, and {len(found.unscored)} of"
        f" {found.pool.n_runs} runs have ranks alone, the first one run {first + 1}"
        f" ({found.names[first]}). Take a method of ranks ({by_rank}), or normalisation='rank' or"
        " 'borda'."
    )


def _ranked(query: Any, document: Any, score: Any, found: Runs) -> pl.DataFrame:
    """The fused run, ids for codes."""
    frame = pl.DataFrame({"query": query, "document": document, "score": score}).sort(
        "query", "score", "document", descending=[False, True, True]
    )
    codes = frame["query"].to_numpy()
    first = np.flatnonzero(np.concatenate(([True], codes[1:] != codes[:-1]))[: codes.size])
    sizes = np.diff(np.append(first, codes.size))
    return pl.DataFrame(
        {
            "query_id": found.queries.gather(frame["query"]),
            "doc_id": found.documents.gather(frame["document"]),
            "score": frame["score"],
            "rank": np.arange(codes.size) - np.repeat(first, sizes) + 1,
        }
    )
