"""Runs of every kind opened, recognised and checked, and their ids as codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from evalengine.inputs.checks import check_side
from evalengine.inputs.codes import encode
from evalengine.inputs.dtypes import kind_of
from evalengine.inputs.names import recognise
from evalengine.inputs.problems import Problem, refuse
from evalengine.inputs.shapes import SHAPES
from evalengine.readers.source import Source
from evalengine.readers.tables import READ_FAILURES, open_source, schema_of
from evalengine.schemas.errors import InputError
from evalengine.schemas.tables import Column, Table

from .pool import Pool

_QUERY = Column(
    "query_id",
    "id",
    "Which query this was retrieved for.",
    ("qid", "query", "query-id", "topic", "topic_id", "q_id"),
)
_DOCUMENT = Column(
    "doc_id",
    "id",
    "The document retrieved.",
    ("docno", "doc", "docid", "corpus-id", "document_id", "pid", "passage_id", "chunk_id"),
)
_SCORE = Column("score", "number", "Higher is better.", ("similarity", "sim"))
_RANK = Column("rank", "number", "From 1, where there is no score.", ("position",), low=0.0)
_IDS = ("query_id", "doc_id")


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
    _same_kinds(frames, names)
    queries, query = encode([frame["query_id"] for frame in frames])
    documents, document = encode([frame["doc_id"] for frame in frames])
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
    table = Table(
        "retrieval",
        f"run_{number}",
        (_QUERY, _DOCUMENT),
        (_SCORE, _RANK),
        key=_IDS,
        any_of=("score", "rank"),
    )
    naming = recognise(schema_of(source), table, columns)
    told = {table.side: source.description}
    refuse(naming.problems, told)
    try:
        frame = source.frame.select(naming.exprs.values()).collect()
    except READ_FAILURES as error:
        from evalengine.readers.explain import explain

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


def _same_kinds(frames: list[pl.DataFrame], names: Sequence[str]) -> None:
    """Bring integer ids to one dtype; ids of different kinds never meet and are refused."""
    for name in _IDS:
        filled = [i for i, frame in enumerate(frames) if frame.height] or [0]
        first = filled[0]
        kind = kind_of(frames[first].schema[name])
        for i in filled:
            other = kind_of(frames[i].schema[name])
            if other != kind:
                raise InputError(
                    f"column {name!r}: run {first + 1} ({names[first]}) has {kind} such as"
                    f" {frames[first][name][0]!r}, run {i + 1} ({names[i]}) has {other} such as"
                    f" {frames[i][name][0]!r}. Cast one of them, e.g."
                    f" frame.with_columns(pl.col({name!r}).cast(pl.String))."
                )
        found = {frames[i].schema[name] for i in filled}
        target = found.pop() if len(found) == 1 else pl.UInt64()
        for i, frame in enumerate(frames):
            if frame.schema[name] != target:
                frames[i] = frame.with_columns(pl.col(name).cast(target))
