"""What a task knows of how far its numbers could be from what they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from ..ingest.frames import Frames
from .workers import Workers

EXACT, AT_MOST, AT_LEAST = "exact", "at most", "at least"
"""Some choice leads to both ends and none beyond; none leads beyond; some may lead beyond."""
RANGE, UNKNOWN = "range", "unknown"
"""Nothing is known but the metric's range; not even that."""

Facts = dict[str, Any]
"""What rows tell of a choice, as JSON can hold it."""
Bound = Callable[[str], str]
"""From the name of a metric to one of the five words above."""


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """All rows of some datums, of which limits are asked for.

    Attributes:
        frames: checked tables.
        settings: the run's settings.
        facts: of the whole run.
        tallies: of these tables.
        run: from other tables and settings, which it leaves as they are, to their tally.
        workers: where work runs.
    """

    frames: Frames
    settings: Any
    facts: Facts
    tallies: Any
    run: Callable[[Frames, Any], Any]
    workers: Workers


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A choice that the tables leave open.

    Where it leads is told datum by datum, so that the ends of parts make those of the whole.

    Attributes:
        name: ties, cap or unjudged.
        why: what is done at both ends, half a sentence.
        facts: of the tables of a part, with the run's settings; None where they leave no such
            choice.
        whole: the facts of all parts as those of the whole.
        settings: from the run's settings and facts to those of each end.
        ends: the tally at each of them; lowest and highest are those of their numbers and of the
            run's.
        bound: what the ends are, from settings, facts and the tallies of the whole; None where it
            turns out that there is no choice.
    """

    name: str
    why: str
    facts: Callable[[Frames, Any], Facts | None]
    whole: Callable[[Sequence[Facts]], Facts]
    settings: Callable[[Any, Facts], tuple[Any, ...]]
    ends: Callable[[Given], Iterator[Any]]
    bound: Callable[[Any, Facts, Sequence[Any]], Bound | None]


def any_of(facts: Sequence[Facts]) -> Facts:
    """Facts that hold where they hold in some part."""
    return {name: any(one[name] for one in facts) for name in facts[0]}
