"""Chat completions and the cache of answers."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from ..endpoint import AnswerFile, Client, Rejected, Transient, error_in, sound, token_counts
from ..schemas.errors import JudgeError

# Chat completions: requests and responses.

PATH = "/chat/completions"
_FORMATS = ("response_format", "json_schema", "json_object")


class Unstructured(Exception):
    """The endpoint does not know the response format that was asked for."""


class Completion(msgspec.Struct, frozen=True):
    """Chat completion.

    Attributes:
        finish: reason for its end: ``stop``, ``length``, ``content_filter``, ...
        refusal: the model's refusal, or None.
        input_tokens: tokens of the messages, 0 if unknown.
        output_tokens: tokens of the reply, 0 if unknown.
    """

    text: str
    finish: str = "stop"
    refusal: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0


def read_completion(body: Any) -> Completion:
    """Parse the completion in a response's JSON.

    Raises:
        Transient: JSON of another form; includes the tokens that were used nevertheless.
    """
    tokens = token_counts(body)
    try:
        choice = body["choices"][0]
        message = choice["message"]
        refusal = message.get("refusal")
        return Completion(
            text=sound(_text(message.get("content"))),
            finish=str(choice.get("finish_reason") or "stop"),
            refusal=sound(str(refusal)) if refusal else None,
            input_tokens=tokens[0],
            output_tokens=tokens[1],
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        error = error_in(body)
        detail = f": {error[0]}" if error else ""
        text = f"the endpoint answered without a completion{detail}"
        raise Transient("bad_answer", text, tokens=tokens) from None


def _text(content: Any) -> str:
    """A message's content: a string, or parts of which the texts are joined."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part.get("type") == "text")
    if not isinstance(content, str | None):
        raise TypeError
    return content or ""


class ChatClient(Client):
    """Client for chat completions of one endpoint; thread-safe.

    Args:
        key: value for the Authorization header, or None.
        timeout: seconds for a connection, and between two chunks of an answer.
        connections: maximum number of open connections.

    Raises:
        OptionError: the extra ``judge`` is not installed.
    """

    def __init__(self, base_url: str, key: str | None, timeout: float, connections: int) -> None:
        super().__init__(
            base_url,
            PATH,
            key,
            timeout,
            connections,
            who="the judge",
            extra="judge",
            failure=JudgeError,
        )

    def complete(self, body: dict[str, Any]) -> Completion:
        """Send one request.

        Raises:
            JudgeError: a permanent failure.
            Transient: a retry may succeed.
            Rejected: this request is not accepted.
            Unstructured: this response format is not accepted.
        """
        try:
            return self.post(body, read_completion)
        except Rejected as error:
            if "response_format" in body and any(word in str(error) for word in _FORMATS):
                raise Unstructured(str(error)) from None
            raise


# SQLite cache of answers, so that a killed run can resume.
#
# The key is a hash of endpoint, model, messages, parameters, prompt version, judgment and
# attempt. Only replies are stored, neither API keys nor messages.

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
            key,
            prompt,
            model,
            answer.text,
            answer.finish,
            answer.refusal,
            answer.input_tokens,
            answer.output_tokens,
            time.time(),
        )
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
            row = self._base.execute("SELECT 1 FROM exported WHERE key = ?", (key,)).fetchone()
        return row is not None

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
            result: tuple[str, str] | None = self._base.execute(
                "SELECT kind, message FROM failures WHERE key = ?", (key,)
            ).fetchone()
        return result

    def __len__(self) -> int:
        with self._lock:
            return int(self._base.execute("SELECT count(*) FROM answers").fetchone()[0])
