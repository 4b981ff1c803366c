"""Invalid COCO JSON is refused with the index and field of the fault."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from coco_files import Write, annotation, result, truths, writer
from refusals import refused
from sizes import tune
from small_tables import load, refusal

import evalengine as ee
from evalengine.ingest.converting import convert_coco
from evalengine.schemas.errors import InputError, ReadError


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return writer(tmp_path)


def test_results_without_score_are_refused(write: Write) -> None:
    bare = {name: result()[name] for name in ("image_id", "category_id", "bbox")}
    message = refusal(write("dt.json", [bare]), write("gt.json", truths()))
    assert message.has("column_missing", side="predictions", column="score")


MISFITS: list[tuple[Any, str]] = [
    ([result(), {**result(), "bbox": [1, 2, 3]}], "result 1 (counted from 0), field 'bbox'"),
    (
        [result(), {**result(), "bbox": [1, 2, "3", 4]}],
        "result 1 (counted from 0), field 'bbox[2]'",
    ),
    ([result(), {**result(), "bbox": [1, 2, None, 4]}], "field 'bbox[2]'"),
    ([result(), {**result(), "score": "high"}], "result 1 (counted from 0), field 'score'"),
    ([result(), {**result(), "image_id": 1.5}], "result 1 (counted from 0), field 'image_id'"),
    ([result(), {"bbox": [1, 2, 3, 4]}], "missing required field 'image_id'"),
    ([result(), 3], "result 1 (counted from 0): expected 'object', got 'int'"),
]


@pytest.mark.parametrize(("content", "words"), MISFITS)
def test_rows_that_do_not_fit_name_index_and_field(content: Any, words: str, write: Write) -> None:
    path = write("dt.json", content)
    message = refusal(path, write("gt.json", truths()))
    assert message.startswith(f"{path}: ")
    assert words in message


def test_the_index_counts_over_chunks(write: Write) -> None:
    tune(json_bytes=100)
    rows = [result(image=i) for i in range(1000)]
    rows[777]["score"] = "high"
    assert "result 777 (counted" in refusal(write("dt.json", rows), write("gt.json", truths()))


@pytest.mark.parametrize("what", ["image", "category", "annotation"])
def test_ground_truth_rows_that_do_not_fit(what: str, write: Write) -> None:
    given = truths()
    if what == "annotation":
        given["annotations"].append({**annotation(), "iscrowd": "no"})
        words = "annotation 1 (counted from 0), field 'iscrowd'"
    elif what == "image":
        given["images"].append({"file_name": "c.jpg"})
        words = "image 2 (counted from 0), field 'id'"
    else:
        given["categories"].append({"id": 3, "name": 5})
        words = "category 2 (counted from 0), field 'name'"
    assert words in refusal(write("dt.json", [result()]), write("gt.json", given))


@pytest.mark.parametrize("piece", [1, 150, 1 << 20])
def test_mixed_ids_name_the_first_odd_one(piece: int, write: Write) -> None:
    tune(json_bytes=piece)
    rows = [result(image=1), result(image=2), result(image=1), result(image="3")]
    message = refusal(write("dt.json", rows), write("gt.json", truths()))
    assert message.has("types_mixed", field="image_id", row=3)


def test_repeated_images_are_refused(write: Write) -> None:
    given = truths(images=[{"id": 1}, {"id": 1}])
    message = refusal(write("dt.json", [result()]), write("gt.json", given))
    assert message.has(
        "repeated_values",
        side="datums",
        column="datum_id",
        count=2,
        rows=[0, 1],
        values=1,
        key=["datum_id"],
    )


def test_repeated_annotation_ids_are_refused(write: Write) -> None:
    given = truths(annotation(3), annotation(3))
    message = refusal(write("dt.json", [result()]), write("gt.json", given))
    assert message.has(
        "repeated_values",
        side="ground_truths",
        column="annotation_id",
        count=2,
        rows=[0, 1],
        values=1,
        key=["annotation_id"],
    )


def test_negative_widths_are_refused(write: Write) -> None:
    rows = [result(), {**result(), "bbox": [1, 2, -3, 4]}]
    message = refusal(write("dt.json", rows), write("gt.json", truths()))
    assert message.has("too_low", side="predictions", column="box_width", count=1, rows=[1])


def test_neither_box_nor_segmentation_is_refused(write: Write) -> None:
    nothing = {name: value for name, value in result().items() if name != "bbox"}
    message = refusal(
        write("dt.json", [result(), nothing, nothing | {"keypoints": [1]}]),
        write("gt.json", truths()),
    )
    assert message.has("geometry_missing", count=2, of=3, row=1)
    bare = annotation(2)
    del bare["bbox"]
    message = refusal(write("dt.json", [result()]), write("gt.json", truths(annotation(), bare)))
    assert message.has("geometry_missing", count=1, of=2, row=1)


@pytest.mark.parametrize("box", [None, float("nan")])
def test_results_in_memory_without_a_box_are_refused_as_those_of_files(box: object) -> None:
    """Missing boxes of a pandas table's ``to_dict("records")``."""
    message = refusal([{**result(), "bbox": box}, result()], truths())
    assert message.has("geometry_missing", count=1, of=2, row=0)


