"""Scored labels in ascending order with all that a walk over them needs, apart from their units.

A walk needs of a row its label, outcome and score, its unit's weight and the groups of its datum.
Rows stand by label and score, equal scores in the order of the input: so parts can be cut anywhere,
brought together slab by slab, and walked up or down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from ..kernels.order import rank_by_score
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


class OrderedScores(msgspec.Struct, frozen=True):
    """The order of the scored labels of one part, of which rows are made a few at a time.

    Attributes:
        start: int64 [l + 1], CSR offsets of the labels.
        score: float64 [n], ascending within a label.
        order: int64 [n], the row of ``scored`` that stands at each place.
        scored: the scored labels.
        weight: float64 [u], weight of each unit; None for 1 each.
        codes: int32 [u] arrays, group of each unit in each slice column.
        truth: int32 [u], the true label of each unit, -1 for none; None where it is not asked for.
    """

    start: Array
    score: Array
    order: Array
    scored: Scored
    weight: Array | None
    codes: tuple[Array, ...]
    truth: Array | None = None

    def __len__(self) -> int:
        return int(self.score.size)

    def rows(self, first: int, last: int) -> ScoreRows:
        """The rows from one place to before another."""
        order, scored = self.order[first:last], self.scored
        assert scored.row is not None
        unit = order if scored.unit_codes is None else scored.unit_codes[order]
        score = self.score[first:last]
        return ScoreRows(
            np.clip(self.start, first, last) - first,
            score.astype(np.float32) if scored.single else score,
            scored.outcome[order],
            scored.row[order],
            None if self.weight is None else self.weight[unit],
            tuple(code[unit] for code in self.codes),
            None if self.truth is None else self.truth[unit],
        )


def score_rows(
    scored: Scored,
    label: Array | None,
    n_labels: int,
    weight: Array | None,
    codes: Sequence[Array],
    truth: Array | None = None,
) -> OrderedScores:
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
    if scored.row is None or (scored.row[1:] < scored.row[:-1]).any():
        raise RuntimeError("scored labels do not stand in the order of the input")
    n = scored.outcome.size
    if label is None:
        label = np.broadcast_to(np.int32(scored.only), n)
    start, score, order = partition(
        scored.parts, np.zeros(n, np.uint8), label, None, None, (1, n_labels, 1), want_rows=True
    )
    for first, last, place in _ascending(score, start):
        score[first:last] = score[first:last][place]
        order[first:last] = order[first:last][place]
    return OrderedScores(start, score, order, scored, weight, tuple(codes), truth)


def _ascending(score: Array, start: Array) -> Iterator[tuple[int, int, Array]]:
    """Stable orders by rising score within each label, of a few labels at a time.

    Args:
        score: float32 or float64 [n], by label; a range may be put in order once it was given.
        start: int64 [l + 1], CSR offsets of the labels.

    Yields:
        where the rows of some labels begin and end, and their order, int32, counted from there.
    """
    for first, last in pairwise(_some_labels(start, _AT_ONCE).tolist()):
        own = start[first : last + 1] - start[first]
        begin, end = int(start[first]), int(start[last])
        falling = np.negative(score[begin:end], dtype=np.float64)  # which the kernel ranks by
        order = np.empty(end - begin, np.int32)
        rank_by_score(falling, own, 0, last - first, order)
        yield begin, end, order


def _some_labels(start: Array, rows: int) -> Array:
    """Where to cut labels into ranges of about as many rows; no label is cut.

    Args:
        start: int64 [l + 1], CSR offsets of the labels.
        rows: of a range, at least 1; a range has more where its last label does.

    Returns:
        int64 [ranges + 1], ascending from 0 to l: first label of each range, and the end.
    """
    marks = np.arange(int(start[0]) + rows, int(start[-1]), rows)
    return np.unique(np.r_[0, np.searchsorted(start, marks), start.size - 1])


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
    for first, last, of_some in _ascending(score, start):
        order[first:last] = of_some
        order[first:last] += first
    _by_row_where_tied(order, score, row, start)
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


def _by_row_where_tied(order: Array, score: Array, row: Array, start: Array) -> None:
    """Put equal scores of a label in the order of their rows, in place.

    Args:
        order: int64 [n], ascending by score within each label.
        score: float32 or float64 [n].
        row: int64 [n].
        start: int64 [l + 1], CSR offsets of the labels.
    """
    same = np.zeros(score.size + 1, bool)
    ordered = score[order]
    np.equal(ordered[1:], ordered[:-1], out=same[1:-1])
    same[start] = False
    tied = np.flatnonzero(same[1:] | same[:-1])
    if tied.size:
        ties = np.append(np.flatnonzero(~same[:-1][tied]), tied.size)
        # Rows are ranked as scores are, most often few of a tie; float64 holds every place in input
        falling = np.negative(row[order[tied]], dtype=np.float64)
        place = np.empty(tied.size, np.int32)
        rank_by_score(falling, ties, 0, ties.size - 1, place)
        order[tied] = order[tied][place]


_AT_ONCE = 1 << 21  # scores sorted at a time, beside which there are keys and places
