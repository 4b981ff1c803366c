"""Pixels: counts of pixels by datum and label, and what segmentation's metrics see of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from ..kernels.sums import ExactSums
from .datums import Labels
from .ranked_view import View
from .stats import StatsView

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

    def blocks(self, group: Array | None) -> Iterator[tuple[Pixels, Array | None, Array | None]]:
        """As :meth:`evalengine.tally.stats.Stats.blocks` has them."""
        yield self, group, None


class PixelView(View):
    """Pixels by groups of datums.

    Args:
        pixels: the tally, :class:`Pixels` or :class:`~evalengine.tally.pixel_parts.PixelParts`.
        labels: of the run.
        stats: metrics of single datums, a column a metric, one parameter a label key.
        **grouping: see :class:`View`.
    """

    def __init__(self, pixels: Any, labels: Labels, stats: Any, **grouping: Any) -> None:
        super().__init__(labels, **grouping)
        self.pixels = pixels
        self.single: Any = StatsView(stats, labels, **grouping)

    def _blocks(self) -> Iterator[tuple[Pixels, Array | None]]:
        for pixels, group, _ in self.pixels.blocks(self.group):
            if pixels is not self.pixels:
                self.refuse_draws()
            yield pixels, group

    def image_total(self, need: str) -> tuple[Array, Array]:
        """Sums of a metric over datums, and how many have it, float64 [group, key] each."""
        (column,) = self.single.stats.columns[need]
        total, many = self.single.total(column)
        return total[:, :, 0], many[:, :, 0]

    def area_total(self, of: Callable[[Pixels], Array]) -> tuple[Array, Array]:
        """Exact sums over datums and labels of each key, leaving out undefined values.

        Args:
            of: from counts to a value for each of their areas, float64.

        Returns:
            sums, and how many values entered each, float64 [group, key].
        """
        many = np.zeros((self.n_groups, len(self.labels.key_names)))
        total = ExactSums(many.size)
        for pixels, groups in self._blocks():
            areas = pixels.areas
            value = of(pixels)
            group = np.zeros(value.size, np.int64) if groups is None else groups[areas.datum]
            chosen = ~np.isnan(value) & (group >= 0)
            place = group[chosen], self.labels.key[areas.label[chosen]]
            times = 1 if self.weights is None else self.weights[areas.datum[chosen]]
            total.add(value[chosen] * times, place[0] * many.shape[1] + place[1])
            np.add.at(many, place, times)
        return total.rounded().reshape(many.shape), many

    def _summed(self, of: Callable[[Pixels], tuple[Array, Array, Array]], n_codes: int) -> Array:
        """Sums of whole numbers by group and code, weighted by the datums' weights.

        Args:
            of: from counts to rows: datum int32 [n], code int32 [n], value int64 or bool [n].
            n_codes: number of codes.

        Returns:
            int64 [group, code].
        """
        out = np.zeros((self.n_groups, n_codes), np.int64)
        for pixels, groups in self._blocks():
            datum, code, values = of(pixels)
            group = np.zeros(datum.size, np.int64) if groups is None else groups[datum]
            inside = group >= 0
            values = values.astype(np.int64, copy=False)
            if self.weights is not None:
                values = values * self.weights[datum]
            np.add.at(out, (group[inside], code[inside]), values[inside])
        return out

    def _by_label(self, name: str) -> Array:
        def rows(pixels: Pixels) -> tuple[Array, Array, Array]:
            return pixels.areas.datum, pixels.areas.label, getattr(pixels.areas, name)

        return self._summed(rows, len(self.labels))

    @cached_property
    def truth(self) -> Array:
        """Pixels of each label in the ground truths, int64 [group, label]."""
        return self._by_label("truth")

    @cached_property
    def found(self) -> Array:
        """Pixels of each label in the predictions, int64 [group, label]."""
        return self._by_label("found")

    @cached_property
    def right(self) -> Array:
        """Pixels of each label in both, int64 [group, label]."""
        return self._by_label("right")

    def _by_key(self, values: Callable[[Images], Array]) -> Array:
        def rows(pixels: Pixels) -> tuple[Array, Array, Array]:
            return pixels.images.datum, pixels.images.key, values(pixels.images)

        return self._summed(rows, len(self.labels.key_names))

    @cached_property
    def counted(self) -> Array:
        """Pixels that count, int64 [group, key]."""
        return self._by_key(lambda images: images.pixels)

    @cached_property
    def agreeing(self) -> Array:
        """Pixels on which both sides agree, int64 [group, key]."""
        return self._by_key(lambda images: images.right)

    @cached_property
    def overlapping(self) -> Array:
        """Datums in which labels of one side overlap, int64 [group, key]."""
        return self._by_key(lambda images: images.overlapping)

    @cached_property
    def images(self) -> Array:
        """Datums, int64 [group, key]."""
        return self._by_key(lambda images: np.ones(images.datum.size, np.int64))

    @cached_property
    def crossed(self) -> tuple[Array, Array, Array, Array]:
        """Pairs of labels that share pixels: group, actual, predicted (-1 for none), pixels."""
        n = len(self.labels) + 1

        def pair(pixels: Pixels) -> Array:
            crossings = pixels.crossings
            return (crossings.actual.astype(np.int64) + 1) * n + crossings.predicted + 1

        pairs = np.zeros(0, np.int64)
        for pixels, _ in self._blocks():
            pairs = np.union1d(pairs, pair(pixels))

        def rows(pixels: Pixels) -> tuple[Array, Array, Array]:
            at = np.searchsorted(pairs, pair(pixels))
            return pixels.crossings.datum, at, pixels.crossings.count

        counts = self._summed(rows, pairs.size)
        group, at = np.nonzero(counts)
        return group, pairs[at] // n - 1, pairs[at] % n - 1, counts[group, at]
