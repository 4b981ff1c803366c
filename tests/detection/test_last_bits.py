"""Means of a label hang on its own cells alone: not, in the last bit, on what stands beside.

NumPy adds up what lies in a row in pairs, and arrays that do not in an order that depends on their
other axes: a label's mean could differ by which labels, slices or areas were scored with it.
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
"""Labels, slices, areas and caps beside one another."""


def _values(frame: pl.DataFrame, *names: str) -> dict[tuple[Any, ...], Any]:
    wanted = frame.filter(pl.col("metric").is_in(names))
    return {row[:-1]: row[-1] for row in wanted.select(*KEY, "value").iter_rows()}


def _drawn(seed: int, labels: int) -> Tables:
    """Random tables of so many labels."""
    drawn = crowded_tables(seed, labels=labels + 1)
    of = pl.col("label_value") < labels
    return drawn.where(of)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_label_scores_what_it_scores_alone(dialect: str) -> None:
    """AP, its mean over IoUs and AR of every label, of several areas and caps where there are."""
    drawn = crowded_tables(1, labels=9)
    more = WIDE if dialect == "coco" else {}
    options: dict[str, Any] = {"metrics": OF_LABELS, **more, "dialect": dialect}
    together = _values(drawn.score(**options).metrics, *OF_LABELS)
    n = 0
    for label in range(9):
        of = pl.col("label_value") == label
        alone = _values(drawn.where(of).score(**options).metrics, *OF_LABELS)
        assert alone == {key: together[key] for key in alone}
        n += len(alone)
    assert n == len(together)


@pytest.mark.parametrize(("dialect", "labels"), [("coco", 1), *product(DIALECTS, [6])])
def test_a_slice_scores_what_its_datums_score_alone(dialect: str, labels: int) -> None:
    """Many slices of unlike sizes, several areas and caps where there are; one label, and more."""
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
        alone = _values(drawn.where(of).score(**options).metrics, *names)
        assert alone == _values(sliced.filter(slice_value=str(part)), *names), part


@pytest.mark.parametrize("dialect", ["coco", "standard"])
def test_an_area_scores_what_it_scores_alone(dialect: str) -> None:
    """Beside other areas and caps as without them; one label, and more."""
    for labels in (1, 8):
        drawn = _drawn(8, labels)
        options: dict[str, Any] = {**WIDE, "dialect": dialect, "metrics": [*OF_LABELS, *MEANS]}
        sides = drawn.predictions, drawn.truths
        together = _values(ee.score(*sides, **options).metrics, *OF_LABELS, *MEANS)
        for name, ends in RANGES.items():
            options |= {"area_ranges": {name: ends}, "max_detections": [100]}
            alone = _values(ee.score(*sides, **options).metrics, *OF_LABELS, *MEANS)
            assert alone
            assert alone == {key: together[key] for key in alone}


@pytest.mark.parametrize("seed", [5, 6])
def test_one_mean_over_the_cells_of_pycocotools(seed: int) -> None:
    """Each label's row is NumPy's mean over its cells of pycocotools' arrays, and of ours."""
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
        found = _values(card.metrics.drop_nulls("value"), *OF_LABELS)
        assert found == of_cells
        assert len(found) > 100
