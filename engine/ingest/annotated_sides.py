"""Reconciliation of two annotated sides: roles, classes, pixel coordinates."""

from __future__ import annotations

import os
from typing import Any

import msgspec
import polars as pl

from evalengine.schemas.contract import GROUND_TRUTHS, PREDICTIONS, TABLE
from evalengine.schemas.errors import InputError
from evalengine.schemas.options import Options
from evalengine.schemas.tables import TABLES
from evalengine.schemas.wording import option

from .annotations.format import NAMELESS
from .problems import count_of, listing
from .sources.source import Source

_WIDE = ("xmin", "xmax", "box_width")
_HIGH = ("ymin", "ymax", "box_height")
_SIZE = ("width", "height")
_OF_EDGES = ("coco", "annotations")  # formats whose corners are known to be edges, or pixels
_SHOWN = 3


def sides_of(sources: dict[str, Source]) -> dict[str, Source]:
    """Assign files that contain both sides to their roles: predictions, ground truths, or both."""
    alone = sources.get(TABLE)
    if alone is not None and alone.found is not None:
        return {PREDICTIONS: _found(alone), GROUND_TRUTHS: alone}
    ours = sources.get(PREDICTIONS)
    if ours is not None and ours.found is not None:
        return sources | {PREDICTIONS: _found(ours)}
    return sources


def _found(source: Source) -> Source:
    """Return the detections of a file that contains both sides, without its notes."""
    assert source.found is not None
    return msgspec.structs.replace(source, frame=source.found, found=None, notes=(), warnings=())


def classes_told(
    predictions: Source, truths: Source, given: pl.DataFrame | None
) -> tuple[Source, Source]:
    """Add notes on numeric classes to both sides, once the other side is known.

    Names from the other side, or from a table of labels, apply to both. Predicted classes that are
    missing in the ground truths' declared list belong to another list.
    """
    known = truths.labels if given is None else given
    if known is not None and "label_name" in known.columns:
        predictions = _named(predictions)
    if predictions.labels is not None and "label_name" in predictions.labels.columns:
        truths = _named(truths)
    of_files = predictions.format == truths.format == "annotations"
    if given is not None or truths.labels is None or not of_files:
        return predictions, truths
    declared = truths.labels["label_value"]
    rows = predictions.frame.select("datum_id", "label_value").collect()
    if rows.schema["label_value"] != declared.dtype:
        return predictions, truths
    odd = rows.filter(~pl.col("label_value").is_in(declared.implode()))
    if not odd.height:
        return predictions, truths
    values = odd["label_value"].unique().sort().to_list()
    images = odd["datum_id"].unique(maintain_order=True).head(_SHOWN).to_list()
    stems = {os.path.splitext(os.path.basename(file))[0]: file for file in predictions.files}
    first = ", ".join(repr(stems.get(image.rsplit("/", 1)[-1], image)) for image in images)
    classes = count_of(len(values), "class", "classes")
    said = (
        f"{odd.height:,} of {rows.height:,} predictions are of {classes} that the ground truths'"
        f" list of {len(declared):,} lacks ({listing(values)}), first in {first}: were they made"
        f" with another list of classes? If so, map them with {option('label_map')}."
    )
    told = (*predictions.warnings, ("classes_not_declared", said, odd.height))
    return msgspec.structs.replace(predictions, warnings=told), truths


def _named(source: Source) -> Source:
    notes = tuple(note for note in source.notes if note[0] != NAMELESS)
    return msgspec.structs.replace(source, notes=notes)


