"""Views of ranked rows by groups of datums, also under resample weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from ..kernels.average_precision import (
    Carried,
    Counted,
    Grid,
    Rows,
    count_by_threshold,
    grid_of,
    nothing_carried,
    nothing_counted,
    sample_precision,
    walk_down,
    walk_up,
)
from ..kernels.datums import drawn_counts, drawn_sums
from ..schemas.arrays import Array
from .datums import Deferred, Labels, Lazy, View
from .draws import Draws, OneByOne
from .ranked import ConfusedPairs, Interpolation, Ranked, RankedAside, RankedRun, Span, by_group
from .ranked_points import (
    Binned,
    CountedRows,
    CountedScan,
    Points,
    at_positions,
    averaged,
    binned,
    on_lines,
    point_blocks,
)


class Block:
    """Consecutive rows of a run by segment (group, label)."""

    def __init__(self, tally: Ranked, group: Array | None, n_groups: int) -> None:
        self.tally = tally
        self._groups = group, n_groups

    @Lazy
    def rows(self) -> tuple[Array, Array]:
        """CSR offsets of the segments, int64 [s + 1], and rows by descending score, int32 [n]."""
        return by_group(self.tally.start, self.tally.datum, *self._groups)

    @Lazy
    def gt_rows(self) -> tuple[Array, Array]:
        """CSR offsets of the segments, int64 [s + 1], and ground truths, int32 [n]."""
        return by_group(self.tally.gt_start, self.tally.gt_datum, *self._groups)

    def columns(self) -> Iterator[tuple[Array, Array, Array | None]]:
        """Predictions, ground truths, and ground truths that are not ignored per area range.

        Yields:
            CSR offsets of the segments, datums of the rows, and flags of those that count.
        """
        tally = self.tally
        start, order = self.rows
        yield start, tally.datum[order], None
        start, order = self.gt_rows
        datum = tally.gt_datum[order]
        yield start, datum, None
        for w, word in enumerate(tally.variants.words):
            if word.first_threshold:  # more thresholds of an area range that came before
                continue
            counted = tally.gt_counted[w][order]
            for a in range(word.n_areas):
                yield (
                    start,
                    datum,
                    (counted >> np.uint64(a * word.n_thresholds)) & np.uint64(1) != 0,
                )

    def reaching(self, thresholds: Array) -> Array:
        """Return the end of the rows that reach each threshold per segment, int64 [k + 1, s].

        The last row contains the starts of the segments.

        Args:
            thresholds: float64 [k], ascending.
        """
        start, order = self.rows
        k = thresholds.size
        reached = np.searchsorted(thresholds, self.tally.score[order], "right")
        segment = np.repeat(np.arange(start.size - 1), np.diff(start))
        many = np.bincount(segment * (k + 1) + reached, minlength=(start.size - 1) * (k + 1))
        many = many.reshape(-1, k + 1)[:, 1:]
        out = np.empty((k + 1, start.size - 1), np.int64)
        out[k] = start[:-1]
        out[:k] = start[:-1] + np.cumsum(many[:, ::-1], axis=1)[:, ::-1].T
        return out


class Sparse(msgspec.Struct, frozen=True):
    """Array [group, label, ...] of which only some pairs of group and label are stored.

    An index has the group, the label, and arrays or numbers for all or none of the further axes.

    Attributes:
        values: [pairs + 1, ...], the values of each pair, and those of all others.
        place: int64 [group, label], place of each pair in ``values``.
    """

    values: Array
    place: Array

    def __getitem__(self, at: tuple[Any, ...]) -> Array:
        return np.asarray(self.values[(self.place[at[:2]], *at[2:])])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.values[self.place].astype(dtype or self.values.dtype, copy=False)


class Query(msgspec.Struct, frozen=True):
    """A query to the view of each span of labels, self-contained so that workers can answer it.

    Attributes:
        name: a method of :class:`RankedView` that returns arrays with labels as second axis.
        given: its arguments.
        head: the run's.
        labels: labels of the run.
        how: arguments of the view.
    """

    name: str
    given: tuple[Any, ...]
    head: Ranked
    labels: Labels
    how: dict[str, Any]

    def answer(self, span: Span, **more: Any) -> tuple[Array, ...]:
        """Compute the answer of one span.

        Args:
            **more: view arguments in addition to those of the query.
        """
        run = RankedRun(self.head, (Span(span.blocks, 0, span.last - span.first),), 0)
        view = RankedView(run, self.labels.some(span.first, span.last), **self.how, **more)
        return tuple(map(np.asarray, getattr(view, self.name)(*self.given)))


def _by_spans(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method run on every span and concatenate the results along the label axis."""

    @wraps(compute)
    def ask(view: RankedView, *args: Any) -> Any:
        run = view.run
        if len(run.spans) == 1 and run.elsewhere is None:
            return compute(view, *args)
        query = Query(compute.__name__, args, run.head, view.labels, view._how)
        if run.elsewhere is not None:
            results = run.elsewhere(query, run.spans)
        else:
            with ThreadPoolExecutor(1 if view.draws is not None else run.at_once) as threads:
                results = list(threads.map(partial(query.answer, over=view.over), run.spans))
        return tuple(np.concatenate(parts, axis=1) for parts in zip(*results, strict=True))

    return ask


