"""Start and end of the command's process."""

from __future__ import annotations

import atexit
import gc
import io
import os
import signal
import sys
import threading
from typing import Any

from . import INTERRUPTED, main
from .base import STATE, OutputRefused

_YOUNG = 50_000  # objects made before the collector looks at the new ones; Python has 700 to 2,000


class _Output(io.FileIO):
    """Standard output or error that survives its reader, if the work is to be finished.

    Raises:
        OutputRefused: standard output cannot be written.
    """

    def write(self, data: Any) -> int | None:  # type: ignore[override]
        try:
            return super().write(data)
        except BrokenPipeError:
            if self.fileno() == 1 and not STATE["finish"]:
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            return len(data)
        except OSError as error:
            if self.fileno() != 1:
                raise
            raise OutputRefused(error.errno, error.strerror) from error


def _replace_streams() -> None:
    """Have standard output and error be :class:`_Output`."""
    for name in ("stdout", "stderr"):
        out = getattr(sys, name)
        if not isinstance(out, io.TextIOWrapper):  # replaced by whoever runs this, or closed
            continue
        raw = _Output(out.fileno(), "w", closefd=False)
        stream = io.TextIOWrapper(
            io.BufferedWriter(raw),
            encoding=out.encoding,
            errors=out.errors,
            line_buffering=out.line_buffering,
        )
        setattr(sys, name, stream)


def command() -> int:
    """Run the command for the process's own arguments; the exit status, if it returns at all."""
    # Imports create half a million objects, all of them live.
    gc.set_threshold(_YOUNG, 10, 10)
    _replace_streams()
    try:
        status = main()
        # From here no handler is active: Python would print a traceback and die by the signal.
        signal.signal(signal.SIGINT, _interrupted)
        leave(status)
    except KeyboardInterrupt:
        _interrupted()
    return status


def _interrupted(*_: object) -> None:
    os._exit(INTERRUPTED)


def leave(status: int) -> None:
    """End the process at once, if only the shutdown of the interpreter remains.

    Freeing all objects of the imported packages takes as long as scoring a small set. Exit handlers
    run and streams are flushed as usual. If anything else is alive (other threads, child processes,
    a debugger or profiler), or a stream cannot be flushed, return and let Python exit normally.
    """
    handlers = getattr(atexit, "_run_exitfuncs", None)
    if "evalengine.executors.pools" in sys.modules:  # not imported only for this
        sys.modules["evalengine.executors.pools"].dismiss()
    if handlers is None or _busy():
        return
    try:
        handlers()
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception:  # Python raises and reports it again at exit
        return
    os._exit(status)


def _busy() -> bool:
    """Return whether the process needs Python's normal exit."""
    if sys.flags.inspect or sys.gettrace() or sys.getprofile() or threading.active_count() > 1:
        return True
    processes = sys.modules.get("multiprocessing")
    return processes is not None and bool(processes.active_children())
