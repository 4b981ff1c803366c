"""Views of units and scored labels that stand in files, in the order of a run in memory.

Sums over units go on from file to file, sums over scores from slab to slab; those of weights are
exact, so that each is what all rows in memory give.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from ..kernels.carried_pairs import no_pairs, pairs_in_all, pairs_onward
from ..kernels.carried_points import last_points, no_points, points_onward
from ..kernels.carried_sums import SumsCarried, no_sums, reached_in_all, sums_onward
from ..kernels.carried_wins import no_wins, wins_in_all, wins_onward
from ..kernels.order import group_rows
from . import stored
from .datums import Datums
from .pooled import keys_as_labels
from .score_rows import ScoreRows
from .scored_view import ScoredView
from .sorted_scores import HIT, N_OUTCOMES, OTHER, STRAY, Points, Sorted
from .unit_blocks import UnitBlock

Array = np.ndarray[Any, Any]


DATUMS = "datums"
"""Name of the thing in a bucket's file that holds its tally of whole datums."""


class Filed(msgspec.Struct, frozen=True):
    """Files of a tally, and what is counted of them.

    Attributes:
        units: files of units, in their order.
        scores: files of scored labels by rising label and score.
        pooled: the same by label key in place of label; empty where no metric needs them.
        counts: of units: ``units``, ``judged`` with a truth, ``known`` with a truth or a
            prediction, ``weightless`` with a weight of 0; and ``datums``.
        alone: whether every datum has one unit.
        wholes: files of buckets that hold their tallies, where frames show single datums, and the
            name of each bucket in ``codes``; none where no frame does.
        codes: file of the codes that groups of each bucket have in the whole.
    """

    units: tuple[str, ...]
    scores: tuple[str, ...]
    pooled: tuple[str, ...]
    counts: dict[str, int]
    alone: bool
    wholes: tuple[tuple[str, str], ...] = ()
    codes: str = ""

    def blocks(self) -> Iterator[UnitBlock]:
        """The units of each file, in their order."""
        for file in self.units:
            yield stored.load(file)

    def whole_datums(self) -> Iterator[tuple[Any, tuple[Array, ...]]]:
        """The tally of each bucket, which has all rows of its datums, and the codes its groups have
        in the whole.
        """
        for file, name in self.wholes:
            (part,) = stored.load_several(file, [DATUMS])
            (maps,) = stored.load_several(self.codes, [name])
            yield part, maps


class GroupsByCode(msgspec.Struct, frozen=True):
    """Groups of one slice column, whose codes stand beside the rows.

    Attributes:
        column: place among the slice columns.
        first: the code that counts as 0.
        last: one past the last that counts.
    """

    column: int
    first: int
    last: int

    def within(self, first: int, last: int) -> GroupsByCode:
        """Some of the groups, counted from 0."""
        return msgspec.structs.replace(self, first=self.first + first, last=self.first + last)

    def of(self, codes: tuple[Array, ...]) -> Array:
        """Group of each row, int32 [n], -1 for none.

        Args:
            codes: group of each row in every slice column.
        """
        code = codes[self.column]
        inside = (code >= self.first) & (code < self.last)
        return np.where(inside, code - self.first, -1).astype(np.int32)


class FiledDatums(Datums, frozen=True, dict=True):
    """The datums of a run whose ids and slices are beside the rows in files.

    Attributes:
        kind: dtype of ids.
        names: groups of each slice column.
    """

    kind: Any = None
    names: tuple[list[str], ...] = ()

    @property
    def id(self) -> pl.Series:
        """Refused: ids order rows in files, and are shown nowhere."""
        raise RuntimeError("ids of datums are in files: this frame needs all of them at once")

    @property
    def id_dtype(self) -> pl.DataType:
        found: pl.DataType = self.kind
        return found

    def groups(self, column: str) -> tuple[GroupsByCode, list[str]]:  # type: ignore[override]
        """Groups of all datums, and their names, as :meth:`Datums.groups` has them."""
        place = self.slices.columns.index(column)
        return GroupsByCode(place, 0, len(self.names[place])), self.names[place]


class Walked(NamedTuple):
    """Rows as kernels walk over them.

    Attributes:
        start: int64 [l + 1], CSR offsets of the labels.
        group: int32 [n], -1 for none; None for one group of all.
        outcome: uint8 [n].
        score: float64 [n], ascending within a label.
        weight: float64 [n]; None for 1 each.
    """

    start: Array
    group: Array | None
    outcome: Array
    score: Array
    weight: Array | None


