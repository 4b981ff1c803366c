"""Opening of the tables of a run."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import chain, product
from operator import attrgetter
from typing import Any

import msgspec
import polars as pl

from ..forked import refuse_cut_off
from ..schemas.contract import (
    DATUM_ID,
    DATUMS,
    GROUND_TRUTHS,
    LABELS,
    PREDICTIONS,
    TABLE,
    Column,
    Table,
)
from ..schemas.errors import N_EXAMPLES, InputError
from ..schemas.options import Options
from ..schemas.tables import TABLES, contracts, task_names
from ..schemas.wording import option
from .annotations import format
from .annotations.format import NAMELESS
from .annotations.titles import SUFFIXES
from .dtypes import folded
from .files import Room, Source, refuse_whole
from .geometry import needed_fields
from .id_mismatch import doubtful, mend, samples
from .label_map_files import unify_sides
from .problems import Note, count_of, listing
from .recognise import Finder, numbered_columns
from .sources.coco_videos import placed
from .sources.objects import empty_images, refuse_uneven
from .sources.tables import foreseen_size, open_source, schema_of
from .values import differing_indexes, open_datums, open_labels, paired_values

# Reconciliation of two annotated sides: roles, classes, pixel coordinates.

_WIDE = ("xmin", "xmax", "box_width")
_HIGH = ("ymin", "ymax", "box_height")
_SIZE = ("width", "height")
_OF_EDGES = ("coco", "annotations")  # formats whose corners are known to be edges, or pixels


def note_numeric_classes(
    predictions: Source, truths: Source, labels: pl.DataFrame | None
) -> tuple[Source, Source]:
    """Add notes on numeric classes to both sides, once the other side is known.

    Names from the other side, or from a table of labels, apply to both. Predicted classes that are
    missing in the ground truths' declared list belong to another list.
    """

    def named(source: Source) -> Source:
        notes = tuple(note for note in source.notes if note.kind != NAMELESS)
        return msgspec.structs.replace(source, notes=notes)

    names = truths.labels if labels is None else labels
    if names is not None and "label_name" in names.columns:
        predictions = named(predictions)
    if predictions.labels is not None and "label_name" in predictions.labels.columns:
        truths = named(truths)
    of_files = predictions.format == truths.format == "annotations"
    if labels is not None or truths.labels is None or not of_files:
        return predictions, truths
    declared = truths.labels["label_value"]
    rows = predictions.frame.select("datum_id", "label_value").collect()
    if rows.schema["label_value"] != declared.dtype:
        return predictions, truths
    odd = rows.filter(~pl.col("label_value").is_in(declared.implode()))
    if not odd.height:
        return predictions, truths
    values = odd["label_value"].unique().sort().to_list()
    images = odd["datum_id"].unique(maintain_order=True).head(N_EXAMPLES).to_list()
    stems = {os.path.splitext(os.path.basename(file))[0]: file for file in predictions.files}
    first = ", ".join(repr(stems.get(image.rsplit("/", 1)[-1], image)) for image in images)
    classes = count_of(len(values), "class", "classes")
    message = (
        f"{odd.height:,} of {rows.height:,} predictions are of {classes} missing in the ground "
        f"truths' list of {len(declared):,} ({listing(values)}), first in {first}: were they "
        f"made with another list of classes? If so, map them with {option('label_map')}."
    )
    return _noted(
        predictions, Note("classes_not_declared", message, odd.height, warning=True)
    ), truths


def in_edges(
    predictions: Source | None, truths: Source, options: Options
) -> tuple[Source | None, Source]:
    """Convert corners of both sides to pixel edges, unless the dialect compares them as written.

    Pixel 1 spans 0 to 1: first corners move by one, last ones are already edges, as in detectron2's
    reader of Pascal VOC.

    Args:
        options: ``dialect`` decides; ``box_format="xyxy"`` keeps corners as written.
    """
    sides = [predictions, truths]
    counted = [
        side is not None and (side.pixels == "yes" or (side.pixels and truths.pixels == "yes"))
        for side in sides
    ]
    if not any(counted) or options.box_format == "xyxy":
        return predictions, truths
    keeping = {name for table in TABLES for name in table.as_written}
    if options.dialect in keeping:
        edge_formats = [side is not None and side.format in _OF_EDGES for side in sides]
        for at, called, other in (
            (0, "predictions", "ground truths"),
            (1, "ground truths", "predictions"),
        ):
            if counted[at] and edge_formats[1 - at] and not counted[1 - at]:
                message = (
                    f"corners of the {called} are pixels that count from 1, those of the {other}"
                    f" are edges: dialect {options.dialect} compares both as written. Add 1 to xmin"
                    f" and ymin of the {other} to make them pixels."
                )
                truths.notes += (Note("edges_next_to_pixels", message),)
        return predictions, truths
    for side, moved in zip(sides, counted, strict=True):
        if side is None or not moved:
            continue
        side.frame = side.frame.with_columns(pl.col("xmin", "ymin") - 1)
        message = (
            f"{side.description}: corners are pixels that count from 1, and the last is in the box,"
            " as in Pascal VOC. Their edges are compared: 1 is taken from xmin and ymin."
            f" {option('box_format', 'xyxy')} compares corners as written; so do dialects"
            f" {listing(sorted(keeping))}."
        )
        side.notes += (Note("pixels_to_edges", message),)
    return predictions, truths


def in_pixels(
    predictions: Source | None, truths: Source, datums: pl.DataFrame | None
) -> tuple[Source | None, Source]:
    """Convert relative coordinates of either side to pixels.

    Image sizes come from a table of datums, from the side itself, or from the other. If both sides
    are relative and no sizes are known, they stay relative: IoU does not depend on scale.
    """
    sides = [side for side in (predictions, truths) if side is not None]
    if not any(side.shares for side in sides):
        return predictions, truths
    own_sizes = _sizes([side.datums for side in sides])
    image_sizes = _sizes([datums, own_sizes])
    other = own_sizes.join(image_sizes, on=["datum_id", *_SIZE], how="anti").join(
        image_sizes, on="datum_id"
    )
    if other.height:
        image, width, height, wide, high = other.row(0)
        message = (
            f"{other.height:,} images have another size in the table of datums than in their files"
            f" ({image!r}: {wide:g} x {high:g}, and {width:g} x {height:g}): the table's counts."
        )
        truths.notes += (Note("sizes_differ", message, other.height),)
    unsized = {}  # images without a known size, of each side
    for side in (side for side in sides if side.shares):
        used = side.frame.select(pl.col("datum_id").cast(pl.String)).unique().collect()
        unknown = used.join(image_sizes, on="datum_id", how="anti", nulls_equal=False)
        unsized[id(side)] = sorted(unknown["datum_id"].drop_nulls().to_list())
    if all(side.shares for side in sides) and any(len(names) for names in unsized.values()):
        truths.notes += (_unsized(sides, unsized, image_sizes),)
        return predictions, truths
    scaled = [_scaled(side, image_sizes, unsized) for side in sides]
    return (scaled[0] if predictions is not None else None), scaled[-1]


def _unsized(sides: list[Source], unsized: dict[int, list[str]], sizes: pl.DataFrame) -> Note:
    """Return a note or error on relative coordinates with unknown image sizes, all or some."""
    names = sorted({name for names in unsized.values() for name in names})
    if not sizes.height:
        message = "coordinates are shares of the images, whose sizes are not known"
        return Note(SIZES_UNKNOWN, f"{message}: numbers by area of objects are meaningless. {_WAY}")
    files: list[str] = []
    for side in sides:
        if side.datums is not None and {"file_name", *_SIZE} <= {*side.datums.columns}:
            unreadable = pl.col("file_name").is_not_null() & pl.col("width").is_null()
            files += side.datums.filter(unreadable)["file_name"].to_list()
    message = (
        f"the sizes of {count_of(len(names), 'image')} are not known "
        f"({listing(names[:5], len(names))}), and those of {sizes.height:,} are, so coordinates "
        "stay shares and numbers by area of objects are meaningless."
    )
    if files:
        broken = [*dict.fromkeys(files)]
        message += f" Files that cannot be read: {listing(broken[:5], len(broken))}; repair them."
    return Note(SIZES_OF_SOME, f"{message} {_WAY}", len(names))


SIZES_UNKNOWN, SIZES_OF_SOME = "sizes_unknown", "sizes_of_some_unknown"
"""Kinds of notes: areas are shares of images, of which none, or not all, have a known size."""
_WAY = (
    "Keep the images next to the labels, or give a table of datum_id, width and height as "
    f"{option('datums', 'TABLE')}."
)


def _sizes(tables: list[pl.DataFrame | None]) -> pl.DataFrame:
    """Return width and height by image, from the first table that has them."""
    sizes = []
    for table in tables:
        if table is None or not {"datum_id", *_SIZE} <= {*table.columns}:
            continue
        keyed = table.select(
            pl.col("datum_id").cast(pl.String), pl.col(*_SIZE).cast(pl.Float64, strict=False)
        )
        for name in _SIZE:
            odd = table[name].is_not_null() & ~((keyed[name] > 0) & keyed[name].is_finite())
            if odd.fill_null(value=True).any():
                row = int(odd.fill_null(value=True).arg_true()[0])
                raise InputError(
                    f"datums: column {name!r} has {table[name][row]!r} in row {row} (rows count "
                    "from 0), which is not a size in pixels. Correct it, or make it null.",
                    code="not_a_size",
                    column=name,
                    rows=[row],
                )
        sizes.append(keyed)
    none = pl.DataFrame(schema={"datum_id": pl.String, "width": pl.Float64, "height": pl.Float64})
    return pl.concat([none, *sizes]).drop_nulls().unique("datum_id", keep="first")


def _scaled(side: Source, sizes: pl.DataFrame, unsized: dict[int, list[str]]) -> Source:
    if not side.shares:
        return side
    names = unsized[id(side)]
    if names:
        some = ", ".join(repr(name) for name in names[:N_EXAMPLES])
        raise InputError(
            f"{side.description}: coordinates are shares of the images, and the other side's are"
            f" pixels. The sizes of {len(names):,} images are not known, first {some}. {_WAY}",
            code="image_size_missing",
            count=len(names),
            value=names[0],
        )
    columns = side.frame.collect_schema().names()
    wide, high = pl.col("__width"), pl.col("__height")
    scaled = [pl.col(name) * wide for name in _WIDE if name in columns]
    scaled += [pl.col(name) * high for name in _HIGH if name in columns]
    keyed = sizes.rename({"width": "__width", "height": "__height"}).lazy()
    frame = (
        side.frame.with_columns(pl.col("datum_id").cast(pl.String).alias("__image"))
        .join(keyed, left_on="__image", right_on="datum_id", how="left", maintain_order="left")
        .with_columns(scaled)
    )
    frame = frame.with_columns(
        _times(column, depth)
        for column, depth in (("polygon", 3), ("keypoints", 2))
        if column in columns
    )
    side.frame = frame.select(columns)
    side.shares = False
    return side


def _times(column: str, depth: int) -> pl.Expr:
    """Scale points to pixels: x by the width and y by the height of the row's image.

    Args:
        column: lists of points, or lists of those; values after x and y are unchanged.
    """
    dtype: Any = pl.Float64
    for _ in range(depth):
        dtype = pl.List(dtype)

    def scaled(value: Any, size: tuple[float, float]) -> Any:
        if isinstance(value[0], list):
            return [scaled(one, size) for one in value]
        return [value[0] * size[0], value[1] * size[1], *value[2:]]

    def of_rows(rows: pl.Series) -> pl.Series:
        out = [
            scaled(row[column], (row["__width"], row["__height"])) if row[column] else row[column]
            for row in rows
        ]
        return pl.Series(column, out, dtype=dtype)

    both = pl.struct(column, "__width", "__height")
    return both.map_batches(of_rows, return_dtype=dtype).alias(column)


# Matching of two sides with different image and class ids by name.
# Complete COCO files of predictions often renumber images and categories, but keep the names.

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


_CATEGORIES = _Kind(
    "categories",
    "labels",
    "label_value",
    "label_name",
    "name",
    (str, lambda name: " ".join(re.split(r"[\s_-]+", name.casefold())).strip()),
)
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
    """
    for kind, given in ((_CATEGORIES, labels), (_IMAGES, datums)):
        listed = getattr(truths, kind.table)
        ours = _table(predictions, kind)
        theirs = (
            listed if listed is not None else given if given is not None else _table(truths, kind)
        )
        doubt = False
        if ours is None and theirs is not None:
            ours, doubt = _numbered(predictions, kind, theirs)
        elif theirs is None and ours is not None:
            theirs, doubt = _numbered(truths, kind, ours)
        if ours is None or theirs is None or kind.column not in theirs.columns:
            continue
        equal = ours.schema[kind.column] == theirs.schema[kind.column]
        if not all(_has_names(table, kind) for table in (ours, theirs)):
            if equal and getattr(predictions, kind.table) is not None:
                predictions = _noted(predictions, _unnamed(kind, ours, theirs))
            continue
        our_names, their_names = _as_they_match(kind, ours, theirs)
        doubt = doubt and not sure
        if not equal and (cast := _as_numbers(kind, predictions, theirs, (our_names, their_names))):
            predictions = cast
            continue
        if not equal and theirs is not given:
            if kind is _IMAGES and datums is None and not sure:
                _refuse_none_named(our_names, their_names)
            predictions, truths = _both_named(
                kind, (predictions, our_names), (truths, their_names), doubt
            )
            continue
        wrong = _contradictions(our_names, their_names)
        if not wrong:
            continue
        used = _used(predictions, kind)
        new = _new_ids(kind, (our_names, ours, used), (their_names, theirs), wrong)
        frame = predictions.frame.with_columns(pl.col(kind.column).replace([*new], [*new.values()]))
        message = f"{_describe_differences(kind, wrong)} They are matched by {kind.by}."
        predictions = _noted(
            msgspec.structs.replace(predictions, frame=frame),
            Note("ids_matched_by_name", message, len(wrong)),
        )
    return predictions, truths


