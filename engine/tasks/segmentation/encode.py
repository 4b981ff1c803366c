"""Encode and match: label maps meet pixel by pixel, masks by their runs; labels become codes."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...ingest.frames import Frames
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS
from ...tally.counted_rows import Crossings
from ...tally.datums import Datums, Labels
from ...tally.pixels import Areas, Pixels
from ..encoding import dataset_of, encode_datums, encode_labels, taken
from ..pixels.histograms import NOTHING, Pairs
from ..pixels.maps import count_maps
from ..pixels.sides import Side, side_of
from ..workers import Workers
from . import surfaces
from .apart import notes_of
from .coded import IGNORED, decoded
from .grid_notes import resampling_notes
from .naming import Names, apply_map, ignored_codes, index_names, labels_of
from .settings import Settings
from .units import Units, declared_codes, distinct, images_of, seen_of, summed, with_keys

Array = np.ndarray[Any, Any]


class Batch(msgspec.Struct, frozen=True):
    """All datums of a run, counted.

    Attributes:
        datums: ids and slices.
        labels: of both sides and the declared ones.
        pixels: the counts.
        answered: bool [n_datums], whether the datum stands in the predictions.
        known: bool [n_datums], whether it stands in the ground truths.
    """

    datums: Datums
    labels: Labels
    pixels: Pixels
    answered: Array
    known: Array


def encode_batch(
    frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers
) -> Batch:
    """Pixels counted by datum and pair of labels.

    Args:
        frames: checked tables, used up here; notes are added to theirs.
        settings: the run's settings.
        needs: what will be summarised.
        workers: runs ranges of datums side by side.

    Raises:
        InputError: pixels that cannot be read or do not meet, or an index without a name.
    """
    dataset = dataset_of(frames)
    roles = (GROUND_TRUTHS, PREDICTIONS)
    ids = [taken(frames.sides[role], "datum_id") for role in roles]
    datums, coded = encode_datums(ids, frames, dataset, roles)
    truth, found = sides = [
        side_of(frames, role, codes, datums.id) for role, codes in zip(roles, coded, strict=True)
    ]
    units = Units.among(sides)
    answered, known = (
        np.bincount(side.datum, minlength=len(datums)) > 0 for side in (found, truth)
    )
    if truth.layered or found.layered:
        from .layers import count_layers

        labels, pixels = count_layers(
            frames, datums, (truth, found), units, settings, needs, workers
        )
    else:
        labels, pixels = _label_maps(frames, truth, found, units, settings, needs, workers)
    return Batch(datums, labels, pixels, answered, known)


def _label_maps(
    frames: Frames,
    truth: Side,
    found: Side,
    units: Units,
    settings: Settings,
    needs: frozenset[str],
    workers: Workers,
) -> tuple[Labels, Pixels]:
    """Both sides are maps of indices: one joint histogram a unit."""
    placed = []
    for side in (truth, found):
        places = side.places()
        of_unit: list[Any] = [None] * units.datum.size
        for row, unit in enumerate(units.of(side).tolist()):
            of_unit[unit] = places[row]
        placed.append(of_unit)
    pairs = list(zip(*placed, strict=True))
    counted, resampled = count_maps(pairs, workers, resample=settings.resample)
    frames.notes += resampling_notes(resampled, counted, units, truth.ids)
    names = index_names(frames, settings)
    as_read = counted
    counted = _decoded(counted, (truth, found), units, names, settings)
    kept = (counted.truth != IGNORED) & (
        counted.truth != _or_nothing(settings.ignore_index, IGNORED)
    )
    counted = Pairs(*(getattr(counted, name)[kept] for name in Pairs.__struct_fields__))
    labels, codes, ignored = _coded_indices(frames, (truth, found), counted, units, names, settings)
    void = settings.ignore_index is not None or "raster_coding" in truth.frame.columns
    frames.notes += notes_of(pairs, counted, codes, labels, ignored=void)
    pixels = pixels_of(labels, units, counted.place, codes, counted.count, ignored, frames)
    if surfaces.NEED in needs:
        lines = surfaces.of_maps(pairs, as_read, kept, codes, units.datum, settings, workers)
        pixels = msgspec.structs.replace(pixels, surfaces=lines)
    return labels, pixels


def _decoded(
    counted: Pairs,
    sides: tuple[Side, Side],
    units: Units,
    names: Names | None,
    settings: Settings,
) -> Pairs:
    """Pairs of indices, of values as files hold them."""
    both = []
    for side, values in zip(sides, (counted.truth, counted.found), strict=True):
        row = np.zeros(units.datum.size, np.int64)
        row[units.of(side)] = np.arange(side.frame.height)
        both.append(decoded(side, row[counted.place], values, counted.count, names, settings.step))
    return Pairs(counted.place, both[0], both[1], counted.count)


def _coded_indices(
    frames: Frames,
    sides: tuple[Side, Side],
    counted: Pairs,
    units: Units,
    names: Names | None,
    settings: Settings,
) -> tuple[Labels, list[Array], Array]:
    """Labels of all indices, label codes of both columns of pairs (-1 for none), ignored labels."""
    values, keys, spread = [], [], []
    pairs = {}
    for side, index in zip(sides, (counted.truth, counted.found), strict=True):
        here = np.flatnonzero((index != NOTHING) & (index != _or_nothing(settings.background)))
        seen, inverse = seen_of(counted.place[here], index[here], counted.count[here], units)
        value = labels_of(seen, names, side.role, side.ids, None)
        pairs[side.role] = pl.DataFrame({"label_key": seen.key, "label_value": value})
        values.append(value)
        keys.append(seen.key)
        spread.append((here, inverse))
    apply_map(frames, pairs, settings)
    labels, coded = encode_labels(values, keys, frames)
    labels = with_keys(labels, units)
    codes = []
    for (here, inverse), code in zip(spread, coded, strict=True):
        whole = np.full(counted.place.size, -1, np.int64)
        whole[here] = code[inverse]
        codes.append(whole)
    return labels, codes, ignored_codes(labels, names, settings, codes[0])


def _or_nothing(index: int | None, nothing: int = NOTHING) -> int:
    return nothing if index is None else index


def pixels_of(
    labels: Labels,
    units: Units,
    unit: Array,
    codes: list[Array],
    count: Array,
    ignored: Array,
    frames: Frames,
) -> Pixels:
    """Counts by datum and label from counts of pairs of labels that overlap nowhere.

    Args:
        labels: of the run.
        units: what is compared.
        unit: int64 [n], unit of each pair.
        codes: int64 [n] twice, label code in the ground truth and in the prediction, -1 for none.
        count: int64 [n], pixels.
        ignored: bool [n_labels], labels that the ignored index names.
        frames: for declared labels.
    """
    many = len(labels) + 1
    joint = (unit * many + codes[0] + 1) * many + codes[1] + 1
    place, inverse = distinct(joint, units.datum.size * many * many)
    pixels = summed(inverse, count, place.size)
    unit, actual, predicted = (
        place // (many * many),
        place // many % many - 1,
        place % many - 1,
    )
    same = actual == predicted
    crossing = np.flatnonzero(~same | (actual >= 0))
    images = images_of(
        labels,
        units,
        summed(unit, pixels, units.datum.size),
        summed(unit[same], pixels[same], units.datum.size),
        np.zeros(units.datum.size, bool),
    )
    return Pixels(
        areas=_areas(units, many, unit, actual, predicted, pixels),
        crossings=Crossings(
            units.datum[unit[crossing]],
            actual[crossing].astype(np.int32),
            predicted[crossing].astype(np.int32),
            pixels[crossing],
        ),
        images=images,
        declared=declared_codes(frames, labels),
        ignored=ignored,
    )


def _areas(
    units: Units, many: int, unit: Array, actual: Array, predicted: Array, count: Array
) -> Areas:
    """Pixels of every label on both sides, and in both."""
    one_side = [code >= 0 for code in (actual, predicted)]
    joint = [
        (unit * many + code)[on] for code, on in zip((actual, predicted), one_side, strict=True)
    ]
    place, inverse = distinct(np.concatenate(joint), units.datum.size * many)
    at = np.split(inverse, [joint[0].size])
    sums = [summed(to, count[on], place.size) for to, on in zip(at, one_side, strict=True)]
    same = (actual == predicted)[one_side[0]]
    right = summed(at[0][same], count[one_side[0]][same], place.size)
    return Areas(
        units.datum[place // many],
        (place % many).astype(np.int32),
        sums[0],
        sums[1],
        right,
    )
