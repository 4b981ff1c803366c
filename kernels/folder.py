"""The folder where compiled kernels are kept.

Numba's own disk cache sits beside the source and does not notice that a function in *another*
file changed. Here the folder's name holds a hash of every file in this package and the versions of
Numba, llvmlite and NumPy, so a change anywhere means a fresh folder. Where no folder can be
written, kernels are compiled in each process and nothing is said about it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import sys
import tempfile
from contextlib import suppress
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
    temporary = _own_temporary()
    if temporary is not None:
        roots.append(temporary)
    return [root / "evalengine" for root in roots]


def _own_temporary() -> Path | None:
    """A folder for this user alone among everybody's temporary files; None where it is not ours.

    What is in it is run: whoever makes such a folder first must not choose that.
    """
    base = Path(tempfile.gettempdir())
    if not hasattr(os, "geteuid"):
        return base / "evalengine-user"  # a system whose temporary folder is the user's own
    folder = base / f"evalengine-{os.geteuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        told = folder.lstat()
    except OSError:
        return None
    ours = stat.S_ISDIR(told.st_mode) and told.st_uid == os.geteuid()
    return folder if ours and not told.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else None


class Damaged(Exception):
    """A file whose checksum does not hold."""


_CHECKSUM = hashlib.sha256().digest_size


def put_whole(path: Path, data: bytes) -> None:
    """Write a file with a checksum, whole or not at all, for all who may read this user's files.

    Raises:
        OSError: it cannot be written.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.draft")
    try:
        with open(draft, "xb") as file:
            file.write(hashlib.sha256(data).digest() + data)
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def read_whole(path: Path) -> bytes:
    """What was put into a file.

    Raises:
        OSError: it cannot be read.
        Damaged: it is not what was written.
    """
    found = path.read_bytes()
    data = found[_CHECKSUM:]
    if hashlib.sha256(data).digest() != found[:_CHECKSUM]:
        raise Damaged(path.name)
    return data


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
