"""Merging tallies of one row a datum, and counts of pixels, of disjoint sets of datums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from ..schemas.arrays import Array
from ..schemas.errors import InputError
from .counted_rows import merged_crossings
from .datums import Labels
from .merging import joined
from .pixels import Areas, Images, Pixels, Surfaces
from .stats import Column, Stats

Status = tuple[tuple[str, ...], Array]


def merge_stats(parts: Sequence[Stats], datums: Sequence[Array]) -> Stats:
    """Merge tallies of one row per datum.

    Args:
        parts: tallies of disjoint sets of datums, with the same columns.
        datums: new datum codes per part.

    Raises:
        InputError: the parts were measured differently.
    """
    order = _order(datums)
    shapes = [[_shape(column) for need in part.columns.values() for column in need]
              for part in parts]  # fmt: skip
    if any(list(part.columns) != list(parts[0].columns) for part in parts):
        raise InputError("partitions were measured by different metrics.")
    for shape in shapes:
        for one, other in zip(shapes[0], shape, strict=False):
            if one != other:
                raise InputError(
                    f"partitions were measured differently: {one[0]} with {one[2]} in one and with"
                    f" {other[2]} in another. What scales by the highest relevance of all cannot"
                    " be added up: score all partitions in one run, or leave that metric out."
                    if one[2] != other[2]
                    else f"partitions were measured at different cut-offs of {one[0]}."
                )
    columns = {
        need: tuple(
            _merged([part.columns[need][i] for part in parts], order)
            for i in range(len(parts[0].columns[need]))
        )
        for need in parts[0].columns
    }
    counted = joined(parts, "counted")[order]
    return Stats(counted, columns, merge_status([part.status for part in parts], order))


def _order(datums: Sequence[Array]) -> Array:
    """Return, for each datum of the whole, its index in the concatenated parts."""
    code = np.concatenate(datums)
    order = np.empty(code.size, np.int64)
    order[code] = np.arange(code.size)
    return order


def _shape(column: Column) -> tuple[Any, ...]:
    return column.metric, column.statistic, column.parameters, column.k


def _merged(columns: Sequence[Column], order: Array) -> Column:
    values = np.concatenate([column.values for column in columns])[order]
    own = [column.status for column in columns if column.status is not None]
    status = merge_status(own, order) if own else None
    return msgspec.structs.replace(columns[0], values=values, status=status)


def merge_status(parts: Sequence[Status], order: Array) -> Status:
    """Merge the status of all datums, with names in the order of one run.

    Names of a task are the same in all parts. Judged metrics add names from the tables, ascending,
    after three fixed ones.

    Raises:
        InputError: names do not match.
    """
    names = parts[0][0]
    if any(own != names for own, _ in parts):
        first = names[:_FIXED]
        if any(own[:_FIXED] != first for own, _ in parts):
            raise InputError("partitions name the status of datums differently.")
        names = (*first, *sorted({name for own, _ in parts for name in own[_FIXED:]}))
    place = {name: i for i, name in enumerate(names)}
    codes = [np.array([place[name] for name in own], code.dtype)[code] for own, code in parts]
    return names, np.concatenate(codes)[order]


_FIXED = 3


def merge_pixels(
    parts: Sequence[Pixels],
    datums: Sequence[Array],
    codes: Sequence[Array],
    whole: Labels,
    key_names: Sequence[tuple[str, ...]],
) -> Pixels:
    """Merge pixel counts, sorted by datum and label.

    Args:
        parts: counts of disjoint sets of datums.
        datums: new datum codes per part.
        codes: new label codes per part.
        whole: labels of all parts.
        key_names: names of each part's label keys.
    """
    key_code = {name: i for i, name in enumerate(whole.key_names)}
    # One more entry at the end, so that the code -1 for no label stays -1.
    labels = [np.r_[code, np.int32(-1)].astype(np.int32) for code in codes]
    keys = [np.array([key_code.get(name, 0) for name in names], np.int32) for names in key_names]

    def mapped(of: str, name: str, by: Sequence[Array]) -> Array:
        return np.concatenate(
            [new[getattr(getattr(part, of), name)] for part, new in zip(parts, by, strict=True)]
        )

    def kept(of: str, name: str) -> Array:
        return joined([getattr(part, of) for part in parts], name)

    datum, label = mapped("areas", "datum", datums), mapped("areas", "label", labels)
    order = np.lexsort((label, datum))
    areas = Areas(
        datum[order],
        label[order],
        *(kept("areas", name)[order] for name in ("truth", "found", "right")),
    )
    crossings = merged_crossings([part.crossings for part in parts], datums, labels, whole)
    datum, label = mapped("surfaces", "datum", datums), mapped("surfaces", "label", labels)
    order = np.lexsort((label, datum))
    names = Surfaces.__struct_fields__[2:]
    surfaces = Surfaces(
        datum[order], label[order], *(kept("surfaces", name)[order] for name in names)
    )
    images = _sorted(
        [
            msgspec.structs.replace(
                part.images, datum=datum[part.images.datum], key=key[part.images.key]
            )
            for part, datum, key in zip(parts, datums, keys, strict=True)
        ]
    )
    declared = None
    if any(part.declared is not None for part in parts):
        declared = np.zeros(len(whole), bool)
    ignored = np.ones(len(whole), bool)
    for part, code in zip(parts, codes, strict=True):
        if declared is not None and part.declared is not None:
            declared[code[part.declared]] = True
        ignored[code[~part.ignored]] = False  # a ground truth of some part has it
    return Pixels(areas, crossings, images, declared, ignored, surfaces)


def _sorted(parts: Sequence[Images]) -> Images:
    columns = [joined(parts, name) for name in Images.__struct_fields__]
    order = np.lexsort((columns[1], columns[0]))
    return Images(*(column[order] for column in columns))
