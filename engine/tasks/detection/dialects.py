"""Detection dialects: matching, arithmetic and defaults of each reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from ...dialects import Dialect, of_task
from ...schemas.display import EACH, PARTS, Entry, Layout

# Rules of detection dialects: matching, arithmetic, defaults of options.

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
        declared_only: columns whose rows are dropped if ``datums`` or ``labels`` do not declare
            their value, as COCO does for images and categories.
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
        one_to_one: pairs of shapes are reduced to the largest one-to-one matching beforehand.
        region_overlap: predictions of which at least this share is inside the regions of their
            datum do not count; None to ignore regions.
        pixel_regions: shares are of pixels, by VisDrone's toolkit, and ground truths inside do not
            count either.
        ranked_in_datum: caps on predictions are per datum over all labels.
        ignored_missed: ignored ground truths absorb predictions as crowds do, and count as missed.
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
        iou_kind: similarity of oriented boxes: ``exact``, the shared area, or the method of another
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
            :mod:`evalengine.tallies.ranked_points`. None for interpolated precision.
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
    declared_only: tuple[str, ...] = ()
    iou_ceiling: float = INF
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
    iou_kind: str = "exact"
    crossing: bool = False
    first_best: int | None = None
    one_to_one: bool = False
    region_overlap: float | None = None
    pixel_regions: bool = False
    ranked_in_datum: bool = False
    ignored_missed: bool = False


# Detection dialects: matching, arithmetic and defaults of each reference.

# numpy.linspace(0.5, 0.95, 10), written out: the grid COCO compares with is not round decimals.
_COCO_IOUS = (*(0.5 + i * ((0.95 - 0.5) / 9) for i in range(9)), 0.95)
_ROUND_IOUS = tuple(x / 100 for x in range(50, 100, 5))
_COCO_MEANS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "AP": (("mAPAveragedOverIOUs", "APAveragedOverIOUs"), ("mAP",)),
    "AR": (("mAR",), ("mARAtIOU",)),
}
_AVERAGES = ("mAPAveragedOverIOUs", "mAP", "mAR", "APAveragedOverIOUs", "AP", "AR")
_MEANS = ("mAPAveragedOverIOUs", "mAP", "AP")
_FEDERATED = frozenset({"federated"})
_EPSILON = 2.0**-52  # numpy.spacing(1)
_DECLARED = ("datum_id", "label_value")

_COCO_RULES = DetectionRules(
    matching="greedy",
    from_extent=True,
    crowd=True,
    iou_ceiling=1 - 1e-10,
    epsilon=_EPSILON,
    mean_over_cells=True,
    region_areas=True,
)
_OWN_COCO_RULES = msgspec.structs.replace(
    _COCO_RULES, declared_only=_DECLARED, masks_first=True, box_areas=True
)
COCO_AREAS = {
    "all": (0.0, 1e5**2),
    "small": (0.0, 32.0**2),
    "medium": (32.0**2, 96.0**2),
    "large": (96.0**2, 1e5**2),
}
"""COCO's area ranges, in pixels."""

