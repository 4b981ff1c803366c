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
    """Detections and ground truths of a format."""
    paths = []
    for found in (True, False):
        here = folder / f"{name} {found}"
        here.mkdir()
        paths.append(WRITERS[name](here, images(seed, found=found), found=found))
    return paths[0], paths[1]


def numbers(found: Path, truths: Path, **options: Any) -> list[float]:
    card = ee.score(found, truths, dialect="coco", iou_type="bbox", **options)
    # Open Images has none, unless a table tells them.
    assert {one.code for one in card.findings if one.severity == "warning"} <= {"sizes_unknown"}
    stats: list[float] = card.to_coco()["stats"]
    return stats


@pytest.fixture(scope="module")
def want(tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    numbers_of_coco = numbers(*written("coco", tmp_path_factory.mktemp("coco")))
    assert 0.2 < numbers_of_coco[0] < 0.9
    return numbers_of_coco


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "coco"])
def test_a_format_alone(name: str, want: list[float], tmp_path: Path) -> None:
    found, truths = written(name, tmp_path)
    if name != "open-images":
        assert numbers(found, truths) == want
        return
    sizes = pl.DataFrame(
        [(one.stem, one.width, one.height) for one in images(0, found=False)],
        schema=["datum_id", "width", "height"],
        orient="row",
    )
    assert numbers(found, truths, datums=sizes) == want
    alone = ee.score(found, truths, dialect="coco", iou_type="bbox")
    assert [*alone.to_coco()["stats"][:3]] == want[:3], "shares on both sides meet alike"
    noted(alone, "sizes_unknown")


@pytest.mark.parametrize(
    ("ours", "theirs"), [(a, b) for a, b in product(WRITERS, WITH_SIZES) if a != b and a != "coco"]
)
def test_any_pair(ours: str, theirs: str, want: list[float], tmp_path: Path) -> None:
    """Numbers of classes have names beside them."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    found, _ = written(ours, tmp_path / "a")
    _, truths = written(theirs, tmp_path / "b")
    if ours == "yolo":
        (found / "classes.txt").write_text("".join(f"{name}\n" for name in NAMES))
    assert numbers(found, truths) == want


def test_numbers_without_names_are_told_of(tmp_path: Path) -> None:
    """YOLO's class numbers beside COCO's categories: none is right, and the map stands there."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    found, _ = written("yolo", tmp_path / "a")
    _, truths = written("coco", tmp_path / "b")
    report = ee.check(found, truths)
    assert {one.code for one in report.findings if one.severity == "warning"} == {
        "labels_apart",
        "labels_one_off",
    }
    assert f"0 to {len(NAMES) - 1}" in noted(report, "labels_one_off").message
    assert noted(report, "labels_apart").facts["shift"] == 1
    assert "label_format=['+1']" in noted(report, "labels_apart").message


def test_results_that_number_images(want: list[float], tmp_path: Path) -> None:
    """Integers that stand at the end of the images' names, as COCO results of many tools have."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    found, _ = written("coco", tmp_path / "a")
    _, truths = written("yolo", tmp_path / "b")
    rows = json.loads(found.read_text())
    for row in rows:
        row["image_id"], row["category_id"] = row["image_id"] - 1, row["category_id"] - 1
    found.write_text(json.dumps(rows))
    assert numbers(found, truths) == want


def test_places_in_a_list_are_no_numbers_of_images(tmp_path: Path) -> None:
    """Odd numbers name the images, and results count them from 0: a third meets by chance."""
    box = {"category_id": 0, "bbox": [1, 1, 5, 5], "score": 0.5}
    for n in range(5, 45, 2):
        (tmp_path / f"{n:06}.txt").write_text("0 0.5 0.5 0.5 0.5")
    sizes = [{"datum_id": f"{n:06}", "width": 9, "height": 9} for n in range(5, 45, 2)]
    found = tmp_path / "found.json"
    for ids, warned in ((range(20), True), (range(5, 45, 2), False), (range(9, 45, 4), False)):
        found.write_text(json.dumps([{"image_id": i, **box} for i in ids]))
        report = ee.check(found, f"{tmp_path}/*.txt", datums=pl.DataFrame(sizes))
        told = [one for one in report.findings if "8 of 20" in one.message]
        assert [one.severity for one in told] == ["warning"] * warned


@pytest.mark.parametrize("name", WITH_SIZES)
@pytest.mark.parametrize("to", ["tables", "coco"])
def test_conversion_loses_nothing(name: str, to: str, tmp_path: Path) -> None:
    found, truths = written(name, tmp_path)
    out = tmp_path / "out"
    before = numbers(found, truths)
    counts = ee.convert(truths, found, out=out, to=to)
    suffix = {"tables": "parquet", "coco": "json"}[to]
    sides = out / f"predictions.{suffix}", out / f"groundtruths.{suffix}"
    more = {} if to == "coco" else {"datums": out / "datums.parquet"}
    if to == "tables":
        more |= {"labels": out / "labels.parquet"} if (out / "labels.parquet").exists() else {}
    assert numbers(*sides, **more) == before
    want: list[list[Image]] = [images(0, found=True), images(0, found=False)]
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
    (made,) = json.loads((tmp_path / "posed" / "groundtruths.json").read_text())["annotations"]
    assert made["keypoints"] == [50.0, 50.0, 2.0, 25.0, 25.0, 1.0]
    assert made["num_keypoints"] == 2
    tables = ee.convert(tmp_path / "posed" / "groundtruths.json", out=tmp_path / "tables")
    assert tables["groundtruths.parquet"] == 1


def test_attributes_of_cvat_are_no_columns_with_a_meaning(tmp_path: Path) -> None:
    told = {"area": "wet", "confidence": "{}", "occluded": "no"}
    said = "".join(f'<attribute name="{name}">{told[name]}</attribute>' for name in told)
    file = tmp_path / "a.xml"
    text = (
        '<annotations><version>1.1</version><image id="0" name="a.jpg" width="50" height="50">'
        f'<box label="x" occluded="1" xtl="1" ytl="1" xbr="9" ybr="9">{said}</box></image>'
        "</annotations>"
    )
    file.write_text(text.format("0.5"))
    row = open_source(file).frame.collect().row(0, named=True)
    assert (row["score"], row["occluded"]) == (0.5, 1)
    assert (row["attribute_area"], row["attribute_occluded"]) == ("wet", "no")
    file.write_text(text.format("high"))
    with refused("file_malformed", file=str(file), match="'confidence'"):
        ee.score(file, file)
