"""Masks of labels, compared by their runs, and their outlines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...geometry.masks import (
    Masks,
    boundary_depth,
    concat,
    from_rows,
    intersections,
    read_masks,
    to_pixels,
    union_by,
)
from ...geometry.polygons import REFUSE, rasterise, read_polygons
from ...geometry.rasters import Grid, ValueRuns, grid_of, opened, read_raster_masks
from ...ingest.frames import Frames
from ...ingest.ids import steps_of
from ...ingest.problems import count_of, note_of
from ...ingest.shapes import FORMS
from ...kernels.label_maps import INSIDE, distances, outline, segment_edges
from ...kernels.masks import Runs, joined, scan
from ...schemas.arrays import Array
from ...schemas.errors import N_EXAMPLES, InputError
from ...schemas.tuning import tuning
from ...tallies.counts import Areas, Crossings, Pixels, Surfaces, no_surfaces
from ...tallies.datums import Datums, Labels
from ..encoding import Workers, declared_codes, declared_sizes, ragged, sizes_in
from ..pixels import NOTHING, MapRow, Pair, Pairs, Side, in_thread, map_of, opened_pair, quiet
from .dialects import Settings
from .naming import IGNORED, Names, Units, decoded, images_of, index_names, label_codes, summed

# One side as masks of one label each: RLE, polygons and rasters of a label, or a map's indices.

_RASTER, _MASK, _POLYGON = range(len(FORMS))


class Layers(msgspec.Struct, frozen=True):
    """Masks of a side.

    Attributes:
        masks: n masks.
        row: int64 [n], row of the side for each mask.
        index: int64 [n], index of each in its label map; None if rows have labels.
    """

    masks: Masks
    row: Array
    index: Array | None


class Sizes:
    """Known image height and width of every datum, with their source.

    Args:
        frames: for heights and widths in the table of datums.

    Raises:
        InputError: a height or width in that table that is not an integer >= 1.
    """

    def __init__(self, datums: Datums, frames: Frames) -> None:
        self._ids = datums.id
        self.size = np.zeros((len(datums), 2), np.int64)
        self._who: list[Callable[[int], str]] = []
        self._teller = np.full(len(datums), -1, np.int64)  # index of the source of a datum's size,
        self._row = np.zeros(len(datums), np.int64)  # and at which of its rows
        declared = declared_sizes(frames, datums)
        self.hold(np.arange(len(datums)), declared, lambda _: "the table of datums")

    def add(self, side: Side) -> None:
        """Add the sizes in the side's columns ``height`` and ``width``."""
        if {"height", "width"} <= set(side.frame.columns):
            size = sizes_in(side.frame, side.called, side.numbered)
            self.hold(side.datum, size, side.row)

    def hold(self, datum: Array, size: Array, who: Callable[[int], str]) -> None:
        """Compare sizes with the known ones, and add new ones; the first source counts.

        Args:
            datum: int [n], datum codes.
            size: int64 [n, 2], height and width, 0 for unknown.
            who: name of the source of a size, for messages.

        Raises:
            InputError: sizes differ from known ones; with the count, the first named.
        """
        here = np.flatnonzero((size > 0).all(axis=1))
        fresh = here[self._teller[datum[here]] < 0]
        code, first = np.unique(datum[fresh], return_index=True)
        self.size[code] = size[fresh[first]]
        self._teller[code], self._row[code] = len(self._who), fresh[first]
        self._who.append(who)
        wrong = here[(self.size[datum[here]] != size[here]).any(axis=1)]
        if wrong.size:
            at = int(wrong[0])
            one = int(datum[at])
            (h, w), (height, width) = size[at], self.size[one]
            before = self._who[int(self._teller[one])](int(self._row[one]))
            more = f" So are {wrong.size - 1:,} more." if wrong.size > 1 else ""
            raise InputError(
                f"{who(at)}: its pixels are {h} x {w} (height x width), and those of {before}"
                f" {height} x {width}: masks of one datum ({self._ids[one]!r}) must be of one"
                f" size.{more} Write both at the size of the image.",
                code="sizes_differ",
                count=wrong.size,
            )


