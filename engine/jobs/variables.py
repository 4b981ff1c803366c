"""Variables in the texts of a job file: ``{name}``, ``{env.NAME}``, ``{name:otherwise}``.

``{{`` and ``}}`` are braces. Names that are known only later (a partition, the run's id) leave a
mark, which :func:`filled` replaces.
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
"""From a name to its value; None where it has none."""


def mark(name: str) -> str:
    """What stands for a variable until its value is known."""
    return f"\x00{name}\x00"


def filled(text: str, values: Mapping[str, str]) -> str:
    """A text whose marks are replaced."""
    return _MARK.sub(lambda found: values[found[1]], text)


def expanded(text: str, lookup: Lookup, known: Collection[str]) -> str:
    """A text whose variables are replaced.

    Args:
        text: as written.
        lookup: values by name.
        known: names to choose the nearest from.

    Raises:
        OptionError: a variable without a value, or a brace without its partner.
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
        # Of the date, not of the time: a day of 23 or 25 hours has one before it, too.
        "yesterday": (now.date() - timedelta(days=1)).isoformat(),
    }


def from_environment(name: str) -> str | None:
    """The value of ``env.NAME``; None for other names, and where it is not set."""
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
"""A text of variables alone: what stands around them, or behind a colon, may be the secret."""


def for_records(
    values: Mapping[str, str],
    written: Mapping[str, Any],
    uses: Mapping[str, set[str]],
    secret: Collection[str],
) -> dict[str, str]:
    """Variables as job.json and history may hold them.

    What comes from the environment, or goes into credentials, is not recorded: such a variable
    stands there as the file writes it, ``{env.NAME}``, or as hidden where the file writes the value
    itself. So is whatever is made of one.

    Args:
        values: of all names.
        written: name -> value as the file writes it.
        uses: name -> what the value was made of; nothing where it was written out, or set.
        secret: names that credentials are made of.
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
