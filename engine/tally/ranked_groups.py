"""A ranked tally on disk, seen by groups of labels, one of which is in memory at a time.

Every array of a view has a label axis, and no label needs the rows of another: what a view computes
of each group of labels is joined along that axis. Labels with more rows than memory holds are in
several files, see :mod:`evalengine.tally.ranked_parts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from ..schemas.tuning import tuning
from . import stored
from .datums import Labels
from .draws import Draws, OneByOne
from .pooled_ranges import PooledRanges
from .ranked import Ranked, Variants
from .ranked_draws import RankedDraws
from .ranked_parts import ViewOfParts
from .ranked_points import CountedRows, sought
from .ranked_view import RankedView

Array = np.ndarray[Any, Any]


_POOLED_BYTES = 40  # of a prediction while the rows of all labels are brought into one order
_COUNTED_BYTES = 24  # of a prediction that counts, and of the ground truths beside it, in memory


class Group(msgspec.Struct, frozen=True):
    """Consecutive labels whose rows stand in files of their own.

    Attributes:
        files: as :func:`evalengine.tally.stored.save` writes them; of several the rows of one stand
            before those of the next.
        first: the first label.
        last: one past the last.
    """

    files: tuple[str, ...]
    first: int
    last: int


class Asked(msgspec.Struct, frozen=True):
    """What a view asks of every group, and all that has to be known for an answer.

    Attributes:
        name: one of :data:`ANSWERS`.
        given: its arguments.
        head: the tally without its rows.
        labels: of the run.
        rest: what views are made with, see :class:`~evalengine.tally.ranked_view.RankedView`.
        draws: block of draws that it is asked of; None for the tally itself.
    """

    name: str
    given: tuple[Any, ...]
    head: Ranked
    labels: Labels
    rest: dict[str, Any]
    draws: Draws | None = None


AnyView = RankedView | RankedDraws


def _counted(view: AnyView) -> tuple[Array, ...]:
    """All that most metrics read, in one pass over the files."""
    return (
        view.n_predictions,
        view.n_ground_truths,
        view.positives,
        view.precision,
        view.true_positives(None),
    )


def _sampled(view: AnyView, cap: int) -> tuple[Array, ...]:
    return view.sampled_with_scores(cap)


def _similarity(view: AnyView) -> tuple[Array, ...]:
    return (view.similarity,)


def _true_positives(view: AnyView, lowest_score: float) -> tuple[Array, ...]:
    return (view.true_positives(lowest_score),)


def _counts(view: AnyView, score_thresholds: tuple[float, ...]) -> tuple[Array, ...]:
    return view.counts(score_thresholds)


_WHOLE = ("crossed", "tallies", "over")
"""What a view of all labels is made with alone; threads are each process's own."""

ANSWERS: dict[str, Callable[..., tuple[Array, ...]]] = {
    "counted": _counted,
    "sampled": _sampled,
    "similarity": _similarity,
    "true positives": _true_positives,
    "counts": _counts,
}
"""Functions of the view of one group, of arrays whose second axis is that of labels."""


def _of_group(head: Ranked, group: Group, labels: Labels, rest: dict[str, Any]) -> RankedView:
    """The view of one group, whose labels are given."""
    if len(group.files) == 1:
        return RankedView(stored.load(group.files[0]), labels, **rest)
    return ViewOfParts(group.files, head, labels, **rest)


def answer(asked: Asked, group: Group, **more: Any) -> tuple[Array, ...]:
    """What is asked, of one group.

    Args:
        asked: the question.
        group: of which labels.
        **more: what the view is made with beside what the question brings.
    """
    labels = asked.labels
    few = labels.some(group.first, group.last)
    rest = {**asked.rest, **more}
    plain = _of_group(asked.head, group, few, rest)
    view: AnyView = plain if asked.draws is None else RankedDraws(plain, asked.draws)
    return ANSWERS[asked.name](view, *asked.given)


