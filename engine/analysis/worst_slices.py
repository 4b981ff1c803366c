"""From losses of single datums to the slices that are worst, each of whose conditions matters."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import msgspec
import numpy as np

from ..executors import Threads
from ..kernels.slice_lattice import Level, Scoring, join, measure
from ..progress import counting
from ..schemas.arrays import Array
from ..schemas.errors import ResultError
from ..tasks.task import Losses
from .slice_columns import Conditions

# Exact search for the slices with the worst mean error.
#
# Score of a slice: alpha (mean error of the slice / mean error of all - 1) - (1 - alpha) (n / size
# - 1). With weights, means are weighted and sizes are sums of weights. Slices that are too small,
# or cannot exceed the scores found so far, are pruned with all their subsets.
#
# Source: S. Sagadeeva, M. Boehm, "SliceLine" (SIGMOD 2021).


ALPHA = 0.95
_AT_ONCE = 1 << 20  # slices that are measured before those found are looked at again


class Found(msgspec.Struct, frozen=True):
    """Slices, highest score first; ties by number of items, then by item.

    Attributes:
        rows: int64 [m].
        size: float64 [m], sum of weights.
        total: float64 [m], weighted sum of errors.
        score: float64 [m].
        measured: number of slices evaluated.
    """

    items: list[tuple[int, ...]]
    rows: Array
    size: Array
    total: Array
    score: Array
    measured: int


def scores(size: Array, total: Array, scoring: Scoring) -> Array:
    """Scores of slices, float64 [m]."""
    n, alpha = scoring.n, scoring.alpha
    made: Array = alpha * (total / size * (n / scoring.total) - 1) - (1 - alpha) * (n / size - 1)
    return made


class _Best:
    """The slices that score highest, as they come."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.rows: list[tuple[float, int, tuple[int, ...], int, float, float]] = []

    @property
    def beat(self) -> float:
        """Score from which a slice is of account."""
        return max(0.0, -self.rows[-1][0]) if len(self.rows) == self.most else 0.0

    def take(self, level: Level, score: Array) -> None:
        some = np.flatnonzero((score > 0) & (score >= self.beat))
        if some.size > self.most:
            lowest = np.partition(score[some], some.size - self.most)[some.size - self.most]
            some = some[score[some] >= lowest]
        self.rows += [
            (-float(score[i]), level.items.shape[1], tuple(level.items[i].tolist()),
             int(level.rows[i]), float(level.size[i]), float(level.total[i]))
            for i in some
        ]  # fmt: skip
        self.rows = sorted(self.rows)[: self.most]


def search(
    code: Array,
    column: Array,
    error: Array,
    *,
    most: int,
    levels: int,
    least: int,
    alpha: float = ALPHA,
    weight: Array | None = None,
    threads: Threads | None = None,
) -> Found:
    """Find the slices with the highest scores, of all with a score above 0.

    Args:
        code: int32 [columns, n], item of each row in each column, -1 for none.
        column: int32 [items], column of each item, ascending.
        error: float64 [n], not below 0.
        most: maximum number of slices.
        levels: maximum number of items per slice.
        least: minimum number of rows per slice, 1 or more.
        alpha: weight of the mean error against the size, in (0, 1].
        weight: float64 [n], above 0; 1 by default.
    """
    threads = threads or Threads(1)
    n, n_items = error.size, column.size
    size, total, lightest = float(n), float(error.sum()), float(least)
    if weight is not None:
        size, total = float(weight.sum()), float((weight * error).sum())
        lightest = float(np.sort(weight)[:least].sum())
    weight = np.zeros(0) if weight is None else weight
    scoring = Scoring(size, total, alpha, least, lightest, 0.0)
    best, measured = _Best(most), n_items
    if not n or scoring.total <= 0 or not n_items:
        return _found(best, measured)
    levels = min(levels, code.shape[0], int(62 / np.log2(max(n_items, 2))))
    level = _singles(code, column, error, weight, least)
    best.take(level, scores(level.size, level.total, scoring))
    code = np.where(_among(level.items[:, 0], n_items)[code] & (code >= 0), code, -1)
    for deep in range(2, levels + 1):
        with counting("slices", level.key.size, f"of {deep - 1} conditions") as count:
            level, many = _next(code, column, error, weight, level, scoring, best, threads, count)
        measured += many
        if not level.key.size:
            break
    return _found(best, measured)


