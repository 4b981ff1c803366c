"""Wins of positives in long ranges, which are merged in two halves at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evalengine.kernels.scores import wins

Array = np.ndarray[Any, Any]

rng = np.random.default_rng(8)


def twice(positive: Array, negative: Array) -> int:
    """Compute the same by binary search in the sorted negatives."""
    below = np.searchsorted(negative, positive, side="left")
    return int((below + np.searchsorted(negative, positive, side="right")).sum())


def one_tie(positive: Array, negative: Array, share: float) -> tuple[Array, Array]:
    """Make one score occur in both classes, at a given place of the order."""
    tied = np.sort(negative)[int(share * (negative.size - 1))]
    return np.r_[positive, tied], negative


CASES = {
    "no ties": lambda p, n: (p, n),
    "few distinct": lambda p, n: (np.round(p, 3), np.round(n, 3)),
    "all equal": lambda p, n: (p * 0, n * 0),
    "positives above": lambda p, n: (p + 1, n),
    "negatives above": lambda p, n: (p, n + 1),
    "a tie first": lambda p, n: one_tie(p, n, 0.0),
    "a tie in the first half": lambda p, n: one_tie(p, n, 0.3),
    "a tie in the second half": lambda p, n: one_tie(p, n, 0.8),
    "a tie last": lambda p, n: one_tie(p, n, 1.0),
    "infinities": lambda p, n: (np.r_[p, np.inf, -np.inf], np.r_[n, np.inf, -np.inf]),
    "both zeros": lambda p, n: (np.r_[p - 0.5, [-0.0] * 9], np.r_[n - 0.5, [0.0] * 7]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("sizes", [(20_000, 9_000), (700, 30_000), (511, 512), (512, 512)])
def test_long_ranges(case: str, sizes: tuple[int, int]) -> None:
    """Several ranges of one array, which do not begin at its first row."""
    columns: list[Array] = [np.full(3, 0.25)]
    bounds, expected = [], []
    for p, n in (sizes, sizes[::-1], (3, 5)):
        positive, negative = map(np.sort, CASES[case](rng.random(p), rng.random(n)))
        at = sum(column.size for column in columns)
        bounds.append((at + negative.size, at + negative.size + positive.size, at))
        expected.append(twice(positive, negative))
        columns += [negative, positive]
    first, last, begin = np.array(bounds).T
    result = wins((first, last), (begin, first), np.concatenate(columns))
    assert result.tolist() == expected
