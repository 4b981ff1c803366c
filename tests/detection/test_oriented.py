"""Oriented boxes: pycocotools' arithmetic with Shapely's IoUs, in every input format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import shapely
from detection.oriented_tables import random_tables
from merging.oriented_parts import oriented
from oracles.oriented import corners, run
from partitions.cases import in_buckets, same_as_in_memory
from refusals import noted, refused

import evalengine as ee

COCO: dict[str, Any] = {"dialect": "coco", "iou_type": "obb", "angle_format": "radians-clockwise"}
FIVE = ("cx", "cy", "w", "h", "angle")


def in_columns(frame: pl.DataFrame, factor: float = 1.0) -> pl.DataFrame:
    """Split the boxes into columns, with a factor for the angle."""
    numbers = frame["obb"].list.to_struct(fields=FIVE).struct.unnest()
    return frame.drop("obb").hstack(numbers.with_columns(pl.col("angle") * factor))


def cornered(frame: pl.DataFrame) -> pl.DataFrame:
    """Split the corners into columns."""
    result = np.array([corners(box).ravel() for box in frame["obb"]]).reshape(-1, 8)
    names = [f"{xy}{k}" for k in range(1, 5) for xy in "xy"]
    return frame.drop("obb").hstack(pl.DataFrame(result, schema=names, orient="row"))


def test_coco_by_shapely() -> None:
    """Precision, recall, scores and the twelve numbers."""
    compared = 0
    for seed in range(60, 72):
        predictions, truths = random_tables(seed)
        if not {*predictions["datum_id"]} & {*truths["datum_id"]}:
            continue
        expected = run(predictions, truths)
        if expected.near_threshold:
            continue
        result = ee.score(predictions, truths, task="detection", **COCO).to_coco()
        assert result["stats"] == expected.stats.tolist()
        for name in ("precision", "recall", "scores"):
            assert (result[name] == expected.eval[name]).all()
        compared += expected.stats[0] > 0
    assert compared > 4


@pytest.mark.parametrize(
    ("name", "factor"),
    [("radians-clockwise", 1), ("radians-counterclockwise", -1),
     ("degrees-clockwise", 180 / np.pi), ("degrees-counterclockwise", -180 / np.pi)],
)  # fmt: skip
def test_forms_of_the_angle(name: str, factor: float) -> None:
    predictions, truths = random_tables(86)
    result = ee.score(predictions, truths, **COCO)
    sides = in_columns(predictions, factor), in_columns(truths, factor)
    same = ee.score(*sides, dialect="coco", angle_format=name)
    assert same.to_coco()["stats"] == result.to_coco()["stats"]
    assert result.to_coco()["stats"][0] > 0


def test_corners_and_boxes_without_angle() -> None:
    predictions, truths = random_tables(86)
    result = ee.score(predictions, truths, **COCO, metrics=["Outcomes"]).outcomes
    columns = ["datum_id", "outcome", "score"]
    for sides in ((predictions, cornered(truths)), (cornered(predictions), cornered(truths))):
        for settings in ({}, {"iou_type": "obb"}):
            options = (
                {"angle_format": "radians-clockwise", **settings}
                if sides[0] is predictions
                else settings
            )
            same = ee.score(*sides, dialect="coco", metrics=["Outcomes"], **options).outcomes
            assert same.select(columns).equals(result.select(columns))
            gap = same["iou"].fill_null(0) - result["iou"].fill_null(0)
            assert gap.abs().max() < 1e-9
    upright = pl.DataFrame({"datum_id": [1], "label_value": ["a"], "bbox": [[0.0, 0.0, 4.0, 2.0]]})
    turned = pl.DataFrame({"datum_id": [1], "label_value": ["a"], "score": [0.5],
                           "obb": [[2.0, 1.0, 2.0, 4.0, 90.0]]})  # fmt: skip
    card = ee.score(turned, upright, iou_type="obb", box_format="xywh", metrics=["Outcomes"],
                    angle_format="degrees-clockwise")  # fmt: skip
    assert card.outcomes["iou"].to_list() == [1.0]  # right angles are exact


def test_the_angle_format_is_required() -> None:
    sides = random_tables(86)
    for inputs in (sides, [in_columns(side) for side in sides]):
        with refused("angle_format_missing"):
            ee.score(*inputs)
    with refused("unknown_name", value="radian-clockwise", match="'radians-clockwise'"):
        ee.score(*sides, angle_format="radian-clockwise")
    boxes = [in_columns(side).rename({"cx": "xmin", "cy": "ymin", "w": "xmax", "h": "ymax"})
             for side in sides]  # fmt: skip
    with refused("angle_without_centre"):
        ee.score(*boxes, angle_format="radians-clockwise")


def box(*numbers: float | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    truth = pl.DataFrame(
        {"datum_id": [1, 1], "label_value": ["a", "a"],
         "obb": [[0.0, 0.0, 2.0, 1.0, 0.0], [*numbers]]},
        schema_overrides={"obb": pl.List(pl.Float64)},
    )  # fmt: skip
    return truth.with_columns(score=0.5).head(1), truth


@pytest.mark.parametrize(
    ("numbers", "code", "message"),
    [((0, 0, 1, 1), "wrong_length", None),
     ((0, 0, 1, 0, 1, 1, 0, 1), "wrong_length", "four corners"),
     ((0, 0, 1, 1, None), "not_finite", None),
     ((0, 0, 1, 1, float("inf")), "not_finite", None),
     ((0, 0, -1, 1, 0), "too_low", None)],
)  # fmt: skip
def test_broken_boxes(numbers: tuple[float, ...], code: str, message: str | None) -> None:
    with refused(code, ee.InputError, match=message, column="obb", count=1, rows=[1]):
        ee.score(*box(*numbers), angle_format="radians-clockwise")


def test_boxes_without_area_are_noted_and_never_match() -> None:
    card = ee.score(*box(0, 0, 0, 1, 0), metrics=["AP"], angle_format="radians-clockwise")
    noted(card, "zero_area_boxes", count=1)
    assert card.value("AP", label_value="a", iou_threshold=0.5) == pytest.approx(51 / 101)


QUADS = {
    "convex": [[0, 0], [4, 1], [5, 4], [1, 3]],
    "hollow": [[0, 0], [4, 0], [1, 1], [0, 4]],
    "crossing": [[0, 0], [4, 4], [4, 0], [0, 4]],
    "five": [[0, 0], [4, 0], [5, 2], [4, 4], [0, 4]],
}


def quads(name: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    shape = {"datum_id": [1], "label_value": ["a"], "polygon": [[QUADS[name]]]}
    square = [[[0, 0], [3, 0], [3, 3], [0, 3]]]
    predictions = {"datum_id": [1], "label_value": ["a"], "score": [0.5], "polygon": [square]}
    return pl.DataFrame(predictions), pl.DataFrame(shape)


def test_quadrilaterals_are_no_rectangles() -> None:
    """Any four corners are compared as given."""
    for name in ("convex", "hollow"):
        card = ee.score(*quads(name), iou_type="obb", metrics=["Outcomes"], iou_thresholds=[0.1])
        one, two = shapely.Polygon(QUADS[name]), shapely.box(0, 0, 3, 3)
        expected = one.intersection(two).area / one.union(two).area
        assert card.outcomes["iou"][0] == pytest.approx(expected, abs=1e-12)
    with refused("corners_crossed", count=1):
        ee.score(*quads("crossing"), iou_type="obb")
    card = ee.score(*quads("crossing"), iou_type="obb", invalid_polygons="repair",
                    metrics=["Outcomes"])  # fmt: skip
    assert card.outcomes["iou"][0] == 9 / 16
    with refused("wrong_geometry", count=1):
        ee.score(*quads("five"), iou_type="obb")


def test_dota_folders(tmp_path: Path) -> None:
    """Corners in DOTA folders against five numbers in a table."""
    folder = tmp_path / "labelTxt"
    folder.mkdir()
    line = " ".join(f"{v:.6f}" for v in corners((50, 40, 30, 10, 0.4)).ravel())
    (folder / "P1.txt").write_text(f"imagesource:x\ngsd:1\n{line} ship 0\n")
    predictions = pl.DataFrame({"datum_id": ["P1"], "label_value": ["ship"], "score": [0.9],
                          "rbox": [[50.0, 40.0, 30.0, 10.0, 0.4]]})  # fmt: skip
    options: dict[str, Any] = {"angle_format": "radians-clockwise", "metrics": ["Outcomes"]}
    card = ee.score(predictions, str(folder), iou_type="obb", **options)
    assert card.outcomes["iou"][0] == pytest.approx(1, abs=1e-6)
    wrong = ee.score(predictions, str(folder), iou_type="obb", metrics=["Outcomes"],
                     angle_format="radians-counterclockwise")  # fmt: skip
    assert wrong.outcomes["outcome"].to_list() == ["fp_hallucination", "fn_missed"]


def test_other_geometry_of_oriented_boxes() -> None:
    """As polygons the numbers are equal; as boxes, those around them; as masks, their pixels."""
    predictions, truths = random_tables(86)
    datums = pl.DataFrame({"datum_id": range(4), "height": 400, "width": 400})
    settings: dict[str, Any] = {
        "angle_format": "radians-clockwise",
        "metrics": ["mAPAveragedOverIOUs"],
    }

    def mean(**options: Any) -> float:
        card = ee.score(predictions, truths, **settings, **options)
        return float(card.value("mAPAveragedOverIOUs"))

    assert mean() == mean(convert_to="obb") == mean(convert_to="polygon")
    assert mean(iou_type="segm", datums=datums) == pytest.approx(mean(), abs=0.1)
    hulls = [
        frame.drop("obb").with_columns(
            bbox=pl.Series([shapely.Polygon(corners(b)).bounds for b in frame["obb"]],
                           dtype=pl.List(pl.Float64))
        )
        for frame in (predictions, truths)
    ]  # fmt: skip
    boxes = ee.score(*hulls, box_format="xyxy", metrics=["mAPAveragedOverIOUs"])
    assert mean(iou_type="bbox") == boxes.value("mAPAveragedOverIOUs")


@pytest.mark.parametrize("seed", [4])
def test_through_files(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every frame of a run in bounded memory equals that of a run in memory."""
    in_buckets(monkeypatch)
    same_as_in_memory(oriented(seed), "detection", tmp_path)


