"""Numbers of a view in every resample."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import msgspec
import numpy as np

from ..executors import Threads
from ..metrics.registry import Metric
from ..plan.planner import Plan
from ..plan.summary import Computed
from ..progress import counting
from ..schemas.arrays import Array
from ..schemas.tuning import tuning
from ..tally.cells import Cells
from ..tally.draws import Draws, LeavingOut, OneByOne, Refusing
from ..tally.runs import reserve

_LEFT_OUT = 200  # clusters up to which each is left out alone; of more, as many parts of them


class Drawing:
    """Computes the numbers of a run in resamples of its datums, in blocks, with threads."""

    def __init__(self, plan: Plan, tallies: Any, threads: Threads) -> None:
        self.plan = plan
        self.tallies = tallies
        self._threads = threads

    @property
    def keys(self) -> Array | None:
        """Key of every datum, uint64 [n]; None if they are on disk."""
        found: Array | None = self.tallies.datums.keys
        return found

    @cached_property
    def clusters(self) -> Array | None:
        """Keys of the clusters (or datums) to resample, ascending; None if more than 200."""
        found = np.zeros(0, np.uint64)
        for keys in self.tallies.datums.key_blocks():
            found = np.union1d(found, keys[: _LEFT_OUT + 1])
            if found.size <= _LEFT_OUT:
                found = np.union1d(found, keys)
            if found.size > _LEFT_OUT:
                return None
        return found

    def alone(self, view: Any) -> Array:
        """Find the groups of a view with one cluster (or datum), bool [n_groups]."""
        if view.group is None:
            return np.full(view.n_groups, self.clusters is not None and self.clusters.size < 2)
        low = np.full(view.n_groups, np.iinfo(np.uint64).max, np.uint64)
        high = np.zeros(view.n_groups, np.uint64)
        for keys, group in self.tallies.datums.grouped_keys(view.group):
            some = group >= 0
            np.minimum.at(low, group[some], keys[some])
            np.maximum.at(high, group[some], keys[some])
        return np.asarray(low == high)

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
    ) -> list[Array | str]:
        """Compute the values of every metric in every resample.

        Args:
            computed: metrics, their settings and cells.
            blocks: blocks of resamples.
            due: flags of the metrics to compute; default all.

        Returns:
            per metric float64 [draws, numbers], the cells that become rows; [0, numbers] if not
            due; or
            the reason why there are no values.
        """
        due = [True] * len(computed) if due is None else due
        sizes = [sum(places(one).size for one in cells) for _, _, cells in computed]
        which = [i for i, one in enumerate(due) if one]
        out: list[Array | str] = [np.zeros((0, size)) for size in sizes]
        if not which:
            return out
        every = list(blocks)
        n = sum(len(draws) for draws in every)
        for i in which:
            out[i] = _room(n, sizes[i], self.plan.options.scratch)

        drawn = self.plan.does.drawn

        def of_block(block_of: Draws, at: int) -> None:
            draws = msgspec.structs.replace(block_of)  # whose weights are gone when it is done
            block = Refusing() if drawn is None else drawn(view, draws)
            for i in which:
                held = out[i]
                if isinstance(held, str):
                    continue
                metric, settings, cells = computed[i]
                try:
                    found = self._compute(metric, settings, view, block, draws)
                    held[at : at + len(draws)] = _flat(found, cells, len(draws))
                except _Unlike as error:
                    out[i] = str(error)

        begins = np.cumsum([0, *(len(draws) for draws in every[:-1])]).tolist()
        calls = [partial(of_block, draws, at) for draws, at in zip(every, begins, strict=True)]
        with counting("drawing", n, "draws") as count:

            def counted(call: Callable[[], None], draws: Draws) -> None:
                call()
                count(len(draws))

            pairs = zip(calls, every, strict=True)
            self._threads.each([partial(counted, *pair) for pair in pairs])
        return out

    def _compute(
        self, metric: Metric, settings: Any, view: Any, block: Any, draws: Draws
    ) -> list[list[Cells]]:
        """Compute the cells of a block, vectorised if possible, otherwise per resample."""
        assert metric.compute is not None
        try:
            return [metric.compute(block, settings)]
        except OneByOne:
            pass
        if draws.keys is None:
            raise _Unlike("not computed for draws of a run in bounded memory")
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


class _Unlike(Exception):
    """Resamples are not comparable with the numbers; the message gives the reason."""


def does_not_vary(cluster: str | None) -> str:
    """Why numbers of one datum, or of one cluster, have no interval."""
    what = "datum" if cluster is None else f"cluster of {cluster!r}"
    return f"one {what} alone does not vary"


def places(cells: Cells) -> Array:
    """Find the cells that make rows, int64 [rows], places in the flat array."""
    if cells.keep is None:
        return np.arange(math.prod(cells.shape))
    keep = cells.keep.reshape(*[1] * (len(cells.shape) - cells.keep.ndim), *cells.keep.shape)
    return np.flatnonzero(np.broadcast_to(keep, cells.shape))


def column_of(cells: Cells, name: str) -> Array:
    """A column of all cells, flat."""
    values: Any = cells.columns.get(name)
    whole = np.asarray(np.nan if values is None else values, np.float64)
    return np.broadcast_to(whole, cells.shape).reshape(-1)


def _flat(found: list[list[Cells]], cells: Sequence[Cells], n: int) -> Array:
    """Return resampled values at the cells of the numbers, float64 [draws, numbers].

    Args:
        found: cells of all resamples at once, or one list per resample.
        cells: cells of the numbers.
        n: number of resamples.
    """
    if any(len(some) != len(cells) for some in found):
        raise _Unlike("draws make other rows")
    parts = []
    for i, one in enumerate(cells):
        drawn = [some[i] for some in found]
        groups = one.shape[0]
        each = n // len(found)
        if any(d.shape != (each * groups, *one.shape[1:]) for d in drawn):
            raise _Unlike("draws make other rows")
        values = np.concatenate([column_of(d, "value").reshape(each, -1) for d in drawn])
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
        held: Array = np.memmap(file, np.float64, "r+", shape=shape)
    held[:] = np.nan
    return held


def of_rows(groups: Array, cells: Cells) -> Array:
    """Repeat per-group values for each of their numbers, [rows]."""
    each = math.prod(cells.shape) // max(groups.size, 1)
    of: Array = groups[places(cells) // max(each, 1)]
    return of


def spread(values: Array, where: Array, cells: Cells) -> Array:
    """Numbers at the places of cells, NaN elsewhere, in the cells' shape."""
    out = np.full(math.prod(cells.shape), np.nan)
    out[where] = values
    return out.reshape(cells.shape)
