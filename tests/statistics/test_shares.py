"""Intervals of shares: effective numbers, and differences of shares of the same datums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import optimize, stats

import evalengine as ee
from evalengine.jobs.gates import parse_gates
from evalengine.jobs.verdicts import judge_gates, numbers_of
from evalengine.statistics.intervals import (
    clopper_pearson,
    means,
    one_sided_p,
    standard_errors,
    tango,
)

Z = 1.959963984540054


def wilson(p: float, n: float, z: float) -> tuple[float, float]:
    middle, reach = (p + z * z / 2 / n), z * np.sqrt(p * (1 - p) / n + z * z / 4 / n / n)
    return (middle - reach) / (1 + z * z / n), (middle + reach) / (1 + z * z / n)


def table(right: Any, **columns: Any) -> pl.DataFrame:
    """Return one table of both sides, in which some datums are right."""
    n = len(right)
    prediction = np.where(right, "a", "b")
    return pl.DataFrame(
        {"datum_id": range(n), "prediction": prediction, "target": ["a"] * n, **columns}
    )


def accuracy(frame: pl.DataFrame, **options: Any) -> dict[str, Any]:
    card = ee.score(frame, metrics=["Accuracy"], task="classification", intervals=0.95, **options)
    return card.metrics.row(0, named=True)


# The score interval of a difference.


def constrained(n: int, gained: int, lost: int, change: float) -> float:
    """Compute Tango's statistic, with the nuisance parameter by maximum likelihood."""

    def loss(q: float) -> float:
        p = [q + change, q, 1 - 2 * q - change]
        counts = [gained, lost, n - gained - lost]
        return -sum(c * np.log(max(x, 1e-300)) for c, x in zip(counts, p, strict=True) if c)

    low, high = max(0.0, -change), (1 - change) / 2
    q = optimize.minimize_scalar(loss, bounds=(low, high), options={"xatol": 1e-12}).x
    return (gained - lost - n * change) / np.sqrt(n * (2 * q + change - change**2))


@pytest.mark.parametrize(
    ("n", "gained", "lost"), [(21, 1, 7), (50, 12, 2), (44, 0, 1), (75, 14, 5), (20, 20, 0)]
)
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_tango_by_maximised_likelihood(n: int, gained: int, lost: int, level: float) -> None:
    z = stats.norm.ppf((1 + level) / 2)
    bounds = [float(end[0]) for end in tango(*np.array([[n], [gained], [lost]], float), level)]
    for end, expected in zip(bounds, (z, -z), strict=True):
        if abs(end) < 1:
            assert constrained(n, gained, lost, end) == pytest.approx(expected, rel=1e-4)


def test_tango_as_published() -> None:
    """M. Fagerland et al. (2014), airway hyper-responsiveness: 2 against 8 of 21."""
    low, high = tango(np.array([21.0]), np.array([1.0]), np.array([7.0]), 0.95)
    assert (round(low[0], 3), round(high[0], 3)) == (-0.517, -0.026)


