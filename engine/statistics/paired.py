"""Two runs over the same datums: resampled differences, randomisation tests, per-datum values."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..ingest.problems import Note
from ..plan import planner, summary
from ..plan.summary import Computed, Tallied
from ..schemas.arrays import Array
from ..schemas.tuning import tuning
from ..tally.cells import Cells
from ..tally.draws import Draws
from .intervals import floor_of
from .resamples import Drawing, column_of, of_rows, places, spread

AT = "draws"
"""Column with the offset of each row's resamples, in a frame of collected numbers."""


Blocks = Callable[[Drawing, Sequence[Computed]], Iterator[Draws]]
"""Function that yields blocks of resamples for the numbers of a view."""


class Numbers(msgspec.Struct, frozen=True):
    """All numbers of a run, with their values per resample.

    Attributes:
        rows: the ``metrics`` frame.
        drawn: float64 [draws, rows], NaN if undefined.
        failed: row -> why it has no resamples.
        alone: bool [rows], numbers of one datum, or of one cluster.
        floor: float64 [rows], minimum scale of rounding errors.
    """

    rows: pl.DataFrame
    drawn: Array
    failed: dict[int, str]
    alone: Array
    floor: Array


class _Collector:
    """Estimator that keeps resampled values instead of intervals."""

    def __init__(
        self, drawing: Drawing, blocks: Callable[[Sequence[Computed]], Iterator[Draws]]
    ) -> None:
        self._drawing = drawing
        self._blocks = blocks
        self._lock = threading.Lock()
        self.kept: list[Array | str] = []
        self.alone: list[Array] = []
        self.n = 0
        self.begins: list[int] = []

    def __call__(self, view: Any, computed: Sequence[Computed]) -> list[list[Cells]]:
        values = self._drawing.values(view, computed, self._blocks(computed))
        alone = self._drawing.alone(view)
        out = []
        for (_, _, every), drawn in zip(computed, values, strict=True):
            of_one = [of_rows(alone, cells) for cells in every]
            size = sum(rows.size for rows in of_one)
            with self._lock:
                at = self.n
                self.n += size
                self.kept.append(drawn)
                self.alone += of_one
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


def numbers(
    run: Tallied,
    blocks: Blocks,
    within: Array | None = None,
) -> Numbers:
    """Compute all numbers of a run, over some datums, in every resample.

    Args:
        blocks: yields blocks of resamples for the numbers of a view.
        within: bool [n_datums], datums that count; None for all.
    """
    drawing = Drawing(run.plan, run.tallies, run.threads)
    collector = _Collector(drawing, lambda computed: blocks(drawing, computed))
    makers, _ = summary.summarise(
        run.plan, run.tallies, threads=run.threads, estimate=collector, within=within
    )
    rows = makers["metrics"]()
    n_draws = max((one.shape[0] for one in collector.kept if not isinstance(one, str)), default=0)
    every = np.full((n_draws, collector.n), np.nan)
    why: dict[int, str] = {}
    ends = [*collector.begins[1:], collector.n]
    for one, first, last in zip(collector.kept, collector.begins, ends, strict=True):
        if isinstance(one, str):
            why |= dict.fromkeys(range(first, last), one)
        else:
            every[:, first:last] = one
    at = rows[AT].to_numpy() if rows.height else np.zeros(0, np.int64)
    failed = {row: why[place] for row, place in enumerate(at.tolist()) if place in why}
    alone = np.concatenate([np.zeros(0, bool), *collector.alone])[at]
    floors = {metric.name: floor_of(metric.range) for metric in run.plan.metrics}
    floor = np.array([floors.get(name, 1.0) for name in rows["metric"].to_list()])
    rows = rows.drop("lower", "upper", "se", "bias", "trials", AT)
    return Numbers(rows, every[:, at], failed, alone, floor)


def joined(first: Tallied, second: Tallied) -> tuple[Tallied, Array, Array]:
    """Concatenate both runs into one that contains every datum twice, once per run.

    A resample that takes each datum from one of the two runs is a randomised run. Both copies are
    adjacent in datum order, since ties of scores are ranked by datum.

    Returns:
        the run; uint8 [datums], 0 for the first run, 1 for the second; int64 [datums], index of
        each
        among the first run's datums followed by the second's.
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
        for i, own in enumerate(np.split(numbers, [len(datums[0])])):
            named = msgspec.structs.replace(datums[i], ids=pl.Series("datum_id", own))
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
        numbers of both runs together, whose rows describe the columns; float64 [draws, rows].
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
        rows of the metrics frame; float64 [draws, rows].
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
    found = []
    for first, second in passes:
        both, side, origin = joined(first, second)
        inside = np.concatenate(within)[origin]
        found.append(swapped(both, side, draws, seed, None if inside.all() else inside))
    rows = pl.concat([one.rows for one, _ in found])
    deep = max(drawn.shape[0] for _, drawn in found)
    swaps = [
        drawn if drawn.shape[0] == deep else np.full((deep, drawn.shape[1]), np.nan)
        for _, drawn in found
    ]
    return rows, np.concatenate(swaps, axis=1)


number_of = partial(column_of, name="value")
"""The numbers of cells, flat."""


def rests_on(cells: Cells) -> Array:
    """Return the support of every cell, flat; 0 if undefined."""
    many = column_of(cells, "scored" if cells.columns.get("scored") is not None else "support")
    return np.where(np.isnan(number_of(cells)), 0.0, np.nan_to_num(many, nan=1.0))


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
        other
        axes, NaN if undefined; None if too large for memory.
    """
    plan, tallies = run.plan, run.tallies
    cells_each = max(1, plan.does.cells_per_group(tallies, plan.settings))
    each = max(1, tuning().group_cells // cells_each)
    kept: dict[tuple[int, int], tuple[Any, Cells, list[Array]]] = {}
    for first in range(0, n, each):
        last = min(first + each, n)
        inside = (codes >= first) & (codes < last)
        group = np.where(inside, codes - first, -1).astype(np.int32)
        view = plan.does.view(tallies, plan.settings, group, last - first, threads=run.threads)
        for m, metric in enumerate(plan.metrics):
            if metric.compute is None or metric.frame != "metrics":
                continue
            for c, cells in enumerate(metric.compute(view, plan.settings_of(metric))):
                value = of(cells).reshape(last - first, -1)
                _, _, held = kept.setdefault((m, c), (metric, cells, []))
                if 8 * n * value.shape[1] <= tuning().drawn_bytes:
                    held.append(value)
    for metric, cells, values in kept.values():
        if not values:
            yield metric, cells, None
            continue
        widths = {value.shape[1] for value in values}
        if len(widths) == 1:
            yield metric, cells, np.concatenate(values).reshape(n, *cells.shape[1:])
