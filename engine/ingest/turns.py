"""Steps that do not need each other: one after the other, or however the caller has them run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

R = TypeVar("R")
S = TypeVar("S")


class Each(Protocol):
    """Makes calls, perhaps side by side."""

    def __call__(self, calls: Sequence[Callable[[], R]]) -> list[R]:
        """The results in order; of several errors the first one in order is raised."""
        ...


def in_turn(calls: Sequence[Callable[[], R]]) -> list[R]:
    """Make calls one after the other; the results in order."""
    return [call() for call in calls]


def both(each: Each, first: Callable[[], R], second: Callable[[], S]) -> tuple[R, S]:
    """What two steps return that do not need each other."""
    one: Any
    other: Any
    calls: list[Callable[[], Any]] = [first, second]
    one, other = each(calls)
    return one, other
