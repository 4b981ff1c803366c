"""Custom metrics that other processes can import."""

from __future__ import annotations

import polars as pl

import evalengine as ee


@ee.metric(better="higher", range=(0, 1))
def agreement(rows: pl.DataFrame) -> pl.DataFrame:
    """Return 1 per datum if the labels agree, otherwise 0."""
    same = pl.col("actual") == pl.col("predicted")
    return rows.select("datum_id", value=same)


@ee.metric(better="lower", range=(0, 1))
def error_rate(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the weighted share of wrong labels as a ratio of sums."""
    wrong = (pl.col("actual") != pl.col("predicted")).cast(pl.Float64)
    return rows.select("datum_id", numerator=wrong * pl.col("weight"), denominator="weight")


@ee.metric(better="neither")
def rows_per_datum(rows: pl.DataFrame) -> pl.DataFrame:
    """Count the rows of the joined table per datum."""
    return rows.group_by("datum_id").agg(value=pl.len())


def plain(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows; the function is not decorated as a metric."""
    return rows
