"""Metrics with several numbers per target: distribution of errors, actual by predicted values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ....schemas.arrays import Array
from ....tally.cells import Cells, parameters
from ....tally.paired_values import Paired, PairedView
from .parts import bounded, metric, weighted_quantile, weighted_sum

if TYPE_CHECKING:
    from ..settings import Settings


_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
_BINS = 10
_SIDES = ("predicted", "actual")


def _table(view: PairedView, of: Callable[[Paired, Array | None], Array], width: int) -> Array:
    """Compute several numbers over rows of each cell, float64 [group, key, width].

    Args:
        of: maps rows and their weights to numbers, float64 [width].
    """
    kept: list[Array] = []

    def remembered(rows: Paired, weight: Array | None) -> float:
        kept.append(of(rows, weight))
        return len(kept) - 1

    place = view.by_cell(remembered)
    made = np.full((*place.shape, width), np.nan)
    there = ~np.isnan(place)
    made[there] = np.array(kept).reshape(-1, width)[place[there].astype(np.int64)]
    return made


def _cells(view: PairedView, value: Array, support: Array, reason: str, **more: Any) -> Cells:
    value, why = bounded(view, value, reason)
    return Cells(
        axes=("group", "key"),
        shape=value.shape,
        keep=view.rows > 0,
        columns={"value": value, "support": support, **more},
        reason=why,
    )


def _error_quantiles(view: PairedView, settings: Settings) -> list[Cells]:
    def of(rows: Paired, weight: Array | None) -> Array:
        error = rows.error
        return np.array([weighted_quantile(error, weight, level) for level in _LEVELS])

    values = _table(view, of, len(_LEVELS))
    return [
        _cells(view, values[..., i], view.rows, "", parameters=parameters(quantile=level))
        for i, level in enumerate(_LEVELS)
    ]


def _binned(rows: Paired, weight: Array | None) -> Array:
    """Return means of predictions and of targets, and the rows, of each bin, float64 [bins * 3].

    Equal predictions share a bin, whatever the order of the rows.
    """
    levels = np.arange(1, _BINS) / _BINS
    edges = [weighted_quantile(rows.prediction, weight, level) for level in levels.tolist()]
    place = np.searchsorted(np.array(edges), rows.prediction)
    out = np.full((_BINS, 3), np.nan)
    for i in range(_BINS):
        some = np.flatnonzero(place == i)
        own = None if weight is None else weight[some]
        out[i, 2] = some.size
        total = some.size if own is None else weighted_sum(own, None)
        if total:
            for side, values in enumerate((rows.prediction, rows.target)):
                out[i, side] = weighted_sum(values[some], own) / total
    return out.ravel()


def _actual_by_prediction(view: PairedView, settings: Settings) -> list[Cells]:
    table = _table(view, _binned, _BINS * 3)
    table = table.reshape(*table.shape[:-1], _BINS, 3)
    return [
        _cells(
            view,
            table[..., i, side],
            np.nan_to_num(table[..., i, 2]).astype(np.int64),
            "no predictions in the bin",
            statistic=name,
            parameters=parameters(bin=i + 1),
        )
        for i in range(_BINS)
        for side, name in enumerate(_SIDES)
    ]


_EVERYWHERE = (-float("inf"), float("inf"))

METRICS = (
    metric(
        "ErrorQuantiles",
        "errors p - t below which 5, 25, 50, 75 and 95 % of the rows lie; the mean of two where a"
        " share falls between them",
        "Hyndman & Fan 1996, Sample quantiles in statistical packages, definition 2",
        _error_quantiles,
        aliases=("error_quantiles",),
        averages=(),
        better="neither",
        range=_EVERYWHERE,
        formula=r"q\text{-quantile of } p_i - t_i, \quad q = 0.05, 0.25, 0.5, 0.75, 0.95",
    ),
    metric(
        "ActualByPrediction",
        "mean prediction and mean target in ten bins of rows by prediction, cut at its deciles;"
        " equal predictions share a bin",
        "Murphy & Winkler 1987, A general framework for forecast verification",
        _actual_by_prediction,
        aliases=("actual_by_prediction",),
        averages=(),
        better="neither",
        range=_EVERYWHERE,
        formula=r"\frac{1}{n_b} \sum_{i \in b} p_i, \quad \frac{1}{n_b} \sum_{i \in b} t_i",
    ),
)
