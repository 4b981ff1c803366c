"""Bootstrap resamples as weights on datums, or on distinct vectors of counts.

A view of a block of resamples is a view whose groups are resamples: its arrays have a leading axis
of ``draws * groups``, all groups of one resample together. Metrics thereby compute all resamples at
once without special code.

Datums (or clusters) that add the same to every sum are interchangeable: if n of them do, the number
of times that a resample contains any of them is Poisson(n). So a resample needs one number per
distinct vector, not one per datum. This is exact for clusters, several labels per datum and
weights, since a vector is all that a datum or cluster adds. Clusters of different vectors keep a
weight each, and their rows are summed before they are resampled.

The metrics are computed three times over: once to hash what each datum adds, once to keep the rows
of one datum per distinct vector, and then in blocks of resamples, from the rows kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import count, pairwise
from typing import Any, TypeVar

import msgspec
import numpy as np

from ..kernels.datums import (
    class_counts,
    draw_weights,
    drawn_classes,
    drawn_counts,
    drawn_sums,
    hash_codes,
    hash_integers,
    hash_rows,
    poisson_counts,
    step_of_grid,
    swap_bits,
    swap_counts,
)
from ..schemas.arrays import Array
from .datums import Lazy

_T = TypeVar("_T")
Summands = Iterable[tuple["Array | None", "Array | None", Array, "Array | None"]]
"""Rows that are summed, in blocks: keys of the block's datums, uint64 (None in memory, where
:class:`Draws` has them); datum of each row, int32 (None: row i is datum i); cell of each row, int,
-1 to skip it; and values [n, ...] on a grid (None for 1 each)."""


class OneByOne(Exception):
    """Data or options prevent a number from being computed for many resamples at once.

    Metrics for which that is never possible are declared with ``chooses``.
    """


def finite_step(largest: Array | float, n: Array | int) -> Array:
    """Return the step of a grid on which n values up to the largest add up exactly.

    Raises:
        OneByOne: some values are infinite.
    """
    if not np.isfinite(largest).all():
        raise OneByOne
    return step_of_grid(largest, n)


class Uncounted(Exception):
    """Numbers need the weight of each datum, so that distinct vectors do not suffice."""


class LeavingOut(msgspec.Struct, frozen=True):
    """Jackknife groups of clusters, each omitted once.

    Attributes:
        n: number of groups.
        distinct: uint64 [n], ascending keys of the clusters, one per group; None if clusters
            outnumber groups: a group is then a range of keys.
    """

    n: int
    distinct: Array | None

    def places(self, keys: Array) -> Array:
        """The part of each key, int64."""
        if self.distinct is not None:
            return np.asarray(np.searchsorted(self.distinct, keys))
        high = keys >> np.uint64(32)  # keys are hashes: ranges of them are about equal
        return (high * np.uint64(self.n) >> np.uint64(32)).astype(np.int64)


class Draws(msgspec.Struct, frozen=True, dict=True):
    """A block of resamples.

    Attributes:
        seed: shared by all blocks.
        first: index of the first resample, a multiple of 4.
        last: one past the last.
        keys: uint64 [n_datums], hash of each datum or of its cluster; None if stored in files.
        leaving_out: jackknife groups: resample j omits the j-th. None for bootstrap.
        side: uint8 [n_datums], run (0 or 1) of each datum, for randomisation: each resample takes a
            datum from one of two runs, 1 meaning its original run.
        vectors: a :class:`Vectors`, if sums are resampled by distinct
            vectors instead of by datum.
    """

    seed: int
    first: int
    last: int
    keys: Array | None
    leaving_out: LeavingOut | None = None
    side: Array | None = None
    vectors: Any = None

    def __len__(self) -> int:
        return self.last - self.first

    @Lazy
    def weights(self) -> Array:
        """Multiplicity of each datum in each resample, uint8 [n_datums, resamples]."""
        if self.vectors is not None:
            raise Uncounted
        assert self.keys is not None
        if self.side is not None:
            return swap_bits(self.keys, self.seed, self.first, self.last) ^ self.side[:, None]
        return self.of(self.keys)

    def of(self, keys: Array) -> Array:
        """Return the weights of some datums, uint8 [n, resamples].

        Args:
            keys: uint64 [n].
        """
        if self.vectors is not None:
            raise Uncounted
        if self.leaving_out is not None:
            place = self.leaving_out.places(keys)
            return np.asarray(place[:, None] != np.arange(self.first, self.last)).view(np.uint8)
        return draw_weights(keys, self.seed, self.first, self.last)

    def of_block(self, keys: Array | None) -> Array:
        """Return the weights of a block's datums; ``keys`` as in :data:`Summands`."""
        return self.weights if keys is None else self.of(keys)

    @Lazy
    def calls(self) -> Any:
        """Numbers the calls of :meth:`sums` and :meth:`once`, which are the same in all blocks."""
        return count()

    def once(self, compute: Callable[[], _T]) -> _T:
        """Return what does not depend on weights, computed only once if vectors are resampled."""
        return compute() if self.vectors is None else self.vectors.once(self, compute)

    def sums(
        self, n_cells: int, summands: Callable[[], Summands], *, counts: bool = False
    ) -> Array:
        """Sum values by cell under the weights of each resample.

        Args:
            summands: yields the rows. Undefined values are skipped.
            counts: count the defined values instead.

        Returns:
            float64 [cells, ..., resamples].
        """
        if self.vectors is not None:
            result: Array = self.vectors.sums(self, n_cells, summands, counts=counts)
            return result
        out, trailing = np.zeros((n_cells, 1, len(self))), ()
        for at, (keys, datum, cell, values) in enumerate(summands()):
            flat = None
            if values is not None:
                trailing = values.shape[1:]
                flat = values.reshape(values.shape[0], math.prod(trailing))
                if not at:
                    out = np.zeros((n_cells, flat.shape[1], len(self)))
            if counts or flat is None:
                drawn_counts(datum, cell, flat, self.of_block(keys), out)
            else:
                drawn_sums(datum, cell, flat, self.of_block(keys), out)
        return out.reshape(n_cells, *trailing, len(self))


