"""The ``coco`` dialect equals pycocotools to the bit; ``standard`` is the same without caps."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import polars as pl
import pytest
from detection.checking import modest
from detection.strategies import Tables, crowded_tables, tables
from hypothesis import given
from oracles.coco_reference import run_coco, same_arrays, same_as_coco

import evalengine as ee

IOUS = [x / 100 for x in range(50, 100, 5)]


def coco_of(drawn: Tables, **options: Any) -> Any:
    """Return ``to_coco()`` of a run."""
    card = drawn.score(dialect="coco", **options)
    return card.to_coco()


def run_of(drawn: Tables, **options: Any) -> Any:
    """Run pycocotools on the same tables."""
    return run_coco(drawn.predictions, drawn.truths, **options)[0]


@pytest.mark.parametrize(("seed", "strings"), [(0, False), (1, True), (2, False), (3, True)])
def test_large_tables(seed: int, strings: bool) -> None:
    """Crowds, areas unlike the boxes', ties in score, labels on one side only; any threads."""
    drawn = crowded_tables(seed, strings=strings, datums=40)
    theirs, _, labels = run_coco(drawn.predictions, drawn.truths)
    ours = coco_of(drawn, threads=(None, 1, 2, 5)[seed])
    same_as_coco(ours, theirs)
    assert all(type(x) is float for x in ours["stats"])
    assert ours["params"]["catIds"] == [value for _, value in labels]
    assert (ours["params"]["iouThrs"] == theirs.params.iouThrs).all()
    assert (ours["params"]["recThrs"] == theirs.params.recThrs).all()


@given(tables(crowd=True, area=True, keys=1, most=14))
@modest
def test_small_tables(drawn: Tables) -> None:
    """Small tables on a grid: equal IoUs, exact thresholds, empty boxes, empty sides."""
    same_as_coco(coco_of(drawn), run_of(drawn))


@given(tables(crowd=True, area=True, keys=2))
@modest
def test_one_label_key_at_a_time(drawn: Tables) -> None:
    """The twelve numbers need one label key; a condition selects it."""
    keys = {*drawn.predictions["label_key"], *drawn.truths["label_key"]}
    if len(keys) > 1:
        with pytest.raises(ee.ResultError, match="one label key"):
            coco_of(drawn)["stats"]
    for key in sorted(keys):
        selected = drawn.where(pl.col("label_key") == key)
        ids = [set(t["datum_id"]) for t in vars(selected).values()]
        if all(ids) and not ids[0] & ids[1]:
            continue
        same_as_coco(coco_of(drawn, where=f"label_key = '{key}'"), run_of(selected))


EDGES = [0.0, 100.0, 300.0, 700.0, 1024.0, 2000.0, 4000.0, 9216.0, 12000.0, 20000.0, 40000.0]


@pytest.mark.parametrize(
    "options",
    [
        {
            "iou_thresholds": [0.1, 0.35, 0.5, 0.925, 1.0],
            "max_detections": [1, 3, 7, 20],
            "area_ranges": {"all": (0.0, 1e10), "tiny": (0.0, 400.0), "1024": (1024.0, 1024.0)},
        },
        {  # eleven by ten thresholds exceed one word of 64 variants
            "area_ranges": {"all": (0.0, 1e10)}
            | {f"r{i}": limits for i, limits in enumerate(pairwise(EDGES))}
        },
        {"iou_thresholds": [round(0.1 + i / 100, 2) for i in range(90)]},
    ],
    ids=["own", "many ranges", "many thresholds"],
)
def test_other_thresholds_ranges_and_caps(options: dict[str, Any]) -> None:
    """Arrays for thresholds, area ranges and caps other than COCO's."""
    drawn = crowded_tables(7, datums=25)
    same_arrays(coco_of(drawn, **options), run_of(drawn, **options))


def test_order_of_rows_of_other_datums_is_irrelevant() -> None:
    """Only the order of rows within a datum and label can matter."""
    drawn = crowded_tables(5)
    by_datum = Tables(
        drawn.predictions.sort("datum_id", maintain_order=True, descending=True),
        drawn.truths.sort("label_value", maintain_order=True),
    )
    assert coco_of(by_datum)["stats"] == coco_of(drawn)["stats"]


def test_ground_truth_of_id_zero_counts() -> None:
    """pycocotools ignores a match with annotation id 0; here it counts."""
    box = {"xmin": [0.0], "ymin": [0.0], "xmax": [9.0], "ymax": [9.0]}
    truths = pl.DataFrame({"datum_id": [0], "label_value": [0], **box, "annotation_id": [0]})
    predictions = truths.drop("annotation_id").with_columns(score=pl.lit(0.5))
    assert coco_of(Tables(predictions, truths))["stats"][0] == pytest.approx(1.0)


