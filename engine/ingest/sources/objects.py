"""Tables and arrays in memory."""

from __future__ import annotations

import glob
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ...schemas.arrays import Array
from ...schemas.errors import N_EXAMPLES, InputError, ReadError, TruthsMissingError
from ..annotations.format import stems_or_paths
from ..files import SEGMENTED, Source, by_extension, of_frame
from ..problems import count_of, listing
from .coco import open_coco_object
from .json_rows import source_of
from .scanning import is_remote, looks_wild
from .table_formats import classes_of, table_of

# Array-like values: NumPy arrays, tensors on any device, images.

_TABLES = ("polars", "pandas", "pyarrow")


def is_array(thing: Any) -> bool:
    """Return whether a value is an array or converts to one (tensors, images); not tables."""
    named = type(thing).__module__.split(".")[0]
    if named in _TABLES or hasattr(thing, "columns") or hasattr(thing, "__arrow_c_stream__"):
        return False
    return (
        isinstance(thing, np.ndarray)
        or hasattr(thing, "__array_interface__")
        or (hasattr(thing, "__array__") and hasattr(thing, "shape"))
    )


def as_array(thing: Any) -> np.ndarray[Any, Any]:
    """Convert a tensor or array-like to an array, detached and on the CPU.

    NumPy's float16 and ``bfloat16``, which NumPy does not have, become float32, which is exact for
    both.

    Raises:
        TypeError, ValueError, RuntimeError: from NumPy or the tensor if conversion fails.
    """
    if hasattr(thing, "detach"):
        thing = thing.detach().cpu()
        if str(thing.dtype).endswith("bfloat16"):
            thing = thing.float()
    masked = int(np.sum(thing.mask)) if isinstance(thing, np.ma.MaskedArray) else 0
    if masked:
        raise InputError(
            f"an array with {masked:,} masked values: fill these, or remove their datums from both"
            " sides."
        )
    result = np.asarray(thing)
    if result.dtype == np.float16 or result.dtype.name == "bfloat16":
        return result.astype(np.float32)
    return result


# Detections as lists of images: torchvision's dicts, supervision's objects, pipelines' lists.

_CORNERS = ("xmin", "ymin", "xmax", "ymax")
_MASK = pl.Struct({"size": pl.List(pl.Int64()), "runs": pl.List(pl.Int64())})
_HALF = 0.5  # above which a pixel of a mask of probabilities is set, as in torchvision's examples


def are_images(thing: Any) -> bool:
    return _form(thing) is not None


def open_images(thing: Sequence[Any], box_format: str | None = None) -> Source:
    """Convert a list of images to a table of objects; ``datum_id`` is the list index.

    Args:
        thing: per image: a dict of ``boxes`` [n, 4], ``labels`` [n] and, for detections, ``scores``
            [n], as in torchvision, torchmetrics and transformers, optionally with ``masks`` [n, h,
            w], ``iscrowd`` and ``area``; a ``Detections`` of supervision; or a list of dicts with
            ``label``, ``score`` and ``box`` from transformers' pipelines.
        box_format: xyxy (default), xywh or cxcywh, in pixels.
    """
    form = _form(thing)
    assert form is not None  # checked by are_images
    title, read = form
    if isinstance(thing[0], Mapping) and "box" in thing[0]:
        thing = [thing]  # a pipeline's output for one image
    images = [read(image) for image in thing]
    names = dict.fromkeys(name for image in images for name in image)
    columns: dict[str, list[Any]] = {name: [] for name in names}
    counts = []
    for place, image in enumerate(images):
        lengths = {name: len(image.get(name, ())) for name in image}
        n = lengths.get("boxes", 0)
        counts.append(n)
        if len({*lengths.values()}) > 1:
            text = ", ".join(f"{count:,} {name}" for name, count in lengths.items())
            raise InputError(
                f"{title}, image {place:,} (counted from 0): {text}. Give one a box.",
                code="lengths_differ",
                row=place,
            )
        for name in names:
            if n and name not in image:
                raise InputError(
                    f"{title}: image {place:,} (counted from 0) has no {name!r}, and others have."
                )
            columns[name] += list(image.get(name, ()))
    if "boxes" in names and not any(counts):
        columns.setdefault("labels", [])  # of no objects
        names["labels"] = None
    if not {"boxes", "labels"} <= names.keys():
        missing = [name for name in ("boxes", "labels") if name not in names]
        raise InputError(
            f"{title}: images without {' and '.join(map(repr, missing))}; there are"
            f" {', '.join(names) or 'none'}."
        )
    frame = _frame(columns, np.repeat(np.arange(len(images)), counts), box_format, title)
    datums = pl.DataFrame({"datum_id": np.arange(len(images))})
    message = f"{title}: {frame.height:,} objects in {len(images):,} images"
    return Source(frame.lazy(), message, "images", datums=datums, places=len(images))


