"""Reference of the matching in Valor's documentation (``rank_ious``)."""

from __future__ import annotations

from .detection_rows import Fate, Sides, box_iou, groups, outside


def match_pool(sides: Sides, iou: float, limits: tuple[float, float] | None = None) -> list[Fate]:
    """Match predictions; return fates sorted by score, datum id and row.

    Within a datum and label, by descending score, every prediction is paired with the ground
    truth of highest IoU in the pool (the first row among equals, even at IoU 0), and both are
    removed. A pair is a true positive if IoU >= ``iou``. Average precision and recall skip
    predictions of a label that the datum's ground truths do not have.
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
