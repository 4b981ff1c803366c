"""Writers of the same boxes in each format, by the formats' specifications."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import msgspec
import numpy as np

NAMES = ("car", "person on bike", "dog & cat", "été")


class Image(msgspec.Struct):
    """One image, its size, and its objects as (class, xmin, ymin, xmax, ymax, score)."""

    stem: str
    width: int
    height: int
    boxes: list[tuple[int, float, float, float, float, float]]


def images(seed: int, *, predictions: bool, many: int = 24) -> list[Image]:
    """Random images whose sizes are powers of two, so that relative coordinates are exact.

    Predictions and ground truths of the same seed belong together.
    """
    chance = np.random.default_rng(seed)
    result = []
    for i in range(many):
        width, height = (int(2 ** chance.integers(7, 11)) for _ in range(2))
        boxes = []
        for _ in range(int(chance.integers(0, 7))):
            w, h = (int(chance.integers(4, side // 2)) * 2 for side in (width // 2, height // 2))
            x, y = (int(chance.integers(0, side - one + 1)) for side, one in ((width, w), (height, h)))  # fmt: skip # noqa: E501
            label = int(chance.integers(0, len(NAMES)))
            moved = [int(m) * 2 for m in chance.integers(-2, 3, 4)]
            present, score = chance.random() < 0.8, int(chance.integers(1, 1000)) / 1024
            box = (x, y, x + w, y + h)
            if predictions:
                box = tuple(a + b for a, b in zip(box, moved, strict=True))
                box = (max(box[0], 0), max(box[1], 0), min(max(box[2], box[0] + 2), width),
                       min(max(box[3], box[1] + 2), height))  # fmt: skip
            if not predictions or present:
                boxes.append((label, *map(float, box), score))
        result.append(Image(f"img {i:03d}" if i % 5 else f"img_{i:03d}", width, height, boxes))
    return result


def write_coco(folder: Path, some: list[Image], *, predictions: bool) -> Path:
    rows = [
        {"image_id": i, "category_id": label + 1, "bbox": [x0, y0, x1 - x0, y1 - y0]}
        | ({"score": score} if predictions else
           {"id": 100 * i + k, "area": (x1 - x0) * (y1 - y0), "iscrowd": 0})
        for i, image in enumerate(some, 1)
        for k, (label, x0, y0, x1, y1, score) in enumerate(image.boxes, 1)
    ]  # fmt: skip
    whole: Any = rows
    if not predictions:
        listed = [
            {"id": i, "file_name": f"{one.stem}.jpg", "width": one.width, "height": one.height}
            for i, one in enumerate(some, 1)
        ]
        classes = [{"id": i, "name": name} for i, name in enumerate(NAMES, 1)]
        whole = {"images": listed, "categories": classes, "annotations": rows}
    path = folder / ("results.json" if predictions else "instances.json")
    path.write_text(json.dumps(whole))
    return path


def write_yolo(folder: Path, some: list[Image], *, predictions: bool) -> Path:
    from PIL import Image as Picture

    root = folder / ("predictions" if predictions else "data")
    labels = root if predictions else root / "labels" / "val"
    labels.mkdir(parents=True)
    for image in some:
        lines = []
        for label, x0, y0, x1, y1, score in image.boxes:
            box = ((x0 + x1) / 2 / image.width, (y0 + y1) / 2 / image.height,
                   (x1 - x0) / image.width, (y1 - y0) / image.height)  # fmt: skip
            lines.append(" ".join(map(repr, (label, *box, *((score,) if predictions else ())))))
        (labels / f"{image.stem}.txt").write_text("".join(f"{line}\n" for line in lines))
        if not predictions:
            pictures = root / "images" / "val"
            pictures.mkdir(parents=True, exist_ok=True)
            Picture.new("L", (image.width, image.height)).save(pictures / f"{image.stem}.jpg")
    if not predictions:
        names = "".join(f"  {i}: {json.dumps(name)}\n" for i, name in enumerate(NAMES))
        (root / "data.yaml").write_text(f"path: .\nval: images/val\nnames:\n{names}")
    return root


def write_voc(folder: Path, some: list[Image], *, predictions: bool) -> Path:
    root = folder / ("found" if predictions else "Annotations")
    root.mkdir(parents=True)
    for image in some:
        objects = "".join(
            f"<object><name>{escape(NAMES[label])}</name>"
            + (f"<score>{score!r}</score>" if predictions else "<difficult>0</difficult>")
            + f"<bndbox><xmin>{x0:g}</xmin><ymin>{y0:g}</ymin><xmax>{x1:g}</xmax>"
            f"<ymax>{y1:g}</ymax></bndbox></object>\n"
            for label, x0, y0, x1, y1, score in image.boxes
        )
        (root / f"{image.stem}.xml").write_text(
            f"<annotation>\n<filename>{image.stem}.jpg</filename><size><width>{image.width}</width>"
            f"<height>{image.height}</height><depth>3</depth></size>\n{objects}</annotation>\n"
        )
    return root


def write_cvat(folder: Path, some: list[Image], *, predictions: bool) -> Path:
    parts = ['<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n<version>1.1</version>\n']
    for i, image in enumerate(some):
        parts.append(
            f'<image id="{i}" name={quoteattr(f"frames/{image.stem}.jpg")}'
            f' width="{image.width}" height="{image.height}">\n'
        )
        for label, x0, y0, x1, y1, score in image.boxes:
            element = f'<attribute name="score">{score!r}</attribute>' if predictions else ""
            parts.append(
                f'<box label={quoteattr(NAMES[label])} source="manual" occluded="0" xtl="{x0:.2f}"'
                f' ytl="{y0:.2f}" xbr="{x1:.2f}" ybr="{y1:.2f}" z_order="0">{element}</box>\n'
            )
        parts.append("</image>\n")
    path = folder / ("found.xml" if predictions else "annotations.xml")
    path.write_text("".join(parts) + "</annotations>\n")
    return path


def write_labelme(folder: Path, some: list[Image], *, predictions: bool) -> Path:
    root = folder / ("found" if predictions else "labelme")
    root.mkdir()
    for image in some:
        shapes = [
            {"label": NAMES[label], "points": [[x1, y1], [x0, y0]], "group_id": None,
             "shape_type": "rectangle", "flags": {}} | ({"score": score} if predictions else {})
            for label, x0, y0, x1, y1, score in image.boxes
        ]  # fmt: skip
        whole = {"version": "5.4.1", "flags": {}, "shapes": shapes,
                 "imagePath": f"..\\images\\{image.stem}.jpg", "imageData": None,
                 "imageHeight": image.height, "imageWidth": image.width}  # fmt: skip
        (root / f"{image.stem}.json").write_text(json.dumps(whole))
    return root


def write_label_studio(folder: Path, some: list[Image], *, predictions: bool) -> Path:
    tasks = []
    for i, image in enumerate(some, 1):
        regions = [
            {"type": "rectanglelabels", "from_name": "label", "to_name": "image", "id": f"r{k}",
             "original_width": image.width, "original_height": image.height, "image_rotation": 0,
             "value": {"x": x0 * 100 / image.width, "y": y0 * 100 / image.height,
                       "width": (x1 - x0) * 100 / image.width,
                       "height": (y1 - y0) * 100 / image.height, "rotation": 0,
                       "rectanglelabels": [NAMES[label]]}}
            | ({"score": score} if predictions else {})
            for k, (label, x0, y0, x1, y1, score) in enumerate(image.boxes)
        ]  # fmt: skip
        answers = {"predictions" if predictions else "annotations": [{"id": i, "result": regions}]}
        tasks.append(
            {"id": i, "data": {"image": f"/data/local-files/?d=pictures/{image.stem}.jpg"},
             "annotations": [], "predictions": []} | answers
        )  # fmt: skip
    path = folder / ("found.json" if predictions else "export.json")
    path.write_text(json.dumps(tasks, indent=1))
    return path


def write_open_images(folder: Path, some: list[Image], *, predictions: bool) -> Path:
    score_name = "Score" if predictions else "Confidence"
    lines = [f"ImageID,Source,LabelName,{score_name},XMin,XMax,YMin,YMax,IsGroupOf"]
    for image in some:
        lines += [
            f"{image.stem},xclick,/m/0{label},{score if predictions else 1},{x0 / image.width!r},"
            f"{x1 / image.width!r},{y0 / image.height!r},{y1 / image.height!r},0"
            for label, x0, y0, x1, y1, score in image.boxes
        ]
    path = folder / ("found.csv" if predictions else "boxes.csv")
    path.write_text("\n".join(lines) + "\n")
    described = "".join(f'/m/0{i},"{name}"\n' for i, name in enumerate(NAMES))
    (folder / "class-descriptions-boxable.csv").write_text(described)
    return path


def write_class_results(folder: Path, some: list[Image]) -> Path:
    root = folder / "results"
    root.mkdir()
    for label, name in enumerate(NAMES):
        lines = [
            f"{image.stem.replace(' ', '%20')} {score!r} {x0:g} {y0:g} {x1:g} {y1:g}\n"
            for image in some
            for at, x0, y0, x1, y1, score in image.boxes
            if at == label
        ]
        (root / f"comp4_det_test_{name}.txt").write_text("".join(lines))
    return root


WRITERS: dict[str, Callable[..., Path]] = {
    "coco": write_coco,
    "yolo": write_yolo,
    "voc": write_voc,
    "cvat": write_cvat,
    "labelme": write_labelme,
    "label-studio": write_label_studio,
    "open-images": write_open_images,
}
