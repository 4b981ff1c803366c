"""The matching that Valor's document prints (``rank_ious``), to the letter."""

from __future__ import annotations

from .detection_rows import Fate, Sides, box_iou, groups, outside


def match_pool(sides: Sides, iou: float, limits: tuple[float, float] | None = None) -> list[Fate]:
    """Fates in the order of average precision: by score, datum id, row.

    Within a datum and label, by descending score, every prediction is paired with the ground
    truth of highest IoU that is still in the pool (the first in row order among equals, even at
    IoU 0), and both leave. A pair is true at IoU >= ``iou``. Predictions of a label that the
    datum's ground truths lack are left out of average precision and recall.
    """
    fates = []
    for predictions, truths in groups(sides):
        pool = list(truths)
        for rank, p in enumerate(sorted(predictions, key=lambda p: (-p.score, p.row))):
            truth, overlap = None, -1.0
            for g in pool:
                if box_iou(p.box, g.box) > overlap:
                    truth, overlap = g, box_iou(p.box, g.box)
            if truth is not None:
                pool.remove(truth)
            if truth is not None and overlap >= iou:
                status = "ignored" if outside(truth.area, limits) else "tp"
            else:
                truth, status = None, "ignored" if outside(p.area, limits) else "fp"
            fates.append(Fate(p, status, truth, rank, left_out=not truths))
    return sorted(fates, key=lambda f: (-f.prediction.score, f.prediction.datum, f.prediction.row))
