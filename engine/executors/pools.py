"""Where stages over files run: one after the other, in processes of this machine, or on Dask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..progress import one_done
from .threads import available_cores

ATTEMPTS = 4  # workers that may die over one call before it is given up
Call = tuple[Any, ...]


class Pool(Protocol):
    """Runs stages.

    Attributes:
        threads: threads that each may use.
        apart: whether stages run outside this process.
        reads_tables: whether they run in other processes of this machine, which can read what this
            one can.
    """

    threads: int
    apart: bool
    reads_tables: bool

    @property
    def least(self) -> int:
        """Buckets worth having; as :meth:`share` left it."""
        ...

    def share(self, limit: int) -> int:
        """Bytes that one stage may take, and as many workers as there is room for.

        Args:
            limit: bytes of the run.
        """
        ...

    def run(
        self, function: Callable[..., None], calls: Sequence[Call]
    ) -> list[BaseException | None]:
        """Call a function with each tuple of arguments.

        Args:
            function: one that can be pickled, and called again with the same arguments after a
                worker died over it.
            calls: arguments.

        Returns:
            the ``ValueError`` that each call raised, or None, in order. Any other error is raised
            as soon as it is met.

        Raises:
            ExecutorError: workers cannot be reached or started, or died again and again.
        """
        ...

    def prepare(self, function: Callable[..., None]) -> None:
        """Start workers in the background, where that takes time, and goes unseen.

        Args:
            function: the first one that they will be called with.
        """
        ...

    def close(self) -> None:
        """Stop what was started for it."""
        ...


class InTurn:
    """One stage after the other in this process, with all of its threads.

    Args:
        threads: how many; all cores unless given.
    """

    least = 1
    apart = False
    reads_tables = False

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or available_cores()

    def share(self, limit: int) -> int:
        """All of it."""
        return limit

    def run(
        self, function: Callable[..., None], calls: Sequence[Call]
    ) -> list[BaseException | None]:
        """See :class:`Pool`."""
        found = []
        for call in calls:
            found.append(caught(function, call))
            one_done()
        return found

    def prepare(self, function: Callable[..., None]) -> None:
        """Nothing is started."""

    def close(self) -> None:
        """Nothing was started."""


def caught(function: Callable[..., None], call: Call) -> BaseException | None:
    """What an input error of a call is; anything else goes on at once."""
    try:
        function(*call)
    except ValueError as error:
        return error
    return None
