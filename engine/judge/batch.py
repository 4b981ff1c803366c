"""Batch files for OpenAI's Batch API and vLLM's run-batch: export of requests, import of answers.

One file per step, split at the limits. Lines are matched by ``custom_id``, which is the cache key,
never by order. File names contain only the prompt's name and a number.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import msgspec

from ..atomic import whole_file
from ..endpoint.client import Transient, error_in
from ..endpoint.redaction import redacted, sound
from ..schemas.errors import InputError
from .cache import Cache
from .client import read_completion
from .parsing import response_schema
from .run import REJECTED, Request

MOST_REQUESTS = 50_000
MOST_BYTES = 200_000_000
URL = "/v1/chat/completions"
_PASSING = (401, 402, 403, 404, 408, 409, 425, 429)
"""Statuses 4xx that are unrelated to the request itself: it is exported again."""
_SHOWN = 300


class BatchFiles:
    """Batch files, written as requests arrive; they appear once all are complete.

    Args:
        folder: created if missing; must contain no JSONL yet.
        structured: requested response format: ``schema``, ``object`` or ``none``.
        most_requests: maximum number of lines per file.
        most_bytes: maximum size of a file.

    Attributes:
        written: file -> number of lines, by step in the order of their first requests.

    Raises:
        InputError: the folder already contains batch files.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        structured: str = "schema",
        most_requests: int = MOST_REQUESTS,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._folder, self._structured = Path(folder), structured
        self._most = most_requests, most_bytes
        self._steps: dict[str, list[_Part]] = {}
        self._open = ExitStack()
        if any(self._folder.glob("*.jsonl")):
            raise InputError(
                f"{folder} holds JSONL files already; give an empty folder.", code="folder_used"
            )

    def __enter__(self) -> BatchFiles:
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    @property
    def written(self) -> dict[Path, int]:
        return {part.path: part.lines for part in self._all()}

    def add(self, request: Request) -> None:
        """Write one request into the file of its step."""
        line = _line(request, self._structured)
        parts = self._steps.setdefault(request.prompt.name, [])
        full = parts and (
            parts[-1].lines == self._most[0] or parts[-1].size + len(line) > self._most[1]
        )
        if full:
            parts[-1].file.close()
        if full or not parts:
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._folder / f"{request.prompt.name}-{len(parts) + 1:03d}.jsonl"
            parts.append(_Part(path, self._open.enter_context(whole_file(path))))
        parts[-1].file.write(line)
        parts[-1].lines += 1
        parts[-1].size += len(line)

    def _all(self) -> Iterator[_Part]:
        return (part for parts in self._steps.values() for part in parts)


class _Part(msgspec.Struct):
    """One file: final path, open draft, lines and bytes so far."""

    path: Path
    file: IO[bytes]
    lines: int = 0
    size: int = 0


def _line(request: Request, structured: str) -> bytes:
    body = dict(request.body)
    if structured == "schema":
        body["response_format"] = response_schema(request.prompt, request.count)
    elif structured == "object":
        body["response_format"] = {"type": "json_object"}
    line = {"custom_id": request.key, "method": "POST", "url": URL, "body": body}
    return json.dumps(line, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


class Imported(msgspec.Struct):
    """Counts of imported lines.

    Attributes:
        foreign: lines of both kinds whose request was not exported with this cache.
    """

    answers: int = 0
    failures: int = 0
    foreign: int = 0


def read_batches(paths: Sequence[str | Path], cache: str | Path) -> Imported:
    """Import the answers of output files and the failures of error files into the cache.

    Existing answers are kept.

    Args:
        paths: files in any order and of either kind.

    Raises:
        InputError: an invalid line, by file and number.
    """
    found = Imported()
    store = Cache(cache)
    try:
        for path in paths:
            try:
                with open(path, encoding="utf-8-sig") as file:
                    for number, line in enumerate(file, 1):
                        if line.strip():
                            _take(line, f"{path}, line {number}", store, found)
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(f"{path}: cannot be read: {error}.") from None
    finally:
        store.close()
    return found


def _take(line: str, where: str, cache: Cache, found: Imported) -> None:
    try:
        entry: dict[str, Any] = json.loads(line)
        key = entry["custom_id"]
        if not isinstance(key, str):
            raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(
            f"{where}: no line of a batch's output (JSON with custom_id).", code="file_unreadable"
        ) from None
    if "body" in entry and "response" not in entry:
        raise InputError(
            f"{where}: this is a request; give the file that the batch wrote.",
            code="file_is_request",
        )
    key = sound(key)
    found.foreign += not cache.was_exported(key)
    error, response = entry.get("error"), entry.get("response")
    body = response.get("body", response) if isinstance(response, dict) else None
    status = response.get("status_code", 200) if isinstance(response, dict) else None
    if body is not None and status == 200 and not error:
        try:
            answer = read_completion(body)
        except Transient as failure:
            cache.fail(key, failure.kind, _told(str(failure)))
            found.failures += 1
            return
        model = body.get("model") if isinstance(body, dict) else None
        cache.put(key, "batch", sound(str(model or "")), answer)
        found.answers += 1
        return
    said = error_in({"error": error}) or error_in(body)
    if said is None:
        said = (body, "") if isinstance(body, str) and body.strip() else (f"status {status}", "")
    refused = isinstance(status, int) and 400 <= status < 500 and status not in _PASSING
    cache.fail(key, REJECTED if refused else "batch_failed", _told(said[0]))
    found.failures += 1


def _told(message: str) -> str:
    """A message as it may be kept: no key in it, on one line, not long."""
    return sound(redacted(" ".join(message.split()), None)[:_SHOWN])
