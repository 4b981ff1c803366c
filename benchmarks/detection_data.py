"""Make the detection benchmark's data: the same boxes as Parquet and as COCO JSON.

    python benchmarks/detection_data.py small large

writes `benchmarks/.data/<size>/`:

- predictions.parquet   datum_id, label_value, score, xmin, ymin, xmax, ymax
- groundtruths.parquet  datum_id, label_value, xmin, ymin, xmax, ymax, iscrowd, area, annotation_id
- datums.parquet        datum_id, width, height, weather, camera, time_of_day
- labels.parquet        label_value, name
- gt.json, dt.json      the same in COCO's format, bbox = [xmin, ymin, xmax - xmin, ymax - ymin]

Rows are in image order, best score first, unless --shuffle is given. --string-ids and
--string-labels write only Parquet, into separate folders. A seed fixes everything.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from synthetic_boxes import Detections, Detector, Objects, detect, draw_objects, spread, zipf

DATA = Path(__file__).resolve().parent / ".data"
CORNERS = ["xmin", "ymin", "xmax", "ymax"]
SLICES = {
    "weather": ["clear", "cloudy", "fog", "rain", "snow"],
    "camera": ["front", "left", "rear", "right"],
    "time_of_day": ["dawn", "day", "night"],
}


@dataclass(frozen=True)
class Size:
    """One set; totals are approximate."""

    name: str
    images: int
    classes: int
    ground_truths: int
    detections: int


SIZES = {
    size.name: size
    for size in (
        Size("tiny", 40, 8, 280, 1_500),
        Size("small", 5_000, 80, 35_500, 250_000),
        Size("large", 40_000, 365, 595_000, 4_000_000),
    )
}


def folder_of(size: str, *, shuffle: bool, string_ids: bool, string_labels: bool) -> str:
    """Return the name of a variant's folder: `small`, `small-shuffled`, `small-string-ids`, ..."""
    flags = {"shuffled": shuffle, "string-ids": string_ids, "string-labels": string_labels}
    return "-".join([size, *(mark for mark, on in flags.items() if on)])


def draw(size: Size, seed: int) -> tuple[np.ndarray, Objects, Detections]:
    """Return image sizes [n_images, 2] in pixels, ground truths and detections of one set."""
    rng = np.random.default_rng(seed)
    n = size.images
    formats = np.array([[640, 480], [640, 427], [480, 640], [640, 640], [500, 375]], dtype=float)
    pixels = formats[rng.choice(len(formats), size=n, p=[0.45, 0.25, 0.15, 0.05, 0.1])]
    # Class ranks are assigned at random, so that frequent classes are anywhere in the order of ids.
    probability = rng.permutation(zipf(size.classes))
    objects = draw_objects(
        rng, spread(rng, n, size.ground_truths, shape=1.6, empty=0.01), pixels, probability
    )
    detector = Detector()
    near = int(detector.found * (1 + detector.duplicates) * size.ground_truths)
    crowded = rng.random(n) < 0.003
    background = spread(rng, n, size.detections - near, shape=6.0, empty=0.002)
    background[crowded] += 120
    silent = rng.random(n) < 0.004
    detections = detect(
        rng, objects, pixels, probability, background, detector, silent=silent, single_class=crowded
    )
    return pixels, objects, detections


