"""YOLO: every kind of line, folder layouts of common tools, and malformed lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image as Picture
from refusals import noted, refused

import evalengine as ee
from evalengine.ingest.files import Source
from evalengine.ingest.sources.tables import open_source

BOX = "0 0.5 0.5 0.25 0.5"
POLYGON = "1 0.25 0.25 0.75 0.25 0.5 0.75"


def label(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def picture(folder: Path, name: str, size: tuple[int, int] = (64, 32), **more: Any) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    Picture.new("L", size).save(path, **more)


def opened(path: Path) -> Source:
    source = open_source(path)
    assert source.format == "annotations"
    return source


def rows(path: Path) -> pl.DataFrame:
    return opened(path).frame.collect()


def test_boxes_with_and_without_confidence(tmp_path: Path) -> None:
    label(tmp_path, "a.txt", f"{BOX}\n\n1 .125 .25 .25 .5\n")
    frame = rows(tmp_path)
    assert frame.columns == ["datum_id", "label_value", "xmin", "ymin", "xmax", "ymax"]
    assert frame.rows() == [("a", 0, 0.375, 0.25, 0.625, 0.75), ("a", 1, 0.0, 0.0, 0.25, 0.5)]
    label(tmp_path, "a.txt", f"{BOX} 0.9\n1 .125 .25 .25 .5 1e-2\n")
    assert rows(tmp_path)["score"].to_list() == [0.9, 0.01]


@pytest.mark.parametrize("truth", ["train/labels", "labels/train"])
def test_names_repeated_across_folders(tmp_path: Path, truth: str) -> None:
    """A folder of labels and its parallel folder of images name the same datums."""
    for name in ("a/1", "b/1", "b/2"):
        label(tmp_path / truth, f"{name}.txt", BOX)
        picture(tmp_path / truth.replace("labels", "images"), f"{name}.png")
        label(tmp_path / "found", f"{name}.txt", f"{BOX} 0.9")
    card = ee.score(tmp_path / "found", tmp_path / truth)
    assert card.value("mAP", iou_threshold=0.5) == 1.0
    assert opened(tmp_path / truth).datums["datum_id"].sort().to_list() == ["a/1", "b/1", "b/2"]
    assert not [one for one in card.findings if one.code.startswith("sizes_")]


@pytest.mark.parametrize("confidence", ["", " 0.75"])
def test_polygons_and_oriented_boxes(confidence: str, tmp_path: Path) -> None:
    """Four points are a polygon of four corners; a confidence makes the number of fields odd."""
    oriented = "0 0.5 0.25 0.75 0.5 0.5 0.75 0.25 0.5"
    label(tmp_path, "a.txt", f"{POLYGON}{confidence}\n{oriented}{confidence}\n")
    frame = rows(tmp_path)
    assert frame["polygon"].to_list() == [
        [[[0.25, 0.25], [0.75, 0.25], [0.5, 0.75]]],
        [[[0.5, 0.25], [0.75, 0.5], [0.5, 0.75], [0.25, 0.5]]],
    ]
    assert frame.select("xmin", "ymin", "xmax", "ymax").unique().rows() == [
        (0.25, 0.25, 0.75, 0.75)
    ]
    assert ("score" in frame.columns) == bool(confidence)


def test_boxes_among_polygons_count_as_boxes(tmp_path: Path) -> None:
    label(tmp_path, "a.txt", f"{BOX}\n{POLYGON}\n")
    source = opened(tmp_path)
    assert "polygon" not in source.frame.collect_schema()
    assert any("1 of 2 objects" in note.message for note in source.notes)


def test_key_points(tmp_path: Path) -> None:
    """Flags in labels or ``kpt_shape`` identify key points; otherwise an error names both."""
    line = "0 0.5 0.5 0.5 0.5 0.5 0.5 2 0.25 0.25 0\n"
    label(tmp_path, "labels/a.txt", line)
    frame = rows(tmp_path / "labels")
    assert frame["keypoints"].to_list() == [[[0.5, 0.5, 2.0], [0.25, 0.25, 0.0]]]
    predictions = "0 0.5 0.5 0.5 0.5 " + "0.5 0.5 0.4 0.3 " * 2 + "0.9\n"
    label(tmp_path, "labels/a.txt", predictions * 3)
    with refused("file_malformed", ee.ReadError, line=1, match="14 fields.*kpt_shape"):
        rows(tmp_path / "labels")
    label(tmp_path, "data.yaml", "names: [person]\nkpt_shape: [4, 2]\n")
    frame = rows(tmp_path / "labels")
    assert frame["keypoints"].list.len().unique().to_list() == [4]
    assert frame["score"].to_list() == [0.9] * 3


def test_key_points_as_the_other_side_describes_them(tmp_path: Path) -> None:
    """Predictions of Ultralytics have no data.yaml; the other side's applies if the lines fit."""
    label(tmp_path, "gt/labels/a.txt", "0 0.5 0.5 0.2 0.2 0.4 0.4 2 0.6 0.6 2\n")
    truth = label(tmp_path, "gt/data.yaml", "names: [person]\nkpt_shape: [2, 3]\n").parent
    line = "0 0.5 0.5 0.2 0.2 0.4 0.4 0.9 0.6 0.6 0.8 0.8\n"
    predictions = label(tmp_path, "dt/labels/a.txt", line * 3).parent
    card = ee.score(predictions, truth)
    assert card.value("mAP", iou_threshold=0.5) == pytest.approx(1.0)
    message = (
        "lines are read as a box and 2 key points of 3 numbers each, by the other side's kpt_shape"
    )
    assert [note for note in card.notes if note.startswith(message)]
    pose = ee.score(predictions, truth, iou_type="keypoints", keypoint_sigmas=[0.05, 0.05])
    assert pose.value("mAP", iou_threshold=0.5) == pytest.approx(1.0)
    label(tmp_path, "dt/labels/a.txt", f"{POLYGON} 0.9\n")
    assert not [note for note in ee.check(predictions, truth).notes if note.startswith(message)]
    label(tmp_path, "dt/labels/a.txt", line)
    label(tmp_path, "dt/data.yaml", "names: [person]\n")  # data.yaml of the side has priority
    assert not [note for note in ee.check(predictions, truth).notes if note.startswith(message)]


