"""Any source to a lazy table: files of every format, globs, remote paths, tables in memory."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from evalengine.atomic import reads
from evalengine.forked import refuse_cut_off
from evalengine.schemas.contract import DATUM_ID
from evalengine.schemas.errors import InputError, OptionError, ReadError

from ...metrics.own import loaded, plugins
from ..annotations.format import Other
from ..annotations.titles import BY_SIZE, PER_IMAGE, TITLES, may_be_annotations
from ..dtypes import widened
from ..files import (
    SEGMENTED,
    MemorySize,
    Room,
    Source,
    by_extension,
    of_frame,
    refuse_beyond,
    refuse_expanding,
    whole_size,
)
from ..problems import Note
from . import formats
from .formats import explain
from .objects import COLUMNS, open_object
from .scanning import expand, is_remote, looks_wild, note_unread, partitions_of, scan
from .table_formats import open_table

READ_FAILURES: tuple[type[BaseException], ...] = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,  # of files that are damaged; no Exception, so few catch it
    OSError,
    zlib.error,  # of damaged gzip files
    EOFError,  # of those that end early
)


def _by_plugin(path: str) -> Source | None:
    """Return the table that an installed reader makes of ``NAME:PATH``; None for other paths."""
    name, colon, rest = path.partition(":")
    if not colon or rest.startswith("//") or os.path.exists(path) or name not in plugins("readers"):
        return None
    table = loaded("readers", name)(rest)
    if not isinstance(table, (pl.DataFrame, pl.LazyFrame)):
        raise InputError(
            f"{path}: reader {name!r} returned {type(table).__name__} instead of a Polars frame.",
            code="wrong_type",
        )
    return msgspec.structs.replace(of_frame(table), description=path)


def open_source(
    thing: Any,
    *,
    storage_options: dict[str, str] | None = None,
    box_format: str | None = None,
    extras: frozenset[str] = SEGMENTED,
    room: Room | None = None,
    other: Source | None = None,
) -> Source:
    """Open a path, glob, list of paths or table as a source of rows; most files are not yet read.

    JSON files are read immediately, as they have no lazy form and COCO files must be inspected. So
    are TREC runs and qrels, whose broken lines are reported by number. Label map files become a
    table of their paths; pixels are read later.

    Args:
        storage_options: credentials and similar for remote paths, as Polars takes them.
        box_format: of box lists, if given; if other than xywh, COCO results are read as plain
            records.
        extras: geometry fields of COCO rows to read, in addition to boxes.
        other: the other side, if it is open: evidence for ambiguous formats.

    Raises:
        OptionError: files that must be read as a whole exceed the memory.
        ReadError: missing, empty, truncated or unreadable files, mixed formats.
        InputError: not a table.
        ExecutorError: a fork that cannot read; see :mod:`evalengine.forked`.
    """
    refuse_cut_off()
    if isinstance(thing, Source):
        return thing
    if isinstance(thing, (pl.DataFrame, pl.LazyFrame)):
        return of_frame(thing)
    single = isinstance(thing, (str, os.PathLike))
    if single and ":" in os.fspath(thing) and (read := _by_plugin(os.fspath(thing))) is not None:
        return read
    if not single and not (
        isinstance(thing, Sequence)
        and not isinstance(thing, (str, bytes))
        and len(thing) > 0
        and all(isinstance(item, (str, os.PathLike)) for item in thing)
    ):
        return open_object(thing, box_format, extras=extras)
    paths = [*map(os.fspath, [thing] if single else thing)]
    source = _open_paths(paths, storage_options, box_format, extras=extras, room=room, other=other)
    reads(source.files or [paths[0].partition("::")[0], *paths[1:]])
    return source


def foreseen_size(paths: Sequence[str]) -> int:
    """Return the bytes in memory of local files that are read as a whole, before they are opened.

    Args:
        paths: of files, or with wildcards; 0 with any other.
    """
    if not paths or not all(os.path.isfile(path) or looks_wild([path]) for path in paths):
        return 0
    try:
        files = [file for path in paths for file in expand(path)]
        return whole_size(files, formats.detect(files[0]))
    except InputError:  # raised again where they are opened
        return 0


def _open_paths(
    paths: list[str],
    storage_options: dict[str, str] | None,
    box_format: str | None,
    *,
    extras: frozenset[str],
    room: Room | None,
    other: Source | None = None,
) -> Source:
    description = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    if any(is_remote(path) for path in paths):
        return _open_remote(paths, description, storage_options)
    if len(paths) == 1:
        table = open_table(paths[0], room)
        if table is not None:
            return table
    if all(may_be_annotations(path) or os.path.isdir(path) for path in paths):
        from ..annotations.registry import open_annotations, recognised

        match = recognised(paths, None if other is None else _evidence(other), box_format)
        if match is not None:
            match[1].room = room
            return open_annotations(*match)
    if len(paths) > 1 and not any(looks_wild([path]) or os.path.exists(path) for path in paths):
        values = [path for path in paths if not os.path.splitext(path)[1] and os.sep not in path]
        if len(values) == len(paths):
            raise ReadError(
                f"a list of texts is a list of paths, and {paths[0]!r} is not a file. {COLUMNS}",
                code="file_missing",
                file=paths[0],
            )
    files = [file for path in paths for file in expand(path)]
    footprints: dict[str, MemorySize] = {}
    notes: list[Note] = []
    kinds = {file: formats.detect(file, footprints, room) for file in files}
    if len(set(kinds.values())) > 1:
        first = files[0]
        odd = next(file for file in files if kinds[file] != kinds[first])
        raise ReadError(
            f"{description}: files of several formats: {first} is {formats.NAMES[kinds[first]]},"
            f" {odd} is {formats.NAMES[kinds[odd]]}. Give files of one format.",
            code="formats_differ",
            files=[first, odd],
        )
    format_ = kinds[files[0]]
    pictures = format_ != "raster" and os.path.isdir(paths[0]) and len(files) == 1
    if pictures and "raster" in map(by_extension, os.listdir(paths[0])):
        description = files[0]
    if len(files) > 1 and len(paths) == 1:
        description = f"{paths[0]}: {len(files):,} files"
    if room is not None:
        refuse_beyond(room, files, format_, description)
    if "" in footprints:
        refuse_expanding(room, [footprints[""]], description)
    if format_ == "json":
        from .json_files import open_json

        return open_json(files, description, box_format, extras=extras)
    if format_ == "trec":
        from .trec import open_trec

        return open_trec(files, description)
    if format_ == "conll":
        from .conll import open_conll

        return open_conll(files, description)
    if format_ == "raster":
        from .objects import open_label_map_files

        source = open_label_map_files(files, description)
        source.notes = tuple(note_unread(files) if all(map(os.path.isdir, paths)) else ())
        return source
    source = Source(pl.LazyFrame(), description, format_, tuple(files), footprints=footprints)
    if len(files) > 1 or files != paths:
        source.partitions = partitions_of(files, description)
    try:
        source.frame = scan(
            files, format_, partitions=source.partitions, sizes=footprints, notes=notes
        )
    except READ_FAILURES as error:
        raise explain(source, error) from error
    source.notes = tuple(notes)
    return source


def _evidence(other: Source) -> Other:
    """The other side as formats that look alike ask for it."""

    def names() -> tuple[frozenset[str], frozenset[str]]:
        tables = [other.datums, other.labels]
        values_of: list[set[str]] = []
        for table, columns in zip(tables, _NAMES, strict=True):
            distinct: set[str] = set()
            frame = other.frame if table is None else table.lazy()
            for name in frame.collect_schema().names():
                if name in columns:
                    values = frame.select(pl.col(name).cast(pl.String).unique()).collect()
                    distinct |= {*values[name].drop_nulls()}
            values_of.append(distinct)
        images = {os.path.splitext(os.path.basename(name))[0] for name in values_of[0]}
        return frozenset(values_of[0] | images), frozenset(values_of[1])

    plain = other.description.startswith(TITLES[PER_IMAGE])
    by_size = any(note.kind == BY_SIZE for note in other.notes)
    box_format = "xywh" if by_size else "xyxy" if plain else None
    return Other(other.description, other.points, box_format, names)


_NAMES = (
    {DATUM_ID.name, *DATUM_ID.aliases, "file_name"},
    {"label_value", "label_name", "label", "class", "category"},
)
"""Columns that name images, and classes."""


def _open_remote(
    paths: list[str], description: str, storage_options: dict[str, str] | None
) -> Source:
    kinds = {by_extension(path) for path in paths}
    format_ = kinds.pop()
    if kinds or format_ not in ("parquet", "ipc", "csv", "ndjson"):
        raise ReadError(
            f"{description}: a remote path must end in .parquet, .arrow, .csv or .jsonl, all paths"
            " in the same; other formats are read from local files.",
            code="format_unknown",
        )
    storage_options = _texts(storage_options)
    source = Source(pl.LazyFrame(), description, format_, storage_options=storage_options)
    notes: list[Note] = []
    try:
        source.frame = scan(paths, format_, storage_options, remote=True, notes=notes)
    except ValueError as error:
        raise _refused_options(error) from None
    except READ_FAILURES as error:
        raise explain(source, error) from error
    source.notes = tuple(notes)
    return source


def _refused_options(error: ValueError) -> OptionError:
    """Return the error for storage options that Polars refuses, without their secret values."""
    match = re.search(r"value for '(\w+)'", str(error))
    named = f"{match[1]!r} has a value" if match else "they have values"
    return OptionError(f"storage_options: {named} that cannot be used.")


def _texts(storage_options: Any) -> dict[str, str] | None:
    """Convert storage options to texts, as Polars takes them."""
    if storage_options is None:
        return None
    if not isinstance(storage_options, Mapping):
        raise OptionError(
            "storage_options: a dict of names and texts is needed, not"
            f" {type(storage_options).__name__}.",
            code="option_value",
            option="storage_options",
        )
    texts: dict[str, str] = {}
    for name, value in storage_options.items():
        if not isinstance(name, str) or not isinstance(value, (str, int, float)):
            raise OptionError(
                f"storage_options: {name!r} is a {type(value).__name__}; names and values are"
                " texts.",
                code="option_value",
                option="storage_options",
                name=name,
            )
        texts[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return texts


_MAY_BE_HALVES = (pl.Float16, pl.List, pl.Array)


def schema_of(source: Source) -> dict[str, pl.DataType]:
    """Return the source's columns; reads only a footer or header if the format has one.

    Floats of 16 bits become those of 32: Polars does not round them.
    """
    try:
        schema = dict(source.frame.collect_schema())
        for name, dtype in schema.items():
            if isinstance(dtype, _MAY_BE_HALVES) and (wide := widened(dtype)) != dtype:
                source.frame = source.frame.with_columns(pl.col(name).cast(wide))
                schema[name] = wide
        return schema
    except READ_FAILURES as error:
        raise explain(source, error) from error
    except ValueError as error:
        if source.storage_options is None:
            raise
        raise _refused_options(error) from None


def head_of(source: Source, names: list[str], rows: int) -> pl.DataFrame:
    """Return the first rows of some of a source's columns."""
    try:
        return source.frame.select(names).head(rows).collect()
    except READ_FAILURES as error:
        raise explain(source, error) from error


def local_path(thing: Any) -> Path | None:
    """The thing as a local path, if it is one."""
    if isinstance(thing, (str, os.PathLike)) and not is_remote(os.fspath(thing)):
        return Path(os.fspath(thing)).expanduser()
    return None
