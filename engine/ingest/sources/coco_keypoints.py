"""COCO's ``keypoints``: lists of numbers of many rows as one column."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl


def lists(rows: Sequence[list[float] | None]) -> pl.Series:
    """Lists of numbers as one column, List(Float64); None is null."""
    import pyarrow as pa

    lengths = np.fromiter((0 if row is None else len(row) for row in rows), np.int64, len(rows))
    start = np.concatenate([[0], np.cumsum(lengths)])
    numbers = itertools.chain.from_iterable(row for row in rows if row is not None)
    values = np.fromiter(numbers, np.float64, int(start[-1]))
    missing = np.fromiter((row is None for row in rows), np.bool_, len(rows))
    mask = pa.array(missing) if missing.any() else None
    column: Any = pa.LargeListArray.from_arrays(pa.array(start), pa.array(values), mask=mask)
    return pl.Series("keypoints", pl.from_arrow(column))
