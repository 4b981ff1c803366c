"""Means of a label depend only on its cells: in the last bit too, not on other cells of the array.

NumPy adds contiguous values in pairs, and others in an order that depends on the other axes. So
a label's mean could differ by the labels, slices or areas scored with it.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import polars as pl
import pytest
from detection.strategies import Tables, crowded_tables
from oracles.coco_reference import run_coco

import evalengine as ee

OF_LABELS = ["AP", "APAveragedOverIOUs", "AR"]
MEANS = ["mAP", "mAPAveragedOverIOUs", "mAR"]
DIALECTS = ("standard", "coco", "valor", "valor-lite", "valor-docs")
RANGES = {"all": (0.0, 1e10), "small": (0.0, 900.0), "large": (900.0, 1e10)}
KEY = ["metric", "label_value", "iou_threshold", "area", "max_detections"]
WIDE = {"dialect": "coco", "area_ranges": RANGES, "max_detections": [1, 10, 100]}
"""Labels, slices, areas and caps in one run."""


def _values(frame: pl.DataFrame, *names: str) -> dict[tuple[Any, ...], Any]:
    wanted = frame.filter(pl.col("metric").is_in(names))
    return {row[:-1]: row[-1] for row in wanted.select(*KEY, "value").iter_rows()}


def _drawn(seed: int, labels: int) -> Tables:
    """Make random tables with the given number of labels."""
    drawn = crowded_tables(seed, labels=labels + 1)
    of = pl.col("label_value") < labels
    return drawn.where(of)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_label_scores_the_same_in_a_separate_run(dialect: str) -> None:
    """AP, its mean over IoUs and AR of every label, by area and cap if the dialect has them."""
    drawn = crowded_tables(1, labels=9)
    more = WIDE if dialect == "coco" else {}
    options: dict[str, Any] = {"metrics": OF_LABELS, **more, "dialect": dialect}
    joint = _values(drawn.score(**options).metrics, *OF_LABELS)
    n = 0
    for label in range(9):
        of = pl.col("label_value") == label
        single = _values(drawn.where(of).score(**options).metrics, *OF_LABELS)
        assert single == {key: joint[key] for key in single}
        n += len(single)
    assert n == len(joint)


@pytest.mark.parametrize(("dialect", "labels"), [("coco", 1), *product(DIALECTS, [6])])
def test_a_slice_scores_the_same_in_a_separate_run(dialect: str, labels: int) -> None:
    """Many slices of different sizes, with areas and caps if the dialect has them."""
    drawn = _drawn(3, labels)
    datums = pl.DataFrame({"datum_id": drawn.datums}).with_columns(
        part=pl.int_range(pl.len()).sqrt().cast(pl.Int64)
    )
    names = [*OF_LABELS, *MEANS]
    more = WIDE if dialect == "coco" else {}
    options: dict[str, Any] = {"metrics": names, **more, "dialect": dialect}
    card = drawn.score(datums=datums, by=["part"], **options)
    sliced = card.metrics.filter(slice="part")
    for (part,), members in datums.group_by("part"):
        of = pl.col("datum_id").is_in(members["datum_id"].implode())
        single = _values(drawn.where(of).score(**options).metrics, *names)
        assert single == _values(sliced.filter(slice_value=str(part)), *names), part


@pytest.mark.parametrize("dialect", ["coco", "standard"])
def test_an_area_scores_the_same_in_a_separate_run(dialect: str) -> None:
    """With and without other areas and caps; one label, and more."""
    for labels in (1, 8):
        drawn = _drawn(8, labels)
        options: dict[str, Any] = {**WIDE, "dialect": dialect, "metrics": [*OF_LABELS, *MEANS]}
        sides = drawn.predictions, drawn.truths
        joint = _values(ee.score(*sides, **options).metrics, *OF_LABELS, *MEANS)
        for name, bounds in RANGES.items():
            options |= {"area_ranges": {name: bounds}, "max_detections": [100]}
            single = _values(ee.score(*sides, **options).metrics, *OF_LABELS, *MEANS)
            assert single
            assert single == {key: joint[key] for key in single}


@pytest.mark.parametrize("seed", [5, 6])
def test_one_mean_over_the_cells_of_pycocotools(seed: int) -> None:
    """Each label's row is NumPy's mean over its cells, in pycocotools' arrays and in ours."""
    drawn = crowded_tables(seed, labels=9)
    options = {**WIDE, "metrics": [*OF_LABELS, *MEANS]}
    card = drawn.score(iou_thresholds_to_return=[0.5, 0.75], **options)
    theirs, _, labels = run_coco(drawn.predictions, drawn.truths, area_ranges=RANGES)
    of_cells: dict[tuple[Any, ...], Any] = {}
    for arrays in (theirs.eval, card.to_coco()):
        precision, recall = arrays["precision"], arrays["recall"]
        for k, (_, label) in enumerate(labels):
            for a, area in enumerate(RANGES):
                cells = precision[:, :, k, a, 2]
                if (cells < 0).any():
                    continue
                key = (label, None, area)
                of_cells["APAveragedOverIOUs", *key, 100] = cells.mean()
                for t, iou in ((0, 0.5), (5, 0.75)):
                    of_cells["AP", label, iou, area, 100] = cells[t].mean()
                for m, cap in enumerate((1, 10, 100)):
                    of_cells["AR", *key, cap] = recall[:, k, a, m].mean()
        result = _values(card.metrics.drop_nulls("value"), *OF_LABELS)
        assert result == of_cells
        assert len(result) > 100
