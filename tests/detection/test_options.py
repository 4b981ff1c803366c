"""Options that change what is counted: label maps, conditions, many thresholds, other dtypes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from detection.checking import (
    AVERAGES,
    CURVES,
    EVERYTHING,
    GRID,
    RATES,
    check,
    check_confusion,
    check_outcomes,
    modest,
    oracle_of,
    run,
    some_settings,
)  # fmt: skip
from detection.strategies import Tables, crowded_tables, tables
from hypothesis import given
from hypothesis import strategies as st
from oracles.detection_metrics import Asked
from output_frames import agree, numbers
from refusals import refused

import evalengine as ee
from evalengine.report.summary import sections

FEW = replace(GRID, iou_thresholds=(0.5,), returned=(0.5,))


def _mapped(frame: pl.DataFrame, label_map: dict[Any, Any]) -> pl.DataFrame:
    pairs = [
        label_map.get(pair, pair) for pair in frame.select("label_key", "label_value").iter_rows()
    ]
    return frame.with_columns(
        pl.Series("label_key", [key for key, _ in pairs], dtype=pl.String),
        pl.Series("label_value", [v for _, v in pairs], dtype=frame.schema["label_value"]),
    )


@given(st.data(), some_settings())
@modest
def test_label_map(data: st.DataObject, options: Asked) -> None:
    """A map of (key, value) pairs equals renamed tables; it may merge labels."""
    drawn = data.draw(tables())
    both = pl.concat([t.select("label_key", "label_value") for t in vars(drawn).values()])
    pairs = sorted(set(both.iter_rows()))
    targets = [*pairs, ("new", pairs[0][1])]
    label_map = {
        pair: data.draw(st.sampled_from(targets)) for pair in pairs if data.draw(st.booleans())
    }
    renamed = Tables(_mapped(drawn.predictions, label_map), _mapped(drawn.truths, label_map))
    card = run(drawn, "standard", options, EVERYTHING, label_map=label_map or None)
    check(card, oracle_of(renamed, "standard", options))


def test_label_map_of_values() -> None:
    """A map of plain values to a new value."""
    drawn = crowded_tables(14, datums=8, strings=True)
    swap = {"class 1": "class 2", "class 3": "other"}
    renamed = Tables(
        *(t.with_columns(pl.col("label_value").replace(swap)) for t in vars(drawn).values())
    )
    plain = renamed.score()
    card = drawn.score(label_map=swap)
    agree(numbers(card.metrics), numbers(plain.metrics), tolerance=0.0)


@pytest.mark.parametrize("dialect", ["standard", "coco", "valor"])
def test_conditions(dialect: str) -> None:
    """A condition removes rows of every side that has its columns."""
    drawn = crowded_tables(15, datums=10)
    cases: list[tuple[Any, Tables]] = [
        ("score > 0.4", Tables(drawn.predictions.filter(pl.col("score") > 0.4), drawn.truths)),
        ("xmax - xmin >= 20", drawn.where(pl.col("xmax") - pl.col("xmin") >= 20)),
        (
            {"ground_truths": "iscrowd = 0"},
            Tables(drawn.predictions, drawn.truths.filter(pl.col("iscrowd") == 0)),
        ),
    ]
    for where, expected in cases:
        card = drawn.score(dialect=dialect, where=where)
        plain = expected.score(dialect=dialect)
        agree(numbers(card.metrics), numbers(plain.metrics), tolerance=0.0)


@pytest.mark.parametrize("dialect", ["standard", "valor", "valor-docs"])
def test_more_variants_than_bits(dialect: str) -> None:
    """Nine area ranges by nine IoU thresholds need more than one word."""
    drawn = crowded_tables(16, datums=5, labels=3)
    edges = [0.0, 1024.0, 200.0, 900.0, 3000.0, 5000.0, 8000.0, 9216.0, 16000.0]
    options = Asked(
        tuple(round(0.1 * i, 1) for i in range(1, 10)),
        (0.5,),
        (0.3,),
        area_ranges=(("all", (0.0, 1e10)), *((f"r{x:g}", (x, x + 4000.0)) for x in edges[1:])),
    )
    assert len(options.iou_thresholds) * len(options.area_ranges) > 64
    card = run(drawn, dialect, options, [*AVERAGES, *RATES, *CURVES])
    check(card, oracle_of(drawn, dialect, options))


@pytest.mark.parametrize("dialect", ["standard", "valor"])
def test_more_score_thresholds_than_bits(dialect: str) -> None:
    """101 score thresholds, each equal to some score."""
    drawn = crowded_tables(17, datums=4, labels=3)
    options = replace(FEW, score_thresholds=tuple(i / 100 for i in range(101)))
    metrics = [*RATES, *CURVES, "ConfusionMatrix", "DetailedPrecisionRecallCurve"]
    card = run(drawn, dialect, options, metrics)
    check(card, oracle_of(drawn, dialect, options))


def test_single_precision_scores() -> None:
    """A threshold is rounded to the dtype of the scores, so 0.1 in single precision reaches 0.1."""
    drawn = crowded_tables(18, datums=4, labels=3)
    scores = np.round(drawn.predictions["score"].to_numpy(), 1).astype(np.float32)
    single = Tables(drawn.predictions.with_columns(score=pl.Series(scores)), drawn.truths)
    double = Tables(
        drawn.predictions.with_columns(score=pl.Series(np.round(scores.astype(np.float64), 1))),
        drawn.truths,
    )
    options = replace(
        FEW, score_thresholds=tuple(i / 10 for i in range(11)), recall_score_threshold=0.7
    )
    metrics = [name for name in EVERYTHING if not name.startswith("Interpolated")]
    card, expected = (run(t, "standard", options, metrics) for t in (single, double))
    agree(numbers(card.metrics), numbers(expected.metrics), tolerance=0.0)
    assert card.curves.equals(expected.curves)
    assert card.confusion.equals(expected.confusion)
    assert card.examples.equals(expected.examples)
    scoreless = [c for c in card.outcomes.columns if c != "score"]
    assert card.outcomes.select(scoreless).equals(expected.outcomes.select(scoreless))


def test_ids_and_labels_have_their_dtype() -> None:
    """Integers stay integers and strings stay strings, in every frame."""
    for strings in (False, True):
        drawn = crowded_tables(19, datums=4, labels=3, strings=strings)
        card = run(drawn, "standard", FEW, EVERYTHING)
        dtype = pl.String if strings else pl.Int64
        for frame in (card.metrics, card.curves, card.examples, card.outcomes):
            assert frame.schema["label_value"] == dtype
        for frame in (card.examples, card.outcomes):
            assert frame.schema["datum_id"] == dtype
        assert card.confusion.schema["actual"] == card.confusion.schema["predicted"] == dtype


def test_defaults_of_details() -> None:
    """Without thresholds, confusion uses pr_curve_iou_threshold; outcomes contain every score."""
    drawn = crowded_tables(22, datums=4, labels=3)
    card = drawn.score(metrics=["ConfusionMatrix", "Outcomes"])
    grid = tuple(x / 100 for x in range(5, 100, 5))
    confused = replace(FEW, score_thresholds=grid)
    check_confusion(card, oracle_of(drawn, "standard", confused))
    check_outcomes(card, oracle_of(drawn, "standard", replace(FEW, score_thresholds=(0.0,))))


def test_thresholds_are_the_same_in_every_frame() -> None:
    """COCO's grid has no round decimals (0.8999999999999999), yet frames can be joined."""
    drawn = crowded_tables(21, datums=3)
    ious = tuple(np.linspace(0.5, 0.95, 10).tolist())
    options = replace(FEW, iou_thresholds=ious, returned=ious, pr_curve_iou_threshold=ious[8])
    card = run(drawn, "standard", options, EVERYTHING)
    shown = set(card.metrics["iou_threshold"].drop_nulls())
    for frame in (card.curves, card.confusion, card.outcomes, card.examples):
        assert set(frame["iou_threshold"]) <= shown


