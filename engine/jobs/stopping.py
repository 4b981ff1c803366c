"""Signals to end stop a run within seconds, but never while a result is put into its place.

Python runs a signal's handler in the main thread between two of its own instructions, which a long
call into Polars or a kernel would put off: so the work is done by another thread while the main one
waits, and is left behind when the process ends.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")


class Stopped(BaseException):
    """The process was told to end.

    Attributes:
        signal: by which signal; shells see the status 128 + signal.
    """

    def __init__(self, number: int) -> None:
        self.signal = number
        super().__init__(signal.Signals(number).name)


class _State:
    """Signals of this process, as far as a run looks at them."""

    held = 0
    pending: int | None = None


def _handle(number: int, frame: FrameType | None) -> None:
    if _State.held:
        _State.pending = number
    else:
        raise Stopped(number)


@contextmanager
def stoppable() -> Iterator[None]:
    """While this lasts, signals to end raise :class:`Stopped`, if this is the main thread.

    They are SIGTERM, SIGINT, and SIGHUP unless it is ignored, as below ``nohup``.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [signal.SIGTERM, signal.SIGINT]
    hangup = getattr(signal, "SIGHUP", None)  # of POSIX alone
    if hangup is not None and signal.getsignal(hangup) != signal.SIG_IGN:
        numbers.append(hangup)
    before: dict[int, Any] = {number: signal.signal(number, _handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held() -> Iterator[None]:
    """What is done here is done to its end; a signal that came meanwhile is heeded after it."""
    _State.held += 1
    try:
        yield
    finally:
        _State.held -= 1
        if not _State.held and _State.pending is not None:
            number, _State.pending = _State.pending, None
            raise Stopped(number)


def aside(work: Callable[[threading.Event], T]) -> T:
    """Do work in a thread of its own and wait for it.

    Args:
        work: called with an event that is set once nobody waits any more.

    Returns:
        what it returns; what it raises is raised here.
    """
    left = threading.Event()
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work(left))
        except BaseException as error:  # raised again by who waits
            failed.append(error)

    # A daemon: the process may end while it is at work.
    thread = threading.Thread(
        target=copy_context().run, args=(run,), name="evalengine job", daemon=True
    )
    try:
        thread.start()
        thread.join()
    except BaseException:
        left.set()
        raise
    if failed:
        raise failed[0]
    return done[0]
