"""Radix sort of scores, compared with NumPy's sort."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from evalengine.kernels import order as kernels

Array = np.ndarray[Any, Any]
rng = np.random.default_rng(3)
N = kernels._LONG + 3
ENDS = np.array([np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308, 1.0, -1.0])


@pytest.mark.parametrize("numpy_is_faster", [False, True])
@pytest.mark.parametrize(
    "score",
    [
        rng.random(N),
        rng.standard_normal(N) * 10.0 ** rng.integers(-300, 300, N),
        rng.random(N).astype(np.float32).astype(np.float64),
        rng.choice(ENDS, N),
        np.full(N, 0.25),
        np.arange(N, 0.0, -1.0),
        rng.random(100),
        np.zeros(0),
    ],
)
def test_sorted_as_numpy_does(
    score: Array, numpy_is_faster: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sorting by digits is tested also on processors where NumPy is faster."""
    monkeypatch.setattr(kernels, "_numpy_is_faster", lambda: numpy_is_faster)
    values = np.r_[2.0, 1.0, score, score, 2.0, 1.0]
    starts = np.array([2, 2 + score.size])
    kernels.sort_ranges(values, starts, starts + score.size)
    np.testing.assert_array_equal(values, np.r_[2.0, 1.0, np.sort(score), np.sort(score), 2.0, 1.0])


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_payloads_are_moved_with_scores(dtype: type) -> None:
    """Long ranges are among short and empty ones; equal scores may be in any order."""
    start = np.cumsum([0, 3, 0, N, 70, 1, N, 0, 500, 2])
    score = rng.choice(np.r_[ENDS, rng.random(1000)], start[-1])
    payload = np.arange(score.size).astype(dtype)
    expected = score.copy()
    kernels.sort_with(start, 1, start.size - 2, score, payload)
    np.testing.assert_array_equal(expected[payload.astype(int)], score)
    np.testing.assert_array_equal(np.sort(payload), np.arange(score.size))
    for s, (a, b) in enumerate(pairwise(start)):
        inside = 1 <= s < start.size - 2
        np.testing.assert_array_equal(
            score[a:b], np.sort(expected[a:b]) if inside else expected[a:b]
        )
        assert set(payload[a:b]) == set(range(a, b))


def test_scores_alike_in_their_high_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of a thousand differ only in low digits: too many moves for insertion sort."""
    monkeypatch.setattr(kernels, "_numpy_is_faster", lambda: False)
    score = (rng.integers(1, 400, N) / 400) * (1 + rng.integers(0, 1000, N) * 2.0**-50)
    expected, moves = score.copy(), np.arange(N)
    order = np.argsort(score, kind="stable")
    kernels.sort_with(np.array([0, N]), 0, 1, score, moves)
    np.testing.assert_array_equal(score, expected[order])
    np.testing.assert_array_equal(moves, order)
    kernels.sort_ranges(expected, np.array([0]), np.array([N]))
    np.testing.assert_array_equal(score, expected)


def test_neighbours_are_put_in_order_with_few_moves() -> None:
    bits, payload = np.array([1, 3, 2, 2, 0, 5], np.uint64), np.arange(6)
    assert kernels._finish(bits, payload, 7)
    assert bits.tolist() == [0, 1, 2, 2, 3, 5]
    assert payload.tolist() == [4, 0, 2, 3, 1, 5]
    bits, payload = np.array([1, 3, 2, 2, 0, 5], np.uint64), np.arange(6)
    assert not kernels._finish(bits, payload, 4)
    assert sorted(bits.tolist()) == [0, 1, 2, 2, 3, 5]
    assert sorted(payload.tolist()) == list(range(6))
