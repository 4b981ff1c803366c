"""Pascal VOC pixels that count from 1, compared with edges, by dialect."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from annotations.writers import (
    NAMES,
    images,
    write_class_results,
    write_coco,
    write_cvat,
    write_voc,
)

import evalengine as ee
from evalengine.ingest.sources.tables import open_source
from evalengine.schemas.tables import TABLES
from evalengine.tasks.detection.dialects import DIALECTS

WRITTEN = Path(__file__).parent / "written"
NOTE = "pixels that count from 1"


def as_pixels(folder: Path) -> None:
    """Move first corners of XML by one pixel, as Pascal VOC and supervision write them."""
    for file in folder.glob("*.xml"):
        text = file.read_text()
        for tag in ("xmin", "ymin"):
            before, *rest = text.split(f"<{tag}>")
            parts = [part.split("<", 1) for part in rest]
            text = before + "".join(f"<{tag}>{float(n) + 1:g}<{more}" for n, more in parts)
        file.write_text(text)


def written(folder: Path) -> dict[str, tuple[Path, Path]]:
    """The same boxes as COCO, as VOC with edges, and as VOC with pixels from 1."""
    sides = images(3, predictions=True), images(3, predictions=False)
    files = {}
    for name, write in (("coco", write_coco), ("edges", write_voc), ("pixels", write_voc)):
        here = folder / name
        here.mkdir()
        files[name] = (
            write(here, sides[0], predictions=True),
            write(here, sides[1], predictions=False),
        )
    for side in files["pixels"]:
        as_pixels(side)
    return files


def stats(predictions: Path, truth: Path, **options: object) -> list[float]:
    card = ee.score(predictions, truth, dialect="coco", iou_type="bbox", **options)  # type: ignore[arg-type]
    values: list[float] = card.to_coco()["stats"]
    return values


def test_dialects_that_compare_corners_as_written() -> None:
    """All dialects that measure whole pixels, and all of Pascal VOC."""
    listed = {name for table in TABLES for name in table.as_written}
    measured = {name for name, one in DIALECTS.items() if one.rules.whole_pixels}
    assert listed == measured | {name for name in DIALECTS if name.startswith("voc")}


def test_the_same_numbers_as_coco(tmp_path: Path) -> None:
    """Either or both sides are XML, in memory and in buckets."""
    files = written(tmp_path)
    want = pytest.approx(stats(*files["coco"]), abs=1e-12)
    assert stats(*files["pixels"]) == want
    assert stats(*files["edges"]) == want
    assert stats(files["pixels"][0], files["coco"][1]) == want
    predictions = write_voc(tmp_path / "mixed", images(3, predictions=True), predictions=True)
    assert stats(predictions, files["pixels"][1]) == want
    assert stats(*files["pixels"], memory_limit="2GB") == want
    plain = stats(files["pixels"][0], files["coco"][1], box_format="xyxy")
    assert plain != want


def test_files_of_supervision(tmp_path: Path) -> None:
    """supervision's XML and COCO of one set contain the same boxes."""
    xml, coco = WRITTEN / "supervision" / "voc", WRITTEN / "supervision" / "coco.json"
    predictions = (
        open_source(WRITTEN / "globox" / "voc").frame.with_columns(score=pl.lit(0.5)).collect()
    )
    cards = [ee.score(predictions, truth, dialect="coco", iou_type="bbox") for truth in (xml, coco)]
    assert [card.value("AP") for card in cards] == pytest.approx([1, 1])
    assert [any(NOTE in note for note in card.notes) for card in cards] == [True, False]


def test_convert_gives_edges(tmp_path: Path) -> None:
    files = written(tmp_path)
    ee.convert(files["pixels"][1], files["pixels"][0], out=tmp_path / "coco_out", to="coco")
    out = tmp_path / "coco_out" / "predictions.json", tmp_path / "coco_out" / "groundtruths.json"
    want = pytest.approx(stats(*files["coco"]), abs=1e-12)
    assert stats(*out) == want
    boxes = [
        sorted(row["bbox"] for row in json.loads(file.read_text())["annotations"])
        for file in (out[1], files["coco"][1])
    ]
    assert boxes[0] == boxes[1]
    assert stats(files["pixels"][0], out[1]) == want


@pytest.mark.parametrize("dialect", ["voc2007", "voc2012", "voc-detectron2", "voc-mmdetection"])
def test_dialects_of_voc_keep_corners(dialect: str, tmp_path: Path) -> None:
    """XML gives the same number as a table with the same corners."""
    predictions, truth = written(tmp_path)["pixels"]
    tables = [open_source(side).frame.collect() for side in (predictions, truth)]
    cards = [ee.score(*sides, dialect=dialect, metrics=["mAP"])
             for sides in ((predictions, truth), tables)]  # fmt: skip
    assert cards[0].metrics["value"].to_list() == cards[1].metrics["value"].to_list()
    assert not any(NOTE in note for note in cards[0].notes)


def test_pixels_next_to_edges_are_noted_by_dialects_of_voc(tmp_path: Path) -> None:
    files = written(tmp_path)
    (tmp_path / "cvat").mkdir()
    cvat = write_cvat(tmp_path / "cvat", images(3, predictions=True), predictions=True)
    for predictions, truth in ((files["pixels"][0], files["coco"][1]), (cvat, files["pixels"][1])):
        notes = ee.score(predictions, truth, dialect="voc2012").notes
        assert sum(NOTE in note for note in notes) == 1


@pytest.mark.parametrize("pixels", [True, False])
def test_results_of_the_development_kit_follow_the_ground_truths(
    pixels: bool, tmp_path: Path
) -> None:
    files = written(tmp_path)
    some = images(3, predictions=True)
    results = write_class_results(tmp_path, some)
    for file in results.iterdir():
        lines = [line.split() for line in file.read_text().splitlines()]
        for line in lines if pixels else ():
            line[2:4] = [f"{float(corner) + 1:g}" for corner in line[2:4]]
        lines = [[line[0].replace("%20", "_"), *line[1:]] for line in lines]
        file.write_text("".join(" ".join(line) + "\n" for line in lines))
    truth = files["pixels" if pixels else "edges"][1]
    for file in truth.glob("* *"):
        file.rename(file.with_name(file.name.replace(" ", "_")))
    want = ee.score(*files["coco"], metrics=["mAP"], dialect="standard").metrics["value"]
    card = ee.score(results, truth, metrics=["mAP"], dialect="standard")
    assert card.metrics["value"].to_list() == pytest.approx(want.to_list(), abs=1e-12)


@pytest.mark.parametrize(
    ("corner", "edges"), [("0", True), ("1", False), ("1.0", True), ("0.5", True), ("7", False)]
)
def test_evidence_of_edges(corner: str, edges: bool, tmp_path: Path) -> None:
    box = "".join(f"<{tag}>{n}</{tag}>" for tag, n in
                  (("xmin", corner), ("ymin", 5), ("xmax", 9), ("ymax", 9)))  # fmt: skip
    (tmp_path / "a.xml").write_text(
        f"<annotation><object><name>{NAMES[0]}</name><bndbox>{box}</bndbox></object></annotation>"
    )
    source = open_source(tmp_path)
    assert any(note.kind == "corners_are_edges" for note in source.notes) == edges
    predictions = source.frame.with_columns(score=pl.lit(0.5)).collect()
    card = ee.score(
        predictions, tmp_path, metrics=["AP"], iou_thresholds=[0.99], dialect="standard"
    )
    assert (card.metrics["value"].drop_nulls().max() > 0.99) == edges
