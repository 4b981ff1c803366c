"""Tallies of parts of disjoint datums merge into the tally of the whole, in every task."""

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
"""Name -> task and what draws its tables."""

_ALIKE = {
    "keypoints", "oriented", "solid", "centres", "seen", "sets", "segmentation", "lists", "judged",
}  # fmt: skip
"""Cases whose kind of tally another case has, too, or a test of their own (seen): they run with
what takes long."""

KINDS = [one for one in CASES if one not in _ALIKE]
"""A case of each kind of tally."""

every_case = pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.slow] * (one in _ALIKE)) for one in CASES]
)


@every_case
def test_parts_make_the_whole(name: str) -> None:
    """To the bit, every frame: however datums are dealt out, in whatever order the parts come."""
    task, draw = CASES[name]
    parts.check(draw(12), task, 12, 4)
