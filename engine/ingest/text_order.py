"""Byte order of many strings by integer sorting.

Eight bytes at a time form a big-endian integer, which compares as the bytes do. The common prefix
of all strings is skipped, and only tied strings are refined. This is much faster than comparing
strings scattered in memory.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from evalengine.schemas.tuning import tuning

from ..schemas.arrays import Array

_WORD = 8


def text_order(values: pl.Series) -> Array:
    """Return the rows in ascending order of their strings' UTF-8 bytes, int64 [n].

    Args:
        values: distinct strings without nulls.
    """
    n = len(values)
    if n < tuning().few_texts:
        return values.arg_sort().to_numpy().astype(np.int64)
    low, high = values.min(), values.max()
    assert isinstance(low, str)
    assert isinstance(high, str)
    # The common prefix of the first and the last is that of all.
    pairs = enumerate(zip(low.encode(), high.encode(), strict=False))
    at = next((i for i, (a, b) in pairs if a != b), len(low.encode()))
    binary = values.cast(pl.Binary)
    longest = binary.bin.size().max()
    assert isinstance(longest, int)
    word = _word(binary, at)
    order = np.argsort(word).astype(np.int64, copy=False)
    run, tied = _ties(word[order], np.zeros(n, np.int64))
    places = np.flatnonzero(tied)  # in the order, ascending
    run = run[places]
    while places.size:
        at += _WORD
        rows = order[places]
        left = binary.gather(rows)
        if (
            places.size < tuning().few_texts or at >= longest
        ):  # at the end, zeros alone tell them apart
            table = pl.DataFrame({"run": run, "value": left})
            by = table.select(pl.arg_sort_by("run", "value")).to_series().to_numpy()
            order[places] = rows[by]
            break
        word = _word(left, at)
        by = np.argsort(word)
        by = by[np.argsort(run[by], kind="stable")]
        order[places] = rows[by]
        run, tied = _ties(word[by], run)
        places, run = places[tied], run[tied]
    return order


def _ties(word: Array, run: Array) -> tuple[Array, Array]:
    """New runs of equal words within runs, int64 [n], and who is in one with others, bool [n]."""
    same = (word[1:] == word[:-1]) & (run[1:] == run[:-1])
    return np.cumsum(np.r_[True, ~same]), np.r_[False, same] | np.r_[same, False]


def _word(values: pl.Series, at: int) -> Array:
    """Return eight bytes from a position as integers, uint64 [n]; zeros after the end."""
    padding = pl.lit(bytes(_WORD), dtype=pl.Binary)
    return (
        values.alias("value")
        .to_frame()
        .select(
            (pl.col("value").bin.slice(at, _WORD) + padding)
            .bin.head(_WORD)
            .bin.reinterpret(dtype=pl.UInt64, endianness="big")
        )
        .to_series()
        .to_numpy()
    )
