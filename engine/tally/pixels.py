"""Pixels: counts of pixels by datum and label, and what segmentation's metrics see of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from .counted_draws import CountDraws
from .counted_rows import CountsView, Crossings, no_rows

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

    def bare(self) -> Pixels:
        """What all datums share, without rows."""
        return msgspec.structs.replace(
            self, areas=no_rows(self.areas), crossings=no_rows(self.crossings),
            images=no_rows(self.images),
        )  # fmt: skip

    def blocks(self, group: Array | None) -> Iterator[tuple[Pixels, Array | None, Array | None]]:
        """As :meth:`evalengine.tally.stats.Stats.blocks` has them."""
        yield self, group, None


class PixelView(CountsView):
    """Pixels by groups of datums; see :class:`.CountsView`."""

    def area_total(self, of: Callable[[Pixels], Array]) -> tuple[Array, Array]:
        """Exact sums over datums and labels of each key, leaving out undefined values.

        Args:
            of: from counts to a value for each of their areas, float64.

        Returns:
            sums, and how many values entered each, float64 [group, key].
        """

        def rows(pixels: Pixels) -> tuple[Array, Array, Array]:
            return pixels.areas.datum, self.labels.key[pixels.areas.label], of(pixels)

        return self.exact_total(rows, len(self.labels.key_names))

    def _by_label(self, name: str) -> Array:
        def rows(pixels: Pixels) -> tuple[Array, Array, Array]:
            return pixels.areas.datum, pixels.areas.label, getattr(pixels.areas, name)

        return self.summed(rows, len(self.labels))

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

        return self.summed(rows, len(self.labels.key_names))

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


class PixelDraws(CountDraws, PixelView):
    """A view of pixels whose groups are draws."""
