"""Columns of geometry: boxes, oriented and 3-D boxes, keypoints, polygons and masks."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from ..geometry.columns import flat
from ..schemas import contract
from ..schemas.arrays import Array
from ..schemas.contract import (
    ANGLE,
    BOX3D,
    GROUND_TRUTHS,
    KEYPOINTS,
    MASK,
    OBB,
    POLYGON,
    PREDICTIONS,
    RASTER,
    RASTER_BAND,
    RASTER_VALUE,
    YAW,
    Column,
)
from ..schemas.errors import unknown
from ..schemas.wording import option, sql_name
from . import dtypes
from .checks import REPAIR, Check
from .problems import Note, note_of
from .recognise import Finder, Naming

# Boxes in all accepted forms: corners, corner and extent, centre and extent, one list.
# Given extents are kept too (``box_width, box_height``), since ``xmax - xmin`` may round.

BOX_FORMATS = ("xyxy", "xywh", "cxcywh")
CORNERS = (contract.XMIN, contract.YMIN, contract.XMAX, contract.YMAX)
CORNER_NAMES = tuple(column.name for column in CORNERS)
BOX_NAMES = (*CORNER_NAMES, "box_width", "box_height")
LENGTH = "__bbox_length"
"""Helper column: length of a list box; checked, then dropped."""

_X0Y0X1Y1 = ("x0", "y0", "x1", "y1")
_ORIGINS = (("x", "y"), ("bbox_x", "bbox_y"), ("box_x", "box_y"))
_CENTRES = (
    ("cx", "cy"),
    ("x_center", "y_center"),
    ("xcenter", "ycenter"),
    ("center_x", "center_y"),
    ("xc", "yc"),
)
_EXTENTS = (
    ("w", "h"),
    ("bbox_width", "bbox_height"),
    ("bbox_w", "bbox_h"),
    ("box_w", "box_h"),
    ("width", "height"),
)


def iou_with(ending: str) -> pl.Expr:
    """IoU of boxes and others, whose columns have an ending."""
    low = [pl.max_horizontal(f"{n}min", f"{n}min{ending}") for n in "xy"]
    high = [pl.min_horizontal(f"{n}max", f"{n}max{ending}") for n in "xy"]
    shared = (high[0] - low[0]).clip(0) * (high[1] - low[1]).clip(0)
    ours, theirs = (
        (pl.col(f"xmax{end}") - pl.col(f"xmin{end}"))
        * (pl.col(f"ymax{end}") - pl.col(f"ymin{end}"))
        for end in ("", ending)
    )
    return shared / (ours + theirs - shared)


def find_boxes(find: Finder, box_format: str | None, *, needed: bool = True) -> Naming:
    """Recognise a table's boxes; problems are added to ``find.problems``.

    Args:
        box_format: content of a list column: xyxy, xywh or cxcywh; with the last, columns x and y
            are centres.
        needed: whether a table without boxes is a problem; otherwise incomplete boxes, and lists
            without a box_format, are ignored.
    """
    if box_format is not None and box_format not in BOX_FORMATS:
        raise unknown("box_format", box_format, BOX_FORMATS)
    problems_before = len(find.problems)
    quadruple = four_columns(find)
    bbox = find.find(contract.BBOX)
    if quadruple is None and not needed:
        del find.problems[problems_before:]
        if bbox is None or (box_format is None and not isinstance(find.schema[bbox], pl.Struct)):
            message = (
                f"{find.side.replace('_', ' ')}: column {bbox!r} is not read, since "
                f"{option('box_format')} does not give its order; the polygons or masks are."
            )
            return Naming(notes=[Note("unread_column", message)] if bbox is not None else [])
    if quadruple is None and bbox is None:
        _nothing(find)
        return Naming()
    if quadruple is None:
        assert bbox is not None
        return _from_one_column(find, bbox, box_format)
    form, names = quadruple
    centred = form == "xywh" and box_format == "cxcywh" and "min" not in names[0].casefold()
    boxes = _from_four(find, "cxcywh" if centred else form, names)
    if centred:
        boxes.notes.append(
            Note(
                "centred_boxes",
                f"{find.side}: columns {names[0]!r} and {names[1]!r} are read as"
                " centres, since box_format is cxcywh.",
            )
        )
    if bbox is not None:
        used = ", ".join(names)
        boxes.notes.append(
            Note(
                "unused_column",
                f"{find.side}: column {bbox!r} is not used; the boxes are those of {used}.",
            )
        )
    return boxes


def four_columns(find: Finder) -> tuple[str, tuple[str, ...]] | None:
    """Return the four columns that contain boxes and their form, or None."""
    columns = {name: find.exact(name) for name in BOX_NAMES}
    corners = columns["xmin"], columns["ymin"], columns["xmax"], columns["ymax"]
    if not any(corners):
        layout = _pair(find, (_X0Y0X1Y1,))
        if layout and not find.candidates(("x2", "y2")):
            find.used.update(layout)
            return "xyxy", layout
    for column in CORNERS:
        if columns[column.name] is None:
            columns[column.name] = find.by_alias(column)
    start = _both(columns["xmin"], columns["ymin"])
    end = _both(columns["xmax"], columns["ymax"])
    if start and end:
        extents = _both(columns["box_width"], columns["box_height"])
        return "xyxy", start + end + (extents or ())
    form = "xywh"
    start = start or _pair(find, _ORIGINS)
    if start is None:
        form, start = "cxcywh", _pair(find, _CENTRES)
    if start is None or columns["xmax"] or columns["ymax"]:
        _incomplete(find, columns)
        return None
    extent = _both(columns["box_width"], columns["box_height"]) or _extent(find)
    if extent is None:
        _incomplete(find, columns)
        return None
    find.used.update(start + extent)
    return form, start + extent


def _both(first: str | None, second: str | None) -> tuple[str, ...] | None:
    return (first, second) if first is not None and second is not None else None


def _pair(
    find: Finder, pairs: Sequence[tuple[str, ...]], *, numeric: bool = False
) -> tuple[str, ...] | None:
    """The first tuple of names of which every one is an unclaimed column."""
    for names in pairs:
        columns = []
        for name in names:
            candidates = find.candidates((name,))
            if len(candidates) != 1:
                break
            columns += candidates
        else:
            if not numeric or all(find.schema[name].is_numeric() for name in columns):
                return tuple(columns)
    return None


def _extent(find: Finder) -> tuple[str, ...] | None:
    """Width and height of the boxes; two pairs of them are a problem, not a guess."""
    pairs = [pair for names in _EXTENTS if (pair := _pair(find, (names,)))]
    if len(pairs) > 1:
        first, second = pairs[0], pairs[1]
        extent = {first[0]: "box_width", first[1]: "box_height"}
        find.refuse(
            "box_width",
            f"columns {first[0]!r}, {first[1]!r} and {second[0]!r}, {second[1]!r} could each "
            f"be the box's extent. To choose, write {option('columns', extent)} or the same "
            f"with {second[0]!r}, {second[1]!r}.",
            "ambiguous_column",
            columns=[*first, *second],
        )
    return pairs[0] if pairs else None


def _incomplete(find: Finder, columns: dict[str, str | None]) -> None:
    """Handle incomplete corners: release them, or report the missing ones."""
    here = [name for name in CORNER_NAMES if columns[name] is not None]
    if here and not find.candidates((contract.BBOX.name, *contract.BBOX.aliases)):
        for column in CORNERS:
            if columns[column.name] is None:
                find.missing(column)


def _nothing(find: Finder) -> None:
    if any(problem.column in CORNER_NAMES for problem in find.problems):
        return
    available = ", ".join(find.schema) or "none"
    odd = find.candidates(("segmentation", "mask", "polygon", "masks", "counts"))
    more = (
        f" Column {odd[0]!r} has dtype {find.schema[odd[0]]}, which is read neither as a polygon"
        " (rings of x, y; WKB; WKT) nor as a mask (a struct of size and counts)."
        if odd
        else ""
    )
    find.refuse(
        "xmin",
        "no boxes: columns 'xmin', 'ymin', 'xmax', 'ymax' are missing. Expected these four, "
        f"or x, y, width, height, or one list column bbox with {option('box_format')}; or a "
        f"column polygon, mask or raster. Columns there: {available}. If they have other names, "
        f"write {option('columns', {'mine': 'xmin', '...': ''})}.{more}",
        "geometry_missing",
    )


def _from_four(
    find: Finder, form: str, names: tuple[str, ...], column: Callable[[str], pl.Expr] = pl.col
) -> Naming:
    """Make boxes from four columns (six if corners come with their extent)."""
    last = CORNER_NAMES[2:] if form == "xyxy" else ("box_width", "box_height")
    targets = (*CORNER_NAMES[:2], *last, "box_width", "box_height")
    parts, recognised = [], {}
    for name, target in zip(names, targets, strict=False):
        number, dtype = Column(target, "number", ""), find.schema[name]
        if dtypes.canonical_dtype(number, dtype) is None:
            find.refuse_dtype(number, name)
        else:
            parts.append(dtypes.cast(column(name), dtype, pl.Float64()))
        if name != target:
            recognised[name] = target
    if form == "cxcywh":
        recognised |= {names[0]: "xmin, xmax", names[1]: "ymin, ymax"}
    return Naming(_canonical(form, parts) if len(parts) == len(names) else {}, recognised)


def _numbers(find: Finder, names: Sequence[str], target: str) -> list[pl.Expr]:
    """Return columns as Float64; none if one is not numeric, which is a problem of ``target``."""
    parts = []
    for name in names:
        column = Column(name, "number", "")
        if dtypes.canonical_dtype(column, find.schema[name]) is None:
            message = dtypes.wrong_type(column, name, find.schema[name])
            find.refuse(target, message, "wrong_dtype", columns=[name])
        else:
            parts.append(dtypes.cast(pl.col(name), find.schema[name], pl.Float64()))
    return parts if len(parts) == len(names) else []


def _canonical(form: str, parts: Sequence[pl.Expr]) -> dict[str, pl.Expr]:
    """Expressions of the canonical box columns from four (or six) numbers."""
    a, b, c, d, *extents = parts
    if form == "xyxy":
        exprs = dict(zip(CORNER_NAMES, (a, b, c, d), strict=True))
        return exprs | dict(zip(("box_width", "box_height"), extents, strict=False))
    if form == "cxcywh":
        a, b = a - c / 2, b - d / 2
    return {"xmin": a, "ymin": b, "xmax": a + c, "ymax": b + d, "box_width": c, "box_height": d}


def _from_one_column(find: Finder, bbox: str, box_format: str | None) -> Naming:
    dtype = find.schema[bbox]
    if isinstance(dtype, pl.Struct):
        return _from_struct(find, bbox, dtype)
    recognised = {bbox: ", ".join(CORNER_NAMES)}
    if dtype == pl.Null:
        return Naming(dict.fromkeys(CORNER_NAMES, pl.col(bbox).cast(pl.Float64)), recognised)
    inner = dtypes.element(dtype) if isinstance(dtype, (pl.List, pl.Array)) else pl.String()
    if not isinstance(dtype, (pl.List, pl.Array)) or not (inner.is_numeric() or inner == pl.Null):
        find.refuse_dtype(contract.BBOX, bbox)
        return Naming()
    if isinstance(dtype, pl.Array) and dtype.shape != (4,):
        message = f"column {bbox!r} contains arrays of shape {dtype.shape}; a box is four numbers."
        find.refuse("bbox", message, "not_four_numbers")
        return Naming()
    if box_format is None:
        find.refuse(
            "bbox",
            f"column {bbox!r} contains four numbers of unknown order: write "
            f"{option('box_format', 'xywh')} (left, top, width, height, as in COCO), "
            f"{option('box_format', 'xyxy')} (left, top, right, bottom) or "
            f"{option('box_format', 'cxcywh')} (centre and extent, as in YOLO).",
            "box_format_missing",
        )
        return Naming()
    column = pl.col(bbox)
    if isinstance(dtype, pl.List):
        parts = [column.list.get(i, null_on_oob=True) for i in range(4)]
    else:
        parts = [column.arr.get(i) for i in range(4)]
    exprs = _canonical(box_format, [dtypes.cast(part, inner, pl.Float64()) for part in parts])
    if isinstance(dtype, pl.List):
        exprs[LENGTH] = column.list.len()
    return Naming(exprs, recognised)


def _from_struct(find: Finder, bbox: str, dtype: pl.Struct) -> Naming:
    """Make boxes from a struct; its field names define the format."""
    fields = dict(dtype.to_schema())
    inner_schema = {n: one if isinstance(one, pl.DataType) else one() for n, one in fields.items()}
    inner = Finder(inner_schema, find.side)
    quadruple = four_columns(inner)
    if quadruple is None:
        names = ", ".join(fields)
        find.refuse(
            "bbox",
            f"column {bbox!r} is a struct of {names}; its fields must be xmin, ymin, xmax,"
            " ymax or x, y, width, height.",
            "wrong_fields",
            fields=list(fields),
        )
        return Naming()
    form, field_names = quadruple
    boxes = _from_four(inner, form, field_names, pl.col(bbox).struct.field)
    find.problems += inner.problems
    recognised = {f"{bbox}.{name}": target for name, target in boxes.recognised.items()}
    return Naming(boxes.exprs, recognised or {bbox: ", ".join(CORNER_NAMES)})


# Checks of boxes beyond single columns: length of lists, order of corners.


def screen_boxes(frame: pl.DataFrame) -> list[pl.Expr]:
    """Return aggregates that reveal wrong boxes."""
    aggregates: list[pl.Expr] = []
    if {*CORNER_NAMES} <= {*frame.columns}:
        for low, high in (("xmin", "xmax"), ("ymin", "ymax")):
            aggregates.append((pl.col(high) <= pl.col(low)).sum().alias(f"flat {low}"))
    if LENGTH in frame.columns:
        aggregates.append((pl.col(LENGTH) != 4).any().alias("length"))
    return aggregates


def _refuse_inverted(check: Check) -> None:
    """Refuse inverted boxes; those of zero area are legal and reported."""
    # Polars sorts NaN last, so NaN corners would look inverted; another check reports them.
    wrong = pl.any_horizontal(
        (pl.col(end) < pl.col(start)) & pl.col(start).is_finite()
        for start, end in (("xmin", "xmax"), ("ymin", "ymax"))
    )
    negative = {problem.column for problem in check.problems} & {"box_width", "box_height"}
    if not negative:
        renames = {check.own("xmax"): "box_width", check.own("ymax"): "box_height"}
        way = f"{option('columns', renames)} for both tables; for one of them, rename its columns"
        if len(renames) == 1:  # a list
            way = option("box_format", "xywh")
        check.refuse(
            "inverted_boxes",
            CORNER_NAMES,
            wrong,
            "(xmax < xmin or ymax < ymin)",
            "Swap the corners, or, in a file of annotations with a negative width or height, remove"
            " these boxes. If the last two numbers of a table are width and height, name them so:"
            f" {way}.",
            unit=("inverted box", "inverted boxes"),
        )
    flat = (pl.col("xmax") == pl.col("xmin")) | (pl.col("ymax") == pl.col("ymin"))
    zero = check.count(flat & ~wrong)
    if zero:
        words = "box has", "boxes have", "zero area and cannot match"
        check.notes.append(note_of("zero_area_boxes", zero, words, before=f"{check.side}: "))
        empty = pl.all_horizontal(pl.col(*CORNER_NAMES) == 0)
        zeros = check.count(empty) if check.side == GROUND_TRUTHS else 0
        if zeros:
            words = (
                "box of 0, 0, 0, 0 counts",
                "boxes of 0, 0, 0, 0 count",
                "as objects that cannot be found. If they mark images without objects, remove "
                f"these rows and list the images: {option('datums')}",
            )
            check.notes.append(note_of("boxes_of_zeros", zeros, words, before=f"{check.side}: "))


# Oriented boxes in tables: centre, extent and angle, in one list or in separate columns.
# Tools disagree on direction and unit of the angle, so one of :data:`ANGLES` is required.

ANGLES = {
    "radians-clockwise": 1.0,
    "radians-counterclockwise": -1.0,
    "degrees-clockwise": math.pi / 180,
    "degrees-counterclockwise": -math.pi / 180,
}
"""Values of ``angle_format`` -> factor that converts an angle to radians, clockwise in the image (y
points down).
"""
_NUMBERS = 5


def oriented_box_columns(
    find: Finder, box_format: str | None, angle_format: str | None, *, needed: bool
) -> Naming | None:
    """Find oriented boxes in columns of centre, extent and angle; None without them.

    Args:
        box_format: cxcywh if columns x and y are centres.
        angle_format: unit and direction of the angle; if None, its absence is a problem.
        needed: whether the table has no other geometry to compare.
    """
    angles = find.candidates((ANGLE.name, *ANGLE.aliases))
    required = needed and angle_format in ANGLES
    if ANGLE.name in angles:
        angles = [ANGLE.name]
    elif len(angles) > 1:  # a slice column has one value per datum
        angles = [name for name in angles if name not in find.slices] or angles
    if not angles or not (required or find.schema[angles[0]].is_numeric()):
        return None
    problems_before, used = len(find.problems), set(find.used)
    form, names = four_columns(find) or ("", ())
    columns = [*names, angles[0]]
    if form == "cxcywh" or (form == "xywh" and box_format == "cxcywh"):
        clear = len(angles) == 1
        if clear and angle_format in ANGLES and (parts := _numbers(find, columns, ANGLE.name)):
            find.used.update(columns)
            present = pl.any_horizontal(part.is_not_null() for part in parts)
            turned = pl.when(present).then(pl.concat_list(parts))
            return Naming({OBB.name: turned}, dict.fromkeys(columns, OBB.name))
        del find.problems[problems_before:]
        if needed and not clear:
            find.refuse(
                ANGLE.name,
                f"columns {' and '.join(map(repr, angles))} could each be {ANGLE.name!r}. Rename"
                f" one of them to {ANGLE.name!r}.",
                "ambiguous_column",
                columns=angles,
            )
        elif needed:
            ask(find, angle_format, columns, ANGLE.name)
        if required and clear:
            _numbers(find, angles, ANGLE.name)
    else:
        del find.problems[problems_before:]
        if needed and angle_format is not None and names:
            find.refuse(
                ANGLE.name,
                f"column {angles[0]!r} occurs with {', '.join(map(repr, names))}, but boxes "
                "turn about their centre. Give cx, cy, w, h and the angle, or omit "
                f"{option('angle_format')}.",
                "angle_without_centre",
            )
    find.used = used
    return None


def ask(
    find: Finder,
    angle_format: str | None,
    names: Sequence[str],
    column: str = OBB.name,
    formats: Container[str] = ANGLES,
) -> None:
    """Record that the measurement of an angle is unknown: of oriented boxes, or of 3-D boxes.

    Args:
        column: column of the problem: the angle is irrelevant if upright boxes are compared.
    """
    if angle_format in formats:
        return
    called = f"{'columns' if len(names) > 1 else 'column'} {', '.join(map(repr, names))}"
    if formats is ANGLES:
        ways = ", ".join(option("angle_format", name) for name in ANGLES)
        message = (
            "oriented boxes whose angle convention is unknown, and tools differ. Write one of "
            f"{ways} (as the image is seen, y running down); {option('iou_type', 'bbox')} "
            "compares upright boxes."
        )
    else:
        message = (
            "3-D boxes whose up axis and yaw convention are unknown, and tools differ. Write "
            f"{option('angle_format', Z_UP)} (the centre in the middle, yaw from x towards y; "
            f"degrees-z-up for degrees) or {option('angle_format', CAMERA)} (KITTI's location "
            "and rotation_y: y down, the centre at the bottom)."
        )
    find.refuse(column, f"{called}: {message}", "angle_format_missing")


_WORDS = (
    "without exactly five numbers",
    "An oriented box is cx, cy, width, height, angle.",
    "with a negative width or height",
    "Swap the corners they are of.",
    "zero area and cannot match",
)


def _finite(name: str) -> pl.Expr:
    """Return whether all numbers of a row's list are there and finite; null without a list."""
    return pl.col(name).list.eval(pl.element().is_finite().fill_null(value=False)).list.all()


