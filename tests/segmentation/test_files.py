"""Raster files: paths, bands, grids, windows."""

from __future__ import annotations

import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from rasterio import Affine
from refusals import noted, refused
from segmentation.making import EVERY, NAMES, rows_of, same, some_maps, write
from sizes import tune

import evalengine as ee
from evalengine.tasks import pixels

FOUND, TRUTH = some_maps()
ARRAYS = ee.score(FOUND, TRUTH, labels=NAMES, metrics=EVERY)


@pytest.fixture
def sides(tmp_path: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Write predictions as PNG and ground truths as TIFF, with paths relative to the folder."""
    made = []
    for name, ending, side in (("p", "png", FOUND), ("g", "tif", TRUTH)):
        paths = [f"{name}{i}.{ending}" for i in range(len(side))]
        for path, one in zip(paths, side, strict=True):
            write(tmp_path / path, one)
        made.append(pl.DataFrame({"datum_id": range(len(side)), "raster": paths}))
    return made[0], made[1]


def test_paths_from_the_current_folder(
    sides: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    same(ee.score(*sides, labels=NAMES, metrics=EVERY), ARRAYS)
    same(ee.score(sides[0], TRUTH, labels=NAMES, metrics=EVERY), ARRAYS)
    same(ee.score(sides[0], rows_of(TRUTH), labels=NAMES, metrics=EVERY), ARRAYS)
    same(ee.score(*sides, labels=NAMES, metrics=EVERY, threads=1), ARRAYS)


def test_paths_from_the_folder_of_the_table(
    sides: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, side in zip("pg", sides, strict=True):
        side.write_parquet(tmp_path / f"{name}.parquet")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    card = ee.score("../p.parquet", "../g.parquet", labels=NAMES, metrics=EVERY)
    same(card, ARRAYS)
    with refused("file_missing", ee.ReadError, side="predictions", count=4, rows=[0, 1, 2]) as it:
        ee.score(sides[0].head(4), TRUTH)
    assert "datum_id=0): 'p0.png'" in str(it.value)


def test_bands_and_values(tmp_path: Path) -> None:
    both = write(tmp_path / "both.tif", np.stack([FOUND[0], TRUTH[0]]))
    band = [
        pl.DataFrame({"datum_id": [0], "raster": [both], "raster_band": [b]}) for b in (1, 2, 3)
    ]
    alone = ee.score(FOUND[:1], TRUTH[:1], metrics=EVERY)
    same(ee.score(band[0], band[1], metrics=EVERY), alone)
    with refused("band_missing", bands=2, band=3):
        ee.score(band[2], band[1])
    with refused("band_unnamed", bands=2):
        ee.score(band[0].drop("raster_band"), band[1])
    values = pl.DataFrame({"value": range(4), "label_value": NAMES}).with_columns(
        datum_id=pl.lit(0), raster=pl.lit(both), raster_band=pl.lit(2), raster_value=pl.col("value")
    )
    rows = values.filter(pl.col("value").is_in(np.unique(TRUTH[0])))
    same(
        ee.score(FOUND[:1], rows, labels=NAMES, metrics=EVERY),
        ee.score(FOUND[:1], TRUTH[:1], labels=NAMES, metrics=EVERY),
    )


def test_files_that_are_not_label_maps(tmp_path: Path) -> None:
    floats = write(tmp_path / "floats.tif", TRUTH[0].astype(np.float32))
    text = tmp_path / "text.png"
    text.write_text("no picture")
    good = write(tmp_path / "good.tif", TRUTH[0])

    def table(path: Any) -> pl.DataFrame:
        return pl.DataFrame({"datum_id": ["x"], "raster": [str(path)]})

    with pytest.raises(ee.InputError, match="float32"):
        ee.score(table(floats), table(good))
    with refused("raster_unreadable", file=str(text), rows=[0]) as error:
        ee.score(table(text), table(good))
    assert str(error.value).count("predictions, row 0") == 1


def cut_short(path: Path) -> str:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    return str(path)


def test_a_truncated_file(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 200, (64, 64)).astype(np.uint8)
    good = write(tmp_path / "good.tif", noise)
    write(tmp_path / "short.png", noise)
    cut = cut_short(tmp_path / "short.png")
    tables = [pl.DataFrame({"datum_id": [1], "raster": [path]}) for path in (cut, good)]
    with refused("raster_unreadable", file=cut, rows=[0]):
        ee.score(*tables)


@pytest.mark.parametrize("tiled", [True, False])
def test_windows_give_the_result_of_whole_maps(tmp_path: Path, tiled: bool) -> None:
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 5, (70, 90)).astype(np.uint8)
    predictions = np.where(rng.random(truth.shape) < 0.9, truth, 0).astype(np.uint8)
    profile = {"tiled": True, "blockxsize": 16, "blockysize": 16} if tiled else {}
    paths = [
        write(tmp_path / "p.tif", predictions, **profile),
        write(tmp_path / "g.tif", truth, blockysize=7)
        if not tiled
        else write(tmp_path / "g.tif", truth, **profile),
        write(tmp_path / "p.png", predictions),
    ]
    tables = [pl.DataFrame({"datum_id": [0], "raster": [path]}) for path in paths]
    whole = ee.score(predictions[None], truth[None], metrics=EVERY)
    for size in (300, 1500, 5000):
        tune(window_pixels=size)
        for side in (tables[0], tables[2]):
            same(ee.score(side, tables[1], metrics=EVERY), whole)
        same(ee.score(predictions[None], tables[1], metrics=EVERY), whole)


def test_windows_cover_every_pixel_once(tmp_path: Path) -> None:
    path = write(tmp_path / "g.tif", np.zeros((70, 90), np.uint8), tiled=True, blockxsize=16,
                 blockysize=32)  # fmt: skip
    tune(window_pixels=1200)
    from contextlib import ExitStack

    with ExitStack() as stack, pixels.quiet():
        opened = pixels.Map(pixels.MapRow(0, "row {}".format, path=path), stack)
        cover = np.zeros((70, 90), int)
        windows = pixels.windows_of([opened])
        for window in windows:
            cover[window.top : window.bottom, window.left : window.right] += 1
            assert window.size <= 1200
            assert window.top % 32 == window.left % 16 == 0
    assert len(windows) > 5
    assert (cover == 1).all()


EARTH = {"crs": "EPSG:32632", "transform": Affine(1, 0, 500000, 0, -1, 5000000)}


def georeferenced(tmp_path: Path, name: str, pixels: Any, **profile: Any) -> pl.DataFrame:
    path = write(tmp_path / name, pixels, **{**EARTH, **profile})
    return pl.DataFrame({"datum_id": [0], "raster": [path]})


def test_grids_that_differ_are_refused(tmp_path: Path) -> None:
    truth = georeferenced(tmp_path, "g.tif", TRUTH[0])
    one = ee.score(FOUND[:1], TRUTH[:1], metrics=EVERY)
    same(ee.score(georeferenced(tmp_path, "p.tif", FOUND[0]), truth, metrics=EVERY), one)
    plain = pl.DataFrame({"datum_id": [0], "raster": [write(tmp_path / "p.png", FOUND[0])]})
    same(ee.score(plain, truth, metrics=EVERY), one)
    moved = georeferenced(
        tmp_path, "m.tif", FOUND[0], transform=Affine(1, 0, 500003, 0, -1, 5000000)
    )
    with refused("grids_differ", count=1, rows=[0]) as raised:
        ee.score(moved, truth)
    message = str(raised.value)
    assert "EPSG:32632" in message
    assert "from (500003, 5000000)" in message
    assert "from (500000, 5000000)" in message
    assert "resample=True" in message
    other = georeferenced(tmp_path, "o.tif", FOUND[0], crs="EPSG:32633")
    with pytest.raises(ee.InputError, match="EPSG:32633"):
        ee.score(other, truth)
    with refused("grids_differ", count=1) as raised:
        ee.score(georeferenced(tmp_path, "s.tif", FOUND[0][:8]), truth)
    assert "8 x 13, EPSG" in str(raised.value)
    assert "16 x 13" in str(raised.value)


@pytest.mark.parametrize("crs", ["EPSG:32632", None])
def test_resampled_by_place(tmp_path: Path, crs: str | None) -> None:
    """Coarse pixels of 2 x 2 begin three pixels further right; nothing is predicted before them."""
    coarse = np.arange(1, 25).reshape(4, 6).astype(np.uint8)
    predictions = georeferenced(
        tmp_path, "p.tif", coarse, crs=crs, transform=Affine(2, 0, 500003, 0, -2, 5000000)
    )
    fine = np.zeros((8, 12), np.uint8)
    truth = georeferenced(tmp_path, "g.tif", fine, crs=crs)
    expected = np.zeros((8, 12), int)
    expected[:, 3:] = coarse.repeat(2, 0).repeat(2, 1)[:, :9]
    for size in (1 << 22, 30):
        tune(window_pixels=size)
        card = ee.score(predictions, truth, resample=True, metrics=["ConfusionMatrix"])
        cells = dict(card.confusion.select("predicted", "count").iter_rows())
        index, count = np.unique(expected[:, 3:], return_counts=True)
        assert cells == {None: 24, **dict(zip(index.tolist(), count.tolist(), strict=True))}
        noted(card, "resampled", count=1)


def test_no_data_is_an_index_when_resampled_too(tmp_path: Path) -> None:
    coarse = np.arange(24).reshape(4, 6).astype(np.uint8) % 3
    predictions = georeferenced(
        tmp_path, "p.tif", coarse, nodata=0, transform=Affine(2, 0, 500000, 0, -2, 5000000)
    )
    truth = georeferenced(tmp_path, "g.tif", coarse.repeat(2, 0).repeat(2, 1), nodata=0)
    assert ee.score(predictions, truth, resample=True).value("PixelAccuracy") == 1.0


def test_resampled_by_proportion() -> None:
    coarse = np.array([[1, 2], [3, 4]])
    fine = coarse.repeat(3, 0).repeat(2, 1)
    card = ee.score({"a": coarse}, {"a": fine}, resample=True)
    assert card.value("PixelAccuracy") == 1.0
    assert "'a'" in noted(card, "resampled", count=1).message
    back = ee.score({"a": fine}, {"a": coarse}, resample=True)
    assert back.value("PixelAccuracy") == 1.0
    alike = ee.score({"a": fine}, {"a": fine}, resample=True)
    assert not alike.findings


@pytest.mark.parametrize("size", [1 << 22, 30])
def test_rasters_that_do_not_overlap_are_named(tmp_path: Path, size: int) -> None:
    tune(window_pixels=size)
    pixels = np.ones((8, 12), np.uint8)
    rights = {"a": 500000, "b": 500006, "c": 700000, "d": 500012}  # metres; c and d are outside
    sides = [
        pl.DataFrame(
            {
                "datum_id": list(rights),
                "raster": [
                    write(
                        tmp_path / f"{name}{i}.tif",
                        pixels,
                        crs="EPSG:32632",
                        transform=Affine(1, 0, right if moved else 500000, 0, -1, 5000000),
                    )
                    for i, right in rights.items()
                ],
            }
        )
        for name, moved in (("p", True), ("g", False))
    ]
    with refused("grids_differ", count=3, rows=[1]):
        ee.score(*sides)
    card = ee.score(*sides, resample=True)
    assert "'b', 'c', 'd'" in noted(card, "resampled", count=3).message
    assert ": 'c', 'd'" in noted(card, "no_overlap", count=2).message
    assert card.value("PixelAccuracy") == (96 + 48) / (4 * 96)
    two = ee.score(sides[0][:2], sides[1][:2], resample=True)
    assert [one.code for one in two.findings] == ["resampled"]


def test_resampling_of_masks_is_reported_as_unread() -> None:
    side = pl.DataFrame(
        {"datum_id": [0], "label_value": ["a"], "raster": [[[1, 0], [0, 1]]]},
        schema_overrides={"raster": pl.List(pl.List(pl.UInt8))},
    )
    card = ee.score(side, side, resample=True)
    message = noted(card, "option_not_read").message
    assert "predictions" in message
    assert "ground truths" in message
    assert "resample=True" in card.findings[0].message


def test_no_warning_and_both_threads(
    tmp_path: Path, sides: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ee.score(*sides, threads=2)
        filters = list(warnings.filters)
    assert all("Georeferenced" not in str(one) for one in filters)
    assert pixels.count_maps([], _Serial(), resample=False)[0].count.size == 0


class _Serial:
    def over(self, offsets: Any, function: Any) -> list[Any]:
        return [function(0, offsets.size - 1)]

    def each(self, calls: Any) -> list[Any]:
        return [call() for call in calls]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"crs": "EPSG:32633"}, "reference systems differ"),
        ({"transform": Affine(1, 0, 600000, 0, -1, 5000000)}, "transforms"),
        ({"transform": Affine(2, 0, 500000, 0, -2, 5000000)}, "transforms"),
        ({"transform": Affine(1, 0, 500000.005, 0, -1, 5000000)}, "transforms"),
    ],
)
@pytest.mark.parametrize("resample", [None, True])
def test_rasters_of_one_label_on_other_grids(
    tmp_path: Path, place: dict[str, Any], message: str, resample: bool | None
) -> None:
    pixels = (TRUTH[0] == 1).astype(np.uint8)
    truth, predictions = (
        pl.DataFrame({"datum_id": [0], "label_value": ["a"], "raster": [path]})
        for path in (
            write(tmp_path / "g.tif", pixels, **EARTH),
            write(tmp_path / "p.tif", pixels, **{**EARTH, **place}),
        )
    )
    maps = [side.drop("label_value") for side in (predictions, truth)]
    for sides in ((predictions, truth), (maps[0], truth)):
        with refused("grids_differ", column="raster", count=1) as raised:
            ee.score(*sides, labels=["b", "a"], resample=resample)
        assert "predictions, row 0" in str(raised.value)
        assert message in str(raised.value)
    if resample is None:
        with refused("grids_differ", count=1):
            ee.score(*maps)
    picture = write(tmp_path / "p.png", pixels)
    ee.score(predictions.with_columns(raster=pl.lit(picture)), truth)
    assert ee.score(truth, truth).value("mIOU") == 1.0


def test_maps_with_masks_are_read_in_strips(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "g.tif", TRUTH[0], tiled=True, blockxsize=16, blockysize=16)
    by_lines = write(tmp_path / "l.tif", TRUTH[0], blockysize=3)
    whole = ee.score(FOUND[:1], TRUTH[:1], labels=NAMES, metrics=EVERY)
    read: list[int] = []
    usual = pixels.Map.read

    def counted(self: pixels.Map, window: pixels.Window) -> Any:
        read.append(window.size)
        return usual(self, window)

    monkeypatch.setattr(pixels.Map, "read", counted)
    for size, blocks in ((16 * 13, 1), (60, 6), (1, 6)):
        tune(strip_pixels=size)
        for file, pieces in ((by_lines, blocks), (path, 1)):
            read.clear()
            truth = pl.DataFrame({"datum_id": [0], "raster": [file]})
            same(ee.score(rows_of(FOUND[:1]), truth, labels=NAMES, metrics=EVERY), whole)
            assert len(read) == pieces
            assert sum(read) == TRUTH[0].size
    truth = TRUTH[:1]
    same(ee.score(rows_of(FOUND[:1]), truth, labels=NAMES, metrics=EVERY), whole)


@pytest.mark.parametrize("form", ["array", "file", "values"])
def test_memory_does_not_grow_with_the_labels_of_a_map(tmp_path: Path, form: str) -> None:
    side, many = 1500, 60
    pixels = (np.arange(side * side, dtype=np.int64) // (side * 25)).reshape(side, side)
    pixels = pixels.astype(np.uint8)
    names = [f"label {i}" for i in range(many)]
    square = [[[0, 0], [side, 0], [side, side], [0, side]]]
    predictions = pl.DataFrame({"datum_id": [0], "label_value": [names[3]], "polygon": [square]})
    size = pl.DataFrame({"datum_id": [0], "height": [side], "width": [side]})
    truth: Any = pixels[None]
    if form != "array":
        truth = pl.DataFrame({"datum_id": [0], "raster": [write(tmp_path / "g.tif", pixels)]})
    if form == "values":
        rows = pl.DataFrame({"label_value": names, "raster_value": range(many)})
        truth = rows.join(truth, how="cross")

    def score() -> ee.Scorecard:
        return ee.score(predictions, truth, labels=names, datums=size, metrics=["IOU", "mIOU"])

    score()  # kernels are compiled
    tracemalloc.start()
    card = score()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert card.value("IOU", label_value=names[3]) == 1 / many
    assert peak < 12 * pixels.size
