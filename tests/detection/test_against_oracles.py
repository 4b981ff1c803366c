"""Every dialect and metric against the oracles, on random tables full of ties."""

from __future__ import annotations

from dataclasses import replace

import pytest
from detection.checking import (
    AVERAGES,
    CURVES,
    EVERYTHING,
    GRID,
    RANGES,
    RATES,
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

NO_RANGES = ("standard", "valor", "valor-lite", "valor-docs")
ALL_DIALECTS = (*NO_RANGES, "coco")


@pytest.mark.parametrize("dialect", NO_RANGES)
@given(tables(crowd=True))
@modest
def test_everything(dialect: str, drawn: Tables) -> None:
    """All metrics of one run, without area ranges and caps."""
    card = run(drawn, dialect, GRID, EVERYTHING, pr_curve_max_examples=2)
    oracle = oracle_of(drawn, dialect, GRID)
    check_numbers(card, oracle)
    check_score_curve(card, oracle)
    check_interpolated(card, oracle)
    check_examples(card, oracle, most=2)
    check_confusion(card, oracle)
    check_outcomes(card, oracle)


@pytest.mark.parametrize("dialect", ALL_DIALECTS)
@given(tables(crowd=True, area=True))
@modest
def test_area_ranges_and_caps(dialect: str, drawn: Tables) -> None:
    """Averages, counts and curves by area range, under several caps."""
    asked = replace(GRID, area_ranges=RANGES, max_detections=(1, 2, 3), recall_score_threshold=0.5)
    card = run(drawn, dialect, asked, [*AVERAGES, *RATES, *CURVES])
    oracle = oracle_of(drawn, dialect, asked)
    check_numbers(card, oracle)
    check_score_curve(card, oracle)
    check_interpolated(card, oracle)


@pytest.mark.parametrize("dialect", ALL_DIALECTS)
@given(tables(crowd=True, keys=1))
@modest
def test_details_of_coco_tables(dialect: str, drawn: Tables) -> None:
    """Tables without label keys, with one unbounded area range and a cap that never bites."""
    asked = replace(GRID, area_ranges=RANGES[:1], max_detections=(100,), returned=(0.5,))
    card = run(drawn, dialect, asked, EVERYTHING, pr_curve_max_examples=1)
    oracle = oracle_of(drawn, dialect, asked)
    check_numbers(card, oracle)
    check_examples(card, oracle)
    check_confusion(card, oracle)
    check_outcomes(card, oracle)
