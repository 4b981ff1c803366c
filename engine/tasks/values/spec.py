"""Values as a task: rows become one value per datum and metric."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np
import polars as pl

from ...ingest.frames import Frames
from ...ingest.problems import Note, added_lists, count_of, listing, note_of
from ...metrics.registry import Metric
from ...schemas.arrays import Array
from ...schemas.contract import ROW, TABLE
from ...schemas.errors import InputError, did_you_mean
from ...schemas.tables import PASSES, VALUES_TABLE_COLUMNS
from ...schemas.wording import option
from ...tallies.stats import Column, Stats
from ..contents import Contents, contents_of_table
from ..encoding import SENTINELS, Workers, is_usual, row_of_datums, table_datums
from ..per_datum import OF_VALUES, StatsTallies, no_labels
from ..per_datum import common as common_values
from ..per_datum import merge as merge_tallies
from ..task import Common, FittedByRows, Sample, Task
from .dialects import Settings
from .metrics import ABSENT, MISSING, SCORED, STATUS, ValuesView, family, is_share, weight_of

# Names of metrics: those of a long table's rows, or a wide one's columns.


def is_long(names: Iterable[str], settings: Settings) -> bool:
    """Return whether a table has one row per datum and metric."""
    return settings.value_columns is None and {"metric", "value"} <= {*names}


def wide_names(columns: Iterable[str]) -> list[str]:
    """Return the columns of values of a wide table, in order."""
    return [name for name in columns if name not in VALUES_TABLE_COLUMNS and name != ROW]


def written(table: pl.DataFrame, settings: Settings) -> dict[str, int]:
    """Return metric -> rows; of a long table ascending, of a wide one in order of columns."""
    if is_long(table.columns, settings):
        return dict(table["metric"].value_counts().sort("metric").iter_rows())
    return dict.fromkeys(wide_names(table.columns), table.height)


# Values, and findings on them, of one part of a table or of all of it.


class Findings(msgspec.Struct):
    """Findings on one part of a table of values.

    Attributes:
        written: metric -> rows.
        wide: the columns of values were chosen by default.
        datums: number of datums.
        status: metric -> number of datums per status, in the order of ``STATUS``.
        averaged: metric -> number of rows, and of datums, of which several rows became one value.
        gaps: metric -> number of these rows that have no value, unlike others of their datum.
        shares: metric of numbers -> number of parts with values, and of those whose values make a
            proportion.
        marks: metric -> usual marks of missing values beyond ``others``, and their rows.
        others: metric -> lowest and highest of the other values, and their rows.
    """

    written: dict[str, int] = {}
    wide: bool = False
    datums: int = 0
    status: dict[str, list[int]] = {}
    averaged: dict[str, list[int]] = {}
    gaps: dict[str, list[int]] = {}
    shares: dict[str, list[int]] = {}
    marks: dict[str, list[tuple[float, int]]] = {}
    others: dict[str, tuple[float, float, int]] = {}


def merge_findings(parts: Sequence[Findings]) -> Findings:
    """Merge findings of disjoint sets of datums."""
    every = [[*part.written] for part in parts if part.written]
    names = sorted({name for one in every for name in one})
    if every and all(one == every[0] for one in every):
        names = every[0]  # in the order of columns, of a wide table
    wide = any(part.wide for part in parts)
    merged = Findings(
        wide=wide,
        datums=sum(part.datums for part in parts),
        written={name: sum(part.written.get(name, 0) for part in parts) for name in names},
        status=added_lists([part.status for part in parts]),
        averaged=added_lists([part.averaged for part in parts]),
        gaps=added_lists([part.gaps for part in parts]),
        shares=added_lists([part.shares for part in parts]),
    )
    for part in parts:
        for name, sentinels in part.marks.items():
            merged.marks[name] = [*merged.marks.get(name, []), *sentinels]
        for name, (low, high, n) in part.others.items():
            lowest, highest, all_n = merged.others.get(name, (low, high, 0))
            merged.others[name] = min(lowest, low), max(highest, high), all_n + n
    return merged


def encode(
    frames: Frames, settings: Settings, needs: frozenset[str]
) -> tuple[StatsTallies, Findings]:
    """Return the values of the needed metrics, one per datum, and findings."""
    begun = time.perf_counter()
    table = frames.sides[TABLE]
    long = is_long(table.columns, settings)
    findings = Findings(
        written=written(table, settings), wide=not long and settings.value_columns is None
    )
    numbers = table[ROW].to_numpy() if ROW in table.columns else None
    datums, codes = table_datums(frames, table, table.height, numbers)
    n = findings.datums = len(datums)
    row = row_of_datums(numbers, codes, n, table.height)
    weight = table["weight"].to_numpy() if "weight" in table.columns else None
    columns: dict[str, tuple[Column, ...]] = {}
    rows_of = dict(_rows(table, long=long))
    for name in sorted(needs):
        if name not in rows_of and (passes := PASSES.fullmatch(name)) and "passed" in rows_of:
            findings.written[name] = table.height
            every = np.arange(n) if codes is None else codes
            passed = rows_of["passed"][0].cast(pl.Float64).to_numpy()
            if not _only_0_and_1(passed[~np.isnan(passed)]):  # scored by its mean, too
                raise InputError(
                    f"column 'passed': values other than 0 and 1, which {name} cannot count. Write"
                    f" 0 or 1, or score only the mean: {option('metrics', ['passed'])}.",
                    code="not_a_flag",
                    column="passed",
                )
            chance, passed_datums = chance_of_passing(passed, every, passes[1], int(passes[2]))
            columns |= _columns(name, chance, passed_datums, None, n, findings)
            continue
        series, rows = rows_of.get(name, (_NONE, np.zeros(0, np.int64)))
        value = series.cast(pl.Float64).to_numpy()
        datum = codes if codes is None or rows is None else codes[rows]
        weights = weight if weight is None or rows is None else weight[rows]
        if datum is None and rows is not None:
            datum = rows.astype(np.int32)
        columns |= _columns(name, value, datum, weights, n, findings)
        share = columns[name][0].share
        if share is not None and series.dtype != pl.Boolean:
            findings.shares[name] = [1, int(share)]
    stats = Stats(np.ones(n, bool), columns, ((SCORED,), np.zeros(n, np.int8)))
    height = None if numbers is not None else table.height
    seconds = {"match": time.perf_counter() - begun}
    return StatsTallies(datums, no_labels(), stats, row, height, seconds), findings


_NONE = pl.Series([], dtype=pl.Float64)


def _rows(
    table: pl.DataFrame, *, long: bool
) -> Iterator[tuple[str, tuple[pl.Series, Array | None]]]:
    """Yield metric, its values and their rows, None for all."""
    if not long:
        for name in wide_names(table.columns):
            yield name, (table[name], None)
        return
    value, names = table["value"], table["metric"].unique().sort()
    if len(names) == 1:
        yield names[0], (value, None)
        return
    code = table["metric"].cast(pl.Enum(names)).to_physical().to_numpy()
    order = np.argsort(code, kind="stable")
    stops = np.cumsum(np.bincount(code, minlength=len(names))).tolist()
    for name, first, last in zip(names, [0, *stops][: len(names)], stops, strict=True):
        yield name, (value[order[first:last]], order[first:last])


def _columns(
    name: str, value: Array, datum: Array | None, weight: Array | None, n: int, findings: Findings
) -> dict[str, tuple[Column, ...]]:
    """Return the columns of a metric, and of its weights; several rows of a datum are averaged.

    Args:
        datum: int32 [rows], code of each; None if row i is datum i.
        weight: float64 [rows]; None if equal.
    """
    missing = np.isnan(value)
    present = value[~missing] if missing.any() else value
    share = _only_0_and_1(present) if present.size else None
    if share is False:
        _note_sentinels(name, present, findings)
    if share and weight is not None:
        share = bool((weight[~missing] == 1).all())
    if datum is not None and datum.size:
        many = np.bincount(datum, minlength=n)
        if many.max() > 1:
            share = None if share is None else False
            findings.averaged[name] = [int(many[many > 1].sum()), int((many > 1).sum())]
            if missing.any():
                filled = np.bincount(datum[~missing], minlength=n) > 0
                findings.gaps[name] = [int((missing & filled[datum]).sum())]
            value, datums = _averaged(value, datum)
            missing = np.isnan(value)
            weight = None if weight is None else _averaged(weight, datum)[0]
            datum = datums
    weights = np.ones(n if weight is not None else 0)
    at: Array | slice = slice(None) if datum is None else datum
    scored, without, absent = map(np.int8, map(STATUS.index, (SCORED, MISSING, ABSENT)))
    out, status = value, np.where(missing, without, scored)
    if datum is not None:
        of_rows, out, status = status, np.full(n, np.nan), np.full(n, absent)
        out[at], status[at] = value, of_rows
    findings.status[name] = np.bincount(status, minlength=len(STATUS)).tolist()
    columns: dict[str, tuple[Column, ...]] = {
        name: (Column(metric=name, values=_cube(out), status=(STATUS, status), share=share),)
    }
    if weight is not None:
        weights[at] = weight
        columns[weight_of(name)] = (Column(metric=name, statistic="weight", values=_cube(weights)),)
    return columns


def _note_sentinels(name: str, present: Array, findings: Findings) -> None:
    """Record the marks below and above all other values, and the range of these."""
    while present.size:
        low, high = float(present.min()), float(present.max())
        mark = low if low in SENTINELS else high
        if mark not in SENTINELS:
            findings.others[name] = low, high, present.size
            break
        n, present = present.size, present[present != mark]
        findings.marks.setdefault(name, []).append((mark, n - present.size))


def _only_0_and_1(values: Array) -> bool:
    """Return whether no value is another; the first ones decide most cases."""
    some = (values[:1000], values)
    return all(bool(((one == 0) | (one == 1)).all()) for one in some)


def chance_of_passing(passed: Array, datum: Array, kind: str, k: int) -> tuple[Array, Array]:
    """Return the chance that one (@) or all (^) of k samples pass, and the datums, ascending.

    Without replacement, from all samples of a datum; NaN for fewer than k.

    Source: M. Chen et al., "Evaluating large language models trained on code" (2021), for pass@k;
    S. Yao et al., "tau-bench" (2024), for pass^k.

    Args:
        passed: float64 [rows], 0 or 1; NaN for samples that do not count.
    """
    datums, at = np.unique(datum, return_inverse=True)
    valid = ~np.isnan(passed)
    n = np.bincount(at[valid], minlength=datums.size)
    right = np.bincount(at[valid], passed[valid] != 0, minlength=datums.size)
    chosen = right if kind == "^" else n - right
    chance = np.where(n >= k, 1.0, np.nan)
    for i in range(k):  # of drawing only such samples; products do not overflow as factorials do
        chance *= np.maximum(chosen - i, 0) / np.maximum(n - i, 1)
    return chance if kind == "^" else 1 - chance, datums


def _cube(values: Array) -> Array:
    return values[:, None, None]


def _averaged(value: Array, datum: Array) -> tuple[Array, Array]:
    """Return the mean of each datum's values, and the datums, ascending; missing ones are skipped.

    Values are added in ascending order, so that the order of rows does not matter.
    """
    order = np.lexsort((value, datum))
    value, datum = value[order], datum[order]
    begins = np.flatnonzero(np.diff(datum, prepend=-1))
    valid = ~np.isnan(value)
    total = np.add.reduceat(np.where(valid, value, 0.0), begins)
    count = np.add.reduceat(valid.astype(np.float64), begins)
    mean = np.full(total.shape, np.nan)
    np.divide(total, count, out=mean, where=count > 0)
    return mean, datum[begins]


# Notes on values, in display order.


def notes(findings: Findings, settings: Settings, needs: frozenset[str]) -> list[Note]:
    """Return the notes on the values of some metrics."""
    names = [name for name in findings.written if name in needs]
    result = []
    if findings.wide and len(names) == len(findings.written):
        message = (
            f"values are read from {listing(names, most=8)}: all columns of numbers other than ids,"
            f" weights and slices. To choose, write {option('value_columns', names[:2])}."
        )
        result.append(Note("columns_of_values", message, len(names), facts={"columns": names[:20]}))
    for at, code, words in (
        (STATUS.index(MISSING), "values_missing", "have a row without a value"),
        (STATUS.index(ABSENT), "metric_absent", "have no row of the metric"),
    ):
        gaps = {name: findings.status[name][at] for name in names if findings.status[name][at]}
        if gaps:
            listed = ", ".join(f"{name} {count:,}" for name, count in [*gaps.items()][:_NAMED])
            more = f" and {len(gaps) - _NAMED} more" if len(gaps) > _NAMED else ""
            message = f"of {count_of(findings.datums, 'datum')}, some {words}: {listed}{more}."
            result.append(
                Note(
                    code, message, sum(gaps.values()), facts={"metrics": dict([*gaps.items()][:20])}
                )
            )
    shares = [name for name in names if len({*findings.shares.get(name, (0, 1))}) == 1]
    if shares:
        message = (
            f"all values of {listing(shares, most=_NAMED)} are 0 or 1: the mean is a proportion,"
            " with Wilson's interval."
        )
        result.append(
            Note("values_of_0_and_1", message, len(shares), facts={"metrics": shares[:20]})
        )
    for name in names:
        low, high, n_others = findings.others.get(name, (0.0, 0.0, 0))
        marked = Counter[float]()
        for mark, n in findings.marks.get(name, ()):
            marked[mark] += n
        for mark, n in sorted(marked.items()):
            far = is_usual(mark, low, high) and max(low - mark, mark - high) > high - low > 0
            if not far or n < _REPEATED or 2 * n >= n_others + marked.total():
                continue
            what = (
                f"of {name} with {mark:g}, far outside all others ({low:g} to {high:g}): a mark of"
                " missing values? Remove these rows"
            )
            note = note_of("sentinel_values", n, ("row", "rows", what))
            facts = {"metric": name, "value": str(mark), "count": n}
            result.append(msgspec.structs.replace(note, warning=True, facts=facts))
    several = {name: findings.averaged[name] for name in sorted(needs) if name in findings.averaged}
    if several:
        rows, datums = (max(counts[i] for counts in several.values()) for i in (0, 1))
        message = (
            f"{count_of(rows, 'row')} of {count_of(datums, 'datum')} with several rows are averaged"
            f" within their datum: {listing([*several], most=_NAMED)}."
        )
        gaps = {name: count for name in several for count in findings.gaps.get(name, ()) if count}
        if gaps:
            listed = ", ".join(f"{name} {count:,}" for name, count in [*gaps.items()][:_NAMED])
            message += f" Rows without a value are left out of these means: {listed}."
        missing = {"missing": dict([*gaps.items()][:20])} if gaps else {}
        several_facts = {"metrics": [*several][:20], **missing}
        result.append(Note("values_averaged", message, rows, facts=several_facts))
    return result


_NAMED = 6
_REPEATED = 3  # rows of a mark of missing values


# The metrics of a run: those asked for, or all of the table.


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, requested: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the requested metrics, or all of the table.

    Raises:
        InputError: the table has no metric that an option names.
    """
    return fit_written(
        metrics, written(frames.sides[TABLE], settings), settings, requested=requested
    )


