"""Random COCO keypoint files with odd content, and pycocotools' arrays for them."""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

File = dict[str, list[dict[str, Any]]]
Rows = list[dict[str, Any]]


def pose_files(rng: np.random.Generator, k: int = 17) -> tuple[File, Rows]:
    """Make ground truths and results of k points.

    People without a labelled point, with a wrong count of points, without area, twice in one place,
    and crowds. Results at the exact place, more than 20 per image, with and without boxes, with
    equal
    scores; integers and fractions.
    """
    whole, boxed = rng.random() < 0.3, rng.random() < 0.3
    images = [{"id": i} for i in range(1, int(rng.integers(2, 8)))]
    categories = [{"id": c, "name": f"c{c}"} for c in range(1, int(rng.integers(2, 5)))]
    truths: Rows = []
    result: Rows = []

    def about(centre: Any, spread: float) -> np.ndarray:
        points = centre + rng.normal(0, spread, (k, 2))
        return np.round(points) if whole else points

    for image in images:
        for category in categories:
            place = {"image_id": image["id"], "category_id": category["id"]}
            mine: Rows = []
            for _ in range(int(rng.integers(0, 5))):
                points = about(rng.uniform(20, 180, 2), float(rng.choice([5, 20, 60])))
                visible = rng.choice([0, 1, 2], k, p=[0.4, 0.3, 0.3]) * (rng.random() > 0.15)
                low, (w, h) = points.min(axis=0), np.ptp(points, axis=0)
                counted = int((visible > 0).sum())
                numbers = np.c_[np.where(visible[:, None] > 0, points, 0), visible].ravel().tolist()
                mine.append(
                    {
                        **place,
                        "keypoints": [int(x) for x in numbers] if whole else numbers,
                        "num_keypoints": counted if rng.random() > 0.08 else int(rng.integers(3)),
                        "bbox": [*low.tolist(), float(w), float(h)],
                        "area": float(w * h * rng.uniform(0.2, 0.9)) * (rng.random() > 0.03),
                        "iscrowd": int(rng.random() < 0.1),
                    }
                )
            mine += [copy.deepcopy(one) for one in mine if rng.random() < 0.05]
            truths += mine
            for _ in range(int(rng.integers(0, 8)) if rng.random() > 0.05 else 25):
                points = about(rng.uniform(0, 200, 2), 20)
                if mine and rng.random() < 0.8:
                    own = mine[rng.integers(len(mine))]["keypoints"]
                    centre = np.array(own, np.float64).reshape(k, 3)[:, :2]
                    points = about(centre, float(rng.choice([0, 0.5, 3, 10])))
                w, h = np.ptp(points, axis=0)
                box = [*points.min(axis=0).tolist(), float(w * rng.uniform(0.5, 2)), float(h)]
                result.append(
                    {
                        **place,
                        "keypoints": np.c_[points, np.ones(k)].ravel().tolist(),
                        "score": float(rng.choice([rng.random(), 0.5, 0.9])),
                        **({"bbox": box} if boxed else {}),
                    }
                )
    if not result:  # pycocotools cannot read an empty list
        result = [{**place, "keypoints": [1.0] * (3 * k), "score": 0.5}]
    for i, one in enumerate(truths):
        one["id"] = i + 1
    return {"images": images, "annotations": truths, "categories": categories}, result


def pycocotools_of(
    truths: File, predictions: Rows, sigmas: Sequence[float] | None = None
) -> COCOeval:
    """Run pycocotools' evaluation."""
    with contextlib.redirect_stdout(io.StringIO()):
        ours = COCO()
        ours.dataset = copy.deepcopy(truths)
        ours.createIndex()
        result = COCOeval(ours, ours.loadRes(copy.deepcopy(predictions)), "keypoints")
        if sigmas is not None:
            result.params.kpt_oks_sigmas = np.array(sigmas)
        result.evaluate()
        result.accumulate()
        result.summarize()
    return result
