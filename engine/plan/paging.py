"""Frames for the report, made from the tally of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any

import polars as pl

from ..executors import Threads
from ..schemas.errors import OptionError
from ..schemas.wording import in_python, option
from ..scorecard.held import FrameFile, Paged
from ..tasks.task import PageFrame
from . import planner, summary

BINS = 20
Makers = dict[str, Callable[[], pl.DataFrame]]


def page_frames(
    plan: planner.Plan, tallies: Any, threads: Threads, tallied: frozenset[str] | None = None
) -> Paged:
    """Return makers of the frames for the report.

    Args:
        tallied: names of the tallies; by default those that the plan needs.
    """
    there = plan.needs if tallied is None else tallied
    makers: Makers = {}
    lacking: dict[str, str] = {}
    for frame in plan.does.page:
        try:
            asked = _plan_of(plan, frame, tallies)
        except OptionError as error:  # not defined of such tables
            lacking[frame.name] = in_python(error.said)
            continue
        made = planner.narrowed(
            asked, [metric.name for metric in asked.metrics if {*metric.needs} <= there]
        )
        if made.metrics:
            makers[frame.name] = partial(_made, frame, made, tallies, threads)
        else:
            lacking[frame.name] = in_python(_why(plan, frame))
    return Paged(makers, lacking)


def _why(plan: planner.Plan, frame: PageFrame) -> str:
    """Why a frame cannot be made, and how to get it if it can be had."""
    if (refused := next(filter(None, map(plan.refused.get, frame.metrics)), None)) is not None:
        return refused
    own = [*map(attrgetter("name"), plan.metrics), *frame.metrics]
    # Without a report it is unknown which metrics the tables allow; the report states that.
    told = frame.tallied and not plan.paged
    way = option("report", "report.html") if told else option("metrics", own)
    return f"this run did not count it; score with {way}."


def with_distribution(page: Paged, frames: Mapping[str, Callable[[], pl.DataFrame]]) -> Paged:
    """Add the distribution of values per datum, if there is a frame of them."""
    values = frames.get("per_datum")
    if values is None:
        return page
    path = values.path if isinstance(values, FrameFile) else None

    def made() -> pl.DataFrame:
        return distribution(values().lazy() if path is None else pl.scan_parquet(path, glob=False))

    return Paged({**page.makers, "distribution": made}, page.lacking)


def _plan_of(plan: planner.Plan, frame: PageFrame, tallies: Any) -> planner.Plan:
    options = plan.options.replace(
        metrics=frame.metrics, by=(), intervals=None, draws=None, **frame.options(tallies)
    )
    return planner.make_plan(options, plan.task)


def _made(frame: PageFrame, plan: planner.Plan, tallies: Any, threads: Threads) -> pl.DataFrame:
    made, _ = summary.summarise(plan, tallies, threads=threads)
    rows = made[plan.metrics[0].frame]()
    return rows if frame.then is None else frame.then(rows)


def distribution(values: pl.LazyFrame) -> pl.DataFrame:
    """Count values per datum in bins of equal width.

    Args:
        values: the ``per_datum`` frame.

    Returns:
        ``metric, statistic, k, low, high, count``: twenty bins from the lowest to the highest value
        of each metric, or from 0 to 1 if all are within; the last one includes its upper edge.
    """
    of = ["metric", "statistic", "k"]
    there = values.select(*of, "value").filter(pl.col("value").is_finite())
    ends = there.group_by(of, maintain_order=True).agg(
        low=pl.col("value").min(), high=pl.col("value").max()
    )
    unit = (pl.col("low") >= 0) & (pl.col("high") <= 1)
    ends = ends.with_columns(
        low=pl.when(unit).then(0.0).otherwise("low"), high=pl.when(unit).then(1.0).otherwise("high")
    ).with_columns(
        high=pl.when(pl.col("high") > pl.col("low")).then("high").otherwise(pl.col("low") + 1)
    )
    width = (pl.col("high") - pl.col("low")) / BINS
    place = ((pl.col("value") - pl.col("low")) / width).floor().clip(0, BINS - 1).cast(pl.Int64)
    counts = (
        there.join(ends, on=of, how="inner", nulls_equal=True)
        .with_columns(bin=place)
        .group_by(*of, "bin")
        .agg(count=pl.len().cast(pl.Int64))
    )
    every = ends.join(pl.LazyFrame({"bin": range(BINS)}), how="cross")
    return (
        every.join(counts, on=[*of, "bin"], how="left", nulls_equal=True)
        .select(
            *of,
            low=pl.col("low") + width * pl.col("bin"),
            high=pl.col("low") + width * (pl.col("bin") + 1),
            count=pl.col("count").fill_null(0),
        )
        .collect()
    )