DEFAULTS: dict[str, Any] = {
    "iou_thresholds": _COCO_IOUS,
    "iou_thresholds_to_return": (0.5, 0.75),
    "score_thresholds": tuple(x / 100 for x in range(5, 100, 5)),
    "pr_curve_iou_threshold": 0.5,
    "pr_curve_max_examples": 1,
    "max_detections": (),
    "area_ranges": {},
    "background_iou": 0.1,
}
_COCO_DEFAULTS = {**DEFAULTS, "max_detections": (1, 10, 100), "area_ranges": COCO_AREAS}
_POINT_DEFAULTS = {
    **DEFAULTS,
    "max_detections": (20,),
    "area_ranges": {name: COCO_AREAS[name] for name in ("all", "medium", "large")},
}
_VOC_RULES = DetectionRules(
    matching="best", from_extent=False, crowd=False, ignore=True, whole_pixels=True
)
# 0:0.1:1 of MATLAB, which counts from both ends to the middle; NumPy counts from one, so that 0.6
# and 0.7 are a bit higher there. 0.3 is 3 * 0.1 in both: a recall of 3/10 does not reach it.
_MATLAB_TENTHS = (*(x * 0.1 for x in range(5)), 0.5, *(1 - x * 0.1 for x in range(4, -1, -1)))
_NUMPY_TENTHS = tuple(x * 0.1 for x in range(11))
_VOC_DEFAULTS = {**DEFAULTS, "iou_thresholds": (0.5,)}
_OPEN_IMAGES_RULES = DetectionRules(
    matching="best",
    from_extent=False,
    crowd_counts=True,
    ignore=True,
    declared_only=_DECLARED,
    every_point=True,
    federated=("negative_labels",),
    needs_area=("predictions",),
)
_OPEN_IMAGES_DEFAULTS = {**_VOC_DEFAULTS, "max_detections": (10_000,)}
_LVIS_RULES = msgspec.structs.replace(
    _COCO_RULES,
    crowd=False,
    ignore=True,
    declared_only=_DECLARED,
    masks_first=True,
    box_areas=True,
    federated=("negative_labels", "partial_labels"),
    needs_area=("predictions", "ground_truths"),
    cap_of_datum=True,
)
_LVIS_METRICS = (*_AVERAGES, "APr", "APc", "APf")
_LVIS_DEFAULTS = {**_COCO_DEFAULTS, "max_detections": (300,)}
_FAR = {"car": 50.0, "truck": 50.0, "bus": 50.0, "trailer": 50.0, "construction_vehicle": 50.0}
_CLOSE = {"pedestrian": 40.0, "motorcycle": 40.0, "bicycle": 40.0}
_NUSCENES_RULES = DetectionRules(
    matching="nearest",
    crowd=False,
    above=True,
    linear=0.1,
    later_first=True,
    unannotated_labels_are_zero=True,
    every_label=True,
    ranges={**_FAR, **_CLOSE, "traffic_cone": 30.0, "barrier": 30.0},
    unjudged={"traffic_cone": ("AOE", "AVE", "AAE"), "barrier": ("AVE", "AAE")},
    half_turns=("barrier",),
    compares=("distance",),
)
_KITTI_RULES = DetectionRules(
    matching="anew",
    from_extent=False,
    crowd=False,
    ignore=True,
    above=True,
    levels=tuple(k / 40 for k in range(41)),
    positions=tuple(range(1, 41)),
    difficulties=(
        Difficulty("all", -INF, INF, INF),
        Difficulty("easy", 40.0, 0.0, 0.15),
        Difficulty("moderate", 25.0, 1.0, 0.3),
        Difficulty("hard", 25.0, 2.0, 0.5),
    ),
    label_ious={"Car": 0.7},
    neighbours={"Van": "Car", "Person_sitting": "Pedestrian"},
    unscored=("Van", "Person_sitting", "Truck", "Tram", "Misc"),
    region="DontCare",
    compares=("bbox", "bev", "3d"),
)
_UNPREDICTED = frozenset({"DontCare", *_KITTI_RULES.unscored})
_KITTI_METRICS = ("AP", "mAPAveragedOverIOUs", "AOS")
_KITTI_DEFAULTS = {**DEFAULTS, "iou_thresholds": (0.5, 0.7)}
_VALOR_RULES = DetectionRules(matching="locked", from_extent=False, crowd=False, integer_grid=True)
_VALOR_METRICS = (*_AVERAGES, "PrecisionRecallCurve")
_ROUND_DEFAULTS = {**DEFAULTS, "iou_thresholds": _ROUND_IOUS}

