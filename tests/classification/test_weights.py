"""Sample weights that are no binary fractions, so that rounding and summation order matter."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from lazy_imports import LazyModule
from refusals import refused

import evalengine as ee

sk = LazyModule("sklearn.metrics")


def table(n: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "actual": rng.integers(0, 2, n),
            "score": np.round(rng.random(n), 2),
            "weight": rng.random(n),
            "part": rng.choice(["x", "y"], n),
        }
    )


@pytest.mark.parametrize("seed", range(20))
def test_curves_have_the_points_of_sklearn(seed: int) -> None:
    """Sums in another order differ in the last digit, which must not add a point to the curve."""
    rows = table(50, seed)
    card = ee.score(rows, metrics=["ROCCurve", "DETCurve", "ThresholdAtRecall"], target_recall=1.0)
    actual, score, weight = (rows[c].to_numpy() for c in ("actual", "score", "weight"))
    fpr, tpr, _ = sk.roc_curve(actual, score, sample_weight=weight)
    ours = card.curves.filter(curve="ROCCurve")
    assert ours.height == fpr.size
    assert ours["recall"].to_list() == pytest.approx(tpr, abs=1e-12)
    assert ours["fpr"].to_list() == pytest.approx(fpr, abs=1e-12)
    detected = card.curves.filter(curve="DETCurve")
    assert detected.height == sk.det_curve(actual, score, sample_weight=weight)[0].size
    lowest = score[actual == 1].min()
    assert card.value("ThresholdAtRecall", statistic="threshold") == lowest


def test_slices_match_their_rows_scored_separately() -> None:
    """Large weights of other slices have no influence."""
    rows = table(40, 3).with_columns(
        weight=pl.when(pl.col("part") == "x").then(1e17).otherwise(pl.col("weight"))
    )
    names = ["ROCAUC", "AP", "Precision", "PrecisionRecallCurve"]
    sliced = ee.score(rows, metrics=names, by="part")
    single = ee.score(rows.filter(part="y"), metrics=names)
    columns = ["metric", "label_value", "average", "value"]
    mine = sliced.metrics.filter(slice_value="y").select(columns)
    assert mine.rows() == single.metrics.select(columns).rows()
    counts = ["label_value", "score_threshold", "tp", "fp", "fn"]
    cut = sliced.curves.filter(slice_value="y").select(counts)
    assert cut.rows() == single.curves.select(counts).rows()


def test_counts_are_sums_of_weights() -> None:
    """Small weights are not rounded away."""
    rows = table(8, 1).with_columns(weight=pl.lit(0.2), predicted=pl.Series([0, 1] * 4))
    card = ee.score(rows, metrics=["ConfusionMatrix", "PrecisionRecallCurve", "F1", "Counts"])
    assert card.confusion["count"].sum() == pytest.approx(1.6)
    cells = card.curves.filter(score_threshold=0.5).row(0, named=True)
    assert sum(cells[name] for name in ("tp", "fp", "fn", "tn")) == pytest.approx(1.6)
    labels = card.metrics.filter(pl.col("label_value").is_not_null(), metric="F1")
    assert labels["support"].sum() == pytest.approx(1.6)


@pytest.mark.parametrize("seed", range(10))
def test_one_predicted_class_has_no_correlation(seed: int) -> None:
    """Rounded sums of weights of one class do not look like variation."""
    rng = np.random.default_rng(seed)
    rows = pl.DataFrame({"actual": rng.integers(0, 3, 40), "weight": rng.random(40)})
    rows = rows.with_columns(predicted=pl.lit(1))
    card = ee.score(rows, metrics=["MCC"])
    assert card.metrics["value"].to_list() == [None]
    assert card.metrics["reason"].to_list() != [None]
    mixed = rows.with_columns(predicted=pl.Series(rng.integers(0, 3, 40)))
    actual, predicted, weight = (mixed[c].to_numpy() for c in ("actual", "predicted", "weight"))
    wanted = sk.matthews_corrcoef(actual, predicted, sample_weight=weight)
    assert ee.score(mixed, metrics=["MCC"]).value("MCC") == pytest.approx(wanted, abs=1e-12)


def test_one_weight_per_datum() -> None:
    truths = pl.DataFrame({"datum_id": [1, 1], "label_value": ["a", "b"], "weight": [1.0, 5.0]})
    guesses = pl.DataFrame({"datum_id": [1], "label_value": ["a"], "score": [0.9]})
    with refused("not_constant", ee.InputError, column="weight", count=1):
        ee.score(guesses, truths, metrics=["Accuracy"], multilabel=True)


def test_missing_predictions_disagree() -> None:
    """Half of the predictions are missing, the rest is right: no kappa is perfect."""
    truths = pl.DataFrame({"datum_id": list(range(8)), "label_value": ["a", "b"] * 4})
    guesses = truths.head(4)
    card = ee.score(
        guesses, truths, metrics=["CohenKappa", "CohenKappaLinear", "CohenKappaQuadratic", "MCC"]
    )
    plain = card.value("CohenKappa")
    assert card.value("CohenKappaLinear") == pytest.approx(plain)
    assert card.value("CohenKappaQuadratic") == pytest.approx(plain)
    actual = truths["label_value"].to_list()
    predicted = [*guesses["label_value"].to_list(), *["none"] * 4]
    assert card.value("MCC") == pytest.approx(sk.matthews_corrcoef(actual, predicted))


def test_declared_order_ranks() -> None:
    """Weighted kappa counts steps in the declared order, including unused labels between."""
    actual = ["low", "mid", "high", "high", "mid", "low", "low"]
    predicted = ["low", "high", "high", "mid", "mid", "mid", "low"]
    order = ["low", "mid", "high", "top"]
    rows = pl.DataFrame({"actual": actual, "predicted": predicted})
    names = ["CohenKappaLinear", "CohenKappaQuadratic"]
    card = ee.score(rows, metrics=names, labels=order, dialect="sklearn")
    for name, weights in zip(names, ("linear", "quadratic"), strict=True):
        expected = sk.cohen_kappa_score(actual, predicted, labels=order, weights=weights)
        assert card.value(name) == pytest.approx(expected)


def test_binary_scores_of_several_keys_are_refused() -> None:
    rows = pl.DataFrame(
        {
            "datum_id": [1, 1, 2, 2],
            "label_key": ["a", "b"] * 2,
            "actual": [0, 1, 1, 0],
            "score": [0.1, 0.9, 0.8, 0.2],
        }
    )
    with refused("several_keys", ee.InputError, count=2):
        ee.score(rows, metrics=["ROCAUC"], positive_label=1)
