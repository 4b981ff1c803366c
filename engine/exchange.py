"""Two names exchanged in one step of the file system, where there is one.

Linux has renameat2(2) with RENAME_EXCHANGE, macOS renamex_np(2) with RENAME_SWAP; neither
is in Python's library. Some file systems lack them: then the caller renames twice.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_RENAME_SWAP = 2


def exchange(one: Path, other: Path) -> bool:
    """Exchange two existing paths of one file system.

    Returns:
        whether it was done; if not, both are as they were.
    """
    if sys.platform == "win32":
        return False
    names = os.fsencode(one), os.fsencode(other)
    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "darwin":
        call = getattr(library, "renamex_np", None)
        return call is not None and call(*names, ctypes.c_uint(_RENAME_SWAP)) == 0
    call = getattr(library, "renameat2", None)
    if call is None:  # an older or another C library
        return False
    flags = ctypes.c_uint(_RENAME_EXCHANGE)
    return bool(call(_AT_FDCWD, names[0], _AT_FDCWD, names[1], flags) == 0)
