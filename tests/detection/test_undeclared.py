"""Rows of images or categories that are not declared: left out by coco, kept by standard."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

import evalengine as ee

from .strategies import crowded_tables


def coco_files(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A ground-truth object and a results list of a crowded table."""
    drawn = crowded_tables(9, datums=12)
    boxes = [
        {
            "image_id": int(row["datum_id"]),
            "category_id": int(row["label_value"]),
            "bbox": [
                row["xmin"],
                row["ymin"],
                row["xmax"] - row["xmin"],
                row["ymax"] - row["ymin"],
            ],
        }
        for row in drawn.truths.iter_rows(named=True)
    ]
    truth = {
        "images": [{"id": int(datum)} for datum in drawn.datums],
        "categories": [{"id": c} for c in sorted({box["category_id"] for box in boxes})],
        "annotations": [
            {**box, "id": i + 1, "iscrowd": 0, "area": box["bbox"][2] * box["bbox"][3]}
            for i, box in enumerate(boxes)
        ],
    }
    found = [
        {
            "image_id": int(row["datum_id"]),
            "category_id": int(row["label_value"]),
            "bbox": [
                row["xmin"],
                row["ymin"],
                row["xmax"] - row["xmin"],
                row["ymax"] - row["ymin"],
            ],
            "score": row["score"],
        }
        for row in drawn.predictions.iter_rows(named=True)
    ]
    return truth, found


def reference(truth: Path, found: Path) -> list[float]:
    with contextlib.redirect_stdout(io.StringIO()):
        gt = COCO(str(truth))
        evaluation = COCOeval(gt, gt.loadRes(str(found)), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return [float(number) for number in evaluation.stats]


@pytest.mark.parametrize("cut", ["images", "categories"])
def test_coco_leaves_out_what_is_not_declared(cut: str, tmp_path: Path) -> None:
    truth, found = coco_files(tmp_path)
    truth[cut] = truth[cut][: len(truth[cut]) // 2]
    if cut == "images":  # pycocotools refuses results of images it does not know
        known = {image["id"] for image in truth["images"]}
        found = [box for box in found if box["image_id"] in known]
    (tmp_path / "gt.json").write_text(json.dumps(truth))
    (tmp_path / "dt.json").write_text(json.dumps(found))
    card = ee.score(tmp_path / "dt.json", tmp_path / "gt.json", dialect="coco")
    assert card.to_coco()["stats"] == reference(tmp_path / "gt.json", tmp_path / "dt.json")
    assert any("left out" in note for note in card.notes)
    kept = ee.score(tmp_path / "dt.json", tmp_path / "gt.json")
    assert not any("left out" in note for note in kept.notes)
