"""Correlation, ranks, deviances, quantiles, predicted intervals and residuals by bin."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ....kernels.sums import agreement
from ....metrics.averages import with_parameters
from ....schemas.arrays import Array
from ....tallies.datums import Cells, parameters
from ....tallies.paired_values import Paired, PairedView, Scaled
from ..dialects import INTERVALS, QUANTILES, SAMPLES, Settings, intervals_of, quantiles_of
from .errors import (
    CONSTANT,
    FLAT,
    NUMBERS,
    ONE_ROW,
    SCIKIT,
    as_they_are,
    bounded,
    cells,
    geometric,
    mean_of,
    metric,
    own_quantile,
    ratio,
    share_explained,
    times_drawn,
    unscaled,
    weighted_quantile,
    weighted_sum,
)

# Explained variation of the target, and correlation of targets and predictions.

_FEW = "no more rows than features and one"


def _r2(view: PairedView, settings: Settings) -> tuple[Array, Array, Array]:
    """R2, why it is undefined, and how much each target counts."""
    total = view.comoment("target", "target")
    return *share_explained(view, view.moment("squared"), total, settings), _variances(total)


def _variances(scaled: Scaled) -> Array:
    """Squares around the mean of all targets in one unit."""
    value, powers = scaled
    return unscaled(value, powers - powers.max(axis=1, keepdims=True))


def _adjusted(view: PairedView, settings: Settings) -> list[Cells]:
    value, why, _ = _r2(view, settings)
    features = settings.n_features or 0
    n = view.rows.astype(np.float64)
    free = n - features - 1
    adjusted = 1 - (1 - value) * np.where(free > 0, ratio(n - 1, free), np.nan)
    return cells(view, adjusted, np.where(free > 0, why, _FEW))


def _explained(view: PairedView, settings: Settings) -> list[Cells]:
    total = view.comoment("target", "target")
    left = view.comoment("error", "error")
    value, why = share_explained(view, left, total, settings, least=1)  # as in scikit-learn
    return cells(view, value, why, _variances(total))


def _pearson(view: PairedView, settings: Settings) -> list[Cells]:
    # Scales are no matter: they are the same above and below.
    ours, theirs = (view.comoment(name, name)[0] for name in ("prediction", "target"))
    value = ratio(view.comoment("target", "prediction")[0], geometric(ours, theirs))
    why = np.where(view.rows < 2, ONE_ROW, FLAT)
    return cells(view, np.clip(value, -1, 1), why)


def _concordance(view: PairedView, settings: Settings) -> list[Cells]:
    ours, theirs = (view.comoment(name, name) for name in ("prediction", "target"))
    total, powers = view.moment("error")
    distance = view.weight * view.per_weight(total) ** 2
    parts = (ours, theirs, (distance, 2 * powers), view.comoment("target", "prediction"))
    most = np.maximum(ours[1], theirs[1])
    one, other, gap, both = (unscaled(value, powers - most) for value, powers in parts)
    why = np.where(view.rows < 2, ONE_ROW, f"{CONSTANT} and predicted")
    return cells(view, ratio(2 * both, one + other + gap), why)


_SHARE = {"better": "higher", "range": (-np.inf, 1.0)}
_CORRELATION = {"better": "higher", "range": (-1.0, 1.0)}

_CORRELATION_METRICS = (
    metric(
        "R2",
        "1 - sum of squared errors / sum of squares of targets less their mean; averages over"
        " targets alike and, weighted, by their variance",
        f"{SCIKIT} r2_score",
        lambda view, settings: cells(view, *_r2(view, settings)),
        aliases=("r2", "r2_score", "R2Score"),
        formula=r"1 - \frac{\sum_i (p_i - t_i)^2}{\sum_i (t_i - \bar{t})^2}",
        **{**_SHARE, "averages": ("macro", "weighted")},
    ),
    metric(
        "AdjustedR2",
        "1 - (1 - R2) (n - 1) / (n - n_features - 1), of n rows",
        "Theil 1961, Economic forecasts and policy",
        _adjusted,
        aliases=("adjusted_r2", "AdjustedR2Score"),
        params=("n_features",),
        formula=r"1 - (1 - R^2)\, \frac{n - 1}{n - f - 1}",
        **_SHARE,
    ),
    metric(
        "ExplainedVariance",
        "1 - variance of errors / variance of targets",
        f"{SCIKIT} explained_variance_score",
        _explained,
        aliases=("explained_variance_score",),
        formula=r"1 - \frac{\sum_i (e_i - \bar{e})^2}{\sum_i (t_i - \bar{t})^2}, \quad e_i = p_i"
        r" - t_i",
        **{**_SHARE, "averages": ("macro", "weighted")},
    ),
    metric(
        "Pearson",
        "covariance of predictions and targets over the product of their standard deviations",
        "scipy.stats.pearsonr",
        _pearson,
        aliases=("pearsonr", "PearsonCorrelation"),
        formula=r"\frac{\sum_i (p_i - \bar{p}) (t_i - \bar{t})}{\sqrt{\sum_i (p_i - \bar{p})^2"
        r" \sum_i (t_i - \bar{t})^2}}",
        **_CORRELATION,
    ),
    metric(
        "Concordance",
        "2 covariance / (both variances + squared difference of the means), Lin's coefficient",
        "Lin 1989, A concordance correlation coefficient to evaluate reproducibility",
        _concordance,
        aliases=("CCC", "concordance_correlation_coefficient"),
        formula=r"\frac{\frac{2}{n} \sum_i (p_i - \bar{p}) (t_i - \bar{t})}{\frac{1}{n} \sum_i"
        r" (p_i - \bar{p})^2 + \frac{1}{n} \sum_i (t_i - \bar{t})^2 + (\bar{p} - \bar{t})^2}",
        **_CORRELATION,
    ),
)


# Rank correlation of predictions and targets.


def _midranks(values: Array, weight: Array) -> Array:
    """Return the weight below each value plus half of its ties: with weights 1, ranks minus 1/2."""
    distinct, place = np.unique(values, return_inverse=True)
    of = np.bincount(place, weight, minlength=distinct.size)
    return (np.cumsum(of) - of / 2)[place]


def spearman(target: Array, predicted: Array, weight: Array | None) -> float:
    """Compute Pearson's correlation of ranks; NaN if one side is constant.

    Args:
        target: float64 [n].
        predicted: float64 [n].
        weight: float64 [n], above 0; None if equal.
    """
    # In one order whatever that of the rows was, so that sums of fractions end alike.
    weight = np.ones(target.size) if weight is None else weight
    order = np.lexsort((weight, predicted, target))
    weight = weight[order]
    ours, theirs = (_midranks(side[order], weight) for side in (predicted, target))
    total = weighted_sum(weight, None)
    ours, theirs = (ranks - total / 2 for ranks in (ours, theirs))  # the mean of all ranks
    spread = weighted_sum(ours**2, weight), weighted_sum(theirs**2, weight)
    if 0 in spread:
        return math.nan
    covariance = weighted_sum(ours * theirs, weight)
    return max(-1.0, min(1.0, covariance / float(geometric(*spread))))


class _Pairs:
    """Weight of the pairs of rows, by their order in two numbers.

    Attributes:
        balance: weight of concordant minus discordant pairs.
        untied: weight of pairs that differ in the target, and in the prediction.
    """

    def __init__(self, target: Array, predicted: Array, weight: Array | None) -> None:
        weight = np.ones(target.size) if weight is None else weight
        order = np.lexsort((weight, predicted, target))
        weight = weight[order]
        ranks = [np.unique(side[order], return_inverse=True)[1] for side in (target, predicted)]
        self.balance = agreement(ranks[0], ranks[1], weight)
        total = float(weight.sum()) ** 2
        tied = (float((np.bincount(rank, weight) ** 2).sum()) for rank in ranks)
        flat = [int(rank.max()) == 0 for rank in ranks]
        self.untied = [
            0.0 if same else (total - one) / 2 for one, same in zip(tied, flat, strict=True)
        ]


def kendall(target: Array, predicted: Array, weight: Array | None) -> float:
    """Compute Kendall's tau-b; NaN if one side is constant."""
    pairs = _Pairs(target, predicted, weight)
    if 0 in pairs.untied:
        return math.nan
    return max(-1.0, min(1.0, pairs.balance / float(geometric(*pairs.untied))))


