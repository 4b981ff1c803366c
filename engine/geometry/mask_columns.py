"""Columns of masks, in each of the forms users have, as runs down the columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from ..kernels.run_counts import CUT, LONG, MALFORMED, NEGATIVE, SHORT, Room, numbers_of
from ..kernels.run_layout import Runs, joined, take_runs
from ..kernels.run_pixels import scan
from ..kernels.run_transpose import transpose
from ..schemas.arrays import Array
from .columns import characters, depth_of, flat
from .places import Place, shown
from .ranges import Over, in_ranges, offsets_of

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
    return _reader(column.dtype, place)(column, place, over)


def _reader(dtype: pl.DataType, place: Place) -> Callable[[pl.Series, Place, Over | None], Read]:
    if isinstance(dtype, pl.Struct):
        return _coded
    levels, inner = depth_of(dtype)
    if levels == 2 and (inner.is_integer() or inner == pl.Boolean):
        return _pixels
    raise place.error("wrong_dtype", f" has dtype {dtype}. {_FORMS}")


def _sizes(size: pl.Series, place: Place) -> tuple[Array, Array]:
    """Heights and widths, once every one is a pair of positive whole numbers."""
    levels, inner = depth_of(size.dtype)
    hint = "Write size as [height, width], two positive whole numbers of pixels."
    if levels != 1 or not inner.is_numeric():
        raise place.error("wrong_dtype", f": 'size' has dtype {size.dtype}. {hint}", field="size")
    values, (offset,) = flat(size)
    told = size.__getitem__
    place.refuse(
        "mask_size_misfit", np.diff(offset) != 2, "whose size is not two numbers", hint, told
    )
    number = values.cast(pl.Float64).fill_null(0).to_numpy().reshape(-1, 2)
    whole = (number >= 1) & (number == np.floor(number)) & (number < 1 << 32)
    place.refuse(
        "mask_size_misfit",
        ~whole.all(axis=1),
        "whose size is not two positive whole numbers",
        hint,
        told,
    )
    pixels = number[:, 0] * number[:, 1]
    place.refuse(
        "too_many_pixels",
        pixels >= 1 << 32,
        "whose size has 2^32 pixels or more",
        "Cut the image into tiles, each a datum of its own.",
        told,
    )
    height, width = number[:, 0].astype(np.int64), number[:, 1].astype(np.int64)
    return height, width


def _coded(column: pl.Series, place: Place, over: Over | None) -> Read:
    """Structs of a size and a code."""
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
            lambda i: f"size {height[i]} x {width[i]}, {shown(code[i])!r}",
        )
    return _turned(room.runs(), by_row, height, width, over), height, width


def _read(code: pl.Series, name: str, pixels: Array, place: Place, over: Over | None) -> Room:
    """The runs of codes, in a room that all threads write to."""
    packed = code.dtype in (pl.String, pl.Binary)
    values, offset = characters(code) if packed else _counts(code, name, place)
    if packed:
        count = in_ranges(over, offset, lambda a, b: numbers_of(values, offset[a : b + 1]))
        room = Room(np.concatenate([np.zeros(0, np.int64), *count]))
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
    said = order.fill_null(usual) if order.dtype == pl.String else order.cast(pl.String)
    place.refuse(
        "order_unknown",
        ~said.is_in(["row", "column"]).to_numpy(),
        "whose 'order' is neither 'row' nor 'column'",
        "Say in which order the pixels are counted: along the rows, or down the columns.",
        said.__getitem__,
    )
    return (said == "row").to_numpy()


def _turned(runs: Runs, by_row: Array, height: Array, width: Array, over: Over | None) -> Runs:
    """The runs with those along rows turned into runs down columns."""
    if not by_row.any():
        return runs
    if not by_row.all():
        rows, columns = np.flatnonzero(by_row), np.flatnonzero(~by_row)
        turned = _turned(
            take_runs(runs, rows), np.ones(rows.size, np.bool_), height[rows], width[rows], over
        )
        both = joined([turned, take_runs(runs, columns)])
        return take_runs(both, np.argsort(np.r_[rows, columns]))

    def run(first: int, last: int) -> Runs:
        part = runs[0][first : last + 1], runs[1], runs[2]
        return transpose(part, width[first:last], height[first:last])

    return joined(in_ranges(over, runs[0], run))


def _pixels(column: pl.Series, place: Place, over: Over | None) -> Read:
    """Lists of rows of pixels."""
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