def effective_number(weights: Array) -> float:
    """Return the number of equal weights whose mean varies as much: (sum w)^2 / sum w^2.

    Source: L. Kish, Survey Sampling (1965).
    """
    weights = weights.astype(np.float64)
    return float(weights.sum() ** 2 / (weights**2).sum())


def by_draw(sums: Array, n_groups: int) -> Array:
    """Reshape [groups * cells, ..., resamples] to [resamples * groups, cells, ...], float64."""
    n_draws = sums.shape[-1]
    moved = np.moveaxis(sums, -1, 0)
    return np.ascontiguousarray(moved).reshape(
        n_draws * n_groups, sums.shape[0] // n_groups, *sums.shape[1:-1]
    )


# Distinct vectors of counts.

LEAST = 10_000
"""Datums or clusters from which vectors are used. Part of the definition of a resample."""
SHARE = 20
"""Datums or clusters per distinct vector from which vectors are used; likewise."""
_HASH, _KEEP, _DRAW = range(3)
_PIECE = 1 << 20  # datums at a time
_DENSE = 1 << 20  # pairs of vector and cell up to which they are counted in a table
_CLUSTER = 4  # datums per cluster from which rows are summed by cluster


class _Call(msgspec.Struct):
    """A sum: its cells and columns, the sums of the whole set, and the rows of distinct vectors."""

    n_cells: int
    more: tuple[int, ...]
    total: Array
    rows: list[tuple[Array, Array, Array]]


