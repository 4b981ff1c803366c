"""Thread-safe suppression of rasterio's warnings about missing georeferences."""

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
    """Ignore rasterio's warnings about pictures without coordinates.

    Warning filters are per process: concurrent save and restore would remove them from other
    threads. So the first thread that enters sets them, and the last that exits restores the old
    ones.
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
