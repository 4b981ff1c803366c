"""Threads that help the one that has work: started once a process, and waiting in between.

The caller takes calls from its own list like every helper, so that a list is finished even where no
helper is free: nested lists and lists of several callers cannot wait for each other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from threading import Lock, Semaphore
from typing import Generic, TypeVar, cast

R = TypeVar("R")

_MOST = 1 << 12  # threads of a process; each is started when no other waits

_lock = Lock()
_pool: ThreadPoolExecutor | None = None
_at_work = 0  # helpers that were asked for and are not done


class _Calls(Generic[R]):
    """A list of calls that several threads take from, in order.

    Attributes:
        results: of the calls that are done, at their places.
        failures: place and error of those that failed.
    """

    def __init__(self, calls: Sequence[Callable[[], R]]) -> None:
        self._calls = calls
        self._taken = 0
        self._lock = Lock()
        self.results: list[R | None] = [None] * len(calls)
        self.failures: list[tuple[int, BaseException]] = []

    def work(self) -> None:
        """Take and make calls until none is left or one has failed."""
        while True:
            with self._lock:
                at = self._taken
                if at >= len(self._calls):
                    return
                self._taken += 1
            try:
                self.results[at] = self._calls[at]()
            except BaseException as error:
                self.failures.append((at, error))
                self.stop()

    def stop(self) -> None:
        """Let nobody begin another call."""
        with self._lock:
            self._taken = len(self._calls)


class _Helper:
    """One place among those that a caller may have, and who has it.

    Args:
        work: what to do.
        free: the places that are left, of which one was taken; given back once.
    """

    def __init__(self, work: Callable[[], None], free: Semaphore) -> None:
        self._work = work
        self._free = free
        self._held = [True]
        self.future: Future[None] | None = None

    def begin(self) -> bool:
        """Ask for a thread; whether there will be one."""
        global _at_work
        with _lock:
            _at_work += 1
        self.future = _submitted(self._help)
        return self.future is not None

    def _help(self) -> None:
        try:
            self._work()
        finally:
            self._give_back()

    def end(self) -> None:
        """Call it off, unless it is at work."""
        if self.future is None or self.future.cancel():
            self._give_back()

    def _give_back(self) -> None:
        global _at_work
        with suppress(IndexError):  # a thread that was refused may come after all
            self._held.pop()
            self._free.release()
            with _lock:
                _at_work -= 1


def shared(calls: Sequence[Callable[[], R]], free: Semaphore) -> list[R]:
    """Make calls in this thread and in as many helpers as are free and of use.

    Args:
        calls: what to call; begun in order.
        free: how many helpers the caller may still have.

    Returns:
        the results, in order.

    Raises:
        BaseException: the first error in the order of the calls, once all that had begun are done.
    """
    todo = _Calls(calls)
    helpers: list[_Helper] = []
    try:
        while len(helpers) < len(calls) - 1 and free.acquire(blocking=False):
            helper = _Helper(todo.work, free)
            helpers.append(helper)
            if not helper.begin():
                break
        todo.work()
    finally:
        todo.stop()  # also after an interrupt between two calls
        for helper in helpers:
            helper.end()
        wait([helper.future for helper in helpers if helper.future is not None])
    if todo.failures:
        error = min(todo.failures, key=_place)[1]
        try:
            raise error
        finally:
            del error, todo, helpers  # frames of the error would hold it, and all results
    return cast("list[R]", todo.results)


def _place(failure: tuple[int, BaseException]) -> int:
    return failure[0]


def _submitted(work: Callable[[], None]) -> Future[None] | None:
    """A helper at work; None where there can be none."""
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(_MOST, "evalengine")
        try:
            return _pool.submit(work)
        except RuntimeError:  # the process is ending, or has as many threads as it may
            return None


def dismiss() -> None:
    """End the helpers, which is waited for if none is at work; later calls start others."""
    global _pool
    with _lock:
        pool, _pool = _pool, None
        idle = _at_work == 0
    if pool is not None:
        pool.shutdown(wait=idle)


def _forget() -> None:
    """A forked process has none of its parent's threads, and perhaps a lock that one had."""
    global _at_work, _lock, _pool
    _at_work, _lock, _pool = 0, Lock(), None


with suppress(AttributeError):  # where processes cannot fork
    os.register_at_fork(after_in_child=_forget)
