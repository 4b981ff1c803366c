"""Confusion and outcomes of hard predictions, as frames."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from ...schemas.results import empty_frame, frame_schema
from ...tally.scored_view import ScoredView
from .detailed import examples_frame
from .sequences import per_datum_frame
from .settings import Settings
from .tallies import Tallies
from .views import EachView

Array = np.ndarray[Any, Any]


def _with_blank(values: pl.Series) -> pl.Series:
    """The values and one null, which code ``len(values)`` stands for."""
    return values.extend_constant(None, 1)


def confusion_frame(tallies: Tallies, settings: Settings, each_view: EachView) -> pl.DataFrame:
    """Units by true and predicted label, null where either is missing, per slice."""
    labels = tallies.labels
    units = tallies.units
    if units.hard is None or len(labels) == 0:
        return empty_frame("confusion", label=labels.dtype)
    of_view = partial(_confusion_of, tallies)
    return pl.concat(each_view(of_view))


def _confusion_of(
    tallies: Tallies, column: str | None, names: list[str], view: ScoredView
) -> pl.DataFrame:
    """The confusion cells of one view."""
    labels, units = tallies.labels, tallies.units
    schema = frame_schema("confusion", label=labels.dtype, weighted=tallies.weighted)
    assert units.hard is not None
    n = len(labels) + 1
    actual = np.where(units.truth < 0, n - 1, units.truth).astype(np.int64)
    predicted = np.where(units.hard < 0, n - 1, units.hard).astype(np.int64)
    cell = actual * n + predicted
    rows = np.flatnonzero(cell != n * n - 1)
    if view.unit_group is not None:
        rows = rows[view.unit_group[rows] >= 0]
        cell = cell + view.unit_group.astype(np.int64) * (n * n)
    weight = view.unit_weight
    counted = (
        pl.DataFrame(
            {
                "cell": cell[rows],
                "count": np.ones(rows.size) if weight is None else weight[rows],
            }
        )
        .group_by("cell")
        .agg(pl.col("count").sum())
        .sort("cell")
    )
    cell = counted["cell"].to_numpy()
    g, a, p = cell // (n * n), cell // n % n, cell % n
    values = _with_blank(labels.frame["label_value"])
    nothing = pl.Series([None], dtype=pl.Float64).new_from_index(0, cell.size)
    made = {
        "label_key": labels.frame["label_key"].gather(np.where(a == n - 1, p, a)),
        "actual": values.gather(a),
        "predicted": values.gather(p),
        "iou_threshold": nothing,
        "score_threshold": nothing,
        "slice": pl.Series([column], dtype=pl.String).new_from_index(0, cell.size),
        "slice_value": pl.Series(names or [None], dtype=pl.String).gather(g),
        "count": counted["count"],
    }
    return pl.DataFrame(made, schema_overrides=schema).cast(schema)  # type: ignore[arg-type]


def outcomes_frame(tallies: Tallies, settings: Settings, each_view: EachView) -> pl.DataFrame:
    """One row per hard prediction and one per truth that none met."""
    units, labels, datums = tallies.units, tallies.labels, tallies.datums
    schema = frame_schema("outcomes", label=labels.dtype, datum=datums.id_dtype)
    if units.hard is None:
        return empty_frame("outcomes", label=labels.dtype, datum=datums.id_dtype)
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
                    "outcome": pl.Series([outcome]).new_from_index(0, rows.size),
                    "score": pl.Series(score[rows], nan_to_null=True)
                    if predicted and score is not None
                    else pl.Series([None], dtype=pl.Float64).new_from_index(0, rows.size),
                },
                schema_overrides={"label": pl.Int32, "datum": pl.Int32},
            )
        )
    rows_of = pl.concat(parts).sort("datum", maintain_order=True)
    label = rows_of["label"]
    made = {
        "datum_id": datums.id.gather(rows_of["datum"]),
        "label_key": labels.frame["label_key"].gather(label),
        "label_value": labels.frame["label_value"].gather(label),
        "outcome": rows_of["outcome"],
        "score": rows_of["score"],
    }
    frame = pl.DataFrame(made)
    missing = [pl.lit(None).alias(name) for name in schema if name not in made]
    return frame.with_columns(missing).select(list(schema)).cast(schema)  # type: ignore[arg-type]


MAKERS: dict[str, Callable[[Tallies, Settings, EachView], pl.DataFrame]] = {
    "confusion": confusion_frame,
    "examples": examples_frame,
    "outcomes": outcomes_frame,
    "per_datum": per_datum_frame,
}
"""Frame name -> what makes it."""
