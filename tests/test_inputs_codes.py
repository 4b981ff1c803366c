"""Codes of ids and labels are equal by a table, by a join of few rows and by hashes of many."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sizes import tune

from evalengine.ingest import ids


@pytest.mark.parametrize("few", [0, 10**9])
@pytest.mark.parametrize("kind", ["strings", "wide integers", "negative integers"])
def test_codes_ascend_and_lead_back(few: int, kind: str) -> None:
    tune(few_rows=few, unmarked_rows=few)
    rng = np.random.default_rng(4)
    numbers = rng.integers(-(2**62), 2**62, 3000)[rng.integers(0, 3000, 20_000)]
    columns = {
        "strings": pl.Series([f"né{n % 7001}" for n in numbers.tolist()]),
        "wide integers": pl.Series(numbers),
        "negative integers": pl.Series(numbers % 97 - 50),
    }
    sides = [columns[kind][:12_000], columns[kind][12_000:]]
    values, found = ids.encode(sides)
    assert values.to_list() == sorted(set(columns[kind].to_list()))
    for side, code in zip(sides, found, strict=True):
        assert code.dtype == np.int32
        assert values.gather(code).to_list() == side.to_list()
    assert ids.distinct(sides[0]).to_list() == sorted(set(sides[0].to_list()))


def test_columns_without_rows_may_have_other_dtypes() -> None:
    values, codes = ids.encode([pl.Series([], dtype=pl.Int64), pl.Series([], dtype=pl.String)])
    assert (len(values), [*map(len, codes)]) == (0, [0, 0])
