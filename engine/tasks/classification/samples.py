"""Tiny tables that make every kernel of classification run once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from ... import metrics

Sample = tuple[pl.DataFrame, pl.DataFrame | None, dict[str, Any]]


def samples() -> Iterator[Sample]:
    """Predictions, ground truths and options: two tables and one, with weights and without."""
    every = {"metrics": metrics.names("classification"), "by": "slice"}
    truth = pl.DataFrame({"datum_id": [1, 2], "label_value": ["a", "b"], "slice": ["x", "y"]})
    predicted = pl.DataFrame(
        {"datum_id": [1, 1, 2, 2], "label_value": ["a", "b"] * 2, "score": [0.9, 0.1, 0.6, 0.4]}
    )
    yield predicted, truth, every
    yield predicted, truth.with_columns(weight=pl.Series([1.0, 2.0])), every
    table = pl.DataFrame({"actual": [0, 1, 1], "score": [0.2, 0.7, 0.4], "slice": ["x", "x", "y"]})
    yield table, None, every
    yield table, None, {"metrics": ["ROCAUC", "AP"], "intervals": 0.95, "draws": 20}


def warm_large() -> None:
    """Run the kernels that only large tables reach."""
    from ...kernels import warm

    warm.scores()
    warm.parts()
    warm.fits()
