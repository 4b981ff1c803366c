"""Labels of label maps, by names, indices, colours or codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...ingest import both_sides, dtypes
from ...ingest.frames import Frames
from ...ingest.label_map_files import UNKNOWN, VOID, colour_of, is_coloured, numbers_of
from ...ingest.problems import Note, count_of, listing
from ...ingest.relabel import read_label_map, relabel
from ...schemas.arrays import Array
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS
from ...schemas.errors import InputError
from ...schemas.wording import option
from ...tallies.counts import Images
from ...tallies.datums import Labels
from ..encoding import encode_labels
from ..pixels import NOTHING, Side
from .dialects import Settings

# Indices of label maps become labels: by their names, or as they are.


class Names(msgspec.Struct, frozen=True):
    """The labels of indices.

    Attributes:
        of_key: label key, or None for every key -> index -> label value.
        dtype: of label values.
        colours: packed colour -> index, for labels with a colour.
    """

    of_key: dict[str | None, dict[int, Any]]
    dtype: pl.DataType
    colours: dict[int, int]

    def of(self, key: str) -> Mapping[int, Any]:
        """Names under one label key."""
        names: dict[int, Any] | None = self.of_key.get(key, self.of_key.get(None))
        return {} if names is None else names


class Seen(msgspec.Struct, frozen=True):
    """The distinct indices of one side, each under its label key.

    Attributes:
        key: name of the label key of each, String [n].
        index: int64 [n].
        pixels: int64 [n], pixels with it.
        datum: int64 [n], first datum with it.
        datums: int64 [n], number of datums with it.
    """

    key: pl.Series
    index: Array
    pixels: Array
    datum: Array
    datums: Array


def index_names(frames: Frames, settings: Settings) -> Names | None:
    """Return the names of indices from ``labels=``; None if it was not given.

    Indices are in column ``index``; otherwise integer labels are indices, and other labels are
    numbered in order, skipping the background.

    Raises:
        InputError: indices that are not integers, or not unique.
    """
    labels = frames.labels
    if labels is None or labels.is_empty():
        return None
    dtype = labels.schema["label_value"]
    keys = labels["label_key"].to_list() if "label_key" in labels.columns else None
    of_key: dict[str | None, dict[int, Any]] = {}
    free: dict[str | None, Any] = {}
    colours: dict[int, int] = {}
    for row, value in enumerate(labels["label_value"].to_list()):
        key = None if keys is None else keys[row]
        by_index = of_key.setdefault(key, {})
        if "index" in labels.columns:
            index = labels["index"][row]
            if index is None:
                continue
        elif dtype.is_integer():
            index = value
        else:
            index = next(
                free.setdefault(key, (index for index in count() if index != settings.background))
            )
        if isinstance(index, str):
            raise InputError(
                f"labels: column 'index' contains strings ({index!r}, ...); pixels are integers."
                " Cast it to Int64.",
                code="wrong_dtype",
                column="index",
            )
        if index in by_index:
            raise InputError(
                f"labels: index {index} names both {by_index[index]!r} and {value!r}. Each index"
                f" may appear once a label_key; merge labels with"
                f" {option('label_map', {str(value): str(by_index[index])})}.",
                code="repeated_values",
                column="index",
                value=index,
            )
        by_index[index] = value
        if "color" in labels.columns and labels["color"][row] is not None:
            colours[_colour(labels["color"][row], value)] = index
    ignored = settings.ignore_index
    if "index" not in labels.columns and not dtype.is_integer():
        ignored_names = [by_index[ignored] for by_index in of_key.values() if ignored in by_index]
        if ignored_names:
            frames.notes.append(
                Note(
                    "ignored_index_named",
                    f"labels: in order of index, {ignored_names[0]!r} is index"
                    f" {ignored}, which is ignored. To change that, give a column 'index'.",
                )
            )
    return Names(of_key, dtype, colours)


def _colour(text: str, label: Any) -> int:
    colour = colour_of(text)
    if colour is None:
        raise InputError(
            f"labels: {text!r} of {label!r} is not a colour. Write #804080, or 128,64,128.",
            code="not_a_colour",
            value=text,
        )
    return colour


def labels_of(
    seen: Seen, names: Names | None, role: str, ids: pl.Series, other: pl.DataType | None
) -> pl.Series:
    """Return the label value of each distinct index.

    Args:
        names: names of indices; None to use the indices.
        role: the side, for messages.
        ids: ids of the datums.
        other: dtype of the other side's labels, if it has label columns.

    Raises:
        InputError: an index without a name; or indices on one side and names on the other.
    """
    if names is None:
        if other is not None and not other.is_integer():
            raise InputError(
                f"{role.replace('_', ' ')}: label maps contain indices"
                f" ({listing(seen.index[:3].tolist())}), and the other side's labels are"
                f" {dtypes.kind_of(other)}. Give each label its index: {option('labels')} with the"
                " labels in order of index, or a table with columns label_value and index.",
                code="index_unnamed",
                side=role,
            )
        return pl.Series("label_value", seen.index, dtype=pl.Int64)
    keys = seen.key.to_list()
    values = [names.of(key).get(int(index)) for key, index in zip(keys, seen.index, strict=True)]
    unnamed = [i for i, value in enumerate(values) if value is None]
    if unnamed:
        raise _unnamed(seen, unnamed, names, role, ids)
    return pl.Series("label_value", values, dtype=names.dtype)


def label_codes(
    frames: Frames,
    sides: Sequence[Side],
    of_sides: Sequence[tuple[Array, Array, Array] | Array],
    units: Units,
    names: Names | None,
    settings: Settings,
) -> tuple[Labels, list[Array], Array]:
    """Code the labels of both sides.

    Args:
        of_sides: per side the unit, index and pixels of each count or mask; or the row of each
            mask, if rows have labels.

    Returns:
        labels; label code of each count or mask, per side; ignored labels, bool [n_labels].
    """
    dtypes = [side.frame.schema["label_value"] for side in sides if side.layered]
    values, keys, spread = [], [], []
    pairs: dict[str, pl.DataFrame] = {}
    for side, source in zip(sides, of_sides, strict=True):
        if not isinstance(source, tuple):
            values.append(side.frame["label_value"])
            keys.append(side.key)
            spread.append(source)
            continue
        seen, inverse = seen_of(*source, units)
        value = labels_of(seen, names, side.role, side.ids, dtypes[0] if dtypes else None)
        pairs[side.role] = pl.DataFrame({"label_key": seen.key, "label_value": value})
        values.append(value)
        keys.append(seen.key)
        spread.append(inverse)
    if pairs:
        apply_map(frames, pairs, settings)
    labels, coded = encode_labels(values, keys, frames, every_key=units.keys)
    # A key without labels has rows without values: all its pixels may be ignored, or background.
    labels = labels.with_keys(units.keys)
    codes = [code[at] for code, at in zip(coded, spread, strict=True)]
    true = np.arange(len(labels)) if sides[0].layered else codes[0]  # masks: no index is ignored
    return labels, codes, ignored_codes(labels, names, settings, true)


def ignored_codes(labels: Labels, names: Names | None, settings: Settings, true: Array) -> Array:
    """Return the labels of the ignored index, bool [n_labels], except those in the ground truths.

    Args:
        names: names of indices; None to use the indices.
        true: int [n], codes of labels in the ground truths, -1 for none.
    """
    ignored = settings.ignore_index
    out = np.zeros(len(labels), bool)
    if ignored is not None:
        frame = labels.frame.select("label_key", "label_value")
        out[:] = [
            value == (ignored if names is None else names.of(key).get(ignored))
            for key, value in frame.iter_rows()
        ]
        out[true[true >= 0]] = False
    return out


def _unnamed(seen: Seen, unnamed: list[int], names: Names, role: str, ids: pl.Series) -> InputError:
    first = unnamed[0]
    index, key = int(seen.index[first]), seen.key[first]
    named = sorted(names.of(key))
    covered = (
        f"the indices {named[0]} to {named[-1]}" if named else f"no index of label_key {key!r}"
    )
    if named and named != list(range(named[0], named[-1] + 1)):
        covered = f"the indices {listing(named)}"
    more = [int(seen.index[i]) for i in unnamed[1:]]
    also = f" So have {listing(more)}." if more else ""
    hints = [option("background", index)]
    if role == GROUND_TRUTHS:
        hints.insert(0, option("ignore_index", index))
    return InputError(
        f"{role.replace('_', ' ')}: index {index} has no name:"
        f" {count_of(int(seen.pixels[first]), 'pixel')} in"
        f" {count_of(int(seen.datums[first]), 'datum')}, first datum"
        f" {ids[int(seen.datum[first])]!r}.{also} {option('labels')} names {covered}."
        f" Name it there, or write {' or '.join(hints)}.",
        code="index_unnamed",
        side=role,
        value=index,
        pixels=int(seen.pixels[first]),
        datums=int(seen.datums[first]),
    )


def apply_map(frames: Frames, sides: dict[str, pl.DataFrame], settings: Settings) -> None:
    """Apply the label map to labels that only occur in label maps, and note one-sided labels.

    Args:
        frames: the tables; their label map and notes are extended.
        sides: side -> label_key and label_value of its labels, for sides with label maps.

    Raises:
        InputError: the map results in a mix of integers and strings.
    """
    keyed = {side for side, frame in frames.sides.items() if "label_key" in frame.columns}
    rows = {
        side: both_sides.label_pairs(frame)
        for side, frame in frames.sides.items()
        if "label_value" in frame.columns
    }
    if settings.label_map is None:
        after = {**rows, **sides}
    else:
        mapping, notes = relabel(read_label_map(settings.label_map), {**rows, **sides})
        if frames.labels is None:
            frames.notes = [note for note in frames.notes if note.kind != "label_map_unused"]
            frames.notes += notes
        frames.label_map = {**(frames.label_map or {}), **{side: mapping[side] for side in sides}}
        after = {
            side: table.select(label_key="new_label_key", label_value="new_label_value").unique(
                maintain_order=True
            )
            for side, table in mapping.items()
        }
    frames.notes += [
        note
        for note in both_sides.label_notes(after, keyed)
        if note.kind not in {earlier.kind for earlier in frames.notes}
    ]


# Values of pixels that are coded otherwise than by index become indices of labels.

IGNORED = NOTHING + 1
"""Index of ground-truth pixels that count nowhere, as their coding has it."""


def decoded(
    side: Side, row: Array, index: Array, pixels: Array, names: Names | None, step: int
) -> Array:
    """Return label indices for the values in files; void is ``IGNORED`` or ``NOTHING``.

    Args:
        row: int64 [n], row of the side for each value.
        index: int64 [n], the values.
        pixels: int64 [n], pixels with each value, for messages.
        names: labels, for their colours.
        step: added to indices of predictions.

    Raises:
        InputError: a value without meaning, with its count and first datum.
    """
    if step and side.role == PREDICTIONS:
        index = np.where(index == NOTHING, NOTHING, index + step)
    if "raster_coding" not in side.frame.columns:
        return index
    void = IGNORED if side.role == GROUND_TRUTHS else NOTHING
    codings = np.array(side.codings())
    out = index.copy()
    for coding in sorted({*codings.tolist()} - {""}):
        here = np.flatnonzero((codings == coding)[row] & (index != NOTHING))
        numbers = numbers_of(coding, index[here], {} if names is None else names.colours)
        wrong = here[numbers == UNKNOWN]
        if wrong.size:
            raise _meaningless(side, coding, row[wrong], index[wrong], pixels[wrong])
        out[here] = np.where(numbers == VOID, void, numbers)
    return out


def _meaningless(side: Side, coding: str, row: Array, index: Array, pixels: Array) -> InputError:
    """Return the error of values without a label, with the first one."""
    most = np.unique(index)
    first = ", ".join(_name_notes(coding, int(one)) for one in most[:3])
    more = f" and {most.size - 3:,} more" if most.size > 3 else ""
    what = "colour" if is_coloured(coding) else "value"
    tip = (
        "Were the files resized with interpolation, or saved as JPEG? Otherwise give each label"
        f" its colour: {option('labels')} with a table of label_value and color."
        if is_coloured(coding)
        else f"Give each label its index: {option('labels')}."
    )
    return InputError(
        f"{side.called}: {count_of(most.size, what)} without a label in {coding}: {first}{more},"
        f" {count_of(int(pixels.sum()), 'pixel')} in"
        f" {count_of(np.unique(side.datum[row]).size, 'datum')}, first"
        f" {side.numbered(int(row.min()))}. {tip}",
        code="values_unlabelled",
        side=side.role,
        coding=coding,
        count=most.size,
        pixels=int(pixels.sum()),
    )


def _name_notes(coding: str, value: int) -> str:
    if not is_coloured(coding):
        return str(value)
    return f"({value & 255}, {value >> 8 & 255}, {value >> 16})"


# Units (a datum under one label key each), and counts by unit.

_DENSE = 1 << 16  # codes that a table of all of them is always made for


class Units(msgspec.Struct, frozen=True):
    """Compared units: datums under one label key each.

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
        return datum.astype(np.int64) * len(self.keys) + key

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
    if not len(names):
        return np.empty(0, np.int32)
    return names.cast(pl.Enum(among)).to_physical().cast(pl.Int32).to_numpy()


