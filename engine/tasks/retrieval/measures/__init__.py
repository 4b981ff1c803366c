"""Measures: from ranked lists to one row of numbers a query."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from ....tally.stats import Column
from ...encoding import Workers
from ..by_id import Lists
from ..dialects import Settings

Measure = Callable[[Lists, Settings, Workers], tuple[Column, ...]]
"""From lists to columns of float64 [n_queries, n_parameters, n_k]."""

_MODULES: tuple[str, ...] = ("counts", "gains")
"""Modules of this package that define ``MEASURES``: need -> measure. Optional further names:
``UNAVERAGED``, the needs whose mean over all orders of equal scores has no closed form, and
``SCALED``, those that depend on the highest relevance of the whole input.
"""


def all_measures() -> dict[str, Measure]:
    """Every measure by the need that it answers."""
    measures: dict[str, Measure] = {}
    for name in _MODULES:
        measures.update(import_module(f".{name}", __name__).MEASURES)
    return measures


def scaled(needs: frozenset[str]) -> bool:
    """Return True if any of these needs scales relevance by the highest of all judgments."""
    modules = [import_module(f".{name}", __name__) for name in _MODULES]
    return any(needs & getattr(module, "SCALED", frozenset()) for module in modules)


def averageable(need: str) -> bool:
    """Return True if a measure has a closed form for its mean over all orders of equal scores.

    Args:
        need: need of the measure.
    """
    modules = [import_module(f".{name}", __name__) for name in _MODULES]
    return all(need not in getattr(module, "UNAVERAGED", ()) for module in modules)
