"""Ends of predicted intervals, and quantiles: the lower is not above the upper."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl

from .problems import count_of, note_of

if TYPE_CHECKING:
    from .checks import Check

_ENDS = ["lower", "upper"]
_QUANTILE = re.compile(r"q\d.*")


def check_ends(check: Check, seen: Mapping[str, Any]) -> None:
    """Refuse intervals whose lower end is above the upper; tell of quantiles that cross."""
    names = [column.name for column in check.columns]
    if set(_ENDS) <= set(names):
        wrong = _above("lower", "upper")
        n = check.count(wrong)
        if n:
            check.add(
                "lower", n,
                f"{check.named(_ENDS)}: {count_of(n, 'row')} with lower above upper,"
                f" {check.rows(wrong, _ENDS)}. Swap the ends, or remove these rows.",
            )  # fmt: skip
    quantiles = [name for name in names if _QUANTILE.fullmatch(name)]
    if len(quantiles) > 1:
        crossed = pl.any_horizontal(_above(*pair) for pair in pairwise(quantiles))
        n = check.count(crossed)
        if n:
            words = ("row has", "rows have", "a quantile above one of a higher level")
            check.notes.append(note_of("crossing_quantiles", n, words))


def _above(low: str, high: str) -> pl.Expr:
    """Where one is above the other; NaN, which Polars sorts last, is told elsewhere."""
    return (pl.col(low) > pl.col(high)) & pl.col(low).is_finite()
