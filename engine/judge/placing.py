"""Where the statements that a reply sorted stand in the lists that it was given."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence


def _folded(statement: str) -> str:
    return " ".join(statement.split()).casefold()


def places(said: Sequence[str], listed: Sequence[str]) -> tuple[list[int], list[str]]:
    """Places of statements in a list, each taken once.

    A statement takes its first free place; those that stand nowhere, because the reply worded them
    anew, take the places left over, in order, as far as there are any. Spaces and case do not
    matter. So the same statement has the same place in every judgment.

    Args:
        said: statements of a reply, not more than are listed.
        listed: statements that it was to sort.

    Returns:
        the place of each, from 0; where all that was said is in the list, what was said more often
        than it stands there: something else was left out then.
    """
    free: dict[str, deque[int]] = defaultdict(deque)
    for place, statement in enumerate(listed):
        free[_folded(statement)].append(place)
    known = set(free)
    found: list[int | None] = []
    repeated: list[str] = []
    for statement in said:
        left = free[_folded(statement)]
        found.append(left.popleft() if left else None)
        if found[-1] is None:
            repeated.append(statement)
    rest = iter(sorted(place for left in free.values() for place in left))
    all_known = all(_folded(statement) in known for statement in said)
    filled = [next(rest) if place is None else place for place in found]
    return filled, repeated if all_known else []
