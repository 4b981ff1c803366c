"""Real COCO data as JSON: pycocotools' numbers to the last bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from oracles.coco_reference import coco_eval, same_arrays
from reference_data import real_data

import evalengine as ee

NAMES = ["AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"]
BOXES = ("coco_val2014_100", "dt_bbox.json", "bbox")


def _case(folder: str, detections: str, iou_type: str) -> tuple[str, str, dict[str, Any]]:
    """Return paths of detections and ground truths, and the expected numbers of boxes or masks."""
    expected = json.loads(real_data(folder, "expected.json").read_text())[iou_type]
    return str(real_data(folder, detections)), str(real_data(folder, "gt.json")), expected


@pytest.mark.parametrize(
    ("folder", "detections", "iou_type"),
    [
        BOXES,
        ("coco_val2014_100", "dt_segm.json", "segm"),
        ("fce_small", "dt.json", "bbox"),
        ("fce_small", "dt.json", "segm"),
    ],
)
def test_numbers_of_json(folder: str, detections: str, iou_type: str) -> None:
    """The twelve numbers and the arrays bit by bit; AP, AP50 and AR of every category."""
    predictions, truths, expected = _case(folder, detections, iou_type)
    card = ee.score(predictions, truths, task="detection", dialect="coco", iou_type=iou_type)
    result = card.to_coco()
    assert result["stats"] == [expected["stats"][name] for name in NAMES]
    theirs = coco_eval(truths, predictions, iou_type)
    same_arrays(result, theirs)
    ids = result["params"]["catIds"]
    assert ids == theirs.params.catIds
    assert [str(i) for i in ids] == list(expected["per_class"])
    defined = 0
    for k, numbers in enumerate(expected["per_class"].values()):
        precision = result["precision"][:, :, k, 0, -1]
        recall = result["recall"][:, k, 0, -1]
        wanted = pytest.approx([numbers[name] for name in ("AP", "AP50", "AR_last")], abs=1e-14)
        assert [precision.mean(), precision[0].mean(), recall.mean()] == wanted
        if numbers["AP"] == -1:
            continue
        defined += 1
        row = {"label_value": ids[k], "area": "all", "max_detections": 100}
        ap50 = card.value("AP", iou_threshold=0.5, **row)
        assert [card.value("APAveragedOverIOUs", **row), ap50, card.value("AR", **row)] == wanted
    assert defined >= 4


def test_converted_tables_score_the_same() -> None:
    """Tables of the same rows, made by hand, give the same twelve numbers."""
    *paths, expected = _case(*BOXES)
    content, truth = (json.loads(Path(path).read_text()) for path in paths)
    sides = []
    for rows in (content, truth["annotations"]):
        names = ["image_id", "category_id", "score", "iscrowd", "area"]
        columns = {name: [row[name] for row in rows] for name in names if name in rows[0]}
        boxes = [[float(x) for x in row["bbox"]] for row in rows]
        sides.append(pl.DataFrame({**columns, "bbox": boxes}))
    card = ee.score(*sides, task="detection", dialect="coco", box_format="xywh")
    assert card.to_coco()["stats"] == [expected["stats"][name] for name in NAMES]