def test_polygons_at_the_edge_are_no_key_points(tmp_path: Path) -> None:
    """Zeros and ones are no flags next to polygons or a description without ``kpt_shape``."""
    edge = "0 0.8 0.1 0.9 0.3 0.95 0.2 1 0.1 0.9 0\n"
    label(tmp_path, "a.txt", f"{edge}0 0.1 0.1 0.3 0.1 0.3 0.3 0.1 0.3\n")
    assert rows(tmp_path).select("xmin", "ymin", "xmax", "ymax").row(0) == (0.8, 0, 1, 0.3)
    label(tmp_path, "a.txt", edge)
    assert "2 key points" in opened(tmp_path).notes[1].message
    label(tmp_path, "data.yaml", "names: [a]\n")
    assert rows(tmp_path)["polygon"].list.first().list.len().to_list() == [5]
    label(tmp_path, "a.txt", "0 0.5 0.5 0.5 0.5 0.5 0.5 2 0.25 0.25 0\n")
    with refused("file_malformed", ee.ReadError, line=1, match="kpt_shape"):
        rows(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 0.5 0.5 0.25\n", r"line 1: 4 fields: '0 0\.5 0\.5 0\.25'.*a class number and a box"),
        (f"{BOX}\n0 0.5 0.5 x 0.5\n", r"line 2: 'x' is not a number"),
        (f"{BOX}\n-1 0.5 0.5 0.5 0.5\n", r"line 2: the first field is not a class number"),
        (f"{BOX}\n1.5 0.5 0.5 0.5 0.5\n", r"line 2: the first field is not a class number"),
        (
            f"{BOX}\n0 320 240 64 48\n0 3 2 6 4\n",
            r"line 2: coordinates that are not shares.*2 such",
        ),
        (f"{BOX}\n0 nan 0.5 0.5 0.5\n", r"line 2: coordinates that are not shares"),
        (f"{BOX}\n{BOX} 0.5\n", r"line 1: no confidence, and 1 other lines have one"),
        (f"{BOX}\n0 0.1 0.1 0.2 0.2 0.3 0.3 0.4\n7\n", r"line 3: 1 field: '7'"),
    ],
)
def test_a_broken_line_is_named(text: str, message: str, tmp_path: Path) -> None:
    label(tmp_path, "sub/b.txt", f"{BOX}\n")
    label(tmp_path, "sub/a.txt", text)
    with pytest.raises(ee.ReadError, match=rf"sub/a\.txt, {message}"):
        rows(tmp_path)


