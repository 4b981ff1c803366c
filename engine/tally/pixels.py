"""Pixels: counts of pixels by datum and label, and what segmentation's metrics see of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from ..kernels.sums import ExactSums
from .datums import Labels
from .stats import Stats, StatsView
from .view import View

Array = np.ndarray[Any, Any]


class Areas(msgspec.Struct, frozen=True):
    """One row a datum and label that has pixels there on either side.

    Attributes:
        datum: int32 [n], datum code.
        label: int32 [n], label code.
        truth: int64 [n], pixels of the label in the ground truth.
        found: int64 [n], pixels of the label in the prediction.
        right: int64 [n], pixels of the label in both.
    """

    datum: Array
    label: Array
    truth: Array
    found: Array
    right: Array


class Crossings(msgspec.Struct, frozen=True):
    """One row a datum and pair of labels, of one key, that share pixels.

    Attributes:
        datum: int32 [n], datum code.
        actual: int32 [n], label code in the ground truth, -1 for pixels without a label there.
        predicted: int32 [n], the same in the prediction; never -1 on both sides.
        count: int64 [n], pixels.
    """

    datum: Array
    actual: Array
    predicted: Array
    count: Array


class Images(msgspec.Struct, frozen=True):
    """One row a datum and label key.

    Attributes:
        datum: int32 [n], datum code.
        key: int32 [n], code of the label key.
        pixels: int64 [n], pixels that count.
        right: int64 [n], pixels with the same label on both sides, or with none on either.
        overlapping: bool [n], whether pixels of a side have several labels, so that ``right``
            means nothing.
    """

    datum: Array
    key: Array
    pixels: Array
    right: Array
    overlapping: Array


class Pixels(msgspec.Struct, frozen=True):
    """All counts of a segmentation run.

    Attributes:
        areas: by datum and label.
        crossings: by datum and pair of labels.
        images: by datum and label key.
        declared: bool [n_labels], labels that were declared; None where no label was.
        ignored: bool [n_labels], labels that the ignored index names, which only predictions have.
    """

    areas: Areas
    crossings: Crossings
    images: Images
    declared: Array | None
    ignored: Array

    def view(self, labels: Labels, stats: Stats, **grouping: Any) -> PixelView:
        """The counts by groups of datums; see :class:`PixelView`."""
        return PixelView(self, labels, stats, **grouping)


class PixelView(View):
    """Pixels by groups of datums.

    Args:
        pixels: the tally.
        labels: of the run.
        stats: metrics of single datums, a column a metric, one parameter a label key.
        **grouping: see :class:`View`.
    """

    def __init__(self, pixels: Pixels, labels: Labels, stats: Stats, **grouping: Any) -> None:
        super().__init__(labels, **grouping)
        self.pixels = pixels
        self._single = StatsView(stats, labels, **grouping)

    def image_total(self, need: str) -> tuple[Array, Array]:
        """Sums of a metric over datums, and how many have it, float64 [group, key] each."""
        (column,) = self._single.stats.columns[need]
        total, many = self._single.total(column)
        return total[:, :, 0], many[:, :, 0]

    def area_total(self, of: Callable[[Pixels], Array]) -> tuple[Array, Array]:
        """Exact sums over datums and labels of each key, leaving out undefined values.

        Args:
            of: from counts to a value for each of their areas, float64.

        Returns:
            sums, and how many values entered each, float64 [group, key].
        """
        return area_totals([self], of)

    def add_areas(self, of: Callable[[Pixels], Array], total: ExactSums, many: Array) -> None:
        """Go on with the sums of :meth:`area_total` that other datums began.

        Args:
            of: as of :meth:`area_total`.
            total: cells of [group, key], changed.
            many: float64 [group, key], changed.
        """
        areas = self.pixels.areas
        value = of(self.pixels)
        group = np.zeros(value.size, np.int64) if self.group is None else self.group[areas.datum]
        chosen = ~np.isnan(value) & (group >= 0)
        place = group[chosen], self.labels.key[areas.label[chosen]]
        times = 1 if self.weights is None else self.weights[areas.datum[chosen]]
        total.add(value[chosen] * times, place[0] * many.shape[1] + place[1])
        np.add.at(many, place, times)

    def sum_over(self, datum: Array, code: Array, values: Array, n_codes: int) -> Array:
        """Sums of rows by group and code, weighted by the datums' weights.

        Args:
            datum: int32 [n], datum of each row.
            code: int32 [n], code of each row.
            values: int64, bool or float64 [n].
            n_codes: number of codes.

        Returns:
            int64 [group, code]; float64 where values are.
        """
        group = np.zeros(datum.size, np.int64) if self.group is None else self.group[datum]
        inside = group >= 0
        values = values.astype(np.result_type(values, np.int64), copy=False)
        if self.weights is not None:
            values = values * self.weights[datum]
        out = np.zeros((self.n_groups, n_codes), values.dtype)
        np.add.at(out, (group[inside], code[inside]), values[inside])
        return out

    def _by_label(self, values: Array) -> Array:
        areas = self.pixels.areas
        return self.sum_over(areas.datum, areas.label, values, len(self.labels))

    @cached_property
    def truth(self) -> Array:
        """Pixels of each label in the ground truths, int64 [group, label]."""
        return self._by_label(self.pixels.areas.truth)

    @cached_property
    def found(self) -> Array:
        """Pixels of each label in the predictions, int64 [group, label]."""
        return self._by_label(self.pixels.areas.found)

    @cached_property
    def right(self) -> Array:
        """Pixels of each label in both, int64 [group, label]."""
        return self._by_label(self.pixels.areas.right)

    def _by_key(self, values: Array) -> Array:
        images = self.pixels.images
        return self.sum_over(images.datum, images.key, values, len(self.labels.key_names))

    @cached_property
    def counted(self) -> Array:
        """Pixels that count, int64 [group, key]."""
        return self._by_key(self.pixels.images.pixels)

    @cached_property
    def agreeing(self) -> Array:
        """Pixels on which both sides agree, int64 [group, key]."""
        return self._by_key(self.pixels.images.right)

    @cached_property
    def overlapping(self) -> Array:
        """Datums in which labels of one side overlap, int64 [group, key]."""
        return self._by_key(self.pixels.images.overlapping)

    @cached_property
    def images(self) -> Array:
        """Datums, int64 [group, key]."""
        return self._by_key(np.ones(self.pixels.images.datum.size, np.int64))

    @cached_property
    def crossed(self) -> tuple[Array, Array, Array, Array]:
        """Pairs of labels that share pixels: group, actual, predicted (-1 for none), pixels."""
        crossings = self.pixels.crossings
        n = len(self.labels) + 1
        pair = (crossings.actual.astype(np.int64) + 1) * n + crossings.predicted + 1
        pairs, code = np.unique(pair, return_inverse=True)
        counts = self.sum_over(crossings.datum, code, crossings.count, pairs.size)
        group, at = np.nonzero(counts)
        return group, pairs[at] // n - 1, pairs[at] % n - 1, counts[group, at]


def area_totals(views: Iterable[PixelView], of: Callable[[Pixels], Array]) -> tuple[Array, Array]:
    """What :meth:`PixelView.area_total` gives of all datums of several views, at least one."""
    total, many = ExactSums(0), np.zeros((0, 0))
    for view in views:
        if not total.cells:
            many = np.zeros((view.n_groups, len(view.labels.key_names)))
            total = ExactSums(many.size)
        view.add_areas(of, total, many)
    return total.rounded().reshape(many.shape), many
