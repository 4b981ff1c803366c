"""Warnings about labels or scores that are nearly always wrong but fit if reinterpreted."""

from __future__ import annotations

import numpy as np
import polars as pl

from ...ingest.problems import Note, tied_notes
from ...schemas.arrays import Array
from ...schemas.wording import option
from ...tally.units import Units
from ..renamed import renamed
from .encode import Batch, Rows

_LOOKED_AT = 10_000  # units, evenly spaced
_LEAST = 20
_TIES = 65_536  # rows in which a tie is looked for first
_REVERSED = 0.1  # ROC AUC from which down scores are of the other class


def notes_of(batch: Batch, units: Units) -> list[Note]:
    """Return notes on labels or scores that hardly ever agree with the truth.

    Args:
        units: with predictions, if needed.
    """
    tied = _tied(batch, units)
    if batch.truth_start is not None or batch.truth.size < _LEAST:
        return tied
    looked = np.arange(0, batch.truth.size, max(1, batch.truth.size // _LOOKED_AT))
    if batch.rows is not None and not batch.rows.several:
        return _reversed(batch, looked)
    if units.hard is None:
        return tied
    found, truth = units.hard[looked], batch.truth[looked]
    both = (found >= 0) & (truth >= 0)
    pairs = pl.DataFrame({"mine": found[both], "other": truth[both]}).group_by("mine", "other")
    values = batch.labels.frame["label_value"]
    told = renamed(pairs.len(), values, "where both sides have a label,", 2)
    return tied if told is None else [*tied, told]


def _tied(batch: Batch, units: Units) -> list[Note]:
    """Return a note on units whose highest score is shared by several labels, one of them true.

    A few rows are checked first; without a tie among them the others are skipped.
    """
    rows = batch.rows
    if rows is None or not (rows.several and rows.ranked) or batch.truth_start is not None:
        return []
    if batch.hard is None and units.hard is not None and units.hard_score is not None:
        best, first = units.hard_score, units.hard
    elif units.hard is None and units.facts is not None:  # ranked without a decision
        best, first = units.facts.true_score, batch.truth
    else:
        return []
    n = rows.score.size
    for step in (max(1, n // _TIES), 1):
        at = slice(0, n, step)
        unit = np.arange(n)[at] if rows.unit_codes is None else rows.unit_codes[at]
        label = _labels(rows)[at]
        others = np.flatnonzero((rows.score[at] == best[unit]) & (label != first[unit]))
        of, truth = unit[others], batch.truth[unit[others]]
        tied = np.unique(of[(truth >= 0) & ((first[of] == truth) | (label[others] == truth))])
        if not tied.size:
            return []
    if units.hard is None:  # ties below the highest score are none at the top
        top = np.full(batch.truth.size, -np.inf)
        np.maximum.at(top, unit, rows.score)
        tied = tied[best[tied] == top[tied]]
    known = int((batch.truth >= 0).sum())
    words = ("datum", "datums")
    return tied_notes(tied.size, known, words, "labels", "predicted labels and ranks")


def _labels(rows: Rows) -> Array:
    """Label of every row, int32 [n]."""
    assert rows.label_codes is not None
    return rows.label_codes


def _reversed(batch: Batch, looked: Array) -> list[Note]:
    """Return a warning about scores that are highest if their label is not true."""
    rows = batch.rows
    assert rows is not None
    if rows.unit_codes is not None or not rows.ranked or rows.score.size != batch.truth.size:
        return []
    score, true = rows.score[looked], batch.truth[looked] == rows.only
    positives, negatives = int(true.sum()), int((~true).sum())
    if min(positives, negatives) < _LEAST // 2 or not np.isfinite(score).all():
        return []
    rank = pl.Series(score).rank("average").to_numpy()
    area = (rank[true].sum() - positives * (positives + 1) / 2) / (positives * negatives)
    if area > _REVERSED:
        return []
    values = batch.labels.frame["label_value"].to_list()
    others = [value for code, value in enumerate(values) if code != rows.only]
    way = f" {option('positive_label', others[0])} reads them so." if len(others) == 1 else ""
    return [
        Note(
            "scores_reversed",
            f"scores are lowest where {values[rows.only]!r} is true (ROC AUC {area:.3f} in"
            f" {looked.size:,} looked at): are they scores of the other class, or distances?{way}",
            warning=True,
        )
    ]
