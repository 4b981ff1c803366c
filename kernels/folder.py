"""Folder of compiled kernels: its location, trusted files, and loading from it."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import pickle
import secrets
import stat
import sys
import tempfile
from contextlib import suppress
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from . import uncollected

# Numba's own cache misses changes in functions of other files. Here the folder's name is a hash of
# all files of this package and of the versions of Numba, llvmlite and NumPy. A read-only folder (of
# a prepared image) works. Its content is executed, so files that others may have written are not
# used.

CACHE_VARIABLE = "EVALENGINE_CACHE_DIR"


def _compiler() -> str:
    versions = []
    for name in ("numba", "llvmlite"):
        spec = find_spec(name)
        file = None if spec is None or spec.origin is None else Path(spec.origin)
        try:
            if file is None:
                raise FileNotFoundError(name)
            versions.append(hashlib.sha256(file.with_name("_version.py").read_bytes()).hexdigest())
        except OSError:  # imported from somewhere else than a folder
            versions.append(__import__(name).__version__)
    return " ".join(versions)


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
    user_folder = f"evalengine-{os.geteuid()}" if hasattr(os, "geteuid") else "evalengine-user"
    roots.append(Path(tempfile.gettempdir()) / user_folder)
    return roots


def distrusted(path: Path) -> str | None:
    """Reason not to load code from a file or folder: another user may have chosen its content.

    Trusted paths belong to this user or root, are writable by no one else, and are inside folders
    in which no one else can replace them.

    Returns:
        the fault, after the path's name; None if the path is trusted.

    Raises:
        OSError: it cannot be read.
    """
    return _distrusted(path.resolve(strict=True))


def _distrusted(real: Path, *, new: bool = False) -> str | None:
    """Reason to distrust a path without links; see :func:`distrusted`.

    Args:
        real: an existing file or folder.
        new: it is a folder in which a new folder will be made.
    """
    if not hasattr(os, "geteuid"):
        return None  # a system whose folders are the user's own
    for place in (real, *real.parents):
        status = place.lstat()
        named = "it" if place == real and not new else str(place)
        if stat.S_ISLNK(status.st_mode):
            return f"{named} became a link meanwhile"
        if status.st_uid not in (os.geteuid(), 0):
            return f"{named} belongs to another user"
        others = status.st_mode & stat.S_IWOTH or (
            status.st_mode & stat.S_IWGRP and not own_group(status)
        )
        # In a sticky folder such as /tmp, users can replace only their own files.
        if others and ((place == real and not new) or not status.st_mode & stat.S_ISVTX):
            return f"others may write to {named}"
    return None


def own_group(status: os.stat_result) -> bool:
    """Check that only the user's private group may write."""
    if status.st_mode & stat.S_IWOTH:
        return False
    try:
        import grp
        import pwd

        group, user = grp.getgrgid(status.st_gid), pwd.getpwuid(os.geteuid())
    except (ImportError, KeyError):
        return False
    return (
        group.gr_gid == user.pw_gid
        and group.gr_name == user.pw_name
        and ({*group.gr_mem} <= {user.pw_name})
    )


class Damaged(Exception):
    """A file with a wrong checksum."""


_CHECKSUM = hashlib.sha256().digest_size


