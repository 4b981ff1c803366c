"""Progress reporting.

The caller sets the listener with :func:`heard`. Code at any depth counts with :func:`counting`;
without a listener that costs one comparison. A step is a string, so that a callable that takes
names of steps suffices.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

Progress = Callable[[str], None]
P = ParamSpec("P")
R = TypeVar("R")

_EVERY = 0.1
"""Seconds between two tellings of one step."""


class Step(str):
    """Current step of the work.

    Attributes:
        unit: plural noun, such as ``buckets``.
    """

    done: int
    total: int
    unit: str

    def __new__(cls, name: str, done: int, total: int, unit: str) -> Step:
        step = super().__new__(cls, name)
        step.done, step.total, step.unit = done, total, unit
        return step


class _Counter:
    """Counter of the finished work of a step, from any thread."""

    def __init__(self, tell: Progress, name: str, total: int, unit: str) -> None:
        self._tell, self._name, self._total, self._unit = tell, name, total, unit
        self._lock = threading.Lock()
        self._done, self._reported = 0, 0.0

    def add(self, n: int = 1) -> None:
        with self._lock:
            self._done += n
            now = time.monotonic()
            if now - self._reported < _EVERY and self._done < self._total:
                return
            self._reported = now
            self._tell(Step(self._name, self._done, self._total, self._unit))


_listener: ContextVar[Progress | None] = ContextVar("listener", default=None)
_counter: ContextVar[_Counter | None] = ContextVar("counter", default=None)


def reports_progress(function: Callable[P, R]) -> Callable[P, R]:
    """A call whose ``progress`` argument hears of all steps within it; ``True`` shows them.

    A listener may score: its own runs neither report to it nor count for the run it listens to.
    """

    @functools.wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> R:
        tell: Any = named.get("progress")
        if tell is True:
            with show_progress() as line:
                named["progress"] = line
                return call(*args, **named)
        if not tell:
            named.pop("progress", None)
            return function(*args, **named)
        mark = _listener.set(_detached(tell))
        try:
            return function(*args, **named)
        finally:
            _listener.reset(mark)

    return call


def _detached(tell: Progress) -> Progress:
    """Return a listener that is called outside of the run: see :func:`heard`."""

    def call(step: str) -> None:
        listener, counter = _listener.set(None), _counter.set(None)
        try:
            tell(step)
        finally:
            _counter.reset(counter)
            _listener.reset(listener)

    return call


@contextmanager
def counting(name: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """Count a step.

    Yields:
        a function that takes the number of newly finished units, callable from any thread.
    """
    tell = _listener.get()
    if tell is None:
        yield _nothing
        return
    counter = _Counter(tell, name, total, unit)
    tell(Step(name, 0, total, unit))
    mark = _counter.set(counter)
    try:
        yield counter.add
    finally:
        _counter.reset(mark)


def one_done() -> None:
    """One more is done of the step that is counted, if any is."""
    counter = _counter.get()
    if counter is not None:
        counter.add()


def _nothing(n: int = 1) -> None:
    """Discard all calls."""


def step(name: str) -> None:
    """Report that a step begins."""
    tell = _listener.get()
    if tell is not None:
        tell(name)


@contextmanager
def show_progress(stream: Any = None) -> Iterator[Progress]:
    """Show a progress line: step, share, elapsed and remaining time.

    On a terminal a line of standard error; in a notebook below the cell. Removed at the end.

    Args:
        stream: by default standard error.

    Yields:
        the listener for steps.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    console = Console(stderr=stream is None, file=stream, highlight=False)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}"),
        TimeRemainingColumn(),
    )
    plain, counted = columns[:3], columns
    with Bar(*plain, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=None, unit="")
        last = ""

        def tell(step: str) -> None:
            nonlocal last
            if step == "matching":
                from .kernels.folder import is_compiled

                if not is_compiled():
                    console.print("compiling kernels once (up to 20 seconds) ...", style="dim")
            is_counted = isinstance(step, Step)
            if step != last:
                progress.columns = counted if is_counted else plain
                progress.reset(task, description=str(step), total=None, unit="")
                last = str(step)
            if isinstance(step, Step):
                progress.update(task, completed=step.done, total=step.total, unit=step.unit)

        yield tell


@contextmanager
def reminded(tell: Progress, every: float = 30.0) -> Iterator[Progress]:
    """Report each step once, and again every 30 s that it lasts, for logs.

    Args:
        every: seconds.

    Yields:
        the listener for steps.
    """
    lock = threading.Lock()
    ended = threading.Event()
    at, since, last = "", time.monotonic(), None

    def hear(step: str) -> None:
        nonlocal at, since, last
        with lock:
            last = step
            if step == at:
                return
            at, since = str(step), time.monotonic()
        tell(at)

    def remind() -> None:
        while not ended.wait(every):
            with lock:
                step, seconds = last, time.monotonic() - since
            if step is None or seconds < every / 2:
                continue
            far = f", {step.done:,} of {step.total:,} {step.unit}" if isinstance(step, Step) else ""
            tell(f"{step}{far}, for {seconds:.0f} s")

    thread = threading.Thread(target=remind, name="reminder", daemon=True)
    thread.start()
    try:
        yield hear
    finally:
        ended.set()
        thread.join()
