"""Exact sums equal ``math.fsum`` in any order and any number of parts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalengine.kernels.sums import ExactSums

FINITE = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)
NEAR_TIES = st.sampled_from([1.0, -1.0, 2.0**-53, -(2.0**-53), 2.0**-106, 2.0**-54, 1e16, 5e-324])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(FINITE, NEAR_TIES), max_size=40), st.randoms(use_true_random=False))
def test_a_sum_is_that_of_fsum_in_any_order_and_parts(values, random) -> None:
    expected = math.fsum(values)
    shuffled = list(values)
    random.shuffle(shuffled)
    cut = random.randint(0, len(values))
    parts = [ExactSums(1).add(np.array(part)) for part in (shuffled[:cut], shuffled[cut:])]
    whole = parts[0].merge(parts[1])
    assert whole.rounded().tolist() == [expected]
    assert ExactSums(1).add(np.array(values)).rounded().tolist() == [expected]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_cells_are_separate_sums(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, cells = int(rng.integers(0, 200)), int(rng.integers(1, 7))
    values = rng.normal(size=n) * 10.0 ** rng.integers(-200, 200, n)
    cell = rng.integers(0, cells, n)
    expected = [math.fsum(values[cell == c]) for c in range(cells)]
    sums = ExactSums(cells).add(values, cell)
    assert sums.rounded().tolist() == expected
    assert sums.rounded().tolist() == expected  # rounding does not change the sums
    pairs = rng.integers(-1, 2, cells)
    merged = sums.gathered(pairs, 2).rounded().tolist()
    assert merged == [math.fsum(values[pairs[cell] == c]) for c in (0, 1)]
    again = sums.select(np.array([cells - 1, 0])).rounded().tolist()
    assert again == [expected[-1], expected[0]]


@pytest.mark.parametrize("seed", range(6))
def test_values_grouped_by_cell(seed: int) -> None:
    """Blocks have any length, with values near each other or so far apart that no block is cut."""
    rng = np.random.default_rng(seed)
    start = np.cumsum([0, *rng.choice([0, 1, 23, 24, 500, 2048, 2049, 5000], 6)])
    spread = [0, 5, 40, 300][seed % 4]
    values = rng.normal(size=start[-1]) * 10.0 ** rng.integers(-spread, spread + 1, start[-1])
    values[rng.random(values.size) < 0.2] *= 0.0
    values = np.ldexp(values, [0, -1040, 900][seed % 3]) if spread < 40 else values
    sums = ExactSums(6).add_runs(values, start).add_runs(values[::-1], start[-1] - start[::-1])
    expected = [math.fsum(values[a:b]) for a, b in itertools.pairwise(start)]
    twice = [a + b for a, b in zip(expected, expected[::-1], strict=True)]
    result = ExactSums(6).add_runs(values, start).rounded().tolist()
    assert result == expected
    assert sums.rounded().tolist() == pytest.approx(twice, rel=1e-15)
    cell = np.repeat(np.arange(6), np.diff(start))
    assert ExactSums(6).add(values, cell).rounded().tolist() == expected


def test_subtracted_values_are_removed() -> None:
    """A difference is rounded once, whatever its sums are."""
    many = np.array([0.1, 1e17, 0.2, 3e-9])
    every = ExactSums(1).add(many)
    assert every.merge(ExactSums(1).add(many[1:]), sign=-1).rounded().tolist() == [0.1]
    assert every.merge(ExactSums(1).add(many[:1]), sign=-1).rounded().tolist() == [0.0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([np.inf, 1.0], np.inf),
        ([-np.inf, 1e308], -np.inf),
        ([np.inf, -np.inf], np.nan),
        ([np.nan, 1.0], np.nan),
        ([1.7e308, 1.7e308], np.inf),
        ([1.7e308, 1.7e308, -1.7e308], 1.7e308),
        ([], 0.0),
        ([0.0, -0.0], 0.0),
    ],
)
def test_the_limits_of_floats(values: list[float], expected: float) -> None:
    found = ExactSums(1).add(np.array(values, np.float64)).rounded()
    np.testing.assert_array_equal(found, [expected])


def test_many_addends_of_one_cell_do_not_overflow_a_chunk() -> None:
    values = np.full(1 << 22, 0.1)
    assert ExactSums(1).add(values).rounded()[0] == math.fsum(values)
