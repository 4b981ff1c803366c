"""Tracking dialects and settings: which boxes count."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from ...dialects import Dialect, TaskSettings, of_task
from ...schemas.contract import words
from ...schemas.display import Entry, Layout
from ...schemas.option_values import chosen_thresholds
from ...schemas.options import Options


class TrackingRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules on which rows count, and overlap thresholds.

    Attributes:
        overlap: default IoU from which a pair may match in CLEAR and counts in identity, and from
            which predictions match ignored objects.
        evaluated: labels that are scored, in lower case; empty for all.
        partner: other labels -> the evaluated one whose predictions their ground truths are matched
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
    partner: dict[str, str] = {}
    distractors: frozenset[str] = frozenset()
    most_occluded: float = math.inf
    most_truncated: float = math.inf
    least_height: float | None = None
    first_frame: int | None = None


ALPHAS = tuple(0.05 + i * 0.05 for i in range(19))
"""Thresholds of HOTA, equal to the authors' to the bit: ``numpy.arange(0.05, 0.99, 0.05)``."""


class Settings(TaskSettings, frozen=True, kw_only=True):
    """Settings of a tracking run: the dialect's rules, and options with defaults filled in.

    Attributes:
        iou_type: ``bbox``, ``segm`` (masks), or None: boxes, if both sides have such columns.
        alphas: ascending IoU thresholds over which HOTA and its parts are averaged.
        alphas_to_return: those with separate rows.
        overlap: IoU from which a pair may match in CLEAR and counts in identity.
        k: no cut-offs.
    """

    rules: TrackingRules
    iou_type: str | None = None
    alphas: tuple[float, ...] = ALPHAS
    alphas_to_return: tuple[float, ...] = ()
    overlap: float = 0.5
    k: tuple[int | None, ...] = ()

    @staticmethod
    def derive(values: dict[str, Any], options: Options, dialect: Dialect) -> None:
        alphas = values["iou_thresholds"] or ALPHAS
        chosen = options.iou_thresholds_to_return or ()
        values["alphas"], values["alphas_to_return"] = alphas, chosen_thresholds(chosen, alphas)
        values["overlap"] = options.match_threshold or dialect.rules.overlap


_METRICS = words("HOTA DetA AssA LocA MOTA MOTP IDF1 IDSW Frag MT ML TP FP FN")

MOT_DISTRACTORS = frozenset({"person_on_vehicle", "static_person", "distractor", "reflection"})
_MOT = TrackingRules(
    first_frame=1,
    evaluated=("pedestrian",),
    partner={"*": "pedestrian"},
    distractors=MOT_DISTRACTORS,
)

DIALECTS = of_task(
    "tracking",
    Dialect(
        name="standard",
        about="TrackEval's arithmetic over all boxes of the tables but those marked as ignored",
        rules=TrackingRules(),
        metrics=_METRICS,
        undefined=0.0,
    ),
    Dialect(
        name="mot",
        about="MOTChallenge (MOT16, MOT17) as TrackEval prepares it: only pedestrians; boxes on"
        " distractors and ground truths of confidence 0 are skipped",
        rules=_MOT,
        metrics=_METRICS,
        undefined=0.0,
    ),
    Dialect(
        name="mot20",
        about="MOT20 as TrackEval prepares it: as mot, vehicles being distractors, too",
        rules=msgspec.structs.replace(_MOT, distractors=_MOT.distractors | {"non_mot_vehicle"}),
        metrics=_METRICS,
        undefined=0.0,
    ),
    Dialect(
        name="kitti",
        about="KITTI tracking as TrackEval prepares it: cars and pedestrians; boxes on vans,"
        " sitting people and hidden or cut objects, small ones and those in DontCare are skipped",
        rules=TrackingRules(
            evaluated=("car", "pedestrian"),
            partner={"van": "car", "person": "pedestrian", "person_sitting": "pedestrian"},
            distractors=frozenset({"van", "person", "person_sitting"}),
            most_occluded=2,
            most_truncated=0,
            least_height=25,
        ),
        metrics=_METRICS,
        undefined=0.0,
    ),
)
"""The dialects of tracking."""


# Layout of tracking results: HOTA, MOTA, IDF1 and switches.

_TRACKS = Layout(
    headline=(),
    label_columns=tuple(Entry(name, name) for name in ("HOTA", "MOTA", "IDF1", "IDSW")),
    slice_columns=tuple(Entry(name, name) for name in ("HOTA", "MOTA", "IDF1", "IDSW")),
)

LAYOUTS: dict[str | None, Layout] = {None: _TRACKS}
"""Dialect -> layout; None is the task's own."""