def c_index(target: Array, predicted: Array, weight: Array | None) -> float:
    """Share of pairs of different targets that are in order, ties in the prediction half."""
    pairs = _Pairs(target, predicted, weight)
    if not pairs.untied[0]:
        return math.nan
    return max(0.0, min(1.0, 0.5 + pairs.balance / pairs.untied[0] / 2))


OfSides = Callable[[Array, Array, "Array | None"], float]


def _of_cells(number: OfSides, reason: str) -> Any:
    def compute(view: PairedView, settings: Settings) -> list[Cells]:
        value = view.by_cell(lambda rows, weight: number(rows.target, rows.prediction, weight))
        return cells(view, value, np.where(view.rows < 2, ONE_ROW, reason))

    return compute


def _within_groups(rows: Paired, weight: Array | None) -> float:
    """Mean of Spearman over groups in which neither side is constant."""
    group = rows.beside["group_id"]
    order = np.argsort(group, kind="stable")
    edges = np.flatnonzero(np.diff(group[order])) + 1
    times = times_drawn(rows, weight)
    values = [
        (
            spearman(
                rows.target[some], rows.prediction[some], None if weight is None else weight[some]
            ),
            weighted_sum(times[some], None) / some.size,
        )
        for some in np.split(order, edges)
        if some.size > 1
    ]
    defined = np.array([one for one in values if not math.isnan(one[0])]).reshape(-1, 2)
    if not defined.size:
        return math.nan
    return weighted_sum(defined[:, 0], defined[:, 1]) / weighted_sum(defined[:, 1], None)


