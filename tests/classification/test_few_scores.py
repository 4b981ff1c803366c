"""Few distinct scores are counted, which equals sorting to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from sizes import tune

from evalengine.kernels.order import MOST, count_few
from evalengine.schemas.tuning import Tuning
from evalengine.tallies import sorted_scores
from evalengine.tallies.units import Scored

rng = np.random.default_rng(8)


def scored(score: np.ndarray, cuts: int = 3) -> Scored:
    outcome = rng.integers(0, 3, score.size).astype(np.uint8)
    parts = tuple(np.array_split(score, cuts))
    return Scored(parts, outcome, None, None, 0, np.ones(1, bool), single=False)


@pytest.mark.parametrize("values", [1, 2, 1000, MOST])
def test_counting_is_sorting(values: int) -> None:
    tune(counted_rows=0, sample_rows=1 << 30)
    pool = np.unique(np.r_[np.inf, -np.inf, 0.0, rng.standard_normal(MOST)])[-values:]
    table = scored(np.r_[pool, pool[rng.integers(0, pool.size, 20_000)]])
    result = sorted_scores.sorted_by_counts(table)
    assert result is not None
    for outcome in range(3):
        expected = np.sort(table.score[table.outcome == outcome])
        first, last = result.start[outcome], result.start[outcome + 1]
        assert result.weight is not None
        rows = result.weight[first:last].astype(np.int64)
        assert rows.min(initial=1) > 0
        assert np.repeat(result.score[first:last], rows).tobytes() == expected.tobytes()
    assert result.start[-1] == result.score.size


def test_rows_of_several_pieces() -> None:
    score = np.round(rng.random(5_000), 2)
    outcome = rng.integers(0, 2, score.size).astype(np.uint8)
    result = count_few(np.array_split(score, 4), outcome, 2)
    assert result is not None
    values, count = result
    assert values.tolist() == np.unique(score).tolist()
    for hit in (0, 1):
        assert count[hit].tolist() == [int((score[outcome == hit] == v).sum()) for v in values]


def test_many_or_signed_zeros_are_sorted_instead() -> None:
    outcome = np.zeros(MOST + 1, np.uint8)
    assert count_few([np.arange(MOST + 1.0)], outcome, 3) is None
    assert count_few([np.array([0.0, -0.0])], outcome[:2], 3) is None
    assert count_few([np.arange(MOST * 1.0)], outcome[1:], 3) is not None


def test_a_sample_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[int] = []
    monkeypatch.setattr(sorted_scores, "count_few", lambda *inputs: names.append(1))
    sorted_scores.sorted_by_counts(scored(rng.random(Tuning().counted_rows)))
    assert not names
    sorted_scores.sorted_by_counts(scored(np.round(rng.random(Tuning().counted_rows), 2)))
    assert names
