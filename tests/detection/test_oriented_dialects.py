"""Oriented boxes compared as in detectron2, mmrotate, DOTA and Ultralytics.

During development, two million random pairs were compared with the code of detectron2 and mmcv, and
2,500 sets with pycocotools on detectron2's IoUs. Some pairs are known answers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from detection.oriented_tables import random_tables
from oracles.oriented import iou, probiou, run
from oracles.voc import TENTHS, VocRules, average_precision
from reference_data import known_answers
from refusals import noted, refused

import evalengine as ee
from evalengine.geometry.polygons import corners_of, smallest_boxes
from evalengine.tasks.detection.geometry import LAYERS
from evalengine.tasks.detection.layers import QuadLayer

CLOCKWISE: dict[str, Any] = {
    "angle_format": "radians-clockwise",
    "task": "detection",
    "iou_type": "obb",
}


class Serial:
    """Executor that works in the calling thread."""

    def over(self, offsets: Any, function: Any) -> list[Any]:
        return [function(0, len(offsets) - 1)]


def overlaps(tool: str, one: Any, two: Any) -> Any:
    """Compute IoUs of pairs of boxes, in radians clockwise."""
    each_side = (np.asarray(side, np.float64).reshape(-1, 5) for side in (one, two))
    sides = [
        LAYERS[tool](boxes, QuadLayer.of(corners_of(boxes[:, :4], boxes[:, 4])))
        for boxes in each_side
    ]
    each = np.arange(len(sides[0].area), dtype=np.int32)
    workers: Any = Serial()
    return sides[0].similarity(sides[1], each, each, np.zeros(each.size, bool), workers)


@pytest.mark.parametrize(
    "expected", known_answers("detection", "rotated_ious"), ids=lambda expected: expected["tool"]
)
def test_rotated_hulls(expected: dict[str, Any]) -> None:
    """To the bit of single precision."""
    one, two = (np.array(expected[side]) for side in ("one", "two"))
    if expected["tool"] == "detectron2":
        for side in (one, two):
            side[:, 4] = -np.deg2rad(side[:, 4])
    result = overlaps(expected["tool"], one, two).astype(np.float32)
    assert (result == np.array(expected["iou"], np.float32)).all()


def of_pair(tool: str) -> Any:
    return lambda one, two, *_: float(overlaps(tool, one, two)[0])


def tables(seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    predictions, truths = random_tables(seed)
    return predictions, truths.drop("iscrowd", strict=False)


@pytest.mark.parametrize(
    ("options", "measure"),
    [({"dialect": "detectron2"}, of_pair("detectron2")),
     ({"dialect": "coco", "iou_type": "probiou"}, probiou)],
    ids=["detectron2", "probiou"],
)  # fmt: skip
def test_numbers_of_coco(options: dict[str, Any], measure: Any) -> None:
    """Every pair that reaches a threshold is compared, and numbers are COCO's."""
    compared = 0
    for seed in (63, 64, 76, 86, 97):
        predictions, truths = tables(seed)
        expected = run(predictions, truths, measure)
        card = ee.score(predictions, truths, **{**CLOCKWISE, **options})
        assert card.to_coco()["stats"] == expected.stats.tolist()
        compared += expected.stats[0] > 0
        if "iou_type" in options:
            noted(card, "no_iou")
    assert compared > 2


@pytest.mark.parametrize(
    ("dialect", "rules", "measure"),
    [("dota", VocRules(TENTHS, above=True, pixel=0), iou),
     ("mmrotate", VocRules(TENTHS, pixel=0), of_pair("mmcv"))],
)  # fmt: skip
def test_numbers_of_voc(dialect: str, rules: VocRules, measure: Any) -> None:
    compared = 0
    for seed in (63, 64, 76, 86, 97):
        predictions, truths = tables(seed)
        hard = pl.Series(np.random.default_rng(seed).random(truths.height) < 0.2)
        truths = truths.with_columns(difficult=hard.cast(pl.Int64))
        card = ee.score(predictions, truths, dialect=dialect, metrics=["AP"], **CLOCKWISE)
        for label in truths["label_value"].unique():
            result, theirs = (
                side.filter(label_value=label).sort("datum_id", maintain_order=True)
                for side in (predictions, truths)
            )
            ours = result.select("datum_id", "score", "obb").rows()
            objects = theirs.select("datum_id", "obb", pl.col("difficult") == 1).rows()
            expected = average_precision(ours, objects, 0.5, rules, lambda a, b, _: measure(a, b))
            value = card.value("AP", label_value=label, iou_threshold=0.5)
            assert value == (None if expected is None else pytest.approx(expected, abs=1e-12))
            compared += expected is not None and expected > 0
    assert compared > 4


