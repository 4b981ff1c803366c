"""Real COCO data, JSON in: pycocotools' numbers to the last bit."""

from __future__ import annotations

import json
from typing import Any

import pytest
from known import real_data
from oracles.coco_reference import coco_eval

import evalengine as ee

NAMES = ["AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"]


def _case(folder: str, detections: str, iou_type: str) -> tuple[str, str, dict[str, Any]]:
    """Paths of detections and ground truths, and what to expect of boxes or masks."""
    expected = json.loads(real_data(folder, "expected.json").read_text())[iou_type]
    return (
        str(real_data(folder, detections)),
        str(real_data(folder, "gt.json")),
        expected,
    )


CASES = [
    ("coco_val2014_100", "dt_bbox.json", "bbox"),
    ("coco_val2014_100", "dt_segm.json", "segm"),
    ("fce_small", "dt.json", "bbox"),
    ("fce_small", "dt.json", "segm"),
]


@pytest.mark.parametrize(("folder", "detections", "iou_type"), CASES)
def test_twelve_numbers(folder: str, detections: str, iou_type: str) -> None:
    """Straight from the JSON files, bit by bit."""
    predictions, truths, expected = _case(folder, detections, iou_type)
    card = ee.score(predictions, truths, task="detection", dialect="coco", iou_type=iou_type)
    assert card.to_coco()["stats"] == [expected["stats"][name] for name in NAMES]


@pytest.mark.parametrize(("folder", "detections", "iou_type"), CASES)
def test_per_class(folder: str, detections: str, iou_type: str) -> None:
    """AP, AP50 and AR of every category of the JSON's list."""
    predictions, truths, expected = _case(folder, detections, iou_type)
    card = ee.score(predictions, truths, task="detection", dialect="coco", iou_type=iou_type)
    result = card.to_coco()
    ids = result["params"]["catIds"]
    assert [str(i) for i in ids] == list(expected["per_class"])
    defined = 0
    for k, numbers in enumerate(expected["per_class"].values()):
        precision = result["precision"][:, :, k, 0, -1]
        recall = result["recall"][:, k, 0, -1]
        assert precision.mean() == pytest.approx(numbers["AP"], abs=1e-14)
        assert precision[0].mean() == pytest.approx(numbers["AP50"], abs=1e-14)
        assert recall.mean() == pytest.approx(numbers["AR_last"], abs=1e-14)
        if numbers["AP"] == -1:
            continue
        defined += 1
        row = {"label_value": ids[k], "area": "all", "max_detections": 100}
        assert card.value("APAveragedOverIOUs", **row) == pytest.approx(numbers["AP"], abs=1e-14)
        assert card.value("AP", iou_threshold=0.5, **row) == pytest.approx(
            numbers["AP50"], abs=1e-14
        )
        assert card.value("AR", **row) == pytest.approx(numbers["AR_last"], abs=1e-14)
    assert defined >= 4


@pytest.mark.parametrize(("folder", "detections", "iou_type"), CASES)
def test_arrays(folder: str, detections: str, iou_type: str) -> None:
    """precision, recall and scores as pycocotools has them, for the categories of the JSON."""
    predictions, truths, _ = _case(folder, detections, iou_type)
    theirs = coco_eval(truths, predictions, iou_type)
    card = ee.score(predictions, truths, task="detection", dialect="coco", iou_type=iou_type)
    ours = card.to_coco()
    assert ours["params"]["catIds"] == theirs.params.catIds
    for name in ("precision", "recall", "scores"):
        assert (ours[name] == theirs.eval[name]).all(), name


def test_converted_tables_score_the_same() -> None:
    """Tables of the same rows, made by hand, give the same twelve numbers."""
    import polars as pl

    predictions, truths, expected = _case(*CASES[0])
    read = [json.loads(real_data(CASES[0][0], name).read_text()) for name in
            (CASES[0][1], "gt.json")]  # fmt: skip
    sides = []
    for rows in (read[0], read[1]["annotations"]):
        frame = pl.DataFrame(
            {
                "image_id": [row["image_id"] for row in rows],
                "category_id": [row["category_id"] for row in rows],
                "bbox": [[float(x) for x in row["bbox"]] for row in rows],
            }
        )
        for name in ("score", "iscrowd", "area"):
            if name in rows[0]:
                frame = frame.with_columns(pl.Series(name, [row[name] for row in rows]))
        sides.append(frame)
    card = ee.score(*sides, task="detection", dialect="coco", box_format="xywh")
    assert predictions != truths
    assert card.to_coco()["stats"] == [expected["stats"][name] for name in NAMES]