def test_boxes_in_pixels_are_no_table(tmp_path: Path) -> None:
    label(tmp_path, "a.txt", "0 401.6 95.1 181.7 114.6 0.6\n")
    label(tmp_path, "b.txt", "1 20.5 95.1 18.7 14.6 0.9\n")
    with refused("format_unknown", ee.ReadError, match="shares of the image"):
        rows(tmp_path)


def test_a_text_file_without_labels_is_named(tmp_path: Path) -> None:
    for name in "abc":
        label(tmp_path, f"{name}.txt", f"{BOX}\n")
    label(tmp_path, "notes.txt", "made on Monday\n")
    file = str(tmp_path / "notes.txt")
    with refused("file_malformed", ee.ReadError, file=file, line=1, match="3 fields"):
        rows(tmp_path)
    label(tmp_path, "README.txt", "made on Monday\n")
    (tmp_path / "notes.txt").unlink()
    assert rows(tmp_path).height == 3


def test_not_utf8_and_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf" + BOX.encode() + b"\r\n")
    assert rows(tmp_path).height == 1
    (tmp_path / "a.txt").write_bytes(f"{BOX}\n0 0.5 0.5 0.5 \xff\n".encode("latin-1"))
    with refused("file_malformed", ee.ReadError, line=2, match="not a number"):
        rows(tmp_path)


def data_set(folder: Path, yaml: str) -> None:
    """Two splits, an empty label file, an image without label file, and an image in a subfolder."""
    for name in ("train/a", "train/deep/b", "val/c", "val/d", "val/e"):
        picture(folder, f"images/{name}.jpg")
    for name, text in (("train/a", BOX), ("train/deep/b", POLYGON), ("val/c", BOX), ("val/d", "")):
        label(folder, f"labels/{name}.txt", text)
    label(folder, "data.yaml", yaml)


NAMED = [
    "path: .\ntrain: images/train\nval: images/val\nnames: [cat, dog]\n",
    "train: ../images/train\nval: ../images/val\nnames: {0: cat, 1: dog}\n",
    "path: /nowhere\ntrain: [images/train]\nval: images/val\ntest:\nnames:\n  0: cat\n  1: dog\n",
    "train: train.txt\nval: images/val\nnc: 2\nnames: ['cat', 'dog']\n",
]


@pytest.mark.parametrize("yaml", NAMED)
def test_a_data_set(yaml: str, tmp_path: Path) -> None:
    data_set(tmp_path, yaml)
    label(tmp_path, "train.txt", "./images/train/a.jpg\n./images/train/deep/b.jpg\n")
    for paths in (tmp_path, tmp_path / "data.yaml"):
        source = opened(paths)
        assert source.datums is not None
        assert source.labels is not None
        assert source.datums.sort("datum_id").rows() == [
            ("a", "a.jpg", 64, 32, "train"), ("b", "b.jpg", 64, 32, "train"),
            ("c", "c.jpg", 64, 32, "val"), ("d", "d.jpg", 64, 32, "val"),
            ("e", "e.jpg", 64, 32, "val"),
        ]  # fmt: skip
        assert source.labels.rows() == [(0, "cat"), (1, "dog")]
        assert source.frame.collect()["datum_id"].sort().to_list() == ["a", "b", "c"]


def test_one_split_of_a_data_set(tmp_path: Path) -> None:
    """Labels of a split use names and images of the data set around it."""
    data_set(tmp_path, NAMED[0])
    source = opened(tmp_path / "labels" / "val")
    assert source.datums is not None
    assert source.datums["datum_id"].sort().to_list() == ["c", "d", "e"]
    assert source.datums["width"].to_list() == [64] * 3
    assert source.labels is not None
    assert source.labels["label_name"].to_list() == ["cat", "dog"]


