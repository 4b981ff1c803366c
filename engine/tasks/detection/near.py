"""Pairs of similar geometry within a datum, by the layers' similarity.

Boundaries use the smaller of boundary IoU and mask IoU; against a crowd region only the mask.
Source: Cheng et al., "Boundary IoU", CVPR 2021, and its code boundary-iou-api.
"""

from __future__ import annotations

import msgspec
import numpy as np

from ...kernels.matching import Pairs
from ...kernels.pairs import rows_by_datum
from ...schemas.arrays import Array
from ..workers import Workers
from .layers import Meeting, Shapes
from .matching import LaidOut


class Near(msgspec.Struct, frozen=True):
    """Pairs within a datum and their similarity, by datum, prediction and ground truth.

    Attributes:
        prediction: int32 [k], index in the layout of predictions.
        ground_truth: int32 [k], index in the layout of ground truths.
        iou: float64 [k], above 0.
    """

    prediction: Array
    ground_truth: Array
    iou: Array

    def at_least(self, lowest: float) -> Near:
        keep = self.iou >= lowest
        return Near(self.prediction[keep], self.ground_truth[keep], self.iou[keep])

    def given(self, n: int) -> Pairs:
        """Return the pairs by prediction, for matching.

        Args:
            n: number of predictions.
        """
        start, order = rows_by_datum(self.prediction, n)
        return Pairs(start, self.ground_truth[order], self.iou[order])


def find_near(
    sides: tuple[LaidOut, LaidOut],
    shapes: tuple[Shapes, Shapes],
    keys: tuple[Array, Array],
    crowd: Array,
    n_datums: int,
    lowest: float,
    threads: Workers,
) -> Near:
    """Find the pairs of one datum and key with IoU above 0, complete from ``lowest`` on.

    Args:
        sides: layouts of predictions and ground truths.
        shapes: by row of the tables.
        keys: int32 [n], [m] in layout order: only rows of the same key are paired.
        crowd: bool [m] in layout order, ground truths that count as crowd regions.
        lowest: pairs below it may be missing; 0 for all.
    """
    laid, truths = sides
    meeting = Meeting(
        datum=(laid.datum, truths.datum),
        key=keys,
        row=(laid.row, truths.row),
        boxes=(laid.boxes, truths.boxes),
        crowd=crowd,
        n_datums=n_datums,
        lowest=lowest,
    )
    p, g = shapes[0].layers[0].candidates(shapes[1].layers[0], meeting, threads)
    rows, truth_rows = laid.row[p], truths.row[g]
    iou = overlap(shapes, rows, truth_rows, crowd[g], threads)
    keep = iou > 0
    return Near(p[keep], g[keep], iou[keep])


def overlap(
    shapes: tuple[Shapes, Shapes], rows: Array, truth_rows: Array, crowd: Array, threads: Workers
) -> Array:
    """Return the similarity of pairs, float64 [k]: IoU, or against a crowd the detection's share.

    Args:
        shapes: by row of the tables.
        rows: int64 [k], the detection of each pair.
        truth_rows: int64 [k], its ground truth.
        crowd: bool [k], the ground truth is a crowd region.
    """
    iou = np.full(rows.size, np.inf)
    counts = np.ones(rows.size, np.bool_)
    for mine, other in zip(shapes[0].layers, shapes[1].layers, strict=True):
        part = mine.similarity(other, rows, truth_rows, crowd, threads)
        np.minimum(iou, part, out=iou, where=counts)
        counts = ~crowd  # against a crowd the mask's share alone counts, not its boundary's
    return iou