def test_both_sides_empty() -> None:
    """Two empty sides give empty frames with the right columns."""
    drawn = crowded_tables(0, datums=3)
    empty = Tables(drawn.predictions.clear(), drawn.truths.clear())
    card = run(empty, "standard", FEW, EVERYTHING)
    for frame in (card.metrics, card.curves, card.examples, card.confusion, card.outcomes):
        assert frame.is_empty()


@pytest.mark.parametrize("dialect", ["standard", "valor", "valor-docs", "coco"])
def test_one_side_empty(dialect: str) -> None:
    """With only false positives AP is undefined; with only misses it is 0."""
    drawn = crowded_tables(0, datums=3)
    options = replace(FEW, area_ranges=(("all", (0.0, 1e10)),), max_detections=(100,))
    truths = drawn.truths.drop("iscrowd")
    only_predictions = Tables(drawn.predictions, truths.clear())
    only_truths = Tables(drawn.predictions.clear(), truths)
    for case, expected in ((only_predictions, None), (only_truths, 0.0)):
        card = run(case, dialect, options, EVERYTHING)
        check(card, oracle_of(case, dialect, options))
        assert set(card.metrics.filter(pl.col("metric") == "AP")["value"]) == {expected}


BOXES = ("examples/detection/predictions.parquet", "examples/detection/groundtruths.parquet")


