"""Regression functions and dcg_score of scikit-learn, by import and as scorers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as theirs
from sklearn.base import BaseEstimator

from evalengine.compat import sklearn as ours

PLAIN = [
    "mean_absolute_error",
    "mean_squared_error",
    "root_mean_squared_error",
    "mean_squared_log_error",
    "root_mean_squared_log_error",
    "median_absolute_error",
    "mean_absolute_percentage_error",
    "mean_pinball_loss",
    "d2_pinball_score",
    "d2_absolute_error_score",
]
VARIANCE = ["r2_score", "explained_variance_score"]
SINGLE = [
    "max_error",
    "mean_poisson_deviance",
    "mean_gamma_deviance",
    "mean_tweedie_deviance",
    "d2_tweedie_score",
]


def data(seed: int, outputs: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    shape = 25 if outputs is None else (25, outputs)
    return rng.gamma(2, 2, shape), rng.gamma(2, 2, shape), rng.random(25)


def same(name: str, *args: Any, **named: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = getattr(theirs, name)(*args, **named)
        result = getattr(ours, name)(*args, **named)
    assert type(result) is type(want) or isinstance(want, np.floating)
    np.testing.assert_allclose(result, want, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("predicted", [1.0, 2.0, [[1.0, 3.0]]])
@pytest.mark.parametrize("name", VARIANCE)
def test_one_row(name: str, predicted: Any) -> None:
    predicted = np.reshape(predicted, (1, -1))
    same(name, np.ones_like(predicted), predicted)
    same(name, np.ones_like(predicted), predicted, sample_weight=[2.0])


@pytest.mark.parametrize("weighs", [False, True])
@pytest.mark.parametrize("outputs", [None, 1, 3])
@pytest.mark.parametrize("name", [*PLAIN, *VARIANCE])
def test_outputs_and_weights(name: str, outputs: int | None, weighs: bool) -> None:
    for seed in range(3):
        true, predicted, weight = data(seed, outputs)
        more = {"sample_weight": weight} if weighs else {}
        same(name, true, predicted, **more)
        if outputs != 3:
            continue
        averages: list[Any] = ["raw_values", [0.2, 0.3, 0.5]]
        for average in [*averages, *(["variance_weighted"] if name in VARIANCE else [])]:
            same(name, true, predicted, multioutput=average, **more)


@pytest.mark.parametrize("name", SINGLE)
def test_single_outputs(name: str) -> None:
    true, predicted, weight = data(4, None)
    same(name, true, predicted)
    if name != "max_error":
        same(name, true, predicted, sample_weight=weight)
    for power in (0, 1, 1.5, 2, 3) if "tweedie" in name else ():
        same(name, true, predicted, power=power)
    with pytest.raises(ValueError, match=r"."):
        getattr(ours, name)(np.ones((4, 2)), np.ones((4, 2)))


def test_edges() -> None:
    true, predicted, _ = data(1, None)
    same("mean_pinball_loss", true, predicted, alpha=0.9)
    same("d2_pinball_score", true, predicted, alpha=0.1)
    for alpha in (0, 1):
        same("mean_pinball_loss", true, predicted, alpha=alpha)
        for side in (predicted, true, true - 1, true + 1):
            same("d2_pinball_score", true, side, alpha=alpha)
    same("r2_score", [1, 1, 1], [1, 1, 1])
    same("r2_score", [1, 1, 1], [1, 2, 1])
    same("r2_score", [1], [2])
    with np.errstate(all="ignore"):
        for name in ("r2_score", "explained_variance_score"):
            same(name, true, predicted, force_finite=False)
            for side in ([1.0, 1, 1], [1.0, 2, 1], [2.0, 2, 2]):
                same(name, [1.0, 1, 1], side, force_finite=False)
            same(name, [[1.0, 2], [1, 3]], [[1.0, 2], [2, 4]], force_finite=False,
                 multioutput="raw_values")  # fmt: skip
    same("mean_absolute_percentage_error", [0, 1], [1, 1])
    same(
        "r2_score", np.tile([[1.0, 2.0]], (4, 1)), np.ones((4, 2)), multioutput="variance_weighted"
    )
    for name, bad in (("mean_squared_log_error", [-2.0, 1]), ("mean_poisson_deviance", [-1.0, 1])):
        for module in (theirs, ours):
            for rows in (2, 1):
                with pytest.raises(ValueError, match=r"."):
                    getattr(module, name)([1.0, 2.0][:rows], bad[:rows])
    with pytest.raises(ValueError, match=r"."):
        ours.mean_absolute_error([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match=r"."):
        ours.mean_absolute_error([[1, 2]], [[1, 2, 3]])
    with pytest.raises(ValueError, match=r"."):
        ours.mean_absolute_error([1, 2], [1, 2], multioutput="variance_weighted")


@pytest.mark.parametrize("name", ["dcg_score", "ndcg_score"])
@pytest.mark.parametrize("seed", range(4))
def test_gains(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    gains, scores = rng.integers(0, 4, (6, 8)), rng.integers(0, 5, (6, 8))
    same(name, gains, scores)
    same(name, gains, scores, k=3)
    same(name, gains, scores, sample_weight=rng.random(6))
    same(name, gains, rng.random((6, 8)), ignore_ties=True)
    if name == "dcg_score":
        same(name, gains, scores, log_base=10)


class Fixed(BaseEstimator):  # type: ignore[misc]
    """Estimator that returns its input."""

    _estimator_type = "regressor"

    def fit(self, X: Any, y: Any) -> Fixed:
        return self

    def predict(self, X: Any) -> Any:
        return X[:, 0]


@pytest.mark.parametrize("name", [*PLAIN, *VARIANCE, *SINGLE])
def test_scorers(name: str) -> None:
    true, predicted, _ = data(2, None)
    rows, model = predicted[:, None], Fixed()
    better = name.endswith("score")
    scorers = [
        theirs.make_scorer(getattr(module, name), greater_is_better=better)
        for module in (ours, theirs)
    ]
    result, want = (one(model, rows, true) for one in scorers)
    assert result == pytest.approx(want, rel=1e-12)
