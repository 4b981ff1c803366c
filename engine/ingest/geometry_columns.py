"""Objects in all accepted forms: boxes, polygons, masks, raster files, or a mixture.

Each row has at least one. The compared one is chosen once both sides are known
(:mod:`.geometry_choice`), and row by row when the task encodes them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from evalengine.schemas.contract import Column
from evalengine.schemas.errors import unknown
from evalengine.schemas.geometry_columns import (
    BOX3D,
    KEYPOINTS,
    MASK,
    OBB,
    POLYGON,
    RASTER,
    RASTER_BAND,
    RASTER_VALUE,
)
from evalengine.schemas.options import Options
from evalengine.schemas.wording import option, sql_name

from . import box_checks, boxes_3d, dtypes, keypoint_checks, oriented_boxes
from .boxes import BOX_NAMES, CORNER_NAMES, Boxes, find_boxes, has_boxes
from .finding import Finder
from .problems import Note, Problem, count_of

if TYPE_CHECKING:
    from .checks import Check

SHAPED = (POLYGON, OBB, MASK, RASTER)
"""Columns that each describe a whole object."""
SHAPED_NAMES = tuple(column.name for column in SHAPED)
GEOMETRY_NAMES = (*SHAPED_NAMES, RASTER_BAND.name, RASTER_VALUE.name)
_BESIDE = (RASTER_BAND, RASTER_VALUE)
_POINT = re.compile(r"(?:(?:keypoint|kpt|kp)_?)?([xyv])_?(\d+)$", re.IGNORECASE)


def says_boxes(options: Options) -> bool:
    """Return whether the options select boxes."""
    return options.iou_type == "bbox" or options.convert_to == "box"


def wanted_fields(options: Options) -> frozenset[str]:
    """Return the fields of COCO's rows that are compared, in addition to boxes."""
    if options.iou_type == KEYPOINTS.name:
        return frozenset({KEYPOINTS.name})
    if options.iou_type in ("obb", "probiou"):
        return frozenset({"segmentation", "obb"})
    return frozenset() if says_boxes(options) else frozenset({"segmentation"})


def find_objects(find: Finder, box_format: str | None, angle_format: str | None) -> Boxes:
    """Recognise a table's objects; problems are added to ``find.problems``.

    Raises:
        OptionError: a format that does not exist.
    """
    formats = {**oriented_boxes.ANGLES, **boxes_3d.FORMATS}
    if angle_format is not None and angle_format not in formats:
        raise unknown("angle_format", angle_format, formats)
    solid = boxes_3d.columns_of(find, angle_format)
    found = {column: name for column in SHAPED if (name := _named(find, column)) is not None}
    rotated = [] if POLYGON in found else _four_corners(find)
    points = {} if (name := _named(find, KEYPOINTS)) is not None else _point_columns(find)
    if name is not None:
        found[KEYPOINTS] = name
    alone = not found and solid is None
    turned = oriented_boxes.columns_of(find, box_format, angle_format, needed=alone)
    if OBB in found:
        oriented_boxes.ask(find, angle_format, [found[OBB]])
    others = found or rotated or points or turned is not None or solid is not None
    boxes = find_boxes(find, box_format, needed=not others)
    if points:
        _from_columns(find, boxes, points)
    for more in (turned, solid):
        if more is not None:
            boxes.exprs |= more.exprs
            boxes.recognised |= more.recognised
            boxes.notes += more.notes
    if rotated:
        parts = [dtypes.cast(pl.col(name), find.schema[name], pl.Float64()) for name in rotated]
        boxes.exprs[POLYGON.name] = pl.concat_list(parts)  # one flat ring
        boxes.recognised |= dict.fromkeys(rotated, POLYGON.name)
    if RASTER in found:
        found |= {column: name for column in _BESIDE if (name := find.find(column)) is not None}
    for column, name in found.items():
        wanted = dtypes.canonical_dtype(column, find.schema[name])
        if wanted is None:
            message = dtypes.wrong_type(column, name, find.schema[name])
            find.problems.append(Problem(find.side, column.name, message, kind="wrong_dtype"))
            continue
        values = pl.col(name)
        if column is KEYPOINTS and dtypes.numbers_within(find.schema[name]) > 1:  # a list a point
            values = values.cast(pl.List(wanted)).list.eval(pl.element().explode())
            boxes.exprs[column.name] = values
        else:
            boxes.exprs[column.name] = dtypes.cast(values, find.schema[name], wanted)
        if name != column.name:
            boxes.recognised[name] = column.name
    return boxes


def has_objects(find: Finder) -> bool:
    """Return whether a table looks like objects of detection; claims columns.

    Predictions of detection have scores: masks without scores are semantic segmentation.
    """
    if has_boxes(find):
        return True
    scored = find.side != "predictions" or bool(
        find.candidates(("score", "confidence", "conf", "prob", "probability"))
        or "score" in find.said
    )
    if scored and _point_columns(find):
        return True
    return scored and any(
        _named(find, column) is not None for column in (*SHAPED, KEYPOINTS, BOX3D)
    )


