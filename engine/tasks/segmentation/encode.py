"""Encode and match: label maps meet pixel by pixel, masks by their runs; labels become codes."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...inputs.frames import Frames
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS
from ...tally.datums import Datums, Labels
from ...tally.pixels import Areas, Crossings, Images, Pixels
from ..encoding import dataset_of, declared_labels, encode_datums, encode_labels, taken
from ..workers import Workers
from .histograms import NOTHING, Pairs
from .maps import count_maps
from .naming import Seen, apply_map, index_names, labels_of
from .settings import Settings
from .sides import Side, side_of

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


class Units(msgspec.Struct, frozen=True):
    """Datums under one label key each: what is compared.

    Attributes:
        datum: int32 [u], datum code.
        key: int32 [u], code of the label key.
        keys: names of the keys, ascending.
    """

    datum: Array
    key: Array
    keys: pl.Series

    def of(self, side: Side) -> Array:
        """The unit of each row of a side, int64 [n]."""
        at = np.searchsorted(self._joint(self.datum, self.key), self._joint_of(side))
        return at.astype(np.int64)

    def _joint(self, datum: Array, key: Array) -> Array:
        joint: Array = datum.astype(np.int64) * len(self.keys) + key
        return joint

    def _joint_of(self, side: Side) -> Array:
        return self._joint(side.datum, _codes(side.key, self.keys))

    @staticmethod
    def among(sides: list[Side]) -> Units:
        """The units that some row is of, by datum and key."""
        keys = pl.concat([side.key for side in sides]).unique().sort()
        blank = Units(np.empty(0, np.int32), np.empty(0, np.int32), keys)
        joint = np.unique(np.concatenate([blank._joint_of(side) for side in sides]))
        many = max(1, len(keys))
        return Units((joint // many).astype(np.int32), (joint % many).astype(np.int32), keys)


def _codes(names: pl.Series, among: pl.Series) -> Array:
    """Codes of names that all stand among some."""
    if not len(names):
        return np.empty(0, np.int32)
    return names.cast(pl.Enum(among)).to_physical().cast(pl.Int32).to_numpy()


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

        labels, pixels = count_layers(frames, truth, found, units, settings, needs, workers)
    else:
        labels, pixels = _label_maps(frames, truth, found, units, settings, workers)
    return Batch(datums, labels, pixels, answered, known)


def _label_maps(
    frames: Frames,
    truth: Side,
    found: Side,
    units: Units,
    settings: Settings,
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
    counted = count_maps(list(zip(*placed, strict=True)), workers, resample=settings.resample)
    if settings.ignore_index is not None:
        kept = counted.truth != settings.ignore_index
        counted = Pairs(*(getattr(counted, name)[kept] for name in Pairs.__struct_fields__))
    labels, codes = _coded_indices(frames, (truth, found), counted, units, settings)
    return labels, pixels_of(labels, units, counted.place, codes, counted.count, frames)


def _coded_indices(
    frames: Frames,
    sides: tuple[Side, Side],
    counted: Pairs,
    units: Units,
    settings: Settings,
) -> tuple[Labels, list[Array]]:
    """Labels of all indices, and the label codes of both columns of pairs, -1 for none."""
    names = index_names(frames, settings)
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
    codes = []
    for (here, inverse), code in zip(spread, coded, strict=True):
        whole = np.full(counted.place.size, -1, np.int64)
        whole[here] = code[inverse]
        codes.append(whole)
    return labels, codes


def _or_nothing(index: int | None) -> int:
    return NOTHING if index is None else index


def seen_of(unit: Array, index: Array, pixels: Array, units: Units) -> tuple[Seen, Array]:
    """The distinct indices among some counts, and which of them each count is of.

    Args:
        unit: int64 [n], unit of each count.
        index: int64 [n], its index.
        pixels: int64 [n], its pixels.
        units: what units are.
    """
    low = int(index.min()) if index.size else 0
    span = (int(index.max()) - low + 1) if index.size else 1
    key = units.key[unit].astype(np.int64)
    joint, inverse = np.unique(key * span + (index - low), return_inverse=True)
    table = (
        pl.DataFrame({"seen": inverse, "pixels": pixels, "datum": units.datum[unit]})
        .group_by("seen")
        .agg(pl.col("pixels").sum(), datums=pl.col("datum").n_unique(), datum=pl.col("datum").min())
        .sort("seen")
    )
    seen = Seen(
        units.keys.gather(joint // span).alias("label_key"),
        joint % span + low,
        table["pixels"].to_numpy(),
        table["datum"].to_numpy(),
        table["datums"].to_numpy(),
    )
    return seen, inverse


def pixels_of(
    labels: Labels,
    units: Units,
    unit: Array,
    codes: list[Array],
    count: Array,
    frames: Frames,
) -> Pixels:
    """Counts by datum and label from counts of pairs of labels that overlap nowhere.

    Args:
        labels: of the run.
        units: what is compared.
        unit: int64 [n], unit of each pair.
        codes: int64 [n] twice, label code in the ground truth and in the prediction, -1 for none.
        count: int64 [n], pixels.
        frames: for declared labels.
    """
    many = len(labels) + 1
    joint = (unit * many + codes[0] + 1) * many + codes[1] + 1
    place, inverse = np.unique(joint, return_inverse=True)
    summed = np.zeros(place.size, np.int64)
    np.add.at(summed, inverse, count)
    unit, actual, predicted = (
        place // (many * many),
        place // many % many - 1,
        place % many - 1,
    )
    same = actual == predicted
    crossing = np.flatnonzero(~same | (actual >= 0))
    return Pixels(
        areas=_areas(units, many, unit, actual, predicted, summed),
        crossings=Crossings(
            units.datum[unit[crossing]],
            actual[crossing].astype(np.int32),
            predicted[crossing].astype(np.int32),
            summed[crossing],
        ),
        images=images_of(
            labels,
            units,
            _summed(unit, summed, units.datum.size),
            _summed(unit[same], summed[same], units.datum.size),
            np.zeros(units.datum.size, bool),
        ),
        declared=declared_codes(frames, labels),
    )


def _summed(place: Array, values: Array, size: int) -> Array:
    out = np.zeros(size, np.int64)
    np.add.at(out, place, values)
    return out


def _areas(
    units: Units, many: int, unit: Array, actual: Array, predicted: Array, count: Array
) -> Areas:
    """Pixels of every label on both sides, and in both."""
    of_side = [(unit * many + code)[code >= 0] for code in (actual, predicted)]
    place = np.unique(np.concatenate(of_side))
    sums = [
        _summed(np.searchsorted(place, at), count[code >= 0], place.size)
        for at, code in zip(of_side, (actual, predicted), strict=True)
    ]
    both = (actual == predicted) & (actual >= 0)
    right = _summed(np.searchsorted(place, (unit * many + actual)[both]), count[both], place.size)
    return Areas(
        units.datum[place // many],
        (place % many).astype(np.int32),
        *sums,
        right,
    )


def images_of(
    labels: Labels, units: Units, pixels: Array, right: Array, overlapping: Array
) -> Images:
    """One row a unit, under the codes that labels give their keys; keys without labels go."""
    code = {name: i for i, name in enumerate(labels.key_names)}
    of_key = np.array([code.get(name, -1) for name in units.keys.to_list()], np.int32)
    key = of_key[units.key] if of_key.size else np.empty(0, np.int32)
    kept = np.flatnonzero((key >= 0) & (pixels > 0))
    return Images(units.datum[kept], key[kept], pixels[kept], right[kept], overlapping[kept])


def declared_codes(frames: Frames, labels: Labels) -> Array | None:
    """Which labels were declared, bool [n_labels]; None where none was."""
    if frames.labels is None or frames.labels.is_empty():
        return None
    declared = declared_labels(frames, labels.frame)
    key = ["label_key", "label_value"]
    hits = labels.frame.join(
        declared.select(key).with_columns(pl.lit(value=True).alias("declared")),
        on=key,
        how="left",
        maintain_order="left",
    )
    here: Array = hits["declared"].fill_null(value=False).to_numpy()
    return here
