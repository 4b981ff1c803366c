"""Tracking outputs with separate frames."""

from __future__ import annotations

from ....metrics.registry import Metric

_SOURCE = "evalengine; events as TrackEval's CLEAR counts them"

METRICS = (
    Metric(
        name="Outcomes",
        task="tracking",
        frame="outcomes",
        needs=("events",),
        params=("match_threshold",),
        range=(0.0, float("inf")),
        better="neither",
        definition="One row per ground truth (match, switch, fragment or miss in CLEAR) and per"
        " prediction without a match (false), with frame, ids and the track before a switch.",
        formula="",
        source=_SOURCE,
    ),
    Metric(
        name="Errors",
        task="tracking",
        frame="errors",
        needs=("events",),
        params=("match_threshold",),
        range=(0.0, float("inf")),
        better="neither",
        definition="One row per switch, fragment, prediction without a match (false) and missed"
        " ground truth of CLEAR, with frame, ids, the track before a switch, and boxes.",
        formula="",
        source=_SOURCE,
    ),
)
