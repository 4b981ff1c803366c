"""3-D boxes: pycocotools' arithmetic with Shapely's IoUs, in every input format."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from detection.boxes_3d import in_columns, random_tables
from oracles.boxes_3d import iou_3d, iou_bev
from oracles.oriented import run
from refusals import refused

import evalengine as ee

Z_UP: dict[str, Any] = {"angle_format": "radians-z-up"}
SIMILARITIES = {"3d": iou_3d, "bev": iou_bev}


@pytest.mark.parametrize("iou_type", SIMILARITIES)
def test_coco_by_shapely(iou_type: str) -> None:
    """Precision, recall and scores over all sizes."""
    compared = 0
    for seed in range(66, 70):
        predictions, truths = random_tables(seed)
        if not {*predictions["datum_id"]} & {*truths["datum_id"]}:
            continue
        sides = [
            side.rename({"box3d": "obb"}).with_columns(area=pl.lit(1.0))
            for side in (predictions, truths)
        ]
        expected = run(sides[0], sides[1], SIMILARITIES[iou_type])
        if expected.near_threshold:
            continue
        result = ee.score(predictions, truths, dialect="coco", iou_type=iou_type, **Z_UP).to_coco()
        for name in ("precision", "recall", "scores"):
            assert (result[name][..., 0, :] == expected.eval[name][..., 0, :]).all()
        compared += expected.stats[0] > 0
    assert compared > 2


def ious(sides: tuple[pl.DataFrame, pl.DataFrame], **options: Any) -> list[float]:
    card = ee.score(*sides, metrics=["Outcomes"], iou_thresholds=[1e-9], **options)
    return card.outcomes.filter(pl.col("outcome") == "tp").sort("score", "iou")["iou"].to_list()


def test_ious_far_away() -> None:
    """Within 1e-12 of Shapely's IoU near the origin, at any position."""
    rng = np.random.default_rng(3)
    for where in ([0, 0, 0], [4e6, -5e6, 3e3]):
        one = np.r_[0.0, 0, 0, rng.uniform(1, 5, 3), rng.normal()]
        two = one + np.r_[rng.integers(-8, 8, 3) / 16, 0.2, 0.1, 0.3, 0.2]
        shift = np.r_[where, np.zeros(4)]
        tables = [pl.DataFrame({"datum_id": [1], "label_value": ["a"], "box3d": [box.tolist()]})
                  for box in (one + shift, two + shift)]  # fmt: skip
        sides = tables[0].with_columns(score=0.5), tables[1]
        for iou_type, equal in SIMILARITIES.items():
            expected = equal(one, two)
            tolerance = 1e-12 if where[0] == 0 else 1e-8  # limited by digits of corners
            assert ious(sides, iou_type=iou_type, **Z_UP) == pytest.approx(
                [expected], abs=tolerance
            )


def test_forms() -> None:
    """Columns, degrees and KITTI's camera axes give the same boxes as lists in radians."""
    sides = random_tables(66)
    expected = ious(sides, iou_type="3d", **Z_UP)
    assert len(expected) > 5
    columns = in_columns(sides[0]), in_columns(sides[1])
    assert ious(columns, iou_type="3d", **Z_UP) == expected
    turned = [side.with_columns(pl.col("yaw") * (180 / np.pi)) for side in columns]
    result = ious((turned[0], turned[1]), iou_type="3d", angle_format="degrees-z-up")
    assert result == pytest.approx(expected, abs=1e-9)
    camera = [
        side.with_columns(cy=pl.col("height") / 2 - pl.col("cz"), cz="cy", yaw=-pl.col("yaw"))
        .rename({"cx": "x", "cy": "y", "cz": "z", "length": "l", "width": "w", "height": "h",
                 "yaw": "rotation_y"})
        for side in columns
    ]  # fmt: skip
    result = ious((camera[0], camera[1]), iou_type="3d", angle_format="radians-camera")
    assert result == pytest.approx(expected, abs=1e-9)


def test_upright_without_yaw() -> None:
    sides = [in_columns(side).with_columns(yaw=0.0) for side in random_tables(66)]
    bare = [side.drop("yaw") for side in sides]
    options: dict[str, Any] = {"iou_type": "3d", **Z_UP}
    assert ious((bare[0], bare[1]), **options) == ious((sides[0], sides[1]), **options) != []