def test_images_of_one_name_in_two_folders(tmp_path: Path) -> None:
    for split in ("train", "val"):
        picture(tmp_path, f"images/{split}/1.png")
        label(tmp_path, f"labels/{split}/1.txt", BOX)
    label(tmp_path, "data.yaml", NAMED[0])
    assert rows(tmp_path)["datum_id"].to_list() == ["train/1", "val/1"]


def test_a_class_without_a_name(tmp_path: Path) -> None:
    data_set(tmp_path, NAMED[0])
    label(tmp_path, "labels/val/c.txt", f"{BOX}\n5 0.5 0.5 0.1 0.1\n")
    with refused("file_malformed", ee.ReadError, line=2, match="class 5.* 2 classes"):
        rows(tmp_path)


@pytest.mark.parametrize(
    ("yaml", "line", "message"),
    [
        ("names: [a\nval: x\n", 2, "no YAML"),
        ("names: 3x\nval: images/val\n", None, "'names'"),
        ("names: {cat: 0}\nval: images/val\n", None, "'names'"),
    ],
)
def test_a_broken_description(yaml: str, line: int | None, message: str, tmp_path: Path) -> None:
    data_set(tmp_path, yaml)
    file = str(tmp_path / "data.yaml")
    with refused("file_malformed", ee.ReadError, file=file, line=line, match=message):
        rows(tmp_path)


def test_an_empty_description(tmp_path: Path) -> None:
    label(tmp_path, "data.yaml", "val: images/val\nnames: [cat]\n")
    with refused("file_missing", ee.ReadError, file=str(tmp_path / "data.yaml")):
        rows(tmp_path)


def test_pixels_respect_the_orientation_of_a_picture(tmp_path: Path) -> None:
    """A rotated photograph has swapped width and height."""
    exif = Picture.Exif()
    exif[0x0112] = 6
    picture(tmp_path, "images/a.jpg", (64, 32), exif=exif)
    picture(tmp_path, "images/b.png", (64, 32))
    for name in "ab":
        label(tmp_path, f"labels/{name}.txt", f"{BOX}\n")
    out = tmp_path / "out"
    ee.convert(tmp_path / "labels", out=out)
    frame = pl.read_parquet(out / "groundtruths.parquet")
    assert frame.sort("datum_id").select("xmin", "ymin", "xmax", "ymax").rows() == [
        (12.0, 16.0, 20.0, 48.0),
        (24.0, 8.0, 40.0, 24.0),
    ]


def test_shapes_become_pixels(tmp_path: Path) -> None:
    picture(tmp_path, "images/a.png", (64, 32))
    label(tmp_path, "labels/a.txt", f"{POLYGON}\n")
    ee.convert(tmp_path / "labels", out=tmp_path / "out")
    frame = pl.read_parquet(tmp_path / "out" / "groundtruths.parquet")
    assert frame["polygon"].to_list() == [[[[16.0, 8.0], [48.0, 8.0], [32.0, 24.0]]]]


