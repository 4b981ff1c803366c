"""Tallies on disk."""

from __future__ import annotations

import json
import os
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from .. import scratch
from .._version import __version__
from ..atomic import whole_file
from ..schemas.arrays import Array
from ..schemas.errors import InputError, ReadError, ResultError
from .datums import Datums, Deferred, half_of
from .registry import UnknownStructError, stored_as, struct_of, written_name

if TYPE_CHECKING:
    import pyarrow as pa

# Tallies on disk: an uncompressed ZIP archive of ``tree.json`` and one Arrow IPC file per array
# length. Datums and labels are stored by id and value; checksums detect damage.

FORMAT = 3
"""Raised when a reader of the older layout could no longer read the newer."""

KIND = "evalengine tally"
WHOLE = "tally"
"""Name of the entry in a file that contains a whole tally."""

Columns = dict[int, dict[str, Any]]
"""Arrow arrays by length, then by the name of their column."""

Readable = str | Path | IO[bytes]
"""A path, or an open file whose text is its name in messages."""

_HEAD = "about.json"


def save(
    things: Any,
    path: str | Path,
    *,
    fingerprint: str = "",
    about: Mapping[str, Any] | None = None,
    lasting: bool = True,
) -> None:
    """Write a tally atomically.

    Args:
        things: a task's tallies, or several structs by name.
        path: an existing file is replaced.
        fingerprint: fingerprint of its plan (:class:`evalengine.evaluation.planner.Plan`), which
            :func:`load` may check.
        about: further JSON-compatible data.
        lasting: sync to disk, so that the file survives a machine failure, and omit the seconds of
            steps; unnecessary for files that are useless after one.

    Raises:
        OSError: the disk is full, or the folder cannot be written.
    """
    with whole_file(path, lasting=lasting) as file:
        named = things if isinstance(things, Mapping) else {WHOLE: things}
        if lasting:  # the same input and options give the same bytes
            named = {name: timeless(thing) for name, thing in named.items()}
        write(named, file, fingerprint=fingerprint, about=about)


def timeless(thing: Any) -> Any:
    """Return tallies without the seconds of steps."""
    timed = "seconds" in getattr(thing, "__struct_fields__", ())
    return msgspec.structs.replace(thing, seconds={}) if timed else thing