def in_edges(
    predictions: Source | None, truths: Source, options: Options
) -> tuple[Source | None, Source]:
    """Convert corners of both sides to pixel edges, unless the dialect compares them as written.

    Pixel 1 spans 0 to 1: first corners move by one, last ones are already edges, as in detectron2's
    reader of Pascal VOC.

    Args:
        predictions: None if one table is given.
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
        known = [side is not None and side.format in _OF_EDGES for side in sides]
        for at, called, other in ((0, "predictions", "ground truths"),
                                  (1, "ground truths", "predictions")):  # fmt: skip
            if counted[at] and known[1 - at] and not counted[1 - at]:
                said = (
                    f"corners of the {called} are pixels that count from 1, those of the {other}"
                    f" are edges: dialect {options.dialect} compares both as written. Add 1 to xmin"
                    f" and ymin of the {other} to make them pixels."
                )
                truths.notes = (*truths.notes, ("edges_next_to_pixels", said, None))
        return predictions, truths
    for side, moved in zip(sides, counted, strict=True):
        if side is None or not moved:
            continue
        side.frame = side.frame.with_columns(pl.col("xmin", "ymin") - 1)
        said = (
            f"{side.description}: corners are pixels that count from 1, and the last is in the box,"
            " as in Pascal VOC. Their edges are compared: 1 is taken from xmin and ymin."
            f" {option('box_format', 'xyxy')} compares corners as written; so do dialects"
            f" {listing(sorted(keeping))}."
        )
        side.notes = (*side.notes, ("pixels_to_edges", said, None))
    return predictions, truths


def in_pixels(
    predictions: Source | None, truths: Source, given: pl.DataFrame | None
) -> tuple[Source | None, Source]:
    """Convert relative coordinates of either side to pixels.

    Image sizes come from a table of datums, from the side itself, or from the other. If both sides
    are relative and no sizes are known, they stay relative: IoU does not depend on scale.

    Args:
        predictions: None if one table is given.

    Raises:
        InputError: required sizes are missing; names the first images.
    """
    sides = [side for side in (predictions, truths) if side is not None]
    if not any(side.shares for side in sides):
        return predictions, truths
    own = _sizes([side.datums for side in sides])
    known = _sizes([given, own])
    other = own.join(known, on=["datum_id", *_SIZE], how="anti").join(known, on="datum_id")
    if other.height:
        image, width, height, wide, high = other.row(0)
        said = (
            f"{other.height:,} images have another size in the table of datums than in their files"
            f" ({image!r}: {wide:g} x {high:g}, and {width:g} x {height:g}): the table's counts."
        )
        truths.notes = (*truths.notes, ("sizes_differ", said, other.height))
    lacking = {id(side): _lacking(side, known) for side in sides if side.shares}
    if all(side.shares for side in sides) and any(len(names) for names in lacking.values()):
        truths.notes = (*truths.notes, _unsized(sides, lacking, known))
        return predictions, truths
    scaled = [_scaled(side, known, lacking) for side in sides]
    return (scaled[0] if predictions is not None else None), scaled[-1]


def _unsized(
    sides: list[Source], lacking: dict[int, list[str]], known: pl.DataFrame
) -> tuple[str, str, int | None]:
    """Return a note or error on relative coordinates with unknown image sizes, all or some."""
    lone = sorted({name for names in lacking.values() for name in names})
    if not known.height:
        said = "coordinates are shares of the images, whose sizes are not known"
        return SIZES_UNKNOWN, f"{said}: numbers by area of objects mean nothing. {_WAY}", None
    files: list[str] = []
    for side in sides:
        if side.datums is not None and {"file_name", *_SIZE} <= {*side.datums.columns}:
            there = pl.col("file_name").is_not_null() & pl.col("width").is_null()
            files += side.datums.filter(there)["file_name"].to_list()
    said = (
        f"the sizes of {count_of(len(lone), 'image')} are not known"
        f" ({listing(lone[:5], len(lone))}), and those of {known.height:,} are, so that"
        " coordinates stay shares and numbers by area of objects mean nothing."
    )
    if files:
        broken = [*dict.fromkeys(files)]
        said += f" Not to be read as pictures: {listing(broken[:5], len(broken))}: repair them."
    return SIZES_OF_SOME, f"{said} {_WAY}", len(lone)


SIZES_UNKNOWN, SIZES_OF_SOME = "sizes_unknown", "sizes_of_some_unknown"
"""Kinds of notes: areas are shares of images, of which none, or not all, have a known size."""
_WAY = (
    "Keep the images beside the labels, or give a table of datum_id, width and height as"
    f" {option('datums', 'TABLE')}."
)


def _sizes(tables: list[pl.DataFrame | None]) -> pl.DataFrame:
    """Return width and height by image, from the first table that has them."""
    found = []
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
                    f"datums: column {name!r} holds {table[name][row]!r} in row {row} (rows count"
                    " from 0), which is not a size in pixels. Correct it, or leave it empty.",
                    code="not_a_size",
                    column=name,
                    rows=[row],
                )
        found.append(keyed)
    none = pl.DataFrame(schema={"datum_id": pl.String, "width": pl.Float64, "height": pl.Float64})
    return pl.concat([none, *found]).drop_nulls().unique("datum_id", keep="first")


def _lacking(side: Source, known: pl.DataFrame) -> list[str]:
    """Return the images of a side without a known size."""
    used = side.frame.select(pl.col("datum_id").cast(pl.String)).unique().collect()
    lone = used.join(known, on="datum_id", how="anti", nulls_equal=False)
    return sorted(lone["datum_id"].drop_nulls().to_list())


def _scaled(side: Source, known: pl.DataFrame, lacking: dict[int, list[str]]) -> Source:
    if not side.shares:
        return side
    lone = lacking[id(side)]
    if lone:
        some = ", ".join(repr(name) for name in lone[:_SHOWN])
        raise InputError(
            f"{side.description}: coordinates are shares of the images, and the other side's are"
            f" pixels. The sizes of {len(lone):,} images are not known, first {some}. {_WAY}",
            code="image_size_missing",
            count=len(lone),
            value=lone[0],
        )
    columns = side.frame.collect_schema().names()
    wide, high = pl.col("__width"), pl.col("__height")
    scaled = [pl.col(name) * wide for name in _WIDE if name in columns]
    scaled += [pl.col(name) * high for name in _HIGH if name in columns]
    keyed = known.rename({"width": "__width", "height": "__height"}).lazy()
    frame = (
        side.frame.with_columns(pl.col("datum_id").cast(pl.String).alias("__image"))
        .join(keyed, left_on="__image", right_on="datum_id", how="left", maintain_order="left")
        .with_columns(scaled)
    )
    frame = frame.with_columns(
        _times(column, depth) for column, depth in (("polygon", 3), ("keypoints", 2))
        if column in columns
    )  # fmt: skip
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