def seen_of(unit: Array, index: Array, pixels: Array, units: Units) -> tuple[Seen, Array]:
    """Return the distinct indices among some counts, and the distinct index of each count.

    Args:
        unit: int64 [n], unit of each count.
        index: int64 [n], its index.
        pixels: int64 [n], its pixels.
    """
    low = int(index.min()) if index.size else 0
    span = (int(index.max()) - low + 1) if index.size else 1
    key = units.key[unit].astype(np.int64)
    joint, inverse = distinct(key * span + (index - low), len(units.keys) * span)
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


def distinct(codes: Array, span: int) -> tuple[Array, Array]:
    """Return the distinct codes, and the index of each code among them.

    Args:
        codes: int64 [n], from 0.
        span: exclusive upper bound of the codes.

    Returns:
        int64 [m] ascending, and int64 [n].
    """
    if span > max(_DENSE, 8 * codes.size):
        return np.unique(codes, return_inverse=True)
    here = np.zeros(span, bool)
    here[codes] = True
    return np.flatnonzero(here), (np.cumsum(here) - 1)[codes]


def summed(place: Array, values: Array, size: int) -> Array:
    """Sums of values by place, int64 [size]."""
    out = np.zeros(size, np.int64)
    np.add.at(out, place, values)
    return out


def images_of(
    labels: Labels, units: Units, pixels: Array, right: Array, overlapping: Array
) -> Images:
    """One row a unit, under the codes that labels give their keys, all of which they have."""
    code = {name: i for i, name in enumerate(labels.key_names)}
    of_key = np.array([code[name] for name in units.keys.to_list()], np.int32)
    key = of_key[units.key] if of_key.size else np.empty(0, np.int32)
    return Images(units.datum, key, pixels, right, overlapping)
