"""Problems that users reported: centres in columns, stars in slices, ids that need not match."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from refusals import refused

import evalengine as ee

TRUTH = pl.DataFrame(
    {
        "datum_id": [1, 2],
        "label_value": ["a", "a"],
        "xmin": [0.0, 10.0],
        "ymin": [0.0, 10.0],
        "xmax": [10.0, 30.0],
        "ymax": [10.0, 30.0],
    }
)
FOUND = TRUTH.with_columns(score=pl.Series([0.9, 0.8]))


def score(predictions: Any = FOUND, truths: Any = TRUTH, **options: Any) -> ee.Scorecard:
    return ee.score(predictions, truths, **{"metrics": ["mAP"], **options})


def test_columns_x_and_y_are_centres_if_the_format_says_so() -> None:
    w, h = pl.col("xmax") - pl.col("xmin"), pl.col("ymax") - pl.col("ymin")
    centred = FOUND.select(
        "datum_id", "label_value", "score",
        x=pl.col("xmin") + w / 2, y=pl.col("ymin") + h / 2, width=w, height=h,
    )  # fmt: skip
    card = score(centred, box_format="cxcywh")
    assert card.value("mAP", iou_threshold=0.5) == pytest.approx(1.0)
    assert any("centres" in note for note in card.notes)
    assert score(centred).value("mAP", iou_threshold=0.5) == pytest.approx(0.0)


def test_crossed_slices_with_stars_in_their_values_are_separate() -> None:
    datums = pl.DataFrame({"datum_id": [1, 2], "c": ["a*b", "a"], "d": ["c", "b*c"]})
    card = score(by="c*d", datums=datums)
    values = card.metrics["slice_value"].drop_nulls().unique().sort().to_list()
    assert values == [r"a*b\*c", r"a\*b*c"]


def test_integers_as_slices_have_no_fraction() -> None:
    datums = pl.DataFrame({"datum_id": [1, 2], "width": [640, 320]})
    card = score(by="width", datums=datums)
    assert card.metrics["slice_value"].drop_nulls().unique().sort().to_list() == ["320", "640"]


def test_the_datum_is_not_a_slice() -> None:
    with pytest.raises(ee.InputError, match="another name"):
        score(by="datum_id")


def test_sides_need_no_common_ids_if_a_table_declares_their_datums() -> None:
    one, other = FOUND.filter(datum_id=1), TRUTH.filter(datum_id=2)
    with refused("no_common_id", ee.InputError, column="datum_id"):
        score(one, other)
    assert score(one, other, datums=[1, 2]).value("mAP", iou_threshold=0.5) == 0.0


@pytest.mark.parametrize(("factor", "noted"), [(1, False), (100, True), (-1, True)])
def test_scores_that_are_not_probabilities_are_noted(factor: int, noted: bool) -> None:
    card = score(FOUND.with_columns(pl.col("score") * factor))
    assert ("scores_beyond_one" in [one.code for one in card.findings]) is noted


def test_recognised_names_are_noted() -> None:
    card = score(FOUND.rename({"datum_id": "image_id"}))
    assert any("image_id as datum_id" in note for note in card.notes)


@pytest.mark.parametrize(
    "wrong",
    [
        {"iou_thresholds": True},
        {"score_thresholds": [float("inf")]},
        {"max_detections": [1.5]},
        {"recall_score_threshold": float("nan")},
        {"threads": -1},
        {"iou_type": "cuboids"},
        {"area_ranges": {"x": (-1, 5)}},
        {"options": "coco"},
    ],
    ids=str,
)
def test_options_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ee.OptionError, match=next(iter(wrong))):
        score(**wrong)


def test_a_plain_mapping_serves_as_options() -> None:
    assert score(options={"dialect": "valor"}).dialect == "valor"
    with pytest.raises(ee.OptionError, match="dialect"):
        score(options={"dialekt": "valor"})


def test_a_missing_corner_is_not_an_inverted_box() -> None:
    broken = FOUND.with_columns(xmin=pl.Series([float("nan"), 10.0]))
    with pytest.raises(ee.InputError) as caught:
        score(broken)
    assert "NaN" in str(caught.value)
    assert "inverted" not in str(caught.value)


def test_check_and_score_refuse_the_same_tables() -> None:
    with refused("unknown_name", ee.OptionError, value="maap"):
        ee.check(FOUND, TRUTH, metrics=["maap"])
    with refused("option_value", ee.OptionError, value=5):
        ee.check(FOUND, TRUTH, iou_thresholds=[5])
