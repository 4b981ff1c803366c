"""Checks that bounds of predicted intervals and quantiles are ordered."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl

from .problems import count_of, note_of

if TYPE_CHECKING:
    from .checks import Check


def check_ends(check: Check, seen: Mapping[str, Any]) -> None:
    """Refuse lower bounds above upper ones; note columns that do not increase with their level."""
    names = {column.name for column in check.columns}
    for column in check.columns:
        if column.below not in names:
            continue
        ends = [column.name, column.below]
        wrong = _above(*ends)
        n = check.count(wrong)
        if n:
            check.add(
                "bounds_inverted", column.name, n,
                f"{check.named(ends)}: {count_of(n, 'row')} with {' above '.join(ends)},"
                f" {check.rows(wrong, ends)}. Swap the ends, or remove these rows.",
            )  # fmt: skip
    rising = [column.name for column in check.columns if column.rising]
    if len(rising) > 1:
        crossed = pl.any_horizontal(_above(*pair) for pair in pairwise(rising))
        n = check.count(crossed)
        if n:
            words = ("row has", "rows have", "a quantile above one of a higher level")
            check.notes.append(note_of("crossing_quantiles", n, words))


def _above(low: str, high: str) -> pl.Expr:
    """Return an expression for low above high; NaN, which Polars sorts last, is reported
    elsewhere.
    """
    return (pl.col(low) > pl.col(high)) & pl.col(low).is_finite()
