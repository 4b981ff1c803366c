"""Result class of ``find_calibration``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from .found import Found

if TYPE_CHECKING:
    from ..report.found_rows import Layout


class FoundCalibration(Found):
    """Calibration of a run per label, and of all labels of a key (``average`` micro).

    Attributes:
        frame: one row per label: ``label_key, label_value, label_name, average``, ``n`` (scored
            rows), ``right`` (share of correct rows), ``score`` (mean), ``ece`` with ``lower,
            upper``, ``mce``, ``temperature`` (null if no finite one is best), ``ece_temperature,
            ece_isotonic`` (on the datums used for the fit) and ``held_out_ece_temperature,
            held_out_ece_isotonic`` (on held-out datums).
        reliability: one row per label and non-empty bin: ``low`` (included), ``high`` (excluded),
            ``n``, ``score`` (mean), ``right`` (share).
        isotonic: one row per label and block of the isotonic fit: scores from ``low`` to ``high``
            become ``value``; scores between blocks are interpolated linearly.
        level: confidence of the intervals, in (0, 1).
        iou_threshold: IoU from which a box is correct, metres with ``by_distance``; None without
            boxes.
        by_distance: whether boxes are compared by the distance of their centres.
        n_bins: number of equal bins from 0 to 1.
        n: number of datums.
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
