"""Components to match: distinct texts or sentences, and their positions in each query."""

from __future__ import annotations

import msgspec
import numpy as np
import polars as pl

from ....ingest.codes import by_hash
from ....schemas.arrays import Array
from ...packing import offsets_of, ragged
from ...sentences import sentences_of


class Components(msgspec.Struct, frozen=True, kw_only=True):
    """Retrieved components by rank and distinct golds, of all queries.

    Attributes:
        texts: the distinct components, String [n].
        retrieved_start: int64 [q + 1], offsets of the retrieved components of each query.
        retrieved: int32, index of each in ``texts``.
        gold_start: int64 [q + 1], offsets of the golds of each query.
        gold: int32, index of each in ``texts``, unique within a query.
        gold_row: int64, row of each among the golds given; None if golds are sentences.
        gold_repeats: int64 [q], number of repeated golds, which are dropped.
        pair_start: int64 [q + 1], offsets of the pairs of each query.
    """

    texts: pl.Series
    retrieved_start: Array
    retrieved: Array
    gold_start: Array
    gold: Array
    gold_row: Array | None
    gold_repeats: Array
    pair_start: Array

    def pairs(self, first: int, last: int) -> tuple[Array, Array]:
        """Places in ``texts`` of both sides of each pair of the queries [first, last)."""
        n_retrieved = np.diff(self.retrieved_start[first : last + 1])
        n_gold = np.diff(self.gold_start[first : last + 1])
        of_row = np.repeat(n_gold, n_retrieved)
        rows = self.retrieved[self.retrieved_start[first] : self.retrieved_start[last]]
        row_start = np.repeat(self.gold_start[first:last], n_retrieved)
        return np.repeat(rows, of_row), self.gold[ragged(row_start, of_row)]


def _expanded(start: Array, codes: Array, inner_start: Array, inner: Array) -> tuple[Array, Array]:
    """Replace every text by its sentences."""
    length = np.diff(inner_start)[codes]
    return offsets_of(length)[start], inner[ragged(inner_start[codes], length)]


def find_components(
    retrieved: pl.Series,
    retrieved_start: Array,
    gold: pl.Series,
    gold_start: Array,
    *,
    sentences: bool,
    keep_repeats: bool = False,
) -> Components:
    """Collect distinct texts, or distinct sentences of them, and the unique golds of each query.

    Args:
        retrieved: String [n], by rank within a query, without nulls.
        retrieved_start: int64 [q + 1], offsets of each query.
        gold: String [g], without nulls.
        gold_start: int64 [q + 1], offsets of each query.
        sentences: compare sentences instead of whole texts.
        keep_repeats: a gold given twice stays two golds.
    """
    every = pl.concat([retrieved.alias("text"), gold.alias("text")])
    codes, rows = by_hash(every)
    texts = every.gather(rows)
    r_codes, g_codes = codes[: len(retrieved)], codes[len(retrieved) :]
    r_start, g_start = retrieved_start, gold_start
    if sentences:
        found, inner_start = sentences_of(texts)
        inner, rows = by_hash(found)
        texts = found.gather(rows)
        r_start, r_codes = _expanded(r_start, r_codes, inner_start, inner)
        g_start, g_codes = _expanded(g_start, g_codes, inner_start, inner)
    n_gold = np.diff(g_start)
    query = np.repeat(np.arange(n_gold.size), n_gold)
    first = np.ones(g_codes.size, np.bool_)
    if not keep_repeats:
        first = pl.Series(query * len(texts) + g_codes).is_first_distinct().to_numpy()
    kept = np.bincount(query[first], minlength=n_gold.size)
    return Components(
        texts=texts,
        retrieved_start=np.asarray(r_start, np.int64),
        retrieved=r_codes.astype(np.int32),
        gold_start=offsets_of(kept),
        gold=g_codes[first].astype(np.int32),
        gold_row=None if sentences else np.flatnonzero(first),
        gold_repeats=n_gold - kept,
        pair_start=offsets_of(np.diff(r_start) * kept),
    )
