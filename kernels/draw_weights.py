"""How often a datum stands in each draw of a Poisson bootstrap, told by its key alone.

Every weight is a function of (seed, draw, key), so that it is the same whatever rows, threads,
parts or workers ask for it, and in either of two runs that are compared. A stream of SplitMix64
belongs to each key; each of its words gives the weights of four draws, 16 bits each.

Weights are Poisson with mean 1: sums of them over n datums differ from those of a multinomial
bootstrap by the size of the draw alone, and no size has to be known beforehand.
Source: A. Chamandy et al., "Estimating uncertainty for massive data streams" (2012); G. Steele,
D. Lea, C. Flood, "Fast splittable pseudorandom number generators" (2014).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .datum_hash import mixed
from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]

PER_WORD = 4
"""Draws whose weights come from one word: blocks of draws begin at multiples of it."""

_GOLDEN = 0x9E3779B97F4A7C15
# Of 65,536 equally likely values, how many stand for the weights 0, 1, 2, ...: Poisson(1) rounded
# so that the mean is 1 exactly; the variance is 1.00003.
_COUNTS = (24109, 24110, 12055, 4018, 1004, 201, 33, 5, 1)
MOST = len(_COUNTS) - 1
"""The largest weight."""


_FIRST = tuple(sum(_COUNTS[: k + 1]) for k in range(MOST))
"""The first of these values that stands for the weights 1, 2, ..."""


@inner
def draw_one(
    key: Any, seed: Any, first_word: int, words: Array, values: Array, first: Array, out: Array
) -> None:
    """Weights of one key in a block of draws; see :func:`state_of_draws` for what is given."""
    state = mixed(key ^ seed)
    for j in range(words.size):
        words[j] = mixed(state + np.uint64(first_word + j + 1) * np.uint64(_GOLDEN))
    # Comparisons of 16 bits, which go many at a time, where a table is looked up one by one.
    for d in range(out.size):
        out[d] = values[d] >= first[0]
    for k in range(1, first.size):
        for d in range(out.size):
            out[d] += values[d] >= first[k]


@kernel
def _draw(
    keys: Array, seed: Any, first_word: int, words: Array, values: Array, first: Array, out: Array
) -> None:
    # As draw_one, but not by it: rows of an array that are handed on cost three times as much.
    golden = np.uint64(_GOLDEN)
    for i in range(keys.size):
        state = mixed(keys[i] ^ seed)
        for j in range(words.size):
            words[j] = mixed(state + np.uint64(first_word + j + 1) * golden)
        for d in range(out.shape[1]):
            out[i, d] = values[d] >= first[0]
        for k in range(1, first.size):
            for d in range(out.shape[1]):
                out[i, d] += values[d] >= first[k]


def state_of_draws(seed: int, first: int, last: int) -> tuple[Any, int, Array, Array, Array]:
    """What :func:`draw_one` is given beside a key: seed, first word, room for words and the same
    room as 16-bit values, and the first value of every weight."""
    assert first % PER_WORD == 0
    words = np.empty(-(-(last - first) // PER_WORD), np.uint64)
    seed_word = np.uint64(seed * 0xD1342543DE82EF95 & 0xFFFFFFFFFFFFFFFF)
    return seed_word, first // PER_WORD, words, words.view("<u2"), np.array(_FIRST, np.uint16)


def draw_weights(keys: Array, seed: int, first: int, last: int) -> Array:
    """Weights of datums in some draws.

    Args:
        keys: uint64 [n], hash of each datum or of its cluster; equal keys have equal weights.
        seed: of the draws.
        first: the first draw, a multiple of :data:`PER_WORD`.
        last: one past the last.

    Returns:
        uint8 [n, last - first], 0 to :data:`MOST`.
    """
    out = np.empty((keys.size, last - first), np.uint8)
    _draw(frozen(keys, np.uint64), *state_of_draws(seed, first, last), out)
    return out


@kernel
def _swap(keys: Array, seed: Any, first: int, out: Array) -> None:
    golden = np.uint64(_GOLDEN)
    for i in range(keys.size):
        state = mixed(keys[i] ^ seed)
        word = np.uint64(0)
        for d in range(out.shape[1]):
            at = first + d
            if d == 0 or at % 64 == 0:
                word = mixed(state + np.uint64(at // 64 + 1) * golden)
            out[i, d] = (word >> np.uint64(at % 64)) & np.uint64(1)


def swap_bits(keys: Array, seed: int, first: int, last: int) -> Array:
    """Whether datums are swapped between two runs in some draws, each with a chance of one half.

    Args:
        keys: uint64 [n], as :func:`draw_weights` has them.
        seed: of the draws; other bits than those of its weights.
        first: the first draw.
        last: one past the last.

    Returns:
        uint8 [n, last - first], 0 or 1.
    """
    out = np.empty((keys.size, last - first), np.uint8)
    word = np.uint64(~(seed * 0xD1342543DE82EF95) & 0xFFFFFFFFFFFFFFFF)
    _swap(frozen(keys, np.uint64), word, first, out)
    return out
