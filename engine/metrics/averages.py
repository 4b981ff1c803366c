"""Averages over labels and over datums."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from ..schemas.arrays import Array
from ..tallies.datums import Cells, View, parameters
from ..tallies.scored_view import ScoredView
from .registry import Metric

if TYPE_CHECKING:
    from ..tallies.stats import StatsView
    from ..tasks.classification.dialects import Settings

# Averages over the labels of a key: which labels count, and macro, micro and weighted means.

NO_TRUTH = "no ground truth"
NO_LABEL = "no label with ground truth has a value"
UNREACHED = "no threshold reaches it"
LABEL = ("group", "label")
KEY = ("group", "key")


def ratio(top: Array, bottom: Array, fill: float = np.nan) -> Array:
    """Divide; ``fill`` if the denominator is 0."""
    top, bottom = np.broadcast_arrays(np.asarray(top, np.float64), bottom)
    out = np.full(top.shape, fill)
    np.divide(top, bottom, out=out, where=bottom != 0)
    return out


def scored_rows(view: ScoredView) -> Array:
    """Return labels with rows of scores, bool [group, label]."""
    assert view.scored is not None
    plain = view.plain
    here: Array = (plain.positives > 0) | (sum(plain.listed) > 0)
    if view.declared is not None:
        here = here | view.declared
    return here & view.scored.labels


def in_use(view: ScoredView) -> Array:
    """Labels that are true or predicted somewhere, bool [group, label]."""
    plain = view.plain
    return (plain.positives > 0) | (plain.hard.predicted > 0)


def present(view: ScoredView, settings: Settings) -> Array:
    """Labels that get rows, bool [group, label].

    With several labels per datum, every scored label gets one, as every column of a matrix does in
    scikit-learn and torchmetrics.
    """
    here = in_use(view)
    if (settings.rules.listed_labels or settings.multilabel) and view.scored is not None:
        here = here | (sum(view.plain.listed) > 0)
    if view.declared is not None:
        here = here | view.declared
    return here


def members(view: ScoredView, settings: Settings) -> Array:
    """Labels that enter averages, bool [group, label]."""
    if view.declared is not None and settings.rules.declared_labels_only:
        return np.broadcast_to(view.declared, view.shape)
    return present(view, settings)


def averaged(view: ScoredView, settings: Settings) -> Array:
    """Labels that enter macro averages, bool [group, label]."""
    inside = members(view, settings)
    if settings.rules.unused_in_means or settings.multilabel:
        return inside
    return inside & in_use(view)


def by_key(view: View, array: Array, where: Array | None = None) -> Array:
    """Sum over the labels of each key, ignoring NaN: [group, label, ...] to key."""
    n_keys = len(view.labels.key_names)
    out = np.zeros((array.shape[0], n_keys, *array.shape[2:]))
    if where is not None:
        array = np.where(where.reshape(*where.shape, *[1] * (array.ndim - 2)), array, 0)
    for k in range(n_keys):
        out[:, k] = np.nansum(array[:, view.labels.key == k], axis=1)
    return out


def macro(view: View, value: Array, where: Array) -> Array:
    """Plain means over defined labels, [group, key, ...]; NaN without any."""
    defined = where.reshape(*where.shape, *[1] * (value.ndim - 2)) & ~np.isnan(value)
    return ratio(by_key(view, np.where(defined, value, 0.0)), by_key(view, defined))


def weighted(view: View, value: Array, where: Array, weight: Array) -> Array:
    """Means over defined labels by weight, [group, key, ...]; NaN without any weight."""
    trailing = [1] * (value.ndim - 2)
    defined = where.reshape(*where.shape, *trailing) & ~np.isnan(value)
    by = np.where(defined, weight.reshape(*weight.shape, *trailing), 0.0)
    return ratio(by_key(view, np.where(defined, value, 0.0) * by), by_key(view, by))


def label_cells(
    value: Array, keep: Array, reason: Array | str, support: Array, **columns: Any
) -> Cells:
    """One row per label."""
    return Cells(
        axes=LABEL,
        shape=value.shape,
        keep=keep,
        columns={"value": value, "support": support, **columns},
        reason=reason,
    )


def key_cells(
    view: ScoredView,
    value: Array,
    reason: Array | str,
    average: str | None = None,
    support: Array | None = None,
    **columns: Any,
) -> Cells:
    """One row per label key; keys without any unit in a group make none."""
    support = view.judged if support is None else support
    return Cells(
        axes=KEY,
        shape=value.shape,
        keep=view.plain.every > 0,
        columns={"value": value, "average": average, "support": support, **columns},
        reason=reason,
    )


Ratio = Callable[["Settings", Array, Array, Array], Array]
"""Function from right, predicted and actual counts to the value, ``zero_division`` for 0 / 0."""


TRIALS = "trials"
"""Column of cells: how many independent datums a proportion is a share of."""


def averaged_ratio(
    view: ScoredView,
    settings: Settings,
    of: Ratio,
    reason: str,
    trials: Callable[[Array, Array, Array], Array] | None = None,
) -> list[Cells]:
    """Compute a ratio of counts per label, and its macro, micro, weighted (and samples) averages.

    Averages as in scikit-learn's ``precision_recall_fscore_support``: undefined labels are filled
    by ``zero_division``, or skipped if that is NaN (in Phoenix, NaN spreads to the mean).
    """
    counts = view.hard
    value = of(settings, counts.right, counts.predicted, counts.actual)
    inside = averaged(view, settings)
    neither = settings.rules.neither
    filled = value
    if neither is not None:
        unused = ~in_use(view)
        filled = np.where(unused, neither, value)
        inside = inside & ~unused
    rests = (
        {} if trials is None else {TRIALS: trials(counts.right, counts.predicted, counts.actual)}
    )
    cells = [label_cells(filled, present(view, settings), reason, counts.actual, **rests)]
    sums = [by_key(view, c, inside) for c in (counts.right, counts.predicted, counts.actual)]
    why: dict[str, Array | str] = {
        "macro": reason,
        "micro": reason,
        "weighted": np.where(sums[2] > 0, NO_LABEL, NO_TRUTH),
        "samples": "no datum has a value",
    }
    averages = {
        "macro": macro(view, value, inside),
        "micro": of(settings, *sums),
        "weighted": weighted(view, value, inside, counts.actual),
    }
    if settings.rules.weightless_mean:
        weightless = np.isnan(averages["weighted"])
        averages["weighted"] = np.where(weightless, averages["macro"], averages["weighted"])
    if settings.rules.nan_spreads:
        broken = by_key(view, inside & np.isnan(value)) > 0
        averages |= {k: np.where(broken, np.nan, averages[k]) for k in ("macro", "weighted")}
        why |= {k: np.where(broken, "a label has no value", why[k]) for k in ("macro", "weighted")}
    if settings.multilabel:
        averages["samples"] = over_samples(view, settings, of)
    cells += [  # averages are not shares of datums: one may enter them under several labels
        key_cells(view, mean, why[average], average, support=sums[2])
        for average, mean in averages.items()
    ]
    return cells


def over_samples(view: ScoredView, settings: Settings, of: Ratio) -> Array:
    """Mean over units of a ratio of each unit's own counts, [group, key]."""

    def defined(few: ScoredView) -> tuple[Array, Array]:
        value, judged = of(settings, *few.samples), few.judged_units
        unit = judged[~np.isnan(value[judged])]
        return unit, value[unit]

    return ratio(view.summed(defined), view.summed(lambda few: (defined(few)[0], None)))