@pytest.mark.parametrize("segmentation", [[[0, 0, "x", 1, 1, 0]], {"size": [3, 3]}, "RLE"], ids=str)
def test_segmentations_of_no_form_are_named(segmentation: Any, write: Write) -> None:
    ring = [[0, 0, 3, 0, 3, 3]]
    rows = [annotation(segmentation=ring), annotation(2, segmentation=segmentation)]
    message = refusal(
        write("dt.json", [result(segmentation=ring)]), write("gt.json", truths(*rows))
    )
    assert message.has("file_malformed", field="segmentation")
    assert "annotation 1 (" in message
    assert "Expected polygons" in message


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.99])
def test_truncated_json_is_named(cut: float, write: Write) -> None:
    text = json.dumps([result()] * 20)
    path = write("dt.json", text[: int(len(text) * cut)])
    assert refusal(path, write("gt.json", truths())).has("file_truncated")
    text = json.dumps(truths())
    path = write("gt.json", text[: int(len(text) * cut)])
    assert "truncated" in refusal(write("dt.json", [result()]), path)


def test_nan_in_json_is_named(write: Write) -> None:
    path = write("dt.json", json.dumps([result(), result(score=float("nan"))]))
    message = refusal(path, write("gt.json", truths()))
    assert message.has("not_finite", byte=141)
    assert '"score": NaN' in message


@pytest.mark.parametrize("text", ['[{"image_id": 1,, }]', "hello", '{"annotations": [}'])
def test_invalid_json_is_named(text: str, write: Write) -> None:
    path = write("dt.json", text)
    message = refusal(path, write("gt.json", truths()))
    assert message.startswith(f"{path}: ")
    assert "JSON" in message


def test_an_object_that_is_not_coco_is_refused(write: Write) -> None:
    message = refusal(write("dt.json", {"datum_id": [1]}), write("gt.json", truths()))
    assert message.has("wrong_format")


def test_several_results_files_are_one_table_but_ground_truths_are_not(write: Write) -> None:
    paths = [write("a.json", [result()]), write("b.json", [result(image=2)])]
    truth = write("gt.json", truths())
    assert load(paths, truth).predictions["datum_id"].to_list() == [1, 2]
    other = write("gt2.json", truths())
    assert refusal(paths, [truth, other]).has("several_files")


def test_convert_refuses_the_wrong_way_round(write: Write, tmp_path: Path) -> None:
    truth, results = write("gt.json", truths()), write("dt.json", [result()])
    with refused("wrong_format", ReadError, format="coco_results"):
        convert_coco(results, truth, out=tmp_path / "out")
    with pytest.raises(ReadError, match="no such file"):
        convert_coco(tmp_path / "gone.json", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        pl.exceptions.ComputeError("No space left on device (os error 28)"),
    ],
)
def test_convert_writes_all_or_nothing(
    error: Exception, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    real = pl.DataFrame.write_parquet

    def fail_on_labels(frame: pl.DataFrame, file: Any, **more: Any) -> None:
        if "labels" in Path(file.name).name:
            raise error
        real(frame, file, **more)

    monkeypatch.setattr(pl.DataFrame, "write_parquet", fail_on_labels)
    with refused("write_failed", InputError, match="No space left"):
        convert_coco(write("gt.json", truths()), out=out)
    assert list(out.iterdir()) == []


def test_an_empty_box_next_to_a_mask_is_ignored(tmp_path: Path) -> None:
    """As in pycocotools, the box is that of the mask."""
    mask = {"size": [10, 10], "counts": [0, 25, 75]}
    truths = {
        "images": [{"id": 1, "width": 10, "height": 10}],
        "categories": [{"id": 1, "name": "x"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [], "area": 25,
                         "iscrowd": 0, "segmentation": mask}],
    }  # fmt: skip
    results = [{"image_id": 1, "category_id": 1, "bbox": [], "segmentation": mask, "score": 0.5}]
    for name, content in (("t.json", truths), ("r.json", results)):
        (tmp_path / name).write_text(json.dumps(content))
    card = ee.score(str(tmp_path / "r.json"), str(tmp_path / "t.json"), dialect="coco")
    assert card.value("mAP", iou_threshold=0.5) == pytest.approx(1.0)


@pytest.mark.parametrize("field", ["image_id", "category_id", "id"])
@pytest.mark.parametrize("value", [2**64, 2**70, -(2**63) - 1])
def test_ids_beyond_64_bits_are_named(field: str, value: int, tmp_path: Path) -> None:
    row = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 5, 5], "area": 25, "iscrowd": 0}
    truths = {"images": [], "categories": [], "annotations": [row, {**row, field: value}]}
    (tmp_path / "t.json").write_text(json.dumps(truths))
    (tmp_path / "r.json").write_text("[]")
    with refused("number_too_large", ee.InputError, match=field, row=1):
        ee.score(str(tmp_path / "r.json"), str(tmp_path / "t.json"), dialect="coco")


@pytest.mark.parametrize("what", ["images", "categories"])
@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, 10**400])
def test_ids_of_images_and_categories_beyond_64_bits(what: str, value: int, write: Write) -> None:
    content = truths(annotation())
    content[what] = [{"id": 1, "name": "a"}, {"id": value, "name": "b"}]
    with refused("number_too_large", InputError, field="id", row=1) as error:
        load(write("gt.json", content))
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("field", ["iscrowd", "ignore"])
@pytest.mark.parametrize("value", [2**64, -(2**70), 10**400])
def test_flags_beyond_64_bits(field: str, value: int, write: Write) -> None:
    content = truths(annotation(), annotation(id=2, **{field: value}))
    with refused("number_too_large", InputError, match=field, row=1):
        load(write("gt.json", content))
