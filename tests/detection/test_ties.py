"""Ranking of equal rows: rules that averages rarely reveal."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from detection.strategies import table
from hypothesis import given
from hypothesis import strategies as st

import evalengine as ee
from evalengine.kernels import matching


def outcomes(dialect: str, predictions: pl.DataFrame, truths: pl.DataFrame) -> pl.DataFrame:
    """Return the outcomes of all predictions at IoU 0.5."""
    return ee.score(
        predictions, truths, task="detection", dialect=dialect, metrics=["Outcomes"]
    ).outcomes


LEFT, MIDDLE, RIGHT = (0.0, 0.0, 4.0, 4.0), (1.0, 0.0, 5.0, 4.0), (2.0, 0.0, 6.0, 4.0)


@pytest.mark.parametrize(
    ("dialect", "winner"),
    [("standard", 1), ("coco", 1), ("valor", 0), ("valor-lite", 0), ("valor-docs", 0)],
)
def test_equal_overlaps(dialect: str, winner: int) -> None:
    """COCO takes the later of two ground truths with equal overlap, Valor the first."""
    truths = table([(1, "a", LEFT), (1, "a", RIGHT)])
    frame = outcomes(dialect, table([(1, "a", MIDDLE)], [0.5]), truths)
    (matched,) = frame.filter(pl.col("outcome") == "tp")["matched_annotation_id"]
    assert matched == winner


def test_later_ground_truth_leaves_the_first_free() -> None:
    """So COCO's rule decides which ground truth remains for the next prediction."""
    truths = table([(1, "a", LEFT), (1, "a", RIGHT)])
    predictions = table([(1, "a", MIDDLE), (1, "a", LEFT)], [0.9, 0.8])
    for dialect, hits in (("standard", 2), ("coco", 2), ("valor", 1), ("valor-docs", 1)):
        frame = outcomes(dialect, predictions, truths)
        assert frame.filter(pl.col("outcome") == "tp").height == hits, dialect


@pytest.mark.parametrize(("ids", "first"), [((2, 10), 2), (("10", "2"), "10")])
def test_equal_scores_rank_by_datum_id(ids: tuple[Any, Any], first: Any) -> None:
    """Integers by number, strings by bytes: the first datum's hit or miss decides AP."""
    truths = table([(i, "a", LEFT) for i in ids])
    for hit in ids:
        boxes = [(i, "a", LEFT if i == hit else (50.0, 50.0, 60.0, 60.0)) for i in reversed(ids)]
        card = ee.score(table(boxes, [0.5, 0.5]), truths, task="detection", dialect="valor-docs")
        expected = 51 / 101 if hit == first else 51 / 202
        assert card.value("AP", iou_threshold=0.5, label_value="a") == pytest.approx(expected)


@pytest.mark.parametrize(
    ("dialect", "value"), [("valor", 1.0), ("standard", 0.5), ("valor-docs", 0.0)]
)
def test_equal_scores_rank_by_iou_in_valor(dialect: str, value: float) -> None:
    """Valor ranks equal scores by descending IoU, the others by row."""
    close = (0.0, 0.0, 4.0, 1.0)  # IoU 0.25
    predictions = table([(1, "a", close), (1, "a", LEFT)], [0.5, 0.5])
    card = ee.score(predictions, table([(1, "a", LEFT)]), task="detection", dialect=dialect)
    assert card.value("AP", iou_threshold=0.5, label_value="a") == pytest.approx(value)


def test_zero_score_is_no_hit_in_valor() -> None:
    """A score of 0 is never a true positive in Valor; elsewhere it is."""
    for dialect, expected in (("valor", "fp_duplicate"), ("standard", "tp"), ("valor-docs", "tp")):
        frame = outcomes(dialect, table([(1, "a", LEFT)], [0.0]), table([(1, "a", LEFT)]))
        assert expected in frame["outcome"].to_list()


def confusion(predictions: pl.DataFrame, truths: pl.DataFrame) -> dict[tuple[Any, Any], int]:
    """Return the cells at IoU 0.5 and score 0.5."""
    frame = ee.score(
        predictions,
        truths,
        task="detection",
        metrics=["ConfusionMatrix"],
        iou_thresholds=[0.5],
        score_thresholds=[0.5],
    ).confusion
    return {(row["actual"], row["predicted"]): row["count"] for row in frame.to_dicts()}


def test_confusion_ties_are_ranked_by_row() -> None:
    """With equal scores of two labels, the first row of the table takes the remaining truth."""
    truths = table([(1, "c", LEFT)])
    first = table([(1, "b", LEFT), (1, "a", LEFT)], [0.7, 0.7])
    assert confusion(first, truths) == {("c", "b"): 1, (None, "a"): 1}
    second = table([(1, "a", LEFT), (1, "b", LEFT)], [0.7, 0.7])
    assert confusion(second, truths) == {("c", "a"): 1, (None, "b"): 1}


def test_confusion_equal_overlaps_go_to_the_first_row() -> None:
    """If two remaining ground truths overlap equally, the first row is taken."""
    predictions = table([(1, "a", MIDDLE)], [0.7])
    for first, second in (("b", "c"), ("c", "b")):
        truths = table([(1, first, LEFT), (1, second, RIGHT)])
        assert confusion(predictions, truths) == {(first, "a"): 1, (second, None): 1}


def test_confusion_matches_labels_first() -> None:
    """A box of another label with a better score does not take a match of the right label."""
    truths = table([(1, "a", LEFT)])
    predictions = table([(1, "b", LEFT), (1, "a", MIDDLE)], [0.9, 0.6])
    assert confusion(predictions, truths) == {("a", "a"): 1, (None, "b"): 1}


@pytest.mark.parametrize("dialect", ["standard", "coco"])
def test_regular_before_crowd(dialect: str) -> None:
    """A regular match has priority over a better crowd; a crowd absorbs all other predictions."""
    truths = table([(1, "a", RIGHT), (1, "a", LEFT)]).with_columns(iscrowd=pl.Series([0, 1]))
    predictions = table([(1, "a", MIDDLE), (1, "a", LEFT), (1, "a", LEFT)], [0.9, 0.8, 0.7])
    frame = outcomes(dialect, predictions, truths)
    assert sorted(frame["outcome"]) == ["ignored", "ignored", "tp"]
    assert frame.filter(pl.col("outcome") == "tp")["score"].to_list() == [0.9]


@given(
    overlaps=st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), max_size=40),
    seed=st.integers(0, 9),
)
def test_equal_scores_are_sorted_by_overlap(overlaps: list[float], seed: int) -> None:
    """Equals NumPy's stable sort. The sort, callable only by kernels, is run as plain Python."""
    own, base = np.array(overlaps, np.float64), 3
    order = np.arange(-1, own.size + 1, dtype=np.int32) + base
    order[1:-1] = np.random.default_rng(seed).permutation(order[1:-1])
    wanted = order.copy()
    wanted[1:-1] = order[1:-1][np.argsort(-own[order[1:-1] - base], kind="stable")]
    sort = matching.sort_tied.compiled.py_func
    sort(order, 1, order.size - 1, own, base, np.empty(own.size, np.int32))
    assert order.tolist() == wanted.tolist()
