"""What a person sees first: which numbers lead, which stand in the per-label table.

One entry per task, and per dialect where its users know the numbers by other names. A task without
an entry is laid out from the scorecard's own ``primary`` metrics.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import msgspec

WHOLE = "whole"
PARTS = "parts"
LARGEST = "largest"
EACH = "each"

USUAL_K = 10
"""The cut-off that leads where there are several."""


class Entry(msgspec.Struct, frozen=True):
    """One metric's place in a layout; it makes one number per IoU threshold, area, cap it has.

    Attributes:
        metric: metric name.
        title: a template over the row: ``iou`` (0.5), ``percent`` (50), ``area``, ``cap``, ``k``.
        area: ``whole`` for the row over all areas, ``parts`` for the named ranges.
        cap: ``largest`` for the largest cap on detections (none being the largest), ``each``.
    """

    metric: str
    title: str
    area: str = WHOLE
    cap: str = LARGEST


class Spread(msgspec.Struct, frozen=True):
    """A metric whose rows over one column are a table of its own, not one number.

    Attributes:
        metric: metric name.
        by: what tells its rows apart, a number: a column of the metrics frame, or one of what its
            ``parameters`` hold.
        title: header of that column.
    """

    metric: str
    by: str
    title: str


class Layout(msgspec.Struct, frozen=True):
    """How the numbers of one task are shown.

    Attributes:
        headline: aggregates, in order.
        label_columns: columns of the per-label table; labels are sorted by the first.
        slice_columns: columns of the tables of slices.
        tables: metrics with a table of their own, one column per statistic.
        exact: show every digit of the headline beside the rounded number, for those who compare.
    """

    headline: tuple[Entry, ...]
    label_columns: tuple[Entry, ...]
    slice_columns: tuple[Entry, ...]
    tables: tuple[Spread, ...] = ()
    exact: bool = False


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

_CLASSES = Layout(
    headline=(),
    # Precision falls for labels that take what is lost of others; F1 falls for those that lose it.
    label_columns=tuple(Entry(name, name) for name in ("F1", "Precision", "Recall")),
    slice_columns=(),
    tables=(Spread("Reliability", "score_threshold", "bin from"),),
)

_PIXELS = Layout(
    headline=(Entry("mIOU", "mIOU"), Entry("PixelAccuracy", "PixelAccuracy")),
    label_columns=(),
    slice_columns=(Entry("mIOU", "mIOU"), Entry("PixelAccuracy", "PixelAccuracy")),
)

_TRACKS = Layout(
    headline=(),
    label_columns=tuple(Entry(name, name) for name in ("HOTA", "MOTA", "IDF1", "IDSW")),
    slice_columns=tuple(Entry(name, name) for name in ("HOTA", "MOTA", "IDF1", "IDSW")),
)

_NUMBERS = Layout(
    headline=(),
    label_columns=(),
    slice_columns=(),
    tables=(
        Spread("ErrorQuantiles", "quantile", "quantile"),
        Spread("ActualByPrediction", "bin", "bin"),
    ),
)

LAYOUTS: dict[tuple[str, str | None], Layout] = {
    ("detection", None): _BOXES,
    ("detection", "coco"): _COCO_BOXES,
    ("detection", "coco-keypoints"): _COCO_KEYPOINTS,
    ("detection", "crowdpose"): _COCO_KEYPOINTS,
    ("detection", "nuscenes"): _CENTRES,
    ("detection", "kitti"): _DIFFICULTIES,
    ("detection", "kitti-r11"): _DIFFICULTIES,
    ("classification", None): _CLASSES,
    ("segmentation", None): _PIXELS,
    ("tracking", None): _TRACKS,
    ("regression", None): _NUMBERS,
}
"""(task, dialect) -> layout; dialect None is the task's own."""

_NONE = Layout((), (), ())


def layout_of(task: str, dialect: str) -> Layout:
    """The layout of a task in a dialect; an empty one where nothing is known of it."""
    return LAYOUTS.get((task, dialect)) or LAYOUTS.get((task, None)) or _NONE


_PLACES = {
    "{iou:g}": r"(?P<iou_threshold>\d*\.?\d+)",
    "{percent:g}": r"(?P<percent>\d+)",
    "{area}": r"(?P<area>small|medium|large|easy|moderate|hard)",
    "{cap}": r"(?P<max_detections>\d+)",
}


def by_title(
    task: str, dialect: str, title: str, settled: Collection[str], there: Collection[str]
) -> tuple[str, dict[str, Any]] | None:
    """The rows that a title of the tables stands for, so that gates and look-ups mean the same.

    COCO's ``AP`` is the mean over thresholds and labels there, of one label the mean over
    thresholds, and at a threshold the metric of that name.

    Args:
        task: of the run.
        dialect: of the run.
        title: as written, in any capitals.
        settled: columns of the metrics frame that rows are chosen by already.
        there: metrics that the run has; a column of another one stands in no table.

    Returns:
        metric and values of further columns; None where no table has such a title.
    """
    if "iou_threshold" in settled:
        return None
    layout = layout_of(task, dialect)
    labelled = "label_value" in settled or "label_name" in settled
    entries = layout.label_columns if labelled else (*layout.headline, *layout.slice_columns)
    for entry in entries:
        found = _matching(entry, title) if entry.metric in there else None
        if found is not None:
            return entry.metric, found
    return None


def any_title(title: str) -> bool:
    """Whether the tables of some task and dialect have a title, but for those with spaces."""
    return any(
        _matching(entry, title) is not None
        for layout in LAYOUTS.values()
        for entry in (*layout.headline, *layout.label_columns, *layout.slice_columns)
    )


def _matching(entry: Entry, title: str) -> dict[str, Any] | None:
    pattern = re.escape(entry.title)
    for place, group in _PLACES.items():
        pattern = pattern.replace(re.escape(place), group)
    found = re.fullmatch(pattern, title, re.IGNORECASE)
    if found is None:
        return None
    values: dict[str, Any] = {}
    for name, text in found.groupdict().items():
        if name == "percent":
            values["iou_threshold"] = int(text) / 100
        elif name == "area":
            values[name] = text.lower()
        else:
            values[name] = float(text) if name == "iou_threshold" else int(text)
    return values
