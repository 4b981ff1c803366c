"""Views of ranked rows by groups of datums, also under resample weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..kernels.average_precision import (
    Carried,
    Counted,
    Rows,
    count_by_threshold,
    nothing_counted,
    sample_precision,
    walk_down,
    walk_up,
)
from ..kernels.datums import drawn_counts, drawn_sums
from ..kernels.order import group_rows
from ..schemas.arrays import Array
from .datums import Labels, View
from .draws import Draws, OneByOne, by_draw
from .ranked import Beside, Counts, Interpolation, Ranked
from .ranked_points import (
    Binned,
    CountedRows,
    Points,
    at_positions,
    averaged,
    binned,
    counted_rows,
    on_lines,
    point_blocks,
    pooled_rows,
    sought,
)

LeaveOut = Callable[[Ranked], Array]
"""Function that returns the rows of a tally to ignore, bool [n]; [0] for none."""

Outputs = tuple[Array, Array, Array]
"""Precision, scores and true positives of one word, for the average-precision kernel."""


def _skipped(tally: Ranked) -> Array:
    return tally.skipped


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


# Ranked rows under the weights of many resamples.


class RankedDraws:
    """:class:`~evalengine.tally.ranked_view.RankedView` for a block of resamples.

    Counts are integers in float64. Precision is its mean over the recall levels.
    """

    def __init__(self, view: RankedView, draws: Draws) -> None:
        self._view = view
        self._draws = draws
        self.tally = view.tally
        self.labels = view.labels
        self.n_groups = view.n_groups * len(draws)

    def beside(self, name: str) -> RankedDraws | None:
        """Return the resamples of another tally; see :meth:`RankedView.beside`."""
        other = self._view.beside(name)
        return None if other is None else RankedDraws(other, self._draws)

    @property
    def _n_segments(self) -> int:
        return self._view.n_groups * len(self.labels)

    def _by_draw(self, array: Array) -> Array:
        """Reshape [group * label, ..., resample] to [resample * group, label, ...]."""
        return by_draw(array, self._view.n_groups)

    # -- rows ------------------------------------------------------------------------------------

    @cached_property
    def _totals(self) -> tuple[Array, Array, Array]:
        """Predictions, ground truths and positives, float64 [group * label, columns, resample]."""
        n_areas = len(self.tally.variants.areas)
        shape = self._n_segments, 1, len(self._draws)
        predictions, truths = np.zeros(shape), np.zeros(shape)
        positives = np.zeros((shape[0], n_areas, shape[2]))
        weights = self._draws.weights
        for part in self._view.parts():
            datum, cell = _cells(part.rows, part.tally.datum)
            drawn_counts(datum, cell, None, weights, predictions)
            datum, cell = _cells(part.gt_rows, part.tally.gt_datum)
            drawn_counts(datum, cell, None, weights, truths)
            for area, here in part.counted_truths():
                counted = np.zeros((shape[0], 1, shape[2]))
                drawn_sums(datum, cell, here[:, None].astype(np.float64), weights, counted)
                positives[:, area] += counted[:, 0]
        return predictions, truths, positives

    @cached_property
    def n_predictions(self) -> Array:
        """Predictions, [resample * group, label]."""
        return self._by_draw(self._totals[0])[..., 0]

    @cached_property
    def n_ground_truths(self) -> Array:
        """Ground truths including ignored ones, [resample * group, label]."""
        return self._by_draw(self._totals[1])[..., 0]

    @cached_property
    def positives(self) -> Array:
        """Ground truths that are not ignored, [resample * group, label, area]."""
        return self._by_draw(self._totals[2])

    def _nothing(self, n_caps: int) -> list[Counted]:
        """Return the initial state of a pass over the rows, per word."""
        words = self.tally.variants.words
        return [
            nothing_counted(
                self._n_segments, (word.n_thresholds, word.n_areas), n_caps, len(self._draws)
            )
            for word in words
        ]

    def _down(
        self,
        part: RankedView,
        bounds: tuple[Array, Array],
        left_out: Array,
        caps: Array,
        counted: list[Counted],
    ) -> None:
        """Count some rows of each segment."""
        for w, word in enumerate(self.tally.variants.words):
            walk = partial(
                walk_down,
                rows=_rows(part, w, bounds, left_out),
                weights=self._draws.weights,
                shape=(word.n_thresholds, word.n_areas),
                caps=caps,
                counted=counted[w],
            )
            self._view.over(part.rows[0], walk)

    @cached_property
    def _walked(self) -> list[Counted]:
        """State after the first pass over the rows used for precision."""
        counted = self._nothing(self._view.caps.size)
        for part in self._view.parts():
            start = part.rows[0]
            bounds = start[:-1], start[1:]
            self._down(part, bounds, part.tally.skipped, self._view.caps, counted)
        return _under_each_cap(counted)

    @property
    def similarity(self) -> Array:
        """Raise OneByOne: similarity of angles is computed per resample."""
        raise OneByOne

    @cached_property
    def precision(self) -> Array:
        """Mean interpolated precision, [resample * group, label, area, threshold, 1]."""
        view, how = self._view, self._view.interpolation
        levels = how.averaged
        if how.linear is not None or how.positions is not None:
            raise OneByOne
        even = np.linspace(0.0, 1.0, levels.size)
        if not np.allclose(levels, even, rtol=0.0, atol=1e-9):
            raise OneByOne
        positives = np.maximum(self._totals[2], 1.0)
        words = self.tally.variants.words
        held = [
            (one.plain, one.wrong, one.right[:, -1].copy(), *np.zeros((2, *one.wrong.shape)))
            for one in self._walked
        ]
        for part in view.parts(backwards=True):
            start = part.rows[0]
            for w, word in enumerate(words):
                walk = partial(
                    walk_up,
                    rows=_rows(part, w, (start[:-1], start[1:]), part.tally.skipped),
                    weights=self._draws.weights,
                    shape=(word.n_thresholds, word.n_areas),
                    cap=int(view.caps[-1]),
                    positives=positives[:, word.places[0]],
                    levels=levels,
                    held=held[w],
                    integer_grid=how.integer_grid,
                    epsilon=how.epsilon,
                )
                view.over(start, walk)
        total = self._together([sums for *_, sums in held])
        total /= positives[:, :, None] if how.every_point else levels.size
        return self._by_draw(total)[..., None]

    def _together(self, parts: list[Array]) -> Array:
        """Combine arrays per word, [segment, ..., variant, resample], by area and threshold."""
        variants = self.tally.variants
        before = parts[0].shape[:-2]
        axes = len(variants.areas), len(variants.thresholds)
        out = np.empty((*before, *axes, len(self._draws)))
        for part, word in zip(parts, variants.words, strict=True):
            block = part.reshape(*before, word.n_areas, word.n_thresholds, part.shape[-1])
            out[(..., *word.places, slice(None))] = block
        return out

    def true_positives(self, lowest_score: float | None) -> Array:
        """Return true positives by cap, [resample * group, label, cap, area, threshold].

        Args:
            lowest_score: ignore lower scores; None for all.
        """
        counted = self._walked if lowest_score is None else self._scored(lowest_score)
        return self._by_draw(self._together([one.right for one in counted]))

    def _scored(self, lowest_score: float) -> list[Counted]:
        """Return the state after a pass over the rows with at least that score."""
        lowest = np.array([self.tally.comparable(lowest_score)])
        if not any(
            part.tally.skipped.any() or (part.tally.score < lowest).any()
            for part in self._view.parts()
        ):
            return self._walked
        caps = self._view.caps
        counted = self._nothing(caps.size)
        for part in self._view.parts():
            at = _reaching(part, lowest)
            self._down(part, (at[1], at[0]), np.zeros(0, np.bool_), caps, counted)
        return _under_each_cap(counted)

    def counts(self, score_thresholds: tuple[float, ...]) -> tuple[Array, Array]:
        """Return true and false positives, [resample * group, label, area, threshold, score] each.

        Args:
            score_thresholds: ascending; a prediction counts at those its score reaches.
        """
        grid = np.array([self.tally.comparable(t) for t in score_thresholds])
        every = [self._nothing(1) for _ in score_thresholds]
        no_cap = np.array([np.iinfo(np.int64).max])
        for part in self._view.parts():
            at = _reaching(part, grid)
            for c, counted in enumerate(every):
                self._down(part, (at[c + 1], at[c]), np.zeros(0, np.bool_), no_cap, counted)
        shape = self._n_segments, *(len(axis) for axis in self._axes), len(every)
        true, false = np.empty((2, *shape, len(self._draws)))
        for c in reversed(range(len(every))):
            counted = every.pop()
            true[..., c, :] = self._together([one.right[:, 0] for one in counted])
            words = zip(counted, self.tally.variants.words, strict=True)
            false[..., c, :] = self._together(
                [one.wrong + one.plain.repeat(word.n_thresholds, axis=1) for one, word in words]
            )
            if c + 1 < shape[-1]:
                true[..., c, :] += true[..., c + 1, :]
                false[..., c, :] += false[..., c + 1, :]
        return self._by_draw(true), self._by_draw(false)

    @property
    def _axes(self) -> tuple[Any, Any]:
        variants = self.tally.variants
        return variants.areas, variants.thresholds

    @property
    def rows(self) -> Any:
        """Raise OneByOne: rows differ between resamples."""
        raise OneByOne

    def sought(self, iou: float, *, pooled: bool = False) -> Any:
        """Raise OneByOne: the chosen points differ between resamples."""
        raise OneByOne

    def binned(self, iou: float, n_scores: int) -> Any:
        """Raise OneByOne: bins are summed per resample."""
        raise OneByOne

    def sampled_with_scores(self, cap: int) -> Any:
        """Raise OneByOne: levels are reached at other scores in each resample."""
        raise OneByOne


def _under_each_cap(counted: list[Counted]) -> list[Counted]:
    """The same, with true positives under each cap in place of those between two."""
    for one in counted:
        for m in range(1, one.right.shape[1]):
            one.right[:, m] += one.right[:, m - 1]
    return counted


def _cells(rows: tuple[Array, Array], datum: Array) -> tuple[Array, Array]:
    start, order = rows
    segment = np.repeat(np.arange(start.size - 1), np.diff(start))
    return datum[order[: start[-1]]], segment


def _rows(part: RankedView, w: int, bounds: tuple[Array, Array], left_out: Array) -> Rows:
    """Some rows of each segment, with the outcomes of one word."""
    tally = part.tally
    return Rows(
        *bounds, part.rows[1], tally.hit[w], tally.ignored[w], tally.rank, tally.datum, left_out
    )


def _reaching(part: RankedView, thresholds: Array) -> Array:
    """Return the end of the rows that reach each threshold per segment, int64 [k + 1, s].

    The last row contains the starts of the segments.

    Args:
        part: rows by descending score.
        thresholds: float64 [k], ascending.
    """
    start, order = part.rows
    k = thresholds.size
    reached = np.searchsorted(thresholds, part.tally.score[order[: start[-1]]], "right")
    segment = np.repeat(np.arange(start.size - 1), np.diff(start))
    many = np.bincount(segment * (k + 1) + reached, minlength=(start.size - 1) * (k + 1))
    many = many.reshape(-1, k + 1)[:, 1:]
    out = np.empty((k + 1, start.size - 1), np.int64)
    out[k] = start[:-1]
    out[:k] = start[:-1] + np.cumsum(many[:, ::-1], axis=1)[:, ::-1].T
    return out
