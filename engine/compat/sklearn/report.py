"""``classification_report``, as text to the letter and as a dict."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ...schemas.errors import InputError
from ..arrays import undefined
from .hard import _Ratios
from .sides import sides

_HEADERS = ("precision", "recall", "f1-score", "support")
_METRICS = ("Precision", "Recall", "F1")


def classification_report(
    y_true: Any,
    y_pred: Any,
    *,
    labels: Any = None,
    target_names: Any = None,
    sample_weight: Any = None,
    digits: int = 2,
    output_dict: bool = False,
    zero_division: Any = "warn",
) -> Any:
    """Precision, recall, F1 and support of each label and averaged, as text or as a dict."""
    both = sides(y_true, y_pred, sample_weight)
    asked = both.subset(labels)
    names = [str(both.kind(one)) for one in asked] if target_names is None else [*target_names]
    if len(names) != len(asked):
        said = f"target_names has {len(names)} names for {len(asked)} labels."
        if labels is None:
            raise InputError(f"{said} Name the labels in labels=.")
        warnings.warn(said, stacklevel=2)
    found = _Ratios(both, _METRICS, asked, zero_division, samples=both.several)
    if found.undefined:
        undefined(f"{', '.join(sorted(found.undefined))}: undefined (0 / 0), and set to 0.")
    support = found.support()
    columns = (*(found.of(metric, None) for metric in _METRICS), support)
    rows = [(name, *row) for name, *row in zip(names, *columns, strict=False)]
    every = not both.several and (labels is None or set(asked) >= set(both.present))
    averages = ("micro", "macro", "weighted", *(("samples",) if both.several else ()))
    for average in averages:
        heading = "accuracy" if average == "micro" and every else f"{average} avg"
        averaged = (found.of(metric, average) for metric in _METRICS)
        rows.append((heading, *averaged, np.sum(support)))
    if output_dict:
        report: dict[str, Any] = {
            name: dict(zip(_HEADERS, map(float, row), strict=True)) for name, *row in rows
        }
        if "accuracy" in report:
            report["accuracy"] = report["accuracy"]["precision"]
        return report
    return _text(rows, names, digits, len(averages))


def _text(rows: list[tuple[Any, ...]], names: list[str], digits: int, n_averages: int) -> str:
    width = max(*map(len, names), len("weighted avg"), digits)
    lines = [f"{'':>{width}s} " + "".join(f" {header:>9}" for header in _HEADERS), ""]
    for i, (name, *row) in enumerate(rows):
        if i == len(rows) - n_averages:
            lines.append("")
        ratios = [f"{value:>9.{digits}f}" for value in row[:3]]
        if i == len(rows) - n_averages and name == "accuracy":
            ratios[:2] = [f"{'':>9}"] * 2
        lines.append(f"{name:>{width}s} " + "".join(f" {one}" for one in (*ratios, f"{row[3]:>9}")))
    return "\n".join(lines) + "\n"
