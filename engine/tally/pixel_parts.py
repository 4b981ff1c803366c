"""Counts of pixels whose parts stand in files, added up part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from .datums import Labels
from .parts import GroupsByCode, Parts
from .pixels import Pixels, PixelView, area_totals
from .stats_parts import StatsParts
from .view import View

Array = np.ndarray[Any, Any]


class PixelParts(msgspec.Struct, frozen=True):
    """All counts of a segmentation run, in files.

    Attributes:
        parts: the files.
        declared: bool [n_labels], labels that were declared; None where no label was.
        ignored: bool [n_labels], labels that the ignored index names, which only predictions have.
    """

    parts: Parts
    declared: Array | None
    ignored: Array

    def view(self, labels: Labels, stats: StatsParts, **grouping: Any) -> PartsPixelView:
        """The counts by groups of datums; see :class:`PixelView`."""
        return PartsPixelView(self, labels, stats, **grouping)


def _added(name: str) -> cached_property[Array]:
    """Whole numbers of all parts, added up."""

    def total(view: PartsPixelView) -> Array:
        out: Array = sum(getattr(few, name) for few in view.blocks())
        return out

    return cached_property(total)


class PartsPixelView(View):
    """Pixels in parts by groups of datums: the numbers of :class:`PixelView`, to the bit.

    Args:
        pixels: the tally.
        labels: of the run.
        stats: metrics of single datums, a column a metric, one parameter a label key.
        group: of every datum; None for one group of all.
        **grouping: see :class:`View`.
    """

    truth = _added("truth")
    found = _added("found")
    right = _added("right")
    counted = _added("counted")
    agreeing = _added("agreeing")
    overlapping = _added("overlapping")
    images = _added("images")

    def __init__(
        self,
        pixels: PixelParts,
        labels: Labels,
        stats: StatsParts,
        *,
        group: GroupsByCode | None = None,
        **grouping: Any,
    ) -> None:
        super().__init__(labels, **grouping)
        self.pixels = pixels
        self._groups = group
        self._single = stats.view(labels, group=group, **grouping)

    def blocks(self) -> Iterator[PixelView]:
        """Views of the parts."""
        for part in self.pixels.parts:
            rows = part.rows  # a tally with pixels and stats, labels under the codes of the run
            group = None if self._groups is None else self._groups.of(part.codes)
            yield rows.pixels.view(self.labels, rows.stats, group=group, n_groups=self.n_groups)

    def image_total(self, need: str) -> tuple[Array, Array]:
        """See :meth:`PixelView.image_total`."""
        (column,) = self._single.stats.columns[need]
        total, many = self._single.total(column)
        return total[:, :, 0], many[:, :, 0]

    def area_total(self, of: Callable[[Pixels], Array]) -> tuple[Array, Array]:
        """See :meth:`PixelView.area_total`."""
        return area_totals(self.blocks(), of)

    @cached_property
    def crossed(self) -> tuple[Array, Array, Array, Array]:
        """See :class:`PixelView`."""
        n = len(self.labels) + 1
        place, many = np.zeros(0, np.int64), np.zeros(0, np.int64)
        for few in self.blocks():
            group, actual, predicted, count = few.crossed
            code = (group.astype(np.int64) * n + actual + 1) * n + predicted + 1
            place, inverse = np.unique(np.concatenate([place, code]), return_inverse=True)
            sums = np.zeros(place.size, np.int64)
            np.add.at(sums, inverse, np.concatenate([many, count]))
            many = sums
        return place // (n * n), place // n % n - 1, place % n - 1, many
