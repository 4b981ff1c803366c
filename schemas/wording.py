"""Options in messages: stored by name and value, formatted for Python or the shell.

A message is one string. An option in it is a marked piece of JSON, so that it survives joining,
listing and formatting; when shown, the marks become Python (``task='text'``) or command flags
(``--task text``).
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_OPEN, _CLOSE = "\x0e", "\x0f"
_MARKED = re.compile(f"{_OPEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}")


_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SQL_WORDS = """
all and any as between by case cross distinct else end exists from full group having in inner
interval is join left like limit not null offset on or order outer right select then union using
values when where with
"""


def sql_name(name: str) -> str:
    """Return a column's name for a condition, in double quotes unless it is a plain word."""
    if _PLAIN_NAME.fullmatch(name) and name.lower() not in _SQL_WORDS.split():
        return name
    return '"' + name.replace('"', '""') + '"'


def sql_text(value: str) -> str:
    """A text as a condition has it, in single quotes."""
    return "'" + value.replace("'", "''") + "'"


def option(name: str, *value: Any) -> str:
    """Return an option for use in a message.

    Args:
        name: its name in Python.
        *value: its value, omitted to mention just the option: a string, number, boolean, a list of
            those, or a mapping of strings to them (``...`` as last key means more).
    """
    return f"{_OPEN}{json.dumps([name, *value], default=_plain)}{_CLOSE}"


def in_python(text: str) -> str:
    """A message as callers of the Python functions read it."""
    return _rendered(
        text, lambda name, *value: f"{name}={_literal(value[0])}" if value else f"{name}="
    )


def in_shell(text: str) -> str:
    """A message as users of the command read it."""
    return _rendered(text, _shell)


_SURFACE: ContextVar[Callable[[str], str]] = ContextVar("surface", default=in_python)


def render(text: str) -> str:
    """A message as who is at work reads it: the command's user within :func:`to_shell`."""
    return _SURFACE.get()(text)


@contextmanager
def to_shell() -> Iterator[None]:
    """Format options in messages for the shell within this context."""
    before = _SURFACE.set(in_shell)
    try:
        yield
    finally:
        _SURFACE.reset(before)


_USER = re.compile(r"(?<=://)[^\s/@'\"]+@")
_QUERY = re.compile(r"(?<=[^\s?])\?[\w.%~-]+=[^\s'\")]*")


def without_secrets(text: str) -> str:
    """A text with users, passwords and queries (signatures) of addresses taken out."""
    return _QUERY.sub("?[hidden]", _USER.sub("[hidden]@", text))


def options_in(text: str) -> tuple[str, ...]:
    """Names of the options that a message speaks of, in order."""
    return tuple(json.loads(mark)[0] for mark in _MARKED.findall(text))


def _plain(value: Any) -> Any:
    """Scalars, arrays and series as Python's, anything else as words."""
    listed = as_list(value)
    return str(value) if listed is value else listed


def as_list(value: Any) -> Any:
    """Return arrays, series and rows as lists, NumPy's scalars as Python's; others as they are."""
    for name in ("tolist", "to_list", "to_dicts"):
        if callable(convert := getattr(value, name, None)):
            return convert()
    return value


def _rendered(text: str, write: Callable[..., str]) -> str:
    return _MARKED.sub(lambda match: write(*json.loads(match[1])), text)


def _literal(value: Any) -> str:
    if not isinstance(value, dict):
        return repr(value)
    pairs = [key if key == "..." else f'"{key}": {_inner(item)}' for key, item in value.items()]
    return "{" + ", ".join(pairs) + "}"


def _inner(item: Any) -> str:
    if isinstance(item, list):
        return "(" + ", ".join(map(repr, item)) + ")"
    return f'"{item}"' if isinstance(item, str) else repr(item)


def _shell(name: str, *value: Any) -> str:
    flag = f"--{name.replace('_', '-')}"
    if not value:
        return flag
    argument = value[0]
    if isinstance(argument, bool):
        return flag if argument else f"--no-{flag[2:]}"
    if isinstance(argument, dict):
        pairs = [f"{key}={_piece(item)}" for key, item in argument.items() if key != "..."]
        return " ".join(f"{flag} {_quoted(pair)}" for pair in pairs)
    if isinstance(argument, list):
        return f"{flag} {_quoted(','.join(map(_word, argument)))}"
    return f"{flag} {_quoted(_word(argument))}"


def _quoted(text: str) -> str:
    """Quote a word for the shell, in double quotes if it has single ones and no special mark."""
    plain = "'" not in text or any(mark in text for mark in '"$`\\!')
    return shlex.quote(text) if plain else f'"{text}"'


def _piece(item: Any) -> str:
    return ":".join(map(_word, item)) if isinstance(item, list) else _word(item)


def _word(item: Any) -> str:
    """Return a value as users type it: 2 for 2.0."""
    whole = isinstance(item, float) and item.is_integer() and abs(item) < 1e15
    return str(int(item) if whole else item)
