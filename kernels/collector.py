"""Python's garbage collector, held back while nothing becomes garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
