"""Checks of list ranks: unique within a list, and gaps."""

from __future__ import annotations

import numpy as np
import polars as pl

from evalengine.schemas.errors import InputError

from ..schemas.arrays import Array
from .problems import listing
from .repeats import rows_repeat

_EXACT = 2.0**52  # whole floats below it have exact differences
_ROOM = 2.0**62


def check_ranks(query: Array, rank: Array, queries: pl.Series, table: str) -> str | None:
    """Refuse a rank that two documents of a query share; report gaps.

    Args:
        query: int32 or int64 [n], code of each row's query.
        rank: float64 [n], finite.

    Returns:
        A note on gaps, or None.

    Raises:
        InputError: names the first rows that share a rank.
    """
    if not rank.size:
        return None
    if _shared(query, rank):
        _refuse(query, rank, queries, table)
    low, high = np.full(len(queries), np.inf), np.full(len(queries), -np.inf)
    np.minimum.at(low, query, rank)
    np.maximum.at(high, query, rank)
    count = np.bincount(query, minlength=len(queries))
    gaps = np.flatnonzero((count > 0) & (high - low + 1 != count))
    if not gaps.size:
        return None
    named = listing([queries[int(code)] for code in gaps[:5]], gaps.size)
    return (
        f"the ranks of {gaps.size:,} {'query' if gaps.size == 1 else 'queries'} have gaps:"
        f" {named}; documents are counted in their order, the lowest rank as the first."
    )


def _shared(query: Array, rank: Array) -> bool:
    """Return whether two rows have the same query and rank; whole ranks are packed into one
    integer.
    """
    low, high = float(rank.min()), float(rank.max())
    span = high - low + 1
    exact = max(-low, high) < _EXACT and (float(query.max()) + 1) * span < _ROOM
    if not (exact and bool((rank == np.floor(rank)).all())):
        return rows_repeat(pl.DataFrame({"query": query, "rank": rank}), ["query", "rank"])
    key = query.astype(np.int64) * int(span) + (rank - low).astype(np.int64)
    return rows_repeat(pl.DataFrame({"key": key}), ["key"])


def _refuse(query: Array, rank: Array, queries: pl.Series, table: str) -> None:
    rows = pl.DataFrame({"query": query, "rank": rank}).with_row_index("row")
    shared = rows.filter(pl.struct("query", "rank").is_duplicated())
    first = ", ".join(
        f"row {row} (query_id={queries[code]!r}, rank={place:g})"
        for row, code, place in shared.head(3).iter_rows()
    )
    raise InputError(
        f"{table}: column 'rank' has ties: {shared.height:,} rows share their rank with"
        f" another document of the query, first (rows count from 0): {first}. Give a score, or"
        " ranks that all differ.",
        code="tied_ranks",
        column="rank",
        count=shared.height,
    )
