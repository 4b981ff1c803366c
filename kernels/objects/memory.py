"""Images put into memory, where the processor can run them; nothing is ever writable and runnable.

An image stays until the process ends: a thread may be inside, and arrays may lie in it.
"""

from __future__ import annotations

import ctypes
import mmap
from functools import cache
from typing import Any

import numpy as np

from .image import Image, Refused, Unusable

MATHEMATICS = ("exp", "log", "log2", "log10", "pow")
"""Functions of the C library's mathematics that kernels may call."""
FUNCTIONS = ("free", "malloc", "memcpy", "memmove", "memset", "PyCapsule_GetPointer", *MATHEMATICS)
"""All functions outside their own code that kernels may call."""
DTYPE = "dtype of "
"""What stands before a dtype's name where the address of NumPy's own object for it is meant."""
DTYPES = ("bool", *(f"{sign}int{8 << k}" for sign in ("", "u") for k in range(4)), "float64")
"""Dtypes of arrays that kernels may take or return."""
MOST_DIMENSIONS = 4
"""Of such arrays."""
SYMBOLS = (*FUNCTIONS, *(DTYPE + kind for kind in DTYPES))
"""All that an image may refer to."""


@cache
def _process() -> Any:
    """The functions of the C library that this process has."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = (
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_long,
    )
    library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    library.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    return library


@cache
def _address(symbol: str) -> int:
    """Where something that images refer to is.

    Raises:
        Refused: this process has none.
    """
    if symbol.startswith(DTYPE):
        return id(np.dtype(symbol.removeprefix(DTYPE)))  # NumPy's own, which it never frees
    try:
        function = getattr(_process(), symbol)
    except AttributeError:
        raise Refused(f"no function {symbol}") from None
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def placed(image: Image) -> tuple[int, int]:
    """Put an image into memory.

    Returns:
        the addresses of its function and of what gives memory back.

    Raises:
        Refused: the system does not allow it, or a function is missing that it refers to.
        Unusable: it refers to what no image does.
    """
    if set(image.symbols) - set(SYMBOLS):
        raise Unusable("it refers to something unknown")
    outside = np.array([_address(name) for name in image.symbols], np.uint64)
    library = _process()
    size = -(-max(1, image.code.size) // mmap.PAGESIZE) * mmap.PAGESIZE
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    base = library.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if base is None or base == ctypes.c_void_p(-1).value:
        raise Refused("no memory for it")
    code = image.code.copy()
    values = image.places[:, 1].astype(np.uint64)  # wraps around, as addresses do
    inside = image.targets < 0
    values[inside] += np.uint64(base)
    values[~inside] += outside[image.targets[~inside]]
    code[image.places[:, :1] + np.arange(8)] = values.view(np.uint8).reshape(-1, 8)
    ctypes.memmove(base, code.ctypes.data, code.size)
    if library.mprotect(base, size, mmap.PROT_READ | mmap.PROT_EXEC):
        library.munmap(base, size)
        raise Refused("the system lets no memory be run that was written")
    return int(base) + image.entry, int(base) + image.release
