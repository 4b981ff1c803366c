"""Matching by equality of components, without normalisation."""

from __future__ import annotations

import numpy as np

from ....schemas.arrays import Array
from ...workers import Workers
from .components import Components
from .wanted import Wanted


def match_exactly(found: Components, wanted: Wanted, workers: Workers, out: Array) -> None:
    """Set ``out`` if both texts are equal, character by character."""

    def match(first: int, last: int) -> None:
        retrieved, gold = found.pairs(first, last)
        np.equal(retrieved, gold, out=out[found.pair_start[first] : found.pair_start[last]])

    workers.over(found.pair_start, match)
