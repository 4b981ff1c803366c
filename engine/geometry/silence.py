"""rasterio without its warnings about images that lie nowhere on Earth, in many threads at once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock

_LOCK = Lock()
_open = 0  # how many are within
_filters = ExitStack()


@contextmanager
def silenced() -> Iterator[None]:
    """Ignore what rasterio warns of pictures without coordinates, which are meant to have none.

    Filters of warnings belong to the process: setting one takes it out for a moment where it is set
    already, and whoever is first to put the old ones back would take them from all threads. So the
    first who comes in sets them, the last who goes out puts the old ones back, and nobody between
    touches them.
    """
    global _open
    import rasterio

    with _LOCK:
        if not _open:
            _filters.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
            # rasterio multiplies transforms in a way that newer affine is about to drop.
            warnings.filterwarnings("ignore", category=PendingDeprecationWarning, module="rasterio")
        _open += 1
    try:
        yield
    finally:
        with _LOCK:
            _open -= 1
            if not _open:
                _filters.close()
