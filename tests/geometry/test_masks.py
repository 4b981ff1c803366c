"""Masks against pycocotools and against their pixels."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import polars as pl
import pytest
from geometry.pixels import column, counts_along, images, pixels, rle, stacks
from hypothesis import given
from hypothesis import strategies as st
from pycocotools import mask as coco
from refusals import refused

from evalengine.executors.pools import Threads
from evalengine.geometry import masks
from evalengine.geometry.columns import Place


def read(values: list[Any], **more: Any) -> masks.Masks:
    return masks.read_masks(column(values), side="predictions", **more)


def check_runs(result: masks.Masks) -> None:
    """Check that runs ascend, do not touch and are inside their mask."""
    for i in range(len(result)):
        first, last = result.start[i], result.start[i + 1]
        edges = np.stack([result.begin, result.end], axis=1)[first:last].ravel().astype(np.int64)
        assert (np.diff(edges) > 0).all()
        assert edges.size == 0 or edges[-1] <= result.height[i] * result.width[i]


@given(stacks())
def test_codes_and_extents_are_those_of_pycocotools(given_images: list[Any]) -> None:
    codes = [rle(image) for image in given_images]
    for as_text in (bytes, bytes.decode):
        result = read([{**code, "counts": as_text(code["counts"])} for code in codes])
        check_runs(result)
        assert all((a == b).all() for a, b in zip(pixels(result), given_images, strict=True))
        again = masks.to_rle(result).struct
        assert again.field("counts").to_list() == [code["counts"].decode() for code in codes]
        assert again.field("size").to_list() == [code["size"] for code in codes]
        assert result.area.tolist() == [int(coco.area(code)) for code in codes]
        for box, code in zip(result.boxes, codes, strict=True):
            x, y, w, h = coco.toBbox(code)
            assert box.tolist() == [x, y, x + w, y + h]


@given(stacks())
def test_counts_in_either_order(given_images: list[Any]) -> None:
    size = list(given_images[0].shape)
    down = [counts_along(image.T.ravel()) for image in given_images]
    along = [counts_along(image.ravel()) for image in given_images]
    forms = [
        [{"size": size, "counts": one} for one in down],
        [{"size": size, "runs": one} for one in along],
        [{"size": size, "rle_rowmajor": one} for one in along],
        [{"size": size, "counts": one, "order": "row"} for one in along],
        [{"size": size, "runs": one, "order": "column"} for one in down],
        [
            {"size": size, "counts": (one, other)[i % 2], "order": ("row", "column")[i % 2]}
            for i, (one, other) in enumerate(zip(along, down, strict=True))
        ],
    ]
    for values in forms:
        result = read(values)
        check_runs(result)
        assert all((a == b).all() for a, b in zip(pixels(result), given_images, strict=True))


def test_runs_without_length_join_their_neighbours() -> None:
    result = read([{"size": [2, 4], "counts": [0, 2, 0, 3, 1, 0, 0, 2]}])
    check_runs(result)
    assert result.begin.tolist() == [0, 6]
    assert result.end.tolist() == [5, 8]
    # pycocotools stores them separately in the code, and counts the same pixels
    code = coco.frPyObjects({"size": [2, 4], "counts": [0, 2, 0, 3, 1, 0, 0, 2]}, 2, 4)
    assert read([code]).area.tolist() == [int(coco.area(code))] == [7]


@given(st.lists(images(), max_size=4))
def test_pixels_of_any_kind(given_images: list[Any]) -> None:
    lists = pl.Series("mask", [one.tolist() for one in given_images], pl.List(pl.List(pl.UInt8)))
    for values in (
        lists,
        lists.cast(pl.List(pl.List(pl.Boolean))),
        lists.cast(pl.List(pl.List(pl.Int64))),
    ):
        result = masks.read_masks(values, side="it")
        check_runs(result)
        assert all((a == b).all() for a, b in zip(pixels(result), given_images, strict=True))
    for many in (given_images, [one.astype(bool) for one in given_images],
                 [np.asfortranarray(one) * 7.0 for one in given_images]):  # fmt: skip
        result = masks.from_pixels(many)
        assert all((a == b).all() for a, b in zip(pixels(result), given_images, strict=True))


def test_pixels_of_arrays_of_fixed_shape() -> None:
    cube = np.arange(24, dtype=np.int16).reshape(2, 3, 4) % 5
    result = masks.read_masks(pl.Series("mask", cube), side="it")
    assert (np.stack(pixels(result)) == (cube != 0)).all()


@given(stacks(), st.integers(0, 2**32 - 1))
def test_intersections_unions_and_choices(given_images: list[Any], seed: int) -> None:
    rng = np.random.default_rng(seed)
    result = masks.from_pixels(given_images)
    n = len(given_images)
    stack = np.stack(given_images).astype(bool)
    ia, ib = (one.ravel().astype(np.int32) for one in np.mgrid[:n, :n])
    shared = masks.intersections(result, result, ia, ib)
    assert shared.tolist() == [
        int((stack[a] & stack[b]).sum()) for a, b in zip(ia, ib, strict=True)
    ]
    iou = coco.iou([rle(one) for one in given_images], [rle(one) for one in given_images], [0] * n)
    union = result.area[ia] + result.area[ib] - shared
    own = np.divide(shared, union, out=np.zeros(shared.size), where=union > 0)
    assert (own == np.asarray(iou).ravel()).all()

    group = rng.integers(0, 3, n).astype(np.int32)
    united = masks.union_by(result, group, 3)
    check_runs(united)
    for g in range(3):
        rows = np.flatnonzero(group == g)
        if rows.size:
            assert (masks.to_pixels(united, g) == stack[rows].any(axis=0)).all()
            merged = coco.merge([rle(given_images[i]) for i in rows])
            code = masks.to_rle(united).struct.field("counts")[g]
            assert code == merged["counts"].decode()
        else:
            assert (united.height[g], united.area[g]) == (0, 0)

    rows = rng.integers(0, n, 5)
    both = masks.concat([result.take(rows), result.slice(n // 2, n)])
    check_runs(both)
    wanted = [*stack[rows], *stack[n // 2 :]]
    assert all((a == b).all() for a, b in zip(pixels(both), wanted, strict=True))


@pytest.mark.parametrize("as_counts", [False, True])
def test_slices_and_chunks_of_a_column(as_counts: bool) -> None:
    texts = {"24": [2, 4], "15": [1, 5], "06": [0, 6], "42": [4, 2], "33": [3, 3]}
    codes = list(texts.values()) if as_counts else list(texts)
    whole = column([{"size": [2, 3], "counts": code} for code in codes])
    for part, areas in (
        (whole[2:4], [6, 2]),
        (whole.gather([4, 0]), [3, 4]),
        (pl.concat([whole[:2], whole[3:]], rechunk=False), [4, 5, 2, 3]),
    ):
        assert masks.read_masks(part, side="it").area.tolist() == areas


def test_threads_do_not_matter() -> None:
    rng = np.random.default_rng(3)
    many = [(rng.random((9, 11)) < 0.4).astype(np.uint8) for _ in range(200)]
    codes = [rle(image) for image in many]
    ia, ib = (one.ravel().astype(np.int32) for one in np.mgrid[:200, :200])
    with ThreadPoolExecutor(3) as pool:
        over = Threads(3, pool).over
        single, result = read(codes), read(codes, over=over)
        for one, two in (
            (single, result),
            (masks.boundary(single), masks.boundary(single, over=over)),
        ):
            assert all((a == b).all() for a, b in zip(one.runs, two.runs, strict=True))
        few = masks.intersections(single, result, ia, ib)
        assert (few == masks.intersections(single, result, ia, ib, over)).all()


def test_no_masks() -> None:
    form = pl.Struct({"size": pl.List(pl.Int64), "counts": pl.String})
    for result in (
        masks.read_masks(pl.Series("mask", [], form), side="it"),
        masks.from_pixels([]),
        masks.concat([]),
        read([{"size": [2, 2], "counts": [4]}]).take(np.zeros(0, np.int64)),
    ):
        assert len(result) == 0
        assert result.area.size == result.boxes.size == len(masks.to_rle(result)) == 0
        none = np.zeros(0, np.int32)
        assert masks.intersections(result, result, none, none).size == 0
        assert len(masks.boundary(result)) == 0
        assert masks.union_by(result, none, 2).area.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("image", "box"),
    [
        (np.zeros((4, 5)), [0, 0, 0, 0]),
        (np.ones((4, 5)), [0, 0, 5, 4]),
        (np.ones((1, 1)), [0, 0, 1, 1]),
        (np.ones((1, 6)), [0, 0, 6, 1]),
        (np.ones((6, 1)), [0, 0, 1, 6]),
        (np.pad(np.ones((1, 1)), ((3, 0), (4, 0))), [4, 3, 5, 4]),
    ],
)
def test_edges(image: Any, box: list[int]) -> None:
    result = masks.from_pixels([image])
    assert result.boxes[0].tolist() == box
    assert result.area[0] == image.sum()
    assert (
        masks.to_rle(result).struct.field("counts")[0]
        == rle(image.astype(np.uint8))["counts"].decode()
    )


def test_masks_of_different_size_are_named() -> None:
    one = masks.from_pixels([np.ones((2, 3)), np.ones((4, 4))])
    two = masks.from_pixels([np.ones((2, 3)), np.ones((4, 5))])
    pair = np.arange(2, dtype=np.int32)
    assert masks.different_sizes(one, two, pair, pair).tolist() == [1]
    with refused("sizes_differ", count=1):
        masks.union_by(one, np.zeros(2, np.int32), 1)
    left, right = Place("predictions", "mask", np.array([7, 9])), Place("ground_truths", "segm")
    with refused("sizes_differ", count=1) as message:
        masks.refuse_sizes(one, two, pair, pair, a_place=left, b_place=right)
    assert "row 9 is 4 x 4" in str(message.value)
    assert "row 1 is 4 x 5" in str(message.value)
    masks.refuse_sizes(one, one, pair, pair, a_place=left, b_place=right)


def test_decoded_runs_are_stored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For any number of threads, each decodes into the final array."""
    n, runs = 400, 2_000
    coded = masks.to_rle(
        masks.Masks(
            np.arange(n + 1) * runs,
            np.tile(np.arange(1, 2 * runs, 2, dtype=np.uint32) * 40, n),
            np.tile(np.arange(2, 2 * runs + 1, 2, dtype=np.uint32) * 40, n),
            np.full(n, 400),
            np.full(n, 500),
        )
    )
    with ThreadPoolExecutor(3) as pool:
        over = Threads(3, pool).over
        masks.read_masks(coded, side="predictions", over=over)  # compiled
        tracemalloc.start()
        result = masks.read_masks(coded, side="predictions", over=over)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert result.begin.size == n * runs
    assert peak < 1.5 * (result.begin.nbytes + result.end.nbytes)


def test_extents_in_ranges_are_those_of_all() -> None:
    rng = np.random.default_rng(5)
    images = [rng.random((7, 9)) < share for share in (0.3, 0, 0.9, 0.5, 0)]
    single, measured = masks.from_pixels(images), masks.from_pixels(images)
    measured.measure(lambda offsets, function: [function(0, 2), function(2, 2), function(2, 5)])
    assert measured.area.tolist() == [int(image.sum()) for image in images]
    assert (measured.area == single.area).all()
    assert (measured.boxes == single.boxes).all()
    for ranges in (None, lambda offsets, function: []):
        none = masks.from_pixels([])
        none.measure(ranges)
        assert none.area.shape == (0,)
        assert none.boxes.shape == (0, 4)
