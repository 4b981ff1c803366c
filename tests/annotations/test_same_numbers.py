"""The same images in seven formats, and any pair of them: the same twelve numbers."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from annotations.writers import NAMES, WRITERS, Image, images
from loading import load_frames
from refusals import noted, refused

import evalengine as ee
from evalengine.ingest.sources.tables import open_source

WITH_SIZES = [name for name in WRITERS if name != "open-images"]


def written(name: str, folder: Path, seed: int = 0) -> tuple[Path, Path]:
    """Write detections and ground truths in a format."""
    paths = []
    for predictions in (True, False):
        here = folder / f"{name} {predictions}"
        here.mkdir()
        paths.append(
            WRITERS[name](here, images(seed, predictions=predictions), predictions=predictions)
        )
    return paths[0], paths[1]


def numbers(predictions: Path, truths: Path, **options: Any) -> list[float]:
    card = ee.score(predictions, truths, dialect="coco", iou_type="bbox", **options)
    # Open Images contains no sizes, unless a table has them.
    assert {one.code for one in card.findings if one.severity == "warning"} <= {"sizes_unknown"}
    stats: list[float] = card.to_coco()["stats"]
    return stats


@pytest.fixture(scope="module")
def want(tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    numbers_of_coco = numbers(*written("coco", tmp_path_factory.mktemp("coco")))
    assert 0.2 < numbers_of_coco[0] < 0.9
    return numbers_of_coco


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "coco"])
def test_one_format_on_both_sides(name: str, want: list[float], tmp_path: Path) -> None:
    predictions, truths = written(name, tmp_path)
    if name != "open-images":
        assert numbers(predictions, truths) == want
        return
    sizes = pl.DataFrame(
        [(one.stem, one.width, one.height) for one in images(0, predictions=False)],
        schema=["datum_id", "width", "height"],
        orient="row",
    )
    assert numbers(predictions, truths, datums=sizes) == want
    single = ee.score(predictions, truths, dialect="coco", iou_type="bbox")
    assert [*single.to_coco()["stats"][:3]] == want[:3], "relative coordinates on both sides match"
    noted(single, "sizes_unknown")


@pytest.mark.parametrize(
    ("ours", "theirs"), [(a, b) for a, b in product(WRITERS, WITH_SIZES) if a != b and a != "coco"]
)
def test_any_pair(ours: str, theirs: str, want: list[float], tmp_path: Path) -> None:
    """Class numbers are mapped by names next to them."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    predictions, _ = written(ours, tmp_path / "a")
    _, truths = written(theirs, tmp_path / "b")
    if ours == "yolo":
        (predictions / "classes.txt").write_text("".join(f"{name}\n" for name in NAMES))
    assert numbers(predictions, truths) == want


def test_numbers_without_names_are_warned_about(tmp_path: Path) -> None:
    """YOLO class numbers never match COCO category ids; the warning suggests a mapping."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    predictions, _ = written("yolo", tmp_path / "a")
    _, truths = written("coco", tmp_path / "b")
    report = ee.check(predictions, truths)
    assert {one.code for one in report.findings if one.severity == "warning"} == {
        "labels_apart",
        "labels_one_off",
    }
    assert f"0 to {len(NAMES) - 1}" in noted(report, "labels_one_off").message
    assert noted(report, "labels_apart").facts["shift"] == 1
    assert "label_format=['+1']" in noted(report, "labels_apart").message


def test_results_with_numbers_of_images(want: list[float], tmp_path: Path) -> None:
    """Integers at the end of image names are ids, as in COCO results of many tools."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    predictions, _ = written("coco", tmp_path / "a")
    _, truths = written("yolo", tmp_path / "b")
    rows = json.loads(predictions.read_text())
    for row in rows:
        row["image_id"], row["category_id"] = row["image_id"] - 1, row["category_id"] - 1
    predictions.write_text(json.dumps(rows))
    assert numbers(predictions, truths) == want


def test_indices_that_match_by_chance_are_warned_about(tmp_path: Path) -> None:
    """Image names are odd numbers and results count from 0, so part of the ids match by chance."""
    box = {"category_id": 0, "bbox": [1, 1, 5, 5], "score": 0.5}
    for n in range(5, 45, 2):
        (tmp_path / f"{n:06}.txt").write_text("0 0.5 0.5 0.5 0.5")
    sizes = [{"datum_id": f"{n:06}", "width": 9, "height": 9} for n in range(5, 45, 2)]
    predictions = tmp_path / "found.json"
    for ids, warned in ((range(20), True), (range(5, 45, 2), False), (range(9, 45, 4), False)):
        predictions.write_text(json.dumps([{"image_id": i, **box} for i in ids]))
        report = ee.check(predictions, f"{tmp_path}/*.txt", datums=pl.DataFrame(sizes))
        findings = [one for one in report.findings if "8 of 20" in one.message]
        assert [one.severity for one in findings] == ["warning"] * warned


