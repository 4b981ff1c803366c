"""COCO JSON is read exactly as written, to the bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from coco_files import Json, Write, annotation, result, truths, writer
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import tune
from small_tables import kinds, load, note

from evalengine.ingest.converting import convert_coco
from evalengine.ingest.sources.json_files import sniff
from evalengine.ingest.sources.tables import open_source
from evalengine.schemas.errors import ReadError
from evalengine.schemas.tuning import tuned


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return writer(tmp_path)


def test_results_become_predictions(write: Write) -> None:
    frames = load(
        write("dt.json", [result(), result(image=2, score=1)]), write("gt.json", truths())
    )
    assert frames.predictions.to_dicts() == [
        {"datum_id": 1, "label_value": 7, "score": 0.5, "xmin": 1.0, "ymin": 2.5, "xmax": 4.0,
         "ymax": 6.5, "box_width": 3.0, "box_height": 4.0},
        {"datum_id": 2, "label_value": 7, "score": 1.0, "xmin": 1.0, "ymin": 2.5, "xmax": 4.0,
         "ymax": 6.5, "box_width": 3.0, "box_height": 4.0},
    ]  # fmt: skip
    assert frames.sources["predictions"].startswith("COCO results ")


def test_annotations_become_ground_truths(write: Write) -> None:
    frames = load(write("dt.json", [result()]), write("gt.json", truths()))
    assert frames.ground_truths.to_dicts() == [
        {"datum_id": 1, "label_value": 7, "xmin": 0.1, "ymin": 0.2, "xmax": 0.1 + 3,
         "ymax": 0.2 + 4.5, "box_width": 3.0, "box_height": 4.5, "iscrowd": False, "area": 11.25,
         "annotation_id": 1},
    ]  # fmt: skip
    assert frames.ground_truths.schema["iscrowd"] == pl.Boolean


def test_images_are_datums_and_categories_are_labels(write: Write) -> None:
    frames = load(write("dt.json", [result()]), write("gt.json", truths()), by=("weather",))
    assert frames.datums is not None
    assert frames.datums.select("datum_id", "file_name", "width").rows() == [
        (1, "a.jpg", 640.0), (2, "b.jpg", 64.0),
    ]  # fmt: skip
    assert frames.labels is not None
    assert frames.labels.rows() == [(7, "cat", "animal"), (9, "x", None)]
    assert frames.slices is not None
    assert frames.slices.rows() == [(1, "rain"), (2, "sun")]
    assert note(frames, "datums_without_predictions") == "1 datum without predictions: 2."


def test_given_datums_and_labels_have_priority(write: Write) -> None:
    frames = load(
        write("dt.json", [result()]), write("gt.json", truths()), datums=[1], labels={7: "dog"}
    )
    assert frames.datums is not None
    assert frames.datums.rows() == [(1,)]
    assert frames.labels is not None
    assert frames.labels.rows() == [(7, "dog")]


def test_results_with_string_ids(write: Write) -> None:
    given = truths(
        annotation(image="a", category="cat", id_="x"),
        images=[{"id": "a"}], categories=[{"id": "cat", "name": "Cat"}],
    )  # fmt: skip
    frames = load(write("dt.json", [result("a", "cat")]), write("gt.json", given))
    assert frames.predictions.schema["datum_id"] == pl.String
    assert frames.predictions["label_value"].to_list() == ["cat"]
    assert frames.ground_truths["annotation_id"].to_list() == ["x"]


def test_ids_beyond_int64(write: Write) -> None:
    big = 2**63 + 5
    given = truths(annotation(image=big), images=[{"id": big}])
    frames = load(write("dt.json", [result(big)]), write("gt.json", given))
    assert frames.predictions["datum_id"].to_list() == [big]


def test_ids_beyond_int64_among_small_ones(write: Write) -> None:
    tune(json_bytes=1)
    ids = [1, 2**63 + 5, 2**53 + 1]
    frame = open_source(write("dt.json", [result(i) for i in ids])).frame.collect()
    assert frame["datum_id"].to_list() == ids
    assert frame.schema["datum_id"] == pl.UInt64


def test_an_empty_results_file_is_legal(write: Write) -> None:
    frames = load(write("dt.json", "[]"), write("gt.json", truths()))
    assert frames.predictions.height == 0
    assert frames.predictions.schema["datum_id"] == pl.Int64
    assert frames.predictions.schema["label_value"] == pl.Int64


def test_ground_truths_without_annotations_are_legal(write: Write) -> None:
    frames = load(write("dt.json", [result()]), write("gt.json", truths() | {"annotations": []}))
    assert frames.ground_truths.height == 0
    assert note(frames, "datums_without_ground_truths").startswith("2 datums")


def test_crowds_ignores_and_booleans(write: Write) -> None:
    given = truths(annotation(1, iscrowd=True, ignore=1), annotation(2, iscrowd=0))
    frame = load(write("dt.json", [result()]), write("gt.json", given)).ground_truths
    assert frame["iscrowd"].to_list() == [True, False]
    assert frame["ignore"].to_list() == [True, False]


def test_flags_and_areas_missing_in_some_rows_are_filled(write: Write) -> None:
    bare = annotation(2)
    del bare["iscrowd"], bare["area"]
    frames = load(write("dt.json", [result()]), write("gt.json", truths(annotation(1), bare)))
    assert frames.ground_truths["iscrowd"].to_list() == [False, False]
    assert frames.ground_truths["area"].to_list() == [11.25, 13.5]
    assert "1 without area" in note(frames, "area_filled")


def test_fields_missing_everywhere_are_not_columns(write: Write) -> None:
    bare = {name: annotation()[name] for name in ("image_id", "category_id", "bbox")}
    frames = load(write("dt.json", [result()]), write("gt.json", truths(bare)))
    assert not {"iscrowd", "ignore", "area", "annotation_id"} & set(frames.ground_truths.columns)


def test_annotations_with_scores_serve_as_predictions(write: Write) -> None:
    path = write("dt.json", truths(annotation(score=0.25)))
    assert load(path, write("gt.json", truths())).predictions["score"].to_list() == [0.25]


def test_only_annotations_serve_as_ground_truths(write: Write) -> None:
    path = write("gt.json", [annotation(5, iscrowd=1)])
    frame = load(write("dt.json", [result()]), path).ground_truths
    assert frame["annotation_id"].to_list() == [5]
    assert frame["iscrowd"].to_list() == [True]


def test_records_with_another_box_format_are_plain_records(write: Write) -> None:
    path = write("dt.json", [result(), result(image=2)])
    frames = load(path, write("gt.json", truths()), box_format="xyxy")
    assert frames.predictions["xmax"].to_list() == [3.0, 3.0]
    assert load(path, write("gt.json", truths()), box_format="xywh").predictions[
        "xmax"
    ].to_list() == [4.0, 4.0]
    renamed = {"confidence" if key == "score" else key: value for key, value in result().items()}
    frames = load(write("dt.json", [renamed]), write("gt.json", truths()), box_format="xywh")
    assert frames.predictions["score"].to_list() == [result()["score"]]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (truths(), "coco"),
        ({"annotations": []}, "coco"),
        ([], "coco_results"),
        ([result()], "coco_results"),
        ([{"image_id": 1, "category_id": 1, "segmentation": [[0, 1]], "score": 1}], "coco_results"),
        ([annotation()], "coco_annotations"),
        ([{"datum_id": 1, "label_value": "a"}], "records"),
        ([{"image_id": 1, "label": "a", "bbox": [1, 2, 3, 4]}], "records"),
        ([{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "confidence": 1}], "records"),
        ([1, 2], "records"),
        ('  \n [ {"image_id": 1, "category_id": 2, "bbox": [1,2,3,4]} ]', "coco_results"),
        ("\ufeff[]", "coco_results"),
        ('{"a": 1}\n{"a": 2}\n', "lines"),
    ],
)
def test_sniff(content: Any, kind: str, write: Write) -> None:
    assert sniff(write("x.json", content)) == kind


def test_sniff_reads_beyond_a_long_first_object(write: Write) -> None:
    first = {"segmentation": {"size": [1, 1], "counts": "x" * 300_000}, **result()}
    assert sniff(write("x.json", [first])) == "coco_results"


number = st.floats(-1e5, 1e5)
size = st.one_of(st.integers(0, 1000), st.floats(0, 1e5))
row = st.builds(
    lambda i, c, s, box, extra: {"image_id": i, "category_id": c, "score": s, "bbox": box, **extra},
    st.integers(0, 50), st.integers(1, 90), st.floats(0, 1),
    st.tuples(number, number, size, size).map(list),
    st.sampled_from([{}, {"segmentation": {"size": [1, 2], "counts": "},{ ] }, {"}},
                     {"segmentation": [[1, 2, 3]], "id": 4}, {"note": "a},{b"},
                     {"nested": [{"a": 1}, {"b": 2}]}]),
)  # fmt: skip


@given(st.lists(row, max_size=30), st.sampled_from([None, 1, 1000]), st.integers(1, 400))
@settings(max_examples=25)
def test_results_are_read_to_the_bit_in_chunks_of_any_size(
    tmp_path: Path, rows: list[Json], indent: int | None, piece: int
) -> None:
    path = tmp_path / "dt.json"
    path.write_text(json.dumps(rows, indent=indent))
    with tuned(json_bytes=piece):
        frame = open_source(path).frame.collect()
    if not rows:
        assert frame.height == 0
        return
    wanted = [
        (r["image_id"], r["category_id"], r["score"], x, y, x + w, y + h, w, h)
        for r in rows
        for x, y, w, h in [r["bbox"]]
    ]
    assert frame.drop("polygon", "mask", strict=False).rows() == wanted
    for name, first in (("polygon", list), ("mask", dict)):
        given = [type(r.get("segmentation")) is first for r in rows]
        assert (name in frame.columns) == any(given)
        if any(given):
            assert frame[name].is_not_null().to_list() == given


ROW = json.dumps(annotation())
OTHER = json.dumps(annotation(area=99.0))
IMAGES = '"images": [{"id": 1, "file_name": "\\"annotations\\": ["}]'


@pytest.mark.parametrize(
    "text",
    [
        f'{{{IMAGES}, "annotations": [{ROW}], "categories": [{{"id": 7}}]}}',
        f'{{"annotations" :\n[{ROW}] , "categories": [{{"id": 7}}], {IMAGES}}} \n',
        f'{{"categories": [{{"id": 7}}], {IMAGES}, "annotations": [{ROW}]}}',
        f'{{"info": {{"annotations": [{OTHER}]}}, "annotations": [{ROW}], {IMAGES},'
        ' "categories": [{"id": 7}]}',
        f'{{"annotations": [{OTHER}], {IMAGES}, "categories": [{{"id": 7}}],'
        f' "annotations": [{ROW}]}}',
        f'{{"annot\\u0061tions": [{ROW}], "x": {{"annotations": [{OTHER}]}}, {IMAGES},'
        ' "categories": [{"id": 7}]}',
    ],
)
def test_annotations_are_found_wherever_they_are(text: str, tmp_path: Path) -> None:
    path = tmp_path / "gt.json"
    path.write_text(text, encoding="utf-8")
    tune(json_bytes=16)
    source = open_source(path)
    expected = json.loads(text)["annotations"]
    assert source.frame.select("area").collect().to_series().to_list() == [expected[0]["area"]]
    assert source.datums is not None
    assert source.datums["datum_id"].to_list() == [1]
    assert source.labels is not None
    assert source.labels["label_value"].to_list() == [7]


@pytest.mark.parametrize("rest", ["", "]", ', "categories": [}', ', "images": [1 2]}', "}}"])
def test_files_broken_after_their_annotations_are_refused(rest: str, tmp_path: Path) -> None:
    path = tmp_path / "gt.json"
    path.write_text(f'{{"annotations": [{ROW}]{rest}', encoding="utf-8")
    tune(json_bytes=16)
    with pytest.raises(ReadError):
        open_source(path)


def test_score_reads_the_output_of_convert(write: Write, tmp_path: Path) -> None:
    truth, results = write("gt.json", truths()), write("dt.json", [result(), result(image=2)])
    out = tmp_path / "made" / "here"
    written = convert_coco(truth, results, out=out)
    assert written == {"predictions.parquet": 2, "groundtruths.parquet": 1, "datums.parquet": 2,
                       "labels.parquet": 2}  # fmt: skip
    assert sorted(path.name for path in out.iterdir()) == sorted(written)
    ours = load(results, truth)
    theirs = load(
        out / "predictions.parquet", out / "groundtruths.parquet",
        datums=out / "datums.parquet", labels=out / "labels.parquet",
    )  # fmt: skip
    for side in ("predictions", "ground_truths", "datums", "labels"):
        assert getattr(ours, side).equals(getattr(theirs, side)), side
    assert kinds(ours) == kinds(theirs)


def test_convert_without_results_and_with_empty_ones(write: Write, tmp_path: Path) -> None:
    truth = write("gt.json", truths())
    assert "predictions.parquet" not in convert_coco(truth, out=tmp_path / "a")
    assert (
        convert_coco(truth, write("dt.json", "[]"), out=tmp_path / "b")["predictions.parquet"] == 0
    )
    assert load(tmp_path / "b" / "predictions.parquet", truth).predictions.height == 0
