"""Averages over datums of ROC areas and average precision, with several labels per datum."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest
from classification.rows import score
from classification.strategies import modest
from hypothesis import given
from hypothesis import strategies as st
from lazy_imports import LazyModule

import evalengine as ee

sk = LazyModule("sklearn.metrics")
Array = np.ndarray[Any, Any]


def tables(truth: Array, scores: Array, weight: Array | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Make long tables; a score of NaN is not listed."""
    row, label = np.nonzero(~np.isnan(scores))
    guesses = pl.DataFrame({"datum_id": row, "label_value": label, "score": scores[row, label]})
    row, label = np.nonzero(truth)
    truths = pl.DataFrame({"datum_id": row, "label_value": label})
    if weight is not None:
        truths = truths.with_columns(weight=weight[row])
    return guesses, truths


def generated(seed: int, n: int, n_labels: int, *, both: bool) -> tuple[Array, Array, Array]:
    """Make truth with both classes in every row or in most, tied scores, and weights."""
    rng = np.random.default_rng(seed)
    truth = (rng.random((n, n_labels)) < 0.4).astype(int)
    if both:
        truth[:, 0] = 1 - truth[:, 1]
    truth[0, :2] = 1, 0
    return truth, rng.integers(0, 5, (n, n_labels)) / 4, rng.choice([0.0, 0.3, 1.7], n)


CASE = (st.integers(0, 10_000), st.integers(1, 25), st.integers(2, 5))


@modest
@given(*CASE, st.booleans(), st.booleans())
def test_sklearn(seed: int, n: int, n_labels: int, both: bool, weighted: bool) -> None:
    truth, scores, weight = generated(seed, n, n_labels, both=both)
    weight[0] = 1.0
    weighted = weighted and both  # a row without ground truths cannot have a weight
    sides = tables(truth, scores, weight if weighted else None)
    by = {"sample_weight": weight} if weighted else {}
    more = {"multilabel": True, "average": "samples"}
    card = score(sides, ["mROCAUC", "mAP"], dialect="sklearn", **more)
    ours = score(sides, ["mROCAUC", "mAP"], **more)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        area = sk.roc_auc_score(truth, scores, average="samples", **by)
        precision = sk.average_precision_score(truth, scores, average="samples", **by)
        result = card.value("mROCAUC", average="samples")
        assert (result is None and np.isnan(area)) or result == pytest.approx(area, abs=1e-12)
        assert card.value("mAP", average="samples") == pytest.approx(precision, abs=1e-12)
        if weighted:
            return
        # standard skips undefined values instead of returning NaN or 0
        some = truth.any(axis=1)
        mixed = some & ~truth.all(axis=1)
        area = np.mean([sk.roc_auc_score(truth[i], scores[i]) for i in np.flatnonzero(mixed)])
        precision = sk.average_precision_score(truth[some], scores[some], average="samples")
    assert ours.value("mROCAUC", average="samples") == pytest.approx(area, abs=1e-12)
    assert ours.value("mAP", average="samples") == pytest.approx(precision, abs=1e-12)


@modest
@given(*CASE)
def test_unlisted_labels_rank_last(seed: int, n: int, n_labels: int) -> None:
    """Lists of the best few labels: the others rank below all."""
    truth, scores, _ = generated(seed, n, n_labels, both=True)
    few = np.where(scores >= 0.5, scores, np.nan)
    few[0] = scores[0]  # every label is listed somewhere
    filled = np.where(np.isnan(few), -1.0, few)
    card = score(tables(truth, few, None), ["mROCAUC", "mAP"], multilabel=True, average="samples")
    area = sk.roc_auc_score(truth, filled, average="samples")
    assert card.value("mROCAUC", average="samples") == pytest.approx(area, abs=1e-12)
    precision = sk.average_precision_score(truth, filled, average="samples")
    assert card.value("mAP", average="samples") == pytest.approx(precision, abs=1e-12)


def test_slices() -> None:
    """A slice equals its datums scored separately if all labels occur in it."""
    truth, scores, weight = generated(3, 40, 4, both=True)
    guesses, truths = tables(truth, scores, weight)
    part = pl.DataFrame({"datum_id": np.arange(40), "part": ["x", "y"] * 20})
    more: dict[str, Any] = {"multilabel": True, "average": "samples"}
    card = score((guesses, truths), ["mROCAUC", "mAP"], by="part", datums=part, **more)
    for name, rest in (("x", 0), ("y", 1)):
        inside = pl.col("datum_id") % 2 == rest
        single = score((guesses.filter(inside), truths.filter(inside)), ["mROCAUC", "mAP"], **more)
        mine = card.metrics.filter(slice_value=name)["value"]
        assert mine.equals(single.metrics["value"])


def test_undefined() -> None:
    """With a single label, no datum has another label."""
    rows = pl.DataFrame({"datum_id": [1, 2], "label_value": ["a", "a"], "score": [0.5, 0.6]})
    more: dict[str, Any] = {"multilabel": True, "average": "samples"}
    card = score((rows, rows.drop("score")), ["mROCAUC", "mAP"], **more)
    row = card.metrics.filter(metric="mROCAUC", average="samples").row(0, named=True)
    assert (row["value"], row["reason"]) == (None, "no datum with both a true and another label")
    assert card.value("mAP", average="samples") == 1.0
    with pytest.raises(ee.OptionError, match="multilabel"):
        score((rows, rows.drop("score")), ["mROCAUC"], average="samples")
