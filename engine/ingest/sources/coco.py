"""COCO JSON, as files and in memory."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...schemas.contract import OF_BOX, SCORE
from ...schemas.errors import EvalengineError, InputError, ReadError
from ...schemas.wording import option
from ..annotations.format import without_empty
from ..dtypes import stacked
from ..files import SEGMENTED, Source
from ..geometry import BOX_NAMES
from ..problems import Note
from .json_rows import UNREADABLE, NotFlat, decode_rows, decoded, list_column, scan

# COCO's ``segmentation``: polygons, and run-length masks, compressed or not.
#
# Rows keep the JSON text; it is decoded when the column is read, so that runs that compare boxes
# do not pay for it. An empty list means none.

RINGS = pl.List(pl.List(pl.Float64()))
MASK = pl.Struct({"size": pl.List(pl.Int64()), "counts": pl.String()})
_RUNS = pl.Struct({"size": pl.List(pl.Int64()), "counts": pl.List(pl.Int64())})
_EMPTY = rb"^\[\s*\]$"
_POLARS = "\n\nThis error occurred in the following expression"
_IS_RUNS = r'"counts"\s*:\s*\['


def plainly(error: InputError) -> InputError:
    """Return an error of decoding without Polars' words on its expression."""
    message, separator, _ = str(error).partition(_POLARS)
    if not separator:
        return error
    return type(error)(message, code="file_malformed", field="segmentation")


class _Mask(msgspec.Struct):
    size: tuple[int, int]
    counts: str | list[int]


def with_segmentation(frame: pl.DataFrame, name: str, what: str) -> pl.LazyFrame:
    """Replace ``segmentation`` by columns ``polygon`` and ``mask``.

    Args:
        frame: rows with a Binary column ``segmentation``, JSON; others are returned unchanged.

    Returns:
        the rows; ``polygon`` is List(List(Float64)), flat rings, or null; ``mask`` a struct of size
        (height, width) and compressed counts, or null; a column is omitted if no row has a value.
    """
    if "segmentation" not in frame.columns:
        return frame.lazy()
    raw = frame["segmentation"]
    listed = raw.bin.starts_with(b"[") & ~_is_empty(raw)
    runs = raw.bin.starts_with(b"{")
    odd = ~listed & ~runs & ~_is_empty(raw) & raw.is_not_null()
    if odd.any():
        _refuse(frame, odd, name, what)
    columns = []
    for column, rows, dtype, decode in (
        ("polygon", listed, RINGS, _polygons),
        ("mask", runs, MASK, _masks),
    ):
        if not rows.any():
            continue

        def decode_rows(
            index: pl.Series, rows: pl.Series = rows, decode: Any = decode
        ) -> pl.Series:
            return _scattered(raw, index, rows, partial(decode, name=name, what=what))

        at = pl.col("__row").map_batches(decode_rows, return_dtype=dtype, is_elementwise=True)
        columns.append(at.alias(column))
    numbered = frame.drop("segmentation").with_row_index("__row").lazy()
    return numbered.with_columns(columns).drop("__row")


def _is_empty(raw: pl.Series) -> pl.Series:
    """Return flags for rows with an explicitly empty segmentation."""
    short = raw.bin.size() <= 64
    texts = raw.set(~short, None).cast(pl.String)
    empty = texts.str.contains(_EMPTY.decode()) | (texts == "null")
    return empty.fill_null(value=False)


def _scattered(raw: pl.Series, index: pl.Series, rows: pl.Series, decode: Any) -> pl.Series:
    """Return the decoded rows at ``index``, null for others."""
    in_order = rows.gather(index)
    places = pl.int_range(len(index), dtype=pl.UInt32, eager=True)
    selected = index.filter(in_order)
    result: pl.Series = decode(raw.gather(selected).cast(pl.String), selected)
    if len(result) == len(index):
        return result
    back = places.filter(in_order)
    at = pl.repeat(None, len(index), dtype=pl.UInt32, eager=True).scatter(
        back, pl.int_range(len(back), dtype=pl.UInt32, eager=True)
    )
    return result.gather(at)


def _polygons(texts: pl.Series, rows: pl.Series, name: str, what: str) -> pl.Series:
    try:
        return texts.str.json_decode(RINGS)
    except pl.exceptions.PolarsError:
        raise _broken(texts, rows, list[list[float]], name, what) from None


