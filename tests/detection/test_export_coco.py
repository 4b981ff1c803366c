"""to_coco(): the same numbers whatever metrics were asked for, and after a round trip."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import evalengine as ee
from evalengine.metrics import names

from .strategies import crowded_tables


@pytest.mark.parametrize("metric", names("detection"))
def test_the_numbers_do_not_depend_on_the_metrics(metric: str) -> None:
    drawn = crowded_tables(3, datums=8)
    expected = ee.score(drawn.predictions, drawn.truths, dialect="coco").to_coco()
    got = ee.score(drawn.predictions, drawn.truths, dialect="coco", metrics=[metric]).to_coco()
    assert got["stats"] == expected["stats"]
    assert np.array_equal(got["precision"], expected["precision"])


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
    card = ee.score(drawn.predictions, drawn.truths, dialect="coco", **options)
    stored = ee.load(card.save(tmp_path / "run"))
    live = dict(zip(card.to_coco()["names"], card.to_coco()["stats"], strict=True))
    kept = dict(zip(stored.to_coco()["names"], stored.to_coco()["stats"], strict=True))
    assert kept == live
    with pytest.raises(ee.ResultError, match="score again"):
        stored.to_coco()["precision"]


def test_several_label_keys_have_no_coco_shape() -> None:
    drawn = crowded_tables(3, datums=4)
    sides = [
        table.with_columns(label_key=pl.Series(["a", "b"] * table.height).head(table.height))
        for table in (drawn.predictions, drawn.truths)
    ]
    card = ee.score(*sides, dialect="coco")
    with pytest.raises(ee.ResultError, match="one label key"):
        card.to_coco()["stats"]


def test_outputs_over_all_sizes_want_a_range_of_all_sizes() -> None:
    drawn = crowded_tables(3, datums=4)
    with pytest.raises(ee.OptionError, match="'all'"):
        ee.score(
            drawn.predictions,
            drawn.truths,
            metrics=["ConfusionMatrix"],
            area_ranges={"small": (0, 100)},
        )
    ranges = {"small": (0.0, 100.0), "all": (0.0, 1e10)}
    last = ee.score(
        drawn.predictions, drawn.truths, metrics=["ConfusionMatrix"], area_ranges=ranges
    )
    none = ee.score(drawn.predictions, drawn.truths, metrics=["ConfusionMatrix"])
    assert last.confusion.equals(none.confusion)


def test_ignored_ground_truths_count_for_nothing() -> None:
    """In ``standard`` a column ``ignore`` sets ground truths and what they match aside."""
    box = {"xmin": 0.0, "ymin": 0.0, "xmax": 10.0, "ymax": 10.0}
    far = {"xmin": 50.0, "ymin": 0.0, "xmax": 60.0, "ymax": 10.0}
    truths = pl.DataFrame(
        [
            {"datum_id": 1, "label_value": "a", "ignore": 0, **box},
            {"datum_id": 1, "label_value": "a", "ignore": 1, **far},
        ]
    )
    predictions = pl.DataFrame(
        [
            {"datum_id": 1, "label_value": "a", "score": score, **where}
            for score, where in ((0.9, box), (0.8, far), (0.7, far))
        ]
    )
    options: dict[str, Any] = {
        "metrics": ["Counts"],
        "iou_thresholds": [0.5],
        "score_thresholds": [0.1],
    }
    counted = ee.score(predictions, truths, **options)
    assert [counted.value("Counts", label_value="a", statistic=s) for s in ("tp", "fp", "fn")] == [
        1,
        1,
        0,
    ]
    plain = ee.score(predictions, truths, dialect="coco", **options)
    assert [
        plain.value("Counts", label_value="a", statistic=s, area="all") for s in ("tp", "fp", "fn")
    ] == [2, 1, 0]


def test_signed_zeros_tie_in_long_labels() -> None:
    """Ties of 0.0 and -0.0 stand by datum and row, however many rows a label has."""
    n = 120
    places = np.arange(n) * 20.0
    truths = pl.DataFrame(
        {
            "datum_id": 1,
            "label_value": 1,
            "xmin": places,
            "ymin": 0.0,
            "xmax": places + 10,
            "ymax": 10.0,
        }
    )
    wrong = pl.Series(np.arange(n) % 3 == 0)
    scores = np.where(np.arange(n) % 2 == 0, 0.0, -0.0)
    predictions = truths.with_columns(
        score=pl.Series(scores), ymin=pl.when(wrong).then(500.0).otherwise(0.0),
        ymax=pl.when(wrong).then(510.0).otherwise(10.0),
    )  # fmt: skip
    alike = predictions.with_columns(score=0.0)
    got = ee.score(predictions, truths).value("mAP", iou_threshold=0.5)
    assert got == ee.score(alike, truths).value("mAP", iou_threshold=0.5)