def layers_of(side: Side, sizes: Sizes, workers: Workers) -> Layers:
    """Return the masks of a side; polygons are added by :func:`with_polygons`.

    Args:
        side: its rows.
        sizes: of the datums; sizes of masks are added.

    Raises:
        InputError: a mask that is malformed, or masks of different size on one datum.
    """
    form = side.form()
    parts: list[Masks] = []
    rows: list[Array] = []
    indices: list[Array] = []
    raster = np.flatnonzero(form == _RASTER)
    if raster.size:
        split = _rasters(side, raster, workers)
        parts.append(split.masks)
        rows.append(split.row)
        indices.append(
            split.index if split.index is not None else np.zeros(split.row.size, np.int64)
        )
    mask = np.flatnonzero(form == _MASK)
    if mask.size:
        column = side.frame["mask"].gather(mask)
        parts.append(read_masks(column, side=side.role, over=workers.over, rows=mask))
        rows.append(mask)
        indices.append(np.zeros(mask.size, np.int64))
    row = np.concatenate([np.empty(0, np.int64), *rows])
    masks = concat(parts)
    size = np.stack([masks.height, masks.width], axis=1)
    sizes.hold(side.datum[row], size, lambda i: side.row(int(row[i])))
    index = None if side.layered else np.concatenate([np.empty(0, np.int64), *indices])
    return Layers(masks, row, index)


def with_polygons(
    layers: Layers, side: Side, sizes: Sizes, settings: Settings, workers: Workers
) -> Layers:
    """Add the masks of a side's polygons.

    Raises:
        InputError: a polygon that is malformed, or in an image of unknown size.
    """
    polygon = np.flatnonzero(side.form() == _POLYGON)
    if not polygon.size:
        return layers
    size = sizes.size[side.datum[polygon]]
    unknown = np.flatnonzero((size == 0).any(axis=1))
    if unknown.size:
        raise InputError(
            f"{side.row(int(polygon[unknown[0]]))}: {count_of(unknown.size, 'polygon')} of images"
            " of unknown height and width. Give a table of datums with columns height and width,"
            " or the columns themselves.",
            code="image_size_missing",
            side=side.role,
            count=unknown.size,
        )
    read = read_polygons(
        side.frame["polygon"].gather(polygon),
        side=side.role,
        invalid=settings.invalid_polygons,
        rows=polygon,
    )
    if settings.invalid_polygons == REFUSE:
        read.geometries  # noqa: B018  # built for their checks: rings that cross are refused
    masks = rasterise(read, size[:, 0], size[:, 1], workers.over)
    return Layers(
        concat([layers.masks, masks]), np.concatenate([layers.row, polygon]), layers.index
    )


def _rasters(side: Side, rows: Array, workers: Workers) -> Layers:
    """Masks of rasters: pixels of a value, or of any but 0; of label maps one for each index."""
    placed = side.places()
    places = [place for row in rows.tolist() if (place := placed[row]) is not None]
    if not side.layered:
        return _indices(places, rows, workers)
    values = np.array([side.column("raster_value")[row] for row in rows], np.float64)
    if all(place.pixels is None for place in places):
        masks = read_raster_masks(
            pl.Series("raster", [place.path for place in places], dtype=pl.String),
            np.array([place.band or 1 for place in places], np.int64),
            values,
            side=side.role,
            over=workers.over,
            rows=rows,
            remote=True,  # its side has refused those that may not be opened
        )
        return Layers(masks, rows, None)
    runs: list[Runs] = []
    shapes: list[tuple[int, ...]] = []
    for place, value in zip(places, values, strict=True):
        pixels = np.asarray(place.pixels)  # there: rows of files were read above
        _refuse_size(place.named, pixels.shape)
        chosen = pixels != 0 if np.isnan(value) else pixels == value
        runs.append(scan(chosen.view(np.uint8).ravel(), np.array([0, chosen.size])))
        shapes.append(chosen.shape)
    return Layers(_masks(runs, shapes), rows, None)


def _masks(runs: list[Runs], shapes: list[tuple[int, ...]]) -> Masks:
    """Masks of runs along the rows; each part of ``runs`` is of images of one shape."""
    each = [start.size - 1 for start, _, _ in runs]
    height, width = np.array(shapes, np.int64).reshape(-1, 2).repeat(each, axis=0).T.copy()
    return from_rows(joined(runs), height, width)


