"""The ``coco`` dialect is pycocotools to the bit: twelve numbers and every array."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from detection.checking import modest
from detection.strategies import Tables, crowded_tables, tables
from hypothesis import given
from oracles.coco_reference import run_coco

import evalengine as ee

ARRAYS = ("precision", "recall", "scores")


def coco_of(drawn: Tables, **options: Any) -> Any:
    """``to_coco()`` of a run."""
    card = ee.score(drawn.predictions, drawn.truths, task="detection", dialect="coco", **options)
    return card.to_coco()


def assert_same_arrays(ours: Any, theirs: Any) -> None:
    """Every array, bit by bit."""
    for name in ARRAYS:
        expected = theirs.eval[name]
        assert ours[name].shape == expected.shape
        assert ours[name].dtype == np.float64
        assert (ours[name] == expected).all(), name


@pytest.mark.parametrize("strings", [False, True], ids=["integers", "strings"])
@pytest.mark.parametrize("seed", range(4))
def test_large_tables(seed: int, strings: bool) -> None:
    """Crowds, areas unlike the boxes', ties in score, labels on one side only."""
    drawn = crowded_tables(seed, strings=strings, datums=40)
    theirs, _, labels = run_coco(drawn.predictions, drawn.truths)
    ours = coco_of(drawn)
    assert ours["stats"] == theirs.stats.tolist()
    assert all(type(x) is float for x in ours["stats"])
    assert_same_arrays(ours, theirs)
    assert ours["params"]["catIds"] == [value for _, value in labels]
    assert (ours["params"]["iouThrs"] == theirs.params.iouThrs).all()
    assert (ours["params"]["recThrs"] == theirs.params.recThrs).all()


@given(tables(crowd=True, area=True, keys=1, most=14))
@modest
def test_small_tables(drawn: Tables) -> None:
    """Small tables on a grid: equal IoUs, exact thresholds, empty boxes, empty sides."""
    theirs, _, _ = run_coco(drawn.predictions, drawn.truths)
    ours = coco_of(drawn)
    assert ours["stats"] == theirs.stats.tolist()
    assert_same_arrays(ours, theirs)


@given(tables(crowd=True, area=True, keys=2))
@modest
def test_one_label_key_at_a_time(drawn: Tables) -> None:
    """The twelve numbers are of one label key; a condition chooses it."""
    keys = {*drawn.predictions["label_key"], *drawn.truths["label_key"]}
    if len(keys) > 1:
        with pytest.raises(ValueError, match="label key"):
            coco_of(drawn)["stats"]
    for key in sorted(keys):
        kept = Tables(*(t.filter(pl.col("label_key") == key) for t in vars(drawn).values()))
        ids = [set(t["datum_id"]) for t in vars(kept).values()]
        if all(ids) and not ids[0] & ids[1]:
            continue
        theirs, _, _ = run_coco(kept.predictions, kept.truths)
        ours = coco_of(drawn, where=f"label_key = '{key}'")
        assert ours["stats"] == theirs.stats.tolist()
        assert_same_arrays(ours, theirs)


def test_own_thresholds_ranges_and_caps() -> None:
    """Arrays for other thresholds, area ranges and caps than COCO's."""
    drawn = crowded_tables(7, datums=25)
    options: dict[str, Any] = {
        "iou_thresholds": [0.1, 0.35, 0.5, 0.925, 1.0],
        "max_detections": [1, 3, 7, 20],
        "area_ranges": {"all": (0.0, 1e10), "tiny": (0.0, 400.0), "1024": (1024.0, 1024.0)},
    }
    theirs, _, _ = run_coco(drawn.predictions, drawn.truths, **options)
    assert_same_arrays(coco_of(drawn, **options), theirs)


def test_more_variants_than_bits() -> None:
    """Eleven area ranges by ten thresholds are more than one word of 64 variants."""
    drawn = crowded_tables(8, datums=25)
    edges = [0.0, 100.0, 300.0, 700.0, 1024.0, 2000.0, 4000.0, 9216.0, 12000.0, 20000.0, 40000.0]
    ranges = {"all": (0.0, 1e10)}
    ranges |= {f"r{i}": limits for i, limits in enumerate(pairwise(edges))}
    theirs, _, _ = run_coco(drawn.predictions, drawn.truths, area_ranges=ranges)
    assert len(ranges) * len(theirs.params.iouThrs) > 64
    assert_same_arrays(coco_of(drawn, area_ranges=ranges), theirs)


def test_more_thresholds_than_bits() -> None:
    """Ninety IoU thresholds are more than one word even without area ranges."""
    drawn = crowded_tables(9, datums=20)
    ious = [round(0.1 + i / 100, 2) for i in range(90)]
    theirs, _, _ = run_coco(drawn.predictions, drawn.truths, iou_thresholds=ious)
    assert_same_arrays(coco_of(drawn, iou_thresholds=ious), theirs)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_do_not_change_a_bit(threads: int) -> None:
    """The same numbers on any number of threads."""
    drawn = crowded_tables(3)
    theirs, _, _ = run_coco(drawn.predictions, drawn.truths)
    assert coco_of(drawn, threads=threads)["stats"] == theirs.stats.tolist()


def test_order_of_rows_of_other_datums_is_irrelevant() -> None:
    """Only the order of rows within a datum and label can matter."""
    drawn = crowded_tables(5)
    by_datum = Tables(
        drawn.predictions.sort("datum_id", maintain_order=True, descending=True),
        drawn.truths.sort("label_value", maintain_order=True),
    )
    assert coco_of(by_datum)["stats"] == coco_of(drawn)["stats"]


def test_ground_truth_of_id_zero_counts() -> None:
    """pycocotools takes a match with annotation id 0 for none; here it is one."""
    box = {"xmin": [0.0], "ymin": [0.0], "xmax": [9.0], "ymax": [9.0]}
    truths = pl.DataFrame({"datum_id": [0], "label_value": [0], **box, "annotation_id": [0]})
    predictions = truths.drop("annotation_id").with_columns(score=pl.lit(0.5))
    assert coco_of(Tables(predictions, truths))["stats"][0] == pytest.approx(1.0)


def test_frames_agree_with_the_twelve_numbers() -> None:
    """The same numbers stand in the metrics frame, unrounded."""
    drawn = crowded_tables(2)
    card = ee.score(drawn.predictions, drawn.truths, task="detection", dialect="coco")
    stats = card.to_coco()["stats"]
    where = {"label_value": None, "slice": None}
    rows = [
        card.value("mAPAveragedOverIOUs", area="all", **where),
        card.value("mAP", iou_threshold=0.5, area="all", **where),
        card.value("mAP", iou_threshold=0.75, area="all", **where),
        *(card.value("mAPAveragedOverIOUs", area=a, **where) for a in ("small", "medium", "large")),
        *(card.value("mAR", area="all", max_detections=m, **where) for m in (1, 10, 100)),
        *(
            card.value("mAR", area=a, max_detections=100, **where)
            for a in ("small", "medium", "large")
        ),
    ]
    assert rows == stats
