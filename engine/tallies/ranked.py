"""Ranked rows: predictions per label in score order, each with its match at every IoU threshold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ..kernels.order import group_rows
from ..schemas.arrays import Array
from ..schemas.tuning import tuning
from . import stored
from .datums import Deferred
from .registry import stored_as

# Thresholds in the precision of the scores they are compared with.


def comparable(threshold: float, *, single: bool) -> float:
    """Cast a threshold to the dtype of the scores.

    A score of 0.3 in a single-precision column differs from the double 0.3; after the same
    rounding it reaches the threshold 0.3.
    """
    with np.errstate(over="ignore"):  # no score reaches values beyond float32
        return float(np.float32(threshold)) if single else threshold


# Counts: sparse integer counts by key.


@stored_as("detection.confusion/1")
class ConfusedPairs(msgspec.Struct, frozen=True):
    """Pairs of predictions and ground truths with different labels, for the confusion matrix.

    One entry is one pair at one IoU threshold, for all score thresholds of ``scores``.

    Attributes:
        actual: int32 [n], label code of the ground truth.
        predicted: int32 [n], label code of the prediction.
        threshold: int32 [n], index of the IoU threshold.
        scores: uint64 [words, n], one bit per score threshold, 64 per word.
        datum: int32 [n], datum code.
    """

    actual: Array
    predicted: Array
    threshold: Array
    scores: Array
    datum: Array


def counted(counts: ConfusedPairs | Deferred[ConfusedPairs] | None) -> ConfusedPairs | None:
    """Return counts, computed if they are deferred."""
    return counts.value if isinstance(counts, Deferred) else counts


# Ranked rows: predictions sorted by score per label, with their hits at every variant.

BITS = 64


class UnmatchedError(KeyError):
    """No matching was done at an IoU threshold."""


class Word(msgspec.Struct, frozen=True):
    """Variants stored in one 64-bit word: ``n_areas`` times ``n_thresholds`` from the first.

    Bit v of the word is area ``first_area + v // n_thresholds`` at threshold
    ``first_threshold + v % n_thresholds``.
    """

    first_threshold: int
    n_thresholds: int
    first_area: int
    n_areas: int

    @property
    def places(self) -> tuple[slice, slice]:
        """Its area ranges and thresholds among all."""
        return (
            slice(self.first_area, self.first_area + self.n_areas),
            slice(self.first_threshold, self.first_threshold + self.n_thresholds),
        )


@stored_as("ranked.variants/1")
class Variants(msgspec.Struct, frozen=True):
    """Combinations of IoU threshold and area range at which rows are matched.

    Attributes:
        thresholds: ascending IoU thresholds.
        areas: (name, low, high) each; name None without area ranges.
    """

    thresholds: tuple[float, ...]
    areas: tuple[tuple[str | None, float, float], ...]

    @property
    def words(self) -> tuple[Word, ...]:
        """Words for all variants; an area range is split only if it does not fit one word."""
        t, a = len(self.thresholds), len(self.areas)
        if t > BITS:
            return tuple(
                Word(at, min(BITS, t - at), area, 1)
                for area in range(a)
                for at in range(0, t, BITS)
            )
        each = BITS // t
        return tuple(Word(0, t, at, min(each, a - at)) for at in range(0, a, each))

    def threshold_index(self, iou: float) -> int:
        """Return the index of a threshold by value.

        Raises:
            UnmatchedError: no matching was done at that threshold.
        """
        gaps = np.abs(np.asarray(self.thresholds) - iou)
        nearest = int(np.argmin(gaps))
        if gaps[nearest] > 1e-9:
            raise UnmatchedError(f"no pairs were matched at IoU {iou}")
        return nearest

    def bit(self, threshold: int) -> tuple[int, int]:
        """Word and bit of a threshold in the first area range."""
        for w, word in enumerate(self.words):
            at = threshold - word.first_threshold
            if word.first_area == 0 and 0 <= at < word.n_thresholds:
                return w, at
        raise IndexError(threshold)


@stored_as("ranked/1")
class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """Predictions of one bucket, ranked by descending score within each label.

    Ties are ordered by datum, then row (Valor's dialects: by IoU first).

    Attributes:
        variants: meaning of the bits of ``hit`` and ``ignored``.
        start: int64 [labels + 1], offsets of each label's rows.
        score: float64 [n].
        datum: int32 [n].
        row: int64 [n], row of the prediction in its table.
        rank: int32 [n], within (datum, label), from 0.
        hit: uint64 [words, n], true positives.
        ignored: uint64 [words, n], neither true nor false positives.
        skipped: bool [n] or [0], excluded from average precision, though counted elsewhere.
        tie: float64 [n] or [0], orders equal scores before datum and row, higher first.
        gt_start: int64 [labels + 1], offsets of each label's ground truths.
        gt_datum: int32 [m].
        gt_row: int64 [m], row of the ground truth in its table.
        gt_counted: uint64 [words, m], not ignored.
        cap: rows of that rank or beyond are ignored everywhere; None for no cap.
        single: scores came in single precision; thresholds are then rounded to it, so that a score
            of 0.3 reaches the threshold 0.3.
        most: number of best rows per label that count; the rest are ignored. 0 for no limit.
        place: int64 [n] or [0], bin of each prediction's position and size in its image.
        values: float64 [k, n], further values per row, or [0, 0].
    """

    variants: Variants
    start: Array
    score: Array
    datum: Array
    row: Array
    rank: Array
    hit: Array
    ignored: Array
    skipped: Array = np.zeros(0, np.bool_)
    tie: Array = np.zeros(0)
    gt_start: Array
    gt_datum: Array
    gt_row: Array
    gt_counted: Array
    cap: int | None = None
    single: bool
    most: int = 0
    place: Array = np.zeros(0, np.int64)
    values: Array = np.zeros((0, 0))

    def limited(self, before: int = 0) -> Ranked:
        """Return the tally with rows beyond ``most`` per label ignored.

        Args:
            before: rows of the single label that precede these, in other tallies.
        """
        if not self.most or self.score.size + before <= self.most:
            return self
        place = (
            before + np.arange(self.score.size) - np.repeat(self.start[:-1], np.diff(self.start))
        )
        beyond = place >= self.most
        none, every = np.uint64(0), ~np.uint64(0)
        return msgspec.structs.replace(
            self,
            hit=np.where(beyond, none, self.hit),
            ignored=np.where(beyond, every, self.ignored),
        )

    def ordered(self, code: Array | None = None) -> tuple[Any, ...]:
        """Return rows and ground truths in an order independent of their tables.

        Args:
            code: unused.
        """
        sides = (
            (self.start, self.datum, [self.score, *self.hit, *self.ignored, *self.values]),
            (self.gt_start, self.gt_datum, [*self.gt_counted]),
        )
        fields: list[Any] = [self.variants, self.cap, self.single, self.most]
        for start, datum, columns in sides:
            label = np.repeat(np.arange(start.size - 1), np.diff(start))
            every = [*columns[::-1], datum, label]
            order = np.lexsort(every)
            fields += [column[order] for column in every]
        return tuple(fields)

    def outcomes(self, threshold: int) -> tuple[Array, Array]:
        """Hits and ignored rows at an IoU threshold, in the first area range, bool [n] each."""
        word, bit = self.variants.bit(threshold)
        at = np.uint64(1) << np.uint64(bit)
        return (self.hit[word] & at) != 0, (self.ignored[word] & at) != 0

    def regular(self, threshold: int) -> Array:
        """Ground truths that are not ignored there, bool [m]."""
        word, bit = self.variants.bit(threshold)
        return np.asarray((self.gt_counted[word] >> np.uint64(bit)) & np.uint64(1) != 0)

    def comparable(self, threshold: float) -> float:
        """A score threshold as the scores' own precision can express it."""
        return comparable(threshold, single=self.single)

    @property
    def n_labels(self) -> int:
        return int(self.start.size - 1)


# Rows of some labels.

OF_ROWS = ("score", "datum", "row", "rank", "hit", "ignored", "skipped", "tie", "place", "values")
"""Columns of predictions, one entry per row."""
OF_TRUTHS = ("gt_datum", "gt_row", "gt_counted")
"""Columns of ground truths, one entry per row."""


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
    return msgspec.structs.replace(
        ranked,
        start=np.clip(ranked.start, *rows) - rows[0],
        gt_start=np.clip(ranked.gt_start, *gt_rows) - gt_rows[0],
        **{name: getattr(ranked, name)[..., slice(*rows)] for name in OF_ROWS},
        **{name: getattr(ranked, name)[..., slice(*gt_rows)] for name in OF_TRUTHS},
    )


def without_rows(ranked: Ranked) -> Ranked:
    """A tally without its rows: variants, cap and precision."""
    zeros = np.zeros(ranked.n_labels + 1, np.int64)
    none = of_rows(ranked, (0, 0), (0, 0))
    return msgspec.structs.replace(none, start=zeros, gt_start=zeros)


def with_datums(ranked: Ranked, codes: Array) -> Ranked:
    """Replace the datum codes of the rows.

    Args:
        codes: int32 [datums], new code of each old one.
    """
    return msgspec.structs.replace(
        ranked, datum=codes[ranked.datum], gt_datum=codes[ranked.gt_datum]
    )


_DTYPES = {
    "score": np.float64,
    "rank": np.int32,
    "hit": np.uint64,
    "ignored": np.uint64,
    "gt_counted": np.uint64,
}
"""Columns that are narrower on disk, if no value changes."""


def narrowed(ranked: Ranked) -> Ranked:
    """Return the tally as it is on disk, without the numbers of rows in their tables."""
    none = np.zeros(0, np.int8)
    columns = {name: getattr(ranked, name) for name in _DTYPES}
    narrow = {name: values.astype(stored.narrowest(values)) for name, values in columns.items()}
    return msgspec.structs.replace(ranked, row=none, gt_row=none, **narrow)


def widened(ranked: Ranked) -> Ranked:
    """Return a tally of :func:`narrowed` rows in its usual dtypes."""
    return msgspec.structs.replace(
        ranked,
        **{
            name: getattr(ranked, name).astype(dtype, copy=False) for name, dtype in _DTYPES.items()
        },
    )


def by_group(
    start: Array, datum: Array, group: Array | None, n_groups: int, weights: Array | None = None
) -> tuple[Array, Array]:
    """Rows by (group, label), as often as they count: offsets, and their order.

    Args:
        start: int64 [labels + 1], CSR offsets of the rows.
        group: int32 [n_datums], -1 for none; None for a single group.
        weights: int64 [n_datums], multiplicity of each datum, or None.
    """
    if group is None:
        order = np.arange(datum.size, dtype=np.int32)
    else:
        start, order = group_rows(start, datum, group, n_groups)
        order = order[: start[-1]]
    if weights is None:
        return start, order
    many = weights[datum[order]]
    return np.r_[0, np.cumsum(many)][start], np.repeat(order, many)


# The run: ranked rows of all buckets, label by label, in memory or in files.


class Span(msgspec.Struct, frozen=True):
    """Rows of consecutive labels. Only a single label may have several blocks.

    Attributes:
        blocks: rows, or files of rows written by :func:`evalengine.tallies.stored.save`. Rows of
            one block precede those of the next.
        first: the first label.
        last: one past the last.
    """

    blocks: tuple[Ranked | str, ...]
    first: int
    last: int


class RankedRun(msgspec.Struct, frozen=True):
    """Ranked rows label by label, in memory or in files; a tally in memory is one block.

    Attributes:
        head: variants, cap and precision of all rows; rows in files are not part of it.
        spans: all labels, in order.
        n_rows: number of predictions.
        at_once: number of spans that may be in memory together.
        elsewhere: answers a query for every span outside of this process; None to answer it here.
    """

    head: Ranked
    spans: tuple[Span, ...]
    n_rows: int
    at_once: int = 1
    elsewhere: Callable[[Any, Sequence[Span]], list[tuple[Array, ...]]] | None = None

    @classmethod
    def of(cls, ranked: Ranked | RankedRun) -> RankedRun:
        """Return the run of a tally."""
        if isinstance(ranked, RankedRun):
            return ranked
        return cls(ranked, (Span((ranked,), 0, ranked.n_labels),), ranked.score.size)

    @property
    def variants(self) -> Variants:
        """Variants of all rows."""
        return self.head.variants

    def scan(self, *, backwards: bool = False) -> Iterator[tuple[int, Ranked]]:
        """Yield all rows block by block, each with its first label.

        Args:
            backwards: start with the last block.
        """
        step = -1 if backwards else 1
        for span in self.spans[::step]:
            for block in span.blocks[::step]:
                yield (
                    span.first,
                    widened(stored.mapped(block)) if isinstance(block, str) else block,
                )

    def fits(self, bytes_of_row: int) -> bool:
        """Return True if so many bytes per prediction may be kept in memory."""
        in_memory = self.head.score.size == self.n_rows
        return in_memory or self.n_rows * bytes_of_row <= tuning().drawn_bytes


# Settings of average precision over a view of ranked rows.


class Interpolation(NamedTuple):
    """Definition of average precision from interpolated precision.

    Attributes:
        levels: float64 [r], ascending recall levels of the curve, near 0, 1 / (r - 1), ..., 1.
        every_point: average precision is the area under the curve, whose recall rises at each true
            positive; otherwise the mean at the levels.
        integer_grid: see :func:`evalengine.kernels.average_precision.sample_precision`.
        epsilon: see there.
        linear: settings for linear precision, see :mod:`.ranked_points`; None if interpolated.
        positions: indices of the levels to average, for rows matched again at every score, see
            :mod:`.ranked_points`; otherwise None.
    """

    levels: Array
    every_point: bool = False
    integer_grid: bool = False
    epsilon: float = 0.0
    linear: float | None = None
    positions: tuple[int, ...] | None = None

    @property
    def averaged(self) -> Array:
        """Levels over which average precision is the mean, [0] if it is the area."""
        return self.levels[:0] if self.every_point else self.levels


class RankedAside(NamedTuple):
    """Another ranked tally of the same datums and labels, and its definition of precision."""

    ranked: Ranked
    interpolation: Interpolation
