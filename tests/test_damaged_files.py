"""Damaged files: refused with a reason, never scored and never an internal error."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from segmentation.making import write

import evalengine as ee
from evalengine.geometry.grids import damage, opened

MAP = np.random.default_rng(0).integers(0, 9, (64, 64)).astype(np.uint8).repeat(4, 0).repeat(4, 1)


def without(data: bytes, at: int, n: int) -> bytes:
    return data[:at] + data[at + n :]


def with_more(data: bytes, at: int, n: int) -> bytes:
    return data[:at] + bytes(range(90, 90 + n)) + data[at:]


def flipped(data: bytes, at: int, n: int) -> bytes:
    return data[:at] + bytes([data[at] ^ (1 << n)]) + data[at + 1 :]


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


@pytest.mark.parametrize("harm", [without, with_more, flipped])
def test_label_maps_of_a_damaged_png(tmp_path: Path, harm: Callable[..., bytes]) -> None:
    write(tmp_path / "good.png", MAP)
    data = (tmp_path / "good.png").read_bytes()
    truth = pl.DataFrame({"datum_id": [1], "raster": [str(tmp_path / "good.png")]})
    bad = str(tmp_path / "bad.png")
    place = data.index(b"IDAT") + 4
    for n in range(1, 8):
        for at in np.linspace(place, len(data) - 20, 5).astype(int).tolist():
            Path(bad).write_bytes(harm(data, at, n))
            with pytest.raises(ee.InputError, match=r"row 0 \(datum_id=1\)"):
                ee.score(pl.DataFrame({"datum_id": [1], "raster": [bad]}), truth)


def test_masks_and_panoptic_maps_of_a_damaged_png(tmp_path: Path) -> None:
    mask = tmp_path / "mask.png"
    write(mask, (MAP > 4).astype(np.uint8))
    mask.write_bytes(without(mask.read_bytes(), mask.stat().st_size // 2, 3))
    masks = pl.DataFrame({"datum_id": [1], "label_value": ["a"], "raster": [str(mask)]})
    with pytest.raises(ee.InputError, match="row 0"):
        ee.score(masks.with_columns(score=0.5), masks, iou_type="segm")
    (tmp_path / "p").mkdir()
    write(tmp_path / "p" / "a.png", MAP)
    png = tmp_path / "p" / "a.png"
    file = tmp_path / "p.json"
    segments = [{"id": i, "category_id": 1} for i in range(1, 9)]
    annotations = [{"image_id": 1, "file_name": "a.png", "segments_info": segments}]
    categories = [{"id": 1, "name": "x", "isthing": 1}]
    images = [{"id": 1, "file_name": "a.png", "height": 256, "width": 256}]
    held = {"images": images, "annotations": annotations, "categories": categories}
    file.write_text(json.dumps(held))
    ee.check(file, file)
    png.write_bytes(without(png.read_bytes(), png.stat().st_size // 2, 3))
    with pytest.raises(ee.InputError, match=r"a\.png"):
        ee.score(file, file)


def test_what_a_png_may_have(tmp_path: Path) -> None:
    """A text chunk with a wrong CRC and bytes after the image harm no pixel."""
    write(tmp_path / "good.png", MAP)
    data = (tmp_path / "good.png").read_bytes()
    text = chunk(b"tEXt", b"a\0b")[:-4] + b"oops"
    path = tmp_path / "more.png"
    path.write_bytes(data[:33] + text + data[33:] + b"trailing")
    with opened(str(path)) as dataset:
        assert damage(dataset, str(path)) == ""
        assert np.array_equal(dataset.read(1), MAP)
