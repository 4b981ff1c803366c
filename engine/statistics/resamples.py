"""Metrics and curves computed again in every resample of the datums."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from ..evaluation.planner import Plan
from ..evaluation.summary import Computed
from ..executors import Threads
from ..ingest.problems import Note, count_of
from ..metrics import registry
from ..metrics.averages import TRIALS
from ..metrics.registry import Metric
from ..metrics.thresholds import Curve
from ..progress import counting
from ..schemas.arrays import Array
from ..schemas.option_values import FEW_CLUSTERS, LEAST_DRAWS, Intervals
from ..schemas.tuning import tuning
from ..schemas.wording import option
from ..scratch import local
from ..tallies.datums import TOO_LARGE, Cells
from ..tallies.draws import LEAST, Draws, LeavingOut, OneByOne, Uncounted, Vectors, group_vectors
from ..tallies.sorted_scores import reserve
from .intervals import (
    CLOSED,
    METHODS,
    NOT_MOVED,
    WIDTHLESS,
    Interval,
    Method,
    Sample,
    effective_trials,
    few_units_t,
    floor_of,
    logit,
    mean_of_shares,
    means,
    normal_quantile,
    recentred,
    standard_errors,
    wilson,
)

# Numbers of a view in every resample.

_SAME = 1e-9  # difference of means up to which they are of the same labels
_RARE = 10  # positives below which a label makes macro averages uncertain
_PER_PAIR = 10  # resamples per pair of halves
_RATE = 2 / 3  # power of the number of datums by which the excess of means of labels falls
_UNCERTAIN = 1 / 4  # standard deviation of an excess / excess: that power is not known exactly
_FOR_NOTES = 100  # resamples that show what numbers rest on
_AT_ONCE = 256  # resamples of distinct vectors that are computed together
_LEFT_OUT = 200  # largest number of jackknife groups; more clusters share groups


class Drawing:
    """Computes the numbers of a run in resamples of its datums, in blocks, with threads."""

    def __init__(self, plan: Plan, tallies: Any, threads: Threads) -> None:
        self.plan = plan
        self.tallies = tallies
        self._threads = threads

    @property
    def keys(self) -> Array | None:
        """Key of every datum, uint64 [n]; None if they are on disk."""
        return self.tallies.datums.keys

    @cached_property
    def clusters(self) -> Array | None:
        """Keys of the clusters (or datums) to resample, ascending; None if more than 200."""
        result = np.zeros(0, np.uint64)
        for keys in self.tallies.datums.key_blocks():
            first = 0
            while first < keys.size:  # ever longer pieces: most often a few suffice
                last = 4 * first + 4 * _LEFT_OUT
                result = np.union1d(result, keys[first:last])
                if result.size > _LEFT_OUT:
                    return None
                first = last
        return result

    @cached_property
    def clusters_of_one(self) -> bool:
        """True if every cluster is a single datum."""
        blocks = [*self.tallies.datums.key_blocks()]
        keys = np.concatenate(blocks) if blocks else np.zeros(0, np.uint64)
        return bool(np.unique(keys).size == keys.size)

    def units(self, view: Any) -> Array:
        """Effective number of clusters (or datums) per group of a view, float64 [n_groups].

        (sum n)^2 / sum n^2 over the datums n of each cluster; infinite beyond 200.
        Source: L. Kish, Survey Sampling (1965).
        """
        out = np.full(view.n_groups, np.inf)
        datums = self.tallies.datums
        if view.group is not None:
            blocks = datums.grouped_keys(view.group)
        elif self.clusters is None:
            return out
        else:
            blocks = ((keys, np.zeros(keys.size, np.int32)) for keys in datums.key_blocks())
        if self.plan.options.cluster is None:  # every datum has its own key
            many = np.zeros(out.size)
            for _, at in blocks:
                many += np.bincount(at[at >= 0], minlength=out.size)
            return np.where(many > _LEFT_OUT, np.inf, many)
        by, count = ["group", "key"], pl.col("n").sum()
        rows = pl.DataFrame(schema={"group": pl.Int32, "key": pl.UInt64, "n": pl.UInt32})
        beyond = pl.Series([], dtype=pl.Int32)
        for keys, group in blocks:
            some = pl.DataFrame({"group": group, "key": keys}).filter(pl.col("group") >= 0)
            some = some.filter(~pl.col("group").is_in(beyond.implode())).group_by(by).len("n")
            rows = pl.concat([rows, some]).group_by(by).agg(count)
            over = rows["group"].value_counts().filter(pl.col("count") > _LEFT_OUT)["group"]
            rows, beyond = rows.filter(~pl.col("group").is_in(over.implode())), beyond.append(over)
        squares = (pl.col("n").cast(pl.Float64) ** 2).sum()
        sizes = rows.group_by("group").agg(count.cast(pl.Float64) ** 2 / squares)
        empty = np.ones(view.n_groups, bool)
        empty[beyond.to_numpy()] = False
        out[empty] = 0.0
        out[sizes["group"].to_numpy()] = sizes["n"].to_numpy()
        return out

    def _at_once(self, computed: Sequence[Computed]) -> int:
        """Return the number of resamples per block: fewer if datums or numbers are many."""
        sizes = tuning()
        n = len(self.keys) if self.keys is not None else 1
        cells = sum(math.prod(one.shape) for _, _, every in computed for one in every)
        room = min(sizes.drawn_weights // max(n, 1), sizes.drawn_cells // max(cells, 1))
        return min(sizes.draws_at_once, max(4, room // 4 * 4))

    def by_chance(self, computed: Sequence[Computed], draws: int, seed: int) -> Iterator[Draws]:
        """Yield blocks of bootstrap resamples for the numbers of a view."""
        each = self._at_once(computed)
        for first in range(0, draws, each):
            last = min(first + each, draws)
            yield Draws(seed, first, last, self.keys)

    def halves(self, view: Any, computed: Sequence[Computed], pairs: int, seed: int) -> list[Array]:
        """Means of numbers over random halves of the datums (or clusters), both halves of a pair.

        Returns:
            per metric float64 [numbers]; NaN if a number is undefined in most halves, or datums are
            in files.
        """
        drawn = []
        for side in (0, 1) if self.keys is not None else ():
            sides = np.full(len(self.tallies.datums), side, np.uint8)
            blocks = [
                msgspec.structs.replace(one, side=sides)
                for one in self.by_chance(computed, pairs, seed)
            ]
            drawn.append(self.values(view, computed, blocks, vectors=BY_DATUM))
        out = []
        for i, (_, _, every) in enumerate(computed):
            of_sides = [one[i] for one in drawn]
            values = np.full(sum(places(one).size for one in every), np.nan)
            if of_sides and not any(isinstance(one, str) for one in of_sides):
                half_values = np.concatenate(of_sides)
                often = 2 * (~np.isnan(half_values)).sum(axis=0) >= half_values.shape[0]
                values = np.where(often, means(half_values), np.nan)
            out.append(values)
        return out

    def leaving_out(self, computed: Sequence[Computed]) -> Iterator[Draws]:
        """Yield jackknife resamples in blocks: each cluster (or group of many) omitted once."""
        n = _LEFT_OUT if self.clusters is None else self.clusters.size
        parts, each = LeavingOut(n, self.clusters), self._at_once(computed)
        for first in range(0, n, each):
            yield Draws(0, first, min(first + each, n), self.keys, parts)

    def values(
        self,
        view: Any,
        computed: Sequence[Computed],
        blocks: Iterable[Draws],
        due: Sequence[bool] | None = None,
        bases: Sequence[Base] | None = None,
        vectors: Counted | None = None,
    ) -> list[Array | str]:
        """Compute the values of every metric in every resample.

        Args:
            computed: metrics, their settings and cells.
            blocks: blocks of resamples.
            due: flags of the metrics to compute; default all.
            bases: per metric, gathers what its numbers rest on.
            vectors: distinct vectors; None to find them.

        Returns:
            per metric float64 [resamples, numbers], the cells that become rows; [0, numbers] if not
            due; or the reason why there are no values.
        """
        due = [True] * len(computed) if due is None else due
        sizes = [sum(places(one).size for one in cells) for _, _, cells in computed]
        which = [i for i, one in enumerate(due) if one]
        out: list[Array | str] = [np.zeros((0, size)) for size in sizes]
        if not which:
            return out
        every = list(blocks)
        if not every:  # no datum to leave out
            return out
        n = sum(len(draws) for draws in every)
        for i in which:
            out[i] = _room(n, sizes[i], local(self.plan.options.scratch))
        grouped = self._find(view, computed, which, every) if vectors is None else vectors
        counted = grouped.metrics
        work: list[tuple[Sequence[Draws], list[int]]] = [
            (every, [i for i in which if i not in counted])
        ]
        if counted:
            blocks_of = self._blocks_of_vectors(computed, every, grouped.vectors)
            work.append((blocks_of, counted))
        drawn = self.plan.does.drawn

        def of_block(block_of: Draws, some: Sequence[int]) -> None:
            draws = msgspec.structs.replace(block_of)  # whose weights are gone when it is done
            block = None if drawn is None else drawn(view, draws)
            at = draws.first - every[0].first
            for i in some:
                target = out[i]
                if isinstance(target, str) and draws.vectors is None:
                    continue
                metric, settings, cells = computed[i]
                try:
                    result = self._compute(metric, settings, view, block, draws)
                    values = _flat(result, cells, len(draws))
                    if not isinstance(target, str):
                        target[at : at + len(draws)] = values
                    if bases is not None:
                        bases[i].add(at, values, result)
                except _Unlike as error:
                    out[i] = str(error)

        with counting("drawing", n, "draws") as count:

            def call(draws: Draws, some: Sequence[int], *, last: bool) -> None:
                of_block(draws, some)
                count(len(draws) if last else 0)

            def run(work: Sequence[tuple[Sequence[Draws], list[int]]]) -> None:
                self._threads.each(
                    [
                        partial(call, draws, some, last=some is work[-1][1])
                        for blocks_of, some in work
                        for draws in (blocks_of if some else ())
                    ]
                )

            try:
                run(work)
            except Uncounted:  # a number that asks for other sums in some resamples
                for base in bases or ():
                    base.clear()
                run([(every, which)])
        return out

    def _find(
        self, view: Any, computed: Sequence[Computed], which: Sequence[int], blocks: Sequence[Draws]
    ) -> Counted:
        """Group the datums of a view by what they add to numbers, for these resamples."""
        if any(one.leaving_out is not None for one in blocks):
            return BY_DATUM
        counted = self.hashed(view, computed, which, side=blocks[0].side)
        if not counted.metrics or not group_vectors([counted.vectors]):
            return BY_DATUM
        return counted if self.seal(view, computed, counted) else BY_DATUM

    def hashed(
        self, view: Any, computed: Sequence[Computed], which: Sequence[int], side: Any = None
    ) -> Counted:
        """Hash what each datum adds to numbers that need no weights of single datums."""
        clustered = self.plan.options.cluster is not None
        some = [i for i in which if not computed[i][0].chooses]
        if self.plan.does.drawn is None or len(self.tallies.datums) < LEAST:
            return BY_DATUM
        while some:
            vectors = Vectors(self.keys, clustered=clustered, side=side)
            unfit = self._run(view, computed, some, vectors.draws())
            if unfit is None:
                return Counted(vectors, some)
            some.remove(unfit)
        return BY_DATUM

    def seal(self, view: Any, computed: Sequence[Computed], own: Counted) -> bool:
        """Keep the rows of distinct vectors."""
        done = self._run(view, computed, own.metrics, own.vectors.draws()) is None
        own.vectors.seal()
        return done

    def _run(
        self, view: Any, computed: Sequence[Computed], some: Sequence[int], draws: Draws
    ) -> int | None:
        """Compute metrics for a block; return the first one that needs weights of datums."""
        assert self.plan.does.drawn is not None
        block = self.plan.does.drawn(view, draws)
        for i in some:
            metric, settings, _ = computed[i]
            assert metric.compute is not None
            try:
                metric.compute(block, settings)
            except (Uncounted, OneByOne):
                return i
        return None

    def _blocks_of_vectors(
        self, computed: Sequence[Computed], blocks: Sequence[Draws], vectors: Vectors
    ) -> list[Draws]:
        """The same resamples in larger blocks."""
        cells = sum(math.prod(one.shape) for _, _, every in computed for one in every)
        each = max(4, min(_AT_ONCE, tuning().drawn_cells // max(cells, 1)) // 4 * 4)
        starts = range(blocks[0].first, blocks[-1].last, each)
        return [
            msgspec.structs.replace(
                blocks[0], first=at, last=min(at + each, blocks[-1].last), vectors=vectors
            )
            for at in starts
        ]

    def _compute(
        self, metric: Metric, settings: Any, view: Any, block: Any, draws: Draws
    ) -> list[list[Cells]]:
        """Compute the cells of a block, vectorised if possible, otherwise per resample."""
        assert metric.compute is not None
        if block is not None and not metric.chooses:
            try:
                return [metric.compute(block, settings)]
            except OneByOne:
                pass
        if draws.keys is None:
            raise _Unlike("not computed for resamples of a run in bounded memory")
        weights = draws.weights.astype(np.int64)
        return [
            metric.compute(self._one_draw(view, weights[:, d]), settings) for d in range(len(draws))
        ]

    def _one_draw(self, view: Any, weights: Array) -> Any:
        does = self.plan.does
        if does.one_draw is not None:
            return does.one_draw(view, weights)
        return does.view(
            self.tallies, self.plan.settings, view.group, view.n_groups, weights=weights
        )


class Counted(NamedTuple):
    """Distinct vectors, and the places of the metrics whose sums they make up."""

    vectors: Any
    metrics: list[int]


BY_DATUM = Counted(None, [])
"""Every metric is resampled by datum."""


class Base:
    """Variation over resamples of what numbers rest on: datums of a share, positives of a label.

    Args:
        metric: its shares rest on the column ``trials``, other numbers on ``support``.
        cells: cells of the numbers.
        independent: each datum counts once, on its own.
    """

    def __init__(self, metric: Metric, cells: Sequence[Cells], *, independent: bool) -> None:
        self._independent = independent
        self._cells = cells
        self.overflows = False
        self._unbounded = not np.isfinite(metric.range).all()
        shares = [metric.trials in one.columns for one in cells]
        self._names = [metric.trials or "" if share else "support" for share in shares]
        rows = [places(one) for one in cells]
        self.share = np.repeat(shares, [row.size for row in rows])
        pairs = list(zip(cells, self._names, rows, strict=True))
        self.size = np.concatenate([column_of(one, name)[row] for one, name, row in pairs])
        of = metric.as_share
        self._share_of: Callable[[Any], Any] = np.asarray if of is None else of.share
        value = np.concatenate([column_of(one, "value")[row] for one, _, row in pairs])
        self.point = np.where(self.share, self._share_of(value), value)
        self._squares: dict[int, tuple[int, Array, Array]] = {}  # by first resample

    def clear(self) -> None:
        """Forget all resamples."""
        self._squares.clear()

    def add(self, at: int, values: Array, cell_lists: list[list[Cells]]) -> None:
        """Add the resamples from ``at`` on; for a note, the first ones suffice."""
        if self._unbounded and not self.overflows and np.isnan(values).any():
            reasons = (
                one.reason for cells in cell_lists for one in cells if one.reason is not None
            )
            every = (str(why) for one in reasons for why in np.ravel(np.asarray(one, object)))
            self.overflows = any(why.endswith(TOO_LARGE) for why in every)
        n = values.shape[0]
        if self._independent or not self.share.any():
            n = min(n, _FOR_NOTES - at)
            if n <= 0:
                return
        size = _flat(cell_lists, self._cells, values.shape[0], self._names)[:n]
        share = np.where(size > 0, self._share_of(values[:n]), 0.0)
        surplus = (share - self.point)[:, self.share]
        surplus *= size[:, self.share]
        self._squares[at] = n, ((size - self.size) ** 2).sum(axis=0), (surplus**2).sum(axis=0)

    def _variance(self, which: int) -> Array:
        every = [self._squares[at] for at in sorted(self._squares)]
        return np.asarray(sum(one[which] for one in every) / max(1, sum(one[0] for one in every)))

    def units(self) -> Array:
        """Effective number of datums or clusters in the size, float64 [m]; NaN if unknown.

        Source: L. Kish, Survey Sampling (1965): (sum w)^2 / sum w^2.
        """
        if not self._squares:
            return np.full(self.size.size, np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            units = self.size**2 / self._variance(1)
            if self._independent:  # one each, up to the error of few resamples
                units = np.where(np.abs(units / self.size - 1) < 0.5, self.size, units)
        return np.where(np.isfinite(units), units, np.nan)

    def trials(self, level: float, *, clustered: bool) -> Array:
        """Effective number of independent trials of shares, float64 [m], NaN for other numbers.

        With weights, Kish's number. With clusters, the number that gives the variance between
        clusters, adjusted for their degrees of freedom; if all trials are alike, the smaller of
        datums and clusters. Source: E. Korn, B. Graubard, "Confidence intervals for proportions
        with small expected number of positive counts estimated from survey data" (1998).
        """
        units, trials = self.units(), np.full(self.size.size, np.nan)
        trials[self.share] = units[self.share]
        inside = (self.point > WIDTHLESS) & (self.point < 1 - WIDTHLESS)
        mixed = self.share & inside & (units > 1)
        if clustered and mixed.any():
            p, k, n = self.point[mixed], units[mixed], self.size[mixed]
            between = self._variance(2)[mixed[self.share]] / n**2 * k / (k - 1)
            z, t = normal_quantile((1 + level) / 2), few_units_t(level, k, k.size)
            trials[mixed] = effective_trials(p, n, between, z, t, n)
        if clustered:
            trials = np.fmin(trials, np.where(self.share, self.size, np.nan))
        with np.errstate(invalid="ignore"):  # blocks may be summed in another order
            return np.where(trials > 0, np.round(trials, 6), trials)


def _all_have_variance(area: Array | None, cells: Sequence[Cells]) -> bool:
    """True if every defined number has a theoretical variance."""
    if area is None:
        return False
    point = np.concatenate([column_of(one, "value")[places(one)] for one in cells])
    return bool((np.isnan(point) | ~np.isnan(area[1])).all())


class _Unlike(Exception):
    """Resamples are not comparable with the numbers; the message gives the reason."""


def does_not_vary(cluster: str | None) -> str:
    """Why numbers of one datum, or of one cluster, have no interval."""
    what = "datum" if cluster is None else f"cluster of {cluster!r}"
    return f"a single {what} does not vary"


def places(cells: Cells) -> Array:
    """Find the cells that make rows, int64 [rows], places in the flat array."""
    if cells.keep is None:
        return np.arange(math.prod(cells.shape))
    keep = cells.keep.reshape(*[1] * (len(cells.shape) - cells.keep.ndim), *cells.keep.shape)
    return np.flatnonzero(np.broadcast_to(keep, cells.shape))


def column_of(cells: Cells, name: str) -> Array:
    """A column of all cells, flat."""
    values: Any = cells.columns.get(name)
    column = np.asarray(np.nan if values is None else values, np.float64)
    return np.broadcast_to(column, cells.shape).reshape(-1)


def _flat(
    cell_lists: list[list[Cells]],
    cells: Sequence[Cells],
    n: int,
    names: Sequence[str] | None = None,
) -> Array:
    """Return a column of resamples at the cells of the numbers, float64 [resamples, numbers].

    Args:
        cell_lists: cells of all resamples at once, or one list per resample.
        cells: cells of the numbers.
        n: number of resamples.
        names: column of each of the cells; by default their value.
    """
    if any(len(some) != len(cells) for some in cell_lists):
        raise _Unlike("resamples have other rows")
    parts = []
    for i, one in enumerate(cells):
        drawn = [some[i] for some in cell_lists]
        groups = one.shape[0]
        each = n // len(cell_lists)
        if any(d.shape != (each * groups, *one.shape[1:]) for d in drawn):
            raise _Unlike("resamples have other rows")
        name = names[i] if names else "value"
        values = np.concatenate([column_of(d, name).reshape(each, -1) for d in drawn])
        parts.append(values[:, places(one)])
    return np.concatenate(parts, axis=1)


def _room(draws: int, numbers: int, scratch: str | None) -> Array:
    """Allocate values of all resamples in memory, or beyond some size in an unnamed temporary file.

    Raises:
        OSError: the disk is full.
    """
    shape = (draws, numbers)
    if draws * numbers * 8 <= tuning().drawn_bytes:
        return np.full(shape, np.nan)
    with tempfile.TemporaryFile(dir=scratch) as file:
        reserve(file, draws * numbers * 8)
        values: Array = np.memmap(file, np.float64, "r+", shape=shape)
    values[:] = np.nan
    return values


def of_rows(groups: Array, cells: Cells) -> Array:
    """Repeat per-group values for each of their numbers, [rows]."""
    each = math.prod(cells.shape) // max(groups.size, 1)
    return groups[places(cells) // max(each, 1)]


def spread(values: Array, where: Array, cells: Cells) -> Array:
    """Numbers at the places of cells, NaN elsewhere, in the cells' shape."""
    out = np.full(math.prod(cells.shape), np.nan)
    out[where] = values
    return out.reshape(cells.shape)


