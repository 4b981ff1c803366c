"""Rasters of one datum on different grids; ``check`` reads broken geometry."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import rasterio
from affine import Affine
from refusals import noted, refused

import evalengine as ee
from evalengine.geometry.rasters import RasterFiles


def _written(path: Path, epsg: int | None, west: float = 5e5, pixel: float = 10.0) -> str:
    pixels = np.zeros((20, 20), np.uint8)
    pixels[3:9, 4:12] = 1
    place: Any = {}
    if epsg is not None:
        place = {"crs": f"EPSG:{epsg}", "transform": Affine(pixel, 0.0, west, 0.0, -pixel, 5e6)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        with rasterio.open(
            path, "w", driver="GTiff", height=20, width=20, count=1, dtype="uint8", **place
        ) as file:
            file.write(pixels, 1)
    return str(path)


def _table(*paths: str, scored: bool = False) -> pl.DataFrame:
    n = len(paths)
    more = {"score": [0.5] * n} if scored else {}
    return pl.DataFrame({"datum_id": ["d7"] * n, "label_value": ["a"] * n, "raster": paths, **more})


@pytest.mark.parametrize("convert_to", [None, "polygon", "box"])
@pytest.mark.parametrize(
    ("place", "message"),
    [
        ((32633,), "EPSG:32633, pixels of 10 x -10 from (500000, 5000000)"),
        ((32632, 6e5), "EPSG:32632, pixels of 10 x -10 from (600000, 5000000)"),
        ((32632, 5e5, 20.0), "EPSG:32632, pixels of 20 x -20 from (500000, 5000000)"),
    ],
)
def test_rasters_on_other_grids(
    tmp_path: Path, place: Any, message: str, convert_to: str | None
) -> None:
    truth = _written(tmp_path / "truth.tif", 32632)
    other = _written(tmp_path / "other.tif", *place)
    with refused("grids_differ", side="predictions", column="raster", count=1) as error:
        ee.score(_table(other, scored=True), _table(truth), convert_to=convert_to)
    assert f"'d7') is 20 x 20, {message}" in str(error.value)
    assert "EPSG:32632, pixels of 10 x -10" in str(error.value)
    assert "from (500000, 5000000)" in str(error.value)
    with refused("grids_differ", side="ground_truths", column="raster", count=1) as error:
        ee.score(_table(truth, scored=True), _table(truth, other), convert_to=convert_to)
    assert f"'d7') is 20 x 20, {message}" in str(error.value)


def test_equal_grids_and_plain_pictures_are_compared(tmp_path: Path) -> None:
    truth = _written(tmp_path / "truth.tif", 32632)
    same = _written(tmp_path / "same.tif", 32632)
    plain = _written(tmp_path / "plain.tif", None)
    for predictions in (same, plain):
        card = ee.score(_table(predictions, scored=True), _table(truth), metrics=["Outcomes"])
        assert card.outcomes["iou"].to_list() == [1.0]


@pytest.mark.parametrize(
    ("column", "code"),
    [
        ({"mask": [{"size": [2, 2], "counts": [3]}]}, "runs_short"),
        ({"raster": ["absent.tif"]}, "file_missing"),
        ({"polygon": [[[1.0, 2.0, 3.0]]]}, "wrong_length"),
    ],
)
def test_check_reads_geometry(column: dict[str, Any], code: str) -> None:
    truth = pl.DataFrame({"datum_id": [1], "label_value": ["a"], **column})
    with refused(code, column=next(iter(column)), count=1, rows=[0]):
        ee.check(truth.with_columns(score=pl.lit(0.5)), truth, task="detection")


def _picture(path: Path, bands: int) -> str:
    pixels = np.zeros((bands, 20, 20), np.uint8)
    pixels[0, 3:9, 4:12] = 7
    pixels[-1, 3:9, 4:8] = 9
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        with rasterio.open(
            path, "w", driver="PNG", height=20, width=20, count=bands, dtype="uint8"
        ) as file:
            file.write(pixels)
    return str(path)


def test_bands_of_pictures(tmp_path: Path) -> None:
    """A picture of three bands is refused unless a column selects the band."""
    path = _picture(tmp_path / "rgb.png", 3)
    truth, predictions = _table(path), _table(path, scored=True)
    with refused("band_unnamed", count=1, bands=3, match="raster_band"):
        ee.score(predictions, truth)
    of_band = [
        ee.score(
            predictions.with_columns(raster_band=band),
            truth.with_columns(raster_band=1),
            metrics=["Outcomes"],
            iou_thresholds=[0.1],
        ).outcomes["iou"][0]
        for band in (1, 3)
    ]
    assert of_band == [1.0, 0.5]


def test_a_value_that_no_pixel_has(tmp_path: Path) -> None:
    path = _picture(tmp_path / "a.png", 1)
    truth = _table(path, path).with_columns(raster_value=pl.Series([9, 8]))
    card = ee.score(_table(path, scored=True), truth)
    text = noted(card, "absent_raster_values", count=1).message
    assert f"'d7') asks for 8 in {path!r}." in text


def test_files_are_found_once_and_in_their_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _picture(tmp_path / "a.png", 1)
    monkeypatch.setenv("HOME", str(tmp_path))
    looked: list[str] = []
    usual = RasterFiles.find
    monkeypatch.setattr(
        RasterFiles, "find", lambda files, path: looked.append(path) or usual(files, path)
    )
    home = ["~/a.png"] * 50
    card = ee.score(_table(*home[:1], scored=True), _table(*home), metrics=["Outcomes"])
    assert card.outcomes["iou"].max() == 1.0
    assert 0 < len(looked) <= 8  # per side: grids and masks, found and checked
