"""evalengine: vectorised batch scoring of predictions against ground truths.

Public names load on first use (PEP 562): ``import evalengine`` does not import Polars, NumPy or
Numba.

Example:
    >>> import evalengine as ee
    >>> card = ee.score("predictions.parquet", "ground_truths.parquet")
    >>> card.value("mAP", iou_threshold=0.5)
"""

from __future__ import annotations

import gc
from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import forked as _forked  # noqa: F401  # sees forks from now on
from ._version import __version__

if TYPE_CHECKING:
    from .api import check, explain, metrics_table, score, warmup
    from .collector import Collector
    from .comparing import compare
    from .compat.arrays import bleu, precision_recall_fscore, rouge
    from .findings.bounds import find_limits
    from .findings.calibration import find_calibration
    from .findings.diagnose import diagnose
    from .findings.errors import find_errors
    from .findings.label_errors import find_label_errors
    from .findings.slices import find_slices
    from .findings.thresholds import find_thresholds
    from .fusion.fuse import fuse
    from .ingest.annotations.hierarchy import expand_hierarchy
    from .ingest.converting import convert, convert_coco, convert_trec
    from .jobs.reports import report
    from .jobs.running import run_job
    from .judge.judging import judge
    from .metrics.own import metric
    from .planning import find_plan
    from .schemas.errors import (
        EndpointError,
        EvalengineError,
        ExecutorError,
        InputError,
        JudgeError,
        OptionError,
        ReadError,
        ResultError,
        ScratchError,
    )
    from .schemas.options import Options
    from .scorecard.card import Scorecard, load
    from .statistics.comparison import Comparison

_HOMES = {
    "score": "api",
    "check": "api",
    "compare": "comparing",
    "diagnose": "findings.diagnose",
    "explain": "api",
    "find_calibration": "findings.calibration",
    "find_errors": "findings.errors",
    "find_label_errors": "findings.label_errors",
    "find_limits": "findings.bounds",
    "find_plan": "planning",
    "find_slices": "findings.slices",
    "find_thresholds": "findings.thresholds",
    "metrics_table": "api",
    "warmup": "api",
    "precision_recall_fscore": "compat.arrays",
    "fuse": "fusion.fuse",
    "judge": "judge.judging",
    "metric": "metrics.own",
    "report": "jobs.reports",
    "run_job": "jobs.running",
    "rouge": "compat.arrays",
    "bleu": "compat.arrays",
    "load": "scorecard.card",
    "convert": "ingest.converting",
    "convert_coco": "ingest.converting",
    "convert_trec": "ingest.converting",
    "expand_hierarchy": "ingest.annotations.hierarchy",
    "Collector": "collector",
    "Options": "schemas.options",
    "Scorecard": "scorecard.card",
    "Comparison": "statistics.comparison",
    "EvalengineError": "schemas.errors",
    "ExecutorError": "schemas.errors",
    "InputError": "schemas.errors",
    "EndpointError": "schemas.errors",
    "JudgeError": "schemas.errors",
    "OptionError": "schemas.errors",
    "ReadError": "schemas.errors",
    "ResultError": "schemas.errors",
    "ScratchError": "schemas.errors",
}
"""Public name -> module of this package that defines it."""

__all__ = [
    "Collector",
    "Comparison",
    "EndpointError",
    "EvalengineError",
    "ExecutorError",
    "InputError",
    "JudgeError",
    "OptionError",
    "Options",
    "ReadError",
    "ResultError",
    "Scorecard",
    "ScratchError",
    "__version__",
    "bleu",
    "check",
    "compare",
    "convert",
    "convert_coco",
    "convert_trec",
    "diagnose",
    "expand_hierarchy",
    "explain",
    "find_calibration",
    "find_errors",
    "find_label_errors",
    "find_limits",
    "find_plan",
    "find_slices",
    "find_thresholds",
    "fuse",
    "judge",
    "load",
    "metric",
    "metrics_table",
    "precision_recall_fscore",
    "report",
    "rouge",
    "run_job",
    "score",
    "warmup",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    collects = gc.isenabled()
    gc.disable()  # imports create many objects, all of them live
    try:
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    finally:
        if collects:
            gc.enable()
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
