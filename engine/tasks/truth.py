"""Ground truths of datums as numbers, equal if two runs had the same labels there."""

from __future__ import annotations

import numpy as np
import polars as pl

from ..schemas.arrays import Array
from ..tally.datums import Labels
from .packing import hashes_of


def truth_of_labels(labels: Labels, n: int, datum: Array, label: Array) -> Array:
    """Return the sum of label hashes over the ground truths of each datum.

    Args:
        n: number of datums.
        datum: int [m], datum of each ground truth.
        label: int [m], its label.

    Returns:
        uint64 [n]; sums wrap around.
    """
    named = labels.frame.select(
        pl.concat_str(
            pl.col("label_key"), pl.col("label_value").cast(pl.String), separator="\x1f"
        ).alias("name")
    )
    out = np.zeros(n, np.uint64)
    np.add.at(out, datum, hashes_of(named["name"])[label])
    return out
