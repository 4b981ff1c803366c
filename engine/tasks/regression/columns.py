"""Regression columns other than predictions and targets, and their needs."""

from __future__ import annotations

import re
from collections.abc import Iterable

SCALES = ("scale", "squared_scale")
"""Columns that errors are divided by."""
BESIDE = (*SCALES, "lower", "upper")
"""Numeric columns other than predictions and targets, each the need of a metric."""
QUANTILES, SAMPLES, INTERVALS = "quantiles", "samples", "intervals"
"""Needs for columns of quantiles, for a column of lists, and for pairs of interval bounds."""
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
    found: list[tuple[str, str, float | None]] = []
    if {"lower", "upper"} <= {*here}:
        found.append(("lower", "upper", None))
    for lower in here:
        match = _LOWER.fullmatch(lower)
        if match is not None and (upper := f"hi{match[1]}") in here:
            found.append((lower, upper, float(match[1])))
    return found


def numbers_of(names: Iterable[str]) -> list[str]:
    """Return all numeric columns other than predictions and targets."""
    here = list(names)
    ends = [name for pair in intervals_of(here) for name in pair[:2]]
    return list(dict.fromkeys([*(n for n in BESIDE if n in here), *ends, *quantiles_of(here)]))


def read_of(names: Iterable[str]) -> list[str]:
    """Return the needs of distributions that the columns satisfy, the most informative first."""
    here = list(names)
    there = {SAMPLES: SAMPLES in here, QUANTILES: quantiles_of(here), INTERVALS: intervals_of(here)}
    return [need for need, found in there.items() if found]
