"""COCO's evaluation of oriented boxes: pycocotools on IoUs of Shapely, pair by pair."""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import Any

import numpy as np
import polars as pl
import shapely

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

Array = np.ndarray[Any, Any]


def corners(box: Any) -> Array:
    """Corners of cx, cy, w, h and an angle in radians, clockwise where y runs down, [4, 2]."""
    cx, cy, w, h, angle = box
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    half = np.array([[-w, -h], [w, -h], [w, h], [-w, h]]) / 2
    return half @ turn.T + [cx, cy]


class OrientedEval(COCOeval):  # type: ignore[misc]  # pycocotools has no types
    """IoU of the annotations' ``corners``; against a crowd the share of the detection.

    Attributes:
        near: whether some IoU lies so near a threshold that rounding decides.
    """

    near = False

    def computeIoU(self, imgId: Any, catId: Any) -> Any:
        gts, dts = self._gts[imgId, catId], self._dts[imgId, catId]
        if not gts and not dts:
            return []
        order = np.argsort([-d["score"] for d in dts], kind="mergesort")
        dts = [dts[i] for i in order[: self.params.maxDets[-1]]]
        ious = np.zeros((len(dts), len(gts)))
        for i, d in enumerate(dts):
            for j, g in enumerate(gts):
                a, b = (shapely.Polygon(one["corners"]) for one in (d, g))
                shared = a.intersection(b).area
                union = a.area if g["iscrowd"] else a.area + b.area - shared
                ious[i, j] = shared / union if union > 0 else 0.0
        gap = np.abs(ious[..., None] - self.params.iouThrs)
        self.near |= bool(((gap < 1e-9) & (ious[..., None] != 1.0)).any())
        return ious


def _dataset(frame: pl.DataFrame, datums: list[Any], labels: list[Any]) -> Any:
    coco = COCO()
    coco.dataset = {
        "images": [{"id": i} for i in range(1, len(datums) + 1)],
        "categories": [{"id": i} for i in range(1, len(labels) + 1)],
        "annotations": [
            {
                "id": i,
                "image_id": datums.index(row["datum_id"]) + 1,
                "category_id": labels.index(row["label_value"]) + 1,
                "corners": corners(row["obb"]),
                "bbox": [0, 0, 1, 1],
                "area": row.get("area", row["obb"][2] * row["obb"][3]),
                "iscrowd": int(row.get("iscrowd", 0)),
                "score": row.get("score"),
            }
            for i, row in enumerate(frame.iter_rows(named=True), 1)
        ],
    }
    coco.createIndex()
    return coco


def run(predictions: pl.DataFrame, truths: pl.DataFrame) -> OrientedEval:
    """The evaluation after ``summarize``.

    Args:
        predictions: datum_id, label_value, score and obb, whose angle is in radians, clockwise.
        truths: the same without score; area and iscrowd where they are there.
    """
    datums = sorted({*predictions["datum_id"], *truths["datum_id"]})
    labels = sorted({*predictions["label_value"], *truths["label_value"]})
    with contextlib.redirect_stdout(io.StringIO()):
        sides = (_dataset(side, datums, labels) for side in (truths, predictions))
        evaluation = OrientedEval(*sides, "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation
