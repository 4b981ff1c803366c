"""Ids and scores at the limits of their types, against scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from lazy_imports import LazyModule

import evalengine as ee

sk = LazyModule("sklearn.metrics")
rng = np.random.default_rng(5)
N = 9_000
HIT = rng.random(N) < 0.3


def pair(ids: Any, score: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Make predictions of label 1 and ground truths, shuffled independently."""
    mine = pl.DataFrame({"datum_id": ids, "label_value": [1] * N, "score": score})
    truth = pl.DataFrame({"datum_id": ids, "label_value": HIT.astype(int)})
    return mine.sample(fraction=1, shuffle=True, seed=1), truth.sample(
        fraction=1, shuffle=True, seed=2
    )


@pytest.mark.parametrize(
    "ids",
    [
        np.arange(-(2**63), -(2**63) + N),
        np.arange(2**63 - 1, 2**63 - 1 - N, -1),
        np.r_[np.arange(-(2**63), -(2**63) + N // 2), np.arange(2**63 - 1, 2**63 - 1 - N // 2, -1)],
        np.arange(N) * 10**12,
    ],
)
def test_ids_at_the_limits_of_integers(ids: Any) -> None:
    score = np.round(rng.random(N) + HIT / 4, 2)
    card = ee.score(*pair(ids.astype(np.int64), score), metrics=["ROCAUC"])
    expected = sk.roc_auc_score(HIT, score)
    assert card.value("ROCAUC", label_value=1) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("value", [1.7e308, -1.7e308, 5e-324])
def test_scores_whose_sum_is_too_large(value: float) -> None:
    score = np.where(rng.random(N) > 0.5, value, np.round(rng.random(N), 2))
    card = ee.score(pl.DataFrame({"actual": HIT, "score": score}), metrics=["ROCAUC"])
    assert card.value("ROCAUC") == pytest.approx(sk.roc_auc_score(HIT, score), abs=1e-12)


@pytest.mark.parametrize("rows", [N, 200_000])
def test_a_zero_with_a_sign_is_zero(rows: int) -> None:
    """Few distinct scores are counted instead of sorted, unless there is a signed zero."""
    hit = rng.random(rows) < 0.3
    score = np.round(rng.random(rows) + hit / 8, 1)
    signed = np.where((score == 0) & (rng.random(rows) < 0.5), -0.0, score)
    assert np.signbit(signed).any()
    for some in (score, signed):
        card = ee.score(pl.DataFrame({"actual": hit, "score": some}), metrics=["ROCAUC", "AP"])
        assert card.value("ROCAUC") == pytest.approx(sk.roc_auc_score(hit, score), abs=1e-12)
        assert card.value("AP") == pytest.approx(sk.average_precision_score(hit, score), abs=1e-12)