_RANKS_METRICS = (
    metric(
        "Spearman",
        "Pearson of ranks, ties by their mean rank; with weights, ranks are the weight below and"
        " half of that of ties",
        "scipy.stats.spearmanr",
        _of_cells(spearman, FLAT),
        aliases=("spearmanr", "SpearmanCorrelation"),
        formula=r"\frac{\sum_i (a_i - \bar{a}) (c_i - \bar{c})}{\sqrt{\sum_i (a_i - \bar{a})^2"
        r" \sum_i (c_i - \bar{c})^2}}",
        **_CORRELATION,
    ),
    metric(
        "Kendall",
        "(pairs in the same order - pairs in opposite orders) / square root of (pairs of different"
        " targets * pairs of different predictions), tau-b; a pair weighs the product of both",
        "scipy.stats.kendalltau",
        _of_cells(kendall, FLAT),
        aliases=("kendalltau", "KendallTau"),
        formula=r"\frac{n_c - n_d}{\sqrt{n_t\, n_p}}",
        **_CORRELATION,
    ),
    metric(
        "CIndex",
        "share of the pairs of different targets whose predictions are in the same order, equal"
        " ones half; every target counts as observed",
        "Harrell et al. 1982, Evaluating the yield of medical tests",
        _of_cells(c_index, CONSTANT),
        aliases=("c_index", "ConcordanceIndex", "concordance_index"),
        better="higher",
        range=(0.0, 1.0),
        formula=r"\frac{n_c + \tfrac{1}{2} n_0}{n_t}",
    ),
    metric(
        "GroupSpearman",
        "mean of Spearman within each group of the column group_id, over groups in which neither"
        " side is constant",
        "Spearman 1904, The proof and measurement of association between two things",
        lambda view, settings: cells(
            view, view.by_cell(_within_groups), "no group with different values on each side"
        ),
        aliases=("SpearmanWithin",),
        needs=(*NUMBERS, "group_id"),
        reads=("group_id",),
        formula=r"\frac{1}{|G|} \sum_{g \in G} \text{Spearman}_g",
        **_CORRELATION,
    ),
)


