"""Frames that are not made of cells: which they are, and outcomes of hard predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

from ...schemas.results import empty_frame, frame_schema
from .confusion import confusion_examples, confusion_frame
from .detailed import detailed_frames
from .label_errors import label_errors_frame
from .sequences import per_datum_frame
from .settings import Settings
from .tallies import Tallies
from .views import EachView

Array = np.ndarray[Any, Any]


def examples_frame(tallies: Tallies, settings: Settings, each_view: EachView) -> pl.DataFrame:
    """Examples of the detailed curve, then of the confusion matrix; of whichever was asked for."""
    parts = []
    if tallies.details:
        parts += detailed_frames(tallies, settings, each_view)
    if tallies.confusion_examples:
        parts += confusion_examples(tallies, settings, each_view)
    if not parts:
        return empty_frame("examples", label=tallies.labels.dtype, datum=tallies.datums.id_dtype)
    return pl.concat(parts)


_OUTCOMES = pl.Enum(["tp", "fp_misclassified", "fp_hallucination", "fn_misclassified", "fn_missed"])


def outcomes_frame(tallies: Tallies, settings: Settings, each_view: EachView) -> pl.DataFrame:
    """One row per hard prediction and one per truth that none met."""
    labels, datums = tallies.labels, tallies.datums
    schema = frame_schema("outcomes", label=labels.dtype, datum=datums.id_dtype)
    if tallies.units.hard is None:
        return empty_frame("outcomes", label=labels.dtype, datum=datums.id_dtype)
    if tallies.parts is None:
        rows = _outcomes_of(tallies)
    else:  # all rows of a datum are in one part; short until they are in order
        parts = (_outcomes_of(part) for part in tallies.parts.shown())
        rows = pl.concat(list(parts)).sort("datum_id", maintain_order=True)
    label = rows["label"]
    made = {
        "datum_id": rows["datum_id"],
        "label_key": labels.frame["label_key"].gather(label),
        "label_value": labels.frame["label_value"].gather(label),
        "outcome": rows["outcome"].cast(pl.String),
        "score": rows["score"],
    }
    frame = pl.DataFrame(made)
    missing = [pl.lit(None).alias(name) for name in schema if name not in made]
    return frame.with_columns(missing).select(list(schema)).cast(schema)  # type: ignore[arg-type]


def _outcomes_of(part: Tallies) -> pl.DataFrame:
    """Outcomes of one tally in the order of its datums: datum_id, label code, outcome, score."""
    units = part.units
    assert units.hard is not None
    hit = (units.truth == units.hard) & (units.hard >= 0)
    score = units.hard_score
    parts = []
    for outcome, mask, code in (
        ("tp", hit, units.hard),
        ("fp_misclassified", ~hit & (units.hard >= 0) & (units.truth >= 0), units.hard),
        ("fp_hallucination", (units.hard >= 0) & (units.truth < 0), units.hard),
        ("fn_misclassified", ~hit & (units.hard >= 0) & (units.truth >= 0), units.truth),
        ("fn_missed", (units.hard < 0) & (units.truth >= 0), units.truth),
    ):
        rows = np.flatnonzero(mask)
        predicted = not outcome.startswith("fn")
        parts.append(
            pl.DataFrame(
                {
                    "datum": units.datum_of(rows),
                    "label": code[rows],
                    "outcome": pl.Series([outcome], dtype=_OUTCOMES).new_from_index(0, rows.size),
                    "score": pl.Series(score[rows], nan_to_null=True)
                    if predicted and score is not None
                    else pl.Series([None], dtype=pl.Float64).new_from_index(0, rows.size),
                },
                schema_overrides={"label": pl.Int32, "datum": pl.Int32},
            )
        )
    ordered = pl.concat(parts).sort("datum", maintain_order=True)
    datum_id = part.datums.id.gather(ordered["datum"]).alias("datum_id")
    return ordered.select(datum_id, "label", "outcome", "score")


MAKERS: dict[str, Callable[[Tallies, Settings, EachView], pl.DataFrame]] = {
    "confusion": confusion_frame,
    "examples": examples_frame,
    "label_errors": label_errors_frame,
    "outcomes": outcomes_frame,
    "per_datum": per_datum_frame,
}
"""Frame name -> what makes it."""


def own_frames(
    frame: str,
    tallies: Tallies,
    settings: Settings,
    each_view: EachView,
    *,
    cuts: Mapping[str, set[int | None]],
) -> pl.DataFrame:
    """See :class:`..task.OwnFrames`: one of :data:`MAKERS`."""
    make = MAKERS.get(frame)
    if make is None:
        return empty_frame(frame, label=tallies.labels.dtype, datum=tallies.datums.id_dtype)
    return make(tallies, settings, each_view)
