"""Comparison of runs, intervals of differences, and averages over replicates such as seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import combinations, zip_longest
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..evaluation import planner
from ..evaluation.summary import Tallied
from ..ingest.problems import count_of, listing
from ..kernels.datums import hash_codes
from ..schemas.arrays import Array
from ..schemas.contract import DEFAULT_LABEL_KEY
from ..schemas.option_values import FEW_CLUSTERS, Intervals
from ..schemas.wording import option
from ..scorecard.lookup import KEYS
from ..tallies.datums import Cells
from ..tallies.draws import effective_number
from ..tallies.stats import Fill, skip
from .intervals import (
    WIDTHLESS,
    few_units_t,
    means,
    normal_quantile,
    quantiles,
    resample_quantile,
    standard_errors,
    t_cdf,
    t_quantile,
    tails,
    tango,
)
from .paired import (
    COLUMNS,
    SKIP,
    Numbers,
    Slices,
    answered_by_one,
    by_datum,
    datums_of,
    fill_of,
    identical,
    number_of,
    over_common_values,
    paired_numbers,
    randomised,
    rests_on,
    shared_codes,
)
from .resamples import does_not_vary
from .tests import (
    DELONG,
    TESTS,
    adjusted,
    cannot_be_significant,
    delong_p,
    discordant,
    least_adjusted,
    paired_error,
    paired_t,
    randomisation_p,
)

# Replicates of a model, such as training seeds: averages, and variances over seeds and datums.

_IDENTITY = ["metric", *KEYS]
_BETWEEN, _SHARED, _MANY = "between", "shared", "replicates"


def averaged(runs: Sequence[Numbers]) -> Numbers:
    """Average the numbers that all replicates of a model have, and their resamples.

    Returns:
        numbers, in whose rows ``between`` is the variance of the average that replicates show,
        ``shared`` the part of it that resamples of datums show, too, and ``replicates`` their
        number.
    """
    if len(runs) == 1:
        return runs[0]
    keys = [
        one.rows.with_row_index(f"at_{i}").select(*_IDENTITY, f"at_{i}")
        for i, one in enumerate(runs)
    ]
    at = reduce(
        lambda one, other: one.join(
            other, on=_IDENTITY, how="inner", nulls_equal=True, maintain_order="left"
        ),
        keys,
    )
    places = [at[f"at_{i}"].to_numpy() for i in range(len(runs))]
    value = np.stack(
        [
            one.rows["value"].cast(pl.Float64).fill_null(np.nan).to_numpy()[place]
            for one, place in zip(runs, places, strict=True)
        ]
    )
    drawn = np.stack([one.drawn[:, place] for one, place in zip(runs, places, strict=True)])
    many, first = len(runs), runs[0]
    moved = (drawn - value[:, None]).var(axis=0, ddof=1)  # what a resample does to each, apart
    defined = ~np.isnan(moved)
    shared = np.where(defined, moved, 0.0).sum(axis=0) / np.maximum(1, defined.sum(axis=0))
    rows = first.rows[places[0]].with_columns(
        pl.Series("value", value.mean(axis=0), nan_to_null=True),
        pl.Series(_BETWEEN, value.var(axis=0, ddof=1) / many),
        pl.Series(_SHARED, shared / many),
        pl.lit(many).alias(_MANY),
    )
    failed: dict[int, str] = {}
    for one, place in zip(runs, places, strict=True):
        failed |= {i: one.failed[k] for i, k in enumerate(place.tolist()) if k in one.failed}
    return msgspec.structs.replace(
        first,
        rows=rows,
        drawn=drawn.mean(axis=0),
        failed=failed,
        units=np.min([one.units[place] for one, place in zip(runs, places, strict=True)], axis=0),
        share=first.share[places[0]],
        unfit=first.unfit[places[0]],
        floor=first.floor[places[0]],
    )


Single = dict[tuple[Any, ...], Array]
"""Identity of a number of the whole set, without its slice -> its value for each datum."""


def averaged_values(runs: Sequence[Single]) -> Single:
    """Average the per-datum values that all replicates have; NaN if any is undefined."""
    first, *others = runs
    return {
        key: np.mean([values, *(one[key] for one in others)], axis=0) if others else values
        for key, values in first.items()
        if all(key in one for one in others)
    }


def with_replicates(
    rows: pl.DataFrame, first: Numbers, second: Numbers, level: float, power: float
) -> pl.DataFrame:
    """Replace intervals and p by those of differences of averages, over datums and replicates.

    Datums are common to all replicates, and replicates of both models are independent. The variance
    of the difference is that over resamples of datums, plus that between replicates, less the part
    that both contain: the interaction of datums and replicates. Student's t with the degrees of
    freedom of F. E. Satterthwaite, "An approximate distribution of estimates of variance
    components" (1946). Crossed variance components: S. R. Searle, G. Casella, C. E. McCulloch,
    Variance Components (1992).

    Args:
        rows: differences of :func:`averaged` numbers, with ``se`` over resamples and ``units``.
        level: in (0, 1).
        power: of the detectable difference.
    """
    columns = [_BETWEEN, _SHARED, _MANY]
    for name, one in (("a", first), ("b", second)):
        renamed = one.rows.select(*_IDENTITY, pl.col(columns).name.suffix(f"_{name}"))
        rows = rows.join(renamed, on=_IDENTITY, how="left", nulls_equal=True, maintain_order="left")
    numbers = {
        name: rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
        for name in (
            *("difference", "se", "units"),
            *(f"{name}_{side}" for name in columns for side in "ab"),
        )
    }
    gap, of_datums = numbers["difference"], numbers["se"] ** 2
    between = numbers["between_a"], numbers["between_b"]
    excess = sum(between) - numbers["shared_a"] - numbers["shared_b"]
    variance = of_datums + np.maximum(0.0, excess)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = of_datums**2 / np.maximum(1.0, numbers["units"] - 1)
        for side, part in zip("ab", between, strict=True):
            parts = parts + part**2 / (numbers[f"{_MANY}_{side}"] - 1)
        df = np.where(parts > 0, np.maximum(1.0, np.floor(variance**2 / parts)), np.inf)
        t = np.abs(gap) / np.sqrt(variance)
    out = {name: np.full(gap.size, np.nan) for name in ("lower", "upper", "se", "p", "detectable")}
    for i in np.flatnonzero(variance > 0):
        few = int(min(df[i], 10_000))
        z, se = t_quantile((1 + level) / 2, few), float(np.sqrt(variance[i]))
        out["se"][i], out["detectable"][i] = se, (z + normal_quantile(power)) * se
        out["lower"][i], out["upper"][i] = gap[i] - z * se, gap[i] + z * se
        out["p"][i] = max(0.0, 2 * (1 - t_cdf(float(t[i]), few)))
    return rows.with_columns(
        pl.Series(name, values, nan_to_null=True) for name, values in out.items()
    )


# The comparison of runs over the same datums, from their tallies.

IDENTITY = ("metric", *KEYS)
"""Columns that identify the rows of a metrics frame."""
POWER = 0.8
_WORST = pl.max_horizontal, pl.max_horizontal, pl.min_horizontal
"""Of several replicates, for each of the columns on missing values."""


class Compared(msgspec.Struct, frozen=True):
    """Result of a comparison.

    Attributes:
        differences: one row per pair of runs and number of the metrics frame; ``units`` is the
            effective number of datums or clusters.
        flips: datums whose numbers differ.
        n: number of compared datums.
        left_out: number of datums that only one run has.
        unanswered: per run, the datums without a prediction that are dropped from the means of all
            runs, since some run answers them; may be empty.
        partial: numbers that only one run of a pair has, by metric and label.
        failed: reasons for missing tests, with counts.
        uncounted: numbers with too many per-datum values for memory.
        single: numbers without an interval, since they rest on one datum or cluster.
        unmoved: numbers without an interval, since every resample has the same difference although
            the runs are not identical.
        clusters: number of datums, or clusters of them, that are resampled.
        most: largest number of p-values adjusted together.
        areas: metrics that are areas under ROC curves: those of the two labels of a pair are one.
        repeated: pairs of replicates of one model that agree in every number and resample.
    """

    differences: pl.DataFrame
    flips: pl.DataFrame
    n: int
    left_out: int
    unanswered: dict[str, int]
    partial: list[str]
    failed: dict[str, int]
    uncounted: int
    single: int
    unmoved: int
    clusters: int
    most: int
    areas: frozenset[str] = frozenset()
    repeated: Sequence[tuple[str, str]] = ()


# Notes on a comparison: what it omits, and why few or no differences can be found.


def notes_of(
    comparison: Compared, interval_options: Intervals, adjust: str, *, drawn: bool
) -> list[str]:
    """Return notes on omitted numbers and datums, and on reasons why few differences can be found.

    Args:
        adjust: adjustment of p-values.
        drawn: whether p-values are shares of resamples.
    """
    notes = []
    if comparison.left_out:
        notes.append(
            f"skipped: {count_of(comparison.left_out, 'datum')} that not all runs have; "
            f"{comparison.n:,} are compared."
        )
    if comparison.partial:
        some = listing(dict.fromkeys(comparison.partial))
        notes.append(
            f"skipped: {count_of(len(comparison.partial), 'number')} that only one run has: {some}."
        )
    if comparison.uncounted:
        notes.append(
            f"wins, ties, losses and flips of {count_of(comparison.uncounted, 'number')} are"
            " skipped: they have too many values per datum to keep."
        )
    notes += [f"no test of {count_of(n, 'number')}: {why}." for why, n in comparison.failed.items()]
    if comparison.clusters < FEW_CLUSTERS:
        of = "" if interval_options.cluster is None else f" of {interval_options.cluster!r}"
        what = count_of(comparison.clusters, "cluster" if of else "datum") + of
        message = (
            f"the comparison rests on {what}: of fewer than {FEW_CLUSTERS} intervals are often"
            " too narrow"
        )
        if cannot_be_significant(comparison.clusters, interval_options.level):
            message += f", and p is hardly ever below {0.5 ** (comparison.clusters - 1):.2g}"
        notes.append(f"{message}.")
    for n, why in (
        (comparison.single, does_not_vary(interval_options.cluster)),
        (
            comparison.unmoved,
            "no resample changes the difference, though the runs are not identical",
        ),
    ):
        if n:
            notes.append(f"no interval for {count_of(n, 'number')}: {why}.")
    draws, sure, most = interval_options.draws, 1 - interval_options.level, comparison.most
    if drawn and most and (least_p := least_adjusted(draws, most, adjust)) > sure:
        enough = math.ceil(least_p * (draws + 1) / sure / 1000) * 1000
        among = f"among {count_of(most, 'number')} of one kind (aggregates, labels or slices)"
        which = "p" if adjust == "none" else "adjusted p"
        notes.append(
            f"{draws:,} resamples are too few for any finding {among}"
            f"{' that are adjusted together' * (adjust != 'none')}: no {which} is below"
            f" {min(least_p, 1.0):.2g}. Use more: {option('draws', enough)}"
            f"{', or ask for fewer metrics.' if adjust == 'holm' else '.'}"
        )
    return notes


def compare_runs(
    runs: Mapping[str, Tallied],
    interval_options: Intervals,
    *,
    directions: Mapping[str, str],
    common: bool,
    adjust: str,
    test: str,
    missing: str = SKIP,
    models: Mapping[str, Sequence[str]] | None = None,
) -> Compared:
    """Compare each pair of runs, or of models with several runs each.

    Args:
        runs: name -> run; two or more, of one task and one set of options.
        interval_options: level, draws, seed.
        directions: metric -> ``higher`` or ``lower``, whichever is better.
        common: drop datums that are missing from any run.
        adjust: adjustment of p-values for many rows.
        test: source of p-values, one of :data:`~evalengine.statistics.tests.TESTS`.
        missing: replacement for values that a run does not have.
        models: name -> its runs, two or more of each, whose averages are compared instead; the
            test is then the one of :func:`with_replicates`.

    Raises:
        InputError: the runs have other datums, or other ground truths.
        OptionError: the values cannot be filled in this way.
    """
    names, given_runs = list(runs), runs
    fill = fill_of(missing, [*runs.values()])
    datums = datums_of(runs, common, answered=missing == SKIP)
    n = len(datums.ids)
    made_common = over_common_values(list(runs.values()), list(datums.codes.values()), fill)
    gapped = made_common is not None or bool(datums.unanswered)
    runs = dict(zip(names, made_common or runs.values(), strict=True))
    replicated, models = models is not None, models or {name: [name] for name in names}
    inside = [datums.within(name) for name in names]
    each = dict(zip(names, paired_numbers([*runs.values()], interval_options, inside), strict=True))
    individual_values = {name: singles_of(run, datums.codes[name], n) for name, run in runs.items()}
    repeated = [
        (one, other)
        for run_names in models.values()
        for one, other in combinations(run_names, 2)
        if each[one].rows.height
        and each[one].rows["value"].equals(each[other].rows["value"])
        and np.array_equal(each[one].drawn, each[other].drawn, equal_nan=True)
    ]
    averages = {
        model: averaged([each[name] for name in run_names]) for model, run_names in models.items()
    }
    singles = {
        model: averaged_values([individual_values[name][0] for name in run_names])
        for model, run_names in models.items()
    }
    plans = (run.plan for run in runs.values())
    areas = frozenset(one.name for plan in plans for one in plan.metrics if one.placements)
    parts, flips = [], []
    unmatched: list[str] = []
    failed: dict[str, int] = {}
    single = unmoved = 0
    for a, b in combinations(models, 2):
        mixed, (one, other) = None, (models[a][0], models[b][0])
        if TESTS[test] is None and not replicated:
            both_inside = datums.codes[one] >= 0, datums.codes[other] >= 0
            mixed = randomised(
                (runs[one], runs[other]), both_inside, interval_options.draws, interval_options.seed
            )
        part, absent_in_one, why, still = pair(averages[a], averages[b], mixed, interval_options)
        single += still
        slices = Slices(runs[one], datums.codes[one], n, IDENTITY)
        both = (given_runs[one], given_runs[other]), (datums.codes[one], datums.codes[other])
        if replicated:
            part = with_replicates(part, averages[a], averages[b], interval_options.level, POWER)
        else:
            part, flat = with_shares(
                part,
                interval_options,
                *both,
                slices,
                lambda: (singles[a], singles[b]),  # noqa: B023
            )
            unmoved += flat
        if mixed is None and not replicated:
            if test == DELONG:
                p, se, z = _by_delong(part, (runs[one], runs[other]), both[1], interval_options)
            else:
                p, se, z = _by_test(
                    part, singles[a], singles[b], test, slices, interval_options.level
                )
            part = _with_test(part, p, se, z)
            lost = np.isnan(p) & part["difference"].is_not_null().to_numpy()
            weighted = test == DELONG and any(run.tallies.weighted for run in both[0])
            why += [
                f"the test {test!r} does not {'take weights' if of_area else 'fit them'}"
                for of_area in part.filter(lost)["metric"].is_in([*areas]) & weighted
            ]
        unmatched += absent_in_one
        names_of = [run.tallies.labels.key_names for run in both[0]]
        for name, own, others in ((a, *names_of), (b, *names_of[::-1])):  # keys of one run only
            extra = set(own) - set(others)
            unmatched += [
                label
                for identity in (singles[name] if extra else ())
                if (row := dict(zip(IDENTITY, identity, strict=True)))["label_key"] in extra
                and (label := _named(*(row[column] for column in _NAMED))) not in absent_in_one
            ]
        for reason in why:
            failed[reason] = failed.get(reason, 0) + 1
        counts = _votes(part, singles[a], singles[b], directions)
        gaps = []
        for one, other in zip_longest(models[a], models[b], fillvalue=""):
            sides = [one or models[a][0], other or models[b][0]]
            pairs = {name: given_runs[name] for name in sides}
            compared = all_codes = [datums.codes[name] for name in sides]
            if datums.unanswered:  # those included that one of the two does not answer
                compared = list(datums_of(pairs, common=True).codes.values())
                all_codes = list(shared_codes(*pairs.values())[:2])
            one_run, other_run = pairs.values()
            own = coverage_of(part, (one_run, other_run), all_codes, compared, fill, gapped=gapped)
            gaps.append(own)
        counts += [
            pl.select(worst(*columns)).to_series().alias(name)
            for name, worst, *columns in zip(COLUMNS, _WORST, *gaps, strict=True)
        ]
        part = part.with_columns(pl.lit(a).alias("run_a"), pl.lit(b).alias("run_b"), *counts)
        parts.append(part)
        flips.append(_flips(datums.ids, singles[a], singles[b], directions, a, b))
    table = pl.concat(parts)
    table, most = _with_adjusted(table, adjust, areas)
    order = ["run_a", "run_b", *IDENTITY, *_NUMBERS]
    keys = [run.tallies.datums.keys[datums.codes[name] >= 0] for name, run in runs.items()]
    every_key = np.concatenate(keys)
    clusters = hash_codes(every_key, every_key)[1].size
    if cannot_be_significant(clusters, interval_options.level):
        table = table.with_columns(pl.lit(None, pl.Float64).alias("detectable"))
    return Compared(
        differences=table.select(order),
        flips=pl.concat(flips),
        n=n,
        left_out=datums.left_out,
        unanswered=datums.unanswered,
        partial=unmatched,
        failed=failed,
        uncounted=max(left_out for _, left_out in individual_values.values()),
        single=single,
        unmoved=unmoved,
        clusters=clusters,
        most=most,
        areas=areas,
        repeated=repeated,
    )


def _with_adjusted(
    table: pl.DataFrame, adjust: str, areas: frozenset[str]
) -> tuple[pl.DataFrame, int]:
    """Add the adjusted p-values; also return the largest number that is adjusted together.

    Aggregates, labels, slices and labels of slices are adjusted separately: a thousand labels do
    not make the aggregates less sure. Numbers that are the same under several names are one test.
    """
    raised = np.full(table.height, np.nan)
    p = _floats(table["p"]).copy()
    first = _first_of_same(table, areas)
    p[first != np.arange(first.size)] = np.nan
    sliced, labelled = (table[name].is_not_null().to_numpy() for name in ("slice", "label_value"))
    kind = 2 * sliced + labelled
    families = [np.flatnonzero(kind == one) for one in np.unique(kind)]
    for family in families:
        raised[family] = adjusted(p[family], adjust)
    most = max((int((~np.isnan(p[family])).sum()) for family in families), default=0)
    p_adjusted = pl.Series("p_adjusted", raised[first], nan_to_null=True)
    return table.with_columns(p_adjusted), most


def _first_of_same(table: pl.DataFrame, areas: frozenset[str]) -> Array:
    """Return the first row with the same number, int [rows]; most often the row itself.

    The equal areas of both labels of a pair are the same. So are different metrics of one scope
    that agree in values, resamples, test and flips, such as accuracy and micro-averaged F1.
    """
    at = pl.int_range(pl.len()).alias("at")
    first = np.arange(table.height)
    same = [name for name in ("run_a", "run_b", *IDENTITY) if name != "label_value"]
    of_pair = pl.col("metric").is_in(areas) & pl.col("label_value").is_not_null()
    pairs = table.with_columns(at).filter(of_pair).group_by(same, maintain_order=True)
    for _, rows in pairs:
        spread = np.ptp(rows.select("a", "b").to_numpy(), axis=0).max()
        if rows.height == 2 and spread <= WIDTHLESS:
            first[rows["at"][1]] = rows["at"][0]
    moving = table.with_columns(at, pl.col("a", "b", "se").round_sig_figs(12)).filter(
        pl.col("p").is_not_null() & (pl.col("se") > 0)
    )
    earliest = pl.col("at").min().over([*_SCOPE, "a", "b", "se", "p", "wins", "ties", "losses"])
    for place, one in moving.select("at", earliest.alias("first")).iter_rows():
        first[place] = first[one]
    return first


def count_tests(table: pl.DataFrame) -> int:
    """Count the tests of differences: numbers with a p-value, the same ones once."""
    p = _floats(table["p"])
    return int((~np.isnan(p[np.unique(_first_of_same(table, frozenset()))])).sum())


_SCOPE = ("run_a", "run_b", "label_key", "label_value", "slice", "slice_value")


def with_own(built_in: Compared, own: Compared, adjust: str) -> Compared:
    """Return the comparison of the same runs by built-in and by own metrics together."""
    differences = pl.concat([built_in.differences, own.differences], how="vertical_relaxed")
    table, most = _with_adjusted(differences, adjust, built_in.areas)
    failed = {
        why: built_in.failed.get(why, 0) + own.failed.get(why, 0)
        for why in built_in.failed | own.failed
    }
    return msgspec.structs.replace(
        built_in,
        differences=table,
        flips=pl.concat([built_in.flips, own.flips], how="diagonal_relaxed"),
        partial=[*built_in.partial, *own.partial],
        failed=failed,
        uncounted=built_in.uncounted + own.uncounted,
        single=built_in.single + own.single,
        unmoved=built_in.unmoved + own.unmoved,
        most=most,
    )


_NUMBERS = (
    "a",
    "b",
    "difference",
    "lower",
    "upper",
    "se",
    "p",
    "p_adjusted",
    "wins",
    "ties",
    "losses",
    "detectable",
    "support",
    *COLUMNS,
    "units",
)


# -- a pair of runs --------------------------------------------------------------------------------


def pair(
    first: Numbers,
    second: Numbers,
    mixed: tuple[pl.DataFrame, Array] | None,
    interval_options: Intervals,
    *,
    recentred: bool = False,
) -> tuple[pl.DataFrame, list[str], list[str], int]:
    """Return the differences of two runs, one row per number that both have.

    Args:
        first: the run that is subtracted.
        second: the other run.
        mixed: rows and differences under randomisation; None without that test.
        interval_options: level of intervals.
        recentred: shift the resamples so that their mean is the difference. Resamples of
            interpolated
            precision are biased; the bias cancels only between runs over the same datums.

    Returns:
        differences, in which column ``size`` is the scale of rounding errors and
        ``share`` marks shares of datums (both dropped by :func:`with_shares`), and ``units`` is the
        effective number of datums or clusters; numbers that only one run has; reasons for missing
        tests; count of numbers without an interval, since they rest on one datum or cluster.
    """
    a = first.rows.with_row_index("at_a").select(
        *IDENTITY, "at_a", pl.col("value").alias("a"), "support"
    )
    b = second.rows.with_row_index("at_b").select(*IDENTITY, "at_b", pl.col("value").alias("b"))
    rows_m, swaps_m = (first.rows, first.drawn[:0]) if mixed is None else mixed
    m = rows_m.with_row_index("at_m").select(*IDENTITY, "at_m")
    rows = a.join(b, on=IDENTITY, how="inner", nulls_equal=True, maintain_order="left")
    rows = rows.join(m, on=IDENTITY, how="left", nulls_equal=True, maintain_order="left")
    unmatched = [
        _named(**row)
        for mine, other in ((a, b), (b, a))
        for row in mine.join(other, on=IDENTITY, how="anti", nulls_equal=True)
        .select(_NAMED)
        .iter_rows(named=True)
    ]
    at_a, at_b = rows["at_a"].to_numpy(), rows["at_b"].to_numpy()
    moved = second.drawn[:, at_b] - first.drawn[:, at_a]
    at_m = rows["at_m"]
    of_m = at_m.fill_null(0).to_numpy()
    swaps = swaps_m[:, of_m] if swaps_m.shape[1] else np.full((0, rows.height), np.nan)
    swaps = np.where(at_m.is_null().to_numpy(), np.nan, swaps)
    difference = _floats(rows["b"]) - _floats(rows["a"])
    units = np.minimum(first.units[at_a], second.units[at_b])
    z = resample_quantile(interval_options.level, units, units.size)
    lower, upper = quantiles(moved, tails(z)) + ((difference - means(moved)) if recentred else 0.0)
    se = standard_errors(moved)
    undefined = np.isnan(difference)
    still = units < 1 + 1e-9
    single = int((still & ~undefined).sum())
    still |= undefined | first.unfit[at_a]
    size = np.fmax(np.abs(_floats(rows["a"])), np.abs(_floats(rows["b"])))
    size = np.fmax(size, first.floor[at_a])
    p = randomisation_p(difference, swaps, size)
    reach = z + normal_quantile(POWER)
    why = [
        reason
        for i, (x, y) in enumerate(zip(at_a.tolist(), at_b.tolist(), strict=True))
        if (reason := first.failed.get(x) or second.failed.get(y)) and not undefined[i]
    ]
    new_columns = {
        "difference": difference,
        "lower": np.where(still, np.nan, lower),
        "upper": np.where(still, np.nan, upper),
        "se": np.where(still, np.nan, se),
        "p": p,
        "detectable": np.where(still, np.nan, reach * se),
        "size": size,
        "units": units,
        "share": first.share[at_a] & second.share[at_b],
    }
    columns = [pl.Series(name, values, nan_to_null=True) for name, values in new_columns.items()]
    return rows.drop("at_a", "at_b", "at_m").with_columns(columns), unmatched, why, single


def coverage_of(
    rows: pl.DataFrame,
    runs: tuple[Tallied, Tallied],
    both: Sequence[Array],
    compared: Sequence[Array],
    fill: Fill,
    *,
    gapped: bool,
) -> list[pl.Series]:
    """Return the columns :data:`.COLUMNS` of the differences of two runs.

    Args:
        rows: the differences.
        both: int32 [n_datums] each, index among the datums of both runs, -1 for others.
        compared: same, but -1 also for datums that are not compared.
        fill: replacement for missing values.
        gapped: some value is missing.
    """
    kinds = dict(zip(COLUMNS, (pl.Int64(), pl.Int64(), pl.Float64()), strict=True))
    if not gapped:
        every = pl.DataFrame([(0, 0, 1.0)] * rows.height, kinds, orient="row")
        return every.get_columns()
    n = 1 + max(int(code.max(initial=-1)) for code in both)
    slices = Slices(runs[0], both[0], n, IDENTITY)
    after = over_common_values(runs, compared, fill) or runs
    rests = []
    for old, new, code, other in zip(runs, after, both, compared, strict=True):
        rests.append(singles_of(old, code, n, rests_on)[0])
        rests.append(singles_of(new, np.where(other >= 0, code, -1), n, rests_on)[0])
    coverage: list[tuple[int | None, int | None, float | None]] = []
    for key in rows.select(IDENTITY).iter_rows():
        matched = slices.of(key, *rests)
        if len(matched) < len(rests):
            coverage.append((None, None, None))
            continue
        a, after_a, b, after_b = matched
        lost = int(((a > after_a) | (b > after_b)).sum())
        missing_a = int(((b > after_b) | (a < after_a)).sum())
        missing_b = int(((a > after_a) | (b < after_b)).sum())
        either = int(((a > 0) | (b > 0)).sum())
        coverage.append((missing_a, missing_b, (either - lost) / either if either else 1.0))
    return pl.DataFrame(coverage, kinds, orient="row").get_columns()


def with_shares(
    rows: pl.DataFrame,
    interval_options: Intervals,
    runs: tuple[Tallied, Tallied],
    codes: tuple[Array, Array],
    slices: Slices | None,
    singles: Callable[[], tuple[Single, Single]],
) -> tuple[pl.DataFrame, int]:
    """Replace intervals of shares of the same independent datums by Tango's.

    Remove other intervals of differences equal in all resamples, unless runs are identical.

    Args:
        rows: result of :func:`pair`.
        interval_options: level, cluster.
        runs: the run that is subtracted, and the other.
        codes: int32 [n_datums] each, index of each datum among those compared, -1 for others.
        slices: datums of slices; None if the runs have different datums.
        singles: provider of the per-datum numbers of both.

    Returns:
        the rows; count of numbers without an interval for this reason.
    """
    tie, share = WIDTHLESS * _floats(rows["size"]), rows["share"]
    rows = rows.drop("size", "share")
    first, second = runs
    lower, upper, se = (_floats(rows[name]).copy() for name in ("lower", "upper", "se"))
    flat = se <= tie
    proportions = (share & rows["average"].is_null()).to_numpy() & ~np.isnan(se)
    if slices is None or interval_options.cluster is not None or first.tallies.weighted:
        proportions[:] = False
    if not (flat.any() or proportions.any()):
        return rows, 0
    if flat.any() and slices is not None and identical(first.tallies, second.tallies, codes):
        return rows, 0
    lower[flat] = upper[flat] = np.nan
    if slices is not None and proportions.any():
        a, b = singles()
        counts = np.zeros((3, rows.height))
        every = rows.select("a", "b", *IDENTITY)
        for i in np.flatnonzero(proportions):
            of_a, of_b, *key = every.row(int(i))
            matched = slices.of(tuple(key), a, b)
            if len(matched) == 2:
                counts[:, i] = discordant((of_a, of_b, matched[0], matched[1]))
        bounds = tango(counts[0], counts[1], counts[2], interval_options.level)
        lower, upper = (
            np.where(counts[0], *pair) for pair in zip(bounds, (lower, upper), strict=True)
        )
    without_interval = np.isnan(lower) & flat
    new_columns = {
        "lower": lower,
        "upper": upper,
        "se": np.where(without_interval, np.nan, se),
        "detectable": np.where(flat, np.nan, _floats(rows["detectable"])),
    }
    columns = [pl.Series(name, values, nan_to_null=True) for name, values in new_columns.items()]
    return rows.with_columns(columns), int(without_interval.sum())


_NAMED = ("metric", "average", "label_key", "label_value")


def _named(metric: str, average: str | None, label_key: str | None, label_value: Any) -> str:
    key = None if label_key == DEFAULT_LABEL_KEY else label_key
    of = key if label_value is None else label_value
    text = metric if average is None else f"{metric} {average}"
    return text if of is None else f"{text} of {of}"


def _with_test(rows: pl.DataFrame, p: Array, se: Array, z: Array) -> pl.DataFrame:
    """Replace p, and the interval where the test has a standard error.

    Args:
        z: half-width of the interval in standard errors.
    """
    gap, has_se = _floats(rows["difference"]), se > 0
    new_columns = {"p": p}
    for name, value in {
        "lower": gap - z * se,
        "upper": gap + z * se,
        "se": se,
        "detectable": (z + normal_quantile(POWER)) * se,
    }.items():
        new_columns[name] = np.where(has_se, value, _floats(rows[name]))
    return rows.with_columns(
        pl.Series(name, values, nan_to_null=True) for name, values in new_columns.items()
    )


def _by_test(
    rows: pl.DataFrame, first: Single, second: Single, test: str, slices: Slices, level: float
) -> tuple[Array, Array, Array]:
    """Return p of a closed-form test, its standard error and the quantile of its interval.

    NaN if not applicable, float64 [rows] each.
    """
    function = TESTS[test]
    assert function is not None
    p, se, z = (np.full(rows.height, np.nan) for _ in range(3))
    for i, (key, row) in enumerate(
        zip(rows.select(IDENTITY).iter_rows(), rows.iter_rows(named=True), strict=True)
    ):
        if row["difference"] is None:
            continue
        matched = slices.of(key, first, second)
        if len(matched) == 2:
            single = row["a"], row["b"], matched[0], matched[1]
            p[i] = function(single)
            if function is paired_t and p[i] >= 0:
                _, se[i], df = paired_error(single)
                z[i] = t_quantile((1 + level) / 2, df)
    return p, se, z


def _by_delong(
    rows: pl.DataFrame,
    runs: tuple[Tallied, Tallied],
    codes: tuple[Array, Array],
    interval_options: Intervals,
) -> tuple[Array, Array, Array]:
    """Return p of DeLong's paired test, its standard error and quantile; see :func:`_by_test`."""
    p, se, units = (np.full(rows.height, np.nan) for _ in range(3))
    metrics = {one.name: one for one in runs[0].plan.metrics}
    keys = None
    if interval_options.cluster is not None:
        keys = np.zeros(1 + int(codes[0].max(initial=-1)), np.uint64)
        keys[codes[0][codes[0] >= 0]] = runs[0].tallies.datums.keys[codes[0] >= 0]
    views: dict[tuple[Any, ...], Any] = {}

    def placed(metric: Any, run: Tallied, code: Array, column: str | None) -> Any:
        """Placements by slice and label, with the index of each datum among those compared."""
        key = metric.name, column, id(run)
        if key not in views:
            datums = run.tallies.datums
            group, names = np.zeros(len(datums), np.int32), [""]
            if column is not None:
                group, names = datums.groups(column)
            group = np.where(code >= 0, group, -1).astype(np.int32)
            view = run.plan.does.view(
                run.tallies, run.plan.settings, group, len(names), threads=run.threads
            )
            named = run.tallies.labels.frame.select("label_key", "label_value").rows()
            views[key] = {
                (names[g], *named[label]): one
                for (g, label), one in metric.placements(view, code).items()
            }
        return views[key]

    for i, row in enumerate(rows.iter_rows(named=True)):
        metric = metrics.get(row["metric"])
        if metric is None or metric.placements is None or row["difference"] is None:
            continue
        key = row["slice_value"] or "", row["label_key"], row["label_value"]
        one, other = (
            placed(metric, run, code, row["slice"]).get(key)
            for run, code in zip(runs, codes, strict=True)
        )
        change = None if one is None or other is None else other.minus(one, keys)
        if change is not None:
            sizes = np.unique(np.concatenate(change.unit), return_counts=True)[1]
            variance = change.variance(clustered=keys is not None)
            se[i], units[i] = math.sqrt(variance), effective_number(sizes)
            p[i] = delong_p(row["difference"], variance, units[i])
    return p, se, few_units_t(interval_options.level, units, units.size)


