"""Masks as run-length codes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..kernels.masks import (
    CUT,
    LONG,
    MALFORMED,
    NEGATIVE,
    SHORT,
    Room,
    Runs,
    encode,
    erode_lines,
    joined,
    mask_extents,
    mask_overlaps,
    numbers_of,
    paint,
    scan,
    sliced,
    subtract,
    take_runs,
    transpose,
    unite,
)
from ..schemas.arrays import Array
from ..schemas.errors import InputError
from .columns import (
    Origin,
    Over,
    Place,
    as_example,
    concatenated,
    depth_of,
    flat,
    in_ranges,
    offsets_of,
    text_bytes,
    text_column,
)

# Masks as runs of ones, and conversions.


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
        return mask_extents(self.runs, self.height)

    def measure(self, over: Over | None) -> None:
        """Compute and cache areas and boxes of all masks, in parallel ranges."""

        def some(first: int, last: int) -> tuple[Array, Array]:
            return mask_extents(part_of(self.runs, first, last), self.height[first:last])

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
            "counts": text_column(data, offset),
        }
    ).to_struct("mask")


# Columns of masks, in each of the forms users have, as runs down the columns.

Read = tuple[Runs, Array, Array]
"""Runs, heights and widths."""

_CODES = {"counts": "column", "runs": "row", "rle_rowmajor": "row", "rle": "column"}
"""Field with a code -> default order of pixels without a field ``order``."""

_FORMS = (
    "A mask is a struct of 'size' ([height, width]) and 'counts' (COCO's string or list of counts)"
    " or 'runs' (counts along the rows), or a list of rows of pixels."
)

_FAULTS = {
    MALFORMED: (
        "code_malformed",
        "with characters that no compressed run-length code has",
        "COCO's codes have the characters '0' to 'o' only; one that went through another encoding"
        " or was quoted twice is damaged.",
    ),
    CUT: (
        "code_cut",
        "with a code that ends inside a number",
        "The string was cut; export it again.",
    ),
    NEGATIVE: ("run_negative", "with a negative run", "Counts are lengths of runs, zeros first."),
    SHORT: (
        "runs_short",
        "with a run-length code that does not fill its size",
        "The counts must add up to height * width; check that size is [height, width].",
    ),
    LONG: (
        "runs_long",
        "with a run-length code of more pixels than its size has",
        "The counts must add up to height * width; check that size is [height, width].",
    ),
}


def read_columns(column: pl.Series, place: Place, over: Over | None) -> Read:
    """Parse a column of masks to runs, heights and widths; see :func:`evalengine.geometry.masks`.

    Raises:
        InputError: as in ``read_masks``.
    """
    place.refuse(
        "null_values",
        column.is_null().to_numpy(),
        "without a mask (null)",
        "Remove these rows, or give masks.",
    )
    if isinstance(column.dtype, pl.Struct):
        return _coded(column, place, over)
    levels, inner = depth_of(column.dtype)
    if levels == 2 and (inner.is_integer() or inner == pl.Boolean):
        return _pixels(column, place, over)
    raise place.error("wrong_dtype", f" has dtype {column.dtype}. {_FORMS}")


def _sizes(size: pl.Series, place: Place) -> tuple[Array, Array]:
    """Heights and widths, once every one is a pair of positive whole numbers."""
    levels, inner = depth_of(size.dtype)
    hint = "Write size as [height, width], two positive whole numbers of pixels."
    if levels != 1 or not inner.is_numeric():
        raise place.error("wrong_dtype", f": 'size' has dtype {size.dtype}. {hint}", field="size")
    values, (offset,) = flat(size)
    value_of = size.__getitem__
    place.refuse(
        "mask_size_misfit", np.diff(offset) != 2, "whose size is not two numbers", hint, value_of
    )
    number = values.cast(pl.Float64).fill_null(0).to_numpy().reshape(-1, 2)
    valid = (number >= 1) & (number == np.floor(number)) & (number < 1 << 32)
    place.refuse(
        "mask_size_misfit",
        ~valid.all(axis=1),
        "whose size is not two positive whole numbers",
        hint,
        value_of,
    )
    pixels = number[:, 0] * number[:, 1]
    place.refuse(
        "too_many_pixels",
        pixels >= 1 << 32,
        "whose size has 2^32 pixels or more",
        "Cut the image into tiles, one datum each.",
        value_of,
    )
    height, width = number[:, 0].astype(np.int64), number[:, 1].astype(np.int64)
    return height, width


def _coded(column: pl.Series, place: Place, over: Over | None) -> Read:
    fields = {field.name.lower(): field.name for field in column.dtype.fields}  # type: ignore[attr-defined]
    codes = [name for name in _CODES if name in fields]
    if "size" not in fields or len(codes) != 1:
        raise place.error("wrong_dtype", f" is a struct of {', '.join(fields.values())}. {_FORMS}")
    parts = column.struct
    code = parts.field(fields[codes[0]])
    for name, part in (("size", parts.field(fields["size"])), (codes[0], code)):
        place.refuse(
            "null_values",
            part.is_null().to_numpy(),
            f"without {name!r} (null)",
            "Remove these rows, or fill it.",
            field=name,
        )
    height, width = _sizes(parts.field(fields["size"]), place)
    order = parts.field(fields["order"]) if "order" in fields else None
    by_row = _by_row(order, _CODES[codes[0]], column.len(), place)
    pixels = height * width
    room = _read(code, codes[0], pixels, place, over)
    for kind, (fault, what, hint) in _FAULTS.items():
        place.refuse(
            fault,
            room.fault == kind,
            what,
            hint,
            lambda i: f"size {height[i]} x {width[i]}, {as_example(code[i])!r}",
        )
    return _turned(room.runs(), by_row, height, width, over), height, width


def _read(code: pl.Series, name: str, pixels: Array, place: Place, over: Over | None) -> Room:
    """The runs of codes, in a room that all threads write to."""
    packed = code.dtype in (pl.String, pl.Binary)
    values, offset = text_bytes(code) if packed else _counts(code, name, place)
    if packed:
        room = Room(
            concatenated(over, offset, lambda a, b: numbers_of(values, offset[a : b + 1]), np.int64)
        )
    else:
        room = Room(np.diff(offset))
    read = room.decode if packed else room.from_counts
    in_ranges(over, offset, lambda first, last: read(first, last, values, offset, pixels))
    return room


def _counts(code: pl.Series, name: str, place: Place) -> tuple[Array, Array]:
    """Values and offsets of listed counts."""
    levels, inner = depth_of(code.dtype)
    if levels != 1 or not inner.is_integer():
        raise place.error("wrong_dtype", f": {name!r} has dtype {code.dtype}. {_FORMS}", field=name)
    values, (offset,) = flat(code)
    if values.null_count():
        counts = np.add.reduceat(
            np.r_[values.is_null().to_numpy(), False], np.minimum(offset[:-1], len(values))
        )
        wrong = (counts > 0) & (np.diff(offset) > 0)
        place.refuse(
            "null_in_list",
            wrong,
            f"with nulls in {name!r}",
            "Counts are whole numbers.",
            field=name,
        )
    return values.cast(pl.Int64).to_numpy(), offset


def _by_row(order: pl.Series | None, usual: str, n: int, place: Place) -> Array:
    """Return flags for codes whose pixels are counted along the rows."""
    if order is None:
        return np.full(n, usual == "row")
    orders = order.fill_null(usual) if order.dtype == pl.String else order.cast(pl.String)
    place.refuse(
        "unknown_name",
        ~orders.is_in(["row", "column"]).to_numpy(),
        "whose 'order' is neither 'row' nor 'column'",
        "Write the order of the pixels: along the rows, or down the columns.",
        orders.__getitem__,
    )
    return (orders == "row").to_numpy()


def _turned(runs: Runs, by_row: Array, height: Array, width: Array, over: Over | None) -> Runs:
    """The runs with those along rows turned into runs down columns."""
    if not by_row.any():
        return runs
    if not by_row.all():
        rows, columns = np.flatnonzero(by_row), np.flatnonzero(~by_row)
        turned = _turned(
            take_runs(runs, rows), np.ones(rows.size, np.bool_), height[rows], width[rows], over
        )
        merged = joined([turned, take_runs(runs, columns)])
        return take_runs(merged, np.argsort(np.r_[rows, columns]))

    def run(first: int, last: int) -> Runs:
        part = runs[0][first : last + 1], runs[1], runs[2]
        return transpose(part, width[first:last], height[first:last])

    return joined(in_ranges(over, runs[0], run))


def _pixels(column: pl.Series, place: Place, over: Over | None) -> Read:
    values, (image, row) = flat(column)
    height, lengths = np.diff(image), np.diff(row)
    hint = "Each row of pixels must be as long as the others."
    place.refuse("geometry_empty", height == 0, "of masks without pixels", hint)
    first = lengths[image[:-1]]
    off = offsets_of(lengths != np.repeat(first, height))[image]
    place.refuse(
        "pixels_uneven", np.diff(off) > 0, "of masks whose rows of pixels differ in length", hint
    )
    place.refuse("geometry_empty", first == 0, "of masks without pixels", hint)
    offset = row[image]
    if values.null_count():
        nulls = offsets_of(values.is_null().to_numpy())[offset]
        place.refuse(
            "null_in_list", np.diff(nulls) > 0, "with nulls among the pixels", "Pixels are 0 or 1."
        )
    width = np.ascontiguousarray(first)
    pixel: Any = (values if values.dtype == pl.Boolean else values != 0).cast(pl.UInt8).to_numpy()

    def run(first: int, last: int) -> Runs:
        part = offset[first : last + 1]
        h, w = height[first:last], width[first:last]
        return transpose(scan(pixel, part), w, h)

    return joined(in_ranges(over, offset, run)), height, width


# Columns of masks; intersections, unions and boundaries.


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
    examples = [
        f"{a_place.named(i)} is {a.height[i]} x {a.width[i]}, {b_place.named(j)} is"
        f" {b.height[j]} x {b.width[j]}"
        for i, j in zip(ia[pairs[:3]].tolist(), ib[pairs[:3]].tolist(), strict=True)
    ]
    several = "pair" if pairs.size == 1 else "pairs"
    raise InputError(
        f"{a_place.side.replace('_', ' ')} (column {a_place.column!r}) and"
        f" {b_place.side.replace('_', ' ')} (column {b_place.column!r}): {pairs.size:,} {several}"
        f" of masks of different size (height x width) on one datum, first (rows count from 0):"
        f" {'; '.join(examples)}. Masks of a datum must have the size of its image: bring one side"
        " to the other's.",
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

    def shared(first: int, last: int) -> Array:
        return mask_overlaps(a.runs, boxes, b.runs, other_boxes, ia[first:last], ib[first:last])

    return concatenated(over, work, shared, np.int64)


def boundary_depth(height: Array, width: Array, ratio: float) -> Array:
    """Return the width of the boundary of masks, pixels, int64; see :func:`boundary`."""
    return np.maximum(np.rint(ratio * np.sqrt(height**2 + width**2)), 1).astype(np.int64)


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
        runs = part_of(masks.runs, first, last)
        # d erosions by 3 x 3 are one by a square of 2 d + 1: first down the columns, then along
        # the rows.
        rows = transpose(erode_lines(runs, h, d), h, w)
        return subtract(runs, transpose(erode_lines(rows, w, d), w, h))

    return Masks(*joined(in_ranges(over, masks.start, run)), height, width)
