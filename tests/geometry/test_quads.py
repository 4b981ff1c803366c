"""Shared areas of quadrilaterals, against Shapely and against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import shapely

from evalengine.kernels.boxes import measure_quads, shared_quad_areas

Array = np.ndarray[Any, Any]


def rectangles(rng: np.random.Generator, n: int, scale: float = 1.0, away: float = 0.0) -> Array:
    centre = rng.uniform(0, 100, (n, 2)) * scale + away
    half = rng.uniform(0.5, 25, (n, 2)) * scale
    turn = rng.choice([0.0, np.pi / 2, np.pi, 0.3], n) + rng.choice([0, 1], n) * rng.normal(size=n)
    across = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    down = np.stack([-across[:, 1], across[:, 0]], axis=1)
    corners = [
        centre + sx * half[:, :1] * across + sy * half[:, 1:] * down
        for sx, sy in ((-1, -1), (1, -1), (1, 1), (-1, 1))
    ]
    return np.stack(corners, axis=1).reshape(n, 8)


def iou(one: Array, two: Array) -> Array:
    a, b = measure_quads(one), measure_quads(two)
    each = np.arange(len(one), dtype=np.int32)
    shared = shared_quad_areas(a[:3], b[:3], each, each)
    union = a[1] + b[1] - shared
    return np.divide(shared, union, out=np.zeros(len(one)), where=union > 0)


def by_shapely(one: Array, two: Array) -> Array:
    a, b = (shapely.polygons(side.reshape(-1, 4, 2)) for side in (one, two))
    shared = shapely.area(shapely.intersection(a, b))
    return shared / (shapely.area(a) + shapely.area(b) - shared)


def exactly(one: Array, two: Array) -> float:
    """Compute the IoU of two convex quadrilaterals in fractions, without rounding until the end."""
    a, b = (_anticlockwise([(Fraction(x), Fraction(y)) for x, y in s.reshape(4, 2).tolist()])
            for s in (one, two))  # fmt: skip
    clipped = a
    for (x, y), (fx, fy) in zip(b, b[1:] + b[:1], strict=True):
        side = [(fx - x) * (qy - y) - (fy - y) * (qx - x) for qx, qy in clipped]
        then = []
        for i, (qx, qy) in enumerate(clipped):
            (px, py), before, after = clipped[i - 1], side[i - 1], side[i]
            if (before >= 0) != (after >= 0):
                share = before / (before - after)
                then.append((px + share * (qx - px), py + share * (qy - py)))
            if after >= 0:
                then.append((qx, qy))
        clipped = then
    shared = _twice(clipped)
    return float(shared / (_twice(a) + _twice(b) - shared))


def _twice(ring: list[tuple[Fraction, Fraction]]) -> Fraction:
    return sum(
        (a[0] * b[1] - b[0] * a[1] for a, b in zip(ring, ring[1:] + ring[:1], strict=True)),
        Fraction(0),
    )


def _anticlockwise(ring: list[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
    return ring if _twice(ring) >= 0 else ring[::-1]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_rectangles_agree_with_shapely(scale: float) -> None:
    rng = np.random.default_rng(1)
    one, two = rectangles(rng, 5_000, scale), rectangles(rng, 5_000, scale)
    two[:500] = one[:500]  # equal
    two[500:1000] = one[500:1000, [2, 3, 4, 5, 6, 7, 0, 1]]  # other first corner
    two[1000:1500] = one[1000:1500, [6, 7, 4, 5, 2, 3, 0, 1]]  # other direction
    result = iou(one, two)
    assert np.abs(result - by_shapely(one, two)).max() < 1e-12
    assert (result[:1500] == 1.0).all()


@pytest.mark.parametrize("away", [0.0, 1e5, 1e8])
def test_ious_far_away_are_exact(away: float) -> None:
    rng = np.random.default_rng(2)
    one, two = rectangles(rng, 200, away=away), rectangles(rng, 200, away=away)
    two[:100] = one[:100] + rng.normal(size=(100, 1))
    wanted = [exactly(a, b) for a, b in zip(one, two, strict=True)]
    np.testing.assert_allclose(iou(one, two), wanted, rtol=0, atol=1e-12)


def test_any_simple_quadrilateral_agrees_with_shapely() -> None:
    rng = np.random.default_rng(3)
    one, two = rng.uniform(0, 10, (2, 6_000, 8))
    simple = [shapely.is_valid(shapely.polygons(s.reshape(-1, 4, 2))) for s in (one, two)]
    valid = simple[0] & simple[1]
    assert valid.sum() > 1_000
    assert np.abs(iou(one[valid], two[valid]) - by_shapely(one[valid], two[valid])).max() < 1e-12
    assert np.array_equal(measure_quads(one)[3], ~simple[0])  # the others cross themselves


def test_touching_flat_and_half() -> None:
    box = np.array([0.0, 0, 4, 0, 4, 2, 0, 2])
    others = np.array([
        box + [4, 0] * 4,  # touches at an edge
        box + [4, 2] * 4,  # touches at a corner
        [0, 0, 4, 0, 4, 0, 0, 0],  # without area
        [1, 1, 1, 1, 1, 1, 1, 1],
        [0, 0, 2, 0, 2, 2, 0, 2],  # half of it
        box * 0.5 + [1, 0.5] * 4,  # inside
    ])  # fmt: skip
    result = iou(np.tile(box, (len(others), 1)), others)
    assert result.tolist() == [0.0, 0.0, 0.0, 0.0, 0.5, 0.25]