class BlockView(ScoredView):
    """The view of a block of units, which knows of their scored labels what sums over units need.

    Args:
        block: the units.
        *rest: see :class:`ScoredView`; scored labels come without rows.
        **more: likewise.
    """

    def __init__(self, block: UnitBlock, *rest: Any, **more: Any) -> None:
        super().__init__(block.units, *rest, **more)
        self.known_units = np.flatnonzero(block.known)
        self.leads = np.flatnonzero(block.leads)
        self._more = block.more

    @property
    def samples(self) -> tuple[Array, Array, Array]:
        right, predicted, actual = (self._more[n] for n in ("right", "predicted", "actual"))
        return right, predicted, actual

    @property
    def confidence(self) -> tuple[Array, Array]:
        if "confidence" in self._more:
            return self._more["confidence"], self._more["sure"]
        return super().confidence

    @property
    def sample_areas(self) -> tuple[Array, Array]:
        return self._more["roc"], self._more["precision"]


class FiledView(ScoredView):
    """The view of a tally in files.

    Args:
        filed: the files.
        *rest: see :class:`ScoredView`; units and scored labels come without rows.
        group: of every row; None for one group of all.
        weighted: whether units' weights count, where they have any.
        **more: see :class:`ScoredView`.
    """

    def __init__(
        self,
        filed: Filed,
        *rest: Any,
        group: GroupsByCode | None = None,
        weighted: bool = True,
        **more: Any,
    ) -> None:
        super().__init__(*rest, **more)
        if self.weights is not None:
            raise RuntimeError("a tally in files has no rows to draw from")
        self._filed = filed
        self._groups = group
        self._weighs = weighted and self.units.weight is not None
        if not self._weighs:
            self.units = msgspec.structs.replace(self.units, weight=None)
        self._more = {k: v for k, v in more.items() if k not in ("n_groups", "weights")}
        self._files = filed.scores

    @cached_property
    def plain(self) -> FiledView:
        if not (self._weighs and self._filed.counts["weightless"]):
            return self
        return FiledView(
            self._filed,
            self.units,
            self.scored,
            self.labels,
            group=self._groups,
            weighted=False,
            n_groups=self.n_groups,
            **self._more,
        )

    # -- units ---------------------------------------------------------------------------------

    def blocks(self) -> Iterator[BlockView]:
        """Views of the units of each file, in their order."""
        for block in self._filed.blocks():
            if not self._weighs:
                units = msgspec.structs.replace(block.units, weight=None)
                block = msgspec.structs.replace(block, units=units)
            yield BlockView(
                block,
                self.scored,
                self.labels,
                group=None if self._groups is None else self._groups.of(block.codes),
                n_groups=self.n_groups,
                **self._more,
            )

    def whole_datums(self) -> Iterator[tuple[Any, Array | None]]:
        """The tally of each bucket, and the group of each of its datums as views take them."""
        for part, maps in self._filed.whole_datums():
            group = None
            if self._groups is not None:
                at = self._groups.column
                own, _ = part.datums.groups(part.datums.slices.columns[at])
                group = msgspec.structs.replace(self._groups, column=0).of((maps[at][own],))
            yield part, group

    @property
    def _known_and_judged(self) -> tuple[int, int]:
        return self._filed.counts["known"], self._filed.counts["judged"]

    @property
    def _all_true(self) -> bool:
        return self._filed.counts["judged"] == self._filed.counts["units"] > 0

    @property
    def _one_unit_each(self) -> bool:
        return self._filed.alone

    # -- scored labels -------------------------------------------------------------------------

    def _walked(self, file: str) -> Walked:
        """The rows of one file, as kernels take them."""
        rows: ScoreRows = stored.load(file)
        return Walked(
            rows.start,
            None if self._groups is None else self._groups.of(rows.codes),
            rows.outcome,
            rows.score.astype(np.float64, copy=False),
            rows.weight if self._weighs else None,
        )

    def _labelled(self, by_segment: Array) -> Array:
        """[groups * labels * ..., ...] to [group, label, ...]."""
        return by_segment.reshape(*self.shape, *by_segment.shape[1:])

    def _sums(self, thresholds: Array) -> SumsCarried:
        n_groups, n_labels = self.shape
        carried = no_sums(n_groups * n_labels * N_OUTCOMES, thresholds.size, weighted=self._weighs)
        for file in reversed(self._files):
            sums_onward(*self._walked(file), N_OUTCOMES, thresholds, carried)
        return carried

    @cached_property
    def _by_outcome(self) -> Array:
        """(Weighted) rows, float64 [group, label, outcome]."""
        return self._sums(np.zeros(0)).total.reshape(*self.shape, N_OUTCOMES)

    @cached_property
    def listed(self) -> tuple[Array, Array, Array]:
        total = self._by_outcome
        return total[..., HIT], total[..., OTHER], total[..., STRAY]

    def reached(self, thresholds: tuple[float, ...]) -> tuple[Array, Array, Array]:
        if thresholds not in self._reached:
            assert self.scored is not None
            carried = self._sums(np.array([self.scored.comparable(t) for t in thresholds]))
            shape = (*self.shape, N_OUTCOMES)
            if "_by_outcome" not in self.__dict__:
                self.__dict__["_by_outcome"] = carried.total.reshape(shape)
            found = reached_in_all(carried).reshape(*shape, len(thresholds))
            self._reached[thresholds] = found[:, :, HIT], found[:, :, OTHER], found[:, :, STRAY]
        return self._reached[thresholds]

    @property
    def sorted(self) -> Sorted:
        """Refused: scores are in files."""
        raise RuntimeError("scores are in files: this metric needs all of them at once")

    @property
    def _won(self) -> Array:
        n_groups, n_labels = self.shape
        carried = no_wins(n_groups * n_labels, weighted=self._weighs)
        for file in self._files:
            wins_onward(*self._walked(file), carried)
        won = self._labelled(wins_in_all(carried))
        return won if self._weighs else won / 2

    def won_between(self) -> tuple[Array, Array]:
        n_groups, n = self.shape
        carried = no_pairs(n_groups, n, weighted=self._weighs)
        for file in self._files:
            rows, truth = self._walked(file), self._truth_of(file)
            pairs_onward(rows.start, rows.group, truth, rows.score, rows.weight, carried)
        # Segments (group and true label, label).
        sums = no_sums(n_groups * n * n, 0, weighted=self._weighs)
        for file in reversed(self._files):
            rows, truth = self._walked(file), self._truth_of(file)
            group = np.int32(0) if rows.group is None else rows.group
            both = np.where((group < 0) | (truth < 0), -1, group * n + truth)
            alike = np.zeros(truth.size, np.uint8)
            sums_onward(rows.start, both, alike, rows.score, rows.weight, 1, np.zeros(0), sums)
        won = pairs_in_all(carried).reshape(n_groups, n, n)
        listed = sums.total.reshape(n_groups, n, n).swapaxes(1, 2)
        return won if self._weighs else won / 2, listed

    @staticmethod
    def _truth_of(file: str) -> Array:
        """The true label of each row's unit of one file, int32 [n], -1 for none."""
        rows: ScoreRows = stored.load(file)
        assert rows.truth is not None
        return rows.truth

    def point_blocks(self) -> Iterator[Points]:
        n = self.shape[0] * self.shape[1]
        carried = no_points(n, weighted=self._weighs)
        for file in reversed(self._files):
            yield _by_segment(points_onward(*self._walked(file), carried), n)
        yield _by_segment(last_points(carried), n)

    @cached_property
    def points(self) -> Points:
        blocks = list(self.point_blocks())
        segment = np.concatenate(
            [np.repeat(np.arange(b.start.size - 1), np.diff(b.start)) for b in blocks]
        )
        columns = (
            np.concatenate([getattr(b, name) for b in blocks]) for name in ("threshold", "tp", "fp")
        )
        return _by_segment((segment, *columns), blocks[0].start.size - 1)

    @cached_property
    def pooled(self) -> ScoredView:
        return _FiledPooled(self)


