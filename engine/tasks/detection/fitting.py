"""The metrics that the tables at hand can carry: boxes with scores carry all of detection's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import polars as pl

from ...ingest.annotated_sides import SIZES_OF_SOME, SIZES_UNKNOWN
from ...ingest.collecting import Prepared
from ...ingest.frames import Frames
from ...ingest.geometry_columns import GEOMETRY_NAMES
from ...ingest.problems import Note
from ...metrics.registry import Metric
from ...schemas.errors import InputError
from ...schemas.geometry_columns import HEAD_SIZE, KEYPOINTS
from ...schemas.options import Options
from ...schemas.wording import option
from ..image_sizes import SIZE_NAMES
from .difficulties import angles_unknown
from .found_errors import ANGLES, OF_FOUND, READS
from .geometry import POINTS, SOLID
from .places import PLACES
from .point_marks import NEEDS, PCKH
from .settings import DISTANCE, Settings


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """All of them but those that the tables cannot carry: see :func:`_lacking`.

    Raises:
        InputError: no other was asked for; area ranges of images of which some have no size.
    """
    _hold_areas(frames, settings)
    kept, said, notes = metrics, [], []
    for kind, needs, why in _lacking(frames, settings):
        left = [one for one in kept if needs & {*one.needs}]
        if left:
            kept = tuple(one for one in kept if one not in left)
            names = ", ".join(one.name for one in left)
            said.append(f"{names}: {why}.")
            notes.append(Note(kind, f"{names} left out: {why}."))
    if asked_for and said and not kept:
        raise InputError(" ".join(said))
    if not asked_for:  # of what no dialect's default set has nothing is told
        notes = [one for one in notes if settings.by_distance and one.kind == "without_columns"]
    return (kept, notes) if kept else (metrics, [])


def _lacking(frames: Frames, settings: Settings) -> Iterator[tuple[str, frozenset[str], str]]:
    """What the tables lack: the kind of its note, the needs it serves and what to do about it."""
    if settings.geometry != POINTS:
        why = f"no keypoints are compared: write {option('iou_type', KEYPOINTS.name)}"
        yield "without_keypoints", NEEDS, why
    elif settings.head_segment is None and HEAD_SIZE.name not in frames.ground_truths.columns:
        why = "heads have no size: give the ground truths a column head_size, or write"
        why += f" {option('head_segment', [9, 10])} with your two points"
        yield "without_keypoints", frozenset({PCKH}), why
    if settings.geometry == SOLID:
        yield "without_sizes", frozenset({PLACES}), "3-D boxes have no place in an image"
    elif frames.datums is None or not {*SIZE_NAMES} <= {*frames.datums.columns}:
        why = "images have no size: give a table of datum_id, height and width as"
        yield "without_sizes", frozenset({PLACES}), f"{why} {option('datums')}"
    if settings.rules.linear is None:
        why = f"they are of dialect nuscenes: write {option('iou_type', DISTANCE)} with it"
        yield "without_errors", frozenset({OF_FOUND}), why
    sides = frames.predictions, frames.ground_truths
    why = "" if settings.rules.positions else "it is of dialect kitti"
    if settings.geometry == SOLID:
        why = f"it is of boxes in pixels: write {option('iou_type', 'bbox')}"
    why = why or angles_unknown(frames.predictions)
    if why:
        yield "without_angles", frozenset({ANGLES}), why
    if settings.rules.positions:
        why = f"dialect kitti matches anew at every score: write {option('dialect', 'standard')}"
        yield "without_errors", frozenset({"errors", "shown errors", "label errors"}), why
    for need, names in READS.items():
        if any(name not in side.columns for side in sides for name in names):
            why = f"both sides need {' and '.join(f'a column {name}' for name in names)}"
            yield "without_columns", frozenset({need}), why
    if settings.by_distance:
        why = "they rest on IoU, and distances are compared"
        yield "without_iou", frozenset({"label errors"}), why


def _hold_areas(frames: Frames, settings: Settings) -> None:
    """Refuse area ranges where some images have no size, and warn where none has one.

    Raises:
        InputError: naming these images, and files that cannot be read.
    """
    for place, note in enumerate(frames.notes if settings.ranged else ()):
        if note.kind == SIZES_OF_SOME:
            raise InputError(f"area ranges: {note.message}")
        if note.kind == SIZES_UNKNOWN:
            frames.notes[place] = msgspec.structs.replace(note, warning=True)


def needs_all_rows(
    ready: Prepared, heads: Mapping[str, pl.DataFrame], settings: Settings, options: Options
) -> str:
    """Why only all rows together tell what is compared: the geometry that every row has.

    Args:
        ready: the tables.
        heads: the first rows of each; unused.
        settings: the run's settings; unused.
        options: whose ``convert_to`` or ``iou_type`` names the geometry.
    """
    names = {name for side in ready.sides.values() for name in side.naming.exprs}
    asked = options.convert_to is not None or options.iou_type is not None
    if asked or not names & set(GEOMETRY_NAMES):
        return ""
    return (
        "what polygons and masks are compared as depends on all rows; write"
        f" {option('convert_to', 'mask')} or another"
    )