def with_parameters(cells: list[Cells], **values: Any) -> list[Cells]:
    """Return cells with values in the column ``parameters``."""
    column = parameters(**values)
    return [
        msgspec.structs.replace(one, columns={**one.columns, "parameters": column}) for one in cells
    ]


# Means over datums: how the numbers of single queries, texts or verdicts become one.

AXES = ("group", "parameters", "k")
_NOBODY = "no datum to average over"


Compute = Callable[["StatsView", Any], "list[Cells]"]
"""Metric function: from a view and settings to cells."""


def _over_datums(
    needs: tuple[str, ...],
    summed: Callable[[Array, Array, Any], Array],
    *,
    of: Callable[[Array], Array] = lambda values: values,
    metric: str | None = None,
) -> Compute:
    """Make a metric that is a number over datums, at the requested cut-offs.

    Args:
        needs: its tally; several if they contain its cut-offs together.
        summed: from sums, numbers of values, and settings to the number.
        metric: its name, by default that of the columns.
    """

    def compute(view: StatsView, settings: Any) -> list[Cells]:
        result = []
        for column in (column for need in needs for column in view.columns[need]):
            single = len(needs) == 1 and len(column.k) == 1  # a metric without cut-offs
            cuts = column.k if single else tuple(k for k in settings.k if k in column.k)
            if not cuts:
                continue
            at = [column.k.index(k) for k in cuts]
            total, scored = view.total(column, partial(_at, at, of))
            value = summed(total, scored, settings)
            support = np.broadcast_to(view.support[:, None, None], value.shape)
            cells = Cells(
                axes=AXES,
                values={"parameters": column.parameters, "k": cuts},
                columns={
                    "metric": metric or column.metric,
                    "statistic": column.statistic,
                    "value": value,
                    "support": support,
                    "scored": scored,
                },
                shape=value.shape,
                reason=_why(column.reason, support),
            )
            result.append(cells)
        return result

    return compute


