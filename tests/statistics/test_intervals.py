"""Intervals from resamples, compared with scipy and with results computed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from evalengine.statistics import intervals as q
from evalengine.statistics.intervals import (
    METHODS,
    Interval,
    Sample,
    clopper_pearson,
    means,
    quantiles,
    standard_errors,
)

RNG = np.random.default_rng(11)
LEVELS = pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.99])


def sample(point: Any, **known: Any) -> Sample:
    """Return a sample; fields that are not given have neutral values."""
    numbers = np.atleast_1d(np.asarray(point, float))
    nothing = np.zeros((0, numbers.size))
    none = np.full(numbers.size, np.nan)
    given = {"level": 0.95, "range": (0.0, 1.0), "drawn": nothing, "left_out": nothing,
             "trials": none, "variance": none, **known}  # fmt: skip
    return Sample(point=numbers, **given)


def made(method: str, point: Any, **known: Any) -> Interval:
    return METHODS[method].make(sample(point, **known))


# -- quantiles of distributions --------------------------------------------------------------------


def test_normal_distribution() -> None:
    p = np.concatenate([[1e-300, 1e-12], np.linspace(0.001, 0.999, 97), [1 - 1e-12]])
    assert q.normal_inverse(p) == pytest.approx(stats.norm.ppf(p), rel=1e-12, abs=1e-15)
    z = stats.norm.ppf(p[1:])
    assert q.normal_cdf(z) == pytest.approx(stats.norm.cdf(z), rel=1e-9)
    assert q.normal_inverse(np.array([0.0, 1.0])).tolist() == [-np.inf, np.inf]
    assert q.normal_quantile(0.975) == pytest.approx(stats.norm.ppf(0.975), rel=1e-14)


@pytest.mark.parametrize("df", [1, 2, 3, 4, 5, 10, 29, 30, 199, 1000])
def test_students_t(df: int) -> None:
    for t in (-7.0, -1.2, 0.0, 0.3, 2.0, 12.0):
        assert q.t_cdf(t, df) == pytest.approx(stats.t.cdf(t, df), abs=1e-13)
    for p in (0.6, 0.9, 0.975, 0.995, 0.9995):
        assert q.t_quantile(p, df) == pytest.approx(stats.t.ppf(p, df), rel=1e-9)


# -- resamples -------------------------------------------------------------------------------------


def with_gaps(draws: int = 201, numbers: int = 7) -> np.ndarray:
    """Return resamples of which some have no value; the last row has none at all."""
    drawn = RNG.normal(0.5, 0.1, (draws, numbers))
    drawn[RNG.random(drawn.shape) < 0.3] = np.nan
    drawn[:, -2] = np.nan
    drawn[3, -2] = 0.25
    drawn[:, -1] = np.nan
    return drawn


@pytest.mark.filterwarnings("ignore:(Mean of empty|Degrees of freedom|All-NaN)")
def test_undefined_resamples_are_skipped() -> None:
    drawn, p = with_gaps(), np.array([0.0, 0.025, 0.3, 0.975, 1.0])
    assert means(drawn) == pytest.approx(np.nanmean(drawn, axis=0), nan_ok=True)
    spread = np.nanstd(drawn, axis=0, ddof=1)
    assert standard_errors(drawn) == pytest.approx(spread, nan_ok=True)
    expected = np.nanquantile(drawn, p, axis=0)
    assert quantiles(drawn, p) == pytest.approx(expected, nan_ok=True)
    own = np.linspace(0, 1, p.size * drawn.shape[1]).reshape(p.size, -1)  # one per value
    each = [np.nanquantile(drawn[:, i], own[:, i]) for i in range(drawn.shape[1])]
    assert quantiles(drawn, own) == pytest.approx(np.stack(each, axis=1), nan_ok=True)
    for method in ("percentile", "recentred", "normal", "bca"):
        one = made(method, np.full(7, 0.5), drawn=drawn)
        known = [*[True] * 5, False]
        assert (~np.isnan(one.se)).tolist() == [*known, False]
        assert np.isnan([one.lower[-1], one.upper[-1]]).all()
    nothing = quantiles(np.zeros((0, 2)), p)
    assert nothing.shape == (5, 2)
    assert np.isnan(nothing).all()


def test_percentile() -> None:
    drawn = RNG.permutation(np.arange(101) / 100)[:, None]
    result = made("percentile", 0.3, drawn=drawn, level=0.9)
    assert (result.lower[0], result.upper[0]) == pytest.approx((0.05, 0.95))
    assert result.se[0] == pytest.approx(np.sqrt(101 * 102 / 12) / 100)  # of 0, 1, ..., 100


def test_recentred_is_moved_and_stays_in_range() -> None:
    """Resamples from 0.2 to 1 have a mean of 0.6, which is 0.1 above the value."""
    drawn = np.linspace(0.2, 1, 401)[:, None]
    result = made("recentred", 0.5, drawn=drawn, level=0.5)
    assert (result.lower[0], result.upper[0]) == pytest.approx((0.3, 0.7))
    for point, bounds in ((0.0, (0.0, 0.38)), (0.9, (0.52, 1.0)), (0.99, (0.61, 1.0))):
        result = made("recentred", point, drawn=drawn)
        assert (result.lower[0], result.upper[0]) == pytest.approx(bounds)
    wide = made("recentred", 0.0, drawn=drawn, range=(-1.0, np.inf))
    assert (wide.lower[0], wide.upper[0]) == pytest.approx((-0.38, 0.38))


@LEVELS
def test_normal_bounds_are_multiples_of_the_standard_error(level: float) -> None:
    drawn = RNG.normal(0.7, 0.02, (500, 3))
    result = made("normal", [0.4, 0.5, 0.999], drawn=drawn, level=level)
    low, high = stats.norm.interval(level, [0.4, 0.5, 0.999], drawn.std(axis=0, ddof=1))
    assert result.lower == pytest.approx(low, rel=1e-12)
    assert result.upper == pytest.approx(np.minimum(high, 1), rel=1e-12)


STATISTICS = {
    "mean": np.mean,
    "ratio": lambda x, axis: x[..., :].sum(axis) / (1 + x**2).sum(axis),
    "variance": np.var,
    "median": np.median,
}


@LEVELS
@pytest.mark.parametrize("name", STATISTICS)
def test_as_scipys_bootstrap(name: str, level: float) -> None:
    """BCa and percentile bounds of the same resamples are equal."""
    data, statistic = RNG.exponential(1, 31), STATISTICS[name]
    draws: dict[str, Any] = {}
    for method in ("percentile", "bca"):
        draws[method] = stats.bootstrap(
            (data,), statistic, n_resamples=999, confidence_level=level, method=method,
            rng=np.random.default_rng(2), vectorized=True,
        )  # fmt: skip
    point = float(statistic(data, axis=-1))
    left_out = [float(statistic(np.delete(data, i), axis=-1)) for i in range(data.size)]
    for method, theirs in draws.items():
        ours = made(
            method,
            point,
            level=level,
            range=(0.0, np.inf),
            drawn=theirs.bootstrap_distribution[:, None],
            left_out=np.array(left_out)[:, None],
        )
        low, high = theirs.confidence_interval
        assert ours.lower[0] == pytest.approx(low, rel=1e-9)
        assert ours.upper[0] == pytest.approx(high, rel=1e-9)
        assert ours.se[0] == pytest.approx(theirs.standard_error, rel=1e-12)


def test_bca_of_resamples_on_one_side_has_no_bounds() -> None:
    """If no or all resamples are below the value, no correction can be computed."""
    drawn = RNG.uniform(0.4, 0.6, (300, 3))
    point, left_out = np.array([0.1, 0.9, 0.5]), RNG.uniform(0.4, 0.6, (20, 3))
    result = made("bca", point, drawn=drawn, left_out=left_out)
    assert np.isnan(result.lower).tolist() == [True, True, False]
    assert np.isnan(result.upper).tolist() == [True, True, False]


@pytest.mark.parametrize("method", ["percentile", "recentred", "normal", "bca"])
def test_constant_resamples(method: str) -> None:
    """The interval has no width, and is at the value."""
    result = made(method, 0.25, drawn=np.full((50, 1), 0.25), left_out=np.full((9, 1), 0.25))
    assert (result.lower[0], result.upper[0], result.se[0]) == (0.25, 0.25, 0)


# -- without resamples -----------------------------------------------------------------------------


@LEVELS
def test_the_jackknife_of_a_mean_is_the_textbook_interval(level: float) -> None:
    data = RNG.random((23, 2))
    point = data.mean(axis=0)
    left_out = (data.sum(axis=0) - data) / 22
    result = made("jackknife", point, left_out=left_out, level=level)
    se = stats.sem(data)
    low, high = stats.t.interval(level, 22, point, se)
    assert result.se == pytest.approx(se, rel=1e-9)
    assert result.lower == pytest.approx(low, rel=1e-9)
    assert result.upper == pytest.approx(high, rel=1e-9)


def test_the_jackknife_skips_undefined_values() -> None:
    left_out = np.array([[0.1, np.nan], [0.3, 0.5], [np.nan, np.nan], [0.2, np.nan]])
    result = made("jackknife", [0.2, 0.5], left_out=left_out)
    assert result.se[0] == pytest.approx(np.sqrt(2 / 3 * 0.02))  # of 0.1, 0.3 and 0.2
    assert np.isnan([result.se[1], result.lower[1], result.upper[1]]).all()


# statsmodels 0.15.0: proportion_confint(count, n, alpha, method="wilson").
WILSON = [
    (0, 10, 0.95, 0.0, 0.2775327998628892),
    (1, 1, 0.95, 0.20654931437723745, 1.0),
    (5, 10, 0.95, 0.236593090512564, 0.7634069094874361),
    (81, 263, 0.9, 0.2633136171884814, 0.35656634960848815),
    (81, 263, 0.95, 0.2552885198782742, 0.36620957698280004),
    (999, 1000, 0.99, 0.9915394337800183, 0.9998825836463816),
]


@pytest.mark.parametrize(("count", "n", "level", "low", "high"), WILSON)
def test_wilson_as_statsmodels(count: int, n: int, level: float, low: float, high: float) -> None:
    result = made("wilson", count / n, trials=np.array([n]), level=level)
    assert result.lower[0] == pytest.approx(low, abs=1e-12)
    assert result.upper[0] == pytest.approx(high, abs=1e-12)
    p = count / n
    assert result.se[0] == pytest.approx(np.sqrt(p * (1 - p) / n))


@LEVELS
@pytest.mark.parametrize(
    ("count", "n"), [(0, 5), (5, 5), (1, 3), (81, 263), (999, 1000), (1, 10**5)]
)
def test_clopper_pearson_as_scipy(count: int, n: int, level: float) -> None:
    low, high = clopper_pearson(count / n, n, level)
    theirs = stats.binomtest(count, n).proportion_ci(level, method="exact")
    assert (low, high) == pytest.approx((theirs.low, theirs.high), rel=1e-5, abs=1e-14)


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (1, 7), (40, 3), (300, 900)])
def test_beta_distribution_as_scipy(a: float, b: float) -> None:
    for x in (0.0, 0.001, 0.2, 0.26, 0.5, 0.93, 1.0):
        assert q.beta_cdf(x, a, b) == pytest.approx(stats.beta.cdf(x, a, b), rel=1e-9, abs=1e-15)


def test_only_proportions_have_wilsons_interval() -> None:
    result = made("wilson", [0.5, 0.5], trials=np.array([np.nan, 0.0]))
    assert np.isnan([result.lower, result.upper, result.se]).all()


def test_delongs_interval_is_of_the_variance() -> None:
    area = np.array([0.8, 0.98, 0.5])
    known = np.array([[0.0004, 0.0004, np.nan], [50, 50, np.nan], [90, 90, np.nan]])
    result = made("delong", area, variance=known)
    odds = np.log(area / (1 - area))
    reach = stats.t.ppf(0.975, 49) * 0.02 / (area * (1 - area))  # of the 50 positives
    for bounds, at in ((result.lower, odds - reach), (result.upper, odds + reach)):
        assert bounds[:2] == pytest.approx(1 / (1 + np.exp(-at[:2])))
    assert np.isnan([result.lower[2], result.upper[2], result.se[2]]).all()
