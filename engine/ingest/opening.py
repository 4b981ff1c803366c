"""Every table of a run opened once: sources by role, and the columns they have."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import msgspec
import polars as pl

from evalengine.forked import refuse_cut_off
from evalengine.ingest.annotated_sides import classes_told, in_edges, in_pixels, sides_of
from evalengine.ingest.files import Room
from evalengine.ingest.sources.coco_videos import placed
from evalengine.ingest.sources.empty_tracks import nothing_tracked
from evalengine.ingest.sources.objects import nothing_found, refuse_uneven
from evalengine.ingest.sources.source import Source
from evalengine.ingest.sources.tables import open_source, schema_of
from evalengine.schemas.contract import (
    DATUM_ID,
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

from .annotations import format
from .annotations.titles import SUFFIXES
from .finding import Finder
from .geometry import wanted_fields
from .label_map_files import read_alike
from .lists import open_datums, open_labels
from .mismatch import doubtful
from .numbered import numbered_columns
from .values import paired_values

# Matching of two sides with different image and class ids by name.
#
# Tools that export predictions as a complete COCO file renumber images and categories: ids differ,
# while file names and category names still agree. Other formats have only names; COCO has numbers
# too.

_SHOWN = 3
_SUFFIXES = (*format.IMAGE_SUFFIXES, *SUFFIXES, ".heic", ".avif", ".jxl", ".dcm")
_DIGITS = re.compile(r"[0-9]+$")


class _Kind(msgspec.Struct, frozen=True):
    """Images or categories: their columns in rows and tables.

    Attributes:
        readings: normalisations of names: unchanged first, then coarser ones, used if more names
            match.
    """

    what: str
    table: str
    column: str
    name: str
    by: str
    readings: tuple[Callable[[str], str], ...]


def _stem(name: str) -> str:
    """A name without folders and the suffix of a picture or of annotations: dots may be in it."""
    stem, suffix = os.path.splitext(os.path.basename(name))
    return stem if suffix.lower() in _SUFFIXES else os.path.basename(name)


def _words(name: str) -> str:
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").split())


_CATEGORIES = _Kind("categories", "labels", "label_value", "label_name", "name", (str, _words))
_IMAGES = _Kind(
    "images", "datums", "datum_id", "file_name", "file_name", (str, os.path.basename, _stem)
)


def by_name(
    predictions: Source,
    truths: Source,
    datums: pl.DataFrame | None = None,
    labels: pl.DataFrame | None = None,
    *,
    sure: bool = False,
) -> tuple[Source, Source]:
    """Unify ids of both sides by name.

    If both sides' ids are of one kind but contradict, predictions get the ids that the ground
    truths have for the same names. If one side has numbers and the other names, both get names.

    Args:
        predictions: unchanged if their ids agree with the ground truths'.
        datums: table of the ground truths' images, if not in their file.
        labels: table of the ground truths' categories, if not in their file.
        sure: whether the user gave id forms, so that numbers in names are no guess.

    Raises:
        InputError: ids contradict, and names do not resolve it.
    """
    for kind, given in ((_CATEGORIES, labels), (_IMAGES, datums)):
        own = getattr(truths, kind.table)
        ours = _table(predictions, kind)
        theirs = own if own is not None else given if given is not None else _table(truths, kind)
        doubt = False
        if ours is None and theirs is not None:
            ours, doubt = _numbered(predictions, kind, theirs)
        elif theirs is None and ours is not None:
            theirs, doubt = _numbered(truths, kind, ours)
        if ours is None or theirs is None or kind.column not in theirs.columns:
            continue
        alike = ours.schema[kind.column] == theirs.schema[kind.column]
        if not all(_has_names(table, kind) for table in (ours, theirs)):
            if alike and getattr(predictions, kind.table) is not None:
                predictions = _noted(predictions, *_unnamed(kind, ours, theirs))
            continue
        here, there = _as_they_match(kind, ours, theirs)
        doubt = doubt and not sure
        if not alike and theirs is not given:
            predictions, truths = _both_named(kind, (predictions, here), (truths, there), doubt)
            continue
        wrong = _contradictions(here, there)
        if not wrong:
            continue
        used = _used(predictions, kind)
        new = _new_ids(kind, (here, ours, used), (there, theirs), wrong)
        frame = predictions.frame.with_columns(pl.col(kind.column).replace([*new], [*new.values()]))
        said = f"{_said(kind, wrong)} They are matched by {kind.by}."
        predictions = _noted(
            msgspec.structs.replace(predictions, frame=frame),
            ("ids_matched_by_name", said, len(wrong)),
        )
    return predictions, truths


def _table(source: Source, kind: _Kind) -> pl.DataFrame | None:
    """Images or categories of a source: its own table, or the names that its rows have for them."""
    table: pl.DataFrame | None = getattr(source, kind.table)
    if table is not None or schema_of(source).get(kind.column) != pl.String:
        return table
    return _used(source, kind).drop_nulls().to_frame()


def _numbered(source: Source, kind: _Kind, other: pl.DataFrame) -> tuple[pl.DataFrame | None, bool]:
    """Name integer ids of a source by the other side's names that contain the same numbers.

    Images named 000042.jpg or frame_000042.jpg have the id 42 in the results of some tools.

    Returns:
        ids and names, and whether the numbers may be unrelated, such as list indices.
    """
    dtype = schema_of(source).get(kind.column)
    if dtype is None or not dtype.is_integer() or not _has_names(other, kind):
        return None, False
    names = [_stem(name) for name in other[_name_column(other, kind)].drop_nulls()]
    ended = [(found[0], name) for name in names if (found := _DIGITS.search(name))]
    numbers = {int(digits): name for digits, name in ended}
    if len(numbers) < len(names) or other.schema[kind.column] != pl.String:
        return None, False
    used = _used(source, kind).drop_nulls()
    if not any(i in numbers for i in used):
        return None, False
    named = pl.DataFrame(
        {kind.column: used, kind.name: [numbers.get(i, str(i)) for i in used]},
        schema={kind.column: used.dtype, kind.name: pl.String},
    )
    known = [number for number in numbers if number < 1 << 63]
    return named, doubtful(used.cast(pl.Int64, strict=False).drop_nulls(), pl.Series(known))


def _used(source: Source, kind: _Kind) -> pl.Series:
    return source.frame.select(pl.col(kind.column).unique()).collect()[kind.column].sort()


def _noted(source: Source, *notes: tuple[str, str, int | None]) -> Source:
    return msgspec.structs.replace(source, notes=(*source.notes, *notes))


def _both_named(
    kind: _Kind, ours: tuple[Source, Names], theirs: tuple[Source, Names], doubt: bool
) -> tuple[Source, Source]:
    """Replace the ids of both sides by names, if one has numbers.

    Args:
        doubt: whether numbers in names match no better than by chance.

    Raises:
        InputError: a side has two ids of one name, or rows whose id has no name.
    """
    sides = []
    for (source, names), side in ((ours, "predictions"), (theirs, "ground truths")):
        lone = [i for i in _used(source, kind).drop_nulls() if i not in names]
        twice = [name for name, count in Counter(names.values()).items() if count > 1]
        if lone or twice:
            why = (
                f"{lone[0]!r} of the {side} has no {kind.by}"
                if lone
                else f"{twice[0]!r} names several {kind.what} of the {side}"
            )
            raise InputError(
                f"{kind.what} are numbers on one side and names on the other, and cannot be matched"
                f" by {kind.by}: {why}. Give both sides the same ids."
            )
        named = pl.col(kind.column).replace_strict(
            [*names], [*names.values()], default=None, return_dtype=pl.String
        )
        table = getattr(source, kind.table)
        change = {"frame": source.frame.with_columns(named)}
        if table is not None:
            change[kind.table] = table.with_columns(named)
        sides.append(msgspec.structs.replace(source, **change))
    common = len({*ours[1].values()} & {*theirs[1].values()})
    both = f"{kind.what} are numbers on one side and names on the other"
    if doubt:
        few = min(len(ours[1]), len(theirs[1]))
        said = (
            f"{both}: they are matched by the last number in a name, and {common:,} of {few:,}"
            " match, which may be chance. If the numbers are places in a list, every one of the"
            f" {kind.what} is compared with another: give both sides the same ids."
            f"{_one_off(ours[1], theirs[1]) if kind is _IMAGES else ''}"
        )
        told = (*sides[0].warnings, ("ids_matched_by_number", said, common))
        return msgspec.structs.replace(sides[0], warnings=told), sides[1]
    said = f"{both}: both are matched by {kind.by}, and {common:,} are the same."
    return _noted(sides[0], ("ids_matched_by_name", said, common)), sides[1]


def _one_off(ours: Names, theirs: Names) -> str:
    """The option that moves numbers of the predictions by one, if then all have a name."""
    mine, known = (_numbers(side) for side in (ours, theirs))
    for step in (-1, 1):
        moved = {i + step for i in mine}
        if len(mine) == len(ours) and (moved <= known or known <= moved):
            way = option("id_format", ["number", f"{step:+d}"])
            return f" Once those of the predictions are changed by {step:+d} all match: {way}."
    return ""


def _numbers(side: Names) -> set[int]:
    """Ids that are numbers, and the numbers in the names of others."""
    found = set()
    for i, name in side.items():
        if isinstance(i, int):
            found.add(i)
        elif (digits := _DIGITS.search(name)) is not None:
            found.add(int(digits[0]))
    return found


Wrong = list[tuple[Any, str, Any, str]]
"""Contradictions: id and name in the predictions, id and name in the ground truths."""
Names = dict[Any, str]
"""Id to name."""


def _has_names(table: pl.DataFrame, kind: _Kind) -> bool:
    return table.schema[_name_column(table, kind)] == pl.String


def _name_column(table: pl.DataFrame, kind: _Kind) -> str:
    """Return the column of names; that of ids if there is no other."""
    return kind.name if kind.name in table.columns else kind.column


def _named(table: pl.DataFrame, kind: _Kind, column: str) -> Names:
    names = table.select(id=kind.column, name=column)
    return dict(names.drop_nulls().iter_rows())


def _as_they_match(kind: _Kind, ours: pl.DataFrame, theirs: pl.DataFrame) -> tuple[Names, Names]:
    """Return names of both sides in the columns and the reading with the most matches.

    Text ids may be names themselves: those of results without a table of images, and stems of files
    whose contents give another name. A coarser reading counts only if it keeps distinct names of a
    side distinct.
    """
    columns = [
        [name for name in (kind.name, kind.column) if table.schema.get(name) == pl.String]
        for table in (ours, theirs)
    ]
    bare = any(kind.name not in names for names in columns)
    best: tuple[Names, Names] = ({}, {})
    most = -1
    for pair in sorted(product(*columns), key=lambda pair: bare and pair[0] != pair[1]):
        named = [
            _named(table, kind, name) for table, name in zip((ours, theirs), pair, strict=True)
        ]
        for reading in kind.readings:
            sides = [{i: reading(name) for i, name in side.items()} for side in named]
            distinct = all(
                len({*read.values()}) == len({*side.values()})
                for read, side in zip(sides, named, strict=True)
            )
            common = len({*sides[0].values()} & {*sides[1].values()})
            if distinct and common > most:
                best, most = (sides[0], sides[1]), common
        if most == min(map(len, named)):
            break
    return best


def _contradictions(here: Names, there: Names) -> Wrong:
    """Ids with another name in the ground truths, and names with another id."""
    ids = {name: i for i, name in there.items()}
    found: Wrong = []
    for i, name in here.items():
        if there.get(i, name) != name:
            found.append((i, name, i, there[i]))
        elif i not in there and name in ids:
            found.append((i, name, ids[name], name))
    return found


_SIZE = ["height", "width"]


def _unnamed(
    kind: _Kind, ours: pl.DataFrame, theirs: pl.DataFrame
) -> list[tuple[str, str, int | None]]:
    """Note that ids are used unchanged, since names are missing.

    Raises:
        InputError: images of one id have two sizes, so they cannot be the same.
    """
    sized = all({*_SIZE} <= {*table.columns} for table in (ours, theirs))
    if kind is _IMAGES and sized and ours.schema[kind.column] == theirs.schema[kind.column]:
        both = ours.select(kind.column, *_SIZE).join(
            theirs.select(kind.column, *_SIZE), on=kind.column, suffix="_there"
        )
        other = pl.any_horizontal(pl.col(name) != pl.col(f"{name}_there") for name in _SIZE)
        wrong = both.filter(other)
        if wrong.height:
            first, height, width, there_height, there_width = wrong.row(0)
            raise InputError(
                f"{wrong.height:,} images have another size under the same id in the predictions'"
                f" file than in the ground truths', first id {first!r}: height {height} and width"
                f" {width}, there {there_height} and {there_width}. Ids mean other images, and"
                " names to match them by are missing: give both files file_name, or number them"
                " alike.",
                code="sizes_differ",
                count=wrong.height,
                first=first,
            )
    side = "ground truths" if _has_names(ours, kind) else "predictions"
    said = (
        f"{kind.what} of the {side}' file have no {kind.by}: ids are taken to mean the same in both"
        " files."
    )
    return [("ids_without_names", said, None)]


def _said(kind: _Kind, wrong: Wrong) -> str:
    shown = "; ".join(
        f"{mine!r} ({name!r}) in the predictions, {other!r} ({known!r}) in the ground truths"
        for mine, name, other, known in wrong[:_SHOWN]
    )
    return (
        f"{len(wrong):,} ids of {kind.what} differ between the two files by their names: {shown}."
    )


def _new_ids(
    kind: _Kind,
    ours: tuple[Names, pl.DataFrame, pl.Series],
    theirs: tuple[Names, pl.DataFrame],
    wrong: Wrong,
) -> dict[Any, Any]:
    """Map ids of the predictions to those of the ground truths.

    Args:
        ours: names in the predictions' table, that table, and the ids in their rows.

    Raises:
        InputError: names are ambiguous.
    """
    (here, table, used), (there, known) = ours, theirs

    def refuse(why: str) -> None:
        raise InputError(
            f"{_said(kind, wrong)} They cannot be matched by {kind.by}: {why}. Number both files"
            f" alike; or, if ids are right as they are, leave {kind.by} out of the predictions'"
            f" {kind.what}.",
            code="ids_differ",
            count=len(wrong),
        )

    if table.schema[kind.column] != known.schema[kind.column]:
        refuse("ids are integers in one file and strings in the other")
    ids = {name: i for i, name in there.items()}
    if len(ids) < len(there) or len({*here.values()}) < len(here):
        refuse(f"some {kind.by} appears more than once")
    nameless = used.filter(used.is_not_null() & ~used.is_in([*here])).to_list()
    if nameless:
        refuse(f"predictions have the id {nameless[0]!r}, which has no {kind.by} in their file")
    taken = {*known[kind.column].to_list()}
    for i, name in here.items():
        if name not in ids and i in taken:
            refuse(f"{name!r} is only in the predictions, and its id {i!r} another's")
    return {i: ids.get(name, i) for i, name in here.items()}


class Inputs(msgspec.Struct):
    """Tables whose columns are known but whose rows are not yet read.

    Attributes:
        sources: role to source: predictions and ground truths, or one table with both sides; datums
            and labels if given or contained in the ground truths.
        schemas: role to columns.
        room: memory limit for reading; None for any.
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
    """Open all given tables.

    Args:
        predictions: path, glob, list of paths, or table; of both sides if it is the only one.
        ground_truths: the same; a COCO ground-truth file also provides datums and labels.
        options: box_format applies here, and whether masks can count.
        room: memory limit for reading; None for any.
        wanted: geometry fields of COCO rows to read, in addition to boxes; by default those that
            the options compare.

    Raises:
        OptionError: files that must be read as a whole exceed the memory.
        ReadError: a file that is missing or cannot be read.
        InputError: an argument that is not a table.
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
    # Open the ground truths first if they may be evidence for the format of the predictions.
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
    for path in paths:
        if not isinstance(path, (str, os.PathLike)) or not (
            os.fspath(path).lower().endswith((".txt", ".txt.gz")) or os.path.isdir(path)
        ):
            return False
    return len(paths) > 0


_NAMED = ("coco", "annotations")
"""Formats whose images and classes may be named in two ways."""


def _brought_together(sources: dict[str, Source], last: str, options: Options) -> None:
    """Unify annotations: ids, pixel coordinates, and tables contained in the files.

    Args:
        sources: by role; modified in place.
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
    """Join two tables without ids, truths and answers, row by row.

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
    """Return a task's single-table contract, if the two tables have its answers and truths."""
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
    """Make one source of two tables, column-wise.

    Raises:
        InputError: they have different lengths, or a column name in common.
    """
    way = option("columns", {"mine": "datum_id"})
    both = [name for name in schemas[0] if name in schemas[1]]
    if both:
        raise InputError(
            f"two tables without datum ids are paired row by row, and both have the columns"
            f" {both[:5]}. If one of these is the id of the datums, say so: {way}; else leave them"
            " out of one of the tables.",
            code="no_id",
            columns=both,
        )
    heights = [int(side.frame.select(pl.len()).collect().item()) for side in sides]
    if heights[0] != heights[1]:
        raise InputError(
            f"two tables without datum ids are paired row by row, but the predictions have"
            f" {heights[0]:,} rows and the ground truths {heights[1]:,}: give both a datum_id, or"
            f" say which column it is: {way}.",
            code="no_id",
            lengths=heights,
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
