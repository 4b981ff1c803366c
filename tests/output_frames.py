"""Output frames as plain dictionaries, keyed by the columns that tell their rows apart."""

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
"""What tells the rows of a metrics frame apart."""


def tidy(key: Key) -> Key:
    """A key with its floats rounded: frames show thresholds as round decimals."""
    return tuple(round(x, 9) if isinstance(x, float) else x for x in key)


def keyed(rows: Mapping[Key, Any]) -> dict[Key, Any]:
    """A dictionary with tidy keys."""
    return {tidy(key): value for key, value in rows.items()}


def unique(rows: list[tuple[Key, Any]]) -> dict[Key, Any]:
    """A dictionary of rows, none of which may stand twice."""
    repeated = [key for key, n in Counter(key for key, _ in rows).items() if n > 1]
    assert not repeated, f"rows twice: {repeated[:5]}"
    return dict(rows)


def of_slice(frame: pl.DataFrame, name: str | None = None, value: str | None = None) -> Any:
    """The rows of one slice; of none, by default."""
    return frame.filter(
        pl.col("slice").eq_missing(pl.lit(name, pl.String))
        & pl.col("slice_value").eq_missing(pl.lit(value, pl.String))
    )


def numbers(frame: pl.DataFrame, names: Sequence[str] = NAMES) -> dict[Key, float | None]:
    """The metrics frame's values; an undefined one must have a reason, a defined one none."""
    assert frame.filter(pl.col("value").is_nan()).is_empty()
    assert frame.filter(pl.col("value").is_null() != pl.col("reason").is_not_null()).is_empty()
    return unique(
        [(tidy(tuple(row[n] for n in names)), row["value"]) for row in frame.iter_rows(named=True)]
    )


def agree(ours: Mapping[Key, Any], theirs: Mapping[Key, Any], tolerance: float = 1e-12) -> None:
    """The same keys, and values that differ by no more than the tolerance."""
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
