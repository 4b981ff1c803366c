"""Rows with wrong geometry are named by the user's row number and datum id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from partitions.cases import in_buckets
from refusals import refused

import evalengine as ee
from evalengine.schemas.errors import InputError

GOOD: dict[str, Any] = {
    "mask": {"size": [2, 2], "counts": [1, 3]},
    "polygon": [[[0.0, 0.0], [4.0, 0.0], [4.0, 4.0]]],
}
BAD: dict[str, Any] = {
    "mask": {"size": [2, 2], "counts": [1]},
    "polygon": [[[0.0, 0.0], [4.0, 4.0], [4.0, 0.0], [0.0, 4.0]]],
    "raster": "absent.tif",
}


def _table(kind: str, **columns: Any) -> pl.DataFrame:
    """Six rows, of which the last is wrong."""
    good = GOOD.get(kind, BAD["raster"])
    return pl.DataFrame(
        {
            "datum_id": ["x", "y", "x", "y", "z", "z"],
            "label_value": ["a"] * 6,
            "camera": [0, 1, 1, 1, 1, 1],
            kind: [good] * 5 + [BAD[kind]],
            **columns,
        }
    )


def _sides(kind: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    wrong = _table(kind)
    if kind == "raster":  # every row's file is missing: only the last one is read
        wrong = wrong.filter(pl.int_range(pl.len()).is_in([0, 5]))
    truths = pl.DataFrame(
        {"datum_id": ["x", "y", "z"], "label_value": ["a"] * 3, "mask": [GOOD["mask"]] * 3}
    )
    return wrong.with_columns(score=pl.lit(0.5)), truths


@pytest.mark.parametrize("kind", ["mask", "polygon", "raster"])
@pytest.mark.parametrize("where", [{"predictions": "camera = 1"}, "camera = 1"])
def test_row_numbers_under_conditions(kind: str, where: Any, tmp_path: Path) -> None:
    predictions, truths = _sides(kind)
    last = predictions.height - 1
    options = ee.Options(where=where, convert_to="polygon" if kind == "polygon" else None)
    path = tmp_path / "predictions.parquet"
    predictions.write_parquet(path)
    for inputs in (predictions, str(path)):
        with pytest.raises(InputError, match=rf"row {last} \(datum_id='z'"):
            ee.score(inputs, truths, options=options)


def test_row_numbers_of_filtered_datums() -> None:
    predictions, truths = _sides("mask")
    datums = pl.DataFrame({"datum_id": ["x", "z"], "night": [True, False]})
    for more in ({"where": {"datums": "NOT night"}}, {"dialect": "coco", "iou_type": "segm"}):
        with pytest.raises(InputError, match=r"row 5 \(datum_id='z',"):
            ee.score(predictions, truths, datums=datums, **more)


def test_numbers_of_masks_of_another_size() -> None:
    predictions, truths = _sides("mask")
    predictions = predictions.with_columns(
        mask=pl.Series([GOOD["mask"]] * 5 + [{"size": [2, 3], "counts": [1, 5]}])
    )
    with refused("sizes_differ", count=1, match=r"row 4 \(.* is 2 x 2, .* 2 x 3"):
        ee.score(predictions, truths, where={"predictions": "camera = 1"})


def test_crossing_rings_next_to_masks_name_iou_type() -> None:
    """If predictions are masks and ground truths polygons, ``iou_type`` compares masks."""
    crossed = _table("polygon")[-1:]
    predictions = _table("mask")[:1].with_columns(datum_id=pl.lit("z"), score=pl.lit(0.5))
    with refused("polygon_invalid", count=1, match="iou_type='segm'"):
        ee.score(predictions, crossed)
    card = ee.score(predictions, crossed, iou_type="segm")
    assert card.metrics.height
    assert card.metrics.equals(ee.score(predictions, crossed, convert_to="mask").metrics)
    both = [
        ee.score(predictions, crossed, dialect="coco", **more)
        for more in ({}, {"iou_type": "segm"})
    ]
    assert both[0].metrics.equals(both[1].metrics)


@pytest.mark.parametrize("kind", ["mask", "polygon", "raster"])
def test_numbers_in_bounded_memory(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bucket contains some of the rows, and names them by their numbers in the file."""
    in_buckets(monkeypatch)
    predictions, truths = _sides(kind)
    last = predictions.height - 1
    paths = [str(tmp_path / f"{side}.parquet") for side in ("predictions", "truths")]
    for table, path in zip((predictions, truths), paths, strict=True):
        table.write_parquet(path)
    options = {"convert_to": "polygon" if kind == "polygon" else "mask"}
    named = rf"row {last} \(datum_id='z'"
    if kind == "raster":  # no file exists: the first bucket names its row
        named += r"|row 0 \(datum_id='x'"
    with pytest.raises(InputError, match=named):
        ee.score(*paths, memory_limit="1GB", scratch=str(tmp_path / "scratch"), **options)
