"""COCO JSON, ground truths and results, to canonical columns.

Boxes stay exact: ``xmax = x + w`` plus ``box_width = w`` as annotated, required for bit equality
with pycocotools. Polygons and masks stay text until they are read.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import compress, repeat
from typing import Any

import msgspec
import numpy as np
import polars as pl

from evalengine.schemas.errors import InputError, ReadError
from evalengine.schemas.geometry_columns import OF_BOX
from evalengine.schemas.wording import option

from ..problems import PointsAlone
from .coco_masks import with_segmentation
from .coco_tables import read_categories, read_images, refuse_large, there
from .json_rows import UNREADABLE, decode_rows, malformed, misfit
from .source import SEGMENTED, Source

# Lists of numbers of many rows of COCO's as one column, without an object a number.

_NEEDED = {
    "keypoints": "[x, y, visibility, ...]",
    "bbox": "[x, y, width, height]",
    "obb": "[cx, cy, width, height, angle]",
}
_LINES = bytes.maketrans(b",", b"\n")
_LEFT_OUT = b"[] \t\r\n"


def lists(
    texts: Sequence[bytes], name: str, what: str, done: int, field: str = "keypoints"
) -> pl.Series:
    """Parse lists of numbers as one column, List(Float64); null for an empty text and for null.

    Raises:
        ReadError: non-numeric values; names the first row.
    """
    import pyarrow as pa

    n = len(texts)
    missing = np.zeros(n, np.bool_)
    if b"" in texts or b"null" in texts:
        missing = np.fromiter((text in (b"", b"null") for text in texts), np.bool_, n)
    commas = np.fromiter(map(bytes.count, texts, repeat(b",")), np.int64, n)
    empty = missing.copy()
    for row in np.flatnonzero((commas == 0) & ~missing).tolist():
        empty[row] = not texts[row].translate(None, _LEFT_OUT)
    lengths = np.where(empty, 0, commas + 1)
    full = [*compress(texts, (~empty).tolist())] if empty.any() else texts
    joined = b",".join(full)
    values = np.empty(0)
    if full:
        try:  # CSV is read several times as fast, and rounded as exactly, as JSON is
            values = pl.read_csv(
                joined.translate(_LINES, _LEFT_OUT),
                has_header=False,
                quote_char=None,
                schema={"number": pl.Float64},
            )["number"].to_numpy()
        except pl.exceptions.PolarsError:
            raise _broken(texts, name, what, done, field) from None
        nested = joined.count(b"[") != len(full)
        if nested or values.size != lengths.sum() or np.isnan(values).any():
            raise _broken(texts, name, what, done, field)
    start = np.concatenate([[0], np.cumsum(lengths)])
    mask = pa.array(missing) if missing.any() else None
    column: Any = pa.LargeListArray.from_arrays(pa.array(start), pa.array(values), mask=mask)
    return pl.Series(field, pl.from_arrow(column))


def _broken(texts: Sequence[bytes], name: str, what: str, done: int, field: str) -> ReadError:
    """The first row whose list is not one of numbers."""
    decoder = msgspec.json.Decoder(list[float] | None)
    for row, text in enumerate(texts):
        try:
            decoder.decode(text or b"null")
        except msgspec.DecodeError as error:
            reason = re.sub(r" - at `\$.*`$", "", str(error)).replace("`", "'")
            return ReadError(
                f"{name}: {what} {done + row:,} (counted from 0), field {field!r}: {reason}."
                f" Needed is one list {_NEEDED[field]}."
            )
    return ReadError(f"{name}: field {field!r} of its {what}s cannot be read.")


Box = tuple[float, float, float, float]
_NO_BOX = (math.nan,) * 4


_LISTED = 4  # pieces as large as this many others, where lists of a piece are read together
_LARGEST = 2**53  # to which floats hold integers exactly

_MAY_LACK = (
    *("score", "iscrowd", "ignore", "area", "annotation_id"),
    *("segmentation", "keypoints", "num_keypoints", "obb"),
)
_BOX_COLUMNS = ("xmin", "ymin", "xmax", "ymax", "box_width", "box_height")


class _Result(msgspec.Struct, gc=False):
    """A result whose ids are integers, as COCO's are; small, since there may be millions."""

    image_id: int
    category_id: int
    bbox: Box | None = None
    score: float | None = None


