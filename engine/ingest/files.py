"""Files: extensions, folders and memory bounds; and opened tables."""

from __future__ import annotations

import gzip
import mmap
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from operator import attrgetter
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np
import polars as pl

from ..atomic import sweep, whole_file
from ..schemas.errors import InputError, OptionError, ReadError
from ..schemas.wording import option, without_secrets
from .problems import Note

# File formats by suffix.

EXTENSIONS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".parq": "parquet",
    ".arrow": "ipc",
    ".ipc": "ipc",
    ".feather": "ipc",
    ".arrows": "ipc_stream",
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".txt": "csv",
    ".jsonl": "ndjson",
    ".ndjson": "ndjson",
    ".json": "json",
    ".run": "trec",
    ".qrels": "trec",
    ".qrel": "trec",
    ".trec": "trec",
    ".res": "trec",
    **dict.fromkeys((".conll", ".bio", ".iob", ".iob2", ".bioes", ".bilou"), "conll"),
    ".png": "raster",
    ".tif": "raster",
    ".tiff": "raster",
    ".bmp": "raster",
    ".gif": "raster",
    ".pgm": "raster",
}


def by_extension(path: str) -> str | None:
    """Return the format of a suffix; ``.csv.gz`` counts by the inner one."""
    suffixes = [suffix.lower() for suffix in Path(path.split("?")[0]).suffixes]
    if suffixes and suffixes[-1] in (".gz", ".zst"):
        inner = EXTENSIONS.get(suffixes[-2]) if len(suffixes) > 1 else None
        json = ("json",) if suffixes[-1] == ".gz" else ()
        return inner if inner in ("csv", "ndjson", "trec", *json) else None
    return EXTENSIONS.get(suffixes[-1]) if suffixes else None


def unreadable(file: str, error: BaseException) -> ReadError:
    """Make the error for a file that cannot be read."""
    why = getattr(error, "strerror", None) or error
    return ReadError(f"{file}: cannot be read: {why}.", code="file_unreadable", file=file)


# Files of a folder and all below it.


def not_utf_8(error: UnicodeDecodeError) -> str:
    """Describe a byte that is not UTF-8, with the text before it and a remedy."""
    before = error.object[max(0, error.start - 40) : error.start].decode("utf-8", "replace")
    return (
        f"is not UTF-8 (byte {error.object[error.start]:#04x}, behind {before!r}). Save the file as"
        " UTF-8; of Latin-1: iconv -f LATIN1 -t UTF-8 OLD > NEW."
    )


def files_below(folder: str, hidden: tuple[str, ...] = (".",)) -> Iterator[str]:
    """Yield every file, folder by folder in order of names.

    Args:
        hidden: prefixes of names of files and folders to skip.
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    entries = [entry for entry in entries if not entry.name.startswith(hidden)]
    for entry in entries:  # a pipe would be waited for
        if not entry.is_dir() and (entry.is_file() or entry.is_symlink()):
            yield entry.path
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from files_below(entry.path, hidden)


# Memory that files take to read, estimated before they are read and compared with a limit.

_FACTORS = {"json": 5, "trec": 5, "conll": 6, "duckdb": 8}
"""Bytes in memory per byte of a file that is read, at most: measured for COCO files and runs; for
DuckDB's, whose columns are compressed, an estimate."""
_ROW_SHARE = 0.4  # share of these bytes that the rows keep
_BLOCK = 1 << 20
_STEP = 64 << 20  # to which limits in messages are rounded up


