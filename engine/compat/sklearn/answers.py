"""Metrics of classification, computed from arrays without a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from ...evaluation.planner import Plan, make_plan
from ...evaluation.summary import label_axes, rows_of
from ...executors import Threads
from ...schemas.arrays import Array
from ...schemas.contract import DEFAULT_LABEL_KEY
from ...schemas.option_values import make_options
from ...schemas.results import FRAMES
from ...tallies.datums import Datums, Labels
from ...tallies.units import Grid
from ...tasks.classification.encode import Batch, Rows
from ...tasks.classification.tallies import Tallies, matched


class Answers:
    """Metrics of classification under scikit-learn's rules, computed from arrays.

    Args:
        metrics: names of metrics.
        values: the labels, ascending.
        truth: int32 codes of true labels: [n], or of several labels per row with offsets ``start``.
        start: int64 [n + 1], offsets of each row's true labels, if it may have several.
        hard: int32 [n], predicted labels.
        rows: scored or several predicted labels.
        declared: int32, codes of the labels that the user named, in their order.
        **options: of the metrics, hashable.
    """

    def __init__(
        self,
        metrics: Sequence[str],
        values: pl.Series,
        truth: Array,
        *,
        start: Array | None = None,
        hard: Array | None = None,
        rows: Rows | None = None,
        weight: Array | None = None,
        declared: Array | None = None,
        **options: Any,
    ) -> None:
        n = truth.size if start is None else start.size - 1
        plan = plan_of("classification", tuple(metrics), multilabel=start is not None, **options)
        places = None
        if declared is not None:
            places = np.full(len(values), -1, np.int32)
            places[declared] = np.arange(declared.size)
        keys = _KEY.new_from_index(0, len(values))
        labels = Labels(
            pl.DataFrame([keys, values.alias("label_value")]),
            np.zeros(len(values), np.int32),
            (DEFAULT_LABEL_KEY,),
        )
        datums = Datums(ids=None, slices=_NO_SLICES, rows=n)
        batch = Batch(
            datums, labels, places, None, None, truth, start, hard, rows, weight, by_row=True
        )
        units, scored = matched(batch, plan.settings, plan.needs)
        tallies = Tallies(datums, labels, places, units, scored, {})
        threads = Threads(1) if n < _FEW_ROWS else Threads()
        view = plan.does.view(tallies, plan.settings, threads=threads)
        axes, shared = label_axes(labels), dict[Any, Any]()
        self.parts = []
        for metric in plan.metrics:
            assert metric.compute is not None
            schema = FRAMES[metric.frame]
            for cells in metric.compute(view, plan.settings_of(metric)):
                self.parts.append(rows_of(metric, cells, axes, schema, None, shared))

    def column(self, name: str) -> list[Any]:
        """Values of a column in all rows, None if undefined."""
        values: list[Any] = []
        for height, columns in self.parts:
            value = columns.get(name)
            if isinstance(value, tuple):
                distinct = value[0].to_list() if isinstance(value[0], pl.Series) else value[0]
                values += [distinct[place] for place in value[1].tolist()]
            elif isinstance(value, np.ndarray):
                values += value.tolist()
            else:
                values += [value] * height
        return [None if value != value else value for value in values]

    def of_label(self, label: Any, *names: str) -> list[Array]:
        """Columns of the rows of one label, float64; NaN if undefined."""
        results: list[list[Array]] = [[] for _ in names]
        for _, columns in self.parts:
            values, codes = columns["label_value"]
            here = np.asarray(values)[codes] == label
            for name, some in zip(names, results, strict=True):
                value = columns[name]
                if isinstance(value, tuple):
                    value = np.asarray(value[0], np.float64)[value[1]]
                some.append(value[here].astype(np.float64))
        return [np.concatenate(some) if some else np.zeros(0) for some in results]

    def value(self, **where: Any) -> float:
        """The number in the one row whose columns have these values; NaN if undefined."""
        (result,) = [
            value
            for value, *others in zip(self.column("value"), *map(self.column, where), strict=True)
            if others == [*where.values()]
        ]
        return math.nan if result is None else float(result)


_KEY = pl.Series("label_key", [DEFAULT_LABEL_KEY])
_NO_SLICES = pl.DataFrame()
_FEW_ROWS = 10_000  # rows up to which a single thread computes


@lru_cache
def plan_of(task: str, metrics: tuple[str, ...], **options: Any) -> Plan:
    """Return the plan of metrics under scikit-learn's rules, made once per set of options."""
    return make_plan(make_options(dialect="sklearn", metrics=metrics, **options), task)


def score_rows(scores: Array) -> Rows:
    """Scores of the second of two labels, [n], or of every label, [n, l]."""
    n, single = len(scores), scores.dtype == np.float32
    flat = np.ascontiguousarray(scores, np.float64).ravel()
    if scores.ndim == 1:
        return Rows((flat,), None, None, 1, single)
    codes = np.arange(scores.shape[1], dtype=np.int32)
    return Rows((flat,), None, None, -1, single, grid=Grid(codes, np.arange(n, dtype=np.int32)))


def set_rows(matrix: Array) -> tuple[Array, Array, Array]:
    """Rows, columns and offsets of the rows of what is true in a matrix [n, l]."""
    row, column = np.nonzero(matrix)
    start = np.searchsorted(row, np.arange(len(matrix) + 1))
    return row.astype(np.int32), column.astype(np.int32), start
