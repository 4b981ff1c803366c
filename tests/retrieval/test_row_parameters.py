"""Column ``parameters``, which records options that differ from their defaults."""

from __future__ import annotations

import json
from typing import Any

import pytest

import evalengine as ee

RUN = {"a": {"x": 2.0, "y": 1.0}, "b": {"x": 1.0}}
QRELS = {"a": {"x": 1, "y": 3}, "b": {"x": 2}}
DCG = {"discount": "log2(rank)", "ideal": "retrieved", "gains": "exponential"}


def parameters_of(metric: str, **options: Any) -> list[Any]:
    rows = ee.score(RUN, QRELS, metrics=[metric], k=[1, 2], **options).metrics["parameters"]
    return [text and json.loads(text) for text in rows.unique(maintain_order=True)]


@pytest.mark.parametrize("metric", ["nDCG", "nDCGRel", "RnDCG"])
def test_options_of_gains(metric: str) -> None:
    assert parameters_of(metric) == [None]
    assert parameters_of(metric, **DCG) == [DCG]
    assert parameters_of(metric, gains={1: 1, 2.5: 10}) == [{"gains": {"1": 1.0, "2.5": 10.0}}]
    assert parameters_of(metric, gains="linear", discount="log2(rank+1)", ideal="judged") == [None]


def test_a_metric_records_only_the_options_that_it_reads() -> None:
    assert parameters_of("G", **DCG) == [{"gains": "exponential", "ideal": "retrieved"}]
    assert parameters_of("MAP", **DCG, persistence=0.5) == [None]
    assert parameters_of("nDCG", persistence=0.5) == [None]


@pytest.mark.parametrize("dialect", ["standard", "trec_eval"])
@pytest.mark.parametrize("metric", ["RBP", "RBPResidual"])
def test_persistence(metric: str, dialect: str) -> None:
    assert parameters_of(metric, dialect=dialect) == [None]
    assert parameters_of(metric, dialect=dialect, persistence=0.9) == [None]
    assert parameters_of(metric, dialect=dialect, persistence=0.8) == [{"persistence": 0.8}]


def test_relevance_levels_are_recorded_with_persistence() -> None:
    assert parameters_of("RBP", relevance_levels=[1, 2], persistence=0.8) == [
        {"persistence": 0.8, "relevance_level": 1.0},
        {"persistence": 0.8, "relevance_level": 2.0},
    ]


def test_the_persistence_of_ir_measures_is_recorded() -> None:
    assert parameters_of("RBP", dialect="ir-measures") == [{"persistence": 0.8}]


def test_values_are_found_without_parameters() -> None:
    card = ee.score(RUN, QRELS, metrics=["nDCG", "RBP"], persistence=0.8, **DCG)
    assert card.value("nDCG") == pytest.approx((8 / 8 + 1) / 2)
    assert card.value("RBP") == pytest.approx((0.2 * 1.8 + 0.2) / 2)


def test_trec_format_shows_persistence() -> None:
    card = ee.score(RUN, QRELS, dialect="trec_eval", metrics=["RBP"], persistence=0.8)
    assert "rbp_0.80              \tall\t" in card.to_trec()
    card = ee.score(RUN, QRELS, dialect="trec_eval", metrics=["RBP"])
    assert "rbp                   \tall\t" in card.to_trec()
