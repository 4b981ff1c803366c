"""Boxes on whole pixels score the same as boxes, as masks and as polygons, in every dialect."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from detection.checking import EVERYTHING, GRID, modest, run
from detection.strategies import Tables, tables
from hypothesis import given, settings
from oracles.detection_metrics import DIALECTS

import evalengine as ee

FRAMES = ("metrics", "curves", "confusion", "outcomes", "examples")
CORNERS = ("xmin", "ymin", "xmax", "ymax")
SIZE = 10

few = settings(modest, max_examples=max(1, modest.max_examples // 6))
"""Each example is two runs with every output."""


def _runs(box: tuple[float, ...]) -> dict[str, list[int]]:
    """A box's pixels, counted along the rows."""
    x0, y0, x1, y1 = (int(v) for v in box)
    counts = [y0 * SIZE + x0]
    for _ in range(y0, y1):
        counts += [x1 - x0, SIZE - (x1 - x0)]
    return {"size": [SIZE, SIZE], "runs": [*counts[:-1], SIZE * SIZE - sum(counts[:-1])]}


def _as_masks(frame: pl.DataFrame) -> pl.DataFrame:
    masks = [_runs(box) for box in frame.select(CORNERS).iter_rows()]
    dtype = pl.Struct({"size": pl.List(pl.Int64), "runs": pl.List(pl.Int64)})
    return frame.drop(CORNERS).with_columns(mask=pl.Series(masks, dtype=dtype))


def _as_polygons(frame: pl.DataFrame) -> pl.DataFrame:
    rings = [
        [[x0, y0, x1, y0, x1, y1, x0, y1]] for x0, y0, x1, y1 in frame.select(CORNERS).iter_rows()
    ]
    dtype = pl.List(pl.List(pl.Float64))
    return frame.drop(CORNERS).with_columns(polygon=pl.Series(rings, dtype=dtype))


def _solid(drawn: Tables) -> Tables:
    """Without boxes of no area, which are no polygons."""
    solid = (pl.col("xmin") < pl.col("xmax")) & (pl.col("ymin") < pl.col("ymax"))
    return Tables(drawn.predictions.filter(solid), drawn.truths.filter(solid))


def _frames(card: ee.Scorecard) -> dict[str, pl.DataFrame]:
    return {name: card.frame(name).drop("geometry", strict=False) for name in FRAMES}


def _assert_same(ours: ee.Scorecard, boxes: ee.Scorecard) -> None:
    for name, frame in _frames(boxes).items():
        assert _frames(ours)[name].equals(frame), name


@pytest.mark.parametrize("dialect", DIALECTS)
@given(drawn=tables(crowd=True, area=True))
@few
def test_masks(dialect: str, drawn: Tables) -> None:
    """Empty masks, equal IoUs, exact thresholds, crowds, two label keys, all outputs."""
    boxes = run(drawn, dialect, GRID, EVERYTHING)
    masks = Tables(_as_masks(drawn.predictions), _as_masks(drawn.truths))
    _assert_same(run(masks, dialect, GRID, EVERYTHING, iou_type="segm"), boxes)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(drawn=tables(crowd=True, area=True))
@few
def test_polygons(dialect: str, drawn: Tables) -> None:
    """The same of polygons: their areas are sums of whole numbers."""
    solid = _solid(drawn)
    ids = [{*side["datum_id"]} for side in (solid.predictions, solid.truths)]
    if not any(ids) or (all(ids) and not ids[0] & ids[1]):
        return
    boxes = run(solid, dialect, GRID, EVERYTHING)
    polygons = Tables(_as_polygons(solid.predictions), _as_polygons(solid.truths))
    options: dict[str, Any] = {"convert_to": "polygon"}
    _assert_same(run(polygons, dialect, GRID, EVERYTHING, **options), boxes)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(drawn=tables(crowd=True, area=True))
@few
def test_boxes_as_polygons(dialect: str, drawn: Tables) -> None:
    """Boxes that are made polygons, those of no area among them; also beside polygons."""
    boxes = run(drawn, dialect, GRID, EVERYTHING)
    _assert_same(run(drawn, dialect, GRID, EVERYTHING, convert_to="polygon"), boxes)
    solid = (pl.col("xmin") < pl.col("xmax")) & (pl.col("ymin") < pl.col("ymax"))
    found = drawn.predictions
    rings = _as_polygons(found)["polygon"]
    mixed = found.with_columns(
        *(pl.when(~solid).then(name).alias(name) for name in CORNERS),
        polygon=pl.when(solid).then(rings),
    )
    beside = Tables(mixed, drawn.truths)
    _assert_same(run(beside, dialect, GRID, EVERYTHING, convert_to="polygon"), boxes)