def _found(best: _Best, measured: int) -> Found:
    score, _, items, rows, size, total = zip(*best.rows, strict=True) if best.rows else ((),) * 6
    return Found(
        list(items),
        np.array(rows, np.int64),
        np.array(size, np.float64),
        np.array(total, np.float64),
        -np.array(score, np.float64),
        measured,
    )


def _among(some: Array, n: int) -> Array:
    out = np.zeros(n, np.bool_)
    out[some] = True
    return out


def _singles(code: Array, column: Array, error: Array, weight: Array, least: int) -> Level:
    """Slices of one item that are large enough and have errors."""
    n_items = column.size
    weight = weight if weight.size else np.ones(error.size)
    rows = np.zeros(n_items, np.int64)
    size, total, worst = np.zeros((3, n_items))
    for items in code:
        known = items >= 0
        rows += np.bincount(items[known], minlength=n_items)
        size += np.bincount(items[known], weight[known], minlength=n_items)
        total += np.bincount(items[known], (weight * error)[known], minlength=n_items)
        np.maximum.at(worst, items[known], error[known])
    kept = np.flatnonzero((rows >= least) & (total > 0))
    columns = (values[kept] for values in (rows, size, total, worst))
    return Level(kept[:, None].astype(np.int32), kept.astype(np.int64), *columns)


