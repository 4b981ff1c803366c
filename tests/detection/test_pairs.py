"""Pairs of boxes: a sweep over crowded datums finds the same pairs as an exhaustive search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalengine.kernels import boxes as kernels


def _side(rng: np.random.Generator, n: int, datums: int) -> tuple[Any, ...]:
    """Make boxes on a coarse grid, some without area, some as large as the image."""
    corner = rng.integers(0, 30, (n, 2)).astype(np.float64)
    extent = rng.integers(0, 6, (n, 2)) * rng.choice([1, 1, 1, 8], (n, 1))
    boxes = np.concatenate([corner, corner + extent], axis=1)
    area = extent.prod(axis=1) * rng.choice([0.5, 1.0], n)
    datum, key = rng.integers(0, datums, n), rng.integers(0, 2, n)
    return datum.astype(np.int32), boxes, area, key.astype(np.int32)


@given(
    st.integers(0, 2**32 - 1), st.integers(0, 80), st.integers(0, 80), st.sampled_from([0.0, 0.3])
)
def test_a_sweep_finds_every_pair(seed: int, n: int, m: int, lowest: float) -> None:
    rng = np.random.default_rng(seed)
    datum, boxes, area, key = _side(rng, n, 3)
    truth_datum, *truths = _side(rng, m, 3)
    crowd = rng.random(m) < 0.2
    ours = *kernels.rows_by_datum(datum, 3), boxes, area, key
    theirs = kernels.truths_by_datum(truth_datum, 3, *truths, crowd)
    single = kernels.truths_by_datum(truth_datum, 3, *truths)

    def both() -> list[Any]:
        return [
            *kernels.candidates(0, 3, ours, theirs, lowest),
            *kernels.close_pairs(1, 3, ours, single, max(lowest, 0.1)),
        ]

    each = both()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "_MANY", -1)
        swept = both()
        patch.setattr(kernels, "_MANY", 100)  # some datums by each method
        mixed = both()
    for one, two, three in zip(each, swept, mixed, strict=True):
        assert one.dtype == two.dtype == three.dtype
        assert (one == two).all()
        assert (one == three).all()


def test_a_crowded_datum_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 boxes per side in one image, and a region that covers it."""
    rng = np.random.default_rng(1)
    n = 20_000
    corner = 45.0 * np.stack(np.divmod(rng.permutation(n), 200), axis=1)
    boxes = np.concatenate([corner, corner + 40], axis=1)
    boxes[0] = 0, 0, 10_000, 10_000
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    zeros = np.zeros(n, np.int32)
    looked: list[int] = []
    swept = kernels._of_many
    monkeypatch.setattr(kernels, "_of_many", lambda *args: looked.append(1) or swept(*args))
    ours = *kernels.rows_by_datum(zeros, 1), boxes, area, zeros
    p, g = kernels.candidates(0, 1, ours, kernels.truths_by_datum(zeros, 1, *ours[2:]), 0.9)
    assert looked
    assert (p == np.arange(n)).all()
    assert (g == p).all()
