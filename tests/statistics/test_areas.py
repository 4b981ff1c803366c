"""Intervals and the paired test of areas under ROC curves, compared with loops over all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import optimize, stats

import evalengine as ee

Z = stats.norm.ppf(0.975)


def made(seed: int, n: int = 60, *, ties: bool = False) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    actual = rng.random(n) < 0.4
    score = rng.random(n) + 0.3 * actual
    return pl.DataFrame(
        {
            "datum_id": range(n),
            "score": score.round(1) if ties else score,
            "actual": actual,
            "doc": np.arange(n) // 4 % 12,
        }
    )


def row(frame: pl.DataFrame, **options: Any) -> dict[str, Any]:
    card = ee.score(frame, metrics=["ROCAUC"], intervals=0.95, draws=100, **options)
    return card.metrics.row(0, named=True)


def pairs(frame: pl.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the pairs won, [positive, negative], and the rows of each."""
    score, actual = frame["score"].to_numpy(), frame["actual"].to_numpy()
    gap = score[actual][:, None] - score[~actual]
    return (gap > 0) + (gap == 0) / 2, np.flatnonzero(actual), np.flatnonzero(~actual)


def obuchowski(won: np.ndarray, of_positive: np.ndarray, of_negative: np.ndarray) -> float:
    """Variance of the area from sums over clusters, as in Obuchowski (1997)."""
    m, n = won.shape
    area = won.mean()
    every = np.union1d(of_positive, of_negative)
    x = np.array([(won.mean(axis=1)[of_positive == k] - area).sum() for k in every])
    y = np.array([(won.mean(axis=0)[of_negative == k] - area).sum() for k in every])
    i10, i01 = np.unique(of_positive).size, np.unique(of_negative).size
    s10 = i10 / ((i10 - 1) * m) * (x**2).sum()
    s01 = i01 / ((i01 - 1) * n) * (y**2).sum()
    s11 = every.size / (every.size - 1) * (x * y).sum()
    return s10 / m + s01 / n + 2 * s11 / (m * n)


def on_logits(area: float, se: float, z: float) -> list[float]:
    odds, reach = np.log(area / (1 - area)), z * se / (area * (1 - area))
    return [1 / (1 + np.exp(-odds + reach)), 1 / (1 + np.exp(-odds - reach))]


@pytest.mark.parametrize("seed", range(4))
def test_delong_on_logits_is_the_default(seed: int) -> None:
    frame = made(seed, ties=seed % 2 == 1)
    won, *_ = pairs(frame)
    parts = won.mean(axis=1), won.mean(axis=0)
    se = sum(part.var(ddof=1) / part.size for part in parts) ** 0.5
    found = row(frame)
    assert found["se"] == pytest.approx(se)
    t = stats.t.ppf(0.975, min(won.shape) - 1)
    assert [found["lower"], found["upper"]] == pytest.approx(on_logits(won.mean(), se, t))


def test_many_of_both_classes_have_normal_intervals() -> None:
    frame = made(3, 1000)
    won, *_ = pairs(frame)
    assert min(won.shape) >= 200
    found = row(frame)
    bounds = on_logits(won.mean(), found["se"], Z)
    assert [found["lower"], found["upper"]] == pytest.approx(bounds)


@pytest.mark.parametrize("seed", range(3))
def test_clusters_are_obuchowskis(seed: int) -> None:
    frame = made(seed, ties=seed == 1)
    won, positive, negative = pairs(frame)
    doc = frame["doc"].to_numpy()
    se = obuchowski(won, doc[positive], doc[negative]) ** 0.5
    found = row(frame, cluster="doc")
    assert found["se"] == pytest.approx(se)
    counts = [np.bincount(doc[side]) for side in (positive, negative)] + [np.bincount(doc)]
    kish = min(count.sum() ** 2 / (count**2).sum() for count in counts)
    z = stats.t.ppf(0.975, round(kish) - 1)
    assert [found["lower"], found["upper"]] == pytest.approx(on_logits(won.mean(), se, z))


