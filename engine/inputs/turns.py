"""Steps that do not need each other: one after the other, or however the caller has them run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

R = TypeVar("R")


class Each(Protocol):
    """Makes calls, perhaps side by side."""

    def __call__(self, calls: Sequence[Callable[[], R]]) -> list[R]:
        """The results in order; of several errors the first one in order is raised."""
        ...


def in_turn(calls: Sequence[Callable[[], R]]) -> list[R]:
    """Make calls one after the other; the results in order."""
    return [call() for call in calls]
