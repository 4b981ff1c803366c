"""Precision at scores that represent recall positions, with matching repeated at every score.

The true positives of a first match give the scores: in descending order, each is used for the next
position k / 40 unless the recall after the following one is nearer. Counts from such a score on are
sums of gains (:mod:`evalengine.kernels.matching_anew`), independent of the order and parts of the
rows. Precision at a position is the maximum over it and later ones, and 0 if there are fewer scores
than positions: finding all of 20 ground truths without errors gives AP 0.5. Source: KITTI's
``evaluate_object.cpp``, ``getThresholds`` and ``eval_class``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..kernels.matching_anew import LOW
from ..schemas.arrays import Array


def chosen(hits: int, sought: int, levels: int) -> list[int]:
    """Return the indices of the true positives that represent recall positions.

    Args:
        hits: number of true positives.
        sought: number of ground truths.
        levels: number of positions, including recall 0.
    """
    found: list[int] = []
    recall, at = 0.0, -1
    while at + 1 < hits and len(found) < levels:
        low, high = at + 1, hits - 1
        while low < high:
            middle = (low + high) // 2
            if (middle + 2) / sought - recall < recall - (middle + 1) / sought:
                low = middle + 1
            else:
                high = middle
        found.append(low)
        recall += 1 / (levels - 1)
        at = low
    return found


def _segments(view: Any) -> Iterator[tuple[int, Any, Array, Array]]:
    """Segments of (group, label), their part of the tally, its rows, and how often each counts."""
    for part in view.parts():
        start, order = part.rows
        for s in range(start.size - 1):
            rows = order[start[s] : start[s + 1]]
            if rows.size:
                tally = part.tally
                many = np.ones(rows.size, np.int64)
                if view.weights is not None:
                    many = view.weights[tally.datum[rows]]
                yield s, tally, rows, many


def at_positions(view: Any, shape: tuple[int, ...]) -> tuple[Array, Array, Array | None]:
    """Return precision, scores and similarity of angles at recall positions.

    Args:
        view: a ranked view whose rows have gains.
        shape: groups, labels, area ranges, thresholds.

    Returns:
        float64 [group, label, area, threshold, level] each; scores are NaN if undefined, and
        similarity is None without angles.
    """
    n_segments, levels = shape[0] * shape[1], view.levels.size
    grid = shape[2:]
    found: dict[tuple[int, ...], list[tuple[Array, Array]]] = {}
    for s, tally, rows, many in _segments(view):
        for w, word in enumerate(tally.variants.words):
            hits = tally.hit[w][rows]
            for bit in range(word.n_areas * word.n_thresholds):
                own = np.flatnonzero((hits >> np.uint64(bit)) & np.uint64(1))
                a, t = divmod(bit, word.n_thresholds)
                where = s, word.first_area + a, word.first_threshold + t
                found.setdefault(where, []).append((tally.score[rows[own]], many[own]))
    scores = np.full((n_segments, *grid, levels), np.nan)
    positives = view.positives.reshape(n_segments, grid[0])
    for (s, a, t), parts in found.items():
        score, many = (np.concatenate(one) for one in zip(*parts, strict=True))
        upto = np.cumsum(many)
        places = chosen(int(upto[-1]) if upto.size else 0, int(positives[s, a]), levels)
        rows = np.searchsorted(upto, places, side="right")
        scores[s, a, t, : len(places)] = score[rows]
    totals: Array | None = None
    for s, tally, rows, many in _segments(view):
        kinds = len(tally.values) // (grid[0] * grid[1])
        if totals is None:
            totals = np.zeros((kinds, n_segments, *grid, levels))
        gains = tally.values[:, rows].reshape(kinds, *grid, rows.size) * many
        upto = np.concatenate([np.zeros((kinds, *grid, 1)), np.cumsum(gains, axis=-1)], axis=-1)
        last = np.searchsorted(-tally.score[rows], -scores[s], side="right")
        totals[:, s] += np.take_along_axis(upto, np.broadcast_to(last, totals[:, s].shape), axis=-1)
    made = np.zeros((2, n_segments, *grid, levels))
    angles = totals is not None and len(totals) > 2
    if totals is not None:
        there = ~np.isnan(scores) & (totals[0] + totals[1] > 0)
        every = np.where(there, totals[0] + totals[1], 1.0)
        alike = totals[2] * 2.0 ** (LOW - 54) + totals[3] * 2.0**-54 if angles else totals[0]
        for out, right in zip(made, (totals[0], alike), strict=True):
            out[:] = np.where(there, right / every, 0.0)
            out[:] = np.maximum.accumulate(out[..., ::-1], axis=-1)[..., ::-1]
    whole = *shape, levels
    precision, similarity = made.reshape(2, *whole)
    return precision, scores.reshape(whole), similarity if angles else None