def _indices(places: list[MapRow], rows: Array, workers: Workers) -> Layers:
    """Split label maps into one mask per index.

    A map is read once, by strips, so that one in a file need not fit into memory.
    """
    files = any(place.pixels is None for place in places)

    def some(first: int, last: int) -> list[tuple[Masks, Array]]:
        layers = []
        with in_thread() if files else nullcontext():
            for place in places[first:last]:
                by_value = ValueRuns()
                with ExitStack() as stack:
                    opened = map_of(place, stack)
                    _refuse_size(place.named, opened.shape)
                    for window in opened.strips(tuning().strip_pixels):
                        by_value.add(window.top, opened.read(window))
                index, runs = by_value.collect()
                layers.append((_masks([runs], [opened.shape]), index))
        return layers

    with quiet() if files else nullcontext():
        pairs = [one for part in workers.over(np.arange(rows.size + 1), some) for one in part]
    index = [one.astype(np.int64) for _, one in pairs]
    return Layers(
        concat([masks for masks, _ in pairs]),
        np.repeat(rows, [one.size for one in index]),
        np.concatenate([np.empty(0, np.int64), *index]),
    )


def _refuse_size(named: str, shape: tuple[int, ...]) -> None:
    height, width = shape
    if height * width >= 1 << 32:
        raise InputError(
            f"{named}: a raster of {height} x {width} pixels is compared with masks, which are of"
            " fewer than 2^32. Cut both into tiles, one datum each, or write both as label maps.",
            code="too_many_pixels",
            height=height,
            width=width,
        )


# Rasters of one label each: those of one datum must cover the same ground, pixel by pixel.


def refuse_other_grids(sides: tuple[Side, Side]) -> None:
    """Check that the raster files of each datum share the grid of the first georeferenced one.

    Masks are compared by row and column, so that files of another projection, place or resolution
    would be compared as if aligned. Files without georeference are not checked.

    Args:
        sides: ground truths and predictions; their files are known to be readable.

    Raises:
        InputError: grids of one datum differ; the message names the first few.
    """
    files: dict[int, dict[str, str]] = {}
    for side in sides:
        forms = side.form()
        for row, place in enumerate(side.places()):
            if place is not None and place.path and forms[row] == 0:
                files.setdefault(int(side.datum[row]), {}).setdefault(place.path, place.named)
    grids: dict[str, Grid] = {}
    wrong: list[str] = []
    for named in files.values():
        if len(named) < 2:
            continue
        first: str | None = None
        for path, who in named.items():
            if path not in grids:
                with opened(path, remote=True) as dataset:  # vetted by its side
                    grids[path] = grid_of(dataset)
            grid = grids[path]
            if not grid.placed:
                continue
            if first is None:
                first = path
                continue
            why = grids[first].differs(grid)
            if why:
                wrong.append(
                    f"{who}: {path!r} is not aligned with {first!r} ({named[first]}): {why}"
                )
    if wrong:
        more = f"\n- and {len(wrong) - N_EXAMPLES:,} more." if len(wrong) > N_EXAMPLES else ""
        listed = "\n".join(f"- {message}" for message in wrong[:N_EXAMPLES])
        raise InputError(
            f"column 'raster': {count_of(len(wrong), 'file')} whose pixels do not line up with"
            f" those of the"
            f" same datum:\n{listed}{more}\nWrite the rasters of a datum on one grid; only label"
            " maps can be resampled.",
            code="grids_differ",
            column="raster",
            count=len(wrong),
        )


class _United(msgspec.Struct, frozen=True):
    """One side, with one mask per unit and label.

    Attributes:
        unit: int64 [n], ascending.
        label: int64 [n], label code, ascending within a unit.
        masks: n masks.
        area: int64 [n], pixels that count.
        whole: union of labels per unit; of size 0 if there is none.
        covered: int64 [u], pixels of those that count.
        overlapping: bool [u], labels overlap.
    """

    unit: Array
    label: Array
    masks: Masks
    area: Array
    whole: Masks
    covered: Array
    overlapping: Array


