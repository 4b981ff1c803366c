"""The folder where compiled kernels are kept.

Numba's own disk cache sits beside the source and does not notice that a function in *another*
file changed. Here the folder's name holds a hash of every file in this package and the versions of
Numba, llvmlite and NumPy, so a change anywhere means a fresh folder. Where no folder can be
written, kernels are compiled in each process and nothing is said about it.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

CACHE_VARIABLE = "EVALENGINE_CACHE_DIR"


def _compiler() -> str:
    """What tells one version of Numba and llvmlite from another, without importing either."""
    told = []
    for name in ("numba", "llvmlite"):
        spec = find_spec(name)
        file = None if spec is None or spec.origin is None else Path(spec.origin)
        try:
            if file is None:
                raise FileNotFoundError(name)
            told.append(hashlib.sha256(file.with_name("_version.py").read_bytes()).hexdigest())
        except OSError:  # imported from somewhere else than a folder
            told.append(__import__(name).__version__)
    return " ".join(told)


def _source_digest() -> str:
    """First 16 hex digits of a hash over this package's files and the compiler's versions."""
    digest = hashlib.sha256(f"{_compiler()} {np.__version__} {sys.version}".encode())
    package = Path(__file__).parent
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode())
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


@cache
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


def is_compiled() -> bool:
    """Whether some kernel of this very source was compiled and kept before."""
    folder = cache_folder()
    return folder is not None and any(folder.rglob("*.nbi"))
