"""Files changed by editors, archives and other tools: the same numbers, or a clear error."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from annotations.test_same_numbers import numbers, written
from annotations.writers import WRITERS, images, write_coco, write_voc, write_yolo
from refusals import refused

import evalengine as ee
from evalengine.ingest.annotations.registry import recognised

SUFFIXES = (".txt", ".xml", ".json", ".csv")


def files_of(path: Path) -> list[Path]:
    some = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return [one for one in some if one.suffix in SUFFIXES]


def renamed(path: Path, name: Callable[[Path], Path]) -> Path:
    for file in files_of(path):
        new = name(file)
        file.rename(new)
        path = new if file == path else path
    return path


def rewritten(path: Path, text: Callable[[bytes], bytes]) -> Path:
    for file in files_of(path):
        file.write_bytes(text(file.read_bytes()))
    return path


def packed(path: Path) -> Path:
    rewritten(path, gzip.compress)
    return renamed(path, lambda file: Path(f"{file}.gz"))


def from_windows(path: Path) -> Path:
    """A byte-order mark, Windows line ends, blank lines, and a suffix in capitals."""
    rewritten(path, lambda text: b"\xef\xbb\xbf" + (text + b"\n \n").replace(b"\n", b"\r\n"))
    return renamed(path, lambda file: file.with_suffix(file.suffix.upper()))


@pytest.mark.parametrize("change", [from_windows, packed])
@pytest.mark.parametrize("name", WRITERS)
def test_the_same_numbers(name: str, change: Callable[[Path], Path], tmp_path: Path) -> None:
    sides = written(name, tmp_path)
    want = numbers(*sides)
    assert numbers(*map(change, sides)) == want


def test_yolo_with_comments_float_classes_and_packed_labels(tmp_path: Path) -> None:
    sides = written("yolo", tmp_path)
    want = numbers(*sides)

    def odd(text: bytes) -> bytes:
        lines = (line.split() for line in text.splitlines())
        return b"# mine\n" + b"".join(b"\t".join([w[0] + b".0", *w[1:]]) + b"\n" for w in lines)

    assert numbers(*(rewritten(side, odd) for side in sides)) == want
    assert numbers(*(packed(side) for side in sides)) == want


def test_names_with_dots(tmp_path: Path) -> None:
    """Text after a dot in a name is not a file extension."""
    (tmp_path / "a").mkdir()
    some = {predictions: images(1, predictions=predictions) for predictions in (True, False)}
    for side in some.values():
        for i, image in enumerate(side):
            image.stem = f"cam.{i % 2}.take {i}"
    predictions = write_yolo(tmp_path / "a", some[True], predictions=True)
    truth = write_yolo(tmp_path / "a", some[False], predictions=False)
    want = numbers(
        write_coco(tmp_path, some[True], predictions=True),
        write_coco(tmp_path, some[False], predictions=False),
    )
    assert numbers(predictions, truth) == want


@pytest.mark.parametrize(
    "described",
    [
        "val: elsewhere/images/val\n",
        "val: images/val/*.jpg\n",
        "train: images/val\nval: images/val\n",
        "",
    ],
)
def test_descriptions_of_data_sets(described: str, tmp_path: Path) -> None:
    predictions, truth = written("yolo", tmp_path)
    want = numbers(predictions, truth)
    (truth / "data.yaml").write_text(f"{described}names: ['a, b', 'c: d', '# e', f]\n")
    if "elsewhere" in described:
        (truth / "elsewhere").mkdir()
        shutil.move(truth / "labels", truth / "elsewhere" / "labels")
        sizes = pl.DataFrame(
            [(one.stem, one.width, one.height) for one in images(0, predictions=False)],
            schema=["datum_id", "width", "height"],
            orient="row",
        )
        assert numbers(predictions, truth / "data.yaml", datums=sizes) == want
        return
    assert numbers(predictions, truth / "data.yaml") == want
    (truth / "data.yaml").write_text(f"{described}nc: 4\n")
    assert numbers(predictions, truth) == want


def test_boxes_without_width_and_beyond_the_image(tmp_path: Path) -> None:
    some = {predictions: images(2, predictions=predictions) for predictions in (True, False)}
    for side in some.values():
        for image in side:
            image.boxes = [
                (label, x0 - 8, y0, x0 - 8 if k % 3 == 0 else x1 + 16, y1, score)
                for k, (label, x0, y0, x1, y1, score) in enumerate(image.boxes)
            ]
    want = None
    for write in (write_coco, write_yolo, write_voc):
        folder = tmp_path / write.__name__
        folder.mkdir()
        got = numbers(
            *(
                write(folder, some[predictions], predictions=predictions)
                for predictions in (True, False)
            )
        )
        want = want or got
        assert got == pytest.approx(want, abs=1e-12)


def test_a_line_with_a_comma_too_many_is_named(tmp_path: Path) -> None:
    predictions, truth = written("open-images", tmp_path)
    truth.write_text(truth.read_text().replace("img 003,", "img, 003,"))
    with refused("file_malformed", ee.ReadError, file=str(truth), match="header's 9"):
        ee.score(predictions, truth)


def test_a_table_of_datums_that_has_none(tmp_path: Path) -> None:
    predictions, truth = written("voc", tmp_path)
    names = pl.DataFrame({"datum_id": [f"{one.stem}.jpg" for one in images(0, predictions=False)]})
    for limit in (None, "1TiB"):
        with refused("no_common_id", column="datum_id", match="'img 0") as notes:
            ee.score(predictions, truth, datums=names, memory_limit=limit)
        assert "id_format=['extension']" in str(notes.value)
    card = ee.score(predictions, truth, datums=names, id_format=["extension"], dialect="coco")
    assert card.value("AP50") > 0


@pytest.mark.parametrize(
    ("text", "is_export"),
    [
        ('[{"id": 1, "annotations": [{"result": []}], "data": {"image": "a.jpg"}}]', True),
        ('[{"data": {"image": "a.jpg"}, "predictions": []}]', True),
        ('[{"data": [1], "annotations": ["b"]}]', False),
        ('[{"note": "\\"data\\" and \\"annotations\\"", "data": {}}]', False),
        ('[{"row": {"data": {}, "annotations": []}}]', False),
        ('{"data": {}, "annotations": []}', False),
    ],
)
def test_label_studio_is_detected_by_the_keys_of_a_task(
    text: str, is_export: bool, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text(text)
    result = recognised([str(tmp_path / "a.json")])
    assert (result is not None and result[0].name == "label-studio") is is_export


def test_label_maps_next_to_voc_boxes_are_noted(tmp_path: Path) -> None:
    root = tmp_path / "VOC2012"
    write_voc(root, images(1, predictions=False), predictions=False)
    predictions = write_voc(tmp_path, images(1, predictions=True), predictions=True)
    assert not [note for note in ee.check(predictions, root).notes if "label maps" in note]
    maps = root / "SegmentationClass"
    maps.mkdir()
    (maps / "a.png").write_bytes(b"")
    (notes,) = [note for note in ee.check(predictions, root).notes if "label maps" in note]
    assert "1 label maps" in notes
    assert f"{maps}," in notes


def test_key_points_of_categories_survive(tmp_path: Path) -> None:
    person = {"id": 1, "name": "person", "keypoints": ["nose", "eye"], "skeleton": [[1, 2]]}
    box = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 5, 5], "area": 25, "iscrowd": 0}
    whole = {
        "images": [{"id": 1, "width": 9, "height": 9}],
        "categories": [person, {"id": 2, "name": "dog"}],
        "annotations": [box],
    }
    (tmp_path / "truth.json").write_text(json.dumps(whole))
    ee.convert(tmp_path / "truth.json", out=tmp_path / "out", to="coco")
    content = json.loads((tmp_path / "out" / "groundtruths.json").read_text())
    assert content["categories"] == whole["categories"]
    whole["categories"][0]["skeleton"] = "none"
    (tmp_path / "truth.json").write_text(json.dumps(whole))
    ee.convert(tmp_path / "truth.json", out=tmp_path / "odd")
    labels = pl.read_parquet(tmp_path / "odd" / "labels.parquet")
    assert labels["keypoints"].to_list() == [["nose", "eye"], None]
    assert "skeleton" not in labels.columns