def numbers_of(
    check: Check, name: str, many: int, extents: slice, words: tuple[str, str, str, str, str]
) -> None:
    """Refuse lists of another length, with numbers that are not finite, or with a negative extent.

    Args:
        words: phrases for a wrong length and the right one; for a negative extent and its remedy;
            for a box with an extent of 0.
    """
    lists = check.frame[name]
    lists = lists.arr.to_list() if isinstance(lists.dtype, pl.Array) else lists
    lengths = lists.list.len()
    odd = (lengths != many).fill_null(value=False)
    if odd.any():
        other = lengths.filter(odd).to_list()
        hint = "".join(text for length, text in _HINTS[name].items() if length in other)
        check.refuse("wrong_length", [name], odd.to_numpy(), words[0], f"{words[1]}{hint}")
        return
    sizes = [pl.col(name).list.get(i) for i in range(many)[extents]]
    checks = lists.to_frame().select(
        odd=~_finite(name),
        negative=pl.any_horizontal(size < 0 for size in sizes),
        flat=pl.any_horizontal(size == 0 for size in sizes),
    )
    odd, negative, flat_ones = checks.fill_null(value=False)
    check.refuse("not_finite", [name], odd.to_numpy(), "with null, NaN or infinity", REPAIR)
    check.refuse("too_low", [name], (negative & ~odd).to_numpy(), words[2], words[3])
    if n := int((flat_ones & ~odd & ~negative).sum()):
        text = "box has", "boxes have", words[4]
        check.notes.append(note_of("zero_area_boxes", n, text, before=f"{check.side}: "))