def tables(
    size: Size,
    seed: int,
    *,
    shuffle: bool = False,
    string_ids: bool = False,
    string_labels: bool = False,
) -> dict[str, pl.DataFrame]:
    """Return the four tables of one set, by file name without its extension."""
    pixels, objects, detections = draw(size, seed)
    rng = np.random.default_rng([seed, 1])
    # Ids with gaps, as in COCO; both kinds of names sort alike.
    ids = np.sort(rng.choice(np.arange(1, 12 * size.images), size.images, replace=False))
    categories = np.sort(
        rng.choice(np.arange(1, size.classes * 9 // 8 + 1), size.classes, replace=False)
    )
    names = [f"category_{c:03d}" for c in categories]
    datum = np.array([f"{i:012d}.jpg" for i in ids]) if string_ids else ids
    label = np.array(names) if string_labels else categories

    def side(rows: Objects | Detections) -> dict[str, np.ndarray]:
        corners = dict(zip(CORNERS, rows.box.T, strict=True))
        return {"datum_id": datum[rows.image], "label_value": label[rows.label], **corners}

    box = objects.box
    product = (box[:, 2] - box[:, 0]) * (box[:, 3] - box[:, 1])
    # Annotated areas are those of a mask, which fills only part of its box.
    area = np.round(product * rng.uniform(0.45, 0.95, len(box)), 4)
    truths = pl.DataFrame(
        {
            **side(objects),
            "iscrowd": (rng.random(len(box)) < 0.01).astype(np.int64),
            "area": area,
            "annotation_id": np.arange(1, len(box) + 1),
        }
    )
    predictions = pl.DataFrame({**side(detections), "score": detections.score})
    predictions = predictions.select("datum_id", "label_value", "score", *CORNERS)
    if shuffle:
        predictions = predictions[rng.permutation(len(predictions))]
        truths = truths[rng.permutation(len(truths))]
    slices = {
        name: np.array(values)[rng.choice(len(values), size.images, p=zipf(len(values)))]
        for name, values in SLICES.items()
    }
    extent = {"width": pixels[:, 0].astype(np.int64), "height": pixels[:, 1].astype(np.int64)}
    return {
        "predictions": predictions,
        "groundtruths": truths,
        "datums": pl.DataFrame({"datum_id": datum, **extent, **slices}),
        "labels": pl.DataFrame({"label_value": label, "name": names}),
    }


def coco(frames: dict[str, pl.DataFrame]) -> tuple[str, str]:
    """Return ground truths and results in COCO's JSON; floats are written without loss."""
    bbox = pl.concat_list(
        "xmin", "ymin", pl.col("xmax") - pl.col("xmin"), pl.col("ymax") - pl.col("ymin")
    )
    keys = [pl.col("datum_id").alias("image_id"), pl.col("label_value").alias("category_id")]
    results = frames["predictions"].select(*keys, bbox.alias("bbox"), "score")
    annotations = frames["groundtruths"].select(
        pl.col("annotation_id").alias("id"), *keys, bbox.alias("bbox"), "area", "iscrowd"
    )
    images = frames["datums"].select(
        pl.col("datum_id").alias("id"),
        "width",
        "height",
        pl.format("{}.jpg", "datum_id").alias("file_name"),
    )
    categories = frames["labels"].select(pl.col("label_value").alias("id"), "name")
    parts = {"images": images, "categories": categories, "annotations": annotations}
    body = ", ".join(f'"{name}": {frame.write_json()}' for name, frame in parts.items())
    return "{" + body + "}", results.write_json()


def make(
    size: str,
    root: Path = DATA,
    seed: int = 20240601,
    *,
    shuffle: bool = False,
    string_ids: bool = False,
    string_labels: bool = False,
) -> Path:
    """Write one set, unless it exists, and return its folder."""
    flags = {"shuffle": shuffle, "string_ids": string_ids, "string_labels": string_labels}
    folder = root / folder_of(size, **flags)
    done = folder / f".seed-{seed}"
    if done.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob(".seed-*"):
        stale.unlink()
    frames = tables(SIZES[size], seed, **flags)
    for name, frame in frames.items():
        frame.write_parquet(folder / f"{name}.parquet")
    if not (string_ids or string_labels):
        for name, text in zip(("gt", "dt"), coco(frames), strict=True):
            (folder / f"{name}.json").write_text(text, encoding="utf-8")
    done.touch()
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the detection benchmark's data.")
    parser.add_argument("sizes", nargs="+", choices=list(SIZES))
    parser.add_argument("--out", type=Path, default=DATA, help="folder (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=20240601)
    parser.add_argument("--shuffle", action="store_true", help="rows in random order")
    parser.add_argument("--string-ids", action="store_true")
    parser.add_argument("--string-labels", action="store_true")
    options = parser.parse_args()
    for size in options.sizes:
        start = time.perf_counter()
        folder = make(
            size,
            options.out,
            options.seed,
            shuffle=options.shuffle,
            string_ids=options.string_ids,
            string_labels=options.string_labels,
        )
        rows = {
            name: pl.scan_parquet(folder / f"{name}.parquet").select(pl.len()).collect().item()
            for name in ("predictions", "groundtruths", "datums", "labels")
        }
        counts = ", ".join(f"{n} {name}" for name, n in rows.items())
        print(f"{folder}: {counts} ({time.perf_counter() - start:.1f} s)")


if __name__ == "__main__":
    main()
