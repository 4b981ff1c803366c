"""Runs of every kind opened, recognised and checked, and their ids as codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from evalengine.ingest.checks import check_side
from evalengine.ingest.codes import encode
from evalengine.ingest.dtypes import kind_of
from evalengine.ingest.list_ranks import check_ranks
from evalengine.ingest.meeting import same_kind
from evalengine.ingest.names import recognise
from evalengine.ingest.problems import Problem, refuse
from evalengine.ingest.shapes import SHAPES
from evalengine.ingest.sources.source import Source
from evalengine.ingest.sources.tables import READ_FAILURES, open_source, schema_of
from evalengine.schemas.contract import Table
from evalengine.schemas.errors import InputError
from evalengine.schemas.retrieval_tables import (
    DOC_ID,
    QUERY_ID,
    RANK,
    RETRIEVAL_PREDICTIONS,
    RETRIEVAL_SCORE,
)

from .pool import Pool

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
"""What ``score`` takes as a run, where ids and an order must be there."""


class Runs(msgspec.Struct, frozen=True):
    """Runs whose ids are codes.

    Attributes:
        pool: the rows.
        queries: query ids, ascending; a query's code is its place.
        documents: document ids, likewise.
        unscored: positions, from 0, of the runs without scores.
        names: what each run was read from.
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
        runs: what ``score`` takes as predictions, at least one.
        columns: own name to canonical name: query_id, doc_id, score or rank.
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
    """One run's canonical columns; scores where it has them, else ranks."""
    table = msgspec.structs.replace(_RUN, side=f"run_{number}")
    naming = recognise(schema_of(source), table, columns)
    told = {table.side: source.description}
    refuse(naming.problems, told)
    try:
        frame = source.frame.select(naming.exprs.values()).collect()
    except READ_FAILURES as error:
        from evalengine.ingest.sources.explain import explain

        raise explain(source, error) from error
    if "score" in frame.columns:
        frame = frame.drop("rank", strict=False)
    problems, _ = check_side(frame, table, SHAPES[table.shape], naming.recognised)
    if not problems and "rank" in frame.columns:
        problems = _fractional(frame, table)
    refuse(problems, told)
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
            f"column 'rank' holds {bad.height:,} numbers that are not whole, first {bad.row(0)}."
            ' Ranks count from 1; name a column of scores with columns={"mine": "score"}.',
            bad.height,
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
                f" them, e.g. frame.with_columns(pl.col({name!r}).cast(pl.String))."
            )
    return list(sides.values())
