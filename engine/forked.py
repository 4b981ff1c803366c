"""Signals that end this process, and forks of it while Polars has threads.

A fork copies the memory but only one thread. Polars would hand work to threads that no longer exist
and wait forever. They cannot be restarted, so a child that was forked too late is refused. Forks
are detected from ``import evalengine`` on.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Raise SystemExit on SIGTERM and SIGHUP within this context, so that temporary files are
    deleted as after Ctrl-C. Slurm, Kubernetes and ``timeout`` send these signals.

    Signals that the program handles itself are unaffected, and all are outside the main thread.
    """

    def ended(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_IGN)  # a second one would interrupt the cleaning
        raise SystemExit(128 + number)

    numbers = [getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")]
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    mine = [one for one in numbers if one and signal.getsignal(one) == signal.SIG_DFL]
    for number in mine:
        signal.signal(number, ended)
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)


_THREADS = ("polars-", "async-executor", "tokio-rt-worker")
"""Prefixes of the system names (15 bytes) of Polars' worker threads. Another library with the same
runtime (tokio) is indistinguishable.
"""
_IDLE = ("polars-ooc",)
"""Threads that importing Polars starts, on which no work depends."""
_TASKS = "/proc/self/task"
_NAMED_WITHIN = 0.2  # seconds; a thread has the name of its process until it gives itself one

_plain: set[str] = set()
"""Threads that were seen to keep the name of the process, as those of other libraries do."""

_read = False
"""True once this process has read or computed anything; used if threads cannot be listed."""
_threads_at_fork = False
_cut_off = False
"""True if this process, or an ancestor, was forked while Polars had threads."""


def refuse_cut_off() -> None:
    """Raise before Polars is given work for threads that do not exist after a fork.

    Raises:
        ExecutorError: this process was forked from one in which Polars had threads.
    """
    global _read
    if _cut_off:
        from .schemas.errors import ExecutorError

        raise ExecutorError(
            f"process {os.getpid()} was forked from one in which Polars had read a table or"
            " computed: its threads did not come along, and any call would wait for them for ever."
            " Start such processes by spawn (multiprocessing.get_context('spawn')) or 'forkserver',"
            " or fork before the first table is read."
        )
    _read = True


def _has_threads() -> bool:
    """Return whether Polars has worker threads in this process, whoever started them."""
    if "polars" not in sys.modules:
        return False
    until = time.monotonic() + _NAMED_WITHIN
    while True:
        try:
            names = _names()
        except OSError:  # no Linux
            return _read
        if any(name.startswith(_THREADS) and not name.startswith(_IDLE) for name in names.values()):
            return True
        main_name = names.get(str(os.getpid()))
        unnamed = {task for task, name in names.items() if name == main_name} - _plain
        if len(unnamed) <= 1:  # only the main thread
            return False
        if time.monotonic() > until:
            _plain.update(unnamed)
            return False
        time.sleep(0.005)


def _names() -> dict[str, str]:
    """Return the name of every thread of this process, by thread id.

    Raises:
        OSError: the system does not list threads.
    """
    names: dict[str, str] = {}
    for task in os.listdir(_TASKS):
        # Threads may end meanwhile.
        with suppress(OSError), open(f"{_TASKS}/{task}/comm", "rb") as file:
            names[task] = file.read().decode(errors="replace")
    return names


def _before() -> None:
    global _threads_at_fork
    _threads_at_fork = _cut_off or _has_threads()


def _in_child() -> None:
    global _cut_off, _read
    _cut_off, _read = _threads_at_fork, False


with suppress(AttributeError):  # absent if processes cannot fork
    os.register_at_fork(before=_before, after_in_child=_in_child)
