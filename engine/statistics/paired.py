"""Two runs over the same datums: common datums, differences and tests."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..evaluation import planner, summary
from ..evaluation.summary import Computed, Tallied
from ..ingest.problems import MANY, Note
from ..schemas.arrays import Array
from ..schemas.errors import N_EXAMPLES, InputError, OptionError, unknown
from ..schemas.option_values import Intervals
from ..schemas.results import ESTIMATES
from ..schemas.tuning import tuning
from ..schemas.wording import option
from ..tallies.datums import Cells
from ..tallies.draws import LEAST, Draws, group_vectors
from ..tallies.stats import Fill, skip
from .intervals import floor_of
from .resamples import BY_DATUM, Base, Counted, Drawing, column_of, of_rows, places, spread

# The datums of runs that are compared: the same of all of them.


def same_kind(runs: Mapping[str, Tallied]) -> None:
    """Check that the datum ids of runs are comparable.

    Raises:
        InputError: a run has no ids, ids have different types, or runs without ids differ in rows.
    """
    datums = {name: run.tallies.datums for name, run in runs.items()}
    unnamed = [name for name, one in datums.items() if one.ids is None]
    if unnamed and len(unnamed) < len(datums):
        raise InputError(
            f"{unnamed[0]} has no datum ids, and other runs have: give all of them the column."
        )
    if len({len(one) for one in datums.values()}) > 1 and unnamed:
        message = ", ".join(f"{name} {len(one):,}" for name, one in datums.items())
        raise InputError(
            "the runs have no datum ids, so that rows are compared in their order, and not as many"
            f" rows ({message}): give them a datum_id column."
        )
    if len({one.id_dtype.is_integer() for one in datums.values()}) > 1:
        message = ", ".join(f"{name} {one.id_dtype}" for name, one in datums.items())
        raise InputError(
            f"datum ids are integers in some runs and texts in others: {message}. If the integers"
            " are the numbers in the texts (7 and img_007.jpg), write"
            f" {option('id_format', ['number'])}; otherwise give all runs the same ids."
        )


class ComparedDatums(msgspec.Struct, frozen=True):
    """Datums that are compared.

    Attributes:
        ids: ids of all compared datums, or row numbers.
        codes: per run int32 [n_datums], index of every datum in ``ids``, -1 for others.
        left_out: number of datums that are in some run but not compared.
        unanswered: per run, the datums without a prediction that are not compared, since means of
            the task skip them and another run answers them; may be empty.
    """

    ids: pl.Series
    codes: dict[str, Array]
    left_out: int = 0
    unanswered: dict[str, int] = {}

    def within(self, name: str) -> Array | None:
        """Return the compared datums of a run, bool [n_datums]; None if all are."""
        inside: Array = self.codes[name] >= 0
        return None if inside.all() else inside


def datums_of(
    runs: Mapping[str, Tallied], common: bool, *, answered: bool = True
) -> ComparedDatums:
    """Select the datums to compare: those of all runs.

    If means skip datums without a prediction, only those that all runs answer.

    Args:
        common: drop datums that are missing from any run.
        answered: drop datums that any run does not answer.

    Raises:
        InputError: the runs have other datums, or no answered datum in common.
    """
    every = _of_all(runs, common)
    return _answered(every, runs) if answered else every


def _answered(datums: ComparedDatums, runs: Mapping[str, Tallied]) -> ComparedDatums:
    """Drop datums that enter the means of only some runs, which would favour not answering."""
    rule = next(iter(runs.values())).plan.does.unanswered
    if rule is None:
        return datums
    counted = np.zeros((len(runs), len(datums.ids)), bool)
    for row, (name, run) in zip(counted, runs.items(), strict=True):
        code = datums.codes[name]
        row[code[code >= 0]] = rule.counted(run.tallies)[code >= 0]
    some = np.asarray(counted.any(axis=0))
    every = np.asarray(counted.all(axis=0))
    mixed = some & ~every
    if not mixed.any():
        return datums
    missing = {name: int((mixed & ~row).sum()) for name, row in zip(runs, counted, strict=True)}
    if not every.any():
        message = ", ".join(f"{name} {count:,}" for name, count in missing.items())
        raise InputError(
            f"no datum has a prediction in all runs. Of {int(some.sum()):,} datums, missing are"
            f" {message}. Means are over datums with predictions{rule.advice}.",
            code="nothing_in_common",
            count=int(some.sum()),
            lacking=dict(missing),
        )
    place = np.where(mixed, -1, np.cumsum(~mixed) - 1).astype(np.int32)
    codes = {
        name: np.where(code >= 0, place[code], -1).astype(np.int32)
        for name, code in datums.codes.items()
    }
    return ComparedDatums(datums.ids.filter(pl.Series(~mixed)), codes, datums.left_out, missing)


def shared_codes(first: Tallied, second: Tallied) -> tuple[Array, Array, int]:
    """Place of each datum among those that two runs share, int32, -1 for others; and how many."""
    ids = [run.tallies.datums.id for run in (first, second)]
    if ids[0].dtype.is_integer() != ids[1].dtype.is_integer():
        return np.full(len(ids[0]), -1, np.int32), np.full(len(ids[1]), -1, np.int32), 0
    frames = [one.cast(ids[0].dtype).to_frame("id") for one in ids]
    common = frames[0].join(frames[1], on="id", how="semi", maintain_order="left")
    common = common.with_columns(code=pl.int_range(common.height, dtype=pl.Int32))
    codes = [
        one.join(common, on="id", how="left", maintain_order="left")["code"]
        .fill_null(-1)
        .to_numpy()
        for one in frames
    ]
    return codes[0], codes[1], common.height


def answered_by_one(first: Tallied, second: Tallied) -> tuple[Array, Array]:
    """Return the datums of both runs that enter the means of only one, bool [n_datums] per run.

    Unlike :func:`datums_of`, datums that are missing from a run are ignored, since partitions
    contain different data.
    """
    runs = first, second
    rule, datums = first.plan.does.unanswered, [run.tallies.datums for run in runs]
    ids = [one.id for one in datums]
    if rule is None or ids[0].dtype.is_integer() != ids[1].dtype.is_integer():
        return np.zeros(len(ids[0]), bool), np.zeros(len(ids[1]), bool)
    counted = [
        pl.DataFrame({"id": column.cast(ids[0].dtype), "counted": rule.counted(run.tallies)})
        for column, run in zip(ids, runs, strict=True)
    ]
    result = []
    for this, other in (counted, counted[::-1]):
        matched = this.join(other, on="id", how="left", maintain_order="left")
        differs = (matched["counted"] != matched["counted_right"]).fill_null(value=False)
        result.append(differs.to_numpy())
    return result[0], result[1]


def _of_all(runs: Mapping[str, Tallied], common: bool) -> ComparedDatums:
    """Select the datums to compare.

    A datum that is missing from a run and has no ground truth in the others is compared: the run
    predicts no object in it.
    """
    datums = [run.tallies.datums for run in runs.values()]
    every = [one.id for one in datums]
    if all(ids.equals(every[0]) for ids in every):
        codes = np.arange(len(every[0]), dtype=np.int32)
        return ComparedDatums(every[0], dict.fromkeys(runs, codes))
    every = [ids.cast(every[0].dtype) for ids in every]
    tables = [
        pl.DataFrame({"id": ids, "bare": _without_truth(run)})
        for ids, run in zip(every, runs.values(), strict=True)
    ]
    table = pl.concat(tables).group_by("id").agg(pl.len().alias("n"), pl.col("bare").all())
    selected = table.filter((pl.col("n") == len(runs)) | pl.col("bare"))["id"].sort()
    if selected.len() < table.height:
        messages = []
        for name, ids in zip(runs, every, strict=True):
            missing = table.filter(~pl.col("bare"), ~pl.col("id").is_in(ids.implode()))["id"].sort()
            if len(missing):
                first = ", ".join(map(repr, missing.head(N_EXAMPLES).to_list()))
                messages.append(
                    f"{len(missing):,} datums of the others are missing in {name}, first {first}"
                )
        shared = table.filter(pl.col("n") == len(runs))["id"]
        if not common or not len(shared):
            remedy = (
                f"compare their common datums with {option('common', True)}, or score all of them"
                " on the same data"
                if len(shared)
                else "they have none in common"
            )
            raise InputError(
                f"the runs are not of the same datums: {'; '.join(messages)}: {remedy}."
            )
    place = pl.DataFrame(
        {"id": selected, "code": pl.int_range(len(selected), dtype=pl.Int32, eager=True)}
    )
    codes_of = {
        name: ids.to_frame("id")
        .join(place, on="id", how="left", maintain_order="left")["code"]
        .fill_null(-1)
        .to_numpy()
        for name, ids in zip(runs, every, strict=True)
    }
    return ComparedDatums(selected, codes_of, table.height - len(selected))


def _without_truth(run: Tallied) -> Array:
    """Return the datums without a ground truth, bool [n_datums]; False if unknown."""
    truth = run.plan.does.truth
    codes = None if truth is None else truth(run.tallies)
    if codes is None:
        return np.zeros(len(run.tallies.datums), bool)
    return np.asarray(codes == 0)


def identical(first: Any, second: Any, codes: tuple[Array, Array] | None = None) -> bool:
    """Return True if two tallies, or parts of them, are equal up to row order.

    Fields that only one tally has, and timings, are ignored.

    Args:
        codes: int32 [n_datums] each, index of each datum among those compared; -1 for others, which
            are ignored if the tallies can be sorted.
    """
    if first is None or second is None:
        return True
    if hasattr(first, "ordered"):
        one, other = codes or (None, None)
        return type(first) is type(second) and identical(first.ordered(one), second.ordered(other))
    if isinstance(first, np.ndarray):
        same_dtype = isinstance(second, np.ndarray) and first.dtype == second.dtype
        return same_dtype and np.array_equal(first, second, equal_nan=first.dtype.kind == "f")
    if isinstance(first, pl.Series):
        return isinstance(second, pl.Series) and first.equals(second)
    if isinstance(first, pl.DataFrame):
        return isinstance(second, pl.DataFrame) and first.equals(second)
    if isinstance(first, msgspec.Struct):
        names = (name for name in first.__struct_fields__ if name not in _OF_NO_ACCOUNT)
        return type(first) is type(second) and all(
            identical(getattr(first, name), getattr(second, name)) for name in names
        )
    if isinstance(first, (tuple, list)):
        return (
            type(first) is type(second)
            and len(first) == len(second)
            and all(map(identical, first, second))
        )
    if isinstance(first, dict):
        shared = first.keys() & second.keys()
        return bool(shared or not (first or second)) and all(
            identical(first[name], second[name]) for name in shared
        )
    return bool(first == second)


_OF_NO_ACCOUNT = (
    *("seconds", "slices", "dataset", "keys"),
    *("row", "gt_row", "examples", "outcomes", "errors", "label_errors"),  # follow from the others
)


# Datums without a value: means of runs are compared over the datums that have one in all runs.

SKIP, ZERO, WORST = "skip", "zero", "worst"
COLUMNS = ("missing_a", "missing_b", "coverage")
"""Columns of differences: datums of which either run has no value though the other has one, and the
share of datums with a value in either run that are compared."""


def too_few(coverage: float | None) -> bool:
    """Return True if too many values are missing in one run for a verdict."""
    return coverage is not None and 1 - coverage > MANY + 1e-9


def fill_of(missing: str, runs: Sequence[Tallied]) -> Fill:
    """Choose the replacement for missing values of each metric.

    Args:
        missing: ``skip``, ``zero`` or ``worst``.
        runs: of one task and one set of options.

    Raises:
        OptionError: another value, or metrics that cannot be filled in this way.
    """
    if missing not in (SKIP, ZERO, WORST):
        raise unknown("missing", missing, (SKIP, ZERO, WORST))
    plan = runs[0].plan
    if missing == SKIP:
        return skip
    given, rule = option("missing", missing), plan.does.common
    if rule is None or not rule.fills:
        raise OptionError(
            f"{given}: numbers of {plan.task} are no means of one value per datum that may be"
            " missing: remove it.",
            code="option_unread",
            option="missing",
        )
    fills: dict[str, float] = {}
    endless, best = [], []
    for metric in plan.metrics:
        better = plan.dialect.better.get(metric.name, metric.better)
        if better == "lower":
            best.append(metric.name)
        ranges = [metric.range]
        if rule.ranges is not None:
            ranges = [rule.ranges(run.tallies, metric) for run in runs]
        lows, highs = zip(*ranges, strict=True)
        end = {"higher": min(lows), "lower": max(highs)}.get(better, math.inf)
        if math.isinf(end) and not rule.worst_of_datums.intersection(metric.needs):
            endless.append(metric.name)
        for need in metric.needs:
            fills[need] = end if math.isinf(end) else fills.get(need, end)
    if missing == ZERO:
        if best:
            raise OptionError(
                f"{given}: 0 is the best value of {', '.join(best)}, so that a run gains by values"
                f" that are missing. Write {option('missing', WORST)}, or name metrics of which"
                f" higher is better with {option('metrics')}.",
                code="option_value",
                option="missing",
                metrics=list(best),
            )
        return lambda need: 0.0
    if endless:
        raise OptionError(
            f"{given}: {', '.join(endless)} {'have' if len(endless) > 1 else 'has'} no worst value."
            f" Name metrics that have one with {option('metrics')}, or remove {option('missing')}.",
            code="option_value",
            option="missing",
            metrics=list(endless),
        )
    return lambda need: fills.get(need, math.nan)


def over_common_values(
    runs: Sequence[Tallied], codes: Sequence[Array], fill: Fill
) -> list[Tallied] | None:
    """Return runs whose means are over the same datums; None if that is already so.

    Args:
        runs: of one task and one set of options.
        codes: int32 [n_datums] per run, index of each datum among those compared, -1 for others.
        fill: replacement for missing values.
    """
    rule = runs[0].plan.does.common
    aligned = None if rule is None else rule.values([run.tallies for run in runs], codes, fill)
    if aligned is None:
        return None
    return [
        msgspec.structs.replace(run, tallies=tallies)
        for run, tallies in zip(runs, aligned, strict=True)
    ]


class Slices:
    """Datums of slices, among the compared datums.

    Args:
        run: one of the runs.
        codes: int32 [n_datums], index of each datum among those compared, -1 for others.
        n: number of compared datums.
        identity: columns that identify a number.
    """

    def __init__(self, run: Tallied, codes: Array, n: int, identity: Sequence[str]) -> None:
        self._datums = run.tallies.datums
        self._codes, self._n = codes, n
        self._at = identity.index("slice"), identity.index("slice_value")
        self._groups: dict[str, tuple[Array, list[str]]] = {}

    def of(self, key: tuple[Any, ...], *every: Mapping[tuple[Any, ...], Array]) -> list[Array]:
        """Values of the datums that a number is about.

        Args:
            key: identity of the number.
            every: numbers of the whole set, to values of datums; those without it are skipped.
        """
        overall = tuple(None if i in self._at else value for i, value in enumerate(key))
        inside = self._inside(*(key[i] for i in self._at))
        return [one[overall][inside] for one in every if overall in one]

    def _inside(self, column: str | None, value: Any) -> Array:
        if column is None:
            return np.ones(self._n, bool)
        if column not in self._groups:
            group, names = self._datums.groups(column)
            of = np.full(self._n, -1, np.int32)
            of[self._codes[self._codes >= 0]] = group[self._codes >= 0]
            self._groups[column] = of, names
        of, names = self._groups[column]
        return np.asarray(of == names.index(value)) if value in names else np.zeros(self._n, bool)


# Two runs over the same datums: resampled differences, randomisation tests, per-datum values.

AT = "draws"
"""Column with the offset of each row's resamples, in a frame of collected numbers."""


