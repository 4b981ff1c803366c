"""Pools: threads, and stages over files."""

from __future__ import annotations

import os
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np

from ..progress import one_done
from ..schemas.errors import ExecutorError, OptionError

# Thread pool: kernels release the GIL, so ranges of labels or datums run in parallel.
#
# Threads are started once per process. The caller of a list takes calls from it like every helper
# thread, so that nested and concurrent lists cannot deadlock.

R = TypeVar("R")

_PIECES_PER_WORKER = 4  # so that an uneven piece does not delay the rest

_idle: defaultdict[int, list[ThreadPoolExecutor]] = defaultdict(list)
"""Threads that wait for a run, by how many help it; each is started when no other waits."""


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return max(1, os.cpu_count() or 1)


def split(offsets: np.ndarray[Any, Any], pieces: int) -> list[tuple[int, int]]:
    """Split groups into consecutive ranges with about equally many rows.

    Args:
        offsets: int64 [n_groups + 1], CSR offsets of the groups' rows.

    Returns:
        (first, last) group ranges that cover all groups in order, none empty.
    """
    n_groups = offsets.size - 1
    if n_groups <= 0:
        return []
    if pieces == 1:
        return [(0, n_groups)]
    targets = np.linspace(offsets[0], offsets[-1], pieces + 1)[1:-1]
    cuts = np.unique(np.r_[0, np.searchsorted(offsets, targets), n_groups])
    return [(int(a), int(b)) for a, b in pairwise(cuts)]


