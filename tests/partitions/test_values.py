"""Tables of values in buckets: numbers and notes equal those of a run in memory."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from merging.parts import Case
from merging.test_parts import CASES
from partitions.cases import in_buckets, next_seed, same_as_in_memory


@pytest.fixture(autouse=True)
def _buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch)


def test_long_tables(tmp_path: Path) -> None:
    case = CASES["values"][1](next_seed())
    same_as_in_memory(case, "values", tmp_path)


@pytest.mark.parametrize("by", [False, True])
def test_all_metrics_of_a_table(tmp_path: Path, by: bool) -> None:
    """Long tables name their metrics in rows of all buckets."""
    case = CASES["values"][1](next_seed())
    rows = case.sides[0].with_columns(topic=pl.col("datum_id").cast(pl.String).str.tail(1))
    options = {"statistics": ["mean", "p95"], "by": ["topic"] if by else [], "intervals": 0.95}
    same_as_in_memory(Case((rows,), {**options, "draws": 20}), "values", tmp_path)


@pytest.mark.parametrize("ids", [True, False])
def test_wide_tables(tmp_path: Path, ids: bool) -> None:
    table = pl.DataFrame(
        {
            "datum_id": range(40),
            "a": [None if i % 7 == 0 else i * 0.1 for i in range(40)],
            "b": [i % 3 == 0 for i in range(40)],
            "size": [i % 4 for i in range(40)],
        }
    )
    options = {"statistics": ["mean", "median", "std", "max"], "by": ["size"]}
    wide = table if ids else table.drop("datum_id")
    same_as_in_memory(Case((wide,), options), "values", tmp_path)


@pytest.mark.parametrize("largest", [True, 1, 2])
def test_proportions(tmp_path: Path, largest: int) -> None:
    """One other value in one bucket makes the mean of all no proportion."""
    values = [largest, *[type(largest)(0)] * 39]
    table = pl.DataFrame({"datum_id": range(40), "a": values})
    case = Case((table,), {"value_columns": ["a"], "intervals": 0.95})
    card = same_as_in_memory(case, "values", tmp_path)
    assert card.metrics["trials"].to_list() == [None if largest == 2 else 40]
    notes = [one.code for one in card.findings].count("values_of_0_and_1")
    assert notes == (largest is not True and largest < 2)
