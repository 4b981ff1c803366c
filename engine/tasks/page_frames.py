"""Frames of the report that several tasks have."""

from __future__ import annotations

from typing import Any

import polars as pl

HUNDREDTHS = tuple(i / 100 for i in range(100))
"""Score thresholds of the report's counts."""

_HALF = 0.5
_SPOT = ("iou_threshold", "score_threshold")


def hundredths(tallies: Any) -> dict[str, Any]:
    """Options of counts at a hundred score thresholds."""
    return {"score_thresholds": HUNDREDTHS}


def one_spot(confusion: pl.DataFrame) -> pl.DataFrame:
    """A confusion matrix at one IoU and score threshold: the lowest IoU, the score nearest 0.5."""
    for column, at in ((_SPOT[0], 0.0), (_SPOT[1], _HALF)):
        every = confusion[column].drop_nulls().unique()
        if len(every):
            nearest = every.sort()[int((every.sort() - at).abs().arg_min() or 0)]
            confusion = confusion.filter(pl.col(column) == nearest)
    return confusion