def _masks(texts: pl.Series, rows: pl.Series, name: str, what: str) -> pl.Series:
    plain = texts.str.contains(_IS_RUNS)
    try:
        packed = texts.set(plain, None).str.json_decode(MASK)
        runs = texts.filter(plain).str.json_decode(_RUNS)
    except pl.exceptions.PolarsError:
        raise _broken(texts, rows, _Mask, name, what) from None
    fields = packed.struct.unnest()
    if any(column.null_count() > runs.len() for column in fields.iter_columns()):
        raise _broken(texts, rows, _Mask, name, what)
    if not runs.len():
        return packed
    place = (plain.cast(pl.Int64).cum_sum() - 1).clip(0)  # of a row with listed counts among those
    try:
        from evalengine.geometry.masks import read_masks, to_rle  # kernels: only if used

        listed = rows.filter(plain).to_numpy()
        packed_runs = to_rle(read_masks(runs, side=f"{what}s", rows=listed)).cast(MASK)
    except InputError as error:
        raise ReadError(f"{name}: {error}", code=error.code, **error.facts) from None
    return packed.zip_with(~plain, packed_runs.gather(place))


_OF_MASKS = "Expected polygons [[x, y, ...], ...] or {'size': [height, width], 'counts': ...}."


def wrong_row(
    name: str,
    what: str,
    row: int,
    field: str,
    message: str,
    error: type[EvalengineError] = ReadError,
    code: str = "file_malformed",
    **facts: Any,
) -> EvalengineError:
    """Make the error for a row with an invalid field."""
    return error(
        f"{name}: {what} {row:,} (counted from 0), field {field!r}: {message}",
        code=code,
        file=str(name),
        row=row,
        field=field,
        **facts,
    )


def _broken(
    texts: Iterable[Any],
    rows: Iterable[int],
    kind: Any,
    name: str,
    what: str,
    field: str = "segmentation",
    expected: str = _OF_MASKS,
) -> EvalengineError:
    """Return the error for the first text that is not of a type."""
    decoder = msgspec.json.Decoder(kind)
    for text, row in zip(texts, rows, strict=False):
        try:
            decoder.decode(text or b"null")
        except (msgspec.DecodeError, RecursionError) as error:
            reason = re.sub(r" - at `\$.*`$", "", str(error)).replace("`", "'")
            return wrong_row(name, what, row, field, f"{reason}. {expected}")
    return ReadError(
        f"{name}: field {field!r} of its {what}s cannot be decoded.",
        code="file_malformed",
        file=name,
        field=field,
    )


def _refuse(frame: pl.DataFrame, odd: pl.Series, name: str, what: str) -> None:
    row = odd.arg_true()[0]
    text = bytes(frame["segmentation"][row])[:40].decode("utf-8", "replace")
    raise ReadError(
        f"{name}: {odd.sum():,} {what}s whose segmentation is neither polygons nor a mask, first "
        f"{what} {row:,} (counted from 0): {text}. {_OF_MASKS}",
        code="file_malformed",
        file=str(name),
        field="segmentation",
        count=int(odd.sum()),
        row=row,
    )


# COCO's images and categories, to tables of datums and labels.

_LISTS = ("pos_category_ids", "neg_category_ids", "not_exhaustive_category_ids")
_CROWDED, _LEVELS = "crowdIndex", (0.2, 0.8)
_MOST_BITS = 128  # of a number that messages write out


class _Category(msgspec.Struct):
    id: int | str
    name: str | None = None
    supercategory: str | None = None
    frequency: str | None = None
    isthing: int | bool | None = None
    keypoints: Any = None
    skeleton: Any = None


def is_present(raw: msgspec.Raw) -> bool:
    return memoryview(raw).nbytes > 0


