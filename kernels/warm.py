"""Kernels that small tables do not reach, run on a few values by a warm-up."""

from __future__ import annotations

import numpy as np

from .boxes import candidates, rows_by_datum, truths_by_datum
from .datums import (
    Level,
    Scoring,
    add_floats,
    add_integers,
    by_bucket,
    class_counts,
    count_tiny,
    deal,
    draw_weights,
    drawn_classes,
    drawn_counts,
    drawn_sums,
    hash_bytes,
    hash_codes,
    hash_integers,
    hash_lists,
    hash_rows,
    hash_texts,
    join_slices,
    largest_of_cells,
    look_up,
    mark,
    measure_slices,
    poisson_counts,
    sum_rows,
    swap_bits,
    swap_counts,
)
from .json import powers_of_five, scan_rows
from .label_maps import colour_ids
from .labels import majority_order, match_labels, pooled_blocks
from .masks import (
    closed,
    decode,
    edges,
    encode,
    erode_lines,
    from_counts,
    mask_extents,
    mask_overlaps,
    paint,
    polygon_areas,
    rasterise_rings,
    scan,
    shared_polygon_areas,
    subtract,
    take_runs,
    transpose,
    unite,
)
from .order import (
    append_segments,
    count_few,
    count_in_ranges,
    cuts_of,
    merge_runs,
    partition,
    places_in_ranges,
    sort_ranges,
)
from .passages import walks_too_far
from .scores import (
    Drawing,
    add_wins,
    best_of_blocks,
    count_reaching,
    drawn_precisions,
    drawn_wins,
    pair_wins,
    place_table,
    wins_by_row,
)
from .sums import errors_between


def inputs() -> None:
    """Ids, labels and resamples of datums, for every task."""
    value = np.arange(4, dtype=np.int64)
    many = np.arange(1 << 13, dtype=np.uint64)  # more than its first table has room for
    hash_codes(many, many)
    hashes = hash_integers(value)
    mark(value, 0, np.zeros(1, np.uint8))
    look_up(value, 0, value, np.zeros(4, np.int32))
    hash_texts(np.array([0, 1]), np.zeros(1, np.uint8))
    by_bucket(hashes, 2)
    deal(np.zeros(1, np.int64), 2, hashes[:1].copy())
    swap_bits(hashes, 0, 0, 4)
    weights, sums = draw_weights(hashes, 0, 0, 4), np.zeros((1, 1, 4))
    drawn_sums(None, np.zeros(4), np.zeros((4, 1)), weights, sums)
    drawn_counts(None, np.zeros(4), None, weights, sums)
    largest_of_cells(np.zeros(4), np.zeros(4), np.zeros(1), np.zeros(1))
    count_tiny(np.zeros(4), np.zeros(4), np.zeros(1), np.zeros(1))
    hash_rows(None, np.zeros(4), None, False, 0, hashes.copy(), np.zeros((1, 1)))
    class_counts(np.zeros(4), hashes, 0, np.zeros((3, 1), np.uint64))
    poisson_counts(hashes, value, 0, 0, 4)
    swap_counts(hashes, value, 0, 0, 4)
    drawn_classes(value, np.zeros(4), np.ones(4), np.zeros((4, 4)), np.zeros((1, 4)))
    item, ones = value[:2], np.ones(2)
    level = Level(item[:, None], item, item + 1, ones, ones, ones)
    grown = join_slices(0, 2, level, item, Scoring(4.0, 1.0, 1.0, 1, 1.0, 0.0))
    add_integers(hashes, np.zeros(0, np.bool_), 0, hashes.copy())
    add_floats(ones, np.zeros(0, np.bool_), 0, hashes.copy())
    hash_bytes(np.array([0, 1]), np.zeros(1, np.uint8), hashes.copy()[:1])
    hash_lists(np.array([0, 1]), hashes, hashes.copy()[:1])
    sum_rows(hashes, np.zeros(2, np.uint64))
    measure_slices(np.stack((value, value)), np.zeros(4), np.ones(4), item, item[:, None], *grown)


def errors() -> None:
    """Errors of single targets."""
    errors_between(np.zeros(4), np.ones(4), 0.0, 1.0, 4)


