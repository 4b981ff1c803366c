"""Atomic writes and protection of input files."""

from __future__ import annotations

import errno
import functools
import glob
import hashlib
import os
import re
import secrets
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from io import RawIOBase
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

from . import scratch
from .schemas.errors import OptionError, WriteError

# Protection of inputs: an output that would replace a file that was read is refused.
#
# A call records the files that it reads and the outputs that it will write. Readers report their
# files before any work, and are compared with the outputs; writers are compared with the files
# read. Two names of one file (links, other spellings) are the same file.

P = ParamSpec("P")
R = TypeVar("R")
Paths = Iterable[str | os.PathLike[str]]


class _Call:
    """Files that one command or call reads, and the outputs that it will write."""

    def __init__(self, outputs: Mapping[str, str], outer: _Call | None) -> None:
        self.outputs = {path: name for path, name in outputs.items() if os.path.isfile(path)}
        self.outer = outer
        self.read: list[Paths] = []


_call: ContextVar[_Call | None] = ContextVar("evalengine_call", default=None)


@contextmanager
def protecting(
    outputs: Mapping[str, str], given: Iterable[str] = (), *, replaces: bool = False
) -> Iterator[list[Paths]]:
    """Refuse outputs that are inputs, immediately and for all reads within this context.

    Args:
        outputs: path to the name of its option.

    Yields:
        files that were read, as they are reported.

    Raises:
        OptionError: an output is an input, or an address.
    """
    given = [_without_scheme(path) for path in given]
    for output, name in outputs.items():
        refuse_remote(output, name)
        wild = [path for path in given if not os.path.exists(path) and glob.has_magic(path)]
        refuse(output, [*given, *(one for path in wild for one in glob.iglob(path))], name)
        inside = os.path.join(_real(output), "")
        if replaces and any(_real(path).startswith(inside) for path in given):
            raise OptionError(f"{name} {output}: the folder has inputs in it. {_OTHER}")
    call = _Call(outputs, _call.get())
    mark = _call.set(call)
    try:
        yield call.read
    finally:
        _call.reset(mark)


_real = os.path.realpath
_OTHER = "Write another one."


def _without_scheme(path: str) -> str:
    """A path without scheme and without the table of a database."""
    path = os.path.expanduser(path.removeprefix("file://"))
    return path if os.path.exists(path) else path.partition("::")[0]


def reads(paths: Paths) -> None:
    """Report files that are about to be read.

    Raises:
        OptionError: one of them is an output of the call.
    """
    call = _call.get()
    while call is not None:
        call.read.append(paths)
        for output, name in call.outputs.items():
            refuse(output, paths, name)
        call = call.outer


def writes(path: str | os.PathLike[str]) -> None:
    """Report a file that is about to be written.

    Raises:
        OptionError: the call has read it, or it is an address.
    """
    refuse_remote(path)
    call = _call.get()
    if call is not None and os.path.isfile(path):
        while call is not None:
            for paths in call.read:
                refuse(path, paths)
            call = call.outer


_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # also after Path() has removed a slash


def refuse_remote(path: str | os.PathLike[str], name: str = "", way: str = "") -> None:
    """Refuse an address, which would become a local folder of that name.

    Args:
        name: option or field of a job file that has the path.
        way: another remedy, as a sentence.

    Raises:
        OptionError: the path is an address.
    """
    if _ADDRESS.match(os.fspath(path)):
        raise OptionError(
            f"{name} {os.fspath(path)}: this is an address, and results are written to local"
            f" folders. Write a path, and copy the result from there. {way}".strip(),
            code="remote_folder",
            option=name,
        )


def refuse(path: str | os.PathLike[str], files: Paths, name: str = "") -> None:
    """Refuse a path that is one of the files.

    Raises:
        OptionError: the path is one of them.
    """
    exists = os.path.exists(path)
    for file in files:
        try:
            same = os.path.samefile(path, file) if exists else _real(path) == _real(file)
        except (OSError, ValueError):
            continue
        if same:
            also = "" if os.fspath(file) == os.fspath(path) else f" {os.fspath(file)!r}"
            raise OptionError(
                f"{f'{name} ' if name else ''}{os.fspath(path)}: this is the input{also}, and it"
                f" would be replaced. {_OTHER}",
                code="input_overwritten",
                option=name,
            )


_INPUTS = ("predictions", "ground_truths", "datums", "run", "qrels", "data", "references", "cache")
"""Parameters that take paths, folders and globs when they are passed by name."""


