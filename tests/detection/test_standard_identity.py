"""``standard`` is ``coco`` without caps: on data within them, the same numbers."""

from __future__ import annotations

import polars as pl
import pytest
from detection.checking import modest
from detection.strategies import Tables, crowded_tables, tables
from hypothesis import given
from oracles.coco_reference import run_coco

import evalengine as ee


def assert_per_label(
    card: ee.Scorecard, precision: object, labels: list[tuple[str, object]]
) -> None:
    """AP rows against pycocotools' precision array [T, R, K]."""
    for k, (key, value) in enumerate(labels):
        rows = card.metrics.filter(
            (pl.col("metric") == "AP")
            & (pl.col("label_key") == key)
            & (pl.col("label_value") == value)
        )
        at = {round(row["iou_threshold"], 9): row["value"] for row in rows.iter_rows(named=True)}
        for t, iou in enumerate(x / 100 for x in range(50, 100, 5)):
            cell = precision[t, :, k]  # type: ignore[index]
            expected = None if (cell == -1).all() else cell.mean()
            assert at[round(iou, 9)] == expected


@pytest.mark.parametrize("seed", range(3))
def test_large_tables(seed: int) -> None:
    """Per-label AP bit by bit, without any cap."""
    drawn = crowded_tables(20 + seed, datums=25, strings=seed == 1)
    unbounded = {"all": (0.0, 1e12)}
    theirs, _, labels = run_coco(
        drawn.predictions, drawn.truths, max_detections=[10**6], area_ranges=unbounded
    )
    card = ee.score(
        drawn.predictions,
        drawn.truths,
        task="detection",
        iou_thresholds_to_return=[x / 100 for x in range(50, 100, 5)],
    )
    assert_per_label(card, theirs.eval["precision"][:, :, :, 0, 0], labels)


@given(tables(crowd=True, keys=2))
@modest
def test_small_tables(drawn: Tables) -> None:
    """The same on tables full of ties, with label keys and empty sides."""
    theirs, _, labels = run_coco(drawn.predictions, drawn.truths)
    card = ee.score(
        drawn.predictions,
        drawn.truths,
        task="detection",
        metrics=["AP"],
        iou_thresholds_to_return=[x / 100 for x in range(50, 100, 5)],
    )
    assert_per_label(card, theirs.eval["precision"][:, :, :, 0, 2], labels)