# Deviances of exponential families, and shares of them explained.

_OUTSIDE = "a target or prediction is outside the support of the distribution"
_EXTREME = "the least and the largest target have no loss as quantiles 0 and 1"


def unit_deviance(target: Array, mean: Array, power: float) -> Array:
    """Compute unit deviance from a Tweedie distribution's mean; NaN outside its support.

    Args:
        target: float64 [n].
        mean: float64 [n], predictions.
        power: of the variance: 0 normal, 1 Poisson, 2 gamma, 3 inverse Gaussian.
    """
    if power == 0:
        return (target - mean) ** 2
    fits = mean > 0
    if 1 <= power < 2:
        fits = fits & (target >= 0)
    elif power >= 2:
        fits = fits & (target > 0)
    y, mu = np.where(fits, target, 1.0), np.where(fits, mean, 1.0)
    some = np.where(y > 0, y, 1.0)
    if power == 1:
        half = np.where(y > 0, y * np.log(some / mu), 0.0) - y + mu
    elif power == 2:
        half = np.log(mu / some) + y / mu - 1
    else:
        lifted = np.where(y > 0, some ** (2 - power), 0.0)
        half = (
            lifted / ((1 - power) * (2 - power))
            - y * mu ** (1 - power) / (1 - power)
            + mu ** (2 - power) / (2 - power)
        )
    return np.where(fits, np.where(y == mu, 0.0, 2 * half), np.nan)


def _deviance(power: float | None) -> Any:
    def loss(rows: Paired, settings: Settings) -> Array:
        exponent = settings.tweedie_power if power is None else power
        return unit_deviance(rows.target, rows.prediction, exponent)

    return loss


def _d2_tweedie(view: PairedView, settings: Settings) -> list[Cells]:
    power = settings.tweedie_power
    left = view.total("tweedie", lambda rows: _deviance(None)(rows, settings))

    def around(rows: Paired, weight: Array | None) -> float:
        mean = weighted_sum(rows.target, weight) / weighted_sum(np.ones(rows.target.size), weight)
        return weighted_sum(unit_deviance(rows.target, np.full(1, mean), power), weight)

    total = as_they_are(_flat(view, view.by_cell(around)))
    value, why = share_explained(view, as_they_are(left), total, settings)
    return cells(view, value, np.where(np.isnan(left) & (view.rows > 1), _OUTSIDE, why))


def _flat(view: PairedView, values: Array) -> Array:
    """Return 0 for a constant target, removing rounding residues."""
    return np.where(view.comoment("target", "target")[0] == 0, 0.0, values)


def quantile_loss(target: Array, predicted: Array | float, level: float) -> Array:
    """Loss of each row, float64 [n], of a quantile predicted, or of one number for all rows."""
    less = target - predicted
    return np.maximum(level * less, (level - 1) * less)


def pinball(rows: Paired, settings: Settings) -> Array:
    """Quantile loss of the predictions at the option ``quantile``."""
    return quantile_loss(rows.target, rows.prediction, settings.quantile)


def _d2_around(level_of: Any, left_of: Any, factor: int = 1) -> Any:
    """Share of a loss that predictions take off from that of the target's own quantile."""

    def compute(view: PairedView, settings: Settings) -> list[Cells]:
        level = level_of(settings)

        def around(rows: Paired, weight: Array | None) -> float:
            quantile = own_quantile(rows.target, weight, level, settings)
            return weighted_sum(quantile_loss(rows.target, quantile, level) * factor, weight)

        total = as_they_are(_flat(view, view.by_cell(around)))
        value, why = share_explained(view, left_of(view, settings), total, settings)
        return cells(view, value, why if 0 < level < 1 else np.where(view.rows > 1, _EXTREME, why))

    return compute


