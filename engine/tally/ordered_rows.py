"""Scored labels in the order of their scores, with the datum of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..kernels.partition import partition
from ..kernels.sorting import sort_with
from ..schemas.arrays import Array
from .sorted_scores import Sorted

if TYPE_CHECKING:
    from .scored_view import ScoredView


class OrderedRows:
    """Rows of a view sorted by score, computed once for all resamples."""

    def __init__(self, view: ScoredView) -> None:
        scored = view.scored
        assert scored is not None
        start, score, _ = partition(scored.parts, *view.segments)
        row = partition([np.arange(len(scored), dtype=np.float64)], *view.segments)[1]
        view.over(start, lambda first, last: sort_with(start, first, last, score, row))
        place = row.astype(np.int64)
        unit = place if scored.unit_codes is None else scored.unit_codes[place]
        own = view.units.weight
        self.sorted = Sorted(start, score, None)
        self.datum = view.units.datum_of(unit)
        self.own = None if own is None else own[unit]

    @property
    def segment(self) -> Array:
        """Segment of every row, int64."""
        return np.repeat(np.arange(self.sorted.start.size - 1), np.diff(self.sorted.start))