Blocks = Callable[[Drawing, Sequence[Computed]], Iterator[Draws]]
"""Function that yields blocks of resamples for the numbers of a view."""


class Numbers(msgspec.Struct, frozen=True):
    """All numbers of a run, with their values per resample.

    Attributes:
        rows: the ``metrics`` frame.
        drawn: float64 [resamples, rows], NaN if undefined.
        failed: row -> why it has no resamples.
        units: float64 [rows], effective number of datums or clusters, infinite if many.
        share: bool [rows], shares of datums.
        unfit: bool [rows], numbers without any interval.
        floor: float64 [rows], minimum scale of rounding errors.
    """

    rows: pl.DataFrame
    drawn: Array
    failed: dict[int, str]
    units: Array
    share: Array
    unfit: Array
    floor: Array


class _Collector:
    """Estimator that keeps resampled values instead of intervals."""

    def __init__(
        self,
        drawing: Drawing,
        blocks: Callable[[Sequence[Computed]], Iterator[Draws]],
        vectors: Mapping[Any, Counted] | None,
    ) -> None:
        self._drawing = drawing
        self._blocks = blocks
        self._vectors = vectors
        self._lock = threading.Lock()
        self.drawn: list[Array | str] = []
        self.units: list[Array] = []
        self.share: list[Array] = []
        self.unfit: list[Array] = []
        self.n = 0
        self.begins: list[int] = []

    def __call__(
        self, view: Any, computed: Sequence[Computed], place: Any = None
    ) -> list[list[Cells]]:
        cached = None if self._vectors is None else self._vectors.get(place, BY_DATUM)
        values = self._drawing.values(view, computed, self._blocks(computed), vectors=cached)
        units = self._drawing.units(view)
        out = []
        for (metric, _, every), drawn in zip(computed, values, strict=True):
            of_one = [of_rows(units, cells) for cells in every]
            size = sum(rows.size for rows in of_one)
            base = Base(metric, every, independent=True)
            unfit = ["" in metric.unfit or bool(cells.unfit) for cells in every]
            with self._lock:
                at = self.n
                self.n += size
                self.drawn.append(drawn)
                self.units += of_one
                self.share.append(base.share & ~np.isnan(base.size) & (metric.as_share is None))
                self.unfit.append(np.repeat(unfit, [rows.size for rows in of_one]))
                self.begins.append(at)
            cells_of = []
            for cells in every:
                where = places(cells)
                numbered = spread(np.arange(at, at + where.size, dtype=np.float64), where, cells)
                at += where.size
                cells_of.append(
                    msgspec.structs.replace(cells, columns={**cells.columns, AT: numbered})
                )
            out.append(cells_of)
        return out

    def notes(self) -> list[Note]:
        return []