DIALECTS = of_task(
    "detection",
    Dialect(
        name="standard",
        about="Valor's metric set and grouping on COCO's matching and arithmetic; no caps.",
        rules=msgspec.structs.replace(
            _COCO_RULES,
            ignore=True,
            compares=(*_COCO_RULES.compares, "keypoints", "3d", "bev"),
            region_overlap=0.5,
        ),
        metrics=_VALOR_METRICS,
        defaults=DEFAULTS,
        export="valor",
    ),
    Dialect(
        name="coco",
        about="pycocotools' COCOeval, to the bit.",
        rules=_OWN_COCO_RULES,
        means=_COCO_MEANS,
        metrics=_AVERAGES,
        defaults=_COCO_DEFAULTS,
        undefined=-1.0,
        export="coco",
        by_iou_type={"keypoints": "coco-keypoints", "3d": "coco-3d", "bev": "coco-3d"},
    ),
    Dialect(
        name="coco-keypoints",
        iou_type="keypoints",
        about="pycocotools' COCOeval of keypoints, to the bit: 20 detections, no small people.",
        rules=msgspec.structs.replace(_OWN_COCO_RULES, compares=("keypoints",)),
        means=_COCO_MEANS,
        metrics=(*_AVERAGES, "mARAtIOU"),
        defaults=_POINT_DEFAULTS,
        undefined=-1.0,
        export="coco",
    ),
    Dialect(
        name="coco-3d",
        about="COCO's protocol on 3-D boxes, without size ranges.",
        rules=msgspec.structs.replace(_OWN_COCO_RULES, compares=("3d", "bev")),
        metrics=_AVERAGES,
        defaults={**_COCO_DEFAULTS, "area_ranges": {"all": (0.0, INF)}},
        undefined=-1.0,
        export="coco",
    ),
    Dialect(
        name="boundary-iou-api",
        iou_type="boundary",
        about="boundary-iou-api for COCO, to the bit: coco with boundary IoU; ignore is read.",
        rules=msgspec.structs.replace(_OWN_COCO_RULES, ignore=True, compares=("boundary",)),
        metrics=_AVERAGES,
        defaults=_COCO_DEFAULTS,
        undefined=-1.0,
        export="coco",
    ),
    Dialect(
        name="crowdpose",
        iou_type="keypoints",
        about="xtcocotools' keypoints_crowd: CrowdPose's 14 points, sizes given by boxes.",
        rules=msgspec.structs.replace(_OWN_COCO_RULES, compares=("keypoints",), sized_by_box=True),
        means=_COCO_MEANS,
        metrics=(*_AVERAGES, "mARAtIOU"),
        defaults={
            **_POINT_DEFAULTS,
            "area_ranges": {"all": COCO_AREAS["all"]},
            "keypoint_sigmas": "crowdpose",
        },
        undefined=-1.0,
        export="coco",
    ),
    Dialect(
        name="lvis",
        about="lvis-api's LVISEval, to the bit: federated annotation, 300 detections an image.",
        rules=_LVIS_RULES,
        metrics=_LVIS_METRICS,
        defaults=_LVIS_DEFAULTS,
        undefined=-1.0,
        export="lvis",
        heeds=_FEDERATED,
    ),
    Dialect(
        name="lvis-fixed",
        about="As lvis, with 10,000 detections a class instead of 300 an image (Dave et al.).",
        rules=msgspec.structs.replace(_LVIS_RULES, cap_of_datum=False, most_of_label=10_000),
        metrics=_LVIS_METRICS,
        defaults={**_LVIS_DEFAULTS, "max_detections": ()},
        undefined=-1.0,
        export="lvis",
        heeds=_FEDERATED,
    ),
    Dialect(
        name="lvis-boundary",
        iou_type="boundary",
        about="As lvis, with boundary IoU.",
        rules=msgspec.structs.replace(_LVIS_RULES, compares=("boundary",)),
        metrics=_LVIS_METRICS,
        defaults=_LVIS_DEFAULTS,
        undefined=-1.0,
        export="lvis",
        heeds=_FEDERATED,
    ),
    Dialect(
        name="voc2007",
        about="Pascal VOC's development kit of 2007: 11 recall levels, difficult ones aside.",
        rules=msgspec.structs.replace(_VOC_RULES, levels=_MATLAB_TENTHS),
        metrics=("mAP", "AP"),
        defaults=_VOC_DEFAULTS,
    ),
    Dialect(
        name="voc2012",
        about="Pascal VOC's development kits since 2010: the area under the whole curve.",
        rules=msgspec.structs.replace(_VOC_RULES, every_point=True),
        metrics=("mAP", "AP"),
        defaults=_VOC_DEFAULTS,
    ),
    Dialect(
        name="voc-detectron2",
        about="detectron2's evaluator of VOC 2007: rounded scores and boxes, IoU above t.",
        rules=msgspec.structs.replace(
            _VOC_RULES, levels=_NUMPY_TENTHS, above=True, decimals=(3, 1)
        ),
        metrics=_MEANS,
        defaults=_ROUND_DEFAULTS,
    ),
    Dialect(
        name="voc-mmdetection",
        about="mmdetection's eval_map of VOC 2012: as voc2012, but xmax is an edge, no pixel.",
        rules=msgspec.structs.replace(_VOC_RULES, every_point=True, whole_pixels=False),
        metrics=("mAP", "AP"),
        defaults=_VOC_DEFAULTS,
    ),
    Dialect(
        name="openimages",
        about="Open Images' challenge: groups of objects, and labels known of each image.",
        rules=_OPEN_IMAGES_RULES,
        metrics=("mAP", "AP"),
        defaults=_OPEN_IMAGES_DEFAULTS,
    ),
    Dialect(
        name="openimages-v2",
        about="Open Images V2's metric: groups need not be found, every prediction counts.",
        rules=msgspec.structs.replace(
            _OPEN_IMAGES_RULES, crowd_counts=False, federated=(), declared_only=("label_value",)
        ),
        metrics=("mAP", "AP"),
        defaults=_OPEN_IMAGES_DEFAULTS,
    ),
    Dialect(
        name="dota",
        iou_type="obb",
        about="DOTA's development kit: oriented boxes, 11 recall levels, IoU above t.",
        rules=msgspec.structs.replace(
            _VOC_RULES, levels=_NUMPY_TENTHS, above=True, compares=("obb",), crossing=True
        ),
        metrics=("mAP", "AP"),
        defaults=_VOC_DEFAULTS,
    ),
    Dialect(
        name="mmrotate",
        iou_type="obb",
        about="mmrotate's eval_rbbox_map: mmcv's IoU of oriented boxes, 11 recall levels.",
        rules=msgspec.structs.replace(
            _VOC_RULES, levels=_NUMPY_TENTHS, compares=("obb",), iou_kind="mmcv"
        ),
        metrics=("mAP", "AP"),
        defaults=_VOC_DEFAULTS,
    ),
    Dialect(
        name="detectron2",
        iou_type="obb",
        about="detectron2's RotatedCOCOEvaluator: COCO's numbers on its IoU of oriented boxes.",
        rules=msgspec.structs.replace(_OWN_COCO_RULES, compares=("obb",), iou_kind="detectron2"),
        metrics=_AVERAGES,
        defaults=_COCO_DEFAULTS,
        undefined=-1.0,
        export="coco",
    ),
    Dialect(
        name="nuscenes",
        iou_type="distance",
        about="nuscenes-devkit's detection: centres within 0.5 to 4 m, errors at 2 m, NDS.",
        rules=_NUSCENES_RULES,
        metrics=(*_MEANS, "ATE", "ASE", "AOE", "AVE", "AAE", "NDS"),
        defaults={
            **DEFAULTS,
            "iou_thresholds": (0.5, 1.0, 2.0, 4.0),
            "pr_curve_iou_threshold": 2.0,
            "background_iou": 8.0,
        },
    ),
    Dialect(
        name="kitti",
        about="KITTI's object benchmark: easy, moderate, hard; 40 recall positions, AOS.",
        rules=_KITTI_RULES,
        metrics=_KITTI_METRICS,
        defaults=_KITTI_DEFAULTS,
        undefined=0.0,
        export="kitti",
        unpredicted=_UNPREDICTED,
    ),
    Dialect(
        name="kitti-r11",
        about="As kitti, with the 11 recall positions that it had until October 2019.",
        rules=msgspec.structs.replace(_KITTI_RULES, positions=tuple(range(0, 41, 4))),
        metrics=_KITTI_METRICS,
        defaults=_KITTI_DEFAULTS,
        undefined=0.0,
        export="kitti",
        unpredicted=_UNPREDICTED,
    ),
    Dialect(
        name="visdrone",
        about="VisDrone's toolkit: regions of both sides by pixels, caps per image of all labels.",
        rules=DetectionRules(
            ignore=True,
            every_point=True,
            compares=("bbox",),
            unscored=("others",),
            region_overlap=0.5,
            pixel_regions=True,
            ranked_in_datum=True,
            ignored_missed=True,
        ),
        metrics=_AVERAGES,
        defaults={**DEFAULTS, "iou_thresholds": _ROUND_IOUS, "max_detections": (1, 10, 100, 500)},
        undefined=0.0,
        heeds=frozenset({"class_others_counts"}),
        unpredicted=frozenset({"others"}),
    ),
    Dialect(
        name="tidecv",
        about="tidecv 1.0.1: TIDE by its own match and arithmetic; other metrics as in coco.",
        rules=msgspec.structs.replace(
            _COCO_RULES, declared_only=_DECLARED, masks_first=True, first_best=100
        ),
        metrics=("TIDEAP", "TIDE", "TIDECounts"),
        defaults=DEFAULTS,
    ),
    Dialect(
        name="valor",
        about="Valor's service and core: each prediction locked to its best ground truth.",
        rules=msgspec.structs.replace(_VALOR_RULES, hulls=True),
        metrics=_VALOR_METRICS,
        defaults=_ROUND_DEFAULTS,
        undefined=-1.0,
        export="valor",
    ),
    Dialect(
        name="valor-lite",
        about="valor-lite 0.39: as valor, labels without ground truth count as 0 in means.",
        rules=msgspec.structs.replace(_VALOR_RULES, unannotated_labels_are_zero=True),
        metrics=_VALOR_METRICS,
        defaults=_ROUND_DEFAULTS,
        undefined=0.0,
        export="valor",
    ),
    Dialect(
        name="valor-docs",
        about="Valor's document to the letter: every matched pair is removed from the pool,"
        " whatever the threshold.",
        rules=msgspec.structs.replace(_VALOR_RULES, matching="pool"),
        metrics=_VALOR_METRICS,
        defaults=_ROUND_DEFAULTS,
        undefined=-1.0,
        export="valor",
    ),
)