def _at(cuts: list[int], of: Callable[[Array], Array], values: Array) -> Array:
    return of(values[:, :, cuts])


def _why(reason: str | None, support: Array) -> Any:
    """Why numbers are undefined: for the metric's own reason, unless they rest on no datum."""
    if reason is None or support.all():
        return reason or _NOBODY
    return np.where(support > 0, reason, _NOBODY)


def mean_of(*needs: str) -> Compute:
    """Make the mean over datums of a tally.

    Args:
        *needs: the tally; several if they contain a metric's cut-offs together.
    """
    return _over_datums(
        needs, lambda total, many, settings: _rounded(ratio(total, many), settings.rules.decimals)
    )


def sum_of(need: str) -> Compute:
    """Make the sum over datums of a tally."""
    return _over_datums((need,), lambda total, many, settings: total)


def pooled(need: str, metric: str, formula: Callable[[Array, Any], Array]) -> Compute:
    """Make a formula of sums over datums.

    Args:
        formula: from sums [group, n] and settings to float64 [group], NaN if undefined.
    """

    def compute(view: StatsView, settings: Any) -> list[Cells]:
        column = view.columns[need][-1]
        total, scored = view.total(column)
        value = np.full(total.shape[0], np.nan)
        some = scored[:, 0, 0] > 0
        value[some] = formula(total[some, 0], settings)
        shape = (value.size, 1, 1)
        return [
            Cells(
                axes=AXES,
                values={"parameters": column.parameters, "k": (None,)},
                columns={
                    "metric": metric,
                    "statistic": None,
                    "value": value[:, None, None],
                    "support": view.support[:, None, None],
                    "scored": scored[:, :, :1],
                },
                shape=shape,
                reason=np.where(some, column.reason or _NOBODY, _NOBODY)[:, None, None],
            )
        ]

    return compute


def geometric_of(need: str, metric: str) -> Compute:
    """Make the geometric mean over datums of a tally.

    Values are at least 1e-5, since one 0 would make the mean 0.
    """
    return _over_datums(
        (need,),
        lambda total, many, settings: np.exp(ratio(total, many)),
        of=lambda values: np.log(np.maximum(values, 1e-5)),
        metric=metric,
    )


def _rounded(values: Array, decimals: int | None) -> Array:
    """Round as Python does, for dialects that round pooled values."""
    if decimals is None:
        return values
    return np.array([round(float(value), decimals) for value in values.ravel()]).reshape(
        values.shape
    )


MEANS = {one: rf"\frac{{1}}{{n}} \sum_{one} " for one in ("d", "q")}
"""Means over datums and over queries, in TeX."""


def mean_metric(
    task: str, name: str, need: str, *, over: str = "d", formula: str, **rest: Any
) -> Metric:
    """Define a metric: unless ``compute`` is given, the mean over datums of a need.

    Args:
        over: symbol of the datums.
        formula: in TeX, of one datum for means.
        **rest: other fields of :class:`~evalengine.metrics.Metric`.
    """
    if "compute" not in rest:
        formula, rest["compute"] = MEANS[over] + formula, mean_of(need)
    return Metric(name=name, task=task, formula=formula, **{"needs": (need,), **rest})


# Edit rates from sums of edits and lengths.


def edit_rate(counts: Array) -> Array:
    """Divide edits by lengths.

    Args:
        counts: [r, 2]: edits, length of the references.

    Returns:
        float64 [r], 0 or more; NaN if the length is 0.
    """
    return ratio(counts[:, 0], counts[:, 1])


def translation_rate(counts: Array, *, percent: bool = False) -> Array:
    """Divide edits by lengths, as in sacrebleu 2.6: for empty references 1, or 0 without edits.

    Args:
        counts: [r, 2]: edits, mean length of the references.
        percent: scale to 100.

    Returns:
        float64 [r], 0 or more.
    """
    value = edit_rate(counts)
    value = np.where(counts[:, 1] > 0, value, (counts[:, 0] > 0).astype(np.float64))
    return value * 100 if percent else value
