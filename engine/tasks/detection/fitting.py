"""The metrics that the tables at hand can carry: boxes with scores carry all of detection's."""

from __future__ import annotations

from ...inputs.frames import Frames
from ...inputs.problems import Note
from ...metrics.registry import Metric
from .settings import Settings


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """All of them: the contract requires whatever they need."""
    return metrics, []
