"""Label maps without a table: a folder, a glob or a list of images."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from refusals import noted, refused
from segmentation.making import write

import evalengine as ee
from evalengine.ingest.sources.tables import open_source


def written(folder: Path, maps: dict[str, np.ndarray]) -> Path:
    folder.mkdir()
    for name, pixels in maps.items():
        write(folder / name, pixels)
    return folder


def test_one_datum_per_file_named_by_its_stem(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    truth = {f"im{i}.png": rng.integers(0, 3, (8, 9)).astype(np.uint8) for i in range(3)}
    found = {
        name: np.where(rng.random((8, 9)) < 0.2, 0, p).astype(np.uint8) for name, p in truth.items()
    }
    ours, theirs = written(tmp_path / "ours", found), written(tmp_path / "theirs", truth)
    (theirs / "readme.md").write_text("maps")
    card = ee.score(ours, theirs)
    arrays = ee.score([*found.values()], [*truth.values()], task="segmentation")
    assert card.value("mIOU") == arrays.value("mIOU")
    assert card.per_datum["datum_id"].unique().sort().to_list() == ["im0", "im1", "im2"]
    assert ee.score(ours / "*.png", theirs / "*.png").value("mIOU") == card.value("mIOU")
    assert ee.check(ours, theirs).rows == {"predictions": 3, "ground_truths": 3}


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    pixels = np.zeros((4, 4), np.uint8)
    folder = written(tmp_path / "maps", {"a.png": pixels, "a.tif": pixels})
    other = written(tmp_path / "others", {"a.png": pixels})
    with refused("repeated_values", column="datum_id", value="a") as error:
        ee.score(folder, other)
    assert f"{folder / 'a.png'} and {folder / 'a.tif'}" in str(error.value)


def test_images_next_to_tables_are_not_read(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", {"chart.png": np.zeros((4, 4), np.uint8)})
    table = pl.DataFrame({"actual": [0, 1], "score": [0.1, 0.9]})
    table.write_parquet(folder / "part.parquet")
    assert ee.score(folder).value("ROCAUC") == 1.0


def test_images_one_folder_down(tmp_path: Path) -> None:
    (tmp_path / "maps").mkdir()
    written(tmp_path / "maps" / "city", {"a.png": np.zeros((4, 4), np.uint8)})
    for given in (tmp_path / "maps", tmp_path / "maps" / "**" / "*.png"):
        assert ee.score(given, given).value("mIOU") == 1.0


def _maps(folder: Path, n: int = 3) -> Path:
    folder.mkdir(parents=True)
    for i in range(n):
        write(folder / f"{i}.png", np.random.default_rng(i).integers(0, 4, (8, 9), np.uint8))
    return folder


@pytest.mark.parametrize(
    ("name", "text"),
    [("readme.txt", "hello"), ("README.txt", "Maps by hand\n"), ("metrics.json", '{"mIoU": 0.3}')],
)
@pytest.mark.parametrize("below", [False, True])
def test_a_text_next_to_label_maps_is_not_a_table(
    tmp_path: Path, name: str, text: str, below: bool
) -> None:
    ours, theirs = _maps(tmp_path / "p"), tmp_path / "t"
    _maps(theirs / "city" if below else theirs)
    (theirs / name).write_text(text)
    card = ee.score(ours, theirs, task="segmentation", metrics=["mIOU"])
    assert card.value("mIOU") == 1.0
    if not below:
        noted(card, "files_unread", files=[name])


@pytest.mark.parametrize(
    ("name", "text"),
    [("maps.csv", "id,name\n1,a\n"), ("y.csv", "y_pred\n1\n"), ("a.csv", "a,b\n1,2\n")],
)
def test_a_table_next_to_pictures_is_read(tmp_path: Path, name: str, text: str) -> None:
    folder = _maps(tmp_path / "p")
    (folder / name).write_text(text)
    assert open_source(folder).format == "csv"


@pytest.mark.parametrize(
    "name", ["{}.jpg", "photo_{}.jpg", "{}_sat.jpeg", "img-{}-left.JPG", "img{}.jpg", "sheet.jpg"]
)
def test_photographs_next_to_maps_give_no_note(tmp_path: Path, name: str) -> None:
    ours, theirs = _maps(tmp_path / "p", 4), _maps(tmp_path / "t", 4)
    for i in range(5):
        (theirs / name.format(i)).write_bytes(b"a photograph")
    card = ee.score(ours, theirs, task="segmentation", metrics=["mIOU"])
    assert not [one for one in card.findings if one.code == "files_unread"]


def test_maps_in_jpeg_files_are_noted(tmp_path: Path) -> None:
    ours, theirs = _maps(tmp_path / "p", 4), _maps(tmp_path / "t", 4)
    for folder in (ours, theirs):
        for i in range(4):
            os.rename(folder / f"{i}.png", folder / f"map_{i}.{'png' if i else 'jpg'}")
    card = ee.score(ours, theirs, task="segmentation", metrics=["mIOU"])
    notes = [one for one in card.findings if one.code == "files_unread"]
    assert [(one.count, one.facts["files"]) for one in notes] == [(1, ["map_0.jpg"])] * 2


def test_an_empty_picture_is_named(tmp_path: Path) -> None:
    ours, theirs = _maps(tmp_path / "p"), _maps(tmp_path / "t")
    (ours / "4.png").write_bytes(b"")
    with pytest.raises(ee.InputError, match="the label map file is empty"):
        ee.score(ours, theirs, task="segmentation")
