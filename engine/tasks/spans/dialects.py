"""Span dialects: what makes a span right, in each reference."""

from __future__ import annotations

from typing import Any

import msgspec

from ...dialects import Dialect, of_task
from ...schemas.display import Entry, Layout
from ..detection.dialects import DEFAULTS as OF_BOXES
from ..detection.dialects import DetectionRules

EQUAL = "equal spans"
"""Need of spans that are right by their ends and label, or at given IoU thresholds."""
SCHEMAS = "schemas"
"""Need of nervaluate's outcomes, in dialects that have them."""
SCHEMA_NAMES = ("strict", "exact", "partial", "ent_type")
"""Values of ``statistic``, in the order of the kernel's codes."""
OUTCOMES = ("correct", "incorrect", "partial", "missed", "spurious")
SCOPES = ("all", "label")
"""Outcomes over all labels of a key, or within each label."""


class SpanRules(DetectionRules, frozen=True, kw_only=True):
    """Rules on which the references disagree, in addition to those of detection.

    Attributes:
        equal: precision, recall and F1 are of spans with equal ends and label, unless IoU
            thresholds are given.
        merged: exact duplicates of a side without scores count once.
        harmonic: F1 is computed from precision and recall, 0 if both are 0; otherwise from counts.
        schemas: outcomes are nervaluate's, under each of its schemas.
        events: onsets and offsets within a collar, with the largest number of pairs, replace IoU.
    """

    equal: bool = True
    merged: bool = False
    harmonic: bool = False
    schemas: bool = False
    events: bool = False
    from_extent: bool = False
    crowd: bool = False
    compares: tuple[str, ...] = ("bbox",)


_ENTITIES = ("Precision", "Recall", "F1")
_SEGMENTS = ("mAPAveragedOverIOUs", "mAP", "APAveragedOverIOUs", "AP")
# numpy.linspace(0.5, 0.95, 10), as the kit of ActivityNet compares with.
_IOUS = (*(0.5 + i * ((0.95 - 0.5) / 9) for i in range(9)), 0.95)
_DEFAULTS: dict[str, Any] = {
    **{name: value for name, value in OF_BOXES.items() if name != "area_ranges"},
    "iou_thresholds": _IOUS,
}
_EXACT_DEFAULTS = {**_DEFAULTS, "iou_thresholds": (1.0,), "pr_curve_iou_threshold": 1.0}
_SEQEVAL = SpanRules(merged=True, harmonic=True)
_SEQEVAL_DEFAULTS = {**_EXACT_DEFAULTS, "zero_division": 0.0}
_TEMPORAL = SpanRules(equal=False, every_point=True)
_TENTHS = (0.3, 0.4, 0.5, 0.6, 0.7)

DIALECTS = of_task(
    "spans",
    Dialect(
        name="standard",
        about="Without scores a span is right if its ends and label are; with scores AP by IoU.",
        rules=SpanRules(merged=True, ignore=True, epsilon=2.0**-52, mean_over_cells=True),
        metrics=(*_ENTITIES, *_SEGMENTS),
        defaults=_DEFAULTS,
    ),
    Dialect(
        name="seqeval",
        about="seqeval 1.2.2: chunks as conlleval reads them, malformed ones too; 0 / 0 is 0.",
        rules=_SEQEVAL,
        metrics=_ENTITIES,
        defaults=_SEQEVAL_DEFAULTS,
        undefined=0.0,
    ),
    Dialect(
        name="seqeval-strict",
        about="seqeval 1.2.2 with mode='strict': well-formed chunks of the scheme; IOB2.",
        rules=_SEQEVAL,
        metrics=_ENTITIES,
        defaults={**_SEQEVAL_DEFAULTS, "scheme": "IOB2"},
        undefined=0.0,
    ),
    Dialect(
        name="nervaluate",
        about="nervaluate 1.2.1: strict, exact, partial and ent_type, greedy in the order of rows.",
        rules=SpanRules(harmonic=True, schemas=True),
        metrics=(*_ENTITIES, "Counts"),
        defaults=_SEQEVAL_DEFAULTS,
        undefined=0.0,
    ),
    Dialect(
        name="activitynet",
        about="ActivityNet's kit: AP of segments at temporal IoU 0.50 to 0.95, and their mean.",
        rules=_TEMPORAL,
        metrics=_SEGMENTS,
        defaults={**_DEFAULTS, "iou_thresholds_to_return": _IOUS},
        undefined=0.0,
    ),
    Dialect(
        name="thumos",
        about="The same at temporal IoU 0.3 to 0.7; segments with ignore are ambiguous.",
        rules=msgspec.structs.replace(_TEMPORAL, ignore=True),
        metrics=_SEGMENTS,
        defaults={**_DEFAULTS, "iou_thresholds": _TENTHS, "iou_thresholds_to_return": _TENTHS},
        undefined=0.0,
    ),
    Dialect(
        name="sed",
        about="sed_eval 0.2.1: events whose onset and offset are within a collar, best matching.",
        rules=SpanRules(harmonic=True, events=True, one_to_one=True),
        metrics=_ENTITIES,
        defaults=_EXACT_DEFAULTS,
    ),
)


_OF_SPANS = Layout(
    headline=(
        Entry("mAPAveragedOverIOUs", "mAPAveragedOverIOUs"),
        Entry("mAP", "mAP @ IoU {iou:g}"),
    ),
    label_columns=(
        *(Entry(name, name) for name in ("F1", "Precision", "Recall")),
        Entry("APAveragedOverIOUs", "APAveragedOverIOUs"),
        Entry("AP", "AP@{iou:g}"),
    ),
    slice_columns=(
        Entry("mAPAveragedOverIOUs", "mAPAveragedOverIOUs"),
        Entry("mAP", "mAP@{iou:g}"),
    ),
)
LAYOUTS: dict[str | None, Layout] = {None: _OF_SPANS}
"""Dialect -> layout; None is the task's own."""
