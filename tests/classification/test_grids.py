"""Grids: rows that list the same labels for every datum are counted without sorting."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from classification.strategies import modest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import evalengine as ee
from evalengine.kernels.scores import add_wins, count_reaching, place_table
from evalengine.tallies.datums import Datums, in_turn
from evalengine.tallies.scored_view import ScoredView
from evalengine.tallies.units import Grid, GridCounts, best_labels, outcomes_of, pieces
from evalengine.tasks.classification.encode import labels_per_datum

Array = np.ndarray[Any, Any]

SCORES = st.sampled_from(
    [-np.inf, -1e300, -2.5, -1e-310, -0.0, 0.0, 1e-310, 0.25, 0.5, 1.0, np.inf]
)
METRICS = [
    "Precision", "Recall", "F1", "ROCAUC", "mROCAUC", "AP", "PrecisionRecallCurve", "ROCCurve",
    "LogLoss", "TopKAccuracy", "ConfusionMatrix",
]  # fmt: skip
THRESHOLDS = np.array([-1.0, 0.0, 0.25, 0.75])
"""Among the random scores of the property tests."""


def assert_counts(counts: Any, table: Array, label: Array, outcome: Array) -> None:
    """Compare wins, rows at thresholds and listed rows of every label with plain comparisons.

    Args:
        counts: of rows in a grid; only its first slice is compared.
        table: (units, labels) scores.
        label: (labels,) the code of each column.
        outcome: (units, labels) whether a row's label is the true one.
    """
    won = counts.won()
    for thresholds in (THRESHOLDS, np.array([0.0, 1.0])):
        hits, others, strays = counts.reached(thresholds)
        assert not strays.any()
        for column, code in enumerate(label.tolist()):
            own, right = table[:, column], outcome[:, column] == 1
            positive, negative = own[right][:, None], own[~right]
            assert won[0, code] == (positive > negative).sum() + (positive == negative).sum() / 2
            reach = own[:, None] >= thresholds
            assert hits[0, code].tolist() == reach[right].sum(axis=0).tolist()
            assert others[0, code].tolist() == reach[~right].sum(axis=0).tolist()
            assert [part[0, code] for part in counts.listed] == [right.sum(), (~right).sum(), 0]


@modest
@given(st.integers(1, 5), st.integers(1, 9), st.integers(1, 7), st.data())
def test_counts(width: int, blocks: int, longest: int, data: st.DataObject) -> None:
    """Best labels, areas and rows at thresholds of pieces equal plain comparisons."""
    n = width * blocks
    score = np.array(data.draw(st.lists(SCORES, min_size=n, max_size=n)))
    truth = np.array(data.draw(st.lists(st.integers(0, 6), min_size=blocks, max_size=blocks)))
    label = np.array(data.draw(st.permutations(range(6)))[:width], np.int32)
    grid = Grid(label, np.arange(blocks, dtype=np.int32)[::-1].copy())
    parts = tuple(piece for _, piece in pieces((score,), longest))
    outcome = outcomes_of(grid, truth.astype(np.int32))
    assert outcome.tolist() == (grid.labels == truth[grid.units]).astype(int).tolist()
    table = score.reshape(blocks, width)
    hard, hard_score = best_labels(grid, parts, blocks)
    assert hard[grid.unit].tolist() == label[table.argmax(axis=1)].tolist()
    assert hard_score[grid.unit].tolist() == table.max(axis=1).tolist()
    counts = GridCounts(grid, parts, np.flatnonzero(outcome), 7, in_turn)
    assert_counts(counts, table, label, outcome.reshape(blocks, width))


def test_many_positives_in_one_bin() -> None:
    """Many positives in one bin of the table, and more ties than are compared pairwise."""
    rng = np.random.default_rng(3)
    score = np.r_[rng.integers(0, 9, 4000) / 8, 1.0 + rng.random(2000) * 1e-12, -1e300, 1e300]
    positive = np.sort(score[::3])
    start = np.array([0, positive.size, positive.size])
    won = np.zeros(2, np.int64)
    rows = np.stack([score, score], axis=1).ravel()
    add_wins(rows, 0, place_table(start, positive), won)
    above = positive.size - np.searchsorted(positive, score, side="right")
    above += positive.size - np.searchsorted(positive, score, side="left")
    assert won.tolist() == [above.sum(), 0]
    count = np.zeros((2, 3), np.int64)
    count_reaching(rows, 0, 2, np.array([0.25, 0.5, 1.0]), count)
    assert count[0].tolist() == [
        ((score >= low) & (score < high)).sum()
        for low, high in ((0.25, 0.5), (0.5, 1), (1, np.inf))
    ]


def tables(kind: str, n: int = 60, width: int = 6) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Make scores of every label for every datum, with ties, and a label that is never true."""
    rng = np.random.default_rng(11)
    names = [f"class {i}" for i in range(width)]
    datum: Any = rng.permutation(n) * 3
    ids: Any = datum if kind != "text" else [f"datum {i}" for i in datum]
    label: Any = np.arange(width)[::-1] if kind != "text" else names
    score = rng.integers(0, 40, (n, width)) / 40
    score[:, 0] += 0.01
    predictions = pl.DataFrame(
        {
            "datum_id": np.repeat(ids, width),
            "label_value": np.tile(label, n),
            "score": (score / score.sum(axis=1, keepdims=True)).ravel(),
        }
    )
    truths = pl.DataFrame(
        {"datum_id": ids, "label_value": [label[i] for i in rng.integers(0, width - 1, n)]}
    )
    return predictions, truths.sample(fraction=1.0, shuffle=True, seed=5)


