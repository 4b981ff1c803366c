"""Oriented boxes in COCO's JSON: a field ``obb``, or five numbers in ``bbox``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused

import evalengine as ee

Rows = list[dict[str, Any]]
OPTIONS: dict[str, Any] = {"iou_type": "obb", "angle_format": "degrees-counterclockwise"}


def rows(n: int, scored: bool) -> Rows:
    rng = np.random.default_rng(n)
    made = []
    for i in range(n):
        centre, size = rng.uniform(20, 60, 2), rng.uniform(10, 40, 2)
        more = {"score": float(rng.random())} if scored else {"id": i + 1, "iscrowd": 0}
        box = [*centre.tolist(), *size.tolist(), float(rng.uniform(-90, 90))]
        ids = {"image_id": int(rng.integers(1, 4)), "category_id": int(rng.integers(1, 3))}
        made.append({**ids, **more, "obb": box})
    return made


def written(folder: Path, found: Rows, truths: Rows) -> tuple[Path, Path]:
    images, categories = [{"id": i} for i in range(1, 4)], [{"id": 1}, {"id": 2}]
    told = {"images": images, "categories": categories, "annotations": truths}
    paths = folder / "found.json", folder / "truths.json"
    for path, thing in zip(paths, (found, told), strict=True):
        path.write_text(json.dumps(thing))
    return paths


def in_bbox(given: Rows) -> Rows:
    return [{**{k: v for k, v in row.items() if k != "obb"}, "bbox": row["obb"]} for row in given]


@pytest.mark.parametrize("where", ["obb", "bbox", "beside an upright box"])
def test_numbers_are_those_of_tables(where: str, tmp_path: Path) -> None:
    predictions, truths = rows(30, scored=True), rows(20, scored=False)
    tables = [pl.DataFrame(side) for side in (predictions, truths)]
    if where == "bbox":
        predictions, truths = in_bbox(predictions), in_bbox(truths)
    elif where != "obb":
        predictions = [{**row, "bbox": [0, 0, 900, 900]} for row in predictions]
    told = ee.score(*tables, **OPTIONS).metrics
    read = ee.score(*written(tmp_path, predictions, truths), **OPTIONS).metrics
    values = ["metric", "label_value", "iou_threshold", "value"]
    assert read.select(values).equals(told.select(values))
    assert told["value"].sum() > 0.2


def test_upright_boxes_of_one_side_match_oriented_ones(tmp_path: Path) -> None:
    truth = [{"image_id": 1, "category_id": 1, "id": 1, "bbox": [0, 0, 20, 10]}]
    found = [{"image_id": 1, "category_id": 1, "score": 0.5, "bbox": [10, 5, 10, 20, 90]}]
    card = ee.score(*written(tmp_path, found, truth), **OPTIONS, metrics=["Outcomes"])
    assert card.outcomes["iou"].to_list() == [1.0]


@pytest.mark.parametrize(
    ("change", "options", "facts"),
    [
        (
            {},
            {"iou_type": "obb"},
            {"code": "angle_format_missing", "side": "predictions", "column": "obb"},
        ),
        ({}, {}, {"code": "geometry_missing", "count": 3, "of": 3, "row": 0}),
        ({"bbox": [1, 2, 3, 4, 5]}, {}, {"code": "file_malformed", "field": "bbox", "row": 0}),
        ({"bbox": [1, 2, 3]}, OPTIONS, {"code": "file_malformed", "field": "bbox", "row": 0}),
        (
            {"obb": [1, 2, 3]},
            OPTIONS,
            {
                "code": "wrong_length",
                "side": "predictions",
                "column": "obb",
                "count": 1,
                "rows": [0],
            },
        ),
        ({"obb": [1, 2, "3", 4, 5]}, OPTIONS, {"code": "file_malformed", "row": 0, "field": "obb"}),
    ],
)
def test_notes(
    change: dict[str, Any], options: dict[str, Any], facts: dict[str, Any], tmp_path: Path
) -> None:
    predictions, truths = rows(3, scored=True), rows(3, scored=False)
    predictions[0] |= change
    with refused(**facts):
        ee.score(*written(tmp_path, predictions, truths), **options)
