"""SQLite cache of answers, so that a killed run can resume.

The key is a hash of endpoint, model, messages, parameters, prompt version, judgment and attempt.
Only replies are stored, neither API keys nor messages.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..endpoint.answer_file import AnswerFile
from .client import Completion

_TABLES = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, prompt TEXT NOT NULL, model TEXT NOT NULL, reply TEXT NOT NULL,
    finish TEXT NOT NULL, refusal TEXT, input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL, at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failures (
    key TEXT PRIMARY KEY, kind TEXT NOT NULL, message TEXT NOT NULL, at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS exported (key TEXT PRIMARY KEY) WITHOUT ROWID;
"""


def key_of(
    endpoint: str,
    model: str,
    messages: list[dict[str, str]],
    parameters: dict[str, Any],
    prompt: str,
    judgment: int,
    attempt: int,
) -> str:
    """Return the key of one call, 64 hexadecimal digits."""
    parts = [endpoint, model, messages, parameters, prompt, judgment, attempt]
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Cache(AnswerFile):
    """Cache of a judge's answers; thread-safe.

    Args:
        path: created if missing, readable only by its owner.

    Raises:
        InputError: the file is something else, or cannot be written.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__(path, _TABLES)

    def get(self, key: str) -> Completion | None:
        """The answer to a call, if there is one."""
        with self._lock:
            row = self._base.execute(
                "SELECT reply, finish, refusal, input_tokens, output_tokens FROM answers"
                " WHERE key = ?",
                (key,),
            ).fetchone()
        return None if row is None else Completion(*row)

    def put(self, key: str, prompt: str, model: str, answer: Completion) -> Completion:
        """Store an answer, committed on return.

        Returns:
            the answer that counts: the first, if another process has stored one meanwhile.
        """
        values = (
            key, prompt, model, answer.text, answer.finish, answer.refusal, answer.input_tokens,
            answer.output_tokens, time.time(),
        )  # fmt: skip
        with self._lock:
            new = self._base.execute(
                "INSERT INTO answers VALUES (?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING", values
            ).rowcount
            self._base.execute("DELETE FROM failures WHERE key = ?", (key,))
        return answer if new else (self.get(key) or answer)

    def export(self, keys: Iterable[str]) -> None:
        """Keep that calls went into batch files."""
        with self._lock:
            self._base.execute("BEGIN")
            self._base.executemany(
                "INSERT INTO exported VALUES (?) ON CONFLICT DO NOTHING", ((key,) for key in keys)
            )
            self._base.execute("COMMIT")

    def was_exported(self, key: str) -> bool:
        """Return whether a call was written to a batch file."""
        with self._lock:
            found = self._base.execute("SELECT 1 FROM exported WHERE key = ?", (key,)).fetchone()
        return found is not None

    def fail(self, key: str, kind: str, message: str) -> None:
        """Keep that a batch could not answer a call."""
        with self._lock:
            self._base.execute(
                "INSERT OR REPLACE INTO failures VALUES (?,?,?,?)",
                (key, kind, message, time.time()),
            )

    def failure(self, key: str) -> tuple[str, str] | None:
        """Return kind and message of a batch failure, or None."""
        with self._lock:
            found: tuple[str, str] | None = self._base.execute(
                "SELECT kind, message FROM failures WHERE key = ?", (key,)
            ).fetchone()
        return found

    def __len__(self) -> int:
        with self._lock:
            return int(self._base.execute("SELECT count(*) FROM answers").fetchone()[0])
