"""Answers of an endpoint as they arrive, in one SQLite file: a killed run goes on where it was."""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path

from ..schemas.errors import InputError


class AnswerFile:
    """One SQLite file; threads may share it.

    Args:
        path: where; made if it is not there, readable by its owner alone.
        tables: SQL that makes the tables where there are none.

    Raises:
        InputError: the file is something else, or cannot be written.
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
            # After a kill nothing is lost; after a power cut at most the last answers are.
            self._base.execute("PRAGMA journal_mode=WAL")
            self._base.execute("PRAGMA synchronous=NORMAL")
            self._base.executescript(tables)
        except sqlite3.Error as error:
            self._base.close()
            raise InputError(f"cache {self.path}: cannot be used: {error}.") from None

    def close(self) -> None:
        """Write everything back into the one file."""
        with self._lock:
            self._base.close()