def _floats(column: pl.Series) -> Array:
    return np.asarray(column.cast(pl.Float64).fill_null(float("nan")).to_numpy())


# -- single datums ---------------------------------------------------------------------------------


def singles_of(
    run: Tallied, codes: Array, n: int, of: Callable[[Cells], Array] = number_of
) -> tuple[Single, int]:
    """Return per-datum values of every whole-set number; count of those too large."""
    left_out = 0
    singles: Single = {}
    labels = run.tallies.labels
    for metric, cells, values in by_datum(run, codes, n, of):
        if values is None:
            left_out += math.prod(cells.shape[1:])
            continue
        rows = _rows_of(metric, cells, labels)
        flat = values.reshape(n, -1)
        for place, identity in rows:
            singles[identity] = flat[:, place]
    return singles, left_out


def _rows_of(metric: Any, cells: Any, labels: Any) -> list[tuple[int, tuple[Any, ...]]]:
    """Place on the axes behind the group, and identity, of every number of single datums."""
    from ..evaluation.summary import frame_of, label_axes, rows_of
    from ..schemas.results import frame_schema

    one = msgspec.structs.replace(
        cells,
        shape=(1, *cells.shape[1:]),
        keep=None,
        reason=None,
        codes={},
        columns={
            name: value
            if not isinstance(value, np.ndarray) or value.ndim < len(cells.shape)
            else value[:1]
            for name, value in cells.columns.items()
        },
    )
    schema = frame_schema("metrics", label=labels.dtype)
    rows = rows_of(metric, one, label_axes(labels), schema, None, {})
    frame = frame_of([rows], schema)
    return list(enumerate(frame.select(IDENTITY).iter_rows()))


