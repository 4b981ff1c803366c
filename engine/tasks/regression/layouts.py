"""Layout of regression results, with tables of quantiles and bins."""

from __future__ import annotations

from ...schemas.layouts import Layout, Spread

_NUMBERS = Layout(
    headline=(),
    label_columns=(),
    slice_columns=(),
    tables=(
        Spread("ErrorQuantiles", "quantile", "quantile"),
        Spread("ActualByPrediction", "bin", "bin"),
    ),
)

LAYOUTS: dict[str | None, Layout] = {None: _NUMBERS}
"""Dialect -> layout; None is the task's own."""
