"""Bitmaps of integers and codes of ids give the results of sets."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalengine.ingest.ids import ALL, Bucket, DatumIds, bitmap_of, dealt, encode
from evalengine.schemas.tuning import Tuning, tuned

ENDS = {
    pl.Int8: (-128, 127),
    pl.UInt8: (0, 255),
    pl.Int32: (-(2**31), 2**31 - 1),
    pl.Int64: (-(2**63), 2**63 - 1),
    pl.UInt64: (0, 2**64 - 1),
}

SWITCH = (1, 10**9)
"""Number of rows from which kernels, instead of NumPy, mark and look up integers."""


@st.composite
def close(draw: st.DrawFn, n_columns: int = 1) -> list[pl.Series]:
    """Return columns of integers close to one another, often at a limit of their dtype."""
    dtype = draw(st.sampled_from(list(ENDS)))
    low, high = ENDS[dtype]
    first = draw(st.sampled_from([low, high - 40, max(low, -20)]))
    values = st.lists(st.integers(first, first + 40), min_size=1, max_size=30)
    return [pl.Series("x", draw(values), dtype=dtype) for _ in range(n_columns)]


@settings(deadline=None)
@given(close(), st.sampled_from(SWITCH))
def test_bitmaps_are_the_set(columns: list[pl.Series], unmarked: int) -> None:
    with tuned(block_rows=7, unmarked_rows=unmarked):
        chunked = pl.concat([columns[0], columns[0].reverse()], rechunk=False)
        result = bitmap_of([chunked], 41)
        assert result is not None
        expected = sorted(set(columns[0].to_list()))
        assert result.series(columns[0]).to_list() == expected
        assert result.series(columns[0]).dtype == columns[0].dtype
        assert result.count == len(expected)
        assert bitmap_of([chunked], result.flags.size - 1) is None


@settings(deadline=None)
@given(close(2), st.sampled_from(SWITCH))
def test_codes_from_bitmaps_are_positions_in_the_set(
    columns: list[pl.Series], unmarked: int
) -> None:
    with tuned(block_rows=7, unmarked_rows=unmarked):
        values, found = encode(columns)
        assert values.to_list() == sorted(set(columns[0]) | set(columns[1]))
        assert values.dtype == columns[0].dtype
        for column, code in zip(columns, found, strict=True):
            assert code.dtype == np.int32
            assert values.gather(code).to_list() == column.to_list()


def compared(columns: list[pl.Series], bucket: Bucket = ALL) -> None:
    """Compare the ids of two tables with sets."""
    first, second = (set(column.to_list()) for column in columns)
    ids = DatumIds.of(dict(zip("ab", columns, strict=True)), bucket)
    order = {"key": str.encode} if columns[0].dtype == pl.String else {}
    assert ids.values.to_list() == sorted(first | second, **order)
    assert ids.count("a") == len(first)
    assert ids.in_table("b").to_list() == sorted(second, **order)
    assert ids.minus("a", "b").to_list() == sorted(first - second, **order)
    for name, column in zip("ab", columns, strict=True):
        assert ids.values.gather(ids.codes[name]).to_list() == column.to_list()


@settings(deadline=None)
@given(close(2), st.sampled_from(SWITCH))
def test_ids_compare_as_sets(columns: list[pl.Series], unmarked: int) -> None:
    with tuned(unmarked_rows=unmarked):
        compared(columns)


@pytest.mark.parametrize("n", [20, Tuning().few_rows])
def test_texts_compare_as_sets(n: int) -> None:
    rng = np.random.default_rng(n)
    compared(
        [pl.Series("id", [f"é{i:x}" for i in rng.integers(0, most, n)]) for most in (400, 300)]
    )


@settings(deadline=None)
@given(close(2), st.sampled_from([2, 7, 27, 400]))
def test_bitmaps_of_a_bucket_are_the_set(columns: list[pl.Series], of: int) -> None:
    if columns[0].dtype == pl.UInt64:
        assert dealt(columns[0], of) is None
        return
    n = 0
    for number in range(of):
        held = [c.filter(pl.Series(dealt(c, of)) == number) for c in columns]
        n += sum(map(len, held))
        compared(held, Bucket(number, of))
    assert n == sum(map(len, columns))


@pytest.mark.parametrize("step", [1, 2, 27, 270, 1 << 40])
def test_ids_in_any_steps_fill_buckets_evenly(step: int) -> None:
    found = dealt(pl.Series(range(0, 5400 * step, step)) - 2**40, 27)
    sizes = np.bincount(found.astype(np.int64), minlength=27)
    assert abs(sizes - 200).max() < 80


def test_the_bucket_of_an_id_depends_on_no_other_id() -> None:
    ends = [-(2**63), 2**63 - 1, 0, -(2**63) + 1, 2**63 - 2, -1, 2**63 - 3, -(2**63)]
    for of in (3, 27):
        together = dealt(pl.Series(ends), of)
        assert together is not None
        alone = [int(dealt(pl.Series([one]), of)[0]) for one in ends]  # type: ignore[index]
        assert together.tolist() == alone


def test_codes_are_of_the_rows_that_were_coded() -> None:
    ids = pl.Series([3, 1, 2, 3])
    known = DatumIds.of({"a": ids}, ALL)
    found = known.of_rows("a", ids)
    assert found is not None
    assert known.values.gather(found).to_list() == ids.to_list()
    for other in (ids.reverse().head(4), ids.head(3), ids + 1):
        rows = known.of_rows("a", other)
        assert rows is None or other.to_list() == ids.to_list()
