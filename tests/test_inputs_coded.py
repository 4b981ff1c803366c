"""Strings that repeat, coded once in the checks and handed on."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from evalengine.ingest.ids import Coded, Known, coded, encode
from evalengine.schemas.tuning import Tuning


def ids(n: int, distinct: int, seed: int) -> pl.Series:
    drawn = np.random.default_rng(seed).integers(0, distinct, n)
    return pl.Series("id", [f"é{i:x}" for i in drawn])


@pytest.mark.parametrize("both", [True, False])
def test_codes_are_the_same_from_distinct_values(both: bool) -> None:
    first, second = ids(Tuning().few_rows + 7, 900, 1), ids(Tuning().few_rows + 1, 1200, 2)
    plain = encode([first, second])
    made = [Known(first).made, Known(second).made if both else None]
    assert isinstance(made[0], Coded)
    values, codes = encode([first, second], made)
    assert values.equals(plain[0])
    assert values.equals(values.sort())
    for ours, theirs, column in zip(codes, plain[1], (first, second), strict=True):
        assert (ours == theirs).all()
        assert values.gather(ours).equals(column.alias(values.name))


def test_only_strings_that_repeat_are_coded() -> None:
    assert coded(ids(Tuning().few_rows - 1, 5, 0)) is None
    assert coded(pl.Series([f"{i}" for i in range(Tuning().few_rows)])) is None
    assert coded(pl.Series(range(Tuning().few_rows))) is None


def test_notes_name_the_same_ids() -> None:
    ours, theirs = ids(Tuning().few_rows, 400, 3), ids(Tuning().few_rows, 300, 4)
    lone = Known(ours).lacking(Known(theirs))
    wanted = sorted(set(ours) - set(theirs), key=str.encode)
    assert len(lone) == len(wanted)
    assert lone.first(5) == wanted[:5]
    assert Known(ours).ordered.to_list() == sorted(set(ours), key=str.encode)
