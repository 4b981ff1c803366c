"""Merging of tallies of disjoint datums, in every task."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from merging import label_sets, oriented_parts, parts, regression_parts, span_parts, track_parts

CASES: dict[str, tuple[str, Callable[[int], parts.Case]]] = {
    "detection": ("detection", parts.detection),
    "keypoints": ("detection", parts.keypoints),
    "oriented": ("detection", oriented_parts.oriented),
    "solid": ("detection", oriented_parts.solid),
    "centres": ("detection", oriented_parts.centres),
    "seen": ("detection", oriented_parts.seen),
    "classification": ("classification", parts.classification),
    "binary": ("classification", parts.binary),
    "sets": ("classification", label_sets.sets),
    "segmentation": ("segmentation", parts.segmentation),
    "panoptic": ("panoptic", parts.panoptic),
    "tracking": ("tracking", track_parts.tracking),
    "retrieval": ("retrieval", parts.retrieval),
    "lists": ("retrieval", parts.lists),
    "text": ("text", parts.text),
    "judged": ("judged", parts.judged),
    "regression": ("regression", regression_parts.regression),
    "values": ("values", parts.values),
    "preferences": ("preferences", parts.preferences),
    "entities": ("spans", span_parts.entities),
    "segments": ("spans", span_parts.segments),
    "agents": ("agents", parts.agents),
}
"""Name -> task and function that generates its tables."""

_SLOW = {
    "keypoints", "oriented", "solid", "centres", "seen", "sets", "segmentation", "lists", "judged",
}  # fmt: skip
"""Slow cases: another case has the same kind of tally, or another test covers it (seen)."""

KINDS = [one for one in CASES if one not in _SLOW]
"""One case per kind of tally."""

every_case = pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.slow] * (one in _SLOW)) for one in CASES]
)


@every_case
def test_merged_parts_equal_one_tally(name: str) -> None:
    """All frames are equal bit for bit."""
    task, draw = CASES[name]
    parts.check(draw(12), task, 12, 4)