def _votes(
    rows: pl.DataFrame, first: Single, second: Single, directions: Mapping[str, str]
) -> list[pl.Series]:
    """Count, per number, the datums that are better, equal and worse in the second run.

    Only datums with a value in both runs count; null if there are none or the metric has no
    direction.
    """
    wins: list[int | None] = []
    ties: list[int | None] = []
    losses: list[int | None] = []
    where = IDENTITY.index("slice")
    for identity in rows.select(IDENTITY).iter_rows():
        a, b = first.get(identity), second.get(identity)
        common = 0 if a is None or b is None else int((~np.isnan(a) & ~np.isnan(b)).sum())
        direction = directions.get(identity[0], "higher")
        unsaid = identity[where] is not None or direction == "neither"
        if a is None or b is None or not common or unsaid:
            for column in (wins, ties, losses):
                column.append(None)
            continue
        better, worse = _moved(a, b, direction)
        wins.append(int(better.sum()))
        losses.append(int(worse.sum()))
        ties.append(int(common - better.sum() - worse.sum()))
    return [
        pl.Series(name, values, dtype=pl.Int64)
        for name, values in (("wins", wins), ("ties", ties), ("losses", losses))
    ]


def _moved(a: Array, b: Array, direction: str) -> tuple[Array, Array]:
    """Find the datums that became better, and those that became worse."""
    change = b - a if direction != "lower" else a - b
    size = np.fmax(np.abs(a), np.abs(b))
    tie = WIDTHLESS * size.max(initial=0.0, where=np.isfinite(size))
    with np.errstate(invalid="ignore"):
        return change > tie, change < -tie