_HINTS = {
    OBB.name: {8: " Eight are four corners: name that column polygon."},
    BOX3D.name: {
        24: " Eight corners, a list of eight points a row, must be those of an upright box."
    },
}
"""Length of an invalid box list -> its likely meaning."""


# 3-D boxes in tables: centre, extent and yaw, in one list or in separate columns.
#
# Tables do not define the up axis, the position of a box's centre and the measurement of yaw;
# ``angle_format`` selects one of :data:`BOX_3D_FORMATS`. Rows are converted to the first of them.

# 3-D boxes from their eight corners in any order.
#
# Tools order corners differently without stating it, but the corners determine the upright box,
# except for which end is the front.


_SLACK = 1e-4  # of the longest diagonal, that corners may be off


def of_corners(column: pl.Series, *, camera: bool) -> pl.Series:
    """Convert corners to centre, extent and yaw with z up; other rows are unchanged."""
    values, (rows, points) = flat(column)
    numbers = values.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    many, within = np.diff(rows), np.diff(points)
    odd = np.r_[0, np.cumsum(within != 3)]
    complete = np.flatnonzero((many == 8) & (np.diff(odd[rows]) == 0))
    at = points[rows[complete]][:, None] + np.arange(24)
    corners = numbers[at].reshape(-1, 8, 3)
    if camera:
        corners = corners[..., [0, 2, 1]] * [1.0, 1.0, -1.0]
    boxes, good = _boxes(corners)
    if len(boxes) == len(column) and good.all():
        return pl.Series(column.name, boxes).arr.to_list()
    lists = column.cast(pl.List(pl.List(pl.Float64))).list.eval(pl.element().explode()).to_list()
    for row, box in zip(complete[good].tolist(), boxes[good].tolist(), strict=True):
        lists[row] = box
    return pl.Series(column.name, lists, dtype=pl.List(pl.Float64))


