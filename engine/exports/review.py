"""Errors as tasks for image annotation tools.

File formats: https://labelstud.io/guide/predictions, CVAT for images 1.1
(https://docs.cvat.ai/docs/manual/advanced/xml_format), and COCO ground truths with additional
attributes, which FiftyOne's COCODetectionDataset and CVAT read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import msgspec
import polars as pl

from evalengine.atomic import whole_file, written
from evalengine.ingest.geometry import CORNER_NAMES
from evalengine.ingest.problems import count_of, listing
from evalengine.schemas.errors import InputError, unknown
from evalengine.schemas.wording import option

_ABOUT = ("error", "iou", "annotation_label", "annotation_id", "prediction_row")
"""Attributes of a region in addition to label and score."""


class _Region(NamedTuple):
    """Box to review.

    Attributes:
        box: left, top, right and bottom in pixels.
        score: None for missed ground truths.
    """

    label: str
    box: tuple[float, float, float, float]
    score: float | None
    about: dict[str, Any]


class _Image(NamedTuple):
    """Image with its regions.

    Attributes:
        width: in pixels; None if unknown.
        height: in pixels; None if unknown.
        regions: in the order of the rows.
    """

    name: str
    width: int | None
    height: int | None
    datum_id: Any
    regions: list[_Region]


def write(rows: pl.DataFrame, images: pl.DataFrame | None, form: str, path: str | Path) -> int:
    """Write rows of errors as tasks, one per image with errors, in the order of their first row.

    Wrong predictions are shown with their predicted boxes, missed ground truths with theirs. The
    file is written atomically.

    Args:
        rows: rows of the ``errors`` frame.
        images: one row per datum: ``datum_id``, ``width`` and ``height`` in pixels, ``file_name``;
            or None. The id replaces a missing name.
        form: one of :data:`FORMATS`.

    Raises:
        OptionError: no such format.
        InputError: missing image sizes that the format needs, or rows of video frames.
    """
    if form not in FORMATS:
        raise unknown("form", form, FORMATS)
    if "frame" in rows.columns:
        raise InputError(
            f"{form} shows images, and these rows are of frames of sequences, whose files no table"
            " names. List them as a table."
        )
    make, sized = FORMATS[form]
    tasks = list(_images(rows, images))
    lacking = [one.datum_id for one in tasks if not one.width or not one.height]
    if sized and lacking:
        raise InputError(
            f"{form} needs the size of each image; it is unknown of"
            f" {count_of(len(lacking), 'image')}: {listing(lacking[:3])}. Give a table with the"
            f" columns datum_id, width, height and file_name in {option('datums')}.",
            code="image_size_missing",
            count=len(lacking),
        )
    with written(path), whole_file(path, sweeps=True) as file:
        file.write(make(tasks))
    return len(tasks)


def _images(rows: pl.DataFrame, images: pl.DataFrame | None) -> Iterator[_Image]:
    images_by_id: dict[Any, dict[str, Any]] = {}
    if images is not None:
        images_by_id = {str(row["datum_id"]): row for row in images.iter_rows(named=True)}
    for (datum,), group in rows.group_by("datum_id", maintain_order=True):
        image = images_by_id.get(str(datum), {})
        width, height = (
            None if image.get(name) is None else round(image[name]) for name in ("width", "height")
        )
        regions = []
        for row in group.iter_rows(named=True):
            before = "annotation_" if row["xmin"] is None else ""
            left, top, right, bottom = (row[before + name] for name in CORNER_NAMES)
            about = {name: row[name] for name in _ABOUT if row[name] is not None}
            box = left, top, right, bottom
            regions.append(_Region(str(row["label_value"]), box, row["score"], about))
        yield _Image(str(image.get("file_name") or datum), width, height, datum, regions)


def _label_studio(images: list[_Image]) -> bytes:
    tasks = [
        {
            "data": {"image": image.name, "datum_id": image.datum_id},
            "predictions": [
                {
                    "model_version": "evalengine errors",
                    "result": [_rectangle(i, one, image) for i, one in enumerate(image.regions)],
                }
            ],
        }
        for image in images
    ]
    return msgspec.json.encode(tasks)


def _rectangle(number: int, region: _Region, image: _Image) -> dict[str, Any]:
    assert image.width is not None
    assert image.height is not None
    left, top, right, bottom = region.box
    message = ", ".join(f"{name} {value}" for name, value in region.about.items())
    task: dict[str, Any] = {
        "id": f"error-{number}",
        "type": "rectanglelabels",
        "from_name": "label",
        "to_name": "image",
        "original_width": image.width,
        "original_height": image.height,
        "image_rotation": 0,
        "value": {
            "x": 100 * left / image.width,
            "y": 100 * top / image.height,
            "width": 100 * (right - left) / image.width,
            "height": 100 * (bottom - top) / image.height,
            "rotation": 0,
            "rectanglelabels": [region.label],
        },
        "meta": {"text": [message]},
    }
    return task if region.score is None else {**task, "score": region.score}


def _cvat(images: list[_Image]) -> bytes:
    root = Element("annotations")
    SubElement(root, "version").text = "1.1"
    for number, image in enumerate(images):
        size = {"width": str(image.width), "height": str(image.height)}
        one = SubElement(root, "image", {"id": str(number), "name": image.name, **size})
        for region in image.regions:
            places = zip(("xtl", "ytl", "xbr", "ybr"), map(repr, region.box), strict=True)
            plain = {"source": "auto", "occluded": "0", **dict(places), "z_order": "0"}
            box = SubElement(one, "box", {"label": region.label, **plain})
            scored = {} if region.score is None else {"score": region.score}
            for name, value in (region.about | scored).items():
                SubElement(box, "attribute", {"name": name}).text = str(value)
    indent(root)
    return tostring(root, encoding="utf-8", xml_declaration=True)


def _coco(images: list[_Image]) -> bytes:
    names = sorted({region.label for image in images for region in image.regions})
    numbers = {name: number for number, name in enumerate(names, 1)}
    annotations: list[dict[str, Any]] = []
    for number, image in enumerate(images, 1):
        for region in image.regions:
            left, top, right, bottom = region.box
            width, height = right - left, bottom - top
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": numbers[region.label],
                    "bbox": [left, top, width, height],
                    "area": width * height,
                    "iscrowd": 0,
                    **region.about,
                    **({} if region.score is None else {"score": region.score}),
                }
            )
    return msgspec.json.encode(
        {
            "images": [
                {
                    "id": number,
                    "file_name": image.name,
                    "datum_id": image.datum_id,
                    **({"width": image.width, "height": image.height} if image.width else {}),
                }
                for number, image in enumerate(images, 1)
            ],
            "categories": [{"id": number, "name": name} for name, number in numbers.items()],
            "annotations": annotations,
        }
    )


FORMATS: dict[str, tuple[Callable[[list[_Image]], bytes], bool]] = {
    "label-studio": (_label_studio, True),
    "cvat": (_cvat, True),
    "coco": (_coco, False),
}
"""Format -> writer, and whether it needs image sizes."""
