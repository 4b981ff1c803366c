"""Oriented boxes in tables: centre, extent and angle, in one list or in separate columns.

Tools disagree on the direction and unit of the angle, and tables do not define them: one of
:data:`ANGLES` is required before reading.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from evalengine.geometry.columns import flat
from evalengine.schemas.geometry_columns import ANGLE, BOX3D, OBB
from evalengine.schemas.wording import option

from ..schemas.arrays import Array
from . import dtypes
from .boxes import Boxes, four_columns
from .finding import Finder
from .problems import Problem, count_of, note_of

if TYPE_CHECKING:
    from .checks import Check


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


def columns_of(
    find: Finder, box_format: str | None, angle_format: str | None, *, needed: bool
) -> Boxes | None:
    """Find oriented boxes in columns of centre, extent and angle; None without them.

    Args:
        find: the table's columns; claimed if they are read.
        box_format: cxcywh if columns x and y are centres.
        angle_format: unit and direction of the angle; if None, its absence is a problem.
        needed: whether the table has no other geometry to compare.
    """
    angles = find.candidates((ANGLE.name, *ANGLE.aliases))
    if len(angles) != 1 or not find.schema[angles[0]].is_numeric():
        return None
    known, used = len(find.problems), set(find.used)
    form, names = four_columns(find) or ("", ())
    own = [*names, angles[0]]
    if form == "cxcywh" or (form == "xywh" and box_format == "cxcywh"):
        if angle_format in ANGLES and all(find.schema[name].is_numeric() for name in own):
            find.used.update(own)
            parts = [dtypes.cast(pl.col(n), find.schema[n], pl.Float64()) for n in own]
            there = pl.any_horizontal(part.is_not_null() for part in parts)
            turned = pl.when(there).then(pl.concat_list(parts))
            return Boxes({OBB.name: turned}, dict.fromkeys(own, OBB.name))
        del find.problems[known:]
        if needed:
            ask(find, angle_format, own, ANGLE.name)
    else:
        del find.problems[known:]
        if needed and angle_format is not None and names:
            find.problems.append(
                Problem(find.side, ANGLE.name,
                        f"column {angles[0]!r} is beside {', '.join(map(repr, names))}: what a"
                        " box is turned about is only known of its centre. Give cx, cy, w, h and"
                        f" the angle, or leave {option('angle_format')} out.",
                        kind="angle_without_centre")
            )  # fmt: skip
    find.used = used
    return None


def ask(
    find: Finder, angle_format: str | None, names: Sequence[str], column: str = OBB.name
) -> None:
    """Record that the measurement of the angle of oriented boxes is unknown.

    Args:
        angle_format: the given format, or None.
        column: column of the problem: the angle is irrelevant if upright boxes are compared.
    """
    if angle_format in ANGLES:
        return
    ways = ", ".join(option("angle_format", name) for name in ANGLES)
    find.problems.append(
        Problem(
            find.side,
            column,
            f"{'columns' if len(names) > 1 else 'column'} {', '.join(map(repr, names))}: oriented"
            " boxes, and nothing says how their angle is measured, which tools do differently."
            f" Write one of {ways} (as the image is seen, y running down);"
            f" {option('iou_type', 'bbox')} compares upright boxes.",
            kind="angle_format_missing",
        )
    )


def check(check: Check) -> None:
    """Refuse values other than five finite numbers, and negative extents; note boxes of zero
    area.
    """
    numbers_of(check, OBB.name, _NUMBERS, slice(2, 4), _WORDS)


_WORDS = (
    "without exactly five numbers",
    "An oriented box is cx, cy, width, height, angle.",
    "with a negative width or height",
    "Swap the corners they are of.",
    "zero area and cannot match",
)


def numbers_of(
    check: Check, name: str, many: int, extents: slice, words: tuple[str, str, str, str, str]
) -> None:
    """Refuse lists of another length, with numbers that are not finite, or with a negative extent.

    Args:
        words: phrases for a wrong length and the right one; for a negative extent and its remedy;
            for a box with an extent of 0.
    """
    if name not in check.frame.columns:
        return
    column = check.frame[name]
    there = column.is_not_null().to_numpy()
    values, (offsets,) = flat(column)
    length = np.diff(offsets)
    odd = there & (length != many)
    if odd.any():
        hint = "".join(said for many, said in _HINTS[name].items() if many in length[odd])
        _tell(check, "wrong_length", name, odd, words[0], f"{words[1]}{hint}")
        return
    numbers = np.full((there.size, many), 0.0)
    read = values.cast(pl.Float64).fill_null(float("nan")).to_numpy().reshape(-1, many)
    numbers[there] = read
    finite = np.isfinite(numbers).all(axis=1)
    if not finite.all():
        _tell(
            check,
            "not_finite",
            name,
            ~finite,
            "with null, NaN or infinity",
            "Repair or remove these rows.",
        )
    extent = numbers[:, extents]
    negative = finite & (extent < 0).any(axis=1)
    if negative.any():
        _tell(check, "too_low", name, negative, words[2], words[3])
    flat_ones = int((finite & there & ~negative & (extent == 0).any(axis=1)).sum())
    if flat_ones:
        said = "box has", "boxes have", words[4]
        check.notes.append(note_of("zero_area_boxes", flat_ones, said, before=f"{check.side}: "))


_HINTS = {
    OBB.name: {8: " Eight are four corners: name that column polygon."},
    BOX3D.name: {
        24: " Eight corners, a list of eight points a row, must be those of an upright box."
    },
}
"""Length of an invalid box list -> its likely meaning."""


def _tell(check: Check, code: str, name: str, wrong: Array, what: str, way: str) -> None:
    n = int(wrong.sum())
    shown = check.rows(pl.lit(pl.Series(wrong)), [name])
    own = check.named([name])
    check.add(code, name, n, f"{own}: {count_of(n, 'row')} {what}, {shown}. {way}")
