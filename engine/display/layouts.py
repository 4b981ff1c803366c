"""What a person sees first: which numbers lead, which stand in the per-label table.

One entry per task, and per dialect where its users know the numbers by other names. A task without
an entry is laid out from the scorecard's own ``primary`` metrics.
"""

from __future__ import annotations

import msgspec

WHOLE = "whole"
PARTS = "parts"
LARGEST = "largest"
EACH = "each"


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
        by: column of the metrics frame that tells its rows apart, a number.
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

_CLASSES = Layout((), (), (), tables=(Spread("Reliability", "score_threshold", "bin from"),))

_PIXELS = Layout(
    headline=(Entry("mIOU", "mIOU"), Entry("PixelAccuracy", "PixelAccuracy")),
    label_columns=(),
    slice_columns=(Entry("mIOU", "mIOU"), Entry("PixelAccuracy", "PixelAccuracy")),
)

LAYOUTS: dict[tuple[str, str | None], Layout] = {
    ("detection", None): _BOXES,
    ("detection", "coco"): _COCO_BOXES,
    ("classification", None): _CLASSES,
    ("segmentation", None): _PIXELS,
}
"""(task, dialect) -> layout; dialect None is the task's own."""

_NONE = Layout((), (), ())


def layout_of(task: str, dialect: str) -> Layout:
    """The layout of a task in a dialect; an empty one where nothing is known of it."""
    return LAYOUTS.get((task, dialect)) or LAYOUTS.get((task, None)) or _NONE