class _Visitor:
    """Estimator that visits views, and stores a result per view instead of intervals."""

    def __init__(
        self,
        drawing: Drawing,
        counted: dict[Any, Counted],
        visit: Callable[[Drawing, Any, Any, Counted | None], Counted],
    ) -> None:
        self._drawing, self._store, self._visit = drawing, counted, visit

    def __call__(
        self, view: Any, computed: Sequence[Computed], place: Any = None
    ) -> list[list[Cells]]:
        self._store[place] = self._visit(self._drawing, view, computed, self._store.get(place))
        return [cells for _, _, cells in computed]

    def notes(self) -> list[Note]:
        return []


def paired_numbers(
    runs: Sequence[Tallied], interval_options: Intervals, within: Sequence[Array | None]
) -> list[Numbers]:
    """Compute all numbers of runs in resamples in which a datum occurs as often in each run.

    Args:
        interval_options: draws and seed.
        within: per run bool [n_datums], datums that count; None for all.
    """
    of_runs: list[dict[Any, Counted]] = [{} for _ in runs]

    def each(visit: Callable[[Drawing, Any, Any, Counted | None], Counted]) -> None:
        for run, own, inside in zip(runs, of_runs, within, strict=True):
            visitor = _Visitor(Drawing(run.plan, run.tallies, run.threads), own, visit)
            makers, _ = summary.summarise(
                run.plan, run.tallies, threads=run.threads, estimate=visitor, within=inside
            )
            makers["metrics"]()

    def hash_view(drawing: Drawing, view: Any, computed: Any, previous: Counted | None) -> Counted:
        return drawing.hashed(view, computed, range(len(computed)))

    def keep_view(drawing: Drawing, view: Any, computed: Any, previous: Counted | None) -> Counted:
        reusable = (
            previous is not None and previous.metrics and drawing.seal(view, computed, previous)
        )
        return previous if previous is not None and reusable else BY_DATUM

    if min(len(run.tallies.datums) for run in runs) >= LEAST:
        each(hash_view)
    for place in set.union(*(set(one) for one in of_runs)):
        every = [one.get(place, BY_DATUM) for one in of_runs]
        same_metrics = every[0].metrics and all(one.metrics == every[0].metrics for one in every)
        if not same_metrics or not group_vectors([one.vectors for one in every]):
            for one in of_runs:
                one.pop(place, None)
    if any(of_runs):
        each(keep_view)
    fit = {at for at in of_runs[0] if all(one[at].metrics for one in of_runs)}
    return [
        numbers(
            run,
            lambda drawing, computed: drawing.by_chance(
                computed, interval_options.draws, interval_options.seed
            ),
            inside,
            {place: own[place] for place in fit},
        )
        for run, inside, own in zip(runs, within, of_runs, strict=True)
    ]