class RankedView(View):
    """A ranked tally by groups; arrays have leading axes [group, label].

    Undefined cells (no ground truth) are NaN; frames turn them into null with a reason. With
    resamples, the groups are ``resamples * groups``, all groups of one resample together.

    Args:
        ranked: the ranked rows.
        interpolation: definition of precision.
        caps: ascending caps on rank for recall; the last one applies to everything else.
        crossed: confusion pairs, if requested.
        tallies: other tallies of the same rows, by name.
        draws: a block of resamples, or None.
        shared: results that depend only on the run and its groups, shared by views that differ in
            weights.
        **grouping: see :class:`View`.
    """

    def __init__(
        self,
        ranked: Ranked | RankedRun,
        labels: Labels,
        *,
        interpolation: Interpolation,
        caps: Array,
        crossed: ConfusedPairs | Deferred[ConfusedPairs] | None = None,
        tallies: Mapping[str, RankedAside] | None = None,
        draws: Draws | None = None,
        shared: dict[Any, Any] | None = None,
        **grouping: Any,
    ) -> None:
        super().__init__(labels, **grouping)
        self.run = RankedRun.of(ranked)
        self.tally = self.run.head
        self.interpolation = interpolation
        self.levels = interpolation.levels
        self.caps = caps
        self.crossed = crossed
        self.draws = draws
        self._slices = self.n_groups
        self.n_groups *= 1 if draws is None else len(draws)
        self._tallies = dict(tallies or {})
        self._shared = {} if shared is None else shared
        self._companions: dict[str, RankedView] = {}
        self._counts: dict[tuple[float, ...], tuple[Array, Array]] = {}

    @property
    def _how(self) -> dict[str, Any]:
        """Arguments that views of other rows, labels or weights have in common with this one."""
        return {
            "interpolation": self.interpolation,
            "caps": self.caps,
            "draws": self.draws,
            "group": self.group,
            "n_groups": self._slices,
            "weights": self.weights,
        }

    def _like(self, **changed: Any) -> RankedView:
        """Return a view of the same rows with other weights."""
        how = {**self._how, "crossed": self.crossed, "tallies": self._tallies, **changed}
        return RankedView(self.run, self.labels, shared=self._shared, over=self.over, **how)

    def drawn(self, draws: Draws) -> RankedView:
        """Return the view of a block of resamples."""
        return self._like(draws=draws)

    def weighing(self, weights: Array) -> RankedView:
        """Return the view with other weights of its datums, int64 [n_datums]."""
        return self._like(weights=weights, draws=None)

    def companion(self, name: str) -> RankedView | None:
        """Return the view of another tally with the same groups and weights, or None."""
        if name in self._tallies and name not in self._companions:
            other = self._tallies[name]
            no_cap = np.array([np.iinfo(np.int32).max])
            how = {**self._how, "interpolation": other.interpolation, "caps": no_cap}
            shared = self._shared.setdefault(("beside", name), {})
            self._companions[name] = RankedView(
                other.ranked, self.labels, shared=shared, over=self.over, **how
            )
        return self._companions.get(name)

    # -- rows and queries ------------------------------------------------------------------------

    @property
    def _shape(self) -> tuple[int, int, int, int]:
        """Groups of one resample, labels, area ranges, IoU thresholds."""
        variants = self.tally.variants
        return self._slices, len(self.labels), len(variants.areas), len(variants.thresholds)

    def blocks(self, *, backwards: bool = False) -> Iterator[Block]:
        """Yield the rows, the best scores of a label first, or last."""
        for _, tally in self.run.scan(backwards=backwards):
            if tally is not self.tally:
                yield Block(tally, self.group, self._slices)
                continue
            if "block" not in self._shared:
                self._shared["block"] = Block(tally, self.group, self._slices)
            yield self._shared["block"]

    def _draw_by_draw(self, name: str, *args: Any) -> Any:
        """Run a query on the view of every resample."""
        assert self.draws is not None
        weights = self.draws.weights.astype(np.int64).T
        each = [getattr(self.weighing(one), name)(*args) for one in weights]
        return tuple(map(np.concatenate, zip(*each, strict=True)))

    def _by_variant(self, parts: Sequence[Array], axis: int = 1) -> Array:
        """Combine arrays per word by area range and threshold.

        Args:
            parts: [segment, ..., variant, ...] per word.
            axis: the axis of variants.

        Returns:
            [segment, ..., area, threshold, ...].
        """
        _, _, n_areas, n_thresholds = self._shape
        before, after = parts[0].shape[:axis], parts[0].shape[axis + 1 :]
        if len(parts) == 1:
            return parts[0].reshape(*before, n_areas, n_thresholds, *after)
        out = np.empty((*before, n_areas, n_thresholds, *after), parts[0].dtype)
        rest: list[Any] = [slice(None)] * len(after)
        for part, word in zip(parts, self.tally.variants.words, strict=True):
            at: Any = (..., *word.places, *rest)
            out[at] = part.reshape(*before, word.n_areas, word.n_thresholds, *after)
        return out

    def _of_segments(self, parts: Sequence[Array], axis: int = 1) -> Array:
        """:meth:`_by_variant` of all segments, [group, label, ..., area, threshold, ...].

        Args:
            parts: with resamples as last axis, if any.
        """
        out = self._by_variant(parts, axis)
        return self._by_draw(out.reshape(*self._shape[:2], *out.shape[1:]))

    def _by_draw(self, array: Array) -> Array:
        """Merge the last axis, if it is that of resamples, with that of groups."""
        if self.draws is None:
            return array
        moved = np.ascontiguousarray(np.moveaxis(array, -1, 0))
        return moved.reshape(self.n_groups, *array.shape[1:-1])

    # -- numbers of rows -------------------------------------------------------------------------

    @property
    def positives(self) -> Array:
        """Ground truths that are not ignored, (weighted) [group, label, area]."""
        return np.asarray(self.sizes[2])

    @_by_spans
    def count_rows(self) -> tuple[Array, Array, Array]:
        """Count (weighted) predictions and ground truths, [group, label]; and :attr:`positives`."""
        groups, n_labels, n_areas, _ = self._shape
        shape, draws = (2 + n_areas, groups * n_labels), self.draws
        out = np.zeros(shape, np.int64) if draws is None else np.zeros((*shape, 1, len(draws)))
        for block in self.blocks():
            for column, (start, datum, here) in zip(out, block.columns(), strict=True):
                if draws is None:
                    column += self._weight_of(start, datum, here)
                    continue
                segment = np.repeat(np.arange(start.size - 1), np.diff(start))
                if here is None:
                    drawn_counts(datum, segment, None, draws.weights, column)
                else:
                    ones = here[:, None].astype(np.float64)
                    drawn_sums(datum, segment, ones, draws.weights, column)
        each = out.reshape(2 + n_areas, groups, n_labels, *out.shape[3:])
        predictions, truths, *positives = each if draws is None else map(self._by_draw, each)
        return predictions, truths, np.stack(positives, axis=-1)

    sizes = Lazy(count_rows)

    def _weight_of(self, start: Array, datum: Array, here: Array | None) -> Array:
        """Weight of some rows of each segment, int64 [s]."""
        if self.weights is None and here is None:
            return np.diff(start)
        weights = 1 if self.weights is None else self.weights[datum]
        upto = np.zeros(datum.size + 1, np.int64)
        np.cumsum(weights if here is None else weights * here, out=upto[1:])
        return np.diff(upto[start])

    # -- precision and true positives ------------------------------------------------------------

    @property
    def precision(self) -> Array | Sparse:
        """Interpolated precision, [group, label, area, threshold, level], at the last cap.

        If average precision is the area under the curve, that area is the only level. Resamples
        have the mean of the levels as the only one.
        """
        precision: Array | Sparse = self._precise[0]
        return precision

    def true_positives(self, lowest_score: float | None) -> Array | Sparse:
        """Return true positives by cap, [group, label, cap, area, threshold].

        They are 0 for labels without ground truth.

        Args:
            lowest_score: ignore lower scores; None for all.
        """
        lowest = -np.inf if lowest_score is None else self.tally.comparable(lowest_score)
        if lowest_score is None or not any(
            tally.skipped.any() or (tally.score < lowest).any() for _, tally in self.run.scan()
        ):
            true: Array | Sparse = self._precise[1]
        else:
            (true,) = self.find_true(lowest)
        return true

    @_by_spans
    def make_precise(self) -> tuple[Array | Sparse, Array | Sparse]:
        """Compute :attr:`precision` and :meth:`true_positives` of all scores."""
        how, levels = self.interpolation, self.interpolation.averaged
        if self.draws is not None:
            grid = grid_of(levels, integer_grid=how.integer_grid)
            if how.linear is not None or how.positions is not None or grid is None:
                precision, true = self._draw_by_draw("make_precise")
                return precision.mean(axis=-1, keepdims=True), true
            return self._make_drawn(grid)
        sampled, _, true = self._sample(self.caps, levels)
        if how.linear is not None:
            return averaged(self._curve[0], self.levels, how.linear), true
        if how.positions is not None:
            return self._curve[0][..., how.positions], true
        if how.every_point:
            positives = self.positives[self.positives.any(axis=-1)]
            sampled.values[:-1] /= np.maximum(positives, 1)[..., None, None]
        return sampled, true

    _precise = Lazy(make_precise)

    @Lazy
    def _curve(self) -> tuple[Array, Array, Array | None]:
        """Precision, scores and similarity of angles by level, on lines or at positions."""
        if self.interpolation.linear is not None:
            return (*on_lines(self, self._shape), None)
        return at_positions(self, self._shape)

    @_by_spans
    def find_true(self, lowest: float) -> tuple[Array | Sparse]:
        """Compute :meth:`true_positives` of scores from ``lowest`` on."""
        if self.draws is None:
            return (self._sample(self.caps, None, lowest=lowest)[2],)
        counted = self._nothing(self.caps.size)
        for block in self.blocks():
            end, begin = block.reaching(np.array([lowest]))
            self._down(block, (begin, end), np.zeros(0, np.bool_), self.caps, counted)
        return (self._under_caps(counted),)

    @_by_spans
    def sampled_with_scores(self, cap: int) -> Any:
        """Return precision, scores at which levels are reached, and true positives under one cap.

        Scores are NaN at levels that are not reached. Level 0 is reached by the best score, even
        for labels without ground truth.
        """
        if self.draws is not None:
            return self._draw_by_draw("sampled_with_scores", cap)
        how = self.interpolation
        if how.linear is not None or how.positions is not None:
            return (*self._curve[:2], self._precise[1])
        return tuple(map(np.asarray, self._sample(np.array([cap]), self.levels, scores=True)))

    @property
    def similarity(self) -> Array:
        """Similarity of angles, in the shape of :attr:`precision`; NaN without angles."""
        return np.asarray(self.compare_angles()[0])

    @_by_spans
    def compare_angles(self) -> Any:
        """Compute :attr:`similarity`."""
        if self.draws is not None:
            return self._draw_by_draw("compare_angles")
        precision, _, similarity = self._curve
        values = np.full(precision.shape, np.nan) if similarity is None else similarity
        return (values[..., self.interpolation.positions or ()],)

    # -- one pass down and one up, in exact numbers ----------------------------------------------

    def _sample(
        self,
        caps: Array,
        levels: Array | None,
        *,
        scores: bool = False,
        lowest: float | None = None,
    ) -> tuple[Sparse, Sparse, Sparse]:
        """Run the average-precision kernel over all rows.

        Blocks are read down to the last, and up again: the counts before each are kept.

        Args:
            caps: int64 [m], ascending caps on rank.
            levels: float64 [r], recall levels; [0] for the area; None for no precision.
            scores: return the scores at which levels are reached.
            lowest: ignore lower scores, and no other rows; None ignores skipped rows.

        Returns:
            precision, scores and true positives, see
            :func:`evalengine.kernels.average_precision.sample_precision`, of labels with positives.
        """
        words = self.tally.variants.words
        n_levels = 0 if levels is None else levels.size or 1
        grid = np.zeros(0) if levels is None else levels
        # The kernel skips labels without positives. With scores they get one that no row hits.
        positives = np.maximum(self.positives, 1) if scores else self.positives
        here = positives.any(axis=-1)
        some = np.flatnonzero(here)
        n_segments = some.size + 1  # the last one has no rows
        carried, curves, every = [], [], []
        for word in words:
            shape = word.n_thresholds, word.n_areas
            size = n_segments, word.n_thresholds * word.n_areas
            carried.append(nothing_carried(n_segments, shape, grid.size))
            reached = np.full((*size, n_levels if scores else 0), np.nan)
            curves.append((np.zeros((*size, n_levels)), reached))
            every.append(np.zeros((n_segments, caps.size, size[1]), np.int64))
        sample = partial(self._sample_block, lowest, caps, some, positives[here], grid)
        before = []
        for block in islice(self.blocks(), len(self.run.spans[0].blocks) - 1):
            before.append([Carried(*map(np.copy, one)) for one in carried])
            nothing = [(curve[..., :0].copy(), at[..., :0].copy()) for curve, at in curves]
            counts = sample(block, carried, nothing)
            for one, total, true in zip(carried, every, counts, strict=True):
                one.right[:] += true[:, -1]
                total += true
        for number, block in enumerate(self.blocks(backwards=True)):
            if number:
                carried = [
                    saved._replace(envelope=one.envelope, level=one.level, needed=one.needed)
                    for saved, one in zip(before.pop(), carried, strict=True)
                ]
            counts = sample(block, carried, curves)
            if number:
                continue
            for total, true in zip(every, counts, strict=True):
                total += true
            if not n_levels:
                break
        place = np.where(here, np.cumsum(here).reshape(here.shape) - 1, some.size)
        precision, reached_at = zip(*curves, strict=True)
        return (
            Sparse(self._by_variant(precision), place),
            Sparse(self._by_variant(reached_at), place),
            Sparse(self._by_variant(every, 2), place),
        )

    def _sample_block(
        self,
        lowest: float | None,
        caps: Array,
        some: Array,
        positives: Array,
        levels: Array,
        block: Block,
        carried: Sequence[Carried],
        curves: Sequence[tuple[Array, Array]],
    ) -> list[Array]:
        """Run the kernel over some segments of one block, per word; return true positives by cap.

        Args:
            some: int64 [s], segments.
            positives: int64 [s, area].
        """
        tally = block.tally
        start, order = block.rows
        begin, end = start[some], start[some + 1]
        weight = self._weight(tally)
        weight[tally.rank >= caps[-1]] = 0
        left_out = tally.skipped if lowest is None else tally.score < lowest
        if left_out.size:
            weight[left_out] = 0
        rows_before, longest = np.r_[0, np.cumsum(end - begin)], int((end - begin).max(initial=0))
        words = tally.variants.words
        counts = [
            np.zeros((some.size + 1, caps.size, word.n_thresholds * word.n_areas), np.int64)
            for word in words
        ]

        def sample(w: int, first: int, last: int) -> None:
            t, a = words[w].n_thresholds, words[w].n_areas
            sample_precision(
                first,
                last,
                begin=begin,
                end=end,
                order=order,
                outcomes=(tally.hit[w], tally.ignored[w], tally.rank, tally.score),
                weight=weight,
                shape=(t, a),
                positives=np.repeat(positives[:, words[w].places[0]], t, axis=1),
                caps=caps,
                levels=levels,
                out=(*curves[w], counts[w]),
                integer_grid=self.interpolation.integer_grid,
                epsilon=self.interpolation.epsilon,
                carried=carried[w],
                room=(np.empty(t * a, np.int64), np.empty((longest, 1 + a), np.int64)),
            )

        for w in range(len(words)):
            self.over(rows_before, partial(sample, w))
        return counts

    def _weight(self, tally: Ranked) -> Array:
        """Multiplicity of each row, int64 [n]."""
        if self.weights is None:
            return np.ones(tally.score.size, np.int64)
        return self.weights[tally.datum]

    # -- counts at score thresholds --------------------------------------------------------------

    def counts(self, score_thresholds: tuple[float, ...]) -> tuple[Array, Array]:
        """Return true and false positives, [group, label, area, threshold, score] each.

        Args:
            score_thresholds: ascending; a prediction counts at those its score reaches.
        """
        if score_thresholds not in self._counts:
            grid = np.array([self.tally.comparable(t) for t in score_thresholds])
            count = self.count_by_score if self.draws is None else self.count_drawn_by_score
            self._counts[score_thresholds] = count(grid)
        return self._counts[score_thresholds]

    @_by_spans
    def count_by_score(self, score_thresholds: Array) -> tuple[Array, ...]:
        """Compute :meth:`counts`."""
        words, n_scores = self.tally.variants.words, score_thresholds.size
        n_segments = self._slices * len(self.labels)
        sizes = [word.n_areas * word.n_thresholds for word in words]
        total = [np.zeros((2, n_segments, n_scores, size), np.int64) for size in sizes]
        for block in self.blocks():
            tally = block.tally
            start, order = block.rows
            weight = self._weight(tally)
            for w, word in enumerate(words):
                counted = np.zeros((2, n_segments, n_scores + 1, sizes[w]), np.int64)
                count = partial(
                    count_by_threshold,
                    start=start,
                    order=order,
                    outcomes=(tally.hit[w], tally.ignored[w], tally.score),
                    weight=weight,
                    shape=(word.n_thresholds, word.n_areas),
                    score_thresholds=score_thresholds,
                    out=(counted[0], counted[1]),
                )
                self.over(start, count)
                total[w] += counted[:, :, 1:]
        tp, fp = (self._of_segments(side, 2) for side in zip(*total, strict=True))
        return tuple(np.ascontiguousarray(np.moveaxis(one, 2, -1)) for one in (tp, fp))

    # -- resamples -------------------------------------------------------------------------------

    def _nothing(self, n_caps: int) -> list[Counted]:
        """Return the initial state of a pass over the rows of many resamples, per word."""
        assert self.draws is not None
        if self.sizes[0].max(initial=0) > np.iinfo(np.int32).max:
            raise OneByOne  # counts of all resamples at once have 32 bits
        n_segments = self._slices * len(self.labels)
        return [
            nothing_counted(n_segments, (word.n_thresholds, word.n_areas), n_caps, len(self.draws))
            for word in self.tally.variants.words
        ]

    def _down(
        self,
        block: Block,
        bounds: tuple[Array, Array],
        left_out: Array,
        caps: Array,
        counted: list[Counted],
    ) -> None:
        """Count some rows of each segment in every resample."""
        assert self.draws is not None
        for w, word in enumerate(self.tally.variants.words):
            walk = partial(
                walk_down,
                rows=_rows(block, w, bounds, left_out),
                weights=self.draws.weights,
                shape=(word.n_thresholds, word.n_areas),
                caps=caps,
                counted=counted[w],
            )
            self.over(block.rows[0], walk)

    def _under_caps(self, counted: list[Counted]) -> Array:
        """True positives under each cap, [resample * group, label, cap, area, threshold]."""
        for one in counted:
            for m in range(1, one.right.shape[1]):
                one.right[:, m] += one.right[:, m - 1]
        return self._of_segments([one.right for one in counted], 2)

    def _make_drawn(self, grid: Grid) -> tuple[Array, Array]:
        """:meth:`make_precise` per resample."""
        assert self.draws is not None
        how = self.interpolation
        counted = self._nothing(self.caps.size)
        for block in self.blocks():
            start, _ = block.rows
            self._down(block, (start[:-1], start[1:]), block.tally.skipped, self.caps, counted)
        true = self._under_caps(counted)
        n_draws, n_areas = len(self.draws), self._shape[2]
        positives = np.maximum(self.positives, 1.0).reshape(n_draws, -1, n_areas)
        positives = np.ascontiguousarray(positives.transpose(1, 2, 0))  # segment, area, resample
        if how.every_point:
            positives[:] = 1.0
        state = [
            (one.plain, one.wrong, one.right[:, -1].copy(), *np.zeros((2, *one.wrong.shape)))
            for one in counted
        ]
        for block in self.blocks(backwards=True):
            start, _ = block.rows
            for w, word in enumerate(self.tally.variants.words):
                walk = partial(
                    walk_up,
                    rows=_rows(block, w, (start[:-1], start[1:]), block.tally.skipped),
                    weights=self.draws.weights,
                    shape=(word.n_thresholds, word.n_areas),
                    cap=int(self.caps[-1]),
                    positives=positives[:, word.places[0]],
                    grid=grid,
                    held=state[w],
                    epsilon=how.epsilon,
                )
                self.over(start, walk)
        total = self._of_segments([sums for *_, sums in state])
        total /= np.maximum(self.positives, 1.0)[..., None] if how.every_point else grid.last + 1
        return total[..., None], true

    @_by_spans
    def count_drawn_by_score(self, score_thresholds: Array) -> tuple[Array, Array]:
        """:meth:`count_by_score` per resample."""
        every = [self._nothing(1) for _ in range(score_thresholds.size)]
        no_cap = np.array([np.iinfo(np.int64).max])
        for block in self.blocks():
            at = block.reaching(score_thresholds)
            for c, counted in enumerate(every):
                self._down(block, (at[c + 1], at[c]), np.zeros(0, np.bool_), no_cap, counted)
        words = self.tally.variants.words
        shape = self.n_groups, *self._shape[1:], len(every)
        true, false = np.zeros((2, *shape))
        for c in reversed(range(len(every))):
            counted = every.pop()
            true[..., c] = self._of_segments([one.right[:, 0] for one in counted])
            false[..., c] = self._of_segments(
                [
                    one.wrong + one.plain.repeat(word.n_thresholds, axis=1)
                    for one, word in zip(counted, words, strict=True)
                ]
            )
            if c + 1 < shape[-1]:
                true[..., c] += true[..., c + 1]
                false[..., c] += false[..., c + 1]
        return true, false

    # -- points ----------------------------------------------------------------------------------

    def counted_rows(self, iou: float, *, pooled: bool = False) -> Iterable[CountedRows]:
        """Predictions that count at one IoU threshold, by label or pooled by label key.

        Points and bins are chosen in each resample, so that views of many resamples have none.
        """
        assert self.draws is None
        if (iou, pooled) not in self._shared:
            labels = self.labels
            scan = CountedScan(self.run, iou, labels.key, len(labels.key_names) if pooled else 0)
            by_label = self.counted_rows(iou) if pooled else None
            self._shared[iou, pooled] = scan.load_if_small(by_label)
        return self._shared[iou, pooled]

    def point_blocks(self, iou: float, *, pooled: bool = False) -> Iterator[Points]:
        """Yield points at every distinct score of each (group, label), in blocks.

        Args:
            iou: one of the tally's thresholds.
            pooled: pool all labels of a key.
        """
        rows = self.counted_rows(iou, pooled=pooled)
        return point_blocks(rows, self.group, self.n_groups, self.weights)

    def binned(self, iou: float, n_scores: int) -> Binned:
        """Predictions that count there by place and so many bins of scores."""
        return binned(self.counted_rows(iou), self.group, self.n_groups, self.weights, n_scores)


def _rows(block: Block, w: int, bounds: tuple[Array, Array], left_out: Array) -> Rows:
    """Some rows of each segment, with the outcomes of one word."""
    tally = block.tally
    return Rows(
        *bounds, block.rows[1], tally.hit[w], tally.ignored[w], tally.rank, tally.datum, left_out
    )
