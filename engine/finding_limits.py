"""From tables to how far each number could move by what the tables leave open."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from . import metrics, scoring
from .analysis.limit_table import FoundLimits
from .executors import Threads
from .held_runs import is_scored
from .ingest.frames import Frames, checked_frames
from .plan import planner, summary
from .plan.plan import Plan
from .schemas.errors import OptionError, ResultError
from .schemas.option_values import make_options
from .schemas.options import Options
from .schemas.task_names import NAMES
from .schemas.wording import option
from .tasks import get
from .tasks.limits import EXACT, RANGE, UNKNOWN, Given

if TYPE_CHECKING:
    from typing import Unpack

    from .schemas.named import Named

KEYS = (
    "metric", "statistic", "label_key", "label_value", "average", "iou_threshold",
    "score_threshold", "k", "area", "max_detections", "slice", "slice_value", "parameters",
)  # fmt: skip
_CAP = "max_detections"
_TOLD = ("limit", "lowest", "highest", "bound")


def find_limits(
    predictions: Any,
    ground_truths: Any = None,
    *,
    datums: Any = None,
    labels: Any = None,
    options: Options | Mapping[str, Any] | None = None,
    storage_options: dict[str, str] | None = None,
    **named: Unpack[Named],
) -> FoundLimits:
    """How far each number could move by what the tables leave open.

    ``ties``: the order of equal scores, in detection of a label and in retrieval of a query.
    ``cap``, in detection: without the cap on detections. ``unjudged``, in retrieval: every
    retrieved document without a judgment, in queries that have some, is given any of the grades
    that the judgments have, or none. Everything is held in memory.

    Args:
        predictions: as :func:`score` takes them.
        ground_truths: likewise.
        datums: table of all datums.
        labels: table or list of declared classes.
        options: options to start from; those named here win.
        storage_options: for remote paths, as Polars takes them.
        **named: any field of :class:`evalengine.Options`.

    Returns:
        :class:`evalengine.analysis.limit_table.FoundLimits`, whose ``frame`` has a row for each
        number and limit: the columns that tell numbers apart in the ``metrics`` frame, ``value``,
        ``limit`` (String), ``lowest`` and ``highest`` (Float64), and ``bound`` (String), which
        tells what these two are:

        - ``exact``: some choice leads to each, none beyond.
        - ``at most``: none leads beyond, but perhaps none to the end, as of nDCG with several
          grades to give.
        - ``at least``: what was tried; others may lead beyond. In detection where two of the equal
          scores are of one datum, so that what they hit changes as well, or where some hit at one
          IoU threshold and others at another.
        - ``range``: of the metric itself, null where that does not end; nothing more is known.
        - ``unknown``: not even that, both null.

    Raises:
        ResultError: a task without such choices, or a run that is scored already.
        OptionError: a memory limit.
        InputError: the tables break their contract.

    Example:
        >>> import evalengine as ee
        >>> ee.find_limits("run.txt", "qrels.txt", metrics=["nDCG@10"]).frame  # doctest: +SKIP
    """
    chosen = make_options(options, **named)
    for table in (predictions, ground_truths):
        if is_scored(table):
            raise ResultError(
                "limits match the rows again, which a scorecard or saved run does not hold: give"
                " the tables that it was scored from."
            )
    if chosen.memory_limit is not None:
        raise OptionError(
            f"{option('memory_limit', chosen.memory_limit)}: limits hold all rows in memory; leave"
            " it out."
        )
    plan, inputs = scoring.open_tables(
        predictions, ground_truths, chosen, datums, labels, storage_options
    )
    if not plan.does.limits:
        able = " and ".join(task for task in NAMES if get(task).limits)
        why = f": {plan.does.no_limits}" if plan.does.no_limits else ""
        raise ResultError(f"limits are told in {able}; this run is {plan.task}{why}.")
    threads = Threads(chosen.threads)
    frames = checked_frames(inputs, plan.task, plan.options, threads.each)
    plan = planner.fitted(plan, frames)
    tallies = planner.run(plan, _copy(frames), threads)
    known = _numbers(plan, tallies, threads)

    def run(other: Frames, settings: Any) -> Any:
        return planner.run(msgspec.structs.replace(plan, settings=settings), _copy(other), threads)

    given = Given(
        frames=frames, settings=plan.settings, tallies=tallies, run=run, workers=threads.own()
    )
    every = []
    for limit in plan.does.limits:
        found = limit.ends(given)
        if found is not None:
            ends = [
                _numbers(msgspec.structs.replace(plan, settings=settings), tallies, threads)
                for tallies, settings in found.runs
            ]
            made = _joined(known, ends, [found.bound(name) for name in known["metric"]], plan.task)
            every.append(made.with_columns(limit=pl.lit(limit.name)))
    if not every:
        none = _joined(known, [], [EXACT] * known.height, plan.task).clear()
        every.append(none.with_columns(limit=pl.lit("")))
    return FoundLimits(pl.concat(one.select(*KEYS, "value", *_TOLD) for one in every))


def _copy(frames: Frames) -> Frames:
    """The same tables, of which a tally may use up its own."""
    sides = {role: frame.clone() for role, frame in frames.sides.items()}
    return msgspec.structs.replace(frames, sides=sides, notes=[*frames.notes])


def _numbers(plan: Plan, tallies: Any, threads: Threads) -> pl.DataFrame:
    makers, _ = summary.summarise(plan, tallies, threads=threads.own(), estimate=None)
    return makers["metrics"]()


def _joined(
    known: pl.DataFrame, ends: list[pl.DataFrame], bounds: list[str], task: str
) -> pl.DataFrame:
    """Every number with the least and the greatest of itself and of all ends."""
    made, names = known.with_columns(bound=pl.Series(bounds, dtype=pl.String)), ["value"]
    for n, end in enumerate(ends):
        names.append(f"_{n}")
        keys = [key for key in KEYS if end[_CAP].equals(known[_CAP]) or key != _CAP]
        values = end.select(*keys, pl.col("value").alias(names[-1]))
        values = values.unique(keys, maintain_order=True)
        made = made.join(values, on=keys, how="left", nulls_equal=True, maintain_order="left")
    ranges = [metrics.get(task, name).range for name in known["metric"]]
    found = made.with_columns(lowest=pl.min_horizontal(names), highest=pl.max_horizontal(names))
    return found.with_columns(
        pl.when(bound=RANGE).then(_finite([range[end] for range in ranges]))
        .when(pl.col("bound") != UNKNOWN).then(pl.col(name)).alias(name)
        for end, name in enumerate(("lowest", "highest"))
    )  # fmt: skip


def _finite(values: list[float]) -> pl.Series:
    """The values, null where there is no end."""
    return pl.Series(
        [value if math.isfinite(value) else None for value in values], dtype=pl.Float64
    )
