"""Raster files: values, bands, strips, georeferences, and files that cannot be read."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import rasterio
from affine import Affine
from geometry.pixels import pixels
from refusals import refused

from evalengine.executors.pools import Threads
from evalengine.geometry import rasters
from evalengine.geometry import rasters as grids
from evalengine.geometry.rasters import RasterFiles


def from_origin(west: float, north: float, width: float, height: float) -> Affine:
    return Affine(width, 0.0, west, 0.0, -height, north)


def write(path: Path, bands: list[Any], **more: Any) -> str:
    """Write a raster with the given bands."""
    h, w = bands[0].shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        with rasterio.open(
            path, "w", height=h, width=w, count=len(bands), dtype=bands[0].dtype, **more
        ) as file:
            for i, band in enumerate(bands):
                file.write(band, i + 1)
    return str(path)


@pytest.fixture
def labels() -> Any:
    return np.random.default_rng(4).integers(0, 4, (50, 70)).astype(np.uint8)


def read(paths: list[str | None], *more: Any, **options: Any) -> Any:
    return rasters.read_raster_masks(
        pl.Series("raster", paths, pl.String), *more, side="predictions", **options
    )


@pytest.mark.parametrize("rows", [None, 1, 7, 49])
def test_values_and_bands(tmp_path: Path, labels: Any, rows: int | None, monkeypatch: Any) -> None:
    if rows:
        usual = grids.strips
        monkeypatch.setattr(
            rasters, "strips", lambda file, band: usual(file, band, rows * file.width)
        )
    png = write(tmp_path / "a.png", [labels], driver="PNG")
    tif = write(tmp_path / "b.tif", [labels, labels[::-1]], driver="GTiff", nodata=3, blockysize=1)
    tiled = {"driver": "GTiff", "tiled": True, "blockxsize": 16, "blockysize": 16}
    wide = write(tmp_path / "c.tif", [labels.astype(np.float32) / 2], **tiled)
    paths = [png, tif, tif, png, wide, tif]
    band = np.array([1, 2, 1, 1, 1, 1])
    value = np.array([2, 1, np.nan, np.nan, 1.5, 3])
    want = [labels == 2, labels[::-1] == 1, (labels != 0) & (labels != 3), labels != 0,
            labels == 3, labels == 3]  # fmt: skip
    with ThreadPoolExecutor(3) as pool:
        for over in (None, Threads(3, pool).over):
            result = read(paths, band, value, over=over)
            assert all((a == b).all() for a, b in zip(pixels(result), want, strict=True))


def test_many_values_of_a_file_are_read_once(tmp_path: Path, labels: Any, monkeypatch: Any) -> None:
    path = write(tmp_path / "a.tif", [labels], driver="GTiff", nodata=2)
    looked_at: list[int] = []
    by_value, scan = rasters.ValueRuns.add, rasters.scan

    def add(self: Any, first: int, strip: Any) -> None:
        looked_at.append(strip.size)
        by_value(self, first, strip)

    def scanned(strip: Any, offset: Any) -> Any:
        looked_at.append(strip.size)
        return scan(strip, offset)

    monkeypatch.setattr(rasters.ValueRuns, "add", add)
    monkeypatch.setattr(rasters, "scan", scanned)
    value = np.array([*range(20), *range(20)], np.float64)[::-1]
    result = read([path] * 40, None, value)
    assert looked_at == [labels.size]
    assert all((a == (labels == v)).all() for a, v in zip(pixels(result), value, strict=True))
    looked_at.clear()
    value[::2] = np.nan
    result = read([path] * 40, None, value)
    assert looked_at == [labels.size] * 2
    shown = (labels != 0) & (labels != 2)
    want = [shown if np.isnan(v) else labels == v for v in value]
    assert all((a == b).all() for a, b in zip(pixels(result), want, strict=True))


def test_strips_cover_every_row_once(tmp_path: Path, labels: Any) -> None:
    tiled = {"driver": "GTiff", "tiled": True, "blockxsize": 16, "blockysize": 16}
    path = write(tmp_path / "a.tif", [labels], **tiled)
    with grids.opened(path) as file:
        result = list(grids.strips(file, 1, 70 * 20))
    assert [first for first, _ in result] == [0, 16, 32, 48]  # whole blocks
    assert (np.concatenate([part for _, part in result]) == labels).all()


def test_grids(tmp_path: Path, labels: Any) -> None:
    def grid(name: str, pixels: Any = labels, **more: Any) -> grids.Grid:
        path = write(tmp_path / name, [pixels], driver="GTiff", **more)
        return rasters.grids(pl.Series("raster", [path]), side="predictions")[0]

    here = from_origin(500_000, 5_000_000, 0.5, 0.5)
    one = grid("one.tif", transform=here, crs="EPSG:32633")
    assert (one.height, one.width, one.bands) == (50, 70, 1)
    assert one.transform == (0.5, 0.0, 500_000.0, 0.0, -0.5, 5_000_000.0)
    assert one.differs(one) == ""
    shifted = from_origin(500_000.0001, 5_000_000, 0.5, 0.5)
    assert one.differs(grid("near.tif", transform=shifted, crs="EPSG:32633")) == ""
    moved = from_origin(500_000.5, 5_000_000, 0.5, 0.5)
    assert "transforms" in one.differs(grid("moved.tif", transform=moved, crs="EPSG:32633"))
    finer = from_origin(500_000, 5_000_000, 0.499, 0.5)
    assert "transforms" in one.differs(grid("finer.tif", transform=finer, crs="EPSG:32633"))
    assert "reference systems" in one.differs(grid("other.tif", transform=here, crs="EPSG:32634"))
    small = grid("small.tif", labels[:-1], transform=here, crs="EPSG:32633")
    assert one.differs(small).startswith("50 x 70 pixels against 49")
    plain = grid("plain.tif")
    assert (plain.transform, plain.crs) == ((1, 0, 0, 0, 1, 0), "")
    assert not plain.placed
    assert one.differs(plain) == plain.differs(one) == ""  # a plain picture matches any place
    assert plain.describe() == "50 x 70"
    # The tolerance is a thousandth of each pixel's width and of its height, very different here.
    tall = grid("tall.tif", transform=from_origin(500_000, 5_000_000, 0.5, 1000), crs="EPSG:32633")
    aside = from_origin(500_000.4, 5_000_000, 0.5, 1000)
    assert "transforms" in tall.differs(grid("aside.tif", transform=aside, crs="EPSG:32633"))
    below = from_origin(500_000, 5_000_000.4, 0.5, 1000)
    assert tall.differs(grid("below.tif", transform=below, crs="EPSG:32633")) == ""


def test_paths_are_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, here, neighbour = (tmp_path / name for name in ("home", "here", "beside"))
    for folder in (home, here, neighbour):
        folder.mkdir()
        (folder / "all").touch()
    (home / "a").touch()
    (neighbour / "b").touch()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    files = RasterFiles(str(neighbour))
    assert files.find("~/a") == str(home / "a")
    assert files.find("all") == "all"
    assert files.find("b") == str(neighbour / "b")
    assert RasterFiles().find("b") is None
    assert files.find("~/b") is None
    for remote in ("s3://bucket/b", "/vsizip/x.zip/b"):
        assert files.find(remote) is None
        assert "remote_rasters" in str(files.refusal(remote))
        trusted = RasterFiles(str(neighbour), remote=True)
        assert (trusted.find(remote), trusted.refusal(remote)) == (remote, None)
        assert RasterFiles(root=str(here), remote=True).refusal(remote)


def test_files_outside_of_the_root_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, outside = tmp_path / "in", tmp_path / "in-another"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "a").touch()
    (inside / "link").symlink_to(outside / "a")
    files = RasterFiles(root=str(inside))
    assert files.refusal(str(inside / "a")) is None
    assert files.refusal(str(inside / "missing")) is None  # missing: reported as such
    (inside / "folder").symlink_to(outside)
    (inside / "again").symlink_to(inside / "link")
    out = ["link", "again", "folder/a", "../in-another/a", "folder/../in-another/a"]
    for path in (outside / "a", *(inside / name for name in out)):
        assert "leads out of" in str(files.refusal(str(path)))
    in_folder = RasterFiles(str(inside), str(inside))  # resolved like the folder of the table
    assert in_folder.refusal("a") is None
    assert in_folder.find("folder/a")
    assert all("leads out of" in str(in_folder.refusal(name)) for name in out)
    (tmp_path / "root").symlink_to(inside)  # a root that is a link is resolved
    assert RasterFiles(root=str(tmp_path / "root")).refusal(str(inside / "a")) is None
    monkeypatch.setenv("HOME", str(tmp_path))
    assert RasterFiles(root="~/in").refusal(str(inside / "a")) is None
    assert RasterFiles(root="~/in").refusal(str(outside / "a")) is not None


def test_sizes(tmp_path: Path, labels: Any) -> None:
    names = [write(tmp_path / "a.png", [labels]), write(tmp_path / "b.png", [labels.T.copy()])]
    column = pl.Series("raster", [names[1], names[0], names[1]])
    height, width = rasters.size_of(column, side="predictions")
    assert (height.tolist(), width.tolist()) == ([70, 50, 70], [50, 70, 50])


def test_unreadable_files(tmp_path: Path, labels: Any) -> None:
    good = write(tmp_path / "a.png", [labels])
    (tmp_path / "bad.tif").write_text("no raster")
    with refused("file_missing", count=1, rows=[1]):
        read([good, "no.tif"])
    with refused("null_values", count=1, rows=[0]):
        read([None, good])
    with refused("raster_unreadable", rows=[8]) as error:
        read([good, str(tmp_path / "bad.tif")], rows=np.array([3, 8]))
    assert "bad.tif" in str(error.value)
    with refused("band_missing", count=1, rows=[2], bands=1):
        read([good, good, good], np.array([1, 1, 2]))


def test_empty_and_full_rasters(tmp_path: Path) -> None:
    shape = (3, 4)
    paths = [
        write(tmp_path / "none.png", [np.zeros(shape, np.uint8)]),
        write(tmp_path / "all.png", [np.ones(shape, np.uint8)]),
    ]
    assert read(paths).area.tolist() == [0, 12]
    assert len(read([])) == 0


def test_a_truncated_picture(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 200, (64, 64)).astype(np.uint8)
    path = write(tmp_path / "short.png", [noise], driver="PNG")
    data = Path(path).read_bytes()
    Path(path).write_bytes(data[: len(data) // 2])
    with refused("raster_unreadable", rows=[0]) as error:
        read([path])
    assert "short.png' breaks" in str(error.value)


def test_pictures_in_colours(tmp_path: Path, labels: Any) -> None:
    """Pictures in colours need a band; those with a palette, a band or a value."""
    colours = write(tmp_path / "rgb.png", [labels, labels // 2, labels], driver="PNG")
    placed = from_origin(5, 6, 1, 1)
    palette = write(
        tmp_path / "p.tif", [labels], driver="GTiff", photometric="palette", transform=placed
    )
    with rasterio.open(palette, "r+") as file:
        file.write_colormap(1, {i: (i, 0, 0, 255) for i in range(256)})
    none, two = np.array([np.nan]), np.array([2.0])
    with refused("band_unnamed", count=1, bands=3):
        read([colours])
    with refused("band_unnamed", count=1, bands=3):
        read([colours], none, two)
    with refused("raster_value_unnamed", count=1):
        read([palette])
    for result, want in (
        (read([colours], two), labels // 2 != 0),
        (read([palette], none, two), labels == 2),
        (read([palette], np.array([1.0])), labels != 0),
    ):
        assert (pixels(result)[0] == want).all()


def test_grids_differ_by_pixels_of_each_axis() -> None:
    """Pixels are much longer than high, so the tolerances of the axes differ."""
    plain = grids.Grid(10, 10, (1.0, 0.0, 0.0, 0.0, 1.0, 0.0), "", 1)
    flat = grids.Grid(10, 10, (1000.0, 0.0, 5.0, 0.0, -0.1, 7.0), "", 1)
    lower = grids.Grid(10, 10, (1000.0, 0.0, 5.0, 0.0, -0.1, 6.9), "", 1)
    same = grids.Grid(10, 10, (1000.0, 0.0, 5.5, 0.0, -0.1, 7.0), "", 1)
    assert flat.differs(lower).startswith("transforms")
    assert not flat.differs(same)
    assert not plain.placed
    assert not plain.differs(flat)
    assert plain.differs(grids.Grid(10, 9, plain.transform, "", 1))
