"""Tracks of masks and polygons: TrackEval's values with pycocotools' IoU, and refusals.

``known_answers/tracking/masks`` has 12 random sequences. During development 2,400 more differed by
at most 4e-16.
"""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from reference_data import known_answers
from refusals import refused

import evalengine as ee

VECTORS: dict[str, Any] = known_answers("tracking", "masks")
MASK = pl.Struct({"size": pl.List(pl.Int64), "counts": pl.String})
SCHEMA = {"sequence": pl.Int64, "frame": pl.Int64, "id": pl.Int64,
          "polygon": pl.List(pl.List(pl.Float64)), "mask": MASK}  # fmt: skip
HEIGHT, WIDTH = VECTORS["size"]


def sides() -> tuple[pl.DataFrame, pl.DataFrame]:
    found = pl.DataFrame(VECTORS["found"], SCHEMA, orient="row")
    truth = pl.DataFrame(VECTORS["truth"], SCHEMA | {"region": pl.Int64}, orient="row")
    return found.rename({"id": "track_id"}), truth.rename({"id": "object_id"})


def sizes() -> pl.DataFrame:
    ids = [int(one) for one in VECTORS["sequences"]]
    return pl.DataFrame({"sequence": ids, "height": HEIGHT, "width": WIDTH})


def test_trackeval() -> None:
    card = ee.score(*sides(), datums=sizes(), metrics=VECTORS["names"])
    said = [card.value(name) for name in VECTORS["names"]]
    assert said == pytest.approx(VECTORS["together"], rel=1e-12, abs=1e-12)
    found = card.frame("per_datum").rows_by_key(["datum_id", "metric"], unique=True, named=True)
    for sequence, values in VECTORS["sequences"].items():
        own = [found[int(sequence), name]["value"] for name in VECTORS["names"]]
        assert own == pytest.approx(values, rel=1e-12, abs=1e-12)


def test_boxes_are_compared_by_default() -> None:
    predictions, truth = (
        side.drop_nulls("mask").with_columns(xmin=0.0, ymin=0.0, xmax=9.0, ymax=9.0)
        for side in sides()
    )
    metrics = ["MOTP"]
    assert ee.score(predictions, truth, metrics=metrics).value("MOTP") == 1
    by_masks = ee.score(predictions, truth, metrics=metrics, iou_type="segm").value("MOTP")
    plain = [side.drop("xmin", "ymin", "xmax", "ymax") for side in (predictions, truth)]
    assert by_masks == ee.score(*plain, metrics=metrics).value("MOTP") < 1


def test_polygons_without_sizes() -> None:
    with refused("image_size_missing", column="polygon"):
        ee.score(*sides(), metrics=["HOTA"])


def test_rows_without_shape() -> None:
    predictions, truth = sides()
    with refused("geometry_missing", side="predictions", count=112, rows=[2]):
        ee.score(
            predictions.drop("polygon").with_columns(xmin=0.0, ymin=0.0, xmax=9.0, ymax=9.0),
            truth, datums=sizes(), iou_type="segm",
        )  # fmt: skip


def test_masks_of_two_sizes() -> None:
    mask = pl.DataFrame({"sequence": ["s"], "frame": [1], "object_id": [1],
                         "mask": [{"size": [4, 4], "counts": [2, 4, 10]}]})  # fmt: skip
    other = mask.with_columns(mask=pl.Series([{"size": [4, 5], "counts": [2, 4, 14]}]))
    with refused("sizes_differ", count=1):
        ee.score(other.rename({"object_id": "track_id"}), mask)


def test_an_unknown_iou_type() -> None:
    with refused("unknown_name", ee.OptionError, value="obb"):
        ee.score(*sides(), datums=sizes(), iou_type="obb")
