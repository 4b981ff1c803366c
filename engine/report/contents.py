"""Contents of datums, and small images of them."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from .. import tasks
from ..evaluation import planner
from ..evaluation.summary import Tallied
from ..executors import Threads
from ..geometry.rasters import damage, opened, silenced
from ..ingest.frames import Frames, assemble
from ..ingest.opening import Tables, open_inputs
from ..ingest.preparing import prepare
from ..ingest.problems import count_of
from ..ingest.sources.coco import plainly
from ..ingest.sources.tables import READ_FAILURES
from ..ingest.where import filtered
from ..schemas.arrays import Array
from ..schemas.contract import DATUMS, GROUND_TRUTHS, LABELS, PREDICTIONS, TABLE
from ..schemas.errors import EvalengineError, InputError
from ..tasks.contents import (
    Boxes,
    Content,
    Labelled,
    PixelsWrong,
    Ring,
    by_datum,
    copied,
    shortened,
)

# Contents of some datums of a run, from its tally or from its inputs, read again.

COLUMNS = 20
"""Maximum number of other columns shown per datum."""
_VALUE = 200  # maximum characters per value
_ID = "id of the datum"  # in addition to the columns of a table


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a datum.

    Attributes:
        content: one of the structs of :mod:`evalengine.tasks.contents`; None if unknown.
        columns: other columns of its first row, including slices, name -> value as text.
        file_name: of its image, if a table of datums contains it.
        width: of its image in pixels, if a table of datums contains it.
        height: of its image in pixels, if a table of datums contains it.
    """

    datum_id: Any
    content: Content | None = None
    columns: dict[str, str] = {}
    file_name: str | None = None
    width: int | None = None
    height: int | None = None