class Room(msgspec.Struct, frozen=True):
    """Memory for a run.

    Attributes:
        limit: returns the memory limit in bytes; called only if needed.
        base: bytes that the process uses before any rows are read.
        given: whether the user gave the limit; otherwise it is the free memory.
    """

    limit: Callable[[], int]
    base: int
    given: bool = True

    def refuse(self, more: int, description: str, why: str, otherwise: str) -> None:
        """Refuse an input that needs more memory than available.

        Args:
            more: bytes in addition to those of the process.
            otherwise: alternative to a larger limit, as a clause.
        """
        needed = self.base + more
        if not more or needed <= (limit := self.limit()):
            return
        subject = (
            f"{description} {why}, which takes about {needed / 1e9:.1f} GB with the process, and"
        )
        if not self.given:
            raise OptionError(f"{subject} {limit / 1e9:.1f} GB are free. You may {otherwise}.")
        enough = -(-needed // _STEP) * _STEP >> 20
        raise OptionError(
            f"{option('memory_limit')}: {subject} the limit is {limit / 1e9:.1f} GB. Give at"
            f" least {option('memory_limit', f'{enough}MiB')}, or {otherwise}.",
            code="memory_limit_too_small",
            least=f"{enough}MiB",
        )


class MemorySize(msgspec.Struct, frozen=True):
    """Size of a column in memory in bytes, estimated from the file before reading.

    Attributes:
        cell: upper bound of its longest text; 0 if all are short.
        least: lower bound of its longest text; 0 if all are short.
    """

    group: int = 0
    cell: int = 0
    least: int = 0
    total: int = 0

    def __or__(self, other: MemorySize) -> MemorySize:
        """The column in two files."""
        return MemorySize(
            max(self.group, other.group),
            max(self.cell, other.cell),
            max(self.least, other.least),
            self.total + other.total,
        )


LONG = 1 << 23
"""Bytes of a text from which it counts as long."""
_LONGEST = 1 << 27
"""Bytes of a text that is no text any more."""
_COPIES, _TEXTS = 28, 5
"""Bytes in memory per byte of the longest text, and of all long lines of a CSV or JSON Lines file;
measured over all steps of a run."""


_CELL, _LEAST = attrgetter("cell"), attrgetter("least")


def refuse_expanding(room: Room | None, sizes: Iterable[MemorySize], description: str) -> None:
    """Refuse a table of which one row group or text exceeds the available memory."""
    sizes = list(sizes)
    cell, least = (max((get(one) for one in sizes), default=0) for get in (_CELL, _LEAST))
    if least > _LONGEST:
        raise ReadError(
            f"{description}: a text of {least / 1e6:,.0f} MB. Texts have {_LONGEST >> 20} MiB at"
            " most; split it."
        )
    if room is not None:
        needed = sum(one.group for one in sizes) + _COPIES * cell
        why = f"has a text of up to {cell / 1e6:,.0f} MB" if cell else "is read by row groups"
        what = "split the text" if cell else "write smaller row groups or cells"
        room.refuse(needed, description, why, what)


def measure_text(file: str, room: Room | None = None) -> MemorySize:
    """Measure the longest line of a text file, if it is long, and the size of a compressed file.

    A gzip file whose footer gives a plausible size is not decompressed if there is no memory limit
    and it fits into the free memory at the highest ratio.
    """
    with open(file, "rb") as plain:
        start, size = plain.read(4), os.fstat(plain.fileno()).st_size
        packing = next((name for mark, name in _PACKINGS.items() if start.startswith(mark)), None)
        if packing == "gzip" and room is not None and not room.given:
            plain.seek(max(0, size - 4))
            claimed = int.from_bytes(plain.read(4), "little")
            if claimed <= _ORDINARY * size and _HIGHEST * size <= room.limit():
                return MemorySize(total=claimed)
        if packing is not None:
            return _measure_packed(file, packing)
        if size <= LONG:
            return MemorySize()
        with mmap.mmap(plain.fileno(), 0, access=mmap.ACCESS_READ) as text:
            # A long line covers a whole window; of others only the first bytes are looked at.
            long, at = [0], 0
            while at + LONG // 2 < len(text):
                end = text.find(b"\n", at, at + LONG // 2)
                if end < 0:
                    end = text.find(b"\n", at)
                    end = len(text) if end < 0 else end
                    long.append(end - text.rfind(b"\n", 0, at) - 1)
                at = max(end + 1, at + LONG // 2)
            return _of_lines(long)


_ORDINARY, _HIGHEST = 50, 1032
"""Ratios of gzip: at most of usual tables, and of anything."""
_PACKINGS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


def _measure_packed(file: str, packing: str) -> MemorySize:
    import pyarrow as pa  # only here

    long, size, line = [0], 0, 0
    try:
        with pa.input_stream(file, compression=packing) as text:
            while block := text.read(_BLOCK):
                first, last = block.find(b"\n"), block.rfind(b"\n")
                size += len(block)
                line += len(block) if first < 0 else first
                if first >= 0:
                    long.append(line)
                    line = len(block) - last - 1
    except (OSError, pa.ArrowException) as error:
        raise ReadError(
            f"{file}: {packing} that cannot be decompressed: {error}.",
            code="file_unreadable",
            file=str(file),
        ) from None
    return _of_lines([*long, line], size)


def _of_lines(lengths: Iterable[int], size: int = 0) -> MemorySize:
    lengths = [length for length in lengths if length > LONG]
    longest = max(lengths, default=0)
    return MemorySize(_TEXTS * sum(lengths), longest, longest, size)


def measure_arrow(file: str, *, streamed: bool) -> dict[str, MemorySize]:
    """Measure the columns of Arrow batches that have long texts, one batch at a time.

    Offsets suffice, so that only compressed texts are read. Damaged files have no long texts: the
    reader reports them.
    """
    import pyarrow as pa  # only for files that may have long texts

    sizes: dict[str, MemorySize] = {}
    with suppress(pa.ArrowException, OSError), pa.memory_map(file) as data:
        reader = pa.ipc.open_stream(data) if streamed else pa.ipc.open_file(data)
        batches = range(0) if streamed else range(reader.num_record_batches)
        for batch in reader if streamed else map(reader.get_batch, batches):
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                lengths = _text_lengths(column)
                if lengths.max(initial=0) > LONG:
                    one = _of_lines(lengths[lengths > LONG].tolist())
                    sizes[name] = sizes.get(name, MemorySize()) | one
    return sizes


def _text_lengths(column: Any) -> np.ndarray[Any, Any]:
    """Bytes of the texts of an Arrow column, also within lists and dictionaries."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary
    while pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        column = column.flatten()
    if column.type in (pa.string_view(), pa.binary_view()) and len(column):
        views = np.frombuffer(column.buffers()[1], np.int32)[::4]
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        return views[column.offset : column.offset + len(column)] * valid
    if column.type in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        return pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
    return np.zeros(0, np.int32)


def refuse_beyond(room: Room, files: Sequence[str], format_: str, description: str) -> None:
    """Refuse files that cannot be read within a limit, before reading."""
    if not room.given:
        files = [file for file in files if _is_packed(file)]
    refuse_whole(room, {description: whole_size(files, format_)})


def refuse_whole(room: Room, sizes: Mapping[str, int]) -> None:
    """Refuse the largest of some inputs that are read one after the other, if it is too large.

    Args:
        sizes: path -> bytes that reading it takes; 0 if it is read in parts.
    """
    path = max(sizes, key=sizes.__getitem__, default="")
    rest = sum(sizes.values()) - sizes.get(path, 0)
    needed = sizes[path] + int(_ROW_SHARE * rest) if any(sizes.values()) else 0
    room.refuse(needed, path, "is read as a whole", _AS_PARQUET)


def whole_size(files: Iterable[str], format_: str) -> int:
    """Return the bytes in memory of files that are read as a whole; 0 of formats that are not."""
    each = _FACTORS.get(format_, 0)
    return each and each * sum(_unpacked(file) for file in files)


_AS_PARQUET = "write it as Parquet once, which is read in parts"


def _is_packed(file: str) -> bool:
    with open(file, "rb") as plain:
        return plain.read(2) == b"\x1f\x8b"


def _unpacked(file: str) -> int:
    """Return the decompressed size of a file, in blocks, as a footer may be wrong."""
    if not _is_packed(file):
        return os.path.getsize(file)
    size = 0
    try:
        with gzip.open(file) as packed:
            while block := packed.read(_BLOCK):
                size += len(block)
    except (OSError, EOFError, zlib.error) as error:
        raise ReadError(f"{file}: gzip that cannot be decompressed: {error}.") from error
    return size


# Files written whole or not at all.


def write_files(writers: Mapping[str, Callable[[IO[bytes]], object]], out: Path) -> None:
    """Write files of any format into a folder, all or none."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            for name in writers:
                (out / name).parent.mkdir(parents=True, exist_ok=True)
            for folder in {(out / name).parent for name in writers}:
                sweep(folder, {Path(name).name for name in writers})
            files = {name: stack.enter_context(whole_file(out / name)) for name in writers}
            for name, write in writers.items():
                write(files[name])
    except (OSError, pl.exceptions.PolarsError) as error:  # Polars' own of a disk that is full
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{out}: cannot be written: {reason}.", code="write_failed") from None


# Result of a reader: a lazy table, its origin and its notes.

SEGMENTED = frozenset({"segmentation"})
"""Default geometry fields of COCO rows to read."""


class Source(msgspec.Struct):
    """Table of one side before its columns are recognised.

    Readers of annotations return one row per object in canonical columns: ``datum_id`` (the image),
    ``label_value`` (class name, or number if the format has no names), ``score`` for detections,
    ``xmin ymin xmax ymax`` (Float64; null if there is only a shape), ``polygon`` (List of rings,
    each a List of [x, y]) or ``mask`` (a COCO run-length struct) for shapes, and further properties
    of objects.

    Attributes:
        format: parquet, ipc, csv, ndjson, json, coco, trec, mapping, raster, label maps,
            annotations, tags (spans read from tags of sentences) or memory.
        files: local source files, in row order.
        partitions: partition columns of the paths, to their dtypes.
        datums: one row per image, including those without objects: ``datum_id``, ``file_name`` if
            known, ``width`` and ``height`` (Int64, pixels; null if unknown), and further properties
            of images, such as ``split``; None without a declaration.
        labels: ``label_value`` of all declared classes in their order, and ``label_name`` if the
            values are numbers with names; None without a declaration.
        results: detections of a file that contains both sides; ``frame`` is then the ground truths.
        shares: whether coordinates are relative to the image's width and height.
        places: number of datums, if ids are list indices; otherwise None.
        firsts: first rows of each of several files, if these are not read lazily.
        facts: metadata of the file for ``run.json``, such as a run's tag.
        points: number of key points per object, and of numbers per point, if described.
        evidence: reason for this format, if another one has similar lines.
        pixels: whether corners are 1-based pixels, the last included: ``yes``, ``as truths`` (if
            those of the ground truths are), or empty for edges.
        footprints: memory size of columns in bytes, if known; the name of a text's columns is
            empty.
        images: ``image_id``, ``sequence`` and ``frame`` of video frames, if described.
        classes: columns to the names of their class numbers; None if not looked up.
        missing: canonical names of columns to the texts in them that were read as missing values.
        task: the task that the format decides; empty if the columns decide.
    """

    frame: pl.LazyFrame
    description: str = ""
    format: str = "memory"
    files: tuple[str, ...] = ()
    storage_options: dict[str, str] | None = None
    partitions: dict[str, pl.DataType] = msgspec.field(default_factory=dict)
    datums: pl.DataFrame | None = None
    labels: pl.DataFrame | None = None
    notes: tuple[Note, ...] = ()
    results: pl.LazyFrame | None = None
    shares: bool = False
    places: int | None = None
    firsts: dict[str, pl.DataFrame] = msgspec.field(default_factory=dict)
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    points: tuple[int, int] | None = None
    images: pl.DataFrame | None = None
    evidence: str = ""
    pixels: str = ""
    footprints: dict[str, MemorySize] = {}
    missing: dict[str, list[str]] = msgspec.field(default_factory=dict)
    classes: dict[str, tuple[str, ...]] | None = None
    task: str = ""

    def __post_init__(self) -> None:
        if "@" in self.description or "?" in self.description:
            self.description = without_secrets(self.description)

    @property
    def text(self) -> bool:
        """True if ids come from untyped text (CSV)."""
        return self.format == "csv"


def of_frame(frame: pl.DataFrame | pl.LazyFrame) -> Source:
    """Return a Polars frame as a source."""
    if isinstance(frame, pl.LazyFrame):
        return Source(frame, "polars.LazyFrame")
    return Source(frame.lazy(), f"polars.DataFrame of {frame.height:,} rows")
