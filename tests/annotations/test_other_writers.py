"""Files that globox 2.9.0 and supervision 0.31.2 wrote for the same three images.

supervision's VOC counts pixels from 1, so first corners are greater by 1.
"""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from annotations.writers import NAMES

import evalengine as ee
from evalengine.ingest.sources.tables import open_source

WRITTEN = Path(__file__).parent / "written"


def boxes(*, classes: bool, first: int = 0) -> pl.DataFrame:
    """Boxes in all files, by number or name of the class."""
    rows = [
        (image["stem"], label if classes else NAMES[label], x0 + first, y0 + first, x1, y1)
        for image in json.loads((WRITTEN / "boxes.json").read_text())
        for label, x0, y0, x1, y1 in image["boxes"]
    ]
    names = ["datum_id", "label_value", "xmin", "ymin", "xmax", "ymax"]
    return pl.DataFrame(rows, schema=names, orient="row").sort(names)


@pytest.mark.parametrize(
    ("name", "classes", "first"),
    [
        ("globox/voc", False, 0),
        ("globox/labelme", False, 0),
        ("globox/cvat.xml", False, 0),
        ("supervision/voc", False, 1),
        ("supervision/labelme", False, 0),
    ],
)
def test_the_boxes_are_those_that_were_written(name: str, classes: bool, first: int) -> None:
    source = open_source(WRITTEN / name)
    want = boxes(classes=classes, first=first)
    frame = source.frame.select(want.columns).collect().sort(want.columns)
    assert frame.equals(want)
    assert source.datums is not None
    assert source.datums["datum_id"].n_unique() == 3


@pytest.mark.parametrize("name", ["globox/yolo", "supervision/yolo", "globox/open_images.csv"])
def test_shares_are_those_of_the_same_boxes(name: str, tmp_path: Path) -> None:
    """Relative boxes match in pixels, with sizes from a table; text may have rounded them."""
    listed = json.loads((WRITTEN / "boxes.json").read_text())
    sizes = pl.DataFrame(
        [(image["stem"], image["width"], image["height"]) for image in listed],
        schema=["datum_id", "width", "height"],
        orient="row",
    )
    ee.convert(WRITTEN / name, out=tmp_path, datums=sizes)
    got = pl.read_parquet(tmp_path / "groundtruths.parquet")
    want = boxes(classes="yolo" in name)
    assert (
        got.select("datum_id", "label_value")
        .sort(pl.all())
        .equals(want.select("datum_id", "label_value").sort(pl.all()))
    )
    keys = ["datum_id", "label_value", "xmin"]
    for column in ("xmin", "ymin", "xmax", "ymax"):
        ours, theirs = (one.sort(keys)[column].to_list() for one in (got, want))
        assert ours == pytest.approx(theirs, abs=2e-2)


def test_names_of_classes_are_those_of_the_description() -> None:
    source = open_source(WRITTEN / "supervision" / "yolo")
    assert source.labels is not None
    assert source.labels["label_name"].to_list() == [*NAMES]


@pytest.mark.parametrize("name", ["globox/coco.json", "supervision/coco.json"])
def test_coco_matches_other_files_of_the_same_tool(name: str) -> None:
    """Images and classes match by name."""
    truths = WRITTEN / name
    predictions = (
        open_source(WRITTEN / "globox" / "voc").frame.with_columns(score=pl.lit(0.5)).collect()
    )
    card = ee.score(predictions, truths, iou_type="bbox")
    assert card.value("mAP", iou_threshold=0.75) > 0.999
