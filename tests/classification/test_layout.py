"""Score layouts by segment are equal in one or two rounds, whole or in chunks of groups."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import evalengine as ee
from evalengine.kernels import order as kernel


@pytest.mark.parametrize("with_datum", [False, True])
def test_two_rounds_lay_out_as_one(monkeypatch: pytest.MonkeyPatch, with_datum: bool) -> None:
    rng = np.random.default_rng(7)
    n, groups, labels = 20_000, 700, 3
    datum = rng.permutation(n).astype(np.int32) if with_datum else None
    group = rng.integers(-1, groups, n).astype(np.int32)
    outcome = rng.integers(0, 3, n).astype(np.uint8)
    label = rng.integers(0, labels, n).astype(np.int32)
    score = rng.random(n)
    parts = [score[:7_000], score[7_000:7_001], score[7_001:]]
    result = []
    for many in (10**9, 16):
        monkeypatch.setattr(kernel, "_MANY", many)
        shape = (groups, labels, 3)
        result.append(kernel.partition(parts, outcome, label, datum, group, shape)[:2])
    of_row = group if datum is None else group[datum]
    inside = np.flatnonzero(of_row >= 0)
    segment = (of_row[inside] * labels + label[inside]) * 3 + outcome[inside]
    expected = score[inside][np.argsort(segment, kind="stable")]
    for start, values in result:
        assert np.array_equal(np.diff(start), np.bincount(segment, minlength=groups * labels * 3))
        assert np.array_equal(values, expected)


@pytest.mark.parametrize("outcomes", [[0, 1], [0, 1, 2], [0], [1], [2]])
@pytest.mark.parametrize(("label", "labels"), [(None, 1), (0, 1), (2, 4), (3, 4)])
def test_one_label_is_laid_out_as_any(outcomes: list[int], label: int | None, labels: int) -> None:
    rng = np.random.default_rng(9)
    n = 5_000
    outcome = rng.choice(np.array(outcomes, np.uint8), n)
    score = rng.random(n)
    parts = np.array_split(score, 7)
    code = np.int32(label or 0)
    repeated = None if label is None else np.broadcast_to(code, n)
    result = kernel.partition(parts, outcome, repeated, None, None, (1, labels, 3))
    listed = np.full(n, code)
    expected = kernel.partition(parts, outcome, listed, None, None, (1, labels, 3))
    for mine, theirs in zip(result, expected, strict=True):
        assert np.array_equal(mine, theirs)
    assert kernel.only_label(listed) is None
    assert np.array_equal(result[1], score[np.argsort(outcome, kind="stable")])


def test_too_many_labels_for_pairs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from evalengine.tallies import sorted_scores

    monkeypatch.setattr(sorted_scores, "_MOST", 2)
    guesses = pl.DataFrame(
        {"datum_id": [1, 2, 3], "label_value": ["a", "b", "c"], "score": [0.5, 0.6, 0.7]}
    )
    with pytest.raises(ee.OptionError, match="3 labels make 9 pairs"):
        ee.score(guesses, guesses.drop("score"), metrics=["mROCAUCOneVsOne"]).metrics  # noqa: B018