def numbers(
    run: Tallied,
    blocks: Blocks,
    within: Array | None = None,
    vectors: Mapping[Any, Counted] | None = None,
) -> Numbers:
    """Compute all numbers of a run, over some datums, in every resample.

    Args:
        blocks: yields blocks of resamples for the numbers of a view.
        within: bool [n_datums], datums that count; None for all.
        vectors: distinct vectors by view; others are resampled by datum. None: those of the run.
    """
    drawing = Drawing(run.plan, run.tallies, run.threads)
    collector = _Collector(drawing, lambda computed: blocks(drawing, computed), vectors)
    makers, _ = summary.summarise(
        run.plan, run.tallies, threads=run.threads, estimate=collector, within=within
    )
    rows = makers["metrics"]()
    n_draws = max((one.shape[0] for one in collector.drawn if not isinstance(one, str)), default=0)
    every = np.full((n_draws, collector.n), np.nan)
    why: dict[int, str] = {}
    stops = [*collector.begins[1:], collector.n]
    for one, first, last in zip(collector.drawn, collector.begins, stops, strict=True):
        if isinstance(one, str):
            why |= dict.fromkeys(range(first, last), one)
        else:
            every[:, first:last] = one
    at = rows[AT].to_numpy() if rows.height else np.zeros(0, np.int64)
    failed = {row: why[place] for row, place in enumerate(at.tolist()) if place in why}
    parts = collector.units, collector.share, collector.unfit
    units, share, unfit = (np.concatenate([np.zeros(0), *one])[at] for one in parts)
    floors = {metric.name: floor_of(metric.range) for metric in run.plan.metrics}
    floor = np.array([floors.get(name, 1.0) for name in rows["metric"].to_list()])
    rows = rows.drop("lower", "upper", *{*ESTIMATES} - {"draws"}, AT)
    return Numbers(rows, every[:, at], failed, units, share > 0, unfit > 0, floor)


