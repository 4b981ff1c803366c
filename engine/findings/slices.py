"""Worst slices of a run."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import msgspec
import numpy as np
import polars as pl

from ..evaluation.paging import losses_of
from ..evaluation.summary import Tallied
from ..executors import Threads
from ..ingest.infer import recognise
from ..ingest.opening import Tables
from ..ingest.problems import count_of, listing
from ..ingest.sources.scanning import expand, is_stream
from ..ingest.sources.tables import open_source
from ..kernels.datums import Level, Scoring, join_slices, measure_slices
from ..progress import Progress, counting, reports_progress, step
from ..run import SETTABLE, card_of_run, is_scored, refuse_own, refuse_tables, tallied_of, with_keys
from ..schemas.arrays import Array
from ..schemas.contract import DATUMS, TABLE
from ..schemas.display import NAME, Column
from ..schemas.errors import InputError, ResultError, did_you_mean, invalid
from ..schemas.named import Named
from ..schemas.option_values import LEVEL, make_options, parse_intervals
from ..schemas.options import Options
from ..schemas.tables import contracts
from ..schemas.wording import option, sql_name
from ..scorecard.card import Scorecard
from ..statistics.resamples import few_clusters
from ..statistics.tests import SliceComparison, benjamini_hochberg, compare_slice, leading
from ..tallies.datums import half_of
from ..tasks.task import Losses
from . import FindingResult

# Result class of ``find_slices``.

SCHEMA: dict[str, pl.DataType] = {
    "slice": pl.String(),
    "where": pl.String(),
    "conditions": pl.Int64(),
    "size": pl.Int64(),
    "share": pl.Float64(),
    "metric": pl.String(),
    "value": pl.Float64(),
    "lower": pl.Float64(),
    "upper": pl.Float64(),
    "elsewhere": pl.Float64(),
    "difference": pl.Float64(),
    "p": pl.Float64(),
    "p_adjusted": pl.Float64(),
    "loss": pl.Float64(),
    "loss_elsewhere": pl.Float64(),
    "score": pl.Float64(),
}


class FoundSlices(FindingResult, eq=False):
    """Worst slices of a run, highest score first.

    Slices in which the metric is better than elsewhere are not included.

    Attributes:
        frame: one row per slice: ``slice`` (conditions for display), ``where`` (the same for
            :class:`evalengine.Options`), ``conditions`` (their number), ``size`` (datums with a
            loss), ``share`` (of all datums with a loss), ``metric, value, lower, upper`` (the run's
            metric on these datums, with its interval), ``elsewhere`` (on all other datums),
            ``difference``, ``p``, ``p_adjusted``, ``loss, loss_elsewhere`` (mean losses per datum,
            weighted if datums have weights; the search uses them) and ``score``.
        metric: name of the metric.
        better: ``higher`` or ``lower``, whichever is better.
        loss: loss that the search uses per datum.
        level: confidence of the intervals, in (0, 1).
        n: datums that have a loss.
        measured: number of slices evaluated; no other slice can score higher.
    """

    frame: pl.DataFrame
    metric: str
    better: str
    loss: str
    level: float
    n: int
    measured: int
    _name = "slices"

    def _heading(self) -> str:
        if not len(self):
            return f"no slice is worse than the rest ({count_of(self.n, 'datum')})"
        many = f"{len(self):,} worst" if len(self) > 1 else "worst"
        return (
            f"the {many} of {count_of(self.measured, 'slice')}, by {self.loss} per datum"
            f" ({count_of(self.n, 'datum')})"
        )

    def _columns(self) -> list[Column]:
        return [
            Column("slice", NAME, "text"),
            Column("datums", form="count", of=("size",)),
            Column(self.metric, of=("value",)),
            Column(f"{100 * self.level:g} % interval", form="interval", of=("lower", "upper")),
            Column("elsewhere"),
            Column("p adjusted", form="p", of=("p_adjusted",)),
        ]


# Columns of the datums as conditions that slices are made of: column = value, or a range.

BINS = 10
_OTHER = (pl.Binary, pl.Object, pl.Null, pl.Duration)  # that conditions in SQL cannot be made of
_FEW = 20  # up to this many distinct integers, each is one value


class Condition(msgspec.Struct, frozen=True):
    """One condition on a column of the datums.

    Attributes:
        text: for display, such as ``weather = rain``.
        sql: in the syntax of ``where``.
    """

    column: str
    text: str
    sql: str


class Conditions(msgspec.Struct, frozen=True):
    """All conditions of a search.

    Attributes:
        every: the conditions, grouped by column.
        column: int32 [conditions], column number of each.
        code: int32 [columns, datums], the condition that each datum fulfils, -1 for none.
        notes: remarks on the columns.
    """

    every: list[Condition]
    column: Array
    code: Array
    notes: list[str]


def conditions_of(table: pl.DataFrame, least: int) -> Conditions:
    """Make conditions from the columns of a table with one row per datum.

    Numbers and times with many values are cut at quantiles. A missing value is a value. Values of
    fewer than ``least`` datums make no condition.

    Args:
        table: columns of strings, categories, booleans, numbers, dates and times.
        least: minimum number of datums per slice.
    """
    every: list[Condition] = []
    of_column: list[int] = []
    codes: list[Array] = []
    cut, rare, other = [], [], []
    for name in table.columns:
        values = table[name]
        if values.dtype.is_nested() or values.dtype in _OTHER:
            other.append(name)
            continue
        if values.dtype.is_decimal():
            values = values.cast(pl.Float64)
        binned = _is_cut(values.dtype)
        ranges = (binned or values.dtype.is_integer()) and values.n_unique() > (
            BINS if binned else _FEW
        )
        conditions, code = _ranges(values, BINS) if ranges else _values(values)
        common = np.flatnonzero(np.bincount(code, minlength=len(conditions)) >= least)
        if not common.size or (common.size == 1 and len(conditions) == 1):
            rare.append(name)
            continue
        if ranges:
            cut.append(name)
        place = np.full(len(conditions), -1, np.int32)
        place[common] = np.arange(common.size) + len(every)
        every += [conditions[i] for i in common]
        of_column += [len(codes)] * common.size
        codes.append(place[code])
    notes = []
    if cut:
        notes.append(f"cut at quantiles into up to {BINS} ranges: {listing(cut)}.")
    if rare:
        notes.append(
            f"skipped, since no value separates at least {least:,} datums from others:"
            f" {listing(rare)}."
        )
    if other:
        notes.append(
            f"skipped: {count_of(len(other), 'column')} without plain values: {listing(other)}."
        )
    return Conditions(
        every,
        np.array(of_column, np.int32),
        np.array(codes, np.int32).reshape(len(codes), table.height),
        notes,
    )


def _is_cut(dtype: pl.DataType) -> bool:
    """Return whether a dtype is that of measurements: numbers with fractions, and times."""
    return dtype.is_temporal() or dtype.is_float() or dtype.is_decimal()


def _literal(value: Any) -> str:
    if isinstance(value, (bool, int, float)):
        return str(value).lower() if isinstance(value, bool) else repr(value)
    return "'" + str(value).replace("'", "''") + "'"


def _values(values: pl.Series) -> tuple[list[Condition], Array]:
    """A condition for each value, ascending, missing ones last; and which each datum fulfils."""
    name = values.name
    if isinstance(values.dtype, (pl.Categorical, pl.Enum)):
        values = values.cast(pl.String)
    values, missing = _without_nan(values)
    distinct = values.drop_nulls().unique().sort()
    conditions = [
        Condition(name, f"{name} = {value}", f"{sql_name(name)} = {_literal(value)}")
        for value in distinct.to_list()
    ]
    table = pl.DataFrame({"value": distinct, "code": np.arange(len(distinct), dtype=np.int64)})
    joined = values.to_frame("value").join(table, on="value", how="left", maintain_order="left")
    code = joined["code"].fill_null(len(distinct)).to_numpy()
    return [*conditions, Condition(name, f"{name} is missing", missing)], code


def _without_nan(values: pl.Series) -> tuple[pl.Series, str]:
    """Replace NaN by null; also return the SQL for missing values (in SQL NaN sorts above all
    numbers).
    """
    column = sql_name(values.name)
    if not values.dtype.is_float() or not values.is_nan().any():
        return values, f"{column} IS NULL"
    nullable = values.fill_nan(None)
    high = nullable.max()
    if high is None:
        return nullable, f"({column} IS NULL OR {column} IS NOT NULL)"
    return nullable, f"({column} IS NULL OR {column} > {_literal(high)})"


def _ranges(values: pl.Series, bins: int) -> tuple[list[Condition], Array]:
    """Ranges between quantiles that occur, missing values last; and in which each datum is."""
    name = values.name
    unknown = values.dtype.is_float() and values.is_nan().any()
    values, missing = _without_nan(values)
    present = values.drop_nulls().sort()
    at = np.unique(np.arange(1, bins) * len(present) // bins)
    first = present[0]
    edges = [edge for edge in present.gather(at).unique().sort().to_list() if edge != first]
    code = np.zeros(len(values), np.int64)
    for edge in edges:
        code += (values >= edge).fill_null(value=False).to_numpy()
    code[values.is_null().to_numpy()] = len(edges) + 1
    column, conditions = sql_name(name), []
    for low, high in zip([None, *edges], [*edges, None], strict=True):
        parts = [f"{column} >= {_literal(low)}"] if low is not None else []
        parts += [f"{column} < {_literal(high)}"] if high is not None else []
        if high is None and unknown:
            parts.append(f"{column} <= {_literal(present[-1])}")
        if low is None:
            message = f"{name} < {_as_text(high)}" if high is not None else f"any {name}"
        else:
            message = f"{name} >= {_as_text(low)}"
            if high is not None:
                message = f"{_as_text(low)} <= {name} < {_as_text(high)}"
        conditions.append(Condition(name, message, " AND ".join(parts) or f"{column} IS NOT NULL"))
    return [*conditions, Condition(name, f"{name} is missing", missing)], code


def _as_text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# Exact search for the slices with the worst mean error.
#
# Score of a slice: alpha (mean error of the slice / mean error of all - 1) - (1 - alpha) (n / size
# - 1). With weights, means are weighted and sizes are sums of weights. Slices that are too small,
# or cannot exceed the scores found so far, are pruned with all their subsets.
#
# Source: S. Sagadeeva, M. Boehm, "SliceLine" (SIGMOD 2021).


ALPHA = 0.95
_AT_ONCE = 1 << 20  # slices that are measured before those found are looked at again


class Rows(NamedTuple):
    """Rows to search.

    Attributes:
        code: int32 [columns, n], item of each row in each column, -1 for none.
        column: int32 [items], column of each item, ascending.
        error: float64 [n], not below 0.
        weight: float64 [n], above 0; empty for equal weights.
    """

    code: Array
    column: Array
    error: Array
    weight: Array


class SearchResult(msgspec.Struct, frozen=True):
    """Slices, highest score first; ties by number of items, then by item.

    Attributes:
        rows: int64 [m].
        size: float64 [m], sum of weights.
        total: float64 [m], weighted sum of errors.
        score: float64 [m].
        measured: number of slices evaluated.
    """

    items: list[tuple[int, ...]]
    rows: Array
    size: Array
    total: Array
    score: Array
    measured: int


def scores(size: Array, total: Array, scoring: Scoring) -> Array:
    """Scores of slices, float64 [m]."""
    n, alpha = scoring.n, scoring.alpha
    return alpha * (total / size * (n / scoring.total) - 1) - (1 - alpha) * (n / size - 1)


class _Best:
    """The slices that score highest, as they come."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.rows: list[tuple[float, int, tuple[int, ...], int, float, float]] = []

    @property
    def beat(self) -> float:
        """Score from which a slice is of account."""
        return max(0.0, -self.rows[-1][0]) if len(self.rows) == self.most else 0.0

    def take(self, level: Level, score: Array) -> None:
        some = np.flatnonzero((score > 0) & (score >= self.beat))
        if some.size > self.most:
            lowest = np.partition(score[some], some.size - self.most)[some.size - self.most]
            some = some[score[some] >= lowest]
        self.rows += [
            (
                -float(score[i]),
                level.items.shape[1],
                tuple(level.items[i].tolist()),
                int(level.rows[i]),
                float(level.size[i]),
                float(level.total[i]),
            )
            for i in some
        ]
        self.rows = sorted(self.rows)[: self.most]


