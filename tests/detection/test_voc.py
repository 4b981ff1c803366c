"""The dialects of Pascal VOC against a slow oracle of the published rules.

During development, 2,100 seeds were compared with it and with detectron2's ``voc_eval``. Its
``argsort`` was made stable, since equal scores have no order there.
"""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from oracles.voc import RULES, average_precision

import evalengine as ee

from .voc_tables import CORNERS, all_at_once

Rows = dict[Any, list[dict[str, Any]]]


def by_label(frame: pl.DataFrame) -> Rows:
    """Group rows by label, sorted by image."""
    result: Rows = {}
    for row in frame.sort("datum_id", maintain_order=True).iter_rows(named=True):
        result.setdefault(row["label_value"], []).append(row)
    return result


def corners(row: dict[str, Any]) -> Any:
    return tuple(row[name] for name in CORNERS)


@pytest.mark.parametrize("dialect", RULES)
def test_random_tables(dialect: str) -> None:
    compare(dialect, range(60))


def compare(dialect: str, seeds: range) -> None:
    """Compare AP and mAP of many tables at once with the oracle."""
    sides = all_at_once(seeds)
    ious = [0.5, 0.75]
    card = ee.score(*sides, dialect=dialect, metrics=["AP", "mAP"], iou_thresholds=ious)
    predictions, truths = map(by_label, sides)
    rows = card.metrics.filter(metric="AP").select("label_value", "iou_threshold", "value")
    means: dict[tuple[str, float], list[float]] = {}
    assert rows.height == len(ious) * len({*predictions, *truths})
    for label, iou, value in rows.iter_rows():
        ours = [(row["datum_id"], row["score"], corners(row)) for row in predictions.get(label, [])]
        theirs = [
            (row["datum_id"], corners(row), bool(row["difficult"])) for row in truths.get(label, [])
        ]
        want = average_precision(ours, theirs, iou, RULES[dialect])
        assert (value is None) == (want is None)
        if want is not None:
            assert value == pytest.approx(want, abs=1e-12), (label, iou)
            means.setdefault((str(int(label[:4])), iou), []).append(want)
    for (key, iou), wanted in means.items():
        mean = card.value("mAP", label_key=key, iou_threshold=iou)
        assert mean == pytest.approx(sum(wanted) / len(wanted), abs=1e-12)


BOX = {"xmin": 1.0, "ymin": 1.0, "xmax": 10.0, "ymax": 10.0}


def ap(
    dialect: str, predictions: list[dict[str, Any]], truths: list[dict[str, Any]]
) -> float | None:
    """Compute AP of one class in one image."""
    sides = (
        pl.DataFrame([{"datum_id": 1, "label_value": "a"} | BOX | row for row in rows])
        for rows in (predictions, truths)
    )
    return ee.score(*sides, dialect=dialect, metrics=["AP"], iou_thresholds=[0.5]).value("AP")


def test_difficult_objects_are_neither_hit_nor_missed() -> None:
    easy, hard = {"difficult": 0}, {"difficult": 1, "xmin": 51.0, "xmax": 60.0}
    far = {"xmin": 51.0, "xmax": 60.0}
    result = [{"score": 0.9, **far}, {"score": 0.8, **far}, {"score": 0.5}]
    assert ap("voc2012", result, [easy, hard]) == 1.0
    assert ap("voc2012", result, [easy, {**hard, "difficult": 0}]) == pytest.approx(
        0.5 + 0.5 * 2 / 3
    )
    assert ap("voc2012", result, [{**easy, "difficult": 1}]) is None


def test_predictions_have_no_second_choice() -> None:
    # The second prediction overlaps the taken first object most, but also the other object well.
    truths = [{}, {"xmin": 3.0, "xmax": 12.0}]
    result = [{"score": 0.9}, {"score": 0.8, "xmin": 1.5, "xmax": 10.5}]
    assert ap("voc2012", result, truths) == 0.5
    assert ap("standard", result, truths) == pytest.approx(1.0)


def test_an_overlap_of_exactly_the_threshold() -> None:
    half = {"score": 0.9, "xmax": 5.0}  # 5 of 10 columns; the box includes its last one
    assert ap("voc2012", [half], [{}]) == ap("voc2007", [half], [{}]) == 1.0
    assert ap("voc-detectron2", [half], [{}]) == 0.0


def test_no_overlap_is_above_one() -> None:
    sides = (pl.DataFrame([{"datum_id": 1, "label_value": "a", **BOX, **row}])
             for row in ({"score": 0.9}, {}))  # fmt: skip
    card = ee.score(*sides, dialect="voc-detectron2", metrics=["AP"], iou_thresholds=[0.95, 1.0])
    assert card.metrics["value"].to_list() == [1.0, 0.0]


def test_a_box_of_one_pixel_has_an_area() -> None:
    flat = {"datum_id": 1, "label_value": "a", **BOX, "xmax": 1.0}
    sides = pl.DataFrame([{**flat, "score": 0.9}]), pl.DataFrame([flat])
    for dialect, value in (("voc2012", 1.0), ("voc-mmdetection", 0.0)):
        card = ee.score(*sides, dialect=dialect, metrics=["AP"])
        assert card.value("AP") == value
        codes = [note.code for note in card.findings]
        assert ("zero_area_boxes" in codes) == (value == 0.0)


@pytest.mark.parametrize(
    ("hits", "by_matlab", "by_numpy"), [(3, 3, 3), (6, 7, 6), (7, 8, 7), (9, 10, 10)]
)
def test_recalls_of_exact_tenths(hits: int, by_matlab: int, by_numpy: int) -> None:
    places = [{"xmin": 100.0 * i, "xmax": 100.0 * i + 9} for i in range(10)]
    result = [{"score": 0.9, **place} for place in places[:hits]]
    assert ap("voc2007", result, places) == pytest.approx(by_matlab / 11)
    assert ap("voc-detectron2", result, places) == pytest.approx(by_numpy / 11)


def test_detectron2_writes_scores_and_corners_first() -> None:
    places = [{"xmin": 100.0 * i, "xmax": 100.0 * i + 9} for i in range(2)]
    right = {"score": 0.90011, **places[1]}
    wrong = {"score": 0.90014, "xmin": 500.0, "xmax": 509.0}  # equal at three digits, ranked second
    assert ap("voc-detectron2", [right, wrong], places) == pytest.approx(6 / 11)
    assert ap("voc2007", [right, wrong], places) == pytest.approx(6 / 22)
    close = {"score": 0.9, "xmax": 5.04}  # 5.0 when written
    assert ap("voc-detectron2", [close], [{}]) == 0.0