@pytest.mark.parametrize(
    ("name", "titles"),
    [("AP", ["AP", "APsmall", "APmedium", "APlarge"]), ("AP50", ["AP50"]), ("AP75", ["AP75"])],
)
def test_a_name_of_coco_has_its_headline(name: str, titles: list[str]) -> None:
    """COCO has one name for numbers of labels and their mean; both are computed."""
    every = ee.score(*BOXES, dialect="coco")
    card = ee.score(*BOXES, dialect="coco", metrics=[name])
    predictions = {line.title: line.value for line in sections(card)[0].headline}
    assert [*predictions] == titles
    wanted = {line.title: line.value for line in sections(every)[0].headline}
    assert predictions == {title: wanted[title] for title in titles}
    assert "mAPAveragedOverIOUs" not in ee.score(*BOXES, metrics=["AP"]).metrics["metric"]


def test_metrics_of_all_sizes_are_skipped_without_that_range(tmp_path: Path) -> None:
    ranges = {"middle": (10.0, 1000.0)}
    card = ee.score(*BOXES, area_ranges=ranges)
    assert {*card.metrics["area"]} == {"middle"}
    assert card.to_html(tmp_path / "a.html").is_file()
    with refused("metric_unfit", match="add a range called 'all'"):
        ee.score(*BOXES, area_ranges=ranges, metrics=["ConfusionMatrix"])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_thresholds_of_narrow_floats_are_their_decimals(dtype: str) -> None:
    box = {
        "datum_id": [1],
        "label_value": ["a"],
        "xmin": [0],
        "ymin": [0],
        "xmax": [9],
        "ymax": [9],
    }
    truth = pl.DataFrame(box)
    thresholds = np.array([0.5, 0.55, 0.7], dtype)
    predictions = truth.with_columns(score=pl.lit(0.5))
    for some in (thresholds, list(thresholds), pl.Series(thresholds)):
        card = ee.score(predictions, truth, iou_thresholds=some, metrics=["mAP"])
        assert card.options.iou_thresholds == (0.5, 0.55, 0.7)
        assert card.value("mAP", iou_threshold=0.55) == pytest.approx(1.0)
    card = ee.score(predictions, truth, pr_curve_iou_threshold=thresholds[1])
    assert card.options.pr_curve_iou_threshold == 0.55
    for several in (thresholds, pl.Series(thresholds)):
        with refused("option_value", option="pr_curve_iou_threshold"):
            ee.score(predictions, truth, pr_curve_iou_threshold=several)


@pytest.mark.parametrize("of_scores", [pl.Float32, pl.Float64])
def test_scores_reach_an_equal_narrow_threshold(of_scores: type[pl.DataType]) -> None:
    scores = np.array([0.45699605, 0.123456789], np.float32)
    box = {"datum_id": [1, 2], "label": "a", "xmin": 0, "ymin": 0, "xmax": 9, "ymax": 9}
    truth = pl.DataFrame(box)
    predictions = truth.with_columns(score=pl.Series(scores).cast(of_scores))
    card = ee.score(
        predictions, truth, metrics=["Recall"], score_thresholds=scores, iou_thresholds=[0.5]
    )
    assert {*card.metrics["value"]} == {0.5, 1.0}
    exact = np.array([2048], np.float16)
    assert ee.score(predictions, truth, max_detections=exact).options.max_detections == (2048,)


def test_scalars_of_numpy_are_read_as_numbers() -> None:
    box = {"datum_id": [1], "label": "a", "xmin": 0, "ymin": 0, "xmax": 9, "ymax": 9}
    truth = pl.DataFrame(box)
    given = {"pr_curve_iou_threshold": np.float32(0.1), "n_bins": np.int64(5)}
    given |= {"beta": np.float64(2), "limits": np.bool_(False)}
    options = ee.score(truth.with_columns(score=0.5), truth, **given).options
    read = {name: getattr(options, name) for name in given}
    assert read == {"pr_curve_iou_threshold": 0.1, "n_bins": 5, "beta": 2.0, "limits": False}
