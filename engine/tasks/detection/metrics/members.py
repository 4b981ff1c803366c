"""Labels that enter a mean, and means over them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ....schemas.arrays import Array
from ....tally.ranked_view import RankedView

if TYPE_CHECKING:
    from ..settings import Settings


def present(view: RankedView) -> Array:
    """Labels with a prediction or a ground truth, bool [group, label]."""
    here: Array = (view.n_predictions + view.n_ground_truths) > 0
    return here


def present_keys(view: RankedView) -> Array:
    """Label keys with a label present, bool [group, key]."""
    here: Array = sum_by_key(view, present(view)) > 0
    return here


def sum_by_key(view: RankedView, array: Array) -> Array:
    """Return sums over the labels of each key, ignoring NaN: [group, label, ...] to key."""
    keys = key_members(view)
    out = np.zeros((array.shape[0], len(keys), *array.shape[2:]), np.result_type(array, np.int64))
    for k, members in enumerate(keys):
        out[:, k] = np.nansum(array[:, members], axis=1)
    return out


def key_members(view: RankedView) -> list[Array]:
    """Label codes of each key."""
    labels = view.labels
    return [np.flatnonzero(labels.key == k) for k in range(len(labels.key_names))]


def at_ious(view: RankedView, ious: tuple[float, ...]) -> list[int]:
    return [view.tally.variants.threshold_index(iou) for iou in ious]


def fill(settings: Settings) -> float:
    """Return the value of an unannotated label: 0, or NaN for undefined."""
    return 0.0 if settings.rules.unannotated_labels_are_zero else np.nan


def members(
    view: RankedView, settings: Settings, area: int, key: Array
) -> Iterator[tuple[Array, Array]]:
    """Yield the labels of a key that enter its means, for groups with equally many labels.

    Yields:
        int64 [g], groups; int64 [g, labels], at least one each.
    """
    if settings.rules.every_label:
        inside = np.ones((view.n_groups, key.size), bool)
    elif settings.rules.unannotated_labels_are_zero:
        inside = present(view)[:, key]
    else:
        inside = view.positives[:, key, area] > 0
    many = inside.sum(axis=1)
    for n in np.unique(many[many > 0]):
        groups = np.flatnonzero(many == n)
        yield groups, key[np.nonzero(inside[groups])[1].reshape(groups.size, n)]


def row_means(values: Array) -> Array:
    """Return means over the last axis, independent of the other axes.

    NumPy sums non-contiguous arrays in an order that depends on the other axes: the last bit of a
    label's mean would depend on other labels, slices or areas.
    """
    means: Array = np.ascontiguousarray(values).mean(axis=-1)
    return means
