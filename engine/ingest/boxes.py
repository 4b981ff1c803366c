"""Boxes in all accepted forms: corners, corner and extent, centre and extent, one list.

The result is ``xmin, ymin, xmax, ymax``. Given extents are also kept as ``box_width, box_height``,
since ``xmax - xmin`` may round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import polars as pl

from evalengine.schemas import columns
from evalengine.schemas.contract import Column
from evalengine.schemas.errors import unknown
from evalengine.schemas.wording import option

from . import dtypes
from .finding import Finder
from .problems import Note, Problem

FORMATS = ("xyxy", "xywh", "cxcywh")
CORNERS = (columns.XMIN, columns.YMIN, columns.XMAX, columns.YMAX)
CORNER_NAMES = tuple(column.name for column in CORNERS)
EXTENTS = (columns.BOX_WIDTH, columns.BOX_HEIGHT)
BOX_NAMES = (*CORNER_NAMES, "box_width", "box_height")
LENGTH = "__bbox_length"
"""Helper column: length of a list box; checked, then dropped."""

_X0Y0X1Y1 = ("x0", "y0", "x1", "y1")
_ORIGINS = (("x", "y"), ("bbox_x", "bbox_y"), ("box_x", "box_y"))
_CENTRES = (
    ("cx", "cy"), ("x_center", "y_center"), ("xcenter", "ycenter"),
    ("center_x", "center_y"), ("xc", "yc"),
)  # fmt: skip
_EXTENTS = (
    ("w", "h"), ("bbox_width", "bbox_height"), ("bbox_w", "bbox_h"), ("box_w", "box_h"),
    ("width", "height"),
)  # fmt: skip


class Boxes(msgspec.Struct):
    """Expressions for the box columns of one table.

    Attributes:
        exprs: canonical name to expression.
        recognised: name in the input to the resulting canonical ones.
    """

    exprs: dict[str, pl.Expr] = msgspec.field(default_factory=dict)
    recognised: dict[str, str] = msgspec.field(default_factory=dict)
    notes: list[Note] = msgspec.field(default_factory=list)


def find_boxes(find: Finder, box_format: str | None, *, needed: bool = True) -> Boxes:
    """Recognise a table's boxes; problems are added to ``find.problems``.

    Args:
        box_format: content of a list column: xyxy, xywh or cxcywh; with the last, columns x and y
            are centres.
        needed: whether a table without boxes is a problem; otherwise incomplete boxes, and lists
            without a box_format, are ignored.

    Raises:
        OptionError: a box_format that does not exist.
    """
    if box_format is not None and box_format not in FORMATS:
        raise unknown("box_format", box_format, FORMATS)
    known = len(find.problems)
    quadruple = four_columns(find)
    bbox = find.find(columns.BBOX)
    if quadruple is None and not needed:
        del find.problems[known:]
        if bbox is None or (box_format is None and not isinstance(find.schema[bbox], pl.Struct)):
            return Boxes(notes=[_unread(find, bbox)] if bbox is not None else [])
    if quadruple is None and bbox is None:
        _nothing(find)
        return Boxes()
    if quadruple is None:
        assert bbox is not None
        return _from_one_column(find, bbox, box_format)
    form, names = quadruple
    centred = form == "xywh" and box_format == "cxcywh" and "min" not in names[0].casefold()
    boxes = _from_four(find, "cxcywh" if centred else form, names)
    if centred:
        boxes.notes.append(
            Note("centred_boxes", f"{find.side}: columns {names[0]!r} and {names[1]!r} are read as"
                 " centres, since box_format is cxcywh.")
        )  # fmt: skip
    if bbox is not None:
        used = ", ".join(names)
        boxes.notes.append(
            Note("unused_column", f"{find.side}: column {bbox!r} is not used; the boxes are"
                 f" those of {used}.")
        )  # fmt: skip
    return boxes


def has_boxes(find: Finder) -> bool:
    """Return whether a table has columns that look like boxes; claims columns."""
    if any(name in find.schema or name in find.said for name in (*CORNER_NAMES, "bbox")):
        return True
    return four_columns(find) is not None or _bbox_like(find)


def _bbox_like(find: Finder) -> bool:
    return bool(find.candidates(columns.BBOX.aliases))


def four_columns(find: Finder) -> tuple[str, tuple[str, ...]] | None:
    """Return the four columns that contain boxes and their form, or None."""
    found = {column.name: find.exact(column.name) for column in (*CORNERS, *EXTENTS)}
    corners = found["xmin"], found["ymin"], found["xmax"], found["ymax"]
    if not any(corners):
        layout = _pair(find, (_X0Y0X1Y1,))
        if layout and not find.candidates(("x2", "y2")):
            find.used.update(layout)
            return "xyxy", layout
    for column in CORNERS:
        if found[column.name] is None:
            found[column.name] = find.by_alias(column)
    start = _both(found["xmin"], found["ymin"])
    end = _both(found["xmax"], found["ymax"])
    if start and end:
        both = _both(found["box_width"], found["box_height"])
        return "xyxy", start + end + (both or ())
    form = "xywh"
    start = start or _pair(find, _ORIGINS)
    if start is None:
        form, start = "cxcywh", _pair(find, _CENTRES)
    if start is None or found["xmax"] or found["ymax"]:
        _incomplete(find, found)
        return None
    extent = _both(found["box_width"], found["box_height"]) or _extent(find)
    if extent is None:
        _incomplete(find, found)
        return None
    find.used.update(start + extent)
    return form, start + extent


def _both(first: str | None, second: str | None) -> tuple[str, ...] | None:
    return (first, second) if first is not None and second is not None else None


def _pair(find: Finder, pairs: Sequence[tuple[str, ...]]) -> tuple[str, ...] | None:
    """The first tuple of names of which every one is an unclaimed column."""
    for names in pairs:
        found = [find.candidates((name,)) for name in names]
        if all(len(columns) == 1 for columns in found):
            return tuple(columns[0] for columns in found)
    return None


def _extent(find: Finder) -> tuple[str, ...] | None:
    """Width and height of the boxes; two pairs of them are a problem, not a guess."""
    pairs = [pair for names in _EXTENTS if (pair := _pair(find, (names,)))]
    if len(pairs) > 1:
        first, second = pairs[0], pairs[1]
        extent = {first[0]: "box_width", first[1]: "box_height"}
        find.problems.append(
            Problem(
                find.side,
                "box_width",
                f"columns {first[0]!r}, {first[1]!r} and {second[0]!r}, {second[1]!r} could each"
                f" be the box's extent. Say which: write {option('columns', extent)} or the same"
                f" with {second[0]!r}, {second[1]!r}.",
                kind="ambiguous_column",
                facts={"columns": [*first, *second]},
            )
        )
    return pairs[0] if pairs else None


def _incomplete(find: Finder, found: dict[str, str | None]) -> None:
    """Handle incomplete corners: release them, or report the missing ones."""
    here = [name for name in CORNER_NAMES if found[name] is not None]
    if here and not find.candidates((columns.BBOX.name, *columns.BBOX.aliases)):
        for column in CORNERS:
            if found[column.name] is None:
                find.missing(column)


def _nothing(find: Finder) -> None:
    if any(problem.column in CORNER_NAMES for problem in find.problems):
        return
    there = ", ".join(find.schema) or "none"
    odd = find.candidates(("segmentation", "mask", "polygon", "masks", "counts"))
    more = (
        f" Column {odd[0]!r} has dtype {find.schema[odd[0]]}, which is read neither as a polygon"
        " (rings of x, y; WKB; WKT) nor as a mask (a struct of size and counts)."
        if odd
        else ""
    )
    find.problems.append(
        Problem(
            find.side,
            "xmin",
            "no boxes: columns 'xmin', 'ymin', 'xmax', 'ymax' are missing. Needed are these four,"
            " or x, y, width, height, or one list column bbox with"
            f" {option('box_format')}; or a column polygon, mask or raster. Columns there:"
            f" {there}. If they have other names, write"
            f" {option('columns', {'mine': 'xmin', '...': ''})}.{more}",
            kind="geometry_missing",
        )
    )


def _unread(find: Finder, name: str) -> Note:
    """Make a note on a list of four numbers next to polygons or masks, with unknown format."""
    return Note(
        "unread_column",
        f"{find.side.replace('_', ' ')}: column {name!r} is not read, since"
        f" {option('box_format')} does not say what it holds; the polygons or masks are.",
    )


def _from_four(
    find: Finder, form: str, names: tuple[str, ...], column: Callable[[str], pl.Expr] = pl.col
) -> Boxes:
    """Make boxes from four columns (six if corners come with their extent)."""
    last = CORNER_NAMES[2:] if form == "xyxy" else ("box_width", "box_height")
    targets = (*CORNER_NAMES[:2], *last, "box_width", "box_height")
    parts = [
        _number(find, name, target, find.schema[name], column(name))
        for name, target in zip(names, targets, strict=False)
    ]
    good = [part for part in parts if part is not None]
    recognised = {
        name: target for name, target in zip(names, targets, strict=False) if name != target
    }
    if form == "cxcywh":
        recognised |= {names[0]: "xmin, xmax", names[1]: "ymin, ymax"}
    return Boxes(_canonical(form, good) if len(good) == len(parts) else {}, recognised)


def _number(
    find: Finder, name: str, target: str, dtype: pl.DataType, expr: pl.Expr
) -> pl.Expr | None:
    """Return a coordinate as Float64; None for a non-numeric column, which is recorded."""
    column = Column(target, "number", "")
    wanted = dtypes.canonical_dtype(column, dtype)
    if wanted is None:
        said = dtypes.wrong_type(column, name, dtype)
        find.problems.append(Problem(find.side, target, said, kind="wrong_dtype"))
        return None
    return dtypes.cast(expr, dtype, pl.Float64())


def _canonical(form: str, parts: Sequence[pl.Expr]) -> dict[str, pl.Expr]:
    """Expressions of the canonical box columns from four (or six) numbers."""
    a, b, c, d, *extents = parts
    if form == "xyxy":
        exprs = dict(zip(CORNER_NAMES, (a, b, c, d), strict=True))
        return exprs | dict(zip(("box_width", "box_height"), extents, strict=False))
    if form == "cxcywh":
        a, b = a - c / 2, b - d / 2
    return {
        "xmin": a, "ymin": b, "xmax": a + c, "ymax": b + d, "box_width": c, "box_height": d
    }  # fmt: skip


def _from_one_column(find: Finder, bbox: str, box_format: str | None) -> Boxes:
    dtype = find.schema[bbox]
    if isinstance(dtype, pl.Struct):
        return _from_struct(find, bbox, dtype)
    recognised = {bbox: ", ".join(CORNER_NAMES)}
    if dtype == pl.Null:
        return Boxes(dict.fromkeys(CORNER_NAMES, pl.col(bbox).cast(pl.Float64)), recognised)
    if not isinstance(dtype, (pl.List, pl.Array)) or not _numbers(dtype):
        find.problems.append(
            Problem(
                find.side, "bbox", dtypes.wrong_type(columns.BBOX, bbox, dtype), kind="wrong_dtype"
            )
        )
        return Boxes()
    if isinstance(dtype, pl.Array) and dtype.shape != (4,):
        find.problems.append(
            Problem(find.side, "bbox", f"column {bbox!r} holds arrays of shape {dtype.shape}; a"
                    " box is four numbers.", kind="not_four_numbers")
        )  # fmt: skip
        return Boxes()
    if box_format is None:
        find.problems.append(
            Problem(find.side, "bbox", _ambiguous(bbox), kind="box_format_missing")
        )
        return Boxes()
    column = pl.col(bbox)
    if isinstance(dtype, pl.List):
        parts = [column.list.get(i, null_on_oob=True) for i in range(4)]
    else:
        parts = [column.arr.get(i) for i in range(4)]
    inner = _instance(dtype.inner)
    exprs = _canonical(box_format, [dtypes.cast(part, inner, pl.Float64()) for part in parts])
    if isinstance(dtype, pl.List):
        exprs[LENGTH] = column.list.len()
    return Boxes(exprs, recognised)


def _numbers(dtype: pl.List | pl.Array) -> bool:
    inner = _instance(dtype.inner)
    return inner.is_numeric() or inner == pl.Null


def _ambiguous(bbox: str) -> str:
    return (
        f"column {bbox!r} holds four numbers without saying which: write"
        f" {option('box_format', 'xywh')} (left, top, width, height, as in COCO),"
        f" {option('box_format', 'xyxy')} (left, top, right, bottom) or"
        f" {option('box_format', 'cxcywh')} (centre and extent, as in YOLO)."
    )


def _from_struct(find: Finder, bbox: str, dtype: pl.Struct) -> Boxes:
    """Make boxes from a struct; its field names define the format."""
    fields = dict(dtype.to_schema())
    inner = Finder({name: _instance(kind) for name, kind in fields.items()}, find.side, {})
    quadruple = four_columns(inner)
    if quadruple is None:
        names = ", ".join(fields)
        find.problems.append(
            Problem(
                find.side,
                "bbox",
                f"column {bbox!r} is a struct of {names}; its fields must be xmin, ymin, xmax,"
                " ymax or x, y, width, height.",
                kind="wrong_fields",
                facts={"fields": list(fields)},
            )
        )
        return Boxes()
    form, own = quadruple
    boxes = _from_four(inner, form, own, pl.col(bbox).struct.field)
    find.problems += inner.problems
    recognised = {f"{bbox}.{name}": target for name, target in boxes.recognised.items()}
    return Boxes(boxes.exprs, recognised or {bbox: ", ".join(CORNER_NAMES)})


def _instance(dtype: Any) -> pl.DataType:
    made: pl.DataType = dtype if isinstance(dtype, pl.DataType) else dtype()
    return made
