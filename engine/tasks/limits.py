"""What a task knows of how far its numbers could be from what they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ..ingest.frames import Frames
from .workers import Workers

EXACT, AT_MOST, AT_LEAST = "exact", "at most", "at least"
"""Some choice leads to both ends and none beyond; none leads beyond; some may lead beyond."""
RANGE, UNKNOWN = "range", "unknown"
"""Nothing is known but the metric's range; not even that."""


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """A run, of which limits are asked for.

    Attributes:
        frames: checked tables.
        settings: the run's settings.
        tallies: its tally.
        run: from other tables and settings, which it leaves as they are, to their tally.
        workers: where work runs.
    """

    frames: Frames
    settings: Any
    tallies: Any
    run: Callable[[Frames, Any], Any]
    workers: Workers


class Ends(msgspec.Struct, frozen=True):
    """Where a choice leads.

    Attributes:
        runs: tallies and settings; lowest and highest are those of their numbers and of the run's.
        bound: from the name of a metric to ``EXACT``, ``AT_MOST``, ``AT_LEAST``,
            ``RANGE`` or ``UNKNOWN``.
    """

    runs: tuple[tuple[Any, Any], ...]
    bound: Callable[[str], str] = lambda metric: EXACT


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A choice that the tables leave open.

    Attributes:
        name: ties, cap or unjudged.
        why: what is done at both ends, half a sentence.
        ends: where it leads; None where a run leaves no such choice.
    """

    name: str
    why: str
    ends: Callable[[Given], Ends | None]