def named_as(predictions: Source, truths: Source, ids: pl.Series) -> Source | None:
    """Replace integer ids of images by their names in the ground truths, as other runs have them.

    Args:
        ids: names in the other runs.

    Returns:
        None if the ground truths do not have all these names.
    """
    table, column = truths.datums, _IMAGES.column
    if table is None or not _has_names(table, _IMAGES):
        return None
    named_ids = table.select(column, _name_column(table, _IMAGES)).drop_nulls()
    for reading in _IMAGES.readings:
        names = [reading(name) for name in named_ids.to_series(1)]
        if ids.is_in(names).all():
            key = pl.col(column)
            text = key.replace_strict(
                named_ids.to_series(0), names, default=key.cast(pl.String), return_dtype=pl.String
            )
            frame = predictions.frame.with_columns(text)
            return msgspec.structs.replace(predictions, frame=frame)
    return None


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
    if other.schema[kind.column] != pl.String:
        return None, False
    names = [_stem(name) for name in other[_name_column(other, kind)].drop_nulls()]
    ended = [(match[0], name) for name in names if (match := _DIGITS.search(name))]
    numbers = {int(digits): name for digits, name in ended}
    if len(numbers) < len(names):
        return None, False
    used = _used(source, kind).drop_nulls()
    if not any(i in numbers for i in used):
        return None, False
    named = pl.DataFrame(
        {kind.column: used, kind.name: [numbers.get(i, str(i)) for i in used]},
        schema={kind.column: used.dtype, kind.name: pl.String},
    )
    in_range = [number for number in numbers if number < 1 << 63]
    return named, doubtful(used.cast(pl.Int64, strict=False).drop_nulls(), pl.Series(in_range))


