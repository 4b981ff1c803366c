"""A tiny table of verdicts; judged metrics compile nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

Sample = tuple[pl.DataFrame, pl.DataFrame | None, dict[str, Any]]


def samples() -> Iterator[Sample]:
    """Verdicts of one metric."""
    yield (
        pl.DataFrame({"datum_id": [1, 1], "metric": ["Bias"] * 2, "verdict": ["yes", "no"]}),
        None,
        {},
    )