def read_images(raw: msgspec.Raw, name: str, what: str = "image") -> pl.DataFrame | None:
    """Read images or videos as datums, with their further plain fields, for slices."""
    if not is_present(raw):
        return None
    rows = decoded(raw, list[dict[str, Any]], name, what)
    ids = _values(rows, "id")
    if not {*map(type, ids)} <= {int, str}:
        i = next(i for i, value in enumerate(ids) if type(value) not in (int, str))
        message = f"an integer or string is needed, not {ids[i]!r}."
        raise wrong_row(name, what, i, "id", message)
    columns: dict[str, pl.Series] = {"datum_id": id_column(ids, name, what)}
    for field in dict.fromkeys(itertools.chain.from_iterable(rows)):
        values = _values(rows, field)
        if field in _LISTS:
            columns[field] = _lists(values, field, name)
        elif field not in ("id", "datum_id") and _plain(values):
            columns[field] = pl.Series(values, strict=False)
    frame = pl.DataFrame(columns)
    if frame.schema.get(_CROWDED, pl.Null()).is_numeric():
        index = pl.col(_CROWDED)
        low, high = _LEVELS
        word = pl.when(index < low).then(pl.lit("easy")).when(index < high).then(pl.lit("medium"))
        frame = frame.with_columns(
            (pl.when(index.is_not_null()).then(word.otherwise(pl.lit("hard")))).alias("crowd_level")
        )
    return frame


def _values(rows: list[dict[str, Any]], field: str) -> list[Any]:
    """Values of a field, None in rows that do not have it."""
    try:
        return [*map(itemgetter(field), rows)]
    except KeyError:
        return [row.get(field) for row in rows]


def _lists(values: list[Any], field: str, name: str) -> pl.Series:
    """Read lists of categories, as in LVIS; null if an image has none."""
    try:
        kinds = {type(one) for value in values if value is not None for one in value}
        if not kinds <= {int} and not kinds <= {str}:
            raise TypeError
        return pl.Series(values, dtype=pl.List(pl.String if kinds == {str} else pl.Int64))
    except (TypeError, pl.exceptions.PolarsError, OverflowError):
        at = next((i for i, v in enumerate(values) if v is not None and not isinstance(v, list)), 0)
        message = (
            f"lists of category ids are needed, all integers or all strings, not {values[at]!r}."
        )
        raise wrong_row(name, "image", at, field, message) from None


def id_column(
    values: list[Any],
    name: str,
    what: str,
    field: str = "id",
    error: type[EvalengineError] = InputError,
) -> pl.Series:
    """Return a column of ids, all integers or all strings; nulls are allowed."""
    filled = [value for value in values if value is not None]
    if len({*map(type, filled)}) > 1:
        raise error(
            f"{name}: {what}s whose {field} is a string, and others whose is a number. Use one"
            " type.",
            code="types_mixed",
            file=name,
            field=field,
        )
    if filled and isinstance(filled[0], str):
        return pl.Series(values, dtype=pl.String)
    refuse_large(values, name, what, field)
    large = bool(filled) and max(filled) >= 2**63 and min(filled) >= 0
    return pl.Series(values, dtype=pl.UInt64 if large else pl.Int64)


def refuse_large(values: Sequence[Any], name: str, what: str, field: str, done: int = 0) -> None:
    """Refuse ids beyond 64 bits; ignores nulls and strings."""
    integers = [value for value in values if type(value) is int]
    if not integers or (min(integers) >= -(2**63) and max(integers) < 2**64):
        return
    for i, value in enumerate(values):
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            message = str(value) if value.bit_length() <= _MOST_BITS else f"{hex(value)[:20]}..."
            message = f"{message} has more than 64 bits. Write ids as strings, or smaller ones."
            raise wrong_row(name, what, done + i, field, message, InputError, "number_too_large")


def _plain(values: Iterable[Any]) -> bool:
    """Return whether a field has values of one plain type."""
    kinds = {*map(type, values)} - {type(None)}
    return kinds in ({int}, {str}, {bool}, {float}, {int, float})


def read_categories(raw: msgspec.Raw, name: str) -> pl.DataFrame | None:
    """Read categories as labels, with their plain fields, key point names and skeleton."""
    if not is_present(raw):
        return None
    rows = decoded(raw, list[_Category], name, "category")
    columns = {"label_value": id_column([row.id for row in rows], name, "category")}
    for field in ("name", "supercategory", "frequency"):
        values = [getattr(row, field) for row in rows]
        if any(value is not None for value in values):
            columns["label_name" if field == "name" else field] = pl.Series(values, dtype=pl.String)
    things = [row.isthing for row in rows]
    if any(thing is not None for thing in things):
        columns["isthing"] = pl.Series(things, dtype=pl.Int64, strict=False)
    for field, dtype in _OF_POINTS.items():
        values = [getattr(row, field) for row in rows]
        if any(values):
            try:
                columns[field] = pl.Series(values, dtype=dtype)
            except (TypeError, pl.exceptions.PolarsError, OverflowError):
                continue  # unused
    return pl.DataFrame(columns)


