"""The metrics of a run: any segments can carry all of them."""

from __future__ import annotations

from ...ingest.frames import Frames
from ...ingest.problems import Note
from ...metrics.registry import Metric
from .settings import Settings


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """The metrics as planned; columns that the dialect does not read are told.

    Args:
        metrics: as planned.
        frames: checked tables.
        settings: the run's settings.
        asked_for: whether the user named them.
    """
    notes = []
    if not settings.rules.crowds and "iscrowd" in frames.ground_truths.columns:
        said = "column 'iscrowd' is not read: the dialect knows no crowds."
        notes.append(Note("crowds_unread", said))
    return metrics, notes
