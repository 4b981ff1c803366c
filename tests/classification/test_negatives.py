"""Rates of negatives, zero-one loss, lift, gain and the Kolmogorov-Smirnov statistic."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import ks_2samp
from sklearn import metrics as sk

import evalengine as ee

RATES = ["Specificity", "NPV", "FPR", "FNR"]


def table(seed: int, n: int = 40, classes: int = 3) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    true = rng.integers(0, classes, n)
    predicted = np.where(rng.random(n) < 0.5, true, rng.integers(0, classes, n))
    return pl.DataFrame({"actual": true, "predicted": predicted, "weight": rng.random(n)})


@pytest.mark.parametrize("weighs", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_rates_are_those_of_scikit_learns_confusion_matrices(seed: int, weighs: bool) -> None:
    rows = table(seed)
    weight = rows["weight"].to_numpy() if weighs else None
    true, predicted = rows["actual"].to_numpy(), rows["predicted"].to_numpy()
    card = ee.score(rows if weighs else rows.drop("weight"), metrics=[*RATES, "ZeroOneLoss"])
    parts = sk.multilabel_confusion_matrix(true, predicted, sample_weight=weight, labels=[0, 1, 2])
    tn, fp, fn, tp = parts[:, 0, 0], parts[:, 0, 1], parts[:, 1, 0], parts[:, 1, 1]

    def of(top: np.ndarray, bottom: np.ndarray) -> dict[object, float]:
        each, actual = top / bottom, tp + fn
        return {
            **dict(enumerate(each)),
            "macro": each.mean(),
            "micro": top.sum() / bottom.sum(),
            "weighted": (each * actual).sum() / actual.sum(),
        }

    pairs = {
        "Specificity": (tn, tn + fp),
        "NPV": (tn, tn + fn),
        "FPR": (fp, fp + tn),
        "FNR": (fn, fn + tp),
    }
    for name, (top, bottom) in pairs.items():
        for which, want in of(top, bottom).items():
            selection = {"average": which} if isinstance(which, str) else {"label_value": which}
            assert card.value(name, **selection) == pytest.approx(want, rel=1e-12)
    loss = sk.zero_one_loss(true, predicted, sample_weight=weight)
    assert card.value("ZeroOneLoss") == pytest.approx(loss, rel=1e-12)


def test_labels_that_all_datums_have_have_no_specificity() -> None:
    rows = pl.DataFrame({"actual": [1, 1], "predicted": [1, 1]})
    card = ee.score(rows, metrics=RATES)
    result = dict(card.metrics.filter(label_value=1).select("metric", "value").iter_rows())
    assert result == {"Specificity": None, "FPR": None, "NPV": None, "FNR": 0.0}


def scored(seed: int, n: int = 60, digits: int = 2) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    true = rng.random(n) < 0.3
    score = (rng.normal(size=n) + true).round(digits)
    return pl.DataFrame({"actual": true.astype(int), "score": score})


@pytest.mark.parametrize("seed", range(8))
def test_the_distance_matches_scipy(seed: int) -> None:
    rows = scored(seed, digits=1)
    sides = [rows.filter(actual=one)["score"].to_numpy() for one in (0, 1)]
    card = ee.score(rows, metrics=["KSStatistic"])
    assert card.value("KSStatistic") == pytest.approx(ks_2samp(*sides).statistic, rel=1e-12)


@pytest.mark.parametrize("share", [0.05, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_gain_is_the_mean_over_orders_of_equal_scores(seed: int, share: float) -> None:
    rows = scored(seed, digits=0)
    true, score = rows["actual"].to_numpy(), rows["score"].to_numpy()
    card = ee.score(rows, metrics=["Gain", "Lift"], top_share=share)
    rng, result = np.random.default_rng(0), []
    for _ in range(3000):
        order = np.lexsort((rng.random(true.size), -score))
        result.append(true[order][: round(share * true.size)].sum() / true.sum())
    assert card.value("Gain") == pytest.approx(np.mean(result), abs=0.01)
    assert card.value("Lift") == pytest.approx(card.value("Gain") / share)
    if share == 1.0:
        assert card.value("Gain") == 1.0


def test_torchmetrics_averages_rates_over_labels_with_counts() -> None:
    """``MulticlassSpecificity(3)`` skips class 2 in the macro mean, and counts it in the micro one.

    scikit-learn has no such rule: an absent class has a rate of 1.
    """
    rows = pl.DataFrame({"actual": [0, 1, 0, 1], "predicted": [0, 1, 1, 1]})
    rates: dict[str, Any] = {"metrics": ["Specificity", "NPV"], "labels": [0, 1, 2]}
    for dialect, specificity, npv in (("torchmetrics", 3 / 4, 5 / 6), ("sklearn", 5 / 6, 8 / 9)):
        card = ee.score(rows, dialect=dialect, **rates)
        assert card.value("Specificity", average="macro") == pytest.approx(specificity)
        assert card.value("NPV", average="macro") == pytest.approx(npv)
        assert card.value("Specificity", average="micro") == 7 / 8


def test_names_of_other_tools() -> None:
    rows = table(1).drop("weight")
    for name, ours in (
        ("true_negative_rate", "Specificity"),
        ("fall-out", "FPR"),
        ("miss rate", "FNR"),
        ("error_rate", "ZeroOneLoss"),
    ):
        card = ee.score(rows, metrics=[name], task="classification")
        assert set(card.metrics["metric"]) == {ours}
    sure = ee.score(rows, metrics=RATES, intervals=95, by=[])
    assert sure.metrics["lower"].null_count() == 0