def _used(source: Source, kind: _Kind) -> pl.Series:
    return source.frame.select(pl.col(kind.column).unique()).collect()[kind.column].sort()


def _noted(source: Source, note: Note) -> Source:
    return msgspec.structs.replace(source, notes=(*source.notes, note))


def _as_numbers(
    kind: _Kind, predictions: Source, theirs: pl.DataFrame, names: tuple[Names, Names]
) -> Source | None:
    """Read text ids of predictions as numbers, if at least as many match so as by name.

    Args:
        theirs: integer ids of the ground truths.
        names: of both sides, by id, as most match.

    Returns:
        the predictions with integer ids; None if their ids are names.
    """
    their_ids = theirs[kind.column]
    if predictions.format == "annotations" or not their_ids.dtype.is_integer():
        return None
    texts = _used(predictions, kind).drop_nulls()
    numbers = texts.cast(pl.Int64, strict=False)
    if texts.dtype != pl.String or not (numbers.cast(pl.String) == texts).all():
        return None
    our_names, their_names = names
    ids = {name: i for i, name in their_names.items()}
    named = {i: ids[name] for i, name in our_names.items() if name in ids}
    common = int(numbers.is_in(their_ids.cast(pl.Int64).implode()).sum())
    if not common or common < len(named):
        return None
    message = (
        f"{kind.what} are texts in the predictions and integers in the ground truths: "
        f"{common:,} of {len(texts):,} are the same as numbers, and are matched so."
    )
    other = {i: theirs_id for i, theirs_id in named.items() if i != str(theirs_id)}
    if other:
        first, number = next(iter(other.items()))
        message += (
            f" {len(named):,} are also the {kind.by} of one of the {kind.what}, {len(other):,} of"
            f" another one: {first!r} is the {kind.by} of {number}. If that is meant, write"
            f" the ids of the ground truths in the predictions: {number} for {first!r}."
        )
    expr = pl.col(kind.column).cast(their_ids.dtype, strict=False)
    return _noted(
        msgspec.structs.replace(predictions, frame=predictions.frame.with_columns(expr)),
        Note("ids_matched_as_numbers", message, common, warning=bool(other)),
    )