def scores() -> None:
    """Scores of labels, and votes for them."""
    value = np.arange(4, dtype=np.int64)
    code, score, outcome = value.astype(np.int32), value.astype(np.float64), np.zeros(4, np.uint8)
    count_few([score], outcome, 3)
    sort_ranges(np.sin(np.arange(1 << 17)), np.array([0]), np.array([1 << 17]))
    ranges, free = cuts_of(np.arange(4.0), 2), np.zeros(2, np.int64)
    count_in_ranges(np.arange(4.0), ranges, free)
    places_in_ranges(np.arange(4.0), ranges, free, np.zeros(4, np.int64))
    append_segments(np.array([0, 4]), np.arange(4.0), np.array([0]), np.zeros(4))
    match_labels(code, code, score, code, None)
    majority_order(np.arange(6, dtype=np.int32).reshape(3, 2), np.array([0, 3]))
    partition([score], outcome, None, None, None, (1, 1, 3))
    partition([score], outcome + np.uint8(2), None, None, None, (1, 1, 3))
    partition([score], outcome, code, code, code, (1 << 12, 4, 3))  # laid out in two rounds
    pair_wins((value[:1], value[1:2]), (value[1:2], value[3:]), score)
    wins_by_row(score, score)
    best_of_blocks(score, 0, 2, np.zeros(2, np.int32), np.zeros(2))
    count_reaching(score, 0, 2, score, np.zeros((2, 4), np.int64))
    side = value[:1], value[2:3]
    drawing = Drawing(0, 0, 4, np.zeros(4, np.uint64))
    for weights in (None, score):  # sums are of integers, or of doubles
        drawn_wins(side, side, score, weights, drawing)
        drawn_precisions(side, side, score, weights, drawing)
    add_wins(score, 0, place_table(np.array([0, 2, 4]), score), np.zeros(2, np.int64))


def parts() -> None:
    """Merging of parts of a run, by descending score."""
    begin, end = np.array([[0], [2]]), np.array([[2], [4]])
    merge_runs(begin, end, -np.arange(4.0), np.zeros(0), np.arange(4, dtype=np.int32))


def boxes() -> None:
    """Many boxes of one datum."""
    datum = np.zeros(1 << 10, np.int32)  # more pairs than are looked at one by one
    boxes, area = np.zeros((datum.size, 4)), np.zeros(datum.size)
    ours = *rows_by_datum(datum, 1), boxes, area, datum
    candidates(0, 1, ours, truths_by_datum(datum, 1, boxes, area, datum), 0.5)


def walks() -> None:
    """Words with many longest common subsequences."""
    walks_too_far(0, 0, (np.array([0, 1]), np.array([0, 2]), np.zeros(2, np.int32)), 1)


def fits() -> None:
    """Fits of scores, for separate commands."""
    pooled_blocks(np.ones(2), np.ones(2))


def label_maps() -> None:
    """Maps of colours."""
    colour_ids(np.zeros((3, 2, 2), np.uint8))


def masks() -> None:
    """Masks, polygons and rasters."""
    one, two = np.array([1]), np.array([2])
    bounds = np.array([0, 1])
    runs, _ = from_counts(np.array([1, 1]), np.array([0, 2]), two)
    _, text = encode(runs, two)
    decode(text, np.array([0, text.size]), two)
    _, box = mask_extents(runs, two)
    row = np.zeros(1, np.int32)
    mask_overlaps(runs, box, runs, box, row, row)
    unite(runs, row, 1)
    subtract(runs, runs)
    take_runs(runs, np.zeros(1, np.int64))
    closed(np.array([0, 2]), one, np.zeros(2, np.uint32), np.ones(2, np.uint32))
    scan(np.ones(2, np.uint8), np.array([0, 2]))
    paint(runs[1], runs[2], 2)
    transpose(runs, two, one)
    erode_lines(runs, two, one)
    triangle = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    rasterise_rings(triangle, 3 * bounds, two, two)
    sides, around = edges(triangle, 3 * bounds, bounds, bounds), np.array([[0.0, 0.0, 2.0, 2.0]])
    polygon = sides, polygon_areas(sides, around), around
    shared_polygon_areas(polygon, polygon, row, row)


def rows() -> None:
    """Rows of JSON."""
    text = np.frombuffer(b'[{"a":1}]', np.uint8)
    words = np.frombuffer(b'"a"truefalsenull' + bytes(8), np.uint8)
    names = words, np.array([0, 3, 7, 12, 16]), np.zeros(1, np.bool_), powers_of_five()
    pool, one, two = np.zeros((1, 2), np.uint64), np.zeros(1, np.int64), np.zeros(2, np.int64)
    columns = np.zeros((1, 2), np.uint8), pool, pool, pool.view(np.uint8)
    scan_rows(
        text, 1, 9, *names, *columns, one, two, np.zeros((1, 3), np.int64), np.zeros(3, np.int64)
    )
