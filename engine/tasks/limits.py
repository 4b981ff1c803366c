"""What a task knows of how far its numbers could be from what they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ..ingest.frames import Frames


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A choice that the tables leave open, and the two ends of it.

    Attributes:
        name: ties, cap or unjudged.
        why: what is done at both ends, half a sentence.
        exact: names of metrics whose lowest and highest value lie at the ends; numbers of the
            others may lie beyond them.
        of_tally: from the tally and settings to those of both ends, and whether they are exact;
            None where the tally does not decide.
        of_tables: from checked tables and settings to those of both ends; None where there is no
            choice, or ``of_tally`` knows the ends.
    """

    name: str
    why: str
    exact: Callable[[str], bool] = lambda metric: True
    of_tally: Callable[[Any, Any], tuple[Any, Any, bool] | None] | None = None
    of_tables: (
        Callable[[Frames, Any], tuple[tuple[Frames, Any], tuple[Frames, Any]] | None] | None
    ) = None
