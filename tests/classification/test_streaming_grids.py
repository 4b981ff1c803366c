"""Long tables read in batches must tell the same as the same tables read whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from classification.batches import (
    THRESHOLDS,
    assert_counts,
    assert_same_either_way,
    read_whole,
    same,
    saved,
    told,
)
from classification.strategies import modest
from hypothesis import given
from hypothesis import strategies as st

import evalengine as ee
from evalengine.kernels.columns import lay_columns
from evalengine.kernels.held_values import hold
from evalengine.metrics.registry import all_metrics
from evalengine.tally.columns import ColumnCounts, Columns
from evalengine.tally.grid import Grid
from evalengine.tally.view import in_turn
from evalengine.tasks.classification import streaming_grids

Array = np.ndarray[Any, Any]

METRICS = [
    metric.name
    for metric in all_metrics("classification").values()
    if set(metric.needs) <= {"scores", "hard"}
]
SCORES = st.sampled_from([-1e300, -2.5, -1e-310, -0.0, 0.0, 1e-310, 0.25, 0.5, 1.0, 1e300])


@pytest.fixture(autouse=True)
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming_grids, "_LARGE", 1)


def files(folder: Path, *sides: pl.DataFrame) -> list[Path]:
    """Predictions and ground truths in row groups that a datum's rows do not fill."""
    return saved(folder, rows=100, **dict(zip(("predictions", "groundtruths"), sides, strict=True)))


