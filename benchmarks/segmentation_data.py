"""Make the segmentation benchmark's sets: label maps of 19 classes, as arrays and as files.

    python benchmarks/segmentation_data.py counts noise png geotiff windows --scale 1 0.02

`counts` has regions with wavy borders, the prediction's moved by a few pixels and one region in
twenty of another class; `noise` has a class drawn for every pixel, and so no runs to make use of.
`png` and `geotiff` are the maps of `counts` in files, `windows` one pair of 40,000 x 40,000 pixels,
tiled and compressed. Written once per size and seed; needs rasterio.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from making import DATA, folder_of

Maps = np.ndarray[Any, np.dtype[np.uint8]]

PAIRS, SIDE, CLASSES, REGIONS = 500, 1024, 19, 12
LARGE, TILE, CELL = 40_000, 512, 100  # pixels of a side, of a tile, of a region of the large pair
WRONG = 0.05  # share of regions that the prediction takes for another class
PLACE = {"crs": "EPSG:32632", "transform": (0.5, 0.0, 500_000.0, 0.0, -0.5, 5_000_000.0)}


def pair(rng: np.random.Generator) -> tuple[Maps, Maps]:
    """Truth and prediction of one image."""
    regions = rng.integers(0, CLASSES, (REGIONS + 2, REGIONS + 2), dtype=np.uint8)
    seen = np.where(rng.random(regions.shape) < WRONG, rng.integers(0, CLASSES), regions)
    y, x = np.mgrid[:SIDE, :SIDE].astype(np.float32)
    waves = rng.uniform(0, 6.28, 4)
    down = y + 25 * np.sin(x / 60 + waves[0]) + 10 * np.sin(x / 17 + waves[1])
    across = x + 25 * np.sin(y / 60 + waves[2]) + 10 * np.sin(y / 17 + waves[3])
    step = SIDE / REGIONS

    def painted(of: Maps, by: tuple[float, float]) -> Maps:
        rows, columns = (
            ((field + move) / step + 1).astype(np.int32).clip(0, REGIONS + 1)
            for field, move in ((down, by[0]), (across, by[1]))
        )
        return of[rows, columns].astype(np.uint8)

    return painted(regions, (0, 0)), painted(seen, tuple(rng.uniform(-5, 5, 2)))


def pairs(rng: np.random.Generator, scale: float) -> Iterator[tuple[Maps, Maps]]:
    return (pair(rng) for _ in range(max(1, round(PAIRS * scale))))


def counts(rng: np.random.Generator, folder: Path, scale: float) -> None:
    truth, found = zip(*pairs(rng, scale), strict=True)
    np.save(folder / "truth.npy", np.stack(truth))
    np.save(folder / "found.npy", np.stack(found))


def noise(rng: np.random.Generator, folder: Path, scale: float) -> None:
    shape = (max(1, round(PAIRS * scale)), SIDE, SIDE)
    for name in ("truth", "found"):
        np.save(folder / f"{name}.npy", rng.integers(0, CLASSES, shape, dtype=np.uint8))


def write(path: Path, pixels: Maps, **profile: Any) -> None:
    import rasterio

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        height, width = pixels.shape
        with rasterio.open(path, "w", count=1, height=height, width=width, dtype="uint8",
                           **profile) as file:  # fmt: skip
            file.write(pixels, 1)


def placed() -> dict[str, Any]:
    import rasterio

    return {"crs": PLACE["crs"], "transform": rasterio.Affine(*PLACE["transform"])}


def files(ending: str, driver: str) -> Callable[[np.random.Generator, Path, float], None]:
    """A maker of files, and of the tables that name them."""

    def make(rng: np.random.Generator, folder: Path, scale: float) -> None:
        profile = placed() | {"compress": "deflate"} if driver == "GTiff" else {}
        paths: dict[str, list[str]] = {"truth": [], "found": []}
        for i, sides in enumerate(pairs(rng, scale)):
            for name, pixels in zip(paths, sides, strict=True):
                path = folder / f"{name}_{i:03d}.{ending}"
                write(path, pixels, driver=driver, **profile)
                paths[name].append(path.name)
        tables(folder, paths)

    return make


def tables(folder: Path, paths: dict[str, list[str]]) -> None:
    for name, own in paths.items():
        frame = pl.DataFrame({"datum_id": range(len(own)), "raster": own})
        frame.write_parquet(folder / f"{name}.parquet")


def windows(rng: np.random.Generator, folder: Path, scale: float) -> None:
    import rasterio

    side = max(TILE, round(LARGE * scale**0.5))
    many = side // CELL + 1
    truth = rng.integers(0, CLASSES, (many, many), dtype=np.uint8)
    found = np.where(rng.random(truth.shape) < WRONG, rng.integers(0, CLASSES), truth)
    shape = {"height": side, "width": side, "count": 1, "dtype": "uint8", "driver": "GTiff"}
    tiles = {"tiled": True, "blockxsize": TILE, "blockysize": TILE, "compress": "deflate"}
    for name, cells in (("truth", truth), ("found", found.astype(np.uint8))):
        path = folder / f"{name}.tif"
        with rasterio.open(path, "w", **shape, **tiles, **placed()) as file:
            for top in range(0, side, TILE):
                bottom = min(side, top + TILE)
                lines = cells[np.arange(top, bottom) // CELL].repeat(CELL, 1)[:, :side]
                file.write(lines, 1, window=((top, bottom), (0, side)))
    tables(folder, {name: [f"{name}.tif"] for name in ("truth", "found")})


SECTIONS: dict[str, Callable[[np.random.Generator, Path, float], None]] = {
    "counts": counts,
    "noise": noise,
    "png": files("png", "PNG"),
    "geotiff": files("tif", "GTiff"),
    "windows": windows,
}


def make(section: str, folder: Path, scale: float, seed: int) -> None:
    """Write one section's set, unless it is there."""
    done = folder / f".seed-{seed}"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob(".seed-*"):
        stale.unlink()
    SECTIONS[section](np.random.default_rng(seed), folder, scale)
    done.touch()


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the segmentation benchmark's data.")
    parser.add_argument("sections", nargs="+", choices=list(SECTIONS))
    parser.add_argument("--out", type=Path, default=DATA, help="folder (default: %(default)s)")
    parser.add_argument("--scale", type=float, nargs="+", default=[1.0], help="shares of the size")
    parser.add_argument("--seed", type=int, default=20240601)
    options = parser.parse_args()
    for section in options.sections:
        for scale in options.scale:
            start = time.perf_counter()
            folder = options.out / folder_of("segmentation", section, scale)
            make(section, folder, scale, options.seed)
            print(f"{folder} ({time.perf_counter() - start:.1f} s)")


if __name__ == "__main__":
    main()