def refuse_uneven(predictions: Any, truths: Any) -> None:
    """Refuse two lists of images of different length, whose indices cannot match."""
    if are_images(predictions) and are_images(truths) and len(predictions) != len(truths):
        raise InputError(
            f"the predictions are a list of {len(predictions):,} images and the ground truths one"
            f" of {len(truths):,}. Give both for the same images in the same order, with an empty"
            " entry for an image without objects.",
            code="lengths_differ",
            lengths=[len(predictions), len(truths)],
        )


def empty_images(predictions: Any, truths: Any) -> Any:
    """Convert a pipeline's empty lists to images without objects, if the truths are images."""
    if not isinstance(predictions, Sequence) or isinstance(predictions, (str, bytes)):
        return predictions
    empty = all(isinstance(one, Sequence) and len(one) == 0 for one in predictions)
    if not len(predictions) or not empty or not are_images(truths):
        return predictions
    return [{"boxes": [], "labels": [], "scores": []} for _ in predictions]


def _form(thing: Any) -> tuple[str, Callable[[Any], dict[str, Any]]] | None:
    """Return the display name and reader for the images of a list."""
    if not isinstance(thing, Sequence) or isinstance(thing, (str, bytes)) or not len(thing):
        return None
    return next(((title, read) for title, detects, read in _FORMS if detects(thing)), None)


def _of_dict(image: Mapping[str, Any]) -> dict[str, Any]:
    result = {
        name: _values(image[name])
        for name in ("boxes", "labels", "scores", "iscrowd", "area")
        if image.get(name) is not None
    }
    result["boxes"] = _boxes(result.get("boxes", []))
    if image.get("masks") is not None and len(result["boxes"]):
        result["masks"] = _masks(_values(image["masks"]))
    return result


def _of_supervision(image: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"boxes": _boxes(_values(image.xyxy))}
    named = (getattr(image, "data", None) or {}).get("class_name")
    classes = named if image.class_id is None else image.class_id
    if classes is not None:
        result["labels"] = _values(classes)
    if image.confidence is not None:
        result["scores"] = _values(image.confidence)
    if getattr(image, "mask", None) is not None and len(result["boxes"]):
        result["masks"] = _masks(_values(image.mask))
    return result


def _of_pipeline(image: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    if not image:
        return {}
    result = {
        "boxes": [[one["box"][corner] for corner in _CORNERS] for one in image],
        "labels": [one["label"] for one in image],
    }
    if any("score" in one for one in image):
        result["scores"] = [one.get("score") for one in image]
    return result


def _is_prediction(one: Any) -> bool:
    return isinstance(one, Mapping) and "label" in one and isinstance(one.get("box"), Mapping)


def _is_pipeline(thing: Sequence[Any]) -> bool:
    if all(map(_is_prediction, thing)):
        return True
    lists = all(isinstance(image, Sequence) and not isinstance(image, str) for image in thing)
    return lists and any(thing) and all(_is_prediction(one) for image in thing for one in image)


_FORMS: tuple[tuple[str, Callable[[Any], bool], Callable[[Any], dict[str, Any]]], ...] = (
    (
        "list of dicts of boxes and labels",
        lambda thing: all(isinstance(o, Mapping) and "boxes" in o and "labels" in o for o in thing),
        _of_dict,
    ),
    (
        "list of Detections",
        lambda thing: all(
            hasattr(one, name) for one in thing for name in ("xyxy", "class_id", "confidence")
        ),
        _of_supervision,
    ),
    ("lists of dicts of label and box", _is_pipeline, _of_pipeline),
)


def _values(values: Any) -> Any:
    """Convert array-likes to arrays; lists are unchanged."""
    try:
        values = as_array(values) if is_array(values) else values
        len(values)  # a single number has none
        return values
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"a {type(values).__name__} cannot be read: {error}", code="wrong_type"
        ) from None


