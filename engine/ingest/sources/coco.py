"""COCO JSON, as files and in memory."""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import compress, repeat
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...schemas.contract import OF_BOX
from ...schemas.errors import EvalengineError, InputError, ReadError
from ...schemas.wording import option
from ..annotations.format import without_empty
from ..geometry import BOX_NAMES
from ..problems import Note, PointsAlone
from ..source import SEGMENTED, Source
from .json_rows import UNREADABLE, decode_rows, malformed, misfit

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
    said, found, _ = str(error).partition(_POLARS)
    if not found:
        return error
    return type(error)(said, code="file_malformed", field="segmentation")


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

        def made(index: pl.Series, rows: pl.Series = rows, decode: Any = decode) -> pl.Series:
            return _scattered(raw, index, rows, partial(decode, name=name, what=what))

        at = pl.col("__row").map_batches(made, return_dtype=dtype, is_elementwise=True)
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
    wanted = rows.gather(index)
    places = pl.int_range(len(index), dtype=pl.UInt32, eager=True)
    kept = index.filter(wanted)
    result: pl.Series = decode(raw.gather(kept).cast(pl.String), kept)
    if len(result) == len(index):
        return result
    back = places.filter(wanted)
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
_SHOWN_BITS = 128  # of a number that messages write out


class _Category(msgspec.Struct):
    id: int | str
    name: str | None = None
    supercategory: str | None = None
    frequency: str | None = None
    isthing: int | bool | None = None
    keypoints: Any = None
    skeleton: Any = None


def there(raw: msgspec.Raw) -> bool:
    return memoryview(raw).nbytes > 0


def read_images(raw: msgspec.Raw, name: str, what: str = "image") -> pl.DataFrame | None:
    """Read images or videos as datums, with their further plain fields, for slices."""
    if not there(raw):
        return None
    try:
        rows = msgspec.json.decode(raw, type=list[dict[str, Any]])
    except msgspec.ValidationError as error:
        raise misfit(error, name, what) from None
    for i, row in enumerate(rows):
        if not isinstance(row.get("id"), (int, str)) or isinstance(row["id"], bool):
            message = f"an integer or string is needed, not {row.get('id')!r}."
            raise wrong_row(name, what, i, "id", message)
    ids = [row["id"] for row in rows]
    columns: dict[str, pl.Series] = {"datum_id": id_column(ids, name, what)}
    for field in dict.fromkeys(itertools.chain.from_iterable(rows)):
        values = [row.get(field) for row in rows]
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
    known = [value for value in values if value is not None]
    if len({type(value) for value in known}) > 1:
        raise error(
            f"{name}: {what}s whose {field} is a string, and others whose is a number. Use one"
            " type.",
            code="types_mixed",
            file=name,
            field=field,
        )
    if known and isinstance(known[0], str):
        return pl.Series(values, dtype=pl.String)
    refuse_large(values, name, what, field)
    large = bool(known) and max(known) >= 2**63 and min(known) >= 0
    return pl.Series(values, dtype=pl.UInt64 if large else pl.Int64)


def refuse_large(values: Sequence[Any], name: str, what: str, field: str, done: int = 0) -> None:
    """Refuse ids beyond 64 bits; ignores nulls and strings."""
    for i, value in enumerate(values):
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            message = str(value) if value.bit_length() <= _SHOWN_BITS else f"{hex(value)[:20]}..."
            message = f"{message} has more than 64 bits. Write ids as strings, or smaller ones."
            raise wrong_row(name, what, done + i, field, message, InputError, "number_too_large")


def _plain(values: Iterable[Any]) -> bool:
    """Return whether a field has values of one plain type."""
    kinds = {type(value) for value in values if value is not None}
    return kinds in ({int}, {str}, {bool}, {float}, {int, float})


