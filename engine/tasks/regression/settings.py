"""Settings: the options of a regression run with every default filled in."""

from __future__ import annotations

import math

import msgspec

from ...dialects import Dialect
from ...schemas.errors import invalid
from ...schemas.options import Options
from .dialects import RegressionDefaults, RegressionRules


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a regression run.

    Attributes:
        rules: the dialect's rules.
        k: empty, since there are no cut-offs; the planner reads it for every task.
        huber_delta: error from which Huber is linear.
        tweedie_power: power of TweedieDeviance and D2Tweedie.
        quantile: level of the prediction, for Pinball and D2Pinball.
        interval_level: nominal coverage of the intervals, for Winkler.
        level_said: the user gave the level.
        trained: scales come from a training table.
        n_features: number of features of the model, for AdjustedR2; None if not given.
    """

    rules: RegressionRules
    k: tuple[int | None, ...] = (None,)
    huber_delta: float
    tweedie_power: float
    quantile: float
    interval_level: float
    level_said: bool
    trained: bool
    n_features: int | None


def _within(name: str, given: float | None, default: float) -> float:
    value = default if given is None else float(given)
    if not 0 < value < 1:
        raise invalid(name, given, "write a share above 0 and below 1.")
    return value


def resolve(options: Options, dialect: Dialect) -> Settings:
    """Fill in defaults and validate options.

    Raises:
        OptionError: a value out of range.
    """
    delta = 1.0 if options.huber_delta is None else float(options.huber_delta)
    if not (delta > 0 and math.isfinite(delta)):
        raise invalid("huber_delta", delta, "write a finite error above 0.")
    power = 1.5 if options.tweedie_power is None else float(options.tweedie_power)
    if not math.isfinite(power) or 0 < power < 1:
        raise invalid(
            "tweedie_power",
            power,
            "no Tweedie distribution has a power between 0 and 1; write 0 or less (any"
            " predictions above 0), or 1 or more.",
        )
    if options.seasonality is not None and options.seasonality < 1:
        raise invalid("seasonality", options.seasonality, "write 1 or more.")
    features = options.n_features
    if features is not None and features < 0:
        raise invalid("n_features", features, "write 0 or more.")
    return Settings(
        rules=dialect.rules,
        huber_delta=delta,
        tweedie_power=power,
        quantile=_within("quantile", options.quantile, 0.5),
        interval_level=_within("interval_level", options.interval_level, 0.9),
        level_said=options.interval_level is not None,
        trained=options.training is not None,
        n_features=features,
    )


def default_metrics(settings: Settings, dialect: Dialect) -> tuple[str, ...]:
    """The dialect's default set."""
    defaults: RegressionDefaults = dialect.defaults
    return defaults.metrics