def _flips(
    ids: pl.Series, first: Single, second: Single, directions: Mapping[str, str], a: str, b: str
) -> pl.DataFrame:
    """Datums whose aggregates differ between two runs, the largest changes first."""
    label = IDENTITY.index("label_value")
    parts = []
    for identity, of_a in first.items():
        of_b = second.get(identity)
        direction = directions.get(identity[0], "higher")
        if of_b is None or identity[label] is not None or direction == "neither":
            continue
        better, worse = _moved(of_a, of_b, direction)
        at = np.flatnonzero(better | worse)
        if not at.size:
            continue
        at = at[np.argsort(-np.abs(of_b[at] - of_a[at]), kind="stable")]
        same = dict(zip(IDENTITY, identity, strict=True))
        parts.append(
            pl.DataFrame(
                {
                    "run_a": [a] * at.size,
                    "run_b": [b] * at.size,
                    "datum_id": ids.gather(at),
                    **{
                        name: pl.Series([same[name]] * at.size, dtype=dtype)
                        for name, dtype in _FLIP.items()
                    },
                    "a": of_a[at],
                    "b": of_b[at],
                    "change": np.where(better[at], "better", "worse"),
                }
            )
        )
    schema: dict[str, Any] = {
        "run_a": pl.String,
        "run_b": pl.String,
        "datum_id": ids.dtype,
        **_FLIP,
        "a": pl.Float64,
        "b": pl.Float64,
        "change": pl.String,
    }
    return pl.concat(parts) if parts else pl.DataFrame(schema=schema)