# Layouts of detection results: AP by label and its means, in the conventions of each dialect.

_BOXES = Layout(
    headline=(
        Entry("mAPAveragedOverIOUs", "mAPAveragedOverIOUs", alias="mAP{low:g}-{high:g}"),
        Entry("mAP", "mAP @ IoU {iou:g}", alias="mAP{percent:g}"),
        Entry("mAR", "mAR"),
        Entry("mAPAveragedOverIOUs", "mAPAveragedOverIOUs, {area}", area=PARTS),
        Entry("mAR", "mAR, {area}", area=PARTS),
    ),
    label_columns=(
        Entry("APAveragedOverIOUs", "APAveragedOverIOUs"),
        Entry("AP", "AP@{iou:g}"),
        Entry("AR", "AR"),
    ),
    slice_columns=(
        Entry("mAPAveragedOverIOUs", "mAPAveragedOverIOUs"),
        Entry("mAP", "mAP@{iou:g}"),
        Entry("mAR", "mAR"),
    ),
)

_COCO_BOXES = Layout(
    headline=(
        Entry("mAPAveragedOverIOUs", "AP", alias="mAP{low:g}-{high:g}"),
        Entry("mAP", "AP{percent:g}"),
        Entry("mAPAveragedOverIOUs", "AP{area}", area=PARTS),
        Entry("mAR", "AR{cap}", cap=EACH),
        Entry("mAR", "AR{area}", area=PARTS),
    ),
    label_columns=(
        Entry("APAveragedOverIOUs", "AP"),
        Entry("AP", "AP{percent:g}"),
        Entry("AR", "AR"),
    ),
    slice_columns=(
        Entry("mAPAveragedOverIOUs", "AP"),
        Entry("mAP", "AP{percent:g}"),
        Entry("mAR", "AR"),
    ),
    exact=True,
)

