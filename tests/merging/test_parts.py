"""Tallies of parts of disjoint datums merge into the tally of the whole, in every task."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from merging import label_sets, oriented_parts, parts, regression_parts, track_parts

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
}
"""Name -> task and what draws its tables."""

_ALIKE = {
    "keypoints", "oriented", "solid", "seen", "sets", "segmentation", "lists", "judged",
}  # fmt: skip
"""Cases whose kind of tally another case has, too, or a test of their own (seen): they run with
what takes long."""

KINDS = [one for one in CASES if one not in _ALIKE]
"""A case of each kind of tally."""

every_case = pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.slow] * (one in _ALIKE)) for one in CASES]
)


@every_case
@settings(max_examples=int(os.environ.get("EVALENGINE_EXAMPLES", "2")))
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 5))
def test_parts_make_the_whole(name: str, seed: int, n: int) -> None:
    """To the bit, every frame: however datums are dealt out, in whatever order the parts come."""
    task, draw = CASES[name]
    parts.check(draw(seed), task, seed, n)
