"""Ranked rows of all labels of a key as those of one, range of scores by range of scores.

Files hold rows by label. Where all rows together are too many to hold, scores at which to cut are
told from a sample, and what lies between two of them is read from every file and put in order. Rows
at a cut are equal and need no order, so that they are shown file by file, however many they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import numpy as np

from .ranked import Ranked
from .ranked_points import CountedRows, counted_rows, pooled_rows

Array = np.ndarray[Any, Any]

Files = Callable[[], Iterable[tuple[Ranked, Array]]]
"""Gives the files, and int32 [labels] the key of each label of one."""

_SAMPLED = 1 << 20
"""Scores that are looked at to find the cuts, about."""


class PooledRanges(msgspec.Struct, frozen=True):
    """Rows by key, those of one block before those of the next; can be gone through again.

    Attributes:
        files: the rows.
        iou: one of their thresholds.
        n_keys: how many keys there are.
        n_rows: predictions in all files.
        most: those of a block, about; those with one score may be more, of one file.
    """

    files: Files
    iou: float
    n_keys: int
    n_rows: int
    most: int

    def __iter__(self) -> Iterator[CountedRows]:
        """Predictions, range by range, without ground truths."""
        cuts = self._cuts()
        before = [ranked.start[:-1] for ranked, _ in self.files()]
        for cut in [*cuts, None]:
            between, at = [], []
            for place, (ranked, key) in enumerate(self.files()):
                first, last = _around(ranked, cut)
                between.append(self._some(ranked, key, before[place], first))
                at.append(first)
                before[place] = last
            yield pooled_rows(between, np.arange(self.n_keys), self.n_keys)
            if cut is None:
                return
            for first, last, (ranked, key) in zip(at, before, self.files(), strict=True):
                yield self._some(ranked, key, first, last)

    def truths(self) -> Iterator[CountedRows]:
        """Ground truths, file by file, without predictions."""
        for ranked, key in self.files():
            none = ranked.start[:-1]
            rows = counted_rows(_without(ranked, none, none, truths=True), self.iou)
            yield pooled_rows([rows], key, self.n_keys)

    def _cuts(self) -> list[float]:
        """Scores, descending, between two of which about so many rows lie."""
        every = max(1, min(self.n_rows // _SAMPLED, self.most // 4))
        sample = np.sort(np.concatenate([one.score[::every] for one, _ in self.files()]))[::-1]
        step = max(1, self.most // every)
        return list(dict.fromkeys(sample[step::step].tolist()))

    def _some(self, ranked: Ranked, key: Array, first: Array, last: Array) -> CountedRows:
        """Rows of every label from one place to another, by key."""
        rows = counted_rows(_without(ranked, first, last, truths=False), self.iou)
        return pooled_rows([rows], key, self.n_keys)


def _around(ranked: Ranked, cut: float | None) -> tuple[Array, Array]:
    """The first row of every label at a score, and the first below, int64 [labels] each; the end
    without a score.
    """
    begin, end = ranked.start[:-1], ranked.start[1:]
    if cut is None:
        return end, end
    rising = [ranked.score[a:b][::-1] for a, b in zip(begin, end, strict=True)]
    at, below = (
        end - np.array([np.searchsorted(one, cut, side) for one in rising], np.int64)
        for side in ("right", "left")
    )
    return at, below


def _without(ranked: Ranked, first: Array, last: Array, *, truths: bool) -> Ranked:
    """Some rows of every label, with all ground truths or none."""
    n = last - first
    start = np.r_[0, np.cumsum(n)]
    at = np.repeat(first - start[:-1], n) + np.arange(start[-1])
    few = {name: getattr(ranked, name)[..., at] for name in ("score", "datum", "hit", "ignored")}
    if not truths:
        none = slice(0)
        few["gt_start"] = np.zeros_like(ranked.gt_start)
        for name in ("gt_datum", "gt_row", "gt_counted"):
            few[name] = getattr(ranked, name)[..., none]
    return msgspec.structs.replace(ranked, start=start, place=ranked.place[:0], **few)
