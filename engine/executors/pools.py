"""Pools that run stages over files: serially, in local processes, or on Dask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..progress import one_done
from .threads import available_cores

ATTEMPTS = 4  # workers that may die over one call before it is given up
Call = tuple[Any, ...]


class Pool(Protocol):
    """Runner of stages.

    Attributes:
        apart: whether stages run outside this process.
        reads_tables: whether they run in local processes, which can read the same files.
    """

    threads: int
    apart: bool
    reads_tables: bool

    @property
    def least(self) -> int:
        """Buckets worth having; as :meth:`share` left it."""
        ...

    def share(self, limit: int) -> int:
        """Return the memory limit of one stage in bytes; reduces the workers to those that fit.

        Args:
            limit: memory limit of the run in bytes.
        """
        ...

    def run(
        self, function: Callable[..., None], calls: Sequence[Call]
    ) -> list[BaseException | None]:
        """Call a function with each tuple of arguments.

        Args:
            function: picklable, and idempotent: it is called again if a worker died.

        Returns:
            the ``ValueError`` that each call raised, or None, in order. Any other error is raised
            immediately.

        Raises:
            ExecutorError: workers cannot be reached or started, or died repeatedly.
        """
        ...

    def prepare(self, function: Callable[..., None]) -> None:
        """Start workers in the background, if starting takes time."""
        ...

    def close(self) -> None:
        """Stop the workers."""
        ...


class InTurn:
    """Pool that runs stages one after the other in this process, with all of its threads.

    Args:
        threads: number of threads; all cores by default.
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
        """Do nothing: there are no workers."""

    def close(self) -> None:
        """Do nothing: there are no workers."""


def caught(function: Callable[..., None], call: Call) -> BaseException | None:
    """Run a call and return its input error (ValueError), or None; other errors are raised."""
    try:
        function(*call)
    except ValueError as error:
        return error
    return None
