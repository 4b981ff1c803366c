"""The confusion matrix of pixels, with the IoU of each pair of labels and unmatched shares."""

from __future__ import annotations

import numpy as np
import polars as pl

from ...tally.pixels import PixelView
from ..crossings import crossing_frame


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
    group, actual, predicted, count = view.crossed
    pair = (actual >= 0) & (predicted >= 0)
    # Of a missing label, -1, the sums of the last one are read, and not used.
    truth, found = (
        np.pad(sums, ((0, 0), (0, 1)))[group, code]
        for sums, code in ((view.truth, actual), (view.found, predicted))
    )
    nan = np.full(count.size, np.nan)
    union, own = truth + found - count, np.where(actual < 0, found, truth)
    iou = np.divide(count, union, out=nan.copy(), where=pair)
    share = np.divide(count, own, out=nan, where=~pair)
    return crossing_frame(column, names, view).with_columns(
        pl.Series("iou", iou, nan_to_null=True), pl.Series("share", share, nan_to_null=True)
    )
