"""Measures: from ranked lists to one row of numbers a query."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from ....tally.stats import Column
from ...workers import Workers
from ..lists import Lists
from ..settings import Settings

Measure = Callable[[Lists, Settings, Workers], tuple[Column, ...]]
"""From lists to columns of float64 [n_queries, n_parameters, n_k]."""

_MODULES: tuple[str, ...] = ()
"""Modules of this package that hold ``MEASURES``: need -> measure."""


def all_measures() -> dict[str, Measure]:
    """Every measure by the need that it answers."""
    found: dict[str, Measure] = {}
    for name in _MODULES:
        found.update(import_module(f".{name}", __name__).MEASURES)
    return found
