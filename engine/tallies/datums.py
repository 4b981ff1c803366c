"""Datums and labels, whose codes index their rows, and cells, which metrics return."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock
from typing import Any, Generic, TypeVar, overload

import msgspec
import numpy as np
import polars as pl

from ..kernels.datums import hash_integers
from ..schemas.arrays import Array
from .registry import stored_as

R = TypeVar("R")

_BLOCK = 1 << 16  # rows brought to int64 at a time, which stay in the cache


# Values of views and tallies that are computed on first access, for use on several threads.


class Lazy(Generic[R]):
    """Attribute computed on first access, without a lock; used as a decorator.

    Before Python 3.12, ``functools.cached_property`` has one lock for all instances: views on
    several threads would wait for each other, or forever.
    """

    def __init__(self, make: Callable[[Any], R]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Lazy[R]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> R: ...

    def __get__(self, instance: Any, owner: type) -> Lazy[R] | R:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._make(instance)
        return value


class Deferred(Generic[R]):
    """Value of a field that is computed on first use; in files it is the value.

    Args:
        make: called at most once.
    """

    def __init__(self, make: Callable[[], R]) -> None:
        self._make: Callable[[], R] | None = make
        self._lock = Lock()  # views on several threads may ask at a time
        self._value: list[R] = []

    @property
    def value(self) -> R:
        with self._lock:
            if self._make is not None:
                self._value.append(self._make())
                self._make = None  # frees the rows that it needed
            return self._value[0]


# Datums.


@stored_as("datums/1", changes={1: {"low": None}})
class Datums(msgspec.Struct, frozen=True, dict=True):
    """The datums of a run; code i is row i.

    Attributes:
        ids: unique ids in ascending order (numeric, or bytes of UTF-8); None if datum i is row i of
            the table.
        slices: one column per ``by`` entry, aligned with ``id``; null if unknown.
        dataset: dataset of each datum, aligned with ``id``, or None.
        rows: number of datums if ``ids`` is None.
        keys: uint64 [n], hash of each datum's id, or of its cluster, from which resampling weights
            are computed; None if no intervals were requested.
    """

    ids: pl.Series | None
    slices: pl.DataFrame
    dataset: pl.Series | None = None
    rows: int = 0
    keys: Array | None = None

    def __len__(self) -> int:
        return self.rows if self.ids is None else len(self.ids)

    @Lazy
    def id(self) -> pl.Series:
        """Unique ids in ascending order: those given, or numbers of rows."""
        if self.ids is not None:
            return self.ids
        return pl.Series("datum_id", np.arange(self.rows, dtype=np.int64))

    @property
    def id_dtype(self) -> pl.DataType:
        """Dtype of ids."""
        return pl.Int64() if self.ids is None else self.ids.dtype

    def with_keys_of_rows(self) -> Datums:
        """Return datums without ids whose keys are those of the rows of one table."""
        return msgspec.structs.replace(self, keys=hash_integers(np.arange(self.rows)))

    def key_blocks(self) -> Iterator[Array]:
        """Yield the keys of all datums in blocks, uint64; empty without keys."""
        if self.keys is not None:
            yield self.keys

    def grouped_keys(self, group: Any) -> Iterator[tuple[Array, Array]]:
        """Keys of all datums and the group of each, int32, block by block; as of a view's."""
        if self.keys is not None:
            yield self.keys, group

    def halves(self, seed: int) -> Array:
        """Half of each datum, int32 [n], 0 or 1, by a hash of its key."""
        assert self.keys is not None
        return half_of(self.keys, seed).astype(np.int32)

    def groups(self, column: str) -> tuple[Array, list[str]]:
        """Group code of each datum, int32 [n] (-1 for none), and the groups' names."""
        values = self.slices[column]
        if values.dtype.is_integer() and not values.null_count():
            low, high = values.min(), values.max()
            if (
                isinstance(low, int)
                and isinstance(high, int)
                and lie_close(low, high, len(values))
                and high < 1 << 63  # of uint64 some are beyond
            ):
                out = np.empty(len(values), np.int32)
                chunks = [chunk.to_numpy() for chunk in values.get_chunks()]
                return out, dense_groups(chunks, low, high, out)
        unique = values.drop_nulls().unique().sort()
        if not len(unique):
            return np.full(len(values), -1, np.int32), []
        names = unique.cast(pl.String)
        if values.dtype != pl.String:
            table = pl.DataFrame({"value": unique, "code": np.arange(len(unique), dtype=np.int32)})
            joined = values.to_frame("value").join(
                table, on="value", how="left", maintain_order="left"
            )
            return joined["code"].fill_null(-1).to_numpy(), names.to_list()
        codes = values.cast(pl.Enum(names)).to_physical().cast(pl.Int32).fill_null(-1)
        return codes.to_numpy(), names.to_list()


