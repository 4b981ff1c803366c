"""Boxes on integer pixels score the same as boxes, as masks and as polygons, in every dialect."""

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

few = settings(modest, max_examples=1 + modest.max_examples // 4)
"""Each example is two runs with every output."""


def _runs(box: tuple[float, ...]) -> dict[str, list[int]]:
    """Encode a box's pixels as row-major runs."""
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


def _assert_same(ours: ee.Scorecard, boxes: ee.Scorecard) -> None:
    for name in FRAMES:
        mine, theirs = (card.frame(name).drop("geometry", strict=False) for card in (ours, boxes))
        assert mine.equals(theirs), name


SOLID = (pl.col("xmin") < pl.col("xmax")) & (pl.col("ymin") < pl.col("ymax"))
"""Boxes without area are not polygons."""


def _as_either(frame: pl.DataFrame) -> pl.DataFrame:
    """Use polygons for rows with an area, boxes for the others."""
    return frame.with_columns(
        *(pl.when(~SOLID).then(name).alias(name) for name in CORNERS),
        polygon=pl.when(SOLID).then(_as_polygons(frame)["polygon"]),
    )


FORMS = ("masks", "polygons", "boxes", "polygons or boxes")
ALTERNATING = [
    (dialect, form)
    for i, dialect in enumerate(DIALECTS)
    for j, form in enumerate(FORMS)
    if (i + j) % 2 == 0
]
"""Two forms per dialect: geometries are compared before the dialect matches them."""


@pytest.mark.parametrize(("dialect", "form"), ALTERNATING)
@given(drawn=tables(crowd=True, area=True))
@few
def test_forms(dialect: str, form: str, drawn: Tables) -> None:
    """Empty masks, equal IoUs, exact thresholds, crowds, two label keys, all outputs.

    Areas of polygons are sums of integers; boxes that become polygons may have no area.
    """
    sides = drawn.predictions, drawn.truths
    if form == "polygons":
        sides = tuple(side.filter(SOLID) for side in sides)
        ids = [{*side["datum_id"]} for side in sides]
        if not any(ids) or (all(ids) and not ids[0] & ids[1]):
            return
    boxes = run(Tables(*sides), dialect, GRID, EVERYTHING)
    options: dict[str, Any] = {"convert_to": "polygon"}
    if form == "masks":
        sides, options = tuple(map(_as_masks, sides)), {"iou_type": "segm"}
    elif form == "polygons":
        sides = tuple(map(_as_polygons, sides))
    elif form == "polygons or boxes":
        sides = _as_either(sides[0]), sides[1]
    _assert_same(run(Tables(*sides), dialect, GRID, EVERYTHING, **options), boxes)
