"""Detections as lists of images: torchvision's dicts, supervision's objects, pipelines' lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from evalengine.schemas.errors import InputError

from ...schemas.arrays import Array
from .arrays import as_array, is_array
from .source import Source

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

    Raises:
        InputError: an image whose columns differ in length or type; names the first.
    """
    form = _form(thing)
    assert form is not None  # are_images says so
    title, read = form
    if isinstance(thing[0], Mapping) and "box" in thing[0]:
        thing = [thing]  # what a pipeline gives of one image
    images = [read(image) for image in thing]
    names = dict.fromkeys(name for image in images for name in image)
    columns: dict[str, list[Any]] = {name: [] for name in names}
    counts = []
    for place, image in enumerate(images):
        lengths = {name: len(image.get(name, ())) for name in image}
        n = lengths.get("boxes", 0)
        counts.append(n)
        if len({*lengths.values()}) > 1:
            told = ", ".join(f"{count:,} {name}" for name, count in lengths.items())
            raise InputError(f"{title}, image {place:,} (counted from 0): {told}. Give one a box.")
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
        raise InputError(f"{title}: {_lacking(names)}; there are {', '.join(names) or 'none'}.")
    frame = _frame(columns, np.repeat(np.arange(len(images)), counts), box_format, title)
    datums = pl.DataFrame({"datum_id": np.arange(len(images))})
    said = f"{title}: {frame.height:,} objects in {len(images):,} images"
    return Source(frame.lazy(), said, "images", datums=datums, places=len(images))


def refuse_uneven(predictions: Any, truths: Any) -> None:
    """Refuse two lists of images of different length, whose indices cannot match.

    Raises:
        InputError: names both lengths.
    """
    if are_images(predictions) and are_images(truths) and len(predictions) != len(truths):
        raise InputError(
            f"the predictions are a list of {len(predictions):,} images and the ground truths one"
            f" of {len(truths):,}. Give both for the same images in the same order, with an empty"
            " entry for an image without objects."
        )


def nothing_found(predictions: Any, truths: Any) -> Any:
    """Convert a pipeline's empty lists to images without objects, if the truths are images."""
    if not isinstance(predictions, Sequence) or isinstance(predictions, (str, bytes)):
        return predictions
    empty = all(isinstance(one, Sequence) and len(one) == 0 for one in predictions)
    if not len(predictions) or not empty or not are_images(truths):
        return predictions
    return [{"boxes": [], "labels": [], "scores": []} for _ in predictions]


def _lacking(names: Mapping[str, Any]) -> str:
    lacking = [name for name in ("boxes", "labels") if name not in names]
    return f"images without {' and '.join(map(repr, lacking))}"


def _form(thing: Any) -> tuple[str, Callable[[Any], dict[str, Any]]] | None:
    """Return the display name and reader for the images of a list."""
    if not isinstance(thing, Sequence) or isinstance(thing, (str, bytes)) or not len(thing):
        return None
    return next(((title, read) for title, says, read in _FORMS if says(thing)), None)


def _of_dict(image: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        name: _values(image[name])
        for name in ("boxes", "labels", "scores", "iscrowd", "area")
        if image.get(name) is not None
    }
    found["boxes"] = _boxes(found["boxes"])
    if image.get("masks") is not None and len(found["boxes"]):
        found["masks"] = _masks(_values(image["masks"]))
    return found


def _of_supervision(image: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"boxes": _boxes(_values(image.xyxy))}
    named = (getattr(image, "data", None) or {}).get("class_name")
    classes = named if image.class_id is None else image.class_id
    if classes is not None:
        found["labels"] = _values(classes)
    if image.confidence is not None:
        found["scores"] = _values(image.confidence)
    if getattr(image, "mask", None) is not None and len(found["boxes"]):
        found["masks"] = _masks(_values(image.mask))
    return found


