"""Rules that detect interpretations of the input that make its numbers meaningless.

A rule is data: a code, tasks, signals that trigger it, a function that inspects the evidence, and a
function that words the facts. Signals are by-products of a run: column names, counts of notes,
ranges of values. A clean table has none, so no rule runs. To add a rule, append it to the table of
its stage and define its signal there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Generic, TypeVar

import msgspec
import polars as pl

from evalengine.ingest.collecting import Prepared
from evalengine.ingest.problems import Note, Problem
from evalengine.ingest.where import filtered

NOTE, WARNING, PROBLEM = "note", "warning", "problem"

Evidence = TypeVar("Evidence")


def words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


def rows_of(ready: Prepared, role: str) -> pl.LazyFrame:
    """Return the rows of a table that its condition keeps, with its own columns."""
    side = ready.sides[role]
    if role not in ready.where:
        return side.source.frame
    return filtered(side.source.frame, side, ready.where[role])


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Findings of a rule as plain values.

    Attributes:
        severity: ``note``, ``warning`` (the result may be meaningless) or ``problem`` (the input is
            refused).
        side: role of the table concerned; empty for both.
        count: number of rows, datums or labels concerned, or None.
        of: number inspected, or None.
        rows: first rows concerned, from 0.
        values: everything else, by name; plain values that can be written as JSON.
    """

    severity: str
    side: str = ""
    columns: tuple[str, ...] = ()
    count: int | None = None
    of: int | None = None
    rows: tuple[int, ...] = ()
    values: dict[str, Any] = {}


class Rule(msgspec.Struct, Generic[Evidence], frozen=True):
    """Check of the input for one kind of fault.

    Attributes:
        tasks: names of its tasks; empty for all.
        look: returns facts from the evidence; empty for none.
        describe: the message of facts, options marked as in :mod:`evalengine.schemas.wording`.
    """

    code: str
    needs: AbstractSet[str]
    look: Callable[[Evidence], Iterable[Facts]]
    describe: Callable[[Facts], str]
    tasks: AbstractSet[str] = frozenset()

    def __post_init__(self) -> None:
        assert _DESCRIBE.setdefault(self.code, self.describe) is self.describe, (
            f"two rules {self.code!r}"
        )


_DESCRIBE: dict[str, Callable[[Facts], str]] = {}
"""Code of a rule -> function that words its facts."""


def apply(
    rules: Sequence[Rule[Evidence]], task: str, signals: AbstractSet[str], evidence: Evidence
) -> tuple[list[Note], list[Problem]]:
    """Run the rules triggered by signals."""
    notes: list[Note] = []
    problems: list[Problem] = []
    if not signals:
        return notes, problems
    for rule in rules:
        if not rule.needs <= signals or (rule.tasks and task not in rule.tasks):
            continue
        for facts in rule.look(evidence):
            message, plain = rule.describe(facts), as_plain(facts)
            if facts.severity == PROBLEM:
                column = facts.columns[0] if facts.columns else ""
                problems.append(
                    Problem(facts.side, column, message, facts.count, kind=rule.code, facts=plain)
                )
            else:
                warning = facts.severity == WARNING
                notes.append(Note(rule.code, message, facts.count, warning=warning, facts=plain))
    return notes, problems


def codes() -> frozenset[str]:
    """Return the codes of all rules whose modules are imported."""
    return frozenset(_DESCRIBE)


def reworded(code: str, plain: dict[str, Any]) -> str | None:
    """Return a rule's message from its note's facts (:func:`as_plain`); None without a rule."""
    describe = _DESCRIBE.get(code)
    if describe is None:
        return None
    fields = {name: plain[name] for name in Facts.__struct_fields__ if name in plain}
    rest = {name: one for name, one in plain.items() if name not in fields}
    named: dict[str, Any] = {
        name: tuple(one) if isinstance(one, list) else one for name, one in fields.items()
    }
    return describe(Facts(severity=NOTE, values=rest, **named))


def as_plain(facts: Facts) -> dict[str, Any]:
    """Return facts without empty fields, ``values`` merged in, for a note's ``facts``."""
    named = {
        "side": facts.side,
        "columns": list(facts.columns),
        "count": facts.count,
        "of": facts.of,
        "rows": list(facts.rows),
    }
    return {name: one for name, one in named.items() if one not in ("", [], None)} | facts.values
