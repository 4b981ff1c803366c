"""What is worth telling about the input: problems that stop the run, notes that do not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from evalengine.schemas.errors import InputError


class Note(msgspec.Struct, frozen=True):
    """Something the user should know that does not stop the run.

    Attributes:
        kind: what it is about, in a word of code: ``zero_area_boxes``, ``labels_one_side``, ...
        message: one sentence.
        count: how many rows, labels or datums it concerns, where there is a number.
    """

    kind: str
    message: str
    count: int | None = None


class Problem(msgspec.Struct, frozen=True):
    """Something that stops the run.

    Attributes:
        side: the table, e.g. ``predictions``.
        column: canonical column it concerns, empty if none.
        message: what is wrong, where, and the way out.
        count: how many rows, where there is a number.
    """

    side: str
    column: str
    message: str
    count: int | None = None


class ChecksFailed(InputError):
    """All problems of the input together, one line each."""

    def __init__(self, problems: Sequence[Problem], sources: dict[str, str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(_lines(problems, sources)))


def refuse(problems: Sequence[Problem], sources: dict[str, str]) -> None:
    """Raise if there is any problem.

    Args:
        problems: of all sides.
        sources: where each side came from.

    Raises:
        ChecksFailed: naming every problem on a line of its own, grouped by side.
    """
    if problems:
        raise ChecksFailed(problems, sources)


def _lines(problems: Sequence[Problem], sources: dict[str, str]) -> list[str]:
    lines = []
    for side in dict.fromkeys(problem.side for problem in problems):
        source = f" ({sources[side]})" if side in sources else ""
        lines.append(f"{side.replace('_', ' ')}{source} cannot be used:")
        lines += [f"- {problem.message}" for problem in problems if problem.side == side]
    return lines


def count_of(n: int, noun: str, plural: str | None = None) -> str:
    """``1 row``, ``1,234 rows``."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def listing(values: Iterable[Any], total: int | None = None, most: int = 5) -> str:
    """``'a', 'b' and 3 more``: the first few of some values."""
    found = list(values)
    more = (len(found) if total is None else total) - min(len(found), most)
    some = ", ".join(repr(value) for value in found[:most])
    return f"{some} and {more:,} more" if more > 0 else some