@pytest.mark.parametrize("solid", [False, True])
def test_degrees_next_to_radians_are_a_warning(solid: bool) -> None:
    rng = np.random.default_rng(0)
    n = 40
    box = {"cx": 10.0, "cy": 10.0, "box_width": 9.0, "box_height": 3.0}
    how = {"iou_type": "obb", "angle_format": "radians-clockwise"}
    name = "angle"
    if solid:
        box = {"cx": 10.0, "cy": 10.0, "cz": 1.0, "length": 9.0, "width": 3.0, "height": 2.0}
        how, name = {"iou_type": "bev", "angle_format": "radians-z-up"}, "yaw"
    truth = pl.DataFrame({"datum_id": range(n), "label_value": "a", **box}).with_columns(
        pl.Series(name, rng.uniform(-1.5, 1.5, n))
    )
    found = truth.with_columns(pl.col(name) + pl.Series(rng.normal(0, 0.02, n)), score=pl.lit(0.5))
    degrees = found.with_columns(pl.col(name).degrees())
    for check in (ee.score, ee.check):
        noted(check(degrees, truth, **how), "angles_apart", severity="warning")
        small = truth.with_columns(pl.col(name) / 50)
        for ours, theirs in ((found, truth), (found, small), (degrees[:9], truth[:9])):
            fair = check(ours, theirs, **how)
            assert "angles_apart" not in {one.code for one in fair.findings}
