"""Ranked rows under the weights of many resamples."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np

from ..kernels.drawn_precision import Counted, Rows, nothing_counted, walk_down, walk_up
from ..kernels.drawn_sums import drawn_counts, drawn_sums
from ..schemas.arrays import Array
from .draws import Draws, OneByOne, by_draw
from .ranked_view import RankedView


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
        """Reshape [group * label, ..., draw] to [draw * group, label, ...]."""
        return by_draw(array, self._view.n_groups)

    # -- rows ------------------------------------------------------------------------------------

    @cached_property
    def _totals(self) -> tuple[Array, Array, Array]:
        """Predictions, ground truths and positives, float64 [group * label, columns, draw]."""
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
        """Predictions, [draw * group, label]."""
        return self._by_draw(self._totals[0])[..., 0]

    @cached_property
    def n_ground_truths(self) -> Array:
        """Ground truths including ignored ones, [draw * group, label]."""
        return self._by_draw(self._totals[1])[..., 0]

    @cached_property
    def positives(self) -> Array:
        """Ground truths that are not ignored, [draw * group, label, area]."""
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
        """Mean interpolated precision, [draw * group, label, area, threshold, 1]."""
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
        """Combine arrays per word, [segment, ..., variant, draw], into area and threshold axes."""
        variants = self.tally.variants
        before = parts[0].shape[:-2]
        axes = len(variants.areas), len(variants.thresholds)
        out = np.empty((*before, *axes, len(self._draws)))
        for part, word in zip(parts, variants.words, strict=True):
            block = part.reshape(*before, word.n_areas, word.n_thresholds, part.shape[-1])
            out[(..., *word.places, slice(None))] = block
        return out

    def true_positives(self, lowest_score: float | None) -> Array:
        """Return true positives by cap, [draw * group, label, cap, area, threshold].

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
        """Return true and false positives, [draw * group, label, area, threshold, score] each.

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
    """The datum of each row by segment, and its segment."""
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
