"""Outlines and boundaries of labels, measured per image and label.

Source: Cheng et al., "Boundary IoU", CVPR 2021; Huttenlocher et al. 1993 and Taha and Hanbury 2015
for distances between outlines; Nikolov et al. 2018 for NSD; Csurka et al. 2013 for boundary F1. The
outline of a mask is that of MONAI 1.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext

import numpy as np

from ...geometry.masks import Masks, boundary_depth, to_pixels
from ...kernels.label_maps import INSIDE, distances, outline, segment_edges
from ...schemas.arrays import Array
from ...tallies.counts import Surfaces
from ..encoding import Workers
from ..pixels import Pair, Pairs, in_thread, opened_pair, quiet
from .dialects import Settings

Labelled = tuple[int, Array | None, Array | None]
"""Label code, and its pixels, bool [h, w], of truth and prediction; None if empty."""
LabelsOf = Callable[[int], Iterator[Labelled]]

NEED = "surfaces"
PERCENTILE = 95


def measured(datum: Array, labels_of: LabelsOf, settings: Settings, workers: Workers) -> Surfaces:
    """Measure the outlines of every label of every unit.

    Args:
        datum: int32 [u], datum of each unit.
        labels_of: yields the labels of a unit.
    """

    def some(first: int, last: int) -> list[tuple[float, ...]]:
        return [
            (int(datum[unit]), label, *_row(truth, predicted, settings))
            for unit in range(first, last)
            for label, truth, predicted in labels_of(unit)
        ]

    parts = workers.over(np.arange(datum.size + 1), some)
    rows = np.array([row for part in parts for row in part], np.float64)
    rows = rows.reshape(-1, len(Surfaces.__struct_fields__))
    order = np.lexsort((rows[:, 1], rows[:, 0]))
    kinds = (np.int32, np.int32, np.int64, np.int64, np.int64)
    columns = [column[order] for column in rows.T]
    for place, kind in enumerate(kinds):
        columns[place] = columns[place].astype(kind)
    return Surfaces(*columns)


def _row(truth: Array | None, predicted: Array | None, settings: Settings) -> tuple[float, ...]:
    """Return the measures of a label in one image, in the order of :class:`.Surfaces`."""
    height, width = np.array(next(one.shape for one in (truth, predicted) if one is not None))
    depth = int(boundary_depth(height, width, settings.boundary_ratio))
    sides = _cropped(truth, predicted)
    edges = [None if side is None else _boundary(side, depth) for side in sides]
    area = [0 if edge is None else int(edge.sum()) for edge in edges]
    a, b = edges
    shared = 0 if a is None or b is None else int((a & b).sum())
    steps = settings.pixel_spacing
    diagonal = float(np.hypot((height - 1) * steps[0], (width - 1) * steps[1]))
    if sides[0] is None or sides[1] is None:
        none = np.nan
        return (*area, shared, none, none, none, 0.0, 0.0, diagonal)
    lines = [outline(side.view(np.uint8)) for side in sides if side is not None]
    missed = distances(lines[0], lines[1], steps)
    astray = distances(lines[1], lines[0], steps)
    all_distances = np.concatenate([missed, astray])
    if settings.rules.pooled_distances:
        percentile = float(np.percentile(all_distances, PERCENTILE))
    else:
        percentile = max(float(np.percentile(one, PERCENTILE)) for one in (missed, astray))
    recall, precision = (
        float((one <= settings.surface_tolerance).mean()) for one in (missed, astray)
    )
    inside = float((all_distances <= settings.surface_tolerance).mean())
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    furthest, mean = float(all_distances.max()), float(all_distances.mean())
    return (*area, shared, furthest, percentile, mean, inside, f1, diagonal)


def _cropped(*masks: Array | None) -> list[Array | None]:
    """Crop masks to their common bounding box; None for empty ones."""
    filled = [mask for mask in masks if mask is not None and mask.any()]
    if not filled:
        return [None] * len(masks)
    rows, columns = (
        np.flatnonzero(np.any([mask.any(axis) for mask in filled], axis=0)) for axis in (1, 0)
    )
    box = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
    return [None if mask is None or not mask.any() else mask[box] for mask in masks]


def _boundary(mask: Array, depth: int) -> Array:
    """The pixels within a distance from the outline, on its inner side."""
    edges = segment_edges(mask.astype(np.int32), depth)
    return mask & (edges != INSIDE)


def of_maps(
    pairs: list[Pair],
    counted: Pairs,
    selected: Array,
    codes: list[Array],
    datum: Array,
    settings: Settings,
    workers: Workers,
) -> Surfaces:
    """Measure the outlines of labels of label maps, which are read again, a pair at a time.

    Args:
        pairs: the maps of each unit.
        counted: pixels by pair of values of units, as in files.
        selected: bool [n], pairs that count; those of ignored ground truths do not.
        codes: int64 [m] twice, label codes of the m pairs that count, -1 for none.
        datum: int32 [u], datum of each unit.
    """
    place, columns = counted.place[selected], (counted.truth[selected], counted.found[selected])
    order = np.argsort(place, kind="stable")
    edges = np.searchsorted(place[order], np.arange(len(pairs) + 1))
    lost = {
        int(unit): counted.truth[~selected & (counted.place == unit)]
        for unit in np.unique(counted.place[~selected])
    }

    def labels_of(unit: int) -> Iterator[Labelled]:
        rows = order[edges[unit] : edges[unit + 1]]
        files = any(side is not None and side.pixels is None for side in pairs[unit])
        with in_thread() if files else nullcontext(), ExitStack() as stack:
            opened = opened_pair(pairs[unit], stack, resample=settings.resample)
            read = [None if side is None else side.read(side.whole) for side in opened]
        truth = read[0]
        ignored = np.isin(truth, lost[unit]) if truth is not None and unit in lost else None
        for label in np.unique(np.concatenate([code[rows] for code in codes])):
            if label >= 0:
                a, b = (
                    None if pixels is None else _is_any(pixels, column[rows[code[rows] == label]])
                    for pixels, column, code in zip(read, columns, codes, strict=True)
                )
                if ignored is not None:
                    a, b = (None if side is None else side & ~ignored for side in (a, b))
                yield int(label), a, b

    files = any(side is not None and side.pixels is None for pair in pairs for side in pair)
    with quiet() if files else nullcontext():
        return measured(datum, labels_of, settings, workers)


def _is_any(pixels: Array, values: Array) -> Array:
    """Pixels that have one of some values, bool [h, w]."""
    mask = np.zeros(pixels.shape, np.bool_)
    for value in np.unique(values):
        mask |= pixels == value
    return mask


def of_masks(
    sides: tuple[tuple[Array, Array, Masks], tuple[Array, Array, Masks]],
    ignored: Masks,
    datum: Array,
    settings: Settings,
    workers: Workers,
) -> Surfaces:
    """Measure the outlines of labels of masks.

    Args:
        sides: unit int64 [n] ascending, label int64 [n] and n masks, of ground truths and of
            predictions.
        ignored: mask per unit of predicted pixels that do not count.
        datum: int32 [u], datum of each unit.
    """
    starts = [np.searchsorted(unit, np.arange(datum.size + 1)) for unit, _, _ in sides]

    def labels_of(unit: int) -> Iterator[Labelled]:
        places = [
            {int(label[i]): i for i in range(start[unit], start[unit + 1])}
            for start, (_, label, _) in zip(starts, sides, strict=True)
        ]
        gone = to_pixels(ignored, unit) != 0 if ignored.area[unit] else None
        for label in sorted({*places[0], *places[1]}):
            truth, predicted = (
                to_pixels(masks, place[label]) != 0 if label in place else None
                for place, (_, _, masks) in zip(places, sides, strict=True)
            )
            if predicted is not None and gone is not None:
                predicted = predicted & ~gone
            yield label, truth, predicted

    return measured(datum, labels_of, settings, workers)