class _LooseResult(msgspec.Struct, gc=False):
    """The same with ids that may be strings and boxes that may be empty, as found in the wild."""

    image_id: int | str
    category_id: int | str
    bbox: list[float] | None = None
    score: float | None = None


class _Annotation(_Result, gc=False):
    """Annotation; has a score if annotations serve as predictions."""

    area: float | None = None
    iscrowd: int | None = None
    ignore: int | None = None
    id: int | None = None


class _LooseAnnotation(_LooseResult, gc=False):
    """The same with ids that may be strings, and flags that may be booleans."""

    area: float | None = None
    iscrowd: int | bool | None = None
    ignore: int | bool | None = None
    id: int | str | None = None


_ROWS = {"result": (_Result, _LooseResult), "annotation": (_Annotation, _LooseAnnotation)}
_FIELDS: dict[str, tuple[Any, ...]] = {
    "segmentation": (("segmentation", msgspec.Raw, msgspec.Raw()),),  # as text
    "keypoints": (
        ("keypoints", msgspec.Raw, msgspec.Raw()),
        ("num_keypoints", float | None, None),
    ),
    "obb": (("obb", msgspec.Raw, msgspec.Raw()), ("bbox", msgspec.Raw, msgspec.Raw())),
}
_ANYHOW = frozenset({"obb"})
"""Fields that may be stored in another one: oriented boxes of five numbers in bbox."""


@cache
def _rows_with(what: str, fields: tuple[str, ...]) -> tuple[type[Any], ...]:
    """Return row types with some geometry in addition to boxes."""
    added = [field for name in fields for field in _FIELDS[name]]
    return tuple(
        msgspec.defstruct(row.__name__, added, bases=(row,), gc=False) if added else row
        for row in _ROWS[what]
    )


class _File(msgspec.Struct):
    """A ground-truth file, its arrays not yet decoded."""

    images: msgspec.Raw = msgspec.Raw()
    annotations: msgspec.Raw = msgspec.Raw()
    categories: msgspec.Raw = msgspec.Raw()


def read_results(
    buffer: Any, name: str, what: str = "result", *, wanted: frozenset[str] = SEGMENTED
) -> Source:
    """Read a results array ``[{image_id, category_id, bbox or segmentation, score}, ...]``.

    Args:
        buffer: the file's bytes, or a memory map of them.
        what: ``annotation`` for an array of annotations, which have area, iscrowd and id.
        wanted: geometry fields to read in addition to boxes, ``segmentation`` and ``keypoints``; if
            empty, segmentations are read only if a box is missing.

    Raises:
        ReadError: malformed JSON or an invalid row.
        InputError: results with neither box nor segmentation.
    """
    rows, notes = _rows(buffer, name, what, wanted=wanted)
    return Source(
        with_segmentation(rows, name, what), f"COCO {what}s {name}", "coco", (name,), notes=notes
    )


def read_ground_truths(buffer: Any, name: str, *, wanted: frozenset[str] = SEGMENTED) -> Source:
    """Read an object ``{images, annotations, categories}``; images become datums, categories
    labels.

    Args:
        buffer: the file's bytes, or a memory map of them.
        wanted: geometry fields to read in addition to boxes, ``segmentation`` and ``keypoints``; if
            empty, segmentations are read only if a box is missing.

    Raises:
        ReadError: malformed JSON, an invalid row, or no annotations at all.
        InputError: annotations with neither box nor segmentation.
    """
    try:
        file = msgspec.json.decode(buffer, type=_File)
    except msgspec.ValidationError as error:
        raise misfit(error, name, "file") from None
    except UNREADABLE as error:
        raise malformed(error, bytes(buffer), 0, name) from None
    if not there(file.annotations):
        raise ReadError(
            f"{name}: a JSON object without 'annotations', so no COCO ground truths; readable are"
            " those, COCO results, an array of records, and JSON Lines."
        )
    rows, notes = _rows(memoryview(file.annotations), name, "annotation", wanted=wanted)
    return Source(
        with_segmentation(rows, name, "annotation"),
        f"COCO ground truths {name}",
        "coco",
        (name,),
        datums=read_images(file.images, name),
        labels=read_categories(file.categories, name),
        notes=notes,
        warnings=_federated(file, name),
    )


