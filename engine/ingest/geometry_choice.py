"""Selection of geometry columns to read: only boxes if boxes are compared.

Reading and decoding masks costs far more than all other steps. The geometry of each row is chosen
when rows are encoded, since rows may differ.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from evalengine.ingest.sources.source import Source
from evalengine.ingest.sources.tables import READ_FAILURES
from evalengine.schemas import tables
from evalengine.schemas.columns import OCCLUDED, TRUNCATED
from evalengine.schemas.contract import GROUND_TRUTHS, PREDICTIONS, Table
from evalengine.schemas.geometry_columns import (
    ALPHA,
    ANGLE,
    BOX3D,
    HEAD_SIZE,
    HEIGHT_2D,
    KEYPOINTS,
    NUM_KEYPOINTS,
    OF_SOLIDS,
)
from evalengine.schemas.options import Options
from evalengine.schemas.wording import option

from .boxes import BOX_NAMES, CORNER_NAMES
from .boxes_3d import FRONT_UNKNOWN, IOU_TYPES
from .geometry_columns import GEOMETRY_NAMES, SHAPED_NAMES, says_boxes
from .names import Naming, recognise
from .opening import Inputs
from .problems import Note, Problem

POINTS = KEYPOINTS.name
"""Value of ``iou_type`` for keypoints."""
_OWN = (
    (
        KEYPOINTS.name,
        (KEYPOINTS.name, NUM_KEYPOINTS.name, HEAD_SIZE.name),
        (POINTS,),
        "keypoints",
        "Needed is a list column keypoints (x, y, visibility of each), or columns x_1, y_1, v_1,"
        " x_2, ...",
    ),
    (
        BOX3D.name,
        (BOX3D.name, *(column.name for column in OF_SOLIDS)),
        IOU_TYPES,
        "3-D boxes",
        "Needed is a list column box3d (cx, cy, cz, length, width, height, yaw), or a column"
        " of each.",
    ),
)
"""Geometry that cannot be converted: its column, columns read with it, its ``iou_type``, and its
name in messages.
"""

DISTANCE = "distance"
"""Value of ``iou_type`` for nuScenes' distance of centres."""
_OFTEN_OTHERS = {OCCLUDED.name, TRUNCATED.name, ALPHA.name}
"""Columns that many tables use with other meanings, such as flags; not read in that case."""


def points_alone(inputs: Inputs, task: str, options: Options) -> bool:
    """Return whether both sides have keypoints, and one of them no other geometry."""
    held = [tables.contracts(task).get(role) for role in (PREDICTIONS, GROUND_TRUTHS)]
    sides = []
    for role, table in zip((PREDICTIONS, GROUND_TRUTHS), held, strict=True):
        if table is None or table.shape != "boxes" or role not in inputs.schemas:
            return False
        schema = inputs.schemas[role]
        found = recognise(
            schema, table, options.columns, options.box_format, options.angle_format
        ).exprs
        if POINTS not in found:
            return False
        sides.append({*CORNER_NAMES, *SHAPED_NAMES} & found.keys())
    return not all(sides)


def leave_unread(
    namings: Mapping[str, Naming],
    contracts: Mapping[str, Table],
    sources: Mapping[str, Source],
    options: Options,
) -> None:
    """Remove polygons and masks from the columns to read if boxes are compared and all rows have
    one.

    Args:
        namings: side to its recognised columns; modified in place.
        contracts: side to its contract.
        sources: side to its rows.
        options: ``iou_type`` and ``convert_to`` define the comparison.
    """
    sides = {
        role: namings[role]
        for role in (PREDICTIONS, GROUND_TRUTHS)
        if role in namings and contracts[role].shape == "boxes" and namings[role].exprs
    }
    for naming in sides.values():
        _forget(naming, _OFTEN_OTHERS)
    if _of_their_own(sides, options):
        return
    if says_boxes(options):
        for naming in sides.values():
            _forget(naming, {ANGLE.name})
    asked = options.iou_type is not None or options.convert_to is not None
    shaped = [bool(set(SHAPED_NAMES) & naming.exprs.keys()) for naming in sides.values()]
    if not any(shaped):
        return
    if not (says_boxes(options) if asked else not all(shaped)):
        return
    for role, naming in sides.items():
        there = [name for name in SHAPED_NAMES if name in naming.exprs]
        if not there or not {*CORNER_NAMES} <= naming.exprs.keys():
            continue
        if _every_row_has_a_box(sources[role].frame, naming):
            _drop(naming, GEOMETRY_NAMES)
            _forget(naming, {*GEOMETRY_NAMES})
            if not asked:
                other = next(name for name in sides if name != role)
                said = (
                    f"boxes are compared, since the {_words(other)} have nothing else; column"
                    f" {there[0]!r} of the {_words(role)} is not read."
                )
                naming.notes.append(Note("geometry", said))


