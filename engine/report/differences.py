"""What a number differs by from that of the baseline, and whether that is more than luck."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ..scorecard.lookup import KEYS
from .verdicts import NONE, better

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard
    from ..statistics.comparison import Comparison

BETTER, WORSE, UNSURE, SAME = "better", "worse", "cannot tell", "same"
_NAMES = ("metric", *KEYS)
_SURE = {1: BETTER, -1: WORSE}


class Difference(msgspec.Struct, frozen=True):
    """A number beside the baseline's.

    Attributes:
        before: the baseline's number; None where undefined.
        value: what it changed by; None where either is undefined.
        lower: of the interval of the change; None without one.
        upper: of the same.
        reading: ``better``, ``worse``, ``cannot tell`` or ``same``; empty where nothing was drawn,
            or no direction is better.
    """

    before: float | None
    value: float | None
    lower: float | None = None
    upper: float | None = None
    reading: str = ""


class Differences:
    """Differences of a run to a baseline, by number.

    Args:
        baseline: the earlier run.
        comparison: of both, the baseline first; None where they could not be compared, so that
            differences have no interval.
    """

    def __init__(self, baseline: Scorecard, comparison: Comparison | None) -> None:
        self._comparison = comparison
        self._before = {_key(row): row["value"] for row in baseline.metrics.iter_rows(named=True)}
        rows = [] if comparison is None else comparison.differences.iter_rows(named=True)
        self._drawn = {_key(row): row for row in rows}

    def of(self, row: dict[str, Any]) -> Difference | None:
        """The difference of the number in a row of the metrics frame; None where it is new."""
        key = _key(row)
        drawn = self._drawn.get(key)
        if drawn is not None and self._comparison is not None:
            return Difference(
                drawn["a"],
                drawn["difference"],
                drawn["lower"],
                drawn["upper"],
                _reading(self._comparison, drawn),
            )
        if key not in self._before:
            return None
        before, now = self._before[key], row["value"]
        return Difference(before, None if before is None or now is None else now - before)


def _reading(comparison: Comparison, row: dict[str, Any]) -> str:
    if row["difference"] is None or comparison.directions.get(row["metric"]) == "neither":
        return ""
    if abs(row["difference"]) <= NONE and abs(row["se"] or 0.0) <= NONE:
        return SAME
    return _SURE.get(better(comparison, row), UNSURE)


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    # Slices and labels of two runs are alike as text; floats were rounded alike.
    return tuple(row.get(name) for name in _NAMES)
