"""Runs of every value of an image against comparisons of all pixels with each value."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalengine.geometry.rasters import ValueRuns
from evalengine.kernels.masks import scan

DTYPES = (np.uint8, np.int8, np.bool_, np.int32, np.uint16, np.int64, np.float32)


def expected(image: Any, values: Any) -> list[list[list[int]]]:
    """Return begins and ends of each value's runs."""
    whole = np.array([0, image.size])
    runs = [scan((image == one).view(np.uint8).ravel(), whole) for one in values]
    return [[begin.tolist(), end.tolist()] for _, begin, end in runs]


def listed(runs: Any) -> list[list[list[int]]]:
    start, begin, end = runs
    return [[begin[a:b].tolist(), end[a:b].tolist()] for a, b in pairwise(start)]


@st.composite
def images(draw: st.DrawFn) -> tuple[Any, list[int]]:
    """Images, and rows at which their strips begin."""
    height, width = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    pool = draw(st.lists(st.sampled_from([0, 1, 2, 7, 100, 127]), min_size=1, max_size=4))
    image = np.random.default_rng(draw(st.integers(0, 99))).choice(pool, (height, width))
    cuts = draw(st.sets(st.integers(1, height)))
    return image.astype(draw(st.sampled_from(DTYPES))), sorted({0, *cuts})


def filled(runs: ValueRuns, image: Any, cuts: list[int]) -> Any:
    for first, last in zip(cuts, [*cuts[1:], len(image)], strict=True):
        runs.add(first, image[first:last])
    return runs.collect()


@settings(max_examples=50)
@given(images(), st.booleans())
def test_all_values(drawn: tuple[Any, list[int]], turned: bool) -> None:
    image, cuts = drawn
    image = np.asfortranarray(image) if turned else image
    values, runs = filled(ValueRuns(), image, cuts)
    assert values.dtype == image.dtype
    assert values.tolist() == np.unique(image).tolist()
    assert listed(runs) == expected(image, values)


@settings(max_examples=40)
@given(images(), st.sets(st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0, 100.0, 300.0])))
def test_some_values(drawn: tuple[Any, list[int]], asked: set[float]) -> None:
    image, cuts = drawn
    if image.dtype == np.float32:
        image[image == 7] = np.nan
    wanted = np.array(sorted(asked), np.float64)
    values, runs = filled(ValueRuns(wanted), image, cuts)
    assert values is wanted
    assert listed(runs) == expected(image, wanted)


@pytest.mark.parametrize("many", [200, 300, 70_000])
def test_many_values(many: int) -> None:
    image = np.arange(2 * many).reshape(2, many) % many
    values, runs = filled(ValueRuns(), image[:, ::-1], [0, 1])
    assert (values == np.arange(many)).all()
    assert (runs[0] == 2 * np.arange(many + 1)).all()
    assert (runs[1].reshape(-1, 2) == (many - 1 - np.arange(many))[:, None] + [0, many]).all()


def test_no_strips() -> None:
    values, runs = ValueRuns().collect()
    assert values.size == 0
    assert [one.tolist() for one in runs] == [[0], [], []]
