"""Found calibration: what ``find_calibration`` returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from .found import Found

if TYPE_CHECKING:
    from ..report.found_rows import Layout


class FoundCalibration(Found):
    """Calibration of a run by label, and of all labels of a key (``average`` micro).

    Attributes:
        frame: a row a label: ``label_key, label_value, label_name, average``, ``n`` (scored rows),
            ``right`` (the share that is right), ``score`` (the mean), ``ece`` with ``lower,
            upper``, ``mce``, ``temperature`` (null where no finite one is best), ``ece_temperature,
            ece_isotonic`` (on the datums that were fitted) and ``held_out_ece_temperature,
            held_out_ece_isotonic`` (on those that were not).
        reliability: a row a label and bin that is not empty: ``low`` (in the bin), ``high`` (in
            the next), ``n``, ``score`` (the mean), ``right`` (the share).
        isotonic: a row a label and block of the isotonic fit: scores from ``low`` to ``high``
            become ``value``, those between blocks lie on the line between them.
        level: confidence of the intervals, in (0, 1).
        iou_threshold: at which boxes are right, metres with ``by_distance``; None where there are
            none.
        by_distance: whether boxes are compared by how far apart their centres are.
        n_bins: equal bins from 0 to 1.
        n: datums.
    """

    def __init__(
        self,
        frame: pl.DataFrame,
        reliability: pl.DataFrame,
        isotonic: pl.DataFrame,
        *,
        level: float,
        iou_threshold: float | None,
        by_distance: bool = False,
        n_bins: int,
        n: int,
        notes: Sequence[str] = (),
    ) -> None:
        self.frame = frame
        self.reliability = reliability
        self.isotonic = isotonic
        self.level = level
        self.iou_threshold = iou_threshold
        self.by_distance = by_distance
        self.n_bins = n_bins
        self.n = n
        self.said = tuple(notes)

    def __len__(self) -> int:
        return self.frame.height

    def _layout(self) -> Layout:
        from ..report.found_calibration import LAYOUT

        return LAYOUT
