"""Walks over scores that come in pieces: the numbers of one walk over all of them, to the bit."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evalengine.kernels.carried_pairs import no_pairs, pairs_in_all, pairs_onward
from evalengine.kernels.carried_points import last_points, no_points, points_onward
from evalengine.kernels.carried_sums import no_sums, reached_in_all, sums_onward
from evalengine.kernels.carried_wins import no_wins, wins_in_all, wins_onward
from evalengine.kernels.partial_area import area_in_all, areas_onward, no_area
from evalengine.kernels.point_precision import no_precision, precision_onward
from evalengine.kernels.reached import weights_reaching
from evalengine.kernels.roc import wins
from evalengine.kernels.score_points import points
from evalengine.tally.score_rows import ScoreRows, merge_rows, rows_between

Array = np.ndarray[Any, Any]

LABELS, GROUPS, OUTCOMES = 3, 2, 3
pieces = given(seed=st.integers(0, 2**32 - 1), weighted=st.booleans(), cuts=st.integers(0, 12))


def drawn(seed: int, *, weighted: bool) -> tuple[ScoreRows, np.random.Generator]:
    """Rows in order, with ties and weights of 0, of groups and of none."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 120))
    label = np.sort(rng.integers(0, LABELS, n))
    score = rng.integers(0, int(rng.choice([1, 4, 50])), n) / 8
    score = score[np.lexsort((score, label))]
    weight = np.round(rng.random(n) * 3) * rng.random(n) if weighted else None
    return ScoreRows(
        np.searchsorted(label, np.arange(LABELS + 1)),
        score,
        rng.integers(0, OUTCOMES, n).astype(np.uint8),
        np.arange(n),
        weight,
        (rng.integers(-1, GROUPS, n).astype(np.int32),),
    ), rng


def in_pieces(rows: ScoreRows, rng: np.random.Generator, cuts: int) -> list[ScoreRows]:
    """The rows cut anywhere."""
    ends = [0, *np.sort(rng.integers(0, len(rows) + 1, cuts)).tolist(), len(rows)]
    return [rows_between(rows, a, b) for a, b in pairwise(ends)]


def laid(rows: ScoreRows) -> tuple[Array, Array, Array | None]:
    """By (group, label, outcome), equal scores in row order, as views in memory have them."""
    label = np.repeat(np.arange(LABELS), np.diff(rows.start))
    segment = (rows.codes[0] * LABELS + label) * OUTCOMES + rows.outcome
    order = np.argsort(segment, kind="stable")
    order = order[rows.codes[0][order] >= 0]
    start = np.searchsorted(segment[order], np.arange(GROUPS * LABELS * OUTCOMES + 1))
    return start, rows.score[order], None if rows.weight is None else rows.weight[order]


def walked(rows: ScoreRows) -> tuple[Any, ...]:
    return rows.start, rows.codes[0], rows.outcome, rows.score, rows.weight


