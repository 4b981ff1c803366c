"""Make the bundled panoptic example: 10 tiny street scenes in COCO's format, JSON and images.

    python examples/making/make_panoptic.py [FOLDER]

writes `truth.json` and `predicted.json`, each with a folder of PNGs of the same name, and
`scenes.parquet`, into `examples/panoptic/` (or FOLDER). Colours are ids, R + 256 G + 65536 B, black
is void. Road and sky are stuff, cars and people things; some scenes have a crowd of people. The
simulated network shifts outlines, merges some cars, misses some people, and is worse at night. The
seed is fixed: the same versions of NumPy, Polars and GDAL write the same bytes.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import rasterio

HERE = Path(__file__).resolve().parents[1]
SEED = 12
SCENES, HEIGHT, WIDTH = 10, 48, 64
CATEGORIES = [
    {"id": 1, "name": "person", "isthing": 1},
    {"id": 3, "name": "car", "isthing": 1},
    {"id": 100, "name": "road", "isthing": 0},
    {"id": 119, "name": "sky", "isthing": 0},
]
PERSON, CAR, ROAD, SKY = (category["id"] for category in CATEGORIES)
FRAME = 1  # pixels of void around a scene
LIGHT = {"day": 0.15, "night": 0.45}  # share of things that are missed or merged

Segment = tuple[int, int, bool]  # category, id, whether it is a crowd


def block(ids: np.ndarray, one: int, top: int, left: int, height: int, width: int) -> None:
    """Paint the part of a block that is inside the image."""
    ids[max(top, 0) : max(top + height, 0), max(left, 0) : max(left + width, 0)] = one


def scene(
    rng: np.random.Generator, hard: float
) -> tuple[tuple[np.ndarray, list[Segment]], tuple[np.ndarray, list[Segment]]]:
    """Return map and segments of truth and prediction."""
    numbers = iter(rng.choice(1 << 24, 40, replace=False).tolist())
    horizon = int(rng.integers(18, 26))
    truth, found = (np.zeros((HEIGHT, WIDTH), np.int64) for _ in range(2))
    segments_of: tuple[list[Segment], list[Segment]] = ([], [])
    for ids, side, low in ((truth, segments_of[0], horizon), (found, segments_of[1], horizon + 1)):
        for category, rows in ((SKY, np.s_[:low]), (ROAD, np.s_[low:])):
            one = next(numbers)
            ids[rows] = one
            side.append((category, one, False))
    last = 0
    for category, many, low, high in ((CAR, 5, 8, 15), (PERSON, 4, 5, 9)):
        for _ in range(many):
            height, width = (int(n) for n in rng.integers(low, high, 2))
            top, left = horizon - height // 2, int(rng.integers(0, WIDTH - width))
            one, seen = next(numbers), next(numbers)
            block(truth, one, top, left, height, width)
            segments_of[0].append((category, one, category == PERSON and rng.random() < 0.2))
            down, right = (int(n) for n in rng.integers(-1, 2, 2))
            if rng.random() < hard and category == PERSON:
                continue
            if rng.random() < hard and last:
                seen = last  # two things in one
            elif rng.random() < hard / 3:
                segments_of[1].append((CAR if category == PERSON else PERSON, seen, False))
            else:
                segments_of[1].append((category, seen, False))
            block(found, seen, top + down, left + right, height, width)
            last = seen if category == CAR else 0
    for edge in (np.s_[:FRAME], np.s_[-FRAME:], np.s_[:, :FRAME], np.s_[:, -FRAME:]):
        truth[edge] = 0
    return (truth, segments_of[0]), (found, segments_of[1])


def write(path: Path, ids: np.ndarray) -> None:
    """Write a PNG whose colours are ids."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        shape = {"height": HEIGHT, "width": WIDTH, "count": 3, "dtype": "uint8"}
        with rasterio.open(path, "w", driver="PNG", **shape) as file:
            file.write(np.stack([ids % 256, ids // 256 % 256, ids // 65536]).astype(np.uint8))


def annotation(image: int, name: str, ids: np.ndarray, segments: list[Segment]) -> dict:
    """Return the JSON of one image; segments hidden by others are omitted."""
    infos = [
        {"id": one, "category_id": category, "iscrowd": int(crowd), "area": int((ids == one).sum())}
        for category, one, crowd in segments
    ]
    here = [info for info in infos if info["area"]]
    return {"image_id": image, "file_name": name, "segments_info": here}


def main(folder: Path) -> None:
    """Write everything."""
    rng = np.random.default_rng(SEED)
    sides: dict[str, list[dict]] = {"truth": [], "predicted": []}
    scenes = []
    for image in range(SCENES):
        light = "night" if image % 2 else "day"
        name = f"scene_{image:02}.png"
        scenes.append({"id": image, "file_name": name, "light": light})
        for (side, rows), (ids, segments) in zip(
            sides.items(), scene(rng, LIGHT[light]), strict=True
        ):
            write(folder / side / name, ids)
            rows.append(annotation(image, name, ids, segments))
    whole = {"images": scenes, "categories": CATEGORIES}
    for side, rows in sides.items():
        kept = whole if side == "truth" else {}
        (folder / f"{side}.json").write_text(json.dumps(kept | {"annotations": rows}))
    pl.DataFrame(scenes).rename({"id": "image_id"}).write_parquet(folder / "scenes.parquet")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "panoptic")