def _pinballs(view: PairedView, settings: Settings) -> Scaled:
    return as_they_are(view.total("pinball", lambda rows: pinball(rows, settings)))


_DEVIANCE_METRICS = (
    metric(
        "PoissonDeviance",
        "mean of 2 (t log (t / p) - t + p) of targets t and predictions p; undefined if p <= 0 or"
        " t < 0",
        f"{SCIKIT} mean_poisson_deviance",
        mean_of("poisson", _deviance(1), _OUTSIDE),
        aliases=("mean_poisson_deviance",),
        formula=r"\frac{2}{n} \sum_i \left(t_i \ln \frac{t_i}{p_i} - t_i + p_i\right)",
    ),
    metric(
        "GammaDeviance",
        "mean of 2 (log (p / t) + t / p - 1) of targets t and predictions p; undefined if one is 0"
        " or less",
        f"{SCIKIT} mean_gamma_deviance",
        mean_of("gamma", _deviance(2), _OUTSIDE),
        aliases=("mean_gamma_deviance",),
        formula=r"\frac{2}{n} \sum_i \left(\ln \frac{p_i}{t_i} + \frac{t_i}{p_i} - 1\right)",
    ),
    metric(
        "TweedieDeviance",
        "mean deviance of the Tweedie distribution whose variance goes with the mean to the power"
        " tweedie_power",
        f"{SCIKIT} mean_tweedie_deviance",
        mean_of("tweedie", _deviance(None), _OUTSIDE),
        aliases=("mean_tweedie_deviance",),
        params=("tweedie_power",),
        formula=r"\frac{2}{n} \sum_i \left(\frac{t_i^{2 - \rho}}{(1 - \rho) (2 - \rho)} -"
        r" \frac{t_i\, p_i^{1 - \rho}}{1 - \rho} + \frac{p_i^{2 - \rho}}{2 - \rho}\right)",
    ),
    metric(
        "D2Tweedie",
        "1 - TweedieDeviance / that of the targets' mean",
        f"{SCIKIT} d2_tweedie_score",
        _d2_tweedie,
        aliases=("d2_tweedie_score",),
        params=("tweedie_power",),
        formula=r"1 - \frac{\sum_i d(t_i, p_i)}{\sum_i d(t_i, \bar{t})}",
        **_SHARE,
    ),
    metric(
        "D2AbsoluteError",
        "1 - MAE / that of the targets' median",
        f"{SCIKIT} d2_absolute_error_score",
        _d2_around(lambda settings: 0.5, lambda view, _: view.moment("absolute"), 2),
        aliases=("d2_absolute_error_score",),
        formula=r"1 - \frac{\sum_i |t_i - p_i|}{\sum_i |t_i - \text{median } t|}",
        **_SHARE,
    ),
    metric(
        "D2Pinball",
        "1 - Pinball / that of the targets' own quantile",
        f"{SCIKIT} d2_pinball_score",
        _d2_around(lambda settings: settings.quantile, _pinballs),
        aliases=("d2_pinball_score",),
        params=("quantile",),
        formula=r"1 - \frac{\sum_i l_q(t_i, p_i)}{\sum_i l_q(t_i, t_{(q)})}",
        **_SHARE,
    ),
)


# Losses of predicted quantiles and of samples from the predicted distribution.

_SOURCE = "Gneiting & Raftery 2007, Strictly proper scoring rules"


