"""Reference of oriented boxes: pycocotools with IoU of Shapely or another similarity."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
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
    """Return the corners [4, 2] of cx, cy, w, h, angle (radians, clockwise if y points down)."""
    cx, cy, w, h, angle = box
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    half = np.array([[-w, -h], [w, -h], [w, h], [-w, h]]) / 2
    return half @ turn.T + [cx, cy]


def iou(one: Any, two: Any, crowd: bool = False) -> float:
    """Compute IoU with Shapely; for a crowd, the shared area over that of the first box."""
    a, b = (shapely.Polygon(corners(box)) for box in (one, two))
    shared = a.intersection(b).area
    union = a.area if crowd else a.area + b.area - shared
    return float(shared / union) if union > 0 else 0.0


def probiou(one: Any, two: Any, crowd: bool = False) -> float:
    """Compute 1 minus the Hellinger distance of two normal distributions as Ultralytics does."""
    (m1, s1), (m2, s2) = map(_gauss, (one, two))
    away, spread = m1 - m2, s1 + s2
    det = np.linalg.det(spread)
    small = 1e-7
    adjugate = np.array([[spread[1, 1], -spread[0, 1]], [-spread[0, 1], spread[0, 0]]])
    location = away @ adjugate @ away / (det + small) / 4
    shape = det / (4 * np.sqrt(max(np.linalg.det(s1), 0) * max(np.linalg.det(s2), 0)) + small)
    distance = np.clip(location + np.log(shape + small) / 2, small, 100)
    return float(1 - np.sqrt(1 - np.exp(-distance) + small))


def _gauss(box: Any) -> tuple[Array, Array]:
    turn = np.array([[np.cos(box[4]), -np.sin(box[4])], [np.sin(box[4]), np.cos(box[4])]])
    return np.array(box[:2]), turn @ np.diag([box[2] ** 2 / 12, box[3] ** 2 / 12]) @ turn.T


class OrientedEval(COCOeval):  # type: ignore[misc]  # pycocotools has no types
    """COCOeval with a similarity of the annotations' ``obb``.

    Attributes:
        similarity: function of a detection and a ground truth, which may be a crowd.
        near_threshold: True if an IoU is so close to a threshold that rounding decides.
    """

    similarity: Callable[[Any, Any, bool], float] = staticmethod(iou)
    near_threshold = False

    def computeIoU(self, imgId: Any, catId: Any) -> Any:
        gts, dts = self._gts[imgId, catId], self._dts[imgId, catId]
        if not gts and not dts:
            return []
        order = np.argsort([-d["score"] for d in dts], kind="mergesort")
        dts = [dts[i] for i in order[: self.params.maxDets[-1]]]
        ious = np.zeros((len(dts), len(gts)))
        for i, d in enumerate(dts):
            for j, g in enumerate(gts):
                ious[i, j] = self.similarity(d["obb"], g["obb"], bool(g["iscrowd"]))
        gap = np.abs(ious[..., None] - self.params.iouThrs)
        self.near_threshold |= bool(((gap < 1e-9) & (ious[..., None] != 1.0)).any())
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
                "obb": row["obb"],
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


def run(
    predictions: pl.DataFrame,
    truths: pl.DataFrame,
    similarity: Callable[[Any, Any, bool], float] = iou,
) -> OrientedEval:
    """Run the evaluation.

    Args:
        predictions: datum_id, label_value, score and obb, whose angle is in radians, clockwise.
        truths: the same columns without score; area and iscrowd are optional.
        similarity: see :class:`OrientedEval`.
    """
    datums = sorted({*predictions["datum_id"], *truths["datum_id"]})
    labels = sorted({*predictions["label_value"], *truths["label_value"]})
    with contextlib.redirect_stdout(io.StringIO()):
        sides = (_dataset(side, datums, labels) for side in (truths, predictions))
        evaluation = OrientedEval(*sides, "bbox")
        evaluation.similarity = similarity
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation
