"""Average orientation similarity: KITTI's AP of boxes that must see objects at the right angle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ....metrics.registry import Metric
from ....tally.cells import Cells
from ....tally.ranked_view import RankedView
from ..dialects import ANGLES
from .averages import cells_of
from .members import row_means, sum_by_key
from .own_thresholds import at_own, mean_of_labels, own_precision, own_thresholds

if TYPE_CHECKING:
    from ..settings import Settings


def _aos(view: RankedView, settings: Settings) -> list[Cells]:
    """Compute AOS per label and IoU threshold, and its mean at the label thresholds."""
    own, ious = own_thresholds(view, settings), settings.iou_thresholds
    at = [view.tally.variants.threshold_index(iou) for iou in ious]
    similarity = view.similarity
    each = row_means(similarity[:, :, :, at])
    each[view.positives == 0] = np.nan
    support = view.positives[..., None]
    axes = ("group", "label", "area", "iou_threshold")
    (cells,) = cells_of(view, settings, axes, each, support, ious)
    if own is None:
        of_labels = row_means(each)
    else:
        cells = at_own(cells, own, len(ious))
        of_labels = own_precision(view, settings, own, similarity)
    mean = mean_of_labels(view, settings, of_labels)
    several = cells_of(view, settings, ("group", "key", "area"), mean,
                       sum_by_key(view, view.positives))  # fmt: skip
    return [cells, *several]


METRICS = (
    Metric(
        name="AOS",
        task="detection",
        frame="metrics",
        needs=("iou_thresholds", ANGLES),
        reads=("alpha",),
        params=("iou_thresholds",),
        aliases=("mAOS",),
        definition="AP with the sum of (1 + cos(alpha - alpha')) / 2 over true positives in the"
        " place of their number. Per label, and the mean over labels.",
        formula=r"\frac{1}{40} \sum_{k = 1}^{40} \max_{j \ge k}"
        r" \frac{\sum_{i = 1}^{\text{tp}_j} (1 + \cos(\phi_i - \hat{\phi}_i)) / 2}"
        r"{\text{tp}_j + \text{fp}_j}",
        source="KITTI evaluate_object.cpp; Geiger, Lenz, Urtasun, CVPR 2012",
        compute=_aos,
    ),
)
