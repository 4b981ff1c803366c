"""Strings are ordered by their bytes, with any prefix and any ties."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalengine.ingest.ids import text_order
from evalengine.schemas.tuning import tuned

parts = st.sampled_from(["", "a", "b", "é", "\0", "abcdefgh", "abcdefghi", "\U0001f600"])
texts = st.lists(parts, max_size=5).map("".join)


@pytest.mark.parametrize("fewer", [0, 3])
@given(st.lists(st.one_of(texts, st.text(max_size=20)), min_size=1, max_size=30, unique=True))
def test_order_is_that_of_bytes(fewer: int, values: list[str]) -> None:
    with tuned(few_texts=fewer):
        found = text_order(pl.Series(values, dtype=pl.String))
    assert [values[i] for i in found] == sorted(values, key=str.encode)


@pytest.mark.parametrize("pattern", ["im{}", "a/{}/{}.jpg", "{}", "{}\0\0", "same beginning {} {}"])
def test_many_shuffled_strings(pattern: str) -> None:
    numbers = np.random.default_rng(5).permutation(5000).tolist()
    values = [pattern.format(n % 7 if pattern.count("{}") > 1 else n, n) for n in numbers]
    values += [value + "\0" for value in values[:3000]]
    series = pl.Series(values)
    assert [values[i] for i in text_order(series)] == sorted(values, key=str.encode)
