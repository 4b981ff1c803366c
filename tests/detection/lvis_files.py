"""Small random LVIS files with odd content: ids from 0, unsorted, ties, no area, full images."""

from __future__ import annotations

from typing import Any

import numpy as np

File = dict[str, list[dict[str, Any]]]


class _Drawing:
    """Random values in a fixed order, on which the known answers depend."""

    def __init__(self, seed: int) -> None:
        self.rng = r = np.random.default_rng(seed)
        n_images, n_labels = int(r.integers(1, 7)), int(r.integers(1, 6))
        self.ids = [int(x) for x in r.permutation(n_images * 2)[:n_images]]
        self.labels = [int(x) for x in r.permutation(n_labels * 2)[:n_labels]]
        self.size = int(r.choice([6, 12, 120, 300]))
        self.ties = False

    def box(self) -> list[float]:
        x, y = (float(v) for v in self.rng.integers(0, self.size, 2))
        low = 0 if self.rng.random() < 0.15 else 1
        w, h = (float(v) for v in self.rng.integers(low, self.size, 2))
        return [x, y, w, h]

    def chosen(self, share: float) -> list[int]:
        return [label for label in self.labels if self.rng.random() < share]

    def prediction(self, image: int, box: list[float] | None = None) -> dict[str, Any]:
        r = self.rng
        score = float(r.integers(0, 6) / 5) if self.ties else float(r.random())
        label = int(r.choice(self.labels + ([99] if r.random() < 0.1 else [])))
        return {
            "image_id": image, "category_id": label, "bbox": box or self.box(), "score": score,
        }  # fmt: skip

    def truth(self, number: int) -> dict[str, Any]:
        r, box = self.rng, self.box()
        image, label = int(r.choice(self.ids)), int(r.choice(self.labels))
        area = float(box[2] * box[3] if r.random() < 0.7 else r.integers(0, 20000))
        one: dict[str, Any] = {
            "id": number, "image_id": image, "category_id": label, "bbox": box, "area": area,
        }  # fmt: skip
        if r.random() < 0.15:
            one["ignore"] = 1
        elif r.random() < 0.3:
            one["ignore"] = 0
        if r.random() < 0.1:
            one["iscrowd"] = 1
        return one

    def moved(self, truth: dict[str, Any]) -> dict[str, Any]:
        r = self.rng
        box = [float(v + (r.integers(-1, 2) if r.random() < 0.5 else 0)) for v in truth["bbox"]]
        one = self.prediction(truth["image_id"], [*box[:2], max(box[2], 0.0), max(box[3], 0.0)])
        if r.random() < 0.85:
            one["category_id"] = truth["category_id"]
        return one


def lvis_case(seed: int) -> tuple[File, list[dict[str, Any]]]:
    """Make ground truths and results; every 25th seed has an image of more than 330 results."""
    drawing = _Drawing(seed)
    r, ids = drawing.rng, drawing.ids
    images = [
        {"id": i, "width": 999, "height": 999, "neg_category_ids": drawing.chosen(0.3),
         "not_exhaustive_category_ids": drawing.chosen(0.25)}
        for i in ids
    ]  # fmt: skip
    frequency = r.choice(["r", "c", "f"], p=[0.2, 0.3, 0.5], size=len(drawing.labels))
    categories = [
        {"id": label, "name": f"c{label}", "frequency": str(f)}
        for label, f in zip(drawing.labels, frequency, strict=True)
    ]
    n = int(r.integers(0 if r.random() < 0.1 else 1, 4 * len(ids)))
    truths = [drawing.truth(number + 1) for number in range(n)]
    n = int(r.integers(1, 12 * len(ids)))
    drawing.ties = bool(r.random() < 0.6)
    result = []
    for _ in range(n):
        if truths and r.random() < 0.6:
            result.append(drawing.moved(truths[int(r.integers(len(truths)))]))
        else:
            result.append(drawing.prediction(int(r.choice(ids))))
    if seed % 25 == 0:
        result += [drawing.prediction(ids[0]) for _ in range(330)]
    result = [result[i] for i in r.permutation(len(result))]
    return {"images": images, "categories": categories, "annotations": truths}, result
