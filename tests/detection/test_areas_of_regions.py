"""Area ranges if boxes are compared and rows have only masks or polygons: pycocotools' rule.

``loadRes`` takes the area of results without a box from their mask, otherwise from the box.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from coco_masks import compressed, pixels_of, random_files
from merging.parts import Case
from oracles.coco_reference import coco_eval, run_coco, same_arrays
from partitions.cases import in_buckets, same_as_in_memory
from pycocotools import mask as coco_mask
from refusals import refused

import evalengine as ee

RANGES = {"all": (0, 1e10), "few": (0, 60.5), "some": (60.5, 250), "many": (250, 1e10)}
NOTE = "rows without a box go in area ranges by mask or polygon, not by the box around it"


def _files(folder: Path, seed: int, boxes: str) -> tuple[str, str]:
    """Write masks, crowds and polygons; ``boxes`` selects rows with boxes:

    ``none``, ``all``, ``truths``.
    """
    truths, results = random_files(seed, images=14)
    size = {image["id"]: (image["height"], image["width"]) for image in truths["images"]}
    for one in truths["annotations"]:
        code = compressed(pixels_of(one["segmentation"], size[one["image_id"]]))
        one["bbox"] = coco_mask.toBbox(code).tolist()
    for i, one in enumerate(results):
        if boxes == "all":
            one["bbox"] = coco_mask.toBbox(one["segmentation"]).tolist()
            one["bbox"][2] += i % 3  # a box wider than its mask
    paths = folder / "dt.json", folder / "gt.json"
    for path, content in zip(paths, (results, truths), strict=True):
        path.write_text(json.dumps(content))
    return str(paths[0]), str(paths[1])


def _tables(seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Make both sides as tables of masks with the box around each, and its area in pixels."""
    truths, results = random_files(seed, images=14)
    size = {image["id"]: (image["height"], image["width"]) for image in truths["images"]}
    sides = []
    for rows in (results, truths["annotations"]):
        codes = [compressed(pixels_of(r["segmentation"], size[r["image_id"]])) for r in rows]
        corner = np.array([coco_mask.toBbox(code) for code in codes])
        sides.append(
            pl.DataFrame(
                {
                    "datum_id": [row["image_id"] for row in rows],
                    "label_value": [str(row["category_id"]) for row in rows],
                    "mask": codes,
                    "xmin": corner[:, 0],
                    "ymin": corner[:, 1],
                    "xmax": corner[:, 0] + corner[:, 2],
                    "ymax": corner[:, 1] + corner[:, 3],
                    "area": [float(coco_mask.area(code)) for code in codes],
                }
            )
        )
    scores = pl.Series("score", [row["score"] for row in results])
    crowds = pl.Series("iscrowd", [row["iscrowd"] for row in truths["annotations"]])
    return sides[0].with_columns(scores), sides[1].with_columns(crowds)


CORNERS = ("xmin", "ymin", "xmax", "ymax")


@pytest.mark.parametrize("boxes", ["truths", "all"])
@pytest.mark.parametrize("seed", range(40, 43))
def test_coco(tmp_path: Path, seed: int, boxes: str) -> None:
    """Rows with only masks, or with masks and boxes, over COCO's area ranges and finer ones."""
    predictions, truths = _files(tmp_path, seed, boxes)
    card = ee.score(predictions, truths, dialect="coco", iou_type="bbox")
    theirs = coco_eval(truths, predictions, "bbox")
    assert card.to_coco()["stats"] == theirs.stats.tolist()
    assert any(NOTE in note for note in card.notes) == (boxes == "truths")
    fine = ee.score(predictions, truths, dialect="coco", iou_type="bbox", area_ranges=RANGES)
    theirs = coco_eval(truths, predictions, "bbox", area_ranges=RANGES)
    same_arrays(fine.to_coco(), theirs)
    assert (theirs.eval["precision"][..., 1, :] != theirs.eval["precision"][..., 0, :]).any()