class Samples(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of datums.

    Attributes:
        datums: in the order requested.
        missing: reason why the inputs were not read again, and a remedy; otherwise empty.
    """

    datums: tuple[Sample, ...]
    missing: str = ""


class _InputsChanged(Exception):
    """Error for inputs that cannot be read again, with the reason."""


def contents(
    card: Any, worst: pl.DataFrame, tallied: Tallied | None = None, tables: Tables | None = None
) -> Samples:
    """Return the contents of the datums in a frame of the worst.

    Args:
        worst: result of :func:`evalengine.evaluation.paging.worst`.
        tallied: the run; None, as for a saved run too large to keep it, uses only the inputs.
        tables: the scored tables, if not files.

    Returns:
        one struct per datum; if the inputs have changed or cannot be found, ``missing`` gives the
        reason, and the contents that need them are missing.
    """
    if not worst.height:
        return Samples(datums=())
    plan = planner.make_plan(card.options, card.task) if tallied is None else tallied.plan
    ids = worst["datum_id"]
    task_contents = tasks.get(card.task).contents
    missing = ""
    frames: Frames | None = None
    others: list[dict[str, str]] = [{} for _ in ids]
    try:
        frames, others = _read(card, ids, _given(card, tables))
    except _InputsChanged as gone:
        missing = str(gone)
    except (EvalengineError, OSError) as error:
        missing = f"the inputs cannot be read again: {error}"
    result: list[Content | None] = [None] * len(ids)
    try:
        if task_contents.of_tally is not None and (tallied is not None or frames is not None):
            if tallied is not None:
                tallies = tallied.tallies
            elif frames is not None:
                copied_frames = copied(frames)
                tallies = planner.run(
                    planner.fitted(plan, copied_frames), copied_frames, Threads(1)
                )
            every, text = tallies.datums.id, ids.cast(pl.String)
            is_listed = every.cast(pl.String).is_in(text.implode())
            places = zip(every.filter(is_listed).cast(pl.String), is_listed.arg_true(), strict=True)
            place = dict(places)
            codes = np.array([place.get(one, -1) for one in text], np.int64)  # -1: missing
            present = np.flatnonzero(codes >= 0)
            for at, tallied_content in zip(
                present, task_contents.of_tally(tallies, plan.settings, codes[present]), strict=True
            ):
                result[at] = tallied_content
            if task_contents.completed is not None and frames is not None:
                result = task_contents.completed(
                    frames, plan.settings, [str(one) for one in ids], result
                )
        elif task_contents.of_tables is not None and frames is not None:
            parameters = worst["parameters"][0]
            made_with = {} if parameters is None else msgspec.json.decode(parameters)
            names = [str(one) for one in ids]
            result = task_contents.of_tables(frames, plan.settings, names, made_with, Threads(1))
    except EvalengineError as error:
        missing = f"the inputs cannot be read again: {error}"
    images = _images(frames, ids.to_list())
    return Samples(
        datums=tuple(
            Sample(datum_id=one, content=content, columns=columns, **image)
            for one, content, columns, image in zip(ids, result, others, images, strict=True)
        ),
        missing=missing,
    )


def _given(card: Any, tables: Tables | None) -> Tables:
    """Return given tables, or unchanged files.

    Raises:
        _InputsChanged: there are none.
    """
    if tables is not None:
        return tables
    inputs = card.run.get("inputs", {})
    paths = {}
    for role, facts in inputs.items():
        along = role in (DATUMS, LABELS) and "path" not in facts
        if along:
            continue
        paths[role] = _unchanged(role, facts)
    if not paths:
        raise _InputsChanged("the run does not record its input files.")
    first = paths[TABLE] if TABLE in paths else paths.get(PREDICTIONS)
    return Tables(first, paths.get(GROUND_TRUTHS), paths.get(DATUMS), paths.get(LABELS))


def _unchanged(role: str, facts: dict[str, Any]) -> str:
    """Return the path of an unchanged input.

    Raises:
        _InputsChanged: it has changed, no longer exists, or was not a single file.
    """
    called = role.replace("_", " ")
    if "bytes" not in facts:
        raise _InputsChanged(
            f"{called}: {facts.get('path') or facts.get('source') or 'a table'} is not a single"
            " file that can be compared with the scored one; give the tables."
        )
    path = Path(facts.get("path", facts["source"]))
    if not path.is_file():
        raise _InputsChanged(f"{called}: {path} is gone.")
    size = path.stat()
    same = size.st_size == facts["bytes"]
    if same and "sha256" in facts:
        with open(path, "rb") as file:
            same = hashlib.file_digest(file, "sha256").hexdigest() == facts["sha256"]
    elif same:
        same = size.st_mtime == facts["modified"]
    if not same:
        raise _InputsChanged(f"{called}: {path} has changed since it was scored.")
    return str(path)


def _read(card: Any, ids: pl.Series, tables: Tables) -> tuple[Frames, list[dict[str, str]]]:
    """Return checked rows of only some datums, and their other columns.

    Raises:
        EvalengineError: problems of the inputs.
    """
    options = card.options.replace(memory_limit=None, scratch=None, training=None, human=None)
    ready = prepare(open_inputs(tables, options), card.task, options)
    rows, extra = {}, {}
    before: dict[str, int] = {}
    for role, side in ready.sides.items():
        source = side.source.frame
        if role in ready.where:
            source = filtered(source, side, ready.where[role])
            before[role] = 0  # notes count rows before the condition; these are unused
        datum = side.naming.exprs.get(side.table.datum)
        if role != LABELS:
            source = (
                source.with_row_index(_ID)
                if datum is None
                else source.with_columns(datum.alias(_ID))
            )
            source = source.filter(pl.col(_ID).cast(pl.String).is_in(ids.cast(pl.String).implode()))
            extra[role] = source
        rows[role] = source.select([*side.naming.exprs.values(), *ready.plan.extra.get(role, ())])
    try:
        collected = dict(zip(rows, pl.collect_all(list(rows.values())), strict=True))
        others = _others(ids, ready.sides, extra)
    except InputError as error:
        raise plainly(error) from None
    except READ_FAILURES as error:
        raise _InputsChanged(f"the inputs cannot be read again: {error}") from error
    frames = assemble(ready, collected, before, options)
    for role, frame in frames.sides.items():
        if "datum_id" not in frame.columns:  # rows are datums, identified by row number
            numbers = extra[role].select(pl.col(_ID).cast(pl.Int64)).collect()[_ID]
            frames.sides[role] = frame.with_columns(numbers.alias("datum_id"))
    return frames, others


def _others(
    ids: pl.Series, sides: dict[str, Any], extra: dict[str, pl.LazyFrame]
) -> list[dict[str, str]]:
    """Return, per datum, the columns of its first rows that are not in the contract."""
    columns_by_id: dict[str, dict[str, str]] = {str(one): {} for one in ids}
    for role, lazy in extra.items():
        side = sides[role]
        claimed = {*side.naming.recognised, *side.naming.exprs}
        names = [name for name in side.schema if name not in claimed]
        plain = [name for name in names if not side.schema[name].is_nested()][:COLUMNS]
        if not plain:
            continue
        rows = lazy.select(_ID, *plain).unique(_ID, keep="first", maintain_order=True).collect()
        for row in rows.iter_rows(named=True):
            values = columns_by_id[str(row[_ID])]
            for name in plain:
                if row[name] is not None and len(values) < COLUMNS:
                    values.setdefault(name, shortened(str(row[name]), _VALUE)[0])
    return [columns_by_id[str(one)] for one in ids]


def _images(frames: Frames | None, ids: Sequence[Any]) -> list[dict[str, Any]]:
    """Return file name, width and height of each datum, if a table of datums has them."""
    if frames is None or frames.datums is None:
        return [{} for _ in ids]
    names = [n for n in ("file_name", "width", "height") if n in frames.datums.columns]
    rows = by_datum(frames.datums)
    return [
        dict(zip(names, rows[str(one)].select(names).row(0), strict=True))
        if str(one) in rows and names
        else {}
        for one in ids
    ]


# Thumbnails of datums with their objects, from a folder of images.
#
# Images are read and written by rasterio, already required for masks: GDAL decodes large JPEGs at
# reduced size and accepts the same formats as other rasters.

WIDTH = 320
"""Maximum width of a thumbnail in pixels."""
TALLEST = 640
"""Maximum height of a thumbnail in pixels."""
EACH = 60_000
"""Maximum size of one data URI in bytes."""
TOTAL_BYTES = 1_200_000
"""Maximum size of all data URIs of a page in bytes."""
DASHES = {"tp": "", "fp": "6 3", "missed": "2 3", "ignored": "1 5", "wrong": "4 2"}
"""``stroke-dasharray`` per outcome, so that colour is not the only cue."""

_WAYS = ((WIDTH, 80), (WIDTH, 60), (WIDTH, 40), (240, 50), (160, 50), (96, 40))
"""Widths and JPEG qualities, the best first."""
_PIXELS = 400_000_000  # larger images are not opened: they are not photographs
_FILES = 200_000  # maximum number of files of a folder
_KINDS = (".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".bmp", ".gif", ".jp2")
_PREFIX = "data:image/jpeg;base64,"


Corners = tuple[float, float, float, float]


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """An object on a thumbnail.

    Attributes:
        x: left edge in pixels of the thumbnail.
        y: upper edge in pixels of the thumbnail.
        width: visible width in pixels.
        height: visible height in pixels.
        label: name or value.
        outcome: a key of ``DASHES``.
        score: score of a prediction; None for a missed object.
        rings: outline of a polygon or mask in pixels of the thumbnail, even-odd fill rule; empty
            for boxes.
    """

    x: float
    y: float
    width: float
    height: float
    label: str
    outcome: str
    score: float | None
    rings: tuple[Ring, ...] = ()


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """A thumbnail, rendered as ``<svg viewBox="0 0 width height">`` over an image of that size.

    Attributes:
        uri: ``data:image/jpeg;base64,...``; empty for outlines without an image.
        width: in pixels.
        height: in pixels.
        file: path within the folder.
        marks: objects on the image; empty for tasks without boxes.
    """

    uri: str
    width: int
    height: int
    file: str
    marks: tuple[Mark, ...] = ()


class Pictures(msgspec.Struct, frozen=True, kw_only=True):
    """Thumbnails of datums.

    Attributes:
        pictures: one per datum; None if there is no image.
        notes: one sentence each, about files that are missing, unreadable or too large.
    """

    pictures: tuple[Picture | None, ...]
    notes: tuple[str, ...] = ()


def outlines(datums: Sequence[Sample]) -> list[Picture | None]:
    """Return the objects of datums to scale, without images; None without outlines.

    The frame is the image, if a table of datums has its size. Otherwise it contains the objects of
    all these datums.
    """
    every = [
        box.corners for one in datums if isinstance(one.content, Boxes) for box in one.content.boxes
    ]
    corners = np.array(every, float).reshape(-1, 4)
    inside = bool(np.isfinite(corners).all()) and not (corners < 0).any()
    across, down = np.ceil(corners[:, 2:].max(axis=0, initial=0)) if inside else (0, 0)
    out: list[Picture | None] = []
    for one in datums:
        height, width = one.height or int(down), one.width or int(across)
        if isinstance(one.content, PixelsWrong) and one.content.size is not None:
            height, width = one.content.size
        marks: tuple[Mark, ...] = ()
        if min(height, width) >= 1:
            shape = _shape((height, width), WIDTH)
            marks = _clipped_boxes(one, (height, width), shape)
        out.append(
            Picture(uri="", width=shape[1], height=shape[0], file="", marks=marks)
            if marks
            else None
        )
    return out


def example_of(one: Sample) -> list[tuple[str | None, str | None]]:
    """Return the confusions that a datum is an example of, as (actual, predicted), in names.

    None is no object. Missed and false boxes of different labels are one confusion if they overlap
    as much as a match.
    """
    content = one.content
    if isinstance(content, Labelled):
        keys = dict(content.truth)
        best = {label.key: label.label for label in reversed(content.predicted)}
        return [(keys.get(key), best.get(key)) for key in {**keys, **best}]
    if not isinstance(content, Boxes):
        return []
    false = [box for box in content.boxes if box.outcome == "fp"]
    confusions: list[tuple[str | None, str | None]] = []
    for box in content.boxes:
        if box.outcome != "missed":
            continue
        other = max(false, key=lambda it: _overlap(it.corners, box.corners), default=None)
        if other is not None and _overlap(other.corners, box.corners) >= content.iou_threshold:
            false.remove(other)
            confusions.append((box.label, other.label))
        else:
            confusions.append((box.label, None))
    return confusions + [(None, box.label) for box in false]


def _overlap(a: Corners, b: Corners) -> float:
    """Return the IoU of two boxes."""
    across, down = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    shared = max(0.0, across) * max(0.0, down)
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b))
    return shared / (areas - shared) if areas > shared else 0.0


def pictures(datums: Sequence[Sample], folder: str) -> Pictures:
    """Return thumbnails of datums from a folder of images.

    A file is found by the datum's ``file_name``, otherwise by its id, with or without extension, in
    the folder or below it; ``7`` also finds ``000000000007.jpg``. Only the last part of foreign
    paths and URLs is used; files outside the folder are never opened.

    Args:
        datums: result of :func:`.contents.contents`.

    Raises:
        InputError: there is no such folder.
    """
    if not os.path.isdir(folder):
        raise InputError(f"images: {folder!r} is not a folder.")
    images = _Folder(os.path.realpath(folder))
    paths = [images.find(one) for one in datums]
    missing = [one for one, path in zip(datums, paths, strict=True) if path is None]
    broken: list[str] = []
    crowded = coarse = 0
    left, room = sum(path is not None for path in paths), TOTAL_BYTES
    out: list[Picture | None] = []
    for one, path in zip(datums, paths, strict=True):
        picture = None
        if path is not None:
            allowed = min(EACH, room // left)
            left -= 1
            try:
                thumbnail = _thumbnail(path, allowed)
            except (OSError, ValueError, MemoryError):
                broken.append(os.path.relpath(path, images.root))
            else:
                crowded += thumbnail is None
                if thumbnail is not None:
                    uri, height, width, image_size, best = thumbnail
                    room -= len(uri)
                    coarse += not best
                    marks = _clipped_boxes(one, image_size, (height, width))
                    name = os.path.relpath(path, images.root)
                    picture = Picture(uri=uri, width=width, height=height, file=name, marks=marks)
        out.append(picture)
    notes = []
    if missing:
        notes.append(
            f"no image of {count_of(len(missing), 'datum')} in the folder, first"
            f" {(missing[0].file_name or str(missing[0].datum_id))!r}."
        )
    if broken:
        notes.append(f"{count_of(len(broken), 'image')} cannot be read, first {broken[0]!r}.")
    if coarse:
        notes.append(
            f"{count_of(coarse, 'thumbnail')} smaller or coarser than usual, so that all together"
            f" stay within {TOTAL_BYTES / 1e6:g} MB and each within {EACH // 1000} kB."
        )
    if crowded:
        notes.append(f"{count_of(crowded, 'image')} without a thumbnail: no room for more.")
    if images.cut:
        notes.append(f"the folder has more than {_FILES:,} files; the others were not looked at.")
    return Pictures(pictures=tuple(out), notes=tuple(notes))


class _Folder:
    """Images of a folder by name, without files that paths or links reach outside of it."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.cut = False

    def find(self, one: Sample) -> str | None:
        """Return the path of a datum's image, with links resolved; None without an image."""
        for name in filter(None, (one.file_name, str(one.datum_id))):
            result = self._named(name)
            if result is not None:
                return result
        return None

    def _named(self, name: str) -> str | None:
        parts = name.replace("\\", "/").split("/")
        if "\0" in name:
            return None
        if not os.path.isabs(name):
            result = self._inside(os.path.join(self.root, *parts))
            if result is not None:
                return result
        base = parts[-1]
        stem = os.path.splitext(base)[0] if base.lower().endswith(_KINDS) else base
        digits = stem.isascii() and stem.isdigit()
        number = stem.lstrip("0") or "0" if digits else ""
        for key in (("name", base), ("stem", stem), ("number", number)):
            if key in self._paths:
                return self._inside(self._paths[key])
        return None

    def _inside(self, path: str | None) -> str | None:
        """Return the real path of a file inside the folder; otherwise None. Follows links."""
        if path is None:
            return None
        real = os.path.realpath(path)
        if os.path.commonpath([self.root, real]) != self.root or not os.path.isfile(real):
            return None
        return real

    def _walk(self) -> Iterator[str]:
        """Yield the images of the folder and its subfolders, sorted by name."""
        seen = 0
        for place, below, names in os.walk(self.root):
            below.sort()
            for name in sorted(names):
                seen += 1
                if seen > _FILES:
                    self.cut = True
                    return
                if name.lower().endswith(_KINDS):
                    yield os.path.join(place, name)

    @cached_property
    def _paths(self) -> dict[tuple[str, str], str]:
        """The first file of each name, name without extension, and number without zeros."""
        table: dict[tuple[str, str], str] = {}
        for path in self._walk():
            base = os.path.basename(path)
            stem = os.path.splitext(base)[0]
            table.setdefault(("name", base), path)
            table.setdefault(("stem", stem), path)
            if stem.isascii() and stem.isdigit():
                table.setdefault(("number", stem.lstrip("0") or "0"), path)
        return table


_ReadImage = tuple[str, int, int, tuple[int, int], bool]
"""Data URI, height and width of the thumbnail, size of the image, True for the best quality."""


def _thumbnail(path: str, most: int) -> _ReadImage | None:
    """Return a thumbnail of at most ``most`` bytes; None if even the smallest is larger.

    Raises:
        OSError: the file cannot be read.
        ValueError: its pixels are not an image.
    """
    with opened(path) as image:
        size = (int(image.height), int(image.width))
        if size[0] * size[1] > _PIXELS:
            raise ValueError("too many pixels")
        if why := damage(image, path):
            raise ValueError(why)
        wide = 0
        pixels = np.zeros((3, 0, 0), np.uint8)
        for i, (width, quality) in enumerate(_WAYS):
            if width != wide:
                wide = width
                pixels = _read_image(image, _shape(size, width))
            uri = _PREFIX + base64.b64encode(_as_jpeg(pixels, quality)).decode()
            if len(uri) <= most:
                return uri, pixels.shape[1], pixels.shape[2], size, i == 0
    return None


def _shape(whole: tuple[int, int], width: int) -> tuple[int, int]:
    """Return height and width of a thumbnail, never larger than the image."""
    scale = min(1.0, width / whole[1], width * TALLEST / WIDTH / whole[0])
    return max(1, round(whole[0] * scale)), max(1, round(whole[1] * scale))


def _read_image(image: Any, shape: tuple[int, int]) -> Array:
    """Read an image as uint8, colour [3, height, width] or grey [1, height, width]."""
    from rasterio.enums import ColorInterp, Resampling

    kinds = image.colorinterp
    if kinds[0] == ColorInterp.palette:
        table = image.colormap(1)
        colours = np.zeros((max(256, max(table) + 1), 3), np.uint8)
        for index, colour in table.items():
            colours[index] = colour[:3]
        indices = image.read(1, out_shape=shape, resampling=Resampling.nearest)
        return np.ascontiguousarray(colours[indices].transpose(2, 0, 1))
    bands_drawn = [i + 1 for i, kind in enumerate(kinds) if kind != ColorInterp.alpha]
    bands = bands_drawn[:3] if len(bands_drawn) >= 3 else bands_drawn[:1]
    if not bands:
        raise ValueError("no band but transparency")
    pixels = image.read(bands, out_shape=(len(bands), *shape), resampling=Resampling.average)
    if pixels.dtype == np.uint8:
        return np.asarray(pixels)
    # More than 8 bits: stretch from the darkest to the brightest value.
    values = np.nan_to_num(pixels.astype(np.float64), posinf=0.0, neginf=0.0)
    low, high = float(values.min()), float(values.max())
    return np.asarray((values - low) * (255 / ((high - low) or 1)), np.uint8)


def _as_jpeg(pixels: Array, quality: int) -> bytes:
    from rasterio.io import MemoryFile

    bands, height, width = pixels.shape
    with silenced(), MemoryFile() as file:
        with file.open(
            driver="JPEG", height=height, width=width, count=bands, dtype="uint8", quality=quality
        ) as out:
            out.write(pixels)
        return bytes(file.read())


def _clipped_boxes(one: Sample, whole: tuple[int, int], shape: tuple[int, int]) -> tuple[Mark, ...]:
    """Return the boxes in thumbnail pixels, clipped to its edges.

    Boxes are scaled by the image size in the table of datums, otherwise by the file's size.
    """
    if isinstance(one.content, PixelsWrong) and one.content.size is not None:
        if not one.content.rings:
            return ()
        tall, wide = (float(size) for size in shape)
        down, across = tall / one.content.size[0], wide / one.content.size[1]
        return (
            Mark(
                x=0.0,
                y=0.0,
                width=wide,
                height=tall,
                label="wrong pixels",
                outcome="wrong",
                score=None,
                rings=_scaled(one.content.rings, across, down),
            ),
        )
    if not isinstance(one.content, Boxes):
        return ()
    height, width = one.height or whole[0], one.width or whole[1]
    across, down = shape[1] / width, shape[0] / height
    marks = []
    for box in one.content.boxes:
        xmin, ymin, xmax, ymax = box.corners
        left, right = (min(max(x * across, 0.0), float(shape[1])) for x in (xmin, xmax))
        top, bottom = (min(max(y * down, 0.0), float(shape[0])) for y in (ymin, ymax))
        marks.append(
            Mark(
                x=round(left, 1),
                y=round(top, 1),
                width=round(right - left, 1),
                height=round(bottom - top, 1),
                label=box.label,
                outcome=box.outcome,
                score=box.score,
                rings=_scaled(box.rings, across, down),
            )
        )
    return tuple(marks)


def _scaled(rings: tuple[Ring, ...], across: float, down: float) -> tuple[Ring, ...]:
    return tuple(
        tuple((round(x * across, 1), round(y * down, 1)) for x, y in ring) for ring in rings
    )