_CENTRES = Layout(
    headline=(
        Entry("NDS", "NDS"),
        Entry("mAPAveragedOverIOUs", "mAPAveragedOverIOUs"),
        Entry("mAP", "mAP @ {iou:g} m"),
        *(Entry(name, name) for name in ("ATE", "ASE", "AOE", "AVE", "AAE")),
    ),
    label_columns=(
        Entry("AP", "AP@{iou:g}m"),
        *(Entry(name, name) for name in ("ATE", "ASE", "AOE", "AVE", "AAE")),
    ),
    slice_columns=(
        Entry("NDS", "NDS"),
        Entry("mAPAveragedOverIOUs", "mAPAveragedOverIOUs"),
        Entry("mAP", "mAP@{iou:g}m"),
    ),
)

_DIFFICULTIES = Layout(
    headline=(
        Entry("mAPAveragedOverIOUs", "mAP {area}", area=PARTS),
        Entry("AOS", "AOS {area}", area=PARTS),
    ),
    label_columns=(Entry("AP", "AP {area}", area=PARTS), Entry("AOS", "AOS {area}", area=PARTS)),
    slice_columns=(Entry("mAPAveragedOverIOUs", "mAP {area}", area=PARTS),),
)

_COCO_KEYPOINTS = msgspec.structs.replace(
    _COCO_BOXES,
    headline=(
        Entry("mAPAveragedOverIOUs", "AP"),
        Entry("mAP", "AP{percent:g}"),
        Entry("mAPAveragedOverIOUs", "AP{area}", area=PARTS),
        Entry("mAR", "AR"),
        Entry("mARAtIOU", "AR{percent:g}"),
        Entry("mAR", "AR{area}", area=PARTS),
    ),
    slice_columns=(*_COCO_BOXES.slice_columns, Entry("mARAtIOU", "AR{percent:g}")),
)

