"""Confidence sequences, compared with confseq 0.0.11 and with slow versions."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

import evalengine as ee
from evalengine.statistics.sequences import (
    FIRST,
    DatumValues,
    Night,
    asymptotic,
    betting,
    counted,
    differ,
    log_capital,
    look,
)

# Logarithms of capital at a mean, by confseq's diversified_betting_mart with the constant bets 2 **
# -k / m and 2 ** -k / (1 - m), k from 0 to 15, weights in proportion to 1 / (k + 2), without
# truncation: theta 1 and theta 0.
KNOWN = [
    ([1.0] * 8 + [0.0] * 2, 0.5, 0.643905737174, -0.721988573175),
    ([1.0] * 8 + [0.0] * 2, 0.9, -0.415633782401, -0.239798048560),
    ([1.0] * 85 + [0.0] * 15, 0.7, 4.259806037035, -1.191819123304),
    ([0.25] * 20 + [0.5] * 30 + [0.75] * 40 + [1.0] * 10, 0.5, 7.787387097587, -0.977625593934),
    ([0.25] * 20 + [0.5] * 30 + [0.75] * 40 + [1.0] * 10, 0.9, -1.090157016829, 75.359481111794),
]


def slow(values: list[float], mean: float) -> float:
    """Compute the log of the capital, one bet and value after the other."""
    capital = 0.0
    for k in range(16):
        bet = 0.5**k / mean
        capital += math.prod(1 + bet * (value - mean) for value in values) / (k + 2)
    return math.log(capital / sum(1 / (k + 2) for k in range(16)))


class TestBetting:
    @pytest.mark.parametrize(("values", "mean", "above", "below"), KNOWN)
    def test_capital_is_confseq_s(
        self, values: list[float], mean: float, above: float, below: float
    ) -> None:
        counts = np.array(counted(np.array(values), (0.0, 1.0)))
        assert log_capital(counts, mean) == pytest.approx(above, abs=1e-11)
        assert log_capital(counts[::-1], 1 - mean) == pytest.approx(below, abs=1e-11)
        assert slow(values, mean) == pytest.approx(above, abs=1e-11)

    def test_bounds_are_where_the_capital_reaches_the_limit(self) -> None:
        counts = np.array(counted(np.array([1.0] * 85 + [0.0] * 15), (0.0, 1.0)))
        lower, upper = betting(counts, 0.95)
        assert log_capital(counts, lower) == pytest.approx(math.log(40))
        assert log_capital(counts[::-1], 1 - upper) == pytest.approx(math.log(40))
        assert 0.7 < lower < 0.75 < 0.9 < upper < 0.95

    def test_values_between_points_are_split_and_never_raise_the_capital(self) -> None:
        values = np.random.default_rng(3).uniform(size=400)
        counts = np.array(counted(values, (0.0, 1.0)))
        assert counts.sum() == pytest.approx(400)
        assert counts @ np.linspace(0, 1, 21) == pytest.approx(values.sum())
        for mean in (0.3, 0.45, 0.6):
            exact = slow(values.tolist(), mean)
            assert exact - 0.06 * abs(exact) - 0.1 < log_capital(counts, mean) <= exact + 1e-9

    def test_a_range_scales_the_bounds(self) -> None:
        values = np.array([1.0] * 30 + [0.0] * 20)
        low, high = betting(np.array(counted(values, (0.0, 1.0))), 0.9)
        scaled = betting(np.array(counted(20 * values - 10, (-10.0, 10.0))), 0.9, (-10.0, 10.0))
        assert scaled == pytest.approx((20 * low - 10, 20 * high - 10))

    def test_it_is_not_much_wider_than_confseq_s(self) -> None:
        # hedged_cs of confseq after 1,000 and 5,000 shuffled values: widths 0.082 and 0.043.
        for n, width in ((1000, 0.082), (5000, 0.043)):
            counts = np.array(counted(np.repeat([1.0, 0.0], [17 * n // 20, 3 * n // 20]), (0, 1)))
            lower, upper = betting(counts, 0.95)
            assert lower < 0.85 < upper
            assert upper - lower < 1.05 * width


class TestAsymptotic:
    def test_formula(self) -> None:
        values = np.random.default_rng(0).normal(0.8, 0.02, 25)
        t, alpha = 25, 0.05
        rho = (-2 * math.log(alpha) + math.log(-2 * math.log(alpha) + 1)) / 30
        z = math.sqrt(2 * (t * rho + 1) / (t * rho) * math.log(math.sqrt(t * rho + 1) / alpha))
        reach = values.std(ddof=1) / 5 * stats.t.ppf(stats.norm.cdf(z), t - 1)
        mean = values.mean()
        assert asymptotic(values, 0.95) == pytest.approx((mean - reach, mean + reach))


def night(right: int, wrong: int) -> Night:
    counts = [0.0] * 21
    counts[0], counts[-1] = wrong, right
    return Night(right / (right + wrong), counts)


class TestLook:
    def test_datums_of_all_nights_add_up(self) -> None:
        found = look([night(90, 10), night(85, 15), night(88, 12)], 0.95)
        assert found.n == 300
        assert found.bounds == betting(np.array(night(263, 37).counts), 0.95)

    def test_nights_that_differ_count_as_one_value_each(self) -> None:
        nights = [night(90, 10), night(60, 40)] * 5
        assert differ(np.array([one.counts for one in nights]))
        found = look(nights, 0.95)
        assert found.n is None
        assert found.bounds == asymptotic(np.array([0.9, 0.6] * 5), 0.95)
        early = look(nights[:4], 0.95)
        assert early.bounds == betting(np.array(night(300, 100).counts), 0.95)
        assert early.n == 400

    def test_other_numbers_begin_with_the_tenth_night(self) -> None:
        nights = [Night(0.8 + place / 100) for place in range(FIRST)]
        assert look(nights[:-1], 0.95).bounds is None
        assert look(nights, 0.95).bounds is not None
        assert look([Night(0.5)] * FIRST, 0.95).bounds is None

    def test_alike_nights_do_not_differ(self) -> None:
        rng = np.random.default_rng(1)
        alarms = 0
        for _ in range(300):
            right = rng.binomial(200, 0.9, 12).tolist()
            alarms += differ(np.array([night(k, 200 - k).counts for k in right]))
        assert alarms <= 3  # 0.3 expected


TABLE = pl.DataFrame(
    {
        "datum_id": range(60),
        "actual": ["a", "b", "b"] * 20,
        "predicted": ["a", "b", "a", "a", "b", "b"] * 10,
        "part": ["x", "y"] * 30,
    }
)


class TestDatumValues:
    def observed(self, card: ee.Scorecard, metric: str, **same: str | None) -> list[Night]:
        assert card.tallied is not None
        values = DatumValues(card.tallied, [metric])
        rows = card.metrics.filter(pl.col("metric") == metric, pl.col("value").is_not_null())
        return [
            values.night(row)
            for row in rows.filter(*(pl.col(k).eq_missing(v) for k, v in same.items())).iter_rows(
                named=True
            )
        ]

    def test_means_of_datums_are_counted(self) -> None:
        card = ee.score(TABLE, metrics=["Accuracy", "Recall", "F1"], by="part")
        whole, *parts = self.observed(card, "Accuracy")
        assert whole.counts is not None
        assert (whole.counts[0], whole.counts[-1]) == (10, 50)
        assert [sum(one.counts or ()) for one in parts] == [30, 30]
        recall = self.observed(card, "Recall", label_value="b")[0]
        assert recall.counts is not None
        assert (recall.counts[0], recall.counts[-1]) == (10, 30)

    def test_other_numbers_are_not(self) -> None:
        card = ee.score(TABLE, metrics=["Accuracy", "F1", "MCC"])
        for metric, average in (("F1", "macro"), ("MCC", None)):
            assert [one.counts for one in self.observed(card, metric, average=average)] == [None]
        micro = self.observed(card, "F1", average="micro")[0]  # the share of right datums
        assert micro.counts == self.observed(card, "Accuracy")[0].counts
        weighted = ee.score(TABLE.with_columns(weight=2.0), metrics=["Accuracy"])
        assert self.observed(weighted, "Accuracy")[0].counts is None

    def test_differences_are_of_the_same_datums(self) -> None:
        card = ee.score(TABLE, metrics=["Accuracy"])
        right = ee.score(TABLE.with_columns(predicted="actual"), metrics=["Accuracy"])
        (row,) = right.metrics.iter_rows(named=True)
        found = DatumValues(right.tallied, ["Accuracy"], card.tallied).night(row, 50 / 60)
        assert found.limits == (-1.0, 1.0)
        assert found.counts is not None
        assert (found.counts[10], found.counts[-1]) == (50, 10)
        other = ee.score(TABLE.with_columns(pl.col("datum_id") + 30), metrics=["Accuracy"])
        assert (
            DatumValues(right.tallied, ["Accuracy"], other.tallied).night(row, 0.8).counts is None
        )
