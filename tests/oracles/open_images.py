"""Reference of Open Images' average precision, by TensorFlow's published rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .voc import Box, area_under, overlap

Truth = tuple[Box, bool, bool]
"""Box, difficult (bool), group (bool)."""


def share(box: Box, group: Box) -> float:
    """Compute the share of a prediction's area inside a group's box."""
    w = min(box[2], group[2]) - max(box[0], group[0])
    h = min(box[3], group[3]) - max(box[1], group[1])
    if w <= 0 or h <= 0:
        return 0.0
    return w * h / ((box[2] - box[0]) * (box[3] - box[1]))


def best(values: Sequence[float]) -> int:
    """Return the first index of the maximum."""
    return max(range(len(values)), key=lambda i: (values[i], -i))


def of_image(
    predictions: Sequence[tuple[float, Box]], truths: Sequence[Truth], iou: float, weight: int
) -> list[tuple[float, bool]]:
    """Match one image; return (score, hit) of counted predictions by descending score.

    Args:
        predictions: scores and boxes of one class.
        truths: ground truths of the class.
        iou: threshold.
        weight: weight of groups, 0 or 1. With 1, the best prediction in a group is a hit.
    """
    single = [truth for truth in truths if not truth[2]]
    groups = [truth for truth in truths if truth[2]]
    ordered = sorted((one for one in predictions if valid(one[1])), key=lambda one: -one[0])
    right: list[bool | None] = [False] * len(ordered)
    taken: set[int] = set()
    for i, (_, box) in enumerate(ordered):
        overlaps = [overlap(box, truth[0], 0.0) for truth in single]
        if overlaps and overlaps[best(overlaps)] >= iou:
            at = best(overlaps)
            if single[at][1]:
                right[i] = None
            elif at not in taken:
                taken.add(at)
                right[i] = True
    found_groups: set[int] = set()
    for i, (score, box) in enumerate(ordered):
        shares = [share(box, truth[0]) for truth in groups]
        if right[i] is False and shares and shares[best(shares)] >= iou:
            at = best(shares)
            counts = weight and score > 0 and at not in found_groups
            right[i] = True if counts else None
            if counts:
                found_groups.add(at)
    return [
        (score, bool(hit))
        for (score, _), hit in zip(ordered, right, strict=True)
        if hit is not None
    ]


def valid(box: Box) -> bool:
    """Return True if a box has an area."""
    return box[0] < box[2] and box[1] < box[3]


def average_precision(
    predictions: dict[Any, list[tuple[float, Box]]],
    truths: dict[Any, list[Truth]],
    iou: float,
    *,
    weight: int,
    verified: set[Any] | None,
) -> float | None:
    """Compute AP of one class; None without ground truths.

    Args:
        predictions: predictions by image.
        truths: ground truths by image.
        iou: threshold.
        weight: weight of groups.
        verified: images with a verified label of the class, in addition to those with boxes;
            None if all predictions count.
    """
    every = [truth for some in truths.values() for truth in some]
    n = sum(not hard and not group for _, hard, group in every)
    n += weight * sum(group for *_, group in every)
    if not n:
        return None
    entries = []
    for image in sorted(predictions):
        if verified is None or image in verified or truths.get(image):
            entries += of_image(predictions[image], truths.get(image, []), iou, weight)
    tp = fp = 0
    points = []
    for _, hit in sorted(entries, key=lambda one: -one[0]):
        tp, fp = tp + hit, fp + (not hit)
        points.append((tp / n, tp / (tp + fp)))
    return area_under(points)