class RankedGroups(msgspec.Struct, frozen=True):
    """A ranked tally in files, one or more for each group of consecutive labels.

    Attributes:
        files: those of each group, as :func:`evalengine.tally.stored.save` writes them; of several
            the rows of one stand before those of the next.
        first: label at which each group begins, and the number of labels at the end.
        head: the tally without its rows: variants, cap and precision.
        n_rows: predictions in all files.
        at_once: groups that may be in memory together.
        elsewhere: answers what is asked of groups, outside this process; None where this one does.
    """

    files: tuple[tuple[str, ...], ...]
    first: tuple[int, ...]
    head: Ranked
    n_rows: int
    at_once: int = 1
    elsewhere: Callable[[Asked, Sequence[Group]], list[tuple[Array, ...]]] | None = None

    @property
    def variants(self) -> Variants:
        """Of all rows."""
        return self.head.variants

    def pieces(self) -> Iterator[Ranked]:
        """All rows, those of one file after those of the other."""
        for files in self.files:
            yield from map(stored.load, files)

    def pooled(self, iou: float, key: Array, n_keys: int) -> PooledRanges:
        """The rows by descending score, of every label key by itself, few at a time.

        Args:
            iou: one of the thresholds.
            key: int32 [labels], key of each label.
            n_keys: how many there are.
        """

        def files() -> Iterator[tuple[Ranked, Array]]:
            for names, (first, last) in zip(self.files, pairwise(self.first), strict=True):
                for name in names:
                    yield stored.mapped(name), key[first:last]

        most = max(1, tuning().drawn_bytes // (4 * _POOLED_BYTES))
        return PooledRanges(files, iou, n_keys, self.n_rows, most)

    @property
    def held_pooled(self) -> bool:
        """Whether the rows of all labels together are few enough to hold."""
        return self.n_rows * _POOLED_BYTES <= tuning().drawn_bytes


class GroupedView(RankedView):
    """The view of a ranked tally, group of labels by group of labels.

    Args:
        groups: the tally.
        labels: of the run.
        draws: a block of draws, which are its groups then; see :class:`.RankedDraws`.
        **rest: see :class:`RankedView`.
    """

    def __init__(
        self, groups: RankedGroups, labels: Labels, draws: Draws | None = None, **rest: Any
    ) -> None:
        super().__init__(groups.head, labels, **rest)
        self._groups = groups
        self._draws = draws
        self._rest = rest
        if draws is not None:
            self.n_groups *= len(draws)

    def drawn(self, draws: Draws) -> GroupedView:
        """The view of a block of draws."""
        return GroupedView(self._groups, self.labels, draws, **self._rest)

    def weighing(self, weights: Array) -> GroupedView:
        one = GroupedView(self._groups, self.labels, None, **{**self._rest, "weights": weights})
        one.shared = self.shared
        return one

    def beside(self, name: str) -> Any:
        if self._draws is None:
            return super().beside(name)
        plain = GroupedView(self._groups, self.labels, None, **self._rest).beside(name)
        return None if plain is None else RankedDraws(plain, self._draws)

    @property
    def _of_each(self) -> dict[str, Any]:
        """What views of groups are made with."""
        return {key: value for key, value in self._rest.items() if key not in _WHOLE}

    @property
    def _groups_of_labels(self) -> list[Group]:
        groups = self._groups
        return [
            Group(files, first, last)
            for files, (first, last) in zip(groups.files, pairwise(groups.first), strict=True)
        ]

    def counted_rows(self, iou: float) -> Iterator[CountedRows]:
        if self._draws is not None:
            raise OneByOne
        if ("rows", iou) in self.shared:
            yield from self.shared["rows", iou]
            return
        kept = self._groups.n_rows * _COUNTED_BYTES <= tuning().drawn_bytes
        pieces = []
        for group in self._groups_of_labels:
            few = self.labels.some(group.first, group.last)
            view = _of_group(self._groups.head, group, few, self._of_each)
            for piece in view.counted_rows(iou):
                whole = piece.within(group.first, len(self.labels))
                pieces += [whole] if kept else []
                yield whole
        if kept:
            self.shared["rows", iou] = pieces

    def _pieces(self, iou: float, *, pooled: bool) -> Iterable[CountedRows]:
        if not pooled or self._groups.held_pooled:
            return super()._pieces(iou, pooled=pooled)
        return self._pooled(iou)

    def _pooled(self, iou: float) -> PooledRanges:
        if self._draws is not None:
            raise OneByOne
        return self._groups.pooled(iou, self.labels.key, len(self.labels.key_names))

    def sought(self, iou: float, *, pooled: bool = False) -> Array:
        if not pooled or self._groups.held_pooled:
            return super().sought(iou, pooled=pooled)
        return sought(self._pooled(iou).truths(), self.group, self.n_groups, self.weights)

    def _each(self, name: str, *given: Any) -> tuple[Array, ...]:
        """What an answer makes of every group, joined along the axis of labels."""
        groups = self._groups
        asked = Asked(name, given, groups.head, self.labels, self._of_each, self._draws)
        each = self._groups_of_labels
        if groups.elsewhere is not None:
            made = groups.elsewhere(asked, each)
        elif groups.at_once == 1 or len(each) == 1 or self._draws is not None:
            made = [answer(asked, group, over=self.over) for group in each]
        else:
            with ThreadPoolExecutor(groups.at_once) as threads:
                made = list(threads.map(lambda group: answer(asked, group, over=self.over), each))
        return tuple(np.concatenate(parts, axis=1) for parts in zip(*made, strict=True))

    @cached_property
    def _first_pass(self) -> tuple[Array, ...]:
        return self._each("counted")

    @cached_property
    def n_predictions(self) -> Array:
        return self._first_pass[0]

    @cached_property
    def n_ground_truths(self) -> Array:
        return self._first_pass[1]

    @cached_property
    def positives(self) -> Array:
        return self._first_pass[2]

    @property
    def precision(self) -> Array:
        return self._first_pass[3]

    @property
    def similarity(self) -> Array:
        return self._each("similarity")[0]

    def sampled_with_scores(self, cap: int) -> tuple[Array, Array, Array]:
        first, second, third = self._each("sampled", cap)
        return first, second, third

    def true_positives(self, lowest_score: float | None) -> Array:
        if lowest_score is None:
            return self._first_pass[4]
        return self._each("true positives", lowest_score)[0]

    def counts(self, score_thresholds: tuple[float, ...]) -> tuple[Array, Array]:
        if score_thresholds not in self._counts:
            tp, fp = self._each("counts", score_thresholds)
            self._counts[score_thresholds] = tp, fp
        return self._counts[score_thresholds]


OF_ROWS = ("score", "datum", "row", "rank", "hit", "ignored", "skipped", "tie", "place", "values")
"""Columns of predictions, a row each."""


def of_labels(ranked: Ranked, first: int, last: int) -> Ranked:
    """The rows of some consecutive labels.

    Args:
        ranked: a tally.
        first: first label.
        last: one past the last.
    """
    begin, end = int(ranked.start[first]), int(ranked.start[last])
    gt_begin, gt_end = int(ranked.gt_start[first]), int(ranked.gt_start[last])
    few = of_rows(ranked, (begin, end), (gt_begin, gt_end))
    return msgspec.structs.replace(
        few, start=few.start[first : last + 1], gt_start=few.gt_start[first : last + 1]
    )


def of_rows(ranked: Ranked, rows: tuple[int, int], gt_rows: tuple[int, int]) -> Ranked:
    """Some consecutive rows, of whatever labels.

    Args:
        ranked: a tally.
        rows: first prediction and one past the last.
        gt_rows: likewise of the ground truths.
    """
    (begin, end), (gt_begin, gt_end) = rows, gt_rows
    return msgspec.structs.replace(
        ranked,
        start=np.clip(ranked.start, begin, end) - begin,
        gt_start=np.clip(ranked.gt_start, gt_begin, gt_end) - gt_begin,
        **{name: getattr(ranked, name)[..., begin:end] for name in OF_ROWS},
        **{
            name: getattr(ranked, name)[..., gt_begin:gt_end]
            for name in ("gt_datum", "gt_row", "gt_counted")
        },
    )


def without_rows(ranked: Ranked) -> Ranked:
    """A tally without its rows: variants, cap and precision."""
    last = ranked.n_labels
    none = of_labels(ranked, last, last)
    zeros = np.zeros(last + 1, np.int64)
    return msgspec.structs.replace(none, start=zeros, gt_start=zeros)


def merge_groups(parts: list[Ranked], before: int = 0) -> Ranked:
    """One group of labels of all parts, whose labels have the same codes; rows have no numbers.

    Args:
        parts: rows of the same labels, of disjoint sets of datums; datums have the codes of the
            whole (:func:`with_datums`).
        before: rows of the one label that stand before these, in other groups.
    """
    from .merging import merge_ranked

    n_labels = parts[0].n_labels
    labels = [np.arange(n_labels, dtype=np.int32)] * len(parts)
    return merge_ranked(parts, None, labels, n_labels, before)


def with_datums(ranked: Ranked, codes: Array) -> Ranked:
    """The rows with other codes of their datums.

    Args:
        ranked: a tally.
        codes: int32 [datums], new code of each old one.
    """
    return msgspec.structs.replace(
        ranked, datum=codes[ranked.datum], gt_datum=codes[ranked.gt_datum]
    )
