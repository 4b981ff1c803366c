"""Unsupported input of other tools, and invalid JSON, are refused with a remedy."""

from __future__ import annotations

import json
import os
import zipfile
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
    """As a file, and as a folder of such files."""
    (tmp_path / "cvat").mkdir()
    (tmp_path / "cvat" / "a.xml").write_text(text)
    found = pl.DataFrame({"datum_id": [1], "label_value": ["a"], "score": [0.5]})
    for path in (tmp_path / "cvat" / "a.xml", tmp_path / "cvat"):
        with refused("format_unknown", ee.ReadError):
            ee.score(found, path, task="detection")


def test_workbooks_are_known_by_their_content(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.XLSM", "w") as packed:
        packed.writestr("docProps/app.xml", "<Properties/>")
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504))
    for name in ("a.XLSM", "old.xls"):
        with refused("format_unknown", ee.ReadError, match="CSV"):
            ee.score(str(tmp_path / name))
    text = tmp_path / "text.xls"  # as many tools name text
    text.write_text("id\tactual\tpredicted\n1\ta\ta\n2\ta\tb\n")
    assert ee.score(text, task="classification", metrics=["Accuracy"]).value("Accuracy") == 0.5


def test_carriage_returns_between_rows_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"y_true,y_pred\n1,1\r2,3\r")
    with refused("file_malformed", ee.ReadError, match="line 2 has a carriage return"):
        ee.score(str(tmp_path / "a.csv"), task="regression")


def test_a_header_and_rows_with_spaces_are_not_labels(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("datum_id,label_value,score\n1,a,0.5\n")
    (tmp_path / "b.txt").write_text("datum_id,label_value\n1,a\n")
    card = ee.score(str(tmp_path / "a.txt"), str(tmp_path / "b.txt"))
    assert card.task == "classification"


@pytest.mark.parametrize("depth", [20_000, 200_000])
def test_deep_json_is_named(depth: int, tmp_path: Path) -> None:
    """At any level, in every role, and never as a RecursionError."""
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
    ("kind", "facts"),
    [
        ("Int128", {"code": "types_differ", "column": "datum_id"}),  # by their digits
        ("UInt128", {"code": "wrong_dtype", "side": "predictions", "column": "datum_id"}),
    ],
)
def test_integers_of_128_bits_are_named(kind: str, facts: dict[str, Any]) -> None:
    dtype = getattr(pl, kind, None)
    if dtype is None:
        pytest.skip(f"this version of Polars has no {kind}")
    table = pl.DataFrame({"datum_id": [1], "label_value": ["a"], "score": [0.5]})
    large = table.with_columns(pl.col("datum_id").cast(dtype))
    with refused(**facts):
        ee.score(large, table.drop("score"))