def count_layers(
    frames: Frames,
    datums: Datums,
    sides: tuple[Side, Side],
    units: Units,
    settings: Settings,
    needs: frozenset[str],
    workers: Workers,
) -> tuple[Labels, Pixels]:
    """Count pixels by datum and label, for sides of which at least one has masks.

    Args:
        frames: the tables, for labels and notes.
        sides: ground truths and predictions.
        units: compared units.
        needs: pairs of different labels are only counted for ``crossings``.

    Raises:
        InputError: pixels that cannot be read or compared, or an index without a name.
    """
    sizes = Sizes(datums, frames)
    for side in sides:
        sizes.add(side)
    read = [layers_of(side, sizes, workers) for side in sides]
    refuse_other_grids(sides)
    read = [
        with_polygons(layers, side, sizes, settings, workers)
        for layers, side in zip(read, sides, strict=True)
    ]
    names = index_names(frames, settings)
    read = [
        _decoded(layers, side, names, settings) for layers, side in zip(read, sides, strict=True)
    ]
    ignored, read[0] = _without(sides[0], read[0], units, settings, settings.ignore_index)
    _, read[1] = _without(sides[1], read[1], units, settings, None)
    sources = [
        layers.row
        if layers.index is None
        else (units.of(side)[layers.row], layers.index, layers.masks.area)
        for side, layers in zip(sides, read, strict=True)
    ]
    labels, coded, dropped = label_codes(frames, sides, sources, units, names, settings)
    truth, predicted = (
        _united(side, layers, code, units, len(labels), ignored if side is sides[1] else None)
        for side, layers, code in zip(sides, read, coded, strict=True)
    )
    for side, one in zip(sides, (truth, predicted), strict=True):
        many = int(one.overlapping.sum())
        if many:
            words = "datum", "datums", "with overlapping labels: such pixels count for each of them"
            before = f"{side.called}: "
            frames.notes.append(note_of("labels_overlap", many, words, before=before))
    over = workers.over
    size = sizes.size[units.datum].prod(axis=1) - ignored.area
    common = _meet(truth.whole, predicted.whole, over)
    unit, areas = _areas(truth, predicted, units, len(labels), over)
    neither = size - (truth.covered + predicted.covered - common)
    agreeing = summed(unit, areas.right, units.datum.size) + neither
    images = images_of(labels, units, size, agreeing, truth.overlapping | predicted.overlapping)
    lines = no_surfaces()
    if SURFACES in needs:
        masks = [(one.unit, one.label, one.masks) for one in (truth, predicted)]
        lines = of_masks((masks[0], masks[1]), ignored, units.datum, settings, workers)
    return labels, Pixels(
        areas=areas,
        crossings=_crossings(truth, predicted, units, over, needed="crossings" in needs),
        images=images,
        declared=declared_codes(frames, labels),
        ignored=dropped,
        surfaces=lines,
    )


def _decoded(layers: Layers, side: Side, names: Names | None, settings: Settings) -> Layers:
    if layers.index is None:
        return layers
    step = steps_of(settings.label_format)
    index = decoded(side, layers.row, layers.index, layers.masks.area, names, step)
    return Layers(layers.masks, layers.row, index)


def _without(
    side: Side, layers: Layers, units: Units, settings: Settings, ignore: int | None
) -> tuple[Masks, Layers]:
    """Pixels of each unit that count nowhere, a mask a unit; the side without background."""
    none = np.zeros(layers.row.size, bool)
    drop = none
    if layers.index is not None:
        drop = (
            layers.index == IGNORED if ignore is None else np.isin(layers.index, (ignore, IGNORED))
        )
    unit = units.of(side)[layers.row]
    void = union_by(layers.masks.take(np.flatnonzero(drop)), _int32(unit[drop]), units.datum.size)
    blank = none
    if layers.index is not None:
        blank = layers.index == NOTHING
        if settings.background is not None:
            blank |= layers.index == settings.background
    rows = np.flatnonzero(~drop & ~blank)
    index = None if layers.index is None else layers.index[rows]
    return void, Layers(layers.masks.take(rows), layers.row[rows], index)


def _united(
    side: Side, layers: Layers, code: Array, units: Units, n_labels: int, ignored: Masks | None
) -> _United:
    """Masks of one label in one unit become one."""
    many = max(1, n_labels)
    joint, inverse = np.unique(units.of(side)[layers.row] * many + code, return_inverse=True)
    unit = joint // many
    n = units.datum.size
    masks = union_by(layers.masks, _int32(inverse), joint.size)
    union = union_by(masks, _int32(unit), n)
    area, covered = masks.area, union.area
    if ignored is not None:
        area = area - _count_shared(masks, ignored, np.arange(joint.size), unit)
        covered = covered - _count_shared(union, ignored, np.arange(n), np.arange(n))
    overlapping = summed(unit, area, n) > covered
    return _United(unit, joint % many, masks, area, union, covered, overlapping)


def _int32(values: Array) -> Array:
    return values.astype(np.int32)