def _by_segment(found: tuple[Array, ...], n: int) -> Points:
    """Points by segment, in the order in which they come within each."""
    segment, threshold, tp, fp = found
    start = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(segment, minlength=n), out=start[1:])
    if (segment[1:] >= segment[:-1]).all():  # one group, in which labels follow one another
        return Points(start, threshold, tp, fp)
    # Counted into their places: a sort of this many points would cost more than their walk.
    one, each = np.array([0, segment.size]), np.arange(segment.size, dtype=np.int32)
    _, order = group_rows(one, each, segment.astype(np.int32), n)
    return Points(start, threshold[order], tp[order], fp[order])


class _FiledPooled(FiledView):
    """The labels of each key as one label, in files, as :class:`~.pooled.Pooled` has them."""

    def __init__(self, view: FiledView) -> None:
        assert view.scored is not None
        labels = keys_as_labels(view.labels)
        scored = msgspec.structs.replace(
            view.scored,
            only=int(view.labels.key[view.scored.only]) if not view.scored.several else -1,
            labels=np.ones(len(labels), bool),
        )
        super().__init__(
            view._filed,
            view.units,
            scored,
            labels,
            group=view._groups,
            weighted=view._weighs,
            n_groups=view.n_groups,
            decision=view.decision,
            over=view.over,
        )
        self._files = view._filed.pooled
        self.positives, self.negatives = view.classes_of_keys
