"""Make the bundled segmentation example: 12 tiny street scenes, by day and at night.

    python examples/making/make_segmentation.py [FOLDER]

writes label maps as PNG into `truth/` and `predicted/` of `examples/segmentation/` (or FOLDER),
with truth.parquet, predicted.parquet, labels.parquet, scenes.parquet and masks.parquet. Index 0 is
void (the unlabelled border of the image), 1 to 5 are sky, building, road, tree and car. The
simulated network shifts outlines by a pixel or two and labels some cars as building, more of them
at night. `masks.parquet` contains the same predictions as run-length masks, one row per label. The
seed is fixed: the same versions of NumPy, Polars and GDAL write the same bytes.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import rasterio

HERE = Path(__file__).resolve().parents[1]
SEED = 31
SCENES, HEIGHT, WIDTH = 12, 48, 64
LABELS = ("sky", "building", "road", "tree", "car")  # index 1, 2, ...
SKY, BUILDING, ROAD, TREE, CAR = range(1, 6)
FRAME = 1  # pixels of void around a scene
LIGHT = {"day": 0.1, "night": 0.35}  # share of cars that are labelled as building


def block(pixels: np.ndarray, index: int, top: int, left: int, height: int, width: int) -> None:
    """Paint the part of a block that is inside the image."""
    pixels[max(top, 0) : max(top + height, 0), max(left, 0) : max(left + width, 0)] = index


def scene(rng: np.random.Generator, missed: float) -> tuple[np.ndarray, np.ndarray]:
    """Return truth and prediction."""
    truth = np.full((HEIGHT, WIDTH), SKY, np.uint8)
    horizon = int(rng.integers(18, 26))
    truth[horizon:] = ROAD
    found = truth.copy()
    found[horizon : horizon + int(rng.integers(0, 3))] = SKY
    for index, many, low, high in ((BUILDING, 3, 10, 20), (TREE, 3, 5, 12), (CAR, 4, 5, 9)):
        for _ in range(many):
            height, width = (int(n) for n in rng.integers(low, high, 2))
            bottom = horizon + (int(rng.integers(4, 18)) if index == CAR else 2)
            left = int(rng.integers(0, WIDTH - width))
            block(truth, index, bottom - height, left, height, width)
            down, right = (int(n) for n in rng.integers(-2, 3, 2))
            seen = BUILDING if index == CAR and rng.random() < missed else index
            block(found, seen, bottom - height + down, left + right, height, width)
    for edge in (np.s_[:FRAME], np.s_[-FRAME:], np.s_[:, :FRAME], np.s_[:, -FRAME:]):
        truth[edge] = 0
    return truth, found


def runs(mask: np.ndarray) -> list[int]:
    """Return alternating counts of zeros and ones in column order, zeros first (COCO's order)."""
    flat = np.concatenate([[0], mask.T.ravel(), [0]])
    edges = np.flatnonzero(np.diff(flat))
    return np.diff(np.concatenate([[0], edges, [mask.size]])).tolist()


def write(path: Path, pixels: np.ndarray) -> None:
    """Write a PNG of one band."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        shape = {"height": HEIGHT, "width": WIDTH, "count": 1, "dtype": "uint8"}
        with rasterio.open(path, "w", driver="PNG", **shape) as file:
            file.write(pixels, 1)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "segmentation"
    rng = np.random.default_rng(SEED)
    lights = [list(LIGHT)[i % 2] for i in range(SCENES)]
    names = [f"scene_{i + 1:02d}" for i in range(SCENES)]
    masks = []
    for name, light in zip(names, lights, strict=True):
        truth, found = scene(rng, LIGHT[light])
        write(folder / "truth" / f"{name}.png", truth)
        write(folder / "predicted" / f"{name}.png", found)
        for index in np.unique(found).tolist():
            rle = {"size": [HEIGHT, WIDTH], "counts": runs(found == index)}
            masks.append({"scene": name, "label": LABELS[index - 1], "mask": rle})
    tables = {side: [f"{side}/{name}.png" for name in names] for side in ("truth", "predicted")}
    frames = {side: pl.DataFrame({"datum_id": names, "raster": of}) for side, of in tables.items()}
    frames["labels"] = pl.DataFrame({"label_value": LABELS, "index": range(1, len(LABELS) + 1)})
    frames["scenes"] = pl.DataFrame({"datum_id": names, "light": lights})
    frames["masks"] = pl.DataFrame(masks).rename({"scene": "datum_id", "label": "label_value"})
    for name, frame in frames.items():
        frame.write_parquet(folder / f"{name}.parquet")
        print(f"{folder / name}.parquet: {len(frame)} rows")


if __name__ == "__main__":
    main()
