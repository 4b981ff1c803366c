"""Metrics of groups, against scikit-learn and plain loops over separate groups."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from classification.rows import matrix_tables, score
from classification.strategies import modest
from hypothesis import given, settings
from hypothesis import strategies as st
from lazy_imports import LazyModule

from evalengine.kernels.labels import HIT, OTHER
from evalengine.kernels.scores import area_in_all, areas_onward, no_area
from evalengine.tallies.datums import in_turn
from evalengine.tallies.ranked_points import first_of, largest_of, last_of, segment_of
from evalengine.tallies.sorted_scores import Sorted, wins_of_groups

sk = LazyModule("sklearn.metrics")
Array = np.ndarray[Any, Any]

few = settings(modest, max_examples=1 + modest.max_examples // 4)
"""Each example is a run of about thirty groups, each also scored separately."""

SEGMENTS = st.lists(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=4), max_size=6)


@modest
@given(SEGMENTS)
def test_segments(rows: list[list[tuple[bool, int]]]) -> None:
    """Empty segments at either end or between, and no row that fits."""
    start = np.cumsum([0, *(len(part) for part in rows)])
    flat = [pair for part in rows for pair in part]
    fits = np.array([fit for fit, _ in flat], bool)
    value = np.array([number for _, number in flat], float)
    first, last, largest = [], [], []
    for a, b in pairwise(start.tolist()):
        inside = [i for i in range(a, b) if fits[i]]
        first.append(inside[0] if inside else -1)
        last.append(inside[-1] if inside else -1)
        largest.append(max(value[a:b], default=-np.inf))
    assert first_of(start, fits).tolist() == first
    assert last_of(start, fits).tolist() == last
    assert largest_of(start, value).tolist() == largest
    assert segment_of(start).tolist() == [s for s, part in enumerate(rows) for _ in part]


def test_partial_area_by_hand() -> None:
    """A cut through a slope, a cut at a point, a curve that ends early, a missing class."""
    start = np.array([0, 2, 4, 5, 6])
    tp, fp = np.array([1.0, 2, 1, 2, 1, 1]), np.array([0.0, 2, 1, 2, 0, 0])
    positives, negatives = np.array([2.0, 2, 2, 0]), np.array([2.0, 2, 2, 1])

    def areas(limit: float) -> Array:
        carried = no_area(positives, negatives)
        areas_onward(start, tp, fp, positives, negatives, limit, carried)
        return area_in_all(positives, negatives, limit, carried)

    result = areas(0.5)
    assert result[:3].tolist() == [0.3125, 0.125, 0.3125]
    assert np.isnan(result[3])
    assert areas(1.0)[:3].tolist() == [0.75, 0.5, 0.75]


def grouped(seed: int, weighted: bool) -> pl.DataFrame:
    """Binary rows in groups of uneven size, some of one class, some of one row."""
    rng = np.random.default_rng(seed)
    n = 300
    rows = pl.DataFrame(
        {
            "actual": rng.integers(0, 2, n),
            "score": rng.integers(0, 12, n) / 12,
            "part": (rng.random(n) ** 2 * 40).astype(int),
        }
    )
    return rows.with_columns(weight=rng.choice([0.25, 1.0, 2.0], n)) if weighted else rows


@few
@given(st.integers(0, 10_000), st.booleans(), st.sampled_from([0.05, 0.3, 1.0]))
def test_binary_groups(seed: int, weighted: bool, max_fpr: float) -> None:
    rows = grouped(seed, weighted)
    names = ["PartialROCAUC", "ROCCurve", "DETCurve", "ScorePrecisionRecallCurve"]
    card = score((rows,), names, by="part", max_fpr=max_fpr)
    areas = card.metrics.filter(slice="part")
    for part in rows["part"].unique().to_list():
        of = rows.filter(part=part)
        truth, scores = of["actual"].to_numpy(), of["score"].to_numpy()
        by = {"sample_weight": of["weight"].to_numpy()} if weighted else {}
        value = areas.filter(slice_value=str(part))["value"].to_list()
        curves = card.curves.filter(slice_value=str(part))
        if len(set(truth)) < 2:
            assert value == [None] * len(value)
            continue
        theirs = sk.roc_auc_score(truth, scores, max_fpr=max_fpr, **by)
        assert value == [pytest.approx(theirs, abs=1e-12)]
        fpr, tpr, _ = sk.roc_curve(truth, scores, **by)
        ours = curves.filter(curve="ROCCurve")
        np.testing.assert_allclose(ours["fpr"], fpr, atol=1e-12)
        np.testing.assert_allclose(ours["recall"], tpr, atol=1e-12)
        fpr, fnr, _ = sk.det_curve(truth, scores, **by)
        ours = curves.filter(curve="DETCurve").reverse()
        np.testing.assert_allclose(ours["fpr"], fpr, atol=1e-12)
        np.testing.assert_allclose(1 - ours["recall"], fnr, atol=1e-12)


THRESHOLDS = ["ThresholdAtMaxF", "ThresholdAtPrecision", "ThresholdAtRecall", "ThresholdAtFPR"]


@few
@given(st.integers(0, 10_000), st.booleans())
def test_groups_match_their_rows_scored_separately(seed: int, weighted: bool) -> None:
    rows = grouped(seed, weighted)
    names = [*THRESHOLDS, "ECE", "MCE", "Reliability", "mROCAUC", "PartialROCAUC"]
    card = score((rows,), names, by="part")
    columns = ["metric", "statistic", "label_value", "score_threshold", "value", "support"]
    for part in rows["part"].unique().to_list()[::4]:
        single = score((rows.filter(part=part),), names)
        mine = card.metrics.filter(slice_value=str(part)).select(columns)
        assert mine.equals(single.metrics.select(columns))


def test_one_against_one_by_group() -> None:
    """Pairs with a label that is missing in a group are skipped."""
    rng = np.random.default_rng(11)
    n = 240
    part = rng.integers(0, 12, n)
    truth = (rng.integers(0, 4, n) * (part > 2)).tolist()
    scores = rng.integers(0, 6, (n, 4)) + 0.5
    scores /= scores.sum(axis=1, keepdims=True)
    sides, options = matrix_tables(truth, scores.tolist(), [0, 1, 2, 3], part=part)["one"]
    card = score(sides, ["mROCAUCOneVsOne"], by="part", **options)
    for g in range(12):
        inside = part == g
        actual = np.array(truth)[inside]
        result = card.metrics.filter(slice_value=str(g)).rows_by_key("average", named=True)
        used = np.unique(actual)
        for average in ("macro", "weighted"):
            value = result[average][0]["value"]
            if used.size < 4:
                assert (value is None) == (used.size < 2)
                continue
            theirs = sk.roc_auc_score(
                actual, scores[inside], multi_class="ovo", average=average, labels=[0, 1, 2, 3]
            )
            assert value == pytest.approx(theirs, abs=1e-12)


def test_brier_of_a_group_with_two_of_three_labels() -> None:
    """The factor of one half follows the labels of the run, as scikit-learn's columns do."""
    truth, part = [0, 1, 2, 0, 1, 1], ["x", "x", "x", "y", "y", "y"]
    scores = np.array([[0.5, 0.3, 0.2]] * 6)
    labels = [0, 1, 2]
    sides, options = matrix_tables(truth, scores.tolist(), labels, part=part)["one"]
    card = score(sides, ["Brier"], by="part", **options)
    for name, rows in (("x", slice(0, 3)), ("y", slice(3, 6))):
        theirs = sk.brier_score_loss(truth[rows], scores[rows], labels=labels)
        assert card.metrics.filter(slice_value=name)["value"].item() == pytest.approx(theirs)
    two, options = matrix_tables([0, 1, 1], [[0.7, 0.3], [0.4, 0.6], [0.1, 0.9]], [0, 1])["one"]
    theirs = sk.brier_score_loss([0, 1, 1], [[0.7, 0.3], [0.4, 0.6], [0.1, 0.9]], labels=[0, 1])
    assert score(two, ["Brier"], **options).value("Brier") == pytest.approx(theirs)


