"""Units: one row per datum and label key, with its true labels and predicted scores."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from ..kernels.labels import HIT, OTHER, STRAY
from ..kernels.order import partition
from ..kernels.scores import add_wins, best_of_blocks, count_reaching, first_reaching, place_table
from ..schemas.arrays import Array
from .datums import Lazy, pieces
from .ranked import Ranked, comparable
from .registry import stored_as

# Grids of scores: every datum lists the same labels in the same order.

_PIECE = 1 << 20  # scores that one thread takes at a time
_SHARE = 4  # positives are at most one in so many rows, or a sort of all rows costs less
_MOST = 1 << 17  # positives of a label at most, whose table then stays in a cache


@stored_as("classification.grid/1")
class Grid(msgspec.Struct, frozen=True):
    """Label and unit of each row, for rows that repeat the same labels in the same order.

    Attributes:
        label: int32 [w], unique label codes; row r has ``label[r % w]``.
        unit: int32 [b], unique units; row r has ``unit[r // w]``.
    """

    label: Array
    unit: Array

    @property
    def labels(self) -> Array:
        """Label code of every row, int32 [b * w]."""
        return np.tile(self.label, self.unit.size)

    @property
    def units(self) -> Array:
        """Unit of every row, int32 [b * w]."""
        return np.repeat(self.unit, self.label.size)


def outcomes_of(grid: Grid, truth: Array) -> Array:
    """Return the outcome of every row, uint8 [b * w]; see ``match_labels``.

    Args:
        truth: int32 [u], true label of each unit, -1 for none.
    """
    width, blocks = grid.label.size, grid.unit.size
    out = np.full(blocks * width, OTHER, np.uint8)
    true = truth[grid.unit]
    column = np.full(int(max(grid.label.max(), true.max(initial=-1))) + 2, -1, np.int64)
    column[grid.label] = np.arange(width)  # the last one stays for -1
    at = column[true]
    hit = np.flatnonzero(at >= 0)
    out[hit * width + at[hit]] = HIT
    out.reshape(blocks, width)[true < 0] = STRAY
    return out


def best_labels(grid: Grid, parts: tuple[Array, ...], n_units: int) -> tuple[Array, Array]:
    """Return the hard prediction of every unit: the label with the highest score, first among ties.

    Args:
        parts: float64 arrays, all scores in total.
        n_units: number of units; 0 if not needed.

    Returns:
        label codes int32 [u], -1 for units without a row; their scores float64 [u], NaN for them.
    """
    hard, hard_score = np.full(n_units, -1, np.int32), np.full(n_units, np.nan)
    if n_units:
        place, best = np.empty(grid.unit.size, np.int32), np.empty(grid.unit.size)
        for first, piece in pieces(parts, _PIECE):
            best_of_blocks(piece, first, grid.label.size, place, best)
        hard[grid.unit] = grid.label[place]
        hard_score[grid.unit] = best
    return hard, hard_score


class GridCounts:
    """Areas and counts at thresholds, for a grid in which every unit has a truth.

    Only the positives are sorted; other rows are counted in place.

    Args:
        parts: float64 arrays, all scores in total.
        hits: int64 [m], ascending, rows whose label is true.
        over: calls a function on ranges with offsets, possibly in parallel.
    """

    def __init__(
        self, grid: Grid, parts: tuple[Array, ...], hits: Array, n_labels: int, over: Any
    ) -> None:
        self._grid, self._over, self._n_labels = grid, over, n_labels
        self._pieces = list(pieces(parts, _PIECE))
        width = grid.label.size
        column = (hits % width).astype(np.int32)
        of_hit = np.empty(hits.size)
        for first, piece in self._pieces:
            a, b = np.searchsorted(hits, (first, first + piece.size))
            of_hit[a:b] = piece[hits[a:b] - first]
        outcome = np.zeros(hits.size, np.uint8)
        self.start, self.score, _ = partition([of_hit], outcome, column, None, None, (1, width, 1))
        for a, b in zip(self.start[:-1].tolist(), self.start[1:].tolist(), strict=True):
            self.score[a:b].sort()

    @staticmethod
    def fits(hits: Array, grid: Grid) -> bool:
        """Return True if positives are few enough for this method to be faster.

        Args:
            hits: int64 [m], rows whose label is true.
        """
        width, blocks = grid.label.size, grid.unit.size
        if hits.size * _SHARE > width * blocks:
            return False
        return bool(np.bincount(hits % width, minlength=1).max() <= _MOST)

    def _sum(self, shape: tuple[int, ...], add: Any) -> Array:
        """Return the int64 array to which ``add`` contributes for every piece."""
        partials: list[Array] = []
        offsets = np.array([first for first, _ in self._pieces] + [self._rows])

        def some(first: int, last: int) -> None:
            out = np.zeros(shape, np.int64)
            for offset, piece in self._pieces[first:last]:
                add(piece, offset, out)
            partials.append(out)  # a list takes this from several threads

        self._over(offsets, some)
        return sum(partials, np.zeros(shape, np.int64))

    @property
    def _rows(self) -> int:
        return self._grid.label.size * self._grid.unit.size

    def _by_label(self, by_column: Array) -> Array:
        """[w, ...] to [1, label, ...], zeros for labels without a column."""
        out = np.zeros((self._n_labels, *by_column.shape[1:]))
        out[self._grid.label] = by_column
        return out[None]

    @property
    def listed(self) -> tuple[Array, Array, Array]:
        """Rows that hit, that do not, and that are stray, float64 [1, label] each."""
        hits = np.diff(self.start)
        return (
            self._by_label(hits),
            self._by_label(self._grid.unit.size - hits),
            np.zeros((1, self._n_labels)),
        )

    def won(self) -> Array:
        """Pairs that the positive wins, ties counting half, float64 [1, label]."""
        tables = place_table(self.start, self.score)
        n = np.diff(self.start)
        twice = self._sum(n.shape, lambda piece, row, out: add_wins(piece, row, tables, out))
        return self._by_label((twice - n * n) / 2)  # positives are among the rows themselves

    def reached(self, thresholds: Array) -> tuple[Array, Array, Array]:
        """Count hits, others and strays at or above each threshold, float64 [1, label, threshold].

        Args:
            thresholds: float64 [t], ascending.
        """
        width, t = self._grid.label.size, thresholds.size
        hits = self.start[1:, None] - first_reaching(
            self.start[:-1], self.start[1:], self.score, thresholds
        )
        every = np.zeros((width, t), np.int64)
        if t:
            every = self._sum(
                every.shape,
                lambda piece, row, out: count_reaching(piece, row, width, thresholds, out),
            )
        every = every[:, ::-1].cumsum(axis=1)[:, ::-1]
        strays = np.zeros((1, self._n_labels, t))
        return self._by_label(hits), self._by_label(every - hits), strays


# Units: one row per datum and label key, with its true and predicted labels.

_SHARING = Lock()  # views side by side wait for the one that sorts


def one_array(parts: tuple[Array, ...]) -> Array:
    """Pieces of a column as one array."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.zeros(0)


@stored_as("classification.facts/1")
class Facts(msgspec.Struct, frozen=True):
    """Per-unit inputs of top-k accuracy, log loss, Brier score and calibration.

    Attributes:
        true_score: float64 [u], score of the true label; NaN if it is not listed.
        rank: int32 [u], rank of the true label from 0; meaningless if it is not listed.
        squared: float64 [u], sum over listed labels of (score - truth)^2.
    """

    true_score: Array
    rank: Array
    squared: Array


@stored_as("classification.units/1", changes={1: {"row": None}})
class Units(msgspec.Struct, frozen=True):
    """The units of one bucket, in datum order.

    Attributes:
        datum: int32 [u], datum codes; None if unit u is datum u.
        key: int32 [u], codes of label keys; None if there is one.
        truth: true labels: int32 [u], -1 for none, or [m] with offsets ``truth_start``.
        truth_start: int64 [u + 1], CSR offsets of each unit's true labels; None if units have at
            most one.
        hard: int32 [u], label predicted, -1 for none; None if not needed.
        hard_score: float64 [u], its score, or None.
        weight: float64 [u], sample weights, or None.
        facts: see :class:`Facts`; None if not needed.
        by_row: units are in the order of one table's rows instead of datum order.
        decided: ``hard`` was decided by a threshold on the score of one label. Below it, the other
            label is predicted, or none if there are several others.
    """

    datum: Array | None
    key: Array | None
    truth: Array
    truth_start: Array | None
    hard: Array | None
    hard_score: Array | None
    weight: Array | None
    facts: Facts | None = None
    by_row: bool = False
    decided: bool = False

    def __len__(self) -> int:
        return int(self.truth.size if self.truth_start is None else self.truth_start.size - 1)

    @property
    def n_truths(self) -> Array:
        """True labels of each unit, int64 [u]."""
        if self.truth_start is None:
            return (self.truth >= 0).astype(np.int64)
        return np.diff(self.truth_start)

    def truth_rows(self) -> tuple[Array, Array]:
        """Unit and label of every true label, int64 and int32 [m]."""
        if self.truth_start is None:
            unit = np.flatnonzero(self.truth >= 0)
            return unit, self.truth[unit]
        return np.repeat(np.arange(len(self)), self.n_truths), self.truth

    def datum_of(self, unit: Array | None = None) -> Array:
        """Datums of some units (of all unless given), int32."""
        if self.datum is None:
            every = np.arange(len(self), dtype=np.int32)
            return every if unit is None else unit.astype(np.int32)
        return self.datum if unit is None else self.datum[unit]


class Listed:
    """Mixin for rows of scores, each of a label and a unit.

    It has no fields: structs keep their field order, and stored tallies their names.

    Attributes:
        parts: float64 arrays, n scores in total.
        label: int32 [n], label codes; None if all rows have one label, or there is a ``grid``.
        unit: int32 [n], unit of each row; None if row i is unit i, or there is a ``grid``.
        grid: labels and units of the rows, if every unit lists the same labels in one order.
    """

    if TYPE_CHECKING:

        @property
        def parts(self) -> tuple[Array, ...]: ...
        @property
        def label(self) -> Array | None: ...
        @property
        def unit(self) -> Array | None: ...
        @property
        def grid(self) -> Grid | None: ...

    @property
    def several(self) -> bool:
        """True if rows have different labels."""
        return self.label is not None or self.grid is not None

    @Lazy
    def label_codes(self) -> Array | None:
        """Label codes, int32 [n]; None if all rows have one label."""
        return self.label if self.grid is None else self.grid.labels

    @Lazy
    def unit_codes(self) -> Array | None:
        """Unit of each row, int32 [n]; None if row i is unit i."""
        return self.unit if self.grid is None else self.grid.units

    @Lazy
    def score(self) -> Array:
        """All scores in one array, float64 [n]."""
        return one_array(self.parts)

    def sample(self, step: int) -> tuple[Array, Array, Array]:
        """Return unit, label and score of every ``step``-th row; labels only if rows have several.

        Rows in between are not copied.
        """
        stops = np.cumsum([part.size for part in self.parts])
        row = np.arange(0, stops[-1] if stops.size else 0, step)
        cuts = np.searchsorted(row, stops)
        begins = zip([0, *cuts], cuts, [0, *stops], self.parts, strict=False)
        score = one_array(tuple(part[row[i:j] - first] for i, j, first, part in begins))
        if self.grid is not None:
            width = self.grid.label.size
            return self.grid.unit[row // width], self.grid.label[row % width], score
        unit = row if self.unit is None else self.unit[row]
        return unit, row[:0] if self.label is None else self.label[row], score


@stored_as(
    "classification.scores/1",
    changes={1: {"given": "parts", "few": None, "columns": None, "row": None}},
)
class Scored(Listed, msgspec.Struct, frozen=True, dict=True):
    """Scored labels of one bucket, one row per prediction, in input order.

    Attributes:
        parts: float64 arrays, n scores in total: columns of large files are chunked.
        outcome: uint8 [n]: 1 if the label is true of its unit, 0 if the unit has other true labels
            (or is multi-label and has none), 2 if it has none.
        label: int32 [n], label codes; None if all rows have label ``only``, or there is a ``grid``.
        unit: int32 [n], unit of each row; None if row i is unit i, or there is a ``grid``.
        only: the scored label if ``several`` is False.
        labels: bool [l], labels that are scored: in a binary table only the positive one.
        single: scores came in single precision; thresholds are then rounded to it.
        ranked: there are scores; otherwise every row is predicted, and its score infinite.
        grid: labels and units of the rows, if every unit lists the same labels in one order.
    """

    parts: tuple[Array, ...]
    outcome: Array
    label: Array | None
    unit: Array | None
    only: int
    labels: Array
    single: bool
    ranked: bool = True
    grid: Grid | None = None

    def __len__(self) -> int:
        return int(self.outcome.size)

    def shared(self, name: str, make: Callable[[], Any]) -> Any:
        """Return a cached value that does not depend on groups or weights.

        Args:
            name: cache key.
            make: computes the value on first use.
        """
        cache: dict[str, Any] = self.__dict__
        with _SHARING:
            if f"_{name}" not in cache:
                cache[f"_{name}"] = make()
            return cache[f"_{name}"]

    def comparable(self, threshold: float) -> float:
        """A score threshold as the scores' own precision can express it."""
        return comparable(threshold, single=self.single)


# Scores replaced by mid-ranks, to mix runs with different score scales: Venkatraman, Begg (1996);
# Bandos, Rockette, Gur, "A permutation test sensitive to differences in areas ..." (2005).


def scores_of_ranks(score: Array, segment: Array | None, inside: Array | None) -> Array:
    """Map scores to (0, 1] by descending mid-rank within each segment.

    Rank r, the number of counted rows that score higher plus half of the equal ones, becomes
    1 / (1 + 2 r). Equal scores stay equal.

    Args:
        score: float64 [n].
        segment: int [n], rows that are ranked together; None for all.
        inside: bool [n], rows that are counted; None for all.
    """
    n = score.size
    if not n:
        return score
    order = np.argsort(-score, kind="stable")
    if segment is not None:
        order = order[np.argsort(segment[order], kind="stable")]
    falling = score[order]
    begins = np.ones(n, bool)  # of equal scores
    begins[1:] = falling[1:] != falling[:-1]
    first = np.zeros(n, bool)  # of segments
    first[0] = True
    if segment is not None:
        first[1:] = segment[order][1:] != segment[order][:-1]
    begins |= first
    group = np.cumsum(begins) - 1
    many = np.bincount(group, None if inside is None else inside[order])
    above = np.cumsum(many) - many
    of_segment = np.cumsum(first)[begins] - 1
    above -= above[group[first]][of_segment]
    twice = 2 * above + many + 1
    out = np.empty(n)
    out[order] = 1 / (1 + twice[group])
    return out


def ranked_by_rank(ranked: Ranked, within: Array | None) -> Ranked:
    """Replace scores of detections by their rank within the label.

    Args:
        within: bool [n_datums], datums that are compared; None for all.
    """
    label = np.repeat(np.arange(ranked.n_labels), np.diff(ranked.start))
    inside = None if within is None else within[ranked.datum]
    return msgspec.structs.replace(
        ranked, score=scores_of_ranks(ranked.score, label, inside), single=False
    )


def scored_by_rank(scored: Scored, units: Units, within: Array | None, *, pooled: bool) -> Scored:
    """Replace scores of labels by their rank.

    Args:
        within: bool [n_datums], datums that are compared; None for all.
        pooled: rank all labels together instead of separately.
    """
    if not scored.ranked:
        return scored
    inside = None if within is None else within[units.datum_of(scored.unit_codes)]
    segment = None if pooled else scored.label_codes
    ranks = scores_of_ranks(scored.score, segment, inside)
    return msgspec.structs.replace(scored, parts=(ranks,), single=False)
