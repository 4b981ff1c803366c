"""Every form of the same pixels gives the same values: arrays, tables, masks, polygons, mixed."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from partitions.cases import in_buckets
from refusals import noted, refused
from segmentation.making import EVERY, NAMES, rows_of, same, some_maps

import evalengine as ee

FOUND, TRUTH = some_maps()
ARRAYS = ee.score(FOUND, TRUTH, labels=NAMES, metrics=EVERY)


def table(maps: Any, values: Any) -> pl.DataFrame:
    return pl.DataFrame({"datum_id": range(len(maps)), "raster": values})


@pytest.mark.parametrize(
    "form",
    [
        list,
        lambda maps: dict(enumerate(maps)),
        lambda maps: maps.astype(np.int64),
        lambda maps: maps.astype(np.int8),
        lambda maps: np.asfortranarray(maps),
        lambda maps: table(maps, pl.Series(maps)),
        lambda maps: table(maps, maps.tolist()),
        lambda maps: table(maps, [pl.Series(one) for one in maps]),
        lambda maps: table(maps, pl.Series(list(maps), dtype=pl.Object)),
        lambda maps: table(maps, pl.Series(maps)).rename(
            {"datum_id": "image_id", "raster": "label_map"}
        ),
    ],
)
def test_label_maps(form: Any) -> None:
    same(ee.score(form(FOUND), form(TRUTH), labels=NAMES, metrics=EVERY), ARRAYS)


@pytest.mark.parametrize(
    "form",
    [
        lambda maps: np.stack([maps[0] == label for label in range(4)]),
        lambda maps: np.stack([maps[0] == label for label in range(4)]).astype(np.int64),
        lambda maps: np.stack([maps[0] == label for label in range(1, 4)]).astype(np.uint8),
        lambda maps: 255 * np.stack([maps[0] == label for label in range(4)]).astype(np.uint8),
        lambda maps: np.repeat(maps[0][:, :, None], 3, axis=2).astype(np.uint8),
        lambda maps: np.stack([maps, maps]),
        lambda maps: np.ma.masked_array(maps, mask=maps == 1),
    ],
    ids=["classes", "integers", "void", "255", "colours", "four axes", "masked"],
)
def test_axes_that_are_not_images_are_refused(form: Any) -> None:
    maps = np.random.default_rng(3).integers(0, 4, (3, 9, 8))
    maps[0, :4] = 1
    with pytest.raises(ee.InputError):
        ee.score(form(maps), form(maps), task="segmentation")
    if isinstance(form(maps), np.ma.MaskedArray):
        return
    listed = list(form(maps)) if form(maps).ndim == 3 else list(form(maps)[0])
    assert ee.score(listed, listed, task="segmentation").value("mIOU") == 1.0


def test_an_axis_of_length_one_is_removed_as_advised() -> None:
    with pytest.raises(ee.InputError, match=r"\.squeeze\(1\)"):
        ee.score(FOUND[:, None], TRUTH[:, None], task="segmentation")
    with pytest.raises(ee.InputError, match=r"\.squeeze\(3\)"):
        ee.score(FOUND[..., None], TRUTH[..., None], task="segmentation")


@pytest.mark.parametrize("sides", ["both", "found", "truth"])
def test_masks_of_labels(sides: str) -> None:
    predictions = FOUND if sides == "truth" else rows_of(FOUND)
    truth = TRUTH if sides == "found" else rows_of(TRUTH)
    card = ee.score(predictions, truth, labels=NAMES, metrics=EVERY)
    assert card.task == "segmentation"
    same(card, ARRAYS)


def test_one_bit_images_are_masks() -> None:
    predictions, truth = FOUND > 1, TRUTH > 1
    card = ee.score(predictions, truth, labels=["on"], background=0)
    both, either = (predictions & truth).sum(), (predictions | truth).sum()
    assert card.value("mIOU") == both / either


def test_several_masks_of_one_label_are_united() -> None:
    truth = pl.DataFrame(
        {"datum_id": [1, 1], "label_value": ["a", "a"], "mask": [[[1, 1, 0]], [[0, 1, 1]]]}
    )
    predictions = pl.DataFrame({"datum_id": [1], "label_value": ["a"], "mask": [[[1, 0, 0]]]})
    assert ee.score(predictions, truth).value("IOU", label_value="a") == 1 / 3


def test_overlapping_labels_are_noted_and_have_no_pixel_accuracy() -> None:
    truth = pl.DataFrame(
        {"datum_id": [1, 1], "label_value": ["a", "b"], "mask": [[[1, 1, 0, 0]], [[0, 1, 1, 0]]]}
    )
    predictions = pl.DataFrame({"datum_id": [1], "label_value": ["a"], "mask": [[[1, 1, 1, 0]]]})
    card = ee.score(predictions, truth, metrics=EVERY)
    noted(card, "labels_overlap", count=1)
    assert card.value("IOU", label_value="a") == 2 / 3
    assert card.value("Recall", label_value="b") == 0.0
    row = card.metrics.filter(metric="PixelAccuracy")
    assert row["value"].to_list() == [None]
    assert "overlap" in row["reason"][0]
    (of_image,) = card.metrics.filter(metric="PixelAccuracyPerImage").iter_rows(named=True)
    assert (of_image["value"], of_image["scored"]) == (None, 0)
    assert "no image" in of_image["reason"]
    of_datum = card.per_datum.filter(metric="PixelAccuracy")
    assert of_datum["value"].to_list() == [None]
    others = [pl.DataFrame({"datum_id": [2], "label_value": ["a"], "mask": [[[1, 0, n, 0]]]})
              for n in (0, 1)]  # fmt: skip
    more = ee.score(
        pl.concat([predictions, others[0]]), pl.concat([truth, others[1]]),
        metrics=["PixelAccuracy", "PixelAccuracyPerImage"],
    )  # fmt: skip
    assert more.value("PixelAccuracy") is None
    assert more.value("PixelAccuracyPerImage") == 3 / 4  # the image without overlaps
    assert more.per_datum.filter(metric="PixelAccuracy")["value"].to_list() == [None, 3 / 4]
    cells = card.confusion.select("actual", "predicted", "count", "iou").rows()
    assert cells == [("a", "a", 2, 2 / 3), ("b", "a", 2, 2 / 3)]


def test_polygons_need_the_size_of_the_image() -> None:
    square = [[[1.0, 1.0], [4.0, 1.0], [4.0, 3.0], [1.0, 3.0]]]
    predictions = pl.DataFrame({"datum_id": ["x"], "label_value": ["a"], "polygon": [square]})
    mask = np.zeros((5, 6), int)
    mask[1:3, 1:4] = 1
    truth = pl.DataFrame({"datum_id": ["x"], "label_value": ["a"], "mask": [mask.tolist()]})
    assert ee.score(predictions, truth).value("mIOU") == 1.0
    assert ee.score(predictions, {"x": mask}, labels=["a"], background=0).value("mIOU") == 1.0
    with refused("image_size_missing", count=1):
        ee.score(predictions, predictions)
    sized = pl.DataFrame({"datum_id": ["x"], "height": [5], "width": [6]})
    card = ee.score(predictions, predictions, datums=sized)
    assert card.value("mIOU") == card.value("PixelAccuracy") == 1.0
    beside = predictions.with_columns(height=pl.lit(5), width=pl.lit(6))
    assert ee.score(beside, predictions).value("PixelAccuracy") == 1.0


def test_rows_of_several_forms() -> None:
    mask, square = [[1, 1], [0, 0]], [[[0.0, 1.0], [2.0, 1.0], [2.0, 2.0], [0.0, 2.0]]]
    predictions = pl.DataFrame(
        {
            "datum_id": [1, 1],
            "label_value": ["a", "b"],
            "mask": [mask, None],
            "polygon": [None, square],
        }
    )
    truth = {1: np.array([[0, 0], [1, 1]])}
    card = ee.score(predictions, truth, labels=["a", "b"])
    assert card.value("mIOU") == 1.0


def test_datums_on_one_side_count() -> None:
    predictions, truth = {"a": FOUND[0], "b": FOUND[1]}, {"a": TRUTH[0], "c": TRUTH[2]}
    maps = ee.score(predictions, truth, labels=NAMES, metrics=EVERY)
    assert maps.confusion.filter(pl.col("predicted").is_null())["count"].sum() == TRUTH[2].size
    assert maps.confusion.filter(pl.col("actual").is_null())["count"].sum() == FOUND[1].size
    status = dict(maps.per_datum.select("datum_id", "status").iter_rows())
    assert status == {"a": "scored", "b": "no_ground_truth", "c": "not_predicted"}
    assert any("without predictions" in note for note in maps.notes)


def test_datums_of_a_table_that_have_no_pixels() -> None:
    card = ee.score(FOUND[:1], TRUTH[:1], datums=[0, 1])
    assert card.per_datum.filter(datum_id=1)["value"].to_list() == [None] * 3
    assert card.per_datum.filter(datum_id=1)["status"].to_list() == ["no_pixels"] * 3


def test_an_empty_side() -> None:
    none = pl.DataFrame(
        schema={"datum_id": pl.Int64, "label_value": pl.String, "mask": pl.List(pl.List(pl.Int64))}
    )
    card = ee.score(none, rows_of(TRUTH), metrics=EVERY)
    assert card.value("mIOU") == 0.0
    assert card.value("Precision", label_value="car") is None
    other = ee.score(rows_of(FOUND), none, metrics=EVERY)
    assert other.value("Recall", average="macro") is None
    assert other.value("mIOU") == 0.0


def test_label_keys() -> None:
    maps = pl.DataFrame(
        {"datum_id": [1, 1], "label_key": ["ground", "sky"], "raster": [[[0, 1]], [[1, 1]]]}
    )
    labels = pl.DataFrame(
        {
            "label_key": ["ground", "ground", "sky", "sky"],
            "label_value": ["grass", "road", "clear", "cloud"],
        }
    )
    predictions = maps.with_columns(raster=pl.Series([[[0, 0]], [[1, 1]]]))
    card = ee.score(predictions, maps, labels=labels, metrics=["mIOU", "IOU", "PixelAccuracy"])
    assert card.value("mIOU", label_key="ground") == 0.25
    assert card.value("mIOU", label_key="sky") == 1.0
    single = card.per_datum.filter(metric="mIOU")
    assert dict(single.select("parameters", "value").iter_rows()) == {
        '{"label_key": "ground"}': 0.25,
        '{"label_key": "sky"}': 1.0,
    }


def test_overlapping_labels_are_counted_by_side_in_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch)
    ids = [datum for datum in range(8) for _ in range(2)]
    masks = {"label_value": ["a", "b"] * 8, "mask": [[[1, 1]], [[0, 1]]] * 8}
    predictions = pl.DataFrame({"datum_id": ids, **masks})
    truth = predictions.filter((pl.col("datum_id") > 3) | (pl.col("label_value") == "a"))
    for options in ({}, {"memory_limit": "600MB"}):
        card = ee.score(predictions, truth, task="segmentation", **options)
        counts = [one.count for one in card.findings if one.code == "labels_overlap"]
        assert sorted(counts) == [4, 8]