def tables(
    n: int = 60, width: int = 7, *, text: str = "", dtype: Any = pl.Float64, seed: int = 1
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Scores of every label for every datum, ids and labels in no order; a label never true."""
    rng = np.random.default_rng(seed)
    datum, label = rng.permutation(n) * 3 - 20, rng.permutation(width) + 2
    score = rng.integers(0, 30, n * width) / 30
    predictions = pl.DataFrame(
        {
            "datum_id": np.repeat(datum, width),
            "label_value": np.tile(label, n),
            "score": pl.Series(score).cast(dtype),
        }
    )
    truths = pl.DataFrame(
        {"datum_id": rng.permutation(datum), "label_value": label[rng.integers(0, width - 1, n)]}
    )
    named = {"ids": "datum_id", "labels": "label_value"}
    for kind in text.split():
        column = named[kind]
        predictions, truths = (
            side.with_columns(pl.format("a name {}", column).alias(column))
            for side in (predictions, truths)
        )
    return predictions, truths


@pytest.mark.parametrize("text", ["", "ids", "labels", "ids labels"])
@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32])
def test_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, dtype: Any
) -> None:
    paths = files(tmp_path, *tables(text=text, dtype=dtype))
    for metrics in (METRICS, ["PrecisionRecallCurve"], ["ROCAUC"], None):
        options = {"metrics": metrics, "threads": 2}
        assert_same_either_way(monkeypatch, streaming_grids, paths, **options)


@pytest.mark.parametrize("dtypes", [(pl.Int8, pl.Int8), (pl.UInt8, pl.Int32), (pl.Int16, pl.UInt8)])
def test_short_integers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtypes: Any) -> None:
    """Labels in few bytes on either side become what they are in whole tables."""
    sides = zip(tables(20), dtypes, strict=True)
    paths = files(tmp_path, *(side.cast({"label_value": dtype}) for side, dtype in sides))
    options = {"metrics": METRICS}
    assert_same_either_way(monkeypatch, streaming_grids, paths, **options)


@pytest.mark.parametrize(
    ("case", "n", "width"),
    [
        ("truths lack", 60, 7),
        ("truths more", 60, 7),
        ("unknown label", 60, 7),
        ("many labels", 9, 90),
        ("two", 2, 2),
    ],
)
def test_sides_that_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, n: int, width: int
) -> None:
    """Ids and labels on one side only are told and counted alike."""
    predictions, truths = tables(n, width)
    if case == "truths lack":
        truths = truths.head(50)
    if case == "truths more":
        truths = pl.concat([truths, pl.DataFrame({"datum_id": [900, 901], "label_value": [2, 3]})])
    if case == "unknown label":
        label = pl.when(pl.col("datum_id") < 5).then(77).otherwise("label_value")
        truths = truths.with_columns(label.alias("label_value"))
    paths = files(tmp_path, predictions, truths)
    options = {"metrics": METRICS}
    assert_same_either_way(monkeypatch, streaming_grids, paths, **options)


def broken(case: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Tables of which row 333 or what it belongs to is wrong, or that are no grid."""
    predictions, truths = tables()
    here = pl.int_range(pl.len()) == 333

    def moved(row: int, by: int) -> pl.DataFrame:
        """The row is of the datum beside it, and is the second of its label there."""
        ids = pl.when(pl.int_range(pl.len()) == row).then(pl.col("datum_id").shift(by))
        return predictions.with_columns(ids.otherwise("datum_id").alias("datum_id"))

    def put(column: str, value: Any) -> pl.DataFrame:
        return predictions.with_columns(pl.when(here).then(value).otherwise(column).alias(column))

    changed = {
        "nan": lambda: put("score", float("nan")),
        "infinite": lambda: put("score", float("inf")),
        "infinities": lambda: put("score", float("inf")).with_columns(
            pl.when(pl.int_range(pl.len()) == 334)
            .then(float("-inf"))
            .otherwise("score")
            .alias("score")
        ),
        "infinite sum": lambda: predictions.with_columns(pl.lit(1e308).alias("score")),
        "no score": lambda: put("score", None),
        "no id": lambda: put("datum_id", None),
        "no label": lambda: put("label_value", None),
        "other id": lambda: put("datum_id", 12345),
        "other label": lambda: put("label_value", 99),
        "datum begins early": lambda: moved(328, -1),
        "datum begins late": lambda: moved(329, 1),
        "datum twice": lambda: pl.concat([predictions, predictions.tail(7)]),
        "row lacks": lambda: predictions.filter(~here),
        "last lacks": lambda: predictions.head(predictions.height - 1),
        "by label": lambda: predictions.sort("label_value", maintain_order=True),
        "shuffled": lambda: predictions.sample(fraction=1.0, shuffle=True, seed=3),
        "empty": lambda: predictions.head(0),
        "one datum": lambda: predictions.head(7),
        "text ids": lambda: predictions.cast({"datum_id": pl.String}),
        "no column": lambda: predictions.drop("score"),
        "text scores": lambda: predictions.cast({"score": pl.String}),
        "strangers": lambda: predictions.with_columns(pl.col("datum_id") + 100_000),
        "wider than a batch": lambda: tables(9, 150)[0],
    }
    if case in changed:
        return changed[case](), truths
    if case == "truth twice":
        return predictions, pl.concat([truths, truths.head(2)])
    if case == "truth null":
        return predictions, truths.with_columns(pl.lit(None, pl.Int64).alias("label_value"))
    assert case == "no truths"
    return predictions, truths.head(0)


CASES = [
    "nan", "infinite", "infinities", "infinite sum", "no score", "no id", "no label", "other id",
    "other label", "datum begins early", "datum begins late", "datum twice", "row lacks",
    "last lacks", "by label", "shuffled", "empty", "one datum", "text ids", "no column",
    "text scores", "strangers", "truth twice", "truth null", "no truths", "wider than a batch",
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_other_tables_are_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """What is no grid, and every error, comes out as without batches."""
    paths = files(tmp_path, *broken(case))
    options = {"metrics": ["F1", "ROCAUC", "PrecisionRecallCurve"]}
    found = told(paths, **options)
    with read_whole(monkeypatch, streaming_grids):
        same(found, told(paths, **options))
    refused = {"nan", "infinite", "infinities", "no score", "no id", "no label", "datum twice",
               "datum begins early", "datum begins late", "text ids", "no column", "text scores",
               "strangers", "truth twice", "truth null"}  # fmt: skip
    assert ("error" in found) == (case in refused)
    if case == "nan":
        assert "row 333" in found["error"]


@pytest.mark.parametrize("rows", [6, 16])
@pytest.mark.parametrize("text", [False, True])
def test_a_datum_torn_at_the_edge_of_a_batch(
    text: bool, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a datum's rows say another id; a batch of six ends between the halves."""
    ids = pl.Series([0] * 4 + [1, 1] + [2, 2] + [3] * 4 + [4] * 4)
    predictions = pl.DataFrame(
        {"datum_id": ids, "label_value": [0, 1, 2, 3] * 4, "score": np.arange(16) / 16}
    )
    truths = pl.DataFrame({"datum_id": [0, 1, 3, 4], "label_value": [0, 1, 2, 3]})
    if text:
        predictions, truths = (
            side.with_columns(datum_id=pl.format("i{}", "datum_id"))
            for side in (predictions, truths)
        )
    paths = saved(tmp_path, rows=rows, predictions=predictions, groundtruths=truths)
    options = {"metrics": ["mROCAUC", "ROCAUC", "Accuracy"]}
    found = told(paths, **options)
    with read_whole(monkeypatch, streaming_grids):
        expected = told(paths, **options)
    assert "error" not in expected
    same(found, expected)


def test_truncated_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that are missing in the middle are told as when the file is read whole."""
    paths = files(tmp_path, *tables(600))
    content = paths[0].read_bytes()
    for damaged in (content[:-200], content[:2000] + b"\0" * 1500 + content[3500:]):
        paths[0].write_bytes(damaged)
        found = told(paths, metrics=["ROCAUC"])
        assert found["kind"] is ee.ReadError
        with read_whole(monkeypatch, streaming_grids):
            same(found, told(paths, metrics=["ROCAUC"]))


@modest
@given(st.integers(1, 5), st.integers(1, 9), st.integers(1, 30), st.data())
def test_layout_and_counts(width: int, blocks: int, longest: int, data: st.DataObject) -> None:
    """Columns piece by piece; areas and rows at thresholds against plain comparisons."""
    n = width * blocks
    score = np.array(data.draw(st.lists(SCORES, min_size=n, max_size=n)))
    truth = np.array(data.draw(st.lists(st.integers(0, 6), min_size=blocks, max_size=blocks)))
    label = np.array(data.draw(st.permutations(range(6)))[:width], np.int32)
    column = np.full((width, blocks), np.nan)
    place, best = np.empty(blocks, np.int32), np.full(blocks, np.nan)
    for first in range(0, n, longest):
        assert lay_columns(score[first : first + longest], first, column, place, best)
    table = score.reshape(blocks, width)
    assert column.tolist() == table.T.tolist()
    assert place.tolist() == table.argmax(axis=1).tolist()
    assert best.tobytes() == table[np.arange(blocks), place].tobytes()  # the sign of a zero too
    columns = Columns(column, THRESHOLDS)
    assert columns.rows().tolist() == score.tolist()
    grid = Grid(label, np.arange(blocks, dtype=np.int32))
    counts = ColumnCounts(grid, columns, truth.astype(np.int32), 7, in_turn)
    before = counts.reached(THRESHOLDS)
    assert_counts(counts, table, label, truth[:, None] == label)
    for found, again in zip(before, counts.reached(THRESHOLDS), strict=True):
        assert found.tolist() == again.tolist()


@pytest.mark.parametrize("n_labels", [32_767, 32_768, 40_000, 70_000])
def test_labels_whose_codes_are_long(n_labels: int) -> None:
    """Positives are found by label, whether codes are of 16 bits or more."""
    rng = np.random.default_rng(n_labels)
    label = np.array([n_labels - 1, 3, n_labels // 2, n_labels - 5, 0], np.int32)
    score = rng.choice(np.r_[THRESHOLDS, 0.5], (5, 40))
    truth = rng.choice(label, 40)
    grid = Grid(label, np.arange(40, dtype=np.int32))
    counts = ColumnCounts(grid, Columns(score, THRESHOLDS), truth, n_labels, in_turn)
    assert_counts(counts, score.T, label, truth[:, None] == label)


@pytest.mark.parametrize("wrong", [None, 0, 4, 5, 1999, 2000, 3332])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_long_runs_of_blocks(wrong: int | None, value: float) -> None:
    """More blocks than are taken together, from the middle of one on; scores that are no numbers
    are found wherever they stand.
    """
    score = np.random.default_rng(2).integers(0, 4, 3 * 1111) / 4
    if wrong is not None:
        score[wrong] = value
    column = np.empty((3, 1111))
    place, best = np.empty(1111, np.int32), np.empty(1111)
    fit = [
        lay_columns(score[first:last], first, column, place, best)
        for first, last in ((0, 5), (5, 2000), (2000, score.size))
    ]
    assert fit == [
        wrong is None or not a <= wrong < b for a, b in ((0, 5), (5, 2000), (2000, 3333))
    ]
    assert np.array_equal(column.T.ravel(), score, equal_nan=True)
    if wrong is None:
        assert np.array_equal(place, column.argmax(axis=0))
        assert np.array_equal(best, column.max(axis=0))


@modest
@given(st.integers(1, 5), st.integers(1, 9), st.integers(1, 30), st.data())
def test_held_values(width: int, blocks: int, longest: int, data: st.DataObject) -> None:
    """The first row of a block says what all of it are; one row that differs is found."""
    ids = st.integers(-(1 << 63), (1 << 63) - 1)
    held = np.array(data.draw(st.lists(ids, min_size=blocks, max_size=blocks)), np.int64)
    value = np.repeat(held, width)
    wrong = data.draw(st.none() | st.integers(0, value.size - 1))
    if wrong is not None:
        value[wrong] ^= 1 << data.draw(st.integers(0, 62))
    found = np.empty(blocks, np.int64)
    fit = all(
        hold(value[first : first + longest], first, width, found)
        for first in range(0, value.size, longest)
    )
    assert fit == (wrong is None or width == 1)
    if fit:
        assert found.tolist() == value[::width].tolist()


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_held_values_of_a_block_in_two_pieces(cut: int) -> None:
    """What the first piece said holds for the second."""
    found = np.empty(1, np.int64)
    assert hold(np.full(cut, 7), 0, 4, found)
    assert hold(np.full(4 - cut, 7), cut, 4, found)
    assert not hold(np.full(4 - cut, 8), cut, 4, found)
