"""Settings: the options of a classification run with every default filled in."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from ...dialects import Dialect
from ...metrics.thresholds import Aims, aims_of
from ...schemas.errors import OptionError, invalid, unknown
from ...schemas.option_values import LabelThresholds, in_name
from ...schemas.options import Options
from ...schemas.wording import option
from .dialects import ClassificationDefaults, ClassificationRules

ONE_LABEL_ONLY = (
    "BalancedAccuracy",
    "BalancedAccuracyAdjusted",
    "MCC",
    "CohenKappa",
    "CohenKappaLinear",
    "CohenKappaQuadratic",
    "TopKAccuracy",
    "mROCAUCOneVsOne",
    "LogLoss",
    "Brier",
    "ECE",
    "MCE",
    "Reliability",
    "ConfusionMatrix",
    "Outcomes",
)
"""Metrics of one true label against one prediction a datum, without meaning for several."""

AVERAGES = ("macro", "micro", "weighted", "samples")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a classification run.

    Attributes:
        rules: the dialect's rules.
        beta: weight of recall in the F of the default set and of Phoenix's scores.
        average: average used by single-number exports.
        positive_label: positive class of binary tables, or None for 1 / true.
        zero_division: value of 0 / 0; NaN for undefined.
        score_thresholds: ascending thresholds of curves.
        decision_threshold: score from which a label counts as predicted, if argmax does not decide.
        multilabel: datums may have several true labels of one key.
        k: ascending cut-offs of top-k accuracy.
        n_bins: bins of calibration errors.
        max_fpr: upper false-positive rate of partial areas.
        thresholds: scores from which labels count as predicted, by label.
        aims: targets of the chosen thresholds.
        thin_curves: omit points on a straight line between their neighbours.
        pr_curve_max_examples: examples per cell of the detailed curves and confusion matrices.
        examples_given: set by the user, which requests examples of confusion matrices.
        relabelled: labels are mapped, so that one may be listed twice.
    """

    rules: ClassificationRules
    beta: float
    average: str
    positive_label: Any
    zero_division: float
    score_thresholds: tuple[float, ...]
    decision_threshold: float
    multilabel: bool
    k: tuple[int, ...]
    n_bins: int
    max_fpr: float
    aims: Aims
    thresholds: LabelThresholds = ()
    thin_curves: bool
    pr_curve_max_examples: int
    examples_given: bool
    relabelled: bool


def _either(given: Any, default: Any) -> Any:
    return default if given is None else given


def _between(name: str, value: float, low: float, high: float) -> float:
    if not low <= value <= high:
        raise invalid(name, value, f"write a number from {low:g} to {high:g}.")
    return float(value)


def resolve(options: Options, dialect: Dialect) -> Settings:
    """Fill in defaults and validate options.

    Raises:
        OptionError: a value out of range.
    """
    defaults: ClassificationDefaults = dialect.defaults
    beta = float(_either(options.beta, defaults.beta))
    average = _either(options.average, defaults.average)
    if average not in AVERAGES:
        raise unknown("average", average, AVERAGES, before="average: ")
    if average == "samples" and not options.multilabel:
        raise OptionError(
            f"{option('average', 'samples')} is a mean over datums of several labels each: give"
            f" {option('multilabel', True)}, or another average.",
            code="option_unfit",
            option="average",
        )
    scores = tuple(sorted(set(_either(options.score_thresholds, defaults.score_thresholds))))
    if not scores or not all(math.isfinite(score) for score in scores):
        raise OptionError(
            "score_thresholds is empty or contains NaN or infinity.",
            code="option_value",
            option="score_thresholds",
        )
    cuts = tuple(sorted(set(_either(options.k, defaults.k))))
    if not cuts or cuts[0] < 1:
        raise invalid("k", list(cuts), "a cut-off is 1 or more.")
    bins = int(_either(options.n_bins, defaults.n_bins))
    if bins < 1:
        raise invalid("n_bins", bins, "write 1 or more.")
    examples = int(_either(options.pr_curve_max_examples, defaults.pr_curve_max_examples))
    if examples < 0:
        raise invalid("pr_curve_max_examples", examples, "write 0 or more.")
    fpr = _between("max_fpr", _either(options.max_fpr, defaults.max_fpr), 0, 1)
    if fpr == 0:
        raise invalid("max_fpr", 0, "a partial area needs a range above 0.")
    fill = _either(options.zero_division, dialect.rules.zero_division)
    decision = float(_either(options.decision_threshold, defaults.decision_threshold))
    if not math.isfinite(decision):
        raise invalid("decision_threshold", decision, "write a finite number.")
    if options.multilabel:
        wrong = [name for name in options.metrics or () if name in ONE_LABEL_ONLY]
        if wrong:
            raise OptionError(
                f"{', '.join(wrong)}: undefined if a datum may have several labels; remove"
                f" {option('multilabel', True)}, or these metrics.",
                code="option_unfit",
                option="metrics",
                value=wrong,
            )
    return Settings(
        rules=dialect.rules,
        beta=beta,
        average=average,
        positive_label=options.positive_label,
        zero_division=math.nan if fill is None else float(fill),
        score_thresholds=scores,
        decision_threshold=decision,
        multilabel=bool(options.multilabel),
        k=cuts,
        n_bins=bins,
        max_fpr=fpr,
        aims=aims_of(options, beta),
        thresholds=options.thresholds or (),
        thin_curves=bool(_either(options.thin_curves, True)),
        pr_curve_max_examples=examples,
        examples_given=options.pr_curve_max_examples is not None,
        relabelled=options.label_map is not None,
    )


def default_metrics(settings: Settings, dialect: Dialect) -> tuple[str, ...]:
    """The dialect's default set, ``F`` at the beta asked for."""
    return tuple(
        f"F{in_name(settings.beta)}" if name == "F" else name for name in dialect.defaults.metrics
    )
