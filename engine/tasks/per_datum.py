"""The frame of single datums, from any tally that has one row a datum."""

from __future__ import annotations

import numpy as np
import polars as pl

from ..schemas.results import frame_schema
from ..tally.datums import Datums
from ..tally.stats import Column, Stats


def per_datum_frame(stats: Stats, datums: Datums) -> pl.DataFrame:
    """One row per datum, metric, statistic and cut-off, null where the datum does not count.

    Args:
        stats: the tally.
        datums: what its rows stand for.

    Returns:
        the contract's columns; ``parameters`` behind them where variants differ in nothing else.
    """
    columns = [column for need in stats.columns.values() for column in need]
    names, codes = stats.status
    status = pl.Series("status", names, dtype=pl.String).gather(codes)
    several = any(len(column.parameters) > 1 or column.parameters[0] for column in columns)
    schema = frame_schema("per_datum", datum=datums.id_dtype)
    if several:
        schema = {**schema, "parameters": pl.String()}
    parts = [
        _part(column, p, k, stats, datums, status)
        for column in columns
        for p in range(len(column.parameters))
        for k in range(len(column.k))
    ]
    if not parts:
        return pl.DataFrame(schema=schema)
    return pl.concat(parts).select(
        pl.col(name).cast(dtype) if name != "datum_id" else pl.col(name)
        for name, dtype in schema.items()
    )


def _part(
    column: Column, p: int, k: int, stats: Stats, datums: Datums, status: pl.Series
) -> pl.DataFrame:
    value = np.where(stats.counted, column.values[:, p, k], np.nan)
    return pl.DataFrame(
        {
            "datum_id": datums.id,
            "value": pl.Series(value, nan_to_null=True),
            "status": status,
        }
    ).with_columns(
        pl.lit(column.metric).alias("metric"),
        pl.lit(column.statistic, dtype=pl.String).alias("statistic"),
        pl.lit(column.k[k], dtype=pl.Int64).alias("k"),
        pl.lit(column.parameters[p], dtype=pl.String).alias("parameters"),
    )
