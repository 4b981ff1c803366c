"""Verdicts for people: one line on all gates, and a table that begins with those that failed."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ..report.frames import aligned
from .verdicts import FAILED, SKIPPED, Verdict

_ORDER = (FAILED, SKIPPED)


def gates_table(verdicts: Sequence[Verdict]) -> str:
    """All verdicts as text, failed ones first, with as many digits as tell numbers apart."""
    bad = sum(one.status == FAILED for one in verdicts)
    left = sum(one.status == SKIPPED for one in verdicts)
    said = f"{bad} of {len(verdicts)} failed" if bad else f"{len(verdicts) - left} passed"
    said += f", {left} skipped" if left else ""
    ordered = sorted(
        verdicts,
        key=lambda one: _ORDER.index(one.status) if one.status in _ORDER else len(_ORDER),
    )
    rows = [
        {
            "status": one.status,
            "gate": one.gate,
            "row": one.row or None,
            "value": _number(one.value),
            "bound": _number(one.bound),
            "baseline": _number(one.baseline),
            "reason": one.reason or None,
        }
        for one in ordered
    ]
    columns = ("status", "gate", "row", "value", "bound", "baseline", "reason")
    frame = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String))
    return f"gates: {said}\n{aligned(frame)}"


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.6g}"