def test_few_datums_have_students_t() -> None:
    """The correction is applied once, because DeLong's variance already divides by n - 1.

    The paired test's degrees of freedom are used.
    """
    frame = made(11, 12, ties=True)
    won, *_ = pairs(frame)
    se = sum(part.var(ddof=1) / part.size for part in (won.mean(axis=1), won.mean(axis=0))) ** 0.5
    found = row(frame)
    bounds = on_logits(won.mean(), se, stats.t.ppf(0.975, min(won.shape) - 1))
    assert [found["lower"], found["upper"]] == pytest.approx(bounds)
    second = second_of(frame)
    gap = pairs(second)[0] - won
    parts = gap.mean(axis=1), gap.mean(axis=0)
    se = sum(part.var(ddof=1) / part.size for part in parts) ** 0.5
    assert compared(frame, second)["p"] == pytest.approx(2 * stats.t.sf(abs(gap.mean()) / se, 11))


def test_separated_classes_have_newcombes_interval() -> None:
    """Method 5 of Newcombe (2006): Hanley and McNeil's variance at the bound, mean class size."""
    m, n = 4, 9
    frame = pl.DataFrame({"actual": [True] * m + [False] * n})
    frame = frame.with_columns(score=pl.int_range(m + n, 0, -1).cast(pl.Float64))

    def gap(a: float) -> float:
        many = (m + n) / 2 - 1
        variance = a * (1 - a) * (1 + many * ((1 - a) / (2 - a) + a / (1 + a))) / (m * n)
        return 1 - a - Z * variance**0.5

    found = row(frame)
    assert found["upper"] == 1
    assert found["lower"] == pytest.approx(optimize.brentq(gap, 0.1, 1 - 1e-9))
    turned = row(frame.with_columns(-pl.col("score")))
    assert [turned["lower"], turned["upper"]] == pytest.approx([0, 1 - found["lower"]])
    assert row(frame, method="percentile")["lower"] == found["lower"]  # which has no width


def test_a_single_positive_has_an_interval() -> None:
    frame = made(0).with_columns(actual=pl.col("datum_id") == 3)
    found = row(frame)
    assert 0 <= found["lower"] < found["value"] < found["upper"] <= 1


def test_weights_take_resamples_on_logits() -> None:
    frame = made(1).with_columns(weight=1 + pl.col("datum_id") % 3)
    found = row(frame)
    bounds = on_logits(found["value"], found["se"], Z)
    assert [found["lower"], found["upper"]] == pytest.approx(bounds)


@pytest.mark.parametrize("cluster", [None, "doc"])
def test_runs_in_bounded_memory_have_the_same(cluster: str | None, tmp_path: Any) -> None:
    frame = made(2, 400, ties=True)
    frame.write_parquet(tmp_path / "run.parquet")
    within = row(frame, cluster=cluster)
    bounded = row(str(tmp_path / "run.parquet"), cluster=cluster, memory_limit="448MiB")  # type: ignore[arg-type]
    assert bounded == within


# The paired test.


def compared(first: pl.DataFrame, second: pl.DataFrame, **options: Any) -> dict[str, Any]:
    result = ee.compare(
        first, second, metrics=["ROCAUC"], task="classification", test="delong", draws=20, **options
    )
    return result.differences.row(0, named=True)


def second_of(frame: pl.DataFrame, seed: int = 9) -> pl.DataFrame:
    noise = np.random.default_rng(seed).normal(0, 0.2, frame.height)
    return frame.with_columns(score=pl.col("score") + noise + 0.2 * pl.col("actual"))


