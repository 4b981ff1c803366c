"""Compiled kernels: arrays in, arrays out; no dataframe, no option object.

Kernels import NumPy and Numba only. Modules are by theme.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected(*, lasting: bool = False) -> Iterator[None]:
    """Spare the garbage collector many new objects that stay: it does not run meanwhile.

    Args:
        lasting: all objects of the process become old afterwards, so that those of an import, a
            hundred thousand, are not examined twice before that. The caller's recent garbage is
            collected later then: only for what a process does once.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            if lasting and not gc.get_freeze_count():  # objects that a caller froze stay so
                gc.freeze()
                gc.unfreeze()
            gc.enable()