_OF_POINTS = {"keypoints": pl.List(pl.String), "skeleton": pl.List(pl.List(pl.Int64))}
"""Fields of a category about its key points."""


# COCO JSON, ground truths and results, to canonical columns.
#
# Boxes stay exact: ``xmax = x + w`` plus ``box_width = w`` as annotated, required for bit
# equality with pycocotools. Polygons and masks stay text until they are read.

_NEEDED = {"keypoints": "[x, y, visibility, ...]", "obb": "[cx, cy, width, height, angle]"}
_NUMBERS = pl.List(pl.Float64())
_LARGEST = 2**53  # floats are exact for integers up to here

_MAY_LACK = (
    *("score", "iscrowd", "ignore", "area", "annotation_id"),
    *("segmentation", "keypoints", "num_keypoints", "obb"),
)


class _Result(msgspec.Struct, gc=False):
    """A result; small, since there may be millions."""

    image_id: int | str
    category_id: int | str
    bbox: list[float] | None = None
    score: float | None = None


class _Annotation(_Result, gc=False):
    """Annotation; has a score if annotations serve as predictions."""

    area: float | None = None
    iscrowd: int | bool | None = None
    ignore: int | bool | None = None
    id: int | str | None = None


_ROWS = {"result": _Result, "annotation": _Annotation}
_FIELDS: dict[str, tuple[Any, ...]] = {
    "segmentation": (("segmentation", msgspec.Raw, msgspec.Raw()),),  # as text
    "keypoints": (("keypoints", msgspec.Raw, msgspec.Raw()), ("num_keypoints", float | None, None)),
    "obb": (("obb", msgspec.Raw, msgspec.Raw()),),
}
_FLAGS = ("iscrowd", "ignore")
_IDS = {"datum_id": "image_id", "label_value": "category_id", "annotation_id": "id"}


@cache
def _row_with(what: str, extras: frozenset[str]) -> type[Any]:
    """Return the type of rows with some geometry in addition to boxes."""
    row = _ROWS[what]
    added = [field for name, fields in _FIELDS.items() if name in extras for field in fields]
    return msgspec.defstruct(row.__name__, added, bases=(row,), gc=False) if added else row


_ANNOTATIONS = re.compile(rb'"annotations"[ \t\r\n]*:[ \t\r\n]*(?=\[)')
_CUT = b'"annotations are read"'
"""JSON in place of the annotations."""


class _File(msgspec.Struct):
    """A ground-truth file, its arrays not yet decoded."""

    images: msgspec.Raw = msgspec.Raw()
    annotations: msgspec.Raw = msgspec.Raw()
    categories: msgspec.Raw = msgspec.Raw()


def read_results(
    buffer: Any, name: str, what: str = "result", *, extras: frozenset[str] = SEGMENTED
) -> Source:
    """Read a results array ``[{image_id, category_id, bbox or segmentation, score}, ...]``.

    Args:
        what: ``annotation`` for an array of annotations, which have area, iscrowd and id.
        extras: geometry fields to read in addition to boxes, ``segmentation`` and ``keypoints``; if
            empty, segmentations are read only if a box is missing.
    """
    rows, notes = _rows(buffer, name, what, extras=extras)
    return Source(
        with_segmentation(rows, name, what), f"COCO {what}s {name}", "coco", (name,), notes=notes
    )


def read_ground_truths(buffer: Any, name: str, *, extras: frozenset[str] = SEGMENTED) -> Source:
    """Read an object ``{images, annotations, categories}``; images become datums, categories
    labels.

    Args:
        extras: geometry fields to read in addition to boxes, ``segmentation`` and ``keypoints``; if
            empty, segmentations are read only if a box is missing.
    """
    file, annotations, pieces = _scanned(buffer, extras)
    if file is None:
        file = decoded(buffer, _File, name, "file")
        annotations = memoryview(file.annotations)
    if not is_present(file.annotations):
        raise ReadError(
            f"{name}: a JSON object without 'annotations', so no COCO ground truths; readable are"
            " those, COCO results, an array of records, and JSON Lines.",
            code="wrong_format",
            file=str(name),
        )
    rows, notes = _rows(annotations, name, "annotation", extras=extras, pieces=pieces)
    return Source(
        with_segmentation(rows, name, "annotation"),
        f"COCO ground truths {name}",
        "coco",
        (name,),
        datums=read_images(file.images, name),
        labels=read_categories(file.categories, name),
        notes=(*notes, *_federated(file, name)),
    )