def _of_their_own(sides: Mapping[str, Naming], options: Options) -> bool:
    """Read geometry that cannot be converted only if it is compared; return whether it is."""
    asked = False
    for name, own, iou_types, what, needed in _OWN:
        wanted = options.iou_type in iou_types
        asked |= wanted
        for role, naming in sides.items():
            there = name in naming.exprs
            others = {*CORNER_NAMES, *SHAPED_NAMES, *(one[0] for one in _OWN)} - {name}
            if options.iou_type == DISTANCE and any(
                one.kind == FRONT_UNKNOWN for one in naming.notes
            ):
                said = "corners do not show where the front of a box is, which"
                said += f" {option('iou_type', DISTANCE)} needs. Give centre, extent and yaw."
                naming.problems.append(Problem(role, name, said, kind="front_unknown"))
            if wanted and not there and not naming.problems:
                said = f"no {what}, which {option('iou_type', options.iou_type)} compares. {needed}"
                said += f" If it has another name, write {option('columns', {'mine': name})}."
                naming.problems.append(Problem(role, name, said, kind="geometry_missing"))
            elif there and not wanted and not others & naming.exprs.keys():
                said = f"{what} and no boxes, polygons or masks: write"
                said += f" {' or '.join(option('iou_type', one) for one in iou_types)} to compare"
                naming.problems.append(
                    Problem(role, name, f"{said} them.", kind="iou_type_missing")
                )
                if name == BOX3D.name:
                    own_alone = [one for one in naming.problems if one.column == name]
                    naming.problems = own_alone  # that there are no boxes in pixels is said
            if not wanted:
                if others & naming.exprs.keys():
                    _forget(naming, {*own})
                if name == BOX3D.name:
                    naming.notes[:] = [one for one in naming.notes if one.kind != FRONT_UNKNOWN]
                _drop(naming, own)
    for naming in sides.values() if asked else ():
        gone = GEOMETRY_NAMES if options.iou_type == POINTS else (*GEOMETRY_NAMES, *BOX_NAMES)
        if options.iou_type in IOU_TYPES and {"ymin", "ymax"} <= naming.exprs.keys():
            seen = (naming.exprs["ymax"] - naming.exprs["ymin"]).abs()
            naming.exprs.setdefault(HEIGHT_2D.name, seen.alias(HEIGHT_2D.name))
        _drop(naming, gone)
        if options.iou_type != POINTS:
            _forget(naming, {ANGLE.name, *gone})
    return asked


def _words(role: str) -> str:
    return role.replace("_", " ")


def _every_row_has_a_box(frame: pl.LazyFrame, naming: Naming) -> bool:
    corners = [naming.exprs[name].is_null().any() for name in CORNER_NAMES]
    try:
        missing: bool = frame.select(pl.any_horizontal(corners)).collect().item()
    except READ_FAILURES:
        return True  # what is wrong is told when the rows are read
    return not missing


def _drop(naming: Naming, names: tuple[str, ...]) -> None:
    """Forget that columns were recognised, so that they are neither read nor reported."""
    for name in names:
        naming.exprs.pop(name, None)
    gone = set(names)
    naming.recognised = {
        mine: canonical
        for mine, canonical in naming.recognised.items()
        if not set(canonical.split(", ")) & gone
    }


def _forget(naming: Naming, columns: set[str]) -> None:
    """Drop the problems of columns that are not read."""
    naming.problems = [problem for problem in naming.problems if problem.column not in columns]