_FLIP = {
    "metric": pl.String(),
    "statistic": pl.String(),
    "label_key": pl.String(),
    "average": pl.String(),
    "iou_threshold": pl.Float64(),
    "score_threshold": pl.Float64(),
    "k": pl.Int64(),
    "area": pl.String(),
    "max_detections": pl.Int64(),
    "parameters": pl.String(),
}


# Intervals of differences between a run and an earlier one, for gates.


class Margins(msgspec.Struct, frozen=True):
    """Differences between a run and an earlier one: the run minus the earlier one.

    Attributes:
        rows: one row per number that both have, with the columns that identify it and ``a``
            (earlier), ``b``, ``difference``, ``lower``, ``upper``, ``support``, ``missing_a``,
            ``missing_b`` and ``coverage``, and, if known, ``units``.
        level: confidence of the intervals, in (0, 1).
        remark: text on how much the data of the runs differ, or that they are too few; may be
            empty.
    """

    rows: pl.DataFrame
    level: float
    remark: str = ""


def margins(first: Tallied, second: Tallied, differing: int, intervals: Intervals) -> Margins:
    """Compute the differences of the numbers of two runs, with bootstrap intervals.

    A datum has the same weight in both runs, so that shared datums cancel and others vary
    independently. This covers runs over the same datums (paired resamples), over disjoint datums
    (independent resamples), and everything between. If means skip datums without a prediction,
    shared datums that only one run answers are dropped, as in every comparison.

    Args:
        first: the earlier run.
        second: the run.
        differing: number of shared datums whose ground truths differ.
        intervals: settings of the intervals.
    """
    only = answered_by_one(first, second)
    all_codes = shared_codes(first, second)[:2]
    compared = [np.where(left, -1, code) for left, code in zip(only, all_codes, strict=True)]
    common_runs = over_common_values((first, second), compared, skip)
    runs = common_runs or [first, second]
    drawn = paired_numbers(runs, intervals, [~left if left.any() else None for left in only])
    same = first.tallies.datums.id.equals(second.tallies.datums.id)
    rows, *_ = pair(drawn[0], drawn[1], None, intervals, recentred=not same)
    n = 1 + max(int(code.max(initial=-1)) for code in compared)
    slices = Slices(runs[0], compared[0], n, IDENTITY) if same else None
    codes = compared[0], compared[1]
    shares = [metric.name for metric in first.plan.metrics if metric.trials is not None]

    def of_datums() -> tuple[Single, Single]:
        a, b = (
            singles_of(
                msgspec.structs.replace(run, plan=planner.narrowed(run.plan, shares)), code, n
            )[0]
            for run, code in zip(runs, compared, strict=True)
        )
        return a, b

    rows, _ = with_shares(rows, intervals, (first, second), codes, slices, of_datums)
    gapped = common_runs is not None or bool(only[0].any() or only[1].any())
    both = (first, second)
    columns = coverage_of(rows, both, all_codes, compared, skip, gapped=gapped)
    return Margins(
        rows.with_columns(columns),
        intervals.level,
        _describe_differences(first, second, differing, int(only[1].sum())),
    )


def covers_other_datums(first: Tallied, second: Tallied) -> bool:
    """Return True if the means of two runs cover different subsets of their shared datums."""
    only = answered_by_one(first, second)
    if any(one.any() for one in only):
        return True
    return over_common_values((first, second), shared_codes(first, second)[:2], skip) is not None


def _describe_differences(first: Tallied, second: Tallied, differing: int, n_single: int) -> str:
    """Describe how far the data of two runs differ, and if they are too few."""
    ids, others = second.tallies.datums.id, first.tallies.datums.id
    same_type = ids.dtype.is_integer() == others.dtype.is_integer()
    shared = int(ids.is_in(others.implode()).sum()) if same_type else 0
    messages = []
    if not shared == len(ids) == len(others):
        messages.append(
            f"{shared:,} of {len(ids):,} datums are among the baseline's {len(others):,}"
        )
    if n_single:
        messages.append(
            f"{n_single:,} datums with a prediction in only one of the two runs are skipped in both"
        )
    if differing:
        messages.append(f"{differing:,} datums have other ground truths")
    clusters = np.unique(second.tallies.datums.keys).size
    if clusters < FEW_CLUSTERS:
        messages.append(f"of {clusters} clusters or datums intervals are often too narrow")
    return ", ".join(messages)