def guarding(function: Callable[P, R]) -> Callable[P, R]:
    """Refuse an argument ``out`` that is an input, and list the inputs in the result.

    Positional arguments and those of :data:`_INPUTS` are inputs; other strings only if they name
    files. A result with an attribute ``inputs`` gets the files that were read.
    """

    @functools.wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> R:
        outputs = dict.fromkeys(_listed([named.get("out")]), "out")
        inputs = _listed([*args, *map(named.get, _INPUTS)])
        others = [value for name, value in named.items() if name != "out"]
        inputs += filter(os.path.isfile, _listed(others) if outputs else ())
        with protecting(outputs, inputs) as read:
            result: Any = function(*args, **named)
        if hasattr(result, "inputs"):
            result.inputs = tuple(one for paths in read for one in paths)
        return result

    return call


def _listed(values: Iterable[Any]) -> list[str]:
    """List the paths in values and in lists of them."""
    listed = [
        one for value in values for one in (value if isinstance(value, list | tuple) else [value])
    ]
    return [os.fspath(one) for one in listed if isinstance(one, str | os.PathLike)]


# Atomic writes of files and folders: temporary name, then rename.

NEW, OLD = ".new", ".old"
_LONGEST, _LONGEST_FILE = 200, 220
"""Bytes of a name, beyond which its draft's would be longer than a name may be."""
_DIGITS, _DIGITS_FILE = 8, 4  # of a draft's suffix; half identify the machine


@contextmanager
def whole_file(
    target: str | Path, *, lasting: bool = False, draft: Path | None = None, sweeps: bool = False
) -> Iterator[IO[bytes]]:
    """Open a new file that replaces the target after it is written and closed; removed on any
    error.

    Args:
        lasting: survive a crash of the machine (fsync); not useful for files that end with the run.
            The draft is locked meanwhile, see :func:`is_abandoned`.
        draft: path to write to; by default a unique name next to the target.
        sweeps: remove earlier drafts of the file whose processes were killed.

    Raises:
        OSError: the disk is full or the folder is not writable; the target is unchanged.
        OptionError: the target is an input of the same call.
    """
    target = Path(target)
    if (remote := scratch.writing(target)) is not None:
        with remote as file:
            yield file
        return
    writes(target)
    if sweeps:
        sweep(target.parent, [target.name])
    if draft is None:
        name, more = name_within(target.name, _LONGEST_FILE), secrets.token_hex(_DIGITS_FILE // 2)
        draft = target.with_name(f".{name}.{os.getpid()}.{this_machine()}{more}")
    try:
        with open(draft, "wb") as file:
            if lasting:
                with suppress(OSError):  # locks may be unsupported
                    try_lock(file)
            yield file
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        os.replace(draft, target)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
    if lasting:
        _sync_names(target.parent)


@contextmanager
def written(path: str | Path, *more: type[Exception]) -> Iterator[None]:
    """Raise failures to write, an ``OSError`` or one of ``more``, as a :class:`WriteError`."""
    failures: tuple[type[Exception], ...] = (OSError, *more)
    try:
        yield
    except failures as error:
        why = getattr(error, "strerror", None) or error
        raise WriteError(
            f"cannot write {path}: {why}.", code="write_failed", file=str(path)
        ) from error


def try_lock(file: IO[Any] | RawIOBase) -> bool:
    """Take the lock of an open file; it is released if its owner dies.

    :class:`filelock.FileLock` would open the file itself, but the caller has to check owner and
    permissions.

    Returns:
        False if another process has the lock.

    Raises:
        OSError: the system has no locks.
    """
    from filelock import lock_descriptor  # only few runs lock anything

    return lock_descriptor(file.fileno(), blocking=False)


def this_machine() -> str:
    """Four digits of the machine's name."""
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:4]


_DRAFT = re.compile(rf"\..+\.(\d+)\.([0-9a-f]{{4}})[0-9a-f]{{{_DIGITS_FILE}}}")
_YOUNG = 60.0
"""Seconds in which a draft may not be locked yet."""


def is_abandoned(path: Path) -> bool:
    """Return whether a file is the draft of a ``lasting`` :func:`whole_file` whose process was
    killed.

    The writer of a draft has its lock. For other machines, and without locks, the answer is False.
    """
    match = _DRAFT.fullmatch(path.name)
    if match is None or match[2] != this_machine():
        return False
    try:
        with open(path, "rb") as file:
            old = time.time() - os.fstat(file.fileno()).st_mtime > _YOUNG
            return try_lock(file) and (old or not _alive(int(match[1])))
    except OSError:
        return False


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # another user's
        return True
    return True


def name_within(name: str, bytes_: int) -> str:
    """Return a name, or its hash if it exceeds ``bytes_`` (file names have at most 255 bytes).

    Args:
        bytes_: maximum length, at least 64.
    """
    encoded = os.fsencode(name)
    return name if len(encoded) <= bytes_ else hashlib.sha256(encoded).hexdigest()


