"""Dialect and settings of values: statistics and directions."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ...dialects import Dialect, TaskSettings, of_task
from ...schemas.display import Layout
from ...schemas.errors import OptionError, did_you_mean, invalid, unknown
from ...schemas.options import DIRECTIONS, Options
from ...schemas.wording import option

STATISTICS = ("mean", "sum", "median", "std", "min", "max")
"""Statistics besides percentiles."""
_ALIASES = {
    "average": "mean",
    "avg": "mean",
    "total": "sum",
    "stddev": "std",
    "sd": "std",
    "minimum": "min",
    "maximum": "max",
}
_PERCENTILE = re.compile(r"p(\d{1,3}(?:\.\d{1,6})?)")


class ValuesRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules on which the references disagree.

    Attributes:
        all_samples: pass@k is undefined if any datum has fewer than k samples; otherwise such
            datums are skipped.
    """

    all_samples: bool = False


class Settings(TaskSettings, frozen=True, kw_only=True):
    """Settings of a run of values.

    Attributes:
        k: no cut-offs.
        statistics: canonical names, distinct, in the order given.
        better: metric -> ``higher`` or ``lower``, for those with a known direction.
        value_columns: columns of a wide table, in order; None if they were not named.
    """

    rules: ValuesRules
    k: tuple[int | None, ...] = ()
    statistics: tuple[str, ...] = ("mean",)
    better: dict[str, str] = msgspec.field(default_factory=dict)
    value_columns: tuple[str, ...] | None = None

    @staticmethod
    def derive(values: dict[str, Any], options: Options, dialect: Dialect) -> None:
        if not values["statistics"]:
            raise invalid("statistics", [], "write at least one value.")
        values["statistics"] = tuple(dict.fromkeys(map(_canonical, values["statistics"])))
        values["better"] = values["better"] or {}
        for direction in values["better"].values():
            if direction not in DIRECTIONS[:2]:
                raise unknown("better", direction, DIRECTIONS[:2])


def _canonical(name: str) -> str:
    """Return the canonical name of a statistic: ``p95``, ``mean``."""
    plain = name.strip().lower()
    plain = _ALIASES.get(plain, plain)
    match = _PERCENTILE.fullmatch(plain)
    if match is not None and float(match[1]) <= 100:
        return f"p{float(match[1]):.10g}"
    if plain in STATISTICS:
        return plain
    raise OptionError(
        f"{option('statistics', [name])}: unknown.{did_you_mean(plain, STATISTICS)} Write"
        f" {', '.join(STATISTICS)}, or a percentile from p0 to p100, such as p95.",
        code="option_value",
        option="statistics",
        value=name,
    )


def level_of(statistic: str) -> float | None:
    """Return the level of a quantile, in [0, 1]; None for other statistics."""
    if statistic == "median":
        return 0.5
    match = _PERCENTILE.fullmatch(statistic)
    return None if match is None else float(match[1]) / 100


DIALECTS = of_task(
    "values",
    Dialect(
        name="standard",
        about="NumPy's statistics over datums: std with n - 1, percentiles interpolated linearly.",
        rules=ValuesRules(),
    ),
    Dialect(
        name="humaneval",
        about="evalplus: pass@k is undefined if any task has fewer than k samples.",
        rules=ValuesRules(all_samples=True),
    ),
)
"""The dialects of values."""

LAYOUTS: dict[str | None, Layout] = {None: Layout(headline=(), label_columns=(), slice_columns=())}
"""Dialect -> layout; None is the task's own."""
