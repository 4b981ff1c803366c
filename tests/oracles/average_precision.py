"""Reference of the 101-point interpolated precision-recall curve, in floats and integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

LEVELS = 101


def interpolated_coco(
    hits: Sequence[bool | None], scores: Sequence[float], n_truths: int
) -> tuple[list[float], list[float | None]]:
    """Compute precision and scores at recall 0, 0.01, ..., 1 as pycocotools does.

    Args:
        hits: True for true positives, False for false positives, by descending score; None for
            ignored predictions, which are not counted but have a point on the curve.
        scores: scores of the predictions.
        n_truths: number of ground truths, not 0.

    Returns:
        Precisions and scores; 0 and None if a recall is not reached.
    """
    recall, precision = [], []
    tp = fp = 0
    for hit in hits:
        tp += hit is True
        fp += hit is False
        recall.append(tp / n_truths)
        precision.append(tp / (fp + tp + np.spacing(1)))
    for i in range(len(precision) - 1, 0, -1):
        precision[i - 1] = max(precision[i - 1], precision[i])
    out: list[float] = []
    at: list[float | None] = []
    for level in np.linspace(0.0, 1.0, LEVELS):
        first = next((i for i, r in enumerate(recall) if r >= level), None)
        out.append(0.0 if first is None else float(precision[first]))
        at.append(None if first is None else scores[first])
    return out, at


def interpolated_exact(
    hits: Sequence[bool | None], scores: Sequence[float], n_truths: int
) -> tuple[list[float], list[float | None]]:
    """Compute the curve in integers: level k is reached if 100 tp >= k n."""
    points = []
    tp = fp = 0
    for hit, score in zip(hits, scores, strict=True):
        tp += hit is True
        fp += hit is False
        points.append((tp, tp / (tp + fp) if tp else 0.0, score))
    out: list[float] = []
    at: list[float | None] = []
    for level in range(LEVELS):
        reached = [point for point in points if 100 * point[0] >= level * n_truths]
        out.append(max((point[1] for point in reached), default=0.0))
        at.append(reached[0][2] if reached else None)
    return out, at
