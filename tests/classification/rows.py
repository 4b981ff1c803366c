"""Frames as plain dictionaries, and lists as input tables of every shape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl
from output_frames import of_slice

import evalengine as ee

Key = tuple[Any, ...]
Sides = tuple[pl.DataFrame, ...]
"""Predictions and ground truths, or the single table."""

DEFAULT = "label"

NAMES = ("metric", "statistic", "label_key", "label_value", "average", "k", "score_threshold")
"""Key columns of a metrics frame."""


def two_tables(actual: Sequence[Any], predicted: Sequence[Any], **more: Any) -> Sides:
    """Make long tables of hard predictions; ``weight`` is a column of the ground truths."""
    ids = list(range(len(actual)))
    truths = pl.DataFrame({"datum_id": ids, "label_value": actual, **more})
    return pl.DataFrame({"datum_id": ids, "label_value": predicted}), truths


def one_table(actual: Sequence[Any], predicted: Sequence[Any], **more: Any) -> Sides:
    """Make the same rows as one table."""
    return (pl.DataFrame({"actual": actual, "predicted": predicted, **more}),)


def matrix_tables(
    actual: Sequence[Any],
    scores: Sequence[Sequence[float]],
    labels: Sequence[Any],
    dtype: Any = pl.Float64,
    **more: Any,
) -> dict[str, tuple[Sides, dict[str, Any]]]:
    """Make a score matrix in every shape of input, with the options that each needs."""
    n = len(actual)
    ids = list(range(n))
    truths = pl.DataFrame({"datum_id": ids, "label_value": actual, **more})
    long = pl.DataFrame(
        {
            "datum_id": [i for i in ids for _ in labels],
            "label_value": [label for _ in ids for label in labels],
            "score": pl.Series([s for row in scores for s in row], dtype=dtype),
        }
    )
    columns = {
        f"p_{at}": pl.Series([row[at] for row in scores], dtype=dtype) for at in range(len(labels))
    }
    named = {label: f"p_{at}" for at, label in enumerate(labels)}
    wide = pl.DataFrame({"datum_id": ids, **columns})
    single = pl.DataFrame({"actual": actual, **columns, **more})
    return {
        "long": ((long, truths), {}),
        "wide": ((wide, truths), {"score_columns": named}),
        "one": ((single,), {"score_columns": named}),
    }


def score(sides: Sides, metrics: Iterable[str], **options: Any) -> ee.Scorecard:
    """Run the classification task."""
    return ee.score(*sides, task="classification", metrics=list(metrics), **options)


def label_values(card: ee.Scorecard, metric: str, key: str = DEFAULT) -> dict[Any, float | None]:
    """Return the values of a metric by label."""
    rows = of_slice(card.metrics).filter(
        (pl.col("metric") == metric) & pl.col("average").is_null() & (pl.col("label_key") == key)
    )
    return dict(zip(rows["label_value"], rows["value"], strict=True))


def counts_by_cell(frame: pl.DataFrame) -> dict[Key, int]:
    """Map (key, actual, predicted) to the count of a confusion frame."""
    rows = frame.select("label_key", "actual", "predicted", "count").iter_rows()
    return {(key, actual, predicted): n for key, actual, predicted, n in rows}


def curve(card: ee.Scorecard, name: str, label: Any) -> pl.DataFrame:
    """Return the points of one curve of one label, in the order of the frame."""
    frame = of_slice(card.curves).filter(pl.col("curve") == name)
    return frame.filter(pl.col("label_value") == label)