def put_whole(path: Path, data: bytes) -> None:
    """Write a file and its checksum atomically, readable by all who may read this user's files.

    Raises:
        OSError: it cannot be written.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.draft")
    try:
        # Only the user may write the file, whatever the process's mask permits.
        with open(draft, "xb", opener=partial(os.open, mode=0o644)) as file:
            file.write(hashlib.sha256(data).digest() + data)
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def read_whole(path: Path) -> bytes:
    """Read a file written by :func:`put_whole`. An unusable one is reported, once per process.

    Raises:
        OSError: it cannot be read, or another user may have written it.
        Damaged: the checksum is wrong.
    """
    why = distrusted(path)
    if why is not None:
        _say_unused(path, why)
        raise OSError(f"{path}: {why}")
    content = path.read_bytes()
    data = content[_CHECKSUM:]
    if hashlib.sha256(data).digest() != content[:_CHECKSUM]:
        _say_unused(path, "it was altered or cut short")
        raise Damaged(path.name)
    return data


_reported: list[Path] = []
"""File that was reported as unusable, if any."""


def _say_unused(path: Path, why: str) -> None:
    if _reported:
        return
    _reported.append(path)
    _say(
        f"compiled code in {path.parent} that is not as it was written is compiled again:"
        f" {path.name} ({why})"
    )


@cache
def cache_folder() -> Path | None:
    """Folder for compiled kernels, without links; None if no trusted folder exists.

    ``EVALENGINE_CACHE_DIR`` names its parent. Otherwise, or if that one is not trusted, the folder
    is in the user's cache folder, or in a folder of the user in the temporary directory. An
    existing folder need not be writable: its files are used, and none are added. Untrusted folders
    and a named folder that is not writable are reported once, on standard error; other folders only
    if none remains.
    """
    name = f"kernels-{_source_digest()}"
    wrong: list[str] = []
    reasons: list[str] = []
    for root in _candidates():
        named = bool(os.environ.get(CACHE_VARIABLE)) and not wrong
        distrust = True
        try:
            folder = root.resolve() / name
            why = _make_folder(folder)
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
            if reasons:
                _say(f"compiled kernels are not kept in {'; '.join(reasons)}; they are in {folder}")
            return folder
        wrong.append(f"{root} ({why})")
        if distrust or named:
            reasons.append(wrong[-1])
    _say(
        "compiled kernels cannot be kept, and every process compiles them for some seconds:"
        f" {'; '.join(wrong)}. {CACHE_VARIABLE} names a folder of your own"
    )
    return None


def _make_folder(folder: Path) -> str | None:
    """Make a folder and its parents, if all existing parents are trusted.

    Args:
        folder: a path without links.

    Returns:
        reason why the folder was not made; None if it exists.

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
    """Check that a kernel of this source was compiled and stored before."""
    folder = cache_folder()
    return folder is not None and any(folder.rglob("*.nbi"))


# Load compiled kernels without the imports, the runtime and the extensions that Numba prepares for
# compiling, which take as long as importing Numba. Compiled code needs only the runtime, which is
# cached too. This uses private parts of Numba: if one is missing, Numba's usual way is used.

PARTS_OF_DISPATCHER = ("_cache", "_compilation_chain_init_hook")
_PARTS_OF_CACHE = (
    "load_overload",
    "_load_overload",
    "save_overload",
    "_index_key",
    "_guard_against_spurious_io_errors",
)
_PARTS_OF_RUNTIME = ("create_nrt_module", "compile_nrt_functions")
_PARTS_OF_LIBRARY = (
    "enable_object_caching",
    "add_ir_module",
    "finalize",
    "serialize_using_object_code",
)
_PARTS_OF_FILES = ("load", "save", "_load_index", "_save_index", "_load_data", "_save_data")
_UNREADABLE = (
    *(OSError, Damaged, EOFError, ValueError, RuntimeError),
    *(pickle.UnpicklingError, AttributeError, ImportError),
)


def no_extensions() -> None:
    """Register no extensions of the compiler, since kernels take only arrays."""


