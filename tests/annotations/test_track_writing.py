"""Tracks written as MOTChallenge and KITTI text give the same numbers as their tables."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from refusals import noted, refused

import evalengine as ee

METRICS = ["HOTA", "MOTA", "IDF1", "TP", "FP", "FN", "FPPerFrame"]


def sides(labels: tuple[str, str], **columns: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Two objects in two sequences of three frames; tracks have names, and one box is missing."""
    rows = [
        (sequence, frame, own, label, 30.0 * own + frame / 3, 5.0)
        for sequence in ("a", "b") for frame in (1, 2, 3) for own, label in enumerate(labels)
    ]  # fmt: skip
    names = ("sequence", "frame", "object_id", "label_value", "xmin", "ymin")
    truth = pl.DataFrame(rows, names, orient="row").with_columns(
        xmax=pl.col("xmin") + 20.1, ymax=pl.col("ymin") + 30
    )
    predictions = truth.select(
        pl.exclude("object_id"), track_id="t" + pl.col("object_id").cast(pl.String)
    )
    return predictions[1:].with_columns(score=0.5), truth.with_columns(**columns)


def values(card: ee.Scorecard, label: str) -> list[float]:
    return [card.value(name, average=None, label_value=label) for name in METRICS]


@pytest.mark.parametrize(
    ("form", "labels", "columns"),
    [
        ("mot", ("pedestrian", "distractor"), {"considered": pl.col("frame") != 3}),
        ("kitti-tracking", ("Pedestrian", "Van"), {"occluded": pl.col("frame")}),
    ],
)
def test_numbers_are_unchanged(
    tmp_path: Path, form: str, labels: tuple[str, str], columns: dict[str, Any]
) -> None:
    predictions, truth = sides(labels, **columns)
    lengths = pl.DataFrame({"sequence": ["a", "b"], "frames": [3, 3]})
    dialect = form.removesuffix("-tracking")
    expected = ee.score(predictions, truth, datums=lengths, dialect=dialect, metrics=METRICS)
    files = ee.convert(truth, predictions, datums=lengths, out=tmp_path, to=form)
    assert files["predictions/a.txt"] == 5
    written = [str(tmp_path / name) for name in ("predictions", "groundtruths")]
    card = ee.score(*written, dialect=dialect, metrics=METRICS)
    assert values(card, labels[0]) == pytest.approx(values(expected, labels[0]), rel=1e-12)


def test_tables_of_text(tmp_path: Path) -> None:
    """Text converts back to tables; a single folder contains ground truths."""
    predictions, truth = sides(("pedestrian", "car"))
    ee.convert(truth, predictions, out=tmp_path / "text", to="mot")
    text = tmp_path / "text"
    ee.convert(text / "groundtruths", text / "predictions", out=tmp_path / "tables")
    single = ee.convert(text / "groundtruths", out=tmp_path / "alone")
    assert single == {"groundtruths.parquet": 12, "datums.parquet": 2}
    tables = [tmp_path / "tables" / f"{name}.parquet" for name in ("predictions", "groundtruths")]
    assert ee.score(*tables).value("HOTA") == ee.score(predictions, truth).value("HOTA")


@pytest.mark.parametrize("to", ["tables", "kitti-tracking"])
def test_the_confidence_of_a_prediction_is_its_score(tmp_path: Path, to: str) -> None:
    """It is not the ``considered`` flag, unlike the confidence of a ground truth."""
    tracks, objects = sides(("pedestrian", "car"))
    ee.convert(objects, tracks, out=tmp_path / "text", to="mot")
    text = tmp_path / "text"
    names: Any = {"label_map": {"pedestrian": "Pedestrian", "car": "Car"}}
    predictions, truth = text / "predictions", text / "groundtruths"
    files = ee.convert(truth, predictions, out=tmp_path, to=to, options=names)
    if to == "tables":
        assert "considered" not in pl.read_parquet(tmp_path / "predictions.parquet").columns
        assert "considered" in pl.read_parquet(tmp_path / "groundtruths.parquet").columns
    else:
        assert files["predictions/a.txt"] == 5


def test_frames_from_0_and_other_names(tmp_path: Path) -> None:
    """Both sides are shifted by one frame, and a map renames labels."""
    predictions, truth = sides(("person", "car"))
    early = [side.with_columns(pl.col("frame") - 1) for side in (truth, predictions)]
    early[1] = early[1].filter(pl.col("frame") > 0)
    renaming = {"label_map": {"person": "pedestrian"}}
    with pytest.warns(UserWarning, match="1 is added"):
        ee.convert(*early, out=tmp_path, to="mot", options=renaming)
    written = [str(tmp_path / name) for name in ("predictions", "groundtruths")]
    lines = (tmp_path / "predictions" / "a.txt").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["2", "2", "3", "3"]
    assert {line.split(",")[7] for line in lines} == {"1", "3"}
    assert ee.score(*written).value("TP") == ee.score(early[1], early[0]).value("TP")


