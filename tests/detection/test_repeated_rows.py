"""Rows that stand twice, and files of several models scored as one: said, where they can be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import evalengine as ee

HERE = "examples/detection/"


@pytest.fixture
def tables() -> tuple[pl.DataFrame, pl.DataFrame]:
    return pl.read_parquet(HERE + "predictions.parquet"), pl.read_parquet(
        HERE + "groundtruths.parquet"
    )


@pytest.mark.parametrize("role", ["predictions", "ground truths"])
def test_every_row_twice_is_a_warning(tables, role: str) -> None:
    given = list(tables)
    place = int(role != "predictions")
    given[place] = pl.concat([given[place]] * 2)
    given[1] = given[1].drop("annotation_id", strict=False)  # ids may stand once
    (warning,) = ee.score(*given).warnings
    assert warning.startswith(f"every row of the {role} stands twice or more, with the same")
    assert ee.check(*given).warnings


def test_some_rows_twice_are_legal(tables) -> None:
    predictions, truths = tables
    card = ee.score(pl.concat([predictions, predictions.head(200)]), truths)
    assert not card.warnings


def test_every_row_twice_in_bounded_memory() -> None:
    rng = np.random.default_rng(0)
    n = 300_000
    x, y = rng.random((2, n)) * 1000
    boxes = pl.DataFrame(
        {"datum_id": np.arange(n) // 3, "label_value": "a", "xmin": x, "ymin": y, "xmax": x + 5,
         "ymax": y + 5}
    )  # fmt: skip
    scored = boxes.with_columns(score=rng.random(n))
    card = ee.score(pl.concat([scored, scored]), boxes, memory_limit="480MiB")
    assert card.run["buckets"] > 1
    (warning,) = card.warnings
    assert "every row of the predictions stands twice" in warning


def test_files_that_share_their_datums_are_told_of(tables, tmp_path: Path) -> None:
    predictions, truths = tables
    for name, factor in (("one", 1.0), ("two", 0.9)):
        predictions.with_columns(pl.col("score") * factor).write_parquet(
            tmp_path / f"{name}.parquet"
        )
    card = ee.score(tmp_path / "*.parquet", truths)
    told = [note for note in card.notes if "are of several models" in note]
    assert told == [
        "predictions: 59 of 59 datums looked at stand in 'one.parquet' and in 'two.parquet' alike,"
        " and all their rows are scored together. If the files are of several models, score them"
        " one by one."
    ]


def test_files_cut_by_rows_are_one_table(tables, tmp_path: Path) -> None:
    predictions, truths = tables
    predictions = predictions.sort("datum_id")
    for i in range(3):
        predictions[i * 150 : (i + 1) * 150].write_csv(tmp_path / f"{i}.csv")
    card = ee.score(tmp_path / "*.csv", truths)
    assert not [note for note in card.notes if "several models" in note]
