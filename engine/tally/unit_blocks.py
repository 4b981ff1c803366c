"""Units of consecutive datums with all that a view needs of their scored labels, apart from these.

A unit says by itself whether anything was predicted for it, how many labels are right, predicted
and true, and in which groups its datum is. Its place in the order of one run is that of its datum's
id and its label key, or of its row where all units come from one table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from .datums import Datums, Labels
from .merging import merge_datums
from .merging_units import merge_units
from .units import Facts, Units

Array = np.ndarray[Any, Any]


class UnitBlock(msgspec.Struct, frozen=True):
    """Some units in their order.

    Attributes:
        ids: ids of their datums ascending, those that units' datum codes stand for; None where
            units stand in the order of rows, each as a datum of its own.
        units: the units.
        known: bool [u], whether a unit has a truth or a prediction.
        leads: bool [u], whether it is the first such unit of its datum.
        codes: int32 [u] arrays, group of each unit in each slice column, -1 for none.
        more: name -> float64 [u], what views of the task need beside.
    """

    ids: pl.Series | None
    units: Units
    known: Array
    leads: Array
    codes: tuple[Array, ...]
    more: dict[str, Array]

    def __len__(self) -> int:
        return len(self.units)

    @property
    def key(self) -> pl.Series:
        """What units stand in the order of, first of all: ids of datums, or rows.

        Raises:
            RuntimeError: units that know neither.
        """
        if self.ids is not None:
            return self.ids
        if self.units.row is None:
            raise RuntimeError("units of one table do not know their rows in it")
        return pl.Series(self.units.row)


def chosen(units: Units, rows: slice, datum: Array | None) -> Units:
    """Some consecutive units.

    Args:
        units: of which.
        rows: the units.
        datum: int32, their datum codes; None where each is a datum of its own.
    """

    def few(column: Array | None) -> Array | None:
        return None if column is None else column[rows]

    start, truth = units.truth_start, units.truth
    if start is not None:
        start = start[rows.start : rows.stop + 1]
        truth, start = truth[start[0] : start[-1]], start - start[0]
    facts = units.facts
    return msgspec.structs.replace(
        units,
        datum=datum,
        key=few(units.key),
        truth=truth if start is not None else truth[rows],
        truth_start=start,
        hard=few(units.hard),
        hard_score=few(units.hard_score),
        weight=few(units.weight),
        facts=None
        if facts is None
        else Facts(facts.true_score[rows], facts.rank[rows], facts.squared[rows]),
        row=few(units.row),
    )


def cut(block: UnitBlock, begin: int, end: int) -> UnitBlock:
    """The units of the keys from one to before another, by their places in ``block.key``."""
    if block.ids is None:
        rows, ids, datum = slice(begin, end), None, None
    else:
        codes = block.units.datum_of()
        first, last = np.searchsorted(codes, [begin, end])
        rows, ids = slice(int(first), int(last)), block.ids[begin:end]
        datum = codes[rows] - np.int32(begin)
    return UnitBlock(
        ids,
        chosen(block.units, rows, datum),
        block.known[rows],
        block.leads[rows],
        tuple(code[rows] for code in block.codes),
        {name: column[rows] for name, column in block.more.items()},
    )


def merge_blocks(parts: Sequence[UnitBlock], labels: Labels) -> UnitBlock:
    """The units of all parts in their order.

    Args:
        parts: of disjoint sets of datums, all of the labels of the whole; at least one.
        labels: these labels.
    """
    no_slices = pl.DataFrame()
    ids = [part.ids for part in parts if part.ids is not None]
    if len(ids) == len(parts):
        whole, datums = merge_datums([Datums(own, no_slices) for own in ids])
        merged_ids = whole.ids
    else:
        bounds = np.cumsum([len(part) for part in parts])
        datums = np.split(np.arange(bounds[-1], dtype=np.int32), bounds[:-1])
        merged_ids = None
    same = np.arange(len(labels), dtype=np.int32)
    units, places = merge_units(
        [part.units for part in parts],
        datums,
        [same] * len(parts),
        labels,
        [labels.key_names] * len(parts),
        [None] * len(parts),
    )
    order = np.empty(len(units), np.int64)
    order[np.concatenate(places)] = np.arange(order.size)

    def joined(columns: Sequence[Array]) -> Array:
        return np.concatenate(columns)[order]

    return UnitBlock(
        merged_ids,
        units if merged_ids is not None else msgspec.structs.replace(units, datum=None),
        joined([part.known for part in parts]),
        joined([part.leads for part in parts]),
        tuple(joined(some) for some in zip(*(part.codes for part in parts), strict=True)),
        {name: joined([part.more[name] for part in parts]) for name in parts[0].more},
    )


def without_rows(units: Units) -> Units:
    """What units are like, without any."""
    start = None if units.truth_start is None else np.zeros(1, np.int64)
    bare = msgspec.structs.replace(units, truth_start=None)
    few = chosen(bare, slice(0, 0), None)
    return msgspec.structs.replace(few, truth=few.truth[:0], truth_start=start)
