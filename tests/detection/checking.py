"""Checks of whole scorecards against the oracles."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from typing import Any

import polars as pl
from detection.strategies import GRID_IOUS, GRID_SCORES, Tables
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from oracles.detection_details import confusion_cells, detailed_cells, outcome_rows
from oracles.detection_metrics import DIALECTS, Asked, DetectionOracle
from oracles.detection_rows import to_sides
from output_frames import NAMES, agree, keyed, numbers, of_slice, tidy, unique

import evalengine as ee

AVERAGES = ["AP", "APAveragedOverIOUs", "mAP", "mAPAveragedOverIOUs", "AR", "mAR"]
RATES = ["Counts", "Precision", "Recall", "F1", "Accuracy"]
CURVES = ["PrecisionRecallCurve", "InterpolatedPrecisionRecallCurve"]
DETAILS = ["DetailedPrecisionRecallCurve", "ConfusionMatrix", "Outcomes"]
EVERYTHING = [*AVERAGES, *RATES, *CURVES, *DETAILS]

KEYS = [name for name in NAMES if name != "k"]

RANGES = (("all", (0.0, 1e10)), ("small", (0.0, 2.0)), ("other", (4.0, 12.0)))
"""Area ranges whose bounds equal areas of boxes of the grid."""

GRID = Asked(
    GRID_IOUS, GRID_IOUS, GRID_SCORES, recall_score_threshold=0.25, pr_curve_iou_threshold=0.5
)
"""Every threshold of the grid."""


@st.composite
def some_settings(draw: st.DrawFn) -> Asked:
    """Choose some thresholds of the grid."""
    ious = tuple(sorted(draw(st.sets(st.sampled_from(GRID_IOUS), min_size=1, max_size=2))))
    return replace(
        GRID,
        iou_thresholds=ious,
        returned=ious[: draw(st.integers(1, len(ious)))],
        score_thresholds=tuple(
            sorted(draw(st.sets(st.sampled_from(GRID_SCORES), min_size=1, max_size=3)))
        ),
        recall_score_threshold=draw(st.sampled_from(GRID_SCORES)),
        pr_curve_iou_threshold=draw(st.sampled_from(GRID_IOUS)),
    )


modest = settings(
    max_examples=int(os.environ.get("EVALENGINE_EXAMPLES", "8")),
    suppress_health_check=[HealthCheck.data_too_large],
)
"""Settings of the property tests; EVALENGINE_EXAMPLES sets the number of examples."""


def run(
    tables: Tables, dialect: str, settings: Asked, metrics: list[str], **options: Any
) -> ee.Scorecard:
    """Call ``score`` with the oracle's settings."""
    ranges = {name: limits for name, limits in settings.area_ranges if name is not None}
    caps = [cap for cap in settings.max_detections if cap is not None]
    return tables.score(
        dialect=dialect,
        metrics=metrics,
        iou_thresholds=list(settings.iou_thresholds),
        iou_thresholds_to_return=list(settings.returned),
        score_thresholds=list(settings.score_thresholds),
        recall_score_threshold=settings.recall_score_threshold,
        pr_curve_iou_threshold=settings.pr_curve_iou_threshold,
        area_ranges=ranges or None,
        max_detections=caps or None,
        **options,
    )


def oracle_of(tables: Tables, dialect: str, settings: Asked) -> DetectionOracle:
    """Make the oracle for the same tables."""
    sides = to_sides(tables.predictions, tables.truths, crowd=DIALECTS[dialect].crowd)
    return DetectionOracle(sides, dialect, settings)


def check(card: ee.Scorecard, oracle: DetectionOracle, of: tuple[Any, ...] = ()) -> None:
    """Check all requested outputs; of a slice (column and value), the sliced ones."""
    settings = set(card.options.metrics)
    expected: dict[tuple[Any, ...], float | None] = {}
    if settings & {*AVERAGES}:
        expected |= oracle.averaged()
    if settings & {*RATES}:
        expected |= oracle.counted()
    agree(numbers(of_slice(card.metrics, *of), KEYS), keyed(expected))
    if "PrecisionRecallCurve" in settings:
        check_score_curve(card, oracle, of)
    if "InterpolatedPrecisionRecallCurve" in settings:
        check_interpolated(card, oracle, of)
    if "ConfusionMatrix" in settings:
        check_confusion(card, oracle, of)
    if "DetailedPrecisionRecallCurve" in settings and not of:
        most = card.options.pr_curve_max_examples
        check_examples(card, oracle, 1 if most is None else most)
    if "Outcomes" in settings and not of:
        check_outcomes(card, oracle)


def check_score_curve(
    card: ee.Scorecard, oracle: DetectionOracle, of: tuple[Any, ...] = ()
) -> None:
    """Check PrecisionRecallCurve: counts and rates at each score threshold."""
    frame = of_slice(card.curves, *of).filter(pl.col("curve") == "PrecisionRecallCurve")
    frame = frame.filter(pl.col("area").eq_missing(pl.lit(oracle.asked.area_ranges[0][0])))
    assert frame["tn"].null_count() == frame["fpr"].null_count() == frame.height
    names = ("tp", "fp", "fn", "precision", "recall", "f1", "accuracy")
    iou = oracle.asked.pr_curve_iou_threshold
    got: dict[Any, float | None] = {}
    for row in frame.iter_rows(named=True):
        assert abs(row["iou_threshold"] - iou) < 1e-9
        for name in names:
            key = tidy((row["label_key"], row["label_value"], row["score_threshold"], name))
            assert key not in got
            got[key] = row[name]
    expected: dict[Any, float | None] = {}
    for key, (tally, rates) in oracle.score_curve().items():
        values = (tally.tp, tally.fp, tally.fn, *rates.values())
        expected |= {(*key, name): v for name, v in zip(names, values, strict=True)}
    agree(got, keyed(expected))


