"""Bootstrap resamples as weights on datums, many resamples at a time.

A view of a block of resamples is a view whose groups are resamples: its arrays have a leading axis
of ``draws * groups``, all groups of one resample together. Metrics thereby compute all resamples at
once without special code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, TypeVar

import msgspec
import numpy as np

from ..kernels.datums import draw_weights, drawn_counts, drawn_sums, swap_bits
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
        vectors: a :class:`~evalengine.tallies.vectors.Vectors`, if sums are resampled by distinct
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
    def turns(self) -> Any:
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
    laid = np.moveaxis(sums, -1, 0)
    return np.ascontiguousarray(laid).reshape(
        n_draws * n_groups, sums.shape[0] // n_groups, *sums.shape[1:-1]
    )
