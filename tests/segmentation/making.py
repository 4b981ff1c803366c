"""Label maps for tests, and the same pixels in other forms."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import evalengine as ee

EVERY = (
    "IOU", "mIOU", "Precision", "Recall", "F1", "Dice", "Counts", "PixelAccuracy",
    "MeanClassAccuracy", "FrequencyWeightedIoU", "mIOUPerImage", "DicePerImage",
    "PixelAccuracyPerImage", "ConfusionMatrix",
)  # fmt: skip
NAMES = ["road", "car", "sky", "tree"]


def same(ours: ee.Scorecard, theirs: ee.Scorecard, *frames: str) -> None:
    for name in frames or ("metrics", "confusion", "per_datum"):
        assert_frame_equal(ours.frame(name), theirs.frame(name))


def rows_of(maps: Any, names: list[str] = NAMES, first: int = 0) -> pl.DataFrame:
    """Return a row of pixels per datum and label; indices below ``first`` have no row."""
    return pl.DataFrame(
        [
            {
                "datum_id": i,
                "label_value": names[v - first],
                "mask": (one == v).astype(int).tolist(),
            }
            for i, one in enumerate(maps)
            for v in np.unique(one).tolist()
            if v >= first
        ],
        schema={"datum_id": pl.Int64, "label_value": pl.String, "mask": pl.List(pl.List(pl.Int64))},
    )


def some_maps(seed: int = 0, n: int = 5, labels: int = 4) -> tuple[Any, Any]:
    """Return predictions and ground truths, uint8 [n, 16, 13], mostly equal."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, labels, (n, 16, 13)).astype(np.uint8)
    other = rng.integers(0, labels, truth.shape).astype(np.uint8)
    return np.where(rng.random(truth.shape) < 0.8, truth, other), truth


def write(path: Path | str, pixels: Any, palette: Any = None, **profile: Any) -> str:
    """Write a raster file of one or several bands, as PNG or TIFF by its name."""
    import rasterio

    driver = "PNG" if str(path).endswith("png") else "GTiff"
    bands = pixels if pixels.ndim == 3 else pixels[None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        with rasterio.open(
            path, "w", driver=driver, count=len(bands), height=pixels.shape[-2],
            width=pixels.shape[-1], dtype=pixels.dtype, **profile,
        ) as file:  # fmt: skip
            file.write(bands)
            if palette is not None:
                file.write_colormap(1, palette)
    return str(path)


@st.composite
def pairs_of_maps(draw: st.DrawFn, values: tuple[int, ...] = (0, 1, 2, 3, 255)) -> Any:
    """Return maps of various sizes by datum id; datums may be missing on either side."""
    sides: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for name in draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True)):
        shape = draw(st.tuples(st.integers(1, 5), st.integers(1, 19)))
        on = (
            draw(st.sampled_from([(0, 1), (0, 1), (0,), (1,)])) if sides[0] and sides[1] else (0, 1)
        )
        for side in on:
            pool = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
            seed = draw(st.integers(0, 99))
            sides[side][name] = np.random.default_rng(seed).choice(pool, shape)
    return sides
