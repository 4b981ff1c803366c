"""Rows of single datums as dicts, which several tools' shapes are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import polars as pl

from evalengine.schemas.errors import ResultError

if TYPE_CHECKING:
    from evalengine.scorecard.card import Scorecard

Key = Callable[[str, int | None], str | None]
"""Function from metric and cut-off to another tool's name for it, or None."""


class Rows(list[dict[str, float]]):
    """Dicts per datum, with their ids for joins with the data set.

    Attributes:
        ids: datum id of each dict.
    """

    def __init__(self, found: dict[Any, dict[str, float]]) -> None:
        super().__init__(found.values())
        self.ids = list(found)


def dicts_of(card: Scorecard, key: Key, *, shape: str, undefined: float = 0.0) -> Rows:
    """Return one dict per datum that counts in means, in the order of the frame.

    That is the order of the rows for one table, and of the ids for two.

    Args:
        card: a scorecard, new or loaded.
        shape: name for messages.
        undefined: replacement for undefined values.

    Raises:
        ResultError: the scorecard has no metric of that tool.
    """
    found: dict[Any, dict[str, float]] = {}
    some = False
    rows = card.frame("per_datum").filter(
        pl.col("value").is_not_null() | ~pl.col("status").is_in(["not_judged", "not_retrieved"])
    )
    for datum, metric, k, value in rows.select("datum_id", "metric", "k", "value").iter_rows():
        name = key(metric, k)
        row = found.setdefault(datum, {})
        if name is None:
            continue
        if name in row:
            raise ResultError(
                f"to_{shape}() shows {metric} once, and this run has several, which differ in"
                " their parameters: score with one relevance level.",
                code="metric_repeated",
                metric=metric,
            )
        row[name] = undefined if value is None else value
        some = True
    if not some and found:
        asked = ", ".join(card.frame("per_datum")["metric"].unique(maintain_order=True))
        raise ResultError(f"to_{shape}() shows none of the metrics of this run: {asked}.")
    return Rows(found)
