"""Own metrics of a run: the rows that functions receive, and their values as a table to score.

The values become a run of the task ``values`` with the same slices, clusters and options. So they
have the same intervals, comparisons and gates as all values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..ingest.frames import Frames
from ..ingest.problems import Note, listing
from ..metrics.own import OwnMetric, values_of
from ..schemas.contract import GROUND_TRUTHS, PREDICTIONS, ROW, TABLE, WEIGHT
from ..schemas.options import VALUES, Options
from ..tallies.datums import Datums
from .planner import Plan, make_plan

TASK = VALUES[0]
_DATUM = "datum_id"
_TRUTH = "_truth"


def joined_rows(frames: Frames) -> pl.DataFrame:
    """Return the checked rows of both sides as one frame, with a column of datum ids.

    Two tables are joined by datum: every prediction of a datum with every ground truth of it.
    """
    sides = {role: _with_ids(side) for role, side in frames.sides.items()}
    if TABLE in sides:
        return sides[TABLE]
    return sides[PREDICTIONS].join(
        sides[GROUND_TRUTHS],
        on=_DATUM,
        how="full",
        coalesce=True,
        suffix=_TRUTH,
        maintain_order="left_right",
    )


def _with_ids(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows with datum ids, which are numbers of rows if the table has none."""
    if _DATUM not in rows.columns:
        number = rows[ROW] if ROW in rows.columns else pl.Series(np.arange(rows.height))
        rows = rows.with_columns(number.cast(pl.Int64).alias(_DATUM))
    return rows.drop(ROW, strict=False)


def measured(own: Sequence[OwnMetric], frames: Frames) -> pl.DataFrame:
    """Return the values of own metrics, before a tally consumes the rows; add a note on weights."""
    weights = (side[WEIGHT.name] for side in frames.sides.values() if WEIGHT.name in side.columns)
    if any((weight != 1).any() for weight in weights):
        message = (
            f"{listing([one.name for one in own])}: datums count equally, since own metrics get the"
            " column weight and are not weighted by it. For a weighted mean return numerator and"
            " denominator."
        )
        frames.notes.append(Note("own_metrics_unweighted", message))
    return values_of(own, joined_rows(frames))


def with_slices(
    values: pl.DataFrame, own: Sequence[OwnMetric], datums: Datums, rows: pl.Series | None
) -> pl.DataFrame:
    """Return a row per datum and metric, with slice columns, so that the table can be scored.

    Args:
        values: result of :func:`measured`, for the metrics ``own``.
        datums: those of the same rows.
        rows: number of each row in the whole input, if datums are the rows of a part of it.
    """
    ids = datums.id if datums.ids is not None or rows is None else rows
    datum_table = pl.DataFrame([ids.alias(_DATUM), *datums.slices.iter_columns()])
    names = pl.DataFrame({"metric": [one.name for one in own]})
    pairs = datum_table.join(names, how="cross")
    joined = pairs.join(values, on=[_DATUM, "metric"], how="left", maintain_order="left")
    return joined.with_columns(pl.col("^weight$").fill_null(1.0))


def stacked(parts: Iterable[Any]) -> Any:
    """Return the values of all parts, frames or lazy ones, as one; weights are 1 unless given."""
    table = pl.concat(parts, how="diagonal_relaxed")
    return table.with_columns(pl.col("^weight$").fill_null(1.0))


def options_of(options: Options, task: str, facts: Mapping[str, Mapping[str, Any]]) -> Options:
    """Return the options of the run of values.

    Args:
        options: those of the run, of this task.
        facts: name of every own metric -> what a saved run knows of it.
    """
    same = _SAME if task != TASK else (*_SAME, "statistics")
    better = {name: one["better"] for name, one in facts.items()}
    directions = {name: direction for name, direction in better.items() if direction != "neither"}
    return Options(
        metrics=tuple(sorted(facts)),
        better=directions or None,
        **{"task": TASK, **{name: getattr(options, name) for name in same}},
    )


_SAME = ("by", "spread", "intervals", "draws", "seed", "cluster", "method", "threads")
"""Options that apply to values as they do to the built-in metrics."""


def plan_of(options: Options, task: str, facts: Mapping[str, Mapping[str, Any]]) -> Plan:
    """Return the plan of the run of values of a run with these options and of this task."""
    return with_ranges(make_plan(options_of(options, task, facts), TASK), facts)


def with_ranges(plan: Plan, facts: Mapping[str, Mapping[str, Any]]) -> Plan:
    """Return the plan of the run of values, with the declared ranges."""
    ranged = []
    for metric in plan.metrics:
        low, high = facts[metric.name].get("range") or (None, None)
        limits = (-math.inf if low is None else low, math.inf if high is None else high)
        ranged.append(msgspec.structs.replace(metric, range=limits))
    return msgspec.structs.replace(plan, metrics=tuple(ranged))


def facts_of(own: Sequence[OwnMetric]) -> dict[str, dict[str, Any]]:
    """Return the facts of own metrics for saved runs; null for an infinite end of a range."""
    return {
        one.name: {
            "reference": one.reference,
            "better": one.better,
            "range": [end if math.isfinite(end) else None for end in one.range],
            "digest": one.digest,
        }
        for one in own
    }
