"""Regression dialects, settings, optional columns and layouts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from ...dialects import Dialect, TaskSettings, of_task
from ...schemas.contract import words
from ...schemas.display import Layout, Spread
from ...schemas.errors import invalid
from ...schemas.options import Options

# Regression dialects: divisors for targets of 0, and constant targets.


class RegressionRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules on which the references disagree.

    Attributes:
        least_target: minimum divisor of MAPE; 0 if a target of 0 makes it undefined.
        constant: R2, ExplainedVariance and the D2 metrics of a constant target: first value if
            predictions have no error, else the second; None for undefined.
        running_weights: weighted medians and quantiles use floating-point running sums of weights.
    """

    least_target: float = 0.0
    constant: tuple[float, float] | None = None
    running_weights: bool = False


class Settings(TaskSettings, frozen=True, kw_only=True):
    """Settings of a regression run: the dialect's rules, and options with defaults filled in.

    Attributes:
        k: no cut-offs.
        level_given: the user gave ``interval_level``.
    """

    rules: RegressionRules
    k: tuple[int | None, ...] = (None,)
    huber_delta: float
    tweedie_power: float
    quantile: float
    interval_level: float
    training: Any
    n_features: int | None
    level_given: bool

    @staticmethod
    def derive(values: dict[str, Any], options: Options, dialect: Dialect) -> None:
        power = values["tweedie_power"]
        if 0 < power < 1:
            raise invalid(
                "tweedie_power",
                power,
                "no Tweedie distribution has a power between 0 and 1; write 0 or less (any"
                " predictions above 0), or 1 or more.",
            )
        values["level_given"] = options.interval_level is not None


_METRICS = words(
    "MAE RMSE R2 MedianAE MeanError CRPS CRPSFromQuantiles QuantileLoss QuantileCoverage Coverage"
    " IntervalWidth Winkler"
)

DIALECTS = of_task(
    "regression",
    Dialect(
        name="standard",
        about="every number by its definition, undefined if that divides by 0",
        rules=RegressionRules(),
        metrics=_METRICS,
    ),
    Dialect(
        name="sklearn",
        about="scikit-learn 1.9: MAPE divides by 2.2e-16 at least; R2 of a constant target is 1"
        " without error and else 0",
        rules=RegressionRules(
            least_target=2.220446049250313e-16, constant=(1.0, 0.0), running_weights=True
        ),
        metrics=_METRICS,
    ),
)
"""The dialects of regression."""


# Regression columns other than predictions and targets, and their needs.

SCALES = ("scale", "squared_scale")
"""Columns that errors are divided by."""
EXTRA = (*SCALES, "lower", "upper")
"""Numeric columns other than predictions and targets, each the need of a metric."""
QUANTILES, SAMPLES, INTERVALS = "quantiles", "samples", "intervals"
"""Needs for columns of quantiles, for a column of lists, and for pairs of interval bounds."""
PLAIN = frozenset({"datum_id", "label_key", "prediction", "target", "weight", "dataset"})
"""Columns without distributions, scales and ids."""
GROUP, SERIES = "group_id", "series"
"""Columns that rows are ranked within, and averaged within."""
IDS = (GROUP, SERIES)
"""Columns of ids; parts know their values by their hash, uint64."""
_LEVEL = r"(0?\.\d+|\d+(?:\.\d+)?e-\d+)"
_QUANTILE, _LOWER = re.compile(f"q{_LEVEL}"), re.compile(f"lo{_LEVEL}")


def quantiles_of(names: Iterable[str]) -> dict[str, float]:
    """Columns of quantiles among some, by the names that contracts give them, and their levels."""
    return {name: float(name[1:]) for name in names if _QUANTILE.fullmatch(name)}


def intervals_of(names: Iterable[str]) -> list[tuple[str, str, float | None]]:
    """Return pairs of bound columns, and their levels; None if the names have no level."""
    here = list(names)
    intervals: list[tuple[str, str, float | None]] = []
    if {"lower", "upper"} <= {*here}:
        intervals.append(("lower", "upper", None))
    for lower in here:
        match = _LOWER.fullmatch(lower)
        if match is not None and (upper := f"hi{match[1]}") in here:
            intervals.append((lower, upper, float(match[1])))
    return intervals


def numbers_of(names: Iterable[str]) -> list[str]:
    """Return all numeric columns other than predictions and targets."""
    here = list(names)
    bounds = [name for pair in intervals_of(here) for name in pair[:2]]
    return list(dict.fromkeys([*(n for n in EXTRA if n in here), *bounds, *quantiles_of(here)]))


def read_of(names: Iterable[str]) -> list[str]:
    """Return the needs of distributions that the columns satisfy, the most informative first."""
    here = list(names)
    available = {
        SAMPLES: SAMPLES in here,
        QUANTILES: quantiles_of(here),
        INTERVALS: intervals_of(here),
    }
    return [need for need, present in available.items() if present]


# Layout of regression results, with tables of quantiles and bins.

_NUMBERS = Layout(
    headline=(),
    label_columns=(),
    slice_columns=(),
    tables=(
        Spread("ErrorQuantiles", "quantile", "quantile"),
        Spread("ActualByPrediction", "bin", "bin"),
    ),
)

LAYOUTS: dict[str | None, Layout] = {None: _NUMBERS}
"""Dialect -> layout; None is the task's own."""
