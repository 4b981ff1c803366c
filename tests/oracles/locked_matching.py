"""Reference of Valor's matching to the ground truth of highest IoU only."""

from __future__ import annotations

from .detection_rows import Fate, Prediction, Sides, Truth, box_iou, groups, outside


def _lock(prediction: Prediction, truths: list[Truth]) -> tuple[Truth | None, float]:
    """Return the ground truth of highest IoU, the first row among equals."""
    best, most = None, 0.0
    for g in truths:
        overlap = box_iou(prediction.box, g.box)
        if overlap > most:
            best, most = g, overlap
    return best, most


def match_locked(sides: Sides, iou: float, limits: tuple[float, float] | None = None) -> list[Fate]:
    """Match predictions; return fates sorted by score, IoU, datum id and row.

    A prediction is a true positive if its IoU is at least ``iou``, no earlier prediction has
    taken its ground truth, and its score is above 0. True positives are ignored if the ground
    truth's area is outside the range, false positives if their own area is.
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
