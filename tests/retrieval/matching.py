"""Texts of queries matched, from plain lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from evalengine.dialects import get
from evalengine.executors.pools import Threads
from evalengine.tasks.retrieval.texts import Components, match_texts

Array = np.ndarray[Any, Any]


def laid_out(lists: list[list[str]]) -> tuple[pl.Series, Array]:
    """The texts one after the other, and offsets of each list."""
    start = np.cumsum([0, *map(len, lists)])
    return pl.Series([text for texts in lists for text in texts], dtype=pl.String), start


def match(
    retrieved: list[list[str]],
    gold: list[list[str]],
    rule: str,
    dialect: str = "standard",
    threshold: float | None = None,
    workers: int = 1,
) -> Components:
    """Match the lists of all queries."""
    return match_texts(
        *laid_out(retrieved),
        *laid_out(gold),
        rule=rule,
        threshold=threshold,
        rules=get("retrieval", dialect).rules,
        workers=Threads(workers),
    )


def tables(matched: Components) -> list[list[list[bool]]]:
    """Whether each retrieved component matches each gold, by query."""
    found = []
    for q in range(matched.pair_start.size - 1):
        shape = (
            int(matched.retrieved_start[q + 1] - matched.retrieved_start[q]),
            int(matched.gold_start[q + 1] - matched.gold_start[q]),
        )
        part = matched.match[matched.pair_start[q] : matched.pair_start[q + 1]]
        found.append(part.reshape(shape).astype(bool).tolist())
    return found


def one(retrieved: str, gold: str, rule: str, dialect: str = "standard", **options: Any) -> bool:
    """Whether one text matches another."""
    return bool(match([[retrieved]], [[gold]], rule, dialect, **options).match[0])
