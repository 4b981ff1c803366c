"""Ranks of lists: ties are refused and gaps are noted, for numbers of any size."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

import evalengine as ee
from evalengine.ingest.shapes import check_ranks

QUERIES = pl.Series(["a", "b", "c"])
ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), max_size=12)
PLACES = {
    "whole": lambda rank: rank,
    "halves": lambda rank: rank / 2,
    "below 0": lambda rank: rank - 3,
    "far": lambda rank: rank * 2.0**60,
    "near and far": lambda rank: 1.0 if rank == 0 else 2.0**53 + 2 * rank,
}


@given(ROWS, st.sampled_from(sorted(PLACES)))
def test_against_sets(rows: list[tuple[int, int]], places: str) -> None:
    query = np.array([q for q, _ in rows], np.int32)
    rank = np.array([PLACES[places](r) for _, r in rows], np.float64)
    by_query: dict[int, list[float]] = {}
    for q, r in zip(query.tolist(), rank.tolist(), strict=True):
        by_query.setdefault(q, []).append(r)
    shared = sum(own.count(r) > 1 for own in by_query.values() for r in own)
    if shared:
        with refused("tied_ranks", ee.InputError, column="rank", count=shared):
            check_ranks(query, rank, QUERIES, "it")
        return
    gaps = [QUERIES[q] for q, own in by_query.items() if max(own) - min(own) + 1 != len(own)]
    told = check_ranks(query, rank, QUERIES, "it")
    assert (told is None) == (not gaps)
    if told is not None:
        assert told.startswith(f"the ranks of {len(gaps)} ")
        assert all(repr(name) in told for name in gaps)


def test_the_first_rows_are_named() -> None:
    query, rank = np.array([1, 0, 1, 1], np.int32), np.array([2.0, 2.0, 1.5, 2.0])
    with refused("tied_ranks", ee.InputError, match="row 0 .*, row 3", column="rank", count=2):
        check_ranks(query, rank, QUERIES, "it")
