"""Uniqueness and common ids: every method gives the result of sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sizes import tune

from evalengine.ingest.ids import rows_repeat

ints = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))
texts = st.sampled_from(["", "a", "b", "ab", "é"])
columns = st.sampled_from([(ints,), (texts,), (ints, ints), (ints, texts), (ints, texts, texts)])


@given(st.data(), columns, st.booleans())
def test_rows_repeat_is_that_of_sets(data: st.DataObject, kinds: Any, ordered: bool) -> None:
    rows = data.draw(st.lists(st.tuples(*kinds), max_size=12))
    rows = sorted(rows) if ordered else rows
    schema = {f"c{i}": pl.Int64 if kind is ints else pl.String for i, kind in enumerate(kinds)}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    assert rows_repeat(frame, frame.columns) == (len(set(rows)) < len(rows))


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("shuffled", [False, True])
def test_no_exact_check_if_no_row_repeats(
    monkeypatch: pytest.MonkeyPatch, text: bool, shuffled: bool
) -> None:
    frame = pl.DataFrame({"datum_id": np.repeat(np.arange(3000), 4), "label": [0, 1, 2, 3] * 3000})
    if text:
        frame = frame.cast(pl.String).sort("datum_id", "label")
    frame = frame.sample(fraction=1.0, shuffle=True, seed=1) if shuffled else frame
    asked: list[Any] = []
    monkeypatch.setattr(pl.DataFrame, "is_duplicated", lambda self: asked.append(1))
    assert not rows_repeat(frame, ["datum_id", "label"])
    assert not asked


@pytest.mark.parametrize("at", [1, 999, 1000, 1001, 2000, 2999])
def test_any_repeat_is_out_of_order(at: int) -> None:
    """Rows are checked in blocks, which share one row."""
    tune(pair_rows=1000)
    rows = np.arange(3000)
    rows[at] = rows[at - 1]
    frame = pl.DataFrame({"datum_id": rows // 3, "label": rows % 3})
    assert rows_repeat(frame, frame.columns)
    assert rows_repeat(frame.cast(pl.String), frame.columns)


@pytest.mark.parametrize("few", [1, 100_000])
def test_wide_ranges_of_short_integers_do_not_overflow(few: int) -> None:
    """The difference of two 8-bit integers may need 9 bits."""
    tune(unmarked_rows=few)
    pairs = np.array([(a, b) for b in range(40) for a in range(-128, 72)], np.int8)
    rows = np.random.default_rng(0).permutation(pairs)
    assert not rows_repeat(pl.DataFrame(rows, schema=["a", "b"]), ["a", "b"])
    rows[0] = rows[-1]
    assert rows_repeat(pl.DataFrame(rows, schema=["a", "b"]), ["a", "b"])