def _scanned(
    buffer: Any, extras: frozenset[str]
) -> tuple[_File | None, Any, list[pl.DataFrame] | None]:
    """Scan the annotations from the first key ``"annotations"`` of the file on.

    A parser of the whole file would read their text once more.

    Returns:
        the file without its annotations, their text, and their rows; None if that is not possible.
    """
    key = _ANNOTATIONS.search(buffer)
    if key is None:
        return None, None, None
    offsets: list[int] = []
    rest = memoryview(buffer)[key.end() :]
    fields, turned = (_row_with("annotation", extras).__struct_fields__, "obb" in extras)
    try:
        read = scan(rest, fields, raw=("segmentation",), offsets=offsets)
        pieces = [_canonical(piece, turned=turned) for piece in read]
        text = b"".join((bytes(buffer[: key.end()]), _CUT, bytes(rest[offsets[0] :])))
        file = msgspec.json.decode(text, type=_File)
    except (NotFlat, *UNREADABLE):
        return None, None, None
    if bytes(file.annotations) != _CUT:  # the key was another object's, or is repeated
        return None, None, None
    return file, rest[: offsets[0]], pieces


def _federated(file: _File, name: str) -> tuple[Note, ...]:
    """A warning of LVIS's files, whose images are not annotated with every category."""
    if not mentions(memoryview(file.images), b'"neg_category_ids"'):
        return ()
    message = (
        f"{name} is an LVIS file: its images are annotated with only some categories "
        "(neg_category_ids, not_exhaustive_category_ids), but here every other detection is a "
        "false positive. The numbers are lower than LVIS's."
    )
    return (Note("federated", message, warning=True),)


def _rows(
    buffer: Any,
    name: str,
    what: str,
    *,
    extras: frozenset[str],
    pieces: list[pl.DataFrame] | None = None,
) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    """Parse rows to canonical columns; also return notes on filled values.

    Args:
        pieces: the rows, if they are parsed already.
    """
    row = _row_with(what, extras)
    turned = "obb" in extras
    try:
        if pieces is None:
            read = scan(buffer, row.__struct_fields__, raw=("segmentation",))
            pieces = [_canonical(piece, turned=turned) for piece in read]
    except NotFlat:
        decoded = _decoded(buffer, row, name, what, turned=turned)
        pieces = [_canonical(piece, turned=turned) for piece in decoded]
    frame = _joined(pieces)
    if not extras and frame.width and frame["xmin"].null_count():
        return _rows(buffer, name, what, extras=SEGMENTED)
    if not frame.is_empty() and frame["xmin"].null_count():
        geometry = ("xmin", *(field for field in _FIELDS if field in frame.columns))
        without_geometry = frame.select(pl.all_horizontal(pl.col(geometry).is_null())).to_series()
        if without_geometry.any():
            mentioned = {one for one in _FIELDS if mentions(buffer, b'"%s"' % one.encode())}
            if (
                without_geometry.all()
                and "keypoints" in mentioned - extras
                and "obb" not in mentioned
            ):
                return _rows(buffer, name, what, extras=frozenset({"keypoints"}))
            _refuse_without_geometry(without_geometry, mentioned - extras, name, what)
    return _tidy(frame)


def mentions(buffer: Any, word: bytes) -> bool:
    # Bytes and maps search for a word many times faster than a regular expression does.
    text = buffer if hasattr(buffer, "find") else bytes(buffer)
    return bool(text.find(word) >= 0)


def _decoded(
    buffer: Any, row: type[Any], name: str, what: str, *, turned: bool
) -> Iterator[pl.DataFrame]:
    """Yield rows of any form that can be read, some megabytes at a time; explain others."""
    fields = sorted(row.__struct_fields__, key=lambda field: field not in ("bbox", "obb"))
    done, firsts = 0, dict[str, Any]()
    for rows in decode_rows(buffer, row, name, what):
        columns: dict[str, pl.Series] = {}
        for field in fields if rows else ():
            values = [getattr(one, field) for one in rows]
            if field in _IDS.values():
                columns[field] = _ids(values, field, name, what, done)
                first = next((value for value in values if value is not None), None)
                usual = firsts.setdefault(field, first) if first is not None else None
                if isinstance(first, str) != isinstance(usual, str):
                    raise _mixed(name, what, done + values.index(first), field, first, usual)
            elif field in _FLAGS:
                columns[field] = _flags(values, field, name, what, done)
            elif field == "segmentation":
                columns[field] = pl.Series([bytes(one) or None for one in values], dtype=pl.Binary)
            elif field in _NEEDED:
                columns[field] = _number_lists(values, field, name, what, done)
            elif field == "bbox":
                _refuse_sizes(values, name, what, done, turned=turned)
                columns[field] = _listed(values)
            else:
                columns[field] = pl.Series(values, dtype=pl.Float64)
        if rows:
            yield pl.DataFrame(columns)
        done += len(rows)


