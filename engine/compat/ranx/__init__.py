"""The calls of the package ``ranx``: change the import, keep the calls.

Example:
    >>> from evalengine.compat.ranx import Qrels, Run, evaluate
    >>> qrels = Qrels({"q1": {"d1": 2, "d2": 0}, "q2": {"d3": 1}})
    >>> run = Run({"q1": {"d2": 0.9, "d1": 0.4}, "q2": {"d3": 0.7}}, name="bm25")
    >>> evaluate(qrels, run, ["mrr", "precision@2"])
    {'mrr': 0.75, 'precision@2': 0.5}
"""

from __future__ import annotations

from .evaluation import Qrels, Report, Run, compare, evaluate, fuse

__all__ = ["Qrels", "Report", "Run", "compare", "evaluate", "fuse"]
