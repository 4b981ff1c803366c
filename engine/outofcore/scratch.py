"""The scratch folder of one run: made with a mark of its owner, and gone when the run is over."""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ..atomic import try_lock
from ..kernels.folder import own_group
from ..schemas.errors import EvalengineError, ReadError, ScratchError
from ..schemas.wording import option

PREFIX = "evalengine-scratch-"
GONE = "evalengine-gone-"
"""Prefix of a scratch folder between the end of its run and its deletion."""

OWNER = "owner.json"


@contextmanager
def scratch_folder(base: str | None, needed: int) -> Iterator[Path]:
    """Create a folder for one run, deleted afterwards however the run ends.

    Remains of killed runs on this machine are deleted first.

    Args:
        base: parent folder; by default the system's temporary folder.
        needed: approximate number of bytes that the run will write.

    Raises:
        ScratchError: the folder cannot be written, its disk has no room or runs full, or the folder
            is deleted meanwhile.
    """
    home = Path(base or tempfile.gettempdir()).absolute()  # workers stand in folders of their own
    folder = home / f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    with ExitStack() as stack:
        try:
            home.mkdir(exist_ok=True)  # not its parents: a disk that is not mounted has none
            sweep(home)
            look_for_room(home, needed)
            _refuse_shared(home)
            folder.mkdir(mode=0o700)
            _OPEN[folder] = os.getpid()
            stack.callback(_delete_own, folder)
            _mark(folder, stack)
        except OSError as error:
            raise ScratchError(
                f"{home}: no scratch folder can be made there: {error}. Name another:"
                f" {option('scratch', '/mnt/large')}.",
                code="scratch_unusable",
                file=str(home),
            ) from error
        try:
            yield folder
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise ScratchError(
                    f"{home}: the disk ran full while scratch was written, of which about"
                    f" {gigabytes(needed)} are needed; nothing is left behind. Name a folder on a"
                    f" larger disk: {option('scratch', '/mnt/large')}.",
                    code="scratch_full",
                ) from error
            _refuse_deleted(folder, error)
            raise
        except Exception as error:
            _refuse_deleted(folder, error)
            raise


def _refuse_deleted(folder: Path, error: Exception) -> None:
    """Explain an error of a run whose folder was deleted, completely or partly, from outside.

    Raises:
        ScratchError: it was.
    """
    other = isinstance(error, EvalengineError) and not isinstance(error, ScratchError)
    named = isinstance(error, FileNotFoundError) and str(error.filename).startswith(str(folder))
    read = isinstance(error, ReadError) and str(folder) in str(error)
    if named or read or (not other and not (folder / OWNER).exists()):
        raise ScratchError(
            f"{folder}: files of this run were deleted while it was at work ({error}). Run it"
            " again, and leave its scratch folder alone; it is deleted when the run ends.",
            code="scratch_deleted",
        ) from error


def _refuse_shared(home: Path) -> None:
    """Refuse a folder in which other users could replace a run's folder.

    Stages read their parameters from the run's folder, which other users cannot enter; but if they
    may write to its parent and that is not sticky, they could put another one there.
    """
    if not hasattr(os, "geteuid"):
        return  # a system whose folders have no such owners
    told = home.stat()
    sticky = bool(told.st_mode & stat.S_ISVTX)
    shared = bool(told.st_mode & (stat.S_IWGRP | stat.S_IWOTH)) and not own_group(told)
    if sticky or (told.st_uid in (os.geteuid(), 0) and not shared):
        return
    raise ScratchError(
        f"{home}: others may write there, and could put work of theirs into the run's place. Name a"
        f" folder of your own, {option('scratch', '/mnt/large/mine')}, or make this one sticky"
        " (chmod +t).",
        code="scratch_unsafe",
        file=str(home),
    )


def look_for_room(home: Path, needed: int) -> None:
    """Check that the disk has room.

    Args:
        needed: approximate number of bytes to be written.

    Raises:
        ScratchError: there is less free space.
    """
    free = shutil.disk_usage(home).free
    if free < needed:
        raise ScratchError(
            f"{home}: about {gigabytes(needed)} of scratch are needed and {gigabytes(free)}"
            f" are free. Name a folder on a larger disk: {option('scratch', '/mnt/large')}.",
            code="scratch_too_small",
        )


def _mark(folder: Path, stack: ExitStack) -> None:
    """Write the owner of a folder to a mark file, and keep it locked until the run is over."""
    mark = stack.enter_context((folder / OWNER).open("w"))
    with suppress(OSError):  # where there are no locks, nobody sweeps it
        try_lock(mark)
    json.dump({"pid": os.getpid(), "host": socket.gethostname()}, mark)
    mark.flush()


_OPEN: dict[Path, int] = {}
"""Folders of runs that are at work in this process, and the process that made them."""


def _delete_own(folder: Path) -> None:
    """Delete a folder, but only in the process that created it, not in a fork."""
    if _OPEN.pop(folder, None) == os.getpid():
        _delete(folder)


def delete_open() -> None:
    """Delete the folders of unfinished runs before the process ends."""
    for folder in list(_OPEN):
        _delete_own(folder)


def _delete(folder: Path) -> None:
    """Delete a folder that a worker may still write into, because it does not know that the run is
    over.

    The rename hides it; files that cannot be deleted now are removed by a later run.
    """
    gone = folder.with_name(f"{GONE}{folder.name.removeprefix(PREFIX)}")
    with suppress(OSError):
        folder.rename(gone)
    for one in (gone, folder):
        shutil.rmtree(one, ignore_errors=True)


def sweep(home: Path) -> list[Path]:
    """Delete scratch folders whose runs are dead; return them.

    A running process has a lock on its mark, in any container; the system releases it when the
    process dies. Folders of other machines, whose locks may be invisible here, and those without a
    mark yet are kept.
    """
    for folder in home.glob(f"{GONE}*"):
        shutil.rmtree(folder, ignore_errors=True)
    found = []
    for folder in home.glob(f"{PREFIX}*"):
        with (
            suppress(OSError, ValueError, KeyError, TypeError),
            open(folder / OWNER, "rb", opener=_plain_file) as mark,
        ):
            if json.load(mark)["host"] == socket.gethostname() and try_lock(mark):
                found.append(folder)
    for folder in found:
        _delete(folder)
    return found


def _plain_file(path: str, flags: int) -> int:
    """Open a regular file of this user; other users' pipes cannot block the run.

    Raises:
        OSError: not a regular file, or another user's.
    """
    opened = os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    told = os.fstat(opened)
    ours = not hasattr(os, "geteuid") or told.st_uid == os.geteuid()
    if not (ours and stat.S_ISREG(told.st_mode)):
        os.close(opened)
        raise OSError(errno.EACCES, "no file of this user's", path)
    return opened


def gigabytes(size: int) -> str:
    """``1.5 GB``."""
    if size < 10**8:
        return f"{size / 1e6:,.1f} MB"
    return f"{size / 1e9:,.1f} GB"