class Vectors:
    """Distinct vectors of a view, and their rows.

    Args:
        keys: uint64 [n_datums], resample keys; None if they are in files.
        clustered: several datums may have the same key.
        side: run of each datum for swaps, as in :class:`~evalengine.tallies.draws.Draws`.
    """

    def __init__(self, keys: Array | None, *, clustered: bool, side: Array | None = None) -> None:
        self._keys = keys
        self._clustered = clustered or side is not None
        self._side = side
        self._stage = _HASH
        self._calls: list[_Call] = []
        self._once: dict[int, Any] = {}
        self._hashes: list[Array] = []  # per block of datums
        self._block_keys: list[Array] = []
        self._class_keys: Array = np.zeros(0, np.uint64)
        self._units: Array | None = None  # datums (or clusters) of each vector
        self._places: list[Array] = []  # class of each datum whose rows are kept, -1 for others

    def draws(self) -> Draws:
        """Return the resample in which each datum occurs once, for the first two stages."""
        return Draws(0, 0, 1, self._keys, vectors=self)

    def once(self, draws: Draws, compute: Callable[[], Any]) -> Any:
        """See :meth:`.Draws.once`."""
        at = next(draws.calls)
        if self._stage == _HASH:
            self._once[at] = compute()
        if at not in self._once:
            raise Uncounted
        return self._once[at]

    def sums(
        self, draws: Draws, n_cells: int, summands: Callable[[], Summands], *, counts: bool
    ) -> Array:
        """See :meth:`.Draws.sums`.

        Raises:
            Uncounted: the sum was not among those of the first stage.
        """
        turn = next(draws.calls)
        if self._stage == _HASH:
            return self._hash(turn, n_cells, summands, counts=counts)
        call = self._once.get(turn)
        if not isinstance(call, _Call) or call.n_cells != n_cells:
            raise Uncounted
        shape = n_cells, *call.more
        if self._stage == _KEEP:
            self._keep(call, summands, counts=counts)
            return call.total.reshape(*shape, 1)
        out = np.zeros((call.total.size, len(draws)))
        drawn_classes(*call.rows[0], self._multiplicities(draws), out)
        return out.reshape(*shape, len(draws))

    def _hash(
        self, turn: int, n_cells: int, summands: Callable[[], Summands], *, counts: bool
    ) -> Array:
        total, trailing = np.zeros((n_cells, 1)), ()
        for block, (keys, datum, cell, values) in enumerate(summands()):
            if block == len(self._hashes):
                block_keys = self._keys if keys is None else keys
                assert block_keys is not None
                self._block_keys.append(block_keys)
                self._hashes.append(np.zeros(block_keys.size, np.uint64))
            flat = None
            if values is not None:
                trailing = values.shape[1:]
                flat = values.reshape(values.shape[0], math.prod(trailing))
                if not block:
                    total = np.zeros((n_cells, flat.shape[1]))
            hash_rows(datum, cell, flat, counts, turn, self._hashes[block], total)
        self._once[turn] = _Call(n_cells, trailing, total, [])
        return total.reshape(n_cells, *trailing, 1)

    def _keep(self, call: _Call, summands: Callable[[], Summands], *, counts: bool) -> None:
        width, n = call.total.shape[1], self._n_places
        for place, (_, datum, cell, values) in zip(self._places, summands(), strict=True):
            of = place if datum is None else place[datum]
            if self._side is not None:  # vectors of swaps have one place per side
                side = self._side if datum is None else self._side[datum]
                of = np.where(of < 0, -1, 2 * of + side)
            rows = np.flatnonzero((of >= 0) & (cell >= 0))
            value = np.ones((rows.size, 1)) if values is None else values[rows].reshape(-1, width)
            if counts:
                value = np.where(np.isnan(value), 0.0, 1.0)
            some, column = np.nonzero(np.nan_to_num(value))
            rows, value = rows[some], value[some, column]
            call.rows.append(_summed(of[rows], cell[rows] * np.int64(width) + column, value, n))

    def seal(self) -> None:
        """End the second stage: rows of one vector and cell become one."""
        n = self._n_places
        for call in self._once.values():
            if isinstance(call, _Call) and len(call.rows) > 1:
                of, cell, value = (np.concatenate(one) for one in zip(*call.rows, strict=True))
                call.rows = [_summed(of, cell, value, n)]
        self._places = []
        self._stage = _DRAW

    @property
    def _n_places(self) -> int:
        return self._class_keys.size * (1 if self._side is None else 2)

    def _multiplicities(self, draws: Draws) -> Array:
        """Occurrences of each vector (or cluster) in each resample, float64 [n, resamples]."""
        if "multiplicities" not in draws.__dict__:
            keys, of = self._class_keys, (draws.seed, draws.first, draws.last)
            units = self._units
            if units is None:
                counts = draw_weights(keys, *of).astype(np.float64)
            elif self._side is None:
                counts = poisson_counts(keys, units, *of)
            else:
                swaps = swap_counts(keys, units, *of)
                counts = np.stack([swaps, units[:, None] - swaps], axis=1)
            draws.__dict__["multiplicities"] = counts.reshape(-1, len(draws))
        result: Array = draws.__dict__["multiplicities"]
        return result