@pytest.mark.parametrize("seed", range(50, 54))
def test_boxes_missing_in_some_rows(seed: int) -> None:
    """Each row has the area of its box, otherwise of its mask, on both sides."""
    predictions, truths = _tables(seed)
    own = pl.int_range(pl.len()) % 3 == 0
    by_row = pl.when(own).then(
        (pl.col("xmax") - pl.col("xmin")) * (pl.col("ymax") - pl.col("ymin"))
    )
    theirs, _, _ = run_coco(
        predictions.with_columns(area=by_row.otherwise("area")),
        truths.with_columns(area=by_row.otherwise("area")),
        area_ranges=RANGES,
    )
    sides = [
        side.drop("area").with_columns(pl.when(own).then(name).alias(name) for name in CORNERS)
        for side in (predictions, truths)
    ]
    options: dict[str, Any] = {
        "iou_type": "bbox",
        "area_ranges": RANGES,
        "max_detections": [1, 10, 100],
    }
    card = ee.score(*sides, dialect="coco", **options)
    same_arrays(card.to_coco(), theirs)
    assert sum("without a box" in note for note in card.notes) == 2
    keys = ["metric", "label_value", "iou_threshold", "area", "max_detections"]
    wanted = pl.col("metric").is_in(["AP", "AR", "mAP", "mAR", "mAPAveragedOverIOUs"])
    standard = ee.score(*sides, dialect="standard", **options).metrics.filter(wanted)
    coco = card.metrics.filter(wanted)
    assert standard.select(*keys, "value").equals(coco.select(*keys, "value"))


@pytest.mark.parametrize("seed", range(3))
def test_polygons(seed: int) -> None:
    """Predictions are only triangles, whose area is half that of the boxes around them."""
    rng = np.random.default_rng(seed)
    n = 120
    corner, size = rng.integers(0, 40, (n, 2)), rng.integers(1, 30, (n, 2))
    boxes = pl.DataFrame(
        {
            "datum_id": rng.integers(0, 6, n),
            "label_value": rng.choice(["a", "b"], n),
            **dict(zip(CORNERS, np.c_[corner, corner + size].T.astype(float), strict=True)),
            "score": rng.integers(0, 9, n) / 9,
        }
    )
    truths = boxes.drop("score").with_columns(pl.col("xmin", "ymin") - 1, pl.col("xmax") + 2)
    area = (pl.col("xmax") - pl.col("xmin")) * (pl.col("ymax") - pl.col("ymin"))
    theirs, _, _ = run_coco(boxes.with_columns(area=area / 2), truths, area_ranges=RANGES)
    x0, y0, x1, y1 = (pl.col(name) for name in CORNERS)
    triangles = boxes.with_columns(polygon=pl.concat_list(x0, y0, x1, y0, x0, y1)).drop(CORNERS)
    card = ee.score(triangles, truths, dialect="coco", iou_type="bbox", area_ranges=RANGES)
    same_arrays(card.to_coco(), theirs)
    assert ee.score(triangles, truths, iou_type="bbox").metrics.equals(
        ee.score(boxes, truths).metrics
    )


def test_polygons_that_cross_themselves_have_no_area() -> None:
    """They are refused only if their area matters, with a remedy."""
    bow = pl.DataFrame(
        {"datum_id": [1], "label_value": ["a"], "score": [0.5],
         "polygon": [[0.0, 0.0, 9.0, 9.0, 9.0, 0.0, 0.0, 9.0]]}
    )  # fmt: skip
    truth = pl.DataFrame({"datum_id": [1], "label_value": ["a"], "x": [0.0], "y": [0.0],
                          "width": [9.0], "height": [9.0]})  # fmt: skip
    assert ee.score(bow, truth).value("mAP", iou_threshold=0.75) > 0.9
    with refused("polygon_invalid", count=1, match="invalid_polygons=.repair"):
        ee.score(bow, truth, dialect="coco")
    card = ee.score(bow, truth, dialect="coco", invalid_polygons="repair")
    assert card.value("mAP", iou_threshold=0.75, area="small", max_detections=100) > 0.9


def test_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs are those of one run, even if only some buckets have rows without a box."""
    predictions, truths = _tables(60)
    own = pl.col("datum_id") % 2 == 0
    sides = tuple(
        side.drop("area").with_columns(
            *(pl.when(own).then(name).alias(name) for name in CORNERS), third=pl.col("datum_id") % 3
        )
        for side in (predictions, truths)
    )
    metrics = ["mAP", "mAR", "AP", "Counts", "ConfusionMatrix", "Outcomes",
               "DetailedPrecisionRecallCurve"]  # fmt: skip
    in_buckets(monkeypatch)
    options = {"dialect": "coco", "iou_type": "bbox", "metrics": metrics, "by": ["third"]}
    card = same_as_in_memory(Case(sides, options), "detection", tmp_path)
    third = pl.col("datum_id") % 3
    filled = [side.drop("area").with_columns(third=third) for side in (predictions, truths)]
    settings = {**options, "area_ranges": {"all": (0, 1e10)}}
    boxed, single = (ee.score(*both, **settings) for both in (filled, sides))
    for name in ("metrics", "confusion", "outcomes", "examples"):
        assert single.frame(name).equals(boxed.frame(name)), name
    assert card.confusion.equals(boxed.confusion)
