"""Threads that help the one that has work: started once a process, and waiting in between.

The caller takes calls from its own list like every helper, so that a list is finished even where no
helper is free: nested lists and lists of several callers cannot wait for each other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Condition, Lock
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
        self._helped = 0  # calls that helpers have under way
        self._changed = Condition()
        self.results: list[R | None] = [None] * len(calls)
        self.failures: list[tuple[int, BaseException]] = []

    @property
    def left(self) -> bool:
        """Whether nobody has begun some call yet."""
        return self._taken < len(self._calls)

    def work(self, *, helping: bool) -> None:
        """Take and make calls until none is left or one has failed.

        Args:
            helping: whether this is not the thread that has the list. Only calls of helpers are
                counted as under way: no signal comes between them and the end of the count.
        """
        while True:
            with self._changed:
                at = self._taken
                if at >= len(self._calls):
                    return
                self._taken += 1
                self._helped += helping
            try:
                self.results[at] = self._calls[at]()
            except BaseException as error:
                self.failures.append((at, error))
                self.stop()
            finally:
                if helping:
                    with self._changed:
                        self._helped -= 1
                        self._changed.notify_all()

    def stop(self) -> None:
        """Let nobody begin another call."""
        with self._changed:
            self._taken = len(self._calls)

    def wait(self) -> None:
        """Wait for the calls that helpers have under way."""
        with self._changed:
            self._changed.wait_for(lambda: not self._helped)


class Crew:
    """The helpers of one run, who go from list to list while there is one with calls left.

    Args:
        most: how many there may be at a time.
    """

    def __init__(self, most: int) -> None:
        self._free = most
        self._lists: list[_Calls[object]] = []
        self._lock = Lock()

    def each(self, calls: Sequence[Callable[[], R]]) -> list[R]:
        """Make calls in this thread and in as many helpers as are free and of use.

        Args:
            calls: what to call; begun in order.

        Returns:
            the results, in order.

        Raises:
            BaseException: the first error in the order of the calls, once all that had begun are
                done; before any other error what ends a program, as an interrupt does.
        """
        todo = _Calls(calls)
        lists = cast("list[_Calls[R]]", self._lists)
        try:
            with self._lock:
                lists.append(todo)
            for _ in calls[1:]:
                if not self._called():
                    break
            todo.work(helping=False)
        finally:
            todo.stop()  # also after an interrupt between two calls
            with self._lock:
                lists[:] = [one for one in lists if one is not todo]
            todo.wait()
        if todo.failures:
            error = min(todo.failures, key=_rank)[1]
            try:
                raise error
            finally:
                del error, todo  # frames of the error would hold it, and all results
        return cast("list[R]", todo.results)

    def _called(self) -> bool:
        """Have one more helper, if there may be one."""
        global _at_work
        with self._lock:
            if not self._free:
                return False
            self._free -= 1
        with _lock:
            _at_work += 1
        place = [True]
        if _submitted(lambda: self._help(place)):
            return True
        self._give_back(place)
        return False

    def _help(self, place: list[bool]) -> None:
        """Work on the lists that are open until they have no calls left.

        Args:
            place: what a helper holds; empty for a thread that was refused and comes after all.
        """
        try:
            while place and (todo := self._open()) is not None:
                todo.work(helping=True)
        finally:
            self._give_back(place)

    def _open(self) -> _Calls[object] | None:
        """The oldest list with calls left."""
        with self._lock:
            return next((one for one in self._lists if one.left), None)

    def _give_back(self, place: list[bool]) -> None:
        global _at_work
        with suppress(IndexError):
            place.pop()
            with self._lock:
                self._free += 1
            with _lock:
                _at_work -= 1


def _rank(failure: tuple[int, BaseException]) -> tuple[bool, int]:
    at, error = failure
    return isinstance(error, Exception), at


def _submitted(work: Callable[[], None]) -> bool:
    """Have a thread do something; whether there is one."""
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(_MOST, "evalengine")
        try:
            _pool.submit(work)
        except RuntimeError:  # the process is ending, or has as many threads as it may
            return False
    return True


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