def _number_lists(
    values: Sequence[msgspec.Raw], field: str, name: str, what: str, done: int
) -> pl.Series:
    """Return lists of numbers; null if missing."""
    texts = [bytes(one) or b"null" for one in values]
    try:
        return _listed([*map(msgspec.json.Decoder(list[float] | None).decode, texts)])
    except msgspec.DecodeError:
        rows, expected = itertools.count(done), f"Expected one list {_NEEDED[field]}."
        raise _broken(texts, rows, list[float] | None, name, what, field, expected) from None


def _listed(values: Sequence[list[float] | None]) -> pl.Series:
    limits = np.cumsum([0, *(len(one or ()) for one in values)])
    flat = np.fromiter(itertools.chain.from_iterable(filter(None, values)), np.float64, limits[-1])
    missing = np.array([one is None for one in values])
    return list_column(flat, limits, missing if missing.any() else None)


def _refuse_sizes(boxes: Sequence[Any], name: str, what: str, done: int, *, turned: bool) -> None:
    """Refuse boxes of any other length; empty ones mean none, as pycocotools does for masks."""
    for i, box in enumerate(boxes):
        if box and len(box) != 4 and not (turned and len(box) == 5):
            message = "a box needs 4 numbers."
            if turned:
                message = f"a box needs 4 numbers, an oriented one 5, not {len(box)}."
            elif len(box) == 5:
                message += f" Five are an oriented one: write {option('iou_type', 'obb')}."
            raise wrong_row(name, what, done + i, "bbox", message)


_TYPES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("datum_id", "label_value"), (pl.Int64, pl.UInt64, pl.String)),
    "score": (pl.Int64, pl.Float64, pl.Null),
    "segmentation": (pl.Binary, pl.Null),
    "keypoints": (pl.List, pl.Array, pl.Null),
    "num_keypoints": (pl.Int64, pl.Float64, pl.Null),
    **dict.fromkeys(_FLAGS, (pl.Int64, pl.Boolean, pl.Null)),
    "area": (pl.Int64, pl.Float64, pl.Null),
    "annotation_id": (pl.Int64, pl.UInt64, pl.String, pl.Null),
}
"""Canonical columns except boxes to the dtypes in which their fields may be read."""


def _canonical(read: pl.DataFrame, *, turned: bool) -> pl.DataFrame:
    """Convert fields as they are written to canonical columns; NotFlat if types differ."""
    columns: dict[str, pl.Series] = {}
    for name, dtypes in _TYPES.items():
        field = _IDS.get(name, name)
        if field in read.columns:
            column = read[field].alias(name)
            if not isinstance(column.dtype, dtypes) or (
                name in ("datum_id", "label_value") and column.null_count()
            ):
                raise NotFlat
            if name == "keypoints":
                column = column.cast(_NUMBERS)
            elif field == name != "segmentation":
                column = column.cast(pl.Float64)
            if name in _FLAGS and (column.abs() > _LARGEST).any():
                raise NotFlat
            columns[name] = column
        if name == "score":
            columns |= _boxes(read, turned=turned)
    return pl.DataFrame(columns)