def _four_corners(find: Finder) -> list[str]:
    """Columns x1, y1 to x4, y4 of rotated boxes, corner by corner; empty without all of them."""
    names = [f"{axis}{corner}" for corner in range(1, 5) for axis in "xy"]
    found = [find.candidates((name,)) for name in names]
    if any(len(one) != 1 or not find.schema[one[0]].is_numeric() for one in found):
        return []
    columns = [one[0] for one in found]
    find.used.update(columns)
    return columns


def _point_columns(find: Finder) -> dict[int, dict[str, str]]:
    """Return columns x_1, y_1, v_1 and so on by number; empty unless they are numbered without
    gaps.

    Two or four points without visibility are corners of boxes in other formats.
    """
    found: dict[int, dict[str, str]] = {}
    for name, dtype in find.schema.items():
        part = _POINT.match(name)
        if part and name not in find.used and dtype.is_numeric():
            found.setdefault(int(part[2]), {})[part[1].lower()] = name
    points = {n: axes for n, axes in sorted(found.items()) if {"x", "y"} <= axes.keys()}
    numbers = [*points]
    whole = numbers == [*range(numbers[0], numbers[0] + len(numbers))] if numbers else False
    seen = any("v" in axes for axes in points.values())
    return points if whole and (seen or len(points) > len("xyxy")) else {}


def _from_columns(find: Finder, boxes: Boxes, points: Mapping[int, Mapping[str, str]]) -> None:
    """One list of points from columns; a point without x or y is not labelled."""
    parts = []
    for axes in points.values():
        x, y = (dtypes.cast(pl.col(axes[a]), find.schema[axes[a]], pl.Float64()) for a in "xy")
        there = x.is_not_null() & y.is_not_null()
        seen = pl.col(axes["v"]).cast(pl.Float64) if "v" in axes else pl.lit(2.0)
        parts += [
            pl.when(there).then(value).otherwise(0.0) for value in (x, y, seen.fill_null(0.0))
        ]
        find.used.update(axes.values())
    names = [name for axes in points.values() for name in axes.values()]
    boxes.recognised[f"{names[0]} to {names[-1]}"] = KEYPOINTS.name
    boxes.exprs[KEYPOINTS.name] = pl.concat_list(parts)
    if find.side == "ground_truths" and not all("v" in axes for axes in points.values()):
        said = "ground truths: keypoints without a column of visibility count as labelled."
        boxes.notes.append(Note("unseen_keypoints", said))


def _named(find: Finder, column: Column) -> str | None:
    """The column of that name, or the one unclaimed column with an alias and a dtype that fits."""
    name = find.exact(column.name)
    if name is not None:
        return name
    found = [
        name
        for name in find.candidates(column.aliases)
        if find.schema[name] != pl.Null
        and dtypes.canonical_dtype(column, find.schema[name]) is not None
    ]
    if len(found) > 1:
        ways = " or ".join(option("columns", {name: column.name}) for name in found)
        names = ", ".join(repr(name) for name in found[:-1]) + f" and {found[-1]!r}"
        find.problems.append(
            Problem(
                find.side,
                column.name,
                f"columns {names} could each be {column.name!r}. Say which one: write {ways}.",
                kind="ambiguous_column",
            )
        )
    find.used.update(found)
    return found[0] if found else None


def shaped(frame: pl.DataFrame) -> list[str]:
    """Return the columns of a frame with whole objects other than boxes."""
    return [name for name in SHAPED_NAMES if name in frame.columns]


def check_first(check: Check, seen: Mapping[str, Any]) -> None:
    """Lists of boxes that are too short; rows without any object."""
    box_checks.lengths(check, seen)
    keypoint_checks.check(check)
    oriented_boxes.check(check)
    boxes_3d.check(check)
    names = shaped(check.frame)
    corners = [name for name in CORNER_NAMES if name in check.frame.columns]
    if corners and KEYPOINTS.name in check.frame.columns:
        names.append(KEYPOINTS.name)
    if BOX3D.name in check.frame.columns:
        names.append(BOX3D.name)
    if not names:
        return
    bare = pl.all_horizontal(pl.col(name).is_null() for name in names)
    if corners:
        # A row that has a polygon, mask or keypoints needs no box, but half a box is none.
        blank = [pl.col(name).is_null() for name in corners]
        told = bare | (pl.any_horizontal(blank) & ~pl.all_horizontal(blank))
        for name in BOX_NAMES:
            check.sound[name] = check.sound.get(name, pl.lit(True)) & told
        return
    n = check.count(bare)
    if n:
        check.add(
            "geometry_missing", names[0], n,
            f"{check.named(names)}: {count_of(n, 'row')} without any geometry,"
            f" {check.rows(bare, [])}. Give each row one, or remove these rows, e.g. with"
            f" {option('where', f'{sql_name(check.own(names[0]))} IS NOT NULL')}.",
        )  # fmt: skip


def check_last(check: Check, seen: Mapping[str, Any]) -> None:
    """Inverted boxes; bands that are not whole numbers."""
    box_checks.inverted(check, seen)
    for column in _BESIDE:
        if column.name not in check.frame.columns:
            continue
        values = pl.col(column.name)
        wrong = values != values.floor()
        n = check.count(wrong)
        if n:
            check.add(
                "not_whole", column.name, n,
                f"{check.named([column.name])}: {count_of(n, 'row')} with a number that is not"
                f" whole, {check.rows(wrong, [column.name])}. Write whole numbers.",
            )  # fmt: skip