def _boxes(corners: Array) -> tuple[Array, Array]:
    """Boxes float64 [n, 7] of corners [n, 8, 3] with z up, and which are upright ones, bool [n]."""
    n = len(corners)
    order = np.argsort(corners[..., 2], axis=1, kind="stable")
    ordered = np.take_along_axis(corners, order[..., None], axis=1)
    faces = ordered.reshape(n, 2, 4, 3)  # the lower one, then the upper one
    centre = corners.mean(axis=1)
    away = faces[..., :2] - centre[:, None, None, :2]
    around = np.argsort(np.arctan2(away[..., 1], away[..., 0]), axis=2, kind="stable")
    turned = np.take_along_axis(away, around[..., None], axis=2)
    low, high = turned[:, 0], turned[:, 1]
    size = np.linalg.norm(corners.max(axis=1) - corners.min(axis=1), axis=1)
    slack = _SLACK * size + 1e-12 * np.abs(corners).max(axis=(1, 2))
    one, two = low[:, 1] - low[:, 0], low[:, 2] - low[:, 1]
    height = np.linalg.norm(low[:, :, None] - high[:, None], axis=3).min(axis=2).max(axis=1)
    level = np.ptp(faces[..., 2], axis=2).max(axis=1)
    closed = np.linalg.norm(low[:, 0] - low[:, 1] + low[:, 2] - low[:, 3], axis=1)
    long, short = np.linalg.norm(one, axis=1), np.linalg.norm(two, axis=1)
    square = np.abs((one * two).sum(axis=1)) <= slack * np.maximum(long, short)
    good = square & (np.maximum(np.maximum(height, level), closed) <= slack)
    longer = np.where((long >= short)[:, None], one, two)
    tall = faces[:, 1, :, 2].mean(axis=1) - faces[:, 0, :, 2].mean(axis=1)
    extent = np.maximum(long, short), np.minimum(long, short), tall
    yaw = np.arctan2(longer[:, 1], longer[:, 0])
    return np.column_stack([centre, *extent, yaw]), good


