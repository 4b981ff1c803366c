"""Make the bundled keypoint example: 24 photographs of people, and a model's keypoints.

Run with ``python examples/making/make_keypoints.py [FOLDER]``; writes `people.json` (COCO's
keypoint annotations of one category, images with a slice field `crowding`) and `found.json`
(results) into `examples/keypoints/` (or FOLDER). Coordinates are integer pixels. Many joints of
people in crowds are hidden; the model is noisy, swaps left and right and misses some people.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

JOINTS = ("eye", "ear", "shoulder", "elbow", "wrist", "hip", "knee", "ankle")
NAMES = ["nose", *(f"{side}_{joint}" for joint in JOINTS for side in ("left", "right"))]
# A standing person of height 1; x to the right of the image is the person's left.
POSE = np.array(
    [(0, 6), (3, 4), (-3, 4), (6, 6), (-6, 6), (12, 20), (-12, 20), (17, 36), (-17, 36), (18, 50),
     (-18, 50), (8, 52), (-8, 52), (9, 74), (-9, 74), (9, 96), (-9, 96)]
) / 100  # fmt: skip
SWAPPED = [0] + [i + 1 if i % 2 else i - 1 for i in range(1, 17)]
CROWDING = ("alone", "few", "crowd")


def person(rng: np.random.Generator, hidden: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return joints int64 [17, 2], visibility int64 [17] and height in pixels."""
    height = float(rng.choice([70, 120, 220]) * rng.uniform(0.8, 1.2))
    pose = POSE + rng.normal(0, 0.02, POSE.shape)
    points = np.round(pose * height + rng.uniform([60, 10], [580, 470 - height])).astype(int)
    seen = np.where(rng.random(17) < hidden, rng.choice([0, 0, 1], 17), 2)
    return points, seen, height


def make(rng: np.random.Generator) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return annotations and results."""
    images, truths, found = [], [], []
    for image in range(1, 25):
        crowding = CROWDING[image % 3]
        images.append({"id": image, "width": 640, "height": 480, "crowding": crowding})
        for _ in range({"alone": 1, "few": 2, "crowd": 4}[crowding]):
            points, seen, height = person(rng, 0.5 if crowding == "crowd" else 0.15)
            low, high = points.min(axis=0), points.max(axis=0)
            w, h = (high - low).tolist()
            numbers = np.c_[points * (seen > 0)[:, None], seen].ravel().tolist()
            place = {"image_id": image, "category_id": 1}
            truths.append(
                {
                    **place, "id": len(truths) + 1, "keypoints": numbers,
                    "num_keypoints": int((seen > 0).sum()), "bbox": [*low.tolist(), w, h],
                    "area": int(w * h * 0.6), "iscrowd": 0,
                }
            )  # fmt: skip
            if rng.random() < 0.1:
                continue
            guess = points + rng.normal(0, height * 0.015 * (2 - seen[:, None] / 2), (17, 2))
            if rng.random() < 0.2:
                guess = guess[SWAPPED]
            far = rng.random(17) < 0.08
            guess[far] += rng.normal(0, height / 5, (int(far.sum()), 2))
            score = round(float(rng.uniform(0.5, 1)), 3)
            shown = np.c_[np.round(guess).astype(int), np.ones(17, int)].ravel().tolist()
            found.append({**place, "keypoints": shown, "score": score})
        if rng.random() < 0.3:
            points, _, _ = person(rng, 0.0)
            shown = np.c_[points, np.ones(17, int)].ravel().tolist()
            score = round(float(rng.uniform(0.2, 0.7)), 3)
            found.append({"image_id": image, "category_id": 1, "keypoints": shown, "score": score})
    category = {"id": 1, "name": "person", "keypoints": NAMES}
    return {"images": images, "annotations": truths, "categories": [category]}, found


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "keypoints")
    folder.mkdir(exist_ok=True, parents=True)
    truths, found = make(np.random.default_rng(11))
    for name, rows in (("people", truths), ("found", found)):
        (folder / f"{name}.json").write_text(json.dumps(rows, separators=(",", ":")) + "\n")
