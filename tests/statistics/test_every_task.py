"""Rules for the intervals of every task: above all, a resample is a repetition of datums."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle, product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from merging import parts
from merging.parts import Case
from merging.test_parts import CASES, KINDS, every_case
from polars.testing import assert_frame_equal
from random_tables import (
    CLUSTER,
    ESTIMATES,
    MOST_COPIES,
    are_percentiles,
    clustered,
    each_table,
    identity,
    of_each_kind,
    random_case,
    reordered,
    repeated,
    scored,
)

from evalengine.evaluation import planner, summary
from evalengine.executors import Threads
from evalengine.kernels.datums import draw_weights
from evalengine.schemas.option_values import FEW_CLUSTERS, make_options, parse_intervals
from evalengine.statistics.intervals import METHODS as EVERY_METHOD
from evalengine.statistics.resamples import NOT_MOVED, Estimates
from evalengine.tasks.encoding import hashes_of
from evalengine.tasks.tracking.metrics import NUMBERS

few = settings(max_examples=1)
seeds = given(seed=st.integers(0, 2**32 - 1))

METHODS = [name for name in EVERY_METHOD if name != "none"]
COUNTS = ("Counts", "TIDECounts", "KeypointCounts")
BY_NUMBER = (  # of rows: a single one makes them undefined, the same one twice does not; or counts
    *COUNTS, "AdjustedR2", "R2", "ExplainedVariance", "D2Tweedie", "D2AbsoluteError", "D2Pinball",
    *(one.name for one in NUMBERS if one.counts), "MOTAL", "BoxECE", "BoxReliability", "Rank",
)  # fmt: skip
UNDRAWN = ("ROCAUC", "mROCAUC", "ECECalibrated", "MaxError")
EXTREMES = ("min", "max", "p0", "p100")  # without intervals
OF_ABSENT = ("Specificity", "FPR", "NPV", "SelectionRate")  # defined for labels without any row
BY_COPIES = ("sum", "std", "median", "p95")  # statistics of values that copies change
BY_SERIES = ("SeriesMASE", "SeriesRMSSE", "GroupSpearman", "Rank")
"""Metrics that are not tested by repeated tables.

