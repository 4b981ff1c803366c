"""Counts of pixels in files of consecutive datums, added up file by file."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from .datums import Labels
from .pieces import PiecedView, Pieces, StatsInPieces
from .pixels import Pixels, PixelView, area_totals
from .stats import Stats

Array = np.ndarray[Any, Any]

PIXELS = "pixels"
"""Name of the thing in a file that holds its counts."""

_SUMS = ("truth", "found", "right", "counted", "agreeing", "overlapping", "images")


class PixelsInPieces(msgspec.Struct, frozen=True):
    """All counts of a segmentation run, in files.

    Attributes:
        pieces: the files.
        declared: bool [n_labels], labels that were declared; None where no label was.
        ignored: bool [n_labels], labels that the ignored index names, which only predictions have.
    """

    pieces: Pieces
    declared: Array | None
    ignored: Array

    def view(self, labels: Labels, stats: StatsInPieces, **grouping: Any) -> PiecedPixelView:
        """The counts by groups of datums; see :class:`PixelView`."""
        return PiecedPixelView(self, labels, stats, **grouping)


class PiecedPixelView(PiecedView):
    """Pixels in files by groups of datums: the numbers of :class:`PixelView`, to the bit.

    Args:
        pixels: the tally.
        labels: of the run.
        stats: metrics of single datums, a column a metric, one parameter a label key.
        **grouping: see :class:`PiecedView`.
    """

    def __init__(
        self, pixels: PixelsInPieces, labels: Labels, stats: StatsInPieces, **grouping: Any
    ) -> None:
        super().__init__(pixels.pieces, labels, **grouping)
        self.pixels = pixels
        self._single = stats.view(labels, **grouping)

    def image_total(self, need: str) -> tuple[Array, Array]:
        """See :meth:`PixelView.image_total`."""
        (column,) = self._single.stats.columns[need]
        total, many = self._single.total(column)
        return total[:, :, 0], many[:, :, 0]

    def _of(self, piece: int) -> PixelView:
        """The view of one file."""
        (pixels,) = self.pieces.load(piece, PIXELS)
        nothing = np.zeros(0, bool)
        stats = Stats(nothing, {}, ((), nothing))
        return PixelView(pixels, self.labels, stats, **self.grouping(piece))

    def area_total(self, of: Callable[[Pixels], Array]) -> tuple[Array, Array]:
        """See :meth:`PixelView.area_total`."""
        return area_totals((self._of(piece) for piece in range(len(self.pieces))), of)

    @cached_property
    def _sums(self) -> dict[str, Array]:
        """Whole numbers of all files, by the name of their attribute."""
        views = (self._of(piece) for piece in range(len(self.pieces)))
        sums: dict[str, Array] = {}
        for view in views:
            for name in _SUMS:
                sums[name] = getattr(view, name) + sums.get(name, 0)
        return sums

    @property
    def truth(self) -> Array:
        """See :class:`PixelView`."""
        return self._sums["truth"]

    @property
    def found(self) -> Array:
        """See :class:`PixelView`."""
        return self._sums["found"]

    @property
    def right(self) -> Array:
        """See :class:`PixelView`."""
        return self._sums["right"]

    @property
    def counted(self) -> Array:
        """See :class:`PixelView`."""
        return self._sums["counted"]

    @property
    def agreeing(self) -> Array:
        """See :class:`PixelView`."""
        return self._sums["agreeing"]

    @property
    def overlapping(self) -> Array:
        """See :class:`PixelView`."""
        return self._sums["overlapping"]

    @property
    def images(self) -> Array:
        """See :class:`PixelView`."""
        return self._sums["images"]

    @cached_property
    def crossed(self) -> tuple[Array, Array, Array, Array]:
        """See :class:`PixelView`."""
        n = len(self.labels) + 1
        place, many = np.zeros(0, np.int64), np.zeros(0, np.int64)
        for piece in range(len(self.pieces)):
            group, actual, predicted, count = self._of(piece).crossed
            code = (group.astype(np.int64) * n + actual + 1) * n + predicted + 1
            place, inverse = np.unique(np.concatenate([place, code]), return_inverse=True)
            sums = np.zeros(place.size, np.int64)
            np.add.at(sums, inverse, np.concatenate([many, count]))
            many = sums
        return place // (n * n), place // n % n - 1, place % n - 1, many
