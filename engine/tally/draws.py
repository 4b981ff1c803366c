"""Draws of a bootstrap: weights on datums, many draws at a time.

A draw takes every datum a number of times. A view of a block of draws is a view whose groups are
draws: its arrays have a leading axis of ``draws * groups``, all groups of one draw together, so
that metrics compute the numbers of all draws at once and know nothing of it.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from ..kernels.draw_weights import draw_weights, swap_bits

Array = np.ndarray[Any, Any]


class OneByOne(Exception):
    """A view of draws has no way to some number for many draws at once."""


class Refusing:
    """A view of draws of which nothing can be asked for many at once."""

    def __getattr__(self, name: str) -> Any:
        raise OneByOne


class LeavingOut(msgspec.Struct, frozen=True):
    """Parts of the clusters, each of which is left out once.

    Attributes:
        n: how many.
        distinct: uint64 [n], ascending keys of the clusters, of which each is a part; None where
            there are more clusters than parts, which then go by ranges of keys.
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
    """A block of draws.

    Attributes:
        seed: of all draws.
        first: the first, a multiple of 4.
        last: one past the last.
        keys: uint64 [n_datums], hash of each datum or of its cluster; None where files have them.
        leaving_out: where draws are those of a jackknife, and not by chance: draw j has all but the
            j-th part of the clusters.
        side: uint8 [n_datums], which of two runs a datum is of, where draws are those of a
            randomisation: each takes a datum from one run or the other, 1 from its own.
    """

    seed: int
    first: int
    last: int
    keys: Array | None
    leaving_out: LeavingOut | None = None
    side: Array | None = None

    def __len__(self) -> int:
        return self.last - self.first

    @cached_property
    def weights(self) -> Array:
        """How often each datum stands in each draw, uint8 [n_datums, draws]."""
        assert self.keys is not None
        if self.side is not None:
            return swap_bits(self.keys, self.seed, self.first, self.last) ^ self.side[:, None]
        return self.of(self.keys)

    def of(self, keys: Array) -> Array:
        """The weights of some datums, uint8 [n, draws].

        Args:
            keys: uint64 [n].
        """
        if self.leaving_out is not None:
            place = self.leaving_out.places(keys)
            return np.asarray(place[:, None] != np.arange(self.first, self.last)).view(np.uint8)
        return draw_weights(keys, self.seed, self.first, self.last)


def by_draw(sums: Array, n_groups: int) -> Array:
    """Sums of a block, [groups * cells, ..., draws], as a view has them: [draws * groups, cells].

    Args:
        sums: float64 [groups * cells, draws] or [groups * cells, columns, draws].
        n_groups: number of groups.

    Returns:
        float64 [draws * groups, cells] or [draws * groups, cells, columns].
    """
    n_draws = sums.shape[-1]
    laid = np.moveaxis(sums, -1, 0)
    out: Array = np.ascontiguousarray(laid).reshape(
        n_draws * n_groups, sums.shape[0] // n_groups, *sums.shape[1:-1]
    )
    return out
