"""Bounds of numbers under choices that the tables do not determine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import polars as pl

from .. import metrics
from ..executors import Threads
from ..ingest.frames import Frames
from ..schemas.contract import NAMES
from ..schemas.errors import ResultError
from ..schemas.results import LIMITS, METRICS
from ..tasks import get
from ..tasks.contents import copied
from ..tasks.encoding import Workers
from ..tasks.task import RANGE, UNKNOWN, Facts, Given, Limit
from . import planner, summary
from .planner import Plan

FRAME = "limits"
KEYS = tuple(name for name in LIMITS if name in METRICS and name != "value")
"""Columns that identify a number."""
_CAP = "max_detections"

ChoiceFacts = dict[str, Facts | None]
"""Facts about each choice from the tables, by its name; None if there is no choice."""


def refuse(plan: Plan) -> None:
    """Refuse a task without such choices."""
    if not plan.does.limits:
        able = " and ".join(task for task in NAMES if get(task).limits)
        why = f": {plan.does.no_limits}" if plan.does.no_limits else ""
        raise ResultError(
            f"limits are computed for {able}; this run is {plan.task}{why}.",
            code="task_unfit",
            task=plan.task,
        )


def facts_of(plan: Plan, frames: Frames) -> ChoiceFacts:
    """Return the facts about each choice from the tables of a part."""
    return {limit.name: limit.facts(frames, plan.settings) for limit in plan.does.limits}


def choices(plan: Plan, parts: Sequence[ChoiceFacts]) -> list[tuple[Limit, Facts]]:
    """Return the choices that remain over the tables of all parts, with merged facts."""
    result = []
    for limit in plan.does.limits:
        facts = [part[limit.name] for part in parts]
        present = [one for one in facts if one is not None]
        if facts and len(present) == len(facts):
            result.append((limit, limit.whole(present)))
    return result


def extreme_tallies(
    plan: Plan,
    frames: Frames,
    choices_with_facts: Sequence[tuple[Limit, Facts]],
    tallies: Any,
    workers: Workers,
) -> Iterator[tuple[str, Any]]:
    """Yield the tally of a part at each extreme of each choice, with the extreme's name.

    Args:
        tallies: of the part; None to compute them.
    """

    def run(other: Frames, settings: Any) -> Any:
        return plan.does.tally(copied(other, other.notes), settings, plan.needs, workers)

    if choices_with_facts and tallies is None:
        tallies = run(frames, plan.settings)
    for limit, facts in choices_with_facts:
        inputs = Given(
            frames=frames,
            settings=plan.settings,
            facts=facts,
            tallies=tallies,
            run=run,
            workers=workers,
        )
        for n, tally in enumerate(limit.extremes(inputs)):
            yield name_of(limit, n), tally


def name_of(limit: Limit, n: int) -> str:
    """Return the name of an extreme."""
    return f"{limit.name}-{n}"


Moved = tuple[list[tuple[Limit, Facts]], dict[str, Any]]
"""Remaining choices, and the tallies at their extremes."""


def matched(plan: Plan, frames: Frames, threads: Threads) -> tuple[Any, Moved]:
    """Tally a run in memory, also at the extremes of all choices."""
    remaining = choices(plan, [facts_of(plan, frames)])
    tallies = planner.run(plan, copied(frames, frames.notes), threads)
    return tallies, (remaining, dict(extreme_tallies(plan, frames, remaining, tallies, threads)))


def table(
    plan: Plan,
    values: pl.DataFrame,
    choices_with_facts: Sequence[tuple[Limit, Facts]],
    extremes: dict[str, Any],
    threads: Threads,
) -> pl.DataFrame:
    """Build the frame of every number with its minimum and maximum under each choice.

    Args:
        values: the frame ``metrics`` of the run.
    """
    tables = [_joined(plan, values, [], [""] * values.height, "").clear()]
    for limit, facts in choices_with_facts:
        every = limit.settings(plan.settings, facts)
        tallies = [extremes[name_of(limit, n)] for n in range(len(every))]
        bound = limit.bound(plan.settings, facts, tallies)
        if bound is None:
            continue
        numbers = []
        for one, settings in zip(tallies, every, strict=True):
            changed = msgspec.structs.replace(plan, settings=settings)
            makers, _ = summary.summarise(changed, one, threads=threads, estimate=None)
            numbers.append(makers["metrics"]())
        bounds = [bound(name) for name in values["metric"]]
        tables.append(_joined(plan, values, numbers, bounds, limit.name))
    return pl.concat(tables)


def _joined(
    plan: Plan, numbers: pl.DataFrame, extremes: list[pl.DataFrame], bounds: list[str], limit: str
) -> pl.DataFrame:
    joined = numbers.with_columns(limit=pl.lit(limit), bound=pl.Series(bounds, dtype=pl.String))
    names = ["value"]
    for n, end in enumerate(extremes):
        names.append(f"_{n}")
        keys = [key for key in KEYS if end[_CAP].equals(numbers[_CAP]) or key != _CAP]
        values = end.select(*keys, pl.col("value").alias(names[-1]))
        values = values.unique(keys, maintain_order=True)
        joined = joined.join(values, on=keys, how="left", nulls_equal=True, maintain_order="left")
    ranges = [metrics.get(plan.task, name).range for name in numbers["metric"]]
    bounded = joined.with_columns(lowest=pl.min_horizontal(names), highest=pl.max_horizontal(names))
    return bounded.with_columns(
        pl.when(bound=RANGE)
        .then(_finite([range[end] for range in ranges]))
        .when(pl.col("bound") != UNKNOWN)
        .then(pl.col(name))
        .alias(name)
        for end, name in enumerate(("lowest", "highest"))
    ).select(*LIMITS)


def _finite(values: list[float]) -> pl.Series:
    """Replace infinite values by null."""
    return pl.Series(
        [value if math.isfinite(value) else None for value in values], dtype=pl.Float64
    )