def read_categories(raw: msgspec.Raw, name: str) -> pl.DataFrame | None:
    """Read categories as labels, with their plain fields, key point names and skeleton."""
    if not there(raw):
        return None
    try:
        rows = msgspec.json.decode(raw, type=list[_Category])
    except msgspec.ValidationError as error:
        raise misfit(error, name, "category") from None
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
    """Parse lists of numbers as one column, List(Float64); null for an empty text and for null."""
    import pyarrow as pa

    def broken() -> EvalengineError:
        rows, expected = itertools.count(done), f"Expected one list {_NEEDED[field]}."
        return _broken(texts, rows, list[float] | None, name, what, field, expected)

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
            raise broken() from None
        nested = joined.count(b"[") != len(full)
        if nested or values.size != lengths.sum() or np.isnan(values).any():
            raise broken()
    start = np.concatenate([[0], np.cumsum(lengths)])
    mask = pa.array(missing) if missing.any() else None
    column: Any = pa.LargeListArray.from_arrays(pa.array(start), pa.array(values), mask=mask)
    return pl.Series(field, pl.from_arrow(column))


Box = tuple[float, float, float, float]
_NO_BOX = (math.nan,) * 4


_LISTED = 4  # pieces as large as this many others, if lists of a piece are read together
_LARGEST = 2**53  # floats are exact for integers up to here

_MAY_LACK = (
    *("score", "iscrowd", "ignore", "area", "annotation_id"),
    *("segmentation", "keypoints", "num_keypoints", "obb"),
)


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
    "keypoints": (("keypoints", msgspec.Raw, msgspec.Raw()), ("num_keypoints", float | None, None)),
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
        what: ``annotation`` for an array of annotations, which have area, iscrowd and id.
        wanted: geometry fields to read in addition to boxes, ``segmentation`` and ``keypoints``; if
            empty, segmentations are read only if a box is missing.
    """
    rows, notes = _rows(buffer, name, what, wanted=wanted)
    return Source(
        with_segmentation(rows, name, what), f"COCO {what}s {name}", "coco", (name,), notes=notes
    )


def read_ground_truths(buffer: Any, name: str, *, wanted: frozenset[str] = SEGMENTED) -> Source:
    """Read an object ``{images, annotations, categories}``; images become datums, categories
    labels.

    Args:
        wanted: geometry fields to read in addition to boxes, ``segmentation`` and ``keypoints``; if
            empty, segmentations are read only if a box is missing.
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
            " those, COCO results, an array of records, and JSON Lines.",
            code="wrong_format",
            file=str(name),
        )
    rows, notes = _rows(memoryview(file.annotations), name, "annotation", wanted=wanted)
    return Source(
        with_segmentation(rows, name, "annotation"),
        f"COCO ground truths {name}",
        "coco",
        (name,),
        datums=read_images(file.images, name),
        labels=read_categories(file.categories, name),
        notes=(*notes, *_federated(file, name)),
    )


def _federated(file: _File, name: str) -> tuple[Note, ...]:
    """A warning of LVIS's files, whose images are not annotated with every category."""
    if not _mentions(memoryview(file.images), b'"neg_category_ids"'):
        return ()
    message = (
        f"{name} is an LVIS file: its images are annotated with only some categories "
        "(neg_category_ids, not_exhaustive_category_ids), but here every other detection is a "
        "false positive. The numbers are lower than LVIS's."
    )
    return (Note("federated", message, warning=True),)


def _rows(
    buffer: Any, name: str, what: str, *, wanted: frozenset[str]
) -> tuple[pl.DataFrame, tuple[Note, ...]]:
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
        for column, field in (("datum_id", "image_id"), ("label_value", "category_id")):
            first, last = pieces[0][column], pieces[-1][column]
            if (first.dtype == pl.String) != (last.dtype == pl.String):
                raise _mixed(name, what, done, field, last[0], first[0])
        done += n
    return pieces


def _without_empty_boxes(rows: Sequence[Any], name: str, what: str, done: int) -> None:
    """Replace ``"bbox": []`` by None, as pycocotools does for masks."""
    for i, row in enumerate(rows):
        if row.bbox is not None and len(row.bbox) != 4:
            if row.bbox:
                way = f" Five are an oriented one: write {option('iou_type', 'obb')}."
                message = f"a box needs 4 numbers.{way if len(row.bbox) == 5 else ''}"
                raise wrong_row(name, what, done + i, "bbox", message)
            row.bbox = None