def sync(path: Path) -> None:
    """See a file or folder to the disk."""
    # Windows cannot open a folder, and wants write access to flush a file.
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def fresh_name(target: Path) -> Path:
    """Return a new name next to a folder, for building its replacement."""
    ours = f"{os.getpid()}.{this_machine()}{secrets.token_hex(_DIGITS_FILE // 2)}"
    return target.with_name(f"{_drafts_of(target)}{ours}{NEW}")


def _drafts_of(target: Path) -> str:
    """Return the prefix of a folder's draft names, unique per folder."""
    return f".{name_within(target.name, _LONGEST)}."


def _warn(message: str) -> None:
    import logging

    logging.getLogger("evalengine").warning("note: %s.", message)


def swap(fresh: Path, target: Path, tell: Callable[[str], None] = _warn) -> None:
    """Replace a folder by a finished one, in one step if the system supports that.

    Otherwise, briefly, no folder has that name. If the second rename fails, the
    earlier folder is restored; if the process dies there, :func:`mend` restores it.

    Args:
        tell: called with a warning if the swap succeeded but the cleanup did not.

    Raises:
        OSError: the folder could not be renamed; the target is unchanged.
    """
    old = fresh.with_suffix(OLD)
    replaced = target.exists()
    if replaced and exchange(fresh, target):
        old = fresh
    else:
        if replaced:
            target.rename(old)
        try:
            fresh.rename(target)
        except OSError:
            if replaced:
                old.rename(target)
            raise
    try:
        _sync_names(target.parent)
    except OSError as error:
        tell(
            f"{target} is written, but its name in {target.parent} may not be on disk: {error}. A"
            " power failure may restore the earlier state"
        )
    if replaced:
        shutil.rmtree(old, ignore_errors=True)


def _sync_names(folder: Path) -> None:
    """See a folder to the disk, unless its file system sees to folders itself."""
    try:
        sync(folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


def mend(target: Path) -> int:
    """Remove the remains of crashed runs next to a folder that no other process writes to."""
    if not target.parent.is_dir():
        return 0
    ours = re.escape(_drafts_of(target))
    draft = re.compile(rf"{ours}(?:\d+\.)?[0-9a-f]{{{_DIGITS}}}({NEW}|{OLD})")
    left = [
        path
        for path in target.parent.iterdir()
        if draft.fullmatch(path.name) and path.is_dir() and not path.is_symlink()
    ]
    for path in left:
        if path.suffix == OLD and not target.exists():
            path.rename(target)
        else:
            shutil.rmtree(path, ignore_errors=True)
    return len(left)


def sweep(folder: Path, names: Iterable[str]) -> int:
    """Remove drafts of files and folders whose processes were killed; others may be writing.

    Drafts are kept if their process is alive, if it ran on another machine, or if they changed
    within the last minute. An earlier folder that was moved aside is restored if its successor is
    missing.
    """
    owners = {}
    for name in names:
        for longest in (_LONGEST, _LONGEST_FILE):
            owners[f".{name_within(name, longest)}"] = folder / name
    count = 0
    with suppress(OSError):
        for entry in [*os.scandir(folder)]:
            match = _SWEPT.fullmatch(entry.name) if entry.name.startswith(".") else None
            target = None if match is None else owners.get(match["of"])
            if match is None or target is None or match["machine"] != this_machine():
                continue
            if _alive(int(match["process"])) or _changed(entry) > time.time() - _YOUNG:
                continue
            count += 1
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
            elif entry.name.endswith(OLD) and not target.exists():
                os.rename(entry.path, target)
            else:
                shutil.rmtree(entry.path, ignore_errors=True)
    return count


_SWEPT = re.compile(
    rf"(?P<of>\..+)\.(?P<process>\d+)\.(?P<machine>[0-9a-f]{{4}})[0-9a-f]{{{_DIGITS_FILE}}}"
    rf"(?:{re.escape(NEW)}|{re.escape(OLD)})?"
)


def _changed(entry: os.DirEntry[str]) -> float:
    """Seconds of the last change of a file, or of a folder and the files in it."""
    latest = entry.stat(follow_symlinks=False).st_mtime
    inside = os.scandir(entry.path) if entry.is_dir(follow_symlinks=False) else ()
    return max([latest, *(one.stat(follow_symlinks=False).st_mtime for one in inside)])


_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_RENAME_SWAP = 2


def exchange(one: Path, other: Path) -> bool:
    """Exchange two existing paths of one file system atomically, if the system supports it.

    Linux has renameat2(2) with RENAME_EXCHANGE, macOS renamex_np(2) with RENAME_SWAP; neither is in
    Python's library. Some file systems do not support them: then the caller renames twice.

    Returns:
        whether it was done; if not, both are unchanged.
    """
    if sys.platform == "win32":
        return False
    import ctypes

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
