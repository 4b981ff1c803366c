"""The metrics of a run: the default set is one for ids and one for texts."""

from __future__ import annotations

from ...inputs.frames import Frames
from ...inputs.problems import Note
from ...metrics.registry import Metric
from .encode import holds_texts
from .settings import SENTENCES, Settings


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """The metrics asked for, or those of the default set that the tables are for.

    Args:
        metrics: as planned.
        frames: checked tables.
        settings: the run's settings.
        asked_for: whether the user named them.
    """
    if asked_for:
        return metrics, []
    texts, _ = holds_texts(frames, settings)
    wanted = settings.defaults.text_metrics if texts else settings.defaults.metrics
    if texts and (settings.match or settings.default_match) in SENTENCES:
        wanted = ("PrecisionRecallF1",)
    return tuple(metric for metric in metrics if metric.name in wanted), []
