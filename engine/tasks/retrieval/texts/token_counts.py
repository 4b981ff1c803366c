"""Estimated number of tokens of retrieved texts."""

from __future__ import annotations

import numpy as np
import polars as pl

from ....schemas.arrays import Array

CHARACTERS_PER_TOKEN = 4.0


def token_counts(texts: pl.Series, start: Array) -> Array:
    """Estimate the tokens of each query's joined texts: characters / 4, rounded down.

    The estimate of continuous-eval's ``TokenCount(encoder_name="approx")``; characters are
    Unicode code points.

    Args:
        texts: String [n], without nulls.
        start: int64 [q + 1], offsets of the texts of each query.

    Returns:
        float64 [q], integers, 0 for a query without texts.
    """
    lengths = texts.str.len_chars().to_numpy().astype(np.int64)
    total = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    joints = np.maximum(np.diff(start) - 1, 0)
    counts: Array = np.floor((np.diff(total[start]) + joints) / CHARACTERS_PER_TOKEN)
    return counts
