"""Shared parts of segmentation metrics: labels that count, ratios, rows per label and per key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ....metrics.registry import Metric
from ....schemas.arrays import Array
from ....tally.cells import Cells
from ....tally.pixels import PixelView
from ..dialects import DECLARED, TRUE

if TYPE_CHECKING:
    from ..settings import Settings


PIXEL_OPTIONS = ("ignore_index", "background", "resample")
NO_LABEL = "no label to average over"
NO_TRUTH = "no pixel of this label in the ground truths"
NOT_PREDICTED = "no pixel predicted as this label"
NO_PIXEL = "no pixel of this label on either side"


def metric(
    name: str,
    definition: str,
    source: str,
    compute: Callable[[PixelView, Settings], list[Cells]] | None,
    **more: Any,
) -> Metric:
    """Define a segmentation metric.

    Args:
        definition: one sentence with the formula.
        source: origin of the definition.
        compute: maps a view and settings to cells; None if the task builds the frame.
        **more: other fields of :class:`Metric`.
    """
    fields: dict[str, Any] = {
        "frame": "metrics",
        "needs": ("areas",),
        **more,
        "params": PIXEL_OPTIONS + more.get("params", ()),
    }
    return Metric(
        name=name,
        task="segmentation",
        definition=definition,
        source=source,
        compute=compute,
        **fields,
    )


def ratio(top: Array, bottom: Array, fill: float | None = None) -> Array:
    """Divide in float64; ``fill``, or NaN for None, for a zero denominator."""
    out = np.full(np.broadcast_shapes(top.shape, bottom.shape), np.nan if fill is None else fill)
    np.divide(top, bottom, out=out, where=bottom != 0)
    return out


def iou(right: Array, found: Array, truth: Array) -> tuple[Array, Array]:
    """Numerator and denominator of the intersection over the union."""
    return right, truth + found - right


def precision(right: Array, found: Array, truth: Array) -> tuple[Array, Array]:
    """Numerator and denominator of precision."""
    return right, found


def recall(right: Array, found: Array, truth: Array) -> tuple[Array, Array]:
    """Numerator and denominator of recall."""
    return right, truth


def dice(right: Array, found: Array, truth: Array) -> tuple[Array, Array]:
    """Numerator and denominator of F1, which of pixels is Dice's coefficient."""
    return 2 * right, truth + found


Ratio = Callable[[Array, Array, Array], tuple[Array, Array]]
WHY: dict[Ratio, str] = {
    iou: NO_PIXEL,
    precision: NOT_PREDICTED,
    recall: NO_TRUTH,
    dice: NO_PIXEL,
}
"""Ratio -> why it is undefined."""


def used(view: PixelView) -> Array:
    """Labels with pixels on either side, bool [group, label]."""
    here: Array = (view.truth + view.found) > 0
    return here


def _chosen(view: PixelView, rule: str, *, declared: bool) -> Array:
    if rule == TRUE:
        true: Array = view.truth > 0
        return true
    here = used(view)
    if view.whole.declared is not None and (declared or rule == DECLARED):
        here = here | view.whole.declared
    return here


def rows(view: PixelView, settings: Settings) -> Array:
    """Labels that have rows, bool [group, label]."""
    return _chosen(view, settings.rules.rows, declared=True)


def members(view: PixelView, settings: Settings) -> Array:
    """Labels that enter means, bool [group, label]."""
    return _chosen(view, settings.rules.means, declared=False)


def members_of(of: Ratio, view: PixelView, settings: Settings) -> Array:
    """Labels that enter the averages of a ratio, bool [group, label]."""
    inside = members(view, settings)
    if of is iou and not settings.rules.ignored_in_iou:
        inside = inside & ~view.whole.ignored
    return inside


def by_key(view: PixelView, values: Array, where: Array) -> Array:
    """Sum over the chosen labels of each key, ignoring NaN: [group, key]."""
    n_keys = len(view.labels.key_names)
    chosen = np.where(where, values, 0)
    out = np.zeros((values.shape[0], n_keys), np.result_type(values, np.int64))
    for k in range(n_keys):
        out[:, k] = np.nansum(chosen[:, view.labels.key == k], axis=1)
    return out


def mean_over(view: PixelView, values: Array, where: Array) -> Array:
    """Means over the chosen labels of each key whose value is defined, [group, key]."""
    defined = where & ~np.isnan(values)
    return ratio(by_key(view, values, defined), by_key(view, defined, defined))


def label_cells(view: PixelView, settings: Settings, value: Array, reason: str | None) -> Cells:
    """One row per label; ``support`` is its pixels in the ground truths."""
    return Cells(
        axes=("group", "label"),
        shape=value.shape,
        keep=rows(view, settings),
        columns={"value": value, "support": view.truth},
        reason=reason,
    )


def key_cells(
    view: PixelView,
    value: Array,
    reason: Array | str,
    *,
    average: str | None = None,
    support: Array | None = None,
    scored: Array | None = None,
) -> Cells:
    """One row per label key; ``support`` is its labelled pixels in the ground truths."""
    every = np.ones(view.truth.shape, bool)
    columns: dict[str, Any] = {
        "value": value,
        "average": average,
        "support": by_key(view, view.truth, every) if support is None else support,
    }
    if scored is not None:
        columns["scored"] = scored
    return Cells(
        axes=("group", "key"),
        shape=value.shape,
        keep=view.images > 0,
        columns=columns,
        reason=reason,
    )