def search(
    code: Array,
    column: Array,
    error: Array,
    *,
    most: int,
    levels: int,
    least: int,
    alpha: float = ALPHA,
    weight: Array | None = None,
    threads: Threads | None = None,
) -> SearchResult:
    """Find the slices with the highest scores, of all with a score above 0.

    Args:
        code: int32 [columns, n], item of each row in each column, -1 for none.
        column: int32 [items], column of each item, ascending.
        error: float64 [n], not below 0.
        most: maximum number of slices.
        levels: maximum number of items per slice.
        least: minimum number of rows per slice, 1 or more.
        alpha: weight of the mean error against the size, in (0, 1].
        weight: float64 [n], above 0; 1 by default.
    """
    threads = threads or Threads(1)
    n, n_items = error.size, column.size
    size, total, lightest = float(n), float(error.sum()), float(least)
    if weight is not None:
        size, total = float(weight.sum()), float((weight * error).sum())
        lightest = float(np.sort(weight)[:least].sum())
    weight = np.zeros(0) if weight is None else weight
    scoring = Scoring(size, total, alpha, least, lightest, 0.0)
    best, measured = _Best(most), n_items
    if not n or scoring.total <= 0 or not n_items:
        return _result_of(best, measured)
    levels = min(levels, code.shape[0], int(62 / np.log2(max(n_items, 2))))
    level = _singles(Rows(code, column, error, weight), least)
    best.take(level, scores(level.size, level.total, scoring))
    frequent = np.isin(np.arange(n_items), level.items[:, 0])
    rows = Rows(np.where(frequent[code] & (code >= 0), code, -1), column, error, weight)
    for deep in range(2, levels + 1):
        with counting("slices", level.key.size, f"of {deep - 1} conditions") as count:
            level, many = _next(rows, level, scoring, best, threads, count)
        measured += many
        if not level.key.size:
            break
    return _result_of(best, measured)


