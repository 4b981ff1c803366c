"""Why a prediction is wrong and a ground truth missed, on tables written by hand."""

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
    """(label, score threshold, outcome, observation) to count, and the same of the outcomes."""
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
    told: dict[tuple[Any, ...], int] = {}
    for row in card.outcomes.iter_rows(named=True):
        key = (row["label_value"], row["score_threshold"], row["outcome"])
        told[key] = told.get(key, 0) + 1
    assert told == {(*key[:2], short[key[2:]]): n for key, n in cells.items()}  # type: ignore[index]
    return cells


def test_duplicate() -> None:
    """A second box on a ground truth that is taken."""
    assert reasons([(1, "a", LEFT), (1, "a", LEFT)], [0.9, 0.6], [(1, "a", LEFT)]) == {
        (*at, *why): 1
        for at in (("a", 0.2), ("a", 0.5))
        for why in (("tp", "all"), ("fp", "duplicates"))
    }


def test_misclassification_goes_before_duplicate() -> None:
    """A box on a taken ground truth of its label and on one of another: a misclassification."""
    cells = reasons(
        [(1, "a", LEFT), (1, "a", MIDDLE)], [0.9, 0.6], [(1, "a", LEFT), (1, "b", RIGHT)]
    )
    for score in (0.2, 0.5):
        assert cells["a", score, "tp", "all"] == 1
        assert cells["a", score, "fp", "misclassifications"] == 1
        assert cells["b", score, "fn", "misclassifications"] == 1
    assert sum(cells.values()) == 6


def test_misclassification_although_the_other_is_found() -> None:
    """The other label's ground truth need not be free, and is not missed."""
    cells = reasons([(1, "b", LEFT), (1, "a", LEFT)], [0.9, 0.6], [(1, "b", LEFT)])
    assert cells["a", 0.5, "fp", "misclassifications"] == 1
    assert cells["b", 0.5, "tp", "all"] == 1
    assert len(cells) == 4


def test_a_true_positive_may_confuse() -> None:
    """A hit also overlaps a ground truth of another label, which is missed on its account."""
    cells = reasons([(1, "a", MIDDLE)], [0.9], [(1, "a", LEFT), (1, "b", RIGHT)])
    assert cells["a", 0.5, "tp", "all"] == 1
    assert cells["b", 0.5, "fn", "misclassifications"] == 1


def test_reasons_of_misses_follow_the_score_threshold() -> None:
    """A confusing prediction below the threshold does not count."""
    cells = reasons([(1, "b", LEFT)], [0.3], [(1, "a", LEFT)])
    assert cells == {
        ("a", 0.2, "fn", "misclassifications"): 1,
        ("b", 0.2, "fp", "misclassifications"): 1,
        ("a", 0.5, "fn", "no_predictions"): 1,
    }


@pytest.mark.parametrize("other", [(2, "a", LEFT), (1, "a", FAR)])
def test_hallucination(other: Row) -> None:
    """Nothing there: another datum, or too far away."""
    cells = reasons([(1, "b", LEFT), (2, "b", FAR)], [0.9, 0.9], [other])
    assert cells["b", 0.5, "fp", "hallucinations"] == 2
    assert cells["a", 0.5, "fn", "no_predictions"] == 1


def test_the_threshold_is_inclusive() -> None:
    """An IoU of exactly pr_curve_iou_threshold overlaps; just below does not."""
    rows: tuple[list[Row], list[Row]] = [(1, "b", MIDDLE)], [(1, "a", LEFT)]
    for iou, why in ((0.6, "misclassifications"), (0.61, "hallucinations")):
        cells = reasons(rows[0], [0.9], rows[1], pr_curve_iou_threshold=iou)
        assert cells["b", 0.5, "fp", why] == 1
