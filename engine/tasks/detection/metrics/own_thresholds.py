"""Average precision of labels with individual IoU thresholds, as in KITTI."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import polars as pl

from ....schemas.arrays import Array
from ....tally.cells import Cells
from ....tally.ranked_view import RankedView
from .members import at_ious, fill, key_members, members, row_means

if TYPE_CHECKING:
    from ..settings import Settings


def own_thresholds(view: RankedView, settings: Settings) -> Array | None:
    """Return the index in iou_thresholds of each label's threshold, int64 [label], or None."""
    if not settings.label_ious:
        return None
    names = view.labels.frame["label_value"].cast(pl.String).to_list()
    known = {name: settings.iou_thresholds.index(iou) for name, iou in settings.label_ious.items()}
    return np.array([known.get(name, 0) for name in names], np.int64)


def at_own(cells: Cells, own: Array, n_ious: int) -> Cells:
    """Restrict cells by group, label, area and threshold to each label's threshold."""
    assert cells.keep is not None
    keep = cells.keep & (own[:, None, None] == np.arange(n_ious))
    return msgspec.structs.replace(cells, keep=keep)


def own_precision(view: RankedView, settings: Settings, own: Array, precision: Array) -> Array:
    """Means over levels of each label's precision at its own threshold, [group, label, area]."""
    at = at_ious(view, settings.iou_thresholds)
    each = np.array(at)[own][None, :, None, None, None]
    cells = np.take_along_axis(precision, each, axis=3)[:, :, :, 0]
    return np.where(view.positives > 0, row_means(cells), fill(settings))


def mean_of_labels(view: RankedView, settings: Settings, values: Array) -> Array:
    """Return means over labels, [group, label, area] to key."""
    keys = key_members(view)
    out = np.full((view.n_groups, len(keys), values.shape[-1]), np.nan)
    for k, a in np.ndindex(*out.shape[1:]):
        for groups, labels in members(view, settings, a, keys[k]):
            out[groups, k, a] = row_means(values[groups[:, None], labels, a])
    return out
