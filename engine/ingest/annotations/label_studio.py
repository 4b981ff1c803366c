"""Label Studio's JSON: tasks with annotations and predictions, in percent of the image.

Fields as in https://labelstud.io/guide/export. A file contains ground truths (annotations) and
detections (predictions); its role decides which count.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import msgspec
import polars as pl

from ...schemas.errors import N_EXAMPLES
from ..files import Source
from ..problems import Note, count_of
from .format import (
    IMAGE_SUFFIXES,
    IMAGES,
    Format,
    Look,
    box_row,
    broken,
    frame_of,
    json_of,
    polygon_row,
    skipped_note,
    stems_or_paths,
    turned_row,
)

_BOXES, _POLYGONS = "rectanglelabels", "polygonlabels"
_LABELS = "labels"  # label of a region of another result with its id: <Labels> with <Rectangle>
_PLACELESS = (
    "choices",
    "rating",
    "textarea",
    "taxonomy",
    "number",
    "datetime",
    "pairwise",
    "ranker",
    "relation",
)
_UPLOAD = re.compile(r"^[0-9a-f]{8}-")  # before the name of a file that was uploaded


class _Result(msgspec.Struct):
    """One region, or a choice of the whole image, which has no place in it."""

    type: str = ""
    id: int | str | None = None
    value: dict[str, Any] = {}
    original_width: int | None = None
    original_height: int | None = None
    score: float | None = None


class _Answer(msgspec.Struct):
    result: list[_Result] = []
    was_cancelled: bool = False
    score: float | None = None
    model_version: Any = None


class _Task(msgspec.Struct):
    data: dict[str, Any]
    id: int | str | None = None
    annotations: list[_Answer] = []
    predictions: list[_Answer] = []


def _is_export(head: bytes) -> bool:
    """Return whether the first task of a list has answers, and data or (if truncated) results."""
    if not head.lstrip().startswith(b"["):
        return False
    keys = _own_keys(head)
    answered = {keys.get(name) for name in (b"annotations", b"predictions")} & {b"["}
    is_task = keys.get(b"data") == b"{" or (b"data" not in keys and b'"result"' in head)
    return bool(answered) and is_task


_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*(:?)\s*([\[{]?)|([\[{])|([\]}])')


def _own_keys(head: bytes) -> dict[bytes, bytes]:
    """Return the first object's top-level keys, and the opening bracket of their values, if any."""
    keys: dict[bytes, bytes] = {}
    depth = 0
    for match in _TOKEN.finditer(head):
        name, colon, opens, word, closes = match.groups()
        if name is not None and colon and depth == 2:
            keys[name] = opens
        depth += bool(opens and colon) + bool(word) - bool(closes)
        if depth < 2 and closes:
            break
    return keys


class _Counts(msgspec.Struct):
    """Counters of the reader."""

    skipped: Counter[str]
    cancelled: int = 0
    several: int = 0
    predicted: int = 0
    labels: int = 0
    models: dict[str, None] = {}


def _read(look: Look) -> Source:
    images: dict[str, list[int | None]] = {}
    truths: list[dict[str, Any]] = []
    predictions: list[dict[str, Any]] = []
    counts = _Counts(Counter())
    for file in look.of(".json"):
        tasks = json_of(file, list[_Task], "no export of Label Studio", "Export it as JSON.")
        for number, task in enumerate(tasks):
            name = _name(task, file, number)
            if name in images:
                wrong = f"task {number:,} (counted from 0): another one has the image {name!r}"
                raise broken(file, None, wrong, "Export each image once.")
            images[name] = [None, None]
            valid = [answer for answer in task.annotations if not answer.was_cancelled]
            counts.cancelled += len(task.annotations) - len(valid)
            counts.several += len(valid) > 1
            counts.predicted += len(task.predictions) > 1
            if len(task.predictions) > 1:
                counts.models |= {str(one.model_version): None for one in task.predictions}
            for answers, rows in ((valid[:1], truths), (task.predictions[:1], predictions)):
                for answer in answers:
                    rows += _rows(answer, name, images[name], counts, (file, number))
    ids = dict(zip(images, stems_or_paths([*images]), strict=True))
    for row in (*truths, *predictions):
        row["datum_id"] = ids[row["datum_id"]]
    for row in truths:
        row.pop("score")
    only_predictions = not truths and bool(predictions)
    return Source(
        frame_of(predictions if only_predictions else truths).lazy(),
        results=frame_of(predictions).lazy() if predictions and not only_predictions else None,
        datums=pl.DataFrame(
            [(ids[name], name, *size) for name, size in images.items()], schema=IMAGES, orient="row"
        ),
        notes=_notes(counts),
    )


