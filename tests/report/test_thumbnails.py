"""Thumbnails: lookup of files, formats, size limits, positions of boxes."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from rasterio.io import MemoryFile

from evalengine.geometry.rasters import silenced
from evalengine.report import contents
from evalengine.report.contents import DASHES, EACH, TOTAL_BYTES, Pictures, Sample, pictures
from evalengine.schemas.errors import InputError
from evalengine.tasks.contents import Box, Boxes, PixelsWrong


def write(
    path: Path, shape: tuple[int, int] = (60, 80), driver: str = "PNG", **more: Any
) -> np.ndarray[Any, Any]:
    """Write an image of random pixels."""
    dtype = more.pop("dtype", "uint8")
    bands = more.pop("bands", 3)
    palette = more.pop("palette", None)
    most = 2 if palette else np.iinfo(dtype).max + 1
    pixels = np.random.default_rng(0).integers(0, most, (bands, *shape)).astype(dtype)
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        silenced(),
        rasterio.open(
            path, "w", driver=driver, height=shape[0], width=shape[1], count=bands, dtype=dtype,
            **more,
        ) as file,
    ):  # fmt: skip
        file.write(pixels)
        if palette:
            file.write_colormap(1, palette)
    return pixels


def decoded(uri: str) -> np.ndarray[Any, Any]:
    assert uri.startswith("data:image/jpeg;base64,")
    data = base64.b64decode(uri.split(",", 1)[1])
    with silenced(), MemoryFile(data) as memory, memory.open() as file:
        pixels: np.ndarray[Any, Any] = file.read()
    return pixels


def one(folder: Path, **fields: Any) -> Pictures:
    return pictures([Sample(**{"datum_id": 7, **fields})], str(folder))


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("7.png", {}),
        ("below/deep/7.png", {}),
        ("000000000007.png", {}),
        ("a.png", {"datum_id": "a.png"}),
        ("a.png", {"datum_id": "a"}),
        ("a.png", {"datum_id": "train/a.jpg"}),
        ("x/a.png", {"file_name": "x/a.png"}),
        ("a.png", {"file_name": "/elsewhere/a.png"}),
        ("a.png", {"file_name": "../train/a.png"}),
        ("a.png", {"file_name": "http://example.invalid/train/a.png"}),
        ("a.png", {"file_name": "a.tif"}),
        ('it\'s "a" <b>.png', {"datum_id": 'it\'s "a" <b>'}),
        ("a.v2.png", {"datum_id": "a.v2"}),
    ],
)
def test_files_are_found_by_name_id_and_stem(
    tmp_path: Path, path: str, fields: dict[str, Any]
) -> None:
    write(tmp_path / path)
    write(tmp_path / "other.png")
    made = one(tmp_path, **fields)
    assert made.notes == ()
    assert made.pictures[0] is not None
    assert made.pictures[0].file == path


@pytest.mark.parametrize(
    "name",
    [
        "../secret.png",
        "..\\secret.png",
        "x/../../secret.png",
        "/vsicurl/http://example.invalid/secret.png",
        "http://example.invalid/secret.png",
        "//host/share/secret.png",
        "link.png",
        "linked/secret.png",
        "secret",
        "a\0b",
        "",
        ".",
    ],
)
def test_files_outside_the_folder_are_not_opened(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(contents, "_thumbnail", lambda path, most: opened.append(path))
    write(tmp_path / "secret.png")
    images = tmp_path / "images"
    images.mkdir()
    (images / "link.png").symlink_to(tmp_path / "secret.png")
    (images / "linked").symlink_to(tmp_path)
    (images / "secret.png").symlink_to(tmp_path / "secret.png")
    monkeypatch.chdir(tmp_path)
    for fields in ({"file_name": name}, {"datum_id": name}):
        made = one(images, **{"datum_id": "none", **fields})
        assert made.pictures == (None,)
        assert made.notes[0].startswith("no image of 1 datum")
    assert opened == []


def test_a_link_within_the_folder_is_followed(tmp_path: Path) -> None:
    write(tmp_path / "real" / "b.png")
    (tmp_path / "a.png").symlink_to(tmp_path / "real" / "b.png")
    made = one(tmp_path, datum_id="a")
    assert made.pictures[0] is not None
    assert made.pictures[0].file == os.path.join("real", "b.png")


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((600, 800), (240, 320)),
        ((60, 80), (60, 80)),
        ((4000, 100), (640, 16)),
        ((1, 5000), (1, 320)),
    ],
)
def test_size(tmp_path: Path, shape: tuple[int, int], size: tuple[int, int]) -> None:
    write(tmp_path / "7.png", shape)
    picture = one(tmp_path).pictures[0]
    assert picture is not None
    assert (picture.height, picture.width) == size
    assert decoded(picture.uri).shape == (3, *size)


@pytest.mark.parametrize(
    ("bands", "dtype", "driver", "shown"),
    [(1, "uint8", "PNG", 1), (4, "uint8", "PNG", 3), (2, "uint8", "PNG", 1),
     (1, "uint16", "PNG", 1), (5, "uint16", "GTiff", 3), (3, "uint8", "JPEG", 3)],
)  # fmt: skip
def test_kinds_of_images(tmp_path: Path, bands: int, dtype: str, driver: str, shown: int) -> None:
    write(tmp_path / "7.tif", driver=driver, bands=bands, dtype=dtype)
    made = one(tmp_path)
    assert made.notes == ()
    assert made.pictures[0] is not None
    assert decoded(made.pictures[0].uri).shape == (shown, 60, 80)


def test_palettes_have_their_colours(tmp_path: Path) -> None:
    palette = {0: (250, 0, 0, 255), 1: (250, 0, 0, 255)}
    write(tmp_path / "7.png", bands=1, palette=palette)
    picture = one(tmp_path).pictures[0]
    assert picture is not None
    red, green, blue = decoded(picture.uri).astype(int)
    assert red.min() > 240
    assert max(green.max(), blue.max()) < 10


def test_files_that_are_no_images_are_noted(tmp_path: Path) -> None:
    (tmp_path / "7.png").write_bytes(b"<svg onload='x'/>")
    (tmp_path / "8.jpg").write_bytes(b"")
    write(tmp_path / "9.png")
    whole = (tmp_path / "9.png").read_bytes()
    (tmp_path / "9.png").write_bytes(whole[: len(whole) // 2])
    write(tmp_path / "10.png")
    made = pictures([Sample(datum_id=i) for i in (7, 8, 9, 10, 11)], str(tmp_path))
    assert [picture is not None for picture in made.pictures] == [False, False, False, True, False]
    missing, unread = made.notes
    assert missing.startswith("no image of 1 datum")
    assert missing.endswith("'11'.")
    assert unread.startswith("3 images")
    assert unread.endswith("'7.png'.")


def test_virtual_rasters_are_not_opened(tmp_path: Path) -> None:
    write(tmp_path / "secret.tif", driver="GTiff")
    (tmp_path / "7.tif").write_text(
        '<VRTDataset rasterXSize="80" rasterYSize="60"><VRTRasterBand dataType="Byte" band="1">'
        f"<SimpleSource><SourceFilename>{tmp_path}/secret.tif</SourceFilename><SourceBand>1"
        "</SourceBand></SimpleSource></VRTRasterBand></VRTDataset>"
    )
    (note,) = one(tmp_path).notes
    assert note.startswith("1 image cannot")
    assert note.endswith("'7.tif'.")


def test_images_stay_within_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(8):
        write(tmp_path / f"{i}.png", (300, 320))
    datums = [Sample(datum_id=i) for i in range(8)]
    plain = pictures(datums, str(tmp_path))
    sizes = [len(picture.uri) for picture in plain.pictures if picture]
    assert len(sizes) == 8
    assert max(sizes) <= EACH
    assert sum(sizes) <= TOTAL_BYTES
    monkeypatch.setattr(contents, "TOTAL_BYTES", 80_000)
    small = pictures(datums, str(tmp_path))
    sizes = [len(picture.uri) for picture in small.pictures if picture]
    assert len(sizes) == 8
    assert sum(sizes) <= 80_000
    assert "8 thumbnails smaller" in small.notes[0]
    monkeypatch.setattr(contents, "TOTAL_BYTES", 800)
    none = pictures(datums, str(tmp_path))
    assert none.pictures == (None,) * 8
    (note,) = none.notes
    assert note.startswith("8 images without")


def test_boxes_are_scaled_to_the_thumbnail(tmp_path: Path) -> None:
    write(tmp_path / "7.png", (600, 800))
    boxes = [
        Box(label="<b>", outcome="tp", score=0.5, corners=(80.0, 60.0, 400.0, 300.0)),
        Box(label="c", outcome="missed", score=None, corners=(-50.0, 0.0, 4000.0, 30.0)),
    ]
    content = Boxes(boxes=tuple(boxes), left_out=0, iou_threshold=0.5, score_threshold=0.1)
    marks = one(tmp_path, content=content).pictures[0].marks  # type: ignore[union-attr]
    assert [(m.x, m.y, m.width, m.height) for m in marks] == [(32, 24, 128, 96), (0, 0, 320, 12)]
    assert [(m.label, m.outcome, m.score) for m in marks] == [
        ("<b>", "tp", 0.5),
        ("c", "missed", None),
    ]
    # The boxes belong to an image twice as large as the file.
    marks = one(tmp_path, content=content, width=1600, height=1200).pictures[0].marks  # type: ignore[union-attr]
    assert (marks[0].x, marks[0].y, marks[0].width, marks[0].height) == (16, 12, 64, 48)
    assert len(set(DASHES.values())) == len(DASHES)


def test_outlines_are_scaled_to_the_thumbnail(tmp_path: Path) -> None:
    write(tmp_path / "7.png", (600, 800))
    rings = (((80.0, 60.0), (160.0, 60.0), (160.0, 600.0), (80.0, 60.0)),)
    small = (((32.0, 24.0), (64.0, 24.0), (64.0, 240.0), (32.0, 24.0)),)
    box = Box(label="a", outcome="fp", score=0.5, corners=(80.0, 60.0, 160.0, 600.0), rings=rings)
    content = Boxes(boxes=(box,), left_out=0, iou_threshold=0.5, score_threshold=0.1)
    picture = one(tmp_path, content=content).pictures[0]
    assert picture is not None
    assert picture.marks[0].rings == small
    wrong = PixelsWrong(labels=(), left_out=0, rings=rings, size=(600, 800))
    picture = one(tmp_path, content=wrong).pictures[0]
    assert picture is not None
    assert [(mark.outcome, mark.rings) for mark in picture.marks] == [("wrong", small)]


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a folder"):
        pictures([], str(tmp_path / "none"))
