"""Matching of texts in plain lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from evalengine.dialects import get
from evalengine.executors.pools import Threads
from evalengine.tasks.retrieval.texts import Components, match_texts

Array = np.ndarray[Any, Any]


def flattened(lists: list[list[str]]) -> tuple[pl.Series, Array]:
    """Flatten lists of texts; return the texts and the offsets of each list."""
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
        *flattened(retrieved),
        *flattened(gold),
        rule=rule,
        threshold=threshold,
        rules=get("retrieval", dialect).rules,
        workers=Threads(workers),
    )


def tables(matched: Components) -> list[list[list[bool]]]:
    """Return per query a table of matches of retrieved by relevant components."""
    by_query = []
    for q in range(matched.pair_start.size - 1):
        shape = (
            int(matched.retrieved_start[q + 1] - matched.retrieved_start[q]),
            int(matched.gold_start[q + 1] - matched.gold_start[q]),
        )
        part = matched.match[matched.pair_start[q] : matched.pair_start[q + 1]]
        by_query.append(part.reshape(shape).astype(bool).tolist())
    return by_query


def one(retrieved: str, gold: str, rule: str, dialect: str = "standard", **options: Any) -> bool:
    """Return True if a text matches another."""
    return bool(match([[retrieved]], [[gold]], rule, dialect, **options).match[0])
