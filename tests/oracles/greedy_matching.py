"""COCO's matching: by descending score, each takes the best ground truth that is still free."""

from __future__ import annotations

from .detection_rows import Fate, Sides, Truth, box_iou, groups, outside


def match_greedy(sides: Sides, iou: float, limits: tuple[float, float] | None = None) -> list[Fate]:
    """Fates in the order that average precision walks them: by score, datum id, row.

    Within a datum and label, by descending score (ties: row order), a prediction takes the
    ground truth of highest IoU >= min(iou, 1 - 1e-10) that is free, the later one among equals;
    a regular ground truth goes before an ignored one (crowd, or area outside the range). A crowd
    is never used up. Matched to an ignored one, or unmatched with an area outside the range, the
    prediction is ignored.
    """
    floor = min(iou, 1 - 1e-10)
    fates = []
    for predictions, truths in groups(sides):
        taken: set[int] = set()
        ordered = sorted(predictions, key=lambda p: (-p.score, p.row))
        for rank, p in enumerate(ordered):
            best: dict[bool, tuple[float, int, Truth]] = {}
            for g in truths:
                overlap = box_iou(p.box, g.box, crowd=g.crowd)
                if overlap < floor or (g.row in taken and not g.crowd):
                    continue
                ignored = g.crowd or outside(g.area, limits)
                if ignored not in best or (overlap, g.row) > best[ignored][:2]:
                    best[ignored] = (overlap, g.row, g)
            if False in best:
                truth, status = best[False][2], "tp"
            elif True in best:
                truth, status = best[True][2], "ignored"
            else:
                truth, status = None, "ignored" if outside(p.area, limits) else "fp"
            if truth is not None:
                taken.add(truth.row)
            fates.append(Fate(p, status, truth, rank))
    return sorted(fates, key=lambda f: (-f.prediction.score, f.prediction.datum, f.prediction.row))
