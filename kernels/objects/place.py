"""Where compiled kernels are kept, and whether this process may run them without Numba."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .entry import (
    ALIGNED,
    C_CONTIGUOUS,
    DATA,
    DESCR,
    DIMENSIONS,
    FLAGS,
    NDIM,
    STRIDES,
    WRITEABLE,
)

NUMBA_VARIABLE = "EVALENGINE_NUMBA"
"""Set to anything but 0 or nothing, every kernel is run by Numba."""
_DESCRIBED = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags")


def _processor_lines() -> set[tuple[str, str]] | None:
    """What Linux says of its processors' kinds; None where it does not."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    told = set()
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in _DESCRIBED:
            told.add((name.strip(), value.strip()))
    return told if {"flags", "model"} <= {name for name, _ in told} else None


@cache
def processor() -> str | None:
    """What tells this kind of processor from others, all its instructions among it.

    None on machines for which no code is kept but by Numba: all but Linux on x86-64.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64" or sys.byteorder != "little":
        return None
    if sys.implementation.name != "cpython" or sys.maxsize != (1 << 63) - 1:
        return None
    told = _processor_lines()
    return None if told is None else hashlib.sha256(repr(sorted(told)).encode()).hexdigest()[:24]


_HARMLESS = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER", "NUMBA_WARNINGS"}
"""Variables that change nothing of kernels on one thread that are kept in a folder of our own."""


def _numba_told() -> bool:
    """Whether Numba was told something that could change what it compiles or runs."""
    numba: Any = sys.modules.get("numba")
    config = getattr(numba, "config", None)
    return (
        any(name.startswith("NUMBA_") and name not in _HARMLESS for name in os.environ)
        or os.path.exists(".numba_config.yaml")
        or bool(getattr(config, "DISABLE_JIT", False))
    )


def _arrays_as_known() -> bool:
    """Whether an array lies in memory as compiled code takes it to lie."""
    if object.__basicsize__ != DATA or np.ndarray.__basicsize__ < FLAGS + 4:
        return False
    probe = np.zeros((3, 5), np.int32)

    def pointer(offset: int) -> int:
        return ctypes.c_uint64.from_address(id(probe) + offset).value

    def number(offset: int) -> int:
        return ctypes.c_int32.from_address(id(probe) + offset).value

    def pair(offset: int) -> tuple[int, ...]:
        return tuple((ctypes.c_int64 * 2).from_address(pointer(offset)))

    return (
        pointer(DATA) == probe.__array_interface__["data"][0]
        and number(NDIM) == 2
        and pointer(DESCR) == id(np.dtype("int32"))
        and number(FLAGS) == probe.flags.num
        and probe.flags.num & ~0x4 == C_CONTIGUOUS | ALIGNED | WRITEABLE
        and pair(DIMENSIONS) == probe.shape
        and pair(STRIDES) == probe.strides
    )


@cache
def allowed() -> bool:
    """Whether this process may write and run such files; asked once."""
    return (
        os.environ.get(NUMBA_VARIABLE, "0") in ("", "0")
        and processor() is not None
        and not _numba_told()
        and _arrays_as_known()
    )


def folder_of(kernel: str, folder: Path) -> Path:
    """The folder of a kernel's files for this kind of processor.

    Args:
        kernel: module and name of the function.
        folder: of all compiled kernels.
    """
    return folder / f"code-{processor()}" / kernel
