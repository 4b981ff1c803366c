"""Reference of KITTI's object benchmark, with one function per rule of its development kit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

HEIGHT = {"easy": 40, "moderate": 25, "hard": 25, "all": -1}
OCCLUDED = {"easy": 0, "moderate": 1, "hard": 2, "all": math.inf}
TRUNCATED = {"easy": 0.15, "moderate": 0.3, "hard": 0.5, "all": math.inf}
NEIGHBOUR = {"Car": "Van", "Pedestrian": "Person_sitting"}
POSITIONS = 41

Row = dict[str, Any]
Similarity = Callable[[Row, Row], float]


class Image(NamedTuple):
    """Rows of one image in file order; ``kind`` per row is 1 if ignored and 0 if counted."""

    predictions: list[Row]
    truth: list[Row]
    predicted_kind: list[int]
    truth_kind: list[int]
    regions: list[Row]


def iou_2d(one: Row, two: Row, share: bool = False) -> float:
    """Compute IoU, or the shared area over that of the first box."""
    width = min(one["xmax"], two["xmax"]) - max(one["xmin"], two["xmin"])
    height = min(one["ymax"], two["ymax"]) - max(one["ymin"], two["ymin"])
    if width <= 0 or height <= 0:
        return 0.0
    area, other = ((box["xmax"] - box["xmin"]) * (box["ymax"] - box["ymin"]) for box in (one, two))
    shared = width * height
    return float(shared / area if share else shared / (area + other - shared))


def image(predictions: Sequence[Row], truth: Sequence[Row], label: str, difficulty: str) -> Image:
    """Select ground truths of the label and its neighbour, detections of the label, small ones."""
    truths, truth_kind = [], []
    for row in truth:
        hard = (
            row["occluded"] > OCCLUDED[difficulty]
            or row["truncated"] > TRUNCATED[difficulty]
            or row["ymax"] - row["ymin"] <= HEIGHT[difficulty]
        )
        if row["label_value"] in (label, NEIGHBOUR.get(label)):
            truths.append(row)
            truth_kind.append(int(hard or row["label_value"] != label))
    selected, predicted_kind = [], []
    for row in predictions:
        small = row["ymax"] - row["ymin"] < HEIGHT[difficulty]
        if small or row["label_value"] == label:
            selected.append(row)
            predicted_kind.append(int(small))
    regions = [row for row in truth if row["label_value"] == "DontCare"]
    return Image(selected, truths, predicted_kind, truth_kind, regions)


def hits(one: Image, similarity_of: Similarity, least: float) -> list[float]:
    """Return scores of true positives if each ground truth takes the best score."""
    used = [False] * len(one.predictions)
    scores = []
    for truth, kind in zip(one.truth, one.truth_kind, strict=True):
        best = None
        for j, row in enumerate(one.predictions):
            better = best is None or row["score"] > one.predictions[best]["score"]
            if not used[j] and better and similarity_of(row, truth) > least:
                best = j
        if best is not None:
            used[best] = True
            if kind == 0 and one.predicted_kind[best] == 0:
                scores.append(one.predictions[best]["score"])
    return scores


def counts(
    one: Image, similarity_of: Similarity, least: float, lowest: float, regions: bool
) -> list[float]:
    """Count true and false positives from a score on, and sum the similarity of angles."""
    free = [row["score"] >= lowest for row in one.predictions]
    used = [False] * len(one.predictions)
    true, similarity = 0, 0.0
    for truth, kind in zip(one.truth, one.truth_kind, strict=True):
        best, most, spare = None, 0.0, False
        for j, row in enumerate(one.predictions):
            overlap = similarity_of(row, truth)
            if used[j] or not free[j] or overlap <= least:
                continue
            if one.predicted_kind[j] == 0 and (overlap > most or spare):
                best, most, spare = j, overlap, False
            elif one.predicted_kind[j] == 1 and best is None:
                best, spare = j, True
        if best is None:
            continue
        used[best] = True
        if kind == 0 and one.predicted_kind[best] == 0:
            true += 1
            difference = truth.get("alpha", 0.0) - one.predictions[best].get("alpha", 0.0)
            similarity += (1 + math.cos(difference)) / 2
    wrong = 0
    for j, row in enumerate(one.predictions):
        if one.predicted_kind[j] == 0 and free[j] and not used[j]:
            inside = regions and any(iou_2d(row, box, share=True) > least for box in one.regions)
            wrong += not inside
    return [true, wrong, similarity]


def score_positions(scores: list[float], sought: int) -> list[float]:
    """Select the scores at recall positions."""
    scores = sorted(scores, reverse=True)
    chosen, recall = [], 0.0
    for i, score in enumerate(scores):
        last = i == len(scores) - 1
        left, right = (i + 1) / sought, (i + 1 if last else i + 2) / sought
        if right - recall < recall - left and not last:
            continue
        chosen.append(score)
        recall += 1 / (POSITIONS - 1)
    return chosen


def evaluate(
    images: Sequence[tuple[list[Row], list[Row]]],
    label: str,
    difficulty: str,
    least: float,
    similarity_of: Similarity = iou_2d,
) -> tuple[list[float], list[float], int]:
    """Compute precision and orientation similarity at 41 positions, and count ground truths."""
    every = [image(predictions, truth, label, difficulty) for predictions, truth in images]
    sought = sum(one.truth_kind[i] == 0 for one in every for i in range(len(one.truth)))
    scores = [score for one in every for score in hits(one, similarity_of, least)]
    made: list[list[float]] = [[0.0] * POSITIONS for _ in range(2)]
    for at, lowest in enumerate(score_positions(scores, sought)):
        each = [counts(one, similarity_of, least, lowest, similarity_of is iou_2d) for one in every]
        true, wrong, similarity = (sum(column) for column in zip(*each, strict=True))
        if true + wrong:
            made[0][at] = true / (true + wrong)
            made[1][at] = similarity / (true + wrong)
    for values in made:
        for at in range(POSITIONS - 2, -1, -1):
            values[at] = max(values[at], values[at + 1])
    return made[0], made[1], sought
