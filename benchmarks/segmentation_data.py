"""Make the segmentation benchmark's sets: label maps of 19 classes, as arrays and as files.

    python benchmarks/segmentation_data.py counts noise png geotiff windows --scale 1 0.02

`counts` has regions with wavy borders, shifted by a few pixels in the prediction, with one region
in twenty of another class; `noise` has a random class for every pixel, and therefore no runs. `png`
and `geotiff` are the maps of `counts` in files, `windows` one pair of 40,000 x 40,000 pixels, tiled
and compressed. Pairs are made in parallel, `--workers` at a time, and do not depend on that number.
Sets are written once per size and seed; files need rasterio.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
from making import DATA, folder_of

Maps = np.ndarray[Any, np.dtype[np.uint8]]
T = TypeVar("T")

MADE = 2  # version of the generator, raised when the same seed makes other data
NAMES = ("truth", "found")
DRIVERS = {"png": "PNG", "tif": "GTiff"}

PAIRS, SIDE, CLASSES, REGIONS = 500, 1024, 19, 12
LARGE, TILE, CELL = 40_000, 512, 100  # pixels of a side, of a tile, of a region of the large pair
WRONG = 0.05  # share of regions that the prediction confuses
PLACE = {"crs": "EPSG:32632", "transform": (0.5, 0.0, 500_000.0, 0.0, -0.5, 5_000_000.0)}


def pair(rng: np.random.Generator) -> tuple[Maps, Maps]:
    """Return truth and prediction of one image."""
    regions = rng.integers(0, CLASSES, (REGIONS + 2, REGIONS + 2), dtype=np.uint8)
    seen = np.where(rng.random(regions.shape) < WRONG, rng.integers(0, CLASSES), regions)
    y, x = (axis.astype(np.float32) for axis in np.ogrid[:SIDE, :SIDE])
    waves = rng.uniform(0, 6.28, 4)
    down = y + 25 * np.sin(x / 60 + waves[0]) + 10 * np.sin(x / 17 + waves[1])
    across = x + 25 * np.sin(y / 60 + waves[2]) + 10 * np.sin(y / 17 + waves[3])
    step = SIDE / REGIONS

    def painted(of: Maps, by: tuple[float, float]) -> Maps:
        rows, columns = (
            ((field + np.float32(move)) / np.float32(step) + 1).astype(np.intp).clip(0, REGIONS + 1)
            for field, move in ((down, by[0]), (across, by[1]))
        )
        return of.astype(np.uint8)[rows, columns]

    return painted(regions, (0, 0)), painted(seen, tuple(rng.uniform(-5, 5, 2)))


@dataclass(frozen=True)
class Order:
    """Parameters of a set.

    Attributes:
        folder: target folder.
        scale: share of the size.
        seed: seed of the random numbers; every pair has an independent stream.
        workers: processes.
    """

    folder: Path
    scale: float
    seed: int
    workers: int

    @property
    def pairs(self) -> int:
        return max(1, round(PAIRS * self.scale))

    def generator(self, *place: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=place))

    def each(self, one: Callable[[int], T]) -> Iterator[T]:
        """Yield the result of a function for the number of each pair, in order."""
        if self.workers == 1 or self.pairs == 1:
            yield from map(one, range(self.pairs))
            return
        with ProcessPoolExecutor(self.workers) as pool:
            yield from pool.map(one, range(self.pairs), chunksize=4)


def regions(order: Order, i: int) -> tuple[Maps, Maps]:
    return pair(order.generator(i))


def drawn(order: Order, i: int) -> tuple[Maps, Maps]:
    truth, predicted = order.generator(i).integers(0, CLASSES, (2, SIDE, SIDE), dtype=np.uint8)
    return truth, predicted


def arrays(one: Callable[[Order, int], tuple[Maps, Maps]]) -> Callable[[Order], None]:
    """Return a maker of two files of arrays, written pair by pair."""

    def make(order: Order) -> None:
        shape = (order.pairs, SIDE, SIDE)
        sides = [
            np.lib.format.open_memmap(order.folder / f"{name}.npy", "w+", np.uint8, shape)
            for name in NAMES
        ]
        for i, maps in enumerate(order.each(partial(one, order))):
            for side, pixels in zip(sides, maps, strict=True):
                side[i] = pixels

    return make


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


def written(order: Order, ending: str, i: int) -> None:
    """Write one pair's files."""
    profile = placed() | {"compress": "deflate"} if ending == "tif" else {}
    for name, pixels in zip(NAMES, regions(order, i), strict=True):
        write(order.folder / f"{name}_{i:03d}.{ending}", pixels, driver=DRIVERS[ending], **profile)


