"""Rows of single datums as dicts, which several tools' shapes are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from evalengine.schemas.errors import ResultError

if TYPE_CHECKING:
    from evalengine.scorecard import Scorecard

Key = Callable[[str, int | None], str | None]
"""From metric and cut-off to the name another tool has for it, None where it has none."""


def dicts_of(
    card: Scorecard, key: Key, *, shape: str, undefined: float = 0.0
) -> list[dict[str, float]]:
    """One dict per datum, in the order of the frame.

    Args:
        card: a scorecard, fresh or loaded.
        key: names.
        shape: for messages.
        undefined: what stands for values that are.

    Raises:
        ResultError: nothing among the metrics that the tool has.
    """
    found: dict[Any, dict[str, float]] = {}
    some = False
    columns = ("datum_id", "metric", "k", "value")
    for datum, metric, k, value in card.per_datum.select(columns).iter_rows():
        name = key(metric, k)
        row = found.setdefault(datum, {})
        if name is not None:
            row[name] = undefined if value is None else value
            some = True
    if not some and found:
        asked = ", ".join(card.per_datum["metric"].unique(maintain_order=True))
        raise ResultError(f"to_{shape}() shows none of the metrics of this run: {asked}.")
    return list(found.values())
