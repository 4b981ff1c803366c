"""Predicted labels if labels have individual thresholds."""

from __future__ import annotations

import numpy as np

from ...ingest.frames import Frames
from ...ingest.problems import note_of
from ...ingest.rules import NOTE, WARNING, Facts, Rule, apply
from ...kernels.labels import match_labels
from ...schemas.arrays import Array
from ...schemas.wording import option
from ...tally.datums import Labels
from ...tally.ranked import comparable
from ..scores import limits_of, notes_of
from .encode import Batch, Rows
from .settings import Settings


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
    """Return the best label of each unit among those that reach their threshold, -1 for none.

    Labels without a threshold always do.

    Args:
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


def cut_of(batch: Batch, rows: Rows, settings: Settings) -> float:
    """Return the score from which the one scored label counts as predicted."""
    return float(np.broadcast_to(decision_of(settings, batch.labels), len(batch.labels))[rows.only])


def _say_cut(facts: Facts) -> str:
    low, high, at = (facts.values.get(name, 0.0) for name in ("lowest", "highest", "threshold"))
    if "threshold" not in facts.values:
        return (
            "scores lie outside [0, 1], cut at 0.5; a decision_threshold of 0 fits logits, 50"
            " percent, 127.5 scores up to 255."
        )
    percent = 1 < at <= 100 and low >= 0 and high <= 1
    way = f" For a percentage write {option('decision_threshold', at / 100)}." if percent else ""
    return (
        f"{option('decision_threshold', at)} is beyond the scores, which run from {low:g} to"
        f" {high:g}: {'no' if at > high else 'every'} label is predicted.{way}"
    )


CUT_RULES: tuple[Rule[list[Facts]], ...] = tuple(
    Rule(code, {code}, iter, _say_cut) for code in ("cut_logits", "threshold_beyond_scores")
)
"""Rules for notes on a default threshold, and on one outside [0, 1]."""


def tell_cut(frames: Frames, batch: Batch, settings: Settings) -> None:
    """Add a note on a decision threshold that does not fit the scores."""
    rows = batch.rows
    if rows is None or batch.hard is not None or not rows.ranked:
        return
    if not rows.several:
        at = cut_of(batch, rows, settings)
    elif settings.multilabel and not settings.thresholds:
        at = settings.decision_threshold
    else:
        return
    default = at == 0.5 and not rows.several
    parts = [part for part in rows.parts if part.size]
    if parts and (default or not 0 <= at <= 1):
        low = min([float(part.min()) for part in parts])
        high = max([float(part.max()) for part in parts])
        found: dict[str, float] = {"lowest": low, "highest": high}
        if default and (low < 0 or high > 1):
            facts = Facts(severity=NOTE, values=found)
            frames.notes += apply(CUT_RULES, "", {"cut_logits"}, [facts])[0]
        elif not default and not low < at <= high:
            facts = Facts(severity=WARNING, values={"threshold": at, **found})
            frames.notes += apply(CUT_RULES, "", {"threshold_beyond_scores"}, [facts])[0]


def tell(
    frames: Frames, settings: Settings, labels: Labels, hard: Array | None, scored: Array | None
) -> None:
    """Add notes on the effect of thresholds.

    Args:
        frames: receives the notes.
        hard: int32 [u], predicted label of each unit, -1 for none; None for multi-label data.
        scored: bool [labels], labels that have scores; None without scores.
    """
    if not settings.thresholds:
        return
    if hard is not None and (none := int((hard < 0).sum())):
        words = "datum has", "datums have", "no label that reaches its threshold: none is predicted"
        frames.notes.append(note_of("undecided", none, words))
    frames.notes += notes_of(settings.thresholds, labels, scored)