def _result_of(best: _Best, measured: int) -> SearchResult:
    score, _, items, rows, size, total = zip(*best.rows, strict=True) if best.rows else ((),) * 6
    return SearchResult(
        list(items),
        np.array(rows, np.int64),
        np.array(size, np.float64),
        np.array(total, np.float64),
        -np.array(score, np.float64),
        measured,
    )


def _singles(data: Rows, least: int) -> Level:
    """Slices of one item that are large enough and have errors."""
    n_items, error = data.column.size, data.error
    weight = data.weight if data.weight.size else np.ones(error.size)
    rows = np.zeros(n_items, np.int64)
    size, total, worst = np.zeros((3, n_items))
    for items in data.code:
        valid = items >= 0
        rows += np.bincount(items[valid], minlength=n_items)
        size += np.bincount(items[valid], weight[valid], minlength=n_items)
        total += np.bincount(items[valid], (weight * error)[valid], minlength=n_items)
        np.maximum.at(worst, items[valid], error[valid])
    chosen = np.flatnonzero((rows >= least) & (total > 0))
    columns = (values[chosen] for values in (rows, size, total, worst))
    return Level(chosen[:, None].astype(np.int32), chosen.astype(np.int64), *columns)


def _next(
    data: Rows, level: Level, scoring: Scoring, best: _Best, threads: Threads, count: Any
) -> tuple[Level, int]:
    """Slices of one item more that may be of account, and how many were measured."""
    m = level.key.size
    none, deep = np.zeros(0, np.int64), level.items.shape[1] + 1
    parts = [Level(np.zeros((0, deep), np.int32), none, none, *np.zeros((3, 0)))]
    measured = 0
    # Slices that grow are cut so that a piece has some hundred thousand new ones at the most.
    widths = np.bincount(data.column, minlength=data.code.shape[0])
    each = max(1, _AT_ONCE // max(1, int(widths.sum())))
    for first in range(0, m, each * 8):
        pieces = [
            (low, min(low + each, first + each * 8, m))
            for low in range(first, min(first + each * 8, m), each)
        ]
        now = scoring._replace(beat=best.beat)
        calls = [partial(_grown, data, level, now, *piece) for piece in pieces]
        for part, many in threads.each(calls):
            measured += many
            best.take(part, scores(part.size, part.total, scoring))
            parts.append(part)
        count(pieces[-1][1] - first)
    return Level(*(np.concatenate(columns) for columns in zip(*parts, strict=True))), measured


def _grown(data: Rows, level: Level, scoring: Scoring, first: int, last: int) -> tuple[Level, int]:
    """Extend a range of slices by one item; keep large ones with errors. Also return the number
    measured.
    """
    code, column, error, weight = data
    start, children = join_slices(first, last, level, column, scoring)
    parents = level.items[first:last]
    rows, size, total, worst = measure_slices(code, error, weight, column, parents, start, children)
    of = np.repeat(np.arange(last - first), np.diff(start))
    items = np.column_stack((parents[of], children)).astype(np.int32)
    key = level.key[first:last][of] * column.size + children
    large = (rows >= scoring.least) & (total > 0)
    columns = (items, key, rows, size, total, worst)
    return Level(*(values[large] for values in columns)), rows.size


_SURE = 1.6448536269514722  # standard errors that luck passes one time in twenty
_TRIES = 4  # times that more slices are searched if too many are redundant
_SAME_SHARE = 0.95  # share of datums from which two slices are one


class Slice(msgspec.Struct, frozen=True):
    """One slice.

    Attributes:
        items: its conditions.
        inside: bool [n_datums], over all datums of the run.
        size: datums in it that have a loss.
        loss: their mean loss, weighted if datums have weights.
        elsewhere: mean loss of all others.
        score: see :func:`scores`.
    """

    items: tuple[int, ...]
    inside: Array
    size: int
    loss: float
    elsewhere: float
    score: float


def errors_of(losses: Losses, highest: float) -> tuple[Array, Array]:
    """Return the error of each datum, and which datums have a loss.

    Args:
        highest: best value of a metric of which higher is better, if the metric itself defines
            none.

    Returns:
        float64 [n], 0 for no error; bool [n].
    """
    value = losses.value
    if losses.nothing is not None:
        value = np.nan_to_num(value, nan=losses.nothing)
    defined = ~np.isnan(value)
    value = np.where(defined, value, 0.0)
    if losses.higher:
        top = losses.best if losses.best is not None else highest
        if not math.isfinite(top):
            top = float(value[defined].max(initial=0.0))
        return np.where(defined, np.maximum(top - value, 0.0), 0.0), defined
    low = min(0.0, float(value[defined].min(initial=0.0)))
    return np.where(defined, value - low, 0.0), defined


def worst_slices(
    conditions: Conditions,
    error: Array,
    defined: Array,
    weight: Array | None,
    *,
    top: int,
    levels: int,
    least: int,
    alpha: float,
    threads: Threads,
) -> tuple[list[Slice], int]:
    """Find the slices with the highest scores, without those that add no information to a wider
    one.

    A slice is kept if each of its conditions matters and no earlier slice has almost the same
    datums. A condition matters if the datums that the slice would gain without it have a
    significantly lower mean loss (level 0.05).

    Args:
        error: float64 [n], error of each datum, not below 0.
        defined: bool [n], datums with a loss and a weight above 0.
        weight: float64 [n], weight of each datum; None for equal weights.
        top: number of slices.
        levels: maximum number of conditions per slice.
        least: minimum number of datums per slice.
        alpha: weight of the mean loss against the size.

    Returns:
        the slices; the number of slices evaluated.

    Raises:
        ResultError: no datum has an error.
    """
    rows = np.flatnonzero(defined)
    code, errors = conditions.code[:, rows], error[rows]
    heavy = np.ones(errors.size) if weight is None else weight[rows]
    if not errors.sum():
        raise ResultError(
            "no datum has anything wrong, so no slice is worse than another.", code="nothing_wrong"
        )
    most = 10 * top
    for again in range(_TRIES):
        result = search(
            code,
            conditions.column,
            errors,
            most=most,
            levels=levels,
            least=least,
            alpha=alpha,
            weight=None if weight is None else heavy,
            threads=threads,
        )
        places = _that_matter(result, Rows(code, conditions.column, errors, heavy), top)
        if len(places) >= top or len(result.items) < most or again == _TRIES - 1:
            break
        most *= 4
    total, n = float((heavy * errors).sum()), float(heavy.sum())
    slices = []
    for at in places:
        rows_in, size, inside_total = result.rows[at], result.size[at], float(result.total[at])
        rest = (total - inside_total) / (n - size) if errors.size > rows_in else math.nan
        slices.append(
            Slice(
                result.items[at],
                _inside(conditions.code, conditions.column, result.items[at]),
                int(rows_in),
                float(inside_total / size),
                float(rest),
                float(result.score[at]),
            )
        )
    return slices, result.measured


def _inside(code: Array, column: Array, items: Sequence[int]) -> Array:
    inside = np.ones(code.shape[1], np.bool_)
    for item in items:
        inside &= code[column[item]] == item
    return inside


def _that_matter(result: SearchResult, data: Rows, top: int) -> list[int]:
    """Places of the slices that stay, up to ``top``, the highest score first."""
    places: list[int] = []
    masks: list[Array] = []
    for at, items in enumerate(result.items):
        inside = _inside(data.code, data.column, items)
        if any((inside & one).sum() >= _SAME_SHARE * (inside | one).sum() for one in masks):
            continue
        if all(_matters(item, items, inside, data) for item in items):
            places.append(at)
            masks.append(inside)
            if len(places) == top:
                break
    return places


def _matters(item: int, items: tuple[int, ...], inside: Array, data: Rows) -> bool:
    """Return whether the datums that a slice would gain without one condition have less error."""
    wider = _inside(data.code, data.column, [one for one in items if one != item])
    added = wider & ~inside
    if not added.any():
        return False
    means, spread = [], 0.0
    for rows in (inside, added):
        error, share = data.error[rows], data.weight[rows] / data.weight[rows].sum()
        means.append(float((share * error).sum()))
        spread += float((share**2 * (error - means[-1]) ** 2).sum())
    gap, spread = means[0] - means[1], math.sqrt(spread)
    return gap > _SURE * spread if spread > 0 else gap > 0


# From a run and a table of its datums to its worst slices.

DRAWS = 200
_SHARE = 100  # one datum of so many is the least that a slice has
_FEWEST = 10


@reports_progress
def find_slices(
    run: Any,
    ground_truths: Any = None,
    *,
    datums: Any = None,
    labels: Any = None,
    top: int = 20,
    levels: int = 3,
    least: int | None = None,
    alpha: float = 0.95,
    confirm: bool = False,
    options: Options | Mapping[str, Any] | None = None,
    storage_options: dict[str, str] | None = None,
    progress: Progress | bool | None = None,
    **named: Unpack[Named],
) -> FoundSlices:
    """Find the slices in which a run is worst.

    Each datum has a loss, as for :func:`worst datums <evalengine.evaluation.paging.worst>`. An
    exact search over all slices of up to ``levels`` conditions on the columns of ``datums`` finds
    those with the highest losses for their size. Slices with a condition that does not matter are
    skipped. The run's first metric that is one number over all datums, and not a count, is then
    computed within each slice, with its interval, and on all other datums. A slice in which it is
    better than elsewhere is skipped, with a note.

    Args:
        run: a :class:`evalengine.Scorecard`, the folder of a saved one, or predictions, as
            :func:`evalengine.score` takes them. If one table contains both sides, its other
            columns are searched.
        ground_truths: if the run is predictions.
        datums: table of all datums whose columns are searched, in addition to the slice columns of
            the run.
        labels: table or list of declared classes, if the run is predictions.
        top: maximum number of slices.
        levels: maximum number of conditions per slice.
        least: minimum number of datums per slice; by default 1% of all, at least 10.
        alpha: weight of the loss against the size of a slice, in (0, 1]; 1 ignores the size.
        confirm: search one half of the datums, split by a hash of their ids, and measure on the
            other. Slices measured on the data that selected them look worse than they are.
        options: options to start from; named ones take precedence.
        storage_options: for remote paths, as Polars takes them.
        progress: True shows the progress; or a callable that receives the name of each step.
        **named: any field of :class:`evalengine.Options`; ``by`` names the columns to search,
            ``metrics`` the metric to report; the default of ``draws`` is 200 here.

    Returns:
        :class:`evalengine.findings.slices.FoundSlices`, whose ``frame`` has one row per slice.

    Raises:
        InputError: no column to slice by; datums that the table does not contain.
        OptionError: options that do not apply to a scored run.
        ResultError: a saved run without the required data, or a run without errors.

    Example:
        >>> import evalengine as ee
        >>> ee.find_slices("runs/monday", datums="images.parquet").frame  # doctest: +SKIP
    """
    chosen = make_options(options, **named)
    for name, least_one in (("top", top), ("levels", levels), ("least", least)):
        if least_one is not None and least_one < 1:
            raise invalid(name, least_one, "write 1 or more.")
    if not 0 < alpha <= 1:
        raise invalid("alpha", alpha, "write a weight above 0, at most 1.")
    intervals = parse_intervals(
        chosen.replace(
            draws=DRAWS if chosen.draws is None else chosen.draws,
            **({} if chosen.drawn else {"intervals": LEVEL}),
        )
    )
    assert intervals is not None
    tables = Tables(run, ground_truths, datums, labels, storage_options)
    card, table = _scored(tables, chosen)
    tallied = tallied_of("the run", card, "finding slices", chosen.threads)
    refuse_own(tallied, chosen)
    if chosen.metrics is not None:
        tallied = _narrowed(tallied, chosen.metrics)
    metric = leading(tallied)
    run_of = with_keys(tallied, intervals.cluster)
    step("reading the datums")
    own = table is not datums
    values, notes = _columns(tallied, table, chosen, _read(card), storage_options, own=own)
    losses = losses_of(tallied)
    error, defined = errors_of(losses, metric.range[1])
    unknown = int((~defined).sum())
    if losses.weight is not None:
        none = int((losses.weight == 0).sum())
        defined &= losses.weight > 0
        notes.append(
            "mean losses, by which slices are searched, are weighted as the metric is; sizes are"
            f" datums{f', without {none:,} of weight 0' if none else ''}."
        )
    keys = run_of.tallies.datums.keys
    searched, judged = defined, np.ones(error.size, np.bool_)
    if confirm:
        half = half_of(keys, 0)
        searched, judged = defined & half, ~half
        notes.append(
            f"slices were searched in {int(searched.sum()):,} datums, and their numbers are of the"
            f" {int(judged.sum()):,} others."
        )
    n = int(searched.sum())
    if least is None:
        least = max(_FEWEST, -(-n // _SHARE))
    if unknown:
        notes.append(f"{count_of(unknown, 'datum')} without a loss: {losses.metric} is undefined.")
    conditions = conditions_of(values, least)
    notes += conditions.notes
    if not conditions.every:
        raise InputError(
            "no column of the datums parts them: every value is too rare, or the same for all."
            f" Name others in {option('datums')}, or lower {option('least', least)}.",
            code="nothing_to_slice",
        )
    step("searching")
    slices, measured = worst_slices(
        conditions,
        error,
        searched,
        losses.weight,
        top=top,
        levels=levels,
        least=least,
        alpha=alpha,
        threads=tallied.threads,
    )
    comparisons = []
    for i, one in enumerate(slices):
        step(f"slice {i + 1} of {len(slices)}")
        comparisons.append(compare_slice(run_of, metric, one.inside, judged, intervals))
    better = tallied.plan.dialect.better.get(metric.name, metric.better)
    frame = _frame(slices, comparisons, conditions.every, metric.name, n)
    gain = pl.col("difference") if better == "higher" else -pl.col("difference")
    worse = frame.filter(~(gain > 0).fill_null(value=False))
    if fewer := frame.height - worse.height:
        notes.append(
            f"skipped: {count_of(fewer, 'slice')} with a higher mean loss whose {metric.name} is"
            " better than elsewhere."
        )
    return FoundSlices(
        worse,
        metric=metric.name,
        better=better,
        loss=losses.metric,
        level=intervals.level,
        n=n,
        measured=measured,
        messages=(*notes, *few_clusters(keys), *([] if confirm else [_UNCONFIRMED])),
    )


def _scored(tables: Tables, options: Options) -> tuple[Scorecard, Any]:
    """Return the run, and its table of datums; None if it has only its slice columns."""
    datums = tables.datums
    if is_scored(tables.predictions):
        refuse_tables(tables, datums=False)
        return card_of_run(tables, options, settable=(*SETTABLE, "by", "columns")), datums
    step("scoring")
    plain = options.replace(draws=None, seed=None, method=None)
    if options.cluster is None:
        plain = plain.replace(intervals=None)
    if datums is not None:
        plain = plain.replace(by=())
    if datums is not None or tables.ground_truths is not None:
        return card_of_run(tables, plain), datums
    table = tables.predictions
    if isinstance(table, (str, Path)) and is_stream(str(table)):  # it is read twice
        table = expand(str(table))[0]
    return card_of_run(msgspec.structs.replace(tables, predictions=table), plain), table


def _narrowed(tallied: Tallied, names: Collection[str]) -> Tallied:
    from ..evaluation import planner

    available = {metric.name for metric in tallied.plan.metrics}
    plan = planner.make_plan(Options(metrics=tuple(names)), tallied.plan.task)
    requested = [metric.name for metric in plan.metrics]
    missing = [name for name in requested if name not in available]
    if missing:
        raise invalid(
            "metrics", missing, f"the run does not have it; it has {', '.join(sorted(available))}."
        )
    return msgspec.structs.replace(tallied, plan=planner.narrowed(tallied.plan, requested))


def _read(card: Scorecard) -> set[str]:
    """Columns of one table with both sides that the run itself read."""
    table = contracts(card.task).get(TABLE)
    names = {*(table.names if table is not None else ())}
    return names | {*card.run["recognised"].get(TABLE, ())}


def _columns(
    tallied: Tallied,
    table: Any,
    options: Options,
    read: Collection[str],
    storage_options: dict[str, str] | None,
    *,
    own: bool,
) -> tuple[pl.DataFrame, list[str]]:
    """Return the candidate slice columns, one row per datum of the run, and notes on them.

    Args:
        table: table of datums; None if the run has only its slice columns.
        options: ``by`` names the requested columns.
        read: columns already used to describe datums, not candidates.
        own: the table is that of the run, whose own slice columns are texts of floats and times.
    """
    datums = tallied.tallies.datums
    of_run = [name for name in datums.slices.columns if name != options.cluster]
    values = datums.slices.select(of_run)
    notes: list[str] = []
    names = [*of_run]
    if table is not None:
        source = open_source(table, storage_options=storage_options)
        listed = source.frame if source.datums is None else source.datums.lazy()
        schema = listed.collect_schema()
        own_options = {**(tallied.plan.options.columns or {}), **(options.columns or {})}
        naming = recognise(schema, contracts(tallied.plan.task)[DATUMS], own_options or None)
        names_read = {*naming.exprs, *naming.recognised, *own_options, *read}
        names = [name for name in schema if name not in names_read or name in options.by]
        free = [name for name in names if not options.by or name in options.by]
        ids = [expr for name, expr in naming.exprs.items() if name == "datum_id"]
        if only_cut := own and bool(options.by):
            free = [name for name in free if _is_cut(schema[name])]
        frame = listed.select(*ids, *(pl.col(name).alias(f"_{name}") for name in free)).collect()
        # A frame without columns has no rows.
        if (ids or free) and (not only_cut or (free and (ids or frame.height == len(datums)))):
            joined, notes = _joined(frame, datums, source.description)
            new = joined.select(
                pl.col(f"_{name}").alias(name) for name in free if f"_{name}" in joined.columns
            )
            values = values.drop(name for name in values.columns if name in new.columns)
            values = pl.concat([values, new], how="horizontal")
    if options.by:
        missing = [name for name in options.by if name not in values.columns]
        if missing:
            raise InputError(
                f"{option('by', missing)}: the datums have no such column."
                f"{did_you_mean(missing[0], names)} Columns there: {', '.join(names) or 'none'}.",
                code="column_missing",
                column=missing[0],
            )
        values = values.select(options.by)
    if not values.width:
        raise InputError(
            "the run has no columns of its datums to slice by: give a table with one row per datum"
            f" in {option('datums')}, or score with {option('by')}.",
            code="nothing_to_slice",
        )
    return values, notes


def _joined(frame: pl.DataFrame, datums: Any, description: str) -> tuple[pl.DataFrame, list[str]]:
    """Return the table's rows in the order of the run's datums, and notes on missing ones."""
    if "datum_id" not in frame.columns:
        if frame.height != len(datums):
            raise InputError(
                f"{description} has {frame.height:,} rows and no ids that the run knows, which has"
                f" {len(datums):,} datums: give the table a column datum_id.",
                code="column_missing",
                column="datum_id",
                rows=frame.height,
                of=len(datums),
            )
        return frame, []
    ids = datums.id
    frame, notes = _one_row_a_datum(frame)
    if frame.schema["datum_id"].is_integer() != ids.dtype.is_integer():
        frame = frame.with_columns(pl.col("datum_id").cast(pl.String))
        ids = ids.cast(pl.String)
    else:
        frame = frame.with_columns(pl.col("datum_id").cast(ids.dtype))
    joined = (
        ids.rename("datum_id")
        .to_frame()
        .join(
            frame.with_columns(pl.lit(value=True).alias("__there")),
            on="datum_id",
            how="left",
            maintain_order="left",
        )
    )
    unmatched = joined.filter(pl.col("__there").is_null())["datum_id"]
    if len(unmatched) == len(ids):
        raise InputError(
            f"{description}: no id is among the run's {len(ids):,} datums; ids there"
            f" {listing(frame['datum_id'].head(3).to_list())}, in the run"
            f" {listing(ids.head(3).to_list())}.",
            code="ids_unmatched",
            of=len(ids),
        )
    if len(unmatched):
        notes.append(
            f"{count_of(len(unmatched), 'datum')} of the run without a row in {description}:"
            f" {listing(unmatched.head(3).to_list())}."
        )
    return joined, notes


def _one_row_a_datum(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Reduce to one row per id, with notes on columns that differ within an id.

    Raises:
        InputError: all columns differ.
    """
    ids = frame["datum_id"]
    if not ids.is_duplicated().any():
        return frame, []
    names = [name for name in frame.columns if name != "datum_id"]
    distinct = frame.group_by("datum_id").agg(pl.col(names).n_unique())
    torn = [name for name in names if (distinct[name] > 1).any()]
    many = int(ids.is_duplicated().sum())
    if len(torn) == len(names):
        first = distinct.filter(pl.any_horizontal(pl.col(torn) > 1))["datum_id"].min()
        raise InputError(
            f"{option('datums')}: {many:,} rows share their datum_id with others, the first is"
            f" {first!r}, and no column is the same in all rows of a datum. Give one row a datum.",
            code="repeated_values",
            column="datum_id",
            count=many,
        )
    notes = []
    if torn:
        message = listing([name.removeprefix("_") for name in torn])
        notes.append(f"skipped, since their values differ within a datum: {message}.")
    return frame.drop(torn).unique("datum_id", keep="first", maintain_order=True), notes


_UNCONFIRMED = (
    "slices were found and measured on the same datums, which makes them look worse than they are;"
    f" {option('confirm', True)} searches one half and measures the other."
)


def _frame(
    chosen: list[Slice], comparisons: list[SliceComparison], conditions: Any, metric: str, n: int
) -> pl.DataFrame:
    p = np.array([one.p for one in comparisons], np.float64)
    adjusted = np.full(p.size, np.nan)
    tested = ~np.isnan(p)
    adjusted[tested] = benjamini_hochberg(p[tested])
    rows = []
    for one, of_run, adjusted_p in zip(chosen, comparisons, adjusted.tolist(), strict=True):
        parts = [conditions[item] for item in one.items]
        rows.append(
            {
                "slice": " and ".join(part.text for part in parts),
                "where": " AND ".join(part.sql for part in parts),
                "conditions": len(parts),
                "size": one.size,
                "share": one.size / n,
                "metric": metric,
                "value": of_run.value,
                "lower": of_run.lower,
                "upper": of_run.upper,
                "elsewhere": of_run.elsewhere,
                "difference": of_run.value - of_run.elsewhere,
                "p": of_run.p,
                "p_adjusted": adjusted_p,
                "loss": one.loss,
                "loss_elsewhere": one.elsewhere,
                "score": one.score,
            }
        )
    return pl.DataFrame(rows, schema=SCHEMA).fill_nan(None)