def _of_pipeline(image: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    if not image:
        return {}
    found = {
        "boxes": [[one["box"][corner] for corner in _CORNERS] for one in image],
        "labels": [one["label"] for one in image],
    }
    if any("score" in one for one in image):
        found["scores"] = [one.get("score") for one in image]
    return found


def _is_dict(image: Any) -> bool:
    return isinstance(image, Mapping) and "boxes" in image and "labels" in image


def _is_supervision(image: Any) -> bool:
    return all(hasattr(image, name) for name in ("xyxy", "class_id", "confidence"))


def _is_found(one: Any) -> bool:
    return isinstance(one, Mapping) and "label" in one and isinstance(one.get("box"), Mapping)


def _is_pipeline(thing: Sequence[Any]) -> bool:
    if all(map(_is_found, thing)):
        return True
    lists = all(isinstance(image, Sequence) and not isinstance(image, str) for image in thing)
    return lists and any(thing) and all(_is_found(one) for image in thing for one in image)


_FORMS: tuple[tuple[str, Callable[[Any], bool], Callable[[Any], dict[str, Any]]], ...] = (
    ("list of dicts of boxes and labels", lambda thing: all(map(_is_dict, thing)), _of_dict),
    ("list of Detections", lambda thing: all(map(_is_supervision, thing)), _of_supervision),
    ("lists of dicts of label and box", _is_pipeline, _of_pipeline),
)


def _values(values: Any) -> Any:
    """Convert array-likes to arrays; lists are unchanged."""
    if not is_array(values):
        return values
    try:
        return as_array(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"a {type(values).__name__} cannot be read: {error}") from None


def _boxes(boxes: Any) -> Any:
    """Boxes one by one; an empty array may have any shape."""
    if len(boxes) and any(np.shape(box) != (4,) for box in boxes):
        raise InputError(
            f"boxes of shape {np.shape(boxes)}: four numbers a box are needed, [n, 4]. Turned boxes"
            " and polygons go in as a column 'polygon' of a table."
        )
    return boxes


def _masks(masks: Any) -> list[dict[str, Any]]:
    """Pixels [n, h, w] or [n, 1, h, w] as lengths of runs along the rows."""
    pixels = np.asarray(masks)
    if pixels.ndim == 4 and pixels.shape[1] == 1:
        pixels = pixels[:, 0]
    if pixels.ndim != 3:
        raise InputError(f"masks of shape {pixels.shape}: pixels [n, h, w] are needed.")
    if pixels.dtype.kind == "f":
        low, high = (pixels.min(), pixels.max()) if pixels.size else (0.0, 0.0)
        if not (low >= 0 and high <= 1) and not (low >= 0 and (pixels == pixels.round()).all()):
            raise InputError(
                f"masks hold values from {low:g} to {high:g}, and shares of a pixel are 0 to 1. If"
                " these are logits, give masks > 0; otherwise compare them with your threshold, and"
                " give the result."
            )
        pixels = pixels > _HALF
    else:
        pixels = pixels != 0
    return [_runs(one) for one in pixels]


def _runs(pixels: Array) -> dict[str, Any]:
    flat = np.concatenate([[False], pixels.ravel()])
    edges = np.flatnonzero(flat[1:] != flat[:-1])
    runs = np.diff(np.concatenate([[0], edges, [pixels.size]]))
    return {"size": list(pixels.shape), "runs": runs.tolist()}


def _frame(
    columns: dict[str, list[Any]], datums: Array, box_format: str | None, title: str
) -> pl.DataFrame:
    boxes = np.asarray(columns["boxes"], np.float64).reshape(-1, 4)
    made: dict[str, Any] = {"datum_id": datums, "label_value": _labels(columns["labels"], title)}
    if box_format in (None, "xyxy"):
        made |= dict(zip(_CORNERS, np.ascontiguousarray(boxes.T), strict=True))
    else:
        made["bbox"] = pl.Series(boxes, dtype=pl.Array(pl.Float64, 4))
    for name, column, dtype in (
        ("scores", "score", None), ("iscrowd", "iscrowd", pl.Int64), ("area", "area", pl.Float64),
        ("masks", "mask", _MASK),
    ):  # fmt: skip
        if name in columns:
            values = columns[name]
            scored = dtype is None and values and isinstance(values[0], np.floating)
            made[column] = (
                pl.Series(np.asarray(values)) if scored
                else pl.Series(values, dtype=dtype or pl.Float64, strict=False)
            )  # fmt: skip
    return pl.DataFrame(made)


def _labels(values: list[Any], title: str) -> pl.Series:
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    kinds = {type(value).__name__ for value in plain}
    if len(kinds) > 1:
        raise InputError(f"{title}: labels are {' and '.join(sorted(kinds))}. Give one kind.")
    return pl.Series(plain, dtype=None if plain else pl.Null)