def check_interpolated(
    card: ee.Scorecard, oracle: DetectionOracle, of: tuple[Any, ...] = ()
) -> None:
    """Check InterpolatedPrecisionRecallCurve: 101 points per label, IoU and area."""
    frame = of_slice(card.curves, *of).filter(pl.col("curve") == "InterpolatedPrecisionRecallCurve")
    names = ["label_key", "label_value", "iou_threshold", "area"]
    got: dict[Any, Any] = {}
    for key, rows in frame.group_by(names, maintain_order=True):
        assert tidy(key) not in got
        assert [round(r * 100, 9) for r in rows["recall"]] == list(range(101))
        got[tidy(key)] = (rows["precision"].to_list(), rows["score_threshold"].to_list())
    expected: dict[Any, Any] = {}
    for area, limits in oracle.asked.area_ranges:
        for label in oracle.sides.labels:
            for iou in oracle.asked.iou_thresholds:
                curve = oracle.curve(label, iou, limits)
                if curve is not None:
                    expected[tidy((*label, iou, area))] = curve
    assert set(got) == set(expected)
    for key, (precisions, scores) in expected.items():
        assert all(
            abs(ours - theirs) < 1e-12 for ours, theirs in zip(got[key][0], precisions, strict=True)
        )
        assert got[key][1] == scores


def check_examples(card: ee.Scorecard, oracle: DetectionOracle, most: int) -> None:
    """Check counts of the detailed curve, and that each cell shows the right number of its rows."""
    settings = oracle.asked
    expected = detailed_cells(oracle, settings.pr_curve_iou_threshold, settings.score_thresholds)
    cells: dict[Any, int] = {}
    shown: dict[Any, Counter[Any]] = {}
    for row in card.examples.iter_rows(named=True):
        names = ("label_key", "label_value", "score_threshold", "outcome", "observation")
        key = tuple(row[name] for name in names)
        assert abs(row["iou_threshold"] - settings.pr_curve_iou_threshold) < 1e-9
        assert cells.setdefault(key, row["count"]) == row["count"]
        assert (row["datum_id"] is None) == (row["geometry"] is None)
        if row["datum_id"] is not None:
            shown.setdefault(key, Counter())[row["datum_id"], _box(row["geometry"])] += 1
    assert {key: n for key, n in cells.items() if n} == {k: v.total() for k, v in expected.items()}
    for key, n in cells.items():
        examples = shown.get(key, Counter())
        assert examples.total() == min(n, most), key
        assert examples <= expected.get(key, Counter()), key


def _box(geometry: str) -> tuple[float, float, float, float]:
    """Read the corners of a GeoJSON polygon, which must be the closed ring of a box."""
    polygon = json.loads(geometry)
    (ring,) = polygon["coordinates"]
    assert (polygon["type"], len(ring), ring[0]) == ("Polygon", 5, ring[-1])
    xs, ys = zip(*ring, strict=True)
    return (min(xs), min(ys), max(xs), max(ys))


def check_confusion(card: ee.Scorecard, oracle: DetectionOracle, of: tuple[Any, ...] = ()) -> None:
    """Check the confusion frame at every IoU and score threshold."""
    names = ("label_key", "actual", "predicted", "iou_threshold", "score_threshold")
    got = unique(
        [
            (tidy(tuple(row[name] for name in names)), row["count"])
            for row in of_slice(card.confusion, *of).iter_rows(named=True)
        ]
    )
    expected = {
        tidy((*cell, iou, score)): n
        for iou in oracle.asked.iou_thresholds
        for score in oracle.asked.score_thresholds
        for cell, n in confusion_cells(oracle, iou, score).items()
    }
    assert got == expected


def check_outcomes(card: ee.Scorecard, oracle: DetectionOracle) -> None:
    """Check the outcomes frame at every IoU and score threshold."""
    names = ("datum_id", "label_key", "label_value", "outcome", "score", "iou")
    got: Counter[Any] = Counter()
    for row in card.outcomes.iter_rows(named=True):
        matches = row["outcome"] == "tp" or row["outcome"].startswith("fn")
        matched = row["matched_annotation_id"] if matches else None
        if row["outcome"] == "ignored":
            row["iou"] = None
        at = (row["iou_threshold"], row["score_threshold"])
        got[tidy((*at, *(row[name] for name in names), matched))] += 1
    expected: Counter[Any] = Counter()
    for iou in oracle.asked.iou_thresholds:
        for score in oracle.asked.score_thresholds:
            for cell, n in outcome_rows(oracle, iou, score).items():
                expected[tidy((iou, score, *cell))] += n
    assert got == expected
