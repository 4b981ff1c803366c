"""Refusals of input that cannot be scored, and inference of the task."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import noted, refused
from segmentation.making import NAMES, rows_of, some_maps

import evalengine as ee
from evalengine.ingest.frames import Frames
from evalengine.tallies.datums import Datums
from evalengine.tasks.segmentation.layers import Sizes

FOUND, TRUTH = some_maps(n=2)
ROWS = rows_of(FOUND)


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
    ("predictions", "truth", "labels", "code", "facts"),
    [
        (FOUND[:, :9], TRUTH, None, "grids_differ", {"count": 2, "rows": [0]}),
        (ROWS, rows_of(TRUTH[:, :9]), None, "sizes_differ", {}),
        (ROWS, TRUTH[:, :9], NAMES, "sizes_differ", {}),
        (FOUND / 2, TRUTH, None, "wrong_dtype", {"value": 0}),
        ({"a": FOUND[0] / 2}, {"a": TRUTH[0]}, None, "wrong_dtype", {"value": "a"}),
        (map_of([FOUND[0].astype(float).tolist()]), TRUTH, None,
         "wrong_dtype", {"column": "raster"}),
        (map_of(pl.Series([FOUND], dtype=pl.Object)), TRUTH, None,
         "wrong_shape", {"shape": (2, 16, 13)}),
        (map_of([[[1, 2], [1]]]), TRUTH[:1], None, "pixels_uneven", {"rows": [0]}),
        (FOUND.astype(np.int64) << 40, TRUTH, None, "too_high", {"high": 3 << 40}),
        (pl.DataFrame({"datum_id": [0, 0], "raster": FOUND.tolist()}), TRUTH, None,
         "repeated_values", {"count": 2}),
        (ROWS.with_columns(NO_MASK), TRUTH, NAMES,
         "geometry_missing", {"count": 2, "rows": [1, 5]}),
        (ROWS.drop("label_value"), TRUTH, None, "column_missing", {"column": "label_value"}),
        (FOUND, ROWS, None, "index_unnamed", {"side": "predictions"}),
        (BOW, rows_of(TRUTH[:1]), None, "polygon_invalid", {"column": "polygon", "count": 1}),
        (NO_PICTURE, NO_PICTURE, None, "file_missing", {"side": "ground_truths", "count": 1}),
        (KEYS, KEYS, ONE_KEY, "index_unnamed", {"value": 1}),
    ],
)  # fmt: skip
def test_refused_by_name(
    predictions: Any, truth: Any, labels: Any, code: str, facts: dict[str, Any]
) -> None:
    with refused(code, ee.InputError, **facts):
        ee.score(predictions, truth, labels=labels)


def test_self_crossing_polygons_are_repaired() -> None:
    assert ee.score(BOW, rows_of(TRUTH[:1]), invalid_polygons="repair").metrics.height


def test_sizes_that_are_not_pixels() -> None:
    polygons = pl.DataFrame(
        {"datum_id": [0, 1], "label_value": ["a", "a"], "polygon": [[[[0, 0], [4, 0], [4, 4]]]] * 2}
    )
    sized = {"height": [10.0, 10.7], "width": [10.0, 10.0]}
    table = pl.DataFrame({"datum_id": [0, 1], **sized})
    with refused("image_size_wrong", table="datums", count=1, rows=[1]) as error:
        ee.score(polygons, polygons, datums=table)
    assert "height 10.7 and width 10." in str(error.value)
    own = polygons.with_columns(**{name: pl.Series(column) for name, column in sized.items()})
    with refused("image_size_wrong", table="ground truths", count=1, rows=[1]):
        ee.score(polygons, own)
    for wrong in (0.0, -3.0):
        with refused("image_size_wrong", count=2):
            ee.score(polygons, polygons, datums=table.with_columns(height=wrong))
    whole = table.with_columns(height=10.0)
    assert ee.score(polygons, polygons, datums=whole).value("mIOU") == 1.0


def test_sizes_are_compared_with_earlier_ones_and_then_named() -> None:
    n = 200_000
    datums = Datums(None, pl.DataFrame(), rows=n // 2)
    sizes = Sizes(datums, Frames(sides={}))
    called: list[int] = []

    def who(row: int) -> str:
        called.append(row)
        return f"row {row}"

    datum = np.arange(n) // 2
    size = np.stack([datum % 7 + 1, datum % 5 + 1], axis=1)
    size[::9] = 0  # one of the two rows gives no name
    sizes.hold(datum, size, who)
    assert not called
    assert (sizes.size[:, 0] == np.arange(n // 2) % 7 + 1).all()
    size[[3, 5]] += 1
    with refused("sizes_differ", count=2) as raised:
        sizes.hold(datum, size, who)
    assert sorted(called) == [2, 3]
    assert "row 3: its" in str(raised.value)
    assert "are 3 x 3" in str(raised.value)
    assert "row 2 2 x 2" in str(raised.value)


@pytest.mark.parametrize(
    ("options", "code", "value"),
    [
        ({"ignore_index": 0, "background": 0}, "options_conflict", 0),
        ({"ignore_index": 0, "dialect": "valor"}, "options_conflict", 0),
        ({"invalid_polygons": "keep"}, "unknown_name", "keep"),
        ({"metrics": ["IOUs"]}, "unknown_name", "IOUs"),
        ({"dialect": "coco"}, "unknown_name", "coco"),
    ],
)
def test_options(options: dict[str, Any], code: str, value: Any) -> None:
    with refused(code, ee.OptionError, value=value):
        ee.score(FOUND, TRUTH, task="segmentation", **options)


def test_unread_options_are_noted() -> None:
    card = ee.score(ROWS, rows_of(TRUTH), ignore_index=255, iou_type="segm")
    assert "ignore_index=255" in noted(card, "option_not_read").message
    assert "iou_type" in noted(card, "idle_option").message


def test_the_task_is_inferred() -> None:
    assert ee.score(FOUND, TRUTH).task == "segmentation"
    assert ee.score(ROWS, rows_of(TRUTH)).task == "segmentation"
    assert ee.score({"a": FOUND[0]}, {"a": TRUTH[0]}).task == "segmentation"
    assert ee.score({"q": {"d": 1.0}}, {"q": {"d": 1.0}}).task == "retrieval"


def test_scores_are_not_read() -> None:
    scored = ROWS.with_columns(score=pl.lit(0.5))
    card = ee.score(scored, rows_of(TRUTH), task="segmentation")
    assert "'score'" in noted(card, "unread_column").message


def test_check_reads_the_pixels() -> None:
    report = ee.check(FOUND, TRUTH, labels=NAMES)
    assert report.rows == {"predictions": 2, "ground_truths": 2, "labels": 4}
    with refused("index_unnamed", value=1):
        ee.check(FOUND, TRUTH, labels=NAMES[:1])


def test_explain() -> None:
    plan = ee.explain(task="segmentation", dialect="valor", ignore_index=255)
    assert "ignored index 255, background 0" in plan
    assert "that are true" in plan


@pytest.mark.parametrize(
    ("side", "code", "column"),
    [
        (pl.DataFrame({"raster": [[[1, 2]]]}), "column_missing", "datum_id"),
        ({1.5: FOUND[0]}, "wrong_dtype", "datum_id"),
        (pl.DataFrame({"datum_id": [0], "label_value": ["a"]}), "column_missing", "raster"),
        (pl.DataFrame({"datum_id": [0], "label_value": ["a"], "mask": [1.5]}),
         "wrong_dtype", "mask"),
        (pl.DataFrame({"datum_id": [0], "raster": [3]}), "wrong_dtype", "raster"),
    ],
)  # fmt: skip
def test_only_missing_columns_are_reported(side: Any, code: str, column: str) -> None:
    with refused(code, column=column) as error:
        ee.score(side, side, task="segmentation")
    assert [one.kind for one in error.value.problems] == [code, code]  # one problem per side


_OBJECT = pl.DataFrame(
    {"datum_id": [0], "label_value": ["a"], "mask": [{"size": [2, 2], "counts": [0, 4]}]}
)


@pytest.mark.parametrize("expected", ["score", "confidence", "iscrowd"])
def test_columns_of_objects_on_either_side_exclude_segmentation(expected: str) -> None:
    with_column = _OBJECT.with_columns(pl.lit(0).alias(expected))
    scored = _OBJECT.with_columns(score=0.5)
    with refused("column_missing", column="score", swapped_with="score"):
        ee.score(_OBJECT.with_columns(iscrowd=0), scored)
    if expected == "iscrowd":
        assert ee.score(scored, with_column).task == "detection"
        with refused("column_missing", column="score"):
            ee.score(_OBJECT.with_columns(p=0.5), with_column)
        assert ee.score(
            scored.rename({"score": "p"}), with_column, columns={"p": "score"}
        ).task == ("detection")
    else:
        with refused("column_missing", column="score", swapped_with=expected):
            ee.score(_OBJECT, with_column)
    assert ee.score(_OBJECT, with_column, task="segmentation").task == "segmentation"
    assert ee.score(_OBJECT, _OBJECT).task == "segmentation"


def test_a_column_that_may_contain_scores_is_noted() -> None:
    found = _OBJECT.with_columns(p=0.5)
    card = ee.score(found, _OBJECT)
    assert card.task == "segmentation"
    note = noted(card, "maybe_scores").message
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
    with refused("too_many_pixels", height=1 << 16, width=1 << 16) as error:
        ee.score(mask, table, labels=["b", "a"], task="segmentation")
    assert "ground truths, row 0" in str(error.value)
