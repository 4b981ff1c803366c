"""The folder where compiled kernels are kept.

Numba's own disk cache sits beside the source and does not notice that a function in *another*
file changed. Here the folder's name holds a hash of every file in this package and the versions of
Numba, llvmlite and NumPy, so a change anywhere means a fresh folder. A folder that is read-only, as
in an image that was warmed up, is used as it is. What is in it is run: a folder or file that
somebody else may have written is not used.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import stat
import sys
import tempfile
from contextlib import suppress
from functools import cache, partial
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
    roots = []
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        roots.append(Path(named))
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        roots.append(Path(base) / "evalengine")
    home = os.path.expanduser("~")
    if home not in ("~", "/"):
        roots.append(Path(home) / ".cache" / "evalengine")
    own = f"evalengine-{os.geteuid()}" if hasattr(os, "geteuid") else "evalengine-user"
    roots.append(Path(tempfile.gettempdir()) / own)
    return roots


def distrusted(path: Path) -> str | None:
    """Why code is not taken from a file or folder: somebody else may choose what it is.

    Trusted is what belongs to this user or to root, may be written by nobody else, and lies in
    folders in which nobody else may put something into its place.

    Args:
        path: of a file or folder that exists.

    Returns:
        what is wrong, after the path's name; None where nothing is.

    Raises:
        OSError: it cannot be looked at.
    """
    return _distrusted(path.resolve(strict=True))


def _distrusted(real: Path, *, new: bool = False) -> str | None:
    """What is wrong with a path without links; see :func:`distrusted`.

    Args:
        real: of a file or folder that exists.
        new: whether it is a folder in which another one is going to be made.

    Raises:
        OSError: it cannot be looked at.
    """
    if not hasattr(os, "geteuid"):
        return None  # a system whose folders are the user's own
    for place in (real, *real.parents):
        told = place.lstat()
        shown = "it" if place == real and not new else str(place)
        if stat.S_ISLNK(told.st_mode):
            return f"{shown} became a link meanwhile"
        if told.st_uid not in (os.geteuid(), 0):
            return f"{shown} belongs to another user"
        others = told.st_mode & stat.S_IWOTH or (
            told.st_mode & stat.S_IWGRP and not own_group(told)
        )
        # Of a sticky folder, as of temporary files, others can replace nothing that is not theirs.
        if others and ((place == real and not new) or not told.st_mode & stat.S_ISVTX):
            return f"others may write to {shown}"
    return None


def own_group(told: os.stat_result) -> bool:
    """Whether only this user's own group may write, as where every user has one of the same name.

    Args:
        told: of a file or folder.
    """
    if told.st_mode & stat.S_IWOTH:
        return False
    try:
        import grp
        import pwd

        found, user = grp.getgrgid(told.st_gid), pwd.getpwuid(os.geteuid())
    except (ImportError, KeyError):
        return False
    return (
        found.gr_gid == user.pw_gid
        and found.gr_name == user.pw_name
        and ({*found.gr_mem} <= {user.pw_name})
    )


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
        # Whatever the process's mask leaves to others, this is written by its user alone.
        with open(draft, "xb", opener=partial(os.open, mode=0o644)) as file:
            file.write(hashlib.sha256(data).digest() + data)
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def read_whole(path: Path) -> bytes:
    """What was put into a file. What cannot be used although it is there is said, once a process.

    Raises:
        OSError: it cannot be read, or somebody else may have written it.
        Damaged: it is not what was written.
    """
    why = distrusted(path)
    if why is not None:
        _say_unused(path, why)
        raise OSError(f"{path}: {why}")
    found = path.read_bytes()
    data = found[_CHECKSUM:]
    if hashlib.sha256(data).digest() != found[:_CHECKSUM]:
        _say_unused(path, "it was altered or cut short")
        raise Damaged(path.name)
    return data


_said: list[Path] = []
"""The file that was said not to be used, if any was."""


def _say_unused(path: Path, why: str) -> None:
    if _said:
        return
    _said.append(path)
    _say(
        f"compiled code in {path.parent} that is not as it was written is compiled again:"
        f" {path.name} ({why})"
    )


@cache
def cache_folder() -> Path | None:
    """The folder for compiled kernels, or None where there is none to be trusted.

    ``EVALENGINE_CACHE_DIR`` names its parent; otherwise, or where that is not to be trusted, it is
    in the user's cache folder, or in a folder of the user's among temporary files. One that is
    there already need not be writable: what it holds is used, and more is not kept. In a place that
    is not to be trusted nothing is made. Every such place is said once, on standard error, and so
    is a folder that was named and cannot be written; others of that kind only if none is left.

    Returns:
        a path without links, so that nothing changes for who turns one afterwards.
    """
    name = f"kernels-{_source_digest()}"
    wrong: list[str] = []
    told: list[str] = []
    for root in _candidates():
        named = bool(os.environ.get(CACHE_VARIABLE)) and not wrong
        distrust = True
        try:
            folder = root.resolve() / name
            why = _made(folder)
            if why is None:
                folder = folder.resolve(strict=True)
                why = _distrusted(folder)
            if why is None and not folder.is_dir():
                why, distrust = "it is no folder", False
            if why is None and not os.access(folder, os.W_OK) and not any(folder.iterdir()):
                why, distrust = "it is empty and cannot be written", False
        except (OSError, RuntimeError) as error:  # the latter of links in a ring, in older Pythons
            why, distrust = getattr(error, "strerror", None) or str(error), False
        if why is None:
            if told:
                _say(f"compiled kernels are not kept in {'; '.join(told)}; they are in {folder}")
            return folder
        wrong.append(f"{root} ({why})")
        if distrust or named:
            told.append(wrong[-1])
    _say(
        "compiled kernels cannot be kept, and every process compiles them for some seconds:"
        f" {'; '.join(wrong)}. {CACHE_VARIABLE} names a folder of your own"
    )
    return None


def _made(folder: Path) -> str | None:
    """Make a folder and those above it, if all that is there already can be trusted.

    Args:
        folder: a path without links.

    Returns:
        why nothing was made; None where the folder is there.

    Raises:
        OSError: it cannot be made.
    """
    missing = [place for place in (folder, *folder.parents) if not os.path.lexists(place)]
    why = _distrusted(missing[-1].parent, new=True) if missing else None
    for place in reversed(missing if why is None else []):
        place.mkdir(mode=0o755, exist_ok=True)
    return why


def _say(what: str) -> None:
    logging.getLogger("evalengine").warning("note: %s.", what)


def is_compiled() -> bool:
    """Whether some kernel of this very source was compiled and kept before."""
    folder = cache_folder()
    return folder is not None and any(folder.rglob("*.nbi"))
