"""Compiled kernels: arrays in, arrays out; no dataframe, no option object.

Kernels import NumPy and Numba only. Modules are by theme.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Spare the garbage collector objects that stay, as those of imports and decoded files do.

    It does not run meanwhile, and regards what exists afterwards as old: otherwise it would examine
    each of a hundred thousand objects twice before that.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            if not gc.get_freeze_count():  # objects that a caller froze stay so
                gc.freeze()
                gc.unfreeze()
            gc.enable()
