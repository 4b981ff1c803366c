"""Areas between labels: the scores of one, truths of it against truths of another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.label_matching import STRAY
from ..kernels.partition import partition
from ..kernels.reached import weights_reaching
from ..kernels.roc import wins
from ..schemas.arrays import Array
from ..schemas.errors import OptionError
from .sorted_scores import Sorted, sort_segments

if TYPE_CHECKING:
    from .scored_view import ScoredView


_MOST = 46_340  # labels whose pairs still have an int32 code


def areas_between(view: ScoredView) -> Array:
    """Return areas by scores of a, truths of a against those of b, float64 [group, a, b].

    NaN if either label has no truth, or no label is scored.
    """
    scored = view.scored
    n = len(view.labels)
    out = np.full((view.n_groups, n, n), np.nan)
    if scored is None or not scored.several:
        return out
    if n > _MOST:
        raise OptionError(
            f"areas between labels: {n:,} labels make {n * n:,} pairs a group; at most"
            f" {_MOST:,} labels can be compared with one another."
        )
    won, listed = (found.ravel() for found in _won_between(view))
    own, other = _sides(view.n_groups, n)
    truths = np.repeat(view.positives, n, axis=1).ravel()
    others = np.tile(view.positives, (1, n)).ravel()
    missing, absent = truths - listed[own], others - listed[other]
    won = won + (listed[own] * absent + missing * absent / 2)
    np.divide(won, truths * others, out=out.ravel(), where=(truths * others) > 0)
    return out


def _sides(n_groups: int, n: int) -> tuple[Array, Array]:
    """Return, for every (group, a, b), the flat index of (group, a, a) and of itself."""
    segment = np.arange(n_groups * n * n).reshape(n_groups, n, n)
    own = np.broadcast_to(segment[:, np.arange(n), np.arange(n)][:, :, None], segment.shape).ravel()
    return own, segment.ravel()


def _won_between(view: ScoredView) -> tuple[Array, Array]:
    """Return pairs in which truths of a score higher than truths of b, by the scores of a.

    Ties count half. Also returns how many truths of b list a; (weighted) pairs and units, float64
    [group, a, b] both.
    """
    run, n = view.between, len(view.labels)
    start, score, weight = run.start, run.score, run.weight
    own, other = _sides(view.n_groups, n)
    won = wins(
        (start[own], start[own + 1]), (start[other], start[other + 1]), score, weight
    ).astype(np.float64)
    if weight is None:
        won /= 2
        listed = np.diff(start).astype(np.float64)
    else:
        listed = weights_reaching(start[:-1], start[1:], score, weight, np.zeros(0))[1]
    shape = (view.n_groups, n, n)
    return won.reshape(shape), listed.reshape(shape)


def sorted_by_truth(view: ScoredView) -> Sorted:
    """Sort scores by (group, label a, label b): scores for a of units with truth b, ascending.

    Args:
        view: view of several scored labels.
    """
    scored, units, n = view.scored, view.units, len(view.labels)
    assert scored is not None
    assert scored.label_codes is not None
    rows = np.flatnonzero(scored.outcome != STRAY)
    unit = rows if scored.unit_codes is None else scored.unit_codes[rows]
    pair = scored.label_codes[rows].astype(np.int64) * n + units.truth[unit]
    segments: Any = (
        np.zeros(rows.size, np.uint8),
        pair.astype(np.int32),
        None if view.group is None else units.datum_of(unit),
        view.group,
        (view.n_groups, n * n, 1),
    )
    start, score, _ = partition([scored.score[rows]], *segments)
    weight = view.unit_weight
    if weight is not None:
        weight = partition([weight[unit]], *segments)[1]
    found = Sorted(start, score, weight)
    sort_segments(found, view.over)
    return found