def _turned(rows: Sequence[Any], name: str, what: str, done: int) -> dict[str, pl.Series]:
    """Return oriented boxes, and corners and extents of upright ones; null if a row has none.

    An oriented box is in a separate field, or has five numbers instead of four.
    """
    box, own = (
        lists([bytes(getattr(row, field)) for row in rows], name, what, done, field)
        for field in ("bbox", "obb")
    )
    size = box.list.len().fill_null(0)
    wrong = ~size.is_in([0, 4, 5])
    if wrong.any():
        at = int(wrong.arg_true()[0])
        message = f"a box needs 4 numbers, an oriented one 5, not {size[at]}."
        raise wrong_row(name, what, done + at, "bbox", message)
    x, y, w, h = (box.list.get(i, null_on_oob=True).set(size != 4, None) for i in range(4))
    columns = dict(zip(BOX_NAMES, (x, y, x + w, y + h, w, h), strict=True))
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
            return {name: pl.Series([None] * n, dtype=pl.Float64) for name in BOX_NAMES}
        flat = itertools.chain.from_iterable(row.bbox or _NO_BOX for row in rows)
        boxes = np.fromiter(flat, np.float64, 4 * n).reshape(n, 4)
    x, y, w, h = np.ascontiguousarray(boxes.T)
    columns = dict(zip(BOX_NAMES, map(pl.Series, (x, y, x + w, y + h, w, h)), strict=True))
    if whole:
        return columns
    return {name: column.fill_nan(None) for name, column in columns.items()}


def _mixed(name: str, what: str, index: int, field: str, odd: Any, usual: Any) -> EvalengineError:
    kind = "strings" if isinstance(usual, str) else "integers"
    message = f"{odd!r} among {kind} such as {usual!r}. Ids are all integers or all strings."
    return wrong_row(name, what, index, field, message, InputError, "types_mixed", value=odd)


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
        odd = next(
            i for i, value in enumerate(found) if value is not None and type(value) is not kinds[0]
        )
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
    """Return a column of flags; integers other than 0 and 1 are refused later."""
    try:
        flags = _numbers(rows, field)
        if not (flags.abs() > _LARGEST).any():
            return flags
    except OverflowError:
        pass
    values = map(operator.attrgetter(field), rows)
    i, value = next((i, v) for i, v in enumerate(values) if v is not None and abs(v) > _LARGEST)
    message = f"a number of {value.bit_length():,} bits. Write 0 or 1."
    raise wrong_row(name, what, done + i, field, message, InputError, "number_too_large")


def _tidy(frame: pl.DataFrame) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    """Drop columns without values; fill missing flags and areas."""
    notes: list[Note] = []
    names = (*_MAY_LACK, *BOX_NAMES)
    frame = without_empty(frame, [name for name in names if name in frame.columns])
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
        message = f"ground truths: {lacking:,} without area, filled with {part}width times height"
        notes.append(Note("area_filled", f"{message} of the box.", lacking))
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
            f" segmentation, first {what} {bare.arg_true()[0]:,} (counted from 0). {way}",
            code="geometry_missing",
            count=int(bare.sum()),
            of=frame.height,
            row=bare.arg_true()[0],
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
    return "coco_annotations" if annotated else "coco_results"


def open_coco_object(
    thing: Any, box_format: str | None, *, wanted: frozenset[str]
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
        whole = {**thing, "annotations": _plain_rows(thing.get("annotations", []))}
        source = read_ground_truths(_encoded(whole, name), name, wanted=wanted)
    elif (
        isinstance(thing, Sequence)
        and not isinstance(thing, (str, bytes))
        and len(thing) > 0
        and all(isinstance(row, Mapping) for row in thing)
        and box_format in (None, "xywh")
        and (kind := array_kind(thing[0])) in _ARRAYS
    ):
        encoded = _encoded(_plain_rows(thing), name)
        source = read_results(encoded, name, _ARRAYS[kind], wanted=wanted)
    else:
        return None
    source.files = ()
    return source


def _plain_rows(rows: Sequence[Any]) -> Sequence[Any]:
    """Rows without the corners that ``loadRes`` adds as a polygon, and with text for bytes."""
    if rows and all(map(_drawn_box, rows)):
        return [{k: v for k, v in row.items() if k != "segmentation"} for row in rows]
    return [_with_text(row) for row in rows]


def _drawn_box(row: Any) -> bool:
    """Return whether a detection's polygon is its box, corner by corner."""
    if not isinstance(row, Mapping) or "score" not in row or len(row.get("bbox", ())) != 4:
        return False
    x, y, w, h = row["bbox"]
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
