"""Every metric that scikit-learn has, on random odd tables; it is a test extra, and not exact.

Sums are exact here and pairwise there, so that numbers agree but for the last bits. 2,000 tables of
each of the four cases agreed (EVALENGINE_EXAMPLES=2000).
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
"""Differences of 1, whose last bits are those of numbers of this size or more."""
AROUND_MEAN = ("R2", "ExplainedVariance", "D2Tweedie")
POSITIVE: dict[str, Callable[..., Any]] = {
    "MSLE": theirs.mean_squared_log_error,
    "RMSLE": theirs.root_mean_squared_log_error,
    "PoissonDeviance": theirs.mean_poisson_deviance,
    "GammaDeviance": theirs.mean_gamma_deviance,
    "TweedieDeviance": lambda t, p, **w: theirs.mean_tweedie_deviance(t, p, power=1.7, **w),
    "D2Tweedie": lambda t, p, **w: theirs.d2_tweedie_score(t, p, power=1.7, **w),
}


def _apart(name: str, truth: np.ndarray) -> dict[str, float]:
    """How far apart numbers may be: by the last bits, but for what scikit-learn takes off itself.

    Its deviances subtract numbers of the size of the target, which leaves the rounding of these
    where little is left, as of perfect predictions; D2Tweedie divides by such a rest.
    """
    if name == "D2Tweedie":
        return {"rel": 1e-10, "abs": 1e-13}
    if name.endswith("Deviance"):
        return {"rel": 2e-15, "abs": 8e-16 * float(np.abs(truth).max() + 1)}
    return {"rel": 2e-15, "abs": 4e-15 if name in SHARES else 0.0}


def drawn(seed: int, *, positive: bool) -> pl.DataFrame:
    """Rows of two targets: ties, wholes, tiny and huge values, a constant target, perfect ones."""
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
    known = POSITIVE if positive else PLAIN
    for seed in range(N):
        table = drawn(seed, positive=positive)
        weights = {"sample_weight": table["weight"].to_numpy()} if weighted else {}
        ours = scored(table, list(known), weighted=weighted)
        for name, reference in known.items():
            rows = ours.filter(pl.col("metric") == name)
            for key in "ab":
                truth, found = table[f"t{key}"].to_numpy(), table[f"p{key}"].to_numpy()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    value = rows.filter(label_key=key)["value"][0]
                    perfect = (truth == found).all()
                    if (np.ptp(truth) == 0 or perfect) and name in AROUND_MEAN:
                        assert value == (1.0 if perfect else 0.0), (seed, name)
                        continue  # there what rounding leaves of a mean is divided by
                    expected = float(reference(truth, found, **weights))
                assert value == pytest.approx(expected, **_apart(name, truth)), (seed, name)
            (macro,) = rows.filter(average="macro")["value"]
            assert macro == pytest.approx(rows.filter(pl.col("average").is_null())["value"].mean())


def test_weighted_medians_where_shares_meet() -> None:
    """Weights whose sums round: dialect sklearn has its ties, standard those of the shares."""
    apart = 0
    for seed in range(5 * N):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 30))
        rows = pl.DataFrame({"target": np.zeros(n), "prediction": rng.permutation(n) + 0.5})
        rows = rows.with_columns(weight=pl.Series(rng.choice([0.1, 0.2, 0.3, 0.7], n)))
        true, found, weight = (rows[name].to_numpy() for name in ("target", "prediction", "weight"))
        expected = theirs.median_absolute_error(true, found, sample_weight=weight)
        ask: dict[str, Any] = {"task": "regression", "metrics": ["MedianAE"]}
        assert ee.score(rows, dialect="sklearn", **ask).value("MedianAE") == expected, seed
        tenths = rows.with_columns(pl.col("weight") * 10).with_columns(pl.col("weight").round())
        exact = ee.score(tenths, **ask).value("MedianAE")
        assert ee.score(rows, **ask).value("MedianAE") == exact, seed
        apart += exact != expected
    assert apart or N < 20


@pytest.mark.parametrize("constant", [(False, True), (True, True)])
def test_averages_by_variance_of_constant_targets(constant: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(0)
    true, found = rng.normal(size=(2, 9, 2))
    for i, flat in enumerate(constant):
        true[:, i] = 1.5 if flat else true[:, i]
    found[:, 1] = true[:, 1]
    asked: dict[str, Any] = {"metrics": ["R2", "ExplainedVariance"], "task": "regression"}
    card = ee.score(found, true, dialect="sklearn", **asked)
    for name, reference in (("R2", theirs.r2_score),
                            ("ExplainedVariance", theirs.explained_variance_score)):  # fmt: skip
        expected = reference(true, found, multioutput="variance_weighted")
        assert card.value(name, average="weighted") == pytest.approx(expected, rel=1e-15)
        if all(constant):
            assert ee.score(found, true, **asked).value(name, average="weighted") is None


def test_averages_by_variance() -> None:
    table = drawn(3, positive=False)
    sides = [table.select(f"{side}a", f"{side}b").to_numpy() for side in "tp"]
    ours = scored(table, ["R2", "ExplainedVariance"], weighted=False).filter(average="weighted")
    for name, reference in (("R2", theirs.r2_score),
                            ("ExplainedVariance", theirs.explained_variance_score)):  # fmt: skip
        (value,) = ours.filter(metric=name)["value"]
        assert value == pytest.approx(reference(*sides, multioutput="variance_weighted"), rel=1e-12)
