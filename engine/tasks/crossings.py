"""Confusion matrix of shared pixels or segments."""

from __future__ import annotations

import numpy as np
import polars as pl

from ..schemas.results import frame_schema
from ..tally.counted_rows import CountsView


def crossing_frame(column: str | None, names: list[str], view: CountsView) -> pl.DataFrame:
    """Build the ``confusion`` frame of one view.

    Args:
        column: the slice column, None for the whole set.
        names: names of the view's groups.
    """
    labels = view.labels
    group, actual, predicted, count = view.crossed
    last = len(labels)
    none = pl.Series("label_value", [None], dtype=labels.dtype)
    values = pl.concat([labels.frame["label_value"], none])
    made = {
        "label_key": labels.frame["label_key"].gather(np.where(actual < 0, predicted, actual)),
        "actual": values.gather(np.where(actual < 0, last, actual)),
        "predicted": values.gather(np.where(predicted < 0, last, predicted)),
        "slice_value": pl.Series(names or [None], dtype=pl.String).gather(group),
        "count": count,
    }
    schema = frame_schema("confusion", label=labels.dtype)
    return pl.DataFrame(made).select(
        pl.col(name).cast(dtype)
        if name in made
        else pl.lit(column if name == "slice" else None, dtype=dtype).alias(name)
        for name, dtype in schema.items()
    )