def write(
    things: Mapping[str, Any],
    file: IO[bytes],
    *,
    fingerprint: str = "",
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write structs by name to an open file; see :func:`save`."""
    head = {
        "kind": KIND,
        "format": FORMAT,
        "evalengine": __version__,
        "fingerprint": fingerprint,
        "things": list(things),
        "about": dict(about or {}),
    }
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(_HEAD), json.dumps(head))
        for name, thing in things.items():
            _write(archive, name, thing)


class Opened:
    """An open file: its head and entries.

    Args:
        again: advice if this version cannot read it, as a sentence.

    Attributes:
        head: ``fingerprint``, ``evalengine``, ``things`` and ``about``.
    """

    def __init__(self, archive: zipfile.ZipFile, path: Readable, again: str = "") -> None:
        self._archive, self._path = archive, path
        self._again = again or "Score its tables again."
        self.head = _head(archive, path)

    def load(self, names: Sequence[str]) -> list[Any]:
        """Several things, in the order of their names; see :func:`load`."""
        lost = [name for name in names if name not in self.head["things"]]
        if lost:
            raise ResultError(
                f"{self._path}: contains no {lost[0]!r}; it has {self.head['things'][:5]}."
            )
        try:
            return [self.read(name, self._archive.read) for name in names]
        except UnknownStructError as error:
            raise InputError(
                f"{self._path}: evalengine {self.head['evalengine']} wrote a part that version"
                f" {__version__} cannot read: {error}. {self._again}"
            ) from error
        except _DAMAGE as error:
            raise _broken(self._path) from error

    def read(self, name: str, bytes_of: Callable[[str], Any]) -> Any:
        """Read one entry; ``bytes_of`` returns the content of an archive member."""
        return _read(self._archive, name, bytes_of)

    def place(self, member: str) -> tuple[int, int]:
        """Return the offset of a member in the file, and its length."""
        info = self._archive.getinfo(member)
        assert isinstance(self._path, (str, Path))
        with scratch.opened(self._path) as file:
            file.seek(info.header_offset + _LENGTHS)
            name, extra = struct.unpack("<HH", file.read(4))
        return info.header_offset + _LENGTHS + 4 + name + extra, info.file_size


@contextmanager
def opened(path: Readable, again: str = "") -> Iterator[Opened]:
    """Open a file, or bytes, once for its head and entries: each opening reads the directory.

    Raises:
        ReadError: no such file, or a truncated one.
        ResultError: a file of another kind or of a newer layout.
    """
    with _archive(path) as archive:
        yield Opened(archive, path, again)


def head_of(path: str | Path) -> dict[str, Any]:
    """Return the head of a file: ``fingerprint``, ``evalengine``, ``things`` and ``about``.

    Raises:
        ReadError: no such file, or a truncated one.
        ResultError: a file of another kind or of a newer layout.
    """
    with opened(path) as file:
        return file.head


def load(
    path: str | Path, name: str = WHOLE, *, fingerprint: str | None = None, again: str = ""
) -> Any:
    """Read a tally, bit-identical to the written one.

    Args:
        name: name of the entry.
        fingerprint: required fingerprint of its plan; None for any.
        again: advice if this version cannot read it, as a sentence.

    Raises:
        ReadError: no such file, or a truncated or altered one.
        InputError: a struct in it has a name or version that this version does not have.
        ResultError: a file of another kind, a newer layout or another plan.
    """
    return load_several(path, [name], fingerprint=fingerprint, again=again)[0]


def load_several(
    path: str | Path, names: Sequence[str], *, fingerprint: str | None = None, again: str = ""
) -> list[Any]:
    """Several things of one file, in the order of their names; see :func:`load`."""
    with opened(path, again) as file:
        saved = file.head["fingerprint"]
        if fingerprint is not None and saved != fingerprint:
            raise ResultError(
                f"{path}: made by another plan ({saved}, not {fingerprint}): other options, metrics"
                " or another version. Tally these rows again.",
                code="other_plan",
            )
        return file.load(names)


def mapped(path: str | Path, name: str = WHOLE, mapping: scratch.Mapped | None = None) -> Any:
    """Read an entry whose arrays are memory-mapped.

    Checksums are not verified: this is for files of the current run.

    Args:
        path: the file; may be deleted meanwhile, but not modified.
        mapping: of the file, if the caller has it.
    """
    mapping = mapping or scratch.mapped(path)
    with opened(path) as file:
        return file.read(name, lambda member: mapping.part(*file.place(member)))


def mapped_rows(
    path: str | Path, name: str, select: Callable[[Any], Any], keys: Sequence[str]
) -> Any:
    """Read some rows of a struct of arrays, memory-mapped; see :func:`mapped`.

    Args:
        select: returns a struct with slices of the arrays.
        keys: the arrays whose content it reads.
    """
    view = scratch.mapped(path)
    with opened(path) as file:
        every = file.read(name, lambda member: view.part(*file.place(member), _INDEX_BYTES))
    if view.fetch(getattr(every, key) for key in keys):
        some = select(every)
        others = [field for field in some.__struct_fields__ if field not in keys]
        arrays = (getattr(some, field) for field in others)
        if view.fetch(array for array in arrays if isinstance(array, np.ndarray)):
            return some
    return select(mapped(path, name))  # an array that is a copy


_INDEX_BYTES = 1 << 16  # bytes at both ends of an Arrow file within which its description is


def _read(archive: zipfile.ZipFile, name: str, bytes_of: Callable[[str], Any]) -> Any:
    import pyarrow as pa

    tree = json.loads(archive.read(f"{name}/tree.json"))
    tables = {
        table: pa.ipc.open_file(bytes_of(f"{name}/{table}.arrow")).read_all()
        for table in tree["tables"]
    }
    return _build(tree["root"], tables)


def _archive(path: Readable) -> zipfile.ZipFile:
    try:
        source: Any = scratch.readable(path) if isinstance(path, (str, Path)) else path
        archive = zipfile.ZipFile(source)
        plain = all(
            one.compress_type == zipfile.ZIP_STORED and one.file_size == one.compress_size
            for one in archive.infolist()
        )
        named = isinstance(source, (str, Path))
        size = os.path.getsize(source) if named else source.seek(0, os.SEEK_END)
        disjoint = sum(one.file_size for one in archive.infolist()) <= size
        begins = min((one.header_offset for one in archive.infolist()), default=0) == 0
        assert archive.fp is not None
        archive.fp.seek(-_END, os.SEEK_END)
        single = begins and archive.fp.read(4) == b"PK\x05\x06"
    except FileNotFoundError as error:
        raise ReadError(f"{path}: no such file.", code="file_missing", file=str(path)) from error
    except _DAMAGE as error:
        raise _broken(path) from error
    if not (plain and disjoint and single):  # compressed, overlapping members, appended files
        archive.close()
        raise _broken(path)
    return archive


def _broken(path: Readable) -> ReadError:
    tip = " Delete it; it is made again from the tables." if isinstance(path, (str, Path)) else ""
    return ReadError(
        f"{path}: cut off or altered since it was written.{tip}",
        code="file_damaged",
        file=str(path),
    )


_END = 22  # bytes of an archive's end, without a comment
_FIELDS = {"evalengine": str, "fingerprint": str, "things": list, "about": dict}


def _head(archive: zipfile.ZipFile, path: Readable) -> dict[str, Any]:
    try:
        head: dict[str, Any] = json.loads(archive.read(_HEAD))
        if head["kind"] != KIND:
            raise ResultError(f"{path}: no stored tally.")
        newer = bool(head["format"] > FORMAT)
        if not all(isinstance(head[name], kind) for name, kind in _FIELDS.items()):
            raise _broken(path)
    except zipfile.BadZipFile as error:
        raise _broken(path) from error
    except _DAMAGE as error:
        raise ResultError(f"{path}: no stored tally.") from error
    if newer:
        raise ResultError(
            f"{path}: written by evalengine {head['evalengine']} in a layout that {__version__}"
            " cannot read. Update evalengine."
        )
    return head


# -- structs to trees of JSON and tables ---------------------------------------------------------


def _write(archive: zipfile.ZipFile, name: str, thing: Any) -> None:
    import pyarrow as pa

    columns: Columns = {}
    frames: list[pl.DataFrame] = []
    root = _tree(thing, columns, frames)
    tables = {f"rows-{length}": pa.table(some) for length, some in columns.items()}
    tables |= {f"frame-{i}": frame.to_arrow() for i, frame in enumerate(frames) if frame.width}
    for table, rows in tables.items():
        with (
            archive.open(_aligned(archive, f"{name}/{table}.arrow"), "w", force_zip64=True) as to,
            pa.ipc.new_file(to, rows.schema) as writer,
        ):
            writer.write_table(rows)
    tree = {"tables": list(tables), "root": root}
    archive.writestr(zipfile.ZipInfo(f"{name}/tree.json"), json.dumps(tree))


def _aligned(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """A member whose content begins at a multiple of 64 bytes, as arrays that are mapped should."""
    assert archive.fp is not None
    info = zipfile.ZipInfo(name)  # of a fixed date
    begin = archive.fp.tell() + _LENGTHS + 4 + len(name.encode()) + _ZIP64 + 4
    padding = -begin % 64
    info.extra = struct.pack("<HH", _PADDING, padding) + bytes(padding)
    return info


_DAMAGE = (
    zipfile.BadZipFile,
    EOFError,
    OSError,
    KeyError,
    TypeError,
    ValueError,
    IndexError,
    AttributeError,
    RecursionError,
    RuntimeError,
    struct.error,
    OverflowError,
)
"""Exceptions from reading a file that :func:`save` did not write."""
_LENGTHS = 26  # offset of the lengths of name and extra field in a member's header
_ZIP64 = 20  # bytes that a member without a known size takes in the latter
_PADDING = 0xD935  # the kind of extra field by which Android's archives are aligned


def _tree(thing: Any, columns: Columns, frames: list[pl.DataFrame]) -> Any:
    """A value as JSON, its arrays put among the columns of their length."""
    thing = thing.value if isinstance(thing, Deferred) else thing
    if isinstance(thing, msgspec.Struct):
        kind = type(thing)
        fields = {
            name: _tree(getattr(thing, name), columns, frames) for name in kind.__struct_fields__
        }
        return {"struct": written_name(kind), "fields": fields}
    if isinstance(thing, np.ndarray):
        flat = np.ascontiguousarray(thing).reshape(-1)
        place = _placed(_arrow(flat.view(np.uint8) if flat.dtype.kind == "b" else flat), columns)
        return {"array": place, "dtype": thing.dtype.str, "shape": list(thing.shape)}
    if isinstance(thing, pl.Series):
        place = _placed(thing.rechunk().to_arrow(), columns)
        return {"series": place, "name": thing.name, "height": len(thing)}
    if isinstance(thing, pl.DataFrame):
        frames.append(thing)
        return {"frame": f"frame-{len(frames) - 1}"}
    if isinstance(thing, tuple | list):
        of = "tuple" if isinstance(thing, tuple) else "list"
        return {of: [_tree(one, columns, frames) for one in thing]}
    if isinstance(thing, dict):
        return {"dict": [[key, _tree(one, columns, frames)] for key, one in thing.items()]}
    if isinstance(thing, np.generic):
        thing = thing.item()
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing
    raise TypeError(f"a tally cannot contain {type(thing).__name__}")


def bytes_of(thing: Any) -> int:
    """Bytes that a tally takes in a file, about, without writing it."""
    columns: Columns = {}
    frames: list[pl.DataFrame] = []
    _tree(thing, columns, frames)
    size: int = sum(column.nbytes for table in columns.values() for column in table.values())
    return size + sum(int(frame.estimated_size()) for frame in frames)


def _arrow(flat: Array) -> Any:
    """Convert an array to Arrow values; numbers share their bytes.

    Arrow's conversions from and to NumPy import pandas if it is installed, which costs every
    process half a second.
    """
    import pyarrow as pa

    if flat.dtype.kind not in _NUMBERS or not flat.dtype.isnative:
        return pa.array(flat)
    kind = pa.from_numpy_dtype(flat.dtype)
    return pa.Array.from_buffers(kind, flat.size, [None, pa.py_buffer(flat)])


def _numpy(values: pa.ChunkedArray) -> Array:
    """Convert Arrow values to an array, without a copy if they are one chunk."""
    import pyarrow as pa

    numbers = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
    if not numbers or values.num_chunks > 1 or values.null_count:
        return np.asarray(values.to_numpy())
    dtype = np.dtype(values.type.to_pandas_dtype())
    if not len(values):
        return np.empty(0, dtype)
    (chunk,) = values.chunks
    at = chunk.offset * dtype.itemsize
    return np.frombuffer(chunk.buffers()[1], dtype, len(chunk), at)


_NUMBERS = "iuf"


def narrowest(values: Array) -> np.dtype[Any]:
    """Return the narrowest dtype that keeps all values of an array of numbers."""
    dtype: np.dtype[Any] = values.dtype
    if not values.size:
        return dtype
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            same = (values.astype(np.float32) == values).all()
        return np.dtype(np.float32) if same else dtype
    dtypes = np.min_scalar_type(values.min()), np.min_scalar_type(values.max())
    narrow = np.promote_types(*dtypes)
    return narrow if narrow.kind in "iu" and narrow.itemsize < dtype.itemsize else dtype


def _placed(values: Any, columns: Columns) -> list[Any]:
    """Table and column that Arrow values become."""
    same = columns.setdefault(len(values), {})
    same[str(len(same))] = values
    return [f"rows-{len(values)}", str(len(same) - 1)]


def _build(node: Any, tables: Mapping[str, pa.Table]) -> Any:
    """Build the value of a tree node."""
    if not isinstance(node, dict):
        return node
    if "struct" in node:
        fields = {name: _build(one, tables) for name, one in node["fields"].items()}
        return struct_of(node["struct"]).build(node["struct"], fields)
    if "array" in node:
        table, column = node["array"]
        flat = _numpy(tables[table][column])
        dtype = np.dtype(node["dtype"])
        array: np.ndarray[Any, Any] = flat.view(np.bool_) if dtype.kind == "b" else flat
        return array.astype(dtype, copy=False).reshape(node["shape"])
    if "series" in node:
        table, column = node["series"]
        return pl.Series(node["name"], tables[table][column])
    if "frame" in node:
        rows = tables.get(node["frame"])
        if rows is None:
            return pl.DataFrame()
        frame = pl.DataFrame(rows)
        frame.columns = rows.column_names  # a column without a name would be given one
        return frame
    if "tuple" in node:
        return tuple(_build(one, tables) for one in node["tuple"])
    if "list" in node:
        return [_build(one, tables) for one in node["list"]]
    return {key: _build(one, tables) for key, one in node["dict"]}


# Parts on disk: memory-mapped rows, and a head (the tally without rows, and its slice values).

HEAD, ROWS, FRAME_DATA = "head", "rows", "shown"
"""Names of the entries in a part's file; the last is for per-datum frames."""


class Place(NamedTuple):
    """Storage for merged data that is too long for memory.

    Attributes:
        folder: on a disk with enough space; the system's by default.
        rows: rows in memory at a time.
    """

    folder: str | None
    rows: int


@stored_as("bucket.head/1")
class Head(msgspec.Struct, frozen=True):
    """Facts of a part.

    Attributes:
        bare: its tally without rows.
        slices: distinct values of each slice column, ascending, indexed by codes.
        datums: number of datums.
        scores: number of scored labels, if any.
    """

    bare: Any
    slices: tuple[pl.Series, ...]
    datums: int
    scores: int = 0


@stored_as("bucket.rows/1")
class Part(msgspec.Struct, frozen=True):
    """Rows of one part.

    Attributes:
        rows: in the task's format.
        codes: int32 [datums] arrays, group of each datum per slice column, -1 for none.
        keys: uint64 [datums], see :class:`.Datums`.
    """

    rows: Any
    codes: tuple[Array, ...]
    keys: Array | None = None


class Parts(msgspec.Struct, frozen=True):
    """Files of a tally's parts.

    Attributes:
        files: files of parts that have datums, written by :func:`evalengine.tallies.stored.save`;
            one empty part if all are empty.
        maps: per part and slice column int32 arrays: code in the whole of each group, then -1 for
            none.
        scores: scored labels of all parts.
        place: storage for long merged data.
    """

    files: tuple[str, ...]
    maps: tuple[tuple[Array, ...], ...]
    scores: int
    place: Place

    def __iter__(self) -> Iterator[Part]:
        """The rows of each part, groups under the codes of the whole."""
        for file, maps in zip(self.files, self.maps, strict=True):
            part: Part = mapped(file, ROWS)
            codes = tuple(mapping[code] for mapping, code in zip(maps, part.codes, strict=True))
            yield msgspec.structs.replace(part, codes=codes)

    def frame_data(self) -> Iterator[Any]:
        """Yield each part's data for per-datum frames."""
        for file in self.files:
            yield mapped(file, FRAME_DATA)


class GroupsByCode(msgspec.Struct, frozen=True):
    """Groups of one slice column, whose codes are stored with the rows.

    Attributes:
        column: index among the slice columns.
        first: code that counts as 0.
        last: one past the last code that counts.
    """

    column: int
    first: int
    last: int

    def within(self, first: int, last: int) -> GroupsByCode:
        """Some of the groups, counted from 0."""
        return msgspec.structs.replace(self, first=self.first + first, last=self.first + last)

    def of(self, part: Part) -> Array:
        """Group of each datum of a part, int32 [n], -1 for none."""
        code = part.codes[self.column]
        inside = (code >= self.first) & (code < self.last)
        return np.where(inside, code - self.first, -1).astype(np.int32)


class Halves(msgspec.Struct, frozen=True):
    """Two groups of datums, split by their keys.

    Attributes:
        seed: selects the split.
    """

    seed: int

    def of(self, part: Part) -> Array:
        """Half of each datum of a part, int32 [n]."""
        assert part.keys is not None
        return half_of(part.keys, self.seed).astype(np.int32)


PartGroups = GroupsByCode | Halves


class PartsDatums(Datums, frozen=True, dict=True):
    """Datums of a run whose ids and slices are on disk.

    Attributes:
        kind: dtype of ids.
        names: groups of each slice column.
        parts: the files.
    """

    kind: Any = None
    names: tuple[list[str], ...] = ()
    parts: Parts | None = None

    def key_blocks(self) -> Iterator[Array]:
        for part in () if self.parts is None else self.parts:
            if part.keys is not None:
                yield part.keys

    def grouped_keys(self, group: Any) -> Iterator[tuple[Array, Array]]:
        for part in () if self.parts is None else self.parts:
            if part.keys is not None:
                yield part.keys, group.of(part)

    def halves(self, seed: int) -> Halves:  # type: ignore[override]
        return Halves(seed)

    @property
    def id(self) -> Any:
        """Not available: no displayed result needs all ids at once."""
        raise RuntimeError("ids of datums are in files: this frame needs all of them at once")

    @property
    def id_dtype(self) -> Any:
        return self.kind

    def in_memory(self) -> pl.DataFrame:
        """Return ids and slice columns, as text, of all datums."""
        assert self.parts is not None
        frames = []
        for part, part_data in zip(self.parts, self.parts.frame_data(), strict=True):
            columns = [part_data.id.alias("datum_id")]
            for name, names, code in zip(self.slices.columns, self.names, part.codes, strict=True):
                at = pl.Series(np.where(code < 0, len(names), code))
                columns.append(pl.Series(name, [*names, None], dtype=pl.String).gather(at))
            frames.append(pl.DataFrame(columns))
        return pl.concat(frames)

    def groups(self, column: str) -> tuple[GroupsByCode, list[str]]:  # type: ignore[override]
        """Groups of all datums, and their names, as :meth:`Datums.groups` has them."""
        place = self.slices.columns.index(column)
        return GroupsByCode(place, 0, len(self.names[place])), self.names[place]


def things_of_part(
    tallies: Any, bare: Any, rows: Any, order: Array | None = None, scores: int = 0
) -> dict[str, Any]:
    """Return the file entries of a part's tally, by name.

    Args:
        bare: the tally without rows and datums.
        rows: in the task's format.
        order: int [n], datums in the order of ``rows``; None if unchanged.
    """
    datums: Datums = tallies.datums
    columns = datums.slices.columns
    codes = (datums.groups(name)[0] for name in columns)
    slices = tuple(datums.slices[name].drop_nulls().unique().sort() for name in columns)
    none = None if datums.dataset is None else datums.dataset[:0]
    bare = msgspec.structs.replace(bare, datums=Datums(datums.id[:0], datums.slices[:0], none))
    ordered = tuple(code if order is None else code[order] for code in codes)
    keys = datums.keys if datums.keys is None or order is None else datums.keys[order]
    return {HEAD: Head(bare, slices, len(datums), scores), ROWS: Part(rows, ordered, keys)}


def parts_of(files: Sequence[str], place: Place) -> tuple[list[Head], Parts, PartsDatums]:
    """Return the heads, files and datums of all parts.

    Args:
        files: files of all parts. Empty parts are dropped unless all are empty.
        place: storage for long merged data.
    """
    every: list[Head] = [load(file, HEAD) for file in files]
    filled = [i for i, head in enumerate(every) if head.datums] or [0]
    heads = [every[i] for i in filled]
    names, maps = _code_slices([head.slices for head in heads])
    scores = sum(head.scores for head in heads)
    blank: Datums = heads[0].bare.datums
    n = sum(head.datums for head in heads)
    parts = Parts(tuple(files[i] for i in filled), tuple(maps), scores, place)
    datums = PartsDatums(
        None, blank.slices, rows=n, kind=blank.id_dtype, names=tuple(names), parts=parts
    )
    return heads, parts, datums


def _code_slices(
    values: Sequence[tuple[pl.Series, ...]],
) -> tuple[list[list[str]], list[tuple[Array, ...]]]:
    """Code the values of slice columns over all parts.

    Args:
        values: per part, distinct values of each column.

    Returns:
        group names per column; per part and column the code in the whole of each value, int32
        [n + 1], the last for none.
    """
    names: list[list[str]] = []
    maps: list[list[Array]] = [[] for _ in values]
    for columns in zip(*values, strict=True):
        frames = [column.rename("value").to_frame() for column in columns]
        filled = [frame for frame in frames if frame.height] or frames[:1]
        every = pl.concat(filled, how="vertical_relaxed").unique().sort("value")
        coded = every.with_columns(pl.int_range(pl.len(), dtype=pl.Int32).alias("code"))
        names.append(every["value"].cast(pl.String).to_list())
        for codes, frame in zip(maps, frames, strict=True):
            joined = frame.cast(every.schema).join(
                coded, on="value", how="left", maintain_order="left"
            )["code"]
            codes.append(np.append(joined.to_numpy(), np.int32(-1)).astype(np.int32))
    return names, [tuple(codes) for codes in maps]
