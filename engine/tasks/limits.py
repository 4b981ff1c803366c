"""Bounds: how far the numbers of a task could move under choices that tables do not specify."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from ..ingest.frames import Frames
from .workers import Workers

EXACT, AT_MOST, AT_LEAST = "exact", "at most", "at least"
"""Some choice leads to both ends and none beyond; none leads beyond; some may lead beyond."""
RANGE, UNKNOWN = "range", "unknown"
"""Only the metric's range is known; not even the range is known."""

Facts = dict[str, Any]
"""Facts about a choice, JSON-compatible."""
Bound = Callable[[str], str]
"""From the name of a metric to one of the five words above."""


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """Input for bounds: all rows of some datums.

    Attributes:
        frames: checked tables.
        settings: the run's settings.
        facts: facts of the whole run.
        tallies: tally of these tables.
        run: computes the tally of other tables and settings, without modifying them.
    """

    frames: Frames
    settings: Any
    facts: Facts
    tallies: Any
    run: Callable[[Frames, Any], Any]
    workers: Workers


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A choice that the tables do not specify.

    Its effect is computed per datum, so that bounds of parts combine to those of the whole.

    Attributes:
        name: ties, cap or unjudged.
        why: description of both extremes, half a sentence.
        facts: computes the facts of a part's tables; None if they have no such choice.
        whole: merges the facts of all parts.
        settings: maps the run's settings and facts to those of each extreme.
        ends: computes the tally at each extreme; bounds are the minimum and maximum over their
            numbers and the run's.
        bound: describes the bounds, from settings, facts and the tallies of the whole; None if
            there
            is no choice after all.
    """

    name: str
    why: str
    facts: Callable[[Frames, Any], Facts | None]
    whole: Callable[[Sequence[Facts]], Facts]
    settings: Callable[[Any, Facts], tuple[Any, ...]]
    ends: Callable[[Given], Iterator[Any]]
    bound: Callable[[Any, Facts, Sequence[Any]], Bound | None]


def any_of(facts: Sequence[Facts]) -> Facts:
    """Combine facts with "or"."""
    return {name: any(one[name] for one in facts) for name in facts[0]}