def _federated(file: _File, name: str) -> tuple[tuple[str, str, int | None], ...]:
    """A warning of LVIS's files, whose images are not annotated with every category."""
    if not _mentions(memoryview(file.images), b'"neg_category_ids"'):
        return ()
    said = (
        f"{name} is an LVIS file: its images are annotated with some categories alone"
        " (neg_category_ids, not_exhaustive_category_ids), and the rules here take every other"
        " detection for a false positive. The numbers are not LVIS's, and lower."
    )
    return (("federated", said, None),)


def _rows(
    buffer: Any, name: str, what: str, *, wanted: frozenset[str]
) -> tuple[pl.DataFrame, tuple[tuple[str, str, int | None], ...]]:
    """Parse rows to canonical columns; also return notes on filled values."""
    there = tuple(field for field in _FIELDS if _mentions(buffer, b'"%s"' % field.encode()))
    read = tuple(field for field in _FIELDS if field in wanted and field in {*there, *_ANYHOW})
    strict, loose = _rows_with(what, read)
    try:
        pieces = _columns(buffer, strict, name, what, loose=False)
    except (ReadError, OverflowError):
        # Retry with string ids and boolean flags allowed; real errors fail again.
        pieces = _columns(buffer, loose, name, what, loose=True)
    frame = _joined(pieces)
    if not wanted and frame.width and frame["xmin"].null_count():
        return _rows(buffer, name, what, wanted=SEGMENTED)
    _refuse_bare(frame, name, what, there)
    return _tidy(frame)


def _mentions(buffer: Any, word: bytes) -> bool:
    # Bytes and maps search for a word many times faster than a regular expression does.
    text = buffer if hasattr(buffer, "find") else bytes(buffer)
    return bool(text.find(word) >= 0)


def _columns(
    buffer: Any, row: type[Any], name: str, what: str, *, loose: bool
) -> list[pl.DataFrame]:
    pieces: list[pl.DataFrame] = []
    done = 0
    listed = {"keypoints", "obb"} & {*row.__struct_fields__}
    for rows in decode_rows(buffer, row, name, what, _LISTED if listed else 1):
        n = len(rows)
        if n == 0:
            continue
        turned = "obb" in row.__struct_fields__
        if loose and not turned:
            _without_empty_boxes(rows, name, what, done)
        boxes = _turned(rows, name, what, done) if turned else _boxes(rows)
        columns: dict[str, pl.Series] = {
            "datum_id": _ids(rows, "image_id", name, what, done, loose=loose),
            "label_value": _ids(rows, "category_id", name, what, done, loose=loose),
            "score": _numbers(rows, "score"),
            **boxes,
        }
        if "segmentation" in row.__struct_fields__:
            texts = [bytes(one.segmentation) or None for one in rows]
            columns["segmentation"] = pl.Series(texts, dtype=pl.Binary)
        if "keypoints" in row.__struct_fields__:
            numbers = [bytes(one.keypoints) for one in rows]
            columns["keypoints"] = lists(numbers, name, what, done)
            columns["num_keypoints"] = _numbers(rows, "num_keypoints")
        if what == "annotation":
            for flag in ("iscrowd", "ignore"):
                columns[flag] = _flags(rows, flag, name, what, done)
            columns["area"] = _numbers(rows, "area")
            columns["annotation_id"] = _ids(rows, "id", name, what, done, loose=loose)
        pieces.append(pl.DataFrame(columns))
        _same_kind(pieces, name, what, done)
        done += n
    return pieces


def _without_empty_boxes(rows: Sequence[Any], name: str, what: str, done: int) -> None:
    """Replace ``"bbox": []`` by None, as pycocotools does for masks.

    Raises:
        ReadError: a box of another length than four.
    """
    for i, row in enumerate(rows):
        if row.bbox is not None and len(row.bbox) != 4:
            if row.bbox:
                way = f" Five are an oriented one: write {option('iou_type', 'obb')}."
                raise ReadError(
                    f"{name}: {what} {done + i:,} (counted from 0), field 'bbox': a box needs 4"
                    f" numbers.{way if len(row.bbox) == 5 else ''}"
                )
            row.bbox = None


