"""Masks as runs of ones, and conversions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import polars as pl

from evalengine.schemas.errors import InputError

from ..kernels.run_counts import encode
from ..kernels.run_extents import extents
from ..kernels.run_layout import Runs, joined, sliced, take_runs
from ..kernels.run_pixels import paint, scan
from ..kernels.run_transpose import transpose
from ..schemas.arrays import Array
from .columns import strings
from .ranges import Over, in_ranges, offsets_of


class Masks(msgspec.Struct, frozen=True, dict=True, eq=False):
    """Runs of ones of n masks, in column-major pixel order as in COCO.

    Attributes:
        start: int64 [n + 1], offsets of the runs of each mask.
        begin: uint32 [r], first pixel of each run.
        end: uint32 [r], pixel after the last; runs of a mask ascend and do not touch.
        height: int64 [n], pixels.
        width: int64 [n], pixels; height * width is below 2^32.
    """

    start: Array
    begin: Array
    end: Array
    height: Array
    width: Array

    def __len__(self) -> int:
        return int(self.height.size)

    @property
    def runs(self) -> Runs:
        """``start``, ``begin`` and ``end``, as kernels take them."""
        return self.start, self.begin, self.end

    @cached_property
    def _extents(self) -> tuple[Array, Array]:
        return extents(self.runs, self.height)

    def measure(self, over: Over | None) -> None:
        """Compute and cache areas and boxes of all masks, in parallel ranges."""

        def some(first: int, last: int) -> tuple[Array, Array]:
            return extents(part_of(self.runs, first, last), self.height[first:last])

        parts = in_ranges(over, self.start, some)
        self.__dict__["_extents"] = (
            np.concatenate([np.empty(0, np.int64), *(area for area, _ in parts)]),
            np.concatenate([np.empty((0, 4), np.float64), *(boxes for _, boxes in parts)]),
        )

    @property
    def area(self) -> Array:
        """Pixels of each mask, int64 [n]."""
        return self._extents[0]

    @property
    def boxes(self) -> Array:
        """xmin, ymin, xmax, ymax of the pixels' full extents, float64 [n, 4]; zeros if empty.

        As in pycocotools' ``toBbox``, a run that continues into another column makes the box as
        high as the image.
        """
        return self._extents[1]

    def take(self, rows: Array) -> Masks:
        """The masks at some rows (integer [k]), in their order."""
        return Masks(*take_runs(self.runs, rows), self.height[rows], self.width[rows])

    def slice(self, first: int, last: int) -> Masks:
        """The masks [first, last), sharing their runs."""
        return Masks(
            *sliced(part_of(self.runs, first, last)),
            self.height[first:last],
            self.width[first:last],
        )


def part_of(runs: Runs, first: int, last: int) -> Runs:
    """The masks [first, last), with offsets into the runs of all."""
    return runs[0][first : last + 1], runs[1], runs[2]


def concat(parts: Sequence[Masks]) -> Masks:
    """The masks of several parts, one after the other."""
    none = np.zeros(0, np.int64)
    return Masks(
        *joined([part.runs for part in parts]),
        np.concatenate([none, *(part.height for part in parts)]),
        np.concatenate([none, *(part.width for part in parts)]),
    )


def from_pixels(images: Sequence[Array]) -> Masks:
    """Convert pixel arrays to masks; nonzero pixels are set.

    Args:
        images: n arrays [height, width] of booleans or numbers.

    Raises:
        InputError: an array that is not two-dimensional, or has no or 2^32 pixels.
    """
    for i, image in enumerate(images):
        if image.ndim != 2 or not 0 < image.size < 1 << 32:
            raise InputError(
                f"image {i} has shape {image.shape}: a mask is an array of height x width pixels,"
                " fewer than 2^32.",
                code="image_misfit",
                image=i,
            )
    sizes = np.array([image.shape for image in images], np.int64).reshape(-1, 2)
    height, width = np.ascontiguousarray(sizes[:, 0]), np.ascontiguousarray(sizes[:, 1])
    none = np.zeros(0, np.uint8)
    pixel = np.concatenate([none, *((image != 0).view(np.uint8).ravel() for image in images)])
    return from_rows(scan(pixel, offsets_of(height * width)), height, width)


def from_rows(runs: Runs, height: Array, width: Array) -> Masks:
    """Convert runs in row-major pixel order to masks.

    Args:
        height: int64 [n].
        width: int64 [n].
    """
    return Masks(*transpose(runs, width, height), height, width)


def to_pixels(masks: Masks, i: int) -> Array:
    """Return the pixels of one mask, uint8 [height, width], 0 or 1."""
    return columns_of(masks, i, 0, int(masks.width[i]))


def columns_of(masks: Masks, i: int, left: int, right: int) -> Array:
    """Return the columns [left, right) of one mask, uint8 [height, right - left].

    All set pixels must be within these columns.
    """
    first, last = int(masks.start[i]), int(masks.start[i + 1])
    h = int(masks.height[i])
    before = np.uint32(left * h)
    pixels = paint(
        masks.begin[first:last] - before, masks.end[first:last] - before, h * (right - left)
    )
    return pixels.reshape(right - left, h).T


def to_rle(masks: Masks) -> pl.Series:
    """Convert to structs of ``size`` (height, width) and ``counts``, COCO's compressed string.

    The strings are identical to those of pycocotools' ``encode``.
    """
    offset, data = encode(masks.runs, masks.height * masks.width)
    size: Any = np.stack([masks.height, masks.width], axis=1)
    return pl.DataFrame(
        {
            "size": pl.Series(size, dtype=pl.Array(pl.Int64, 2)).cast(pl.List(pl.Int64)),
            "counts": strings(data, offset),
        }
    ).to_struct("mask")
