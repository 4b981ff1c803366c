"""From matches of texts to hits: what every retrieved text is worth, and where golds are found."""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


@kernel
def _credit(
    first: int,
    last: int,
    start: Array,
    gold_start: Array,
    pair_start: Array,
    match: Array,
    value: Array,
    best: Array,
    gain: Array,
    found: Array,
) -> None:
    """Walk the texts of each query in rank order."""
    for q in range(first, last):
        low, n_gold = gold_start[q], gold_start[q + 1] - gold_start[q]
        taken = np.zeros(n_gold, np.bool_)
        for i in range(start[q], start[q + 1]):
            pair = pair_start[q] + (i - start[q]) * n_gold
            best[i], gain[i] = np.nan, 0.0
            credited = -1
            for g in range(n_gold):
                if match[pair + g] == 0:
                    continue
                if found[low + g] == 0:
                    found[low + g] = i - start[q] + 1
                worth = value[low + g]
                if not best[i] >= worth:
                    best[i] = worth
                if not taken[g] and (credited < 0 or worth > value[low + credited]):
                    credited = g
            if credited >= 0:
                taken[credited] = True
                gain[i] = value[low + credited]


def credit(
    first: int,
    last: int,
    start: Array,
    gold_start: Array,
    pair_start: Array,
    match: Array,
    value: Array,
    out: tuple[Array, Array, Array],
) -> None:
    """Worth of every retrieved text of the queries [first, last).

    Each text is credited with one gold, the most relevant that it matches and no text before it
    was credited with (of equal ones the first); a gold is found where it is first matched.

    Args:
        first: first query.
        last: one past the last.
        start: int64 [q + 1], offsets of retrieved texts, in rank order.
        gold_start: int64 [q + 1], offsets of golds.
        pair_start: int64 [q + 1], offsets of pairs, a row of golds for each retrieved text.
        match: uint8 [p], whether a pair matches.
        value: float64 [g], relevance of each gold.
        out: highest relevance matched (NaN for none) and relevance credited, float64 [n] each;
            rank at which each gold is found, int32 zeros [g].
    """
    _credit(
        first,
        last,
        frozen(start, np.int64),
        frozen(gold_start, np.int64),
        frozen(pair_start, np.int64),
        frozen(match, np.uint8),
        frozen(value, np.float64),
        *out,
    )