def _boxes(boxes: Any) -> Any:
    """Boxes one by one; an empty array may have any shape."""
    if len(boxes) and any(np.shape(box) != (4,) for box in boxes):
        raise InputError(
            f"boxes of shape {np.shape(boxes)}: four numbers a box are needed, [n, 4]. Turned boxes"
            " and polygons go in as a column 'polygon' of a table.",
            code="wrong_shape",
            shape=np.shape(boxes),
        )
    return boxes


def _masks(masks: Any) -> list[dict[str, Any]]:
    """Pixels [n, h, w] or [n, 1, h, w] as lengths of runs along the rows."""
    pixels = np.asarray(masks)
    if pixels.ndim == 4 and pixels.shape[1] == 1:
        pixels = pixels[:, 0]
    if pixels.ndim != 3:
        raise InputError(
            f"masks of shape {pixels.shape}: pixels [n, h, w] are needed.",
            code="wrong_shape",
            shape=pixels.shape,
        )
    if pixels.dtype.kind == "f":
        low, high = (pixels.min(), pixels.max()) if pixels.size else (0.0, 0.0)
        if not (low >= 0 and high <= 1) and not (low >= 0 and (pixels == pixels.round()).all()):
            raise InputError(
                f"masks have values from {low:g} to {high:g}, but shares of a pixel are 0 to 1. "
                "If these are logits, give masks > 0; otherwise compare them with your "
                "threshold, and give the result."
            )
        pixels = pixels > _HALF
    else:
        pixels = pixels != 0
    result = []
    for one in pixels:
        flat = np.concatenate([[False], one.ravel()])
        edges = np.flatnonzero(flat[1:] != flat[:-1])
        runs = np.diff(np.concatenate([[0], edges, [one.size]]))
        result.append({"size": list(one.shape), "runs": runs.tolist()})
    return result


def _frame(
    columns: dict[str, list[Any]], datums: Array, box_format: str | None, title: str
) -> pl.DataFrame:
    boxes = np.asarray(columns["boxes"], np.float64).reshape(-1, 4)
    data: dict[str, Any] = {"datum_id": datums, "label_value": _labels(columns["labels"], title)}
    if box_format in (None, "xyxy"):
        data |= dict(zip(_CORNERS, np.ascontiguousarray(boxes.T), strict=True))
    else:
        data["bbox"] = pl.Series(boxes, dtype=pl.Array(pl.Float64, 4))
    for name, column, dtype in (
        ("scores", "score", None),
        ("iscrowd", "iscrowd", pl.Int64),
        ("area", "area", pl.Float64),
        ("masks", "mask", _MASK),
    ):
        if name in columns:
            values = columns[name]
            scored = dtype is None and values and isinstance(values[0], np.floating)
            data[column] = (
                pl.Series(np.asarray(values))
                if scored
                else pl.Series(values, dtype=dtype or pl.Float64, strict=False)
            )
    return pl.DataFrame(data)


def _labels(values: list[Any], title: str) -> pl.Series:
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    kinds = {type(value).__name__ for value in plain}
    if len(kinds) > 1:
        raise InputError(
            f"{title}: labels are {' and '.join(sorted(kinds))}. Give one kind.", code="types_mixed"
        )
    return pl.Series(plain, dtype=None if plain else pl.Null)


# Label maps without a table: arrays of pixels, or files of images, one a datum.

FORMAT = "label maps"


def are_label_maps(thing: Any) -> bool:
    """Return whether a value is an array [n, h, w], or one or several of [h, w]."""
    if isinstance(thing, Mapping):
        return len(thing) > 0 and all(map(_is_map, thing.values()))
    if isinstance(thing, Sequence) and not isinstance(thing, (str, bytes)):
        return len(thing) > 0 and all(map(_is_map, thing))
    return is_array(thing) and len(_shape(thing)) in (2, 3)


