"""Choice of the compared geometry: as requested, otherwise the most detailed that all rows have.

Detail increases from boxes over oriented boxes and polygons to masks and raster files. By default,
all rows are converted to the least detailed geometry; the ``coco`` dialect converts polygons to
masks if there are some, as pycocotools does. Source: Valor's evaluation of mixed annotation types;
pycocotools ``COCOeval._prepare``.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ...ingest.frames import Frames
from ...ingest.problems import Note, count_of, note_of
from ...schemas.arrays import Array
from ...schemas.wording import option
from .settings import Settings

BOX, OBB, POLYGON, MASK = 0, 1, 2, 3
"""Kinds of geometry, by detail."""
POINTS = "points"
"""Keypoints, which are not a region and cannot be converted to or from other geometry."""
SOLID = "solid"
"""3-D boxes, which cannot be converted to or from other geometry."""
KINDS = {"box": BOX, "obb": OBB, "polygon": POLYGON, "mask": MASK}
WORDS = {
    BOX: ("box", "boxes"),
    OBB: ("oriented box", "oriented boxes"),
    POLYGON: ("polygon", "polygons"),
    MASK: ("mask", "masks"),
}
_COLUMNS = {BOX: ("xmin",), OBB: ("obb",), POLYGON: ("polygon",), MASK: ("mask", "raster")}


def has(frame: pl.DataFrame, kind: int) -> Array:
    """Return a mask of rows that have geometry of a kind, bool [n]."""
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
    """Return the compared kind; adds a note if a table has more than boxes."""
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
    """Return notes on the number of converted rows, which add up over parts of a run."""
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
"""Compared geometry -> kinds to read a row from, the best last."""


def read_as(frame: pl.DataFrame, target: int) -> Array:
    """Return the kind from which each row is converted to ``target``, int8 [n]."""
    kinds = np.full(frame.height, BOX, np.int8)
    for kind in _PREFERRED[target]:
        kinds[has(frame, kind)] = kind
    return kinds
