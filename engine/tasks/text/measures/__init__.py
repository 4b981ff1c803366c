"""Measures: from candidates and references to one row of numbers a candidate."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from ....tally.stats import Column
from ...encoding import Workers
from ..dialects import Settings
from ..pairs import Pairs

Measure = Callable[[Pairs, Settings, Workers], tuple[Column, ...]]
"""Map candidates to columns of float64 [n, 1, n_k]. The first column selects the best of several
candidates of a datum; the other columns use the same candidate.
"""

_MODULES: tuple[str, ...] = ("overlap", "ngrams", "similarity")
"""Modules of this package that define ``MEASURES``: need -> measure. Optional further names:
``SUMS``, the needs whose columns are summed over datums before a formula, ``VECTORS``, those
computed from vectors, and ``ROUGE_WORDS``, those that use the tokens of ``rouge_tokenizer``.
"""


def all_measures() -> dict[str, Measure]:
    """Every measure by the need that it answers."""
    measures: dict[str, Measure] = {}
    for name in _MODULES:
        measures.update(import_module(f".{name}", __name__).MEASURES)
    return measures


def summed(need: str) -> bool:
    """Return True if the numbers of a need are summed over datums before a formula.

    Args:
        need: need of the measure.
    """
    modules = [import_module(f".{name}", __name__) for name in _MODULES]
    return any(need in getattr(module, "SUMS", ()) for module in modules)


def by_vectors(needs: tuple[str, ...]) -> bool:
    """Return True if needs are computed from vectors instead of texts.

    Args:
        needs: of one metric.
    """
    modules = [import_module(f".{name}", __name__) for name in _MODULES]
    return any(need in getattr(module, "VECTORS", ()) for module in modules for need in needs)


def in_rouge_words(need: str) -> bool:
    """Return True if a need uses the tokens of ``rouge_tokenizer``.

    Args:
        need: need of the measure.
    """
    modules = [import_module(f".{name}", __name__) for name in _MODULES]
    return any(need in getattr(module, "ROUGE_WORDS", ()) for module in modules)
