"""Tracking dialects: which boxes count."""

from __future__ import annotations

import msgspec

from ...dialects.registry import Dialect


class TrackingRules(msgspec.Struct, frozen=True, kw_only=True):
    """What counts, and from which overlap on.

    Attributes:
        overlap: IoU from which on a pair may match in CLEAR and counts in identity, and at which
            predictions match what is ignored.
    """

    overlap: float = 0.5


class TrackingDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """Defaults of the options that were not given.

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


DIALECTS: dict[str, Dialect] = {
    "standard": Dialect(
        name="standard",
        task="tracking",
        about="TrackEval's arithmetic over all boxes of the tables but those marked as ignored",
        rules=TrackingRules(),
        defaults=TrackingDefaults(),
        undefined=0.0,
    ),
}
"""The dialects of tracking."""
