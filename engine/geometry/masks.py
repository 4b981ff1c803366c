"""Columns of masks; intersections, unions and boundaries."""

from __future__ import annotations

import numpy as np
import polars as pl

from evalengine.schemas.errors import InputError

from ..kernels.run_erosion import erode_lines
from ..kernels.run_layout import Runs, joined
from ..kernels.run_overlaps import overlaps
from ..kernels.run_sets import subtract, unite
from ..kernels.run_transpose import transpose
from ..schemas.arrays import Array
from .mask_columns import read_columns
from .mask_runs import Masks, concat, from_pixels, from_rows, part_of, to_pixels, to_rle
from .places import Origin, Place
from .ranges import Over, in_ranges, offsets_of

__all__ = [
    "Masks",
    "boundary",
    "boundary_depth",
    "concat",
    "different_sizes",
    "from_pixels",
    "from_rows",
    "intersections",
    "read_masks",
    "refuse_sizes",
    "to_pixels",
    "to_rle",
    "union_by",
]


def read_masks(
    column: pl.Series,
    *,
    side: str,
    over: Over | None = None,
    rows: Array | None = None,
    origin: Origin | None = None,
) -> Masks:
    """Parse a column of masks in any of the accepted forms.

    A struct of ``size`` (height, width) and ``counts``: COCO's compressed string, as text or
    binary, or a list of counts, column-major; or of ``size`` and ``runs`` (or ``rle_rowmajor``), a
    list of counts, row-major. A field ``order``, ``row`` or ``column``, overrides this. Or rows of
    pixels, of which nonzero ones are set.

    Args:
        over: runs ranges in parallel.
        rows: int64 [n], row numbers of the values in the table, for errors.

    Raises:
        InputError: a null, a size that is not two positive whole numbers or that has 2^32 pixels, a
            code that is malformed or does not fill its size, rows of pixels of different lengths,
            or any other dtype.
    """
    runs, height, width = read_columns(column, Place(side, column.name, rows, origin), over)
    return Masks(*runs, height, width)


def different_sizes(a: Masks, b: Masks, ia: Array, ib: Array) -> Array:
    """Return the indices of pairs whose masks differ in size, int64."""
    return np.flatnonzero((a.height[ia] != b.height[ib]) | (a.width[ia] != b.width[ib]))


def refuse_sizes(
    a: Masks, b: Masks, ia: Array, ib: Array, *, a_place: Place, b_place: Place
) -> None:
    """Raise if the masks of any pair differ in size.

    Args:
        ia: int [k], the mask of each pair in ``a``.
        ib: int [k], its partner in ``b``.
        a_place: location of the masks of ``a``, for errors.
        b_place: location of the masks of ``b``, for errors.

    Raises:
        InputError: names both columns, the number of pairs, and the first rows.
    """
    pairs = different_sizes(a, b, ia, ib)
    if not pairs.size:
        return
    shown = [
        f"{a_place.named(i)} is {a.height[i]} x {a.width[i]}, {b_place.named(j)} is"
        f" {b.height[j]} x {b.width[j]}"
        for i, j in zip(ia[pairs[:3]].tolist(), ib[pairs[:3]].tolist(), strict=True)
    ]
    several = "pair" if pairs.size == 1 else "pairs"
    raise InputError(
        f"{a_place.side.replace('_', ' ')} (column {a_place.column!r}) and"
        f" {b_place.side.replace('_', ' ')} (column {b_place.column!r}): {pairs.size:,} {several}"
        f" of masks of different size (height x width) on one datum, first (rows count from 0):"
        f" {'; '.join(shown)}. Masks of a datum must have the size of its image: bring one side to"
        " the other's.",
        code="sizes_differ",
        count=pairs.size,
    )


def union_by(masks: Masks, group: Array, n_groups: int) -> Masks:
    """Return the union of the masks of each group.

    Args:
        group: int32 [n], in [0, n_groups); members of a group are of equal size.
        n_groups: number of groups. A group without members becomes an empty mask of size 0 x 0.

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
            f" {other.size:,} such masks.",
            code="sizes_differ",
            count=other.size,
        )
    return Masks(*unite(masks.runs, group, n_groups), height, width)


def intersections(a: Masks, b: Masks, ia: Array, ib: Array, over: Over | None = None) -> Array:
    """Count the pixels that pairs of masks share, int64 [k].

    Args:
        ia: int32 [k], the mask of each pair in ``a``.
        ib: int32 [k], its partner in ``b``, of equal size.
        over: runs ranges in parallel.
    """
    ia, ib = np.asarray(ia, np.int32), np.asarray(ib, np.int32)
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


def boundary_depth(height: Array, width: Array, ratio: float) -> Array:
    """Return the width of the boundary of masks, pixels, int64; see :func:`boundary`."""
    depth: Array = np.maximum(np.rint(ratio * np.sqrt(height**2 + width**2)), 1).astype(np.int64)
    return depth


def boundary(masks: Masks, ratio: float = 0.02, over: Over | None = None) -> Masks:
    """Return the pixels of each mask within a distance of its outline, on the inner side.

    The mask minus its d-fold erosion by 3 x 3 pixels with zero padding; d is ``ratio`` times the
    image's diagonal, rounded half to even, at least 1. Source: Cheng et al., Boundary IoU, 2021,
    and its reference code's ``mask_to_boundary``.

    Args:
        ratio: width of the boundary as a share of the diagonal, above 0.
        over: runs ranges in parallel.
    """
    height, width = masks.height, masks.width
    depth = boundary_depth(height, width, ratio)

    def run(first: int, last: int) -> Runs:
        h, w, d = height[first:last], width[first:last], depth[first:last]
        own = part_of(masks.runs, first, last)
        # d erosions by 3 x 3 are one by a square of 2 d + 1: first down the columns, then along
        # the rows.
        rows = transpose(erode_lines(own, h, d), h, w)
        return subtract(own, transpose(erode_lines(rows, w, d), w, h))

    return Masks(*joined(in_ranges(over, masks.start, run)), height, width)
