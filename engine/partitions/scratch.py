"""The scratch folder of one run: made with a mark of its owner, and gone when the run is over."""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..schemas.errors import ScratchError
from ..schemas.wording import option

PREFIX = "evalengine-scratch-"
OWNER = "owner.json"


@contextmanager
def scratch_folder(base: str | None, needed: int) -> Iterator[Path]:
    """A folder for one run, deleted afterwards however the run ends.

    Folders that killed runs of this machine left behind are deleted first.

    Args:
        base: where to make it; the temporary folder of the system unless given.
        needed: bytes that the run will write, about.

    Raises:
        ScratchError: the folder cannot be written, or its disk has no room or runs full.
    """
    home = Path(base or tempfile.gettempdir())
    folder = home / f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    try:
        home.mkdir(parents=True, exist_ok=True)
        sweep(home)
        free = shutil.disk_usage(home).free
        if free < needed:
            raise ScratchError(
                f"{home}: about {gigabytes(needed)} of scratch are needed and"
                f" {gigabytes(free)} are free. Name a folder on a larger disk:"
                f" {option('scratch', '/mnt/large')}."
            )
        folder.mkdir()
        mark = {"pid": os.getpid(), "host": socket.gethostname(), "began": _began(os.getpid())}
        (folder / OWNER).write_text(json.dumps(mark))
    except OSError as error:
        raise ScratchError(f"{home}: no scratch folder can be made there: {error}.") from error
    try:
        yield folder
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise ScratchError(
                f"{home}: the disk ran full while scratch was written, of which about"
                f" {gigabytes(needed)} are needed; nothing is left behind. Name a folder on a"
                f" larger disk: {option('scratch', '/mnt/large')}."
            ) from error
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep(home: Path) -> list[Path]:
    """Delete scratch folders whose runs are dead; returns them.

    Folders of other machines stay, and those that have no mark yet.
    """
    gone = []
    for folder in home.glob(f"{PREFIX}*"):
        with suppress(OSError, ValueError, KeyError):
            owner = json.loads((folder / OWNER).read_text())
            if owner["host"] != socket.gethostname():
                continue
            if not _alive(owner["pid"]) or _began(owner["pid"]) != owner["began"]:
                shutil.rmtree(folder, ignore_errors=True)
                gone.append(folder)
    return gone


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _began(pid: int) -> str | None:
    """When a process began, so that a number used again is told apart; None where nobody knows."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return None


def gigabytes(size: int) -> str:
    """``1.5 GB``."""
    if size < 10**8:
        return f"{size / 1e6:,.1f} MB"
    return f"{size / 1e9:,.1f} GB"
