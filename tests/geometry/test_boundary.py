"""Boundaries against repeated erosion of pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from geometry.pixels import images, pixels
from hypothesis import given
from hypothesis import strategies as st

from evalengine.geometry import masks


def eroded(image: Any, times: int) -> Any:
    """Erode by 3 x 3 ones, with zeros around the image: pixels need nine neighbours of 1."""
    for _ in range(times):
        padded = np.pad(image, 1)
        h, w = image.shape
        image = np.min([padded[y : y + h, x : x + w] for y in range(3) for x in range(3)], axis=0)
    return image


def expected(image: Any, ratio: float) -> Any:
    h, w = image.shape
    times = max(1, round(ratio * float(np.sqrt(h**2 + w**2))))
    return image - eroded(image, times)


@given(st.lists(images(), min_size=1, max_size=5), st.sampled_from([0.001, 0.02, 0.1, 0.3, 2.0]))
def test_boundaries(given_images: list[Any], ratio: float) -> None:
    result = masks.boundary(masks.from_pixels(given_images), ratio)
    for own, image in zip(pixels(result), given_images, strict=True):
        assert (own == expected(image, ratio)).all()


@pytest.mark.parametrize(("side", "depth"), [(53, 1), (54, 2), (88, 2), (89, 3)])
def test_depth_is_the_rounded_share_of_the_diagonal(side: int, depth: int) -> None:
    full = masks.from_pixels([np.ones((side, side))])
    inside = (side - 2 * depth) ** 2
    assert masks.boundary(full).area.tolist() == [side**2 - inside]


def test_halves_round_to_even() -> None:
    """A diagonal of 125 pixels: 2.5 is rounded to 2, as in Python."""
    full = masks.from_pixels([np.ones((75, 100))])
    assert masks.boundary(full).area.tolist() == [7500 - 71 * 96]
