"""The layout of scores by segment."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import evalengine as ee
from evalengine.kernels import order as kernel


@pytest.mark.parametrize("with_datum", [False, True])
@pytest.mark.parametrize(("groups", "labels"), [(700, 3), (1, 4), (None, 4), (None, 1)])
def test_values_are_laid_out_by_segment(with_datum: bool, groups: int | None, labels: int) -> None:
    rng = np.random.default_rng(7)
    n = 20_000
    datum = rng.permutation(n).astype(np.int32) if with_datum else None
    group = None if groups is None else rng.integers(-1, groups, n).astype(np.int32)
    outcome = rng.integers(0, 3, n).astype(np.uint8)
    label = None if labels == 1 else rng.integers(0, labels, n).astype(np.int32)
    score = rng.random(n)
    parts = [score[:7_000], score[7_000:7_001], score[7_001:]]
    shape = (groups or 1, labels, 3)
    start, values = kernel.partition(parts, outcome, label, datum, group, shape)
    of_row = np.zeros(n, int) if group is None else group if datum is None else group[datum]
    inside = np.flatnonzero(of_row >= 0)
    code = 0 if label is None else label[inside]
    segment = (of_row[inside] * labels + code) * 3 + outcome[inside]
    assert np.array_equal(np.diff(start), np.bincount(segment, minlength=np.prod(shape)))
    assert np.array_equal(values, score[inside][np.argsort(segment, kind="stable")])


def test_too_many_labels_for_pairs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from evalengine.tallies import sorted_scores

    monkeypatch.setattr(sorted_scores, "_MOST", 2)
    guesses = pl.DataFrame(
        {"datum_id": [1, 2, 3], "label_value": ["a", "b", "c"], "score": [0.5, 0.6, 0.7]}
    )
    with pytest.raises(ee.OptionError, match="3 labels make 9 pairs"):
        ee.score(guesses, guesses.drop("score"), metrics=["mROCAUCOneVsOne"]).metrics  # noqa: B018