LAYOUTS: dict[str | None, Layout] = {
    None: _BOXES,
    "coco": _COCO_BOXES,
    "coco-keypoints": _COCO_KEYPOINTS,
    "crowdpose": _COCO_KEYPOINTS,
    "nuscenes": _CENTRES,
    "kitti": _DIFFICULTIES,
    "kitti-r11": _DIFFICULTIES,
}
"""Dialect -> layout; None is the task's own."""


# Names of the true-positive errors of 3-D boxes, shared by metrics and tally.

OF_HITS = "true positives"
"""Need of true positives at ``pr_curve_iou_threshold`` with their errors."""
ANGLES = "angles"
"""Need of the angles at which objects are seen."""
READS = {"velocities": ("vx", "vy"), "attributes": ("attribute",), ANGLES: ("alpha",)}
"""Needs of columns that both sides must have."""
HITS = "found"
"""Name of their tally among the additional tallies of a view."""
ERRORS = ("ATE", "ASE", "AOE", "AVE", "AAE")
"""The errors, in the order of :attr:`...tallies.ranked.Ranked.values`."""


# Names of the marks of single keypoints.

PCK, PCKH = "keypoints by box", "keypoints by head"
KINDS, WRONG = "kinds of keypoints", "shown kinds of keypoints"
NEEDS = frozenset({PCK, PCKH, KINDS, WRONG})
"""Needs of the metrics of single keypoints."""
SINGLE_KEYPOINTS = "keypoints"
"""Name of their tally, in addition to that of predictions."""
OF_KINDS = ("good", "jitter", "inversion", "swap", "miss")
"""Outcomes of points, in the order of the kernel's codes."""
SHARES = {PCK: 0.2, PCKH: 0.5}
"""Share of a person's size within which a keypoint is found, unless another is given."""
_FLAGS = {PCK: ("in a box", "near by box"), PCKH: ("with a head", "near by head"), KINDS: OF_KINDS}


def point_flags(needs: frozenset[str]) -> tuple[str, ...]:
    """Names of the marks of every point."""
    return tuple(name for need, names in _FLAGS.items() if need in needs for name in names)


def labelled_points(need: str) -> tuple[str, str]:
    """Marks of labelled points of people of known size, and of those among them that were found."""
    labelled, accurate = _FLAGS[need]
    return labelled, accurate


def named(n_points: int, flags: Sequence[str]) -> list[str]:
    """Names of the marks of all points, those of the first point first."""
    return [f"{mark} {q}" for q in range(1, n_points + 1) for mark in flags]


def places(names: Sequence[str], mark: str) -> list[int]:
    """Return the indices of a mark, one per point."""
    return [i for i, name in enumerate(names) if name.rpartition(" ")[0] == mark]
