"""Answers that are wrong nearly everywhere and would be right if told otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ...ingest.problems import Note
from ...schemas.wording import option
from ...tally.units import Units
from ..renamed import renamed
from .encode import Batch

Array = np.ndarray[Any, Any]

_LOOKED_AT = 10_000  # units, evenly spaced
_LEAST = 20
_REVERSED = 0.1  # ROC AUC from which down scores are of the other class


def notes_of(batch: Batch, units: Units) -> list[Note]:
    """What is to be said of labels or scores that hardly ever agree with the truth.

    Args:
        batch: the tables as arrays.
        units: with what is predicted, where that was needed.
    """
    if batch.truth_start is not None or batch.truth.size < _LEAST:
        return []
    looked = np.arange(0, batch.truth.size, max(1, batch.truth.size // _LOOKED_AT))
    if batch.rows is not None and not batch.rows.several:
        return _reversed(batch, looked)
    if units.hard is None:
        return []
    found, truth = units.hard[looked], batch.truth[looked]
    both = (found >= 0) & (truth >= 0)
    pairs = pl.DataFrame({"mine": found[both], "other": truth[both]}).group_by("mine", "other")
    values = batch.labels.frame["label_value"]
    told = renamed(pairs.len(), values, "where both sides have a label,", 2)
    return [] if told is None else [told]


def _reversed(batch: Batch, looked: Array) -> list[Note]:
    """A warning of scores that are highest where their label is not true."""
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
