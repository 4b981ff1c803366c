"""Federated annotation: rows of labels that nobody looked for in a datum, and of no area."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ingest.frames import Frames
from ...ingest.problems import note_of
from ...kernels.federated import judged
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS
from .encode import Batch
from .matching import LaidOut, annotated_areas
from .rules import DetectionRules

Array = np.ndarray[Any, Any]


def taking_part(
    batch: Batch, sides: tuple[LaidOut, LaidOut], rules: DetectionRules
) -> tuple[tuple[LaidOut, LaidOut], Array, tuple[int, int]]:
    """The rows that count at all, and which predictions are not held against a run.

    Args:
        batch: encoded tables.
        sides: its predictions and ground truths as laid out.
        rules: of the dialect.

    Returns:
        the sides; bool [n], predictions whose miss is none, [0] where there are none such; rows of
        the predictions and of the ground truths that do not count.
    """
    ours, theirs = sides
    kept = np.ones(ours.row.size, np.bool_)
    lenient = np.zeros(0, np.bool_)
    if batch.graded is not None:
        return (ours, theirs.where(~theirs.laid(batch.graded.left))), lenient, (0, 0)
    if GROUND_TRUTHS in rules.needs_area:
        theirs = theirs.where(_is_area(annotated_areas(batch, theirs)))
    if PREDICTIONS in rules.needs_area:
        kept = _is_area(ours.area)
    if batch.listed is not None:
        of = batch.listed
        looked_for, lenient = judged(
            (ours.start, ours.datum),
            (theirs.start, theirs.datum),
            (of.start, of.datum),
            (of.checked, of.partial),
            len(batch.datums),
        )
        kept &= looked_for
    left = int(kept.size - kept.sum()), int(sides[1].row.size - theirs.row.size)
    if rules.most_of_label:  # they take up places, and can hit nothing
        return (ours, theirs), lenient | ~kept, left
    return (ours.where(kept), theirs), lenient[kept] if lenient.size else lenient, left


def _is_area(area: Array) -> Array:
    inside: Array = (area > 0) & (area < np.inf)
    return inside


def left_out(frames: Frames, left: tuple[int, int]) -> None:
    """Say how many rows of both sides do not count."""
    words = (
        ("row", "rows", "of labels that nobody looked for in the datum, or of no area, left out"),
        ("row", "rows", "of no area left out"),
    )
    kinds = ("not_judged", "without_area")
    for side, n, said, kind in zip((PREDICTIONS, GROUND_TRUTHS), left, words, kinds, strict=True):
        if n:
            frames.notes.append(note_of(kind, n, said, before=f"{side.replace('_', ' ')}: "))
