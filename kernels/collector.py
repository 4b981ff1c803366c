"""Python's garbage collector, held back while nothing becomes garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def collector_paused() -> Iterator[None]:
    """No collections inside, for imports of large packages.

    They make objects by the hundred thousand and drop none in cycles, so that every collection
    on the way looks at all of them for nothing.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def pause_while_compiling() -> None:
    """Have Numba compile without collections, which took a fifteenth of its time.

    Numba tells of compiling with its lock held, so one listener at a time counts how deep kernels
    that are compiled for others stand. What compiling drops goes with the first collection after.
    """
    from numba.core import event

    class Pause(event.Listener):  # type: ignore[misc]  # Numba has no types
        depth, enabled = 0, False

        def on_start(self, _: Any) -> None:
            if not self.depth:
                self.enabled = gc.isenabled()
                gc.disable()
            self.depth += 1

        def on_end(self, _: Any) -> None:
            self.depth -= 1
            if not self.depth and self.enabled:
                gc.enable()

    event.register("numba:compile", Pause())