def files(ending: str) -> Callable[[Order], None]:
    """Return a maker of files, and of the tables that name them."""

    def make(order: Order) -> None:
        for _ in order.each(partial(written, order, ending)):
            pass
        paths = {n: [f"{n}_{i:03d}.{ending}" for i in range(order.pairs)] for n in NAMES}
        tables(order.folder, paths)

    return make


def tables(folder: Path, paths: dict[str, list[str]]) -> None:
    for name, own in paths.items():
        frame = pl.DataFrame({"datum_id": range(len(own)), "raster": own})
        frame.write_parquet(folder / f"{name}.parquet")


def windows(order: Order) -> None:
    import rasterio

    rng = order.generator()
    side = max(TILE, round(LARGE * order.scale**0.5))
    many = side // CELL + 1
    truth = rng.integers(0, CLASSES, (many, many), dtype=np.uint8)
    predicted = np.where(rng.random(truth.shape) < WRONG, rng.integers(0, CLASSES), truth)
    shape = {"height": side, "width": side, "count": 1, "dtype": "uint8", "driver": "GTiff"}
    tiles = {"tiled": True, "blockxsize": TILE, "blockysize": TILE, "compress": "deflate",
             "num_threads": order.workers}  # fmt: skip
    for name, cells in (("truth", truth), ("found", predicted.astype(np.uint8))):
        path = order.folder / f"{name}.tif"
        with rasterio.open(path, "w", **shape, **tiles, **placed()) as file:
            for top in range(0, side, TILE):
                bottom = min(side, top + TILE)
                lines = cells[np.arange(top, bottom) // CELL].repeat(CELL, 1)[:, :side]
                file.write(lines, 1, window=((top, bottom), (0, side)))
    tables(order.folder, {name: [f"{name}.tif"] for name in NAMES})


SECTIONS: dict[str, Callable[[Order], None]] = {
    "counts": arrays(regions),
    "noise": arrays(drawn),
    "png": files("png"),
    "geotiff": files("tif"),
    "windows": windows,
}


def make(section: str, order: Order) -> None:
    """Write one section's set, unless it exists."""
    done = order.folder / f".seed-{order.seed}-{MADE}"
    if done.exists():
        return
    order.folder.mkdir(parents=True, exist_ok=True)
    for stale in order.folder.glob(".seed-*"):
        stale.unlink()
    SECTIONS[section](order)
    done.touch()


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the segmentation benchmark's data.")
    parser.add_argument("sections", nargs="+", choices=list(SECTIONS))
    parser.add_argument("--out", type=Path, default=DATA, help="folder (default: %(default)s)")
    parser.add_argument("--scale", type=float, nargs="+", default=[1.0], help="shares of the size")
    parser.add_argument("--seed", type=int, default=20240601)
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, help="processes (default: %(default)s)"
    )
    options = parser.parse_args()
    for section in options.sections:
        for scale in options.scale:
            start = time.perf_counter()
            folder = options.out / folder_of("segmentation", section, scale)
            make(section, Order(folder, scale, options.seed, options.workers))
            print(f"{folder} ({time.perf_counter() - start:.1f} s)")


if __name__ == "__main__":
    main()