def _boxes(read: pl.DataFrame, *, turned: bool) -> dict[str, pl.Series]:
    """Return corners and extents of upright boxes, and oriented ones; null if a row has none.

    An oriented box is in a separate field, or has five numbers instead of four.
    """
    fields = ("bbox", "obb") if turned else ("bbox",)
    if any(not isinstance(read.schema[one], _TYPES["keypoints"]) for one in fields):
        raise NotFlat
    box = read["bbox"]
    if box.dtype == pl.Null:
        x = y = w = h = box.cast(pl.Float64)
    elif box.dtype == pl.Array(pl.Float64, 4):
        x, y, w, h = map(pl.Series, np.ascontiguousarray(box.to_numpy().T))
    else:
        listed = box.cast(_NUMBERS)
        size = listed.list.len().fill_null(0)
        if not size.is_in([0, 4, 5] if turned else [0, 4]).all():
            raise NotFlat
        x, y, w, h = (listed.list.get(i, null_on_oob=True).set(size != 4, None) for i in range(4))
    columns = dict(zip(BOX_NAMES, (x, y, x + w, y + h, w, h), strict=True))
    if turned:
        oriented = read["obb"].cast(_NUMBERS)
        both = oriented.is_not_null() & (oriented.list.len() > 0)
        if not both.all():
            listed = box.cast(_NUMBERS)
            oriented = oriented.zip_with(both, listed.set(listed.list.len() != 5, None))
        columns["obb"] = oriented
    return columns


def _mixed(name: str, what: str, index: int, field: str, odd: Any, usual: Any) -> EvalengineError:
    kind = "strings" if isinstance(usual, str) else "integers"
    message = f"{odd!r} among {kind} such as {usual!r}. Ids are all integers or all strings."
    return wrong_row(name, what, index, field, message, InputError, "types_mixed", value=odd)


def _joined(pieces: list[pl.DataFrame]) -> pl.DataFrame:
    """The pieces as one table."""
    return stacked(pieces, rechunk=False) if pieces else pl.DataFrame()


def _ids(values: list[Any], field: str, name: str, what: str, done: int) -> pl.Series:
    """A column of ids; a file that mixes integers and strings is refused."""
    kinds = [type(value) for value in values if value is not None]
    if kinds and (str in kinds) and (int in kinds):
        odd = next(
            i for i, value in enumerate(values) if value is not None and type(value) is not kinds[0]
        )
        usual = next(value for value in values if value is not None)
        raise _mixed(name, what, done + odd, field, values[odd], usual)
    if kinds and kinds[0] is int:
        numbers = [value for value in values if value is not None]
        low, high = min(numbers), max(numbers)
        if low < -(2**63) or high >= 2**64:
            refuse_large(values, name, what, field, done)
        if high >= 2**63:
            return pl.Series(values, dtype=pl.UInt64)
    return pl.Series(values, dtype=None if kinds else pl.Null)


def _flags(values: Sequence[Any], field: str, name: str, what: str, done: int) -> pl.Series:
    """Return a column of flags; integers other than 0 and 1 are refused later."""
    for i, value in enumerate(values):
        if value is not None and abs(value) > _LARGEST:
            message = f"a number of {value.bit_length():,} bits. Write 0 or 1."
            raise wrong_row(name, what, done + i, field, message, InputError, "number_too_large")
    return pl.Series([None if value is None else int(value) for value in values], dtype=pl.Int64)


def _tidy(frame: pl.DataFrame) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    """Drop columns without values; fill missing flags and areas."""
    notes: list[Note] = []
    names = (*_MAY_LACK, *BOX_NAMES)
    if "keypoints" in frame.columns and frame["keypoints"].null_count() == frame.height:
        frame = frame.drop("num_keypoints")
    frame = without_empty(frame, [name for name in names if name in frame.columns])
    for name in ("iscrowd", "ignore"):
        if name in frame.columns:
            frame = frame.with_columns(pl.col(name).fill_null(0.0).cast(pl.Int64))
    n_missing = frame["area"].null_count() if "area" in frame.columns else 0
    if n_missing and {"box_width", "obb"} & {*frame.columns}:
        area = pl.coalesce(
            [pl.col("box_width") * pl.col("box_height")] * ("box_width" in frame.columns)
            + [pl.col("obb").list.get(2) * pl.col("obb").list.get(3)] * ("obb" in frame.columns)
        )
        share = OF_BOX if "keypoints" in frame.columns else 1.0
        frame = frame.with_columns(pl.col("area").fill_null(area * share))
        part = "" if share == 1.0 else f"{share:g} times "
        message = f"ground truths: {n_missing:,} without area, filled with {part}width times height"
        notes.append(Note("area_filled", f"{message} of the box.", n_missing))
    return frame, tuple(notes)


