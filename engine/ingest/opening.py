"""Every table of a run opened once: sources by role, and the columns they have."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import msgspec
import polars as pl

from evalengine.forked import refuse_cut_off
from evalengine.ingest.annotated_sides import classes_told, in_edges, in_pixels, sides_of
from evalengine.ingest.by_name import by_name
from evalengine.ingest.file_memory import Room
from evalengine.ingest.sources.coco_videos import placed
from evalengine.ingest.sources.empty_tracks import nothing_tracked
from evalengine.ingest.sources.per_image import nothing_found, refuse_uneven
from evalengine.ingest.sources.source import Source
from evalengine.ingest.sources.tables import open_source, schema_of
from evalengine.schemas.columns import DATUM_ID
from evalengine.schemas.contract import (
    DATUMS,
    GROUND_TRUTHS,
    LABELS,
    PREDICTIONS,
    TABLE,
    Column,
    Table,
)
from evalengine.schemas.errors import InputError
from evalengine.schemas.options import Options
from evalengine.schemas.tables import contracts, task_names
from evalengine.schemas.wording import option

from .finding import Finder
from .geometry_columns import wanted_fields
from .label_map_folders import read_alike
from .lists import open_datums, open_labels
from .numbered import numbered_columns
from .values import paired_values


class Inputs(msgspec.Struct):
    """Tables whose columns are known and whose rows are not read yet.

    Attributes:
        sources: role to source: predictions and ground truths, or one table with both sides;
            datums and labels where given or along with the ground truths.
        schemas: role to own columns.
        room: memory that reading may take; None for any.
    """

    sources: dict[str, Source]
    schemas: dict[str, dict[str, pl.DataType]]
    room: Room | None = None


def open_inputs(
    predictions: Any,
    ground_truths: Any = None,
    *,
    datums: Any = None,
    labels: Any = None,
    options: Options | None = None,
    storage_options: dict[str, str] | None = None,
    room: Room | None = None,
    wanted: frozenset[str] | None = None,
) -> Inputs:
    """Open every table that is there.

    Args:
        predictions: path, glob, list of paths, or table; of both sides if it is the only one.
        ground_truths: the same; a COCO ground-truth file brings datums and labels along.
        datums: table or list of all datum ids.
        labels: table or list of declared labels.
        options: box_format is used here, and whether masks can count.
        storage_options: for remote paths, as Polars takes them.
        room: memory that reading may take; None for any.
        wanted: fields of geometry that COCO rows are read with, beside their boxes; those that
            the options compare unless given.

    Raises:
        OptionError: files that are held as a whole, for which there is no room.
        ReadError: a file that is missing or cannot be read.
        InputError: something that is not a table.
        ExecutorError: a fork that cannot read; see :mod:`evalengine.forked`.
    """
    refuse_cut_off()
    options = options or Options()
    given: dict[str, Any] = {PREDICTIONS: predictions, GROUND_TRUTHS: ground_truths}
    if ground_truths is None:
        given = {TABLE: predictions}
    else:
        predictions = nothing_tracked(nothing_found(predictions, ground_truths), ground_truths)
        given[PREDICTIONS] = predictions
        refuse_uneven(predictions, ground_truths)
        given = paired_values(predictions, ground_truths, labels, options) or given
    opened: dict[str, Source] = {}
    # The ground truths first if they may be evidence of what the predictions are.
    for role in reversed(given) if _may_look_alike(given.get(PREDICTIONS)) else given:
        opened[role] = open_source(
            given[role],
            storage_options=storage_options,
            box_format=options.box_format,
            wanted=wanted_fields(options) if wanted is None else wanted,
            room=room,
            other=opened.get(GROUND_TRUTHS),
        )
    sources = sides_of({role: opened[role] for role in given})
    last = next(reversed(sources))
    if PREDICTIONS in sources:
        sources[PREDICTIONS] = placed(sources[PREDICTIONS], sources[last].images)
    for role, thing, opener in (
        (DATUMS, datums, open_datums),
        (LABELS, labels, open_labels),
    ):
        if thing is not None:
            sources[role] = opener(thing, storage_options)
    _brought_together(sources, last, options)
    read_alike(sources, options)
    if GROUND_TRUTHS in sources:
        sources = _by_row(sources, options) or sources
    return Inputs(sources, {role: schema_of(source) for role, source in sources.items()}, room)


def _may_look_alike(thing: Any) -> bool:
    """Check for folders and text files, whose formats may look alike."""
    paths = thing if isinstance(thing, (list, tuple)) else [thing]
    return len(paths) > 0 and all(
        isinstance(path, (str, os.PathLike))
        and (os.fspath(path).lower().endswith((".txt", ".txt.gz")) or os.path.isdir(path))
        for path in paths
    )


_NAMED = ("coco", "annotations")
"""Formats whose images and classes may be named in two ways."""


def _brought_together(sources: dict[str, Source], last: str, options: Options) -> None:
    """Annotations with ids that mean the same on both sides, in pixels, with what came along.

    Args:
        sources: by role; changed.
        last: the role of the ground truths, or of the one table.
        options: of the run.
    """
    predictions, truths = sources.get(PREDICTIONS), sources[last]
    of_files = any(
        source is not None and source.format in _NAMED for source in (predictions, truths)
    )
    if of_files:
        given = {
            role: sources[role].frame.collect() if role in sources else None
            for role in (DATUMS, LABELS)
        }
        if predictions is not None:
            predictions, truths = by_name(
                predictions,
                truths,
                given[DATUMS],
                given[LABELS],
                sure=options.id_format is not None,
            )
            predictions, truths = classes_told(predictions, truths, given[LABELS])
        predictions, truths = in_edges(predictions, truths, options)
        predictions, truths = in_pixels(predictions, truths, given[DATUMS])
        sources |= {last: truths} | ({PREDICTIONS: predictions} if predictions else {})
    for role, along in ((DATUMS, truths.datums), (LABELS, truths.labels)):
        if along is not None and role not in sources:
            sources[role] = Source(along.lazy(), truths.description, truths.format)


def _by_row(sources: dict[str, Source], options: Options) -> dict[str, Source] | None:
    """Two tables without ids, one of truths and one of answers, as one: row i meets row i.

    Raises:
        InputError: they have different lengths, or a column name in common.
    """
    sides = [sources[role] for role in (PREDICTIONS, GROUND_TRUTHS)]
    schemas = [schema_of(side) for side in sides]
    said = options.columns or {}
    finders = [
        Finder(schema, role, {mine: to for mine, to in said.items() if mine in schema})
        for schema, role in zip(schemas, (PREDICTIONS, GROUND_TRUTHS), strict=True)
    ]
    if any(_has(find, column) for find in finders for column in _datum_columns()):
        return None
    fitting = [table for task in task_names() if (table := _fits(task, finders)) is not None]
    for table in fitting:
        columns = {column.name: column for column in table.columns}
        if any(all(_has(find, columns[name]) for find in finders) for name in table.together):
            return None
    if not fitting:
        return None
    idle = {
        role: [name for name in schema if name not in _claimed(find, fitting[0].columns, options)]
        for role, find, schema in zip((PREDICTIONS, GROUND_TRUTHS), finders, schemas, strict=True)
    }
    return _paired(sources, sides, schemas, idle)


def _fits(task: str, finders: list[Finder]) -> Table | None:
    """The contract of one table of a task, where the two tables have its answers and truths."""
    table = contracts(task).get(TABLE)
    if table is None or not table.required:
        return None
    columns = {column.name: column for column in table.columns}
    truths = all(_has(finders[1], column) for column in table.required)
    answers = any(_has(finders[0], columns[name]) for name in table.any_of)
    return table if truths and answers else None


def _claimed(find: Finder, columns: Sequence[Column], options: Options) -> set[str]:
    """The columns of a table that a run reads, or that are of its slices."""
    names = {name for column in columns for name in (column.name, *column.aliases)}
    sliced = {piece for entry in options.columns_of_datums for piece in entry.split("*")}
    levels = {name for column in columns for name in numbered_columns(column, find.schema)}
    return {*find.candidates(names), *find.used, *sliced, *levels}


def _datum_columns() -> list[Column]:
    """The columns that name datums, under all the names that any task knows them by."""
    tables = [table for task in task_names() for table in contracts(task).values()]
    named = [column for table in tables for column in table.columns if column.name == table.datum]
    return list(dict.fromkeys([DATUM_ID, *named]))


def _has(find: Finder, column: Column) -> bool:
    names = (column.name, *column.aliases)
    known = find.candidates(names) or numbered_columns(column, find.schema)
    return column.name in find.said or bool(known)


def _paired(
    sources: dict[str, Source],
    sides: list[Source],
    schemas: list[dict[str, pl.DataType]],
    idle: dict[str, list[str]],
) -> dict[str, Source]:
    """One source of two tables side by side.

    Args:
        sources: all tables by role.
        sides: the predictions and the ground truths.
        schemas: their columns.
        idle: by role, columns that nothing reads: perhaps ids under names that nobody knows.

    Raises:
        InputError: they have different lengths, or a column name in common.
    """
    way = option("columns", {"mine": "datum_id"})
    both = [name for name in schemas[0] if name in schemas[1]]
    if both:
        raise InputError(
            f"two tables without datum ids are paired row by row, and both have the columns"
            f" {both[:5]}. If one of these is the id of the datums, say so: {way}; else leave them"
            " out of one of the tables."
        )
    heights = [int(side.frame.select(pl.len()).collect().item()) for side in sides]
    if heights[0] != heights[1]:
        raise InputError(
            f"two tables without datum ids are paired row by row, but the predictions have"
            f" {heights[0]:,} rows and the ground truths {heights[1]:,}: give both a datum_id, or"
            f" say which column it is: {way}."
        )
    said = "neither table has datum ids: paired row by row."
    strange = [f"{role.replace('_', ' ')}: {', '.join(map(repr, own[:5]))}"
               for role, own in idle.items() if own]  # fmt: skip
    if strange:
        said += (
            f" Columns that nothing reads ({'; '.join(strange)}) are not compared: if one is"
            f" an id, say so: {way}."
        )
    told = ("paired_by_row", said, heights[0])
    paired = Source(
        pl.concat([side.frame for side in sides], how="horizontal"),
        f"{sides[0].description} and {sides[1].description}, row by row",
        "csv" if all(side.text for side in sides) else "memory",
        notes=(*sides[0].notes, *sides[1].notes, *(() if strange else (told,))),
        warnings=(*sides[0].warnings, *sides[1].warnings, *((told,) if strange else ())),
    )
    rest = {role: source for role, source in sources.items() if role in (DATUMS, LABELS)}
    return {TABLE: paired, **rest}
