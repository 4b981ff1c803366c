"""Targets of chosen score thresholds, from the options."""

from __future__ import annotations

import math

import msgspec

from ..schemas.errors import OptionError
from ..schemas.options import Options
from ..schemas.wording import option


class Aims(msgspec.Struct, frozen=True, kw_only=True):
    """Targets of thresholds.

    Attributes:
        target_precision: minimum precision, in [0, 1].
        target_recall: minimum recall, in [0, 1].
        target_fpr: maximum false-positive rate, in [0, 1].
        false_positive_cost: of each false positive, 0 or more.
        miss_cost: of each false negative, 0 or more.
    """

    beta: float = 1.0
    target_precision: float = 0.9
    target_recall: float = 0.9
    target_fpr: float = 0.1
    false_positive_cost: float = 1.0
    miss_cost: float = 1.0


def aims_of(options: Options, beta: float | None = None) -> Aims:
    """Return the targets in a run's options.

    Args:
        beta: the dialect's, if it has one.

    Raises:
        OptionError: a value out of range.
    """
    given = {field: getattr(options, field) for field in Aims.__struct_fields__}
    given["beta"] = beta if given["beta"] is None else given["beta"]
    aims = Aims(**{name: float(value) for name, value in given.items() if value is not None})
    if not (math.isfinite(aims.beta) and aims.beta > 0):
        raise OptionError(f"{option('beta', aims.beta)}: write a finite number above 0.")
    for name in ("target_precision", "target_recall", "target_fpr"):
        if not 0 <= (value := getattr(aims, name)) <= 1:
            raise OptionError(f"{option(name, value)}: write a number from 0 to 1.")
    costs = aims.false_positive_cost, aims.miss_cost
    for name, value in zip(("false_positive_cost", "miss_cost"), costs, strict=True):
        if not (math.isfinite(value) and value >= 0):
            raise OptionError(f"{option(name, value)}: write a finite number, 0 or more.")
    if not any(costs):
        raise OptionError(
            f"{option('false_positive_cost', 0)} and {option('miss_cost', 0)}: where nothing costs"
            " anything, every threshold is as good. Write one above 0.",
            code="option_value",
            options=["false_positive_cost", "miss_cost"],
        )
    return aims
