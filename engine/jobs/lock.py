"""Lock for one run per folder of results, released if its owner dies.

It is a system lock on a file next to the folder, which is never removed, since a file about to
vanish must not be locked. The file names the owner, from its second byte on: on Windows other
processes cannot read the locked first byte.
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
    """Error for a folder that another run is writing to; this run itself is valid."""


class Holder(msgspec.Struct, frozen=True):
    """Owner of a lock."""

    job: str
    pid: int
    host: str
    since: str


@contextmanager
def locked(
    folder: Path, job: str, *, wait: float = 0.0, tell: Callable[[str], None] = lambda said: None
) -> Iterator[None]:
    """Lock a folder of results.

    Args:
        wait: seconds to wait for another owner.
        tell: called with log messages.

    Raises:
        LockedError: another run had the lock for all that time.
        WriteError: the lock file cannot be created.
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
    """Open the lock file, next to the resolved folder, so that links share one lock.

    Unbuffered: a buffer would be written again on close.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return open(path, "a+b", buffering=0, opener=_of_writers)
    except OSError as error:
        raise WriteError(
            f"cannot write {folder}: {error}.", code="write_failed", file=str(folder)
        ) from error


def _of_writers(path: str, flags: int) -> int:
    """Open a lock file with access only for users who may write results next to it.

    Whoever can read a file can lock it, and block every run. Links are not followed: their target
    would be emptied.
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