def joined(first: Tallied, second: Tallied) -> tuple[Tallied, Array, Array]:
    """Concatenate both runs into one that contains every datum twice, once per run.

    A resample that takes each datum from one of the two runs is a randomised run. Both copies are
    adjacent in datum order, since ties of scores are ranked by datum.

    Returns:
        the run; uint8 [datums], 0 for the first run, 1 for the second; int64 [datums], index of
        each among the first run's datums followed by the second's.
    """
    plan = first.plan
    datums = [run.tallies.datums for run in (first, second)]
    side = np.repeat(np.array([0, 1], np.uint8), [len(one) for one in datums])
    order = np.arange(side.size)
    parts = [run.tallies for run in (first, second)]
    if all(one.ids is not None for one in datums):
        ids = pl.concat([one.id.cast(datums[0].id_dtype) for one in datums])
        numbers = 2 * (ids.rank("dense").to_numpy().astype(np.int64) - 1) + side
        order = np.argsort(numbers)
        for i, codes in enumerate(np.split(numbers, [len(datums[0])])):
            named = msgspec.structs.replace(datums[i], ids=pl.Series("datum_id", codes))
            parts[i] = msgspec.structs.replace(parts[i], datums=named)
    run = Tallied(plan, plan.does.merge(parts, plan.settings), first.threads)
    return run, side[order], order