# Bootstrap intervals of a run: every number recomputed in each resample.


class Estimates:
    """Adds intervals to cells and collects notes on them.

    Args:
        asked: interval options.
        threads: blocks of resamples run in parallel.
    """

    def __init__(
        self, plan: Plan, tallies: Any, interval_options: Intervals, threads: Threads
    ) -> None:
        self._drawing = Drawing(plan, tallies, threads)
        self._given = interval_options
        self._rare = 0  # most labels of a macro average with few positives
        self._overflows = False  # some resamples
        self._few: list[int] = []  # effective number of units or positives of numbers with few
        self._gaps: list[float] = []  # share of resamples without a value, per number
        self._without: list[str] = []  # why numbers have no interval

    def notes(self) -> list[Note]:
        """List notes on the intervals, once they are made."""
        notes = []
        if self._few:
            what = (
                "datums" if self._given.cluster is None else f"clusters of {self._given.cluster!r}"
            )
            many = count_of(len(self._few), "interval")
            notes.append(
                Note(
                    "few_clusters",
                    f"{many} rest{'s' * (len(self._few) == 1)} on fewer than {FEW_CLUSTERS} {what},"
                    f" the least on {min(self._few)}: such intervals are often too narrow.",
                    facts={"least": min(self._few)},
                )
            )
        if self._rare:
            notes.append(
                Note(
                    "rare_labels_averaged",
                    f"macro averages include {count_of(self._rare, 'label')} with fewer than"
                    f" {_RARE} positives: their intervals are often too narrow.",
                )
            )
        for reason, how_many in Counter(self._without).items():
            notes.append(
                Note("no_interval", f"no interval for {count_of(how_many, 'number')}: {reason}.")
            )
        if self._gaps:
            why = "a resample may miss so few" if self._few else "labels are rare or slices small"
            if self._overflows:
                why = f"they are {TOO_LARGE}"
            most = max(self._gaps)
            share = f"up to {most:.0%}" if most >= 0.01 else "less than 1%"
            notes.append(
                Note(
                    "draws_without_value",
                    f"{count_of(len(self._gaps), 'number')} had no value in some resamples"
                    f" ({share} of them), as {why}: intervals rest on the others.",
                )
            )
        return notes

    def __call__(
        self, view: Any, computed: Sequence[Computed], place: Any = None
    ) -> list[list[Cells]]:
        """Return cells with columns ``lower``, ``upper``, ``se``, ``bias``, ``draws``.

        Args:
            computed: metrics, their settings and cells.
        """
        n_own = len(computed)
        shares = self._shares(view, computed)
        others = {at: one for at, one in shares.items() if one is not computed[at]}
        computed = [*computed, *others.values()]
        methods = [METHODS[self._given.method or metric.interval] for metric, _, _ in computed]
        drawing, given = self._drawing, self._given
        by_chance = drawing.by_chance(computed, given.draws, given.seed)
        bases = [
            Base(metric, cells, independent=self._independent) for metric, _, cells in computed
        ]
        refused = [
            metric.unfit.get(given.method or metric.interval, metric.unfit.get("", ""))
            for metric, _, _ in computed
        ]
        areas = [self._area_variance(view, one) for one in computed]
        due = [
            not why
            and (method.draws or (metric.trials is not None and not self._independent))
            and not (method.make is logit and _all_have_variance(area, cells))
            for method, (metric, _, cells), area, why in zip(
                methods, computed, areas, refused, strict=True
            )
        ]
        drawn = [
            why or values
            for why, values in zip(
                refused, drawing.values(view, computed, by_chance, due, bases), strict=True
            )
        ]
        left_out = [m.leaves_out and not why for m, why in zip(methods, refused, strict=True)]
        out_of = drawing.values(view, computed, drawing.leaving_out(computed), left_out)
        units = drawing.units(view)
        base_of = {at: bases[at] for at in shares} | dict(zip(others, bases[n_own:], strict=True))
        means = {
            at: self._bounds_of_means(view, computed[at], one, base_of[at])
            for at, one in shares.items()
        }
        every = zip(computed, methods, bases, areas, drawn, out_of, strict=True)
        excess = self._excess(view, computed[:n_own])
        return [
            self._with_intervals(view, units, means.get(i), excess.get(i), *of_metric)
            for i, of_metric in enumerate(islice(every, n_own))
        ]

    def _excess(self, view: Any, computed: Sequence[Computed]) -> dict[int, Array]:
        """How far means of labels are above those of infinite sets, by place of the metric.

        Halves of the datums are higher still: if the excess of n datums falls as n^-rate, half of
        them add (2^rate - 1) times as much. Source: docs/decisions/intervals.md.

        Returns:
            float64 [numbers], NaN if unknown.
        """
        labels: dict[int, Computed] = {}
        for i, (metric, settings, _) in enumerate(computed):
            if metric.excess_of:
                base = registry.get(self._drawing.plan.task, metric.excess_of)
                assert base.compute is not None
                labels[i] = base, settings, base.compute(view, settings)
        if not labels:
            return {}
        pairs = max(LEAST_DRAWS, self._given.draws // _PER_PAIR)
        halves = self._drawing.halves(view, [*labels.values()], pairs, self._given.seed)
        result = {}
        for (i, (_, _, (cells,))), half in zip(labels.items(), halves, strict=True):
            (mean,), where = computed[i][2], places(cells)
            if cells.shape[2:] != mean.shape[2:]:  # labels have thresholds of their own
                continue
            value = column_of(cells, "value").reshape(cells.shape)
            excess = spread(half, where, cells) - value
            out = np.full(mean.shape, np.nan)
            for key in range(mean.shape[1]):
                inside = view.labels.key == key
                defined = ~np.isnan(value[:, inside])
                total = np.where(defined, excess[:, inside], 0.0).sum(axis=1)
                with np.errstate(invalid="ignore"):
                    out[:, key] = total / defined.sum(axis=1)
            result[i] = out.reshape(-1)[places(mean)] / (2**_RATE - 1)
        return result

    def _shares(self, view: Any, computed: Sequence[Computed]) -> dict[int, Computed]:
        """Shares of labels that metrics average, by place of the metric."""
        shares: dict[int, Computed] = {}
        for at, (metric, settings, _) in enumerate(computed):
            name = metric.mean_of(settings) if metric.mean_of is not None else None
            if name is not None and self._given.method is None:
                own = registry.get(self._drawing.plan.task, name)
                assert own.compute is not None
                shares[at] = (
                    computed[at]
                    if own.name == metric.name
                    else (own, settings, own.compute(view, settings))
                )
        return shares

    def _bounds_of_means(self, view: Any, mean: Computed, shares: Computed, base: Base) -> Array:
        """Ends and standard errors of means of shares, float64 [3, numbers]; NaN if unknown."""
        of_label = shares[2][0]
        share = column_of(of_label, "value")
        trials, where = np.full(share.size, np.nan), places(of_label)
        trials[where] = self._trials(base)[: where.size]
        none = np.zeros((0, share.size))
        wide = wilson(Sample(share, self._given.level, (0.0, 1.0), none, none, trials=trials))
        shape = of_label.shape
        share, trials = share.reshape(shape), trials.reshape(shape)
        label_bounds = Interval(*(one.reshape(shape) for one in wide))
        columns = []
        for cells in mean[2]:
            out = np.full((3, *cells.shape), np.nan)
            point = column_of(cells, "value").reshape(cells.shape)
            if "label" not in cells.axes and cells.columns.get("average") in (None, "macro"):
                for key in range(cells.shape[1]):
                    inside = (trials > 0) & (view.labels.key == key)
                    average, bounds = mean_of_shares(label_bounds, share, inside)
                    same = np.abs(average - point[:, key]) < _SAME  # not averages of other labels
                    out[:, :, key] = np.where(same, np.stack(bounds), np.nan)
            columns.append(out.reshape(3, -1)[:, places(cells)])
        return np.concatenate(columns, axis=1)

    def _trials(self, base: Base) -> Array:
        """(Effective) number of trials of shares; NaN for other numbers."""
        if self._independent:
            return np.where(base.share, base.size, np.nan)
        clustered = self._given.cluster is not None and not self._drawing.clusters_of_one
        return base.trials(self._given.level, clustered=clustered)

    @property
    def _independent(self) -> bool:
        """True if each datum counts once, on its own."""
        if self._drawing.tallies.weighted:
            return False
        return self._given.cluster is None or self._drawing.clusters_of_one

    def _area_variance(self, view: Any, computed: Computed) -> Array | None:
        """Variances and sizes of areas, float64 [3, rows]; see ``Sample.variance``."""
        metric, settings, every = computed
        if metric.area_variance is None:
            return None
        clustered = self._given.cluster is not None
        variances = metric.area_variance(view, settings, self._drawing.keys, clustered=clustered)
        flat = variances.reshape(3, -1)  # the same for all averages
        return np.concatenate([flat[:, places(one)] for one in every], axis=1)

    def _with_intervals(
        self,
        view: Any,
        units: Array,
        mean: Array | None,
        excess: Array | None,
        computed: Computed,
        method: Method,
        base: Base,
        area: Array | None,
        drawn: Array | str,
        left_out: Array | str,
    ) -> list[Cells]:
        metric, _, every = computed
        variance = np.full((3, base.size.size), np.nan) if area is None else area
        out, at = [], 0
        self._overflows |= base.overflows
        trials = self._trials(base)
        means = np.full((3, base.size.size), np.nan) if mean is None else mean
        rests = base.units()
        if len(every) > 1 and any(one.columns.get("average") == "macro" for one in every):
            few = [
                (column_of(one, "support") < _RARE) & (column_of(one, "support") > 0)
                for one in every
                if one.axes[:2] == ("group", "label")
            ]
            counts = [one.reshape(view.n_groups, -1).sum(axis=1).max(initial=0) for one in few]
            self._rare = max([self._rare, *map(int, counts)])
        for cells in every:
            where = places(cells)
            some = slice(at, at + where.size)
            at += where.size
            point = column_of(cells, "value")[where]
            failed = drawn if isinstance(drawn, str) else left_out
            why = cells.unfit or (failed if isinstance(failed, str) else "")
            none = np.zeros((0, point.size))
            sample = Sample(
                point=point,
                level=self._given.level,
                range=metric.range,
                drawn=none if isinstance(drawn, str) or cells.unfit else drawn[:, some],
                left_out=none if isinstance(left_out, str) or cells.unfit else left_out[:, some],
                trials=trials[some],
                variance=variance[:, some],
                units=of_rows(units, cells),
                as_share=metric.as_share,
                mean=means[:, some],
            )
            name = self._given.method or metric.interval
            filled = self._filled(cells, where, sample, name, why, rests[some])
            if excess is not None and sample.drawn.shape[0]:
                filled = _corrected(filled, where, sample, excess)
            out.append(filled)
        return out

    def _filled(
        self, cells: Cells, where: Array, sample: Sample, name: str, why: str, rests: Array
    ) -> Cells:
        """Add the interval columns, and a reason for each missing interval.

        ``rests`` is the effective number of positives or datums, float64 [rows], NaN if unknown.
        """
        assert sample.units is not None
        drawn, method = sample.drawn, METHODS[name]
        many = (~np.isnan(drawn)).sum(axis=0).astype(np.float64)
        nothing = np.full(sample.point.size, np.nan)
        bounds = method.make(sample) if not why else Interval(nothing, nothing, nothing)
        size = np.maximum(floor_of(sample.range), np.abs(sample.point))
        flat = bounds.upper - bounds.lower <= WIDTHLESS * size
        exact = np.zeros(sample.point.size, bool)
        for closed in CLOSED:
            chosen = name in closed.methods or (closed.default and self._given.method is None)
            used = closed.applies(sample) & (flat | chosen)
            if used.any():
                made = closed.make(sample)
                if not self._independent and drawn.shape[0] and closed.default:
                    made = made._replace(se=standard_errors(drawn))  # not adjusted for clusters
                pairs = zip(made, bounds, strict=True)
                bounds = Interval(*(np.where(used, one, other) for one, other in pairs))
                exact |= used
        share = exact & (sample.trials > 0) & (sample.as_share is None)
        bias = means(drawn) - sample.point if drawn.shape[0] else nothing
        reasons = np.full(sample.point.size, "", object)
        bad = np.isnan(sample.point)
        if why:
            reasons[~bad & ~exact] = why
        elif drawn.shape[0]:
            few = (many < max(LEAST_DRAWS, drawn.shape[0] // 10)) & ~bad & ~exact
            for i in np.flatnonzero(few):
                reasons[i] = f"only {many[i]:.0f} of {drawn.shape[0]:,} resamples have a value"
            bad = bad | few
        single = sample.units < 1 + 1e-9
        constant = single & ~np.isnan(sample.point) & (exact | (not why))
        reasons[constant] = does_not_vary(self._given.cluster)
        bad = bad | constant
        flat &= ~exact & ~bad
        reasons[flat] = NOT_MOVED
        bad = bad | flat
        lost = np.isnan(bounds.lower) & ~bad
        reasons[lost & (reasons == "")] = method.absent or "these resamples do not give it"
        bad = bad | lost
        if drawn.shape[0] and not why:
            some = ~bad & ~exact & (many < drawn.shape[0])
            self._gaps += (1 - many[some] / drawn.shape[0]).tolist()
        rests = np.fmin(sample.units, rests)
        few = ~bad & ~exact & (rests < FEW_CLUSTERS - 0.5)
        self._few += np.maximum(np.rint(rests[few]), 1).astype(int).tolist()
        self._without += [reason for reason in reasons.tolist() if reason]
        columns = {
            "lower": np.where(bad, np.nan, bounds.lower),
            "upper": np.where(bad, np.nan, bounds.upper),
            "se": np.where(bad, np.nan, bounds.se),
            "bias": np.where(bad, np.nan, bias),
            "draws": many if drawn.shape[0] else nothing,
            TRIALS: np.where(share & ~bad, sample.trials, np.nan),
        }
        full = {name: spread(values, where, cells) for name, values in columns.items()}
        return msgspec.structs.replace(
            cells, columns={**cells.columns, **full}, **_reasons(cells, where, reasons)
        )


def _corrected(cells: Cells, where: Array, sample: Sample, excess: Array) -> Cells:
    """Add the numbers without their excess, and intervals around these.

    Ends are recentred percentiles, moved away in proportion to their distance from 1, since an mAP
    of 1 has no excess. The uncertainty of the rate is added to their variance, and Student's t by
    the number of units replaces the normal quantile. Source: docs/decisions/intervals.md.
    """
    number = np.clip(sample.point - excess, *sample.range)
    lower, upper, se = recentred(msgspec.structs.replace(sample, range=(-np.inf, np.inf)))
    t = few_units_t(sample.level, sample.units, number.size, below=_LEFT_OUT)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = (sample.range[1] - number) / (sample.range[1] - sample.point)
        wider = np.hypot(np.fmax(scale, 1.0), _UNCERTAIN * excess / se)
        wider *= np.maximum(t / sample.z, 1.0)
        bounds = [number + wider * (end - sample.point) for end in (lower, upper)]
    bad = np.isnan(column_of(cells, "lower")[where])
    columns = {
        name: spread(np.where(bad, np.nan, np.clip(one, *sample.range)), where, cells)
        for name, one in zip(
            ("corrected", "corrected_lower", "corrected_upper"), (number, *bounds), strict=True
        )
    }
    return msgspec.structs.replace(cells, columns={**cells.columns, **columns})


def _reasons(cells: Cells, where: Array, reasons: Array) -> dict[str, Any]:
    """Return reasons: of undefined values, and of missing intervals for defined ones."""
    if not (reasons != "").any():
        return {}
    existing = cells.reason
    words = np.array(
        np.broadcast_to(np.asarray("" if existing is None else existing, object), cells.shape)
    ).reshape(-1)
    if not cells.always:
        words[~np.isnan(column_of(cells, "value"))] = ""
    messages = [f"no interval: {reason}" if reason else "" for reason in reasons]
    words[where] = [old or new for old, new in zip(words[where].tolist(), messages, strict=True)]
    return {"reason": words.reshape(cells.shape), "always": True}


# Curves of a run in every resample, and intervals of numbers read from them.


def notes_on(tallies: Any, *, cut: bool) -> list[str]:
    """Return the notes on all numbers read from curves.

    Args:
        cut: see :class:`..metrics.thresholds.Curve`.
    """
    notes = []
    if cut:
        notes.append(
            f"the run was scored with {option('thresholds')}: no lower threshold was examined."
        )
    return notes + few_clusters(tallies.datums.keys)


def few_clusters(keys: Array | None) -> list[str]:
    """Return a note on intervals if there are few clusters."""
    clusters = FEW_CLUSTERS if keys is None else np.unique(keys).size
    if clusters >= FEW_CLUSTERS:
        return []
    datums = "1 datum or cluster" if clusters == 1 else f"{clusters} datums or clusters"
    return [f"intervals rest on {datums}: they are often too narrow."]


_BLOCK = 16  # resamples whose weights are computed together


def curves_of(plan: Plan, view: Any) -> tuple[Curve, Curve]:
    """The curves of a view: of every label, and of all labels of a key as one."""
    of = plan.does.curve
    assert of is not None
    return of(view, plan.settings, pooled=False), of(view, plan.settings, pooled=True)


def in_every_draw(
    plan: Plan,
    tallies: Any,
    view: Any,
    threads: Threads,
    interval_options: Intervals,
    see: Callable[[int, tuple[Curve, Curve]], None],
) -> None:
    """Call ``see`` with the curves of every resample.

    Args:
        tallies: the task's, datums with keys.
        view: the view of all datums.
        threads: ``see`` is called concurrently.
        interval_options: draws and seed.
        see: receives the index of a resample, and its curves.
    """
    one_draw, of_files, keys = plan.does.one_draw, plan.does.drawn_curves, tallies.datums.keys
    assert one_draw is not None

    def block(first: int) -> None:
        draws = Draws(
            interval_options.seed, first, min(first + _BLOCK, interval_options.draws), keys
        )
        if keys is None:
            assert of_files is not None
            for d, curves in enumerate(of_files(view, plan.settings, draws), first):
                see(d, curves)
            return
        for d in range(first, draws.last):
            times = draws.weights[:, d - first].astype(np.int64)
            see(d, curves_of(plan, one_draw(view, times)))

    firsts = range(0, interval_options.draws, _BLOCK)
    if keys is None:  # one after the other, since each holds blocks of scores
        for first in firsts:
            block(first)
    else:
        threads.each([partial(block, first) for first in firsts])


def interval(
    drawn: Array,
    point: Array,
    interval_options: Intervals,
    units: float,
    method: str = "percentile",
    range: tuple[float, float] = (-np.inf, np.inf),
) -> Array:
    """Return the bounds of the interval, float64 [2, s].

    NaN if the number is undefined or too few resamples define it, as for every other number.
    ``units`` is the effective number of datums or clusters; see :meth:`Drawing.units`.
    """
    many = (~np.isnan(drawn)).sum(axis=0)
    bounds = METHODS[method].make(
        Sample(
            point=point,
            level=interval_options.level,
            range=range,
            drawn=drawn,
            left_out=np.zeros((0, point.size)),
            units=np.full(point.size, units),
        )
    )
    limits = np.stack([bounds.lower, bounds.upper])
    limits[:, np.isnan(point) | (many < max(LEAST_DRAWS, interval_options.draws // 10))] = np.nan
    return limits
