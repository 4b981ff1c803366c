"""Make the bundled detection example: 60 frames of a street, seen by two cameras of a car.

    python examples/making/make_detection.py [FOLDER]

writes predictions.parquet, groundtruths.parquet and datums.parquet into `examples/detection/` (or
FOLDER). Objects are on flat ground before a pinhole camera, so the size of boxes follows from their
distance. The simulated detector misses some, finds some twice, confuses some classes, has false
positives, and does all of this more often in fog and rain. The seed is fixed: the same versions of
NumPy and Polars write the same bytes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl

HERE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE.parent / "benchmarks"))

from synthetic_boxes import Detector, Objects, detect, spread  # noqa: E402

SEED = 7
FRAMES = 60
WIDTH, HEIGHT, HORIZON = 1280.0, 720.0, 330.0  # pixels
FOCAL, CAMERA_HEIGHT = 900.0, 1.6  # pixels, metres
CORNERS = ["xmin", "ymin", "xmax", "ymax"]

# label: share of objects, width and height in metres, height of its lower edge above the road
LABELS = {
    "car": (0.46, 2.4, 1.5, 0.0),
    "pedestrian": (0.24, 0.6, 1.75, 0.0),
    "traffic_light": (0.14, 0.4, 1.0, 3.2),
    "cyclist": (0.10, 0.9, 1.8, 0.0),
    "bus": (0.06, 3.4, 3.1, 0.0),
}
WEATHER = {"clear": (0.5, 0.8), "rain": (0.3, 1.25), "fog": (0.2, 1.6)}  # share, difficulty


def street(rng: np.random.Generator) -> Objects:
    """Return about 300 objects, sorted by frame; boxes [n, 4] in integer pixels."""
    per_frame = spread(rng, FRAMES, 310, shape=4.0, empty=0.03)
    share, width, height, lift = np.array(list(LABELS.values())).T
    frame = np.repeat(np.arange(FRAMES), per_frame)
    label = rng.choice(len(LABELS), size=len(frame), p=share)
    distance = rng.uniform(1.0, 3.6, len(frame)) ** 3 + 5.0  # metres; most objects are close
    scale = FOCAL / distance  # pixels per metre
    extent = np.stack([width[label], height[label]], axis=1) * scale[:, None]
    extent *= np.exp(rng.normal(0.0, [0.18, 0.06], (len(frame), 2)))
    bottom = HORIZON + (CAMERA_HEIGHT - lift[label]) * scale
    left = rng.uniform(0.0, 1.0, len(frame)) * (WIDTH - extent[:, 0])
    box = np.stack([left, bottom - extent[:, 1], left + extent[:, 0], bottom], axis=1)
    box = np.clip(np.round(box), 0.0, [WIDTH, HEIGHT, WIDTH, HEIGHT])
    visible = ((box[:, 2:] - box[:, :2]) >= 8.0).all(axis=1)
    return Objects(frame[visible], label[visible].astype(np.int64), box[visible])


def frames() -> dict[str, pl.DataFrame]:
    """Return the three tables, by file name without its extension."""
    rng = np.random.default_rng(SEED)
    share, factor = np.array(list(WEATHER.values())).T
    weather = rng.choice(len(WEATHER), size=FRAMES, p=share)
    camera = np.array(["front", "rear"])[(rng.random(FRAMES) < 0.35).astype(np.int64)]
    objects = street(rng)
    probability = np.array(list(LABELS.values()))[:, 0]
    detections = detect(
        rng,
        objects,
        np.tile([WIDTH, HEIGHT], (FRAMES, 1)),
        probability,
        spread(rng, FRAMES, 90, shape=3.0, empty=0.1),
        Detector(found=0.9, duplicates=0.2, wrong_class=0.06, grid=4.0, score_digits=3),
        silent=np.arange(FRAMES) == FRAMES - 7,
        difficulty=factor[weather],
    )
    datum = np.array([f"frame_{i + 1:04d}" for i in range(FRAMES)])
    names = np.array(list(LABELS))
    sides = {}
    for name, rows in (("predictions", detections), ("groundtruths", objects)):
        ids = {"datum_id": datum[rows.image], "label_value": names[rows.label]}
        sides[name] = pl.DataFrame(ids | dict(zip(CORNERS, rows.box.T, strict=True)))
    score = pl.Series("score", detections.score)
    numbers = pl.Series("annotation_id", np.arange(1, len(objects.image) + 1))
    datums = {
        "datum_id": datum,
        "width": np.full(FRAMES, int(WIDTH)),
        "height": np.full(FRAMES, int(HEIGHT)),
        "weather": np.array(list(WEATHER))[weather],
        "camera": camera,
    }
    return {
        "predictions": sides["predictions"].insert_column(2, score),
        "groundtruths": sides["groundtruths"].with_columns(numbers),
        "datums": pl.DataFrame(datums),
    }


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "detection"
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in frames().items():
        frame.write_parquet(folder / f"{name}.parquet")
        print(f"{folder / name}.parquet: {len(frame)} rows")


if __name__ == "__main__":
    main()
