"""Views of scored labels by groups of datums, also under resample weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import msgspec
import numpy as np

from ..kernels.datums import on_grid
from ..kernels.labels import HIT, N_OUTCOMES, OTHER, STRAY, HardWeights, count_hard, weigh_hard
from ..kernels.order import partition
from ..kernels.scores import (
    Drawing,
    drawn_precisions,
    drawn_wins,
    first_reaching,
    points,
    weights_reaching,
    wins,
)
from ..kernels.sums import ExactSums
from ..schemas.arrays import Array
from .datums import Labels, Lazy, keys_as_labels
from .draws import Draws, OneByOne, Uncounted, by_draw, finite_step
from .draws import Summands as DrawnSummands
from .ranked_points import Points
from .sorted_scores import (
    DrawnWeights,
    HardCounts,
    OrderedRows,
    Sorted,
    Summands,
    UnitView,
    areas_between,
    average_precision,
    merge_score_runs,
    points_in_blocks,
    room,
    sample_areas,
    sort_segments,
    sorted_by_counts,
    sorted_by_truth,
    wins_of_groups,
    with_unlisted,
)
from .stored import Parts
from .units import GridCounts, Scored, Units

_PIECE = 1 << 20  # rows at a time
_FEW_THRESHOLDS = 4  # that are compared with all scores one by one

# Positives and negatives per label, the denominators of all ratios.


def _truths(few: UnitClasses) -> Summands:
    """True labels of units that may have several."""
    unit, label = few.units.truth_rows()
    return unit, label, len(few.labels), None


def _leads(few: UnitClasses) -> Summands:
    return few.leads, np.zeros(few.leads.size, np.int64), 1, None


class UnitClasses(UnitView):
    """Units by their true and predicted labels; arrays have leading axes [group, label] or key.

    Sums of weights are exact, and so are their differences: each is rounded once.

    Args:
        units: every unit.
        scored: its scored labels, or None without scores.
        labels: meaning of label codes.
        **grouping: see :class:`.datums.View`.
    """

    def __init__(
        self, units: Units, scored: Scored | None, labels: Labels, **grouping: Any
    ) -> None:
        super().__init__(units, labels, **grouping)
        self.scored = scored

    @property
    def shape(self) -> tuple[int, int]:
        """Groups and labels."""
        return self.n_groups, len(self.labels)

    @Lazy
    def _hard(self) -> tuple[Array, Array, Array, Array]:
        """Right, judged, stray and actual labels of units with one truth at most."""
        if self.unit_weight is not None:
            right, judged, stray, actual = (s.rounded().reshape(self.shape) for s in self._weighed)
            return right, judged, stray, actual
        right, judged, stray, actual = np.zeros((4, *self.shape))
        for few in self.blocks():
            truth, hard, datum, group = few._hard_inputs
            count_hard(truth, hard, datum, group, (right, judged, stray, actual))
        return right, judged, stray, actual

    @Lazy
    def _weighed(self) -> HardWeights:
        """The same as exact sums of weights."""
        sums = HardWeights(*(ExactSums(self.shape[0] * self.shape[1]) for _ in range(4)))
        for few in self.blocks():
            truth, hard, datum, group = few._hard_inputs
            weigh_hard(truth, hard, datum, group, few.unit_weight, sums, len(self.labels))
        return sums

    @property
    def _hard_inputs(self) -> tuple[Array, Array, Array | None, Array | None]:
        """Return the inputs for counting hard predictions: truth, prediction, datum, group."""
        units = self.units
        hard = np.zeros(0, np.int32) if units.hard is None else units.hard
        return units.truth, hard, units.datum, self.group

    @Lazy
    def positives(self) -> Array:
        """(Weighted) true labels, float64 [group, label]."""
        if self.unit_weight is not None:
            return self._positive_sums.rounded().reshape(self.shape)
        if self.units.truth_start is None:
            return self._hard[3]
        return self.added(_truths, len(self.labels))

    @Lazy
    def _positive_sums(self) -> ExactSums:
        """Weight of true labels, cells of [group, label]."""
        if self.units.truth_start is None:
            return self._weighed.actual
        return self._exact(_truths, len(self.labels))

    def _exact(self, pick: Callable[[Any], Summands], width: int) -> ExactSums:
        """Weights of the units of all blocks, cells of [group, width]."""
        sums = self.sums_of(pick)
        return sums if isinstance(sums, ExactSums) else ExactSums(self.n_groups * width)

    @property
    def _of_key(self) -> Array:
        """The place in [group, key] of every label in [group, label], int64."""
        n_keys = len(self.labels.key_names)
        return (np.arange(self.n_groups)[:, None] * n_keys + self.labels.key).ravel()

    @Lazy
    def judged_units(self) -> Array:
        """Units that have a truth, int64 [m].

        For multi-label data, also those with a prediction: they have the empty set of true labels.
        """
        if self.units.truth_start is not None:
            return self.present_units
        return np.flatnonzero(self.units.n_truths > 0)

    @Lazy
    def judged(self) -> Array:
        """(Weighted) units of ``judged_units``, float64 [group, key]."""
        if self.unit_weight is not None:
            return self._by_key(self._judged_sums)
        if self.units.truth_start is not None:
            return self.summed(lambda few: (few.judged_units, None))
        out = np.zeros((self.n_groups, len(self.labels.key_names)))
        for k in range(out.shape[1]):
            out[:, k] = self.positives[:, self.labels.key == k].sum(axis=1)
        return out

    @Lazy
    def _judged_sums(self) -> ExactSums:
        """Weight of the units of ``judged_units``, cells of [group, key]."""
        n_keys = len(self.labels.key_names)
        if self.units.truth_start is None:
            return self._positive_sums.gathered(self._of_key, self.n_groups * n_keys)
        return self._exact(lambda few: few.keyed(few.judged_units, None), n_keys)

    def _by_key(self, sums: ExactSums) -> Array:
        return sums.rounded().reshape(self.n_groups, len(self.labels.key_names))

    @Lazy
    def present_datums(self) -> Array:
        """(Weighted) datums with a truth or a prediction of any key, float64 [group]."""
        if self.unit_weight is not None:
            return self._present_sums.rounded()
        if self._one_unit_each:
            return self.every.sum(axis=1)
        return self.added(_leads, 1)[:, 0]

    @Lazy
    def _present_sums(self) -> ExactSums:
        """Weight of the datums of ``present_datums``, cells of [group]."""
        if self._one_unit_each:
            group = np.repeat(np.arange(self.n_groups), len(self.labels.key_names))
            return self._every_sums.gathered(group, self.n_groups)
        return self._exact(_leads, 1)

    @Lazy
    def _one_unit_each(self) -> bool:
        """True if every datum has one unit."""
        return all(few.units.datum is None for few in self.blocks())

    @Lazy
    def leads(self) -> Array:
        """The first unit of every datum with a truth or a prediction, int64 [m]."""
        unit = self.present_units
        return unit[np.unique(self.units.datum_of(unit), return_index=True)[1]]

    @Lazy
    def present_units(self) -> Array:
        """Units that have a truth or a prediction, or a row of one table of both, int64 [m]."""
        if self.units.by_row:
            return np.arange(len(self.units))
        present = self.units.n_truths > 0
        if self.scored is not None:
            grid, unit = self.scored.grid, self.scored.unit
            unit = unit if grid is None else grid.unit
            present[slice(None) if unit is None else unit] = True
        if self.units.hard is not None:
            present |= self.units.hard >= 0
        return np.flatnonzero(present)

    @Lazy
    def every(self) -> Array:
        """(Weighted) units that have a truth or a prediction, float64 [group, key]."""
        if self.unit_weight is not None:
            return self._by_key(self._every_sums)
        if self.units.truth_start is None and self._all_true:
            return self.judged  # one cheap pass instead of lists of all units
        n_present, judged = self._present_and_judged
        if n_present == judged:
            return self.judged
        return self.summed(lambda few: (few.present_units, None))

    @Lazy
    def _every_sums(self) -> ExactSums:
        """Weight of the units of ``every``, cells of [group, key]."""
        if self.units.truth_start is None and self._all_true:
            return self._judged_sums
        n_keys = len(self.labels.key_names)
        return self._exact(lambda few: few.keyed(few.present_units, None), n_keys)

    def rest(self, *, of_datums: bool = False) -> Array:
        """Return (weighted) units of ``every`` without the label as truth, float64 [group, label].

        Args:
            of_datums: use ``present_datums`` instead of ``every``.
        """
        n_labels = len(self.labels)
        if self.unit_weight is None:
            every = self.present_datums[:, None] if of_datums else self.every[:, self.labels.key]
            return every - self.positives
        place = np.repeat(np.arange(self.n_groups), n_labels) if of_datums else self._of_key
        sums = (self._present_sums if of_datums else self._every_sums).select(place)
        return sums.merge(self._positive_sums, sign=-1).rounded().reshape(self.shape)

    @Lazy
    def _all_true(self) -> bool:
        """True if there are units, and all have a truth; only for at most one truth per unit."""
        lowest = [few.units.truth.min() for few in self.blocks() if few.units.truth.size]
        return bool(lowest) and min(lowest) >= 0

    @Lazy
    def _present_and_judged(self) -> tuple[int, int]:
        """Units that have a truth or a prediction, and those of ``judged_units``."""
        sizes = [(few.present_units.size, few.judged_units.size) for few in self.blocks()]
        return sum(n for n, _ in sizes), sum(judged for _, judged in sizes)

    @Lazy
    def negatives(self) -> Array:
        """(Weighted) units with a truth of the key that is not the label, [group, label]."""
        if self.unit_weight is not None:
            return self._negative_sums.rounded().reshape(self.shape)
        return self.judged[:, self.labels.key] - self.positives

    @Lazy
    def _negative_sums(self) -> ExactSums:
        """Weight of the units of ``negatives``, cells of [group, label]."""
        return self._judged_sums.select(self._of_key).merge(self._positive_sums, sign=-1)

    @Lazy
    def classes_of_keys(self) -> tuple[Array, Array]:
        """Return (weighted) positives of all labels of a key, and negatives of its scored labels.

        Both float64 [group, key].
        """
        assert self.scored is not None
        keys = self.labels.key[:, None] == np.arange(len(self.labels.key_names))
        if self.unit_weight is None:
            return self.positives @ keys, (self.negatives * self.scored.labels) @ keys
        cells = self.n_groups * keys.shape[1]
        positives = self._positive_sums.gathered(self._of_key, cells)
        scored = np.where(np.tile(self.scored.labels, self.n_groups), self._of_key, -1)
        negatives = self._negative_sums.gathered(scored, cells)
        return self._by_key(positives), self._by_key(negatives)


class ScoredView(UnitClasses):
    """Units and scored labels by groups of datums; arrays have leading axes [group, label].

    In memory there is one block; otherwise each bucket is a block, and the scores of all blocks
    are merged.

    Args:
        units: every unit; without rows if they are in files.
        scored: its scored labels, or None without scores; without rows if they are in files.
        labels: meaning of label codes.
        parts: the files; None in memory.
        declared: bool [l], labels declared by the user, or None.
        order: int32 [l], position of each label among the declared ones, -1 for others; or None.
        decision: score from which a label counts as predicted, if argmax does not decide; float64
            [label] if labels differ.
        **grouping: see :class:`.datums.View`.
    """

    def __init__(
        self,
        units: Units,
        scored: Scored | None,
        labels: Labels,
        *,
        parts: Parts | None = None,
        declared: Array | None = None,
        order: Array | None = None,
        decision: float | Array = 0.5,
        **grouping: Any,
    ) -> None:
        super().__init__(units, scored, labels, **grouping)
        self.parts = parts
        if parts is not None:
            self.refuse_draws()
        self.declared = declared
        self.order = order
        self.decision = decision
        self.whole_rows: int | None = None  # of the run that the rows are a part of
        self._reached: dict[tuple[float, ...], tuple[Array, Array, Array]] = {}

    def like(self, units: Units, scored: Scored | None, **changes: Any) -> ScoredView:
        """Return a view of other rows, by the same groups unless changed."""
        names = ("declared", "order", "decision", "over", "group", "n_groups", "weights")
        return ScoredView(
            units, scored, self.labels, **{name: getattr(self, name) for name in names} | changes
        )

    def blocks(self) -> Iterator[ScoredView]:
        """Yield views of the buckets."""
        if self.parts is None:
            yield self
            return
        for few, _ in self.keyed_blocks():
            yield few

    def keyed_blocks(self) -> Iterator[tuple[ScoredView, Array | None]]:
        """Yield views of the buckets, and the resample keys of their datums; None in memory."""
        if self.parts is None:
            yield self, None
            return
        for part in self.parts:
            units = part.rows.units
            if self.units.weight is None:
                units = msgspec.structs.replace(units, weight=None)
            group = None if self.group is None else self.group.of(part)
            few = self.like(units, part.rows.wide, group=group)
            few.whole_rows = self.parts.scores
            yield few, part.keys

    @Lazy
    def plain(self) -> ScoredView:
        """View without sample weights if some of them are 0; otherwise the view unchanged.

        It separates presence from weight: a datum of weight 0 still has labels. Resampling stays: a
        datum outside the resample is absent.
        """
        if self.units.weight is None:
            return self
        for few in self.blocks():
            if not np.all(few.units.weight):
                unweighted = msgspec.structs.replace(self.units, weight=None)
                return self.like(unweighted, self.scored, parts=self.parts)
        return self

    @property
    def limits(self) -> Array:
        """The score from which each label counts as predicted, float64 [label]."""
        assert self.scored is not None
        thresholds = np.broadcast_to(np.asarray(self.decision, np.float64), len(self.labels))
        return np.array([self.scored.comparable(float(one)) for one in thresholds])

    @property
    def has_scores(self) -> bool:
        """True if labels can be ranked by scores."""
        return self.scored is not None and self.scored.ranked

    @Lazy
    def samples(self) -> tuple[Array, Array, Array]:
        """Labels that are right, predicted and true, of every unit, float64 [u] each."""
        units, scored = self.units, self.scored
        actual = units.n_truths.astype(np.float64)
        if units.hard is not None or scored is None:
            assert units.hard is not None
            predicted = (units.hard >= 0).astype(np.float64)
            right = ((units.hard == units.truth) & (units.hard >= 0)).astype(np.float64)
            return right, predicted, actual
        limits = self.limits
        label = scored.only if scored.label_codes is None else scored.label_codes
        rows = np.flatnonzero(scored.score >= limits[label])
        unit = rows if scored.unit_codes is None else scored.unit_codes[rows]
        n = len(units)
        predicted = np.bincount(unit, minlength=n).astype(np.float64)
        right = np.bincount(unit, scored.outcome[rows] == HIT, minlength=n)
        return right, predicted, actual

    @Lazy
    def positives(self) -> Array:
        """(Weighted) true labels, float64 [group, label]."""
        scored = self.scored
        binary = self.units.hard is None and len(self.labels) <= 2
        if binary and self.unit_weight is None and scored is not None and not scored.several:
            hits, others, _ = self.listed  # one score a unit: they are counted there
            out: Array = others[:, ::-1].copy()
            out[:, scored.only] = hits[:, scored.only]
            return out
        return super().positives

    @Lazy
    def hard(self) -> HardCounts:
        """Counts of the hard predictions; of labels at the decision threshold without any."""
        if self.units.hard is None:
            at, of_label = np.unique(self.decision, return_inverse=True)
            place = np.broadcast_to(of_label.ravel(), len(self.labels))
            each = np.arange(len(self.labels))
            hits, others, strays = (r[:, each, place] for r in self.reached(tuple(at.tolist())))
            wrong = others + strays
            actual = self.positives
            return HardCounts(
                hits, wrong, hits + wrong, hits + others, actual, actual - hits, others
            )
        right, judged, stray, actual = self._hard
        if self.unit_weight is None:
            predicted = judged + stray
            wrong = predicted - right
            return HardCounts(
                right, wrong, predicted, judged, actual, actual - right, judged - right
            )
        sums = self._weighed
        every = ExactSums(sums.stray.cells).merge(sums.stray).merge(sums.predicted)
        predicted = every.rounded().reshape(self.shape)
        wrong = every.merge(sums.right, sign=-1).rounded().reshape(self.shape)
        missed, mistaken = (
            ExactSums(some.cells)
            .merge(some)
            .merge(sums.right, sign=-1)
            .rounded()
            .reshape(self.shape)
            for some in (sums.actual, sums.predicted)
        )
        return HardCounts(right, wrong, predicted, judged, actual, missed, mistaken)

    @property
    def confidence(self) -> tuple[Array, Array]:
        """Confidence of each unit's prediction, and its correctness, [u] each.

        The score of the best label; for binary tables the positive label's, correct if it is true.
        """
        assert self.scored is not None
        if not self.scored.several:
            return self.scored.score, (self.scored.outcome == HIT).astype(np.float64)
        units = self.units
        assert units.hard_score is not None
        assert units.hard is not None
        right = (units.hard == units.truth) & (units.hard >= 0)
        return np.nan_to_num(units.hard_score, nan=0.0), right.astype(np.float64)

    # -- scored labels -------------------------------------------------------------------------

    @property
    def slots(self) -> Array:
        """Label codes of the segments, int64 [slots]: all labels, or the only one scored."""
        assert self.scored is not None
        if not self.scored.several:
            return np.array([self.scored.only])
        return np.arange(len(self.labels))

    def spread(self, array: Array, fill: float) -> Array:
        """[groups * slots, ...] to [group, label, ...], other labels filled."""
        block = array.reshape(self.n_groups, self.slots.size, *array.shape[1:])
        if self.slots.size == len(self.labels):
            return block
        out = np.full((*self.shape, *array.shape[1:]), fill, array.dtype)
        out[:, self.slots] = block
        return out

    @Lazy
    def ordered_rows(self) -> OrderedRows:
        """Rows sorted by score, shared by all resamples."""
        return OrderedRows(self)

    @Lazy
    def sorted(self) -> Sorted:
        """Scores by (group, slot, outcome), ascending."""
        if self.parts is not None:
            segments = self.n_groups * self.slots.size * N_OUTCOMES
            return self._merged(lambda few: few.run()[0], segments)
        run, ascending = self.run()
        if not ascending:
            sort_segments(run, self.over)
        return run

    def _merged(self, run: Callable[[ScoredView], Sorted], segments: int) -> Sorted:
        """Merge the runs of all files with scored rows.

        Args:
            run: returns the run of a file.
        """
        assert self.parts is not None
        filled = (few for few in self.blocks() if few.scored is not None and len(few.scored))
        return merge_score_runs((run(few) for few in filled), segments, self.parts.place)

    @Lazy
    def keyed_run(self) -> Sorted:
        """Merged run of all files, with the weight and the resample key of each row."""
        assert self.parts is not None

        def runs() -> Iterator[Sorted]:
            for few, keys in self.keyed_blocks():
                if few.scored is not None and len(few.scored):
                    assert keys is not None
                    rows = few.ordered_rows
                    key = keys[rows.datum]
                    yield msgspec.structs.replace(rows.sorted, weight=rows.own, key=key)

        return merge_score_runs(
            runs(), self.n_groups * self.slots.size * N_OUTCOMES, self.parts.place
        )

    @Lazy
    def row_step(self) -> float | None:
        """Step of the grid of the weights of scored rows; None without any."""
        if self.units.weight is None:
            return None
        filled = (few for few in self.blocks() if few.scored is not None and len(few.scored))
        units = ((few.units.weight, few.scored.unit_codes) for few in filled if few.scored)
        return grid_of(own if unit is None else own[unit] for own, unit in units if own is not None)

    @Lazy
    def own_on_grid(self) -> Array | None:
        """Weights of the rows of :attr:`keyed_run` on their grid; None without any."""
        weight, step = self.keyed_run.weight, self.row_step
        if weight is None or step is None:
            return None
        assert self.parts is not None
        out = room(weight.size, self.parts.place)
        for first in range(0, weight.size, _PIECE):
            some = slice(first, first + _PIECE)
            out[some] = on_grid(weight[some], step)
        return out

    def run(self) -> tuple[Sorted, bool]:
        """Scores by (group, slot, outcome), and whether they ascend already in each."""
        scored = self.scored
        assert scored is not None
        if self.group is None and not scored.several and self.unit_weight is None:
            counted = sorted_by_counts(scored, self.whole_rows)
            if counted is not None:
                return counted, True
        return self._laid, False

    @Lazy
    def _laid(self) -> Sorted:
        """Scores and their weights by (group, slot, outcome), unsorted within each."""
        scored, weight = self.scored, self.unit_weight
        assert scored is not None
        start, score, _ = partition(scored.parts, *self.segments)
        if weight is None:
            return Sorted(start, score, None)
        row_weight = weight if scored.unit_codes is None else weight[scored.unit_codes]
        return Sorted(start, score, partition([row_weight], *self.segments)[1])

    @property
    def segments(
        self,
    ) -> tuple[Array, Array | None, Array | None, Array | None, tuple[int, int, int]]:
        """Arrays that assign rows to segments: outcome, label, datum, its group, and the shape."""
        scored = self.scored
        assert scored is not None
        unit, datum = scored.unit_codes, None
        if self.group is not None:
            datum = self.units.datum if unit is None else self.units.datum_of(unit)
        shape = (self.n_groups, self.slots.size, N_OUTCOMES)
        return scored.outcome, scored.label_codes, datum, self.group, shape

    @property
    def _by_pairs(self) -> bool:
        """True if areas are computed without sorting: for groups with unsorted scores."""
        if self.parts is not None or self.group is None or self.unit_weight is not None:
            return False
        return "sorted" not in self.__dict__

    @Lazy
    def _grid(self) -> GridCounts | None:
        """Counts of a grid of scores if they are cheaper than sorting all scores; or None."""
        scored = self.scored
        assert scored is not None
        grouped = self.parts is not None or self.group is not None or self.unit_weight is not None
        if grouped or scored.grid is None:
            return None
        hits = np.flatnonzero(scored.outcome == HIT)
        if not GridCounts.fits(hits, scored.grid) or (scored.outcome == STRAY).any():
            return None
        return GridCounts(scored.grid, scored.parts, hits, len(self.labels), self.over)

    @Lazy
    def listed(self) -> tuple[Array, Array, Array]:
        """(Weighted) rows that hit, that do not, and that are stray, [group, label] each."""
        if self._grid is not None:
            return self._grid.listed
        if self.parts is not None and self.unit_weight is None and "sorted" not in self.__dict__:
            each = [few.listed for few in self.blocks() if few.scored is not None]
            hits, others, strays = np.sum(each, axis=0)
            return hits, others, strays
        scores = self._laid if self._by_pairs else self.sorted
        sums = [self.spread(scores.sums(o), 0.0) for o in (HIT, OTHER, STRAY)]
        return sums[0], sums[1], sums[2]

    @property
    def _won(self) -> Array:
        """(Weight of) pairs that the positive wins, ties counting half, [group, label]; a copy."""
        if self._grid is not None:
            return self._grid.won()
        if self._by_pairs:
            return np.asarray(self.spread(wins_of_groups(self._laid, self.over), 0) / 2)
        scores = self.sorted
        sides = scores.bounds(HIT), scores.bounds(OTHER)
        won = self.spread(wins(*sides, scores.score, scores.weight), 0)
        return won / 2 if scores.weight is None else won.astype(np.float64)

    @Lazy
    def roc_auc(self) -> Array:
        """Area under each label's ROC curve, [group, label]; NaN if a class is missing.

        Units that do not list the label rank last, tied with one another.
        """
        won = self._won
        hits, others, _ = self.listed
        missing, absent = self.positives - hits, self.negatives - others
        won += hits * absent + missing * absent / 2
        out = np.full(self.shape, np.nan)
        pairs = self.positives * self.negatives
        np.divide(won, pairs, out=out, where=(pairs > 0) & self.scored.labels)  # type: ignore[union-attr]
        return out

    def reached(self, thresholds: tuple[float, ...]) -> tuple[Array, Array, Array]:
        """Return (weighted) rows at or above each threshold: hits, others and strays.

        Args:
            thresholds: ascending.

        Returns:
            float64 [group, label, threshold] each.
        """
        if thresholds not in self._reached:
            assert self.scored is not None
            grid = np.array([self.scored.comparable(t) for t in thresholds])
            if self._grid is not None:
                self._reached[thresholds] = self._grid.reached(grid)
                return self._reached[thresholds]
            scores = self.sorted
            out = []
            for outcome in (HIT, OTHER, STRAY):
                first, last = scores.bounds(outcome)
                if scores.weight is None:
                    rows = last[:, None] - first_reaching(first, last, scores.score, grid)
                else:
                    rows, _ = weights_reaching(first, last, scores.score, scores.weight, grid)
                out.append(self.spread(rows.astype(np.float64), 0.0))
            self._reached[thresholds] = out[0], out[1], out[2]
        return self._reached[thresholds]

    def point_blocks(self) -> Iterator[Points]:
        """Yield ``points`` in consecutive blocks; in memory a single one."""
        if self.parts is None:
            yield self.points
            return
        for block in points_in_blocks(self.sorted, self.parts.place.rows):
            yield self._of_labels(block)

    def drawn_points(self, draws: Draws, d: int) -> Iterator[Points]:
        """Yield the points of one resample of a block, as :meth:`point_blocks`, from files."""
        assert self.parts is not None
        run = self.keyed_run
        weight: Any = DrawnWeights(run, draws.seed, draws.first + d)
        drawn = Sorted(run.start, run.score, weight)
        for block in points_in_blocks(drawn, self.parts.place.rows):
            yield self._of_labels(block)

    @property
    def sample_areas(self) -> tuple[Array, Array]:
        """See :func:`~evalengine.tallies.sorted_scores.sample_areas`."""
        return sample_areas(self)

    @Lazy
    def average_precision(self) -> Array:
        """See :func:`~evalengine.tallies.sorted_scores.average_precision`."""
        return average_precision(self)

    @Lazy
    def points(self) -> Points:
        """Points at every distinct score, by (group, label)."""
        scores = self.sorted
        start, threshold, tp, fp = points(
            scores.bounds(HIT), scores.bounds(OTHER), scores.score, scores.weight
        )
        return self._of_labels(Points(start, threshold, tp, fp))

    def _of_labels(self, points: Points) -> Points:
        """Points by (group, slot) as points by (group, label)."""
        counts = self.spread(np.diff(points.start), 0).ravel()
        return msgspec.structs.replace(points, start=np.concatenate(([0], np.cumsum(counts))))

    # -- labels against one another ------------------------------------------------------------

    @Lazy
    def pooled(self) -> ScoredView:
        """All labels of a key as one: every (unit, label) pair is a row (micro averages)."""
        return Pooled(self)

    @Lazy
    def pairwise_auc(self) -> tuple[Array, Array]:
        """Areas of each label against each other one, and truths of each label.

        Returns:
            float64 [group, a, b], the area of the scores of label a, truths of a against truths
            of b, NaN if either has none; float64 [group, label].
        """
        return areas_between(self), self.positives

    @Lazy
    def between(self) -> Sorted:
        """Scores of each label by the true label of their units: see :func:`.sorted_by_truth`."""
        if self.parts is None:
            return sorted_by_truth(self)
        segments = self.n_groups * len(self.labels) ** 2
        return self._merged(lambda few: few.between, segments)


class Pooled(ScoredView):
    """The labels of each key as one label, for micro averages of rank metrics."""

    def __init__(self, view: ScoredView) -> None:
        labels, scored = view.labels, view.scored
        assert scored is not None
        names = keys_as_labels(labels)
        label = None if scored.label_codes is None else labels.key[scored.label_codes]
        only = int(labels.key[scored.only]) if not scored.several else -1
        pooled = msgspec.structs.replace(
            scored,
            label=label,
            unit=scored.unit_codes,
            grid=None,
            only=only,
            labels=np.ones(len(labels.key_names), bool),
        )
        super().__init__(
            view.units,
            pooled,
            names,
            parts=view.parts,
            decision=view.decision,
            over=view.over,
            group=view.group,
            n_groups=view.n_groups,
            weights=view.weights,
        )
        self._of = view

    def keyed_blocks(self) -> Iterator[tuple[ScoredView, Array | None]]:
        if self.parts is None:
            yield self, None
            return
        for few, keys in self._of.keyed_blocks():
            yield few if few.scored is None else few.pooled, keys

    @Lazy
    def positives(self) -> Array:
        return self._of.classes_of_keys[0]

    @Lazy
    def negatives(self) -> Array:
        return self._of.classes_of_keys[1]


# Scored labels under the weights of many resamples.


def _refuse(view: Any) -> Any:
    raise RuntimeError("resamples have different rows: declare the metric with chooses=True")


class ScoredDraws(ScoredView):
    """A view of scored labels whose groups are resamples.

    Sums are exact: weights of rows are rounded to a grid on which they add up without error.
    Metrics that need the scores of each resample in order are declared with ``chooses``.
    """

    unit_group: Any = property(_refuse)
    sorted: Any = property(_refuse)
    _laid: Any = property(_refuse)
    between: Any = property(_refuse)
    pairwise_auc: Any = property(_refuse)
    points: Any = property(_refuse)

    def __init__(self, view: ScoredView, draws: Draws) -> None:
        super().__init__(
            view.units,
            view.scored,
            view.labels,
            parts=view.parts,
            declared=view.declared,
            order=view.order,
            decision=view.decision,
            over=view.over,
            n_groups=view.n_groups * len(draws),
        )
        self._of = view
        self._draws = draws
        self._summed: tuple[Array, Array, Array] | None = None

    def blocks(self) -> Iterator[ScoredDraws]:
        """Yield the resampled view of each bucket."""
        for few, keys in self._of.keyed_blocks():
            draws = msgspec.structs.replace(self._draws, keys=keys)
            yield self if few is self._of else ScoredDraws(few, draws)

    @property
    def plain(self) -> ScoredView:  # not cached, to avoid a reference cycle
        return self if self._of.plain is self._of else self._plain

    @Lazy
    def _plain(self) -> ScoredView:
        return ScoredDraws(self._of.plain, self._draws)

    @property
    def unit_weight(self) -> Array | None:
        """None: summed values already include the weights of units."""
        return None

    # -- sums over units -----------------------------------------------------------------------

    def _resampled(self, pick: Callable[[Any], Any], width: int, step: Any = None) -> Array:
        """Return sums over units in every resample, float64 [resamples * groups, width].

        Args:
            pick: maps the view of a bucket to units (None for all), code of each, number of codes,
                and values.
            width: number of codes.
            step: computes the grid of the values; by default it is that of all of them.
        """

        def picked(few: ScoredView) -> tuple[Any, Array, Array | None]:
            unit, code, _, value = pick(few)
            weight = few.units.weight
            if weight is not None:
                weight = weight if unit is None else weight[unit]
                value = weight if value is None else value * weight
            return unit, code, value

        def summands() -> DrawnSummands:
            grid = None
            for few, keys in self._of.keyed_blocks():
                unit, code, value = picked(few)
                if value is not None:
                    grid = grid or (step() if step else self._grid_of(picked))
                    value = on_grid(value, grid)[:, None]
                datum = few.units.datum if unit is None else few.units.datum_of(unit)
                group, cell = few.unit_group, code.astype(np.int64)
                if group is not None:
                    row_group = (group if unit is None else group[unit]).astype(np.int64)
                    cell = np.where((row_group < 0) | (cell < 0), -1, row_group * width + cell)
                yield keys, datum, cell, value

        sums = self._draws.sums(width * self._of.n_groups, summands)
        return by_draw(sums, self._of.n_groups).reshape(self.n_groups, width)

    def _grid_of(self, picked: Callable[[Any], Any]) -> float:
        values = (picked(few)[2] for few, _ in self._of.keyed_blocks())
        return grid_of(one for one in values if one is not None)

    def added(self, pick: Callable[[Any], Any], width: int) -> Array:
        return self._resampled(pick, width)

    def summed_by_bin(self, pick: Callable[[Any], Any], n_bins: int) -> list[Array]:
        def one(i: int, few: Any) -> Any:
            unit, at, values = pick(few)
            return few.keyed(unit, values[i], at, n_bins)

        width = len(self.labels.key_names) * n_bins
        sums = [self.added(partial(one, i), width) for i in range(len(pick(self._of)[2]))]
        return [total.reshape(self.n_groups, -1, n_bins) for total in sums]

    @property
    def _present_and_judged(self) -> tuple[int, int]:
        return self._of._present_and_judged

    @property
    def _all_true(self) -> bool:
        return self._of._all_true

    @property
    def _one_unit_each(self) -> bool:
        return self._of._one_unit_each

    @Lazy
    def _hard(self) -> tuple[Array, Array, Array, Array]:
        def step() -> float:
            weights = (few.units.weight for few in self._of.blocks())
            return grid_of(weight for weight in weights if weight is not None)

        n = len(self.labels)

        def counted(of: Callable[[Array, Array], Array]) -> Array:
            def pick(few: ScoredView) -> tuple[None, Array, int, None]:
                truth, hard = few.units.truth, few.units.hard
                hard = np.full(truth.size, -1, np.int32) if hard is None else hard
                return None, of(truth, hard), n, None

            return self._resampled(pick, n, step)

        none = np.int32(-1)
        return (
            counted(lambda truth, hard: np.where(truth == hard, truth, none)),
            counted(lambda truth, hard: np.where(truth >= 0, hard, none)),
            counted(lambda truth, hard: np.where(truth < 0, hard, none)),
            counted(lambda truth, hard: truth),
        )

    # -- scored labels -------------------------------------------------------------------------

    @property
    def _grid(self) -> None:
        return None

    @property
    def sample_areas(self) -> tuple[Array, Array]:
        raise OneByOne

    def _by_outcome(self, sums: Array, *more: int) -> list[Array]:
        """Split [resamples * groups, slots * outcomes * ...] into arrays per outcome, by label."""
        cells = sums.reshape((self.n_groups, self.slots.size, N_OUTCOMES, *more))
        return [
            self.spread(np.ascontiguousarray(cells[:, :, one]).reshape(-1, *more), 0.0)
            for one in (HIT, OTHER, STRAY)
        ]

    def _rows(self, grid: Array) -> list[Array]:
        """Sum scored rows by outcome and number of thresholds reached, [group, label, number]."""
        width = grid.size + 1

        def pick(few: ScoredView) -> tuple[Any, Array, int, None]:
            scored = few.scored
            if scored is None:
                return np.zeros(0, np.int64), np.zeros(0, np.int64), 0, None
            slot = 0 if not scored.several or scored.label_codes is None else scored.label_codes
            code = (np.int64(slot) * N_OUTCOMES + scored.outcome) * width
            if grid.size <= _FEW_THRESHOLDS:
                for threshold in grid:
                    code += scored.score >= threshold
            else:
                code += np.searchsorted(grid, scored.score, "right")
            return scored.unit_codes, code, 0, None

        n = self.slots.size * N_OUTCOMES * width
        step = self._of.row_step
        return self._by_outcome(self._resampled(pick, n, lambda: step), width)

    @Lazy
    def listed(self) -> tuple[Array, Array, Array]:
        if self._summed is not None:
            return self._summed
        hits, others, strays = (one[..., 0] for one in self._rows(np.zeros(0)))
        return hits, others, strays

    def reached(self, thresholds: tuple[float, ...]) -> tuple[Array, Array, Array]:
        assert self.scored is not None
        by_bin = self._rows(np.array([self.scored.comparable(t) for t in thresholds]))
        out = [np.cumsum(one[..., ::-1], axis=-1)[..., ::-1][..., 1:] for one in by_bin]
        return out[0], out[1], out[2]

    def _areas(self, of: Any) -> Array:
        """Sum over the scores of every segment, [resamples * groups, label]."""
        draws, view = self._draws, self._of
        if draws.vectors is not None:
            raise Uncounted
        by_key = draws.leaving_out is None and draws.side is None
        weights: tuple[Array, Array] | None = None
        if view.parts is None:
            rows = view.ordered_rows
            scores, weight, key = rows.sorted, rows.own, None
            if weight is not None and view.row_step is not None:
                weight = on_grid(weight, view.row_step)
            if by_key and draws.keys is not None:
                key = rows.keys_of(draws.keys)
            else:
                weights = draws.weights, rows.datum
        elif by_key:
            scores, weight = view.keyed_run, view.own_on_grid
            key = scores.key
        else:
            raise OneByOne
        drawing = Drawing(draws.seed, draws.first, draws.last, key, weights)
        sides = scores.bounds(HIT), scores.bounds(OTHER)
        sums = np.moveaxis(of(*sides, scores.score, weight, drawing), -1, 1)
        flat_sums = np.ascontiguousarray(sums).reshape(3, self.n_groups * self.slots.size)
        out, hits, others = (self.spread(one, 0.0) for one in flat_sums)
        first, last = scores.bounds(STRAY)
        if (first == last).all():  # weights of all listed rows without another pass
            self._summed = hits, others, np.zeros_like(hits)
        return out

    @property
    def _won(self) -> Array:
        return self._areas(drawn_wins)

    @Lazy
    def average_precision(self) -> Array:
        total = self._areas(drawn_precisions)
        columns = (self.listed[0], self.positives, self.negatives)
        hits, positives, negatives = (column.ravel() for column in columns)
        return with_unlisted(total.ravel(), hits, positives, negatives).reshape(self.shape)

    @Lazy
    def pooled(self) -> ScoredView:
        return PooledDraws(self)


class PooledDraws(ScoredDraws):
    """Pooled labels of each key, in many resamples."""

    def __init__(self, view: ScoredDraws) -> None:
        super().__init__(view._of.pooled, view._draws)
        self._view = view

    @Lazy
    def positives(self) -> Array:
        return self._view.classes_of_keys[0]

    @Lazy
    def negatives(self) -> Array:
        return self._view.classes_of_keys[1]


def grid_of(values: Iterable[Array]) -> float:
    """Return the step of a grid on which all values add up exactly.

    Raises:
        OneByOne: some are infinite.
    """
    largest, n = 0.0, 0
    for some in values:
        largest = max(largest, float(np.abs(some[~np.isnan(some)]).max(initial=0.0)))
        n += some.size
    return float(finite_step(largest, n))
