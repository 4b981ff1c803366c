"""From losses of single datums to the slices that are worst, each of whose conditions matters."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np

from ..executors import Threads
from ..schemas.errors import ResultError
from ..tasks.task import Losses
from .slice_columns import Conditions
from .slice_search import Found, search

Array = np.ndarray[Any, Any]

_SURE = 1.6448536269514722  # standard errors that luck passes one time in twenty
_TRIES = 4  # times that more slices are looked for where too many add nothing
_ALIKE = 0.95  # share of datums from which two slices are one


class Slice(msgspec.Struct, frozen=True):
    """A slice.

    Attributes:
        items: its conditions.
        inside: bool [n_datums], the datums in it, of all of the run.
        size: datums in it that have a loss.
        loss: their mean loss, weighted where datums have weights.
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
    """How wrong single datums are, and which have a loss at all.

    Args:
        losses: what judges them.
        highest: the best that a higher number can be, where its own metric does not say.

    Returns:
        float64 [n], 0 for nothing wrong; bool [n].
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
    """The slices with the highest scores, without those that add nothing to a wider one.

    A slice stays where each of its conditions matters: the datums that the others alone would add
    have a lower mean loss, by more than luck does one time in twenty; and where no slice before it
    holds all but the same datums.

    Args:
        conditions: what slices are made of.
        error: float64 [n], how wrong each datum is, not below 0.
        known: bool [n], which datums have a loss, and a weight above 0.
        weight: float64 [n], how much each datum counts; None for all alike.
        top: slices that are wanted.
        levels: conditions of a slice at most.
        least: datums of a slice at least.
        alpha: weight of the mean loss against the size.
        threads: where the work runs.

    Returns:
        the slices; how many were looked at.

    Raises:
        ResultError: nothing is wrong with any datum.
    """
    rows = np.flatnonzero(known)
    code, own = conditions.code[:, rows], error[rows]
    heavy = np.ones(own.size) if weight is None else weight[rows]
    if not own.sum():
        raise ResultError("no datum has anything wrong, so no slice is worse than another.")
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
    """Whether datums that a slice would have without one of its conditions are less wrong."""
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