def _refuse_none_named(predicted_names: Names, true_names: Names) -> None:
    """Refuse images that are numbers on one side and names on the other, none of them the same."""
    ours, theirs = (
        pl.Series([*names.values()], dtype=pl.String) for names in (predicted_names, true_names)
    )
    if (
        not predicted_names
        or not true_names
        or {*ours} & {*theirs}
        or mend(ours.sort(), theirs.sort())
    ):
        return
    sides = [
        samples(pl.Series([*names])) + (f", named {samples(values)}" if other else "")
        for names, values in ((predicted_names, ours), (true_names, theirs))
        for other in [[*names] != [*values]]
    ]
    raise InputError(
        "predictions and ground truths have no datum_id in common: predictions have "
        f"{count_of(len(predicted_names), 'image')} ({sides[0]}), ground truths "
        f"{len(true_names):,} ({sides[1]}). Are both of the same dataset? Write the ids or the "
        "names of the ground truths in the predictions.",
        code="no_common_id",
        column="datum_id",
    )


def _both_named(
    kind: _Kind, ours: tuple[Source, Names], theirs: tuple[Source, Names], doubt: bool
) -> tuple[Source, Source]:
    """Replace the ids of both sides by names, if one has numbers.

    Args:
        doubt: whether numbers in names match no better than by chance.
    """
    sides = []
    for (source, names), side in ((ours, "predictions"), (theirs, "ground truths")):
        unnamed = [i for i in _used(source, kind).drop_nulls() if i not in names]
        twice = [name for name, count in Counter(names.values()).items() if count > 1]
        if unnamed or twice:
            why = (
                f"{unnamed[0]!r} of the {side} has no {kind.by}"
                if unnamed
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
    mismatch = f"{kind.what} are numbers on one side and names on the other"
    if doubt:
        few = min(len(ours[1]), len(theirs[1]))
        message = (
            f"{mismatch}: they are matched by the last number in a name, and {common:,} of {few:,}"
            " match, which may be chance. If the numbers are places in a list, every one of the"
            f" {kind.what} is compared with another: give both sides the same ids."
            f"{_one_off(ours[1], theirs[1]) if kind is _IMAGES else ''}"
        )
        note = Note("ids_matched_by_number", message, common, warning=True)
        return _noted(sides[0], note), sides[1]
    message = f"{mismatch}: both are matched by {kind.by}, and {common:,} are the same."
    return _noted(sides[0], Note("ids_matched_by_name", message, common)), sides[1]


def _one_off(ours: Names, theirs: Names) -> str:
    """The option that moves numbers of the predictions by one, if then all have a name."""
    mine, targets = (_numbers(side) for side in (ours, theirs))
    for step in (-1, 1):
        moved = {i + step for i in mine}
        if len(mine) == len(ours) and (moved <= targets or targets <= moved):
            way = option("id_format", ["number", f"{step:+d}"])
            return f" Once those of the predictions are changed by {step:+d} all match: {way}."
    return ""


def _numbers(side: Names) -> set[int]:
    """Ids that are numbers, and the numbers in the names of others."""
    result = set()
    for i, name in side.items():
        if isinstance(i, int):
            result.add(i)
        elif (digits := _DIGITS.search(name)) is not None:
            result.add(int(digits[0]))
    return result


Wrong = list[tuple[Any, str, Any, str]]
"""Contradictions: id and name in the predictions, id and name in the ground truths."""
Names = dict[Any, str]
"""Id to name."""


def _has_names(table: pl.DataFrame, kind: _Kind) -> bool:
    return table.schema[_name_column(table, kind)] == pl.String


def _name_column(table: pl.DataFrame, kind: _Kind) -> str:
    """Return the column of names; that of ids if there is no other."""
    return kind.name if kind.name in table.columns else kind.column


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
    unnamed = any(kind.name not in names for names in columns)
    best: tuple[Names, Names] = ({}, {})
    most = -1
    for pair in sorted(product(*columns), key=lambda pair: unnamed and pair[0] != pair[1]):
        named = [
            dict(table.select(id=kind.column, name=name).drop_nulls().iter_rows())
            for table, name in zip((ours, theirs), pair, strict=True)
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


def _contradictions(predicted_names: Names, true_names: Names) -> Wrong:
    """Ids with another name in the ground truths, and names with another id."""
    ids = {name: i for i, name in true_names.items()}
    result: Wrong = []
    for i, name in predicted_names.items():
        if true_names.get(i, name) != name:
            result.append((i, name, i, true_names[i]))
        elif i not in true_names and name in ids:
            result.append((i, name, ids[name], name))
    return result


def _unnamed(kind: _Kind, ours: pl.DataFrame, theirs: pl.DataFrame) -> Note:
    """Note that ids are used unchanged, since names are missing."""
    sized = all({*_SIZE} <= {*table.columns} for table in (ours, theirs))
    if kind is _IMAGES and sized and ours.schema[kind.column] == theirs.schema[kind.column]:
        joined = ours.select(kind.column, *_SIZE).join(
            theirs.select(kind.column, *_SIZE), on=kind.column, suffix="_there"
        )
        other = pl.any_horizontal(pl.col(name) != pl.col(f"{name}_there") for name in _SIZE)
        wrong = joined.filter(other)
        if wrong.height:
            first, width, height, there_width, there_height = wrong.row(0)
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
    message = (
        f"{kind.what} of the {side}' file have no {kind.by}: ids are taken to mean the same in both"
        " files."
    )
    return Note("ids_without_names", message)


def _describe_differences(kind: _Kind, wrong: Wrong) -> str:
    examples = "; ".join(
        f"{mine!r} ({name!r}) in the predictions, {other!r} ({other_name!r}) in the ground truths"
        for mine, name, other, other_name in wrong[:N_EXAMPLES]
    )
    what = f"{len(wrong):,} ids of {kind.what}"
    return f"{what} differ between the two files by their names: {examples}."


def _new_ids(
    kind: _Kind,
    ours: tuple[Names, pl.DataFrame, pl.Series],
    theirs: tuple[Names, pl.DataFrame],
    wrong: Wrong,
) -> dict[Any, Any]:
    """Map ids of the predictions to those of the ground truths.

    Args:
        ours: names in the predictions' table, that table, and the ids in their rows.
    """
    (our_names, table, used), (their_names, their_table) = ours, theirs

    def refuse(why: str) -> None:
        raise InputError(
            f"{_describe_differences(kind, wrong)} They cannot be matched by {kind.by}: {why}. "
            f"Number both files alike; or, if ids are right as they are, remove {kind.by} from the "
            f"predictions' {kind.what}.",
            code="ids_differ",
            count=len(wrong),
        )

    if table.schema[kind.column] != their_table.schema[kind.column]:
        refuse("ids are integers in one file and strings in the other")
    ids = {name: i for i, name in their_names.items()}
    if len(ids) < len(their_names) or len({*our_names.values()}) < len(our_names):
        refuse(f"some {kind.by} appears more than once")
    nameless = used.filter(used.is_not_null() & ~used.is_in([*our_names])).to_list()
    if nameless:
        refuse(f"predictions have the id {nameless[0]!r}, which has no {kind.by} in their file")
    used_ids = {*their_table[kind.column].to_list()}
    for i, name in our_names.items():
        if name not in ids and i in used_ids:
            refuse(f"{name!r} is only in the predictions, and its id {i!r} another's")
    return {i: ids.get(name, i) for i, name in our_names.items()}


class Tables(msgspec.Struct, frozen=True):
    """Tables of a call as users pass them: paths, globs, lists of paths, or tables.

    Attributes:
        predictions: predictions; both sides if there are no ground truths; a run that is already
            scored, in calls that take one.
        datums: ids of all datums.
        labels: declared classes.
        storage_options: for remote paths, as Polars takes them.
        matched: rows of one table are matched with those of other runs, so that columns which
            identify them, such as series and time, replace missing ids.
    """

    predictions: Any = None
    ground_truths: Any = None
    datums: Any = None
    labels: Any = None
    storage_options: dict[str, str] | None = None
    matched: bool = False


class Inputs(msgspec.Struct):
    """Tables whose columns are known but whose rows are not yet read.

    Attributes:
        sources: role to source: predictions and ground truths, or one table with both sides; datums
            and labels if given or contained in the ground truths.
        schemas: role to columns.
        room: memory limit for reading; None for any.
        matched: see :class:`Tables`.
    """

    sources: dict[str, Source]
    schemas: dict[str, dict[str, pl.DataType]]
    room: Room | None = None
    matched: bool = False


def open_inputs(
    tables: Tables,
    options: Options | None = None,
    *,
    room: Room | None = None,
    extras: frozenset[str] | None = None,
) -> Inputs:
    """Open all given tables; a COCO ground-truth file also provides datums and labels.

    Args:
        options: box_format applies here, and whether masks can count.
        room: memory limit for reading; None for any.
        extras: geometry fields of COCO rows to read, in addition to boxes; by default those that
            the options compare.

    Raises:
        OptionError: files that must be read as a whole exceed the memory.
        ReadError: a file that is missing or cannot be read.
        InputError: an argument that is not a table.
        ExecutorError: a fork that cannot read; see :mod:`evalengine.forked`.
    """
    refuse_cut_off()
    options = options or Options()
    predictions, ground_truths = tables.predictions, tables.ground_truths
    arguments: dict[str, Any] = {PREDICTIONS: predictions, GROUND_TRUTHS: ground_truths}
    ambiguous = False
    if ground_truths is None:
        arguments = {TABLE: predictions}
    elif not isinstance(predictions, _FRAMES) or not isinstance(ground_truths, _FRAMES):
        predictions = empty_images(predictions, ground_truths)
        predictions, ground_truths = (
            _nothing_tracked(predictions, ground_truths),
            _nothing_tracked(ground_truths, predictions, tracks=True),
        )
        arguments = {PREDICTIONS: predictions, GROUND_TRUTHS: ground_truths}
        refuse_uneven(predictions, ground_truths)
        arguments = paired_values(predictions, ground_truths, tables.labels, options) or arguments
        # Open the ground truths first if they may be evidence for the format of the predictions.
        ambiguous = _may_be_ambiguous(arguments.get(PREDICTIONS))
    opened: dict[str, Source] = {}
    if extras is None:
        extras = needed_fields(options.iou_type, options.convert_to)
    if room is not None and room.given:
        refuse_whole(room, dict(map(_foreseen, arguments.values())))
    for role in reversed(arguments) if ambiguous else arguments:
        opened[role] = open_source(
            arguments[role],
            storage_options=tables.storage_options,
            box_format=options.box_format,
            extras=extras,
            room=room,
            other=opened.get(GROUND_TRUTHS),
        )
    sources = dict(reversed(opened.items())) if ambiguous else opened
    first = sources.get(TABLE) or sources[PREDICTIONS]
    if first.results is not None:  # a file of both sides; its notes are those of the ground truths
        predicted = msgspec.structs.replace(first, frame=first.results, results=None, notes=())
        sources = {PREDICTIONS: predicted, GROUND_TRUTHS: sources.get(GROUND_TRUTHS, first)}
    last = next(reversed(sources))
    if PREDICTIONS in sources and sources[PREDICTIONS].format == "tracks":
        sources[PREDICTIONS] = placed(sources[PREDICTIONS], sources[last].images)
    if tables.datums is not None:
        sources[DATUMS] = open_datums(tables.datums, tables.storage_options)
    if tables.labels is not None:
        sources[LABELS] = open_labels(tables.labels, tables.storage_options)
    _unify(sources, last, options)
    if "raster" in {*map(attrgetter("format"), sources.values())}:
        unify_sides(sources, options)
    if GROUND_TRUTHS in sources:
        joined = _by_row(sources, options)
        if joined is not None:
            paired = joined[TABLE]
            notes = (*paired.notes, *differing_indexes(predictions, ground_truths))
            sources = joined | {TABLE: msgspec.structs.replace(paired, notes=notes)}
    schemas = {role: schema_of(source) for role, source in sources.items()}
    if TABLE in schemas and not _SAMPLES.isdisjoint(schemas[TABLE]):
        from .sources.samples import read_samples

        read_samples(sources[TABLE], schemas[TABLE], options)
        schemas[TABLE] = schema_of(sources[TABLE])
    return Inputs(sources, schemas, room, tables.matched)


def _foreseen(thing: Any) -> tuple[str, int]:
    """Return the name of a path or of a list of paths, and its size in memory; 0 of tables."""
    paths = list(thing) if isinstance(thing, (list, tuple)) else [thing]
    if not all(isinstance(path, (str, os.PathLike)) for path in paths):
        return "", 0
    names = [*map(os.fspath, paths)]
    return ", ".join(names[:1]), foreseen_size(names)


_SAMPLES = frozenset({"doc_id", "sample_id"})
"""Columns of which every table of a harness's samples has one."""

_FRAMES = (pl.DataFrame, pl.LazyFrame)


def _nothing_tracked(thing: Any, other: Any, *, tracks: bool = False) -> Any:
    """Return one side; empty text files as files of the other side's format without rows.

    Args:
        tracks: only if the other side has tracks: other ground truths without rows have no images.
    """
    if not all(isinstance(path, (str, os.PathLike)) for path in (thing, other)):
        return thing
    path, of_other = os.fspath(thing), os.fspath(other)
    if not _is_empty(path):
        return thing
    from .annotations.format import look_at
    from .annotations.registry import open_annotations, recognised
    from .where import no_rows

    match, look = recognised([of_other]), look_at([path])
    if match is None or look is None or (tracks and match[0].datum != "sequence"):
        return thing
    source = open_annotations(match[0], look)
    if match[0].datum != "sequence" and "score" not in source.frame.collect_schema():
        source.frame = source.frame.with_columns(score=pl.lit(0.0))
    if tracks:  # all sequences without an object are rarely deliberate
        source.notes += tuple(no_rows({}, {PREDICTIONS: 1, GROUND_TRUTHS: 0}))
    return source


def _is_empty(path: str) -> bool:
    """Return whether a path is an empty text file, or has only such files and sequences' facts."""
    if not os.path.isdir(path):
        return path.endswith(".txt") and os.path.isfile(path) and not os.path.getsize(path)
    files = [name for name in os.listdir(path) if name != "seqinfo.ini"]
    return bool(files) and all(_is_empty(os.path.join(path, name)) for name in files)


def _may_be_ambiguous(thing: Any) -> bool:
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


def _unify(sources: dict[str, Source], last: str, options: Options) -> None:
    """Unify annotations: ids, pixel coordinates, and tables contained in the files.

    Args:
        sources: by role; modified in place.
    """
    predictions, truths = sources.get(PREDICTIONS), sources[last]
    if truths.format in _NAMED or (predictions is not None and predictions.format in _NAMED):
        given_tables = {
            role: sources[role].frame.collect() if role in sources else None
            for role in (DATUMS, LABELS)
        }
        if predictions is not None:
            predictions, truths = by_name(
                predictions,
                truths,
                given_tables[DATUMS],
                given_tables[LABELS],
                sure=options.id_format is not None,
            )
            predictions, truths = note_numeric_classes(predictions, truths, given_tables[LABELS])
        predictions, truths = in_edges(predictions, truths, options)
        predictions, truths = in_pixels(predictions, truths, given_tables[DATUMS])
        sources |= {last: truths} | ({PREDICTIONS: predictions} if predictions else {})
    for role, along in ((DATUMS, truths.datums), (LABELS, truths.labels)):
        if along is not None and role not in sources:
            sources[role] = Source(along.lazy(), truths.description, truths.format)


def _by_row(sources: dict[str, Source], options: Options) -> dict[str, Source] | None:
    """Join two tables without ids, truths and answers, row by row."""
    sides = [sources[PREDICTIONS], sources[GROUND_TRUTHS]]
    schemas = [*map(schema_of, sides)]
    renames = options.columns or {}
    names = {*map(folded, chain(*schemas))}
    if not renames and not names.isdisjoint(_datum_names()):
        return None
    finders = [
        Finder(schema, role, renames)
        for schema, role in zip(schemas, (PREDICTIONS, GROUND_TRUTHS), strict=True)
    ]
    if any(_has(find, column) for find in finders for column in _datum_columns()):
        return None
    fitting = [table for task in task_names() if (table := _fits(task, finders)) is not None]
    for table in fitting:
        by_names = {column.name: column for column in table.columns}
        if any(all(_has(find, by_names[name]) for find in finders) for name in table.id_columns):
            return None
    if not fitting:
        return None
    columns = fitting[0].columns
    names = {name for column in columns for name in (column.name, *column.aliases)}
    sliced = {piece for entry in options.columns_of_datums for piece in entry.split("*")}
    idle = {}
    for find, schema in zip(finders, schemas, strict=True):
        levels = {name for column in columns for name in numbered_columns(column, schema)}
        read = {*find.candidates(names), *find.used, *sliced, *levels}
        idle[find.side] = [name for name in schema if name not in read]
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


@cache
def _datum_columns() -> list[Column]:
    """The columns that name datums, under all the names that any task knows them by."""
    tables = [table for task in task_names() for table in contracts(task).values()]
    named = [column for table in tables for column in table.columns if column.name == table.datum]
    return list(dict.fromkeys([DATUM_ID, *named]))


@cache
def _datum_names() -> frozenset[str]:
    names = (name for one in _datum_columns() for name in (one.name, *one.aliases))
    return frozenset(map(folded, names))


def _has(find: Finder, column: Column) -> bool:
    names = (column.name, *column.aliases)
    matches = find.candidates(names) or numbered_columns(column, find.schema)
    return column.name in find.mapped or bool(matches)


def _paired(
    sources: dict[str, Source],
    sides: list[Source],
    schemas: list[dict[str, pl.DataType]],
    idle: dict[str, list[str]],
) -> dict[str, Source]:
    """Make one source of two tables, column-wise."""
    way = option("columns", {"mine": "datum_id"})
    shared = [name for name in schemas[0] if name in schemas[1]]
    if shared:
        raise InputError(
            "two tables without datum ids are paired row by row, and both have the columns "
            f"{shared[:5]}. If one of these is the id of the datums, write {way}; otherwise remove "
            "them from one of the tables.",
            code="no_id",
            columns=shared,
        )
    heights = [int(side.frame.select(pl.len()).collect().item()) for side in sides]
    if heights[0] != heights[1]:
        raise InputError(
            "two tables without datum ids are paired row by row, but the predictions have "
            f"{heights[0]:,} rows and the ground truths {heights[1]:,}: give both a datum_id, or "
            f"name that column: {way}.",
            code="no_id",
            lengths=heights,
        )
    message = "neither table has datum ids: paired row by row."
    strange = [
        f"{role.replace('_', ' ')}: {', '.join(map(repr, columns[:5]))}"
        for role, columns in idle.items()
        if columns
    ]
    if strange:
        message += (
            f" Unread columns ({'; '.join(strange)}) are not compared: if one is an id, write "
            f"{way}."
        )
    paired = Source(
        pl.concat([side.frame for side in sides], how="horizontal"),
        f"{sides[0].description} and {sides[1].description}, row by row",
        "csv" if all(side.text for side in sides) else "memory",
        notes=(
            *sides[0].notes,
            *sides[1].notes,
            Note("paired_by_row", message, heights[0], warning=bool(strange)),
        ),
    )
    rest = {role: source for role, source in sources.items() if role in (DATUMS, LABELS)}
    return {TABLE: paired, **rest}
