"""The metrics of a run: any label map or mask can carry all of them."""

from __future__ import annotations

from ...ingest.frames import Frames
from ...ingest.problems import Note, not_read
from ...metrics.registry import Metric
from ...schemas.contract import GROUND_TRUTHS
from ...schemas.wording import option
from .settings import Settings


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the metrics as planned, and notes on options without effect on these tables.

    Args:
        asked_for: the user named the metrics.
    """
    notes = []
    if settings.ignore_index is not None and "label_value" in frames.ground_truths.columns:
        said = option("ignore_index", settings.ignore_index)
        notes.append(
            not_read(
                f"{said} is not read: the {GROUND_TRUTHS.replace('_', ' ')} are masks of labels,"
                " which have no indices.",
            )
        )
    layered = [
        role.replace("_", " ")
        for role, frame in frames.sides.items()
        if "label_value" in frame.columns
    ]
    if settings.resample and layered:
        notes.append(
            not_read(
                f"{option('resample', True)} is not read: the {' and the '.join(layered)} are masks"
                " of labels, which must lie on one grid; only label maps are resampled.",
            )
        )
    return metrics, notes
