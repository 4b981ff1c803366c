"""Pixel counts by datum and label, and the view of them for segmentation metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

import msgspec
import numpy as np

from ..schemas.arrays import Array
from .counted_rows import CountDraws, CountsView, Crossings, no_rows
from .registry import stored_as


@stored_as("pixels.areas/1")
class Areas(msgspec.Struct, frozen=True):
    """Areas: one row per datum and label with pixels on either side.

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
    """Outline distances: one row per datum and label with pixels on either side, if measured.

    Attributes:
        datum: int32 [n], datum code.
        label: int32 [n], label code.
        edge_truth: int64 [n], boundary pixels of the ground truth.
        edge_found: int64 [n], boundary pixels of the prediction.
        edge_right: int64 [n], boundary pixels of both.
        hausdorff: float64 [n], largest distance between the outlines; NaN if a side is empty.
        hd95: float64 [n], 95th percentile of the distance; NaN if a side is empty.
        assd: float64 [n], mean distance; NaN if a side is empty.
        nsd: float64 [n], share of both outlines within the tolerance, 0 if a side is empty.
        f1: float64 [n], F1 of the shares of either side, 0 if a side is empty.
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
    """Pixel accuracy counts: one row per datum and label key.

    Attributes:
        datum: int32 [n], datum code.
        key: int32 [n], code of the label key.
        pixels: int64 [n], pixels that count.
        right: int64 [n], pixels with the same label on both sides, or unlabelled on both.
        overlapping: bool [n], some pixels have several labels on one side; ``right`` is then
            meaningless.
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
        declared: bool [n_labels], declared labels; None without declared labels.
        ignored: bool [n_labels], labels of the ignored index that only predictions have.
        surfaces: by datum and label; empty if outlines are not measured.
    """

    areas: Areas
    crossings: Crossings
    images: Images
    declared: Array | None
    ignored: Array
    surfaces: Surfaces = msgspec.field(default_factory=no_surfaces)

    def bare(self) -> Pixels:
        """Return the shared fields, without rows."""
        return msgspec.structs.replace(
            self,
            areas=no_rows(self.areas),
            crossings=no_rows(self.crossings),
            images=no_rows(self.images),
            surfaces=no_surfaces(),
        )

    def blocks(self, group: Array | None) -> Iterator[tuple[Pixels, Array | None, Array | None]]:
        """As :meth:`evalengine.tally.stats.Stats.blocks` has them."""
        yield self, group, None


class PixelView(CountsView):
    """Pixels by groups of datums; see :class:`.CountsView`."""

    def area_total(self, of: Callable[[Pixels], Array]) -> tuple[Array, Array]:
        """Return exact sums over datums and labels of each key, without undefined values.

        Args:
            of: maps counts to one float64 value per area row.

        Returns:
            sums, and number of values in each, float64 [group, key].
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
    """A view of pixels whose groups are resamples."""