Z_UP = "radians-z-up"
"""z points up, the centre is the middle of the box, and yaw turns from x towards y, in radians."""
CAMERA = "radians-camera"
"""x points to the right, y down and z ahead; the centre is that of the box's bottom, and yaw turns
about y from x away from z, in radians: KITTI's ``location`` and ``rotation_y``."""
BOX_3D_FORMATS = {Z_UP: 1.0, "degrees-z-up": math.pi / 180, CAMERA: 1.0}
"""Values of ``angle_format`` for 3-D boxes -> factor that converts yaw to radians."""
IOU_TYPES = ("3d", "bev", "distance")
"""Values of ``iou_type`` that compare 3-D boxes."""
Z_UP_NAME = "box3d_z_up"
"""List column that readers make, with boxes in the format :data:`Z_UP`."""
NUMBERS = 7
_BOXES_3D_CENTRES = (("cx", "cy", "cz"), ("x", "y", "z"), ("center_x", "center_y", "center_z"))
_BOXES_3D_EXTENTS = (("length", "width", "height"), ("l", "w", "h"), ("dx", "dy", "dz"))


def box_3d_columns(find: Finder, angle_format: str | None) -> Naming | None:
    """Find 3-D boxes in a list column, or in columns of centre, extent and yaw."""
    one = find.exact(BOX3D.name) or next(iter(find.candidates((*BOX3D.aliases, Z_UP_NAME))), None)
    if one is not None:
        angle_format = Z_UP if one == Z_UP_NAME else angle_format
        if dtypes.numbers_within(find.schema[one]) == _POINTS_DEEP:
            return _of_corners(find, one, angle_format)
        dtype = dtypes.canonical_dtype(BOX3D, find.schema[one])
        if dtype is None:
            find.refuse_dtype(BOX3D, one)
            return None
        find.used.add(one)
        ask(find, angle_format, [one], BOX3D.name, BOX_3D_FORMATS)
        values = dtypes.cast(pl.col(one), find.schema[one], dtype)
        parts = [values.list.get(i, null_on_oob=True).cast(pl.Float64) for i in range(NUMBERS)]
        is_box = values.list.len() == NUMBERS
        boxes = pl.when(is_box).then(_z_up(parts, angle_format)).otherwise(values.cast(_LIST))
        return Naming({BOX3D.name: boxes}, {} if one == BOX3D.name else {one: BOX3D.name})
    columns: list[str] = []
    for names in (_BOXES_3D_CENTRES, _BOXES_3D_EXTENTS):
        some = _pair(find, names, numeric=True) or _pair(find, names)
        if some is None:
            return None
        columns += some
    numeric = all(find.schema[name].is_numeric() for name in columns)  # or boxes in pixels
    yaws = find.candidates((YAW.name, *YAW.aliases))
    if len(yaws) > 1:
        ways = " or ".join(option("columns", {name: YAW.name}) for name in yaws)
        message = f"columns {', '.join(map(repr, yaws))} could each be the yaw: write {ways}."
        find.refuse(BOX3D.name, message, "ambiguous_column")
    columns += yaws[:1]
    parts = _numbers(find, columns, BOX3D.name)
    if parts or numeric:
        find.used.update(columns)
        ask(find, angle_format, columns, BOX3D.name, BOX_3D_FORMATS)
    recognised = dict.fromkeys(columns, BOX3D.name)
    if not parts:
        return Naming({}, recognised)
    present = pl.any_horizontal(part.is_not_null() for part in parts)
    if not yaws:
        parts.append(pl.lit(0.0))
    boxes = pl.when(present).then(_z_up(parts, angle_format))
    return Naming({BOX3D.name: boxes}, recognised)


