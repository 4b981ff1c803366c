"""Verdicts for people: one line on all gates, and a table that begins with those that failed."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ..report.frames import aligned, markdown_frame
from ..report.summary import plain
from .verdicts import FAILED, SKIPPED, Verdict

_ORDER = (FAILED, SKIPPED)


def gates_table(verdicts: Sequence[Verdict]) -> str:
    """Format all verdicts, failed ones first, with enough digits to distinguish numbers."""
    return f"{headline(verdicts)}\n{aligned(_frame(verdicts))}"


def gates_markdown(verdicts: Sequence[Verdict]) -> str:
    """The same as Markdown."""
    return f"**{headline(verdicts)}**\n\n{markdown_frame(_frame(verdicts))}"


def headline(verdicts: Sequence[Verdict]) -> str:
    bad = sum(one.status == FAILED for one in verdicts)
    left = sum(one.status == SKIPPED for one in verdicts)
    said = f"{bad} of {len(verdicts)} failed" if bad else f"{len(verdicts) - left} passed"
    return f"gates: {said}" + (f", {left} skipped" if left else "")


def named(one: Verdict) -> str:
    """Return a gate's name, with its row if it has several."""
    return f"{one.gate} [{one.row}]" if one.row else one.gate


def sentence(one: Verdict) -> str:
    """Return the numbers behind a verdict, in one line."""
    parts = [
        f"{name} {_number(value)}"
        for name, value in (("value", one.value), ("bound", one.bound), ("baseline", one.baseline))
        if value is not None
    ]
    if one.level is not None:
        parts.append(f"{100 * one.level:g} % interval of the {_interval(one)}")
    if one.n is not None:
        parts.append(f"{one.n:,} datums")
    return "; ".join(filter(None, (", ".join(parts), one.reason)))


def ordered(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Verdicts, failed ones first."""
    return sorted(
        verdicts,
        key=lambda one: _ORDER.index(one.status) if one.status in _ORDER else len(_ORDER),
    )


def _frame(verdicts: Sequence[Verdict]) -> pl.DataFrame:
    rows = [
        {
            "status": one.status,
            "gate": plain(one.gate),
            "row": plain(one.row) or None,
            "value": _number(one.value),
            "bound": _number(one.bound),
            "baseline": _number(one.baseline),
            "interval": _interval(one) or None,
            "n": None if one.n is None else f"{one.n:,}",
            "reason": plain(one.reason) or None,
        }
        for one in ordered(verdicts)
    ]
    columns = (
        "status", "gate", "row", "value", "bound", "baseline", "interval", "n", "reason",
    )  # fmt: skip
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String))


def _interval(one: Verdict) -> str:
    if one.lower is None or one.upper is None:
        return ""
    sign = "+" if one.interval_of == "difference" else ""
    return f"{one.interval_of} [{one.lower:{sign}.4f}, {one.upper:{sign}.4f}]"


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.6g}"
