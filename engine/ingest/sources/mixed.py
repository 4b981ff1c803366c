"""Columns of Python values of several types, which no typed table can hold: which rows they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

_SHOWN = 3
_LONGEST = 60
_WORDS = {
    str: "strings",
    int: "integers",
    float: "floats",
    bool: "booleans",
    list: "lists",
    dict: "dicts",
    bytes: "bytes",
}


def mixed_columns(columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """One line for each column whose values are of several types, nulls aside.

    Args:
        columns: name to values; integers may stand among floats.

    Returns:
        the column, its types, how many rows are not of the most common one, the first of them,
        and the way out; empty where no column mixes types.
    """
    return [line for name, values in columns.items() if (line := _line(name, values))]


def _line(name: str, values: Sequence[Any]) -> str:
    kinds = [_kind(value) for value in values]
    counts = Counter(kind for kind in kinds if kind is not None)
    if len(counts) < 2 or set(counts) == {int, float}:
        return ""
    usual = counts.most_common(1)[0][0]
    odd = [row for row, kind in enumerate(kinds) if kind is not None and kind is not usual]
    first = "; ".join(f"row {row} ({_short(values[row])})" for row in odd[:_SHOWN])
    shares = ", ".join(
        f"{_WORDS.get(kind, kind.__name__)} in {n:,} row{'s' if n > 1 else ''}"
        for kind, n in counts.most_common()
    )
    return (
        f"- column {name!r} mixes types: {shares}. First rows (counted from 0) of the other kind:"
        f" {first}. Bring all values to one type, for instance each to str(value)."
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _kind(value: Any) -> type | None:
    """A value's type as a table knows it; None for nulls, NaN and NaT among them."""
    if value is None or type(value).__name__ in ("NaTType", "NAType"):
        return None
    if isinstance(value, float) and value != value:
        return None
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        return type(value.item())  # NumPy's scalars stand for Python's
    return type(value)
