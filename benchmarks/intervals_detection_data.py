"""Make the data of detection's intervals: two models on the same images, as Parquet and COCO JSON.

    python benchmarks/intervals_detection_data.py images-1000 images-5000 --scale 0.02

writes `benchmarks/.data/intervals_detection/<section>/`, with the suffix `-<scale>` unless that is
1: the files of detection_data.py, and predictions_b.parquet and dt_b.json. The second model has
slightly displaced boxes of the first one, and its scores with noise.

A seed fixes everything.
"""

from __future__ import annotations

from functools import partial

import detection_data
import numpy as np
import polars as pl
from making import Frames, Maker, main
from synthetic_boxes import jitter

IMAGES = {"images-1000": 1_000, "images-5000": 5_000}
CLASSES, GROUND_TRUTHS, DETECTIONS = 80, 7, 50
"""Classes, and approximate rows of each side per image."""
NOISE, SCORE_NOISE = 0.02, 0.05
"""Displacement relative to the side of a box, and noise of scores."""


def second(rng: np.random.Generator, predictions: pl.DataFrame) -> pl.DataFrame:
    """Return the predictions of a slightly worse model."""
    n = predictions.height
    boxes = jitter(rng, predictions.select(detection_data.CORNERS).to_numpy(), np.full(n, NOISE))
    boxes = np.round(boxes * 16) / 16
    boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2] + 1)
    score = predictions["score"].to_numpy() + rng.normal(size=n) * SCORE_NOISE
    columns = dict(zip(detection_data.CORNERS, boxes.T, strict=True))
    return predictions.with_columns(
        score=pl.Series(np.round(np.clip(score, 1e-6, 1 - 1e-6), 6)),
        **{name: pl.Series(values) for name, values in columns.items()},
    )


def made(section: str, rng: np.random.Generator, scale: float) -> Frames:
    images = round(IMAGES[section] * scale)
    size = detection_data.Size(
        section, images, CLASSES, GROUND_TRUTHS * images, DETECTIONS * images
    )
    frames = detection_data.tables(size, seed=int(rng.integers(1 << 32)))
    predictions = second(rng, frames["predictions"])
    truths, results = detection_data.coco(frames)
    _, results_b = detection_data.coco({**frames, "predictions": predictions})
    jsons = {"gt.json": truths, "dt.json": results, "dt_b.json": results_b}
    return {**frames, "predictions_b": predictions, **jsons}


SECTIONS: dict[str, Maker] = {name: partial(made, name) for name in IMAGES}


if __name__ == "__main__":
    main("intervals_detection", SECTIONS)