def half_of(keys: Array, seed: int) -> Array:
    """Split datums into two halves, bool [n]; the seed selects the split.

    Args:
        keys: uint64 [n], as in :class:`Datums`.
    """
    seeded = keys ^ np.uint64(seed * 0x9E3779B97F4A7C15 % (1 << 64))
    return (hash_integers(seeded) >> np.uint64(63)) != 0


def lie_close(low: int, high: int, n: int) -> bool:
    """Return True if a table over the range of n integers is about as small as a few columns."""
    return high - low <= 4 * n + 1024


def dense_groups(columns: Sequence[Array], low: int, high: int, out: Array) -> list[str]:
    """Compute groups of small integers with a table over their range.

    Args:
        columns: integers, n in total.
        out: int32 [n], receives the codes; may be the single column.

    Returns:
        names of the groups, ascending by value.
    """
    present = np.zeros(high - low + 1, np.bool_)
    for _, block in pieces(columns, _BLOCK):
        present[block.astype(np.int64, copy=False) - low] = True
    code = np.cumsum(present, dtype=np.int32)
    code -= 1
    for first, block in pieces(columns, _BLOCK):
        at = block.astype(np.int64, copy=False) - low
        np.take(code, at, out=out[first : first + block.size])
    return [str(value + low) for value in np.flatnonzero(present).tolist()]


def pieces(columns: Sequence[Array], longest: int) -> Iterator[tuple[int, Array]]:
    """Yield short pieces of columns with their first row."""
    first = 0
    for column in columns:
        for at in range(0, column.size, longest):
            yield first + at, column[at : at + longest]
        first += column.size


@stored_as("labels/1")
class Labels(msgspec.Struct, frozen=True):
    """The labels of a run; code i is row i, sorted by key and value.

    Attributes:
        frame: label_key, label_value (integer or string) and label_name (null if unknown).
        key: int32 [n], code of each label's key.
        key_names: names of the keys, ascending.
        bare: no row has a label; declared labels are under the default key.
        frequency: declared frequency of each label (String, null if unknown), or None.
    """

    frame: pl.DataFrame
    key: Array
    key_names: tuple[str, ...]
    bare: bool = False
    frequency: pl.Series | None = None

    def __len__(self) -> int:
        return self.frame.height

    @property
    def dtype(self) -> pl.DataType:
        """Dtype of label values."""
        return self.frame.schema["label_value"]

    @staticmethod
    def of(frame: pl.DataFrame, *, bare: bool = False) -> Labels:
        """From a frame of label_key, label_value, label_name, and perhaps frequency."""
        frequency = None
        if "frequency" in frame.columns:
            frequency = frame["frequency"]
            frame = frame.drop("frequency")
        keys = frame["label_key"].to_list()
        names = tuple(sorted({*keys}))
        where = {name: i for i, name in enumerate(names)}
        key = np.array([*map(where.__getitem__, keys)], np.int32)
        return Labels(frame, key, names, bare, frequency)

    def with_keys(self, more: Iterable[str]) -> Labels:
        """Return the labels, with further label keys, which need not have a label."""
        names = tuple(sorted({*self.key_names, *more}))
        code = {name: i for i, name in enumerate(names)}
        moved = np.array([code[name] for name in self.key_names], np.int32)
        key = moved[self.key] if moved.size else self.key
        return msgspec.structs.replace(self, key=key, key_names=names)

    def some(self, first: int, last: int) -> Labels:
        """Consecutive labels, whose keys keep their codes."""
        few = slice(first, last)
        of = self.frequency
        return Labels(
            self.frame[few],
            self.key[few],
            self.key_names,
            frequency=None if of is None else of[few],
        )


def named_rows(labels: Labels, average: str | None, dtype: pl.DataType) -> pl.DataFrame:
    """Return the columns label_key, label_value, label_name and average of result rows.

    Args:
        labels: of the rows; :func:`keys_as_labels` if all labels of a key are pooled.
        average: name of the average; None for single labels. Averages have no value and no name.
        dtype: of label values.
    """
    none = pl.lit(None, pl.String).alias("label_name")
    value, name = pl.col("label_value"), none
    if average is not None:
        value = pl.lit(None, dtype).alias("label_value")
    elif "label_name" in labels.frame.columns:
        name = pl.col("label_name")
    return labels.frame.select(
        "label_key", value, name, pl.lit(average, pl.String).alias("average")
    )


def keys_as_labels(labels: Labels) -> Labels:
    """Label keys as labels."""
    names = pl.DataFrame(
        {"label_key": list(labels.key_names), "label_value": list(labels.key_names)}
    )
    keys = np.arange(len(labels.key_names), dtype=np.int32)
    return Labels(names, keys, labels.key_names)


# Views: a tally by groups of datums, with cached results that several metrics share.

Over = Callable[[Array, Callable[[int, int], None]], Any]
"""Calls a function on ranges (first, last) of groups with CSR offsets, perhaps side by side."""


