"""The joint histogram against NumPy's: runs, words, bytes at the end, wide indices."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalengine.kernels.pixel_counts import ByteCounter, count_wide


def counted(found: tuple[Any, Any, Any]) -> dict[tuple[int, int], int]:
    a, b, n = (one.tolist() for one in found)
    assert len(set(zip(a, b, strict=True))) == len(a)
    return dict(zip(zip(a, b, strict=True), n, strict=True))


def expected(a: Any, b: Any) -> dict[tuple[int, int], int]:
    return dict(Counter(zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)))


@st.composite
def runs(draw: st.DrawFn) -> Any:
    """Bytes in runs whose ends fall anywhere within words."""
    pieces = draw(st.lists(st.tuples(st.integers(0, 255), st.integers(1, 90)), min_size=1))
    return np.concatenate([np.full(n, value, np.uint8) for value, n in pieces])


@settings(max_examples=40)
@given(runs(), runs(), st.integers(0, 7))
def test_bytes(a: Any, b: Any, skip: int) -> None:
    n = min(a.size, b.size)
    a, b = a[:n][skip:], b[:n][skip:]  # not where words begin
    counter = ByteCounter()
    counter.add(a, b)
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


@settings(max_examples=25)
@given(st.lists(st.integers(0, 3000), max_size=6), st.integers(1000, 3100), st.integers(0, 99))
def test_long_runs_over_stretches_of_pixels(cuts: list[int], n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Indices change where stretches of 64 begin and end, in either map, and where drawn.
    at = np.array(sorted({*cuts, *rng.choice([1, 63, 64, 65, 128, 129, 640, 641, 2049], 2)}))
    a, b = (
        rng.integers(0, 256, at.size + 1, np.uint8)[np.searchsorted(at, np.arange(n), "right")]
        for _ in range(2)
    )
    b = np.roll(b, int(rng.integers(0, 2)))
    counter = ByteCounter()
    for first, last in ((0, n // 2), (n // 2, n)):  # the second half where no word begins
        counter.add(a[first:last], b[first:last])
    assert counted(counter.take()) == expected(a, b)
