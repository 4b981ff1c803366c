"""Scores of one positive label against known answers, in every shape of input."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from classification.known_answers import by_name, close, plain
from classification.rows import Sides, curve, score
from output_frames import of_slice

import evalengine as ee

CASES = [
    "simple", "all_tied", "bottom_block_tied_mixed", "interior_ties", "inverse", "one_pos_only",
    "single_pos", "subnormal", "f32_collapse", "tiny_diff", "medium500_ties",
]  # fmt: skip

UNBOUNDED = {"tiny_diff"}
"""Scores above 1, which metrics of probabilities refuse."""

GRID = [i / 20 for i in range(1, 20)]


def cases() -> dict[str, dict[str, Any]]:
    """Read the cases of ``binary_rank.json``."""
    return by_name("classification", "binary_rank.json")


def shapes(inputs: dict[str, Any], dtype: Any = pl.Float64) -> dict[str, Sides]:
    """One table with ``actual`` and ``score``; two long tables that list only label 1."""
    scores = pl.Series(inputs["y_score"], dtype=dtype)
    truth = pl.Series(inputs["y_true"], dtype=pl.Int64)
    weight = {"weight": inputs["sample_weight"]} if "sample_weight" in inputs else {}
    ids = pl.int_range(len(truth), eager=True)
    return {
        "one": (pl.DataFrame({"actual": truth, "score": scores, **weight}),),
        "long": (
            pl.DataFrame(
                {"datum_id": ids, "label_value": pl.repeat(1, len(truth), eager=True)}
            ).with_columns(score=scores, label_value=pl.col("label_value").cast(pl.Int64)),
            pl.DataFrame({"datum_id": ids, "label_value": truth, **weight}),
        ),
    }


def run(case: str, shape: str, metrics: list[str], dtype: Any = None, **more: Any) -> ee.Scorecard:
    """Score a case under ``sklearn``."""
    sides = shapes(cases()[case]["inputs"], dtype or pl.Float64)[shape]
    return score(sides, metrics, **{"dialect": "sklearn", **more})


def of_one(card: ee.Scorecard, metric: str) -> float | None:
    """Return the value of label 1."""
    return card.value(metric, label_value=1, statistic=None)


@pytest.mark.parametrize("shape", ["one", "long"])
@pytest.mark.parametrize("name", CASES)
def test_areas(name: str, shape: str) -> None:
    """ROC AUC (in double and single precision, whole and partial) and average precision."""
    expected = plain(cases()[name]["expected"])
    card = run(name, shape, ["ROCAUC", "PartialROCAUC", "AP"], max_fpr=0.3)
    assert close(of_one(card, "ROCAUC"), expected["roc_auc"]["value"])
    assert of_one(card, "ROCAUC") == pytest.approx(expected["mann_whitney"], abs=1e-15)
    assert close(of_one(card, "PartialROCAUC"), expected["roc_auc_max_fpr_0_3"]["value"])
    assert close(of_one(card, "AP"), expected["ap"]["value"])
    single = run(name, shape, ["ROCAUC"], pl.Float32)
    assert close(of_one(single, "ROCAUC"), expected["roc_auc_f32"]["value"])


@pytest.mark.parametrize("shape", ["one", "long"])
@pytest.mark.parametrize("name", CASES)
def test_counts(name: str, shape: str) -> None:
    """Counts at the 19 thresholds i/20, in double and in single precision."""
    expected = cases()[name]["expected"]
    card = run(name, shape, ["PrecisionRecallCurve"], dialect="standard")
    rows = {row["score_threshold"]: row for row in curve(card, *AT).iter_rows(named=True)}
    assert list(rows) == GRID
    for threshold, counts in zip(GRID, expected["counts_19"].values(), strict=True):
        row = rows[threshold]
        assert {k: row[k] for k in ("tp", "fp", "fn", "tn")} == counts
    single = run(name, shape, ["PrecisionRecallCurve"], pl.Float32, dialect="standard")
    frame = curve(single, *AT)
    assert (frame["tp"] + frame["fp"]).to_list() == list(
        expected["counts_19_f32_scores_f32_thr"].values()
    )


AT = ("PrecisionRecallCurve", 1)


def test_single_precision_thresholds_matter() -> None:
    """In some case, thresholds rounded to single precision give other counts."""
    assert any(
        case["expected"]["counts_19_f32_scores_f32_thr"]
        != case["expected"]["counts_19_f32_scores_f64_thr"]
        for case in cases().values()
        if "counts_19" in case["expected"]
    )


@pytest.mark.parametrize("shape", ["one", "long"])
@pytest.mark.parametrize("name", [*CASES, "weighted_interior_ties"])
def test_curves(name: str, shape: str) -> None:
    """roc_curve with and without points on straight lines, pr_curve, det_curve."""
    expected = plain(cases()[name]["expected"])
    names = ["ROCCurve", "ScorePrecisionRecallCurve", "DETCurve"]
    for thin, theirs in ((True, "roc_curve"), (False, "roc_curve_full")):
        card = run(name, shape, names, thin_curves=thin)
        if theirs in expected:
            fpr, tpr, threshold = expected[theirs]["value"]
            frame = curve(card, "ROCCurve", 1)
            check(frame["fpr"], fpr)
            check(frame["recall"], tpr)
            check(frame["score_threshold"], [np.nan, *threshold[1:]])
        if "pr_curve" in expected:
            precision, recall, threshold = expected["pr_curve"]["value"]
            frame = curve(card, "ScorePrecisionRecallCurve", 1).reverse()
            check(frame["recall"], recall)
            check(frame["precision"][:-1], precision[:-1])
            assert frame["precision"][-1] is None, "no prediction is above all scores"
            assert precision[-1] == 1.0
            check(frame["score_threshold"], [*threshold, np.nan])
    if "det" in expected and "value" in expected["det"]:
        fpr, fnr, threshold = expected["det"]["value"]
        for thin in (True, False):
            frame = curve(run(name, shape, names, thin_curves=thin), "DETCurve", 1).reverse()
            check(frame["fpr"], fpr)
            check(frame["fn"] / (frame["tp"] + frame["fn"]), fnr)
            check(frame["score_threshold"], [np.nan if t == np.inf else t for t in threshold])


def check(ours: pl.Series, theirs: list[float]) -> None:
    """Compare values of a column; null is NaN."""
    assert len(ours) == len(theirs), (ours.to_list(), theirs)
    assert all(map(close, ours.to_list(), theirs)), (ours.to_list(), theirs)


@pytest.mark.parametrize("name", [name for name in CASES if name not in UNBOUNDED])
def test_probabilities(name: str) -> None:
    """Log loss and Brier of scikit-learn, calibration of torchmetrics (single precision).

    Only for one table: a single listed label does not determine the other's probability.
    """
    expected = plain(cases()[name]["expected"])
    card = run(name, "one", ["LogLoss", "Brier", "ECE", "MCE"])
    assert close(card.value("LogLoss"), expected["log_loss"]["value"])
    assert close(card.value("Brier"), expected["brier"]["value"])
    for ours, theirs in (("ECE", "ece15"), ("MCE", "mce15")):
        assert card.value(ours) == pytest.approx(expected[theirs]["value"], abs=1e-6), ours


@pytest.mark.parametrize("shape", ["one", "long"])
def test_weights(shape: str) -> None:
    """Sample weights, one of them 0."""
    expected = plain(cases()["weighted_interior_ties"]["expected"])
    names = ["ROCAUC", "AP", "LogLoss", "Brier"]
    card = run("weighted_interior_ties", shape, names)
    assert close(of_one(card, "ROCAUC"), expected["roc_auc"]["value"])
    assert close(of_one(card, "AP"), expected["ap"]["value"])
    if shape == "one":
        assert close(card.value("LogLoss"), expected["log_loss"]["value"])
        assert close(card.value("Brier"), expected["brier"]["value"])
    card = run("weights_zero_a_class", shape, ["ROCAUC"])
    rows = of_slice(card.metrics).filter(label_value=1)
    assert rows["value"].to_list() in ([], [None])


@pytest.mark.parametrize("shape", ["one", "long"])
@pytest.mark.parametrize("name", ["inf_scores", "nan_score"])
def test_scores_that_are_no_numbers(name: str, shape: str) -> None:
    """Refused with the row."""
    inputs = plain(cases()[name]["inputs"])
    with pytest.raises(ee.InputError, match=r"score.*row [01]"):
        score(shapes(inputs)[shape], ["ROCAUC"])


@pytest.mark.parametrize("shape", ["one", "long"])
def test_empty(shape: str) -> None:
    """No rows: no numbers and no error."""
    card = run("empty", shape, ["ROCAUC", "AP", "LogLoss", "ROCCurve", "PrecisionRecallCurve"])
    assert card.metrics["value"].drop_nulls().is_empty()
    assert card.curves["recall"].drop_nulls().is_empty()
