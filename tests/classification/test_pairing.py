"""Rows of two tables paired in a table of bytes: what a dictionary says, or a refusal."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evalengine.kernels.pairing import labels_of, meet, write_truths

IDS = st.lists(st.integers(-2, 9), max_size=8)


@given(st.permutations(range(8)), st.permutations(range(8)), st.integers(-(2**62), 2**62))
def test_both_sides_meet(here: list[int], there: list[int], low: int) -> None:
    truths = {low + at: at % 3 for at in there}
    table, seen = np.zeros(8, np.uint8), np.zeros(256, bool)
    label = np.array([*truths.values()], np.uint8)
    assert write_truths(np.array([*truths], np.int64), label, low, seen, table)
    assert np.flatnonzero(seen).tolist() == [0, 1, 2]
    unit, outcome = np.empty(8, np.int32), np.empty(8, np.uint8)
    datum = np.array(here) + low
    assert meet(datum, np.full(8, 1, np.uint8), low, 1, table, unit, outcome)
    assert unit.tolist() == here
    assert outcome.tolist() == [truths[one] == 1 for one in datum.tolist()]
    assert labels_of(table).tolist() == [truths[low + at] for at in range(8)]


@given(IDS, IDS, st.integers(0, 8))
def test_what_does_not_meet_is_refused(ours: list[int], theirs: list[int], odd: int) -> None:
    table, seen = np.zeros(8, np.uint8), np.zeros(256, bool)
    zeros = np.zeros(len(theirs), np.uint8)
    fits = len(set(theirs)) == len(theirs) and all(0 <= one < 8 for one in theirs)
    assert write_truths(np.array(theirs, np.int64), zeros, 0, seen, table) == fits
    if not fits:
        return
    label = np.zeros(len(ours), np.uint8)
    label[odd:] = 1
    unit, outcome = np.empty(len(ours), np.int32), np.empty(len(ours), np.uint8)
    met = meet(np.array(ours, np.int64), label, 0, 0, table, unit, outcome)
    assert met == (set(ours) <= set(theirs) and len(set(ours)) == len(ours) and not label.any())