def _notes(counts: _Counts) -> tuple[Note, ...]:
    models = ", ".join(map(repr, [*counts.models][:N_EXAMPLES]))
    regions = count_of(counts.labels, "region")
    first = "the first of each counts."
    counted = (
        (
            "annotations_cancelled",
            counts.cancelled,
            f"{counts.cancelled:,} cancelled annotations are skipped.",
        ),
        ("labels_several", counts.labels, f"{regions} with several labels count once for each."),
        (
            "annotations_several",
            counts.several,
            f"{counts.several:,} images have several annotations: {first}",
        ),
        (
            "predictions_several",
            counts.predicted,
            f"{counts.predicted:,} images have several predictions (model versions {models}):"
            f" {first} Export them one model at a time to score the others.",
        ),
    )
    notes = (Note(kind, message, n) for kind, n, message in counted if n)
    return (*skipped_note(counts.skipped), *notes)


def _name(task: _Task, file: str, number: int) -> str:
    """The image's file, without an upload's prefix: that of ``image``, else of a picture's path."""
    texts = [value for value in task.data.values() if isinstance(value, str) and value]
    image = task.data.get("image")
    paths = [image] if isinstance(image, str) and image else []
    paths += [text for text in texts if _base(text).lower().endswith(IMAGE_SUFFIXES)]
    paths += [text for text in texts if "." in _base(text) and " " not in text]
    if paths:
        name = _base(paths[0])
        if "." not in name:  # an address that ends in no file
            return paths[0]
        return _UPLOAD.sub("", name) if "upload/" in paths[0].replace("\\", "/") else name
    if task.id is not None:
        return str(task.id)
    raise broken(
        file, None, f"task {number:,} (counted from 0) names no image", "Export it with its data."
    )


def _base(path: str) -> str:
    """The name of a file, of a path or an address as Label Studio writes it."""
    path = path.partition("?d=")[2] or path
    return path.replace("\\", "/").split("?")[0].rsplit("/", 1)[-1]


def _rows(
    answer: _Answer, name: str, size: list[int | None], counts: _Counts, place: tuple[str, int]
) -> list[dict[str, Any]]:
    """The regions of one annotation or prediction; the image's size is filled in."""
    rows: list[dict[str, Any]] = []
    file, task = place[0], f"task {place[1]:,} (counted from 0)"
    labelled = {one.id for one in answer.result if one.type == _LABELS and one.id is not None}
    for one in answer.result:
        if one.original_width and one.original_height:
            size[:] = [one.original_width, one.original_height]
        kind = one.type
        if kind == _LABELS and {"x", "y", "width", "height"} <= one.value.keys():
            kind = _BOXES
        elif kind == _LABELS and "points" in one.value:
            kind = _POLYGONS
        if kind not in (_BOXES, _POLYGONS):
            if kind not in _PLACELESS and (kind == _LABELS or one.id not in labelled):
                counts.skipped[kind] += 1
            continue
        if not one.original_width or not one.original_height:
            wrong = f"{task}: a region without original_width and original_height"
            raise broken(file, None, wrong, "Export it with them: places are percent.")
        try:
            geometry = _shape(one.value, kind, one.original_width / 100, one.original_height / 100)
            labels = [str(label) for label in one.value[one.type]]
            if not labels:
                raise ValueError
        except (KeyError, TypeError, ValueError):
            wrong = f"{task}: a region of type {one.type!r} without its place or label"
            raise broken(file, None, wrong, "Export it again.") from None
        score = one.score if one.score is not None else answer.score
        counts.labels += len(labels) > 1
        row = {"datum_id": name, "score": score, **geometry}
        rows += ({**row, "label_value": label} for label in labels)
    return rows


def _shape(value: dict[str, Any], kind: str, wide: float, high: float) -> dict[str, Any]:
    """A region in pixels; ``wide`` and ``high`` are pixels a percent."""
    if kind == _POLYGONS:
        ring = [[float(x) * wide, float(y) * high] for x, y in value["points"]]
        if len(ring) < 3:
            raise ValueError
        return polygon_row(ring)
    x, y = float(value["x"]) * wide, float(value["y"]) * high
    width, height = float(value["width"]) * wide, float(value["height"]) * high
    degrees = float(value.get("rotation") or 0.0)
    if not degrees:
        return box_row(x, y, x + width, y + height)
    # Label Studio turns a box about its first corner.
    turned = turned_row([0.0, 0.0], width, height, degrees)
    (corner_x, corner_y), *_ = turned["polygon"][0]
    return polygon_row([[px - corner_x + x, py - corner_y + y] for px, py in turned["polygon"][0]])


LABEL_STUDIO = Format("label-studio", (".json",), _read, _is_export)