def open_label_maps(thing: Any) -> Source:
    """Make a table of ``datum_id`` and ``raster`` from arrays of label indices, without copies.

    Datum ids are the keys of a mapping, otherwise 0, 1, 2, ...

    Args:
        thing: integers or booleans [n, h, w] or [h, w], or a list or mapping of [h, w].
    """
    ids = list(thing) if isinstance(thing, Mapping) else None
    if is_array(thing) and len(_shape(thing)) == 3:
        thing = as_array(thing)
        _refuse_other_axes(thing)
    listed = thing.values() if isinstance(thing, Mapping) else [thing] if _is_map(thing) else thing
    maps = [as_array(one) for one in listed]
    for place, one in enumerate(maps):
        if one.dtype.kind not in "iub":
            raise InputError(
                f"label maps: {'datum ' + repr(ids[place]) if ids else f'map {place}'} is "
                f"{one.dtype}, but pixels are indices of labels. Write .astype('int64'), or take "
                "the argmax over classes first.",
                code="wrong_dtype",
                value=ids[place] if ids else place,
                dtype=one.dtype,
            )
    try:
        named = pl.Series("datum_id", range(len(maps)) if ids is None else ids)
    except (pl.exceptions.PolarsError, TypeError) as error:
        raise InputError(
            f"label maps: datum ids must be all strings or all integers: {error}.",
            code="wrong_dtype",
            column="datum_id",
        ) from None
    kind = type(thing).__name__
    return Source(
        pl.DataFrame({"datum_id": named, "raster": pl.Series(maps, dtype=pl.Object)}).lazy(),
        f"{kind} of {len(maps):,} label maps",
        FORMAT,
        places=len(maps) if ids is None else None,
    )


def open_label_map_files(files: Sequence[str], description: str) -> Source:
    """Make a table of ``datum_id``, the file name without suffix, and ``raster``.

    If files in several folders have the same name, all ids include the folders.
    """
    folder = os.path.commonpath([os.path.dirname(os.path.abspath(file)) for file in files])
    ids = stems_or_paths(
        [os.path.relpath(file, folder).replace(os.sep, "/") for file in map(os.path.abspath, files)]
    )
    first: dict[str, str] = {}
    for one, file in zip(ids, files, strict=True):
        other = first.setdefault(one, file)
        if other != file:
            raise InputError(
                f"{description}: a label map's datum is its file's name without the extension, and"
                f" two have the same one: {other} and {file}. Rename one of them, or write a table"
                " with datum_id and raster (the path).",
                code="repeated_values",
                column="datum_id",
                value=one,
            )
    rows = pl.DataFrame(
        {"datum_id": ids, "raster": files}, schema={"datum_id": pl.String, "raster": pl.String}
    )
    return Source(rows.lazy(), description, "raster", tuple(files))


