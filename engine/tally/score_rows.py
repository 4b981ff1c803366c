"""Scored labels in ascending order with all that a walk over them needs, apart from their units.

A walk needs of a row its label, outcome and score, its unit's weight and the groups of its datum.
Rows stand by label and score, equal scores in the order of the input: so parts can be cut anywhere,
brought together slab by slab, and walked up or down with sums made of the same additions as those
over all rows in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from ..kernels.partition import partition
from .units import Scored

Array = np.ndarray[Any, Any]


class ScoreRows(msgspec.Struct, frozen=True):
    """Rows ascending by label, score and place in the input.

    Attributes:
        start: int64 [l + 1], CSR offsets of the labels.
        score: float32 [n] where scores came in single precision, else float64 [n].
        outcome: uint8 [n], see :class:`~evalengine.tally.units.Scored`.
        row: int64 [n], where each row stands in the whole input; [0] where parts were brought
            together, and nothing asks for it any more.
        weight: float64 [n], weight of each row's unit; None for 1 each.
        codes: int32 [n] arrays, group of each row in each slice column, -1 for none.
        truth: int32 [n], the true label of each row's unit, -1 for none; None where no metric holds
            labels against one another.
    """

    start: Array
    score: Array
    outcome: Array
    row: Array
    weight: Array | None
    codes: tuple[Array, ...]
    truth: Array | None = None

    def __len__(self) -> int:
        return int(self.score.size)


def score_rows(
    scored: Scored,
    label: Array | None,
    n_labels: int,
    weight: Array | None,
    codes: Sequence[Array],
    truth: Array | None = None,
) -> ScoreRows:
    """The scored labels of one part, in ascending order.

    Args:
        scored: rows that know their places in the whole input, ascending.
        label: int32 [n], code that stands for each row's label; None where all have ``only``.
        n_labels: number of such codes.
        weight: float64 [u], weight of each unit; None for 1 each.
        codes: int32 [u] arrays, group of each unit in each slice column.
        truth: int32 [u], the true label of each unit, -1 for none; None where it is not asked for.

    Raises:
        RuntimeError: rows that do not know their places, or stand in another order.
    """
    if scored.row is None or (np.diff(scored.row) < 0).any():
        raise RuntimeError("scored labels do not stand in the order of the input")
    n = scored.outcome.size
    if label is None:
        label = np.broadcast_to(np.int32(scored.only), n)
    start, score, order = partition(
        scored.parts, np.zeros(n, np.uint8), label, None, None, (1, n_labels, 1), want_rows=True
    )
    for first, last in zip(start[:-1].tolist(), start[1:].tolist(), strict=True):
        ascending = np.argsort(score[first:last], kind="stable")
        score[first:last] = score[first:last][ascending]
        order[first:last] = order[first:last][ascending]
    unit = order if scored.unit_codes is None else scored.unit_codes[order]
    return ScoreRows(
        start,
        score.astype(np.float32) if scored.single else score,
        scored.outcome[order],
        scored.row[order],
        None if weight is None else weight[unit],
        tuple(code[unit] for code in codes),
        None if truth is None else truth[unit],
    )


def rows_between(rows: ScoreRows, first: int, last: int) -> ScoreRows:
    """Some consecutive rows, of whatever labels."""
    return ScoreRows(
        np.clip(rows.start, first, last) - first,
        rows.score[first:last],
        rows.outcome[first:last],
        rows.row[first:last],
        None if rows.weight is None else rows.weight[first:last],
        tuple(code[first:last] for code in rows.codes),
        None if rows.truth is None else rows.truth[first:last],
    )


def merge_rows(parts: Sequence[ScoreRows]) -> ScoreRows:
    """The rows of all parts in their order.

    Args:
        parts: at least one, over the same labels and slice columns.
    """
    sizes = np.array([np.diff(part.start) for part in parts])
    start = np.zeros(sizes.shape[1] + 1, np.int64)
    np.cumsum(sizes.sum(axis=0), out=start[1:])
    place = np.empty(int(start[-1]), np.int64)  # of each row of the parts, one after the other
    at, before = start[:-1].copy(), 0
    for part, own in zip(parts, sizes, strict=True):
        begin = np.repeat(at - part.start[:-1], own)
        place[before : before + len(part)] = begin + np.arange(len(part))
        at += own
        before += len(part)
    source = np.empty_like(place)
    source[place] = np.arange(place.size)
    del place
    score = np.concatenate([part.score for part in parts])[source]
    row = np.concatenate([part.row for part in parts])[source]
    order = np.empty_like(source)
    for first, last in zip(start[:-1].tolist(), start[1:].tolist(), strict=True):
        order[first:last] = first + _ascending(score[first:last], row[first:last])
    source = source[order]
    weights = [part.weight for part in parts if part.weight is not None]
    truths = [part.truth for part in parts if part.truth is not None]
    return ScoreRows(
        start,
        score[order],
        np.concatenate([part.outcome for part in parts])[source],
        row[order],
        np.concatenate(weights)[source] if weights else None,
        tuple(np.concatenate(some)[source] for some in zip(*(p.codes for p in parts), strict=True)),
        np.concatenate(truths)[source] if truths else None,
    )


def _ascending(score: Array, row: Array) -> Array:
    """Order of rows by score and place, which are looked at among equal scores alone."""
    order = np.argsort(score, kind="stable")
    same = np.zeros(score.size + 1, bool)
    ordered = score[order]
    np.equal(ordered[1:], ordered[:-1], out=same[1:-1])
    tied = np.flatnonzero(same[1:] | same[:-1])
    if tied.size:
        of_tie = np.cumsum(~same[:-1])[tied]
        order[tied] = order[tied][np.lexsort((row[order[tied]], of_tie))]
    return order
