"""Counts of scores range by range are those of an order of all of them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from classification.strategies import modest
from hypothesis import given
from hypothesis import strategies as st

from evalengine.executors.threads import Threads
from evalengine.tally import score_ranges
from evalengine.tally.score_ranges import cut_scores, sums_by_ranges


@modest
@given(
    rows=st.integers(0, 300),
    distinct=st.sampled_from([1, 2, 30, 10**6]),
    share=st.sampled_from([0.0, 0.3, 1.0]),
    of_a_range=st.integers(1, 100),
    threads=st.sampled_from([1, 2]),
    seed=st.integers(0, 10_000),
)
def test_sums(
    rows: int, distinct: int, share: float, of_a_range: int, threads: int, seed: int
) -> None:
    """Ties, zeros of both signs, one class alone, no rows at all."""
    rng = np.random.default_rng(seed)
    score = (rng.integers(0, distinct, rows) - distinct // 2) / distinct
    score = np.where(rng.random(rows) < 0.5, score, -0.0)
    outcome = (rng.random(rows) < share).astype(np.uint8)
    thresholds = np.array([-0.25, 0.0, 0.1, 0.25])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(score_ranges, "_RANGE", of_a_range)
        patch.setattr(score_ranges, "_RANGES", 10**6)
        found = sums_by_ranges(np.array_split(score, 3), outcome, thresholds, Threads(threads).over)
    hits, others = score[outcome == 1], score[outcome == 0]
    won = (hits[:, None] > others).sum() * 2 + (hits[:, None] == others).sum()
    assert found.twice == won
    assert found.rows.tolist() == [others.size, hits.size]
    for side, values in zip(found.reached, (others, hits), strict=True):
        assert side.tolist() == (values[:, None] >= thresholds).sum(axis=0).tolist()


@pytest.mark.parametrize("rows", [1, 7, 999, 1000, 5000])
def test_cuts(rows: int) -> None:
    """Edges ascend, and ranges of scores that all differ have about as many rows."""
    score = np.random.default_rng(3).permutation(1000) / 1000
    edges = cut_scores([score], rows)
    assert all(a < b for a, b in pairwise(edges))
    sizes = np.diff(np.searchsorted(np.sort(score), edges), prepend=0, append=1000)
    assert sizes.sum() == 1000
    assert sizes.max() <= rows + 1