def test_ambiguous_boxes_are_refused() -> None:
    sides = random_tables(66)
    with refused("angle_format_missing", column="box3d"):
        ee.score(*sides, iou_type="3d")
    for code in ("angle_format_missing", "iou_type_missing"):
        with refused(code, column="box3d", match="iou_type='3d'"):
            ee.score(*sides)
    with refused("unknown_name", ee.OptionError, value="radians-zup", match="'radians-z-up'"):
        ee.score(*sides, iou_type="3d", angle_format="radians-zup")
    boxes = [side.with_columns(xmin=0.0, ymin=0.0, xmax=2.0, ymax=2.0) for side in sides]
    findings = ee.score(*boxes, metrics=["mAP"]).findings  # upright boxes need no option
    assert {one.code for one in findings} == {"rows_doubled"}
    with refused("geometry_missing", side="ground_truths", column="box3d"):
        ee.score(boxes[0], boxes[1].drop("box3d"), iou_type="3d", **Z_UP)
    with pytest.raises(ee.OptionError, match="iou_type='3d'"):
        ee.score(*sides, iou_type="3d", dialect="dota", **Z_UP)


@pytest.mark.parametrize(
    ("numbers", "code"),
    [((0, 0, 0, 1, 1), "wrong_length"),
     ((0, 0, 0, 1, 1, 1, None), "not_finite"),
     ((0, 0, 0, -1, 1, 1, 0), "too_low"),
     (None, "geometry_missing")],
)  # fmt: skip
def test_broken_boxes(numbers: tuple[float, ...] | None, code: str) -> None:
    truth = pl.DataFrame(
        {"datum_id": [1, 1], "label_value": ["a", "a"],
         "box3d": [[0.0, 0.0, 0.0, 2.0, 1.0, 1.0, 0.0], numbers and [*numbers]]},
        schema_overrides={"box3d": pl.List(pl.Float64)},
    )  # fmt: skip
    with refused(code, ee.InputError, column="box3d", count=1, rows=[1]):
        ee.score(truth.with_columns(score=0.5).head(1), truth, iou_type="3d", **Z_UP)


def test_eight_corners() -> None:
    """Eight corners in any order, with either axis up, give the box they belong to."""
    rng = np.random.default_rng(5)
    sides = []
    for side in random_tables(66):
        boxes = np.array(side["box3d"].to_list())
        boxes[:, 3:6] += 0.1
        cos, sin = np.cos(boxes[:, 6, None]), np.sin(boxes[:, 6, None])
        signs = np.stack(np.meshgrid(*[[-0.5, 0.5]] * 3), axis=-1).reshape(8, 3)
        off = boxes[:, None, 3:6] * rng.permutation(signs)
        x, y = off[..., 0] * cos - off[..., 1] * sin, off[..., 0] * sin + off[..., 1] * cos
        corners = boxes[:, None, :3] + np.stack([x, y, off[..., 2]], axis=2)
        points = pl.Series(corners.tolist(), dtype=pl.List(pl.List(pl.Float64)))
        swapped = pl.Series((corners[..., [0, 2, 1]] * [1, -1, 1]).tolist())
        plain = side.with_columns(box3d=pl.Series(boxes.tolist()))
        sides.append((plain, side.with_columns(box3d=points), side.with_columns(box3d=swapped)))
    plain, points, swapped = zip(*sides, strict=True)
    for iou_type in SIMILARITIES:
        expected = ious(plain, iou_type=iou_type, **Z_UP)
        assert len(expected) > 5
        result = ious(points, iou_type=iou_type, **Z_UP)
        assert result == pytest.approx(expected, abs=1e-9)
        camera = ious(swapped, iou_type=iou_type, angle_format="radians-camera")
        assert camera == pytest.approx(expected, abs=1e-9)
    with refused("front_unknown", column="box3d"):
        ee.score(*points, dialect="nuscenes", **Z_UP)
    squared = pl.element().list.eval(pl.element() ** 2)
    bent = points[1].with_columns(pl.col("box3d").list.eval(squared))
    with refused("wrong_length", column="box3d", match="Eight corners"):
        ee.score(points[0], bent, iou_type="3d", **Z_UP)
