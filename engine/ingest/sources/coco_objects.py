"""COCO in memory: the dict of a whole file, an object of pycocotools, or a list of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from evalengine.schemas.errors import InputError

from .source import Source

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
        wanted: geometry fields to read in addition to boxes.

    Raises:
        InputError: values that cannot be written as JSON.
        ReadError: an invalid row.
    """
    from . import coco_rows

    name = f"{type(thing).__name__} in memory"
    if type(thing).__name__ == "COCO" and isinstance(getattr(thing, "dataset", None), Mapping):
        thing = thing.dataset
    if isinstance(thing, Mapping) and (
        "annotations" in thing or (not thing and name.startswith("COCO"))
    ):
        if not {*thing} <= _KEYS:
            return None
        whole = {**thing, "annotations": _plain(thing.get("annotations", []))}
        source = coco_rows.read_ground_truths(_encoded(whole, name), name, wanted=wanted)
    elif (
        isinstance(thing, Sequence)
        and not isinstance(thing, (str, bytes))
        and len(thing) > 0
        and all(isinstance(row, Mapping) for row in thing)
        and box_format in (None, "xywh")
        and (kind := array_kind(thing[0])) in _ARRAYS
    ):
        encoded = _encoded(_plain(thing), name)
        source = coco_rows.read_results(encoded, name, _ARRAYS[kind], wanted=wanted)
    else:
        return None
    source.files = ()
    return source


def _plain(rows: Sequence[Any]) -> Sequence[Any]:
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
        raise InputError(f"{name} cannot be read as COCO's JSON: {error}") from None


def _number(value: Any) -> Any:
    """NumPy's numbers and arrays, and tensors, as plain ones."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if hasattr(value, "__array__"):
        return np.asarray(value).tolist()
    raise TypeError(f"{type(value).__name__} is not a value of JSON")