def test_differences_of_accuracies_are_tangos() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.random((2, 60)) < 0.8
    result = ee.compare(
        table(first), table(second), metrics=["Accuracy", "Recall"], draws=50
    ).differences
    counts = [[60.0], [(second & ~first).sum()], [(first & ~second).sum()]]
    bounds = [end[0] for end in tango(*np.array(counts, float), 0.95)]
    shares = result.filter(pl.col("average").is_null(), pl.col("label_value").fill_null("a") == "a")
    assert shares.height == 2
    for row in shares.iter_rows(named=True):
        assert [row["lower"], row["upper"]] == pytest.approx(bounds)
    clustered = ee.compare(
        *(table(one, doc=np.arange(60) // 3) for one in (first, second)),
        metrics=["Accuracy"], draws=50, cluster="doc",
    ).differences  # fmt: skip
    assert clustered["lower"][0] != pytest.approx(bounds[0])


def test_swapped_runs_negate_the_interval() -> None:
    rng = np.random.default_rng(1)
    runs = [table(one) for one in rng.random((2, 40)) < 0.7]
    one, other = (
        ee.compare(*pair, metrics=["Accuracy"], draws=50).differences.row(0, named=True)
        for pair in (runs, runs[::-1])
    )
    assert one["lower"] == pytest.approx(-other["upper"])
    assert one["p"] == other["p"]


# Effective numbers.


def test_weights_count_by_kish() -> None:
    rng = np.random.default_rng(2)
    right, weight = rng.random(200) < 0.8, rng.lognormal(0, 1.5, 200)
    row = accuracy(table(right, weight=weight), draws=4000)
    kish = weight.sum() ** 2 / (weight**2).sum()
    assert row["trials"] == pytest.approx(kish, rel=0.1)
    z = stats.norm.ppf(0.975)
    bounds = wilson((right * weight).sum() / weight.sum(), kish, z)
    assert [row["lower"], row["upper"]] == pytest.approx(bounds, abs=0.01)


@pytest.mark.parametrize("n_clusters", [8, 60])
def test_clusters_count_by_their_variance(n_clusters: int) -> None:
    rng = np.random.default_rng(3)
    doc = np.repeat(np.arange(n_clusters), 50)
    right = rng.random(doc.size) < rng.beta(1.5, 0.5, n_clusters)[doc]
    row = accuracy(table(right, doc=doc), cluster="doc", draws=20_000)
    p = right.mean()
    surplus = np.bincount(doc, right - p)
    between = (surplus**2).sum() / doc.size**2 * n_clusters / (n_clusters - 1)
    z = stats.norm.ppf(0.975)
    t = stats.t.ppf(0.975, n_clusters - 1) if n_clusters < 20 else z
    n = min(p * (1 - p) / between, doc.size) * (z / t) ** 2
    assert row["trials"] == pytest.approx(n, rel=0.05, abs=1)
    assert [row["lower"], row["upper"]] == pytest.approx(wilson(p, n, z), abs=0.015)


def test_clusters_that_are_all_right_count_once_each() -> None:
    row = accuracy(table([True] * 60, doc=np.arange(60) // 5), cluster="doc", draws=4000)
    assert row["trials"] == pytest.approx(12, abs=1)
    assert row["lower"] == pytest.approx(wilson(1.0, 12, stats.norm.ppf(0.975))[0], abs=0.02)


def test_gates_take_exact_bounds_of_the_effective_number() -> None:
    card = ee.score(
        table([True] * 60, doc=np.arange(60) // 5),
        metrics=["Accuracy"], task="classification", intervals=0.95, cluster="doc",
    )  # fmt: skip
    (result,) = judge_gates(parse_gates(["Accuracy >= 0.9 surely"], ()), numbers_of(card))
    n = card.metrics["trials"][0]
    assert (result.status, result.lower) == ("failed", pytest.approx(0.025 ** (1 / n)))


def test_intervals_of_few_clusters_are_wider() -> None:
    rng = np.random.default_rng(4)
    n = 6
    doc = np.repeat(np.arange(n), 20)
    target = rng.normal(0, 1, doc.size)
    frame = pl.DataFrame(
        {
            "target": target,
            "prediction": target + rng.normal(rng.normal(0, 1, n)[doc], 1),
            "doc": doc,
        }
    )
    card = ee.score(
        frame, metrics=["MAE"], task="regression", intervals=0.95, cluster="doc",
        method="normal", draws=4000,
    )  # fmt: skip
    row = card.metrics.row(0, named=True)
    reach = stats.t.ppf(0.975, n - 1) * np.sqrt(n / (n - 1)) * row["se"]
    assert row["upper"] - row["value"] == pytest.approx(reach, rel=0.03)
    (note,) = (one for one in card.findings if one.code == "few_clusters")
    assert note.facts["least"] == 6


def test_the_note_on_few_datums_counts_positives() -> None:
    at = np.arange(500)
    target = np.where(at < 7, "rare", "common")
    found = np.where((at < 5) | (at % 50 == 10), "rare", "common")
    frame = pl.DataFrame({"target": target, "prediction": found})
    asked: dict[str, Any] = {"task": "classification", "intervals": 0.95}
    few = ee.score(frame, metrics=["F2"], **asked)
    (note,) = (one for one in few.findings if one.code == "few_clusters")
    assert note.facts["least"] == 7
    assert any(one.code == "rare_labels_averaged" for one in few.findings)
    enough = ee.score(frame.filter(pl.col("target") == "common"), metrics=["F2"], **asked)
    assert not any(one.code == "rare_labels_averaged" for one in enough.findings)
    fit = ee.score(
        frame, metrics=["Recall", "Accuracy", "BalancedAccuracy"], **asked
    )  # in closed form
    assert not any(one.code == "few_clusters" for one in fit.findings)


def test_the_interval_contains_the_share() -> None:
    """All and none of 2 to 89 verdicts are right, each a metric of one table."""
    parts = [
        pl.DataFrame({"datum_id": range(n), "metric": f"{n} {right}", "value": [right] * n})
        for n in range(2, 90)
        for right in (True, False)
    ]
    rows = ee.score(pl.concat(parts), intervals=0.95).metrics
    assert rows["metric"].n_unique() == len(parts)
    assert (rows["lower"] <= rows["value"]).all(ignore_nulls=False)
    assert (rows["value"] <= rows["upper"]).all(ignore_nulls=False)


@pytest.mark.parametrize(
    ("right", "n", "bounds", "exact"),
    [
        (81, 263, (0.2553, 0.3662), (0.2527, 0.3676)),
        (15, 148, (0.0624, 0.1605), (0.0578, 0.1617)),
        (0, 20, (0.0, 0.1611), (0.0, 0.1684)),
        (1, 29, (0.0061, 0.1718), (0.0009, 0.1776)),
    ],
)
def test_shares_as_published(
    right: int, n: int, bounds: tuple[float, float], exact: tuple[float, float]
) -> None:
    """Table I of R. Newcombe, "Two-sided confidence intervals for the single proportion" (1998)."""
    row = ee.score(
        table(np.arange(n) < right), task="classification", metrics="Accuracy", intervals=0.95
    ).metrics
    assert np.allclose(row.select("lower", "upper").row(0), bounds, atol=5e-5)
    assert np.allclose(clopper_pearson(right / n, n, 0.95), exact, atol=5e-5)


def confusion(tp: int, fp: int, fn: int, tn: int) -> pl.DataFrame:
    actual = [1] * (tp + fn) + [0] * (fp + tn)
    seen = [1] * tp + [0] * fn + [1] * fp + [0] * tn
    return pl.DataFrame({"actual": actual, "predicted": seen})


@pytest.mark.parametrize("counts", [(3, 2, 1, 14), (4, 0, 0, 16), (0, 1, 4, 15), (20, 7, 9, 64)])
def test_f1_and_balanced_accuracy_follow_from_wilson(counts: tuple[int, int, int, int]) -> None:
    """F1 follows from the share of datums with the label; means follow Zou and Donner."""
    tp, fp, fn, tn = counts
    asked: dict[str, Any] = {"task": "classification", "intervals": 0.95, "draws": 100}
    card = ee.score(confusion(*counts), metrics=["F1", "BalancedAccuracy", "Recall"], **asked)
    (f1,) = card.metrics.filter(pl.col("metric") == "F1", pl.col("label_value") == 1).rows(
        named=True
    )
    bounds = [2 * end / (1 + end) for end in wilson(tp / (tp + fp + fn), tp + fp + fn, Z)]
    assert np.allclose((f1["lower"], f1["upper"]), bounds, atol=1e-9)
    assert f1["trials"] is None  # F1 is not a share: gates take these bounds
    shares = [tp / (tp + fn), tn / (fp + tn)]
    low, high = zip(wilson(shares[0], tp + fn, Z), wilson(shares[1], fp + tn, Z), strict=True)
    mean = np.mean(shares)
    by_hand = (
        mean - np.hypot(*np.subtract(shares, low)) / 2,
        mean + np.hypot(*np.subtract(high, shares)) / 2,
    )
    macro = pl.col("average").is_null() | (pl.col("average") == "macro")
    for name in ("BalancedAccuracy", "Recall"):
        rows = card.metrics.filter(pl.col("metric") == name, macro, pl.col("label_value").is_null())
        (row,) = rows.rows(named=True)
        assert np.allclose((row["lower"], row["upper"]), by_hand, atol=1e-9)


def test_means_of_labels_that_share_datums_are_resampled() -> None:
    """Labels of one datum are not independent."""
    truth = pl.DataFrame({"datum_id": np.repeat(np.arange(40), 2), "label_value": ["a", "b"] * 40})
    predictions = truth.with_columns(
        score=pl.Series(np.repeat(np.arange(40) % 4 > 0, 2) * 0.8 + 0.1)
    )
    asked: dict[str, Any] = {"task": "classification", "intervals": 0.95, "multilabel": True}
    rows = ee.score(predictions, truth, metrics="Recall", **asked).metrics
    label, macro = (
        rows.filter(pl.col("label_value") == "a").row(0, named=True),
        rows.filter(pl.col("average") == "macro").row(0, named=True),
    )
    width = macro["upper"] - macro["lower"]
    assert width > 0.85 * (label["upper"] - label["lower"])


def test_numbers_above_0_take_the_scale_of_logarithms() -> None:
    rng = np.random.default_rng(0)
    rows = pl.DataFrame({"target": np.zeros(40), "prediction": rng.standard_t(5, 40)})
    asked: dict[str, Any] = {"task": "regression", "intervals": 0.95}
    (row,) = ee.score(rows, metrics="MAE", **asked).metrics.rows(named=True)
    reach = np.exp(Z * row["se"] / row["value"])
    assert np.allclose((row["lower"], row["upper"]), (row["value"] / reach, row["value"] * reach))
    (same,) = ee.score(rows, metrics="MAE", method="log", **asked).metrics.rows(named=True)
    assert (same["lower"], same["upper"]) == (row["lower"], row["upper"])


def test_sums_of_resamples_that_overflow_give_no_warning() -> None:
    drawn = np.array([[1e308, -1e308], [1.7e308, 1e308], [-1e308, np.nan]])
    with np.errstate(all="raise"):
        assert np.allclose(means(drawn), (1.7e308 / 3, 0.0))
        assert np.allclose(standard_errors(drawn) / 1e300, [1.4011899e8, 1.4142136e8])


@pytest.mark.parametrize("bound", [0.1, 0.5, 0.93])
def test_one_sided_p_is_the_tail_of_the_binomial(bound: float) -> None:
    n, binomial = 12, stats.binom(12, bound)
    for right in range(n + 1):
        for above, tail in ((True, binomial.sf(right - 1)), (False, binomial.cdf(right))):
            p = one_sided_p(right / n, bound, math.nan, 0.95, trials=n, above=above)
            assert p == pytest.approx(tail, rel=1e-9, abs=1e-12)