Means over results of several datums count as often as they are resampled: see regression. Ranks by
tests are not resampled.
"""
DRAWS = 24
ASKED: dict[str, Any] = {"intervals": 0.9, "draws": DRAWS, "method": "percentile"}


BY_ALL = ("binary", "retrieval")
"""Cases in which every method is tested; the other cases are tested with one method each."""


def few_of(name: str, seed: int) -> Case:
    return of_each_kind(name, random_case(name, seed))


def of_resamples() -> pl.Expr:
    """Return whether bounds are quantiles of resamples.

    Constant shares have Wilson's interval, and trials. F1 of a label has the interval of its
    Jaccard index, without trials: at 0 and 1 no resample moves it.
    """
    of_jaccard = (pl.col("metric") == "F1") & pl.col("average").is_null()
    return pl.col("trials").is_null() & ~(of_jaccard & pl.col("value").is_in([0.0, 1.0]))


def by_tables(name: str, case: Case, rows: pl.DataFrame, seed: int) -> np.ndarray:
    """Compute the value of every row per resample, from tables in which datums are repeated.

    Returns:
        float64 [resamples, rows], NaN if such tables have no value.
    """
    ids = pl.Series(case.ids, dtype=case.sides[0].schema[case.datum])
    weights = draw_weights(hashes_of(ids), seed, 0, DRAWS)
    own = identity(rows)
    places = rows.select(own).with_row_index("place")
    # A label or slice without datums has no row here, because nothing was counted.
    absent = pl.when(pl.col("metric").is_in(COUNTS)).then(0.0)
    values = []
    for of_draw in weights.T:
        table = repeated(case, dict(zip(ids, of_draw.tolist(), strict=True)))
        result = scored(name, table).select(*own, "value")
        joined = places.join(result, on=own, how="left", nulls_equal=True).sort("place")
        values.append(joined.select(pl.col("value").fill_null(absent))["value"].to_numpy())
    return np.array(values)


@pytest.mark.filterwarnings("ignore:(Mean of empty|Degrees of freedom|All-NaN)")
@every_case
@few
@seeds
def test_resamples_are_repeated_datums(name: str, seed: int) -> None:
    """A weight of 2 is the datum twice and a weight of 0 its absence, in every resample.

    Excluded are shares of bins, and values of labels that need no row of the label: tables without
    the bin or the label have no row.
    """
    case = random_case(name, seed)
    rows = scored(name, case, seed=seed, **ASKED)
    assert not rows.select(identity(rows)).is_duplicated().any()
    rows = rows.filter(of_resamples())
    rows = rows.filter(
        pl.col("statistic").is_in(["share", "tn", *EXTREMES]).not_() | pl.col("statistic").is_null()
    )
    rows = rows.filter(
        pl.col("value").is_not_null(), ~pl.col("metric").is_in([*BY_SERIES, *OF_ABSENT])
    )
    still = pl.col("reason").str.contains(NOT_MOVED).fill_null(value=False)
    # Others are not percentiles.
    rows = rows.filter(~still, ~pl.col("metric").is_in(UNDRAWN))
    values = by_tables(name, case, rows, seed)
    defined = (~np.isnan(values)).sum(axis=0)
    assert rows["draws"].to_list() == defined.tolist()
    theirs = rows.select("se", "bias").with_columns(
        se=pl.Series(np.nanstd(values, axis=0, ddof=1)),
        bias=pl.Series(np.nanmean(values, axis=0)) - rows["value"],
    )
    lone = rows["reason"].str.contains("a single datum").fill_null(value=False)
    enough = pl.Series(defined >= 20) & ~lone
    few_draws = rows.filter(~enough)
    assert few_draws["lower"].is_null().all()
    assert few_draws["reason"].str.contains("of 24 resamples have a value|a single datum").all()
    assert_frame_equal(
        rows.filter(enough).select(theirs.columns), theirs.filter(enough), abs_tol=1e-9
    )
    bounds = rows.filter(enough).select("lower", "upper").cast(pl.Float64).to_numpy()
    assert are_percentiles(bounds, values[:, enough.to_numpy()], 0.9).all()


def same(case: Case, ours: pl.DataFrame, theirs: pl.DataFrame) -> None:
    """Compare to the bit; with weights of rows, sums of fractions may be rounded differently."""
    weighted = any("weight" in side.columns for side in case.sides)
    how: dict[str, Any] = {"abs_tol": 1e-12} if weighted else {"check_exact": True}
    assert_frame_equal(ours, theirs, check_row_order=False, **how)


@every_case
@few
@seeds
def test_order_and_threads_change_no_interval(name: str, seed: int) -> None:
    case = few_of(name, seed)
    plain = scored(name, case, **ASKED, threads=1)
    again = scored(name, reordered(case, seed), **ASKED, threads=2)
    same(case, again, plain)


@pytest.mark.parametrize("name", BY_ALL)
def test_other_seeds_give_other_resamples(name: str) -> None:
    case = few_of(name, 4)
    first, second = (scored(name, case, **ASKED, seed=seed) for seed in (0, 1))
    assert_frame_equal(first.select(identity(first)), second.select(identity(first)))
    assert (first["se"] != second["se"]).any()


@every_case
def test_one_cluster_per_datum_changes_nothing(name: str) -> None:
    """Ids are strings, as names of clusters are, so that their weights are the same."""
    case = few_of(name, 5)
    case = each_table(
        case, lambda table: table.with_columns(pl.format("d{}", case.datum).alias(case.datum))
    )
    plain = scored(name, case, **ASKED)
    result = scored(name, clustered(case, str), **ASKED, cluster=CLUSTER)
    said = pl.col("reason").str.replace(f"a single cluster of '{CLUSTER}'", "a single datum")
    assert_frame_equal(result.with_columns(said), plain)


@every_case
@few
@seeds
def test_copies_in_one_cluster_change_no_interval(name: str, seed: int) -> None:
    """With every datum twice, resampled together, intervals equal those of the datums."""
    if name == "centres":
        pytest.skip("nuScenes' curves have a point a row, and lines between points")
    case = few_of(name, seed)
    twice = repeated(case, dict.fromkeys(case.ids, 2))
    asked = {**ASKED, "cluster": CLUSTER}
    once = scored(name, clustered(case, str), **asked)

    def original(copy: Any) -> str:
        return str(copy // MOST_COPIES) if isinstance(copy, int) else copy.split("#")[0]

    both = scored(name, clustered(twice, original), **asked)
    shown = [*identity(once), "value", *ESTIMATES]
    if len(case.ids) < FEW_CLUSTERS:  # t quantiles of a number of clusters that resamples estimate
        shown = [name for name in shown if name not in ("lower", "upper")]
    # Effective trials of shares are at most the number of datums, which is doubled.
    some = ~pl.col("metric").is_in(BY_NUMBER), of_resamples()
    if name == "values":
        some = (*some, ~pl.col("statistic").is_in(BY_COPIES))
    frames = [rows.filter(some).select(shown) for rows in (once, both)]
    assert_frame_equal(*frames, abs_tol=1e-9)


@pytest.mark.parametrize(
    ("name", "method"),
    [*product(BY_ALL, METHODS), *zip((one for one in KINDS if one not in BY_ALL), cycle(METHODS))],
)
def test_every_method_makes_intervals_or_gives_the_reason(name: str, method: str) -> None:
    rows = scored(name, few_of(name, 6), intervals=0.8, draws=20, method=method)
    made = rows["lower"].is_not_null()
    assert (rows["upper"].is_not_null() == made).all()
    assert rows.filter(~made)["reason"].is_not_null().all()
    within = rows.filter(made)
    assert (within["lower"] <= within["upper"]).all()
    assert within["se"].is_not_null().all()
    if method == "wilson":
        shares = {"Accuracy", "Precision", "Recall", "Jaccard", "F1", "Success"}
        assert set(within["metric"]) <= shares
        assert within["average"].is_null().all()
    elif method == "delong":
        assert set(within["metric"]) <= {"ROCAUC"}
    elif method != "logit":  # for values between 0 and 1 only
        assert made.any()


@every_case
@few
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 4))
def test_merged_parts_have_the_intervals_of_one_run(name: str, seed: int, n: int) -> None:
    """Tallies of parts, as nights store them, are merged in any order."""
    task = CASES[name][0]
    case = few_of(name, seed)
    case = replace(case, options={**case.options, **ASKED})
    frames = parts.frames_of(case, task)
    plan = planner.fitted(parts.plan_of(case, task), frames)
    whole = planner.run(plan, frames, Threads(1))
    merged = planner.merge(
        plan, [parts.tallied(one, plan) for one in parts.cut(case, task, seed, n)]
    )
    found = []
    for tallies in (whole, merged):
        asked = parse_intervals(make_options(**case.options))
        assert asked is not None
        estimate = Estimates(plan, tallies, asked, Threads(1))
        makers, _ = summary.summarise(plan, tallies, estimate=estimate)
        found.append(makers["metrics"]())
    assert found[0]["lower"].is_not_null().any()
    same(case, *found)
