"""3-D boxes in tables: centre, extent and yaw, in one list or in separate columns.

Tables do not define the up axis, the position of a box's centre and the measurement of yaw;
``angle_format`` selects one of :data:`FORMATS`. Rows are converted to the first of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from evalengine.geometry.columns import flat
from evalengine.schemas.geometry_columns import BOX3D, YAW
from evalengine.schemas.wording import option

from ..schemas.arrays import Array
from . import dtypes
from .boxes import Boxes
from .finding import Finder
from .oriented_boxes import numbers_of
from .problems import Note, Problem, count_of

if TYPE_CHECKING:
    from .checks import Check

# 3-D boxes from their eight corners in any order.
#
# Tools order corners differently without stating it, but the corners determine the upright box,
# except for which end is the front.


_SLACK = 1e-4  # of the longest diagonal, that corners may be off


def of_corners(column: pl.Series, *, camera: bool) -> pl.Series:
    """Convert corners to centre, extent and yaw with z up, List(Float64) [n]; other rows are
    unchanged.
    """
    values, (rows, points) = flat(column)
    numbers = values.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    many, within = np.diff(rows), np.diff(points)
    odd = np.r_[0, np.cumsum(within != 3)]
    whole = np.flatnonzero((many == 8) & (np.diff(odd[rows]) == 0))
    at = points[rows[whole]][:, None] + np.arange(24)
    corners = numbers[at].reshape(-1, 8, 3)
    if camera:
        corners = corners[..., [0, 2, 1]] * [1.0, 1.0, -1.0]
    boxes, good = _boxes(corners)
    if len(boxes) == len(column) and good.all():
        return pl.Series(column.name, boxes).arr.to_list()
    made = column.cast(pl.List(pl.List(pl.Float64))).list.eval(pl.element().explode()).to_list()
    for row, box in zip(whole[good].tolist(), boxes[good].tolist(), strict=True):
        made[row] = box
    return pl.Series(column.name, made, dtype=pl.List(pl.Float64))


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
    apart = np.linalg.norm(low[:, :, None] - high[:, None], axis=3).min(axis=2).max(axis=1)
    level = np.ptp(faces[..., 2], axis=2).max(axis=1)
    closed = np.linalg.norm(low[:, 0] - low[:, 1] + low[:, 2] - low[:, 3], axis=1)
    long, short = np.linalg.norm(one, axis=1), np.linalg.norm(two, axis=1)
    square = np.abs((one * two).sum(axis=1)) <= slack * np.maximum(long, short)
    good = square & (np.maximum(np.maximum(apart, level), closed) <= slack)
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
FORMATS = {Z_UP: 1.0, "degrees-z-up": math.pi / 180, CAMERA: 1.0}
"""Values of ``angle_format`` for 3-D boxes -> factor that converts yaw to radians."""
IOU_TYPES = ("3d", "bev", "distance")
"""Values of ``iou_type`` that compare 3-D boxes."""
SAID = "box3d_z_up"
"""List column that readers make, with boxes in the format :data:`Z_UP`."""
NUMBERS = 7
_CENTRES = (("cx", "cy", "cz"), ("x", "y", "z"), ("center_x", "center_y", "center_z"))
_EXTENTS = (("length", "width", "height"), ("l", "w", "h"), ("dx", "dy", "dz"))


def columns_of(find: Finder, angle_format: str | None) -> Boxes | None:
    """Find 3-D boxes in a list column, or in columns of centre, extent and yaw; None without them.

    Args:
        find: the table's columns; claimed if they are read.
        angle_format: axes, unit and direction; if None, its absence is a problem.
    """
    one = find.exact(BOX3D.name) or next(iter(find.candidates((*BOX3D.aliases, SAID))), None)
    if one is not None:
        angle_format = Z_UP if one == SAID else angle_format
        if dtypes.numbers_within(find.schema[one]) == _POINTS_DEEP:
            return _of_corners(find, one, angle_format)
        wanted = dtypes.canonical_dtype(BOX3D, find.schema[one])
        if wanted is None:
            message = dtypes.wrong_type(BOX3D, one, find.schema[one])
            find.problems.append(Problem(find.side, BOX3D.name, message, kind="wrong_dtype"))
            return None
        find.used.add(one)
        _ask(find, angle_format, [one])
        values = dtypes.cast(pl.col(one), find.schema[one], wanted)
        parts = [values.list.get(i, null_on_oob=True).cast(pl.Float64) for i in range(NUMBERS)]
        whole = values.list.len() == NUMBERS
        made = pl.when(whole).then(_z_up(parts, angle_format)).otherwise(values.cast(_LIST))
        return Boxes({BOX3D.name: made}, {} if one == BOX3D.name else {one: BOX3D.name})
    centre, extent = (_first(find, names) for names in (_CENTRES, _EXTENTS))
    if centre is None or extent is None:
        return None
    yaws = find.candidates((YAW.name, *YAW.aliases))
    if len(yaws) > 1:
        ways = " or ".join(option("columns", {name: YAW.name}) for name in yaws)
        message = f"columns {', '.join(map(repr, yaws))} could each be the yaw: write {ways}."
        find.problems.append(Problem(find.side, BOX3D.name, message, kind="ambiguous_column"))
    own = [*centre, *extent, *yaws[:1]]
    find.used.update(own)
    _ask(find, angle_format, own)
    parts = [dtypes.cast(pl.col(name), find.schema[name], pl.Float64()) for name in own]
    there = pl.any_horizontal(part.is_not_null() for part in parts)
    if not yaws:
        parts.append(pl.lit(0.0))
    made = pl.when(there).then(_z_up(parts, angle_format))
    return Boxes({BOX3D.name: made}, dict.fromkeys(own, BOX3D.name))


_LIST = pl.List(pl.Float64())
_POINTS_DEEP = 2  # lists of points
FRONT_UNKNOWN = "front_unknown"
"""Kind of the note of boxes that are given as corners."""


def _of_corners(find: Finder, name: str, angle_format: str | None) -> Boxes:
    """Boxes of lists of eight corners, in any order."""
    find.used.add(name)
    _ask(find, angle_format, [name])
    camera = angle_format == CAMERA
    made = pl.col(name).map_batches(
        lambda column: of_corners(column, camera=camera), return_dtype=_LIST, is_elementwise=True
    )
    said = (
        f"{find.side.replace('_', ' ')}: column {name!r} holds corners, which do not show where the"
        " front of a box is: its length is the longer side."
    )
    recognised = {} if name == BOX3D.name else {name: BOX3D.name}
    return Boxes({BOX3D.name: made}, recognised, [Note(FRONT_UNKNOWN, said)])


def _first(find: Finder, triples: Sequence[tuple[str, ...]]) -> list[str] | None:
    """Return the first triple of columns that are all present and numeric."""
    for names in triples:
        found = [find.candidates((name,)) for name in names]
        if all(len(one) == 1 and find.schema[one[0]].is_numeric() for one in found):
            return [one[0] for one in found]
    return None


def _z_up(parts: list[pl.Expr], angle_format: str | None) -> pl.Expr:
    """Seven numbers with z up, the centre in the middle and yaw in radians from x towards y."""
    x, y, z, length, width, height, yaw = parts
    yaw = yaw * FORMATS.get(angle_format or "", 1.0)
    if angle_format == CAMERA:  # seen from above, z runs up the page
        return pl.concat_list(x, z, height / 2 - y, length, width, height, -yaw)
    return pl.concat_list(x, y, z, length, width, height, yaw)


def _ask(find: Finder, angle_format: str | None, names: Sequence[str]) -> None:
    """Record that the up axis and the measurement of yaw are unknown."""
    if angle_format in FORMATS:
        return
    find.problems.append(
        Problem(
            find.side,
            BOX3D.name,
            f"{'columns' if len(names) > 1 else 'column'} {', '.join(map(repr, names))}: 3-D boxes,"
            " and nothing says which axis points up and how yaw is measured, which tools do"
            f" differently. Write {option('angle_format', Z_UP)} (the centre in the middle, yaw"
            f" from x towards y; degrees-z-up likewise) or {option('angle_format', CAMERA)}"
            " (KITTI's location and rotation_y: y down, the centre at the bottom).",
            kind="angle_format_missing",
        )
    )


def check(check: Check) -> None:
    """Refuse rows without a box, values other than seven finite numbers, and negative extents."""
    if BOX3D.name not in check.frame.columns:
        return
    bare = pl.col(BOX3D.name).is_null()
    n = check.count(bare)
    if n:
        own = check.named([BOX3D.name])
        check.add(
            "geometry_missing", BOX3D.name, n,
            f"{own}: {count_of(n, 'row')} without a 3-D box, {check.rows(bare, [])}. Give each row"
            " one, or remove these rows.",
        )  # fmt: skip
    numbers_of(check, BOX3D.name, NUMBERS, slice(3, 6), _WORDS)


_WORDS = (
    "without exactly seven numbers",
    "A 3-D box is cx, cy, cz, length, width, height, yaw.",
    "with a negative length, width or height",
    "Repair or remove these rows.",
    "no volume and cannot match",
)
