"""Differences of numbers to the baseline, and their significance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ..scorecard.lookup import KEYS
from ..statistics.missing import too_few
from .verdicts import NONE, better

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard
    from ..statistics.comparison import Comparison
    from ..statistics.margins import Margins

BETTER, WORSE, UNSURE, SAME = "better", "worse", "not significant", "same"
UNTESTED, NO_DIRECTION = "not tested", "no direction"
_NAMES = ("metric", *KEYS)
_SURE = {1: BETTER, -1: WORSE}


class Difference(msgspec.Struct, frozen=True):
    """Number compared with the baseline's.

    Attributes:
        before: the baseline's number; None if undefined.
        value: the change; None if either is undefined.
        lower: low end of the interval of the change; None without one.
        upper: high end of the interval of the change; None without one.
        reading: ``better``, ``worse``, ``not significant`` or ``same``; empty if it was not tested
            or no direction is better.
        unread: reason why ``reading`` is empty.
    """

    before: float | None
    value: float | None
    lower: float | None = None
    upper: float | None = None
    reading: str = ""
    unread: str = ""


class Differences:
    """Differences of a run to a baseline, by number.

    Args:
        comparison: of both, the baseline first; None if they could not be compared.
        margins: of both, if they are over different datums; otherwise None. Without either,
            differences have no interval.
    """

    def __init__(
        self, baseline: Scorecard, comparison: Comparison | None, margins: Margins | None = None
    ) -> None:
        self._comparison = comparison
        self._directions = baseline.directions
        self._before = {_key(row): row["value"] for row in baseline.metrics.iter_rows(named=True)}
        known = margins.rows if comparison is None and margins is not None else None
        known = comparison.differences if comparison is not None else known
        self._drawn = {} if known is None else {_key(row): row for row in known.rows(named=True)}

    def of(self, row: dict[str, Any]) -> Difference | None:
        """Return the difference of the number in a row of the metrics frame; None if it is new."""
        key = _key(row)
        unread = NO_DIRECTION if self._directions.get(row["metric"]) == "neither" else UNTESTED
        drawn = self._drawn.get(key)
        if drawn is not None:
            if self._comparison is not None:
                reading = _reading(self._comparison, drawn)
            else:
                reading = _by_interval(drawn, self._directions.get(row["metric"], "higher"))
            return Difference(
                drawn["a"], drawn["difference"], drawn["lower"], drawn["upper"], reading, unread
            )
        if key not in self._before:
            return None
        before, now = self._before[key], row["value"]
        changed = None if before is None or now is None else now - before
        return Difference(before, changed, unread=unread)


def _reading(comparison: Comparison, row: dict[str, Any]) -> str:
    neither = comparison.directions.get(row["metric"]) == "neither"
    if row["difference"] is None or neither or too_few(row.get("coverage")):
        return ""
    if abs(row["difference"]) <= NONE and abs(row["se"] or 0.0) <= NONE:
        return SAME
    return _SURE.get(better(comparison, row), UNSURE)


def _by_interval(row: dict[str, Any], direction: str) -> str:
    """Return the verdict for runs over different datums: significant if the interval excludes 0."""
    lower, upper = row["lower"], row["upper"]
    if lower is None or upper is None or direction == "neither" or too_few(row.get("coverage")):
        return ""
    if lower <= 0 <= upper:
        return UNSURE
    return BETTER if (lower > 0) == (direction == "higher") else WORSE


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    # Slices and labels of two runs are alike as text; floats were rounded alike.
    return tuple(row.get(name) for name in _NAMES)
