"""Every metric has a formula in valid TeX and definitions of its symbols."""

from __future__ import annotations

import importlib

import pytest
from latex2mathml.converter import convert

from evalengine.metrics import registry
from evalengine.schemas.contract import NAMES

ROWS = {"errors", "examples", "label_errors", "outcomes", "per_datum"}
"""Frames that list rows, which have no formula."""


@pytest.mark.parametrize("task", NAMES)
def test_every_metric_has_a_formula(task: str) -> None:
    unused = set(importlib.import_module(f"evalengine.tasks.{task}.metrics").SYMBOLS)
    for metric in registry.all_metrics(task).values():
        assert bool(metric.formula) == (metric.frame not in ROWS), metric.name
        symbols = registry.symbols(metric)
        unused -= set(symbols)
        for tex in filter(None, (metric.formula, *symbols)):
            assert "\\" not in convert(tex), f"{metric.name}: {tex}"  # with a command unknown to it
            assert tex.count("{") == tex.count("}")
    assert not unused


def test_only_separate_symbols_are_found() -> None:
    assert set(registry.symbols(registry.get("retrieval", "RBP"))) == {
        "n", "i", "k", r"\text{rel}_i", "p",
    }  # fmt: skip
    assert set(registry.symbols(registry.get("panoptic", "SQ"))) == {"(g, p)", r"\text{tp}"}
    assert registry.symbols(registry.get("tracking", "Outcomes")) == {}
