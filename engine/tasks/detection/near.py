"""IoUs of polygons and masks: pairs of one datum that may overlap, then what they share.

IoU = i / (a + a' - i), and i / a of the detection against a crowd region, in double precision as
pycocotools divides; pixels of masks are whole numbers, so that the same bits come out. Boundary
IoU is the same of the boundaries' pixels, and the smaller of it and the mask's counts; against a
crowd region the mask's alone. Source: pycocotools ``rleIou``; Cheng et al., "Boundary IoU", CVPR
2021, and its code boundary-iou-api for boundaries.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from ...kernels.matching import Pairs
from ...kernels.pairs import candidates, rows_by_datum, truths_by_datum
from ..workers import Workers
from .matching import LaidOut
from .shapes import Shapes

Array = np.ndarray[Any, Any]


class Near(msgspec.Struct, frozen=True):
    """Pairs of one datum with their IoU, by datum, prediction and ground truth.

    Attributes:
        prediction: int32 [k], place in the layout of predictions.
        ground_truth: int32 [k], place in the layout of ground truths.
        iou: float64 [k], above 0.
    """

    prediction: Array
    ground_truth: Array
    iou: Array

    def at_least(self, lowest: float) -> Near:
        """Those whose IoU is at least ``lowest``."""
        keep = self.iou >= lowest
        return Near(self.prediction[keep], self.ground_truth[keep], self.iou[keep])

    def given(self, n: int) -> Pairs:
        """The pairs by prediction, as matching reads them.

        Args:
            n: number of predictions.
        """
        start = np.zeros(n + 1, np.int64)
        np.cumsum(np.bincount(self.prediction, minlength=n), out=start[1:])
        order = np.argsort(self.prediction, kind="stable")
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
    """Pairs of one datum and key whose IoU is above 0 and may be relied on from ``lowest`` on.

    Args:
        sides: predictions and ground truths as they are laid out.
        shapes: what is compared, by row of the tables.
        keys: int32 [n], [m] by place: rows of different keys do not meet.
        crowd: bool [m] by place, whether a ground truth counts as a crowd region.
        n_datums: number of datums.
        lowest: pairs that cannot reach it may be missing; 0 for all.
        threads: where the work runs.
    """
    laid, truths = sides
    start, place = rows_by_datum(laid.datum, n_datums)
    area, truth_area = shapes[0].area[laid.row], shapes[1].area[truths.row]
    ours = start, place, laid.boxes, area, keys[0]
    theirs = truths_by_datum(truths.datum, n_datums, truths.boxes, truth_area, keys[1], crowd)
    none = np.empty(0, np.int32)
    found = threads.over(start, lambda first, last: candidates(first, last, ours, theirs, lowest))
    p, g = (np.concatenate(parts) for parts in zip((none, none), *found, strict=True))
    rows, truth_rows = laid.row[p], truths.row[g]
    iou = overlap(shapes, rows, truth_rows, crowd[g], threads)
    keep = iou > 0
    return Near(p[keep], g[keep], iou[keep])


def overlap(
    shapes: tuple[Shapes, Shapes], rows: Array, truth_rows: Array, crowd: Array, threads: Workers
) -> Array:
    """IoU of pairs, float64 [k]; against a crowd region the share of the detection.

    Args:
        shapes: what is compared, by row of the tables.
        rows: int64 [k], the detection of each pair.
        truth_rows: int64 [k], its ground truth.
        crowd: bool [k], whether that counts as a crowd region.
        threads: where the work runs.
    """
    iou = np.full(rows.size, np.inf)
    counts = np.ones(rows.size, np.bool_)
    for mine, other in zip(shapes[0].layers, shapes[1].layers, strict=True):
        shared = mine.shared(other, rows, truth_rows, threads.over)
        own = mine.area[rows]
        union = np.where(crowd, own, own + other.area[truth_rows] - shared)
        part = np.divide(shared, union, out=np.zeros(rows.size), where=union > 0)
        np.minimum(iou, part, out=iou, where=counts)
        counts = ~crowd  # against a crowd the mask's share alone counts, not its boundary's
    return iou
