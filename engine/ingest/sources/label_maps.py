"""Label maps without a table: arrays of pixels, or files of images, one a datum."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from evalengine.schemas.errors import InputError

from ..annotations.format import stems_or_paths
from .arrays import as_array, is_array
from .source import Source

FORMAT = "label maps"


def are_label_maps(thing: Any) -> bool:
    """Return whether a value is an array [n, h, w] or [h, w], or a list or mapping of arrays [h,
    w].
    """
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

    Raises:
        InputError: arrays with values other than whole numbers, keys of two kinds, or an array with
            the axes of a colour picture or of classes.
    """
    ids = list(thing) if isinstance(thing, Mapping) else None
    if is_array(thing) and len(_shape(thing)) == 3:
        thing = as_array(thing)
        _refuse_other_axes(thing)
    maps = [as_array(one) for one in _each(thing)]
    for place, one in enumerate(maps):
        if one.dtype.kind not in "iub":
            raise InputError(
                f"label maps: {'datum ' + repr(ids[place]) if ids else f'map {place}'} holds"
                f" {one.dtype}, and pixels are indices of labels. Write .astype('int64'), or take"
                " the argmax over classes first.",
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

    Raises:
        InputError: two files of one name in different formats.
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
    """Refuse an array [n, h, w] that is more likely a colour picture or one-hot classes of one
    image.
    """
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
    high = int(array.max())
    some = array[:, ::_STEP, ::_STEP]
    if not high or not ((some == 0) | (some == high)).all():
        return
    if not ((array == 0) | (array == high)).all():
        return
    classes = (array == high).sum(axis=0, dtype=np.int64)
    least = 1.0 if n == 2 else _COVERED  # two maps may be each other's complement
    if classes.max() == 1 and classes.mean() >= least:
        raise InputError(
            f"label maps: an array of shape {array.shape} holds at most one {high} per pixel along"
            f" its first axis, so that it looks like one image with an axis of {n} classes. Write"
            f" .argmax(0) to get its label map. {way.format(n)}",
            code="wrong_shape",
            shape=array.shape,
        )


_BANDS = (3, 4)  # of a colour picture, without and with transparency
_COVERED = 0.5  # share of the pixels with a class; the others may be void
_STEP = 8  # between the pixels that are looked at first
_TINY = 4  # pixels; a label map with a shorter side may have any shape


def _each(thing: Any) -> Any:
    if isinstance(thing, Mapping):
        return thing.values()
    return [thing] if is_array(thing) and len(_shape(thing)) == 2 else thing


def _is_map(thing: Any) -> bool:
    return is_array(thing) and len(_shape(thing)) == 2


def _shape(thing: Any) -> tuple[int, ...]:
    if hasattr(thing, "shape"):
        return tuple(thing.shape)
    shape: tuple[int, ...] = tuple(thing.__array_interface__["shape"])
    return shape
