"""Answers of an endpoint in one SQLite file, so that a killed run can resume."""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path

from ..schemas.errors import InputError

_OWN = 0x6576616C
"""SQLite application id of our files: "eval"."""
_VERSION = 1
"""Raised when a table changes its form."""


class AnswerFile:
    """One SQLite file; thread-safe.

    Args:
        path: created if missing, readable only by its owner.

    Raises:
        InputError: the file is something else, such as another program's database, or cannot be
            written.
    """

    def __init__(self, path: str | Path, tables: str) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        try:
            if not self.path.exists():
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            self._base = sqlite3.connect(
                self.path, check_same_thread=False, isolation_level=None, timeout=60
            )
        except (sqlite3.Error, OSError) as error:
            raise InputError(f"cache {self.path}: cannot be used: {error}.") from None
        try:
            self._claim()
            # With WAL, a kill loses no answers; a power cut loses at most the last ones.
            self._base.execute("PRAGMA journal_mode=WAL")
            self._base.execute("PRAGMA synchronous=NORMAL")
            self._base.executescript(tables)
        except sqlite3.Error as error:
            self._base.close()
            raise InputError(
                f"cache {self.path}: cannot be used: {error}.",
                code="cache_unusable",
                file=str(self.path),
            ) from None
        except InputError:
            self._base.close()
            raise

    def _claim(self) -> None:
        """Mark a new file as ours; another program's is not touched."""
        self._base.execute("BEGIN IMMEDIATE")
        try:
            (own,) = self._base.execute("PRAGMA application_id").fetchone()
            (version,) = self._base.execute("PRAGMA user_version").fetchone()
            (filled,) = self._base.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if own != _OWN and filled:
                raise InputError(
                    f"cache {self.path}: this is a database of another program, or of an earlier"
                    " version of this one; name a file that is not there yet.",
                    code="cache_unusable",
                    file=str(self.path),
                )
            if own == _OWN and version != _VERSION:
                raise InputError(
                    f"cache {self.path}: its form is {version}, and this version of evalengine"
                    f" reads form {_VERSION}; name another file.",
                    code="cache_unusable",
                    version=version,
                )
            if own != _OWN:
                self._base.execute(f"PRAGMA application_id={_OWN}")
                self._base.execute(f"PRAGMA user_version={_VERSION}")
        finally:
            self._base.execute("COMMIT" if self._base.in_transaction else "SELECT 1")

    def close(self) -> None:
        """Write everything back into the one file."""
        with self._lock:
            self._base.close()
