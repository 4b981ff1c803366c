"""Encode: tables become pairs of a predicted and a true number, by datum and label key."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ...ingest.frames import Frames
from ...ingest.ids import encode
from ...ingest.problems import note_of
from ...schemas.arrays import Array
from ...schemas.contract import DEFAULT_LABEL_KEY
from ...tallies.datums import Datums, Labels
from ...tallies.paired_values import Paired
from ...tallies.registry import stored_as
from ..counted import CountTallies
from ..encoding import (
    encode_sides,
    hashes_of,
    pop_column,
    pop_if_present,
    pop_numbers,
    row_numbers,
    table_datums,
    weights_of,
)
from .dialects import IDS, PLAIN, SAMPLES, numbers_of

STATUS = ("scored", "no_prediction", "no_target", "no_values")
"""Standing of a datum; those of the first have a number."""
_SHOWN = 5


@stored_as("regression.run/1")
class Tallies(CountTallies, frozen=True, kw_only=True):
    """Tally of a regression run, whose labels are the targets: ``support`` counts rows.

    Attributes:
        paired: rows of both sides, :class:`~evalengine.tallies.paired_values.Paired`, or on disk
            :class:`~evalengine.tallies.tables.InFiles`.
    """

    paired: Any


def encode_batch(frames: Frames) -> Tallies:
    """Pair the numbers of checked tables, as a tally without errors of single datums."""
    return _from_table(frames, frames.table) if frames.table is not None else _from_sides(frames)


def _keys(columns: list[pl.Series | None], sizes: list[int]) -> tuple[Labels, list[Array]]:
    """The label keys of all rows, ascending, and int32 codes of each column's rows."""
    default = pl.Series("label_key", [DEFAULT_LABEL_KEY], dtype=pl.String)
    if all(column is None for column in columns):
        names, codes = default, [np.zeros(n, np.int32) for n in sizes]
    else:
        names, codes = encode(
            [
                default.new_from_index(0, n) if column is None else column
                for column, n in zip(columns, sizes, strict=True)
            ]
        )
    if not len(names):
        names = default
    none = pl.lit(None, pl.String).alias("label_name")
    table = pl.DataFrame({"label_key": names, "label_value": names}).with_columns(none)
    return Labels.of(table), [code.astype(np.int32, copy=False) for code in codes]


def _predicted(table: pl.DataFrame) -> Array:
    """Return the predictions, NaN if only distributions were predicted."""
    if "prediction" in table.columns:
        return pop_numbers(table, "prediction")
    return np.full(table.height, np.nan)


def _listed(column: pl.Series) -> Array:
    """Lists of as many numbers each, float64 [n, m]."""
    flat = column.explode(empty_as_null=False, keep_nulls=False).cast(pl.Float64).to_numpy()
    return flat.reshape(len(column), -1) if len(column) else flat.reshape(0, 1)


def _further_columns(*tables: pl.DataFrame) -> dict[str, tuple[int, Array]]:
    """Further columns by name: which table has them, and their numbers."""
    columns: dict[str, tuple[int, Array]] = {}
    for i, table in enumerate(tables):
        if PLAIN.issuperset(table.columns):
            continue
        for name in numbers_of(table.columns):
            columns[name] = i, pop_numbers(table, name)
        if SAMPLES in table.columns:
            columns[SAMPLES] = i, _listed(pop_column(table, SAMPLES))
        for name in IDS:
            if name in table.columns:
                columns[name] = i, hashes_of(pop_column(table, name))
    return columns


def _from_table(frames: Frames, table: pl.DataFrame) -> Tallies:
    height = table.height
    numbers = row_numbers(table)
    key = pop_if_present(table, "label_key")
    datums, codes = table_datums(frames, table, height, numbers)
    datum = (
        np.arange(height, dtype=np.int32) if codes is None else codes.astype(np.int32, copy=False)
    )
    labels, (key_code,) = _keys([key], [height])
    paired = Paired(
        datum,
        key_code,
        pop_numbers(table, "target"),
        _predicted(table),
        weights_of(table),
        {name: values for name, (_, values) in _further_columns(table).items()},
    )
    status = np.full(len(datums), STATUS.index("no_values"), np.int8)
    status[datum] = STATUS.index("scored")
    paired = paired if codes is None and key is None else _in_order(paired)
    return Tallies(datums=datums, labels=labels, paired=paired, present=status)


def _in_order(paired: Paired) -> Paired:
    """Rows by datum and label key."""
    place = paired.datum.astype(np.int64) * (int(paired.key.max(initial=0)) + 1) + paired.key
    return paired if bool((np.diff(place) > 0).all()) else paired.take(np.argsort(place))


def _from_sides(frames: Frames) -> Tallies:
    predictions, truths = frames.predictions, frames.ground_truths
    row_numbers(predictions), row_numbers(truths)
    sides = (truths, predictions)
    keys = [pop_if_present(side, "label_key") for side in sides]
    labels, key_codes = _keys(keys, [side.height for side in sides])
    datums, codes = encode_sides(frames)
    pairs, places = _pairs(len(labels), codes, key_codes)
    true, predicted = (np.full(pairs.size, -1, np.int64) for _ in sides)
    for side, place in zip((true, predicted), places, strict=True):
        side[place] = np.arange(place.size)
    matched = np.flatnonzero((true >= 0) & (predicted >= 0))
    rows = true[matched], predicted[matched]
    weight = weights_of(truths)
    paired = Paired(
        (pairs[matched] // len(labels)).astype(np.int32),
        (pairs[matched] % len(labels)).astype(np.int32),
        pop_numbers(truths, "target")[rows[0]],
        _predicted(predictions)[rows[1]],
        None if weight is None else weight[rows[0]],
        {name: values[rows[side]] for name, (side, values) in _further_columns(*sides).items()},
    )
    has_target, answered = (np.zeros(len(datums), np.bool_) for _ in sides)
    has_target[codes[0]], answered[codes[1]] = True, True
    status = np.where(has_target, STATUS.index("no_prediction"), STATUS.index("no_target"))
    status = np.where(has_target | answered, status, STATUS.index("no_values")).astype(np.int8)
    status[paired.datum] = STATUS.index("scored")
    if len(labels) > 1:  # otherwise whole datums are missing, which checks report
        lone = pairs[(true >= 0) != (predicted >= 0)] // len(labels)
        _note_one_sided_keys(frames, datums, lone[(has_target & answered)[lone]])
    return Tallies(datums=datums, labels=labels, paired=paired, present=status)


def _pairs(width: int, datums: list[Array], keys: list[Array]) -> tuple[Array, list[Array]]:
    """Return the pairs of datum and label key of both sides, ascending, and the pair of each row.

    Args:
        width: number of label keys; a pair is datum * width + key.
        datums: codes of each side's rows.
        keys: codes of each side's rows.
    """
    if width == 1:
        n = max((int(codes.max(initial=-1)) for codes in datums), default=-1) + 1
        return np.arange(n), datums
    every = [code.astype(np.int64) * width + key for code, key in zip(datums, keys, strict=True)]
    distinct, places = encode([pl.Series("pair", pairs) for pairs in every])
    return distinct.to_numpy(), places


def _note_one_sided_keys(frames: Frames, datums: Datums, lone: Array) -> None:
    """Add a note on label keys that only one side has, for datums that both sides have.

    Args:
        lone: the datum of each such label key.
    """
    if not lone.size:
        return
    ids = datums.id.gather(np.unique(lone)[:_SHOWN]).to_list()
    words = ("target", "targets", "on only one side, of datums")
    frames.notes.append(note_of("keys_of_one_side", int(lone.size), words, ids))
