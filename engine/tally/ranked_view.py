"""Views: a tally by groups of datums, with cached results that several metrics share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..kernels.average_precision import Carried, sample_precision
from ..kernels.order import group_rows
from ..kernels.threshold_counts import count_by_threshold
from ..schemas.arrays import Array
from .box_bins import Binned, binned
from .counts import Counts
from .datums import Labels
from .interpolation import Beside, Interpolation
from .linear_precision import averaged, on_lines
from .points import Points
from .ranked import Ranked
from .ranked_points import CountedRows, counted_rows, point_blocks, pooled_rows, sought
from .recall_positions import at_positions

Over = Callable[[Array, Callable[[int, int], None]], Any]
"""Calls a function on ranges (first, last) of groups with CSR offsets, perhaps side by side."""


LeaveOut = Callable[[Ranked], Array]
"""Function that returns the rows of a tally to ignore, bool [n]; [0] for none."""

Outputs = tuple[Array, Array, Array]
"""Precision, scores and true positives of one word, for the average-precision kernel."""


def _skipped(tally: Ranked) -> Array:
    return tally.skipped


def in_turn(offsets: Array, function: Callable[[int, int], None]) -> None:
    function(0, offsets.size - 1)


class View:
    """Base of all views: a tally, groups of its datums, weights. Metrics are computed from views.

    Args:
        labels: meaning of label codes.
        group: int32 [n_datums], -1 for none; for a tally in parts, the groups of its datums; None
            for a single group.
        n_groups: number of groups.
        weights: int64 [n_datums], multiplicity of each datum in one resample, or None; only for
            tallies in memory.
        over: runs kernels over ranges of segments; serial by default.
    """

    def __init__(
        self,
        labels: Labels,
        group: Any = None,
        n_groups: int = 1,
        weights: Array | None = None,
        over: Over = in_turn,
    ) -> None:
        self.labels = labels
        self.group = group
        self.n_groups = n_groups
        self.weights = weights
        self.over = over

    def refuse_draws(self) -> None:
        """Raise RuntimeError if datums have weights: datums of a tally in parts have no numbers."""
        if self.weights is not None:
            raise RuntimeError("a tally in files has no rows to draw from")


def _by_segment(
    start: Array, datum: Array, group: Array | None, n_groups: int
) -> tuple[Array, Array]:
    """Rows by (group, label): offsets int64 [groups * labels + 1] and their order."""
    if group is None:
        return start, np.arange(datum.size, dtype=np.int32)
    return group_rows(start, datum, group, n_groups)


class RankedView(View):
    """A ranked tally by groups; arrays have leading axes [group, label].

    Undefined cells (no ground truth) are NaN; frames turn them into null with a reason.

    Args:
        tally: the ranked rows.
        interpolation: definition of precision.
        caps: ascending caps on rank for recall; the last one applies to everything else.
        crossed: confusion pairs, if requested.
        tallies: other tallies of the same rows, by name.
        **grouping: see :class:`View`.
    """

    def __init__(
        self,
        tally: Ranked,
        labels: Labels,
        *,
        interpolation: Interpolation,
        caps: Array,
        crossed: Counts | None = None,
        tallies: Mapping[str, Beside] | None = None,
        **grouping: Any,
    ) -> None:
        super().__init__(labels, **grouping)
        self.tally = tally
        self.interpolation = interpolation
        self.levels = interpolation.levels
        self.caps = caps
        self.crossed = crossed
        self._tallies = dict(tallies or {})
        self._beside: dict[str, RankedView] = {}
        self._counts: dict[tuple[float, ...], tuple[Array, Array]] = {}
        self.shared: dict[tuple[str, float], Any] = {}

    @property
    def _shape(self) -> tuple[int, int, int, int]:
        """Groups, labels, area ranges, IoU thresholds."""
        variants = self.tally.variants
        return self.n_groups, len(self.labels), len(variants.areas), len(variants.thresholds)

    def beside(self, name: str) -> RankedView | None:
        """Return the view of another tally with the same groups and weights, or None."""
        if name in self._tallies and name not in self._beside:
            other = self._tallies[name]
            self._beside[name] = RankedView(
                other.ranked,
                self.labels,
                interpolation=other.interpolation,
                caps=np.array([np.iinfo(np.int32).max]),
                group=self.group,
                n_groups=self.n_groups,
                weights=self.weights,
                over=self.over,
            )
        return self._beside.get(name)

    def weighing(self, weights: Array) -> RankedView:
        """The same by other weights of its datums, int64 [n_datums]."""
        one = RankedView(
            self.tally,
            self.labels,
            interpolation=self.interpolation,
            caps=self.caps,
            crossed=self.crossed,
            tallies=self._tallies,
            group=self.group,
            n_groups=self.n_groups,
            weights=weights,
            over=self.over,
        )
        one.shared = self.shared
        return one

    def parts(self, *, backwards: bool = False) -> Iterator[RankedView]:
        """Views of parts of the rows, the best scores first, or last: here all rows at once."""
        yield self

    @cached_property
    def rows(self) -> tuple[Array, Array]:
        """Predictions by segment (group, label): offsets, and rows by descending score."""
        return _by_segment(self.tally.start, self.tally.datum, self.group, self.n_groups)

    @cached_property
    def gt_rows(self) -> tuple[Array, Array]:
        """Ground truths by segment: CSR offsets and row indices."""
        return _by_segment(self.tally.gt_start, self.tally.gt_datum, self.group, self.n_groups)

    def _n_rows(self, rows: tuple[Array, Array], datum: Array) -> Array:
        """(Weighted) rows, int64 [group, label]."""
        start, order = rows
        if self.weights is None:
            return np.diff(start).reshape(self._shape[:2])
        upto = np.r_[0, np.cumsum(self.weights[datum[order[: start[-1]]]])]
        counted: Array = np.diff(upto[start]).reshape(self._shape[:2])
        return counted

    @cached_property
    def n_predictions(self) -> Array:
        """(Weighted) predictions, int64 [group, label]."""
        return self._n_rows(self.rows, self.tally.datum)

    @cached_property
    def n_ground_truths(self) -> Array:
        """(Weighted) ground truths, ignored ones too, int64 [group, label]."""
        return self._n_rows(self.gt_rows, self.tally.gt_datum)

    @cached_property
    def positives(self) -> Array:
        """Ground truths that are not ignored, (weighted) int64 [group, label, area]."""
        start, order = self.gt_rows
        rows = order[: start[-1]]
        weights = 1 if self.weights is None else self.weights[self.tally.gt_datum[rows]]
        out = np.zeros((start.size - 1, self._shape[2]), np.int64)
        upto = np.zeros(rows.size + 1, np.int64)
        for area, here in self.counted_truths():
            np.cumsum(here * weights, out=upto[1:])
            out[:, area] = np.diff(upto[start])
        return out.reshape(self._shape[:3])

    def counted_truths(self) -> Iterator[tuple[int, Array]]:
        """Every area range, and which ground truths by segment are not ignored there, bool [n]."""
        start, order = self.gt_rows
        rows = order[: start[-1]]
        for w, word in enumerate(self.tally.variants.words):
            if word.first_threshold:  # more thresholds of an area range that came before
                continue
            counted = self.tally.gt_counted[w][rows]
            for a in range(word.n_areas):
                here = (counted >> np.uint64(a * word.n_thresholds)) & np.uint64(1) != 0
                yield word.first_area + a, here

    def _weight(self) -> Array:
        """Multiplicity of each row, int64 [n]."""
        if self.weights is None:
            return np.ones(self.tally.score.size, np.int64)
        return self.weights[self.tally.datum]

    def walked(
        self,
        leave_out: LeaveOut,
        caps: Array,
        positives: Array,
        levels: Array,
        out: Sequence[Outputs],
        carried: Sequence[Carried | None],
    ) -> None:
        """Run the average-precision kernel over the rows of every word.

        Args:
            leave_out: returns the rows to ignore, bool [n] or [0].
            caps: int64 [m], ascending caps on rank.
            positives: int64 [group, label, area], ground truths that are not ignored.
            levels: float64 [r], recall levels; [0] for the area.
            out: precision, scores and true positives per word, see
                :func:`evalengine.kernels.average_precision.sample_precision`.
            carried: state per word from other parts of the rows.
        """
        tally = self.tally
        start, order = self.rows
        weight = self._weight()
        weight[tally.rank >= caps[-1]] = 0
        skipped = leave_out(tally)
        if skipped.size:
            weight[skipped] = 0
        of_segment = positives.reshape(start.size - 1, positives.shape[-1])
        for w, word in enumerate(tally.variants.words):
            inputs = (
                start,
                order,
                (tally.hit[w], tally.ignored[w], tally.rank, tally.score),
                weight,
                (word.n_thresholds, word.n_areas),
                np.repeat(of_segment[:, word.places[0]], word.n_thresholds, axis=1),
                caps,
                levels,
                out[w],
            )
            self.over(
                start,
                lambda first, last, inputs=inputs, carried=carried[w]: sample_precision(  # type: ignore[misc]
                    first,
                    last,
                    *inputs,
                    integer_grid=self.interpolation.integer_grid,
                    epsilon=self.interpolation.epsilon,
                    carried=carried,
                ),
            )

    def outputs(self, n_caps: int, *, precision: bool, scores: bool) -> list[Outputs]:
        """Allocate the outputs of :meth:`walked` per word: zeros, NaN for scores."""
        n_segments = self._shape[0] * self._shape[1]
        n_levels = (self._levels(scores=scores).size or 1) if precision else 0
        return [
            (
                np.zeros((n_segments, size, n_levels)),
                np.full((n_segments, size, n_levels if scores else 0), np.nan),
                np.zeros((n_segments, n_caps, size), np.int64),
            )
            for size in (word.n_thresholds * word.n_areas for word in self.tally.variants.words)
        ]

    def _run(self, *, leave_out: LeaveOut, caps: Array, precision: bool, scores: bool) -> Any:
        """The average-precision kernel over all words, put together by area and threshold."""
        out = self.outputs(caps.size, precision=precision, scores=scores)
        levels = self._levels(scores=scores)
        self.walked(leave_out, caps, self._sought(scores=scores), levels, out, [None] * len(out))
        return self._together(out)

    def _levels(self, *, scores: bool) -> Array:
        """Return the recall levels of a pass: those of the curve if scores are needed."""
        return self.levels if scores else self.interpolation.averaged

    def _sought(self, *, scores: bool) -> Array:
        """Return the positives passed to the kernel, which skips labels without positives.

        If scores are needed, such labels get one positive that no row hits.
        """
        return np.maximum(self.positives, 1) if scores else self.positives

    def _together(self, out: Sequence[Outputs]) -> Any:
        """Combine the kernel outputs by area and threshold."""
        precisions, reached, true = zip(*out, strict=True)
        return (
            self._by_variant(precisions, (), precisions[0].shape[2:]),
            self._by_variant(reached, (), reached[0].shape[2:]),
            self._by_variant(true, true[0].shape[1:2], ()),
        )

    def _by_variant(
        self, parts: tuple[Array, ...], before: tuple[int, ...], after: tuple[int, ...]
    ) -> Array:
        """One array a word, [segment, *before, variant, *after], as area and threshold."""
        groups, n_labels, n_areas, n_thresholds = self._shape
        shape = (groups, n_labels, *before, n_areas, n_thresholds, *after)
        if len(parts) == 1:
            return parts[0].reshape(shape)
        out = np.empty(shape, parts[0].dtype)
        rest: list[Any] = [slice(None)] * len(after)
        for part, word in zip(parts, self.tally.variants.words, strict=True):
            block = (groups, n_labels, *before, word.n_areas, word.n_thresholds, *after)
            at: Any = (..., *word.places, *rest)
            out[at] = part.reshape(block)
        return out

    @cached_property
    def _sampled(self) -> Any:
        return self._run(leave_out=_skipped, caps=self.caps, precision=True, scores=False)

    @property
    def precision(self) -> Array:
        """Interpolated precision, [group, label, area, threshold, level], at the last cap.

        If average precision is the area under the curve, that area is the only level.
        """
        return self._precision

    @cached_property
    def _precision(self) -> Array:
        if self.interpolation.linear is not None:
            return averaged(self._on_lines[0], self.levels, self.interpolation.linear)
        if self.interpolation.positions is not None:
            picked: Array = self._at_positions[0][..., self.interpolation.positions]
            return picked
        sampled: Array = self._sampled[0]
        if self.interpolation.every_point:
            sampled = sampled / np.maximum(self.positives, 1)[..., None, None]
        return sampled

    def sampled_with_scores(self, cap: int) -> tuple[Array, Array, Array]:
        """Return precision, scores at which levels are reached, and true positives under one cap.

        Scores are NaN at levels that are not reached. Level 0 is reached by the best score, even
        for labels
        without ground truth.
        """
        if self.interpolation.linear is not None:
            return (*self._on_lines, self._sampled[2])
        if self.interpolation.positions is not None:
            return (*self._at_positions[:2], self._sampled[2])
        caps = np.array([cap])
        one, two, three = self._run(leave_out=_skipped, caps=caps, precision=True, scores=True)
        return one, two, three

    @cached_property
    def _at_positions(self) -> tuple[Array, Array, Array | None]:
        return at_positions(self, self._shape)

    @property
    def similarity(self) -> Array:
        """Similarity of angles, in the shape of :attr:`precision`; NaN without angles."""
        precision, _, similarity = self._at_positions
        of = np.full(precision.shape, np.nan) if similarity is None else similarity
        picked: Array = of[..., self.interpolation.positions or ()]
        return picked

    @cached_property
    def _on_lines(self) -> tuple[Array, Array]:
        return on_lines(self, self._shape)

    def true_positives(self, lowest_score: float | None) -> Array:
        """Return true positives by cap, int64 [group, label, cap, area, threshold].

        Args:
            lowest_score: ignore lower scores; None for all.
        """
        if lowest_score is None:
            return np.asarray(self._sampled[2])
        lowest = self.tally.comparable(lowest_score)

        def too_low(tally: Ranked) -> Array:
            low: Array = tally.score < lowest
            return low

        kept: Array = self._run(leave_out=too_low, caps=self.caps, precision=False, scores=False)[2]
        return kept

    def counts(self, score_thresholds: tuple[float, ...]) -> tuple[Array, Array]:
        """Return true and false positives, int64 [group, label, area, threshold, score] each.

        Args:
            score_thresholds: ascending; a prediction counts at those its score reaches.
        """
        if score_thresholds not in self._counts:
            grid = [self.tally.comparable(t) for t in score_thresholds]
            self._counts[score_thresholds] = self._count(np.asarray(grid))
        return self._counts[score_thresholds]

    def _count(self, score_thresholds: Array) -> tuple[Array, Array]:
        tally = self.tally
        _, _, n_areas, n_thresholds = self._shape
        start, order = self.rows
        weight = self._weight()
        shape = (start.size - 1, n_areas, n_thresholds, score_thresholds.size)
        out = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for w, word in enumerate(tally.variants.words):
            areas, thresholds = word.places
            full = (start.size - 1, score_thresholds.size + 1, word.n_areas * word.n_thresholds)
            counted = np.zeros(full, np.int64), np.zeros(full, np.int64)
            inputs = (
                start,
                order,
                (tally.hit[w], tally.ignored[w], tally.score),
                weight,
                (word.n_thresholds, word.n_areas),
                score_thresholds,
                counted,
            )
            self.over(
                start,
                lambda first, last, inputs=inputs: count_by_threshold(  # type: ignore[misc]
                    first, last, *inputs
                ),
            )
            for target, source in zip(out, counted, strict=True):
                block = source[:, 1:].reshape(
                    -1, score_thresholds.size, word.n_areas, word.n_thresholds
                )
                target[:, areas, thresholds] = block.transpose(0, 2, 3, 1)
        tp, fp = (array.reshape(*self._shape[:2], *shape[1:]) for array in out)
        return tp, fp

    # -- points ----------------------------------------------------------------------------------

    def counted_rows(self, iou: float) -> Iterable[CountedRows]:
        """Predictions that count at one IoU threshold, in one piece or several."""
        if ("rows", iou) not in self.shared:
            self.shared["rows", iou] = [counted_rows(self.tally, iou)]
        pieces: Iterable[CountedRows] = self.shared["rows", iou]
        return pieces

    def point_blocks(self, iou: float, *, pooled: bool = False) -> Iterator[Points]:
        """Yield points at every distinct score of each (group, label), in blocks.

        Args:
            iou: one of the tally's thresholds.
            pooled: pool all labels of a key.
        """
        pieces = self._pieces(iou, pooled=pooled)
        return point_blocks(pieces, self.group, self.n_groups, self.weights)

    def _pieces(self, iou: float, *, pooled: bool) -> Iterable[CountedRows]:
        if not pooled:
            return self.counted_rows(iou)
        if ("pooled", iou) not in self.shared:
            key, n_keys = self.labels.key, len(self.labels.key_names)
            self.shared["pooled", iou] = pooled_rows(self.counted_rows(iou), key, n_keys)
        return [self.shared["pooled", iou]]

    def sought(self, iou: float, *, pooled: bool = False) -> Array:
        """(Weighted) ground truths that count there, float64 [group * label]."""
        pieces = self._pieces(iou, pooled=pooled)
        return sought(pieces, self.group, self.n_groups, self.weights)

    def binned(self, iou: float, n_scores: int) -> Binned:
        """Predictions that count there by place and so many bins of scores."""
        return binned(self.counted_rows(iou), self.group, self.n_groups, self.weights, n_scores)
