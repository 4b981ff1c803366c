"""Which labels count as predicted, where labels have thresholds of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ingest.frames import Frames
from ...ingest.problems import note_of
from ...kernels.label_matching import match_labels
from ...tally.datums import Labels
from ...tally.precision import comparable
from ..label_limits import limits_of, notes_of
from .encode import Batch, Rows
from .settings import Settings

Array = np.ndarray[Any, Any]


def decision_of(settings: Settings, labels: Labels, *, single: bool = False) -> float | Array:
    """The score from which labels count as predicted: one for all, or float64 [labels]."""
    if not settings.thresholds:
        return comparable(settings.decision_threshold, single=single)
    return limits_of(
        settings.thresholds, labels, single=single, otherwise=settings.decision_threshold
    )


def best_above(
    batch: Batch, rows: Rows, settings: Settings, unit: Array, label: Array
) -> tuple[Array, Array]:
    """The best label of each unit among those that reach their threshold, -1 for none.

    Labels without a threshold of their own always do.

    Args:
        batch: encoded tables.
        rows: the scored labels.
        settings: the run's settings.
        unit: int32 [n], unit of every row.
        label: int32 [n], label of every row.

    Returns:
        int32 [u], label codes; float64 [u], their scores.
    """
    limits = limits_of(settings.thresholds, batch.labels, single=rows.single, otherwise=-np.inf)
    kept = rows.score >= limits[label]
    _, hard, score = match_labels(
        unit[kept], label[kept], rows.score[kept], batch.truth, batch.truth_start, want_hard=True
    )
    return hard, score


def tell(
    frames: Frames, settings: Settings, labels: Labels, hard: Array | None, scored: Array | None
) -> None:
    """Say what thresholds decided.

    Args:
        frames: whose notes are added to.
        settings: the run's settings.
        labels: of the run.
        hard: int32 [u], the predicted label of each unit, -1 for none; None where several may be.
        scored: bool [labels], which labels have scores; None where none has.
    """
    if not settings.thresholds:
        return
    if hard is not None and (none := int((hard < 0).sum())):
        words = "datum has", "datums have", "no label that reaches its threshold: none is predicted"
        frames.notes.append(note_of("undecided", none, words))
    frames.notes += notes_of(settings.thresholds, labels, scored)