FOREIGN = {
    "a.geojson": '{"type": "FeatureCollection", "features": []}',
    "b.json": '{"name": "trees", "type": "FeatureCollection", "features": []}',
    "via.json": '{"a.jpg123": {"filename": "a.jpg", "size": 123, "regions": []}}',
    "via.csv": "filename,file_size,region_shape_attributes,region_attributes\n",
    "project.json": '{"_via_settings": {}, "_via_img_metadata": {}}',
    "md.json": '{"images": [{"file": "a.jpg", "detections": [{"category": "1", "conf": 0.9}]}]}',
    "md2.json": '{"info": {}, "detection_categories": {"1": "animal"}, "images": []}',
    "inspect.json": '{"version": 2, "status": "success", "eval": {"task": "t"}, "samples": []}',
    "deepeval.json": '{"testFile": "a.py", "testCases": [{"name": "a", "metricsData": []}]}',
    "promptfoo.json": '{"evalId": "x", "results": {"version": 3, "results": []}, "config": {}}',
    "val.odgt": '{"ID": "a", "gtboxes": [{"tag": "person", "fbox": [1, 2, 3, 4]}]}\n',
    "rle.csv": "ImageId,EncodedPixels\na.jpg,1 3 10 5\n",
    "hyp.trn": "hello world (utt_1)\n",
    "hyp.ctm": "utt_1 1 0.00 0.25 hello 0.9\n",
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


def test_a_pipe_among_files_does_not_block(tmp_path: Path) -> None:
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "a.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    (tmp_path / "labels" / "c.txt").symlink_to(tmp_path / "labels" / "a.txt")
    os.mkfifo(tmp_path / "labels" / "b.txt")
    names = [Path(name).name for name in files_below(str(tmp_path))]
    assert names == ["a.txt", "c.txt"]
    assert open_source(tmp_path / "labels").frame.collect().height == 2


@pytest.mark.parametrize("name", ["a.xlsx", "a.csv", "a"])
def test_spreadsheets_and_pointers_are_named(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("[Content_Types].xml", "<Types/>")
        made.writestr("xl/workbook.xml", "<workbook/>")
    with refused("format_unknown", ee.ReadError) as error:
        open_source(str(path))
    assert "is a spreadsheet" in str(error.value)
    for minute in range(0, 60, 5):  # the time is in the header, and may be readable text
        with zipfile.ZipFile(path, "w") as made:
            written = zipfile.ZipInfo("a.csv", (2026, 11, 30, 4, minute, 0))
            made.writestr(written, "x\n1\n")
        with pytest.raises(ee.ReadError) as other:
            open_source(str(path))
        assert "is a spreadsheet" not in str(other.value)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv", "json", "jsonl"])
def test_pointers_of_lfs_are_named(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{ending}"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12\n")
    with refused("format_unknown", ee.ReadError) as error:
        open_source(str(path))
    assert "git lfs pull" in str(error.value)


def test_a_csv_without_a_header(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("1,a,b\n2,b,b\n")
    with pytest.raises(ee.InputError, match="Line 1 of the table looks like data"):
        ee.score(str(path))
    path.write_text("one,two,three\n2,b,b\n")
    with pytest.raises(ee.InputError) as error:
        ee.score(str(path))
    assert "Line 1" not in str(error.value)


def test_headers_with_blanks_and_texts_of_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("y_true, y_pred\na,a\nb,a\n")
    assert ee.score(str(path)).value("Accuracy") == 0.5
    path.write_text("y_true,score\n1,87%\n0,12%\n")
    with pytest.raises(ee.InputError, match="for 87%"):
        ee.score(str(path))
    path.write_text("datum_id,y_true,y_pred\n12e4567,a,b\n13e4567,b,b\n")
    with pytest.raises(ee.InputError, match="infer_schema=False"):
        ee.score(str(path))
    table = pl.read_csv(path, infer_schema=False)
    assert ee.score(table).value("Accuracy") == 0.5


def test_boxes_as_texts_are_refused_with_a_remedy() -> None:
    found = pl.DataFrame({"image_id": ["a.jpg"], "label": ["a"], "bbox": ["[1, 2, 3, 4]"]})
    with pytest.raises(ee.InputError, match="json_decode"):
        ee.score(found.with_columns(score=0.5), found, task="detection")
    found = found.with_columns(pl.col("bbox").str.json_decode(pl.List(pl.Float64)))
    card = ee.score(found.with_columns(score=0.5), found, box_format="xywh")
    assert card.value("mAP", iou=0.5) == pytest.approx(1)


def test_a_dialect_of_another_task_names_it() -> None:
    with refused("unknown_name", ee.OptionError, value="sklearn") as error:
        ee.explain(task="detection", dialect="sklearn")
    assert "classification and regression" in str(error.value)
    assert len(str(error.value)) < 200


def test_images_that_are_not_listed_are_not_called_false_positives(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text(json.dumps(truths(annotation())))
    rows = [result(), result(image=99)]
    (tmp_path / "p.json").write_text(json.dumps(rows))
    paths = str(tmp_path / "p.json"), str(tmp_path / "g.json")
    for dialect, scored in (("coco", False), ("standard", True)):
        card = ee.score(*paths, dialect=dialect)
        (note,) = [one.message for one in card.findings if one.code == "datums_not_listed"]
        assert "99" in note
        assert ("false positives" in note) is scored


def test_paths_of_images_are_suggested_as_ids() -> None:
    truth = {
        "image_path": ["a.jpg"],
        "label": ["a"],
        "xmin": [1],
        "ymin": [1],
        "xmax": [5],
        "ymax": [5],
    }
    found = {**truth, "score": [0.5]}
    with refused("column_missing", ee.InputError, column="datum_id") as error:
        ee.score(pl.DataFrame(found), pl.DataFrame(truth))
    assert "'image_path'" in str(error.value)
