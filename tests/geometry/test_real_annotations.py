"""Real COCO annotations give pycocotools' codes, to the character."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from pycocotools import mask as coco
from reference_data import real_data

from evalengine.geometry import masks, polygons


@pytest.fixture(scope="module")
def truths() -> tuple[list[Any], dict[int, Any]]:
    content = json.loads(real_data("coco_val2014_100", "gt.json").read_text("utf-8"))
    return content["annotations"], {image["id"]: image for image in content["images"]}


def test_polygons(truths: tuple[list[Any], dict[int, Any]]) -> None:
    annotations, images = truths
    own = [one for one in annotations if isinstance(one["segmentation"], list)]
    assert len(own) > 800
    h = np.array([images[one["image_id"]]["height"] for one in own])
    w = np.array([images[one["image_id"]]["width"] for one in own])
    column = pl.Series("segmentation", [one["segmentation"] for one in own])
    result = polygons.read_polygons(column, side="ground_truths")
    drawn = masks.to_rle(polygons.rasterise(result, h, w)).struct.field("counts").to_list()
    want = [
        coco.merge(coco.frPyObjects(one["segmentation"], int(y), int(x)))["counts"].decode()
        for one, y, x in zip(own, h, w, strict=True)
    ]
    assert drawn == want


def test_crowds(truths: tuple[list[Any], dict[int, Any]]) -> None:
    own = [one for one in truths[0] if isinstance(one["segmentation"], dict)]
    assert own
    result = masks.read_masks(
        pl.Series("mask", [one["segmentation"] for one in own]), side="ground_truths"
    )
    codes = [coco.frPyObjects(one["segmentation"], *one["segmentation"]["size"]) for one in own]
    assert result.area.tolist() == [int(coco.area(code)) for code in codes]


def test_detections() -> None:
    detections = json.loads(real_data("coco_val2014_100", "dt_segm.json").read_text("utf-8"))
    codes = [one["segmentation"] for one in detections]
    result = masks.read_masks(pl.Series("mask", codes), side="predictions")
    assert masks.to_rle(result).struct.field("counts").to_list() == [one["counts"] for one in codes]
    image = np.array([one["image_id"] for one in detections])
    ia, ib = (np.int32(one) for one in np.nonzero(image[:, None] == image))
    shared = masks.intersections(result, result, ia, ib)
    own = shared / (result.area[ia] + result.area[ib] - shared)
    want = np.zeros(ia.size)
    for each in np.unique(image):
        rows = np.flatnonzero(image == each)
        same = [codes[i] for i in rows]
        want[image[ia] == each] = np.asarray(coco.iou(same, same, [0] * len(same))).ravel()
    assert (own == want).all()
