"""Found slices: what ``find_slices`` returns."""

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
    """The worst slices of a run, the highest score first.

    Attributes:
        frame: a row a slice: ``slice`` (its conditions in words), ``where`` (the same for
            :class:`evalengine.Options`), ``conditions`` (how many), ``size`` (datums with a loss),
            ``share`` (of all that have one), ``metric, value, lower, upper`` (the run's own number
            of these datums, with its interval), ``elsewhere`` (of all other datums),
            ``difference``, ``p``, ``p_adjusted``, ``loss, loss_elsewhere`` (mean losses of single
            datums, by weight where they have one, by which slices were searched) and ``score``. No
            slice whose number is better than elsewhere is among them.
        metric: the number.
        better: ``higher`` or ``lower``, whichever is better.
        loss: what judges single datums.
        level: confidence of the intervals, in (0, 1).
        n: datums that have a loss.
        measured: slices that were looked at; all others cannot score higher.
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
