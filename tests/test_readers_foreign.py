"""Inputs of other tools that are not read, and JSON that nobody can: named, with the way out."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from coco_files import annotation, result, truths
from refusals import refused

import evalengine as ee
from evalengine.ingest.converting import convert_coco
from evalengine.ingest.files import files_below
from evalengine.ingest.sources.tables import open_source


@pytest.mark.parametrize("text", ["<annotations><version>1.1</version></annotations>", "<html/>"])
def test_other_xml(text: str, tmp_path: Path) -> None:
    """By itself, and as a folder of it."""
    (tmp_path / "cvat").mkdir()
    (tmp_path / "cvat" / "a.xml").write_text(text)
    found = pl.DataFrame({"datum_id": [1], "label_value": ["a"], "score": [0.5]})
    for path in (tmp_path / "cvat" / "a.xml", tmp_path / "cvat"):
        with refused("format_unknown", ee.ReadError):
            ee.score(found, path, task="detection")


def test_a_header_and_rows_with_spaces_are_no_labels(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("datum_id,label_value,score\n1,a,0.5\n")
    (tmp_path / "b.txt").write_text("datum_id,label_value\n1,a\n")
    card = ee.score(str(tmp_path / "a.txt"), str(tmp_path / "b.txt"))
    assert card.task == "classification"


@pytest.mark.parametrize("depth", [20_000, 200_000])
def test_deep_json_is_named(depth: int, tmp_path: Path) -> None:
    """Wherever it is nested, in every role, and never a RecursionError."""
    deep = "[" * depth + "]" * depth
    whole = json.dumps(truths(annotation(area=25.5)))
    texts = {
        "list": deep,
        "object": '{"a":' * depth + "1" + "}" * depth,
        "open": "[" * depth,
        "images": whole.replace('"images": [', f'"images": [{{"x": {deep}}}, '),
        "annotations": whole.replace("25.5", f'25.5, "x": {deep}'),
        "segmentation": whole.replace("25.5", f'25.5, "segmentation": {deep}'),
    }
    good = tmp_path / "good.json"
    good.write_text(json.dumps(truths(annotation())))
    for name, text in texts.items():
        path = tmp_path / f"{name}.json"
        path.write_text(text)
        calls: list[Any] = [
            lambda path=path: ee.score(good, path, dialect="coco"),
            lambda path=path: ee.score(path, good, dialect="coco"),
            lambda path=path: ee.check(path),
            lambda path=path: convert_coco(path, out=tmp_path / "out"),
        ]
        for call in calls:
            with refused("nested_too_deeply", ee.ReadError):
                call()
    found = tmp_path / "found.json"
    found.write_text(json.dumps([result()]))
    with refused("file_malformed", ee.ReadError):
        ee.score(found, good, label_map=tmp_path / "object.json")
    lines = tmp_path / "deep.jsonl"
    lines.write_text(f'{{"datum_id": 1, "x": {deep}}}\n')
    with refused("file_malformed", ee.ReadError):
        ee.score(lines, good)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("Int128", {"code": "types_differ", "column": "datum_id"}),  # by their digits
        ("UInt128", {"code": "wrong_dtype", "side": "predictions", "column": "datum_id"}),
    ],
)
def test_integers_of_128_bits_are_named(kind: str, said: dict[str, Any]) -> None:
    dtype = getattr(pl, kind, None)
    if dtype is None:
        pytest.skip(f"this version of Polars has no {kind}")
    table = pl.DataFrame({"datum_id": [1], "label_value": ["a"], "score": [0.5]})
    large = table.with_columns(pl.col("datum_id").cast(dtype))
    with refused(**said):
        ee.score(large, table.drop("score"))


FOREIGN = {
    "a.geojson": '{"type": "FeatureCollection", "features": []}',
    "b.json": '{"name": "trees", "type": "FeatureCollection", "features": []}',
    "via.json": '{"a.jpg123": {"filename": "a.jpg", "size": 123, "regions": []}}',
    "project.json": '{"_via_settings": {}, "_via_img_metadata": {}}',
    "md.json": '{"images": [{"file": "a.jpg", "detections": [{"category": "1", "conf": 0.9}]}]}',
    "md2.json": '{"info": {}, "detection_categories": {"1": "animal"}, "images": []}',
    "val.odgt": '{"ID": "a", "gtboxes": [{"tag": "person", "fbox": [1, 2, 3, 4]}]}\n',
    "rle.csv": "ImageId,EncodedPixels\na.jpg,1 3 10 5\n",
    "hyp.trn": "hello world (utt_1)\n",
    "hyp.ctm": "utt_1 1 0.00 0.25 hello 0.9\n",
    "tags.conll": "EU B-ORG\nrejects O\n\n",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_formats_that_are_not_read_are_named(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(FOREIGN[name])
    with refused("format_unknown", ee.ReadError) as caught:
        ee.score(path, path)
    assert str(path) in str(caught.value)
    with refused("format_unknown", ee.ReadError):
        ee.check(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", '{"datum_id": 1, "label_value": "a", "type": "x"}\n' * 2),
        ("b.jsonl", '{"datum_id": 1, "label_value": "a", "geometry": {"type": "Feature"}}\n'),
        ("a.csv", "datum_id,label_value\n1,EncodedPixels\n"),
    ],
)
def test_tables_that_mention_other_formats_are_read(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert open_source(path).frame.collect().height == text.count("\n") - name.endswith("csv")


HUB = "reference_date,location,output_type,output_type_id,value\n2024-01-06,US,quantile,0.5,12\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
@pytest.mark.parametrize(
    "text", [HUB, "image_id,PredictionString\na,0 0.9 1 1 5 5\n", "id,y\n1,2\n"]
)
def test_text_of_other_encodings_and_formats(encoding: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(text, encoding=encoding)
    if encoding == "utf-8-sig" and text.startswith("id"):
        assert open_source(path).frame.collect().columns == ["id", "y"]
        return
    with refused("format_unknown", file=str(path)):
        open_source(path)


def test_a_pipe_among_files_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "a.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    (tmp_path / "labels" / "c.txt").symlink_to(tmp_path / "labels" / "a.txt")
    os.mkfifo(tmp_path / "labels" / "b.txt")
    names = [Path(name).name for name in files_below(str(tmp_path))]
    assert names == ["a.txt", "c.txt"]
    assert open_source(tmp_path / "labels").frame.collect().height == 2