def test_frames_agree_with_the_twelve_numbers() -> None:
    """The metrics frame contains the same numbers, unrounded."""
    drawn = crowded_tables(2)
    card = drawn.score(dialect="coco")
    mean, small = "mAPAveragedOverIOUs", ("small", "medium", "large")
    rows: list[tuple[str, dict[str, Any]]] = [
        (mean, {"area": "all"}),
        *(("mAP", {"iou_threshold": iou, "area": "all"}) for iou in (0.5, 0.75)),
        *((mean, {"area": area}) for area in small),
        *(("mAR", {"area": "all", "max_detections": most}) for most in (1, 10, 100)),
        *(("mAR", {"area": area, "max_detections": 100}) for area in small),
    ]
    result = [card.value(name, label_value=None, slice=None, **where) for name, where in rows]
    assert result == card.to_coco()["stats"]


def assert_standard(drawn: Tables, **unbounded: Any) -> None:
    """Check that AP of ``standard`` is the mean of pycocotools' precision [T, R, K]."""
    theirs, _, labels = run_coco(drawn.predictions, drawn.truths, **unbounded)
    card = drawn.score(metrics=["AP"],
        iou_thresholds_to_return=IOUS)  # fmt: skip
    names = ("label_key", "label_value", "iou_threshold", "value")
    rows = card.metrics.select(names).iter_rows()
    at = {(key, value, round(iou, 9)): number for key, value, iou, number in rows}
    for (t, iou), (k, label) in product(enumerate(IOUS), enumerate(labels)):
        cell = theirs.eval["precision"][t, :, k, 0, -1]
        assert at[*label, round(iou, 9)] == (None if (cell == -1).all() else cell.mean())


@pytest.mark.parametrize("seed", range(3))
def test_standard_of_large_tables(seed: int) -> None:
    """Without any cap."""
    drawn = crowded_tables(20 + seed, datums=25, strings=seed == 1)
    assert_standard(drawn, max_detections=[10**6], area_ranges={"all": (0.0, 1e12)})


@given(tables(crowd=True, keys=2))
@modest
def test_standard_of_small_tables(drawn: Tables) -> None:
    """Tables with many ties within COCO's caps, with label keys and empty sides."""
    assert_standard(drawn)


@pytest.mark.parametrize("seed", range(3))
def test_unmatched_boxes_at_the_bounds_of_area_ranges(seed: int) -> None:
    """Areas of exactly 32^2 and 96^2, on both sides; half of the predictions match nothing."""
    rng = np.random.default_rng([seed, 32])
    sizes = np.array([(32.0, 32.0), (96.0, 96.0), (16.0, 64.0), (31.0, 33.0), (72.0, 128.0)])
    n = 60
    size = sizes[rng.integers(0, len(sizes), n)]
    x = 300.0 * rng.integers(0, 2, n)
    truths = pl.DataFrame(
        {"datum_id": rng.integers(0, 12, n), "label_value": rng.integers(0, 2, n), "xmin": x,
         "ymin": 0.0, "xmax": x + size[:, 0], "ymax": size[:, 1]}
    )  # fmt: skip
    away = pl.lit(pl.Series(np.where(rng.random(n) < 0.5, 1000.0, 0.0)))
    predictions = truths.with_columns(
        pl.col("xmin", "xmax") + away, score=pl.Series(rng.permutation(n) / n)
    )
    drawn = Tables(predictions, truths)
    same_as_coco(coco_of(drawn), run_of(drawn))


@pytest.mark.parametrize(("most", "hits"), [(1, 1), (2, 2), (3, 2)])
def test_predictions_beyond_the_cap_are_ignored(most: int, hits: int) -> None:
    """Outcomes and counts include the same predictions as AP: the first ``most`` of an image."""
    left = pl.Series([0.0, 100.0, 300.0])
    predictions = pl.DataFrame(
        {"datum_id": 1, "label_value": "a", "xmin": left, "ymin": 0.0, "xmax": left + 10,
         "ymax": 10.0, "score": [0.9, 0.8, 0.7]}
    )  # fmt: skip
    truths = predictions.head(2).drop("score")
    card = ee.score(
        predictions, truths, dialect="coco", max_detections=[most], iou_thresholds=[0.5],
        metrics=["Outcomes", "Counts"], score_thresholds=[0.0],
    )  # fmt: skip
    rows = card.outcomes.filter(pl.col("score").is_not_null()).sort("score", descending=True)
    outcomes = ["tp", "tp", "fp_hallucination"][:most] + ["ignored"] * (3 - most)
    assert rows["outcome"].to_list() == outcomes
    hit_counts = card.metrics.filter(metric="Counts", statistic="tp", area="all")
    assert set(hit_counts.drop_nulls("label_value")["value"]) == {hits}
