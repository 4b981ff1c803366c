"""Arrays that are needed for a moment, whose memory goes back to the system with them.

What an allocator frees it may keep: after a large block was given back, glibc takes the next ones
of that size out of its heap, from whose end alone memory returns.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def scratch(size: int, dtype: Any) -> Array:
    """A writable array of zeros, untouched until it is written to.

    Args:
        size: how many values.
        dtype: of each.
    """
    kind = np.dtype(dtype)
    n_bytes = max(1, size * kind.itemsize)
    if hasattr(mmap, "MAP_PRIVATE"):
        room = mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANON)
    else:
        room = mmap.mmap(-1, n_bytes)
    return np.frombuffer(room, kind, size)