def _each(name: str, number: Callable[[Array, Array, float], Array]) -> Any:
    """Define a metric: a mean over rows for every column of quantiles.

    Args:
        name: cache key of the sums.
        number: computes the value of each row from targets, quantiles and their level.
    """

    def compute(view: PairedView, settings: Settings) -> list[Cells]:
        result: list[Cells] = []
        for column, level in quantiles_of(view.whole.beside).items():
            loss = partial(_number, number, (column,), level)
            mean = mean_of(f"{name} {column}", loss)(view, settings)
            result += with_parameters(mean, quantile=level)
        return result

    return compute


def _number(
    number: Callable[..., Array],
    columns: Sequence[str],
    level: float | None,
    rows: Paired,
    settings: Settings,
) -> Array:
    """A number of each row, of target, columns and the level of an interval or quantile."""
    stated = settings.interval_level if level is None else level
    return number(rows.target, *(rows.beside[column] for column in columns), stated)


def of_quantiles(rows: Paired, settings: Settings) -> Array:
    """Twice the mean quantile loss over the levels of a row."""
    levels = quantiles_of(rows.beside)
    losses = [
        quantile_loss(rows.target, rows.beside[column], level) for column, level in levels.items()
    ]
    return 2 * np.mean(losses, axis=0)


def of_samples(rows: Paired, settings: Settings) -> Array:
    """Mean distance of samples from the target less half of that between samples."""
    ordered = np.sort(rows.beside[SAMPLES] - rows.target[:, None], axis=1)
    n = ordered.shape[1]
    spread = (ordered * (2 * np.arange(n) - n + 1)).sum(axis=1) / n**2
    return np.abs(ordered).mean(axis=1) - spread


_QUANTILES_METRICS = (
    metric(
        "Pinball",
        "mean of quantile * (t - p) if the target t is above the prediction p, else (1 - quantile)"
        " * (p - t)",
        f"{SCIKIT} mean_pinball_loss",
        mean_of("pinball", pinball),
        aliases=("mean_pinball_loss", "pinball_loss"),
        params=("quantile",),
        formula=r"\frac{1}{n} \sum_i \max\left(q\, (t_i - p_i), (q - 1) (t_i - p_i)\right)",
    ),
    metric(
        "QuantileLoss",
        "Pinball of every column of quantiles, at the level in its name",
        f"{SCIKIT} mean_pinball_loss",
        _each("loss", quantile_loss),
        needs=("target", QUANTILES),
        reads=("q",),
        formula=r"\frac{1}{n} \sum_i \max\left(q\, (t_i - p_{iq}), (q - 1) (t_i - p_{iq})\right)",
    ),
    metric(
        "QuantileCoverage",
        "share of targets at or below every column of quantiles; right if it equals the level",
        _SOURCE,
        _each("covered", lambda target, predicted, level: (target <= predicted).astype(float)),
        needs=("target", QUANTILES),
        reads=("q",),
        better="neither",
        range=(0.0, 1.0),
        formula=r"\frac{1}{n} \sum_i [t_i \le p_{iq}]",
    ),
    metric(
        "CRPSFromQuantiles",
        "twice the mean of QuantileLoss over the levels there are, which nears CRPS the more"
        " evenly spread levels there are",
        "scoringrules crps_quantile",
        mean_of("crps_quantiles", of_quantiles),
        aliases=("crps_quantile",),
        needs=("target", QUANTILES),
        reads=("q",),
        formula=r"\frac{1}{n} \sum_i \frac{2}{|Q|} \sum_{q \in Q} \max\left(q\, (t_i - p_{iq}),"
        r" (q - 1) (t_i - p_{iq})\right)",
    ),
    metric(
        "CRPS",
        "mean of |x - t| over samples x less half of the mean of |x - x'| over all pairs of them",
        "properscoring crps_ensemble",
        mean_of("crps", of_samples),
        aliases=("crps", "crps_ensemble"),
        needs=("target", SAMPLES),
        reads=(SAMPLES,),
        formula=r"\frac{1}{n} \sum_i \left(\frac{1}{m} \sum_j |x_{ij} - t_i| - \frac{1}{2 m^2}"
        r" \sum_{j, k} |x_{ij} - x_{ik}|\right)",
    ),
)


