"""The confusion matrix of pixels, with the IoU of each pair of labels and unmatched shares."""

from __future__ import annotations

import numpy as np
import polars as pl

from ...schemas.results import frame_schema
from ...tally.pixels import PixelView


def confusion_frame(column: str | None, names: list[str], view: PixelView) -> pl.DataFrame:
    """The ``confusion`` frame of one view.

    Args:
        column: the slice column, None for the whole set.
        names: names of the view's groups.
        view: the counts.

    Returns:
        the contract's columns, and behind them ``iou``: pixels of the pair / pixels that either
        label has, null beside no label; and ``share``: of pixels that the other side leaves without
        a label, / all of the label, null for pairs.
    """
    labels = view.labels
    group, actual, predicted, count = view.crossed
    last = len(labels)
    none = pl.Series("label_value", [None], dtype=labels.dtype)
    values = pl.concat([labels.frame["label_value"], none])
    pair = (actual >= 0) & (predicted >= 0)
    # Of a missing label, -1, the sums of the last one are read, and not used.
    truth, found = (
        np.pad(sums, ((0, 0), (0, 1)))[group, code]
        for sums, code in ((view.truth, actual), (view.found, predicted))
    )
    made = {
        "label_key": labels.frame["label_key"].gather(np.where(actual < 0, predicted, actual)),
        "actual": values.gather(np.where(actual < 0, last, actual)),
        "predicted": values.gather(np.where(predicted < 0, last, predicted)),
        "slice_value": pl.Series(names or [None], dtype=pl.String).gather(group),
        "count": count,
    }
    nan = np.full(count.size, np.nan)
    union, own = truth + found - count, np.where(actual < 0, found, truth)
    iou = np.divide(count, union, out=nan.copy(), where=pair)
    share = np.divide(count, own, out=nan, where=~pair)
    schema = frame_schema("confusion", label=labels.dtype)
    return pl.DataFrame(made).select(
        *(
            pl.col(name).cast(dtype)
            if name in made
            else pl.lit(column if name == "slice" else None, dtype=dtype).alias(name)
            for name, dtype in schema.items()
        ),
        pl.Series("iou", iou, nan_to_null=True),
        pl.Series("share", share, nan_to_null=True),
    )
