"""Result class of ``find_slices``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from .found import Found

if TYPE_CHECKING:
    from ..report.found_rows import Layout

SCHEMA: dict[str, pl.DataType] = {
    "slice": pl.String(),
    "where": pl.String(),
    "conditions": pl.Int64(),
    "size": pl.Int64(),
    "share": pl.Float64(),
    "metric": pl.String(),
    "value": pl.Float64(),
    "lower": pl.Float64(),
    "upper": pl.Float64(),
    "elsewhere": pl.Float64(),
    "difference": pl.Float64(),
    "p": pl.Float64(),
    "p_adjusted": pl.Float64(),
    "loss": pl.Float64(),
    "loss_elsewhere": pl.Float64(),
    "score": pl.Float64(),
}


class FoundSlices(Found):
    """Worst slices of a run, highest score first.

    Slices in which the metric is better than elsewhere are not included.

    Attributes:
        frame: one row per slice: ``slice`` (conditions for display), ``where`` (the same for
            :class:`evalengine.Options`), ``conditions`` (their number), ``size`` (datums with a
            loss), ``share`` (of all datums with a loss), ``metric, value, lower, upper`` (the run's
            metric on these datums, with its interval), ``elsewhere`` (on all other datums),
            ``difference``, ``p``, ``p_adjusted``, ``loss, loss_elsewhere`` (mean losses per datum,
            weighted if datums have weights; the search uses them) and ``score``.
        metric: name of the metric.
        better: ``higher`` or ``lower``, whichever is better.
        loss: loss that the search uses per datum.
        level: confidence of the intervals, in (0, 1).
        n: datums that have a loss.
        measured: number of slices evaluated; no other slice can score higher.
    """

    def __init__(
        self,
        frame: pl.DataFrame,
        *,
        metric: str,
        better: str,
        loss: str,
        level: float,
        n: int,
        measured: int,
        notes: Sequence[str] = (),
    ) -> None:
        self.frame = frame
        self.metric = metric
        self.better = better
        self.loss = loss
        self.level = level
        self.n = n
        self.measured = measured
        self.said = tuple(notes)

    def __len__(self) -> int:
        return self.frame.height

    def _layout(self) -> Layout:
        from ..report.found_slices import LAYOUT

        return LAYOUT
