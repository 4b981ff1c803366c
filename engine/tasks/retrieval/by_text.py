"""Texts met by a rule: which retrieved ones are relevant, and which golds they find."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...kernels.text_hits import credit
from ..workers import Workers
from .lists import Lists
from .settings import MATCHES, Settings

Array = np.ndarray[Any, Any]


class Texts(msgspec.Struct):
    """Texts of one side.

    Attributes:
        query: int32 [n], query of each.
        text: the texts, row by row.
        value: float64 [n], scores (higher first), or relevance.
    """

    query: Array
    text: pl.Series
    value: Array


def _laid_out(texts: Texts, n: int) -> tuple[pl.Series, Array, Array]:
    """Texts by query, then by descending value; their offsets and values."""
    # lexsort keeps the order of rows; of equal golds the most relevant comes first, and is kept
    order = np.lexsort((-texts.value, texts.query))
    start = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(texts.query, minlength=n), out=start[1:])
    return texts.text.gather(order), start, texts.value[order]


def text_lists(
    n: int,
    retrieved: Texts,
    relevant: Texts,
    rule: str,
    settings: Settings,
    workers: Workers,
    *,
    count_tokens: bool = False,
) -> Lists:
    """Ranked lists of texts.

    Args:
        n: number of queries.
        retrieved: what was retrieved.
        relevant: the golds.
        rule: how they match.
        settings: threshold and rules.
        workers: runs ranges of queries side by side.
        count_tokens: whether tokens are estimated.
    """
    from .texts import match_texts, token_counts  # which ids do without

    ours, start, _ = _laid_out(retrieved, n)
    golds, gold_start, value = _laid_out(relevant, n)
    threshold = MATCHES[rule] if settings.match_threshold is None else settings.match_threshold
    matched = match_texts(
        ours,
        start,
        golds,
        gold_start,
        rule=rule,
        threshold=threshold,
        rules=settings.rules,
        workers=workers,
    )
    worth = np.ones(int(matched.gold_start[-1])) if matched.gold is None else value[matched.gold]
    size = int(matched.retrieved_start[-1])
    best, gain = np.empty(size), np.empty(size)
    found = np.zeros(worth.size, np.int32)
    workers.over(
        matched.retrieved_start,
        lambda first, last: credit(
            first,
            last,
            matched.retrieved_start,
            matched.gold_start,
            matched.pair_start,
            matched.match,
            worth,
            (best, gain, found),
        ),
    )
    hit = ~np.isnan(best)
    before = np.concatenate([[0], np.cumsum(hit)])
    query = np.repeat(np.arange(n), np.diff(matched.retrieved_start))
    rank = (np.arange(size) - matched.retrieved_start[query] + 1).astype(np.int32)
    of_gold = np.repeat(np.arange(n), np.diff(matched.gold_start))
    down = np.lexsort((-worth, of_gold))
    return Lists(
        retrieved=np.diff(matched.retrieved_start),
        start=before[matched.retrieved_start],
        rank=rank[hit],
        relevance=best[hit],
        gain=gain[hit],
        gold_start=matched.gold_start,
        gold=worth[down],
        found=found[down],
        repeats=matched.gold_repeats,
        tokens=token_counts(ours, start) if count_tokens else None,
    )