_LIST = pl.List(pl.Float64())
_POINTS_DEEP = 2  # lists of points
FRONT_UNKNOWN = "front_unknown"
"""Kind of the note of boxes that are given as corners."""


def _of_corners(find: Finder, name: str, angle_format: str | None) -> Naming:
    """Boxes of lists of eight corners, in any order."""
    find.used.add(name)
    ask(find, angle_format, [name], BOX3D.name, BOX_3D_FORMATS)
    camera = angle_format == CAMERA
    boxes = pl.col(name).map_batches(
        lambda column: of_corners(column, camera=camera), return_dtype=_LIST, is_elementwise=True
    )
    message = (
        f"{find.side.replace('_', ' ')}: column {name!r} contains corners, which do not show the "
        "front of a box: its length is the longer side."
    )
    recognised = {} if name == BOX3D.name else {name: BOX3D.name}
    return Naming({BOX3D.name: boxes}, recognised, notes=[Note(FRONT_UNKNOWN, message)])


def _z_up(parts: list[pl.Expr], angle_format: str | None) -> pl.Expr:
    """Seven numbers with z up, the centre in the middle and yaw in radians from x towards y."""
    x, y, z, length, width, height, yaw = parts
    yaw = yaw * BOX_3D_FORMATS.get(angle_format or "", 1.0)
    if angle_format == CAMERA:  # seen from above, z runs up the page
        return pl.concat_list(x, z, height / 2 - y, length, width, height, -yaw)
    return pl.concat_list(x, y, z, length, width, height, yaw)


_BOXES_3D_WORDS = (
    "without exactly seven numbers",
    "A 3-D box is cx, cy, cz, length, width, height, yaw.",
    "with a negative length, width or height",
    "Repair or remove these rows.",
    "no volume and cannot match",
)


# Checks of keypoint lists: finite numbers, three per point.

_NAME = "keypoints"


def check_keypoints(check: Check) -> None:
    """Refuse lists that are not finite triples, and predictions without points."""
    lengths = check.frame[_NAME].list.len().fill_null(0)
    if check.side == PREDICTIONS:
        empty, way = (lengths == 0).to_numpy(), "Give each row its points, or remove it."
        check.refuse("geometry_missing", [_NAME], empty, "without keypoints", way, value_columns=[])
    odd = lengths.filter(lengths % 3 != 0)
    if len(odd):
        way = "Write x, y and visibility of every point."
        if (odd % 2 == 0).all():
            way += " These are pairs of x and y: the visibility of each point is missing; write 2"
            way += " for points that are labelled and 0 for others."
        what = f"with {odd[0]} numbers, which are not three for each point"
        where = (lengths % 3 != 0).to_numpy()
        check.refuse("not_triples", [_NAME], where, what, way, value_columns=[])
    way = "Write 0, 0, 0 for points that are not labelled, or remove these rows."
    what = "with null, NaN or infinity among the numbers"
    check.refuse("not_finite", [_NAME], ~_finite(_NAME), what, way, value_columns=[])


