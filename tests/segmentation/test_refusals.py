"""What cannot be scored is refused by name; what tells the task, and what does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from segmentation.making import NAMES, rows_of, some_maps

import evalengine as ee
from evalengine.ingest.frames import Frames
from evalengine.tally.datums import Datums
from evalengine.tasks.segmentation.layer_masks import Sizes

FOUND, TRUTH = some_maps(n=2)
ROWS = rows_of(FOUND)


def refused(*sides: Any, **options: Any) -> str:
    with pytest.raises(ee.InputError) as raised:
        ee.score(*sides, **options)
    return str(raised.value)


NO_PICTURE = pl.DataFrame({"datum_id": [0], "raster": ["no_such.tif"]})
BOW = pl.DataFrame(
    {"datum_id": [0], "label_value": ["car"],
     "polygon": [[[[0.0, 0.0], [4.0, 4.0], [4.0, 0.0], [0.0, 4.0]]]]}
)  # fmt: skip
NO_MASK = pl.when(pl.col("label_value") == "car").then(None).otherwise("mask").alias("mask")
KEYS = pl.DataFrame({"datum_id": [0, 0], "label_key": ["k", "j"], "raster": [[[1, 1]], [[1, 1]]]})
ONE_KEY = pl.DataFrame({"label_key": ["k"], "label_value": ["a"], "index": [1]})


def map_of(raster: Any) -> pl.DataFrame:
    return pl.DataFrame({"datum_id": [0], "raster": raster})


@pytest.mark.parametrize(
    ("found", "truth", "labels", "said"),
    [
        (FOUND[:, :9], TRUTH, None,
         ["2 pairs of label maps cannot be compared",
          "predictions, row 0 (datum_id=0): its raster is 9 x 13, the ground truth's 16 x 13"]),
        (ROWS, rows_of(TRUTH[:, :9]), None, ["masks of one datum (0) must be of one size"]),
        (ROWS, TRUTH[:, :9], NAMES, ["16 x 13"]),
        (FOUND / 2, TRUTH, None, ["map 0 holds float64"]),
        ({"a": FOUND[0] / 2}, {"a": TRUTH[0]}, None, ["datum 'a' holds float64"]),
        (map_of([FOUND[0].astype(float).tolist()]), TRUTH, None,
         ["column 'raster' has dtype List(List(Float64))"]),
        (map_of(pl.Series([FOUND], dtype=pl.Object)), TRUTH, None, ["shape (2, 16, 13)"]),
        (map_of([[[1, 2], [1]]]), TRUTH[:1], None, ["lines of 1 to 2 pixels"]),
        (FOUND.astype(np.int64) << 40, TRUTH, None,
         ["predictions, row 0 (datum_id=0)", "within 32 bits"]),
        (pl.DataFrame({"datum_id": [0, 0], "raster": FOUND.tolist()}), TRUTH, None,
         ["2 rows of a datum that has several label maps"]),
        (ROWS.with_columns(NO_MASK), TRUTH, NAMES,
         ["2 rows without any pixels, first (rows count from 0): row 1 (datum_id=0"]),
        (ROWS.drop("label_value"), TRUTH, None,
         ["'label_value' is missing: a mask is of one label"]),
        (FOUND, ROWS, None, ["label maps hold indices (0, 1, 2)"]),
        (BOW, rows_of(TRUTH[:1]), None, ["polygon"]),
        (NO_PICTURE, NO_PICTURE, None,
         ["1 file not there, looked for in the current folder: ground truths"]),
        (KEYS, KEYS, ONE_KEY, ["labels= names none of label_key 'j'."]),
    ],
)  # fmt: skip
def test_refused_by_name(found: Any, truth: Any, labels: Any, said: list[str]) -> None:
    message = refused(found, truth, labels=labels)
    for words in said:
        assert words in message


def test_self_crossing_polygons_are_repaired() -> None:
    assert ee.score(BOW, rows_of(TRUTH[:1]), invalid_polygons="repair").metrics.height


def test_sizes_that_are_no_pixels() -> None:
    polygons = pl.DataFrame(
        {"datum_id": [0, 1], "label_value": ["a", "a"], "polygon": [[[[0, 0], [4, 0], [4, 4]]]] * 2}
    )
    sized = {"height": [10.0, 10.7], "width": [10.0, 10.0]}
    table = pl.DataFrame({"datum_id": [0, 1], **sized})
    said = refused(polygons, polygons, datums=table)
    assert "datums: 1 row with a height or width that is not a number of pixels" in said
    assert "datum_id=1 with height 10.7 and width 10." in said
    own = polygons.with_columns(**{name: pl.Series(column) for name, column in sized.items()})
    said = refused(polygons, own)
    assert "ground truths: 1 row with a height or width that is not a number of pixels" in said
    assert "row 1 (datum_id=1) with height 10.7 and width 10." in said
    for wrong in (0.0, -3.0):
        assert "not a number of pixels" in refused(
            polygons, polygons, datums=table.with_columns(height=wrong)
        )
    whole = table.with_columns(height=10.0)
    assert ee.score(polygons, polygons, datums=whole).value("mIOU") == 1.0


def test_sizes_are_held_against_those_before_and_named_only_then() -> None:
    n = 200_000
    datums = Datums(None, pl.DataFrame(), rows=n // 2)
    sizes = Sizes(datums, Frames(sides={}))
    called: list[int] = []

    def who(row: int) -> str:
        called.append(row)
        return f"row {row}"

    datum = np.arange(n) // 2
    size = np.stack([datum % 7 + 1, datum % 5 + 1], axis=1)
    size[::9] = 0  # nothing said by one of two rows
    sizes.hold(datum, size, who)
    assert not called
    assert (sizes.size[:, 0] == np.arange(n // 2) % 7 + 1).all()
    size[[3, 5]] += 1
    with pytest.raises(ee.InputError) as raised:
        sizes.hold(datum, size, who)
    assert sorted(called) == [2, 3]
    assert "row 3: its pixels are 3 x 3 (height x width), and those of row 2 2 x 2" in str(
        raised.value
    )
    assert "So are 1 more." in str(raised.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ignore_index": 0, "background": 0}, "ignore_index=0"),
        ({"ignore_index": 0, "dialect": "valor"}, "background in dialect 'valor'"),
        ({"invalid_polygons": "keep"}, "'keep' is not a known way with polygons"),
        ({"metrics": ["IOUs"]}, "Did you mean 'IOU'"),
        ({"dialect": "coco"}, "not a known dialect of segmentation"),
    ],
)
def test_options(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ee.OptionError, match=said):
        ee.score(FOUND, TRUTH, task="segmentation", **options)


def test_options_that_nothing_reads_are_told() -> None:
    card = ee.score(ROWS, rows_of(TRUTH), ignore_index=255, iou_type="segm")
    assert any("ignore_index=255 is not read" in note for note in card.notes)
    assert any("iou_type is an option of detection" in note for note in card.notes)


def test_the_task_follows() -> None:
    assert ee.score(FOUND, TRUTH).task == "segmentation"
    assert ee.score(ROWS, rows_of(TRUTH)).task == "segmentation"
    assert ee.score({"a": FOUND[0]}, {"a": TRUTH[0]}).task == "segmentation"
    assert ee.score({"q": {"d": 1.0}}, {"q": {"d": 1.0}}).task == "retrieval"


def test_scores_are_not_read() -> None:
    scored = ROWS.with_columns(score=pl.lit(0.5))
    card = ee.score(scored, rows_of(TRUTH), task="segmentation")
    assert any("'score' is not read: pixels count whatever their score" in n for n in card.notes)


def test_check_reads_the_pixels() -> None:
    report = ee.check(FOUND, TRUTH, labels=NAMES)
    assert report.rows == {"predictions": 2, "ground_truths": 2, "labels": 4}
    with pytest.raises(ee.InputError, match="has no name"):
        ee.check(FOUND, TRUTH, labels=NAMES[:1])


def test_explain() -> None:
    said = ee.explain(task="segmentation", dialect="valor", ignore_index=255)
    assert "ignored index 255, background 0" in said
    assert "mean      over labels that are true (mIOU)" in said


@pytest.mark.parametrize(
    ("side", "said"),
    [
        (pl.DataFrame({"raster": [[[1, 2]]]}), "column 'datum_id' is missing"),
        ({1.5: FOUND[0]}, "column 'datum_id' has dtype Float64"),
        (pl.DataFrame({"datum_id": [0], "label_value": ["a"]}), "no pixels"),
        (pl.DataFrame({"datum_id": [0], "label_value": ["a"], "mask": [1.5]}), "'mask' has dtype"),
        (pl.DataFrame({"datum_id": [0], "raster": [3]}), "column 'raster' has dtype Int64"),
    ],
)
def test_missing_columns_are_told_and_nothing_beside(side: Any, said: str) -> None:
    message = refused(side, side, task="segmentation")
    assert said in message
    assert message.count("\n- ") == 2  # one problem a side
    assert "a  is of one label" not in message


_OBJECT = pl.DataFrame(
    {"datum_id": [0], "label_value": ["a"], "mask": [{"size": [2, 2], "counts": [0, 4]}]}
)


@pytest.mark.parametrize("told", ["score", "confidence", "iscrowd"])
def test_columns_of_objects_on_either_side_tell_against_segmentation(told: str) -> None:
    with_column = _OBJECT.with_columns(pl.lit(0).alias(told))
    scored = _OBJECT.with_columns(score=0.5)
    assert "the two tables swapped" in refused(_OBJECT.with_columns(iscrowd=0), scored)
    if told == "iscrowd":
        assert ee.score(scored, with_column).task == "detection"
        assert "write columns=" in refused(_OBJECT.with_columns(p=0.5), with_column)
        assert ee.score(
            scored.rename({"score": "p"}), with_column, columns={"p": "score"}
        ).task == ("detection")
    else:
        assert "the two tables swapped" in refused(_OBJECT, with_column)
    assert ee.score(_OBJECT, with_column, task="segmentation").task == "segmentation"
    assert ee.score(_OBJECT, _OBJECT).task == "segmentation"


def test_a_column_that_may_hold_scores_is_told() -> None:
    found = _OBJECT.with_columns(p=0.5)
    card = ee.score(found, _OBJECT)
    assert card.task == "segmentation"
    (note,) = card.notes
    assert "column 'p' is not read" in note
    assert "columns={'p': 'score'}" in note.replace('"', "'")
    assert ee.score(found, _OBJECT, columns={"p": "score"}).task == "detection"
    for sides, options in (
        ((found, _OBJECT), {"task": "segmentation"}),
        ((found, found), {}),
        ((_OBJECT.with_columns(p=1), _OBJECT), {}),
    ):
        assert ee.score(*sides, **options).notes == ()


@pytest.mark.parametrize("labelled", [True, False])
def test_rasters_too_large_for_masks(labelled: bool) -> None:
    vast = np.broadcast_to(np.uint8(1), (1 << 16, 1 << 16))
    table = pl.DataFrame({"datum_id": [0], "raster": pl.Series([vast], dtype=pl.Object)})
    if labelled:
        table = table.with_columns(label_value=pl.lit("a"))
    mask = pl.DataFrame({"datum_id": [0], "label_value": ["a"], "mask": [[[1]]]})
    said = refused(mask, table, labels=["b", "a"], task="segmentation")
    assert "ground truths, row 0 (datum_id=0): a raster of 65536 x 65536 pixels" in said
    assert "fewer than 2^32" in said
