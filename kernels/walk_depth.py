"""How long the walk back through a table of common subsequences is, between long sentences."""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]


@inner
def _steps(x: Array, y: Array, table: Array) -> int:
    """Steps from both ends until either sentence is used up.

    Equal words are a diagonal step; else the walk goes up where the table is greater there.
    """
    n, m = x.size, y.size
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if x[i - 1] == y[j - 1]:
                table[i, j] = table[i - 1, j - 1] + 1
            else:
                table[i, j] = max(table[i - 1, j], table[i, j - 1])
    i, j, steps = n, m, 0
    while i > 0 and j > 0:
        steps += 1
        if x[i - 1] == y[j - 1]:
            i -= 1
            j -= 1
        elif table[i - 1, j] > table[i, j - 1]:
            i -= 1
        else:
            j -= 1
    return steps


@kernel
def _longest(gold: Array, text: Array, start: Array, words: Array, word: Array, limit: int) -> int:
    """The first walk longer than the limit, else the longest one looked at."""
    most = 0
    for g in range(start[gold[0]], start[gold[0] + 1]):
        for r in range(start[text[0]], start[text[0] + 1]):
            x = word[words[g] : words[g + 1]]
            y = word[words[r] : words[r + 1]]
            if x.size + y.size <= limit:
                continue
            table = np.zeros((x.size + 1, y.size + 1), np.int32)
            most = max(most, _steps(x, y, table))
            if most > limit:
                return most
    return most


def walks_too_far(gold: int, text: int, words: tuple[Array, Array, Array], limit: int) -> bool:
    """Whether some walk between a sentence of one text and one of another is longer than a limit.

    Args:
        gold: code of the text whose sentences stand at the side of the table.
        text: code of the other.
        words: offsets of the sentences of each text, int64 [texts + 1]; of the words of each
            sentence, int64 [sentences + 1]; codes of the words, int32.
        limit: number of steps.
    """
    start, offsets, codes = words
    return bool(
        _longest(
            frozen([gold], np.int64),
            frozen([text], np.int64),
            frozen(start, np.int64),
            frozen(offsets, np.int64),
            frozen(codes, np.int32),
            limit,
        )
        > limit
    )
