"""Masks as runs of ones: sizes, areas, boxes, intersections, unions and boundaries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import polars as pl

from evalengine.schemas.errors import InputError

from ..kernels.run_counts import encode
from ..kernels.run_erosion import erode_lines
from ..kernels.run_extents import extents
from ..kernels.run_layout import Runs, joined, sliced, take_runs
from ..kernels.run_overlaps import overlaps
from ..kernels.run_pixels import paint, scan
from ..kernels.run_sets import subtract, unite
from ..kernels.run_transpose import transpose
from .columns import strings
from .mask_columns import read_columns
from .places import Place
from .ranges import Array, Over, in_ranges, offsets_of


class Masks(msgspec.Struct, frozen=True, dict=True, eq=False):
    """Runs of ones of n masks. Pixels are counted down the columns, as in COCO.

    Attributes:
        start: int64 [n + 1], offsets of the runs of each mask.
        begin: uint32 [r], first pixel of each run.
        end: uint32 [r], the pixel after its last; runs of a mask ascend and do not touch.
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

    @property
    def area(self) -> Array:
        """Pixels of each mask, int64 [n]."""
        return self._extents[0]

    @property
    def boxes(self) -> Array:
        """xmin, ymin, xmax, ymax of the pixels' full extents, float64 [n, 4]; zeros if empty.

        As pycocotools' ``toBbox`` has it: a run that goes on into another column makes the box as
        high as the image.
        """
        return self._extents[1]

    def take(self, rows: Array) -> Masks:
        """The masks at some rows (integer [k]), in their order."""
        return Masks(*take_runs(self.runs, rows), self.height[rows], self.width[rows])

    def slice(self, first: int, last: int) -> Masks:
        """The masks [first, last), sharing their runs."""
        return Masks(
            *sliced(_range(self.runs, first, last)),
            self.height[first:last],
            self.width[first:last],
        )


def read_masks(
    column: pl.Series, *, side: str, over: Over | None = None, rows: Array | None = None
) -> Masks:
    """Masks from a column in any of the accepted forms.

    A struct of ``size`` (height, width) and ``counts``: COCO's compressed string, as text or
    binary, or a list of counts, down the columns; or of ``size`` and ``runs`` (or
    ``rle_rowmajor``), a list of counts along the rows; a field ``order``, ``row`` or ``column``,
    says otherwise. Or rows of pixels, those that are not 0 being set.

    Args:
        column: n values.
        side: the table it is of, for errors.
        over: runs ranges side by side.
        rows: int64 [n], row numbers of the values in the user's table, for errors.

    Raises:
        InputError: a null, a size that is not two positive whole numbers or that has 2^32 pixels,
            a code that is malformed or does not fill its size, rows of pixels of different
            lengths, or a dtype that is none of these.
    """
    runs, height, width = read_columns(column, Place(side, column.name, rows), over)
    return Masks(*runs, height, width)


def _range(runs: Runs, first: int, last: int) -> Runs:
    return runs[0][first : last + 1], runs[1], runs[2]


def concat(parts: Sequence[Masks]) -> Masks:
    """The masks of several parts, one after the other."""
    none = np.zeros(0, np.int64)
    return Masks(
        *joined([part.runs for part in parts]),
        np.concatenate([none, *(part.height for part in parts)]),
        np.concatenate([none, *(part.width for part in parts)]),
    )


def different_sizes(a: Masks, b: Masks, ia: Array, ib: Array) -> Array:
    """Which pairs are of masks of different size: indices of the pairs, int64."""
    return np.flatnonzero((a.height[ia] != b.height[ib]) | (a.width[ia] != b.width[ib]))


def refuse_sizes(
    a: Masks, b: Masks, ia: Array, ib: Array, *, a_place: Place, b_place: Place
) -> None:
    """Raise if the masks of any pair are of different size.

    Args:
        a: masks of one side.
        b: masks of the other.
        ia: int [k], the mask of each pair in ``a``.
        ib: int [k], its partner in ``b``.
        a_place: where the masks of ``a`` stand, as errors name it.
        b_place: where those of ``b`` stand.

    Raises:
        InputError: naming both columns, how many pairs, and the first rows.
    """
    pairs = different_sizes(a, b, ia, ib)
    if not pairs.size:
        return
    shown = [
        f"row {a_place.row(i)} is {a.height[i]} x {a.width[i]}, row {b_place.row(j)} is"
        f" {b.height[j]} x {b.width[j]}"
        for i, j in zip(ia[pairs[:3]].tolist(), ib[pairs[:3]].tolist(), strict=True)
    ]
    several = "pair" if pairs.size == 1 else "pairs"
    raise InputError(
        f"{a_place.side.replace('_', ' ')} (column {a_place.column!r}) and"
        f" {b_place.side.replace('_', ' ')} (column {b_place.column!r}): {pairs.size:,} {several} of"
        f" masks of different size (height x width) on one datum, first (rows count from 0):"
        f" {'; '.join(shown)}. Masks of a datum must have the size of its image: bring one side to"
        " the other's."
    )