def _turned(rows: Sequence[Any], name: str, what: str, done: int) -> dict[str, pl.Series]:
    """Return oriented boxes, and corners and extents of upright ones; null if a row has none.

    An oriented box is in a separate field, or has five numbers instead of four.

    Raises:
        ReadError: boxes of another length.
    """
    box, own = (
        lists([bytes(getattr(row, field)) for row in rows], name, what, done, field)
        for field in ("bbox", "obb")
    )
    size = box.list.len().fill_null(0)
    wrong = ~size.is_in([0, 4, 5])
    if wrong.any():
        at = int(wrong.arg_true()[0])
        raise ReadError(
            f"{name}: {what} {done + at:,} (counted from 0), field 'bbox': a box needs 4 numbers,"
            f" an oriented one 5, not {size[at]}."
        )
    x, y, w, h = (box.list.get(i, null_on_oob=True).set(size != 4, None) for i in range(4))
    columns = dict(zip(_BOX_COLUMNS, (x, y, x + w, y + h, w, h), strict=True))
    both = own.is_not_null() & (own.list.len() > 0)
    return columns | {"obb": own.zip_with(both, box.set(size != 5, None))}


def _boxes(rows: Sequence[Any]) -> dict[str, pl.Series]:
    """Return corners and extents; null if a row has no box."""
    n = len(rows)
    of_row = operator.attrgetter("bbox")
    whole = rows[0].bbox is not None
    if whole:
        try:
            flat: Iterable[Any] = itertools.chain.from_iterable(map(of_row, rows))
            boxes = np.fromiter(flat, np.float64, 4 * n).reshape(n, 4)
        except TypeError:
            whole = False
    if not whole:
        if not any(map(of_row, rows)):
            return {name: pl.Series([None] * n, dtype=pl.Float64) for name in _BOX_COLUMNS}
        flat = itertools.chain.from_iterable(row.bbox or _NO_BOX for row in rows)
        boxes = np.fromiter(flat, np.float64, 4 * n).reshape(n, 4)
    x, y, w, h = np.ascontiguousarray(boxes.T)
    columns = dict(zip(_BOX_COLUMNS, map(pl.Series, (x, y, x + w, y + h, w, h)), strict=True))
    if whole:
        return columns
    return {name: column.fill_nan(None) for name, column in columns.items()}


def _same_kind(pieces: list[pl.DataFrame], name: str, what: str, done: int) -> None:
    """Refuse a chunk whose ids are strings if earlier ones are integers, or the reverse."""
    for column, field in (("datum_id", "image_id"), ("label_value", "category_id")):
        first, last = pieces[0][column], pieces[-1][column]
        if (first.dtype == pl.String) != (last.dtype == pl.String):
            raise _mixed(name, what, done, field, last[0], first[0])


def _mixed(name: str, what: str, index: int, field: str, odd: Any, usual: Any) -> InputError:
    kind = "strings" if isinstance(usual, str) else "integers"
    return InputError(
        f"{name}: {what} {index:,} (counted from 0), field {field!r}: {odd!r} among {kind} such as"
        f" {usual!r}. Ids are all integers or all strings."
    )


def _joined(pieces: list[pl.DataFrame]) -> pl.DataFrame:
    """The pieces as one table; ids beyond Int64 in one make that column unsigned in all."""
    if not pieces:
        return pl.DataFrame()
    large = [
        name
        for name in pieces[0].columns
        if any(piece.schema[name] == pl.UInt64 for piece in pieces)
    ]
    if large:
        pieces = [piece.with_columns(pl.col(large).cast(pl.UInt64)) for piece in pieces]
    return pl.concat(pieces, rechunk=False, how="vertical_relaxed")


