"""Candidates and their references, and the tokens that several measures share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import numpy as np
import polars as pl

from ...kernels.words import local_codes
from ...schemas.arrays import Array
from ..encoding import Workers

R = TypeVar("R")
Hashed = tuple[Array, Array, Array]
"""First and second hash of each token, uint64; offsets of the tokens of each text, int64."""


class Pairs(msgspec.Struct, frozen=True):
    """Scored texts, each with one reference or more.

    Attributes:
        candidates: String [n], without nulls.
        references: String [m], without nulls, those of a candidate adjacent.
        start: int64 [n + 1], offsets of the references of each candidate; each has at least one.
        made: cache shared by measures, by name; see :meth:`once`. ``vectors`` are those of the
            tables or of an embedder, ``contexts`` the contexts of each candidate as one text
            (String [n], null for none), if any.
    """

    candidates: pl.Series
    references: pl.Series
    start: Array
    made: dict[Any, Any]

    def __len__(self) -> int:
        return len(self.candidates)

    @property
    def candidate(self) -> Array:
        """The candidate of each reference, int64 [m]."""
        return self.once("candidate", lambda: np.repeat(np.arange(len(self)), np.diff(self.start)))

    def once(self, name: Any, make: Callable[[], R]) -> R:
        """Return a cached value, or compute it on first use."""
        if name not in self.made:
            self.made[name] = make()
        made: R = self.made[name]
        return made


class Tokens(msgspec.Struct, frozen=True):
    """Tokens of all texts, with codes valid within one candidate and its references.

    Attributes:
        candidates: offsets of the tokens of each candidate, int64 [n + 1]; codes, int32.
        references: same for the references.
        n_codes: one more than the highest code.
    """

    candidates: tuple[Array, Array]
    references: tuple[Array, Array]
    n_codes: int


def of_code_points(ours: tuple[Array, Array], theirs: tuple[Array, Array]) -> Tokens:
    """Return characters as tokens; kernels allocate a table up to the highest code point."""
    highest = max(int(codes.max(initial=0)) for _, codes in (ours, theirs))
    return Tokens(ours, theirs, highest + 1)


def localised(pairs: Pairs, candidates: Hashed, references: Hashed, workers: Workers) -> Tokens:
    """Codes of hashed tokens, candidate by candidate."""
    codes = np.empty(candidates[0].size, np.int32), np.empty(references[0].size, np.int32)
    sides = tuple((side[2], side[0], side[1]) for side in (candidates, references))

    def run(first: int, last: int) -> int:
        return local_codes(first, last, pairs.start, sides[0], sides[1], codes)

    most = workers.over(candidates[2], run)
    return Tokens((candidates[2], codes[0]), (references[2], codes[1]), max(most, default=0))


def best_reference(value: Array, start: Array) -> Array:
    """Return the first reference of each candidate with its highest value, int64 [n].

    Args:
        value: float64 [m], without NaN.
        start: int64 [n + 1], offsets of the references of each candidate, at least one each.
    """
    many = np.diff(start)
    if value.size == many.size:
        return np.arange(many.size)
    highest = np.maximum.reduceat(value, start[:-1])
    place = np.where(value == np.repeat(highest, many), np.arange(value.size), value.size)
    best: Array = np.minimum.reduceat(place, start[:-1])
    return best
