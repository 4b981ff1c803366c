"""Amount of data that intervals and comparisons need, from a pilot run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
import polars as pl

from ..comparing import compare
from ..evaluation import summary
from ..evaluation.planner import Plan, means_of
from ..ingest.opening import Tables
from ..ingest.problems import count_of
from ..metrics import has, metric_of
from ..run import SETTABLE, card_of_run, is_scored, refuse_tables, tallied_of, with_keys
from ..schemas.display import NAME, Column
from ..schemas.errors import OptionError, invalid, unknown
from ..schemas.named import Named
from ..schemas.option_values import FEW_CLUSTERS, LEVEL, make_options, parse_intervals
from ..schemas.options import Options
from ..schemas.wording import option
from ..scorecard.lookup import KEYS
from ..statistics.comparing import POWER
from ..statistics.intervals import Sample, normal_quantile, wilson
from ..statistics.resamples import Estimates
from ..statistics.tests import cannot_be_significant
from . import FindingResult

_FEW_POSITIVES = 10
_SIZES = ("factor", "datums", "clusters", "positives")
_KEYS = tuple(name for name in KEYS if name not in ("slice", "slice_value", "parameters"))


class FoundPlan(FindingResult, eq=False):
    """Data that each number needs.

    Attributes:
        frame: one row per number of all datums: its key columns, ``value`` (of a comparison
            ``difference``), ``now`` (half-width of the interval, or the detectable difference),
            ``factor`` (needed data as a multiple of these), ``datums``, ``clusters`` (null without)
            and ``positives`` of a label (null for other numbers), rounded up. Sizes are null where
            the pilot has no interval or standard error; a note gives the reason.
        aim: what the data are for, in words.
        n: number of datums of the pilot run.
    """

    frame: pl.DataFrame
    aim: str
    n: int
    _name = "plan"

    def _heading(self) -> str:
        return f"{self.aim}: needed data, from a pilot run of {count_of(self.n, 'datum')}"

    def _table_rows(self) -> pl.DataFrame:
        rows = self.frame.drop(
            name for name in self.frame.columns if self.frame[name].null_count() == len(self)
        )
        return rows.with_columns(
            pl.col(name).cast(pl.String).fill_null("")
            for name in rows.columns
            if name == "label_value" or rows.schema[name] == pl.String
        )

    def _columns(self) -> list[Column]:
        rows = self._table_rows()
        return [
            Column(name, NAME, "text")
            if rows.schema[name] == pl.String
            else Column(name, form="count" if rows.schema[name].is_integer() else "number")
            for name in rows.columns
        ]


def find_plan(
    run: Any,
    ground_truths: Any = None,
    *,
    half_width: float | None = None,
    detect: float | None = None,
    power: float = 0.8,
    against: Any = None,
    datums: Any = None,
    labels: Any = None,
    options: Options | Mapping[str, Any] | None = None,
    storage_options: dict[str, str] | None = None,
    **named: Unpack[Named],
) -> FoundPlan:
    """Compute how many datums, clusters and positives of a label numbers need.

    Standard errors shrink with the square root of the data. Proportions of datums use Wilson's
    interval at their value. New data are assumed to be like those of the pilot run.

    Args:
        run: pilot run: predictions, as :func:`evalengine.score` takes them, or a scored run.
        ground_truths: if the run is predictions.
        half_width: half of the length that intervals should have.
        detect: difference between two runs that a comparison should find.
        power: probability of finding it.
        against: second pilot run over the same datums, for ``detect``.
        datums: table of all datums, if the run is predictions.
        labels: table or list of declared classes, if the run is predictions.
        options: options to start from; named ones take precedence.
        storage_options: for remote paths, as Polars takes them.
        **named: any field of :class:`evalengine.Options`; the default of ``intervals`` is 0.95
            here.

    Returns:
        :class:`evalengine.findings.plan.FoundPlan`, whose ``frame`` has one row per number.

    Raises:
        OptionError: neither or both of ``half_width`` and ``detect``, or ``detect`` without a
            second run.
        ResultError: a scored run without its tally.

    Example:
        >>> import evalengine as ee
        >>> ee.find_plan("runs/pilot", half_width=0.01).frame  # doctest: +SKIP
    """
    if (half_width is None) == (detect is None):
        raise OptionError(
            f"a plan is for one aim: give {option('half_width', 0.01)} or"
            f" {option('detect', 0.005)}.",
            code="option_missing" if half_width is None else "options_conflict",
            option="half_width",
        )
    for name, given, most in (
        ("half_width", half_width, math.inf),
        ("detect", detect, math.inf),
        ("power", power, 1.0),
    ):
        if given is not None and not 0 < given < most:
            raise invalid(
                name, given, f"write a number above 0{'' if most > 1 else ' and below 1'}."
            )
    if detect is not None and against is None:
        raise OptionError(
            f"{option('detect', detect)} depends on how runs differ datum by datum: give a second"
            f" pilot run with {option('against', 'RUN')}.",
            code="option_missing",
            option="against",
        )
    chosen = make_options(options, **named)
    chosen = chosen if chosen.drawn else chosen.replace(intervals=LEVEL)
    intervals = parse_intervals(chosen)
    assert intervals is not None
    tables = Tables(run, ground_truths, datums, labels, storage_options)
    if is_scored(run):
        refuse_tables(tables)
    card = card_of_run(tables, chosen, settable=SETTABLE)
    tallied = with_keys(tallied_of("the run", card, "planning"), intervals.cluster, ())
    n = len(tallied.tallies.datums)
    keys = tallied.tallies.datums.keys
    clusters = None if intervals.cluster is None else np.unique(keys).size
    many = count_of(n, "datum") if clusters is None else count_of(clusters, "cluster")
    if detect is None:
        assert half_width is not None
        aim = f"intervals of ± {half_width:g} at {intervals.level:.0%} confidence"
        estimate = Estimates(tallied.plan, tallied.tallies, intervals, tallied.threads)
        makers, _ = summary.summarise(
            tallied.plan, tallied.tallies, threads=tallied.threads, estimate=estimate
        )
        rows = makers["metrics"]().with_columns(now=(pl.col("upper") - pl.col("lower")) / 2)
        rows = rows.with_columns(factor=_for_width(rows, half_width, intervals.level))
        value = "value"
    else:
        aim = f"a difference of {detect:g} found in {power:.0%} at {intervals.level:.0%} confidence"
        comparison = compare(
            against,
            card if is_scored(run) else run,
            ground_truths=ground_truths,
            datums=datums,
            labels=labels,
            storage_options=storage_options,
            options=chosen.replace(by=()),
        )
        other_power = normal_quantile(power) - normal_quantile(POWER)
        why = "the difference of the pilot runs has no standard error"
        if cannot_be_significant(clusters or n, intervals.level):
            why = f"no difference of {many} can be significant"
        rows = comparison.differences.with_columns(
            now=pl.when(pl.col("detectable") > 0).then(
                pl.col("detectable") + other_power * pl.col("se")
            ),
            reason=pl.lit(why),
        )
        rows = rows.with_columns(factor=(pl.col("now") / detect) ** 2)
        value = "difference"
    if is_scored(run) and chosen.metrics:
        rows = _of_metrics(rows, tallied.plan, chosen)
    of_label = pl.when(pl.col("label_value").is_not_null()).then(pl.col("support"))
    frame = rows.filter(pl.col("slice").is_null(), pl.col(value).is_not_null()).with_columns(
        datums=pl.col("factor") * n,
        clusters=pl.col("factor") * pl.lit(clusters, pl.Int64),
        positives=pl.col("factor") * of_label,
    )
    unknown = frame.filter(pl.col("factor").is_null())["reason"]
    frame = frame.select(
        "metric", *_KEYS, value, "now", "factor", pl.col(_SIZES[1:]).ceil().cast(pl.Int64)
    )
    notes = ["new data are assumed to be like these."]
    if detect is not None:
        notes.append(f"differences are those of the run less {option('against')}.")
    for reason, numbers in Counter(unknown.fill_null("no interval")).items():
        notes.append(f"no plan for {count_of(numbers, 'number')}: {reason}.")
    few = frame.filter(
        (pl.col("datums" if clusters is None else "clusters") < FEW_CLUSTERS)
        | (pl.col("positives") < _FEW_POSITIVES)
    ).height
    if few:
        units = "datums" if clusters is None else "clusters"
        notes.append(
            f"{count_of(few, 'number')} would need fewer than {FEW_CLUSTERS} {units}, or"
            f" {_FEW_POSITIVES} positives: take at least these, since intervals of fewer are often"
            " too narrow."
        )
    if tallied.plan.does.judge:
        notes.append(
            "the plan is for the judge's numbers. What people would say needs human labels of some"
            f" rows: {option('human', 'labels.parquet')}."
        )
    if (n if clusters is None else clusters) < FEW_CLUSTERS:
        notes.append(f"standard errors of {many} are themselves uncertain.")
    return FoundPlan(frame, aim, n, messages=tuple(notes))


def _of_metrics(rows: pl.DataFrame, plan: Plan, requested: Options) -> pl.DataFrame:
    """Keep the rows of the requested metrics, and of the means that the dialect calls by them.

    Raises:
        OptionError: the run has no such metric.
    """
    available = rows["metric"].unique(maintain_order=True).to_list()
    names = [
        metric_of(plan.task, name).name if has(plan.task, name) else name
        for name in requested.metrics or ()
    ]
    for name in names:
        if name not in available:
            raise unknown("metric of this run", name, available)
    means = means_of(requested, plan.task, plan.dialect)
    return rows.filter(pl.col("metric").is_in([*names, *means]))


def _for_width(rows: pl.DataFrame, half_width: float, level: float) -> pl.Series:
    """Needed data as a multiple of those of each number; null without an interval.

    Raises:
        OptionError: intervals of proportions are never so wide.
    """
    if half_width >= 0.5 and rows["trials"].null_count() < rows.height:
        raise invalid("half_width", half_width, "for proportions write a number below 0.5.")
    scaled = (normal_quantile((1 + level) / 2) * rows["se"] / half_width) ** 2
    p, trials = (rows[name].cast(pl.Float64).to_numpy() for name in ("value", "trials"))
    low, high, none = np.zeros(p.size), np.full(p.size, 1e15), np.zeros((0, p.size))
    for _ in range(100):  # Wilson's half-width falls with the number of trials
        n = (low + high) / 2
        intervals = wilson(Sample(p, level, (0.0, 1.0), none, none, trials=n))
        wide = intervals.upper - intervals.lower > 2 * half_width
        low, high = np.where(wide, n, low), np.where(wide, high, n)
    shares = pl.Series(high / trials, nan_to_null=True)
    factor = pl.select(pl.coalesce(shares, scaled)).to_series()
    defined = rows["lower"].is_not_null() & (rows["trials"].is_not_null() | (rows["se"] > 0))
    return factor.zip_with(defined, pl.Series([None] * p.size, dtype=pl.Float64))