def _ids(
    rows: Sequence[Any], field: str, name: str, what: str, done: int, *, loose: bool
) -> pl.Series:
    """A column of ids; a file that mixes integers and strings is refused."""
    values = map(operator.attrgetter(field), rows)
    if not loose and (field != "id" or rows[0].id is not None):
        try:
            return pl.Series(np.fromiter(values, np.int64, len(rows)))
        except TypeError:
            values = map(operator.attrgetter(field), rows)
    found = list(values)
    kinds = [type(value) for value in found if value is not None]
    if kinds and (str in kinds) and (int in kinds):
        odd = next(i for i, value in enumerate(found) if value is not None
                   and type(value) is not kinds[0])  # fmt: skip
        usual = next(value for value in found if value is not None)
        raise _mixed(name, what, done + odd, field, found[odd], usual)
    if kinds and kinds[0] is int:
        refuse_large(found, name, what, field, done)
    if kinds and kinds[0] is int and any(value is not None and value >= 2**63 for value in found):
        return pl.Series(found, dtype=pl.UInt64)
    return pl.Series(found, dtype=None if kinds else pl.Null)


def _numbers(rows: Sequence[Any], field: str) -> pl.Series:
    """Return a column of numbers; NaN marks missing fields, as JSON has no NaN."""
    values = np.fromiter(map(operator.attrgetter(field), rows), np.float64, len(rows))
    return pl.Series(values).fill_nan(None)


def _flags(rows: Sequence[Any], field: str, name: str, what: str, done: int) -> pl.Series:
    """Return a column of flags; integers other than 0 and 1 are refused later.

    Raises:
        InputError: a number beyond 64-bit integers; names the first.
    """
    try:
        flags = _numbers(rows, field)
        if not (flags.abs() > _LARGEST).any():
            return flags
    except OverflowError:
        pass
    values = map(operator.attrgetter(field), rows)
    i, value = next((i, v) for i, v in enumerate(values) if v is not None and abs(v) > _LARGEST)
    raise InputError(
        f"{name}: {what} {done + i:,} (counted from 0), field {field!r}: a number of"
        f" {value.bit_length():,} bits. Write 0 or 1."
    )


def _tidy(
    frame: pl.DataFrame,
) -> tuple[pl.DataFrame, tuple[tuple[str, str, int | None], ...]]:
    """Drop columns without values; fill missing flags and areas."""
    notes: list[tuple[str, str, int | None]] = []
    empty = [
        name
        for name in (*_MAY_LACK, *_BOX_COLUMNS)
        if name in frame.columns and frame[name].null_count() == frame.height
    ]
    frame = frame.drop(empty)
    for name in ("iscrowd", "ignore"):
        if name in frame.columns:
            frame = frame.with_columns(pl.col(name).fill_null(0.0).cast(pl.Int64))
    lacking = frame["area"].null_count() if "area" in frame.columns else 0
    if lacking and {"box_width", "obb"} & {*frame.columns}:
        area = pl.coalesce(
            [pl.col("box_width") * pl.col("box_height")] * ("box_width" in frame.columns)
            + [pl.col("obb").list.get(2) * pl.col("obb").list.get(3)] * ("obb" in frame.columns)
        )
        share = OF_BOX if "keypoints" in frame.columns else 1.0
        frame = frame.with_columns(pl.col("area").fill_null(area * share))
        part = "" if share == 1.0 else f"{share:g} times "
        notes.append(
            ("area_filled", f"ground truths: {lacking:,} without area, filled with {part}width"
             " times height of the box.", lacking)
        )  # fmt: skip
    return frame, tuple(notes)


def _refuse_bare(frame: pl.DataFrame, name: str, what: str, there: Collection[str]) -> None:
    """Refuse rows that have neither a box nor any other geometry."""
    if frame.is_empty():
        return
    bare = frame["xmin"].is_null()
    for field in _FIELDS:
        if field in frame.columns:
            bare &= frame[field].is_null()
    if bare.any():
        unread = {"keypoints": "keypoints", "obb": "oriented boxes"}
        ways = [
            f"To compare their {words}, write {option('iou_type', field)}."
            for field, words in unread.items()
            if field in there and field not in frame.columns
        ]
        way = " ".join(ways) or "Give them one, or remove them."
        points = bool(bare.all()) and {*unread} & {*there} == {"keypoints"} and len(ways) == 1
        raise (PointsAlone if points else InputError)(
            f"{name}: {bare.sum():,} of {frame.height:,} {what}s have neither bbox nor"
            f" segmentation, first {what} {bare.arg_true()[0]:,} (counted from 0). {way}"
        )
