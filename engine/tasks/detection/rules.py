"""Rules of detection dialects: matching, arithmetic, defaults of options."""

from __future__ import annotations

import math

import msgspec

INF = math.inf


class Difficulty(msgspec.Struct, frozen=True):
    """Visibility limits of counted ground truths; the others are ignored.

    Attributes:
        name: value in column ``area``.
        height: pixels, exclusive minimum for ground truths and inclusive for predictions.
        occluded: highest level.
        truncated: largest share.
    """

    name: str
    height: float
    occluded: float
    truncated: float


class DetectionRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules on which the references disagree.

    Attributes:
        matching: ``greedy`` (COCO), ``nearest`` (nuScenes), ``locked`` (Valor's code), ``pool``
            (Valor's document), ``best`` (Pascal VOC) or ``anew`` (KITTI).
        from_extent: far corner = near corner + extent, as pycocotools computes on x, y, w, h.
        crowd: crowd regions are supported; otherwise they are ordinary ground truths.
        crowd_counts: crowd regions are ground truths, each matched by one prediction; otherwise
            they
            are ignored.
        ignore: ground truths flagged in column ``ignore``, and their matches, do not count.
        declared_only: drop rows of datums or labels that ``datums`` or ``labels`` do not declare,
            as
            COCO does for images and categories.
        iou_ceiling: thresholds above it are lowered to it.
        above: predictions hit if their IoU is above a threshold; otherwise, at or above.
        whole_pixels: boxes include their last pixels: width is xmax - xmin + 1. Otherwise
            xmax - xmin.
        decimals: rounding of predictions' scores and of their corners, before any computation; None
            for no rounding.
        levels: recall levels of the curve of interpolated precision, whose mean is AP.
        every_point: AP is the area under that curve instead, at all of its points.
        integer_grid: recall level j of 100 is reached once 100 tp >= j n, in integers; otherwise
            tp / n is compared with a float grid.
        epsilon: added to the denominator of precision in average precision.
        mean_over_cells: mAP and mAR are one mean over all threshold x recall x label cells, in
            that order; otherwise means over labels of per-label values. Equal up to rounding.
        unannotated_labels_are_zero: labels without ground truth count as 0 in means; otherwise
            they are undefined and skipped.
        masks_first: polygons become masks if other rows have masks, as in pycocotools;
            otherwise masks become polygons.
        box_areas: area ranges use a prediction's box if it has one in addition to its mask, as in
            pycocotools; otherwise the compared geometry.
        region_areas: if boxes are compared, area ranges use the polygon or mask of rows without a
            box, as in pycocotools; otherwise the bounding box.
        first_best: TIDE errors follow tidecv: a separate match of this many predictions per datum
            over all labels, the first of equal overlaps winning; with its arithmetic of AP, in
            percent. None to use the dialect's match.
        hulls: masks that become polygons become the convex hull of their pixels' upper-left
            corners, as in Valor's service; otherwise their outline.
        federated: names of the required lists of datums; empty if all predictions count.
            Predictions count only in datums in which their label was searched for: it is among the
            datum's ``positive_labels`` or ``negative_labels``, or has a ground truth there. Those
            without a match are ignored if it is among ``partial_labels``.
        needs_area: sides whose rows of zero or infinite area are dropped.
        sized_by_box: the size of people is a share of their box, even if areas are annotated.
        compares: supported values of ``iou_type``.
        alike: similarity of oriented boxes: ``exact``, the shared area, or the method of another
            tool.
        crossing: self-intersecting quadrilaterals are used unchanged, with parts of opposite
            orientation subtracted; otherwise they are refused.
        cap_of_datum: the cap on predictions is per datum over all labels, by score, and predictions
            beyond it are dropped; otherwise it is per datum and label.
        linear: precision is linear between points, and AP uses precision above this value at
            recalls above it; None for interpolated precision.
        later_first: among equal scores the later row comes first, whatever its datum; otherwise
            rows are ordered by datum, then row.
        every_label: all labels enter means, including those only declared by ``labels``.
        ranges: label -> maximum distance from the sensor, in metres, of objects that count.
        unjudged: label -> true-positive errors that are meaningless for it.
        half_turns: labels whose front and back are alike.
        most_of_label: number of best predictions per label that count, over all datums; 0 for no
            limit.
        difficulties: replacement of area ranges.
        positions: indices of the recall levels whose mean is AP; see
            :mod:`evalengine.tally.recall_positions`. None for interpolated precision.
        label_ious: label -> its IoU threshold, the lowest being that of others; unless other
            thresholds are requested, AP of a label uses only its threshold.
        neighbours: label -> label whose predictions may also match its ground truths.
        unscored: labels whose ground truths do not count.
        region: label of ground truths that are regions, in which boxes do not count.
    """

    matching: str = "greedy"
    from_extent: bool = True
    crowd: bool = True
    crowd_counts: bool = False
    ignore: bool = False
    declared_only: bool = False
    iou_ceiling: float = 1.0
    above: bool = False
    whole_pixels: bool = False
    decimals: tuple[int, int] | None = None
    levels: tuple[float, ...] = tuple(x * 0.01 for x in range(101))
    every_point: bool = False
    integer_grid: bool = False
    epsilon: float = 0.0
    linear: float | None = None
    later_first: bool = False
    every_label: bool = False
    ranges: dict[str, float] = {}
    unjudged: dict[str, tuple[str, ...]] = {}
    half_turns: tuple[str, ...] = ()
    mean_over_cells: bool = False
    unannotated_labels_are_zero: bool = False
    masks_first: bool = False
    box_areas: bool = False
    region_areas: bool = False
    hulls: bool = False
    federated: tuple[str, ...] = ()
    needs_area: tuple[str, ...] = ()
    cap_of_datum: bool = False
    most_of_label: int = 0
    difficulties: tuple[Difficulty, ...] = ()
    positions: tuple[int, ...] | None = None
    label_ious: dict[str, float] = {}
    neighbours: dict[str, str] = {}
    unscored: tuple[str, ...] = ()
    region: str | None = None
    sized_by_box: bool = False
    compares: tuple[str, ...] = ("bbox", "obb", "probiou", "segm", "boundary")
    alike: str = "exact"
    crossing: bool = False
    first_best: int | None = None


class DetectionDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """Default values of options.

    Attributes:
        metrics: default set.
        iou_thresholds: IoU thresholds of averages.
        iou_thresholds_to_return: those with separate AP and mAP rows.
        score_thresholds: thresholds of curves and counts.
        pr_curve_iou_threshold: IoU threshold of the score-threshold curves.
        pr_curve_max_examples: examples per cell of the detailed curves.
        max_detections: caps per datum and label; empty for none.
        area_ranges: named ranges in squared pixels, both ends included; empty for none.
        background_iou: IoU up to which a wrong prediction is on background.
        keypoint_sigmas: name of the sigmas; None for COCO's if the number of points matches.
    """

    metrics: tuple[str, ...]
    iou_thresholds: tuple[float, ...]
    iou_thresholds_to_return: tuple[float, ...] = (0.5, 0.75)
    score_thresholds: tuple[float, ...] = tuple(x / 100 for x in range(5, 100, 5))
    pr_curve_iou_threshold: float = 0.5
    pr_curve_max_examples: int = 1
    max_detections: tuple[int, ...] = ()
    area_ranges: dict[str, tuple[float, float]] = {}
    background_iou: float = 0.1
    keypoint_sigmas: str | None = None