def sides(start: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Bounds of hits and of others."""
    return (start[1:-1:OUTCOMES], start[2::OUTCOMES]), (start[:-1:OUTCOMES], start[1::OUTCOMES])


@settings(max_examples=60)
@pieces
def test_wins(seed: int, weighted: bool, cuts: int) -> None:
    rows, rng = drawn(seed, weighted=weighted)
    carried = no_wins(GROUPS * LABELS, weighted=weighted)
    for piece in in_pieces(rows, rng, cuts):
        wins_onward(*walked(piece), carried)
    start, score, weight = laid(rows)
    np.testing.assert_array_equal(wins_in_all(carried), wins(*sides(start), score, weight))


@settings(max_examples=60)
@pieces
def test_pairs(seed: int, weighted: bool, cuts: int) -> None:
    """Truths of each label against those of each, as two segments in memory."""
    rows, rng = drawn(seed, weighted=weighted)
    truth = rng.integers(-1, LABELS, len(rows)).astype(np.int32)
    rows = msgspec.structs.replace(rows, truth=truth)
    carried = no_pairs(GROUPS, LABELS, weighted=weighted)
    for piece in in_pieces(rows, rng, cuts):
        start, group, _, score, weight = walked(piece)
        pairs_onward(start, group, piece.truth, score, weight, carried)
    found = pairs_in_all(carried).reshape(GROUPS, LABELS, LABELS)
    label = np.repeat(np.arange(LABELS), np.diff(rows.start))
    for g, a, b in np.ndindex(found.shape):
        of_label = (rows.codes[0] == g) & (label == a)
        own, other = (np.flatnonzero(of_label & (truth == t)) for t in (a, b))
        both = np.concatenate([own, other])
        ends = np.array([0]), np.array([own.size]), np.array([own.size]), np.array([both.size])
        weights = None if rows.weight is None else rows.weight[both]
        assert found[g, a, b] == wins(ends[:2], ends[2:], rows.score[both], weights)[0]


@settings(max_examples=60)
@pieces
def test_sums(seed: int, weighted: bool, cuts: int) -> None:
    rows, rng = drawn(seed, weighted=weighted)
    thresholds = np.array([-1.0, 0.0, 0.125, 0.3, 9.0])
    carried = no_sums(GROUPS * LABELS * OUTCOMES, thresholds.size, weighted=weighted)
    for piece in reversed(in_pieces(rows, rng, cuts)):
        sums_onward(*walked(piece), OUTCOMES, thresholds, carried)
    start, score, weight = laid(rows)
    each = np.ones(score.size) if weight is None else weight
    reached, total = weights_reaching(start[:-1], start[1:], score, each, thresholds)
    np.testing.assert_array_equal(reached_in_all(carried), reached)
    np.testing.assert_array_equal(carried.total, total)
    np.testing.assert_array_equal(carried.rows, np.diff(start))


@settings(max_examples=60)
@pieces
def test_points_and_areas(seed: int, weighted: bool, cuts: int) -> None:
    """Points of every piece are complete; what is summed over them goes on."""
    rows, rng = drawn(seed, weighted=weighted)
    n = GROUPS * LABELS
    carried = no_points(n, weighted=weighted)
    cut = reversed(in_pieces(rows, rng, cuts))
    found = [points_onward(*walked(piece), carried) for piece in cut]
    found.append(last_points(carried))
    start, score, weight = laid(rows)
    whole = points(*sides(start), score, weight)
    segment = np.concatenate([some[0] for some in found])
    order = np.argsort(segment, kind="stable")
    np.testing.assert_array_equal(np.bincount(segment, minlength=n), np.diff(whole[0]))
    for at in (1, 2, 3):
        column = np.concatenate([some[at] for some in found])[order]
        np.testing.assert_array_equal(column, whole[at])

    positives, negatives = rng.random((2, n)) * 200
    sums, areas = [], []
    for parts in (found, [(np.repeat(np.arange(n), np.diff(whole[0])), *whole[1:])]):
        precision, area = no_precision(n), no_area(positives, negatives)
        for codes, _, tp, fp in parts:
            by = np.argsort(codes, kind="stable")
            begin = np.r_[0, np.cumsum(np.bincount(codes, minlength=n))]
            precision_onward(begin, tp[by], fp[by], precision)
            areas_onward(begin, tp[by], fp[by], positives, negatives, 0.3, area)
        sums.append(precision)
        areas.append(area_in_all(positives, negatives, 0.3, area))
    np.testing.assert_array_equal(*sums)
    np.testing.assert_array_equal(*areas)


def test_many_small_terms_lose_nothing() -> None:
    """Average precision of ten million hits at as many scores is 1, not nearly."""
    n = 10_000_000
    carried = no_precision(1)
    tp = np.arange(1.0, n + 1)
    precision_onward(np.array([0, n]), tp, tp * 2, carried)  # each term is a third
    assert carried.total[0] + carried.lost[0] == np.float64(n * (1.0 / 3.0))


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), parts=st.integers(1, 5))
def test_rows_of_parts_in_order(seed: int, parts: int) -> None:
    """Dealt out row by row, they are put back: by label, score and place in the input."""
    rows, rng = drawn(seed, weighted=True)
    part = rng.integers(0, parts, len(rows))
    place = rng.permutation(len(rows))
    label = np.repeat(np.arange(LABELS), np.diff(rows.start))
    order = np.lexsort((place, rows.score, label))
    assert rows.weight is not None
    columns = rows.score, rows.outcome, place, rows.weight, rows.codes[0]
    score, outcome, place, weight, code = (column[order] for column in columns)

    def few(inside: Array) -> ScoreRows:
        start = np.searchsorted(label[inside], np.arange(LABELS + 1))
        own = (column[inside] for column in (score, outcome, place, weight))
        return ScoreRows(start, *own, (code[inside],))

    found = merge_rows([few(np.flatnonzero(part == i)) for i in range(parts)])
    expected = few(np.arange(len(rows)))
    for mine, theirs in zip(walked(found), walked(expected), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(found.row, expected.row)