def swapped(
    run: Tallied, side: Array, draws: int, seed: int, within: Array | None
) -> tuple[Numbers, Array]:
    """Compute differences under randomisation: second mixed run minus the first, per resample.

    Args:
        run: both runs as one.
        side: uint8 [datums], run of each datum.
        draws: number of resamples.
        within: bool [datums], datums that count.

    Returns:
        numbers of both runs together, whose rows describe the columns; float64 [resamples, rows].
    """

    def mixed(of: Array) -> Blocks:
        def blocks(drawing: Drawing, computed: Sequence[Computed]) -> Iterator[Draws]:
            return (
                msgspec.structs.replace(block, side=of)
                for block in drawing.by_chance(computed, draws, seed)
            )

        return blocks

    one = numbers(run, mixed(side), within)
    other = numbers(run, mixed(1 - side), within)
    return one, other.drawn - one.drawn


def randomised(
    runs: tuple[Tallied, Tallied], within: tuple[Array, Array], draws: int, seed: int
) -> tuple[pl.DataFrame, Array]:
    """Compute differences of two runs under randomisation.

    Metrics that depend on the order of scores are mixed by ranks within each run, so that p does
    not depend on the scale of the scores.

    Args:
        within: bool [n_datums] each, datums that are compared.
        draws: number of resamples.

    Returns:
        rows of the metrics frame; float64 [resamples, rows].
    """
    plan = runs[0].plan
    ranking = plan.does.ranking
    some = [metric for metric in plan.metrics if metric.frame == "metrics" and metric.compute]
    names: list[str] = []
    if ranking is not None and any(metric.ranks for metric in some):
        names = [
            metric.name
            for metric in some
            if not any(ranking.by_value(run.tallies, run.plan.settings, metric) for run in runs)
        ]
    passes: list[tuple[Tallied, ...]] = []
    if names and ranking is not None:
        passes.append(
            tuple(
                msgspec.structs.replace(
                    run,
                    plan=planner.narrowed(run.plan, names),
                    tallies=ranking.by_rank(
                        run.tallies, run.plan.settings, None if inside.all() else inside
                    ),
                )
                for run, inside in zip(runs, within, strict=True)
            )
        )
    others = [metric.name for metric in some if metric.name not in names]
    if others or not names:
        narrowed = [
            msgspec.structs.replace(run, plan=planner.narrowed(run.plan, others)) if names else run
            for run in runs
        ]
        passes.append(tuple(narrowed))
    results = []
    for first, second in passes:
        pooled, side, origin = joined(first, second)
        inside = np.concatenate(within)[origin]
        results.append(swapped(pooled, side, draws, seed, None if inside.all() else inside))
    rows = pl.concat([one.rows for one, _ in results])
    deep = max(drawn.shape[0] for _, drawn in results)
    swaps = [
        drawn if drawn.shape[0] == deep else np.full((deep, drawn.shape[1]), np.nan)
        for _, drawn in results
    ]
    return rows, np.concatenate(swaps, axis=1)


