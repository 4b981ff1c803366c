"""Paths in a table open only plain files of plain formats, and contact no server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
import polars as pl
import pytest
from refusals import refused
from segmentation.making import write
from web_server import web_server

import evalengine as ee

PIXELS = np.ones((8, 9), np.uint8)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, list[Any]]]:
    """Return an address on this machine, and the list of its requests."""
    with web_server(tmp_path / "nothing") as made:
        yield made.at, made.asked


def virtual(source: str) -> str:
    """Write a virtual raster with one band, whose source is another file."""
    return (
        '<VRTDataset rasterXSize="9" rasterYSize="8"><VRTRasterBand dataType="Byte" band="1">'
        f"<SimpleSource><SourceFilename>{source}</SourceFilename><SourceBand>1</SourceBand>"
        "</SimpleSource></VRTRasterBand></VRTDataset>"
    )


def score(path: str, truth: str, form: str, **options: Any) -> ee.Scorecard:
    """Score a label map, or a mask of one object, with a good file on the other side."""
    if form == "map":
        sides = [pl.DataFrame({"datum_id": [0], "raster": [one]}) for one in (path, truth)]
        return ee.score(*sides, task="segmentation", **options)
    rows = {"datum_id": [0], "label_value": ["a"]}
    predictions = pl.DataFrame({**rows, "raster": [path], "score": [0.5]})
    return ee.score(
        predictions, pl.DataFrame({**rows, "raster": [truth]}), task="detection", **options
    )


@pytest.mark.parametrize("form", ["map", "object"])
@pytest.mark.parametrize(
    "path",
    [
        "http://{server}/a.tif",
        "/vsicurl/http://{server}/a.tif",
        "/vsizip/vsicurl/http://{server}/a.zip/a.tif",
        "s3://{server}/a.tif",
        "zip+http://{server}/a.zip!a.tif",
        "{virtual}",
        "<GDAL_WMS><Service name='TMS'><ServerUrl>http://{server}/a</ServerUrl></Service></GDAL_WMS>",
        "GTIFF_DIR:1:/vsicurl/http://{server}/a.tif",
        "{folder}/virtual.vrt",
        "{folder}/virtual.png",
        "{folder}/tiles.tif",
    ],
)
def test_nothing_is_fetched(
    path: str, form: str, server: tuple[str, list[Any]], tmp_path: Path
) -> None:
    address, seen = server
    truth = write(tmp_path / "truth.png", PIXELS)
    text = virtual(f"/vsicurl/http://{address}/a.tif")
    for name in ("virtual.vrt", "virtual.png"):
        (tmp_path / name).write_text(text)
    (tmp_path / "tiles.tif").write_text(f"<GDAL_WMS>http://{address}/a</GDAL_WMS>")
    given = path.format(server=address, virtual=text, folder=tmp_path)
    with pytest.raises(ee.InputError, match="raster"):
        score(given, truth, form)
    assert seen == []


@pytest.mark.parametrize("form", ["map", "object"])
@pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning")  # rasterio's
@pytest.mark.parametrize("where", ["tag", "beside"])
@pytest.mark.parametrize(
    "overview",
    [
        "/vsicurl/http://{server}/a.tif",
        "/vsicurl_streaming/http://{server}/a.tif",
        "/vsizip/vsicurl/http://{server}/a.zip/a.tif",
        "{virtual}",
        "<GDAL_WMS><Service name='TMS'><ServerUrl>http://{server}/a</ServerUrl></Service></GDAL_WMS>",
        "{folder}/other.vrt",
    ],
)
def test_external_overviews_are_not_opened(
    overview: str, where: str, form: str, server: tuple[str, list[Any]], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A plain file may name any file as its overview, in a tag or in a file next to it."""
    import rasterio
    from rasterio.transform import from_origin

    monkeypatch.setenv("GDAL_HTTP_TIMEOUT", "2")  # in case an overview is fetched
    address, seen = server
    placed = [{"crs": "EPSG:32633", "transform": from_origin(0, 64, n, n)} for n in (4.0, 1.0)]
    truth = write(tmp_path / "truth.tif", np.ones((16, 16), np.uint8), **placed[0])
    fine = {**placed[1], "driver": "GTiff", "count": 1, "dtype": "uint8"}
    other = write(tmp_path / "other.tif", np.full((32, 32), 7, np.uint8))
    (tmp_path / "other.vrt").write_text(virtual(other))
    named = overview.format(
        server=address, virtual=virtual(f"/vsicurl/http://{address}/a.tif"), folder=tmp_path
    )
    with rasterio.open(tmp_path / "fine.tif", "w", height=64, width=64, **fine) as file:
        file.write(np.ones((64, 64), np.uint8), 1)
        if where == "tag":
            file.update_tags(ns="OVERVIEWS", OVERVIEW_FILE=named)
    if where == "beside":
        (tmp_path / "fine.tif.aux.xml").write_text(
            '<PAMDataset><Metadata domain="OVERVIEWS"><MDI key="OVERVIEW_FILE">'
            f"{escape(named)}</MDI></Metadata></PAMDataset>"
        )
    path = str(tmp_path / "fine.tif")
    if form == "map":  # resampled onto the coarser grid, for which overviews are made
        result = score(path, truth, form, resample=True, metrics=["ConfusionMatrix"])
        assert result.confusion.select("actual", "predicted", "count").rows() == [(1, 1, 256)]
    else:
        assert score(path, path, form).value("mAP", iou_threshold=0.5) == pytest.approx(1)
    assert seen == []


@pytest.mark.parametrize("form", ["map", "object"])
def test_no_other_file_is_read_as_pixels(form: str, tmp_path: Path) -> None:
    truth = write(tmp_path / "truth.png", PIXELS)
    (tmp_path / "other.png").write_text(virtual(truth))
    with refused("raster_unreadable", rows=[0]):
        score(str(tmp_path / "other.png"), truth, form)


@pytest.mark.parametrize("form", ["map", "object"])
def test_addresses_are_opened_if_the_user_trusts_the_table(
    form: str, server: tuple[str, list[Any]], tmp_path: Path
) -> None:
    address, seen = server
    truth = write(tmp_path / "truth.png", PIXELS)
    with refused("raster_unreadable", ee.InputError):
        score(f"/vsicurl/http://{address}/a.tif", truth, form, remote_rasters=True)
    assert seen


@pytest.mark.parametrize("form", ["map", "object"])
def test_files_must_be_inside_the_root(form: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    truth = write(tmp_path / "in" / "truth.png", PIXELS)
    outside = write(tmp_path / "outside.png", PIXELS)
    assert score(truth, truth, form, raster_root=str(tmp_path / "in")).metrics.height
    with refused("path_refused", count=1):
        score(outside, truth, form, raster_root=str(tmp_path / "in"))