@pytest.mark.parametrize("kind", ["whole", "text", "untrue"])
@pytest.mark.parametrize("threads", [1, 2])
def test_same_as_rows_in_another_order(kind: str, threads: int) -> None:
    """Rows sorted by label are no grid; they are sorted, with the same numbers."""
    predictions, truths = tables(kind)
    assert labels_per_datum(predictions["datum_id"], predictions["label_value"]) == 6
    if kind == "untrue":  # units without ground truth, whose rows are stray
        truths = truths.head(50)
    other = predictions.sort("label_value", maintain_order=True, descending=kind != "text")
    assert labels_per_datum(other["datum_id"], other["label_value"]) == 0
    result, expected = (
        ee.score(rows, truths, metrics=METRICS, threads=threads) for rows in (predictions, other)
    )
    assert_frame_equal(result.metrics, expected.metrics, check_exact=True)
    assert_frame_equal(result.curves, expected.curves, check_exact=True)
    assert_frame_equal(result.confusion, expected.confusion, check_exact=True)


def test_grid_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Areas and counts at thresholds of a grid sort no scores."""

    def refuse(view: ScoredView) -> None:
        raise AssertionError("sorted")

    monkeypatch.setattr(ScoredView, "sorted", property(refuse))
    predictions, truths = tables("whole")
    card = ee.score(predictions, truths, metrics=["ROCAUC", "PrecisionRecallCurve", "F1"])
    assert card.value("ROCAUC", label_value=5) is not None
    with pytest.raises(AssertionError, match="sorted"):
        _ = ee.score(predictions, truths, metrics=["AP"]).metrics


def test_labels_per_datum() -> None:
    """Rows that are a grid, and rows that only begin like one."""
    datum = pl.Series(np.repeat(np.arange(40_000), 3))
    label = pl.Series(np.tile([5, 1, 3], 40_000))
    assert labels_per_datum(datum, label) == 3
    text = label.cast(pl.String)
    assert labels_per_datum(datum.cast(pl.String), text) == 3
    for at in (1, 70_000, label.len() - 1):
        assert labels_per_datum(datum, label.clone().scatter(at, 7)) == 0
        assert labels_per_datum(datum.clone().scatter(at, -1), label) == 0
    assert labels_per_datum(datum.head(-1), label.head(-1)) == 0
    assert labels_per_datum(datum, datum) == 0
    assert labels_per_datum(datum.head(3), label.head(3)) == 0
    assert labels_per_datum(datum.clear(), label.clear()) == 0


@modest
@given(st.integers(2, 4), st.integers(2, 6), st.data())
def test_labels_in_another_order(width: int, n: int, data: st.DataObject) -> None:
    """Lists in another order or with other labels are no grid."""
    lists = [data.draw(st.permutations(range(width + 1)))[:width] for _ in range(n)]
    if data.draw(st.booleans()):
        lists = [lists[0], lists[0], *lists[2:]]
    label = pl.Series([label for own in lists for label in own])
    datum = pl.Series(np.repeat(np.arange(n), width))
    equal = all(own == lists[0] for own in lists)
    assert labels_per_datum(datum, label) == (width if equal else 0)


@pytest.mark.parametrize("text", [False, True])
def test_best_first_lists(text: bool) -> None:
    """Lists that begin with one label and continue with any are matched by label."""
    predictions = pl.DataFrame(
        {
            "datum_id": [0, 0, 1, 1, 2, 2],
            "label_value": [5, 6, 5, 7, 6, 5],
            "score": [0.9, 0.1, 0.8, 0.2, 0.7, 0.3],
        }
    )
    truths = pl.DataFrame({"datum_id": [0, 1, 2], "label_value": [5, 7, 6]})
    if text:
        predictions, truths = (
            one.cast({"label_value": pl.String}) for one in (predictions, truths)
        )
    card = ee.score(predictions, truths, metrics=["Accuracy", "TopKAccuracy", "ROCAUC"], k=[2])
    assert card.value("Accuracy") == 2 / 3
    assert card.value("TopKAccuracy", k=2) == 1.0
    assert card.labels["label_value"].cast(pl.Int64).to_list() == [5, 6, 7]


@pytest.mark.parametrize("n", [1_000, 70_000])
def test_groups_of_integers(n: int) -> None:
    """Few and many rows, in one chunk or several, with gaps between the integers."""
    rng = np.random.default_rng(2)
    value = rng.integers(-50, 900, n, dtype=np.int16) * 2
    column = pl.concat([pl.Series("g", value[: n // 3]), pl.Series("g", value[n // 3 :])])
    codes, names = Datums(None, pl.DataFrame(column), None, n).groups("g")
    distinct, expected = np.unique(value, return_inverse=True)
    assert names == [str(one) for one in distinct.tolist()]
    assert codes.dtype == np.int32
    assert codes.tolist() == expected.tolist()
