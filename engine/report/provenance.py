"""Origin of a run's numbers, and the command that reproduces them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ..dialects import get
from ..ingest.problems import count_of
from ..schemas.contract import GROUND_TRUTHS, PREDICTIONS, TABLE
from ..schemas.options import FIELDS, Options
from ..schemas.wording import in_python, in_shell, option, without_secrets

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard

_EXTRA_TABLES = ("datums", "labels")
_HERE = ("threads", "scratch")
"""Options that describe the machine's work and do not affect results."""


def command(
    task: str, options: Options, inputs: Mapping[str, Mapping[str, Any]], verb: str = "score"
) -> str:
    """Return the command that reproduces a run; a Python call if the tables are not files.

    Args:
        inputs: the ``inputs`` of ``run.json``.
        verb: another command that accepts tables; empty text if they are not files.
    """
    arguments = [
        option(name, written(name, getattr(options, name)))
        for name in given_options(options)
        if name not in (*_HERE, "task")
    ]
    arguments.insert(0, option("task", task))
    first = TABLE if TABLE in inputs else PREDICTIONS
    sources = {
        name: inputs[name].get("path", inputs[name].get("source"))
        for name in (first, GROUND_TRUTHS, *_EXTRA_TABLES)
        if name in inputs
    }
    if all("path" in inputs[name] for name in (first, GROUND_TRUTHS) if name in inputs):
        sides = [shlex.quote(str(sources[name])) for name in sources if name not in _EXTRA_TABLES]
        tables = [
            f"--{name} {shlex.quote(str(sources[name]))}"
            for name in _EXTRA_TABLES
            if name in sources and "path" in inputs[name]
        ]
        message = " ".join([f"evalengine {verb}", *sides, *tables, *map(in_shell, arguments)])
    elif verb != "score":
        message = ""
    else:
        sides = [name for name in sources if name not in _EXTRA_TABLES]
        tables = [f"{name}={name}" for name in _EXTRA_TABLES if name in sources]
        message = f"evalengine.score({', '.join([*sides, *tables, *map(in_python, arguments)])})"
    return without_secrets(message)


def given_options(options: Options) -> list[str]:
    """Return the names of options that differ from their defaults."""
    plain = Options()
    names = []
    for name in FIELDS:
        value, usual = getattr(options, name), getattr(plain, name)
        # A label map may be a table, which does not support ==.
        equal = value is usual if usual is None else type(value) is type(usual) and value == usual
        names += [] if equal else [name]
    return names


def written(name: str, value: Any) -> Any:
    """Return an option value as JSON-like data, or ``<name>`` if it cannot be written."""
    if isinstance(value, Mapping):
        return {str(key): one for key, one in value.items()}
    simple = value is None or isinstance(value, (str, bool, int, float, list, tuple))
    return value if simple else f"<{name}>"


def facts(card: Scorecard) -> list[tuple[str, str]]:
    """Return the run's facts for the report as (name, value) pairs."""
    run = card.run
    dialect = get(card.task, card.dialect)
    rows = [
        ("task", card.task),
        ("dialect", f"{card.dialect}: {dialect.about}"),
        *_rules(card),
        ("evalengine", str(run.get("evalengine", ""))),
        ("Python, Polars", f"{run.get('python', '')}, {run.get('polars', '')}"),
        ("scored", str(run.get("scored", ""))),
    ]
    for name, about in run.get("inputs", {}).items():
        parts = [without_secrets(str(about.get("source"))), count_of(about.get("rows", 0), "row")]
        parts += [f"{about['bytes']:,} bytes"] if "bytes" in about else []
        parts += [f"SHA-256 {about['sha256']}"] if "sha256" in about else []
        rows.append((name.replace("_", " "), ", ".join(parts)))
    seconds = run.get("seconds", {})
    if "total" in seconds:
        rows.append(("seconds", f"{seconds['total']:.2f}"))
    rows += [
        (f"option {name}", without_secrets(str(getattr(card.options, name))))
        for name in given_options(card.options)
    ]
    return [(name, value) for name, value in rows if value]


def _rules(card: Scorecard) -> list[tuple[str, str]]:
    """Return the rules in which a dialect differs from the standard dialect."""
    if card.dialect == "standard":
        return []
    ours, usual = get(card.task, card.dialect).rules, get(card.task, "standard").rules
    if type(ours) is not type(usual) or not isinstance(ours, msgspec.Struct):
        return []
    return [
        (f"rule {name.replace('_', ' ')}", f"{_as_text(setting)} (standard: {_as_text(other)})")
        for name in ours.__struct_fields__
        if (setting := getattr(ours, name)) != (other := getattr(usual, name))
    ]


def _as_text(value: Any) -> str:
    if callable(value):
        return str(getattr(value, "__name__", value))
    return value if isinstance(value, str) else json.dumps(value, default=str)
