"""Every dialect and metric against the oracles, on random tables full of ties."""

from __future__ import annotations

from dataclasses import replace

import pytest
from detection.checking import (
    AVERAGES,
    CURVES,
    EVERYTHING,
    RANGES,
    RATES,
    asked,
    check_confusion,
    check_examples,
    check_interpolated,
    check_numbers,
    check_outcomes,
    check_score_curve,
    modest,
    oracle_of,
    run,
)
from detection.strategies import Tables, tables
from hypothesis import given
from hypothesis import strategies as st
from oracles.detection_metrics import Asked

NO_RANGES = ("standard", "valor", "valor-lite", "valor-docs")
ALL_DIALECTS = (*NO_RANGES, "coco")


@pytest.mark.parametrize("dialect", NO_RANGES)
@given(tables(crowd=True), asked())
@modest
def test_everything(dialect: str, drawn: Tables, given_options: Asked) -> None:
    """All metrics of one run, without area ranges and caps."""
    card = run(drawn, dialect, given_options, EVERYTHING, pr_curve_max_examples=2)
    oracle = oracle_of(drawn, dialect, given_options)
    check_numbers(card, oracle)
    check_score_curve(card, oracle)
    check_interpolated(card, oracle)
    check_examples(card, oracle, most=2)
    check_confusion(card, oracle)
    check_outcomes(card, oracle)


@pytest.mark.parametrize("dialect", ALL_DIALECTS)
@given(tables(crowd=True, area=True), asked())
@modest
def test_area_ranges_and_caps(dialect: str, drawn: Tables, given_options: Asked) -> None:
    """Averages, counts and curves by area range, under several caps."""
    options = replace(given_options, area_ranges=RANGES, max_detections=(1, 2, 3))
    card = run(drawn, dialect, options, [*AVERAGES, *RATES, *CURVES])
    oracle = oracle_of(drawn, dialect, options)
    check_numbers(card, oracle)
    check_score_curve(card, oracle)
    check_interpolated(card, oracle)


@given(tables(crowd=True, keys=1), asked(), st.sampled_from((0, 1, 5)))
@modest
def test_details_of_coco_tables(drawn: Tables, given_options: Asked, most: int) -> None:
    """Tables without label keys, with one unbounded area range and a cap that never bites."""
    options = replace(given_options, area_ranges=RANGES[:1], max_detections=(100,))
    card = run(drawn, "coco", options, EVERYTHING, pr_curve_max_examples=most)
    oracle = oracle_of(drawn, "coco", options)
    check_numbers(card, oracle)
    check_examples(card, oracle, most)
    check_confusion(card, oracle)
    check_outcomes(card, oracle)
