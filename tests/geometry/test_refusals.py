"""Unusable masks and polygons are refused with column, count, rows, reason and remedy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest
import shapely
from geometry.pixels import column
from refusals import refused

from evalengine.geometry import masks, polygons
from evalengine.schemas.errors import OptionError

SIZE = [2, 3]
GOOD = {"size": SIZE, "counts": [2, 4]}


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (None, "null_values"),
        ({"size": SIZE, "counts": None}, "null_values"),
        ({"size": None, "counts": [6]}, "null_values"),
        ({"size": [6], "counts": [6]}, "mask_size_misfit"),
        ({"size": [2, 3, 1], "counts": [6]}, "mask_size_misfit"),
        ({"size": [2, -3], "counts": [6]}, "mask_size_misfit"),
        ({"size": [0, 3], "counts": [0]}, "mask_size_misfit"),
        ({"size": [65536, 65536], "counts": [6]}, "too_many_pixels"),
        ({"size": SIZE, "counts": [2, 3]}, "runs_short"),
        ({"size": SIZE, "counts": []}, "runs_short"),
        ({"size": SIZE, "counts": [1, 2**63 - 1, 2**63 - 1, 7]}, "runs_long"),
        ({"size": SIZE, "counts": [2, 5]}, "runs_long"),
        ({"size": SIZE, "counts": [2, -1, 5]}, "run_negative"),
        ({"size": SIZE, "counts": [7, -1]}, "run_negative"),
        ({"size": SIZE, "counts": [2, None, 4]}, "null_in_list"),
    ],
)
def test_counts(value: Any, code: str) -> None:
    with refused(code, side="ground_truths", column="mask", count=2, rows=[1, 3]):
        masks.read_masks(column([GOOD, value, GOOD, value]), side="ground_truths")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("2/4", "code_malformed"),
        ("24p", "code_malformed"),
        ("24\u00e9", "code_malformed"),
        ("2" + 20 * "o", "code_malformed"),
        ("24X", "code_cut"),
        ("23", "runs_short"),
        ("", "runs_short"),
        ("25", "runs_long"),
        ("2nn?", "runs_long"),
        ("2O5", "run_negative"),
    ],
)
@pytest.mark.parametrize("binary", [False, True])
def test_strings(text: str, code: str, binary: bool) -> None:
    counts = (b"24", text.encode()) if binary else ("24", text)
    values = [{"size": SIZE, "counts": one} for one in counts]
    with refused(code, column="mask", count=1, rows=[70]) as error:
        masks.read_masks(column(values), side="predictions", rows=np.array([40, 70]))
    assert "size 2 x 3" in str(error.value)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ([[1, 0], [1]], "pixels_uneven"),
        ([], "geometry_empty"),
        ([[]], "geometry_empty"),
        ([[1, None]], "null_in_list"),
    ],
)
def test_pixel_rows(value: Any, code: str) -> None:
    with refused(code, column="mask", count=1, rows=[1]):
        masks.read_masks(column([[[0, 1], [1, 1]], value]), side="predictions")


@pytest.mark.parametrize(
    "values",
    [
        pl.Series("mask", ["24"]),
        pl.Series("mask", [[[0.5]]]),
        pl.Series("mask", [{"size": [2, 3]}]),
        pl.Series("mask", [{"size": [2, 3], "counts": [0.5]}]),
        pl.Series("mask", [{"size": "2x3", "counts": [6]}]),
        pl.Series("mask", [{"size": [2, 3], "counts": "24", "runs": [2, 4]}]),
    ],
)
def test_dtypes_that_are_no_mask(values: pl.Series) -> None:
    with refused("wrong_dtype", column="mask"):
        masks.read_masks(values, side="predictions")


def test_unknown_orders_are_refused() -> None:
    with refused("unknown_name", count=1, rows=[0]):
        masks.read_masks(column([{**GOOD, "order": "diagonal"}]), side="predictions")


def test_invalid_images_are_refused() -> None:
    for image in (np.zeros(4), np.zeros((0, 3)), np.zeros((2, 2, 2))):
        with refused("image_misfit", image=0):
            masks.from_pixels([image])


SQUARE = [[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0]]
BOW = [[0.0, 0.0], [4.0, 4.0], [4.0, 0.0], [0.0, 4.0]]
REPAIRABLE = [
    ([BOW], "polygon_invalid", "Self-intersection", 8.0),
    ([[[0.0, 0.0], [1.0, 1.0]]], "ring_short", "", 0.0),
    ([[[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]], "polygon_invalid", "Too few points", 0.0),
    ([[[2.0, 1.0], [2.0, 1.0], [2.0, 1.0]]], "polygon_invalid", "Too few points", 0.0),
    ([[]], "ring_short", "", 0.0),
    ([], "polygon_empty", "", 0.0),
    ([[[0.0, 0.0], [2.0, 2.0], [4.0, 4.0]]], "polygon_invalid", "", 0.0),
    ([SQUARE, [[1.0, 1.0], [2.0, 2.0]]], "ring_short", "", 16.0),
    ([SQUARE, [[9.0, 9.0], [9.0, 8.0], [8.0, 8.0]]], "polygon_invalid", "Hole lies outside", None),
]


@pytest.mark.parametrize(("value", "code", "reason", "area"), REPAIRABLE)
def test_rings_are_refused_or_repaired(
    value: Any, code: str, reason: str, area: float | None
) -> None:
    values = pl.Series("polygon", [[SQUARE], value], pl.List(pl.List(pl.List(pl.Float64))))
    with refused(code, column="polygon", count=1, rows=[1]) as error:
        _ = polygons.read_polygons(values, side="predictions").area
    assert reason in error.value.facts.get("reason", "")
    assert "invalid_polygons='repair'" in str(error.value)
    repaired = polygons.read_polygons(values, side="predictions", invalid="repair")
    assert repaired.area[0] == 16.0
    if area is not None:
        assert repaired.area[1] == area
    drawn = polygons.rasterise(repaired, np.array([9, 9]), np.array([9, 9]))
    assert drawn.area[0] == 16
    pair = np.array([0], np.int32)
    shared = polygons.intersection_areas(repaired, repaired, pair, pair + 1)
    assert shared[0] <= 16.0
    assert repaired.boxes[1, 0] <= repaired.boxes[1, 2]


@pytest.mark.parametrize("invalid", ["refuse", "repair"])
@pytest.mark.parametrize(
    ("values", "code"),
    [
        ([[SQUARE], None], "null_values"),
        ([[SQUARE], [[[0.0, float("nan")], [1.0, 1.0], [2.0, 0.0]]]], "not_finite"),
        ([[SQUARE], [[[0.0, float("inf")], [1.0, 1.0], [2.0, 0.0]]]], "not_finite"),
        ([[SQUARE], [[[0.0, None], [1.0, 1.0], [2.0, 0.0]]]], "not_finite"),
        ([[SQUARE], [[[0.0, 1.0, 2.0]]]], "wrong_length"),
        ([[[0.0] * 6], [[0.0] * 7]], "wrong_length"),
        (["POLYGON((0 0,4 0,4 4,0 0))", "POLYGON((0 0,4 0,4 4))"], "polygon_unreadable"),
        (["POLYGON((0 0,4 0,4 4,0 0))", "rubbish"], "polygon_unreadable"),
        (["POLYGON((0 0,4 0,4 4,0 0))", "POINT(1 1)"], "wrong_geometry"),
        (["POLYGON((0 0,4 0,4 4,0 0))", '{"type": "Polygon"}'], "polygon_unreadable"),
        (["POLYGON((0 0,4 0,4 4,0 0))", "{"], "polygon_unreadable"),
    ],
)
def test_irreparable_polygons(values: list[Any], code: str, invalid: str) -> None:
    with refused(code, column="polygon", count=1, rows=[1]):
        polygons.read_polygons(column(values, "polygon"), side="predictions", invalid=invalid)


def test_invalid_binary_is_refused() -> None:
    with refused("polygon_unreadable", format="WKB", count=1):
        polygons.read_polygons(column([b"\x01\x02"], "polygon"), side="predictions")


def test_dtypes_that_are_no_polygon() -> None:
    for values in (pl.Series("polygon", [1.0]), pl.Series("polygon", [["a"]])):
        with refused("wrong_dtype", column="polygon"):
            polygons.read_polygons(values, side="predictions")


def test_an_unknown_treatment() -> None:
    with refused("unknown_name", OptionError, value="repare"):
        polygons.read_polygons(column([SQUARE], "polygon"), side="it", invalid="repare")


def test_images_without_a_size() -> None:
    result = polygons.read_polygons(column([SQUARE, SQUARE], "polygon"), side="predictions")
    with refused("image_size_missing", count=1, rows=[1]):
        polygons.rasterise(result, np.array([4, 0]), np.array([4, 4]))


with np.errstate(all="ignore"):
    NAN = shapely.to_wkb(shapely.Polygon([(0, 0), (1, 0), (float("nan"), 1)]))
FAR = "POLYGON ((0 0, 1e300 1e300, 1e300 0, 0 1e300, 0 0))"


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("POLYGON ((0 0, 1 0, NaN 1, 0 0))", "not_finite"),
        (NAN, "not_finite"),
        (FAR, "polygon_invalid"),
    ],
)
def test_refused_without_warnings_of_shapely(value: Any, code: str) -> None:
    with warnings.catch_warnings(record=True) as leaked:
        warnings.simplefilter("always")
        with refused(code):
            _ = polygons.read_polygons(pl.Series("polygon", [value]), side="predictions").area
        repaired = pl.Series("polygon", [FAR])
        _ = polygons.read_polygons(repaired, side="predictions", invalid="repair").area
    assert not leaked
