"""Random COCO files of polygons and masks, with ties and crowds."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from pycocotools import mask as coco_mask

Json = dict[str, Any]

_SIZES = ((37, 50), (64, 48), (20, 90))
_COARSE_SCORES = 8


def blob(rng: np.random.Generator, size: tuple[int, int]) -> Any:
    """Return a mask of a few ellipses, uint8 [height, width]; sometimes empty."""
    height, width = size
    y, x = np.mgrid[:height, :width]
    pixels = np.zeros(size, bool)
    for _ in range(int(rng.integers(0, 4))):
        cy, cx = rng.uniform(0, height), rng.uniform(0, width)
        ry, rx = rng.uniform(1, height / 3), rng.uniform(1, width / 3)
        pixels |= ((y - cy) / ry) ** 2 + ((x - cx) / rx) ** 2 <= 1
    return np.asfortranarray(pixels.astype(np.uint8))


def compressed(pixels: Any) -> Json:
    """Compressed run-length code, as in COCO's JSON files."""
    code = coco_mask.encode(pixels)
    return {"size": list(map(int, code["size"])), "counts": code["counts"].decode()}


def listed(pixels: Any) -> Json:
    """Uncompressed run-length code, with a list of counts."""
    flat = pixels.ravel(order="F")
    edges = np.flatnonzero(np.diff(flat)) + 1
    runs = np.diff(np.concatenate([[0], edges, [flat.size]])).tolist()
    return {"size": list(pixels.shape), "counts": [0, *runs] if flat[0] else runs}


def rings(rng: np.random.Generator, size: tuple[int, int]) -> list[list[float]]:
    """Return one or two rings around random centres; some cross the edge of the image."""
    out = []
    for _ in range(int(rng.integers(1, 3))):
        n = int(rng.integers(3, 12))
        angle = np.sort(rng.uniform(0, 2 * np.pi, n))
        radius = rng.uniform(2, min(size) / 2, n)
        x = rng.uniform(0, size[1]) + radius * np.cos(angle)
        y = rng.uniform(0, size[0]) + radius * np.sin(angle)
        out.append([round(float(v), 2) for v in np.stack([x, y], 1).ravel()])
    return out


def pixels_of(segmentation: Any, size: tuple[int, int]) -> Any:
    """Pixels of any segmentation, as pycocotools rasterises it."""
    if isinstance(segmentation, list):
        code = coco_mask.merge(coco_mask.frPyObjects(segmentation, *size))
    elif isinstance(segmentation["counts"], list):
        code = coco_mask.frPyObjects(segmentation, *size)
    else:
        code = segmentation
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # its arrays and NumPy's copy
        return coco_mask.decode(code)


def nudged(rng: np.random.Generator, pixels: Any) -> Any:
    """Move a mask by a few pixels."""
    by = tuple(rng.integers(-2, 3, 2).tolist())
    return np.asfortranarray(np.roll(pixels, by, axis=(0, 1)))


def random_files(seed: int, *, images: int = 12, labels: int = 3) -> tuple[Json, list[Json]]:
    """Return a ground-truth file and results.

    Ground truths are polygons, masks of both codes, and crowds; some have an area unlike that of
    the mask. Results are moved ground truths, the same again, or strays, with scores that repeat.
    """
    rng = np.random.default_rng(seed)
    sizes = [_SIZES[i] for i in rng.integers(0, len(_SIZES), images)]
    annotations: list[Json] = []
    results: list[Json] = []
    for image, size in enumerate(sizes, 1):
        for _ in range(int(rng.integers(0, 9))):
            crowd = rng.random() < 0.15
            kind = rng.integers(0, 3)
            if crowd:
                segmentation: Any = listed(blob(rng, size))
            elif kind == 0:
                segmentation = compressed(blob(rng, size))
            else:
                segmentation = rings(rng, size)
            pixels = pixels_of(segmentation, size)
            category = int(rng.integers(1, labels + 1))
            area = float(pixels.sum())
            annotations.append(
                {"id": len(annotations) + 1, "image_id": image, "category_id": category,
                 "segmentation": segmentation, "iscrowd": int(crowd),
                 "area": 1024.0 if rng.random() < 0.2 else area * (40 if crowd else 1)}
            )  # fmt: skip
            for _ in range(int(rng.integers(0, 4))):
                found = pixels if rng.random() < 0.2 else nudged(rng, pixels)
                other = int(rng.integers(1, labels + 2)) if rng.random() < 0.2 else category
                results.append(_result(rng, image, other, found))
        results.append(_result(rng, image, int(rng.integers(1, labels + 2)), blob(rng, size)))
    truths = {
        "images": [
            {"id": i, "height": height, "width": width}
            for i, (height, width) in enumerate(sizes, 1)
        ],
        "annotations": annotations,
        "categories": [{"id": k} for k in range(1, labels + 2)],
    }
    return truths, results


def _result(rng: np.random.Generator, image: int, category: int, pixels: Any) -> Json:
    score = int(rng.integers(0, _COARSE_SCORES)) / _COARSE_SCORES
    return {
        "image_id": image, "category_id": category, "segmentation": compressed(pixels),
        "score": score,
    }  # fmt: skip
