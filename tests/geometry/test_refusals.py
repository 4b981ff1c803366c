"""Masks and polygons that cannot be used: column, count, rows, reason and the way out."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest
import shapely
from geometry.pixels import column

from evalengine.geometry import masks, polygons
from evalengine.schemas.errors import InputError, OptionError

SIZE = [2, 3]
GOOD = {"size": SIZE, "counts": [2, 4]}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "without a mask (null)"),
        ({"size": SIZE, "counts": None}, "without 'counts' (null)"),
        ({"size": None, "counts": [6]}, "without 'size' (null)"),
        ({"size": [6], "counts": [6]}, "whose size is not two numbers"),
        ({"size": [2, 3, 1], "counts": [6]}, "whose size is not two numbers"),
        ({"size": [2, -3], "counts": [6]}, "whose size is not two positive whole numbers"),
        ({"size": [0, 3], "counts": [0]}, "whose size is not two positive whole numbers"),
        ({"size": [65536, 65536], "counts": [6]}, "whose size has 2^32 pixels or more"),
        ({"size": SIZE, "counts": [2, 3]}, "that does not fill its size"),
        ({"size": SIZE, "counts": []}, "that does not fill its size"),
        ({"size": SIZE, "counts": [1, 2**63 - 1, 2**63 - 1, 7]}, "more pixels than its size has"),
        ({"size": SIZE, "counts": [2, 5]}, "of more pixels than its size has"),
        ({"size": SIZE, "counts": [2, -1, 5]}, "with a negative run"),
        ({"size": SIZE, "counts": [7, -1]}, "with a negative run"),
        ({"size": SIZE, "counts": [2, None, 4]}, "with nulls in 'counts'"),
    ],
)
def test_counts(value: Any, told: str) -> None:
    with pytest.raises(InputError, match=re.escape(told)) as error:
        masks.read_masks(column([GOOD, value, GOOD, value]), side="ground_truths")
    message = str(error.value)
    assert message.startswith("ground truths: column 'mask': 2 rows ")
    assert "first (rows count from 0): row 1" in message
    assert "row 3" in message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2/4", "with characters that no compressed run-length code has"),
        ("24p", "with characters that no compressed run-length code has"),
        ("24\u00e9", "with characters that no compressed run-length code has"),
        ("2" + 20 * "o", "with characters that no compressed run-length code has"),
        ("24X", "with a code that ends inside a number"),
        ("23", "that does not fill its size"),
        ("", "that does not fill its size"),
        ("25", "of more pixels than its size has"),
        ("2nn?", "of more pixels than its size has"),
        ("2O5", "with a negative run"),
    ],
)
@pytest.mark.parametrize("binary", [False, True])
def test_strings(text: str, told: str, binary: bool) -> None:
    code = text.encode() if binary else text
    good = b"24" if binary else "24"
    values = [{"size": SIZE, "counts": one} for one in (good, code)]
    with pytest.raises(InputError, match=re.escape(told)) as error:
        masks.read_masks(column(values), side="predictions", rows=np.array([40, 70]))
    assert "1 row " in str(error.value)
    assert "row 70 (size 2 x 3" in str(error.value)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ([[1, 0], [1]], "whose rows of pixels differ in length"),
        ([], "of masks without pixels"),
        ([[]], "of masks without pixels"),
        ([[1, None]], "with nulls among the pixels"),
    ],
)
def test_pixel_rows(value: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
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
    with pytest.raises(InputError, match=r"column 'mask'.*height, width"):
        masks.read_masks(values, side="predictions")


def test_orders_that_are_none() -> None:
    with pytest.raises(InputError, match=r"'order' is neither 'row' nor 'column'.*diagonal"):
        masks.read_masks(column([{**GOOD, "order": "diagonal"}]), side="predictions")


def test_images_that_are_none() -> None:
    for image in (np.zeros(4), np.zeros((0, 3)), np.zeros((2, 2, 2))):
        with pytest.raises(InputError, match="image 0 has shape"):
            masks.from_pixels([image])


SQUARE = [[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0]]
BOW = [[0.0, 0.0], [4.0, 4.0], [4.0, 0.0], [0.0, 4.0]]
REPAIRABLE = [
    ([BOW], "Self-intersection", 8.0),
    ([[[0.0, 0.0], [1.0, 1.0]]], "fewer than three points", 0.0),
    ([[[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]], "Too few points", 0.0),
    ([[[2.0, 1.0], [2.0, 1.0], [2.0, 1.0]]], "Too few points", 0.0),
    ([[]], "fewer than three points", 0.0),
    ([], "empty polygon", 0.0),
    ([[[0.0, 0.0], [2.0, 2.0], [4.0, 4.0]]], "Too few points|Self-intersection", 0.0),
    ([SQUARE, [[1.0, 1.0], [2.0, 2.0]]], "fewer than three points", 16.0),
    ([SQUARE, [[9.0, 9.0], [9.0, 8.0], [8.0, 8.0]]], "Hole lies outside shell", None),
]


@pytest.mark.parametrize(("value", "told", "area"), REPAIRABLE)
def test_rings_are_refused_or_repaired(value: Any, told: str, area: float | None) -> None:
    values = pl.Series("polygon", [[SQUARE], value], pl.List(pl.List(pl.List(pl.Float64))))
    with pytest.raises(InputError, match=told) as error:
        _ = polygons.read_polygons(values, side="predictions").area
    assert "column 'polygon': 1 row with " in str(error.value)
    assert "row 1" in str(error.value)
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
    ("values", "told"),
    [
        ([[SQUARE], None], "without a polygon (null)"),
        ([[SQUARE], [[[0.0, float("nan")], [1.0, 1.0], [2.0, 0.0]]]], "null, NaN or infinite"),
        ([[SQUARE], [[[0.0, float("inf")], [1.0, 1.0], [2.0, 0.0]]]], "null, NaN or infinite"),
        ([[SQUARE], [[[0.0, None], [1.0, 1.0], [2.0, 0.0]]]], "null, NaN or infinite"),
        ([[SQUARE], [[[0.0, 1.0, 2.0]]]], "points that are not two numbers"),
        ([[[0.0] * 6], [[0.0] * 7]], "an odd count of numbers"),
        (["POLYGON((0 0,4 0,4 4,0 0))", "POLYGON((0 0,4 0,4 4))"], "cannot be read as WKT"),
        (["POLYGON((0 0,4 0,4 4,0 0))", "rubbish"], "cannot be read as WKT"),
        (["POLYGON((0 0,4 0,4 4,0 0))", "POINT(1 1)"], "not polygons"),
        (["POLYGON((0 0,4 0,4 4,0 0))", '{"type": "Polygon"}'], "cannot be read as GeoJSON"),
        (["POLYGON((0 0,4 0,4 4,0 0))", "{"], "cannot be read as GeoJSON"),
    ],
)
def test_what_nothing_repairs(values: list[Any], told: str, invalid: str) -> None:
    with pytest.raises(InputError, match=re.escape(told)) as error:
        polygons.read_polygons(column(values, "polygon"), side="predictions", invalid=invalid)
    assert "column 'polygon': 1 row " in str(error.value)
    assert "row 1" in str(error.value)


def test_rubbish_in_binary() -> None:
    with pytest.raises(InputError, match="cannot be read as WKB"):
        polygons.read_polygons(column([b"\x01\x02"], "polygon"), side="predictions")


def test_dtypes_that_are_no_polygon() -> None:
    for values in (pl.Series("polygon", [1.0]), pl.Series("polygon", [["a"]])):
        with pytest.raises(InputError, match="column 'polygon' has dtype"):
            polygons.read_polygons(values, side="predictions")


def test_an_unknown_treatment() -> None:
    with pytest.raises(OptionError, match=r"invalid_polygons='repare'.*refuse, repair"):
        polygons.read_polygons(column([SQUARE], "polygon"), side="it", invalid="repare")


def test_images_without_a_size() -> None:
    found = polygons.read_polygons(column([SQUARE, SQUARE], "polygon"), side="predictions")
    with pytest.raises(InputError, match=r"1 row of images whose height or width.*row 1"):
        polygons.rasterise(found, np.array([4, 0]), np.array([4, 4]))


with np.errstate(all="ignore"):
    NAN = shapely.to_wkb(shapely.Polygon([(0, 0), (1, 0), (float("nan"), 1)]))
FAR = "POLYGON ((0 0, 1e300 1e300, 1e300 0, 0 1e300, 0 0))"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("POLYGON ((0 0, 1 0, NaN 1, 0 0))", "null, NaN or infinite"),
        (NAN, "null, NaN or infinite"),
        (FAR, "not valid"),
    ],
)
def test_refused_without_warnings_of_shapely(value: Any, told: str) -> None:
    with warnings.catch_warnings(record=True) as leaked:
        warnings.simplefilter("always")
        with pytest.raises(InputError, match=told):
            _ = polygons.read_polygons(pl.Series("polygon", [value]), side="predictions").area
        repaired = pl.Series("polygon", [FAR])
        _ = polygons.read_polygons(repaired, side="predictions", invalid="repair").area
    assert not leaked
