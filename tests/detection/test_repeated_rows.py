"""Warnings about repeated rows, and about files of several models scored as one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from refusals import noted

import evalengine as ee

HERE = "examples/detection/"


@pytest.fixture
def tables() -> tuple[pl.DataFrame, pl.DataFrame]:
    return pl.read_parquet(HERE + "predictions.parquet"), pl.read_parquet(
        HERE + "groundtruths.parquet"
    )


@pytest.mark.parametrize("role", ["predictions", "ground_truths"])
@pytest.mark.parametrize("share", [0.3, 0.98, 1])
def test_rows_appended_again_are_a_warning(tables, role: str, share: float) -> None:
    inputs = list(tables)
    place = int(role != "predictions")
    inputs[1] = inputs[1].drop("annotation_id", strict=False)  # ids must be unique
    n = int(share * inputs[place].height)
    inputs[place] = pl.concat([inputs[place], inputs[place].head(n)])
    facts = noted(ee.score(*inputs), "rows_doubled", severity="warning").facts
    assert (facts["side"], facts["of"]) == (role, inputs[place].height)
    assert facts["count"] >= n
    assert ee.check(*inputs).warnings


def test_few_copies_are_a_note(tables) -> None:
    predictions, truths = tables
    card = ee.score(pl.concat([predictions, predictions.head(12)]), truths)
    assert noted(card, "rows_doubled", severity="note").facts["count"] == 12
    for clean in (predictions, pl.concat([predictions, predictions.head(2)])):
        assert "rows_doubled" not in {one.code for one in ee.score(clean, truths).findings}
    boxes = predictions.with_columns(pl.col("score") / 2)  # a box may have several scores
    card = ee.score(pl.concat([predictions, boxes]), truths)
    assert "rows_doubled" not in {one.code for one in card.findings}


@pytest.mark.parametrize("padding", [(0, 0, 0, 0.5), (-1, -1, -1, -1), (0, 640, 480, 0)])
def test_padding_is_no_copy(tables, padding: tuple[float, ...]) -> None:
    """Detections padded to a fixed number per image have empty boxes or scores of 0."""
    predictions, truths = tables
    start, right, bottom, score = map(float, padding)
    corners = dict.fromkeys(("xmin", "ymin"), start) | {"xmax": right, "ymax": bottom}
    filled = predictions.with_columns(
        **{name: pl.lit(one) for name, one in (corners | {"score": score}).items()},
        label_value=pl.lit(predictions["label_value"][0]),
    )
    card = ee.score(pl.concat([predictions, filled, filled]), truths)
    assert "rows_doubled" not in {one.code for one in card.findings}
    twice = pl.concat([predictions, predictions, filled])
    facts = noted(ee.score(twice, truths), "rows_doubled", severity="warning").facts
    assert facts["count"] == predictions.height


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
    noted(card, "rows_doubled", severity="warning")


def test_files_that_share_their_datums_are_warned_about(tables, tmp_path: Path) -> None:
    predictions, truths = tables
    for name, factor in (("one", 1.0), ("two", 0.9)):
        predictions.with_columns(pl.col("score") * factor).write_parquet(
            tmp_path / f"{name}.parquet"
        )
    card = ee.score(tmp_path / "*.parquet", truths)
    note = noted(card, "files_share_datums", severity="warning").message
    assert "59 of 59 datums" in note
    assert "'one.parquet'" in note
    assert "'two.parquet'" in note


def test_folders_that_share_their_datums_are_warned_about(tmp_path: Path) -> None:
    """Files are named by folder if their names are equal; one file per label causes no warning."""
    box = {"bbox": [1, 2, 3, 4], "score": 0.5}
    boxes = "".join(f"{i},car,0.5,.1,.2,.3,.4\n" for i in range(6))
    for model in ("m1", "m2"):
        (tmp_path / model).mkdir()
        results = [{"image_id": i, "category_id": 1, **box} for i in range(6)]
        (tmp_path / model / "found.json").write_text(json.dumps(results))
        (tmp_path / model / "oi.csv").write_text(
            f"ImageID,LabelName,Score,XMin,XMax,YMin,YMax\n{boxes}"
        )
        (tmp_path / model / "comp4_det_test_car.txt").write_text(
            "".join(f"{i} 0.5 1 2 3 4\n" for i in range(6))
        )
    truths = pl.DataFrame(
        {"datum_id": range(6), "label_value": 1, "xmin": 1, "ymin": 2, "xmax": 4, "ymax": 6}
    )
    named = truths.with_columns(pl.col("datum_id").cast(pl.String), label_value=pl.lit("car"))
    sizes = named.select("datum_id", width=9, height=9)
    for name, theirs in (
        ("found.json", truths), ("oi.csv", named), ("comp4_det_test_car.txt", named),
    ):  # fmt: skip
        datums = sizes if theirs is named else None
        report = ee.check(tmp_path / "*" / name, theirs, datums=datums)
        note = noted(report, "files_share_datums", severity="warning").message
        assert "6 of 6 datums" in note
        assert f"'m1/{name}'" in note
        assert f"'m2/{name}'" in note
    (tmp_path / "m2/comp4_det_test_car.txt").rename(tmp_path / "m2/comp4_det_test_dog.txt")
    warnings = ee.check(tmp_path / "*" / "comp4*.txt", named).warnings
    assert not [one for one in warnings if "several models" in one]


def test_files_cut_by_rows_are_one_table(tables, tmp_path: Path) -> None:
    predictions, truths = tables
    predictions = predictions.sort("datum_id")
    for i in range(3):
        predictions[i * 150 : (i + 1) * 150].write_csv(tmp_path / f"{i}.csv")
    card = ee.score(tmp_path / "*.csv", truths)
    assert not [note for note in card.notes if "several models" in note]
