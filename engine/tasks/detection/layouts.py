"""Layouts of detection results: AP by label and its means, in the conventions of each dialect."""

from __future__ import annotations

import msgspec

from ...schemas.layouts import EACH, PARTS, Entry, Layout

_BOXES = Layout(
    headline=(
        Entry("mAPAveragedOverIOUs", "mAPAveragedOverIOUs"),
        Entry("mAP", "mAP @ IoU {iou:g}"),
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
        Entry("mAPAveragedOverIOUs", "AP"),
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
    label_columns=(
        Entry("AP", "AP {area}", area=PARTS),
        Entry("AOS", "AOS {area}", area=PARTS),
    ),
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
