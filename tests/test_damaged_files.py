"""Damaged files are refused with a reason, never scored, and cause no internal error."""

from __future__ import annotations

import gzip
import json
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from refusals import refused
from segmentation.making import write

import evalengine as ee
from evalengine.cli import main
from evalengine.geometry.rasters import damage, opened
from evalengine.tallies import stored

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


def bmp(pixels: bytes, width: int, height: int) -> bytes:
    """An uncompressed BMP of one byte a pixel; ``width`` is a multiple of 4."""
    palette = b"".join(bytes([i, i, i, 0]) for i in range(256))
    first = 54 + len(palette)
    head = struct.pack("<2sIHHI", b"BM", first + len(pixels), 0, 0, first)
    return head + struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 0, 0, 0, 0, 256, 0) + palette


@pytest.mark.parametrize("kind", ["bmp", "pgm", "pgm of 16 bits"])
@pytest.mark.parametrize("more", [1, 3, 7])
def test_bytes_added_to_maps_without_checksums(tmp_path: Path, kind: str, more: int) -> None:
    wide = kind.endswith("bits")
    pixels = (MAP.astype(">u2") if wide else MAP).tobytes()
    head = b"P5\n# comment\n256 256\n%d\n" % (65535 if wide else 255)
    data = (bmp(pixels, 256, 256) if kind == "bmp" else head) + pixels
    for side in "pg":
        (tmp_path / side).mkdir()
        (tmp_path / side / f"a.{kind[:3]}").write_bytes(data)
    harmless = [data] if kind == "bmp" else [data, data + b"\n", data + data]
    for fair in harmless:
        (tmp_path / "p" / f"a.{kind[:3]}").write_bytes(fair)
        card = ee.score(tmp_path / "p", tmp_path / "g", task="segmentation")
        assert card.value("mIOU") == 1.0
    harmed = with_more(data, len(data) // 2, more)
    (tmp_path / "p" / f"a.{kind[:3]}").write_bytes(harmed)
    with refused("raster_unreadable", ee.InputError, match="bytes were added"):
        ee.score(tmp_path / "p", tmp_path / "g", task="segmentation")


@pytest.mark.parametrize("lost", [4, 30, 200])
def test_a_stream_that_ends_early_under_valid_checksums(tmp_path: Path, lost: int) -> None:
    write(tmp_path / "good.png", MAP)
    data = (tmp_path / "good.png").read_bytes()
    place, parts = data.index(b"IDAT") - 4, b""
    at = place
    while (kind := data[at + 4 : at + 8]) != b"IEND":
        size = int.from_bytes(data[at : at + 4], "big")
        parts += data[at + 8 : at + 8 + size] if kind == b"IDAT" else b""
        at += 12 + size
    cut = tmp_path / "cut.png"
    cut.write_bytes(data[:place] + chunk(b"IDAT", parts[:-lost]) + chunk(b"IEND", b""))
    sides = (
        {"datum_id": [1], "raster": [str(tmp_path / name)]} for name in ("cut.png", "good.png")
    )
    with refused("raster_unreadable", rows=[0]):
        ee.score(*map(pl.DataFrame, sides))


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


def test_harmless_faults_of_a_png(tmp_path: Path) -> None:
    """A text chunk with a wrong CRC and bytes after the image change no pixel."""
    write(tmp_path / "good.png", MAP)
    data = (tmp_path / "good.png").read_bytes()
    text = chunk(b"tEXt", b"a\0b")[:-4] + b"oops"
    path = tmp_path / "more.png"
    path.write_bytes(data[:33] + text + data[33:] + b"trailing")
    with opened(str(path)) as dataset:
        assert damage(dataset, str(path)) == ""
        assert np.array_equal(dataset.read(1), MAP)


BOX = "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>5</xmax><ymax>5</ymax></bndbox>"
VOC = (
    "<annotation><size><width>{}</width><height>9</height></size><object><name>a</name>{}"
    f"{BOX}</object></annotation>"
)
CVAT = '<annotations><image id="0" name="a" width="{}" height="9">{}</image></annotations>'
OPEN = (
    "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,"
    "IsDepiction,IsInside\na,x,b,1,0.1,0.5,0.1,0.5,{},0,{},0,0\n"
)
MASK = '<mask label="a" {}></mask>'
NUMBERS = [
    *(
        ("a.xml", VOC.format(width, ""))
        for width in ("1e20", "1e300", "nan", "9223372036854775808")
    ),
    *(("a.xml", VOC.format(9, f"<{tag}>1e30</{tag}>")) for tag in ("difficult", "occluded")),
    *(("a.csv", OPEN.format(flag, 0)) for flag in ("inf", "-inf", "nan", "1e20")),
    *(("a.csv", OPEN.format(0, flag)) for flag in ("inf", "nan", "1e300")),
    ("a.xml", CVAT.format("1e30", '<box label="a" xtl="1" ytl="1" xbr="5" ybr="5"/>')),
    ("a.xml", CVAT.format(9, MASK.format('top="1e20" left="0" width="2" height="2" rle="1,3"'))),
    ("a.xml", CVAT.format(9, MASK.format('top="0" left="0" width="-2" height="-2" rle="1,3"'))),
    ("a.xml", CVAT.format(9, MASK.format('top="0" left="0" width="1e9" height="1e9" rle="1e18"'))),
]


@pytest.mark.parametrize(("name", "text"), NUMBERS)
def test_numbers_that_fit_no_dtype(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ee.ReadError, match=name):
        ee.convert(tmp_path / name, out=tmp_path / "out")


def test_a_mask_over_the_edge(tmp_path: Path) -> None:
    """Only pixels within the image count."""
    mask = MASK.format('top="-1" left="-1" width="3" height="3" rle="0,9"')
    (tmp_path / "a.xml").write_text(CVAT.format(9, mask))
    ee.convert(tmp_path / "a.xml", out=tmp_path / "out")
    row = pl.read_parquet(tmp_path / "out" / "groundtruths.parquet").row(0, named=True)
    assert row["mask"]["counts"] == [0, 2, 7, 2, 70]
    assert (row["xmin"], row["ymin"], row["xmax"], row["ymax"]) == (0, 0, 2, 2)


@pytest.mark.parametrize("width", ["oops", "inf", "-5"])
def test_invalid_sizes_of_images(tmp_path: Path, width: str) -> None:
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "a.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    (tmp_path / "sizes.csv").write_text(f"datum_id,width,height\na,{width},9\nb,9,9\n")
    with refused("not_a_size", ee.InputError, column="width", rows=[0]):
        ee.convert(tmp_path / "labels", out=tmp_path / "o", datums=tmp_path / "sizes.csv")


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame({"datum_id": range(900), "label_value": ["a", "b", "c"] * 300})
    frame.write_csv("g.csv")
    frame.with_columns(score=pl.Series(np.random.default_rng(0).random(900))).write_csv("p.csv")
    return tmp_path


def test_compressed_tables(tables: Path) -> None:
    """Every damaged file is refused when it is opened."""
    data = gzip.compress((tables / "p.csv").read_bytes())
    rng = np.random.default_rng(1)
    for _ in range(25):
        bad = bytearray(data)
        for at in rng.integers(10, len(data), 3):
            bad[at] ^= 1 << int(rng.integers(8))
        for damaged in (bad, bad[: len(bad) // 2]):
            (tables / "d.csv.gz").write_bytes(damaged)
            assert main(["score", "d.csv.gz", "g.csv"]) == 2


OUTPUTS = ('folder = "/"', 'folder = "a\\u0000b"', 'lineage = "a\\u0000b"', 'history = "\\u0000"')


@pytest.mark.parametrize("outputs", OUTPUTS)
def test_impossible_folders_of_jobs(tables: Path, outputs: str) -> None:
    (tables / "job.toml").write_text(
        'name = "n"\n[inputs]\npredictions = "p.csv"\nground_truths = "g.csv"\n[outputs]\n'
        + outputs
    )
    assert main(["run", "job.toml"]) == 2


@pytest.mark.parametrize("value", ["max_retries=0", "max_retries=x", "retry_timeout_ms=-1"])
def test_impossible_options_of_a_store(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    paths = ["s3://b/x.parquet", "s3://b/y.parquet"]
    assert main(["check", *paths, "--storage-option", value]) == 2
    assert "cannot be used" in capsys.readouterr().err


def test_json_that_is_nested_too_deeply(tables: Path) -> None:
    (tables / "t.json").write_text("[" * 100_000 + "]" * 100_000)
    assert main(["score", "p.csv", "g.csv", "--thresholds", "t.json"]) == 2


def test_sequences_with_a_nul(tmp_path: Path) -> None:
    corners = {"xmin": [0.0], "ymin": [0.0], "xmax": [5.0], "ymax": [5.0]}
    ids = {"sequence": ["a\0b"], "frame": [1], "track_id": [1], "label_value": ["x"]}
    for to in ("mot", "kitti-tracking"):
        with pytest.raises(ee.InputError, match="names of files"):
            ee.convert(pl.DataFrame(ids | corners), out=tmp_path / "out", to=to)


def test_outputs_that_cannot_be_written(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides = ["p.csv", "g.csv"]
    for line in (
        ["thresholds", *sides, "--metric", "ThresholdAtMaxF", "-o", "p.csv/x.json"],
        ["demo", "--out", "p.csv/x"],
        ["plot", "run", "roc", "-o", "p.csv/x.svg"],
        ["score", *sides, "--report", "p.csv/x.html"],
    ):
        main(["score", *sides, "--out", "run", "--overwrite"])
        capsys.readouterr()
        assert main(line) in (2, 3), line
        assert "should not happen" not in capsys.readouterr().err, line


def test_results_written_by_other_programs(
    tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["score", "p.csv", "g.csv", "--out", "run"])
    path = tables / "run" / "run.json"
    said = json.loads(path.read_text())
    for name in ("inputs", "datums", "recognised", "seconds", "columns", "files", "options"):
        for value in (None, "x", [[1]], 1e300, {"a": []}):
            path.write_text(json.dumps(said | {name: value}))
            for command in (["report", "run", "-o", "r.html"], ["compare", "run", "run"],
                            ["slices", "run"], ["diagnose", "run"]):  # fmt: skip
                capsys.readouterr()
                assert main(command) in (0, 2), (name, value, command)
                assert "should not happen" not in capsys.readouterr().err
    path.write_text(json.dumps(said | {"files": said["files"] | {"page_/../../p.csv": 1}}))
    assert main(["report", "run", "-o", "r.html"]) == 2


def test_coco_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    for text in (
        b'{"images":[{"id":1,"\xc0":2}],"annotations":[],"categories":[]}',
        b'{"images":[],"annotations":[],"categories":[{"id":1,"name":"\xe7a"}]}',
    ):
        path.write_bytes(text)
        with pytest.raises(ee.ReadError, match=r"g\.json"):
            ee.convert(path, out=tmp_path / "out")


def test_a_stored_tally_that_was_altered(tables: Path) -> None:
    """A flipped bit in the header or directory raises a specific error, or changes nothing."""
    main(["score", "p.csv", "g.csv", "--out", "run"])
    path = tables / "run" / "tally.zip"
    data = path.read_bytes()
    names = stored.head_of(path)["things"]
    rng = np.random.default_rng(0)
    head = data.index(b"about.json")
    places = [*range(head - 30, head + 200, 3), *rng.integers(0, len(data), 40)]
    places += [*rng.integers(len(data) - 600, len(data), 80)]
    refused = 0
    for at in places:
        path.write_bytes(flipped(data, int(at), int(rng.integers(8))))
        try:
            stored.load_several(path, names)
        except ee.EvalengineError:
            refused += 1
    assert refused > len(places) // 2


def test_a_stored_tally_that_inflates(tables: Path) -> None:
    main(["score", "p.csv", "g.csv", "--out", "run"])
    path = tables / "run" / "tally.zip"
    names = stored.head_of(path)["things"]
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, part in parts.items():
            new.writestr(name, part + b" " * (1 << 26) if name.endswith(".json") else part)

    def load() -> None:
        with pytest.raises(ee.ReadError, match="altered"):
            stored.load_several(path, names)

    assert traced(load) < 1 << 24


def traced(call: Callable[[], None]) -> int:
    """Return the peak of Python's memory during a call, in bytes."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
