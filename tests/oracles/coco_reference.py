"""Evaluation of tables and files by pycocotools."""

from __future__ import annotations

import contextlib
import io
import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from pycocotools import mask as coco_mask
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval


def _dataset(
    frame: pl.DataFrame, datums: Sequence[Any], labels: Sequence[Any], *, scored: bool
) -> Any:
    """Make a COCO object in which ids, labels and annotations are numbered from 1."""
    image = {datum: i for i, datum in enumerate(datums, 1)}
    category = {label: i for i, label in enumerate(labels, 1)}
    annotations = []
    for i, row in enumerate(frame.iter_rows(named=True), 1):
        width, height = row["xmax"] - row["xmin"], row["ymax"] - row["ymin"]
        annotation = {
            "id": i,
            "image_id": image[row["datum_id"]],
            "category_id": category[row.get("label_key", "label"), row["label_value"]],
            "bbox": [row["xmin"], row["ymin"], width, height],
            "area": row.get("area", width * height),
            "iscrowd": 0 if scored else int(row.get("iscrowd", 0)),
        }
        if scored:
            annotation["score"] = row["score"]
        annotations.append(annotation)
    coco = COCO()
    coco.dataset = {
        "images": [{"id": i} for i in image.values()],
        "categories": [{"id": i} for i in category.values()],
        "annotations": annotations,
    }
    coco.createIndex()
    return coco


def run_coco(
    predictions: pl.DataFrame,
    truths: pl.DataFrame,
    *,
    iou_thresholds: Sequence[float] | None = None,
    max_detections: Sequence[int] | None = None,
    area_ranges: Mapping[str, tuple[float, float]] | None = None,
) -> tuple[Any, list[Any], list[tuple[str, Any]]]:
    """Run COCOeval; return it with the datum ids and labels of its axes.

    Args:
        predictions: table of predictions; a column ``area`` replaces the area of ``loadRes``.
        truths: table of ground truths.
        iou_thresholds: replace COCO's thresholds.
        max_detections: replace COCO's limits.
        area_ranges: replace COCO's ranges; the first is that of all areas. ``stats`` is computed
            only if all three are None.
    """
    datums = sorted({*predictions["datum_id"], *truths["datum_id"]})
    labels = sorted({*_labels(predictions), *_labels(truths)})
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = COCOeval(
            _dataset(truths, datums, labels, scored=False),
            _dataset(predictions, datums, labels, scored=True),
            "bbox",
        )
        if iou_thresholds is not None:
            evaluation.params.iouThrs = np.array(iou_thresholds)
        if max_detections is not None:
            evaluation.params.maxDets = list(max_detections)
        if area_ranges is not None:
            evaluation.params.areaRng = [list(r) for r in area_ranges.values()]
            evaluation.params.areaRngLbl = list(area_ranges)
        evaluation.evaluate()
        evaluation.accumulate()
        if iou_thresholds is None and max_detections is None and area_ranges is None:
            evaluation.summarize()
    return evaluation, datums, labels


_READ = ("image_id", "category_id", "segmentation", "bbox", "score")

ARRAYS = ("precision", "recall", "scores")


def same_arrays(ours: Any, theirs: Any) -> None:
    """Check that the arrays of ``to_coco()`` are equal bit for bit."""
    for name in ARRAYS:
        expected = theirs.eval[name]
        assert (ours[name].shape, ours[name].dtype) == (expected.shape, np.float64)
        assert (ours[name] == expected).all(), name


def same_as_coco(ours: Any, theirs: Any) -> None:
    """Check the arrays and the twelve summary numbers."""
    assert ours["stats"] == theirs.stats.tolist()
    same_arrays(ours, theirs)


class _BoundaryEval(COCOeval):  # type: ignore[misc]  # pycocotools has no types
    """COCOeval with the minimum of mask IoU and boundary IoU (Cheng et al., 2021).

    For a crowd, only the masks count, as in boundary-iou-api and faster-coco-eval. A boundary is
    a mask minus its erosion by d steps of 3 x 3 with an empty outside; d is 0.02 of the diagonal,
    rounded.
    """

    def computeIoU(self, imgId: Any, catId: Any) -> Any:
        ious = super().computeIoU(imgId, catId)
        if len(ious) == 0:
            return ious
        gts, dts = self._gts[imgId, catId], self._dts[imgId, catId]
        order = np.argsort([-d["score"] for d in dts], kind="mergesort")
        dts = [dts[i] for i in order[: self.params.maxDets[-1]]]
        sides = [[_boundary(one["segmentation"]) for one in side] for side in (dts, gts)]
        crowd = [int(g["iscrowd"]) for g in gts]
        edges = coco_mask.iou(*sides, crowd)
        return np.where(np.array(crowd, bool)[None, :], ious, np.minimum(ious, edges))


def _boundary(code: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pixels = coco_mask.decode(code)
    height, width = pixels.shape
    inner = np.pad(pixels, 1)
    for _ in range(max(1, round(0.02 * float(np.hypot(height, width))))):
        shifted = [np.roll(inner, (y, x), (0, 1)) for y in (-1, 0, 1) for x in (-1, 0, 1)]
        inner = np.pad(np.min(shifted, axis=0)[1:-1, 1:-1], 1)
    return coco_mask.encode(np.asfortranarray(pixels - inner[1:-1, 1:-1]))


def coco_eval(
    truths: str,
    detections: str,
    iou_type: str = "bbox",
    area_ranges: Mapping[str, tuple[float, float]] | None = None,
) -> Any:
    """Run COCOeval on two JSON files.

    Args:
        truths: path of the ground-truth JSON.
        detections: path of the results JSON; only the fields in ``_READ`` are used.
        iou_type: ``bbox``, ``segm`` or ``boundary``.
        area_ranges: replace COCO's ranges, without ``stats``; the first is that of all areas.
    """
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(truths)
        results = [
            {name: row[name] for name in _READ if name in row}
            for row in json.loads(Path(detections).read_text())
        ]
        detected = coco.loadRes(results)
        if iou_type == "boundary":
            evaluation = _BoundaryEval(coco, detected, "segm")
        else:
            evaluation = COCOeval(coco, detected, iou_type)
        if area_ranges is not None:
            evaluation.params.areaRng = [list(limits) for limits in area_ranges.values()]
            evaluation.params.areaRngLbl = [*area_ranges]
        evaluation.evaluate()
        evaluation.accumulate()
        if area_ranges is None:
            evaluation.summarize()
    return evaluation


def _labels(frame: pl.DataFrame) -> list[tuple[str, Any]]:
    keys = frame["label_key"] if "label_key" in frame.columns else ["label"] * frame.height
    return list(zip(keys, frame["label_value"], strict=True))