# Metrics of predicted intervals: coverage and width.


def _winkler(target: Array, low: Array, high: Array, level: float) -> Array:
    outside = np.maximum(low - target, 0) + np.maximum(target - high, 0)
    return high - low + 2 / (1 - level) * outside


def winkler(rows: Paired, settings: Settings) -> Array:
    """Winkler's score of each row, the mean of it over several intervals."""
    every = intervals_of(rows.beside)
    scores = [_number(_winkler, bounds, level, rows, settings) for *bounds, level in every]
    return np.mean(scores, axis=0)


def _each_interval(
    name: str, number: Callable[[Array, Array, Array, float], Array], *, leveled: bool = False
) -> Any:
    """Define a metric: a mean over rows for every pair of bounds.

    Args:
        name: cache key of the sums.
        number: computes the value of each row from targets, both bounds, and the level.
        leveled: the number depends on the level, which is then reported in the rows.
    """

    def compute(view: PairedView, settings: Settings) -> list[Cells]:
        result: list[Cells] = []
        every = intervals_of(view.whole.beside)
        named = {level for *_, level in every}
        for low, high, level in every:
            loss = partial(_number, number, (low, high), level)
            mean = mean_of(f"{name} {low}", loss)(view, settings)
            stated = level
            if leveled and level is None and settings.interval_level not in named:
                stated = settings.interval_level
            result += mean if stated is None else with_parameters(mean, level=stated)
        return result

    return compute


_READ: dict[str, Any] = {"needs": ("target", INTERVALS), "reads": ("lower", "upper", "lo", "hi")}

_INTERVALS_METRICS = (
    metric(
        "Coverage",
        "share of targets from lower to upper, both included",
        "Gneiting & Raftery 2007, Strictly proper scoring rules",
        _each_interval(
            "held",
            lambda target, low, high, level: ((low <= target) & (target <= high)).astype(float),
        ),
        aliases=("PICP", "interval_coverage"),
        **_READ,
        better="neither",
        range=(0.0, 1.0),
        formula=r"\frac{1}{n} \sum_i [l_i \le t_i \le u_i]",
    ),
    metric(
        "IntervalWidth",
        "mean of upper - lower",
        "Gneiting & Raftery 2007, Strictly proper scoring rules",
        _each_interval("width", lambda target, low, high, level: high - low),
        aliases=("MPIW", "mean_interval_width"),
        **_READ,
        formula=r"\frac{1}{n} \sum_i (u_i - l_i)",
    ),
    metric(
        "Winkler",
        "mean of upper - lower + 2 / (1 - level) times how far the target is outside; the level"
        " is in the columns' names, or is interval_level",
        "Winkler 1972, A decision-theoretic approach to interval estimation",
        _each_interval("winkler", _winkler, leveled=True),
        aliases=("winkler_score", "IntervalScore", "interval_score"),
        **_READ,
        params=("interval_level",),
        formula=r"\frac{1}{n} \sum_i \left(u_i - l_i + \frac{2}{1 - \lambda} \left(\max(l_i -"
        r" t_i, 0) + \max(t_i - u_i, 0)\right)\right)",
    ),
)


# Metrics with several numbers per target: distribution of errors, actual by predicted values.

_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
_BINS = 10
_SIDES = ("predicted", "actual")


def _table(view: PairedView, of: Callable[[Paired, Array | None], Array], width: int) -> Array:
    """Compute several numbers over rows of each cell, float64 [group, key, width].

    Args:
        of: maps rows and their weights to numbers, float64 [width].
    """
    columns: list[Array] = []

    def remembered(rows: Paired, weight: Array | None) -> float:
        columns.append(of(rows, weight))
        return len(columns) - 1

    place = view.by_cell(remembered)
    table = np.full((*place.shape, width), np.nan)
    filled = ~np.isnan(place)
    table[filled] = np.array(columns).reshape(-1, width)[place[filled].astype(np.int64)]
    return table