@pytest.mark.parametrize("name", WITH_SIZES)
@pytest.mark.parametrize("to", ["tables", "coco"])
def test_conversion_keeps_all_numbers(name: str, to: str, tmp_path: Path) -> None:
    predictions, truths = written(name, tmp_path)
    out = tmp_path / "out"
    before = numbers(predictions, truths)
    counts = ee.convert(truths, predictions, out=out, to=to)
    suffix = {"tables": "parquet", "coco": "json"}[to]
    sides = out / f"predictions.{suffix}", out / f"groundtruths.{suffix}"
    more = {} if to == "coco" else {"datums": out / "datums.parquet"}
    if to == "tables":
        more |= {"labels": out / "labels.parquet"} if (out / "labels.parquet").exists() else {}
    assert numbers(*sides, **more) == before
    want: list[list[Image]] = [images(0, predictions=True), images(0, predictions=False)]
    of_side = [counts[path.name] for path in sides]
    assert of_side == [sum(len(one.boxes) for one in side) for side in want]
    frames = load_frames(*sides, task="detection", **more)
    assert frames.datums is not None
    assert frames.datums.height == len(want[1]), "images without objects count"


def test_key_points_are_converted_and_read_again(tmp_path: Path) -> None:
    person = {"id": 1, "name": "person"}
    points = [11.0, 12.0, 2.0, 13.0, 14.0, 0.0]
    row = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 10, 40, 40], "area": 900.0,
           "iscrowd": 0, "num_keypoints": 1, "keypoints": points}  # fmt: skip
    image = {"id": 1, "file_name": "a.jpg", "width": 100, "height": 100}
    whole = {"images": [image], "categories": [person], "annotations": [row]}
    (tmp_path / "k.json").write_text(json.dumps(whole))
    ee.convert(tmp_path / "k.json", out=tmp_path / "coco", to="coco")
    again = json.loads((tmp_path / "coco" / "groundtruths.json").read_text())
    assert again["annotations"] == [{**row, "bbox": [10.0, 10.0, 40.0, 40.0]}]
    pose = tmp_path / "pose"
    (pose / "labels").mkdir(parents=True)
    (pose / "data.yaml").write_text("names: [p]\nkpt_shape: [2, 3]\n")
    (pose / "labels" / "a.txt").write_text("0 0.5 0.5 0.5 0.5 0.5 0.5 2 0.25 0.25 1\n")
    sizes = pl.DataFrame({"datum_id": ["a"], "width": [100], "height": [100]})
    ee.convert(pose, out=tmp_path / "posed", to="coco", datums=sizes)
    (content,) = json.loads((tmp_path / "posed" / "groundtruths.json").read_text())["annotations"]
    assert content["keypoints"] == [50.0, 50.0, 2.0, 25.0, 25.0, 1.0]
    assert content["num_keypoints"] == 2
    tables = ee.convert(tmp_path / "posed" / "groundtruths.json", out=tmp_path / "tables")
    assert tables["groundtruths.parquet"] == 1


def test_attributes_of_cvat_are_no_columns_with_a_meaning(tmp_path: Path) -> None:
    attributes = {"area": "wet", "confidence": "{}", "occluded": "no"}
    elements = "".join(
        f'<attribute name="{name}">{attributes[name]}</attribute>' for name in attributes
    )
    file = tmp_path / "a.xml"
    text = (
        '<annotations><version>1.1</version><image id="0" name="a.jpg" width="50" height="50">'
        f'<box label="x" occluded="1" xtl="1" ytl="1" xbr="9" ybr="9">{elements}</box></image>'
        "</annotations>"
    )
    file.write_text(text.format("0.5"))
    row = open_source(file).frame.collect().row(0, named=True)
    assert (row["score"], row["occluded"]) == (0.5, 1)
    assert (row["attribute_area"], row["attribute_occluded"]) == ("wet", "no")
    file.write_text(text.format("high"))
    with refused("file_malformed", file=str(file), match="'confidence'"):
        ee.score(file, file)