def in_turn(offsets: Array, function: Callable[[int, int], None]) -> None:
    function(0, offsets.size - 1)


class View:
    """Base of all views: a tally, groups of its datums, weights. Metrics are computed from views.

    Args:
        labels: meaning of label codes.
        group: int32 [n_datums], -1 for none; for a tally in parts, the groups of its datums; None
            for a single group.
        n_groups: number of groups.
        weights: int64 [n_datums], multiplicity of each datum in one resample, or None; only for
            tallies in memory.
        over: runs kernels over ranges of segments; serial by default.
    """

    def __init__(
        self,
        labels: Labels,
        group: Any = None,
        n_groups: int = 1,
        weights: Array | None = None,
        over: Over = in_turn,
    ) -> None:
        self.labels = labels
        self.group = group
        self.n_groups = n_groups
        self.weights = weights
        self.over = over

    def refuse_draws(self) -> None:
        """Raise if resample weights are given: datums of a tally in files have no row numbers."""
        if self.weights is not None:
            raise RuntimeError("a tally in files has no rows to resample")


# Cells, the results of metrics: numbers on named axes.

TOO_LARGE = "beyond the largest number, 1.8e308"
"""Reason of numbers that overflow, or the end of it."""


class Cells(msgspec.Struct, frozen=True, kw_only=True):
    """Array of numbers on named axes; each cell becomes one row.

    Attributes:
        axes: names of the axes, in order: ``group``, ``label`` and ``key`` are codes, the others
            output columns, or ``level``, which has no column.
        values: output column -> its value at each index of the axis of that name.
        columns: output column -> array broadcastable to the axes' shape (NaN for undefined) or
            a constant.
        keep: bool of that shape, cells that become rows. None keeps all.
        reason: why ``value`` is undefined if it is NaN; an array of strings, broadcastable to the
            shape, if it differs between cells.
        always: show ``reason`` for defined values too, as a remark on skipped input; empty strings
            are ignored.
        unfit: why its numbers have no interval of any kind; empty if they can have one.
        codes: further codes by name (``group``, ``label``, ``key``), arrays of the axes' shape, if
            one row of cells contains points of several curves, all of them kept.
    """

    axes: tuple[str, ...]
    values: dict[str, Sequence[Any]] = {}
    columns: dict[str, Array | str | float | None]
    shape: tuple[int, ...]
    keep: Array | None = None
    reason: Array | str | None = None
    always: bool = False
    unfit: str = ""
    codes: dict[str, Array] = {}

    @property
    def _leading_mask(self) -> Array:
        """``keep`` over the leading axes that it depends on; the rest are kept whole."""
        if self.keep is None:
            return np.ones((), bool)
        keep = self.keep.reshape(*[1] * (len(self.shape) - self.keep.ndim), *self.keep.shape)
        depth = keep.ndim
        while depth and keep.shape[depth - 1] == 1:
            depth -= 1
        return np.broadcast_to(keep.reshape(keep.shape[:depth]), self.shape[:depth])

    @property
    def place(self) -> tuple[Any, ...]:
        """Key that is equal for cells with the same rows in the same order."""
        values = tuple((a, tuple(self.values[a])) for a in self.axes if a in self.values)
        mask = self._leading_mask
        codes: tuple[Any, ...] = ()
        for name, array in self.codes.items():
            codes += (name, array.tobytes())
        return self.axes, self.shape, mask.shape, mask.tobytes(), values, codes

    def index(self) -> dict[str, Array]:
        """Index along each axis, uint32, one entry per kept cell."""
        mask = self._leading_mask
        tail = self.shape[mask.ndim :]
        inside = math.prod(tail)
        where = np.nonzero(mask) if mask.ndim else ()
        outside = where[0].size if where else int(mask)
        columns = [np.repeat(codes.astype(np.uint32), inside) for codes in where]
        for a, length in enumerate(tail):
            codes = np.repeat(np.arange(length, dtype=np.uint32), math.prod(tail[a + 1 :]))
            columns.append(np.tile(codes, outside * math.prod(tail[:a])))
        result = dict(zip(self.axes, columns, strict=True))
        for name, array in self.codes.items():
            result[name] = array.ravel().astype(np.uint32)
        return result

    def rows(self) -> dict[str, Array]:
        """The columns that are arrays, one entry per kept cell."""
        mask = self._leading_mask
        no_gaps = bool(mask.all())
        result = {}
        for name, column in {**self.columns, "reason": self.reason}.items():
            if isinstance(column, np.ndarray):
                full = column if column.shape == self.shape else np.broadcast_to(column, self.shape)
                result[name] = (full if no_gaps else full[mask]).reshape(-1)
        return result


def parameters(**values: Any) -> str:
    """Return the ``parameters`` column: JSON of values without a separate column."""
    tidy = {
        name: [round(v, 10) for v in value] if isinstance(value, tuple) else value
        for name, value in values.items()
    }
    return json.dumps(tidy)
