"""What detection dialects choose: rules of matching and arithmetic, and defaults of options."""

from __future__ import annotations

import math

import msgspec

INF = math.inf


class Difficulty(msgspec.Struct, frozen=True):
    """Which ground truths count, by how they are seen; the others are ignored.

    Attributes:
        name: in the column ``area``.
        height: pixels that those have more than, and predictions at least.
        occluded: the highest level.
        truncated: the largest share.
    """

    name: str
    height: float
    occluded: float
    truncated: float


class DetectionRules(msgspec.Struct, frozen=True, kw_only=True):
    """What the references disagree about.

    Attributes:
        matching: ``greedy`` (COCO), ``nearest`` (nuScenes), ``locked`` (Valor's code), ``pool``
            (Valor's document), ``best`` (Pascal VOC) or ``anew`` (KITTI).
        from_extent: far corner = near corner + extent, as pycocotools computes on x, y, w, h.
        crowd: whether crowd regions are honoured; otherwise they are ordinary ground truths.
        crowd_counts: crowd regions are ground truths to be found, each by one prediction; otherwise
            they are ignored.
        ignore: whether ground truths flagged in a column ``ignore`` count for nothing, and what
            they match likewise.
        declared_only: rows of datums or labels that ``datums`` or ``labels`` do not declare are
            left out, as COCO leaves out what is not among its images and categories.
        iou_ceiling: thresholds above it are lowered to it.
        above: predictions hit where their IoU is above a threshold; otherwise from it on.
        whole_pixels: boxes are of pixels, of which the last ones lie in the box: a box is
            xmax - xmin + 1 wide. Otherwise xmax - xmin.
        decimals: of predictions' scores and of their corners, to which they are rounded before
            anything else; None for as they are.
        levels: recall levels of the curve of interpolated precision, whose mean AP is.
        every_point: AP is the area under that curve instead, all of whose points count.
        integer_grid: recall level j of 100 is reached once 100 tp >= j n, in integers; otherwise
            tp / n is compared with a float grid.
        epsilon: added to the denominator of precision in average precision.
        mean_over_cells: mAP and mAR are one mean over all threshold x recall x label cells, in
            that order; otherwise means over labels of per-label values. Equal but for rounding.
        unannotated_labels_are_zero: labels without ground truth count as 0 in means; otherwise
            they are undefined and left out.
        masks_first: polygons become masks where other rows have masks, as in pycocotools;
            otherwise masks become polygons there.
        box_areas: area ranges go by a prediction's box where it has one beside its mask, as in
            pycocotools; otherwise by what is compared.
        region_areas: where boxes are compared, area ranges go by the polygon or mask of rows that
            have no box of their own, as in pycocotools; otherwise by the box around it.
        first_best: errors are told as tidecv does: by a match of its own, of this many predictions
            of a datum over all its labels, the first of equal overlaps winning; with its
            arithmetic of AP, in percent. None where they rest on the dialect's own match.
        hulls: masks that become polygons become the convex hull of their pixels' upper-left
            corners, as in Valor's service; otherwise their outline.
        federated: predictions count only in datums in which their label was looked for: it is
            among the datum's ``positive_labels`` or ``negative_labels``, or has a ground truth
            there; and those that hit nothing are ignored where it is among ``partial_labels``.
            The lists that datums must have; none where all predictions count.
        needs_area: sides whose rows of no area, or an infinite one, are left out.
        sized_by_box: people are as large as a share of their boxes, even where areas are annotated.
        compares: what may be compared, by ``iou_type``.
        alike: how alike oriented boxes are: ``exact``, the area they share, or as another tool
            computes it.
        crossing: corners whose sides cross count as they lie, what is surrounded the other way
            round less; otherwise they are refused.
        cap_of_datum: the cap on predictions is one of a datum over all its labels, by score, and
            those beyond it take no part; otherwise it is of a datum and label.
        linear: precision lies on lines between points, and AP is made of what lies above this at
            recalls beyond it; None where it is interpolated.
        later_first: of equal scores the later row goes first, whatever its datum; otherwise rows
            stand by datum, then as they are.
        every_label: all labels enter means, those too that only ``labels`` declares.
        ranges: label -> how far from the sensor, in metres, its objects still count.
        unjudged: label -> errors of true positives that mean nothing of it.
        half_turns: labels whose front and back are alike.
        most_of_label: predictions of a label that count, the best of all datums; 0 for no limit.
        difficulties: take the place of area ranges.
        positions: recall levels, by place, whose mean AP is; see
            :mod:`evalengine.tally.recall_positions`. None where precision is interpolated.
        label_ious: label -> its IoU threshold, the lowest being that of others; where there are
            such and no others are asked for, AP of a label is at its own alone.
        neighbours: label -> the label whose predictions may be of its ground truths, too.
        unscored: labels whose ground truths are not to be found.
        region: label of ground truths that are regions: boxes that lie in them count for nothing.
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
    """Defaults of the options that were not given.

    Attributes:
        metrics: default set.
        iou_thresholds: IoU thresholds of averages.
        iou_thresholds_to_return: those with AP and mAP rows of their own.
        score_thresholds: of curves and counts.
        pr_curve_iou_threshold: IoU threshold of the score-threshold curves.
        pr_curve_max_examples: examples per cell of the detailed curves.
        max_detections: caps per datum and label; empty for none.
        area_ranges: named ranges in squared pixels, both ends included; empty for none.
        background_iou: IoU up to which a wrong prediction lies on the background.
        keypoint_sigmas: name of the sigmas; None for COCO's where there are as many points.
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
