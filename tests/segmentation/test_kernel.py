"""The joint histogram against NumPy: runs, words, trailing bytes, wide indices."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalengine.kernels.label_maps import ByteCounter, count_wide


def counted(found: tuple[Any, Any, Any]) -> dict[tuple[int, int], int]:
    a, b, n = (one.tolist() for one in found)
    assert len(set(zip(a, b, strict=True))) == len(a)
    return dict(zip(zip(a, b, strict=True), n, strict=True))


def expected(a: Any, b: Any) -> dict[tuple[int, int], int]:
    return dict(Counter(zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)))


@st.composite
def maps(draw: st.DrawFn) -> tuple[Any, Any]:
    """Return two sides of equal length, with runs of several patterns.

    Runs end anywhere, or at multiples of 64 bytes, or blocks of 64 have few or many borders.
    """
    n = draw(st.integers(1, 3100))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(["anywhere", "at stretches", "noise by turns"]))
    sides = []
    noisy = np.repeat(rng.random(n // 50 + 1) < 0.5, 50)[:n]
    at = rng.choice([1, 63, 64, 65, 128, 129, 640, 641, 2049], 2)
    for _ in range(2):
        if kind == "anywhere":
            at = rng.integers(0, n, int(rng.integers(0, n // 45 + 2)))
        ends = np.unique(at)
        values = rng.integers(0, 256, ends.size + 1, np.uint8)
        runs = values[np.searchsorted(ends, np.arange(n), "right")]
        noise = rng.integers(0, 256, n, np.uint8)
        sides.append(np.where(noisy, noise, runs) if kind == "noise by turns" else runs)
    return sides[0], np.roll(sides[1], int(rng.integers(0, 2)))


@settings(max_examples=100)
@given(maps(), st.integers(0, 7), st.integers(1, 3))
def test_bytes(sides: tuple[Any, Any], skip: int, pieces: int) -> None:
    """Several calls, which do not begin at word boundaries, add up."""
    a, b = (side[skip:] for side in sides)
    counter = ByteCounter()
    for some in np.array_split(np.arange(a.size), pieces):
        if some.size:
            counter.add(a[some[0] : some[-1] + 1], b[some[0] : some[-1] + 1])
    assert counted(counter.take()) == expected(a, b)
    assert counter.take().shape == (3, 0)


def test_every_pair_of_bytes() -> None:
    a, b = (one.astype(np.uint8).ravel() for one in np.mgrid[:256, :256])
    order = np.random.default_rng(0).permutation(a.size)
    counter = ByteCounter()
    for part in np.split(order, 8):
        counter.add(a[part], b[part])
    found = counter.take()
    assert (found[2] == 1).all()
    assert (found[0] * 256 + found[1] == np.arange(65536)).all()


def test_columns_of_a_larger_image() -> None:
    image = np.random.default_rng(1).integers(0, 9, (40, 33)).astype(np.uint8)
    counter = ByteCounter()
    counter.add(image[3:, 5:29], image[:-3, 2:26])
    assert counted(counter.take()) == expected(image[3:, 5:29], image[:-3, 2:26])


@pytest.mark.parametrize("values", [(0, 1, 300), (-1, 0, 65535), (-(2**31) + 1, 2**31 - 1, 7)])
def test_wide(values: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.choice(np.array(values), (2, 6, 50))
    assert counted(count_wide(a, b)) == expected(a, b)
    assert count_wide(a[:, :0], b[:, :0])[2].size == 0


def test_many_wide_indices() -> None:
    a = np.arange(5000).reshape(50, 100) * 3
    b = a[::-1] * 100_000
    assert counted(count_wide(a, b % 2**31)) == expected(a, b % 2**31)
