"""Rows of undeclared images or categories are skipped by coco and kept by standard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from detection.strategies import crowded_tables
from oracles.coco_reference import coco_eval

import evalengine as ee


def rows_of(table: pl.DataFrame, **more: Any) -> list[dict[str, Any]]:
    """Convert rows to COCO's form."""
    x0, y0, x1, y1 = (pl.col(name) for name in ("xmin", "ymin", "xmax", "ymax"))
    columns = {
        "image_id": "datum_id",
        "category_id": "label_value",
        "bbox": pl.concat_list(x0, y0, x1 - x0, y1 - y0),
        **more,
    }
    return table.select(**columns).to_dicts()


@pytest.mark.parametrize("cut", ["images", "categories"])
def test_coco_skips_undeclared_rows(cut: str, tmp_path: Path) -> None:
    drawn = crowded_tables(9, datums=12)
    area = (pl.col("xmax") - pl.col("xmin")) * (pl.col("ymax") - pl.col("ymin"))
    of_truths = {"id": pl.int_range(pl.len()) + 1, "iscrowd": pl.lit(0), "area": area}
    truth: dict[str, Any] = {
        "images": [{"id": datum} for datum in drawn.datums],
        "categories": [{"id": label} for label in sorted(set(drawn.truths["label_value"]))],
        "annotations": rows_of(drawn.truths, **of_truths),
    }
    result = rows_of(drawn.predictions, score="score")
    truth[cut] = truth[cut][: len(truth[cut]) // 2]
    if cut == "images":  # pycocotools refuses results of unknown images
        declared = {image["id"] for image in truth["images"]}
        result = [box for box in result if box["image_id"] in declared]
    paths = str(tmp_path / "dt.json"), str(tmp_path / "gt.json")
    for path, content in zip(paths, (result, truth), strict=True):
        Path(path).write_text(json.dumps(content))
    card = ee.score(*paths, dialect="coco")
    assert card.to_coco()["stats"] == coco_eval(paths[1], paths[0]).stats.tolist()
    assert any("skipped" in note for note in card.notes)
    assert not any("skipped" in note for note in ee.score(*paths).notes)
