"""Valor's matching: every prediction is locked to the one ground truth it overlaps most."""

from __future__ import annotations

from .detection_rows import Fate, Prediction, Sides, Truth, box_iou, groups, outside


def _lock(prediction: Prediction, truths: list[Truth]) -> tuple[Truth | None, float]:
    """The ground truth overlapped most, the first in row order among equals."""
    best, most = None, 0.0
    for g in truths:
        overlap = box_iou(prediction.box, g.box)
        if overlap > most:
            best, most = g, overlap
    return best, most


def match_locked(sides: Sides, iou: float, limits: tuple[float, float] | None = None) -> list[Fate]:
    """Fates in the order of average precision: by score, then IoU, datum id, row.

    A prediction is a true positive if it overlaps its ground truth by at least ``iou``, no
    prediction before it does, and its score is not 0. What is true outside the area range is
    ignored, as is what is false and has an area outside it.
    """
    locked = {p.row: _lock(p, truths) for predictions, truths in groups(sides) for p in predictions}
    ordered = sorted(sides.predictions, key=lambda p: (-p.score, -locked[p.row][1], p.datum, p.row))
    fates = []
    taken: set[int] = set()
    seen: dict[object, int] = {}
    for p in ordered:
        truth, overlap = locked[p.row]
        rank = seen.get((p.label, p.datum), 0)
        seen[p.label, p.datum] = rank + 1
        if truth is None or overlap < iou or truth.row in taken or p.score <= 0:
            fates.append(Fate(p, "ignored" if outside(p.area, limits) else "fp", None, rank))
            continue
        taken.add(truth.row)
        fates.append(Fate(p, "ignored" if outside(truth.area, limits) else "tp", truth, rank))
    return fates
