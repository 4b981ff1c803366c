"""Which geometry is compared: what was asked for, else the most detailed that every row has.

Masks and raster files are more detailed than polygons, polygons than oriented boxes, and these
than boxes. Where nothing was
asked for, every row is brought down to the least detailed row's; the ``coco`` dialect brings
polygons up to masks where there are some, as pycocotools does. Source: Valor's evaluation of
mixed annotation types; pycocotools ``COCOeval._prepare``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ...ingest.frames import Frames
from ...ingest.problems import Note, count_of, note_of
from ...schemas.wording import option
from .settings import Settings

Array = np.ndarray[Any, Any]

BOX, OBB, POLYGON, MASK = 0, 1, 2, 3
"""Kinds of geometry, by detail."""
POINTS = "points"
"""Keypoints, which are no region: nothing else becomes them, nor they anything else."""
SOLID = "solid"
"""3-D boxes, likewise."""
KINDS = {"box": BOX, "obb": OBB, "polygon": POLYGON, "mask": MASK}
WORDS = {
    BOX: ("box", "boxes"),
    OBB: ("oriented box", "oriented boxes"),
    POLYGON: ("polygon", "polygons"),
    MASK: ("mask", "masks"),
}
_COLUMNS = {BOX: ("xmin",), OBB: ("obb",), POLYGON: ("polygon",), MASK: ("mask", "raster")}


def has(frame: pl.DataFrame, kind: int) -> Array:
    """Which rows have geometry of a kind, bool [n]."""
    there = np.zeros(frame.height, bool)
    for name in _COLUMNS[kind]:
        if name in frame.columns:
            there |= frame[name].is_not_null().to_numpy()
    return there


def kinds_of(frame: pl.DataFrame) -> Array:
    """The most detailed geometry of each row, int8 [n]."""
    kinds = np.full(frame.height, BOX, np.int8)
    for kind in (OBB, POLYGON, MASK):
        kinds[has(frame, kind)] = kind
    return kinds


def choose(frames: Frames, settings: Settings) -> int:
    """The kind that is compared; told among the notes where a table has more than boxes.

    Args:
        frames: both sides, checked.
        settings: what was asked for, and the dialect's rules.
    """
    sides = {"predictions": frames.predictions, "ground truths": frames.ground_truths}
    kinds = {name: kinds_of(frame) for name, frame in sides.items()}
    every = np.concatenate(list(kinds.values()))
    if settings.geometry is not None:
        target = KINDS[settings.geometry]
        why = settings.geometry_said
    else:
        target = int(every.min()) if every.size else BOX
        why = "the most detailed that every row has"
        if target == OBB and (every != OBB).any():
            target = POLYGON  # which any of the others may be without a loss
        if settings.rules.masks_first and target == POLYGON and (every == MASK).any():
            target, why = MASK, "as pycocotools does with polygons beside masks"
    told = every.size and (every != BOX).any()
    if settings.geometry is not None:
        if told:
            frames.notes.append(Note("geometry", f"{WORDS[target][1]} are compared, {why}."))
        for name, frame in sides.items():
            frames.notes += _converted(name, read_as(frame, target), target)
    elif told:
        found = "; ".join(f"{name}: {_counted(own)}" for name, own in kinds.items())
        said = f"{WORDS[target][1]} are compared, {why} ({found})."
        frames.notes.append(Note("geometry", f"{said} {option('convert_to')} says otherwise."))
    return target


def _converted(side: str, kinds: Array, target: int) -> list[Note]:
    """How many rows become what was asked for, in notes that those of parts of a run add up to."""
    notes = []
    to, to_several = WORDS[target]
    for kind, (one, several) in WORDS.items():
        n = int((kinds == kind).sum()) if kind != target else 0
        if n:
            words = f"{one} becomes a {to}", f"{several} become {to_several}", "to be compared"
            notes.append(note_of("converted", n, words, before=f"{side}: "))
    return notes


def _counted(kinds: Array) -> str:
    """``830 polygons and 9 masks``."""
    parts = [
        count_of(n, *WORDS[kind])
        for kind in (POLYGON, MASK, OBB, BOX)
        if (n := int((kinds == kind).sum()))
    ]
    return " and ".join(parts) or "no rows"


_PREFERRED = {
    BOX: (MASK, POLYGON, OBB, BOX),
    OBB: (MASK, BOX, POLYGON, OBB),
    POLYGON: (BOX, MASK, OBB, POLYGON),
    MASK: (BOX, OBB, POLYGON, MASK),
}
"""What is compared -> of which kind a row is read, the best last."""


def read_as(frame: pl.DataFrame, target: int) -> Array:
    """Of which kind each row is read so that it can be compared as ``target``, int8 [n]."""
    kinds = np.full(frame.height, BOX, np.int8)
    for kind in _PREFERRED[target]:
        kinds[has(frame, kind)] = kind
    return kinds
