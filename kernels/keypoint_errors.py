"""What became of single keypoints of people that were found: how near they lie, and to what.

A point of a prediction is as alike to a labelled point of a person as exp(-e) says, e as in
:mod:`.keypoints`. That of its own person is held against that of its own person's other side, and
against those of the other people of its datum and label. Source: M. R. Ronchi and P. Perona,
"Benchmarking and Error Diagnosis in Multi-Instance Pose Estimation" (ICCV 2017), and its code
coco-analyze.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .jit import inner, kernel
from .keypoints import People, Points

Array = np.ndarray[Any, Any]

GOOD, JITTER, INVERSION, SWAP, MISS = range(5)
NEAR, ON = 0.5, 0.85
"""Similarity from which a point lies near one, and from which it lies on its own."""
_TINY = 2.0**-52


class Found(NamedTuple):
    """People that were found, by what.

    Attributes:
        row: int64 [k], rows of the predictions.
        place: int64 [k], places of the people in the layout.
    """

    row: Array
    place: Array


class Laid(NamedTuple):
    """All people as they are laid out: by label, then datum.

    Attributes:
        row: int64 [m], rows of the table.
        datum: int32 [m].
        label: int32 [m].
    """

    row: Array
    datum: Array
    label: Array


@inner
def _alike(x: float, y: float, truth: Array, at: int, variance: float, area: float) -> float:
    """Similarity of a place to a labelled point of a person, -1 to one that is not labelled."""
    if not truth[at + 2] > 0:
        return -1.0
    dx, dy = x - truth[at], y - truth[at + 1]
    return math.exp(-((dx * dx + dy * dy) / variance / (area + _TINY) / 2))


@kernel
def judged_points(
    given: Found, laid: Laid, found: Points, truth: Points, people: People, mirror: Array
) -> Any:
    """What became of every labelled point of people that were found.

    Args:
        given: the people, and what found them.
        laid: all people.
        found: points of the predictions.
        truth: points of the ground truths.
        people: the ground truths.
        mirror: int64, by place in ``people.variance``: the point on the other side, or the same.

    Returns:
        of each labelled point its pair int64 [p], its number int64 [p], its kind int8 [p], the
        place of the person whose point is the most alike int64 [p], and how alike it is to its own
        float64 [p].
    """
    rows, places = given
    all_rows, datum, label = laid
    d_start, d_values = found
    t_start, t_values = truth
    labelled, areas, _, _, variance_at, variance = people
    many = 0
    for place in places:
        many += labelled[all_rows[place]]
    pair, point, other = np.empty((3, many), np.int64)
    kind = np.empty(many, np.int8)
    own_similarity = np.empty(many, np.float64)
    k = 0
    for i in range(rows.size):
        g = places[i]
        own = all_rows[g]
        t, d, v = t_start[own], d_start[rows[i]], variance_at[own]
        size = t_start[own + 1] - t
        first, last = g, g + 1
        while first > 0 and datum[first - 1] == datum[g] and label[first - 1] == label[g]:
            first -= 1
        while last < datum.size and datum[last] == datum[g] and label[last] == label[g]:
            last += 1
        for q in range(size // 3):
            if not t_values[t + 3 * q + 2] > 0:
                continue
            x, y, var = d_values[d + 3 * q], d_values[d + 3 * q + 1], variance[v + q]
            best = _alike(x, y, t_values, t + 3 * q, var, areas[own])
            own_similarity[k] = best
            which, whose = GOOD if best >= ON else JITTER, g
            across = 3 * mirror[v + q]
            for side in range(2):  # the same point of all people, then that on their other side
                if side == 1:
                    similarity = _alike(x, y, t_values, t + across, var, areas[own])
                    if similarity > best:
                        best, which, whose = similarity, INVERSION, g
                for h in range(first, last):
                    row = all_rows[h]
                    if h == g or t_start[row + 1] - t_start[row] != size:
                        continue
                    at = t_start[row] + (across if side == 1 else 3 * q)
                    similarity = _alike(x, y, t_values, at, var, areas[row])
                    if similarity > best:
                        best, which, whose = similarity, SWAP, h
            if best < NEAR:
                which, whose = MISS, g
            pair[k], point[k], kind[k], other[k] = i, q, which, whose
            k += 1
    return pair, point, kind, other, own_similarity


@kernel
def mark_near(
    given: Found,
    asked: Array,
    laid: Laid,
    found: Points,
    truth: Points,
    size: Array,
    share: float,
    bit: int,
    bits: int,
    out: Array,
) -> None:
    """Mark labelled points, and those that lie within a share of a size of what was found.

    Args:
        given: the people that were found, and what found them.
        asked: bool [m], whether a person counts, by place.
        laid: all people.
        found: points of the predictions.
        truth: points of the ground truths.
        size: float64 [rows], of each person; one that is not above 0 does not count.
        share: of the size.
        bit: place of the mark of labelled points among those of a point; the next is that of near
            ones.
        bits: marks of a point.
        out: uint64 [words, m], marks of all points of each person; set here.
    """
    rows, places = given
    d_start, d_values = found
    t_start, t_values = truth
    finder = np.full(asked.size, -1, np.int64)
    for i in range(rows.size):
        finder[places[i]] = rows[i]
    one = np.uint64(1)
    for g in range(asked.size):
        row = laid.row[g]
        if not asked[g] or not size[row] > 0:
            continue
        t = t_start[row]
        for q in range((t_start[row + 1] - t) // 3):
            if not t_values[t + 3 * q + 2] > 0:
                continue
            at = q * bits + bit
            out[at // 64, g] |= one << np.uint64(at % 64)
            if finder[g] < 0:
                continue
            d = d_start[finder[g]]
            dx = d_values[d + 3 * q] - t_values[t + 3 * q]
            dy = d_values[d + 3 * q + 1] - t_values[t + 3 * q + 1]
            if math.sqrt(dx * dx + dy * dy) / size[row] <= share:
                at += 1
                out[at // 64, g] |= one << np.uint64(at % 64)
