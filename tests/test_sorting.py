"""Scores sorted by the digits of their bits, against NumPy's sort."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evalengine.kernels import sorting

Array = np.ndarray[Any, Any]
rng = np.random.default_rng(3)
N = sorting._LONG + 3
ENDS = np.array([np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308, 1.0, -1.0])


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
def test_sorted_as_numpy_does(score: Array) -> None:
    expected = np.sort(score)
    sorting.sort_range(score)
    np.testing.assert_array_equal(score, expected)
