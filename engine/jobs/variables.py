"""Variables in the texts of a job file: ``{name}``, ``{env.NAME}``, ``{name:otherwise}``.

``{{`` and ``}}`` are literal braces. Names that are known only later (a partition, the run's id)
become placeholders, which :func:`filled` replaces.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from ..schemas.errors import OptionError, unknown

_FOUND = re.compile(r"\{\{|\}\}|\{([^{}:]*)(?::([^{}]*))?\}|[{}]")
_MARK = re.compile("\x00([^\x00]*)\x00")
_ENVIRONMENT = "env."

Lookup = Callable[[str], str | None]
"""Function from a name to its value, or None."""


def mark(name: str) -> str:
    """Return the placeholder of a variable."""
    return f"\x00{name}\x00"


def filled(text: str, values: Mapping[str, str]) -> str:
    """A text whose marks are replaced."""
    return _MARK.sub(lambda found: values[found[1]], text)


def expanded(text: str, lookup: Lookup, known: Collection[str]) -> str:
    """Replace the variables of a text.

    Raises:
        OptionError: a variable without a value, or an unbalanced brace.
    """

    def value(found: re.Match[str]) -> str:
        whole, name = found[0], found[1]
        if whole in ("{{", "}}"):
            return whole[0]
        if name is None:
            raise OptionError(
                f"{text!r} has a lone {whole!r}; write it twice for a brace.",
                code="lone_brace",
                value=whole,
            )
        answer = lookup(name)
        if answer is None:
            answer = found[2]
        if answer is None and name.startswith(_ENVIRONMENT):
            raise OptionError(
                f"{text!r}: the environment has no {name[len(_ENVIRONMENT) :]}; set it, or write"
                f" {{{name}:value}} for what to take otherwise.",
                code="variable_missing",
                value=name[len(_ENVIRONMENT) :],
            )
        if answer is None:
            raise unknown("variable", name, [*known, "env.NAME"], before=f"{text!r}: ")
        return answer

    return _FOUND.sub(value, text)


def dates(now: datetime | None = None) -> dict[str, str]:
    """``today`` and ``yesterday`` as YYYY-MM-DD, by the zone of a time; by UTC without one."""
    now = now or datetime.now(UTC)
    return {
        "today": now.date().isoformat(),
        # Subtract from the date, not the time: days of 23 or 25 hours exist.
        "yesterday": (now.date() - timedelta(days=1)).isoformat(),
    }


def from_environment(name: str) -> str | None:
    """Return the value of ``env.NAME``; None for other names, and if it is not set."""
    if not name.startswith(_ENVIRONMENT):
        return None
    return os.environ.get(name[len(_ENVIRONMENT) :])


def in_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A structure of tables and lists with all its texts changed; keys stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: in_texts(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [in_texts(item, change) for item in value]
    return value


HIDDEN = "(hidden)"
_BARE = re.compile(r"(\{[^{}:]+\})+")
"""Text of only variables: literal text around them, or after a colon, may be the secret."""


def for_records(
    values: Mapping[str, str],
    written: Mapping[str, Any],
    uses: Mapping[str, set[str]],
    secret: Collection[str],
) -> dict[str, str]:
    """Return variables for job.json and history.

    Values from the environment, or used in credentials, are not recorded: such a variable is
    recorded as written in the file, ``{env.NAME}``, or as hidden if the file contains the value
    itself. The same applies to values derived from one.

    Args:
        written: name -> value as written in the file.
        uses: name -> variables in its value; empty if it is literal, or set.
    """
    kept_back = {
        key for key, used in uses.items() if any(name.startswith(_ENVIRONMENT) for name in used)
    }
    told_by, todo = {*secret} & {*uses}, [*secret]
    while todo:  # what a credential is made of, and what that is made of
        for name in uses.get(todo.pop(), set()) & {*uses} - told_by:
            told_by.add(name)
            todo.append(name)
    kept_back |= told_by
    for key, used in uses.items():  # in order: a variable rests on those before it
        if used & kept_back:
            kept_back.add(key)
    shown: dict[str, str] = {}
    for key, used in uses.items():
        text = str(written[key])
        if key not in kept_back:
            shown[key] = values[key]
        elif used and (key not in told_by or _BARE.fullmatch(text)):
            shown[key] = text
        else:
            shown[key] = HIDDEN
    return shown
