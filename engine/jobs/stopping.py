"""Termination signals stop a run within seconds, but never while a result is moved into place.

Python runs signal handlers in the main thread between bytecodes, which a long call into Polars or a
kernel would delay. So another thread does the work while the main one waits; it is abandoned when
the process exits.
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
    """Termination of the process by a signal.

    Attributes:
        signal: its number; shells see the status 128 + signal.
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
    """Make termination signals raise :class:`Stopped` within this context, in the main thread.

    These are SIGTERM, SIGINT, and SIGHUP unless it is ignored, as under ``nohup``.
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
    """Defer signals until the end of this context."""
    _State.held += 1
    try:
        yield
    finally:
        _State.held -= 1
        if not _State.held and _State.pending is not None:
            number, _State.pending = _State.pending, None
            raise Stopped(number)


def aside(work: Callable[[threading.Event], T]) -> T:
    """Run work in a separate thread and wait for it.

    Args:
        work: called with an event that is set if the result is no longer needed.

    Returns:
        its result; its exceptions are raised here.
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
