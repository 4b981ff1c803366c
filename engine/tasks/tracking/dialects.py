"""Tracking dialects: which boxes count."""

from __future__ import annotations

import math

import msgspec

from ...dialects import Dialect
from ...schemas.layouts import Entry, Layout


class TrackingRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules on which rows count, and overlap thresholds.

    Attributes:
        overlap: default IoU from which a pair may match in CLEAR and counts in identity, and from
            which predictions match ignored objects.
        evaluated: labels that are scored, in lower case; empty for all.
        beside: other labels -> the evaluated one whose predictions their ground truths are matched
            with; ``*`` for all that are not named. Rows of labels that are not here are dropped.
        distractors: subset of these whose matches are ignored predictions.
        most_occluded: ground truths beyond this level are ignored.
        most_truncated: ground truths beyond this level are ignored.
        least_height: unmatched predictions up to this height, in pixels, are dropped.
        first_frame: number of a sequence's first frame; frames beyond its length, if known, are
            refused. None for arbitrary numbers.
    """

    overlap: float = 0.5
    evaluated: tuple[str, ...] = ()
    beside: dict[str, str] = {}
    distractors: frozenset[str] = frozenset()
    most_occluded: float = math.inf
    most_truncated: float = math.inf
    least_height: float | None = None
    first_frame: int | None = None


class TrackingDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """Default values of options.

    Attributes:
        metrics: default set.
    """

    metrics: tuple[str, ...] = (
        "HOTA",
        "DetA",
        "AssA",
        "LocA",
        "MOTA",
        "MOTP",
        "IDF1",
        "IDSW",
        "Frag",
        "MT",
        "ML",
        "TP",
        "FP",
        "FN",
    )


_MOT = TrackingRules(
    first_frame=1,
    evaluated=("pedestrian",),
    beside={"*": "pedestrian"},
    distractors=frozenset({"person_on_vehicle", "static_person", "distractor", "reflection"}),
)

DIALECTS: dict[str, Dialect] = {
    "standard": Dialect(
        name="standard",
        task="tracking",
        about="TrackEval's arithmetic over all boxes of the tables but those marked as ignored",
        rules=TrackingRules(),
        defaults=TrackingDefaults(),
        undefined=0.0,
    ),
    "mot": Dialect(
        name="mot",
        task="tracking",
        about="MOTChallenge (MOT16, MOT17) as TrackEval prepares it: only pedestrians; boxes on"
        " distractors and ground truths of confidence 0 are skipped",
        rules=_MOT,
        defaults=TrackingDefaults(),
        undefined=0.0,
    ),
    "mot20": Dialect(
        name="mot20",
        task="tracking",
        about="MOT20 as TrackEval prepares it: as mot, vehicles being distractors, too",
        rules=msgspec.structs.replace(_MOT, distractors=_MOT.distractors | {"non_mot_vehicle"}),
        defaults=TrackingDefaults(),
        undefined=0.0,
    ),
    "kitti": Dialect(
        name="kitti",
        task="tracking",
        about="KITTI tracking as TrackEval prepares it: cars and pedestrians; boxes on vans,"
        " sitting people and hidden or cut objects, small ones and those in DontCare are skipped",
        rules=TrackingRules(
            evaluated=("car", "pedestrian"),
            beside={"van": "car", "person": "pedestrian", "person_sitting": "pedestrian"},
            distractors=frozenset({"van", "person", "person_sitting"}),
            most_occluded=2,
            most_truncated=0,
            least_height=25,
        ),
        defaults=TrackingDefaults(),
        undefined=0.0,
    ),
}
"""The dialects of tracking."""


# Layout of tracking results: HOTA, MOTA, IDF1 and switches.

_TRACKS = Layout(
    headline=(),
    label_columns=tuple(Entry(name, name) for name in ("HOTA", "MOTA", "IDF1", "IDSW")),
    slice_columns=tuple(Entry(name, name) for name in ("HOTA", "MOTA", "IDF1", "IDSW")),
)

LAYOUTS: dict[str | None, Layout] = {None: _TRACKS}
"""Dialect -> layout; None is the task's own."""
