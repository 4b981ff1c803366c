"""Pixels: counts of pixels by datum and label, and what segmentation's metrics see of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from .counted_draws import CountDraws
from .counted_rows import CountsView, Crossings, no_rows
from .registry import stored_as

Array = np.ndarray[Any, Any]


@stored_as("pixels.areas/1")
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


@stored_as("pixels.surfaces/1")
class Surfaces(msgspec.Struct, frozen=True):
    """One row a datum and label that has pixels there on either side, where outlines are measured.

    Attributes:
        datum: int32 [n], datum code.
        label: int32 [n], label code.
        edge_truth: int64 [n], pixels of the boundary in the ground truth.
        edge_found: int64 [n], those in the prediction.
        edge_right: int64 [n], those in both.
        hausdorff: float64 [n], largest distance between the outlines; NaN where a side has none.
        hd95: float64 [n], that of the 95th percentile, likewise.
        assd: float64 [n], mean distance, likewise.
        nsd: float64 [n], share of both outlines within the tolerance, 0 where a side has none.
        f1: float64 [n], F1 of the shares of either, likewise.
    """

    datum: Array
    label: Array
    edge_truth: Array
    edge_found: Array
    edge_right: Array
    hausdorff: Array
    hd95: Array
    assd: Array
    nsd: Array
    f1: Array


def no_surfaces() -> Surfaces:
    """None measured."""
    kinds = [np.int32] * 2 + [np.int64] * 3 + [np.float64] * 5
    return Surfaces(*(np.empty(0, kind) for kind in kinds))


@stored_as("pixels.images/1")
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


@stored_as("pixels/1")
class Pixels(msgspec.Struct, frozen=True):
    """All counts of a segmentation run.

    Attributes:
        areas: by datum and label.
        crossings: by datum and pair of labels.
        images: by datum and label key.
        declared: bool [n_labels], labels that were declared; None where no label was.
        ignored: bool [n_labels], labels that the ignored index names, which only predictions have.
        surfaces: by datum and label, where outlines are measured; else without rows.
    """

    areas: Areas
    crossings: Crossings
    images: Images
    declared: Array | None
    ignored: Array
    surfaces: Surfaces = msgspec.field(default_factory=no_surfaces)

    def bare(self) -> Pixels:
        """What all datums share, without rows."""
        return msgspec.structs.replace(
            self, areas=no_rows(self.areas), crossings=no_rows(self.crossings),
            images=no_rows(self.images), surfaces=no_surfaces(),
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

    def edges(self, name: str) -> Array:
        """Pixels of boundaries, a column of :class:`Surfaces`, int64 [group, label]."""

        def rows(pixels: Pixels) -> tuple[Array, Array, Array]:
            return pixels.surfaces.datum, pixels.surfaces.label, getattr(pixels.surfaces, name)

        return self.summed(rows, len(self.labels))

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
