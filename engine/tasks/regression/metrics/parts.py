"""Shared parts of regression metrics: rows per target, their mean, reasons for undefined values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from ....kernels.sums import ExactSums
from ....metrics.registry import Metric
from ....schemas.arrays import Array
from ....tally.cells import Cells, parameters
from ....tally.paired_values import Paired, PairedView, Scaled

if TYPE_CHECKING:
    from ..settings import Settings

Loss = Callable[[Paired, Any], Array]
"""From rows and settings to a number of each, float64 [n]."""

NO_WEIGHT = "weights are all zero"
ONE_ROW = "a single row"
CONSTANT = "the target is constant"
FLAT = "target or predictions are constant"
SCIKIT = "scikit-learn"
MACRO = ("macro",)
TOO_LARGE = "a step of it is beyond the largest number, 1.8e308"
NUMBERS = ("prediction", "target")
INFINITE = (0.0, float("inf"))


def metric(
    name: str,
    definition: str,
    source: str,
    compute: Callable[[PairedView, Settings], list[Cells]],
    **more: Any,
) -> Metric:
    """Define a regression metric, with one row per target and, for several, their mean.

    Args:
        definition: one sentence with the formula.
        source: origin of the definition.
        compute: maps a view and settings to cells.
        **more: other fields of :class:`Metric`.
    """
    fields: dict[str, Any] = {
        "frame": "metrics",
        "averages": MACRO,
        "better": "lower",
        "range": INFINITE,
        "needs": NUMBERS,
        **more,
    }
    return Metric(
        name=name,
        task="regression",
        definition=definition,
        source=source,
        compute=compute,
        **fields,
    )


def cells(
    view: PairedView, value: Array, reason: Array | str, weights: Array | None = None
) -> list[Cells]:
    """Return one row per target; for several targets also their mean.

    Args:
        value: float64 [group, key]; NaN if undefined, infinite on overflow.
        reason: why it is undefined, a string or an array of that shape.
        weights: float64 [group, key], weights of the targets in an additional mean, ``weighted``.
    """
    rows = view.rows
    here = rows > 0
    value, why = bounded(view, value, reason)
    out = [
        Cells(
            axes=("group", "key"),
            shape=value.shape,
            keep=here,
            columns={"value": value, "support": rows},
            reason=why,
        )
    ]
    if value.shape[1] > 1:
        many = here.sum(axis=1)
        out.append(_mean(view, value, np.where(here, 1.0, 0.0), "macro", many))
        if weights is not None:
            out.append(_mean(view, value, np.where(here, weights, 0.0), "weighted", many))
    return out


def bounded(view: PairedView, value: Array, reason: Array | str) -> tuple[Array, Array]:
    """Return numbers, NaN if undefined or too large, and the reasons."""
    large = np.isinf(value)
    why = np.where(large, TOO_LARGE, np.where(view.weight > 0, reason, NO_WEIGHT))
    return np.where(large, np.nan, value), why


def _mean(view: PairedView, value: Array, weights: Array, average: str, many: Array) -> Cells:
    # If all weights are 0, as with only constant targets, all count equally.
    weights = np.where(weights.any(axis=1, keepdims=True), weights, view.rows > 0)
    total = weights.sum(axis=1)
    mean = np.full(total.shape, np.nan)
    added = np.where(weights > 0, value * weights, 0.0).sum(axis=1)
    np.divide(added, total, out=mean, where=total > 0)
    return Cells(
        axes=("group",),
        shape=mean.shape,
        keep=many > 0,
        columns={"value": mean, "average": average, "support": view.rows.sum(axis=1)},
        reason="a target is undefined",
    )


def mean_of(name: str, loss: Loss, reason: str = "", *, root: bool = False) -> Any:
    """Return a function that computes the weighted mean over rows, or its square root.

    Args:
        name: cache key of the sum.
        loss: computes the number of each row.
        reason: why it may be undefined.
    """

    def compute(view: PairedView, settings: Settings) -> list[Cells]:
        value = view.mean(name, lambda rows: loss(rows, settings))
        return cells(view, np.sqrt(value) if root else value, reason)

    return compute


def at_level(found: list[Cells], **level: float) -> list[Cells]:
    """Return cells with their level in the parameters.

    Args:
        **level: name and value of the level.
    """
    told = parameters(**level)
    return [
        msgspec.structs.replace(one, columns={**one.columns, "parameters": told}) for one in found
    ]


def moment_mean(name: str, reason: str = "", *, root: bool = False) -> Any:
    """Return a function that computes the weighted mean of a moment, or its square root.

    Args:
        name: see :meth:`.PairedView.moment`.
        reason: why it may be undefined.
    """

    def compute(view: PairedView, settings: Settings) -> list[Cells]:
        total, powers = view.moment(name)
        value = view.per_weight(total)
        value = unscaled(np.sqrt(value), powers // 2) if root else unscaled(value, powers)
        return cells(view, value, reason)

    return compute


def unscaled(value: Array, powers: Array) -> Array:
    """Multiply numbers by powers of two; infinite on overflow."""
    if not powers.any():
        return value
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.ldexp(value, powers))


def geometric(one: Array | float, other: Array | float) -> Array:
    """Geometric means of numbers of 0 or more; of equal ones these, to the last bit."""
    return np.where(np.equal(one, other), one, np.sqrt(one) * np.sqrt(other))


def ratio(top: Array, bottom: Array) -> Array:
    """Divide, giving NaN for a zero denominator."""
    if np.all(bottom):
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(top / bottom)
    out = np.full(np.broadcast_shapes(np.shape(top), np.shape(bottom)), np.nan)
    with np.errstate(over="ignore", invalid="ignore"):
        np.divide(top, bottom, out=out, where=np.asarray(bottom) != 0)
    return out


def share_explained(
    view: PairedView, left: Scaled, whole: Scaled, settings: Settings
) -> tuple[Array, Array]:
    """Return 1 - left / whole, and why it is undefined.

    Args:
        left: residual of the predictions.
        whole: residual of a constant; 0 for a constant target.
        settings: the dialect decides on constant targets.
    """
    large = np.isinf(left[0]) | np.isinf(whole[0])
    value = 1 - unscaled(ratio(left[0], whole[0]), left[1] - whole[1])
    if settings.rules.constant is not None:
        best, worst = settings.rules.constant
        constant = (whole[0] == 0) & (view.weight > 0)
        value = np.where(constant, np.where(left[0] == 0, best, worst), value)
    single = view.rows < 2
    value = np.where(single, np.nan, np.where(large, np.inf, value))
    return value, np.where(single, ONE_ROW, CONSTANT)


def as_they_are(value: Array) -> Scaled:
    """Return numbers with scaling powers of 0."""
    return value, np.zeros(value.shape, np.int64)


def weighted_sum(values: Array, weight: Array | None) -> float:
    """Return the exact weighted sum of values; NaN if one of them is NaN."""
    return float(ExactSums(1).add(values if weight is None else values * weight).rounded()[0])


def times_drawn(rows: Paired, weight: Array | None) -> Array:
    """Return the multiplicity of each row in a resample, float64 [n], without sample weight.

    Rows aggregated first, by series or group, count as often as their rows do.

    Args:
        rows: of a cell.
        weight: float64 [n], above 0, from the view; None if equal.
    """
    if weight is None:
        return np.ones(rows.target.size)
    return weight if rows.weight is None else np.asarray(weight / rows.weight)


def weighted_quantile(
    values: Array, weight: Array | None, level: float, *, spent: bool = False
) -> float:
    """Return the value below which a share of the weight is; the mean of two if it is between them.

    With equal weights this is the quantile of Hyndman and Fan's second kind, at 0.5 the usual
    median.

    Args:
        values: float64 [n], n > 0.
        weight: float64 [n], above 0; None if equal.
        level: the share, in [0, 1].
        spent: reorder ``values`` in place.
    """
    if weight is None:
        aim = level * values.size
        at = min(max(int(np.ceil(aim)) - 1, 0), values.size - 1)
        after = min(at + 1, values.size - 1)
        found = values if spent else values.copy()
        found.partition((at, after) if aim == at + 1 else at)
        return float((found[at] + found[after]) / 2) if aim == at + 1 else float(found[at])
    order = np.lexsort((weight, values))
    weight = weight[order]
    reached = np.cumsum(weight)
    before = np.append(0.0, reached[:-1])
    added = reached - before  # what each sum rounds away, by Knuth's two-sum
    lost = np.cumsum((before - (reached - added)) + (weight - added))
    beyond = (reached - level * reached[-1]) + (lost - level * lost[-1])
    same = _SAME * reached[-1]
    at = int(np.argmax(beyond >= -same))
    after = at + 1 if beyond[at] <= same and at + 1 < values.size else at
    return float((values[order[at]] + values[order[after]]) / 2)


def running_quantile(values: Array, weight: Array, level: float) -> float:
    """Return the weighted quantile by floating-point running sums, equal within 2.2e-16.

    This is scikit-learn's rule: rounding of sums may select one value instead of the mean of two.

    Args:
        values: float64 [n], n > 0.
        weight: float64 [n], above 0.
        level: the share.
    """
    order = np.lexsort((weight, values))
    reached = np.cumsum(weight[order])
    aim = level * 100 / 100 * reached[-1]
    last = values.size - 1
    at = min(int(np.searchsorted(reached, aim)), last)
    after = at if reached[at] - aim > _SAME else min(at + 1, last)
    return float((values[order[at]] + values[order[after]]) / 2)


_SAME = float(np.finfo(np.float64).eps)
"""Share of the whole weight by which two sums of weights may differ and be one."""


def own_quantile(
    values: Array, weight: Array | None, level: float, settings: Settings, *, spent: bool = False
) -> float:
    """A quantile by the dialect's rule; arguments as of :func:`weighted_quantile`."""
    if settings.rules.running_weights and weight is not None:
        return running_quantile(values, weight, level)
    return weighted_quantile(values, weight, level, spent=spent)
