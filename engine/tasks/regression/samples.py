"""Tiny tables that make every kernel of regression run once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from ... import metrics

Sample = tuple[pl.DataFrame, pl.DataFrame | None, dict[str, Any]]


def samples() -> Iterator[Sample]:
    """Values with ties, of one target and of two, with weights and without."""
    n = 8
    values = np.arange(n) / 2 + 0.5
    table = pl.DataFrame(
        {
            "datum_id": np.arange(n),
            "prediction": values[::-1].round(),
            "target": values,
            "scale": np.ones(n),
            "squared_scale": np.ones(n),
            "group_id": ["a", "b"] * (n // 2),
            "series": ["a", "b"] * (n // 2),
            "samples": np.ones((n, 2)),
            "q0.1": values - 1,
            "q0.9": values,
            "lower": values - 1,
            "upper": values,
        }
    )
    asked = {"metrics": metrics.names("regression"), "n_features": 1}
    yield table, None, asked
    keys = pl.DataFrame({"label_key": ["a", "b"], "weight": [1.0, 0.5]})
    yield table.join(keys, how="cross"), None, asked


def warm_large() -> None:
    """Run the kernels that only large tables reach."""
    from ...kernels import warm

    warm.parts()
    warm.errors()
