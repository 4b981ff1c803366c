"""Reference of average precision by Pascal VOC's published rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class VocRules:
    """Rules in which evaluators of VOC differ.

    Attributes:
        levels: recall levels; None for the area under the curve.
        above: True if the IoU must exceed the threshold.
        pixel: 1 if a box includes its last pixel.
        decimals: decimals of scores and corners in files; None for all.
    """

    levels: Sequence[float] | None = None
    above: bool = False
    pixel: float = 1.0
    decimals: tuple[int, int] | None = None


TENTHS = [x * 0.1 for x in range(11)]
MATLAB_TENTHS = [*TENTHS[:6], 0.6, 0.7, 0.8, 0.9, 1.0]
RULES = {
    "voc2007": VocRules(MATLAB_TENTHS),
    "voc2012": VocRules(),
    "voc-mmdetection": VocRules(pixel=0.0),
    "voc-detectron2": VocRules(TENTHS, above=True, decimals=(3, 1)),
}


def overlap(a: Box, b: Box, pixel: float) -> float:
    """Compute IoU of two boxes."""
    w = min(a[2], b[2]) - max(a[0], b[0]) + pixel
    h = min(a[3], b[3]) - max(a[1], b[1]) + pixel
    if w <= 0 or h <= 0:
        return 0.0
    areas = [(box[2] - box[0] + pixel) * (box[3] - box[1] + pixel) for box in (a, b)]
    return w * h / (areas[0] + areas[1] - w * h)


def average_precision(
    predictions: Sequence[tuple[Any, float, Box]],
    truths: Sequence[tuple[Any, Box, bool]],
    iou: float,
    rules: VocRules,
    shared: Callable[[Any, Any, float], float] = overlap,
) -> float | None:
    """Compute AP of one class; None without an object that is not difficult.

    Args:
        predictions: image, score and box per prediction; equal scores keep this order.
        truths: image, box and difficult (bool).
        iou: threshold.
        rules: rules of the evaluator.
        shared: IoU of two boxes or other objects, given the rule's pixel.
    """
    npos = sum(not difficult for *_, difficult in truths)
    if not npos:
        return None
    if rules.decimals is not None:
        s, c = rules.decimals
        predictions = [
            (image, float(f"{score:.{s}f}"), tuple(float(f"{x:.{c}f}") for x in box))  # type: ignore[misc]
            for image, score, box in predictions
        ]
    taken: set[int] = set()
    tp = fp = 0
    points = []
    for image, _, box in sorted(predictions, key=lambda one: -one[1]):
        best, at = 0.0, -1
        for i, (where, other, _) in enumerate(truths):
            if where == image and shared(box, other, rules.pixel) > best:
                best, at = shared(box, other, rules.pixel), i
        hit = best > iou if rules.above else best >= iou
        if hit and at >= 0 and truths[at][2]:
            pass
        elif hit and at >= 0 and at not in taken:
            taken.add(at)
            tp += 1
        else:
            fp += 1
        points.append((tp / npos, tp / (tp + fp) if tp else 0.0))
    if rules.levels is not None:
        reached = [max((p for r, p in points if r >= level), default=0.0) for level in rules.levels]
        return sum(reached) / len(reached)
    return area_under(points)


def area_under(points: Sequence[tuple[float, float]]) -> float:
    """Compute the area under the envelope of points (recall, precision), by ascending recall."""
    total = before = 0.0
    for i, (recall, _) in enumerate(points):
        total += (recall - before) * max(p for _, p in points[i:])
        before = recall
    return total