def _count_shared(a: Masks, b: Masks, ia: Array, ib: Array, over: Any = None) -> Array:
    """Return shared pixels of pairs of masks; 0 if one is empty, whatever its size."""
    out = np.zeros(ia.size, np.int64)
    some = np.flatnonzero((a.area[ia] > 0) & (b.area[ib] > 0))
    out[some] = intersections(a, b, _int32(ia[some]), _int32(ib[some]), over)
    return out


def _meet(a: Masks, b: Masks, over: Any) -> Array:
    each = np.arange(len(a))
    return _count_shared(a, b, each, each, over)


def _areas(
    truth: _United, predicted: _United, units: Units, n_labels: int, over: Any
) -> tuple[Array, Areas]:
    """Pixels of every label on either side and in both, and the unit of each row."""
    many = max(1, n_labels)
    joint = [one.unit * many + one.label for one in (truth, predicted)]
    place = np.unique(np.concatenate(joint))
    at = [np.searchsorted(place, one) for one in joint]
    sums = [
        summed(where, one.area, place.size)
        for where, one in zip(at, (truth, predicted), strict=True)
    ]
    _, ia, ib = np.intersect1d(joint[0], joint[1], return_indices=True)
    right = np.zeros(place.size, np.int64)
    right[at[0][ia]] = _count_shared(truth.masks, predicted.masks, ia, ib, over)
    nonempty = np.flatnonzero((sums[0] > 0) | (sums[1] > 0))
    place = place[nonempty]
    unit = place // many
    return unit, Areas(
        units.datum[unit],
        _int32(place % many),
        sums[0][nonempty],
        sums[1][nonempty],
        right[nonempty],
    )


def _crossings(
    truth: _United, predicted_side: _United, units: Units, over: Any, *, needed: bool
) -> Crossings:
    """Return the pixels of every pair of labels in a unit, and of labels without overlap."""
    none = np.empty(0, np.int64)
    if not needed:
        return Crossings(none, none, none, none)
    n = units.datum.size
    many = np.bincount(predicted_side.unit, minlength=n)[truth.unit]  # partners of each true label
    first = np.searchsorted(predicted_side.unit, np.arange(n))[truth.unit]
    ia = np.repeat(np.arange(truth.unit.size), many)
    ib = ragged(first, many)
    unmatched = [
        one.area - _count_shared(one.masks, other.whole, np.arange(one.unit.size), one.unit, over)
        for one, other in ((truth, predicted_side), (predicted_side, truth))
    ]
    unit = np.concatenate([truth.unit[ia], truth.unit, predicted_side.unit])
    actual = np.concatenate([truth.label[ia], truth.label, np.full(predicted_side.unit.size, -1)])
    predicted = np.concatenate(
        [predicted_side.label[ib], np.full(truth.unit.size, -1), predicted_side.label]
    )
    count = np.concatenate(
        [_count_shared(truth.masks, predicted_side.masks, ia, ib, over), *unmatched]
    )
    nonempty = np.flatnonzero(count > 0)
    return Crossings(
        units.datum[unit[nonempty]],
        _int32(actual[nonempty]),
        _int32(predicted[nonempty]),
        count[nonempty],
    )


# Outlines and boundaries of labels, measured per image and label.
#
# Source: Cheng et al., "Boundary IoU", CVPR 2021; Huttenlocher et al. 1993 and Taha and Hanbury
# 2015 for distances between outlines; Nikolov et al. 2018 for NSD; Csurka et al. 2013 for boundary
# F1. The outline of a mask is that of MONAI 1.6.

Labelled = tuple[int, Array | None, Array | None]
"""Label code, and its pixels, bool [h, w], of truth and prediction; None if empty."""
LabelsOf = Callable[[int], Iterator[Labelled]]

SURFACES = "surfaces"
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
            if any(side is not None and side.any() for side in (truth, predicted))
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
    place, columns = counted.place[selected], (counted.truth[selected], counted.predicted[selected])
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
        left_out = to_pixels(ignored, unit) != 0 if ignored.area[unit] else None
        for label in sorted({*places[0], *places[1]}):
            truth, predicted = (
                to_pixels(masks, place[label]) != 0 if label in place else None
                for place, (_, _, masks) in zip(places, sides, strict=True)
            )
            if predicted is not None and left_out is not None:
                predicted = predicted & ~left_out
            yield label, truth, predicted

    return measured(datum, labels_of, settings, workers)