@pytest.mark.parametrize("cluster", [None, "doc"])
def test_paired_p_by_loops(cluster: str | None) -> None:
    first = made(5).with_columns(doc=(pl.col("datum_id") ** 0.5).cast(pl.Int64))
    second = second_of(first)
    (won_a, positive, negative), (won_b, *_) = pairs(first), pairs(second)
    gap = won_b - won_a
    result = compared(first, second, cluster=cluster)
    if cluster is None:
        parts = gap.mean(axis=1), gap.mean(axis=0)
        variance = sum(part.var(ddof=1) / part.size for part in parts)
        p = 2 * stats.norm.sf(abs(gap.mean()) / variance**0.5)
    else:
        doc = first["doc"].to_numpy()
        variance = obuchowski(gap, doc[positive], doc[negative])
        kish = 60**2 / (np.bincount(doc) ** 2).sum()
        p = 2 * stats.t.sf(abs(gap.mean()) / variance**0.5, round(kish) - 1)
    assert 0.0001 < p < 0.9
    assert result["p"] == pytest.approx(p)
    z = stats.norm.ppf(0.975) if cluster is None else stats.t.ppf(0.975, round(kish) - 1)
    bounds = gap.mean() - z * variance**0.5, gap.mean() + z * variance**0.5
    assert (result["lower"], result["upper"]) == pytest.approx(bounds)  # p-values of the test
    assert result["se"] == pytest.approx(variance**0.5)


@pytest.mark.parametrize("test", ["delong", "randomisation"])
def test_both_labels_of_a_pair_are_one_test(test: str) -> None:
    sides = []
    for one in (made(5, 120), second_of(made(5, 120))):
        score = one["score"].rank() / 121
        truth = one.select("datum_id", label_value=pl.when("actual").then(1).otherwise(0))
        rows = [
            one.select("datum_id", label_value=pl.lit(label), score=value)
            for label, value in ((1, score), (0, 1 - score))
        ]
        sides.append(ee.score(pl.concat(rows), truth, metrics=["ROCAUC"]))
    result = ee.compare(*sides, test=test, draws=50, metrics=["ROCAUC"]).differences
    labels = result.filter(pl.col("label_value").is_not_null())
    assert labels.height == 2
    assert labels["p"].n_unique() == 1
    assert labels["p_adjusted"].to_list() == labels["p"].to_list()


def test_the_test_depends_only_on_ranks() -> None:
    first = made(6, ties=True)
    second = second_of(first)
    p = compared(first, second)["p"]
    assert compared(first, second.with_columns(pl.col("score").exp() * 1000))["p"] == p
    assert compared(first.sample(fraction=1, shuffle=True, seed=1), second)["p"] == pytest.approx(p)
    assert compared(second, first)["p"] == pytest.approx(p)
    renamed = [
        one.with_columns("d" + pl.col("datum_id").cast(pl.String)) for one in (first, second)
    ]
    assert compared(*renamed)["p"] == pytest.approx(p)


def test_other_metrics_have_no_test_of_delong() -> None:
    frame = made(7)
    result = ee.compare(
        frame, second_of(frame), metrics=["ROCAUC", "AP"], task="classification",
        test="delong", draws=20,
    )  # fmt: skip
    null = result.differences.filter(pl.col("p").is_null())["metric"].to_list()
    assert "ROCAUC" not in null
    assert "AP" in null
    assert any("no test" in note for note in result.notes)


def test_weights_are_the_reason_for_no_test() -> None:
    tables = [one.with_columns(weight=1.0 + pl.col("doc")) for one in (made(7), second_of(made(7)))]
    asked: dict[str, Any] = {"task": "classification", "test": "delong", "draws": 20}
    result = ee.compare(*tables, metrics=["ROCAUC", "AP"], **asked)
    assert result.differences["p"].null_count() == 2
    assert sum("weights" in note for note in result.notes if "no test of 1 number" in note) == 1


def test_slices_have_their_own_tests() -> None:
    first = made(8, 200).with_columns(part=pl.col("datum_id") % 2)
    second = second_of(first)
    result = ee.compare(
        first,
        second,
        metrics=["ROCAUC"],
        task="classification",
        test="delong",
        draws=20,
        by=["part"],
    ).differences.filter(slice="part")
    for part in (0, 1):
        half = [one.filter(part=part) for one in (first, second)]
        p = result.filter(slice_value=str(part))["p"][0]
        assert p == pytest.approx(compared(*half)["p"])