def group_vectors(runs: Sequence[Vectors]) -> bool:
    """End the first stage of runs whose datums of one key are resampled together.

    Their vectors are what a datum or cluster adds to the sums of all runs.

    Returns:
        False if distinct vectors are too many to be worth it.
    """
    of_blocks = [one for run in runs for one in run._hashes]
    hashes = np.concatenate([np.zeros(0, np.uint64), *of_blocks])
    keys = np.concatenate([np.zeros(0, np.uint64), *(k for run in runs for k in run._block_keys)])
    clustered = len(runs) > 1 or runs[0]._clustered
    run_codes = [np.full(one.size, i) for i, run in enumerate(runs) for one in run._hashes]
    which = runs[0]._side if runs[0]._side is not None else np.concatenate(run_codes or [keys])
    unit = None
    if clustered:  # a cluster adds what its datums add, to each run
        moved = np.where(hashes > 0, hash_integers(hashes + which.astype(np.uint64)), hashes)
        unit, first = hash_codes(keys, keys)
        keys, hashes = keys[first], np.zeros(first.size, np.uint64)
        np.add.at(hashes, unit, moved)
    table = _classes(hashes, keys)
    units = None
    if table is not None:
        keys, units = table[2], table[1].astype(np.int64)
        place = np.full(hashes.size, -1, np.int32)
        place[table[3].astype(np.int64)] = np.arange(table.shape[1])
        place = place if unit is None else place[unit]
    elif unit is not None and runs[0]._side is None and _CLUSTER * keys.size <= unit.size:
        place = unit
    else:
        return False
    intervals = iter(pairwise(np.cumsum([0, *(one.size for one in of_blocks)])))
    for run in runs:
        run._class_keys, run._units = keys, units
        run._places = [place[slice(*next(intervals))] for _ in run._hashes]
        run._hashes = run._block_keys = []
        run._stage = _KEEP
    return True


def _classes(hashes: Array, keys: Array) -> Array | None:
    """Group units by their vectors; None if they are few, or too many vectors differ.

    Args:
        hashes: uint64 [n]; 0 adds nothing.
        keys: uint64 [n].

    Returns:
        uint64 [4, vectors]: hash, number of units, smallest key, and the unit that has it.
    """
    n = np.count_nonzero(hashes)
    if n < LEAST:
        return None
    table: Array = np.zeros((4, 0), np.uint64)
    for first in range(0, hashes.size, _PIECE):
        piece = hashes[first : first + _PIECE]
        code, rows = hash_codes(piece, piece)
        piece_counts = np.empty((3, rows.size), np.uint64)
        class_counts(code, keys[first : first + _PIECE], first, piece_counts)
        merged = np.concatenate([table, np.concatenate([piece[rows][None], piece_counts])], axis=1)
        merged = merged[:, np.lexsort((merged[2], merged[0]))]
        begin = np.flatnonzero(np.r_[True, merged[0, 1:] != merged[0, :-1]])
        table = merged[:, begin]
        table[1] = np.add.reduceat(merged[1], begin)
        if np.count_nonzero(table[0]) * SHARE > n:
            return None
    return table[:, table[0] > 0]


def _summed(of: Array, cell: Array, value: Array, n: int) -> tuple[Array, Array, Array]:
    """Sum values by cell and one of n vectors: vector, cell and sum of each pair that occurs."""
    pair: Array = cell * n + of
    pairs, row = np.arange(int(pair.max(initial=-1)) + 1), pair
    if pairs.size > max(_DENSE, 4 * pair.size):
        pairs, row = np.unique(pair, return_inverse=True)
    total = np.bincount(row, value, minlength=pairs.size)
    some = np.flatnonzero(total)
    return pairs[some] % n, pairs[some] // n, total[some]
