"""Oriented boxes as detectron2, mmrotate, DOTA and Ultralytics compare them.

Two million random pairs were compared with detectron2's and mmcv's own code when the kernel was
made, and 2,500 sets with pycocotools on detectron2's IoUs; some pairs are known answers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from detection.oriented_tables import drawn_tables
from known import known_answers
from oracles.oriented import iou, probiou, run
from oracles.voc import TENTHS, VocRules, average_precision
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


class OneByOne:
    """Work done where it is asked for."""

    def over(self, offsets: Any, function: Any) -> list[Any]:
        return [function(0, len(offsets) - 1)]


def alike(tool: str, one: Any, two: Any) -> Any:
    """How alike pairs of boxes are, radians clockwise."""
    each_side = (np.asarray(side, np.float64).reshape(-1, 5) for side in (one, two))
    sides = [
        LAYERS[tool](boxes, QuadLayer.of(corners_of(boxes[:, :4], boxes[:, 4])))
        for boxes in each_side
    ]
    each = np.arange(len(sides[0].area), dtype=np.int32)
    workers: Any = OneByOne()
    return sides[0].similarity(sides[1], each, each, np.zeros(each.size, bool), workers)


@pytest.mark.parametrize(
    "known", known_answers("detection", "rotated_ious"), ids=lambda known: known["tool"]
)
def test_rotated_hulls(known: dict[str, Any]) -> None:
    """To the bit of single precision."""
    one, two = (np.array(known[side]) for side in ("one", "two"))
    if known["tool"] == "detectron2":
        for side in (one, two):
            side[:, 4] = -np.deg2rad(side[:, 4])
    found = alike(known["tool"], one, two).astype(np.float32)
    assert (found == np.array(known["iou"], np.float32)).all()


def of_pair(tool: str) -> Any:
    return lambda one, two, *_: float(alike(tool, one, two)[0])


def tables(seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    predictions, truths = drawn_tables(seed)
    return predictions, truths.drop("iscrowd", strict=False)


@pytest.mark.parametrize(
    ("how", "measure"),
    [({"dialect": "detectron2"}, of_pair("detectron2")),
     ({"dialect": "coco", "iou_type": "probiou"}, probiou)],
    ids=["detectron2", "probiou"],
)  # fmt: skip
def test_numbers_of_coco(how: dict[str, Any], measure: Any) -> None:
    """No pair is left out that reaches a threshold, and numbers are COCO's."""
    compared = 0
    for seed in (63, 64, 76, 86, 97):
        predictions, truths = tables(seed)
        expected = run(predictions, truths, measure)
        card = ee.score(predictions, truths, **{**CLOCKWISE, **how})
        assert card.to_coco()["stats"] == expected.stats.tolist()
        compared += expected.stats[0] > 0
        if "iou_type" in how:
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
            found, theirs = (
                side.filter(label_value=label).sort("datum_id", maintain_order=True)
                for side in (predictions, truths)
            )
            ours = found.select("datum_id", "score", "obb").rows()
            objects = theirs.select("datum_id", "obb", pl.col("difficult") == 1).rows()
            expected = average_precision(ours, objects, 0.5, rules, lambda a, b, _: measure(a, b))
            value = card.value("AP", label_value=label, iou_threshold=0.5)
            assert value == (None if expected is None else pytest.approx(expected, abs=1e-12))
            compared += expected is not None and expected > 0
    assert compared > 4


def test_an_iou_of_exactly_one_half_misses_in_dota_alone() -> None:
    truth = pl.DataFrame({"datum_id": [1], "label_value": ["a"], "obb": [[4.0, 1, 8, 2, 0.0]]})
    half = truth.with_columns(obb=pl.Series([[4.0, 1, 8, 1, 0.0]]), score=pl.lit(0.9))
    for dialect, value in (("dota", 0.0), ("mmrotate", 1.0)):
        card = ee.score(half, truth, dialect=dialect, metrics=["AP"], **CLOCKWISE)
        assert card.value("AP", label_value="a") == pytest.approx(value)


@pytest.mark.parametrize("dialect", ["dota", "mmrotate", "detectron2"])
def test_an_iou_is_shown_without_what_thresholds_add(dialect: str) -> None:
    truth = pl.DataFrame({"datum_id": [1], "label_value": ["a"], "obb": [[4.0, 1, 8, 2, 0.0]]})
    for box, expected in (([4.0, 1, 8, 2, 0.0], 1.0), ([4.0, 1, 8, 1, 0.0], 0.5)):
        found = truth.with_columns(obb=pl.Series([box]), score=pl.lit(0.9))
        card = ee.score(found, truth, dialect=dialect, metrics=["Outcomes"], **CLOCKWISE)
        shown = card.frame("outcomes")["iou"].drop_nulls().to_list()
        assert shown == (
            [] if (dialect, expected) == ("dota", 0.5) else [expected]
        )  # above 0.5 there


def test_what_crosses_counts_in_dota_as_it_lies() -> None:
    bow = [[[[0, 0], [4, 4], [4, 0], [0, 4]]]]
    row = pl.DataFrame({"datum_id": [1], "label_value": ["a"], "polygon": bow})
    card = ee.score(
        row.with_columns(score=0.5), row, dialect="dota", metrics=["AP"], iou_type="obb"
    )
    assert card.value("AP", label_value="a") == 0.0  # one half of it takes the other away
    with refused("corners_crossed", count=1):
        ee.score(row.with_columns(score=0.5), row, dialect="mmrotate", iou_type="obb")


def test_crowds_and_other_geometry_are_refused() -> None:
    predictions, truths = drawn_tables(86)
    crowded = truths.with_columns(iscrowd=pl.lit(value=True))
    for how in ({"dialect": "detectron2"}, {"iou_type": "probiou"}):
        with refused("crowds_unread", column="iscrowd", count=crowded.height):
            ee.score(predictions, crowded, **{**CLOCKWISE, **how})
    with pytest.raises(ee.OptionError, match="iou_type='obb'"):
        ee.score(predictions, truths, **{**CLOCKWISE, "dialect": "dota", "iou_type": "segm"})


def test_rectangles_come_back_from_their_corners() -> None:
    """Up to a quarter turn, which exchanges width and height; others have a rectangle around."""
    rng = np.random.default_rng(5)
    boxes = np.concatenate([rng.uniform(-50, 50, (40, 2)), rng.uniform(1, 9, (40, 2)),
                            rng.uniform(-4, 4, (40, 1))], axis=1)  # fmt: skip
    corners = corners_of(boxes[:, :4], boxes[:, 4])
    found = smallest_boxes(corners)
    assert alike("probiou", found, boxes) == pytest.approx(1.0, abs=1e-3)
    np.testing.assert_allclose(found[:, :2], boxes[:, :2], atol=1e-9)
    np.testing.assert_allclose(np.sort(found[:, 2:4]), np.sort(boxes[:, 2:4]), atol=1e-9)
    kite = smallest_boxes(np.array([[0.0, 0, 2, 1, 4, 0, 2, -3]]))
    assert kite[0, 2] * kite[0, 3] < 16
