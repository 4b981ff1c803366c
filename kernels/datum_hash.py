"""A hash of datum ids that never changes: it says in which bucket a datum's rows are.

Integers go through the finaliser of SplitMix64; text through FNV-1a over its bytes, then the same
finaliser, so that the low bits are as good as any.
Source: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators" (2014);
G. Fowler, L. C. Noll, P. Vo, "The FNV non-cryptographic hash algorithm".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]


@inner
def mixed(value: Any) -> Any:
    """The finaliser of SplitMix64."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@kernel
def _of_integers(values: Array, out: Array) -> None:
    for i in range(values.size):
        out[i] = mixed(values[i] + np.uint64(0x9E3779B97F4A7C15))


@kernel
def _of_texts(offsets: Array, data: Array, out: Array) -> None:
    for i in range(out.size):
        state = np.uint64(0xCBF29CE484222325)
        for at in range(offsets[i], offsets[i + 1]):
            state = (state ^ np.uint64(data[at])) * np.uint64(0x100000001B3)
        out[i] = mixed(state)


def hash_integers(values: Array) -> Array:
    """Hashes of integers; equal ones of either signedness have equal hashes.

    Args:
        values: int64 or uint64 [n].

    Returns:
        uint64 [n].
    """
    out = np.empty(values.size, np.uint64)
    _of_integers(frozen(values.view(np.uint64), np.uint64), out)
    return out


def hash_texts(offsets: Array, data: Array) -> Array:
    """Hashes of texts.

    Args:
        offsets: int64 [n + 1], where each text begins in the bytes.
        data: uint8, UTF-8.

    Returns:
        uint64 [n].
    """
    out = np.empty(offsets.size - 1, np.uint64)
    _of_texts(frozen(offsets, np.int64), frozen(data, np.uint8), out)
    return out


@kernel
def _by_bucket(bucket: Array, start: Array, order: Array) -> None:
    for i in range(bucket.size):
        start[bucket[i] + 1] += 1
    for b in range(start.size - 1):
        start[b + 1] += start[b]
    free = start[:-1].copy()
    for i in range(bucket.size):
        order[free[bucket[i]]] = i
        free[bucket[i]] += 1


def by_bucket(hashes: Array, n: int) -> tuple[Array, Array]:
    """Rows by bucket, in their order within one.

    Args:
        hashes: uint64 [rows].
        n: number of buckets.

    Returns:
        ``start``, int64 [n + 1], offsets by bucket; ``order``, uint32 [rows].
    """
    bucket = (hashes % np.uint64(n)).astype(np.int32)
    start = np.zeros(n + 1, np.int64)
    order = np.empty(bucket.size, np.uint32)
    _by_bucket(bucket, start, order)
    return start, order
