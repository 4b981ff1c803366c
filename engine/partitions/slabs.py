"""Rows of a label that are more than memory holds: cut into slabs by score over all buckets.

A bucket's rows of a group of labels stand in order already. It writes them in pieces, and tells the
key at which each begins: label, score, tie, datum. The keys of all buckets' pieces say where slabs
of about equal size begin; what one slab takes of a piece is found by search, and merged run by run.
No row is compared with one of another slab, and none is read that belongs to a piece of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from ..tally.grouped import of_rows
from ..tally.ranked import Ranked

Array = np.ndarray[Any, Any]


class Key(msgspec.Struct, frozen=True, order=True):
    """Where a row stands among those of its group of labels; ascending.

    Attributes:
        label: code within the group; -1 before every prediction, the largest int32 behind them.
        ordered: the score; negative where the highest stands first.
        ordered_tie: likewise of what orders equal scores; 0 where nothing does.
        datum: code of the datum.
    """

    label: int
    ordered: float
    ordered_tie: float
    datum: int

    @property
    def of_row(self) -> bool:
        """Whether it is that of a prediction."""
        return 0 <= self.label < _BEHIND_ALL


_BEHIND_ALL = int(np.iinfo(np.int32).max)
BEFORE_ALL = Key(-1, 0.0, 0.0, 0)


class Piece(msgspec.Struct, frozen=True):
    """Some consecutive rows of a group of labels in one bucket.

    Attributes:
        name: of the thing in the bucket's file.
        rows: how many.
        key: of the first row; :data:`BEFORE_ALL` of the first piece, and behind all predictions
            where they are ground truths, which need no order among those of other pieces.
    """

    name: str
    rows: int
    key: Key


def cut(ranked: Ranked, name: str, most: int) -> tuple[dict[str, Ranked], list[Piece]]:
    """The rows of a group of labels in pieces: of predictions, then of ground truths.

    Args:
        ranked: the rows of one bucket.
        name: of the group of labels.
        most: rows of a piece; at least all there are, of both sides, for one piece.
    """
    n, m = ranked.score.size, ranked.gt_datum.size
    if n + m <= most:
        return {name: ranked}, [Piece(name, n + m, BEFORE_ALL)]
    things: dict[str, Ranked] = {}
    pieces: list[Piece] = []
    for begin in range(0, max(n, 1), most):
        end = min(begin + most, n)
        own = f"{name}.{len(pieces)}"
        things[own] = of_rows(ranked, (begin, end), (0, 0))
        key = key_at(ranked, begin) if begin else BEFORE_ALL
        pieces.append(Piece(own, end - begin, key))
    for begin in range(0, m, most):
        end = min(begin + most, m)
        own = f"{name}.{len(pieces)}"
        things[own] = of_rows(ranked, (n, n), (begin, end))
        pieces.append(Piece(own, end - begin, Key(_BEHIND_ALL, 0.0, 0.0, begin)))
    return things, pieces


def key_at(ranked: Ranked, row: int) -> Key:
    """The key of a row."""
    tie = -float(ranked.tie[row]) if ranked.tie.size else 0.0
    label = int(np.searchsorted(ranked.start, row, "right")) - 1
    return Key(label, -float(ranked.score[row]), tie, int(ranked.datum[row]))


def place(ranked: Ranked, key: Key) -> int:
    """How many rows stand before a key.

    Args:
        ranked: rows in order, datums under the codes that the key has.
        key: where to look.
    """
    if not key.of_row:
        return 0 if key.label < 0 else int(ranked.score.size)
    begin, end = int(ranked.start[key.label]), int(ranked.start[key.label + 1])
    for values, sign, value in (
        (ranked.score, -1, key.ordered),
        (ranked.tie, -1, key.ordered_tie),
        (ranked.datum, 1, key.datum),
    ):
        if values.size == 0 and ranked.score.size:
            continue  # nothing orders equal scores
        some = values[begin:end] * sign
        begin, end = (
            begin + int(np.searchsorted(some, value, "left")),
            begin + int(np.searchsorted(some, value, "right")),
        )
    return begin


def slab_keys(pieces: Sequence[Sequence[Piece]], most: int) -> list[Key]:
    """Where each slab begins.

    Args:
        pieces: those of each bucket, datums under the codes of the whole.
        most: rows of a slab, about: pieces that begin in it have no more, but that the one which
            passes the bound is counted whole.
    """
    ordered = sorted((piece.key, piece.rows) for own in pieces for piece in own)
    keys, held = [BEFORE_ALL], 0
    for key, rows in ordered:
        if held + rows > most and held and key > keys[-1]:
            keys.append(key)
            held = 0
        held += rows
    return keys


def needed(pieces: Sequence[Piece], first: Key, after: Key | None) -> list[Piece]:
    """The pieces of one bucket of which rows stand between two keys, or which begin there.

    A datum may have several rows of one score: a piece may end with the key at which the next
    begins.

    Args:
        pieces: in their order.
        first: where the slab begins.
        after: where the next one does; None for the last.
    """
    ends = [*(piece.key for piece in pieces[1:]), None]
    return [
        piece
        for piece, end in zip(pieces, ends, strict=True)
        if (after is None or piece.key < after) and (end is None or end >= first)
    ]


def within(ranked: Ranked, begins: Key, first: Key, after: Key | None) -> Ranked:
    """The rows of a piece that stand in a slab, and its ground truths where it begins there.

    Args:
        ranked: the piece, datums under the codes of the whole.
        begins: its key.
        first: where the slab begins.
        after: where the next one does; None for the last.
    """
    rows = place(ranked, first), ranked.score.size if after is None else place(ranked, after)
    return of_rows(ranked, rows, (0, ranked.gt_datum.size if begins >= first else 0))