def test_a_picture_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Without its size, its areas would be fractions, so metrics by area range are refused."""
    for name in "abc":
        picture(tmp_path, f"images/{name}.png", (640, 320))
        label(tmp_path, f"labels/{name}.txt", f"{BOX}\n")
        label(tmp_path, f"found/{name}.txt", f"{BOX} 0.5\n")
    sides = tmp_path / "found", tmp_path / "labels"
    assert ee.score(*sides, dialect="coco").value("mAP", iou_threshold=0.5, area="large") > 0.999
    (tmp_path / "images" / "b.png").write_text("no picture")
    message = "the sizes of 1 image are not known ('b'), and those of 2 are"
    named = "'b.png'"
    with pytest.raises(ee.InputError) as caught:
        ee.score(*sides, dialect="coco")
    assert str(caught.value).startswith(f"area ranges: {message}")
    assert named in str(caught.value)
    card = ee.score(*sides)
    assert card.value("mAP", iou_threshold=0.5) > 0.999
    assert [note for note in card.notes if message in note and named in note]
    sizes = pl.DataFrame({"datum_id": ["b"], "width": [640], "height": [320]})
    whole = ee.score(*sides, dialect="coco", datums=sizes)
    assert whole.value("mAP", iou_threshold=0.5, area="large") > 0.999


def test_unknown_sizes(tmp_path: Path) -> None:
    """Noted if both sides are relative; refused if the other side or the target has pixels."""
    label(tmp_path, "truths/a.txt", f"{BOX}\n")
    label(tmp_path, "found/a.txt", f"{BOX} 0.5\n")
    card = ee.score(tmp_path / "found", tmp_path / "truths")
    assert card.value("mAP", iou_threshold=0.5) > 0.999
    noted(card, "sizes_unknown", severity="note")
    assert not card.warnings
    ranged = ee.score(tmp_path / "found", tmp_path / "truths", dialect="coco")
    noted(ranged, "sizes_unknown", severity="warning")
    pixels = pl.DataFrame(
        {"datum_id": ["a"], "label_value": [0], "xmin": [24.0], "ymin": [8.0], "xmax": [40.0],
         "ymax": [24.0]}
    )  # fmt: skip
    with refused("image_size_missing", count=1, value="a", match="datums="):
        ee.score(tmp_path / "found", pixels)
    with refused("image_size_missing"):
        ee.convert(tmp_path / "truths", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    sizes = pl.DataFrame({"datum_id": ["a"], "width": [64], "height": [32]})
    card = ee.score(tmp_path / "found", pixels, datums=sizes)
    assert card.value("mAP", iou_threshold=0.5) > 0.999


def test_other_text_is_no_yolo(tmp_path: Path) -> None:
    """TREC runs and tables of numbers keep their format."""
    run = label(tmp_path, "run.txt", "1 Q0 d1 1 0.5 tag\n1 Q0 d2 2 0.4 tag\n")
    assert open_source(run).format == "trec"
    table = label(tmp_path, "t.txt", "datum_id,label_value\n1,2\n")
    assert open_source(table).format == "csv"


def test_sizes_match_gdal(tmp_path: Path) -> None:
    """Sizes of JPEG and PNG variants; a truncated file has none."""
    from evalengine.ingest.annotations import format

    for turned in (None, 1, 6, 8):
        exif = Picture.Exif()
        if turned:
            exif[0x010F], exif[0x0112] = "maker" * 900, turned
        for i, (mode, suffix) in enumerate([("RGB", "jpg"), ("CMYK", "jpg"), ("P", "png")]):
            more = {"progressive": True, "icc_profile": b"x" * 70_000} if i else {}
            file = tmp_path / f"{i}.{suffix}"
            Picture.new(mode, (37 + i, 21)).save(file, exif=exif.tobytes(), **more)
            expected = format.sizes_of({"a": str(file)})["a"]
            assert expected == (
                (21, 37 + i) if turned in (6, 8) and suffix == "jpg" else (37 + i, 21)
            )
            file.write_bytes(file.read_bytes()[:20])
            assert format.sizes_of({"a": str(file)}) == {}


def test_yaml_of_other_tools_is_no_description(tmp_path: Path) -> None:
    (tmp_path / "conf.yaml").write_text("model: !Ref head\n")
    rows = pl.DataFrame({"datum_id": ["a"], "label_value": ["x"], "xmin": [0], "ymin": [0],
                         "xmax": [9], "ymax": [9], "score": [0.5]})  # fmt: skip
    rows.write_csv(tmp_path / "rows.csv")
    assert ee.score(tmp_path, rows.drop("score")).value("mAR") == 1.0
    (tmp_path / "conf.yaml").write_text("names: !Ref head\n")
    (tmp_path / "a.txt").write_text("0 .5 .5 .2 .2\n")
    with refused("file_malformed", file=str(tmp_path / "conf.yaml"), match="no YAML"):
        ee.score(tmp_path, rows.drop("score"))


def test_sizes_of_a_table_have_priority_over_pictures(tmp_path: Path) -> None:
    label(tmp_path, "yy/a.txt", "0 0.5 0.5 0.2 0.2\n")
    picture(tmp_path, "yy/a.jpg", (10, 10))
    sizes = pl.DataFrame({"datum_id": ["a"], "width": [100], "height": [200]})
    ee.convert(tmp_path / "yy", out=tmp_path / "out", datums=sizes)
    frame = pl.read_parquet(tmp_path / "out/groundtruths.parquet")
    assert frame.select("xmin", "ymin", "xmax", "ymax").row(0) == pytest.approx((40, 80, 60, 120))
    predictions = frame.with_columns(score=0.5)
    card = ee.score(predictions, tmp_path / "yy", datums=sizes, label_map={0: "a"})
    assert any("('a': 100 x 200, and 10 x 10)" in note for note in card.notes)


def test_folders_of_several_models(tmp_path: Path) -> None:
    label(tmp_path, "data.yaml", "names: [a]\n")
    for i in range(3):
        label(tmp_path, f"t/{i}.txt", BOX)
        for model in ("m1", "m2"):
            label(tmp_path, f"runs/{model}/labels/{i}.txt", f"{BOX} 0.9")
    with refused("no_common_id", match=r"2 folders \('m1', 'm2'\)"):
        ee.check(tmp_path / "runs", tmp_path / "t")


def predicted(folder: Path, line: str, seed: int, many: int) -> Path:
    """Random boxes within their images, one file each; ``line`` is the order of their fields."""
    chance = np.random.default_rng(seed)
    for i in range(many):
        w, h = chance.uniform(0.02, 0.6, 2)
        x, y = chance.uniform((w / 2, h / 2), (1 - w / 2, 1 - h / 2))
        fields = {"k": i % 3, "x": x, "y": y, "w": w, "h": h, "s": chance.uniform(0.1, 0.95)}
        label(folder, f"i{i:04d}.txt", line.format(**fields) + "\n")
    return folder


LAST, FIRST = "{k} {x} {y} {w} {h} {s}", "{k} {s} {x} {y} {w} {h}"


@pytest.mark.parametrize("seed", range(3))
def test_a_confidence_before_the_box(seed: int, tmp_path: Path) -> None:
    """Boxes that would cross the image edge reveal it; few lines are ambiguous."""
    usual = opened(predicted(tmp_path / "last", LAST, seed, 60))
    assert not any(note.kind == "confidence_first" for note in usual.notes)
    other = opened(predicted(tmp_path / "first", FIRST, seed, 60))
    assert [note for note in other.notes if note.kind == "confidence_first"]
    assert other.frame.collect().equals(usual.frame.collect())
    truth = predicted(tmp_path / "truth", "{k} {x} {y} {w} {h}", seed, 60)
    assert ee.score(str(tmp_path / "first"), str(truth), dialect="coco").value("AP") == 1
    (tmp_path / "few").mkdir()
    label(tmp_path / "few", "a.txt", "0 0.95 0.5 0.7 0.2 0.2\n1 0.9 0.5 0.5 0.3 0.2\n")
    with pytest.raises(ee.ReadError, match=r"a\.txt, line 1"):
        rows(tmp_path / "few")


def test_boxes_over_the_edge_are_no_confidences(tmp_path: Path) -> None:
    """Detectors that do not clip: many boxes slightly beyond the edge, or a few far beyond."""
    lines = [f"0 0.05 0.5 0.13 0.2 0.{i}" for i in range(1, 9)]
    lines += ["0 0.05 0.5 0.4 0.2 0.9"] + ["0 0.5 0.5 0.2 0.2 0.8"] * 3
    label(tmp_path, "a.txt", "\n".join(lines))
    assert rows(tmp_path)["score"].max() == 0.9
    label(tmp_path, "a.txt", "\n".join(["0 0.05 0.5 0.4 0.2 0.9"] * 9))
    assert rows(tmp_path)["score"].to_list() == [0.9] * 9


def test_names_of_darknet_are_one_folder_up(tmp_path: Path) -> None:
    label(tmp_path / "obj_train_data", "a.txt", BOX)
    assert opened(tmp_path / "obj_train_data").labels is None
    label(tmp_path, "obj.names", "cat\ndog\n")
    for path in (tmp_path / "obj_train_data", tmp_path / "obj_train_data" / "a.txt"):
        labels = opened(path).labels
        assert labels is not None
        assert labels["label_name"].to_list() == ["cat", "dog"]
    (tmp_path / "above").mkdir()
    (tmp_path / "obj_train_data").rename(tmp_path / "above" / "obj_train_data")
    (tmp_path / "obj.names").rename(tmp_path / "above" / "obj.names")
    labels = opened(tmp_path).labels  # the parent of the given folder
    assert labels is not None
    assert labels["label_name"].to_list() == ["cat", "dog"]