# Objects in all accepted forms: boxes, polygons, masks, raster files, or a mixture.
# The compared one is chosen once both sides are known (:mod:`.preparing`), then row by row.

SHAPED = (POLYGON, OBB, MASK, RASTER)
"""Columns that each describe a whole object."""
SHAPED_NAMES = tuple(column.name for column in SHAPED)
GEOMETRY_NAMES = (*SHAPED_NAMES, RASTER_BAND.name, RASTER_VALUE.name)
_OTHER_THAN_BOXES = (*SHAPED_NAMES, KEYPOINTS.name, BOX3D.name)
_OF_RASTERS = (RASTER_BAND, RASTER_VALUE)
_FOUR_CORNERS = tuple(f"{axis}{corner}" for corner in range(1, 5) for axis in "xy")
"""Columns of rotated boxes, corner by corner."""
_POINT = re.compile(r"(?:(?:keypoint|kpt|kp)_?)?([xyv])_?(\d+)$", re.IGNORECASE)


@cache
def needed_fields(iou_type: str | None, convert_to: str | None) -> frozenset[str]:
    """Return the fields of COCO's rows that are compared, in addition to boxes."""
    if iou_type == KEYPOINTS.name:
        return frozenset({KEYPOINTS.name})
    if iou_type in ("obb", "probiou"):
        return frozenset({"segmentation", "obb"})
    boxes = iou_type == "bbox" or convert_to == "box"
    return frozenset() if boxes else frozenset({"segmentation"})


def find_objects(find: Finder, box_format: str | None, angle_format: str | None) -> Naming:
    """Recognise a table's objects; problems are added to ``find.problems``."""
    formats = {**ANGLES, **BOX_3D_FORMATS}
    if angle_format is not None and angle_format not in formats:
        raise unknown("angle_format", angle_format, formats)
    solid = box_3d_columns(find, angle_format)
    named = {column: name for column in SHAPED if (name := _named(find, column)) is not None}
    rotated = () if POLYGON in named else _pair(find, (_FOUR_CORNERS,)) or ()
    if rotated and not any(find.schema[name].is_numeric() for name in rotated[4:]):
        rotated = ()  # two corners, which are boxes
    find.used.update(rotated)
    points = {} if (name := _named(find, KEYPOINTS)) is not None else _point_columns(find)
    if name is not None:
        named[KEYPOINTS] = name
    only_boxes = not named and (solid is None or not solid.exprs)
    turned = oriented_box_columns(find, box_format, angle_format, needed=only_boxes)
    if OBB in named:
        ask(find, angle_format, [named[OBB]])
    others = named or rotated or points or turned is not None or (solid is not None and solid.exprs)
    boxes = find_boxes(find, box_format, needed=not others)
    if points:
        _from_columns(find, boxes, points)
    for naming in (turned, solid):
        if naming is not None:
            boxes.exprs |= naming.exprs
            if naming.exprs:
                boxes.recognised |= naming.recognised
            else:  # columns that cannot be read may be those of boxes in pixels
                boxes.recognised = naming.recognised | boxes.recognised
            boxes.notes += naming.notes
    if rotated and (parts := _numbers(find, rotated, POLYGON.name)):
        boxes.exprs[POLYGON.name] = pl.concat_list(parts)  # one flat ring
        boxes.recognised |= dict.fromkeys(rotated, POLYGON.name)
    if RASTER in named:
        named |= {column: name for column in _OF_RASTERS if (name := find.find(column)) is not None}
    for column, name in named.items():
        dtype = dtypes.canonical_dtype(column, find.schema[name])
        if dtype is None:
            find.refuse_dtype(column, name)
            continue
        values = pl.col(name)
        if column is KEYPOINTS and dtypes.numbers_within(find.schema[name]) > 1:  # a list a point
            values = values.cast(pl.List(dtype)).list.eval(pl.element().explode())
            boxes.exprs[column.name] = values
        else:
            boxes.exprs[column.name] = dtypes.cast(values, find.schema[name], dtype)
        if name != column.name:
            boxes.recognised[name] = column.name
    return boxes


def has_objects(find: Finder) -> bool:
    """Return whether a table looks like objects of detection; claims columns.

    Predictions of detection have scores: masks without scores are semantic segmentation.
    """
    if any(name in find.schema or name in find.mapped for name in (*CORNER_NAMES, "bbox")):
        return True
    if four_columns(find) is not None or find.candidates(contract.BBOX.aliases):
        return True
    scored = find.side != "predictions" or bool(
        find.candidates(("score", "confidence", "conf", "prob", "probability"))
        or "score" in find.mapped
    )
    if scored and _point_columns(find):
        return True
    return scored and any(
        _named(find, column) is not None for column in (*SHAPED, KEYPOINTS, BOX3D)
    )


