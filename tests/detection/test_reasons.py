"""Reasons of wrong predictions and missed ground truths, on tables written by hand."""

from __future__ import annotations

from typing import Any

import pytest
from detection.strategies import Row, table

import evalengine as ee

LEFT, MIDDLE, RIGHT, FAR = (
    (0.0, 0.0, 4.0, 4.0),
    (1.0, 0.0, 5.0, 4.0),
    (2.0, 0.0, 6.0, 4.0),
    (20.0, 0.0, 24.0, 4.0),
)
"""The middle overlaps left and right by 0.6, which overlap each other by 1/3."""


def reasons(
    predictions: list[Row], scores: list[float], truths: list[Row], **options: Any
) -> dict[tuple[Any, ...], int]:
    """Map (label, score threshold, outcome, observation) to the count; check the outcomes."""
    card = ee.score(
        table(predictions, scores),
        table(truths),
        task="detection",
        metrics=["DetailedPrecisionRecallCurve", "Outcomes"],
        score_thresholds=[0.2, 0.5],
        **options,
    )
    names = ("label_value", "score_threshold", "outcome", "observation")
    cells = {
        tuple(row[name] for name in names): row["count"]
        for row in card.examples.iter_rows(named=True)
        if row["count"]
    }
    short = {
        ("tp", "all"): "tp",
        ("fp", "misclassifications"): "fp_misclassified",
        ("fp", "hallucinations"): "fp_hallucination",
        ("fp", "duplicates"): "fp_duplicate",
        ("fn", "misclassifications"): "fn_misclassified",
        ("fn", "no_predictions"): "fn_missed",
    }
    outcomes: dict[tuple[Any, ...], int] = {}
    for row in card.outcomes.iter_rows(named=True):
        key = (row["label_value"], row["score_threshold"], row["outcome"])
        outcomes[key] = outcomes.get(key, 0) + 1
    assert outcomes == {(*key[:2], short[key[2:]]): n for key, n in cells.items()}  # type: ignore[index]
    return cells


BOTH = (0.2, 0.5)
TP, FP, FN = "tp", "fp", "fn"
MISTAKEN, TAKEN, NOTHING, MISSED = (
    "misclassifications", "duplicates", "hallucinations", "no_predictions",
)  # fmt: skip


@pytest.mark.parametrize(
    ("predictions", "scores", "truths", "expected"),
    [
        pytest.param(
            [("a", LEFT), ("a", LEFT)], [0.9, 0.6], [("a", LEFT)],
            {("a", TP, "all"), ("a", FP, TAKEN)}, id="a second box on a ground truth that is taken",
        ),
        pytest.param(
            [("a", LEFT), ("a", MIDDLE)], [0.9, 0.6], [("a", LEFT), ("b", RIGHT)],
            {("a", TP, "all"), ("a", FP, MISTAKEN), ("b", FN, MISTAKEN)},
            id="misclassification goes before duplicate",
        ),
        pytest.param(
            [("b", LEFT), ("a", LEFT)], [0.9, 0.6], [("b", LEFT)],
            {("b", TP, "all"), ("a", FP, MISTAKEN)},
            id="misclassification although the other is found",
        ),
        pytest.param(
            [("a", MIDDLE)], [0.9], [("a", LEFT), ("b", RIGHT)],
            {("a", TP, "all"), ("b", FN, MISTAKEN)}, id="a true positive may confuse",
        ),
        pytest.param(
            [("b", LEFT)], [0.9], [("a", FAR)], {("b", FP, NOTHING), ("a", FN, MISSED)},
            id="nothing there",
        ),
    ],
)  # fmt: skip
def test_reasons(predictions: Any, scores: list[float], truths: Any, expected: Any) -> None:
    """One image, at both score thresholds."""
    cells = reasons([(1, *row) for row in predictions], scores, [(1, *row) for row in truths])
    assert cells == {(label, at, *why): 1 for label, *why in expected for at in BOTH}


def test_other_datums_are_no_reason() -> None:
    cells = reasons([(1, "b", LEFT), (2, "b", FAR)], [0.9, 0.9], [(2, "a", LEFT)])
    assert cells["b", 0.5, FP, NOTHING] == 2
    assert cells["a", 0.5, FN, MISSED] == 1


def test_reasons_of_misses_follow_the_score_threshold() -> None:
    """A confusing prediction below the threshold does not count."""
    assert reasons([(1, "b", LEFT)], [0.3], [(1, "a", LEFT)]) == {
        ("a", 0.2, FN, MISTAKEN): 1, ("b", 0.2, FP, MISTAKEN): 1, ("a", 0.5, FN, MISSED): 1,
    }  # fmt: skip


@pytest.mark.parametrize(("iou", "why"), [(0.6, MISTAKEN), (0.61, NOTHING)])
def test_the_threshold_is_inclusive(iou: float, why: str) -> None:
    """An IoU equal to pr_curve_iou_threshold overlaps; a slightly smaller one does not."""
    cells = reasons([(1, "b", MIDDLE)], [0.9], [(1, "a", LEFT)], pr_curve_iou_threshold=iou)
    assert cells["b", 0.5, FP, why] == 1
