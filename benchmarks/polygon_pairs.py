"""Overlapping polygons in images: the set of masks.py's section `pairs`, and its contenders.

1 M ground truths and 5 M detections of 8 to 40 corners in 100 k images at scale 1. A contender
computes the IoU of every pair of one image and label; its values are the sums per image. Sets are
written, and read by evalengine, some images at a time, so that memory does not grow with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

IMAGES = 100_000  # at scale 1
TRUTHS, PREDICTED = 10, 50  # per image
AT_ONCE = 5_000  # images in memory
LABELS = 20
EVERY = 100  # contenders in a loop process one of so many images
HEIGHT, WIDTH = 480, 640


def rows(shapes: list[Any], which: Any, box: Any) -> Any:
    """Return outlines in pixels as flat rings, a Series of List(List(Float64)).

    Args:
        shapes: outlines [corners, 2] that fill the unit square.
        which: int [n].
        box: float64 [n, 4].
    """
    import polars as pl
    import pyarrow as pa

    corners = np.array([len(shape) for shape in shapes])
    first = np.concatenate([[0], np.cumsum(corners)])
    n = corners[which]
    start = np.concatenate([[0], np.cumsum(n)])
    at = np.repeat(first[which] - start[:-1], n) + np.arange(start[-1])
    xy = np.concatenate(shapes)[at]
    xy = xy * np.repeat(box[:, 2:] - box[:, :2], n, axis=0) + np.repeat(box[:, :2], n, axis=0)
    rings = pa.LargeListArray.from_arrays(pa.array(2 * start), pa.array(xy.ravel()))
    one = pa.LargeListArray.from_arrays(pa.array(np.arange(which.size + 1)), rings)
    return pl.Series("polygon", pl.from_arrow(one))


def images_at(scale: float) -> int:
    """Return the number of images at a share of the size."""
    return EVERY * max(1, round(IMAGES * scale / EVERY))


def made(shapes: list[Any], rng: np.random.Generator, scale: float) -> dict[str, Any]:
    """Make the set: both tables, rows by image, in frames of some images each."""
    import shapely

    shapes = [shape for shape in shapes if shapely.Polygon(shape).is_valid]
    seed, images = int(rng.integers(1 << 60)), images_at(scale)

    def table(name: str) -> Iterator[Any]:
        for first in range(0, images, AT_ONCE):
            part = np.random.default_rng([seed, first])
            yield drawn(shapes, part, first, min(AT_ONCE, images - first))[name]

    return {name: table(name) for name in ("groundtruths", "predictions")}


def drawn(shapes: list[Any], rng: np.random.Generator, first: int, images: int) -> dict[str, Any]:
    """Make both tables of some images."""
    import polars as pl

    extent = rng.uniform(20, 120, (images * TRUTHS, 2))
    near = rng.uniform(0, 1, extent.shape) * ([WIDTH, HEIGHT] - extent)
    truths = np.concatenate([near, near + extent], axis=1)
    label = rng.integers(0, LABELS, len(truths))
    which = rng.integers(0, len(shapes), len(truths))
    of = (
        np.arange(images)[:, None] * TRUTHS + rng.integers(0, TRUTHS, (images, PREDICTED))
    ).ravel()
    predicted = truths[of] + rng.normal(0, 4, (of.size, 4))
    again = np.where(rng.random(of.size) < 0.5, which[of], rng.integers(0, len(shapes), of.size))
    return {
        name: pl.DataFrame(
            {
                "datum_id": first + np.repeat(np.arange(images), each),
                "label_value": labels,
                "polygon": rows(shapes, shape, box),
            }
        )
        for name, each, labels, shape, box in (
            ("groundtruths", TRUTHS, label, which, truths),
            ("predictions", PREDICTED, label[of], again, predicted),
        )
    }


def evalengine(contender: str) -> Any:
    """`evalengine-N`: N threads, some images at a time to limit memory."""
    from concurrent.futures import ThreadPoolExecutor

    import polars as pl

    from evalengine.executors.pools import Threads
    from evalengine.geometry.polygons import intersection_areas, read_polygons
    from evalengine.kernels import boxes

    threads = int(contender.split("-")[1])

    def of_images(predictions: Any, truths: Any, images: int, over: Any) -> Any:
        sides = [read_polygons(t["polygon"], side="benchmark") for t in (predictions, truths)]
        (datum, label), (truth, truth_label) = (
            (table["datum_id"].to_numpy(), table["label_value"].to_numpy())
            for table in (predictions, truths)
        )
        first = int(truth[0])
        datum, truth = datum - first, truth - first
        ours = *boxes.rows_by_datum(datum, images), sides[0].boxes, sides[0].area, label
        theirs = boxes.truths_by_datum(truth, images, sides[1].boxes, sides[1].area, truth_label)
        met = over(ours[0], lambda a, b: boxes.candidates(a, b, ours, theirs, 0.0))
        p, g = (np.concatenate(part) for part in zip(*met, strict=True))
        shared = intersection_areas(sides[0], sides[1], p, g, over)
        iou = shared / (sides[0].area[p] + sides[1].area[g] - shared)
        return np.bincount(datum[p], iou, images)

    def run(folder: Path, lap: Any) -> list[float]:
        predictions, truths = (
            pl.scan_parquet(folder / f"{name}.parquet") for name in ("predictions", "groundtruths")
        )
        images = int(truths.select(pl.len()).collect().item()) // TRUTHS
        sums: list[float] = []
        with ThreadPoolExecutor(threads) as pool:
            over = Threads(threads, pool).over
            for first in range(0, images, AT_ONCE):
                many = min(AT_ONCE, images - first)
                tables = (
                    table.slice(first * each, many * each).collect()
                    for table, each in ((predictions, PREDICTED), (truths, TRUTHS))
                )
                sums += of_images(*tables, many, over).tolist()
        lap("evaluate")
        return sums

    return run


Side = tuple[Any, list[Any]]  # labels and rings [corners, 2] of one image


def images_of(folder: Path) -> Iterator[tuple[Side, Side]]:
    """Yield detections and ground truths of every n-th image."""
    import polars as pl

    sides = []
    for name, each in (("predictions", PREDICTED), ("groundtruths", TRUTHS)):
        table = pl.scan_parquet(folder / f"{name}.parquet")
        remaining = table.filter(pl.col("datum_id") % EVERY == 0).collect(engine="streaming")
        rings = [np.array(one).reshape(-1, 2) for one in remaining["polygon"].list.first()]
        labels = remaining["label_value"].to_list()
        sides.append(
            [(labels[i : i + each], rings[i : i + each]) for i in range(0, len(rings), each)]
        )
    yield from zip(*sides, strict=True)


def in_a_loop(image: tuple[Side, Side]) -> float:
    """shapely, pair by pair."""
    import shapely

    (label, predicted), (truth_label, truths) = image
    ours, theirs = ([shapely.Polygon(ring) for ring in rings] for rings in (predicted, truths))
    total = 0.0
    for name, one in zip(label, ours, strict=True):
        for other_name, other in zip(truth_label, theirs, strict=True):
            if name == other_name and one.intersects(other):
                shared = one.intersection(other).area
                total += shared / (one.area + other.area - shared)
    return total


def rasterised(image: tuple[Side, Side]) -> float:
    """pycocotools' masks, label by label: counts of pixels."""
    from pycocotools import mask

    codes = [
        [mask.frPyObjects([ring.ravel().tolist()], HEIGHT, WIDTH)[0] for ring in rings]
        for _, rings in image
    ]
    total = 0.0
    for name in {*image[0][0]}:
        ours, theirs = (
            [code for code, label in zip(own, labels, strict=True) if label == name]
            for own, (labels, _) in zip(codes, image, strict=True)
        )
        if theirs:
            total += float(mask.iou(ours, theirs, [0] * len(theirs)).sum())
    return total


def peer(measured: Callable[[tuple[Side, Side]], float]) -> Any:
    """Return a contender that processes every hundredth image, one after the other."""
    import polars  # noqa: F401

    def run(folder: Path, lap: Any) -> list[float]:
        images = list(images_of(folder))
        lap("load")
        sums = [measured(image) for image in images]
        lap("evaluate", EVERY)
        return sums

    return run


PEERS: dict[str, tuple[str, Callable[[], Any]]] = {
    "shapely-loop": ("shapely", partial(peer, in_a_loop)),
    "rasterising": ("pycocotools", partial(peer, rasterised)),
}