@cache
def light_cache(folder: Path) -> Any:
    """Numba's cache of one function, which loads compiled code without the compiler's modules.

    The compiler imports those itself. None if this version's cache differs.

    Args:
        folder: folder of compiled code; it need not be writable.
    """
    from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

    if not all(hasattr(FunctionCache, part) for part in _PARTS_OF_CACHE) or not all(
        hasattr(IndexDataCacheFile, part) for part in _PARTS_OF_FILES
    ):
        return None

    class Unpickler(pickle.Unpickler):
        """Constants of compiled code, without the import of the module that each is from."""

        def find_class(self, module: str, name: str) -> Any:
            target = super().find_class(module, name)
            return (lambda _, *parts: target("numba", *parts)) if name == "_rebuild_env" else target

    class CheckedFiles(IndexDataCacheFile):  # type: ignore[misc]  # Numba has no types
        """Files with checksums; a damaged one counts as missing and is rewritten.

        Numba would raise unpickling errors in every later run, and altered code could crash the
        process.
        """

        def _load_index(self) -> Any:
            with suppress(*_UNREADABLE):
                version, stamp, overloads = pickle.loads(read_whole(Path(self._index_path)))
                if (version, stamp) == (self._version, self._source_stamp):
                    return overloads
            return {}

        def _save_index(self, overloads: Any) -> None:
            data = self._version, self._source_stamp, overloads
            put_whole(Path(self._index_path), self._dump(data))

        def _load_data(self, name: str) -> Any:
            try:
                return Unpickler(io.BytesIO(read_whole(Path(self._data_path(name))))).load()
            except Damaged as error:
                raise OSError from error  # for which Numba compiles

        def _save_data(self, name: str, data: Any) -> None:
            put_whole(Path(self._data_path(name)), self._dump(data))

    class Place:
        """Location of files: the folder's name identifies sources and versions."""

        def __init__(self, function: Any) -> None:
            self._line = function.__code__.co_firstlineno

        @classmethod
        def from_function(cls, function: Any, file: str) -> Place:
            return cls(function)

        def get_cache_path(self) -> str:
            return str(folder)

        def ensure_cache_path(self) -> None:
            """The folder exists; a failing write shows if it is read-only."""

        def get_source_stamp(self) -> str:
            return folder.name

        def get_disambiguator(self) -> str:
            return str(self._line)

    class Placed(CompileResultCacheImpl):  # type: ignore[misc]  # Numba has no types
        _locator_classes = (Place,)

    class LightCache(FunctionCache):  # type: ignore[misc]  # Numba has no types
        _impl_class = Placed

        def __init__(self, function: Any) -> None:
            super().__init__(function)
            stamp = self._impl.locator.get_source_stamp()
            name = f"{self._impl.filename_base}.checked"  # Numba's own way reads other files
            self._cache_file = CheckedFiles(self._cache_path, name, stamp)

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            start_runtime(target_context, folder)
            with self._guard_against_spurious_io_errors(), uncollected(lasting=True):
                return self._load_overload(sig, target_context)

        def save_overload(self, sig: Any, data: Any) -> None:
            # A full disk, or a folder that is read-only: compiled once more the next time.
            with suppress(OSError):
                super().save_overload(sig, data)

    return LightCache


def start_runtime(context: Any, folder: Path) -> None:
    """Prepare Numba's runtime, from disk if it was compiled before.

    Args:
        context: Numba's target context.
        folder: folder of the compiled runtime.
    """
    from numba.core.codegen import CPUCodeLibrary
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.runtime import nrtdynmod, rtsys

    complete = (
        hasattr(rtsys, "_init")
        and all(hasattr(nrtdynmod, part) for part in _PARTS_OF_RUNTIME)
        and all(hasattr(CPUCodeLibrary, part) for part in _PARTS_OF_LIBRARY)
    )
    with global_compiler_lock:
        if not complete or rtsys._init:
            rtsys.initialize(context)
            return
        compiled = nrtdynmod.compile_nrt_functions
        nrtdynmod.compile_nrt_functions = partial(_runtime, folder)
        try:
            rtsys.initialize(context)
        finally:
            nrtdynmod.compile_nrt_functions = compiled


def runtime_file(context: Any, folder: Path) -> Path:
    """File of the runtime compiled for this kind of processor."""
    machine = repr(context.codegen().magic_tuple()).encode()
    return folder / f"runtime-{hashlib.sha256(machine).hexdigest()[:16]}.bin"


def _runtime(folder: Path, context: Any) -> Any:
    """Library of the runtime's functions, loaded, or compiled and stored."""
    from numba.core.runtime import nrtdynmod

    path = runtime_file(context, folder)
    with suppress(*_UNREADABLE):
        return context.codegen().unserialize_library(pickle.loads(read_whole(path)))
    module, library = nrtdynmod.create_nrt_module(context)
    library.enable_object_caching()
    library.add_ir_module(module)
    library.finalize()
    with suppress(OSError):  # as for kernels
        put_whole(path, pickle.dumps(library.serialize_using_object_code()))
    return library