def test_an_iou_of_exactly_one_half_misses_only_in_dota() -> None:
    truth = pl.DataFrame({"datum_id": [1], "label_value": ["a"], "obb": [[4.0, 1, 8, 2, 0.0]]})
    half = truth.with_columns(obb=pl.Series([[4.0, 1, 8, 1, 0.0]]), score=pl.lit(0.9))
    for dialect, value in (("dota", 0.0), ("mmrotate", 1.0)):
        card = ee.score(half, truth, dialect=dialect, metrics=["AP"], **CLOCKWISE)
        assert card.value("AP", label_value="a") == pytest.approx(value)


@pytest.mark.parametrize("dialect", ["dota", "mmrotate", "detectron2"])
def test_a_shown_iou_has_no_offset_of_thresholds(dialect: str) -> None:
    truth = pl.DataFrame({"datum_id": [1], "label_value": ["a"], "obb": [[4.0, 1, 8, 2, 0.0]]})
    for box, expected in (([4.0, 1, 8, 2, 0.0], 1.0), ([4.0, 1, 8, 1, 0.0], 0.5)):
        predictions = truth.with_columns(obb=pl.Series([box]), score=pl.lit(0.9))
        card = ee.score(predictions, truth, dialect=dialect, metrics=["Outcomes"], **CLOCKWISE)
        shown = card.frame("outcomes")["iou"].drop_nulls().to_list()
        assert shown == (
            [] if (dialect, expected) == ("dota", 0.5) else [expected]
        )  # greater than 0.5 in that dialect


def test_dota_accepts_crossed_corners() -> None:
    bow = [[[[0, 0], [4, 4], [4, 0], [0, 4]]]]
    row = pl.DataFrame({"datum_id": [1], "label_value": ["a"], "polygon": bow})
    card = ee.score(
        row.with_columns(score=0.5), row, dialect="dota", metrics=["AP"], iou_type="obb"
    )
    assert card.value("AP", label_value="a") == 0.0  # the two halves cancel
    with refused("corners_crossed", count=1):
        ee.score(row.with_columns(score=0.5), row, dialect="mmrotate", iou_type="obb")


def test_crowds_and_other_geometry_are_refused() -> None:
    predictions, truths = random_tables(86)
    crowded = truths.with_columns(iscrowd=pl.lit(value=True))
    for options in ({"dialect": "detectron2"}, {"iou_type": "probiou"}):
        with refused("crowds_unread", column="iscrowd", count=crowded.height):
            ee.score(predictions, crowded, **{**CLOCKWISE, **options})
    with pytest.raises(ee.OptionError, match="iou_type='obb'"):
        ee.score(predictions, truths, **{**CLOCKWISE, "dialect": "dota", "iou_type": "segm"})


def test_rectangles_come_back_from_their_corners() -> None:
    """Up to a quarter turn, which swaps width and height; otherwise the rectangle around them."""
    rng = np.random.default_rng(5)
    boxes = np.concatenate([rng.uniform(-50, 50, (40, 2)), rng.uniform(1, 9, (40, 2)),
                            rng.uniform(-4, 4, (40, 1))], axis=1)  # fmt: skip
    corners = corners_of(boxes[:, :4], boxes[:, 4])
    result = smallest_boxes(corners)
    assert overlaps("probiou", result, boxes) == pytest.approx(1.0, abs=1e-3)
    np.testing.assert_allclose(result[:, :2], boxes[:, :2], atol=1e-9)
    np.testing.assert_allclose(np.sort(result[:, 2:4]), np.sort(boxes[:, 2:4]), atol=1e-9)
    kite = smallest_boxes(np.array([[0.0, 0, 2, 1, 4, 0, 2, -3]]))
    assert kite[0, 2] * kite[0, 3] < 16
