"""What metrics of regression share: rows per target, their mean, and why they are undefined."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from ....kernels.sums import ExactSums
from ....metrics.registry import Metric
from ....tally.cells import Cells, parameters
from ....tally.paired_rows import Paired
from ....tally.paired_values import PairedView, Scaled

if TYPE_CHECKING:
    from ..settings import Settings

Array = np.ndarray[Any, Any]
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
    """A metric of regression, with a row a target and, of several, their mean.

    Args:
        name: what users write.
        definition: one sentence with the formula.
        source: whose definition it is.
        compute: from a view and settings to cells.
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
    """A row a target; of several targets their mean, too.

    Args:
        view: whose numbers they are.
        value: float64 [group, key]; NaN where undefined, infinite where too large.
        reason: why it is undefined, a word or an array of that shape.
        weights: float64 [group, key], how much each target counts in a further mean, ``weighted``.
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
    """Numbers, NaN where they are undefined or too large, and why they are."""
    large = np.isinf(value)
    why = np.where(large, TOO_LARGE, np.where(view.weight > 0, reason, NO_WEIGHT))
    return np.where(large, np.nan, value), why


def _mean(view: PairedView, value: Array, weights: Array, average: str, many: Array) -> Cells:
    # Where nothing weighs, as of constant targets alone, all count alike.
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
    """The weighted mean over rows of a number of each, or its square root.

    Args:
        name: of the sum.
        loss: the number.
        reason: why it may be undefined.
        root: whether the square root is taken.
    """

    def compute(view: PairedView, settings: Settings) -> list[Cells]:
        value = view.mean(name, lambda rows: loss(rows, settings))
        return cells(view, np.sqrt(value) if root else value, reason)

    return compute


def at_level(found: list[Cells], **level: float) -> list[Cells]:
    """Cells whose rows say which level they are of.

    Args:
        found: the cells.
        **level: the word for it, and the number.
    """
    told = parameters(**level)
    return [
        msgspec.structs.replace(one, columns={**one.columns, "parameters": told}) for one in found
    ]


def moment_mean(name: str, reason: str = "", *, root: bool = False) -> Any:
    """The weighted mean of a moment, or its square root.

    Args:
        name: see :meth:`.PairedView.moment`.
        reason: why it may be undefined.
        root: whether the square root is taken.
    """

    def compute(view: PairedView, settings: Settings) -> list[Cells]:
        total, powers = view.moment(name)
        value = view.per_weight(total)
        value = unscaled(np.sqrt(value), powers // 2) if root else unscaled(value, powers)
        return cells(view, value, reason)

    return compute


def unscaled(value: Array, powers: Array) -> Array:
    """Numbers times powers of two; infinite where they are too large."""
    if not powers.any():
        return value
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.ldexp(value, powers))


def geometric(one: Array | float, other: Array | float) -> Array:
    """Geometric means of numbers of 0 or more; of equal ones these, to the last bit."""
    return np.where(np.equal(one, other), one, np.sqrt(one) * np.sqrt(other))


def ratio(top: Array, bottom: Array) -> Array:
    """top / bottom, NaN where the bottom is 0."""
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
    """1 - left / whole, and why it is undefined.

    Args:
        view: whose numbers they are.
        left: what the predictions leave.
        whole: what a constant would; 0 where the target is one.
        settings: whose dialect says what is made of a constant target.
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
    """Numbers that nothing scales."""
    return value, np.zeros(value.shape, np.int64)


def weighted_sum(values: Array, weight: Array | None) -> float:
    """The exact sum of values, each times its weight; NaN where one of them is."""
    return float(ExactSums(1).add(values if weight is None else values * weight).rounded()[0])


def times_drawn(rows: Paired, weight: Array | None) -> Array:
    """How often each row is drawn, float64 [n]: its weight without its own.

    What rows are first brought together by, series or groups, counts as often as its rows do.

    Args:
        rows: of a cell.
        weight: float64 [n], above 0, as views give it; None for all alike.
    """
    if weight is None:
        return np.ones(rows.target.size)
    return weight if rows.weight is None else np.asarray(weight / rows.weight)


def weighted_quantile(
    values: Array, weight: Array | None, level: float, *, spent: bool = False
) -> float:
    """The value below which a share of the weight lies; the mean of two where it lies between.

    Where all weights are alike this is the quantile of Hyndman and Fan's second kind, at 0.5 the
    usual median.

    Args:
        values: float64 [n], n > 0.
        weight: float64 [n], above 0; None for all alike.
        level: the share.
        spent: whether the values may be put into another order.
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
    """The same by running sums as floats have them, which meet where they differ by 2.2e-16.

    This is scikit-learn's rule: what sums round away may take the mean of two for one of them.

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
