"""Synthetic instance segmentations: annotated polygons, and masks coded by a detector.

    python benchmarks/masks_data.py segm --out DATA

The objects are those of detection_data.py's `small` set. The content of a box is one of 64 outlines
of 8 to 40 corners, the same for a label of an image, so that a detection resembles its object; each
detection varies a little. Ground truths are polygons, three in a hundred of them crowd regions in
uncompressed code; detections are compressed run-length codes. The script writes the four tables as
Parquet and the two files of COCO.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import polygon_pairs
from detection_data import SIZES, Size, draw
from making import Frames, Maker, main

SHAPES, CORNERS = 64, 40
CROWD = 0.03


def outlines(rng: np.random.Generator) -> list[np.ndarray]:
    """Return outlines [corners, 2] that fill the unit square."""
    made = []
    for n in rng.integers(8, CORNERS + 1, SHAPES):
        angle = np.sort(rng.uniform(0, 2 * np.pi, n))
        wave = sum(
            rng.uniform(0, 0.25) * np.cos(k * angle + rng.uniform(0, 6)) for k in range(2, 6)
        )
        points = (1 + wave)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        low, high = points.min(axis=0), points.max(axis=0)
        made.append((points - low) / (high - low))
    return made


def placed(shapes: list[np.ndarray], which: np.ndarray, box: np.ndarray) -> list[np.ndarray]:
    """Return outlines [corners, 2] in pixels, one per box."""
    return [shapes[s] * (b[2:] - b[:2]) + b[:2] for s, b in zip(which.tolist(), box, strict=True)]


def masks_of(rings: list[np.ndarray], size: np.ndarray) -> Any:
    """Rasterise outlines like pycocotools, by evalengine's own rule, which tests compare."""
    from evalengine.geometry.polygons import rasterise, read_polygons

    flat = pl.Series("polygon", [[ring.ravel().tolist()] for ring in rings])
    height, width = (np.ascontiguousarray(size[:, i], np.int64) for i in (1, 0))
    return rasterise(read_polygons(flat, side="benchmark"), height, width)


def listed(code: dict[str, Any], masks: Any, i: int) -> dict[str, Any]:
    """Return a mask as uncompressed counts, zeros first."""
    first, last = int(masks.start[i]), int(masks.start[i + 1])
    edges = np.stack([masks.begin[first:last], masks.end[first:last]], axis=1).ravel()
    total = int(masks.height[i] * masks.width[i])
    counts = np.diff(np.concatenate([[0], edges.astype(np.int64), [total]]))
    return {"size": code["size"], "counts": counts.tolist()}


def segm(rng: np.random.Generator, scale: float) -> Frames:
    """Make the set: tables by name, and COCO's JSON by file name."""
    from evalengine.geometry.masks import to_rle

    small = SIZES["small"]
    size = Size(
        "masks",
        max(20, round(small.images * scale)),
        small.classes,
        max(150, round(small.ground_truths * scale)),
        max(1000, round(small.detections * scale)),
    )
    pixels, objects, detections = draw(size, int(rng.integers(1 << 30)))
    shapes = outlines(rng)
    wobbling = shapes + [
        (shape + rng.normal(0, 0.03, shape.shape)).clip(0, 1) for shape in shapes * 3
    ]
    which = (objects.image * 31 + objects.label) % SHAPES
    again = (detections.image * 31 + detections.label) % SHAPES
    again = again + SHAPES * rng.integers(0, 4, again.size)
    rings = [ring.round(2) for ring in placed(shapes, which, objects.box)]
    truth_masks = masks_of(rings, pixels[objects.image])
    predicted_masks = masks_of(placed(wobbling, again, detections.box), pixels[detections.image])
    codes = to_rle(predicted_masks)
    crowd = rng.random(len(rings)) < CROWD
    truth_codes = to_rle(truth_masks).to_list()
    flat = [[ring.ravel().tolist()] for ring in rings]
    truths = pl.DataFrame(
        {
            "datum_id": objects.image + 1,
            "label_value": objects.label + 1,
            "polygon": [None if c else ring for c, ring in zip(crowd, flat, strict=True)],
            "mask": [code if c else None for c, code in zip(crowd, truth_codes, strict=True)],
            "area": truth_masks.area.astype(np.float64),
            "iscrowd": crowd.astype(np.int64),
            "annotation_id": np.arange(1, len(rings) + 1),
        }
    )
    predictions = pl.DataFrame(
        {
            "datum_id": detections.image + 1,
            "label_value": detections.label + 1,
            "score": detections.score,
            "mask": codes,
        }
    )
    datums = pl.DataFrame(
        {
            "datum_id": np.arange(1, size.images + 1),
            "width": pixels[:, 0].astype(np.int64),
            "height": pixels[:, 1].astype(np.int64),
        }
    )
    labels = pl.DataFrame({"label_value": np.arange(1, size.classes + 1)})
    annotations = [
        {
            "id": i + 1,
            "image_id": int(objects.image[i]) + 1,
            "category_id": int(objects.label[i]) + 1,
            "segmentation": listed(truth_codes[i], truth_masks, i) if crowd[i] else flat[i],
            "area": float(truth_masks.area[i]),
            "iscrowd": int(crowd[i]),
        }
        for i in range(len(rings))
    ]
    images = datums.rename({"datum_id": "id"}).to_dicts()
    categories = [{"id": int(i), "name": f"category {i}"} for i in labels["label_value"]]
    results = predictions.rename(
        {"datum_id": "image_id", "label_value": "category_id", "mask": "segmentation"}
    )
    return {
        "predictions": predictions,
        "groundtruths": truths,
        "datums": datums,
        "labels": labels,
        "dt.json": results.write_json(),
        "gt.json": json.dumps(
            {"images": images, "annotations": annotations, "categories": categories}
        ),
    }


def pairs(rng: np.random.Generator, scale: float) -> Frames:
    """Make overlapping polygons in images: see polygon_pairs.py."""
    return polygon_pairs.made(outlines(rng), rng, scale)


SECTIONS: dict[str, Maker] = {"segm": segm, "pairs": pairs}


if __name__ == "__main__":
    main("masks", SECTIONS)
