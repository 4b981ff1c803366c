"""Significance tests of differences and of spread over groups; corrections for many tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np
import polars as pl

from ..evaluation.summary import Computed, Result, Tallied, summarise
from ..ingest.problems import Note, count_of
from ..metrics.registry import Metric
from ..schemas.arrays import Array
from ..schemas.errors import N_EXAMPLES, OptionError, ResultError
from ..schemas.option_values import Intervals
from ..schemas.options import Options
from ..schemas.results import METRICS, frame_schema, in_schema
from ..schemas.wording import option
from ..tallies.datums import Cells
from ..tasks.encoding import cluster_codes
from .intervals import METHODS, WIDTHLESS, Sample, degrees_of_freedom, normal_cdf, t_cdf
from .resamples import Drawing, column_of, places

# Tests of a difference from the values of single datums, in closed form.

Single = tuple[float, float, Array, Array]
"""The two numbers, and their per-datum values, float64 [n] each, NaN if undefined."""


def paired_t(single: Single) -> float:
    """Return the two-sided p of Student's paired t-test; NaN unless numbers are datum means.

    Source: Student, "The probable error of a mean" (1908).
    """
    gap, se, df = paired_error(single)
    if se == 0:
        return 1.0 if gap == 0 else 0.0
    if math.isnan(se):
        return math.nan
    return max(0.0, 2 * (1 - t_cdf(abs(gap) / se, df)))  # the function may round to above 1


def paired_error(single: Single) -> tuple[float, float, int]:
    """Return the mean difference of datums, its standard error, and the degrees of freedom.

    NaN unless both numbers are means over two or more datums.
    """
    of_a, of_b = _defined_values(single)
    delta = of_b - of_a
    if delta.size < 2:
        return math.nan, math.nan, 0
    return float(delta.mean()), float(delta.std(ddof=1)) / math.sqrt(delta.size), delta.size - 1


def mcnemar(single: Single) -> float:
    """Return the exact two-sided p of McNemar's test; NaN if the numbers are not shares of datums.

    Source: Q. McNemar, "Note on the sampling error of the difference between correlated
    proportions or percentages" (1947).
    Exact: the binomial distribution of the datums on which the two differ.
    """
    of_a, of_b = _defined_values(single)
    if not of_a.size or not all(np.isin(of, (0.0, 1.0)).all() for of in (of_a, of_b)):
        return math.nan
    gained, lost = int((of_b > of_a).sum()), int((of_b < of_a).sum())
    n, k = gained + lost, np.arange(min(gained, lost))
    logs = np.concatenate([[0.0], np.cumsum(np.log(n - k) - np.log(k + 1))])  # logs of binomials
    return min(1.0, 2 * float(np.exp(logs - n * math.log(2)).sum()))


def discordant(single: Single) -> tuple[int, int, int]:
    """Count datums of two shares, those that only the second has right, and only the first.

    All 0 unless both are shares of the same datums.
    """
    _, _, of_a, of_b = single
    defined_a, defined_b = _defined_values(single)
    if not defined_a.size or not np.array_equal(np.isnan(of_a), np.isnan(of_b)):
        return 0, 0, 0
    if not all(np.isin(of, (0.0, 1.0)).all() for of in (defined_a, defined_b)):
        return 0, 0, 0
    return defined_a.size, int((defined_b > defined_a).sum()), int((defined_b < defined_a).sum())


def _defined_values(single: Single) -> tuple[Array, Array]:
    """Return values of datums defined in both runs; empty if numbers are not their means."""
    a, b, of_a, of_b = single
    defined = ~(np.isnan(of_a) | np.isnan(of_b))
    of_a, of_b = of_a[defined], of_b[defined]
    rounding = 1e-9 * max(np.abs(of_a).max(initial=0.0), np.abs(of_b).max(initial=0.0))
    if not of_a.size or abs(of_a.mean() - a) > rounding or abs(of_b.mean() - b) > rounding:
        return of_a[:0], of_b[:0]
    return of_a, of_b


def delong_p(gap: float, variance: float, units: float) -> float:
    """Return the two-sided p of DeLong's test of two areas under ROC curves over the same datums.

    Source: E. R. DeLong et al. (1988); with clusters N. Obuchowski (1997). Student's t if units
    are few, with the degrees of freedom of the intervals.

    Args:
        gap: difference of the areas.
        variance: its variance; NaN if unknown.
        units: effective number of datums or clusters.
    """
    if math.isnan(variance):
        return math.nan
    if variance <= 0:
        return 1.0 if abs(gap) < WIDTHLESS else math.nan
    z = abs(gap) / math.sqrt(variance)
    if (df := degrees_of_freedom(units)) is not None:
        return max(0.0, 2 * (1 - t_cdf(z, df)))
    return float(2 * normal_cdf(np.array([-z]))[0])


RANDOMISATION, DELONG = "randomisation", "delong"
TESTS: dict[str, Callable[[Single], float] | None] = {
    RANDOMISATION: None,
    "t": paired_t,
    "mcnemar": mcnemar,
    DELONG: lambda single: math.nan,
}
"""Tests by the names of the option ``test``; None if the test uses resamples. DeLong's is computed
from placements, not from values of single datums."""


# Many tests at once: p-values adjusted so that few of them are small by luck.


def holm(p: Array) -> Array:
    """Adjust p-values to control the family-wise error rate.

    Source: S. Holm, "A simple sequentially rejective multiple test procedure" (1979).

    Args:
        p: float64 [m], without NaN.
    """
    order = np.argsort(p, kind="stable")
    return _placed(np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)), order)


def benjamini_hochberg(p: Array) -> Array:
    """Adjust p-values to control the false discovery rate.

    Source: Y. Benjamini, Y. Hochberg, "Controlling the false discovery rate" (1995).

    Args:
        p: float64 [m], without NaN.
    """
    order = np.argsort(p, kind="stable")[::-1]
    return _placed(np.minimum.accumulate(p[order] * p.size / np.arange(p.size, 0, -1)), order)


def _placed(adjusted: Array, order: Array) -> Array:
    out = np.empty(order.size)
    out[order] = np.minimum(adjusted, 1.0)
    return out


ADJUSTMENTS: dict[str, Callable[[Array], Array]] = {
    "holm": holm,
    "bh": benjamini_hochberg,
    "none": lambda p: p,
}
"""Adjustments by the name that the option ``adjust`` knows them by."""


def least_adjusted(draws: int, n_tests: int, adjust: str) -> float:
    """Return the smallest adjusted p of one of many numbers, of which p is a share of resamples.

    Benjamini and Hochberg's reaches the smallest p if those of all others are as small.
    """
    return (n_tests if adjust == "holm" else 1) / (draws + 1)


def adjusted(p: Array, adjust: str) -> Array:
    """Return adjusted p-values, float64 [m]; NaN stays NaN and does not count as a test.

    Args:
        p: float64 [m].
        adjust: one of :data:`ADJUSTMENTS`.
    """
    out = np.full(p.size, np.nan)
    defined = ~np.isnan(p)
    out[defined] = ADJUSTMENTS[adjust](p[defined])
    return out


_TIE = 1e-10  # rounding, as a share of a number; roots of sums of large and small squares


def randomisation_p(observed: Array, drawn: Array, size: Array | float = 1.0) -> Array:
    """Return two-sided p-values: share of resamples at least as extreme, add-one corrected.

    Args:
        observed: float64 [m], differences.
        drawn: float64 [resamples, m], differences under randomisation, NaN if undefined.
        size: float64 [m], scale of rounding errors.

    Returns:
        float64 [m], NaN if the difference or all resamples are undefined.
    """
    defined = ~np.isnan(drawn)
    # Values equal up to rounding count as extreme, since resamples are summed in another order.
    slack = _TIE * np.fmax(np.abs(observed), size)
    extreme = (np.abs(np.where(defined, drawn, 0.0)) >= np.abs(observed) - slack) & defined
    n = defined.sum(axis=0)
    p = (1 + extreme.sum(axis=0)) / (1 + n)
    return np.where(np.isnan(observed) | (n == 0), np.nan, p)


def cannot_be_significant(clusters: int, level: float) -> bool:
    """Return True if so few clusters have too few permutations for a small p."""
    return bool(0.5 ** (clusters - 1) > 1 - level)


# One number of a run within some datums and in all others, and whether they differ by luck.


class SliceComparison(msgspec.Struct, frozen=True):
    """Comparison of a slice with all other datums.

    Attributes:
        value: number within the slice, NaN if undefined.
        lower: lower bound of its interval.
        upper: upper bound.
        elsewhere: number over all other datums.
        p: two-sided, normal test of the difference, with its standard deviation over resamples; NaN
            if undefined.
    """

    value: float
    lower: float
    upper: float
    elsewhere: float
    p: float


def leading(tallied: Tallied) -> Metric:
    """Return the metric used to compare slices: the first that gives one number per run.

    Counts are skipped, since they grow with the number of datums.

    Raises:
        ResultError: all metrics of the run are by label, counts, or without a better direction.
    """
    plan, group = tallied.plan, np.zeros(len(tallied.tallies.datums), np.int32)
    able = [
        metric
        for metric in plan.metrics
        if metric.frame == "metrics"
        and metric.compute is not None
        and not metric.counts
        and plan.dialect.better.get(metric.name, metric.better) != "neither"
    ]
    if able:
        view = plan.does.view(tallied.tallies, plan.settings, group, 1, threads=tallied.threads)
    for metric in able:
        assert metric.compute is not None
        if _of_all(metric.compute(view, plan.settings_of(metric))) is not None:
            return metric
    named = ", ".join(metric.name for metric in plan.metrics)
    raise ResultError(
        f"no metric of the run ({named}) is one number of a whole run that is better one way:"
        f" name one that is in {option('metrics')}.",
        code="metric_unfit",
    )


def _of_all(cells: Sequence[Cells]) -> int | None:
    """The place of the first cells that are of all labels together."""
    return next((i for i, one in enumerate(cells) if "label" not in one.axes), None)


def compare_slice(
    tallied: Tallied, metric: Metric, inside: Array, among: Array, interval_options: Intervals
) -> SliceComparison:
    """Return a slice's number with its interval, and its difference from the other datums.

    Args:
        tallied: run in memory or loaded, datums with keys.
        metric: its first number of a whole run is used; see :func:`leading`.
        inside: bool [n_datums], the slice.
        among: bool [n_datums], datums that count.
        interval_options: settings of the intervals.

    Raises:
        ResultError: the metric has no resamples.
    """
    plan, threads = tallied.plan, tallied.threads
    group = np.where(among, np.where(inside, 0, 1), -1).astype(np.int32)
    view = plan.does.view(tallied.tallies, plan.settings, group, 2, threads=threads)
    settings = plan.settings_of(metric)
    assert metric.compute is not None
    cells = metric.compute(view, settings)
    first = _of_all(cells)
    assert first is not None
    computed: Computed = (metric, settings, cells)
    drawing = Drawing(plan, tallied.tallies, threads)
    (drawn,) = drawing.values(
        view,
        [computed],
        drawing.by_chance([computed], interval_options.draws, interval_options.seed),
    )
    if isinstance(drawn, str):
        raise ResultError(f"{metric.name} of slices: {drawn}.")
    before = sum(places(one).size for one in cells[:first])
    cell_places, values = places(cells[first]), column_of(cells[first], "value")
    each = values.size // 2
    pair = np.full((drawn.shape[0], 2), np.nan)
    for g in range(2):
        at = np.flatnonzero(cell_places == g * each)
        if at.size:
            pair[:, g] = drawn[:, before + at[0]]
    value, elsewhere = float(values[0]), float(values[each])
    method = METHODS[interval_options.method or metric.interval]
    bounds = method.make(
        Sample(
            point=np.array([value]),
            level=interval_options.level,
            range=metric.range,
            drawn=pair[:, :1],
            left_out=np.zeros((0, 1)),
        )
    )
    return SliceComparison(
        value,
        float(bounds.lower[0]),
        float(bounds.upper[0]),
        elsewhere,
        _p(pair, value - elsewhere),
    )


def _p(pair: Array, stated: float) -> float:
    """Return the two-sided p of a difference, from its resamples.

    Only their standard deviation is used. Their mean is biased: few datums raise interpolated
    precision, and slices are smaller than the rest.
    """
    difference = pair[:, 0] - pair[:, 1]
    difference = difference[~np.isnan(difference)]
    if difference.size < 2 or math.isnan(stated):
        return math.nan
    spread = float(difference.std(ddof=1))
    if spread == 0.0:
        return math.nan if stated == 0.0 else 0.0
    return float(2 * normal_cdf(np.array([-abs(stated) / spread]))[0])


# Spread of numbers over the groups of a slice column, next to what equal groups would show.

_NUMBERS = ("value", "lower", "upper", "support", "scored", "reason", "slice_value")
NUMBER_KEYS = tuple(name for name in METRICS if name not in _NUMBERS)
"""Columns that identify a number, other than its group."""
DRAWS = 200
"""Maximum number of times that groups are mixed, each a summary of the whole run."""
_TITLE = ("metric", "statistic", "average", "label_value")


def add_spread(result: Result, options: Options) -> None:
    """Add the frame ``spread`` to a run.

    Raises:
        OptionError: the rows are not in memory.
    """
    column = options.spread
    assert column is not None
    if result.tallied is None:
        raise OptionError(
            f"{option('spread', column)} needs the rows in memory: raise"
            f" {option('memory_limit')}, or omit it.",
            code="options_conflict",
            options=["spread", "memory_limit"],
        )
    metrics = result.frames["metrics"]()
    result.frames["metrics"] = metrics.clone
    counts = [metric.name for metric in result.plan.metrics if metric.counts]
    named = result.plan.does.fairness
    rows = metrics.filter(~pl.col("metric").is_in(counts))
    differences = _differences(rows, column, named)
    by_chance = _by_chance(result.tallied, options, column, counts, named)
    joined = differences.join(
        by_chance, on=NUMBER_KEYS, how="left", nulls_equal=True, maintain_order="left"
    )
    excess = pl.max_horizontal(pl.col("difference") - pl.col("expected"), 0.0)
    frame = in_schema(
        joined.with_columns(excess=pl.when(pl.col("expected").is_not_null()).then(excess)),
        frame_schema("spread", label=metrics.schema["label_value"]),
    )
    result.frames["spread"] = frame.clone
    unequal = frame.filter(pl.col("difference") > pl.col("expected_95")).sort(
        "excess", descending=True, maintain_order=True
    )
    if unequal.height:
        examples = [
            f"{' '.join(str(row[name]) for name in _TITLE if row[name] is not None)}"
            f" {row['lowest']:.4g} ({row['lowest_group']}) to {row['highest']:.4g}"
            f" ({row['highest_group']})"
            for row in unequal.head(N_EXAMPLES).iter_rows(named=True)
        ]
        more = "; ..." if unequal.height > N_EXAMPLES else ""
        message = (
            f"{column}: its groups differ more than equal groups would in 95 % of cases, in"
            f" {unequal.height:,} of {count_of(frame.height, 'number')}: {'; '.join(examples)}"
            f"{more}. See frame spread."
        )
        result.notes = [*result.notes, Note("groups_differ", message, unequal.height)]


def _differences(
    metrics: pl.DataFrame, column: str, named: Mapping[str, tuple[str, ...]]
) -> pl.DataFrame:
    """Return lowest, highest, difference and ratio of every number over the groups of a column.

    Args:
        metrics: the metrics frame of a run.
        named: name of a criterion -> metrics whose largest difference it is.
    """
    value, group = pl.col("value"), pl.col("slice_value")
    defined = metrics.filter(pl.col("slice") == column, value.is_not_null())
    result = (
        defined.group_by(NUMBER_KEYS, maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("groups"),
            value.min().alias("lowest"),
            value.max().alias("highest"),
            group.sort_by(value, group).first().alias("lowest_group"),
            group.sort_by(value, group, descending=[True, False]).first().alias("highest_group"),
        )
        .filter(pl.col("groups") > 1)
        .with_columns(difference=pl.col("highest") - pl.col("lowest"))
        .with_columns(
            ratio=pl.when(pl.col("lowest") >= 0, pl.col("highest") > 0).then(
                pl.col("lowest") / pl.col("highest")
            )
        )
    )
    parts = [result]
    others = [name for name in NUMBER_KEYS if name != "metric"]
    for name, needed in named.items():
        labelled = result.filter(pl.col("metric").is_in(needed), pl.col("average").is_null())
        worst = (
            labelled.group_by(others, maintain_order=True)
            .agg(
                pl.len().alias("_found"),
                *(
                    pl.col(one).sort_by("difference", descending=True).first()
                    for one in ("groups", "lowest", "highest", "lowest_group", "highest_group")
                ),
                pl.col("difference").max(),
                pl.col("ratio").min(),
            )
            .filter(pl.col("_found") == len(needed))
            .with_columns(metric=pl.lit(name))
        )
        parts.append(worst.select(result.columns))
    return pl.concat(parts)


def _by_chance(
    tallied: Tallied,
    options: Options,
    column: str,
    counts: list[str],
    named: Mapping[str, tuple[str, ...]],
) -> pl.DataFrame:
    """Return mean and 95 % point of the difference if groups of these sizes were equal.

    Clusters exchange their groups; a cluster of several groups is one unit per group.
    """
    datums = tallied.tallies.datums
    codes, names = datums.groups(column)
    cluster: Array = np.arange(codes.size)
    if options.cluster is not None:
        cluster = cluster_codes(datums.slices, options.cluster)
    inside = np.flatnonzero(codes >= 0)
    # Units are ordered by id, so that the order of rows does not matter.
    unit = cluster[inside] * max(len(names), 1) + codes[inside]
    units, of_datum = np.unique(unit, return_inverse=True)
    group_of_unit = units % max(len(names), 1)
    plan = msgspec.structs.replace(
        tallied.plan, options=options.replace(by=(column,), intervals=None)
    )
    rng = np.random.default_rng(options.seed or 0)
    texts = pl.Series(column, [*names, None], dtype=pl.String)
    every = []
    for _ in range(min(DRAWS, options.draws or DRAWS)):
        mixed = np.full(codes.size, len(names), np.int64)
        mixed[inside] = rng.permutation(group_of_unit)[of_datum]
        slices = datums.slices.with_columns(texts.gather(mixed))
        sliced = msgspec.structs.replace(datums, slices=slices)
        tallies = msgspec.structs.replace(tallied.tallies, datums=sliced)
        frames, _ = summarise(plan, tallies, threads=tallied.threads)
        rows = frames["metrics"]().filter(~pl.col("metric").is_in(counts))
        every.append(_differences(rows, column, named).select(*NUMBER_KEYS, "difference"))
    return (
        pl.concat(every)
        .group_by(NUMBER_KEYS, maintain_order=True)
        .agg(
            pl.col("difference").mean().alias("expected"),
            pl.col("difference").quantile(0.95, "linear").alias("expected_95"),
        )
    )
