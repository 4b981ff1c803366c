"""The metrics of a run, and options that none of them reads."""

from __future__ import annotations

from typing import Any

from ...inputs.frames import Frames
from ...inputs.problems import Note
from ...metrics.registry import Metric
from ...schemas.wording import option
from .settings import Settings

_USUAL: dict[str, Any] = {"use_stemmer": False, "rouge_tokenizer": "ascii", "lowercase": False}
"""Option -> what it is where nobody gave it."""


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """All metrics: texts carry every one of them.

    Args:
        metrics: as planned.
        frames: checked tables.
        settings: the run's settings.
        asked_for: whether the user named them.
    """
    read = {name for metric in metrics for name in metric.params}
    names = ", ".join(metric.name for metric in metrics[:5])
    idle = [
        f"{option(name, getattr(settings, name))} is not read by any of the metrics ({names})."
        for name, usual in _USUAL.items()
        if getattr(settings, name) != usual and name not in read
    ]
    return metrics, [Note("option_not_read", said) for said in idle]
