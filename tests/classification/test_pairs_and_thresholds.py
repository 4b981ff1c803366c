"""Areas between labels and chosen thresholds, against exhaustive search."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

from classification.checking import same
from classification.rows import score
from classification.strategies import Drawn, drawn, modest
from hypothesis import given
from oracles.classification import Number, Oracle, f_of, mean, over


def between(oracle: Oracle, a: Any, b: Any, key: str) -> Number:
    """Compare scores of a between truths of a and truths of b; unlisted ones rank last."""
    sides: list[list[float]] = []
    for label in (a, b):
        units = [unit for unit in oracle.of_key(key) if oracle.is_true(unit, label)]
        sides.append([oracle.scores.get(unit, {}).get(a, -math.inf) for unit in units])
    pairs = [(x, y) for x in sides[0] for y in sides[1]]
    return over(sum(Fraction((x > y) + (x >= y), 2) for x, y in pairs), len(pairs))


@modest
@given(drawn())
def test_one_against_one(tables: Drawn) -> None:
    """Hand and Till's mean over labels that are true for some datum."""
    oracle = tables.oracle()
    card = score(tables.frames(), ["mROCAUCOneVsOne"])
    ours = {(row["label_key"], row["average"]): row["value"] for row in card.metrics.to_dicts()}
    for key in oracle.keys:
        sizes = {
            value: sum(oracle.is_true(unit, value) for unit in oracle.of_key(key))
            for k, value in oracle.labels
            if k == key
        }
        pairs = list(combinations([value for value, n in sizes.items() if n], 2))
        areas: list[Number] = []
        for a, b in pairs:
            one, other = between(oracle, a, b, key), between(oracle, b, a, key)
            assert one is not None
            assert other is not None
            areas.append((one + other) / 2)
        assert same(ours[key, "macro"], mean(areas))
        assert same(ours[key, "weighted"], mean(areas, [sizes[a] + sizes[b] for a, b in pairs]))


Point = tuple[float, Number, Number, Number, Number]
"""Threshold, precision, recall, false-positive rate, F1."""

RULES: dict[str, Callable[[list[Point]], Point | None]] = {
    "ThresholdAtMaxF": lambda points: max(
        (p for p in points if p[4] is not None and p[2] is not None),
        key=lambda p: (p[4], p[0]),
        default=None,
    ),
    "ThresholdAtPrecision": lambda points: min(
        (p for p in points if p[1] is not None and p[1] >= Fraction(1, 2)), default=None
    ),
    "ThresholdAtRecall": lambda points: max(
        (p for p in points if p[2] is not None and p[2] >= Fraction(1, 2)), default=None
    ),
    "ThresholdAtFPR": lambda points: min(
        (p for p in points if p[3] is not None and p[3] <= Fraction(1, 2)), default=None
    ),
}
"""Metric -> its choice among all points, at targets of one half."""


@modest
@given(drawn())
def test_chosen_thresholds(tables: Drawn) -> None:
    """Every distinct score is a candidate."""
    oracle = tables.oracle()
    card = score(
        tables.frames(), list(RULES), target_precision=0.5, target_recall=0.5, target_fpr=0.5
    )
    ours = {
        (row["metric"], row["label_key"], row["label_value"], row["statistic"]): row["value"]
        for row in card.metrics.to_dicts()
    }
    for label in oracle.labels:
        positives, negatives = ([score for score, _ in side] for side in oracle.sides(label))
        points: list[Point] = []
        for threshold in {*positives, *negatives} - {-math.inf}:
            tp = sum(score >= threshold for score in positives)
            fp = sum(score >= threshold for score in negatives)
            fn = len(positives) - tp
            rates = over(tp, tp + fp), over(tp, len(positives)), over(fp, len(negatives))
            points.append((threshold, *rates, f_of(1, tp, fp, fn)))
        for metric, choose in RULES.items():
            chosen = choose(points) or (None,) * 5
            names = ("threshold", "precision", "recall", "fpr", "f1")
            for name, value in zip(names, chosen, strict=True):
                assert same(ours[metric, *label, name], value), (metric, label, name)
