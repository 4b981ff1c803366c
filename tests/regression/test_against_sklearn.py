"""Comparison with every regression metric of scikit-learn, on random tables.

Sums are exact here and pairwise in scikit-learn, so the last bits differ. 2,000 tables of each of
the four cases agreed (EVALENGINE_EXAMPLES=2000).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn import metrics as theirs

import evalengine as ee

N = int(os.environ.get("EVALENGINE_EXAMPLES", "4"))

PLAIN: dict[str, Callable[..., Any]] = {
    "MAE": theirs.mean_absolute_error,
    "MSE": theirs.mean_squared_error,
    "RMSE": theirs.root_mean_squared_error,
    "MedianAE": theirs.median_absolute_error,
    "MAPE": theirs.mean_absolute_percentage_error,
    "R2": theirs.r2_score,
    "ExplainedVariance": theirs.explained_variance_score,
    "D2AbsoluteError": theirs.d2_absolute_error_score,
    "Pinball": lambda t, p, **w: theirs.mean_pinball_loss(t, p, alpha=0.3, **w),
    "D2Pinball": lambda t, p, **w: theirs.d2_pinball_score(t, p, alpha=0.3, **w),
}
SHARES = ("R2", "ExplainedVariance", "D2AbsoluteError", "D2Pinball")
"""Metrics of the form 1 - x, whose rounding error is relative to 1 or more."""
AROUND_MEAN = ("R2", "ExplainedVariance", "D2Tweedie")
POSITIVE: dict[str, Callable[..., Any]] = {
    "MSLE": theirs.mean_squared_log_error,
    "RMSLE": theirs.root_mean_squared_log_error,
    "PoissonDeviance": theirs.mean_poisson_deviance,
    "GammaDeviance": theirs.mean_gamma_deviance,
    "TweedieDeviance": lambda t, p, **w: theirs.mean_tweedie_deviance(t, p, power=1.7, **w),
    "D2Tweedie": lambda t, p, **w: theirs.d2_tweedie_score(t, p, power=1.7, **w),
}


def _tolerances(name: str, truth: np.ndarray) -> dict[str, float]:
    """Return the tolerances of a metric.

    scikit-learn's deviances subtract numbers of the target's magnitude, so that rounding
    dominates small results. D2Tweedie divides by such a result.
    """
    if name == "D2Tweedie":
        return {"rel": 1e-10, "abs": 1e-13}
    if name.endswith("Deviance"):
        return {"rel": 2e-15, "abs": 8e-16 * float(np.abs(truth).max() + 1)}
    return {"rel": 2e-15, "abs": 4e-15 if name in SHARES else 0.0}


def random_table(seed: int, *, positive: bool) -> pl.DataFrame:
    """Generate two targets: ties, integers, tiny and huge values, constants, perfect values."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([2, 3, 5, 20, 60]))
    columns: dict[str, Any] = {"datum_id": np.arange(n)}
    for key in ("a", "b"):
        scale = 10.0 ** int(rng.choice([-100, -4, -1, 0, 1, 4, 100]))
        target = rng.normal(size=n) * scale
        if rng.random() < 0.4:
            target = np.round(target / scale) * scale
        if rng.random() < 0.1:
            target[:] = target[0]
        predicted = target + rng.normal(size=n) * scale * rng.choice([0, 0.1, 3])
        if positive:
            target, predicted = (np.abs(x) + scale / 9 for x in (target, predicted))
        columns |= {f"t{key}": target, f"p{key}": predicted}
    columns["weight"] = rng.choice([0.5, 1.0, 3.0], n) if rng.random() < 0.5 else rng.random(n)
    return pl.DataFrame(columns)