def _cells(view: PairedView, value: Array, support: Array, reason: str, **more: Any) -> Cells:
    value, why = bounded(view, value, reason)
    return Cells(
        axes=("group", "key"),
        shape=value.shape,
        keep=view.rows > 0,
        columns={"value": value, "support": support, **more},
        reason=why,
    )


def _error_quantiles(view: PairedView, settings: Settings) -> list[Cells]:
    def of(rows: Paired, weight: Array | None) -> Array:
        error = rows.error
        return np.array([weighted_quantile(error, weight, level) for level in _LEVELS])

    values = _table(view, of, len(_LEVELS))
    return [
        _cells(view, values[..., i], view.rows, "", parameters=parameters(quantile=level))
        for i, level in enumerate(_LEVELS)
    ]


def _binned(rows: Paired, weight: Array | None) -> Array:
    """Return means of predictions and of targets, and the rows, of each bin, float64 [bins * 3].

    Equal predictions share a bin, whatever the order of the rows.
    """
    levels = np.arange(1, _BINS) / _BINS
    edges = [weighted_quantile(rows.prediction, weight, level) for level in levels.tolist()]
    place = np.searchsorted(np.array(edges), rows.prediction)
    out = np.full((_BINS, 3), np.nan)
    for i in range(_BINS):
        some = np.flatnonzero(place == i)
        weights = None if weight is None else weight[some]
        out[i, 2] = some.size
        total = some.size if weights is None else weighted_sum(weights, None)
        if total:
            for side, values in enumerate((rows.prediction, rows.target)):
                out[i, side] = weighted_sum(values[some], weights) / total
    return out.ravel()


def _actual_by_prediction(view: PairedView, settings: Settings) -> list[Cells]:
    table = _table(view, _binned, _BINS * 3)
    table = table.reshape(*table.shape[:-1], _BINS, 3)
    return [
        _cells(
            view,
            table[..., i, side],
            np.nan_to_num(table[..., i, 2]).astype(np.int64),
            "no predictions in the bin",
            statistic=name,
            parameters=parameters(bin=i + 1),
        )
        for i in range(_BINS)
        for side, name in enumerate(_SIDES)
    ]


_EVERYWHERE = (-float("inf"), float("inf"))

_SHAPES_METRICS = (
    metric(
        "ErrorQuantiles",
        "quantiles of the errors p - t at 5, 25, 50, 75 and 95 %; the mean of two if a share falls"
        " between them",
        "Hyndman & Fan 1996, Sample quantiles in statistical packages, definition 2",
        _error_quantiles,
        aliases=("error_quantiles",),
        averages=(),
        better="neither",
        range=_EVERYWHERE,
        formula=r"q\text{-quantile of } p_i - t_i, \quad q = 0.05, 0.25, 0.5, 0.75, 0.95",
    ),
    metric(
        "ActualByPrediction",
        "mean prediction and mean target in ten bins of rows by prediction, cut at its deciles;"
        " equal predictions share a bin",
        "Murphy & Winkler 1987, A general framework for forecast verification",
        _actual_by_prediction,
        aliases=("actual_by_prediction",),
        averages=(),
        better="neither",
        range=_EVERYWHERE,
        formula=r"\frac{1}{n_b} \sum_{i \in b} p_i, \quad \frac{1}{n_b} \sum_{i \in b} t_i",
    ),
)


METRICS = (
    *_CORRELATION_METRICS,
    *_RANKS_METRICS,
    *_DEVIANCE_METRICS,
    *_QUANTILES_METRICS,
    *_INTERVALS_METRICS,
    *_SHAPES_METRICS,
)
