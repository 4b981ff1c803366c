"""Per-datum frame, from tallies with one row per datum, or from losses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..schemas.results import frame_schema
from ..tally.datums import Datums
from ..tally.stats import Column, Stats
from .task import Losses

FRAME = "per_datum"


def per_datum_frame(
    stats: Stats,
    datums: Datums,
    cuts: Mapping[str, set[int | None]],
    order: np.ndarray[Any, Any] | None = None,
) -> pl.DataFrame:
    """Return one row per datum, metric, statistic and cut-off, null if the datum does not count.

    Args:
        cuts: need -> the cut-offs to show; None for the whole list.
        order: int32 [n], display order of datums; None for code order.

    Returns:
        the contract's columns; then ``parameters`` if variants differ in no other column.
    """
    columns = [column for need in stats.columns.values() for column in need]
    several = any(len(column.parameters) > 1 or column.parameters[0] for column in columns)
    schema = frame_schema("per_datum", datum=datums.id_dtype)
    if several:
        schema = {**schema, "parameters": pl.String()}
    ids = datums.id.to_frame("datum_id")
    shown = {id(one): ids.with_columns(_words(one)) for one in _statuses(stats, columns)}
    if order is not None:
        shown = {one: frame[order] for one, frame in shown.items()}
    parts = [
        _part(column, p, k, stats, shown[id(column.status or stats.status)], order)
        for need, made in stats.columns.items()
        for column in made
        for p in range(len(column.parameters))
        for k in range(len(column.k))
        if column.k[k] in cuts.get(need, ())
    ]
    if not parts:
        return pl.DataFrame(schema=schema)
    return pl.concat(parts).select(pl.col(name).cast(dtype) for name, dtype in schema.items())


def judged_frame(losses: Losses, datums: Datums) -> pl.DataFrame:
    """Return one row per datum with its loss, null if undefined.

    Args:
        datums: those of the same tally.

    Returns:
        the contract's columns; then ``parameters``, JSON of the parameters of the loss.
    """
    value = losses.value
    if losses.nothing is not None and losses.counted is not None:
        value = np.where(np.isnan(value) & losses.counted, losses.nothing, value)
    made_with = msgspec.json.encode(losses.made_with).decode() if losses.made_with else None
    schema = frame_schema(FRAME, datum=datums.id_dtype)
    if made_with is not None:
        schema = {**schema, "parameters": pl.String()}
    known = pl.col("value").is_not_null()
    frame = pl.DataFrame([datums.id.alias("datum_id"), pl.Series("value", value, nan_to_null=True)])
    return frame.with_columns(
        metric=pl.lit(losses.metric),
        statistic=pl.lit(None),
        k=pl.lit(None),
        status=pl.when(known).then(pl.lit("scored")).otherwise(pl.lit("undefined")),
        parameters=pl.lit(made_with),
    ).select(pl.col(name).cast(dtype) for name, dtype in schema.items())


_Status = tuple[tuple[str, ...], np.ndarray[Any, Any]]


def _statuses(stats: Stats, columns: list[Column]) -> list[_Status]:
    """Return the status of datums, and the statuses specific to metrics."""
    return [stats.status, *(column.status for column in columns if column.status is not None)]


def _words(status: _Status) -> pl.Series:
    names, codes = status
    return pl.Series("status", names, dtype=pl.String).gather(codes)


def _part(
    column: Column,
    p: int,
    k: int,
    stats: Stats,
    shown: pl.DataFrame,
    order: np.ndarray[Any, Any] | None,
) -> pl.DataFrame:
    value = np.where(stats.counted, column.values[:, p, k], np.nan)
    if order is not None:
        value = value[order]
    return shown.with_columns(
        pl.Series("value", value, nan_to_null=True),
        pl.lit(column.metric).alias("metric"),
        pl.lit(column.statistic, dtype=pl.String).alias("statistic"),
        pl.lit(column.k[k], dtype=pl.Int64).alias("k"),
        pl.lit(column.parameters[p], dtype=pl.String).alias("parameters"),
    )
