"""Ranked tallies on disk, processed one group of labels at a time.

Every array of a view has a label axis, and labels are independent, so that results per group are
concatenated along that axis. A label with more rows than memory allows has several files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from ..kernels.average_precision import Carried, nothing_carried
from ..schemas.arrays import Array
from ..schemas.tuning import tuning
from . import stored
from .datums import Labels
from .draws import Draws, OneByOne
from .ranked import Ranked, Variants
from .ranked_points import CountedRows, counted_rows, pooled_rows, sought
from .ranked_view import LeaveOut, RankedDraws, RankedView

# Ranked rows of a label in several files. Precision at recall levels needs a forward pass that
# records the counts before each file, and a backward pass.


class ViewOfParts(RankedView):
    """View of a ranked tally in several files, one of which is in memory at a time.

    Args:
        files: written by :func:`evalengine.tally.stored.save`, in the order of their rows.
        head: the tally without its rows.
        labels: labels in the files.
        **rest: see :class:`RankedView`.
    """

    def __init__(self, files: Sequence[str], head: Ranked, labels: Labels, **rest: Any) -> None:
        super().__init__(head, labels, **rest)
        self._files = files
        self._rest = rest

    def _view(self, file: str) -> RankedView:
        """Load the view of one file, without caching it."""
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
            before.append([Carried(*(array.copy() for array in one)) for one in carried])
            for _, _, true in counted:
                true[:] = 0
            self._view(file).walked(leave_out, caps, positives, levels, counted, carried)
            for one, (_, _, true), (_, _, every) in zip(carried, counted, out, strict=True):
                one.right[:] += true[:, -1]
                every[:] += true
        if precision:
            # The backward pass overwrites true positives of single files, so give it a scratch
            # array.
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


# Ranked rows of all labels of a key, pooled by ranges of scores that fit into memory.


Files = Callable[[], Iterable[tuple[Ranked, Array]]]
"""Gives the files, and int32 [labels] the key of each label of one."""

_SAMPLED = 1 << 20
"""Scores that are looked at to find the cuts, about."""


class PooledRanges(msgspec.Struct, frozen=True):
    """Rows by key, in blocks of descending scores; iterable repeatedly.

    Attributes:
        files: the rows.
        iou: one of their thresholds.
        n_keys: number of keys.
        n_rows: predictions in all files.
        most: approximate rows per block; rows of one file with equal scores may exceed it.
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
        """Return descending scores that split rows into about equal blocks, from a sample."""
        every = max(1, min(self.n_rows // _SAMPLED, self.most // 4))
        sample = np.sort(np.concatenate([one.score[::every] for one, _ in self.files()]))[::-1]
        step = max(1, self.most // every)
        return list(dict.fromkeys(sample[step::step].tolist()))

    def _some(self, ranked: Ranked, key: Array, first: Array, last: Array) -> CountedRows:
        """Rows of every label from one place to another, by key."""
        rows = counted_rows(_without(ranked, first, last, truths=False), self.iou)
        return pooled_rows([rows], key, self.n_keys)


def _around(ranked: Ranked, cut: float | None) -> tuple[Array, Array]:
    """Return, per label, the first row at a score and the first below it, int64 [labels] each.

    Without a score, both are the end.
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


_POOLED_BYTES = 40  # per prediction while the rows of all labels are merged
_COUNTED_BYTES = 24  # per counted prediction with its ground truths, in memory


class Group(msgspec.Struct, frozen=True):
    """Consecutive labels with separate files.

    Attributes:
        files: written by :func:`evalengine.tally.stored.save`; rows of one precede those of the
            next.
        first: the first label.
        last: one past the last.
    """

    files: tuple[str, ...]
    first: int
    last: int


class Asked(msgspec.Struct, frozen=True):
    """A query of a view to every group, self-contained so that workers can answer it.

    Attributes:
        name: one of :data:`ANSWERS`.
        given: its arguments.
        head: the tally without its rows.
        labels: labels of the run.
        rest: arguments of :class:`~evalengine.tally.ranked_view.RankedView`.
        draws: block of resamples; None for the tally without resampling.
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
"""Arguments used only by a view of all labels; threads differ per process."""

ANSWERS: dict[str, Callable[..., tuple[Array, ...]]] = {
    "counted": _counted,
    "sampled": _sampled,
    "similarity": _similarity,
    "true positives": _true_positives,
    "counts": _counts,
}
"""Functions of the view of one group, of arrays whose second axis is that of labels."""


def _of_group(head: Ranked, group: Group, labels: Labels, rest: dict[str, Any]) -> RankedView:
    if len(group.files) == 1:
        return RankedView(stored.load(group.files[0]), labels, **rest)
    return ViewOfParts(group.files, head, labels, **rest)


def answer(asked: Asked, group: Group, **more: Any) -> tuple[Array, ...]:
    """Answer a query for one group.

    Args:
        **more: view arguments in addition to those of the query.
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
        files: files of each group, written by :func:`evalengine.tally.stored.save`; rows of one
            precede those of the next.
        first: first label of each group, then the number of labels.
        head: the tally without its rows: variants, cap and precision.
        n_rows: predictions in all files.
        at_once: number of groups that may be in memory together.
        elsewhere: runs queries outside this process; None to run them here.
    """

    files: tuple[tuple[str, ...], ...]
    first: tuple[int, ...]
    head: Ranked
    n_rows: int
    at_once: int = 1
    elsewhere: Callable[[Asked, Sequence[Group]], list[tuple[Array, ...]]] | None = None

    @property
    def variants(self) -> Variants:
        """Variants of all rows."""
        return self.head.variants

    def pieces(self) -> Iterator[Ranked]:
        """All rows, those of one file after those of the other."""
        for files in self.files:
            yield from map(stored.load, files)

    def pooled(self, iou: float, key: Array, n_keys: int) -> PooledRanges:
        """Return rows by descending score for every label key, in blocks.

        Args:
            key: int32 [labels], key of each label.
        """

        def files() -> Iterator[tuple[Ranked, Array]]:
            for names, (first, last) in zip(self.files, pairwise(self.first), strict=True):
                for name in names:
                    yield stored.mapped(name), key[first:last]

        most = max(1, tuning().drawn_bytes // (4 * _POOLED_BYTES))
        return PooledRanges(files, iou, n_keys, self.n_rows, most)

    @property
    def held_pooled(self) -> bool:
        """Return True if the rows of all labels together fit in memory."""
        return self.n_rows * _POOLED_BYTES <= tuning().drawn_bytes


class GroupedView(RankedView):
    """View of a ranked tally, processed one group of labels at a time.

    Args:
        groups: the tally.
        labels: labels of the run.
        draws: block of resamples, which then become the view's groups; see :class:`.RankedDraws`.
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
        """Return the view of a block of resamples."""
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
        """Arguments of the views per group."""
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
        """Run a query on every group and concatenate the results along the label axis."""
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
    """Select the rows of consecutive labels ``first`` to ``last - 1``."""
    begin, end = int(ranked.start[first]), int(ranked.start[last])
    gt_begin, gt_end = int(ranked.gt_start[first]), int(ranked.gt_start[last])
    few = of_rows(ranked, (begin, end), (gt_begin, gt_end))
    return msgspec.structs.replace(
        few, start=few.start[first : last + 1], gt_start=few.gt_start[first : last + 1]
    )


def of_rows(ranked: Ranked, rows: tuple[int, int], gt_rows: tuple[int, int]) -> Ranked:
    """Select consecutive rows of any labels.

    Args:
        rows: first prediction and one past the last.
        gt_rows: same for the ground truths.
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
    """Merge one group of labels over all parts; labels have equal codes, rows have no numbers.

    Args:
        parts: rows of the same labels, of disjoint sets of datums, with datum codes of the whole
            (:func:`with_datums`).
        before: rows of the single label that precede these, in other groups.
    """
    from .merging import merge_ranked

    n_labels = parts[0].n_labels
    labels = [np.arange(n_labels, dtype=np.int32)] * len(parts)
    return merge_ranked(parts, None, labels, n_labels, before)


def with_datums(ranked: Ranked, codes: Array) -> Ranked:
    """Replace the datum codes of the rows.

    Args:
        codes: int32 [datums], new code of each old one.
    """
    return msgspec.structs.replace(
        ranked, datum=codes[ranked.datum], gt_datum=codes[ranked.gt_datum]
    )
