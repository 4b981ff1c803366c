"""The metrics of a run: the default set is one for ids and one for texts."""

from __future__ import annotations

from typing import Any

from ...ingest.frames import Frames
from ...ingest.problems import Note, not_read
from ...metrics.registry import Metric
from ...schemas.wording import option
from .encode import holds_texts
from .settings import SENTENCES, USUAL, Settings


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the requested metrics, or those of the default set that fit the tables.

    Args:
        asked_for: the user named the metrics.
    """
    if asked_for:
        return metrics, _unread(metrics, frames, settings)
    texts, _ = holds_texts(frames, settings)
    wanted = settings.defaults.text_metrics if texts else settings.defaults.metrics
    if texts and (settings.match or settings.default_match) in SENTENCES:
        wanted = ("PrecisionRecallF1",)
    fitting = tuple(metric for metric in metrics if metric.name in wanted)
    return fitting, _unread(fitting, frames, settings)


def _unread(metrics: tuple[Metric, ...], frames: Frames, settings: Settings) -> list[Note]:
    """Return notes on options that were given but have no effect."""
    read = {name for metric in metrics for name in metric.params}
    usual: dict[str, Any] = {
        **USUAL,
        "persistence": settings.defaults.persistence,
        "relevance_levels": (None,),
    }
    given = {
        name: getattr(settings, name) for name in usual if getattr(settings, name) != usual[name]
    }
    said = [
        f"{option(name, list(value) if isinstance(value, tuple) else value)} is not read by any of"
        f" the metrics ({_some(metrics)})."
        for name, value in given.items()
        if name not in read
    ]
    if settings.ignore_identical_ids and holds_texts(frames, settings)[0]:
        said.append(f"{option('ignore_identical_ids', True)} is not read: texts have no ids.")
    return [not_read(text) for text in said]


def _some(metrics: tuple[Metric, ...]) -> str:
    names = [metric.name for metric in metrics]
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