def _point_columns(find: Finder) -> dict[int, dict[str, str]]:
    """Return columns x_1, y_1, v_1 and so on by number; empty unless they are numbered without
    gaps.

    Two or four points without visibility are corners of boxes in other formats.
    """
    axes_of: dict[int, dict[str, str]] = {}
    for name, dtype in find.schema.items():
        part = _POINT.match(name)
        if part is None or name in find.used:
            continue
        unread = dtype == pl.Null or (find.side == PREDICTIONS and not dtype.is_numeric())
        if not (unread and part[1] in "vV"):  # visibility of predictions is not read
            axes_of.setdefault(int(part[2]), {})[part[1].lower()] = name
    if not axes_of:
        return {}
    points = {n: axes for n, axes in sorted(axes_of.items()) if {"x", "y"} <= axes.keys()}
    numbers = [*points]
    consecutive = numbers == [*range(numbers[0], numbers[0] + len(numbers))] if numbers else False
    seen = any("v" in axes for axes in points.values())
    numeric = any(
        find.schema[name].is_numeric() for axes in points.values() for name in axes.values()
    )
    return points if consecutive and numeric and (seen or len(points) > len("xyxy")) else {}


def _from_columns(find: Finder, boxes: Naming, points: Mapping[int, Mapping[str, str]]) -> None:
    """One list of points from columns; a point without x or y is not labelled."""
    names = [name for axes in points.values() for name in axes.values()]
    seen = [axes["v"] for axes in points.values() if "v" in axes]
    flags = [name for name in seen if find.schema[name] == pl.Boolean]
    plain = [name for name in names if name not in flags]
    numbers = dict(zip(plain, _numbers(find, plain, KEYPOINTS.name), strict=False))
    if not numbers:
        return
    numbers |= {name: 2 * pl.col(name).cast(pl.Float64) for name in flags}  # 2 is visible
    find.used.update(names)
    parts = []
    for axes in points.values():
        x, y = numbers[axes["x"]], numbers[axes["y"]]
        labelled = x.is_not_null() & y.is_not_null()
        v = numbers[axes["v"]] if "v" in axes else pl.lit(2.0)
        parts += [
            pl.when(labelled).then(value).otherwise(0.0) for value in (x, y, v.fill_null(0.0))
        ]
    boxes.recognised[f"{names[0]} to {names[-1]}"] = KEYPOINTS.name
    boxes.exprs[KEYPOINTS.name] = pl.concat_list(parts)
    if find.side == "ground_truths" and len(seen) < len(points):
        message = "ground truths: keypoints without a column of visibility count as labelled."
        boxes.notes.append(Note("unseen_keypoints", message))


def _named(find: Finder, column: Column) -> str | None:
    """The column of that name, or the one unclaimed column with an alias and a dtype that fits."""
    name = find.exact(column.name)
    if name is not None:
        return name
    candidates = [
        name
        for name in find.candidates(column.aliases)
        if find.schema[name] != pl.Null
        and dtypes.canonical_dtype(column, find.schema[name]) is not None
    ]
    return find.one_of(candidates, column)


def check_first(check: Check, aggregates: Mapping[str, Any]) -> None:
    """Lists of boxes that are too short; rows without any object."""
    if aggregates.get("length"):
        wrong = pl.col(LENGTH) != 4
        # Numbers missing in a short list are not reported as nulls.
        check.sound = dict.fromkeys(BOX_NAMES, pl.col(LENGTH).is_null() | ~wrong)
        check.refuse(
            "not_four_numbers",
            CORNER_NAMES,
            wrong,
            "without exactly four numbers",
            "A box is four numbers.",
            unit=("list", "lists"),
            value_columns=[LENGTH],
            column="bbox",
        )
    here = check.frame.columns
    if {*_OTHER_THAN_BOXES}.isdisjoint(here):
        return
    names = [name for name in _OTHER_THAN_BOXES if name in here]
    corners = [name for name in CORNER_NAMES if name in here]
    if KEYPOINTS.name in names:
        check_keypoints(check)
    if OBB.name in names:
        numbers_of(check, OBB.name, _NUMBERS, slice(2, 4), _WORDS)
    if BOX3D.name in names:
        way = "Give each row one, or remove these rows."
        missing = pl.col(BOX3D.name).is_null()
        check.refuse(
            "geometry_missing", [BOX3D.name], missing, "without a 3-D box", way, value_columns=[]
        )
        numbers_of(check, BOX3D.name, NUMBERS, slice(3, 6), _BOXES_3D_WORDS)
    if KEYPOINTS.name in names and not corners:
        names.remove(KEYPOINTS.name)
    if not names:
        return
    missing = pl.all_horizontal(pl.col(name).is_null() for name in names)
    if corners:
        # A row that has a polygon, mask or keypoints needs no box, but half a box is none.
        blank = [pl.col(name).is_null() for name in corners]
        complete = missing | (pl.any_horizontal(blank) & ~pl.all_horizontal(blank))
        for name in BOX_NAMES:
            check.sound[name] = check.sound.get(name, pl.lit(True)) & complete
        return
    condition = option("where", f"{sql_name(check.own(names[0]))} IS NOT NULL")
    way = f"Give each row one, or remove these rows, e.g. with {condition}."
    check.refuse("geometry_missing", names, missing, "without any geometry", way, value_columns=[])


def check_last(check: Check, aggregates: Mapping[str, Any]) -> None:
    """Inverted boxes; bands that are not whole numbers."""
    if aggregates.get("flat xmin") or aggregates.get("flat ymin"):
        _refuse_inverted(check)
    for column in _OF_RASTERS:
        if column.name not in check.frame.columns:
            continue
        values, what = pl.col(column.name), "with a number that is not whole"
        wrong = values != values.floor()
        check.refuse("not_whole", [column.name], wrong, what, "Write whole numbers.")
