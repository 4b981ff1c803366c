"""Every dialect and metric against the oracles, on random tables with many ties."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from detection.checking import (
    AVERAGES,
    CURVES,
    EVERYTHING,
    RANGES,
    RATES,
    check,
    modest,
    oracle_of,
    run,
    some_settings,
)  # fmt: skip
from detection.invariants import check_agreement, check_sums
from detection.strategies import GRID_SCORES, Tables, crowded_tables, tables
from hypothesis import given
from hypothesis import strategies as st
from oracles.detection_metrics import Asked

import evalengine as ee

NO_RANGES = ("standard", "valor", "valor-lite", "valor-docs")
ALL_DIALECTS = (*NO_RANGES, "coco")


@pytest.mark.parametrize("dialect", NO_RANGES)
@given(tables(crowd=True), some_settings())
@modest
def test_everything(dialect: str, drawn: Tables, given_options: Asked) -> None:
    """All metrics in one run, without area ranges and caps."""
    card = run(drawn, dialect, given_options, EVERYTHING, pr_curve_max_examples=2)
    check(card, oracle_of(drawn, dialect, given_options))
    check_sums(card, drawn)


@pytest.mark.parametrize("dialect", ALL_DIALECTS)
@given(tables(crowd=True, area=True), some_settings())
@modest
def test_area_ranges_and_caps(dialect: str, drawn: Tables, given_options: Asked) -> None:
    """Averages, counts and curves by area range, under several caps."""
    options = replace(given_options, area_ranges=RANGES, max_detections=(1, 2, 3))
    card = run(drawn, dialect, options, [*AVERAGES, *RATES, *CURVES])
    check(card, oracle_of(drawn, dialect, options))


@given(tables(crowd=True, keys=1), some_settings(), st.sampled_from((0, 1, 5)))
@modest
def test_details_of_coco_tables(drawn: Tables, given_options: Asked, most: int) -> None:
    """Tables without label keys, with one unbounded area range and a cap that is never reached."""
    options = replace(given_options, area_ranges=RANGES[:1], max_detections=(100,))
    card = run(drawn, "coco", options, EVERYTHING, pr_curve_max_examples=most)
    check(card, oracle_of(drawn, "coco", options))
    check_sums(card, drawn)


@pytest.mark.parametrize("dialect", ALL_DIALECTS)
def test_sums_of_large_tables(dialect: str) -> None:
    """Many overlaps, predictions beyond a cap, and areas outside the first range."""
    drawn = crowded_tables(30, datums=15)
    options: dict[str, Any] = {"task": "detection", "dialect": dialect, "metrics": EVERYTHING}
    sides = drawn.predictions, drawn.truths
    at: dict[str, Any] = {"iou_thresholds": [0.5], "score_thresholds": [0.05, *GRID_SCORES[1:]]}
    check_sums(ee.score(*sides, max_detections=[10_000], **at, **options), drawn)
    at = {"iou_thresholds": [0.3, 0.5], "score_thresholds": [0.0, 0.2, 0.5, 0.9]}
    ranges = {"all": (1024.0, 9216.0), "any": (0.0, 1e10)}
    check_agreement(ee.score(*sides, max_detections=[1, 2], **at, **options))
    check_agreement(ee.score(*sides, max_detections=[3], area_ranges=ranges, **at, **options))
