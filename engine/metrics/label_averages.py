"""Averages over the labels of a key: which labels count, and macro, micro and weighted means."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..schemas.arrays import Array
from ..tally.cells import Cells
from ..tally.scored_view import ScoredView

if TYPE_CHECKING:
    from ..tasks.classification.settings import Settings


NO_TRUTH = "no ground truth"
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
    used: Array = (plain.positives > 0) | (plain.hard.predicted > 0)
    return used


def present(view: ScoredView, settings: Settings) -> Array:
    """Labels that get rows, bool [group, label]."""
    here = in_use(view)
    if settings.rules.listed_labels and view.scored is not None:
        here = here | (sum(view.plain.listed) > 0)
    if view.declared is not None:
        here = here | view.declared
    return here


def members(view: ScoredView, settings: Settings) -> Array:
    """Labels that enter averages, bool [group, label]."""
    if view.declared is not None and settings.rules.declared_labels_only:
        return np.broadcast_to(view.declared, view.shape)
    return present(view, settings)


def by_key(view: ScoredView, array: Array, where: Array | None = None) -> Array:
    """Sum over the labels of each key, ignoring NaN: [group, label, ...] to key."""
    n_keys = len(view.labels.key_names)
    out = np.zeros((array.shape[0], n_keys, *array.shape[2:]))
    if where is not None:
        array = np.where(where.reshape(*where.shape, *[1] * (array.ndim - 2)), array, 0)
    for k in range(n_keys):
        out[:, k] = np.nansum(array[:, view.labels.key == k], axis=1)
    return out


def macro(view: ScoredView, value: Array, where: Array) -> Array:
    """Plain means over defined labels, [group, key, ...]; NaN without any."""
    defined = where.reshape(*where.shape, *[1] * (value.ndim - 2)) & ~np.isnan(value)
    return ratio(by_key(view, np.where(defined, value, 0.0)), by_key(view, defined))


def weighted(view: ScoredView, value: Array, where: Array, weight: Array) -> Array:
    """Means over defined labels by weight, [group, key, ...]; NaN without any weight."""
    more = [1] * (value.ndim - 2)
    defined = where.reshape(*where.shape, *more) & ~np.isnan(value)
    by = np.where(defined, weight.reshape(*weight.shape, *more), 0.0)
    return ratio(by_key(view, np.where(defined, value, 0.0) * by), by_key(view, by))


def label_cells(
    view: ScoredView, value: Array, keep: Array, reason: Array | str, support: Array, **columns: Any
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
        columns={
            "value": value,
            "average": average,
            "support": support,
            **columns,
        },
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
    inside = members(view, settings)
    neither = settings.rules.neither
    shown = value
    if neither is not None:
        unused = ~in_use(view)
        shown = np.where(unused, neither, value)
        inside = inside & ~unused
    rests = (
        {} if trials is None else {TRIALS: trials(counts.right, counts.predicted, counts.actual)}
    )
    cells = [label_cells(view, shown, present(view, settings), reason, counts.actual, **rests)]
    if not settings.rules.unused_in_means:
        inside = inside & in_use(view)
    sums = [by_key(view, c, inside) for c in (counts.right, counts.predicted, counts.actual)]
    why: dict[str, Array | str] = {
        "macro": reason,
        "micro": reason,
        "weighted": np.where(sums[2] > 0, "no label with ground truth has a value", NO_TRUTH),
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
