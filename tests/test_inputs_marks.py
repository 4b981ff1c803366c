"""Flags of integers: whoever sets them, they answer as sets do."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalengine.ingest import ids as codes
from evalengine.ingest import ids as repeats
from evalengine.ingest.ids import Bucket, Known, Marks, dealt, marks_of
from evalengine.schemas.tuning import tuned

ENDS = {
    pl.Int8: (-128, 127),
    pl.UInt8: (0, 255),
    pl.Int32: (-(2**31), 2**31 - 1),
    pl.Int64: (-(2**63), 2**63 - 1),
    pl.UInt64: (0, 2**64 - 1),
}


@st.composite
def close(draw: st.DrawFn, n_columns: int = 1) -> list[pl.Series]:
    """Columns of integers near one another, often at an end of what their dtype holds."""
    dtype = draw(st.sampled_from(list(ENDS)))
    low, high = ENDS[dtype]
    first = draw(st.sampled_from([low, high - 40, max(low, -20)]))
    values = st.lists(st.integers(first, first + 40), min_size=1, max_size=30)
    return [pl.Series("x", draw(values), dtype=dtype) for _ in range(n_columns)]


@settings(deadline=None)
@given(close())
def test_marks_are_the_set(columns: list[pl.Series]) -> None:
    with tuned(block_rows=7):
        chunked = pl.concat([columns[0], columns[0].reverse()], rechunk=False)
        found = marks_of(chunked, 41)
        assert found is not None
        expected = sorted(set(columns[0].to_list()))
        assert found.series(columns[0]).to_list() == expected
        assert found.series(columns[0]).dtype == columns[0].dtype
        assert found.count == len(expected)
        assert (found.low, found.end) == (expected[0], expected[-1] + 1)
        assert marks_of(chunked, found.end - found.low - 1) is None


@settings(deadline=None)
@given(close(2), st.booleans())
def test_codes_from_flags_are_places_in_the_set(columns: list[pl.Series], handed_on: bool) -> None:
    with tuned(block_rows=7):
        made = [marks_of(column, 41) for column in columns] if handed_on else []
        values, found = codes.encode(columns, made)
        assert values.to_list() == sorted(set(columns[0]) | set(columns[1]))
        assert values.dtype == columns[0].dtype
        for column, code in zip(columns, found, strict=True):
            assert code.dtype == np.int32
            assert values.gather(code).to_list() == column.to_list()


@settings(deadline=None)
@given(close(2))
def test_ids_with_flags_compare_as_sets(columns: list[pl.Series]) -> None:
    first, second = map(set, columns)
    ours, theirs = map(Known, columns)
    assert len(ours.lacking(theirs)) == len(first - second)
    assert ours.lacking(theirs).first(3) == sorted(first - second)[:3]


@settings(deadline=None)
@given(close(2), st.sampled_from([2, 7, 27, 400]), st.booleans())
def test_flags_of_a_bucket_are_the_set(columns: list[pl.Series], of: int, both: bool) -> None:
    if columns[0].dtype == pl.UInt64:
        assert dealt(columns[0], of) is None
        return
    n = 0
    for number in range(of):
        bucket = Bucket(number, of)
        held = [c.filter(pl.Series(dealt(c, of)) % of == number) for c in columns]
        n += sum(map(len, held))
        ours, theirs = map(set, held)
        marks = [marks_of(column, 41, bucket) for column in held]
        if not ours or not theirs:
            continue
        if not both:
            marks[1] = None
        first, second = map(Known, held, marks)
        assert first.lowest(2).to_list() == sorted(ours)[:2]
        assert first.lacking(second).first(40) == sorted(ours - theirs)
        values, found = codes.encode(held, marks)
        assert values.to_list() == sorted(ours | theirs)
        for column, code in zip(held, found, strict=True):
            assert values.gather(code).to_list() == column.to_list()
    assert n == sum(map(len, columns))


@pytest.mark.parametrize("step", [1, 2, 27, 270, 1 << 40])
def test_ids_in_any_steps_fill_buckets_evenly(step: int) -> None:
    found = dealt(pl.Series(range(0, 5400 * step, step)) - 2**40, 27)
    sizes = np.bincount(found % np.uint64(27), minlength=27)
    assert abs(sizes - 200).max() < 80


def test_flags_made_by_the_checks_are_handed_on() -> None:
    made: dict[str, Marks] = {}
    ids = np.random.default_rng(3).permutation(5000)
    assert not repeats.rows_repeat(pl.DataFrame({"datum_id": ids}), ["datum_id"], made)
    assert made["datum_id"].count == made["datum_id"].rows == 5000
