"""Worst datums and the frames that the report shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..executors import Threads
from ..schemas.arrays import Array
from ..schemas.errors import OptionError, ResultError
from ..schemas.wording import in_python, option
from ..scorecard.storage import FrameFile, Paged
from ..tasks.task import Losses, PageFrame
from . import planner, summary
from .summary import Tallied

# Frames for the report, made from the tally of a run.

BINS = 20
Makers = dict[str, Callable[[], pl.DataFrame]]


def page_frames(plan: planner.Plan, tallies: Any, threads: Threads) -> Paged:
    """Return makers of the frames for the report."""
    makers: Makers = {}
    missing: dict[str, str] = {}
    for frame in plan.does.page:
        try:
            options = plan.options.replace(
                metrics=frame.metrics, by=(), intervals=None, draws=None, **frame.options(tallies)
            )
            whole = planner.make_plan(options, plan.task)
        except OptionError as error:  # not defined of such tables
            missing[frame.name] = in_python(error.message)
            continue
        narrowed = planner.narrowed(
            whole, [metric.name for metric in whole.metrics if {*metric.needs} <= plan.needs]
        )
        if narrowed.metrics:
            makers[frame.name] = partial(_make_frame, frame, narrowed, tallies, threads)
        else:
            missing[frame.name] = in_python(_why(plan, frame))
    return Paged(makers, missing)


def _why(plan: planner.Plan, frame: PageFrame) -> str:
    """Why a frame cannot be made, and how to get it if it can be had."""
    if (refused := next(filter(None, map(plan.refused.get, frame.metrics)), None)) is not None:
        return refused
    names = [*map(attrgetter("name"), plan.metrics), *frame.metrics]
    # Without a report it is unknown which metrics the tables allow; the report states that.
    in_report = frame.tallied and not plan.paged
    remedy = option("report", "report.html") if in_report else option("metrics", names)
    return f"this run did not count it; score with {remedy}."


def with_distribution(page: Paged, frames: Mapping[str, Callable[[], pl.DataFrame]]) -> Paged:
    """Add the distribution of values per datum, if there is a frame of them."""
    values = frames.get("per_datum")
    if values is None:
        return page
    path = values.path if isinstance(values, FrameFile) else None

    def make_distribution() -> pl.DataFrame:
        return distribution(values().lazy() if path is None else pl.scan_parquet(path, glob=False))

    return Paged({**page.makers, "distribution": make_distribution}, page.missing)


def _make_frame(
    frame: PageFrame, plan: planner.Plan, tallies: Any, threads: Threads
) -> pl.DataFrame:
    makers, _ = summary.summarise(plan, tallies, threads=threads)
    rows = makers[plan.metrics[0].frame]()
    return rows if frame.then is None else frame.then(rows, tallies)


def distribution(values: pl.LazyFrame) -> pl.DataFrame:
    """Count values per datum in bins of equal width.

    Args:
        values: the ``per_datum`` frame.

    Returns:
        ``metric, statistic, k, low, high, count``: twenty bins from the lowest to the highest value
        of each metric, or from 0 to 1 if all are within; the last one includes its upper edge.
    """
    of = ["metric", "statistic", "k"]
    finite = values.select(*of, "value").filter(pl.col("value").is_finite())
    ranges = finite.group_by(of, maintain_order=True).agg(
        low=pl.col("value").min(), high=pl.col("value").max()
    )
    unit = (pl.col("low") >= 0) & (pl.col("high") <= 1)
    ranges = ranges.with_columns(
        low=pl.when(unit).then(0.0).otherwise("low"), high=pl.when(unit).then(1.0).otherwise("high")
    ).with_columns(
        high=pl.when(pl.col("high") > pl.col("low")).then("high").otherwise(pl.col("low") + 1)
    )
    width = (pl.col("high") - pl.col("low")) / BINS
    place = ((pl.col("value") - pl.col("low")) / width).floor().clip(0, BINS - 1).cast(pl.Int64)
    counts = (
        finite.join(ranges, on=of, how="inner", nulls_equal=True)
        .with_columns(bin=place)
        .group_by(*of, "bin")
        .agg(count=pl.len().cast(pl.Int64))
    )
    every = ranges.with_columns(bin=pl.lit([*range(BINS)])).explode("bin")
    return (
        every.join(counts, on=[*of, "bin"], how="left", nulls_equal=True, maintain_order="left")
        .select(
            *of,
            low=pl.col("low") + width * pl.col("bin"),
            high=pl.col("low") + width * (pl.col("bin") + 1),
            count=pl.col("count").fill_null(0),
        )
        .collect()
    )


# The worst datums of a run.

MOST = 50


def losses_of(tallied: Tallied) -> Losses:
    """Return the loss of each datum of a run.

    Raises:
        ResultError: the run has no loss per datum; the message names the reason and a remedy.
    """
    result = summary.losses_of(tallied.plan, tallied.tallies)
    if isinstance(result, str):
        raise ResultError(f"the worst datums are not known: {result}.", code="not_kept")
    return result


def worst(tallied: Tallied, n: int = MOST, losses: Losses | None = None) -> pl.DataFrame:
    """Return the worst datums of a run, worst first.

    Datums with an undefined value or without errors are not included. Ties are ordered by the other
    errors of the datum, then by id.

    Args:
        tallied: the run; see :func:`evalengine.run.tallied_of`.
        losses: losses of the datums, if already computed.

    Returns:
        ``datum_id`` in the run's dtype, ``metric`` (String, the same in all rows), ``value``
        (Float64), ``why`` (String, a short sentence) and ``parameters`` (String, JSON of the
        metric's parameters, such as the score threshold; null if it has none).

    Raises:
        ResultError: the run has no loss per datum; the message names a remedy.
    """
    losses = losses_of(tallied) if losses is None else losses
    return _datum_rows(losses, tallied, worst_codes(losses, n))


def shares(losses: Losses, codes: Array) -> Array:
    """Return the share of the total error that each datum has, float64 [m].

    The error of a datum is the distance of its value from the metric's best value, or from the best
    one observed.

    Args:
        codes: int64 [m], datums.
    """
    extreme = np.nanmax if losses.higher else np.nanmin
    best = float(extreme(losses.value)) if losses.best is None else losses.best
    wrong = np.nan_to_num(np.abs(losses.value - best))
    if losses.weight is not None:
        wrong = wrong * losses.weight
    total = float(wrong.sum())
    return wrong[codes] / total if total else np.zeros(codes.size)


def _datum_rows(losses: Losses, tallied: Tallied, codes: Array) -> pl.DataFrame:
    """Datums as a frame, in the order of their codes."""
    made_with = msgspec.json.encode(losses.made_with).decode() if losses.made_with else None
    return pl.DataFrame(
        {
            "datum_id": tallied.tallies.datums.id.gather(codes).alias("datum_id"),
            "metric": pl.Series([losses.metric], dtype=pl.String).new_from_index(0, codes.size),
            "value": losses.value[codes],
            "why": pl.Series(losses.why(codes) if codes.size else [], dtype=pl.String),
            "parameters": pl.Series([made_with], dtype=pl.String).new_from_index(0, codes.size),
        }
    )


def worse_since(before: Tallied, now: Tallied, n: int = MOST) -> pl.DataFrame:
    """Return the datums that got worst since an earlier run on the same ones, largest change first.

    Returns:
        the columns of :func:`worst`, and ``before`` (Float64), the earlier value. Datums that are
        missing in either run, or undefined in one, are not included.

    Raises:
        ResultError: the runs have no loss per datum, or different ones.
    """
    earlier, losses = losses_of(before), losses_of(now)
    if (earlier.metric, earlier.made_with) != (losses.metric, losses.made_with):
        raise ResultError(
            f"single datums are judged by {earlier.metric} in one run and {losses.metric} in the"
            " other."
        )
    ids, others = now.tallies.datums.id, before.tallies.datums.id
    nan = np.nan if losses.nothing is None else losses.nothing
    was, value = (np.nan_to_num(one.value, nan=nan) for one in (earlier, losses))
    earlier_values = pl.DataFrame({"id": others.cast(ids.dtype), "before": was})
    joined = (
        ids.rename("id").to_frame().join(earlier_values, on="id", how="left", maintain_order="left")
    )
    then = joined["before"].fill_null(np.nan).to_numpy()
    fall = then - value if losses.higher else value - then
    rows = np.flatnonzero(fall > 0)  # NaN is none
    codes = rows[np.lexsort((rows, -fall[rows]))][:n]
    return _datum_rows(losses, now, codes).with_columns(before=pl.Series(then[codes]))


def worst_codes(losses: Losses, n: int) -> Array:
    """Return the codes of the worst datums, int64, worst first; sorts only a few candidates."""
    loss = -losses.value if losses.higher else losses.value
    defined = ~np.isnan(loss)
    if losses.best is not None:
        defined &= losses.value != losses.best
    rows = np.flatnonzero(defined)
    if n <= 0 or not rows.size:
        return rows[:0]
    if rows.size > n:  # all that are as bad as the n-th
        limit = np.partition(loss[rows], rows.size - n)[rows.size - n]
        rows = rows[loss[rows] >= limit]
    # Ids ascend with codes. Columns are sorted by the last first; NaN is the least bad.
    ties = [np.nan_to_num(-column, nan=np.inf) for column in losses.ties(rows)]
    return rows[np.lexsort((rows, *reversed(ties), -loss[rows]))][:n]