def test_columns_that_a_format_cannot_store(tmp_path: Path) -> None:
    predictions, truth = sides(("pedestrian", "car"), ignored=pl.col("frame") == 2)
    with pytest.warns(UserWarning, match="4 rows.*'ignored'"):
        files = ee.convert(truth, predictions, out=tmp_path, to="mot")
    assert files["groundtruths/a/gt/gt.txt"] == 4
    for change, message in (
        ({"label_value": pl.lit("cow")}, r"the labels 'cow'.*label_map={.cow"),
        ({"frame": pl.col("frame") - 2}, "4 rows of frames below 0"),
        ({"sequence": pl.lit("a/b")}, "names of files here, and 'a/b'"),
    ):
        with pytest.raises(ee.InputError, match=message):
            ee.convert(truth.drop("ignored").with_columns(**change), out=tmp_path, to="mot")
    blank = truth.drop("ignored").with_columns(label_value=pl.lit("Van der"))
    with refused("label_unwritable", value="Van der"):
        ee.convert(blank, out=tmp_path, to="kitti-tracking")
    ee.convert(truth.drop("ignored"), out=tmp_path / "text", to="mot")
    with refused("options_conflict", option="to"):
        ee.convert(tmp_path / "text" / "groundtruths", out=tmp_path, to="coco")


@pytest.mark.parametrize("to", ["mot", "kitti-tracking"])
def test_sequences_of_an_earlier_conversion_are_reported(tmp_path: Path, to: str) -> None:
    predictions, truth = sides(("Pedestrian", "Car"))
    messages: list[tuple[str, bool]] = []

    def hear(message: str, warning: bool) -> None:
        messages.append((message, warning))

    first = ee.convert(truth, predictions, out=tmp_path, to=to, tell=hear)
    ee.convert(truth, predictions, out=tmp_path, to=to, tell=hear)
    assert not any(warning for _, warning in messages)  # the same files again
    later = [side.with_columns(sequence=pl.lit("later")) for side in (truth, predictions)]
    ee.convert(*later, out=tmp_path, to=to, tell=hear)
    [notes] = [message for message, warning in messages if warning]
    assert f"{len(first)} sequences" in notes


def test_drafts_of_a_killed_conversion_are_removed_by_the_next(tmp_path: Path) -> None:
    code = """
import os, signal, sys
from pathlib import Path
from evalengine.ingest.files import write_files
def die(file):
    file.write(b"half"); file.flush(); os.kill(os.getpid(), signal.SIGKILL)
write_files({"groundtruths/a.txt": die, "predictions/a.txt": die}, Path(sys.argv[1]))
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    drafts = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(drafts) == 2
    for path in drafts:
        os.utime(path, (0, 0))
    predictions, truth = sides(("Pedestrian", "Car"))
    written = ee.convert(truth, predictions, out=tmp_path, to="kitti-tracking")
    there = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.txt*")}
    assert there == {*written}
    assert not any(path.exists() for path in drafts)


def test_labels_with_another_meaning_in_kitti(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    for i, labels in enumerate((("Pedestrian", "Car"), ("person", "car"))):
        clean = [side.with_columns(pl.col("frame") - 1) for side in sides(labels)]
        out = tmp_path / str(i)
        ee.convert(clean[1].with_columns(truncated=1), clean[0], out=out, to="kitti-tracking")
    assert not [one for one in recwarn if one.category is UserWarning]
    predictions, truth = sides(("bus", "Car"), truncated=pl.lit(0.5))
    with (
        pytest.warns(UserWarning, match=r"the labels 'bus'.*label_map={.bus.: .Car.}"),
        pytest.warns(UserWarning, match="12 fractions in 'truncated'"),
    ):
        ee.convert(truth, predictions, out=tmp_path / "odd", to="kitti-tracking")
    file = tmp_path / "odd/groundtruths/a.txt"
    file.write_text(file.read_text().replace("Car 0 ", "Car 0.5 ") + REGION)
    predicted = tmp_path / "odd/predictions/a.txt"
    predicted.write_text(predicted.read_text().replace("Car 0 ", "Car 0.5 "))
    card = ee.score(tmp_path / "odd/predictions", tmp_path / "odd/groundtruths", metrics=["HOTA"])
    assert noted(card, "truncated_fractions", count=3)
    assert "DontCare" not in str(card.notes)


REGION = "1 -1 DontCare -1 -1 -10 500 100 600 200 -1 -1 -1 -1000 -1000 -1000 -10\n"
