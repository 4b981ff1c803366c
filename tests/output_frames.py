"""Output frames as dictionaries, by the columns that identify a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

Key = tuple[Any, ...]

NAMES = (
    "metric", "statistic", "label_key", "label_value", "average", "k", "iou_threshold",
    "score_threshold", "area", "max_detections",
)  # fmt: skip
"""Columns that identify a row of a metrics frame."""


def tidy(key: Key) -> Key:
    """Round the floats of a key, as frames show thresholds as round decimals."""
    return tuple(round(x, 9) if isinstance(x, float) else x for x in key)


def keyed(rows: Mapping[Key, Any]) -> dict[Key, Any]:
    """Return a dictionary with rounded keys."""
    return {tidy(key): value for key, value in rows.items()}


def unique(rows: list[tuple[Key, Any]]) -> dict[Key, Any]:
    """Return rows as a dictionary; no key may repeat."""
    repeated = [key for key, n in Counter(key for key, _ in rows).items() if n > 1]
    assert not repeated, f"rows twice: {repeated[:5]}"
    return dict(rows)


def of_slice(frame: pl.DataFrame, name: str | None = None, value: str | None = None) -> Any:
    """Return the rows of one slice, by default those without a slice."""
    return frame.filter(
        pl.col("slice").eq_missing(pl.lit(name, pl.String))
        & pl.col("slice_value").eq_missing(pl.lit(value, pl.String))
    )


def numbers(frame: pl.DataFrame, names: Sequence[str] = NAMES) -> dict[Key, float | None]:
    """Return the values of a metrics frame; check that exactly the undefined have a reason."""
    assert frame.filter(pl.col("value").is_nan()).is_empty()
    assert frame.filter(pl.col("value").is_null() != pl.col("reason").is_not_null()).is_empty()
    return unique(
        [(tidy(tuple(row[n] for n in names)), row["value"]) for row in frame.iter_rows(named=True)]
    )


def agree(ours: Mapping[Key, Any], theirs: Mapping[Key, Any], tolerance: float = 1e-12) -> None:
    """Compare keys exactly, and values within the tolerance."""
    assert set(ours) == set(theirs), (
        f"only ours: {sorted(set(ours) - set(theirs), key=repr)[:5]};"
        f" only theirs: {sorted(set(theirs) - set(ours), key=repr)[:5]}"
    )
    for key, expected in theirs.items():
        got = ours[key]
        if got is None or expected is None:
            assert got is None, f"{key}: {got}, not undefined"
            assert expected is None, f"{key}: undefined, not {expected}"
        else:
            assert abs(got - expected) <= tolerance, f"{key}: {got}, not {expected}"