def _refuse_other_axes(array: np.ndarray[Any, Any]) -> None:
    """Refuse an array [n, h, w] that seems to be a colour picture or one-hot classes."""
    n, height, width = array.shape
    way = "If it is {} label maps, give them as a list: list(array)."
    if width in _BANDS and min(n, height) > _TINY:
        raise InputError(
            f"label maps: an array of shape {array.shape} looks like one colour picture [h, w,"
            f" {width}], and label maps are [n, h, w]. Turn its colours into indices of labels, one"
            f" map [h, w]. {way.format(n)}",
            code="wrong_shape",
            shape=array.shape,
        )
    if n < 2 or array.dtype.kind not in "iub" or not array.size:
        return
    some = array[:, :: max(height // _LINES, 1)]
    if not ((some == 0) | (some == some.max())).all():
        return
    high = int(array.max())
    if not high or not ((array == 0) | (array == high)).all():
        return
    classes = (array == high).sum(axis=0, dtype=np.int64)
    least = 1.0 if n == 2 else _COVERED  # two maps may be each other's complement
    if classes.max() == 1 and classes.mean() >= least:
        raise InputError(
            f"label maps: an array of shape {array.shape} has at most one {high} per pixel along "
            f"its first axis, like one image with an axis of {n} classes. Write .argmax(0) to "
            f"get its label map. {way.format(n)}",
            code="wrong_shape",
            shape=array.shape,
        )


_BANDS = (3, 4)  # of a colour picture, without and with transparency
_COVERED = 0.5  # share of the pixels with a class; the others may be void
_LINES = 4  # of every map that are looked at first: most label maps have two labels there
_TINY = 4  # pixels; a label map with a shorter side may have any shape


def _is_map(thing: Any) -> bool:
    return is_array(thing) and len(_shape(thing)) == 2


def _shape(thing: Any) -> tuple[int, ...]:
    if hasattr(thing, "shape"):
        return tuple(thing.shape)
    return tuple(thing.__array_interface__["shape"])


# Columns of Python values of several types, which a typed table cannot represent.

_LONGEST = 60
_WORDS = {
    str: "strings",
    int: "integers",
    float: "floats",
    bool: "booleans",
    list: "lists",
    dict: "dicts",
    bytes: "bytes",
}


def _line(name: str, values: Sequence[Any]) -> str:
    """Describe a column whose values are of several types, ignoring nulls; else ""."""
    kinds = [_kind(value) for value in values]
    counts = Counter(kind for kind in kinds if kind is not None)
    if len(counts) < 2 or set(counts) == {int, float}:
        return ""
    usual = counts.most_common(1)[0][0]
    odd = [row for row, kind in enumerate(kinds) if kind is not None and kind is not usual]
    texts = {row: repr(values[row]) for row in odd[:N_EXAMPLES]}
    first = "; ".join(
        f"row {row} ({text if len(text) <= _LONGEST else text[:_LONGEST] + '...'})"
        for row, text in texts.items()
    )
    shares = ", ".join(
        f"{_WORDS.get(kind, kind.__name__)} in {n:,} row{'s' if n > 1 else ''}"
        for kind, n in counts.most_common()
    )
    return (
        f"- column {name!r} mixes types: {shares}. First rows (counted from 0) of the other kind:"
        f" {first}. Bring all values to one type, for instance each to str(value)."
    )


def misfit_of(
    columns: Mapping[str, Sequence[Any]], *, pandas: bool = False
) -> tuple[str, int, str] | None:
    """Return the first column without a dtype, its first such row from 0, and a message.

    Args:
        pandas: whether the columns are those of a pandas frame, in which texts are no numbers.
    """
    from .json_rows import WRITE_TEXT, first_misfit

    for name, values in columns.items():

        def make(n: int, name: str = name, values: Sequence[Any] = values) -> None:
            some = values[:n]
            if pandas:
                pl.from_pandas(sys.modules["pandas"].Series(some, dtype=object))
            else:
                pl.DataFrame({name: _column(some, name)})

        try:
            make(len(values))
        except (Exception, pl.exceptions.PanicException):
            row = first_misfit(len(values), make) - 1
            quote = repr(values[row])
            quote = quote if len(quote) <= _LONGEST else quote[:_LONGEST] + "..."
            return (
                name,
                row,
                f"column {name!r}: the values up to row {row} (counted from 0), {quote}, have no"
                f" common type. {WRITE_TEXT}",
            )
    return None


def _kind(value: Any) -> type | None:
    """A value's type as a table knows it; None for nulls, NaN and NaT among them."""
    if value is None or type(value).__name__ in ("NaTType", "NAType"):
        return None
    if isinstance(value, float) and value != value:
        return None
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        return type(value.item())  # NumPy's scalars count as Python's
    return type(value)


def open_object(
    thing: Any, box_format: str | None = None, *, extras: frozenset[str] = SEGMENTED
) -> Source:
    """Open a table in memory as a source; also label maps, lists of images, and COCO in memory."""
    thing = _native(thing)
    if isinstance(thing, (pl.DataFrame, pl.LazyFrame)):
        return of_frame(thing)
    if are_label_maps(thing):
        return open_label_maps(thing)
    if are_images(thing):
        return open_images(thing, box_format)
    coco = open_coco_object(thing, box_format, extras=extras)
    if coco is not None:
        return coco
    name = name_of(thing)
    array = _is(thing, "numpy", "ndarray")
    if (
        (array and thing.ndim in (1, 2) and thing.dtype.names is None)
        or (isinstance(thing, pl.Series) and thing.dtype != pl.Struct)
        or _is(thing, "pandas", "Series")
    ):
        raise TruthsMissingError(f"one {name} is not a table. {COLUMNS}", code="truths_missing")
    table = table_of(thing)
    if table is not None:
        return Source(table, name, classes=classes_of(thing))
    if any(_is(thing, "ranx", kind) for kind in ("Run", "Qrels")):
        thing = thing.to_dict()
    if (
        isinstance(thing, Mapping)
        and len(thing) > 0
        and any(isinstance(value, Mapping) for value in thing.values())
    ):
        return source_of(thing, f"{name} of {len(thing):,} queries")
    try:
        frame = _convert(thing)
    except (ReadError, MemoryError):
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        columns = _object_columns(thing).items()
        mixed = [line for column, values in columns if (line := _line(column, values))]
        if mixed:
            raise InputError(
                f"{name} cannot be used:\n" + "\n".join(mixed), code="types_mixed", count=len(mixed)
            ) from error
        reason = str(error).strip().splitlines()[0] if str(error).strip() else ""
        if "Int256" in reason:
            reason = f"decimals of more than {_DIGITS} digits. Cast them, e.g. to float64."
        sized = isinstance(thing, Mapping) and all(
            hasattr(one, "__len__") and getattr(one, "shape", None) != () for one in thing.values()
        )
        lengths = {key: len(one) for key, one in thing.items()} if sized else {}
        if len(set(lengths.values())) > 1:
            message = ", ".join(
                f"{key!r} {count}" for key, count in list(lengths.items())[:_COLUMNS]
            )
            raise InputError(
                f"{name}: columns of a table have one length, and these have {message}. Give each "
                "the same number of values, with None for missing ones.",
                code="lengths_differ",
                lengths=lengths,
            ) from error
        pandas = _is(thing, "pandas", "DataFrame")
        if (misfit := misfit_of(_object_columns(thing), pandas=pandas)) is not None:
            column, row, fault = misfit
            raise InputError(
                f"{name}: {fault}", code="types_mixed", column=column, row=row
            ) from error
        raise InputError(f"{name}: cannot be made a table: {reason}") from error
    classes = classes_of(thing) if _is(thing, "pyarrow", "Table") else None
    return Source(frame.lazy(), f"{name} of {frame.height:,} rows", classes=classes)


def _native(thing: Any) -> Any:
    """Unwrap narwhals frames and series, and load a Dask frame; return other objects unchanged."""
    module = type(thing).__module__.split(".")[0]
    if module == "narwhals" and hasattr(thing, "to_native"):
        return thing.to_native()
    if module in ("dask", "dask_expr") and hasattr(thing, "columns"):
        return thing.compute()
    if is_array(thing) and len(shape := tuple(thing.shape)) > _AXES:
        single = next((axis for axis in range(1, len(shape)) if shape[axis] == 1), None)
        if single is not None:
            raise InputError(
                f"an array of shape {shape} is not a table, and label maps are [n, h, w]. Write"
                f" .squeeze({single}) to remove the axis of length 1."
            )
        raise InputError(
            f"an array of shape {shape} is not a table, and label maps are [n, h, w]. If an axis"
            " counts classes, write .argmax(1), or another axis of classes. Volumes [n, d, h, w] go"
            " in as .reshape(n, d * h, w): IoU, Dice and the counts of pixels are then those of"
            " the volumes, distances of surfaces are not."
        )
    return thing


def _object_columns(thing: Any) -> dict[str, list[Any]]:
    """Return columns of plain Python values, by name, which may be of several types."""
    if _is(thing, "pandas", "DataFrame"):
        return {
            str(name): list(thing.iloc[:, i])
            for i, name in enumerate(thing.columns)
            if thing.dtypes.iloc[i].kind == "O"
        }
    if isinstance(thing, Mapping):
        return {
            str(name): list(values)
            for name, values in thing.items()
            if isinstance(values, (list, tuple))
        }
    if isinstance(thing, Sequence) and all(isinstance(row, Mapping) for row in thing):
        names = dict.fromkeys(name for row in thing for name in row)
        return {str(name): [row.get(name) for row in thing] for name in names}
    return {}


COLUMNS = (
    "Give both sides as values, in one order, or a dict of columns, such as"
    " {'actual': [...], 'predicted': [...]}."
)
_AXES = 3  # of a stack of label maps
_COLUMNS = 6  # whose lengths are shown
_UNREADABLE = (AttributeError, TypeError, ValueError, RuntimeError, OverflowError)
_TEXTS = 1000  # distinct ones of a list that are looked at


def detached(thing: Any) -> Any:
    """Copy NumPy arrays and pandas objects, also in a mapping, whose memory Polars would share.

    For batches: users write the next one into the same buffer.
    """
    if isinstance(thing, dict):
        return {name: detached(values) for name, values in thing.items()}
    if type(thing) is np.ndarray or any(
        _is(thing, "pandas", name) for name in ("Series", "Index", "DataFrame")
    ):
        return thing.copy()
    return thing


def column_of(thing: Any) -> pl.Series | None:
    """Convert unnamed values to a series: lists of scalars or of lists, arrays, series.

    Arrays have one axis or two; lists of texts that may be paths are excluded.
    """
    thing = _native(thing)
    if isinstance(thing, pl.Series):
        return None if thing.dtype == pl.Struct else thing
    try:
        if _is(thing, "pandas", "Series") or _is(thing, "pandas", "Index"):
            return pl.Series(thing)
        if _is(thing, "pyarrow", "Array") or _is(thing, "pyarrow", "ChunkedArray"):
            column = pl.from_arrow(thing)
            return column if isinstance(column, pl.Series) and column.dtype != pl.Struct else None
        if is_array(thing):
            array = as_array(thing)
            if array.dtype.names is not None or array.ndim not in (1, 2):
                return None
            if array.ndim == 2 and array.shape[1] == 1:  # a column, as of a table
                array = array[:, 0]
            return pl.Series(array.tolist() if array.dtype.kind in "OU" else array)
        if isinstance(thing, Sequence) and not isinstance(thing, (str, bytes)):
            return _of_values(thing)
    except (*_UNREADABLE, pl.exceptions.PolarsError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "no reason given"
        raise InputError(
            f"a {name_of(thing)} cannot be read as values: {reason}", code="not_a_table"
        ) from None
    return None


def _of_values(values: Sequence[Any]) -> pl.Series | None:
    kinds = {type(value) for value in values} - {type(None)}
    plain = all(issubclass(kind, (bool, int, float, str, np.generic)) for kind in kinds)
    deep = all(issubclass(kind, (list, tuple)) for kind in kinds)
    if not deep and not plain and all(map(is_array, values)):
        arrays = [as_array(value) for value in values]
        if {array.ndim for array in arrays} == {0}:
            return pl.Series([array.item() for array in arrays])
        if {array.ndim for array in arrays} != {1}:
            return None
        values, deep = [array.tolist() for array in arrays], True
    texts = [value for value in values if isinstance(value, str)]
    if not kinds and len(values):
        return pl.Series([None] * len(values), dtype=pl.Null)
    if not kinds or not (plain or deep) or are_paths(texts):
        return None
    if deep and any(isinstance(item, Mapping) for value in values if value for item in value):
        return None
    if plain and any(issubclass(kind, np.generic) for kind in kinds):
        values = [value.item() if isinstance(value, np.generic) else value for value in values]
    types = {type(value) for value in values} - {type(None)}
    if len(types) > 1 and types != {int, float} and not deep:
        raise TypeError("there are " + " and ".join(sorted(kind.__name__ for kind in types)))
    column = _column(list(values))
    return column if isinstance(column, pl.Series) else pl.Series(column)


def are_paths(texts: Sequence[str]) -> bool:
    """Return whether texts of a list are paths: of existing files, or by their form.

    Folders count only if all texts are folders: a class may have a folder's name.
    """
    some = list(dict.fromkeys(texts))[:_TEXTS]
    return any(map(_may_be_file, some)) or (bool(some) and all(map(os.path.isdir, some)))


def _may_be_file(text: str) -> bool:
    if is_remote(text) or os.path.isfile(text):
        return True
    if looks_wild([text]) and glob.glob(text):
        return True
    if any(map(str.isspace, text)):
        return False
    folder = os.path.dirname(text)
    return by_extension(text) is not None or (folder != "" and os.path.isdir(folder))


def name_of(thing: Any) -> str:
    kind = type(thing)
    module = kind.__module__.split(".")[0]
    return kind.__name__ if module == "builtins" else f"{module}.{kind.__name__}"


def _convert(thing: Any) -> pl.DataFrame:
    if _is(thing, "pandas", "DataFrame"):
        named = [name for name in thing.index.names if name is not None]
        named_by_text = all(isinstance(name, str) and name not in thing.columns for name in named)
        thing = thing.reset_index(named) if named and named_by_text else thing
        return _of_pandas(_plain(thing))
    if _is(thing, "pyarrow", "Table") or _is(thing, "pyarrow", "RecordBatch"):
        thing = _narrow(thing)
        converted = pl.from_arrow(thing)
        return converted if isinstance(converted, pl.DataFrame) else converted.struct.unnest()
    if hasattr(thing, "__arrow_c_stream__") or hasattr(thing, "__arrow_c_array__"):
        return pl.DataFrame(thing)
    if isinstance(thing, Mapping):
        return pl.DataFrame({name: _column(values, name) for name, values in thing.items()})
    if isinstance(thing, Sequence) and not isinstance(thing, (str, bytes)):
        if all(isinstance(row, Mapping) for row in thing):
            return frame_of_rows(thing)
        raise ReadError(
            "a list given as a table must contain rows as dicts, or paths; this one contains "
            f"{name_of(next(row for row in thing if not isinstance(row, Mapping)))}. {COLUMNS}",
            code="not_a_table",
        )
    raise ReadError(
        f"a {name_of(thing)} is not a table. Give a path or glob, a Polars, pandas or pyarrow"
        f" table, a"
        " dict of columns, a list of dicts, a dict of queries to documents to numbers, label maps"
        " as an array [n, h, w] or a list or dict of arrays [h, w], or anything with the Arrow"
        " stream interface.",
        code="not_a_table",
    )


def _of_pandas(frame: Any) -> pl.DataFrame:
    """Convert a pandas frame; tool calls whose arguments have no common type become JSON text.

    Raises:
        ReadError: a name of several columns.
    """
    names = [*map(str, frame.columns)]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ReadError(
            f"{name_of(frame)}: {count_of(len(twice), 'name')} of several columns:"
            f" {listing(twice[:_COLUMNS], len(twice))}. Rename or remove all but one.",
            code="column_twice",
            columns=twice,
        )
    try:
        return pl.from_pandas(frame)
    except Exception:
        from .json_rows import column_of_calls

        calls = {}
        for name, values in _object_columns(frame).items():
            filled = [None if _kind(value) is None else value for value in values]
            if (column := column_of_calls(name, filled)) is not None:
                calls[name] = column
        if not calls:
            raise
        rest = frame.iloc[:, [i for i, name in enumerate(names) if name not in calls]]
        columns = {**calls, **pl.from_pandas(rest).to_dict()}
        return pl.DataFrame([columns[name].alias(name) for name in names])


def _narrow(table: Any) -> Any:
    """Cast 256-bit decimals of a pyarrow table to 128 bits."""
    wide = [one for one in table.schema if str(one.type).startswith("decimal256")]
    if not wide:
        return table
    import pyarrow as pa

    for one in wide:
        if one.type.precision > _DIGITS:
            raise ReadError(
                f"column {one.name!r} is {one.type}, and decimals have {_DIGITS} digits at most. "
                "Cast it, e.g. to float64, or omit it."
            )
        place = table.schema.get_field_index(one.name)
        narrow = table.column(place).cast(pa.decimal128(one.type.precision, one.type.scale))
        table = table.set_column(place, one.name, narrow)
    return table


_DIGITS = 38


def _plain(frame: Any) -> Any:
    """Convert intervals and periods of a pandas frame, also as categories, to text."""
    mended = None
    for i, dtype in enumerate(frame.dtypes):
        kind = dtype.categories.dtype if hasattr(dtype, "categories") else dtype
        if type(kind).__name__ in ("IntervalDtype", "PeriodDtype"):
            mended = frame.copy(deep=False) if mended is None else mended
            column = frame.iloc[:, i]
            texts = (
                column.astype(object).map(str, na_action="ignore")
                if kind is dtype
                else column.cat.rename_categories(str)
            )
            mended.isetitem(i, texts)
    return frame if mended is None else mended


def frame_of_rows(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Convert dicts to a table; missing fields become null."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pl.DataFrame({name: _column([row.get(name) for row in rows], name) for name in names})


_DEEPEST = 100
"""Levels of lists and objects in a value. The time that Polars takes grows with their cube."""


def _refuse_deep(values: Sequence[Any]) -> None:
    """Raise RecursionError if values are nested beyond all tables, as JSON's parser does."""
    level = list(values)
    for _ in range(_DEEPEST):
        lists = [value for value in level if isinstance(value, (list, tuple))]
        dicts = [value for value in level if isinstance(value, dict)]
        level = [item for value in lists for item in value if not isinstance(item, (str, float))]
        level += [item for value in dicts for item in value.values()]
        if not level:
            return
    raise RecursionError(f"values are nested more than {_DEEPEST} levels deep")


def _column(values: Any, name: Any = "") -> Any:
    """Convert mixed numbers, plain or in lists, to floats, and tool calls to JSON text.

    Raises:
        RecursionError: see :func:`_refuse_deep`.
    """
    if is_array(values):
        return as_array(values)
    if not isinstance(values, (list, tuple)):
        return values
    kinds = {type(value) for value in values} - {type(None)}
    if kinds == {int, float}:
        return pl.Series(values, dtype=pl.Float64)
    if any(issubclass(kind, (list, tuple, Mapping)) for kind in kinds):
        from .json_rows import column_of_calls

        if (calls := column_of_calls(str(name), values)) is not None:
            return calls
        _refuse_deep(values)
    if kinds and kinds <= {list, tuple}:
        inner = {type(item) for value in values if value is not None for item in value}
        if inner - {type(None)} == {int, float}:
            floats = [
                None if value is None else [None if x is None else float(x) for x in value]
                for value in values
            ]
            return pl.Series(floats, dtype=pl.List(pl.Float64))
    return values


def _is(thing: Any, module: str, name: str) -> bool:
    """Return whether an object is an instance of a class, without importing its module."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(thing, getattr(loaded, name))
