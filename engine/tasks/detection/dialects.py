"""Detection dialects: matching, arithmetic and defaults of each reference."""

from __future__ import annotations

import msgspec

from ...dialects.registry import Dialect
from .rules import INF, DetectionDefaults, DetectionRules, Difficulty

# numpy.linspace(0.5, 0.95, 10), written out: the grid COCO compares with is not round decimals.
_COCO_IOUS = (*(0.5 + i * ((0.95 - 0.5) / 9) for i in range(9)), 0.95)
_ROUND_IOUS = tuple(x / 100 for x in range(50, 100, 5))
_AVERAGES = ("mAPAveragedOverIOUs", "mAP", "mAR", "APAveragedOverIOUs", "AP", "AR")
_FEDERATED = frozenset({"federated"})
_EPSILON = 2.0**-52  # numpy.spacing(1)

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
    _COCO_RULES, declared_only=True, masks_first=True, box_areas=True
)
_COCO_AREAS = {
    "all": (0.0, 1e5**2),
    "small": (0.0, 32.0**2),
    "medium": (32.0**2, 96.0**2),
    "large": (96.0**2, 1e5**2),
}
_COCO_DEFAULTS = DetectionDefaults(
    metrics=_AVERAGES,
    iou_thresholds=_COCO_IOUS,
    max_detections=(1, 10, 100),
    area_ranges=_COCO_AREAS,
)
_VOC_RULES = DetectionRules(
    matching="best", from_extent=False, crowd=False, ignore=True, whole_pixels=True
)
# 0:0.1:1 of MATLAB, which counts from both ends to the middle; NumPy counts from one, so that 0.6
# and 0.7 are a bit higher there. 0.3 is 3 * 0.1 in both: a recall of 3/10 does not reach it.
_MATLAB_TENTHS = (*(x * 0.1 for x in range(5)), 0.5, *(1 - x * 0.1 for x in range(4, -1, -1)))
_NUMPY_TENTHS = tuple(x * 0.1 for x in range(11))
_VOC_DEFAULTS = DetectionDefaults(metrics=("mAP", "AP"), iou_thresholds=(0.5,))
_COCO_DEFAULTS = DetectionDefaults(
    metrics=_AVERAGES,
    iou_thresholds=_COCO_IOUS,
    max_detections=(1, 10, 100),
    area_ranges=_COCO_AREAS,
)
_OPEN_IMAGES_RULES = DetectionRules(
    matching="best",
    from_extent=False,
    crowd_counts=True,
    ignore=True,
    declared_only=True,
    every_point=True,
    federated=("negative_labels",),
    needs_area=("predictions",),
)
_OPEN_IMAGES_DEFAULTS = msgspec.structs.replace(_VOC_DEFAULTS, max_detections=(10_000,))
_LVIS_RULES = msgspec.structs.replace(
    _COCO_RULES,
    crowd=False,
    ignore=True,
    declared_only=True,
    masks_first=True,
    box_areas=True,
    federated=("negative_labels", "partial_labels"),
    needs_area=("predictions", "ground_truths"),
    cap_of_datum=True,
)
_LVIS_DEFAULTS = DetectionDefaults(
    metrics=(*_AVERAGES, "APr", "APc", "APf"),
    iou_thresholds=_COCO_IOUS,
    max_detections=(300,),
    area_ranges=_COCO_AREAS,
)
_FAR = {"car": 50.0, "truck": 50.0, "bus": 50.0, "trailer": 50.0, "construction_vehicle": 50.0}
_NEAR = {"pedestrian": 40.0, "motorcycle": 40.0, "bicycle": 40.0}
_NUSCENES_RULES = DetectionRules(
    matching="nearest",
    crowd=False,
    above=True,
    linear=0.1,
    later_first=True,
    unannotated_labels_are_zero=True,
    every_label=True,
    ranges={**_FAR, **_NEAR, "traffic_cone": 30.0, "barrier": 30.0},
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
_KITTI_DEFAULTS = DetectionDefaults(
    metrics=("AP", "mAPAveragedOverIOUs", "AOS"),
    iou_thresholds=(0.5, 0.7),
)
_VALOR_RULES = DetectionRules(matching="locked", from_extent=False, crowd=False, integer_grid=True)
_VALOR_DEFAULTS = DetectionDefaults(
    metrics=(*_AVERAGES, "PrecisionRecallCurve"), iou_thresholds=_ROUND_IOUS
)

DIALECTS = {
    d.name: d
    for d in (
        Dialect(
            name="standard",
            task="detection",
            about="Valor's metric set and grouping on COCO's matching and arithmetic; no caps.",
            rules=msgspec.structs.replace(
                _COCO_RULES,
                ignore=True,
                compares=(*_COCO_RULES.compares, "keypoints", "3d", "bev"),
            ),
            defaults=DetectionDefaults(
                metrics=(*_AVERAGES, "PrecisionRecallCurve"), iou_thresholds=_COCO_IOUS
            ),
            undefined=None,
            export="valor",
        ),
        Dialect(
            name="coco",
            task="detection",
            about="pycocotools' COCOeval, to the bit.",
            rules=_OWN_COCO_RULES,
            defaults=_COCO_DEFAULTS,
            undefined=-1.0,
            export="coco",
            by_iou_type={"keypoints": "coco-keypoints", "3d": "coco-3d", "bev": "coco-3d"},
        ),
        Dialect(
            name="coco-keypoints",
            task="detection",
            iou_type="keypoints",
            about="pycocotools' COCOeval of keypoints, to the bit: 20 detections, no small people.",
            rules=msgspec.structs.replace(_OWN_COCO_RULES, compares=("keypoints",)),
            defaults=DetectionDefaults(
                metrics=(*_AVERAGES, "mARAtIOU"),
                iou_thresholds=_COCO_IOUS,
                max_detections=(20,),
                area_ranges={name: _COCO_AREAS[name] for name in ("all", "medium", "large")},
            ),
            undefined=-1.0,
            export="coco",
        ),
        Dialect(
            name="coco-3d",
            task="detection",
            about="COCO's protocol on 3-D boxes, whose sizes have no ranges of their own.",
            rules=msgspec.structs.replace(_OWN_COCO_RULES, compares=("3d", "bev")),
            defaults=msgspec.structs.replace(_COCO_DEFAULTS, area_ranges={"all": (0.0, INF)}),
            undefined=-1.0,
            export="coco",
        ),
        Dialect(
            name="boundary-iou-api",
            task="detection",
            iou_type="boundary",
            about="boundary-iou-api for COCO, to the bit: coco with boundary IoU; ignore is read.",
            rules=msgspec.structs.replace(_OWN_COCO_RULES, ignore=True, compares=("boundary",)),
            defaults=_COCO_DEFAULTS,
            undefined=-1.0,
            export="coco",
        ),
        Dialect(
            name="crowdpose",
            task="detection",
            iou_type="keypoints",
            about="xtcocotools' keypoints_crowd: CrowdPose's 14 points, sizes given by boxes.",
            rules=msgspec.structs.replace(
                _OWN_COCO_RULES, compares=("keypoints",), sized_by_box=True
            ),
            defaults=DetectionDefaults(
                metrics=(*_AVERAGES, "mARAtIOU"),
                iou_thresholds=_COCO_IOUS,
                max_detections=(20,),
                area_ranges={"all": _COCO_AREAS["all"]},
                keypoint_sigmas="crowdpose",
            ),
            undefined=-1.0,
            export="coco",
        ),
        Dialect(
            name="lvis",
            task="detection",
            about="lvis-api's LVISEval, to the bit: federated annotation, 300 detections an image.",
            rules=_LVIS_RULES,
            defaults=_LVIS_DEFAULTS,
            undefined=-1.0,
            export="lvis",
            heeds=_FEDERATED,
        ),
        Dialect(
            name="lvis-fixed",
            task="detection",
            about="As lvis, with 10,000 detections a class instead of 300 an image (Dave et al.).",
            rules=msgspec.structs.replace(_LVIS_RULES, cap_of_datum=False, most_of_label=10_000),
            defaults=msgspec.structs.replace(_LVIS_DEFAULTS, max_detections=()),
            undefined=-1.0,
            export="lvis",
            heeds=_FEDERATED,
        ),
        Dialect(
            name="lvis-boundary",
            task="detection",
            iou_type="boundary",
            about="As lvis, with boundary IoU.",
            rules=msgspec.structs.replace(_LVIS_RULES, compares=("boundary",)),
            defaults=_LVIS_DEFAULTS,
            undefined=-1.0,
            export="lvis",
            heeds=_FEDERATED,
        ),
        Dialect(
            name="voc2007",
            task="detection",
            about="Pascal VOC's development kit of 2007: 11 recall levels, difficult ones aside.",
            rules=msgspec.structs.replace(_VOC_RULES, levels=_MATLAB_TENTHS),
            defaults=_VOC_DEFAULTS,
        ),
        Dialect(
            name="voc2012",
            task="detection",
            about="Pascal VOC's development kits since 2010: the area under the whole curve.",
            rules=msgspec.structs.replace(_VOC_RULES, every_point=True),
            defaults=_VOC_DEFAULTS,
        ),
        Dialect(
            name="voc-detectron2",
            task="detection",
            about="detectron2's evaluator of VOC 2007: rounded scores and boxes, IoU above t.",
            rules=msgspec.structs.replace(
                _VOC_RULES, levels=_NUMPY_TENTHS, above=True, decimals=(3, 1)
            ),
            defaults=DetectionDefaults(
                metrics=("mAPAveragedOverIOUs", "mAP", "AP"), iou_thresholds=_ROUND_IOUS
            ),
        ),
        Dialect(
            name="voc-mmdetection",
            task="detection",
            about="mmdetection's eval_map of VOC 2012: as voc2012, but xmax is an edge, no pixel.",
            rules=msgspec.structs.replace(_VOC_RULES, every_point=True, whole_pixels=False),
            defaults=_VOC_DEFAULTS,
        ),
        Dialect(
            name="openimages",
            task="detection",
            about="Open Images' challenge: groups of objects, and labels known of each image.",
            rules=_OPEN_IMAGES_RULES,
            defaults=_OPEN_IMAGES_DEFAULTS,
        ),
        Dialect(
            name="openimages-v2",
            task="detection",
            about="Open Images V2's metric: groups need not be found, every prediction counts.",
            rules=msgspec.structs.replace(_OPEN_IMAGES_RULES, crowd_counts=False, federated=()),
            defaults=_OPEN_IMAGES_DEFAULTS,
        ),
        Dialect(
            name="dota",
            task="detection",
            iou_type="obb",
            about="DOTA's development kit: oriented boxes, 11 recall levels, IoU above t.",
            rules=msgspec.structs.replace(
                _VOC_RULES,
                levels=_NUMPY_TENTHS,
                above=True,
                compares=("obb",),
                crossing=True,
            ),
            defaults=_VOC_DEFAULTS,
        ),
        Dialect(
            name="mmrotate",
            task="detection",
            iou_type="obb",
            about="mmrotate's eval_rbbox_map: mmcv's IoU of oriented boxes, 11 recall levels.",
            rules=msgspec.structs.replace(
                _VOC_RULES,
                levels=_NUMPY_TENTHS,
                compares=("obb",),
                alike="mmcv",
            ),
            defaults=_VOC_DEFAULTS,
        ),
        Dialect(
            name="detectron2",
            task="detection",
            iou_type="obb",
            about="detectron2's RotatedCOCOEvaluator: COCO's numbers on its IoU of oriented boxes.",
            rules=msgspec.structs.replace(
                _OWN_COCO_RULES,
                compares=("obb",),
                alike="detectron2",
            ),
            defaults=_COCO_DEFAULTS,
            undefined=-1.0,
            export="coco",
        ),
        Dialect(
            name="nuscenes",
            task="detection",
            iou_type="distance",
            about="nuscenes-devkit's detection: centres within 0.5 to 4 m, errors at 2 m, NDS.",
            rules=_NUSCENES_RULES,
            defaults=DetectionDefaults(
                metrics=(
                    "mAPAveragedOverIOUs",
                    "mAP",
                    "AP",
                    "ATE",
                    "ASE",
                    "AOE",
                    "AVE",
                    "AAE",
                    "NDS",
                ),
                iou_thresholds=(0.5, 1.0, 2.0, 4.0),
                pr_curve_iou_threshold=2.0,
                background_iou=8.0,
            ),
        ),
        Dialect(
            name="kitti",
            task="detection",
            about="KITTI's object benchmark: easy, moderate, hard; 40 recall positions, AOS.",
            rules=_KITTI_RULES,
            defaults=_KITTI_DEFAULTS,
            undefined=0.0,
            export="kitti",
            heeds=frozenset({"regions_left_out"}),
            unpredicted=_UNPREDICTED,
        ),
        Dialect(
            name="kitti-r11",
            task="detection",
            about="As kitti, with the 11 recall positions that it had until October 2019.",
            rules=msgspec.structs.replace(_KITTI_RULES, positions=tuple(range(0, 41, 4))),
            defaults=_KITTI_DEFAULTS,
            undefined=0.0,
            export="kitti",
            heeds=frozenset({"regions_left_out"}),
            unpredicted=_UNPREDICTED,
        ),
        Dialect(
            name="tidecv",
            task="detection",
            about="tidecv 1.0.1: TIDE by its own match and arithmetic; other metrics as in coco.",
            rules=msgspec.structs.replace(
                _COCO_RULES, declared_only=True, masks_first=True, first_best=100
            ),
            defaults=DetectionDefaults(
                metrics=("TIDEAP", "TIDE", "TIDECounts"), iou_thresholds=_COCO_IOUS
            ),
            undefined=None,
            export=None,
        ),
        Dialect(
            name="valor",
            task="detection",
            about="Valor's service and core: each prediction locked to its best ground truth.",
            rules=msgspec.structs.replace(_VALOR_RULES, hulls=True),
            defaults=_VALOR_DEFAULTS,
            undefined=-1.0,
            export="valor",
        ),
        Dialect(
            name="valor-lite",
            task="detection",
            about="valor-lite 0.39: as valor, labels without ground truth count as 0 in means.",
            rules=msgspec.structs.replace(_VALOR_RULES, unannotated_labels_are_zero=True),
            defaults=_VALOR_DEFAULTS,
            undefined=0.0,
            export="valor",
        ),
        Dialect(
            name="valor-docs",
            task="detection",
            about="The letter of Valor's document: pairs leave the pool whatever the threshold.",
            rules=msgspec.structs.replace(_VALOR_RULES, matching="pool"),
            defaults=_VALOR_DEFAULTS,
            undefined=-1.0,
            export="valor",
        ),
    )
}
