"""A ranked tally in several files, because a label has more rows than memory holds.

The rows of one file come before those of the next: by label, descending score, tie and datum. What
is counted of the files adds up. Precision at recall levels needs two walks over the rows of a label
(:mod:`evalengine.kernels.average_precision`): the first goes through the files in their order and
keeps what was counted before each; the second goes through them from the last to the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..kernels.average_precision import Carried, nothing_carried
from . import stored
from .datums import Labels
from .ranked import Ranked
from .ranked_points import CountedRows, counted_rows
from .ranked_view import LeaveOut, RankedView

Array = np.ndarray[Any, Any]


class ViewOfParts(RankedView):
    """The view of a ranked tally of which one file is in memory at a time.

    Args:
        files: as :func:`evalengine.tally.stored.save` writes them, in the order of their rows.
        head: the tally without its rows.
        labels: those of the files.
        **rest: see :class:`RankedView`.
    """

    def __init__(self, files: Sequence[str], head: Ranked, labels: Labels, **rest: Any) -> None:
        super().__init__(head, labels, **rest)
        self._files = files
        self._rest = rest

    def _view(self, file: str) -> RankedView:
        """The view of one file, which nothing else holds."""
        return RankedView(stored.load(file), self.labels, **self._rest)

    def parts(self, *, backwards: bool = False) -> Iterator[RankedView]:
        yield from map(self._view, reversed(self._files) if backwards else self._files)

    def counted_rows(self, iou: float) -> Iterator[CountedRows]:
        for view in self.parts():
            yield counted_rows(view.tally, iou)

    @cached_property
    def _totals(self) -> tuple[Array, Array, Array]:
        def counted(view: RankedView) -> tuple[Array, Array, Array]:
            return view.n_predictions, view.n_ground_truths, view.positives

        found = [counted(self._view(file)) for file in self._files]
        first, second, third = (sum(parts[1:], parts[0]) for parts in zip(*found, strict=True))
        return first, second, third

    @cached_property
    def n_predictions(self) -> Array:
        return self._totals[0]

    @cached_property
    def n_ground_truths(self) -> Array:
        return self._totals[1]

    @cached_property
    def positives(self) -> Array:
        return self._totals[2]

    def _run(self, *, leave_out: LeaveOut, caps: Array, precision: bool, scores: bool) -> Any:
        out = self.outputs(caps.size, precision=precision, scores=scores)
        positives = self._sought(scores=scores)
        counted = self.outputs(caps.size, precision=False, scores=False)
        levels = self._levels(scores=scores)
        carried = [
            nothing_carried(
                self._shape[0] * self._shape[1], (word.n_thresholds, word.n_areas), levels.size
            )
            for word in self.tally.variants.words
        ]
        before: list[list[Carried]] = []
        for file in self._files:
            before.append([_copied(one) for one in carried])
            for _, _, true in counted:
                true[:] = 0
            self._view(file).walked(leave_out, caps, positives, levels, counted, carried)
            for one, (_, _, true), (_, _, every) in zip(carried, counted, out, strict=True):
                one.right[:] += true[:, -1]
                every[:] += true
        if precision:
            # True positives of each file alone are written again on the way, to an array for it.
            into = [(p, s, true) for (p, s, _), (_, _, true) in zip(out, counted, strict=True)]
            worse = [(one.envelope, one.level, one.needed) for one in carried]
            for file, better in zip(reversed(self._files), reversed(before), strict=True):
                for _, _, true in counted:
                    true[:] = 0
                here = [
                    Carried(one.wrong, one.plain, one.right, *held)
                    for one, held in zip(better, worse, strict=True)
                ]
                self._view(file).walked(leave_out, caps, positives, levels, into, here)
        return self._together(out)

    def _count(self, score_thresholds: Array) -> tuple[Array, Array]:
        tp, fp = zip(
            *(self._view(file)._count(score_thresholds) for file in self._files), strict=True
        )
        return sum(tp[1:], tp[0]), sum(fp[1:], fp[0])


def _copied(carried: Carried) -> Carried:
    return Carried(*(array.copy() for array in carried))