def scored(table: pl.DataFrame, names: list[str], *, weighted: bool) -> pl.DataFrame:
    named = [
        table.select(
            "datum_id", "weight", label_key=pl.lit(key), prediction=f"p{key}", target=f"t{key}"
        )
        for key in "ab"
    ]
    rows = pl.concat(named) if weighted else pl.concat(named).drop("weight")
    options = {"quantile": 0.3, "tweedie_power": 1.7, "dialect": "sklearn", "metrics": names}
    return ee.score(rows, task="regression", **options).metrics


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_metric(positive: bool, weighted: bool) -> None:
    references = POSITIVE if positive else PLAIN
    for seed in range(N):
        table = random_table(seed, positive=positive)
        weights = {"sample_weight": table["weight"].to_numpy()} if weighted else {}
        ours = scored(table, list(references), weighted=weighted)
        for name, reference in references.items():
            rows = ours.filter(pl.col("metric") == name)
            for key in "ab":
                truth, predicted = table[f"t{key}"].to_numpy(), table[f"p{key}"].to_numpy()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    value = rows.filter(label_key=key)["value"][0]
                    perfect = (truth == predicted).all()
                    if (np.ptp(truth) == 0 or perfect) and name in AROUND_MEAN:
                        assert value == (1.0 if perfect else 0.0), (seed, name)
                        continue  # scikit-learn divides by rounding errors of a mean
                    expected = float(reference(truth, predicted, **weights))
                assert value == pytest.approx(expected, **_tolerances(name, truth)), (seed, name)
            (macro,) = rows.filter(average="macro")["value"]
            assert macro == pytest.approx(rows.filter(pl.col("average").is_null())["value"].mean())


def test_weighted_medians_with_ties_of_cumulative_weights() -> None:
    """Rounded sums of weights decide ties in dialect sklearn, exact shares in standard."""
    differing = 0
    for seed in range(5 * N):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 30))
        rows = pl.DataFrame({"target": np.zeros(n), "prediction": rng.permutation(n) + 0.5})
        rows = rows.with_columns(weight=pl.Series(rng.choice([0.1, 0.2, 0.3, 0.7], n)))
        true, predicted, weight = (
            rows[name].to_numpy() for name in ("target", "prediction", "weight")
        )
        expected = theirs.median_absolute_error(true, predicted, sample_weight=weight)
        options: dict[str, Any] = {"task": "regression", "metrics": ["MedianAE"]}
        assert ee.score(rows, dialect="sklearn", **options).value("MedianAE") == expected, seed
        tenths = rows.with_columns(pl.col("weight") * 10).with_columns(pl.col("weight").round())
        exact = ee.score(tenths, **options).value("MedianAE")
        assert ee.score(rows, **options).value("MedianAE") == exact, seed
        differing += exact != expected
    assert differing or N < 20


@pytest.mark.parametrize("constant", [(False, True), (True, True)])
def test_averages_by_variance_of_constant_targets(constant: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(0)
    true, predicted = rng.normal(size=(2, 9, 2))
    for i, flat in enumerate(constant):
        true[:, i] = 1.5 if flat else true[:, i]
    predicted[:, 1] = true[:, 1]
    options: dict[str, Any] = {"metrics": ["R2", "ExplainedVariance"], "task": "regression"}
    card = ee.score(predicted, true, dialect="sklearn", **options)
    for name, reference in (("R2", theirs.r2_score),
                            ("ExplainedVariance", theirs.explained_variance_score)):  # fmt: skip
        expected = reference(true, predicted, multioutput="variance_weighted")
        assert card.value(name, average="weighted") == pytest.approx(expected, rel=1e-15)
        if all(constant):
            assert ee.score(predicted, true, **options).value(name, average="weighted") is None


def test_averages_by_variance() -> None:
    table = random_table(3, positive=False)
    sides = [table.select(f"{side}a", f"{side}b").to_numpy() for side in "tp"]
    ours = scored(table, ["R2", "ExplainedVariance"], weighted=False).filter(average="weighted")
    for name, reference in (("R2", theirs.r2_score),
                            ("ExplainedVariance", theirs.explained_variance_score)):  # fmt: skip
        (value,) = ours.filter(metric=name)["value"]
        assert value == pytest.approx(reference(*sides, multioutput="variance_weighted"), rel=1e-12)
