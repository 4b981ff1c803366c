"""From tables to how far each number could move by what the tables leave open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from . import scoring
from .executors import Threads
from .ingest.frames import Frames, checked_frames
from .plan import planner, summary
from .plan.plan import Plan
from .schemas.errors import ResultError
from .schemas.option_values import make_options
from .schemas.options import Options
from .schemas.task_names import NAMES
from .tasks import get

if TYPE_CHECKING:
    from typing import Unpack

    from .schemas.named import Named

KEYS = (
    "metric", "statistic", "label_key", "label_value", "average", "iou_threshold",
    "score_threshold", "k", "area", "max_detections", "slice", "slice_value", "parameters",
)  # fmt: skip
_CAP = "max_detections"


def find_limits(
    predictions: Any,
    ground_truths: Any = None,
    *,
    datums: Any = None,
    labels: Any = None,
    options: Options | Mapping[str, Any] | None = None,
    storage_options: dict[str, str] | None = None,
    **named: Unpack[Named],
) -> pl.DataFrame:
    """How far each number could move by what the tables leave open.

    ``ties``: the order of equal scores, in detection of a label and in retrieval of a query, with
    all that is right last or first. ``cap``, in detection: without the cap on detections.
    ``unjudged``, in retrieval: every retrieved document without a judgment irrelevant or relevant.
    Everything is held in memory.

    Args:
        predictions: as :func:`score` takes them.
        ground_truths: likewise.
        datums: table of all datums.
        labels: table or list of declared classes.
        options: options to start from; those named here win.
        storage_options: for remote paths, as Polars takes them.
        **named: any field of :class:`evalengine.Options`.

    Returns:
        a row for each number and limit: the columns that tell numbers apart in the ``metrics``
        frame, ``value``, ``limit`` (String), ``lowest`` and ``highest`` (Float64) and ``exact``
        (Boolean): whether no choice leads beyond these two. Where it does not hold they are two
        choices out of many: in detection where two of the equal scores are of one datum, so that
        what they hit would change as well, or where some hit at one IoU threshold and others at
        another; in retrieval for measures that divide by the relevant documents.

    Raises:
        ResultError: a task without such choices.
        InputError: the tables break their contract.

    Example:
        >>> import evalengine as ee
        >>> ee.find_limits("run.txt", "qrels.txt", metrics=["nDCG@10"])  # doctest: +SKIP
    """
    chosen = make_options(options, **named)
    plan, inputs = scoring.open_tables(
        predictions, ground_truths, chosen, datums, labels, storage_options
    )
    if not plan.does.limits:
        able = " and ".join(task for task in NAMES if get(task).limits)
        raise ResultError(f"limits are told in {able}; this run is {plan.task}.")
    threads = Threads(chosen.threads)
    frames = checked_frames(inputs, plan.task, chosen, threads.each)
    plan = planner.fitted(plan, frames)
    tallies = planner.run(plan, _copy(frames), threads)
    known = _numbers(plan, tallies, threads)
    every = []
    for limit in plan.does.limits:
        ends = exact = None
        if limit.of_tally is not None:
            found = limit.of_tally(tallies, plan.settings)
            if found is not None:
                ends = [_numbers(plan, end, threads) for end in found[:2]]
                exact = found[2]
        elif limit.of_tables is not None:
            cases = limit.of_tables(frames, plan.settings)
            if cases is not None:
                ends = [_of_case(plan, *case, threads) for case in cases]
                exact = True
        if ends is not None:
            fits = pl.Series([bool(exact) and limit.exact(name) for name in known["metric"]])
            every.append(_joined(known, *ends).with_columns(limit=pl.lit(limit.name), exact=fits))
    if not every:
        return known.select(*KEYS, "value").clear().with_columns(
            limit=pl.lit(""), lowest=0.0, highest=0.0, exact=False
        )  # fmt: skip
    return pl.concat(every).select(*KEYS, "value", "limit", "lowest", "highest", "exact")


def _copy(frames: Frames) -> Frames:
    """The same tables, of which a tally may use up its own."""
    sides = {role: frame.clone() for role, frame in frames.sides.items()}
    return msgspec.structs.replace(frames, sides=sides, notes=[*frames.notes])


def _numbers(plan: Plan, tallies: Any, threads: Threads) -> pl.DataFrame:
    makers, _ = summary.summarise(plan, tallies, threads=threads.own(), estimate=None)
    return makers["metrics"]()


def _of_case(plan: Plan, frames: Frames, settings: Any, threads: Threads) -> pl.DataFrame:
    other = msgspec.structs.replace(plan, settings=settings)
    return _numbers(other, planner.run(other, _copy(frames), threads), threads)


def _joined(known: pl.DataFrame, one: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """Every number with the least and the greatest of itself and of both ends."""
    made = known
    for name, end in (("_one", one), ("_other", other)):
        keys = [key for key in KEYS if end[_CAP].equals(known[_CAP]) or key != _CAP]
        values = end.select(*keys, pl.col("value").alias(name)).unique(keys, maintain_order=True)
        made = made.join(values, on=keys, how="left", nulls_equal=True, maintain_order="left")
    every = "value", "_one", "_other"
    return made.with_columns(lowest=pl.min_horizontal(every), highest=pl.max_horizontal(every))
