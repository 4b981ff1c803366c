"""Threads: kernels release the GIL, so ranges of labels or datums run side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, wait
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from ..schemas.errors import OptionError
from .helpers import Crew

R = TypeVar("R")

_PIECES_PER_WORKER = 4  # more pieces than workers, so that an uneven one does not hold up the rest


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return max(1, os.cpu_count() or 1)


def split(offsets: np.ndarray[Any, Any], pieces: int) -> list[tuple[int, int]]:
    """Ranges of consecutive groups holding about equally many rows.

    Args:
        offsets: int64 [n_groups + 1], CSR offsets of the groups' rows.
        pieces: how many ranges at most.

    Returns:
        (first, last) group ranges that cover all groups in order, none empty.
    """
    n_groups = offsets.size - 1
    if n_groups <= 0:
        return []
    targets = np.linspace(offsets[0], offsets[-1], pieces + 1)[1:-1]
    cuts = np.unique(np.r_[0, np.searchsorted(offsets, targets), n_groups])
    return [(int(a), int(b)) for a, b in pairwise(cuts)]


class Threads:
    """An executor of threads, or any ``concurrent.futures.Executor`` that shares memory.

    Threads beside the calling one are the process's own, which wait for the next run
    (:mod:`~evalengine.executors.helpers`); of all calls on one object, nested ones too, no more
    than ``workers - 1`` of them work at a time.

    Args:
        workers: number of threads; all cores unless given.
        executor: a ready executor to use instead; it is not shut down here.
    """

    def __init__(self, workers: int | None = None, executor: Executor | None = None) -> None:
        if executor is not None:
            from concurrent.futures import ProcessPoolExecutor

            if isinstance(executor, ProcessPoolExecutor):
                raise OptionError(
                    "executor: a process pool cannot share the arrays; give a ThreadPoolExecutor."
                )
        self.workers = workers or available_cores()
        self._given = executor
        self._crew = Crew(self.workers - 1)  # beside the thread that calls

    def own(self) -> Threads:
        """As many threads of its own, for work after the call that an executor was given to.

        A given executor may be shut down by then; one thread stands in for it.
        """
        return self if self._given is None else Threads(1)

    def over(self, offsets: np.ndarray[Any, Any], function: Callable[[int, int], R]) -> list[R]:
        """Call ``function(first, last)`` on ranges of groups and return the results in order.

        Args:
            offsets: int64 [n_groups + 1], CSR offsets that say how many rows each group has.
            function: called once a range; must release the GIL to gain anything.
        """
        if self.workers == 1:
            ranges = split(offsets, 1)
        else:
            ranges = split(offsets, self.workers * _PIECES_PER_WORKER)
        return self.each([partial(function, a, b) for a, b in ranges])

    def each(self, calls: Sequence[Callable[[], R]]) -> list[R]:
        """Run the calls side by side and return their results in order.

        Calls begin in order. After one has failed none begins; those under way are waited for, and
        the error of the first one in order is raised. Calls may themselves use this executor.
        """
        if len(calls) < 2 or (self.workers == 1 and self._given is None):
            return [call() for call in calls]
        if self._given is not None:
            return _each(self._given, calls)
        return self._crew.each(calls)


def _each(executor: Executor, calls: Sequence[Callable[[], R]]) -> list[R]:
    """See :meth:`Threads.each`."""
    futures: list[Future[R]] = []
    try:
        futures += (executor.submit(call) for call in calls)
        return [future.result() for future in futures]
    finally:
        wait([future for future in futures if not future.cancel()])