def _refuse_without_geometry(
    without_geometry: pl.Series, unread: Collection[str], name: str, what: str
) -> None:
    """Refuse rows that have neither a box nor any other geometry."""
    ways = [
        f"To compare their {words}, write {option('iou_type', field)}."
        for field, words in (("keypoints", "keypoints"), ("obb", "oriented boxes"))
        if field in unread
    ]
    way = " ".join(ways) or "Give them one, or remove them."
    raise InputError(
        f"{name}: {without_geometry.sum():,} of {len(without_geometry):,} {what}s have neither bbox"
        f" nor segmentation, first {what} {without_geometry.arg_true()[0]:,} (counted from 0)."
        f" {way}",
        code="geometry_missing",
        count=int(without_geometry.sum()),
        of=len(without_geometry),
        row=without_geometry.arg_true()[0],
    )


# COCO in memory: the dict of a whole file, an object of pycocotools, or a list of results.

_KEYS = frozenset({"images", "annotations", "categories", "info", "licenses", "type"})
_ARRAYS = {"coco_results": "result", "coco_annotations": "annotation"}


def array_kind(first: Mapping[str, Any]) -> str:
    """Classify an array by its first object: coco_results, coco_annotations or records."""
    geometry = {"bbox", "segmentation", "keypoints", "obb"} & set(first)
    if not ({"image_id", "category_id"} <= set(first) and geometry):
        return "records"
    annotated = "iscrowd" in first or ("area" in first and "score" not in first)
    if not annotated and "score" not in first and not first.keys().isdisjoint(SCORE.aliases):
        return "records"  # whose columns may have other names
    return "coco_annotations" if annotated else "coco_results"


def open_coco_object(
    thing: Any, box_format: str | None, *, extras: frozenset[str]
) -> Source | None:
    """Read COCO objects in memory as from a file; None for others.

    Args:
        thing: a dict with ``annotations``, pycocotools' ``COCO``, or a list of results as dicts.
        box_format: if other than xywh, a list is treated as plain records.
    """

    name = f"{type(thing).__name__} in memory"
    if type(thing).__name__ == "COCO" and isinstance(getattr(thing, "dataset", None), Mapping):
        thing = thing.dataset
    if isinstance(thing, Mapping) and (
        "annotations" in thing or (not thing and name.startswith("COCO"))
    ):
        if not {*thing} <= _KEYS:
            return None
        document = {**thing, "annotations": _plain_rows(thing.get("annotations", []))}
        source = read_ground_truths(_encoded(document, name), name, extras=extras)
    elif (
        isinstance(thing, Sequence)
        and not isinstance(thing, (str, bytes))
        and len(thing) > 0
        and all(isinstance(row, Mapping) for row in thing)
        and box_format in (None, "xywh")
        and (kind := array_kind(thing[0])) in _ARRAYS
    ):
        encoded = _encoded(_plain_rows(thing), name)
        source = read_results(encoded, name, _ARRAYS[kind], extras=extras)
    else:
        return None
    source.files = ()
    return source


def _plain_rows(rows: Any) -> Any:
    """Rows without the corners that ``loadRes`` adds as a polygon, and with text for bytes."""
    if isinstance(rows, (str, bytes, Mapping)) or not isinstance(rows, Collection):
        return rows
    if rows and all(map(_drawn_box, rows)):
        return [{k: v for k, v in row.items() if k != "segmentation"} for row in rows]
    return [_with_text(row) for row in rows]


def _drawn_box(row: Any) -> bool:
    """Return whether a detection's polygon is its box, corner by corner."""
    drawn = isinstance(row, Mapping) and {"score", "segmentation"} <= row.keys()
    box: Any = row.get("bbox") if drawn else None
    if not hasattr(box, "__len__") or len(box) != 4:
        return False
    x, y, w, h = box
    return bool(row.get("segmentation") == [[x, y, x, y + h, x + w, y + h, x + w, y]])


def _with_text(row: Any) -> Any:
    mask = row.get("segmentation") if isinstance(row, Mapping) else None
    if isinstance(mask, Mapping) and isinstance(mask.get("counts"), bytes):
        return {**row, "segmentation": {**mask, "counts": mask["counts"].decode("ascii")}}
    return row


def _encoded(thing: Any, name: str) -> bytes:
    try:
        return msgspec.json.encode(thing, enc_hook=_number)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(
            f"{name} cannot be read as COCO's JSON: {error}", code="file_malformed"
        ) from None


def _number(value: Any) -> Any:
    """NumPy's numbers and arrays, and tensors, as plain ones."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if hasattr(value, "__array__"):
        return np.asarray(value).tolist()
    raise TypeError(f"{type(value).__name__} is not a value of JSON")
