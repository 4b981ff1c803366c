"""to_coco() gives the same numbers for any metrics, and after saving and loading."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import evalengine as ee
from evalengine.metrics import get, names

from .strategies import crowded_tables, table

OF_BOXES = [
    name
    for name in names("detection")
    if not {"places", "true positives", "angles"} & {*get("detection", name).needs}
    and not any("keypoints" in need for need in get("detection", name).needs)
]


def test_the_numbers_do_not_depend_on_the_metrics() -> None:
    drawn = crowded_tables(3, datums=8)
    expected = drawn.score(dialect="coco").to_coco()
    for metric in OF_BOXES:
        got = drawn.score(dialect="coco", metrics=[metric]).to_coco()
        assert got["stats"] == expected["stats"], metric
        assert np.array_equal(got["precision"], expected["precision"]), metric


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"recall_score_threshold": 0.5},
        {"area_ranges": {"small": (0, 300), "all": (0, 1e10)}},
        {"max_detections": [2, 5]},
    ],
    ids=str,
)
def test_a_stored_card_has_the_numbers_of_the_run(options: dict[str, Any], tmp_path: Any) -> None:
    drawn = crowded_tables(3, datums=8)
    card = drawn.score(dialect="coco", **options)
    stored = ee.load(card.save(tmp_path / "run"))
    live = dict(zip(card.to_coco()["names"], card.to_coco()["stats"], strict=True))
    numbers = dict(zip(stored.to_coco()["names"], stored.to_coco()["stats"], strict=True))
    assert numbers == live
    with pytest.raises(ee.ResultError, match="score again"):
        stored.to_coco()["precision"]


def test_outputs_over_all_sizes_need_a_range_of_all_sizes() -> None:
    drawn = crowded_tables(3, datums=4)

    def run(ranges: dict[str, Any] | None) -> ee.Scorecard:
        return drawn.score(metrics=["ConfusionMatrix"], area_ranges=ranges)

    small = {"small": (0.0, 100.0)}
    with pytest.raises(ee.InputError, match="'all'"):
        run(small)
    assert run({**small, "all": (0.0, 1e10)}).confusion.equals(run(None).confusion)


def test_ignored_ground_truths_do_not_count() -> None:
    """In ``standard`` a column ``ignore`` excludes ground truths and the predictions they match."""
    close, far = (0.0, 0.0, 10.0, 10.0), (50.0, 0.0, 60.0, 10.0)
    truths = table([(1, "a", close), (1, "a", far)]).with_columns(ignore=pl.Series([0, 1]))
    predictions = table([(1, "a", box) for box in (close, far, far)], [0.9, 0.8, 0.7])
    for dialect, area, counts in (("standard", None, [1, 1, 0]), ("coco", "all", [2, 1, 0])):
        card = ee.score(
            predictions, truths, dialect=dialect, metrics=["Counts"], iou_thresholds=[0.5],
            score_thresholds=[0.1],
        )  # fmt: skip
        result = card.metrics.filter(pl.col("area").eq_missing(pl.lit(area, pl.String)))
        assert result["statistic"].to_list()[:3] == ["tp", "fp", "fn"]
        assert result["value"].to_list()[:3] == counts


def test_signed_zeros_tie_in_long_labels() -> None:
    """0.0 and -0.0 tie and are ranked by datum and row, for any number of rows."""
    n = 120
    truths = table([(1, "a", (20.0 * i, 0.0, 20.0 * i + 10, 10.0)) for i in range(n)])
    wrong = pl.int_range(pl.len()) % 3 == 0
    equal = truths.drop("annotation_id").with_columns(
        pl.col("ymin", "ymax") + pl.when(wrong).then(500.0).otherwise(0.0), score=0.0
    )
    predictions = equal.with_columns(score=pl.Series([0.0, -0.0] * (n // 2)))
    got = ee.score(predictions, truths).value("mAP", iou_threshold=0.5)
    assert got == ee.score(equal, truths).value("mAP", iou_threshold=0.5)
