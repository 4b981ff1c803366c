"""Two sides whose ids name images and classes in two ways: they are matched by name.

Tools that export predictions as a whole COCO file number images and categories anew: an id then
means one thing here and another there, while file names and category names still agree. Other
formats have names alone, where COCO has numbers beside them.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

import msgspec
import polars as pl

from evalengine.schemas.errors import InputError
from evalengine.schemas.wording import option

from .annotations import image_headers
from .annotations.titles import SUFFIXES
from .mismatch import doubtful
from .sources.source import Source
from .sources.tables import schema_of

_SHOWN = 3
_SUFFIXES = (*image_headers.SUFFIXES, *SUFFIXES, ".heic", ".avif", ".jxl", ".dcm")
_DIGITS = re.compile(r"[0-9]+$")


class _Kind(msgspec.Struct, frozen=True):
    """Images or categories: which columns of rows and tables are compared.

    Attributes:
        what: what messages call them.
        table: the field of a source that has them.
        column: their ids, in rows and tables.
        name: their names, in tables.
        by: what COCO calls that.
        readings: names as they stand, then coarser ones, tried where they tell more.
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
    """Both sides with ids that mean the same.

    Where both sides' ids are of one kind, predictions take the ids that the ground truths have for
    the same names, if some contradict. Where one side has numbers and the other names, both have
    names.

    Args:
        predictions: returned as they are where their ids mean what the ground truths' mean.
        truths: the ground truths.
        datums: table of their images, where they did not bring one along.
        labels: table of their categories, likewise.
        sure: whether the user gave forms of ids, so that numbers in names are no guess.

    Raises:
        InputError: ids contradict, and names do not tell which is which.
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
    """Integer ids of a source, with the other side's names that are the same numbers for names.

    Images called 000042.jpg or frame_000042.jpg have the id 42 in results that some tools write.

    Returns:
        ids and names, and whether the numbers may be others, such as places in a list.
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
    """Both sides with names for ids, where one has numbers.

    Args:
        kind: images or categories.
        ours: the predictions, and their names.
        theirs: the ground truths, and theirs.
        doubt: whether numbers in names meet the others as if by chance.

    Raises:
        InputError: a side has two ids of one name, or rows whose id has none.
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
"""Id and name in the predictions, id and name in the ground truths of what contradicts it."""
Names = dict[Any, str]
"""Id to name."""


def _has_names(table: pl.DataFrame, kind: _Kind) -> bool:
    return table.schema[_name_column(table, kind)] == pl.String


def _name_column(table: pl.DataFrame, kind: _Kind) -> str:
    """The column of names; that of ids where these are all there is."""
    return kind.name if kind.name in table.columns else kind.column


def _named(table: pl.DataFrame, kind: _Kind, column: str) -> Names:
    names = table.select(id=kind.column, name=column)
    return dict(names.drop_nulls().iter_rows())


def _as_they_match(kind: _Kind, ours: pl.DataFrame, theirs: pl.DataFrame) -> tuple[Names, Names]:
    """Names of both sides in the columns and the reading that most of them have in common.

    Ids that are texts may be names themselves: those of results without a table of images, and
    stems of files whose contents give another name. A coarser reading counts only if all names of
    a side that differ still differ in it.
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
    """A note that ids are taken as they are, since names are missing.

    Raises:
        InputError: images of one id have two sizes, so that they are not the same.
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
                " alike."
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
    """Ids of the predictions to those of the ground truths.

    Args:
        kind: images or categories.
        ours: names in the predictions' table, that table, and the ids in their rows.
        theirs: names in the ground truths' table, and that table.
        wrong: what contradicts.

    Raises:
        InputError: names do not tell which is which.
    """
    (here, table, used), (there, known) = ours, theirs

    def refuse(why: str) -> None:
        raise InputError(
            f"{_said(kind, wrong)} They cannot be matched by {kind.by}: {why}. Number both files"
            f" alike; or, if ids are right as they are, leave {kind.by} out of the predictions'"
            f" {kind.what}."
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
