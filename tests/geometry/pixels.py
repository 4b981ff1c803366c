"""Random pixels for tests of masks, and pycocotools' codes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from hypothesis import strategies as st
from pycocotools import mask as coco

from evalengine.geometry.masks import Masks, to_pixels

Array = np.ndarray[Any, Any]


@st.composite
def images(draw: Any, shape: tuple[int, int] | None = None) -> Array:
    """Images of 0 and 1, uint8 [h, w]: noise of any density, blocks, empty and full ones."""
    h, w = shape or (draw(st.integers(1, 25)), draw(st.integers(1, 25)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density = draw(st.sampled_from([0.0, 0.03, 0.3, 0.5, 0.9, 1.0]))
    noise = rng.random((h, w)) < density
    if draw(st.booleans()):  # blocks, which touch edges and wrap columns
        noise = np.kron(noise, np.ones((3, 4), bool))[:h, :w]
    return noise.astype(np.uint8)


@st.composite
def stacks(draw: Any, most: int = 6) -> list[Array]:
    """Several images of one size."""
    shape = draw(st.integers(1, 25)), draw(st.integers(1, 25))
    return draw(st.lists(images(shape=shape), min_size=1, max_size=most))


def rle(image: Array) -> dict[str, Any]:
    """Encode an image with pycocotools."""
    result: dict[str, Any] = coco.encode(np.asfortranarray(image))
    return result


def column(values: list[Any], name: str = "mask") -> pl.Series:
    return pl.Series(name, values, strict=False)


def pixels(masks: Masks) -> list[Array]:
    return [to_pixels(masks, i) for i in range(len(masks))]


def counts_along(line: Array) -> list[int]:
    """Count alternating lengths of zeros and ones, pixel by pixel."""
    counts, last = [0], 0
    for value in line.tolist():
        if value != last:
            counts.append(0)
            last = value
        counts[-1] += 1
    return counts
