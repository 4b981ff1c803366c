"""Comparison of run-length masks: areas, pairs of labels, and unlabelled pixels."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...geometry.grids import Grid, grid_of, opened
from ...geometry.masks import Masks, intersections, union_by
from ...ingest.frames import Frames
from ...ingest.problems import Note, count_of
from ...schemas.arrays import Array
from ...schemas.errors import InputError
from ...tally.counted_rows import Crossings
from ...tally.datums import Datums, Labels
from ...tally.pixels import Areas, Pixels, no_surfaces
from ..encoding import encode_labels
from ..pixels.histograms import NOTHING
from ..pixels.sides import Side
from ..workers import Workers
from . import surfaces
from .coded import IGNORED, decoded
from .layer_masks import Layers, Sizes, layers_of, with_polygons
from .naming import Names, apply_map, ignored_codes, index_names, labels_of
from .settings import Settings
from .units import Units, declared_codes, images_of, seen_of, summed, with_keys

# Rasters of one label each: those of one datum must cover the same ground, pixel by pixel.

_SHOWN = 3


def refuse_other_grids(sides: tuple[Side, Side]) -> None:
    """Check that the raster files of each datum share the grid of the first georeferenced one.

    Masks are compared by row and column, so that files of another projection, place or resolution
    would
    be compared as if aligned. Files without georeference are not checked.

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
                wrong.append(f"{who}: {path!r} does not lie upon {first!r} ({named[first]}): {why}")
    if wrong:
        more = f"\n- and {len(wrong) - _SHOWN:,} more." if len(wrong) > _SHOWN else ""
        shown = "\n".join(f"- {message}" for message in wrong[:_SHOWN])
        raise InputError(
            f"column 'raster': {count_of(len(wrong), 'file')} whose pixels do not line up with"
            f" those of the"
            f" same datum:\n{shown}{more}\nWrite the rasters of a datum on one grid; only label"
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
        sizes.told_by(side)
    read = [layers_of(side, sizes, settings, workers) for side in sides]
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
    labels, coded, dropped = _labelled(frames, sides, read, units, names, settings)
    truth, found = (
        _united(side, layers, code, units, len(labels), ignored if side is sides[1] else None)
        for side, layers, code in zip(sides, read, coded, strict=True)
    )
    for side, one in zip(sides, (truth, found), strict=True):
        many = int(one.overlapping.sum())
        if many:
            said = f"{side.called}: labels overlap in {count_of(many, 'datum')}"
            frames.notes.append(
                Note("labels_overlap", f"{said}; such pixels count for each of them.", many)
            )
    over = workers.over
    size = sizes.size[units.datum].prod(axis=1) - ignored.area
    common = _meet(truth.whole, found.whole, over)
    unit, areas = _areas(truth, found, units, len(labels), over)
    neither = size - (truth.covered + found.covered - common)
    agreeing = summed(unit, areas.right, units.datum.size) + neither
    images = images_of(labels, units, size, agreeing, truth.overlapping | found.overlapping)
    lines = no_surfaces()
    if surfaces.NEED in needs:
        masks = [(one.unit, one.label, one.masks) for one in (truth, found)]
        lines = surfaces.of_masks((masks[0], masks[1]), ignored, units.datum, settings, workers)
    return labels, Pixels(
        areas=areas,
        crossings=_crossings(truth, found, units, over, wanted="crossings" in needs),
        images=images,
        declared=declared_codes(frames, labels),
        ignored=dropped,
        surfaces=lines,
    )


def _decoded(layers: Layers, side: Side, names: Names | None, settings: Settings) -> Layers:
    if layers.index is None:
        return layers
    index = decoded(side, layers.row, layers.index, layers.masks.area, names, settings.step)
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
    gone = union_by(layers.masks.take(np.flatnonzero(drop)), _int32(unit[drop]), units.datum.size)
    blank = none
    if layers.index is not None:
        blank = layers.index == NOTHING
        if settings.background is not None:
            blank |= layers.index == settings.background
    kept = np.flatnonzero(~drop & ~blank)
    index = None if layers.index is None else layers.index[kept]
    return gone, Layers(layers.masks.take(kept), layers.row[kept], index)


def _labelled(
    frames: Frames,
    sides: tuple[Side, Side],
    read: list[Layers],
    units: Units,
    names: Names | None,
    settings: Settings,
) -> tuple[Labels, list[Array], Array]:
    """Labels of both sides, the label code of every mask, and which labels are ignored."""
    dtypes = [side.frame.schema["label_value"] for side in sides if side.layered]
    values, keys, spread = [], [], []
    pairs: dict[str, pl.DataFrame] = {}
    for side, layers in zip(sides, read, strict=True):
        if layers.index is None:
            values.append(side.frame["label_value"])
            keys.append(side.key)
            spread.append(layers.row)
            continue
        seen, inverse = seen_of(units.of(side)[layers.row], layers.index, layers.masks.area, units)
        value = labels_of(seen, names, side.role, side.ids, dtypes[0] if dtypes else None)
        pairs[side.role] = pl.DataFrame({"label_key": seen.key, "label_value": value})
        values.append(value)
        keys.append(seen.key)
        spread.append(inverse)
    if pairs:
        apply_map(frames, pairs, settings)
    labels, coded = encode_labels(values, keys, frames)
    labels = with_keys(labels, units)
    codes = [code[at] for code, at in zip(coded, spread, strict=True)]
    return labels, codes, ignored_codes(labels, names, settings, codes[0])


def _united(
    side: Side, layers: Layers, code: Array, units: Units, n_labels: int, ignored: Masks | None
) -> _United:
    """Masks of one label in one unit become one."""
    many = max(1, n_labels)
    joint, inverse = np.unique(units.of(side)[layers.row] * many + code, return_inverse=True)
    unit = joint // many
    n = units.datum.size
    masks = union_by(layers.masks, _int32(inverse), joint.size)
    whole = union_by(masks, _int32(unit), n)
    overlapping = summed(unit, masks.area, n) > whole.area
    area, covered = masks.area, whole.area
    if ignored is not None:
        area = area - _met(masks, ignored, np.arange(joint.size), unit)
        covered = covered - _met(whole, ignored, np.arange(n), np.arange(n))
    return _United(unit, joint % many, masks, area, whole, covered, overlapping)


def _int32(values: Array) -> Array:
    return values.astype(np.int32)


def _met(a: Masks, b: Masks, ia: Array, ib: Array, over: Any = None) -> Array:
    """Return shared pixels of pairs of masks; 0 if one is empty, whatever its size."""
    out = np.zeros(ia.size, np.int64)
    some = np.flatnonzero((a.area[ia] > 0) & (b.area[ib] > 0))
    out[some] = intersections(a, b, _int32(ia[some]), _int32(ib[some]), over)
    return out


def _meet(a: Masks, b: Masks, over: Any) -> Array:
    each = np.arange(len(a))
    return _met(a, b, each, each, over)


def _areas(
    truth: _United, found: _United, units: Units, n_labels: int, over: Any
) -> tuple[Array, Areas]:
    """Pixels of every label on either side and in both, and the unit of each row."""
    many = max(1, n_labels)
    joint = [one.unit * many + one.label for one in (truth, found)]
    place = np.unique(np.concatenate(joint))
    at = [np.searchsorted(place, one) for one in joint]
    sums = [
        summed(where, one.area, place.size) for where, one in zip(at, (truth, found), strict=True)
    ]
    _, ia, ib = np.intersect1d(joint[0], joint[1], return_indices=True)
    right = np.zeros(place.size, np.int64)
    right[at[0][ia]] = _met(truth.masks, found.masks, ia, ib, over)
    kept = np.flatnonzero((sums[0] > 0) | (sums[1] > 0))
    place = place[kept]
    unit = place // many
    return unit, Areas(
        units.datum[unit], _int32(place % many), sums[0][kept], sums[1][kept], right[kept]
    )


def _crossings(
    truth: _United, found: _United, units: Units, over: Any, *, wanted: bool
) -> Crossings:
    """Return the pixels of every pair of labels in a unit, and of labels without overlap."""
    none = np.empty(0, np.int64)
    if not wanted:
        return Crossings(none, none, none, none)
    n = units.datum.size
    many = np.bincount(found.unit, minlength=n)[truth.unit]  # partners of each true label
    first = np.searchsorted(found.unit, np.arange(n))[truth.unit]
    ia = np.repeat(np.arange(truth.unit.size), many)
    within = np.arange(ia.size) - np.repeat(np.cumsum(many) - many, many)
    ib = np.repeat(first, many) + within
    alone = [
        one.area - _met(one.masks, other.whole, np.arange(one.unit.size), one.unit, over)
        for one, other in ((truth, found), (found, truth))
    ]
    unit = np.concatenate([truth.unit[ia], truth.unit, found.unit])
    actual = np.concatenate([truth.label[ia], truth.label, np.full(found.unit.size, -1)])
    predicted = np.concatenate([found.label[ib], np.full(truth.unit.size, -1), found.label])
    count = np.concatenate([_met(truth.masks, found.masks, ia, ib, over), *alone])
    kept = np.flatnonzero(count > 0)
    return Crossings(
        units.datum[unit[kept]], _int32(actual[kept]), _int32(predicted[kept]), count[kept]
    )
