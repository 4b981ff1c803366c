"""Chunked columns give the same results as contiguous ones."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from sizes import tune

import evalengine as ee
from evalengine.tasks.detection import encode

CUTS = {"one": (), "two": (70,), "uneven": (1, 5, 150)}


def tables(n: int = 200) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Make boxes of three labels in 20 images, unsorted; ground truths are slightly moved."""
    draw = np.random.default_rng(7)
    (x, y), (width, height) = draw.uniform(0, 50, (2, n)), draw.uniform(5, 60, (2, n))
    common = {"datum_id": draw.integers(0, 20, n), "label_value": draw.integers(0, 3, n)}
    boxes = pl.DataFrame({**common, "xmin": x, "ymin": y, "xmax": x + width, "ymax": y + height})
    truths = boxes.with_columns(pl.col("xmin", "ymin", "xmax", "ymax") + 2.0)
    return boxes.with_columns(score=draw.random(n)), truths


def in_chunks(frame: pl.DataFrame, cuts: tuple[int, ...]) -> pl.DataFrame:
    """Cut every column at the given rows."""
    bounds = [0, *cuts, frame.height]
    pieces = [frame.slice(a, b - a) for a, b in pairwise(bounds)]
    predictions = pl.concat(pieces, rechunk=False)
    assert predictions.n_chunks() == len(pieces)
    return predictions


def frames(predictions: pl.DataFrame, truths: pl.DataFrame, dialect: str) -> list[pl.DataFrame]:
    card = ee.score(
        predictions,
        truths,
        dialect=dialect,
        metrics=["AP", "AR", "DetailedPrecisionRecallCurve"],
        threads=2,
    )
    return [card.metrics, card.examples]


@pytest.mark.parametrize("least", [1, 1 << 12])
@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("dialect", ["coco", "standard"])
def test_chunks_do_not_matter(least: int, cuts: tuple[int, ...], dialect: str) -> None:
    """All columns cut at the same rows, or one of them at others."""
    tune(chunk_rows=least)
    predictions, truths = tables()
    wanted = frames(predictions, truths, dialect)
    assert wanted[0]["value"].drop_nulls().n_unique() > 5
    ours, theirs = in_chunks(predictions, cuts), in_chunks(truths, cuts[::-1][:1])
    for some in (ours, ours.with_columns(in_chunks(predictions, (30, 90))["ymin"])):
        for one, other in zip(frames(some, theirs, dialect), wanted, strict=True):
            assert one.equals(other)


def test_boxes_of_rows_in_several_chunks() -> None:
    tune(chunk_rows=1)
    predictions, _ = tables()
    names = ["xmin", "ymin", "xmax", "ymax"]
    code = np.zeros(predictions.height, np.int32)
    cut = in_chunks(predictions.select(names), (1, 5, 150))
    side = encode._side(cut, code, code, None, None)
    assert len(side.pieces) == 4
    rows = np.array([199, 0, 4, 5, 1, 150, 149, 4])
    assert (side.boxes(rows) == predictions.select(names)[rows.tolist()].to_numpy()).all()


def test_ids_of_undeclared_datums_do_not_matter() -> None:
    predictions, truths = tables()
    card = ee.score(predictions, truths, dialect="coco", datums=[*range(5, 15), 40], threads=2)
    separate = ee.score(
        *(table.filter(pl.col("datum_id").is_between(5, 14)) for table in (predictions, truths)),
        dialect="coco",
        datums=[*range(5, 15), 40],
        threads=2,
    )
    assert card.run["datums"] == 11
    assert card.metrics.equals(separate.metrics)