number_of = partial(column_of, name="value")
"""The numbers of cells, flat."""


def rests_on(cells: Cells) -> Array:
    """Return the support of every cell, flat; 0 if undefined, except of one datum's deviation."""
    many = column_of(cells, "scored" if cells.columns.get("scored") is not None else "support")
    undefined = np.isnan(number_of(cells)) & (cells.columns.get("statistic") != "std")
    return np.where(undefined, 0.0, np.nan_to_num(many, nan=1.0))


def by_datum(
    run: Tallied, codes: Array, n: int, of: Callable[[Cells], Array] = number_of
) -> Iterator[tuple[Any, Cells, Array | None]]:
    """Yield every metric's per-datum values.

    Args:
        codes: int32 [datums], index of each datum among those compared, -1 for others.
        n: number of compared datums.
        of: reads values from cells.

    Yields:
        metric, cells of the first chunk of datums, and values float64 [n, ...] over the cells'
        other axes, NaN if undefined; None if too large for memory.
    """
    plan, tallies = run.plan, run.tallies
    if plan.does.cells_by_datum is None:
        cells_each = plan.does.cells_per_group(len(tallies.labels), plan.settings, plan.needs)
        n_cells = np.full(n, max(1, cells_each))
    else:
        at = codes >= 0
        n_cells = np.zeros(n, np.int64)
        np.add.at(
            n_cells, codes[at], plan.does.cells_by_datum(tallies, plan.settings, plan.needs)[at]
        )
    chunk = np.cumsum(n_cells) // tuning().group_cells
    firsts = np.flatnonzero(np.diff(chunk, prepend=-1)).tolist()
    collected: dict[tuple[int, int], tuple[Any, Cells, list[Array]]] = {}
    for first, last in pairwise([*firsts, n]):
        inside = (codes >= first) & (codes < last)
        group = np.where(inside, codes - first, -1).astype(np.int32)
        view = plan.does.view(tallies, plan.settings, group, last - first, threads=run.threads)
        for m, metric in enumerate(plan.metrics):
            if metric.compute is None or metric.frame != "metrics":
                continue
            for c, cells in enumerate(metric.compute(view, plan.settings_of(metric))):
                value = of(cells).reshape(last - first, -1)
                _, _, listed = collected.setdefault((m, c), (metric, cells, []))
                if 8 * n * value.shape[1] <= tuning().drawn_bytes:
                    listed.append(value)
    for metric, cells, values in collected.values():
        if not values:
            yield metric, cells, None
            continue
        widths = {value.shape[1] for value in values}
        if len(widths) == 1:
            yield metric, cells, np.concatenate(values).reshape(n, *cells.shape[1:])
