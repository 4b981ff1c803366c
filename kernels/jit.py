"""The one decorator that every kernel wears, and where compiled code is kept.

Numba's own disk cache sits beside the source and does not notice that a function in *another*
file changed. Here the cache folder's name holds a hash of every file in this package and the
versions of Numba and NumPy, so a change anywhere means a fresh folder. Where no folder can be
written, kernels are compiled in each process and nothing is said about it.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

CACHE_VARIABLE = "EVALENGINE_CACHE_DIR"


def _source_digest() -> str:
    """First 16 hex digits of a hash over kernels/*.py and the compiler's versions."""
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__} {sys.version}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _candidates() -> list[Path]:
    """Folders to try for compiled code, best first."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return [Path(named)]
    base = os.environ.get("XDG_CACHE_HOME")
    roots = [Path(base)] if base else []
    home = os.path.expanduser("~")
    if home not in ("~", "/"):
        roots.append(Path(home) / ".cache")
    user = os.getuid() if hasattr(os, "getuid") else "user"
    roots.append(Path(tempfile.gettempdir()) / f"evalengine-{user}")
    return [root / "evalengine" for root in roots]


def cache_folder() -> Path | None:
    """The writable folder for compiled kernels, or None where there is none.

    ``EVALENGINE_CACHE_DIR`` names its parent; otherwise the user's cache folder, then the
    temporary folder, is tried.
    """
    digest = _source_digest()
    for root in _candidates():
        folder = root / f"kernels-{digest}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError:
            continue
    return None


CACHE_FOLDER = cache_folder()


def is_compiled() -> bool:
    """Whether some kernel of this very source was compiled and kept before."""
    return CACHE_FOLDER is not None and any(CACHE_FOLDER.rglob("*.nbi"))


def _compiled(function: Callable[..., Any], **flags: bool) -> Any:
    """Numba's decorator with the options and the cache folder that all kernels share."""
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(CACHE_FOLDER) if CACHE_FOLDER else ""
    try:
        compiled = numba.njit(
            nogil=True, cache=CACHE_FOLDER is not None, error_model="numpy", **flags
        )(function)
    finally:
        numba.config.CACHE_DIR = previous
    return compiled


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function in nopython mode, releasing the GIL, cached on disk where possible.

    Read-only arrays (Arrow buffers, memory maps) are accepted. Numba would compile once more for
    each combination of writable and read-only arguments, so wrappers pass their inputs through
    :func:`frozen`, which makes them all read-only.
    """
    return _compiled(function)


def inner(function: Callable[..., Any]) -> Any:
    """Compile a function that only kernels call: no entry from Python, so it compiles faster."""
    return _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def frozen(array: Any, dtype: type[np.generic] | np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The array as a C-contiguous read-only one of the given dtype, copied only if it must be.

    Args:
        array: any array-like.
        dtype: the dtype the kernel is compiled for.
    """
    view = np.ascontiguousarray(array, dtype=dtype)
    if view.flags.writeable:
        view = view.view()
        view.flags.writeable = False
    return view