def _next(
    code: Array,
    column: Array,
    error: Array,
    weight: Array,
    level: Level,
    scoring: Scoring,
    best: _Best,
    threads: Threads,
    count: Any,
) -> tuple[Level, int]:
    """Slices of one item more that may be of account, and how many were measured."""
    m = level.key.size
    parts: list[Level] = []
    measured = 0
    # Slices that grow are cut so that a piece has some hundred thousand new ones at the most.
    widths = np.bincount(column, minlength=code.shape[0])
    each = max(1, _AT_ONCE // max(1, int(widths.sum())))
    for first in range(0, m, each * 8):
        pieces = [
            (low, min(low + each, first + each * 8, m))
            for low in range(first, min(first + each * 8, m), each)
        ]
        now = scoring._replace(beat=best.beat)
        calls = [
            partial(_grown, code, column, error, weight, level, now, *piece) for piece in pieces
        ]
        for part, many in threads.each(calls):
            measured += many
            best.take(part, scores(part.size, part.total, scoring))
            parts.append(part)
        count(pieces[-1][1] - first)
    return _together(parts, level.items.shape[1] + 1), measured


def _together(parts: list[Level], deep: int) -> Level:
    if not parts:
        none = np.zeros(0, np.int64)
        return Level(np.zeros((0, deep), np.int32), none, none, *np.zeros((3, 0)))
    return Level(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _grown(
    code: Array,
    column: Array,
    error: Array,
    weight: Array,
    level: Level,
    scoring: Scoring,
    first: int,
    last: int,
) -> tuple[Level, int]:
    """Extend a range of slices by one item; keep large ones with errors. Also return the number
    measured.
    """
    start, children = join(first, last, level, column, scoring)
    parents = level.items[first:last]
    rows, size, total, worst = measure(code, error, weight, column, parents, start, children)
    of = np.repeat(np.arange(last - first), np.diff(start))
    items = np.column_stack((parents[of], children)).astype(np.int32)
    key = level.key[first:last][of] * column.size + children
    large = (rows >= scoring.least) & (total > 0)
    columns = (items, key, rows, size, total, worst)
    return Level(*(values[large] for values in columns)), rows.size


_SURE = 1.6448536269514722  # standard errors that luck passes one time in twenty
_TRIES = 4  # times that more slices are looked for where too many add nothing
_ALIKE = 0.95  # share of datums from which two slices are one


class Slice(msgspec.Struct, frozen=True):
    """One slice.

    Attributes:
        items: its conditions.
        inside: bool [n_datums], over all datums of the run.
        size: datums in it that have a loss.
        loss: their mean loss, weighted if datums have weights.
        elsewhere: mean loss of all others.
        score: see :mod:`.slice_search`.
    """

    items: tuple[int, ...]
    inside: Array
    size: int
    loss: float
    elsewhere: float
    score: float


def errors_of(losses: Losses, highest: float) -> tuple[Array, Array]:
    """Return the error of each datum, and which datums have a loss.

    Args:
        highest: best value of a metric of which higher is better, if the metric itself defines
            none.

    Returns:
        float64 [n], 0 for no error; bool [n].
    """
    value = losses.value
    if losses.nothing is not None:
        value = np.nan_to_num(value, nan=losses.nothing)
    known = ~np.isnan(value)
    value = np.where(known, value, 0.0)
    if losses.higher:
        top = losses.best if losses.best is not None else highest
        if not math.isfinite(top):
            top = float(value[known].max(initial=0.0))
        return np.where(known, np.maximum(top - value, 0.0), 0.0), known
    low = min(0.0, float(value[known].min(initial=0.0)))
    return np.where(known, value - low, 0.0), known


def worst_slices(
    conditions: Conditions,
    error: Array,
    known: Array,
    weight: Array | None,
    *,
    top: int,
    levels: int,
    least: int,
    alpha: float,
    threads: Threads,
) -> tuple[list[Slice], int]:
    """Find the slices with the highest scores, without those that add no information to a wider
    one.

    A slice is kept if each of its conditions matters and no earlier slice has almost the same
    datums. A condition matters if the datums that the slice would gain without it have a
    significantly lower mean loss (level 0.05).

    Args:
        error: float64 [n], error of each datum, not below 0.
        known: bool [n], datums with a loss and a weight above 0.
        weight: float64 [n], weight of each datum; None for equal weights.
        top: number of slices.
        levels: maximum number of conditions per slice.
        least: minimum number of datums per slice.
        alpha: weight of the mean loss against the size.

    Returns:
        the slices; the number of slices evaluated.

    Raises:
        ResultError: no datum has an error.
    """
    rows = np.flatnonzero(known)
    code, own = conditions.code[:, rows], error[rows]
    heavy = np.ones(own.size) if weight is None else weight[rows]
    if not own.sum():
        raise ResultError(
            "no datum has anything wrong, so no slice is worse than another.", code="nothing_wrong"
        )
    most = 10 * top
    for again in range(_TRIES):
        found = search(
            code, conditions.column, own, most=most, levels=levels, least=least, alpha=alpha,
            weight=None if weight is None else heavy, threads=threads,
        )  # fmt: skip
        kept = _that_matter(found, code, own, heavy, conditions, top)
        if len(kept) >= top or len(found.items) < most or again == _TRIES - 1:
            break
        most *= 4
    total, n = float((heavy * own).sum()), float(heavy.sum())
    slices = []
    for at in kept:
        rows_in, size, inside_total = found.rows[at], found.size[at], float(found.total[at])
        rest = (total - inside_total) / (n - size) if own.size > rows_in else math.nan
        slices.append(
            Slice(
                found.items[at],
                _inside(conditions.code, found.items[at], conditions),
                int(rows_in),
                float(inside_total / size),
                float(rest),
                float(found.score[at]),
            )
        )
    return slices, found.measured


def _inside(code: Array, items: tuple[int, ...], conditions: Conditions) -> Array:
    inside = np.ones(code.shape[1], np.bool_)
    for item in items:
        inside &= code[conditions.column[item]] == item
    return inside


def _that_matter(
    found: Found, code: Array, error: Array, weight: Array, conditions: Conditions, top: int
) -> list[int]:
    """Places of the slices that stay, up to ``top``, the highest score first."""
    kept: list[int] = []
    held: list[Array] = []
    for at, items in enumerate(found.items):
        inside = _inside(code, items, conditions)
        if any(_alike(inside, other) for other in held):
            continue
        if all(_matters(item, items, inside, code, error, weight, conditions) for item in items):
            kept.append(at)
            held.append(inside)
            if len(kept) == top:
                break
    return kept


def _alike(one: Array, other: Array) -> bool:
    both = np.count_nonzero(one & other)
    return bool(both >= _ALIKE * np.count_nonzero(one | other))


def _matters(
    item: int,
    items: tuple[int, ...],
    inside: Array,
    code: Array,
    error: Array,
    weight: Array,
    conditions: Conditions,
) -> bool:
    """Return whether the datums that a slice would gain without one condition have less error."""
    wider = _inside(code, tuple(one for one in items if one != item), conditions)
    added = wider & ~inside
    if not added.any():
        return False
    (own, own_spread), (other, other_spread) = (
        _mean(error[rows], weight[rows]) for rows in (inside, added)
    )
    gap, spread = own - other, math.sqrt(own_spread + other_spread)
    return gap > _SURE * spread if spread > 0 else gap > 0


def _mean(error: Array, weight: Array) -> tuple[float, float]:
    """The weighted mean, and the square of its standard error."""
    share = weight / weight.sum()
    mean = float((share * error).sum())
    return mean, float((share**2 * (error - mean) ** 2).sum())
