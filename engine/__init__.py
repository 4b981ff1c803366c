"""evalengine: vectorised batch scoring of predictions against ground truths.

Public names load on first use (PEP 562): ``import evalengine`` does not import Polars, NumPy or
Numba.

Example:
    >>> import evalengine as ee
    >>> card = ee.score("predictions.parquet", "ground_truths.parquet")
    >>> card.value("mAP", iou_threshold=0.5)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import forked as _forked  # noqa: F401  # sees forks from now on
from ._version import __version__
from .kernels import uncollected

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
    from .findings.plan import find_plan
    from .findings.slices import find_slices
    from .findings.thresholds import find_thresholds
    from .fusion import fuse
    from .ingest.annotations.open_images import expand_hierarchy
    from .ingest.converting import convert, convert_coco, convert_trec
    from .jobs.reports import report
    from .jobs.running import run_job
    from .judge.judging import judge
    from .metrics.own import metric
    from .partial import Tally, TallyPlan, merge, plan, tally
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

_MODULES = {
    "api": "score check explain metrics_table warmup",
    "comparing": "compare",
    "partial": "plan tally merge Tally TallyPlan",
    "findings.diagnose": "diagnose",
    "findings.calibration": "find_calibration",
    "findings.errors": "find_errors",
    "findings.label_errors": "find_label_errors",
    "findings.bounds": "find_limits",
    "findings.plan": "find_plan",
    "findings.slices": "find_slices",
    "findings.thresholds": "find_thresholds",
    "compat.arrays": "precision_recall_fscore rouge bleu",
    "fusion": "fuse",
    "judge.judging": "judge",
    "metrics.own": "metric",
    "jobs.reports": "report",
    "jobs.running": "run_job",
    "scorecard.card": "load Scorecard",
    "ingest.converting": "convert convert_coco convert_trec",
    "ingest.annotations.open_images": "expand_hierarchy",
    "collector": "Collector",
    "schemas.options": "Options",
    "statistics.comparison": "Comparison",
    "schemas.errors": "EvalengineError ExecutorError InputError EndpointError JudgeError"
    " OptionError ReadError ResultError ScratchError",
}
_HOMES: dict[str, str] = {}
"""Public name -> module of this package that defines it."""
for _module, _names in _MODULES.items():
    _HOMES |= dict.fromkeys(_names.split(), _module)

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
    "Tally",
    "TallyPlan",
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
    "merge",
    "metric",
    "metrics_table",
    "plan",
    "precision_recall_fscore",
    "report",
    "rouge",
    "run_job",
    "score",
    "tally",
    "warmup",
]


def __getattr__(name: str) -> Any:
    if name == "compat":  # a package of drop-ins, each imported on first use
        return import_module(f"{__name__}.compat")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with uncollected(lasting=True):
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
