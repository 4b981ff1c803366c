"""Reference of COCO's greedy matching."""

from __future__ import annotations

from .detection_rows import Fate, Sides, Truth, box_iou, groups, outside


def match_greedy(sides: Sides, iou: float, limits: tuple[float, float] | None = None) -> list[Fate]:
    """Match predictions; return fates sorted by score, datum id and row.

    Within a datum and label, by descending score and then row, a prediction takes the free
    ground truth of highest IoU >= min(iou, 1 - 1e-10), the later one among equals. Regular
    ground truths precede ignored ones (crowds, and areas outside the range). Crowds stay free.
    A prediction is ignored if it matches an ignored ground truth, or if it has no match and its
    area is outside the range.
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
