"""The metrics of a run: any tracks can carry all of them."""

from __future__ import annotations

from ...ingest.frames import Frames
from ...ingest.problems import Note
from ...metrics.registry import Metric
from .settings import Settings


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """The metrics as planned.

    Args:
        metrics: as planned.
        frames: checked tables.
        settings: the run's settings.
        asked_for: whether the user named them.
    """
    return metrics, []
