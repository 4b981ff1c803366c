"""Log lines of a run: text for people, or one JSON object a line for collectors."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import IO, Any, Protocol

FORMATS = ("text", "json")
INFO, WARNING, ERROR = "info", "warning", "error"


class Tell(Protocol):
    """Callback for log messages of a run."""

    def __call__(
        self, said: str, *, level: str = INFO, job: str | None = None, **facts: Any
    ) -> None: ...


def nothing(said: str, *, level: str = INFO, job: str | None = None, **facts: Any) -> None:
    """No log at all."""


def log_to(
    stream: IO[str] | None = None, *, form: str = "text", job: str = "", quiet: bool = False
) -> Tell:
    """Return a log callback.

    Args:
        stream: by default standard error at the time of each line.
        form: ``text`` or ``json``.
        quiet: only warnings and errors.
    """

    name = job

    def tell(said: str, *, level: str = INFO, job: str | None = None, **facts: Any) -> None:
        nonlocal name
        name = job or name
        if quiet and level == INFO:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if form == "json":
            line = {"time": now, "level": level, "job": name, "message": said, **facts}
            text = json.dumps(line, ensure_ascii=False, default=str)
        else:
            known = " ".join(f"{fact}={value}" for fact, value in facts.items())
            text = f"{now} {level.upper():<7} {name}: {said}" + (f" ({known})" if known else "")
        out = stream or sys.stderr
        out.write(text + "\n")
        out.flush()

    return tell