def fit_written(
    metrics: tuple[Metric, ...], rows: Mapping[str, int], settings: Settings, *, requested: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the requested metrics, or all of the table; see :func:`fit`."""
    named = [metric.name for metric in metrics] if requested else [*rows]
    for what, names in (("metrics", named), ("better", settings.better)):
        missing = [name for name in names if name not in rows]
        if "passed" in rows:
            missing = [name for name in missing if not PASSES.fullmatch(name)]
        if missing and rows:
            raise InputError(
                f"{option(what)}: the table has no metric {listing(missing)}."
                f"{did_you_mean(missing[0], rows)} Metrics there: {listing([*rows], most=12)}."
                f" Statistics of them are chosen with {option('statistics')}.",
                code="unknown_name",
                option=what,
                value=missing[0],
            )
    return (metrics if requested else tuple(map(family, named))), []


AHEAD = ("metric",)
"""Columns whose distinct values decide in advance which metrics to tally."""


def may_fit(
    metrics: tuple[Metric, ...], needs: frozenset[str], ahead: pl.DataFrame, *, requested: bool
) -> tuple[tuple[Metric, ...], bool]:
    """Return the metrics that the rows may have, before checks.

    Args:
        ahead: distinct values of ``AHEAD``; of a wide table its columns, without rows.
    """
    if requested:
        return metrics, False
    if set(ahead.columns) == set(AHEAD):
        names = ahead["metric"].cast(pl.String).drop_nulls().unique().sort().to_list()
    else:
        names = wide_names(ahead.columns)
    return tuple(map(family, names)), False


def tally(
    frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers
) -> StatsTallies:
    """Encode the values of a run in memory."""
    tallies, findings = encode(frames, settings, needs)
    frames.notes += notes(findings, settings, needs)
    return tallies


def tally_part(
    frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers, *, several: bool
) -> tuple[StatsTallies, Findings]:
    """Encode the values of some datums; also return findings to merge over parts."""
    return encode(frames, settings, needs)


def merge(parts: Sequence[StatsTallies], settings: Settings) -> StatsTallies:
    """Merge tallies; a part without a metric of another has datums without a row of it.

    Args:
        parts: see :func:`..per_datum.merge`.
    """
    needs = sorted({need for part in parts for need in part.stats.columns})
    if any(len(part.stats.columns) != len(needs) for part in parts):
        parts = [
            msgspec.structs.replace(part, stats=_with_columns(part.stats, needs)) for part in parts
        ]
    return merge_tallies(parts, settings)


def _with_columns(stats: Stats, needs: Sequence[str]) -> Stats:
    n = stats.counted.size
    columns: dict[str, tuple[Column, ...]] = {}
    for need in needs:
        name, _, weighs = need.partition("\t")
        absent = STATUS, np.full(n, STATUS.index(ABSENT), np.int8)
        columns[need] = stats.columns.get(need) or (
            Column(metric=name, statistic="weight", values=np.ones((n, 1, 1)))
            if weighs
            else Column(metric=name, values=np.full((n, 1, 1), np.nan), status=absent),
        )
    return Stats(stats.counted, columns, stats.status)


def weights(tallies: StatsTallies) -> Array | None:
    """See :attr:`..task.Task.weights`."""
    for need, (column, *_) in tallies.stats.columns.items():
        if need == weight_of(column.metric):
            return column.values[:, 0, 0]
    return None


def view(
    tallies: StatsTallies,
    settings: Settings,
    group: Array | None = None,
    n_groups: int = 1,
    weights: Array | None = None,
    threads: Workers | None = None,
) -> ValuesView:
    """Return the values by groups of datums."""
    return ValuesView(
        tallies.stats, tallies.labels, group=group, n_groups=n_groups, weights=weights
    )


def range_of(tallies: StatsTallies, metric: Metric) -> tuple[float, float]:
    """Return the range of a metric: 0 to 1 if its values are those of a yes or no."""
    if metric.name in tallies.stats.columns and is_share(tallies.stats, metric.name):
        return 0.0, 1.0
    return metric.range


# The plan in words, a tiny run, and contents of single datums: their rows.


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step."""
    return [
        "encode    one value per datum and metric; several rows of a datum are averaged",
        f"tally     values of {', '.join(sorted(needs)) or 'every metric of the table'}",
        f"sums      {', '.join(settings.statistics)} over datums with a value",
    ]


def samples() -> Iterator[Sample]:
    """Values of a wide table, with a gap, with weights and without."""
    table = pl.DataFrame({"datum_id": [1, 2, 3, 4], "a": [0.5, 2.0, None, 1.0]})
    named = {
        "value_columns": ["a"],
        "statistics": ["mean", "sum", "median", "p95", "std", "min", "max"],
    }
    yield table, None, named
    yield table.with_columns(weight=pl.Series([1.0, 2.0, 3.0, 1.0])), None, named


TASK = Task(
    name="values",
    settings=Settings,
    fit=fit,
    tally=tally,
    explain=explain,
    samples=samples,
    contents=Contents(of_tables=contents_of_table),
    truths=False,
    no_limits="every datum has its values, so no choice is open",
    fitted_by_rows=FittedByRows(
        AHEAD, may_fit, fit_written, tally_part, Findings, merge_findings, notes
    ),
    **{
        **OF_VALUES,
        "merge": merge,
        "view": view,
        "drawn": ValuesView.drawn,
        "weights": weights,
        "common": Common(common_values, ranges=range_of),
    },
)
