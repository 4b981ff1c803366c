"""Scored labels of a part in order, and parts brought together, against one sort of all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalengine.tally.score_rows import OrderedScores, merge_rows, score_rows
from evalengine.tally.units import Scored

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("different", [1, 3, 10**6])
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_rows_of_parts_are_in_the_order_of_all(different: int, kind: Any, seed: int) -> None:
    """By label, score and place, of pieces and of merged parts; zeros of both signs tie."""
    rng = np.random.default_rng(seed)
    n, n_labels = 500, 4
    label = rng.choice([0, 2, 3], n).astype(np.int32)  # label 1 has no row
    score = (rng.integers(-different, different + 1, n) / different).astype(kind).astype(float)
    score[score == 0] *= rng.choice([-1.0, 1.0], int((score == 0).sum()))
    outcome = rng.integers(0, 3, n).astype(np.uint8)
    unit = rng.integers(0, 50, n).astype(np.int32)
    weight, codes = rng.random(50), (rng.integers(-1, 3, 50).astype(np.int32),)

    def rows_of(some: Array) -> OrderedScores:
        scored = Scored(
            (score[some],),
            outcome[some],
            label[some],
            unit[some],
            -1,
            np.ones(n_labels, bool),
            kind is np.float32,
            row=some,
        )
        return score_rows(scored, scored.label, n_labels, weight, codes)

    order = np.lexsort((np.arange(n), score, label))
    whole = rows_of(np.arange(n))
    part = rng.integers(0, 3, n)
    merged = merge_rows([own.rows(0, len(own)) for own in map(rows_of, _split(part))])
    for found in (whole.rows(0, n), merged):
        assert found.start.tolist() == np.searchsorted(label[order], np.arange(5)).tolist()
        assert found.score.dtype == kind
        assert found.score.tobytes() == score[order].astype(kind).tobytes()
        assert found.row.tolist() == order.tolist()
        assert found.outcome.tolist() == outcome[order].tolist()
        assert found.weight is not None
        assert found.weight.tolist() == weight[unit[order]].tolist()
        assert found.codes[0].tolist() == codes[0][unit[order]].tolist()
    some = whole.rows(17, 300)
    assert some.row.tolist() == order[17:300].tolist()
    assert np.repeat(np.arange(4), np.diff(some.start)).tolist() == label[order][17:300].tolist()


def _split(part: Array) -> list[Array]:
    return [np.flatnonzero(part == number) for number in range(3)]