def union_by(masks: Masks, group: Array, n_groups: int) -> Masks:
    """The union of the masks of each group.

    Args:
        masks: n masks.
        group: int32 [n], in [0, n_groups); members of a group are of equal size.
        n_groups: how many masks to make. A group without members is an empty mask of size 0 x 0.

    Raises:
        InputError: members of different size.
    """
    height, width = np.zeros(n_groups, np.int64), np.zeros(n_groups, np.int64)
    height[group], width[group] = masks.height, masks.width
    other = np.flatnonzero((height[group] != masks.height) | (width[group] != masks.width))
    if other.size:
        i = int(other[0])
        g = int(group[i])
        raise InputError(
            f"masks of different size cannot be united: mask {i} is {masks.height[i]} x"
            f" {masks.width[i]} (height x width), others of its group are {height[g]} x {width[g]};"
            f" {other.size:,} such masks."
        )
    return Masks(*unite(masks.runs, group, n_groups), height, width)


def intersections(a: Masks, b: Masks, ia: Array, ib: Array, over: Over | None = None) -> Array:
    """Pixels that pairs of masks share.

    Args:
        a: masks of one side.
        b: masks of the other.
        ia: int32 [k], the mask of each pair in ``a``.
        ib: int32 [k], its partner in ``b``, of equal size.
        over: runs ranges side by side.

    Returns:
        int64 [k].
    """
    work = offsets_of(np.diff(a.start)[ia] + np.diff(b.start)[ib] + 8)
    boxes, other_boxes = a.boxes, b.boxes
    parts = in_ranges(
        over,
        work,
        lambda first, last: overlaps(
            a.runs, boxes, b.runs, other_boxes, ia[first:last], ib[first:last]
        ),
    )
    return np.concatenate([np.zeros(0, np.int64), *parts])


def boundary(masks: Masks, ratio: float = 0.02, over: Over | None = None) -> Masks:
    """The pixels of each mask that lie within a distance of its outline, on its inner side.

    The mask without what is left of it after d erosions by 3 x 3 pixels, what lies outside of the
    image being zero; d is ``ratio`` times the image's diagonal, rounded half to even, at least 1.
    Source: Cheng et al., Boundary IoU, 2021, and its reference code's ``mask_to_boundary``.

    Args:
        masks: n masks.
        ratio: width of the boundary as a share of the diagonal, above 0.
        over: runs ranges side by side.
    """
    height, width = masks.height, masks.width
    depth = np.maximum(np.rint(ratio * np.sqrt(height**2 + width**2)), 1).astype(np.int64)

    def run(first: int, last: int) -> Runs:
        h, w, d = height[first:last], width[first:last], depth[first:last]
        own = _range(masks.runs, first, last)
        # d erosions by 3 x 3 are one by a square of 2 d + 1: first down the columns, then along
        # the rows.
        rows = transpose(erode_lines(own, h, d), h, w)
        return subtract(own, transpose(erode_lines(rows, w, d), w, h))

    return Masks(*joined(in_ranges(over, masks.start, run)), height, width)


def from_pixels(images: Sequence[Array]) -> Masks:
    """Masks from pixels: those that are not 0 are set.

    Args:
        images: n arrays [height, width] of booleans or numbers.

    Raises:
        InputError: an array that is not two-dimensional, or has no or 2^32 pixels.
    """
    for i, image in enumerate(images):
        if image.ndim != 2 or not 0 < image.size < 1 << 32:
            raise InputError(
                f"image {i} has shape {image.shape}: a mask is an array of height x width pixels,"
                " fewer than 2^32."
            )
    sizes = np.array([image.shape for image in images], np.int64).reshape(-1, 2)
    height, width = np.ascontiguousarray(sizes[:, 0]), np.ascontiguousarray(sizes[:, 1])
    none = np.zeros(0, np.uint8)
    pixel = np.concatenate([none, *((image != 0).view(np.uint8).ravel() for image in images)])
    return from_rows(scan(pixel, offsets_of(height * width)), height, width)


def from_rows(runs: Runs, height: Array, width: Array) -> Masks:
    """Masks from runs along the rows.

    Args:
        runs: of n masks, pixels being counted row by row.
        height: int64 [n].
        width: int64 [n].
    """
    return Masks(*transpose(runs, width, height), height, width)


def to_pixels(masks: Masks, i: int) -> Array:
    """The pixels of one mask, uint8 [height, width]: 1 where it is set."""
    first, last = int(masks.start[i]), int(masks.start[i + 1])
    h, w = int(masks.height[i]), int(masks.width[i])
    return paint(masks.begin[first:last], masks.end[first:last], h * w).reshape(w, h).T


def to_rle(masks: Masks) -> pl.Series:
    """The masks as structs of ``size`` (height, width) and ``counts``, COCO's compressed string.

    The strings are those of pycocotools' ``encode``, character for character.
    """
    offset, data = encode(masks.runs, masks.height * masks.width)
    size: Any = np.stack([masks.height, masks.width], axis=1)
    return pl.DataFrame(
        {
            "size": pl.Series(size, dtype=pl.Array(pl.Int64, 2)).cast(pl.List(pl.Int64)),
            "counts": strings(data, offset),
        }
    ).to_struct("mask")