@modest
@given(st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(-2, 2)), max_size=9), max_size=6))
def test_wins_of_groups(rows: list[list[tuple[int, int]]]) -> None:
    """Small groups are compared pairwise, large ones sorted: both equal plain comparisons."""
    rng = np.random.default_rng(len(rows))
    large = [
        (int(o), int(v))
        for o, v in zip(rng.integers(0, 2, 400), rng.integers(0, 50, 400), strict=True)
    ]
    segments, expected = [], []
    for group in [*rows, large]:
        values = [np.array([v for o, v in group if o == outcome], float) for outcome in range(3)]
        segments += values
        positive, negative = values[HIT][:, None], values[OTHER]
        expected.append(2 * (positive > negative).sum() + (positive == negative).sum())
    start = np.r_[0, np.cumsum([part.size for part in segments])]
    laid = Sorted(start, np.concatenate(segments), None)
    assert wins_of_groups(laid, in_turn).tolist() == expected


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_areas_by_pairs_match_sorted_scores(threads: int, weighted: bool) -> None:
    """ROC areas by pairs equal those from sorted scores, which AP computes first."""
    rows = grouped(5, weighted)
    single = score((rows,), ["ROCAUC"], by="part", threads=threads).metrics
    after = score((rows,), ["AP", "ROCAUC"], by="part", threads=threads).metrics
    assert single.equals(after.filter(metric="ROCAUC"))
