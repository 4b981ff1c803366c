"""Files and folders that stand whole or not at all: made under another name, then renamed."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import RawIOBase
from pathlib import Path
from typing import IO, Any

from .overwriting import writes
from .schemas.errors import WriteError

NEW, OLD = ".new", ".old"
_LONGEST, _LONGEST_FILE = 200, 220
"""Bytes of a name, beyond which its draft's would be longer than a name may be."""
_DIGITS, _DIGITS_FILE = 8, 4  # that tell drafts of one target apart; half are the machine's


@contextmanager
def whole_file(
    target: str | Path,
    *,
    lasting: bool = False,
    draft: Path | None = None,
    sweeps: bool = False,
) -> Iterator[IO[bytes]]:
    """A new file that takes its name once it is written and closed, and is gone after any error.

    Args:
        target: the file; one that is there is replaced.
        lasting: whether it has to be whole after the machine fails, for which the disk is waited
            for; of no use to files of a run that ends with its machine. While such a file is
            written it is locked, which :func:`is_abandoned` asks for.
        draft: where it is written; beside the target, under a name of its own, unless given.
        sweeps: remove earlier drafts of the file whose processes were killed.

    Raises:
        OSError: the disk is full, or the folder cannot be written; the target is as it was.
        OptionError: the target was read by the call that writes it.
    """
    target = Path(target)
    writes(target)
    if sweeps:
        sweep(target.parent, [target.name])
    fresh = _draft_of(target) if draft is None else draft
    try:
        with open(fresh, "wb") as file:
            if lasting:
                with suppress(OSError):  # where there are no locks
                    try_lock(file)
            yield file
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        os.replace(fresh, target)
    except BaseException:
        with suppress(OSError):
            fresh.unlink()
        raise
    if lasting:
        _sync_names(target.parent)


@contextmanager
def written(path: str | Path) -> Iterator[None]:
    """Errors of a file that cannot be written, as a :class:`WriteError` that names it."""
    try:
        yield
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror or error}.") from error


def try_lock(file: IO[Any] | RawIOBase) -> bool:
    """Take the lock of an open file, which the death of its holder sets free.

    Not by :class:`filelock.FileLock`, which would open the file itself: whose it may be, what may
    stand in its place and who may read it is for the caller to say.

    Returns:
        whether nobody else has it.

    Raises:
        OSError: there are no locks here.
    """
    from filelock import lock_descriptor  # only few runs lock anything

    return lock_descriptor(file.fileno(), blocking=False)


def _draft_of(target: Path) -> Path:
    name, more = name_within(target.name, _LONGEST_FILE), secrets.token_hex(_DIGITS_FILE // 2)
    return target.with_name(f".{name}.{os.getpid()}.{this_machine()}{more}")


def this_machine() -> str:
    """Four digits of the machine's name."""
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:4]


_DRAFT = re.compile(rf"\..+\.(\d+)\.([0-9a-f]{{4}})[0-9a-f]{{{_DIGITS_FILE}}}")
_YOUNG = 60.0
"""Seconds in which a draft may not be locked yet."""


def is_abandoned(path: Path) -> bool:
    """Whether a file is what :func:`whole_file` was writing, lasting, when its process was killed.

    Who writes a draft holds its lock. Of other machines, whose locks not every file system shows,
    and where there are none, nothing is known.
    """
    found = _DRAFT.fullmatch(path.name)
    if found is None or found[2] != this_machine():
        return False
    try:
        with open(path, "rb") as file:
            old = time.time() - os.fstat(file.fileno()).st_mtime > _YOUNG
            return try_lock(file) and (old or not _alive(int(found[1])))
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
    """A name itself, or the hash of one that is longer: names in a folder have 255 bytes at most.

    Args:
        name: of a file or folder.
        bytes_: how many it may have, 64 at the least.
    """
    known = os.fsencode(name)
    return name if len(known) <= bytes_ else hashlib.sha256(known).hexdigest()


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
    """A new name beside a folder, under which its successor is made."""
    ours = f"{os.getpid()}.{this_machine()}{secrets.token_hex(_DIGITS_FILE // 2)}"
    return target.with_name(f"{_drafts_of(target)}{ours}{NEW}")


def _drafts_of(target: Path) -> str:
    """What names of a folder's drafts begin with: no other folder's do, whatever it is called."""
    return f".{name_within(target.name, _LONGEST)}."


def _warn(said: str) -> None:
    import logging  # for this alone

    logging.getLogger("evalengine").warning("note: %s.", said)


def swap(fresh: Path, target: Path, tell: Callable[[str], None] = _warn) -> None:
    """Put a finished folder in the place of another, in one step where the system has one.

    Without such a step there is a moment without a folder of that name; the earlier one comes back
    if the second rename fails, and :func:`mend` brings it back if the process died there.

    Args:
        fresh: the finished folder.
        target: the place.
        tell: called with what is wrong although the result stands.

    Raises:
        OSError: the folder could not be renamed; the target is as it was.
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
            f"{target} stands, but that {target.parent} has its name is not known to be on the"
            f" disk: {error}. After a power failure the earlier state may be back"
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
    """Clear away what runs that died left beside a folder; nobody else may be writing to it.

    Returns:
        how many folders were left behind.
    """
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

    Drafts stay if their process lives, if it ran on another machine, or if they changed within the
    last minute. An earlier folder that was moved aside comes back if its successor is missing.

    Args:
        folder: where the drafts are.
        names: of the files and folders that they are drafts of.

    Returns:
        how many there were.
    """
    owners = {}
    for name in names:
        for longest in (_LONGEST, _LONGEST_FILE):
            owners[f".{name_within(name, longest)}"] = folder / name
    count = 0
    with suppress(OSError):
        for entry in [*os.scandir(folder)]:
            found = _SWEPT.fullmatch(entry.name) if entry.name.startswith(".") else None
            target = None if found is None else owners.get(found["of"])
            if found is None or target is None or found["machine"] != this_machine():
                continue
            if _alive(int(found["process"])) or _changed(entry) > time.time() - _YOUNG:
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
    """Exchange two existing paths of one file system, where it has one step for that.

    Linux has renameat2(2) with RENAME_EXCHANGE, macOS renamex_np(2) with RENAME_SWAP; neither is
    in Python's library. Some file systems lack them: then the caller renames twice.

    Returns:
        whether it was done; if not, both are as they were.
    """
    if sys.platform == "win32":
        return False
    import ctypes  # for this alone

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
