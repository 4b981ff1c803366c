"""Notes about integers above 2^53 that floats cannot represent, for every table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evalengine as ee

BIG = 2**53
SCORES = [BIG, BIG + 1, BIG + 2, 3]


def rounding_notes(*tables: Any, **options: Any) -> list[str]:
    return [note for note in ee.score(*tables, **options).notes if "beyond 2^53" in note]


@pytest.mark.parametrize("limit", [None, "500MB"])
@pytest.mark.parametrize("kind", ["memory", "parquet", "csv"])
def test_scores_that_become_ties_are_noted(kind: str, limit: str | None, tmp_path: Path) -> None:
    table: Any = pl.DataFrame({"actual": [0, 1, 0, 1], "prob": pl.Series(SCORES, dtype=pl.Int64)})
    if kind != "memory":
        path = tmp_path / f"a.{kind}"
        getattr(table, f"write_{kind}")(path)
        table = path
    assert rounding_notes(table, metrics=["ROCAUC"], memory_limit=limit) == [
        f"table: column 'prob': 1 integer beyond 2^53 rounded to float64, first {BIG + 1};"
        " different ones may tie."
    ]
    kept = {"metrics": ["ROCAUC"], "where": f"prob <> {BIG + 1}", "memory_limit": limit}
    assert rounding_notes(table, **kept) == []


@pytest.mark.parametrize("dtype", [pl.Int64, pl.UInt64, pl.Int128])
def test_the_ends_of_integers(dtype: Any) -> None:
    top = 2**63 - 1 if dtype == pl.Int64 else 2**64 - 1
    low = 0 if dtype == pl.UInt64 else -BIG - 1
    scores = pl.Series([top, low, BIG, 1], dtype=dtype)
    (message,) = rounding_notes(pl.DataFrame({"actual": [0, 1, 0, 1], "score": scores}))
    assert ("2 integers beyond", "1 integer beyond")[dtype == pl.UInt64] in message


def test_relevance_of_retrieval_and_floats() -> None:
    run = pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [2.0**60, 1.0]})
    qrels = run.drop("score").with_columns(relevance=pl.Series([BIG + 1, 1]))
    (message,) = rounding_notes(run, qrels, metrics=["MAP"])
    assert "'relevance': 1 integer beyond" in message
    assert rounding_notes(run, qrels.with_columns(relevance=pl.lit(1)), metrics=["MAP"]) == []