class Threads:
    """Executor of threads, or any ``concurrent.futures.Executor`` that shares memory.

    At most ``workers - 1`` threads help the caller at a time, also in nested calls. They are shared
    within the process.

    Args:
        workers: number of threads; all cores by default.
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
        self._lock = threading.Lock()
        self._lists = 0  # under way
        self._pool: ThreadPoolExecutor | None = None  # while there are any

    def own(self) -> Threads:
        """Return threads for work after the call that an executor was given to.

        The given executor may be shut down by then; a single thread replaces it.
        """
        return self if self._given is None else Threads(1)

    def over(self, offsets: np.ndarray[Any, Any], function: Callable[[int, int], R]) -> list[R]:
        """Call ``function(first, last)`` on ranges of groups and return the results in order.

        Args:
            offsets: int64 [n_groups + 1], CSR offsets of the groups' rows.
            function: called once per range; has to release the GIL to run in parallel.
        """
        ranges = split(offsets, 1 if self.workers == 1 else self.workers * _PIECES_PER_WORKER)
        return self.each([partial(function, a, b) for a, b in ranges])

    def each(self, calls: Sequence[Callable[[], R]]) -> list[R]:
        """Run the calls in parallel and return their results in order.

        Calls start in order. After a failure no further call starts; running ones are awaited, and
        the first error in order is raised, but exceptions such as KeyboardInterrupt take
        precedence. Calls may use this executor themselves.
        """
        if len(calls) < 2 or (self.workers == 1 and self._given is None):
            return [call() for call in calls]
        if self._given is None:
            return self._together(calls)
        futures: list[Future[R]] = []
        try:
            futures += (self._given.submit(copy_context().run, call) for call in calls)
            return [future.result() for future in futures]
        finally:
            wait([future for future in futures if not future.cancel()])

    def _together(self, calls: Sequence[Callable[[], R]]) -> list[R]:
        """See :meth:`each`; this thread works, too."""
        futures: list[Future[R]] = [Future() for _ in calls]
        waiting = deque(zip(futures, calls, strict=True))

        def work() -> None:
            while waiting:
                try:
                    future, call = waiting.popleft()
                except IndexError:  # another thread was faster
                    return
                try:
                    if future.set_running_or_notify_cancel():
                        future.set_result(call())
                except BaseException as error:
                    waiting.clear()
                    future.set_exception(error)
                    del future, call  # break the cycle with the error's frames

        pool = self._acquire_pool()
        try:
            try:
                for _ in range(min(self.workers, len(calls)) - 1):
                    pool.submit(copy_context().run, work)
            except RuntimeError:  # the process is ending, or has as many threads as it may
                self._pool = None  # not given back: one that failed to start counts as waiting
            work()
        finally:
            waiting.clear()  # also after an interrupt between two calls
            wait([future for future in futures if not future.cancel()])
            with self._lock:
                self._lists -= 1
                if not self._lists and self._pool is not None:
                    _idle[self.workers].append(self._pool)
                    self._pool = None
        errors = [one.exception() for one in futures if not one.cancelled()]
        failed = [error for error in errors if error is not None]
        if failed:
            try:
                raise next((one for one in failed if not isinstance(one, Exception)), failed[0])
            finally:
                del errors, failed, futures  # the same, and all results
        # One that another thread had taken up but not begun may have been cancelled above.
        return [
            call() if future.cancelled() else future.result()
            for future, call in zip(futures, calls, strict=True)
        ]

    def _acquire_pool(self) -> ThreadPoolExecutor:
        """The threads that help with one more list."""
        with self._lock:
            self._lists += 1
            if self._pool is None:
                try:
                    self._pool = _idle[self.workers].pop()
                except IndexError:
                    self._pool = ThreadPoolExecutor(self.workers - 1, "evalengine")
            return self._pool


def dismiss() -> None:
    """End the threads that no run has; later calls start others."""
    for pools in _idle.values():
        while pools:
            pools.pop().shutdown()


with suppress(AttributeError):  # absent if processes cannot fork
    os.register_at_fork(after_in_child=_idle.clear)  # children have none of their parent's threads


# Pools that run stages over files: serially, in local processes, or on Dask.

ATTEMPTS = 8  # workers that may die over one call while no other call finishes
Call = tuple[Any, ...]


class Losses:
    """Workers that died since a call last finished.

    Any number of workers may die as long as calls finish in between.

    Args:
        executor: name of the pool, for the error.
        least: deaths over any calls after which the run is given up, if more than ``ATTEMPTS``.
    """

    def __init__(self, executor: str, least: int) -> None:
        self._executor, self._most = executor, max(ATTEMPTS, least)
        self._of: Counter[int] = Counter()

    def finished(self) -> None:
        """Forget all deaths: a call finished."""
        self._of.clear()

    def lost(
        self, call: int, last: str, times: int = 1, options: str = "", status: int | None = None
    ) -> None:
        """Count deaths over one call.

        Args:
            call: number of the call; -1 for a worker that died before it had one.
            last: the worker that died, or how it died.
            options: that need less memory.
            status: exit code of the worker.

        Raises:
            ExecutorError: the call or all calls make no progress.
        """
        self._of[call] += times
        count = self._of.total()
        if self._of[call] < ATTEMPTS and count < self._most:
            return
        raise ExecutorError(
            f"executor {self._executor!r}: {count} workers died in a row and no bucket was finished"
            f" in between. The last: {last.rstrip('.')}. If memory ran out, lower {options}.",
            code="workers_died",
            count=count,
            status=status,
        )


class Pool(Protocol):
    """Runner of stages.

    Attributes:
        apart: whether stages run outside this process.
        reads_tables: whether they may be able to read the same tables.
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
            ExecutorError: workers cannot be reached or started, or died in a row without progress.
        """
        ...

    def refusal(self, function: Callable[..., None], call: Call) -> str:
        """Call a function once on every worker; return the first worker and its error.

        Returns:
            empty if all succeeded, or if workers are processes of this machine.
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
        result = []
        for call in calls:
            result.append(caught(function, call))
            one_done()
        return result

    def refusal(self, function: Callable[..., None], call: Call) -> str:
        """Skip: there are no workers."""
        return ""

    def prepare(self, function: Callable[..., None]) -> None:
        """Skip: there are no workers."""

    def close(self) -> None:
        """Skip: there are no workers."""


def error_of(function: Callable[..., None], call: Call) -> str:
    """Run a call and return its error as text; empty if there is none.

    Raises:
        ExecutorError: this worker cannot work on the run.
    """
    try:
        function(*call)
    except ExecutorError:
        raise
    except Exception as error:
        return str(error) or type(error).__name__
    return ""


def caught(function: Callable[..., None], call: Call) -> BaseException | None:
    """Run a call and return its input error (ValueError), or None; other errors are raised."""
    try:
        function(*call)
    except ValueError as error:
        return error
    return None
