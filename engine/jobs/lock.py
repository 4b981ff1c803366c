"""One run at a time for each folder of results: a lock that its holder's death sets free.

The lock is the system's on a file beside the folder, which is never removed: nobody is to lock a
file that is about to go away. Who holds it stands in the file, for people, from its second byte on:
on Windows nobody else can read the first one, by which it is locked.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from io import RawIOBase
from pathlib import Path

import msgspec

from ..atomic import name_within, try_lock
from ..schemas.errors import EvalengineError, WriteError
from ..scorecard.storage import real_folder

_POLL = 0.2
_LONGEST_NAME = 240  # bytes of a folder's name that stand in its lock's
_LONGEST = 1 << 16  # bytes that are read of what a lock says


class LockedError(EvalengineError):
    """Another run is writing to the same folder; nothing is wrong with this one."""


class Holder(msgspec.Struct, frozen=True):
    """Who holds a lock."""

    job: str
    pid: int
    host: str
    since: str


@contextmanager
def locked(
    folder: Path, job: str, *, wait: float = 0.0, tell: Callable[[str], None] = lambda said: None
) -> Iterator[None]:
    """Hold the lock of a folder of results.

    Args:
        folder: the folder; it need not exist.
        job: the job's name, for others' messages.
        wait: seconds to wait for another holder.
        tell: called with what is worth a line in a log.

    Raises:
        LockedError: another run holds it, and did so for all that time.
        WriteError: the lock's file cannot be made.
    """
    real = real_folder(folder)
    path = real.with_name(f".{name_within(real.name, _LONGEST_NAME)}.lock")
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    with closing(_opened(path, folder)) as file:
        try:
            _acquire(file, folder, wait, tell)
            before = _holder(file)
            if before is not None:
                tell(f"took over from a run that died: process {before.pid} on {before.host},"
                     f" begun {before.since}")  # fmt: skip
            holder = Holder(job, os.getpid(), socket.gethostname(), now)
            _write(file, b"\n" + msgspec.json.encode(holder))
        except OSError as error:
            raise WriteError(
                f"cannot write the lock of {folder}, {path}: {error}.",
                code="write_failed",
                file=str(path),
            ) from error
        try:
            yield
        finally:
            try:
                _write(file, b"")
            except OSError as error:  # the lock itself goes with the file's last handle
                tell(f"{path} still says who held it: {error}")


def _opened(path: Path, folder: Path) -> RawIOBase:
    """The lock's file, beside the folder itself: names that link to it share one lock.

    Without a buffer, which would be written once more when the file is closed.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return open(path, "a+b", buffering=0, opener=_of_writers)
    except OSError as error:
        raise WriteError(
            f"cannot write {folder}: {error}.", code="write_failed", file=str(folder)
        ) from error


def _of_writers(path: str, flags: int) -> int:
    """Open a lock's file that nobody may open who may not write results beside it.

    Whoever can read a file can hold its lock, and keep every run waiting. A link is not followed:
    what it leads to would be emptied.
    """
    parent = os.stat(os.path.dirname(path)).st_mode
    writers = 0 if parent & stat.S_ISVTX else parent & 0o022  # of a sticky one each has their own
    mode = 0o600 | writers | writers << 1
    opened = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), mode)
    told = os.fstat(opened)
    if hasattr(os, "geteuid") and told.st_uid == os.geteuid() and told.st_mode & ~mode & 0o777:
        os.fchmod(opened, told.st_mode & mode)  # one of an earlier version
    return opened


def _acquire(file: RawIOBase, folder: Path, wait: float, tell: Callable[[str], None]) -> None:
    end, told = time.monotonic() + wait, False
    while not try_lock(file):
        said = _said(_holder(file), folder)
        if time.monotonic() >= end:
            raise LockedError(
                f"{said}. Two runs do not write one folder at once: try again when it is done,"
                " wait with --wait SECONDS, or give the jobs different folders.",
                code="locked",
            )
        if not told:
            tell(f"waiting: {said}")
            told = True
        time.sleep(min(_POLL, max(0.0, end - time.monotonic())))


def _said(holder: Holder | None, folder: Path) -> str:
    if holder is None:  # between its lock and its name
        return f"another run is writing {folder}"
    return (
        f"another run of job {holder.job!r} (process {holder.pid} on {holder.host}, since"
        f" {holder.since}) is writing {folder}"
    )


def _holder(file: RawIOBase) -> Holder | None:
    file.seek(1)
    try:
        return msgspec.json.decode(file.read(_LONGEST) or b"", type=Holder)
    except (msgspec.DecodeError, RecursionError):
        return None


def _write(file: RawIOBase, text: bytes) -> None:
    file.truncate(0)
    if text and file.write(text) != len(text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
