"""Tables of detection as COCO's JSON: ground truths with images and categories, and results."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import IO, Any

import msgspec
import numpy as np
import polars as pl

from evalengine.ingest.geometry import BOX_NAMES
from evalengine.schemas.errors import InputError
from evalengine.schemas.wording import option

_OWN = {
    "datum_id",
    "label_value",
    "label_key",
    "score",
    "polygon",
    "mask",
    "segmentation",
    "iscrowd",
    "ignore",
    "area",
    "annotation_id",
    *BOX_NAMES,
}
"""Columns with a fixed place in COCO; others keep their names."""
_SHOWN = 3
_SEEN = 2  # visibility of a point that is labelled and seen

Writer = Callable[[IO[bytes]], object]


def coco_files(
    truths: pl.DataFrame | None,
    frame: pl.DataFrame | None,
    datums: pl.DataFrame | None,
    labels: pl.DataFrame | None,
) -> dict[str, tuple[Writer, int]]:
    """Return writers of ``groundtruths.json`` and ``predictions.json``, with their numbers of rows.

    Integer ids are kept; other ids of images and categories are numbered from 1 and stored as
    ``file_name`` and ``name`` by default. Missing boxes and areas are computed from the polygon or
    mask. A polygon with holes becomes a mask.

    Args:
        truths: canonical columns; None writes only results.
        datums: ``datum_id`` and further columns of images; None for those of the rows.
        labels: ``label_value`` and ``label_name``; None for those of the rows.

    Raises:
        InputError: several label keys, which COCO does not have; or a polygon with holes of an
            image whose size is unknown.
    """
    sides = [side for side in (truths, frame) if side is not None and side.width]
    for side in sides:
        if "label_key" in side.columns and side["label_key"].n_unique() > 1:
            keys = ", ".join(map(repr, side["label_key"].unique().sort().to_list()[:_SHOWN]))
            raise InputError(
                f"label_key: COCO knows one kind of label, and here are several ({keys}). Take one"
                f" of them: {option('where', 'label_key = ...')}.",
                code="several_keys",
                column="label_key",
            )
    images = _with_all(datums, sides, "datum_id")
    classes = _with_all(labels, sides, "label_value")
    ids = _Ids(_numbers(images["datum_id"]), _numbers(classes["label_value"]))
    sizes: dict[Any, tuple[int, int]] = {}
    if {"height", "width"} <= {*images.columns}:
        complete = images.select("datum_id", "height", "width").drop_nulls()
        sizes = {i: (int(height), int(width)) for i, height, width in complete.iter_rows()}
    files: dict[str, tuple[Writer, int]] = {}
    if truths is not None:
        rows = _rows(truths, ids, sizes, "ground_truths")
        n = len(rows)
        stored_ids = truths["annotation_id"] if "annotation_id" in truths.columns else None
        numbers = range(1, n + 1) if stored_ids is None or stored_ids.null_count() else stored_ids
        for row, number in zip(rows, numbers, strict=True):
            row["id"] = number
        document = {
            "images": _images(images, ids),
            "categories": _categories(classes, ids),
            "annotations": rows,
        }
        files["groundtruths.json"] = (_writer(document), len(rows))
    if frame is not None:
        results = _rows(frame, ids, sizes, "predictions")
        files["predictions.json"] = (_writer(results), len(results))
    return files


class _Ids(msgspec.Struct, frozen=True):
    """COCO ids of images and categories, by our ids."""

    images: dict[Any, int]
    categories: dict[Any, int]


def _writer(thing: Any) -> Writer:
    return lambda file: file.write(msgspec.json.encode(thing))


def _with_all(table: pl.DataFrame | None, sides: list[pl.DataFrame], column: str) -> pl.DataFrame:
    """A table with a row for every id that a row of either side has, the listed ones first."""
    used = [side.select(column) for side in sides if side.height]
    if table is not None and used:
        used = [one.cast(table.schema[column]) for one in used]
    rows = pl.concat(used).unique().sort(column) if used else None
    if table is None:
        return rows if rows is not None else pl.DataFrame({column: []})
    if rows is None:
        return table
    return pl.concat([table, rows.join(table, on=column, how="anti")], how="diagonal")


def _numbers(ids: pl.Series) -> dict[Any, int]:
    if ids.dtype.is_integer():
        return {value: value for value in ids}
    return {value: number for number, value in enumerate(ids, 1)}


def _images(images: pl.DataFrame, ids: _Ids) -> list[dict[str, Any]]:
    rows = []
    for row in images.iter_rows(named=True):
        datum_id = row.pop("datum_id")
        name = row.pop("file_name", None) or (datum_id if isinstance(datum_id, str) else None)
        named = {"file_name": name} if name is not None else {}
        rows.append({"id": ids.images[datum_id], **named, **_filled(row)})
    return rows


def _categories(classes: pl.DataFrame, ids: _Ids) -> list[dict[str, Any]]:
    rows = []
    for row in classes.iter_rows(named=True):
        key = row.pop("label_value")
        name = row.pop("label_name", None)
        row.pop("label_key", None)
        rows.append(
            {"id": ids.categories[key], "name": str(key) if name is None else name, **_filled(row)}
        )
    return rows


def _filled(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def _rows(
    side: pl.DataFrame, ids: _Ids, sizes: dict[Any, tuple[int, int]], called: str
) -> list[dict[str, Any]]:
    """One side's rows as COCO has them, without their own ids."""
    if not side.height:
        return []
    shapes = _Shapes(side, sizes, called)
    scored = "score" in side.columns
    extra_columns = [name for name in side.columns if name not in _OWN]
    rows = []
    for i, row in enumerate(side.iter_rows(named=True)):
        box = shapes.box(i, row)
        entry: dict[str, Any] = {
            "image_id": ids.images[row["datum_id"]],
            "category_id": ids.categories[row["label_value"]],
            "bbox": box,
        }
        if scored:
            entry["score"] = row["score"]
        if shapes.there[i]:
            entry["segmentation"] = shapes.segmentation(i, row)
        if not scored:
            entry["area"] = shapes.area(i, row, box)
            entry["iscrowd"] = int(row.get("iscrowd") or 0)
            if row.get("ignore") is not None:
                entry["ignore"] = int(row["ignore"])
        entry |= _filled({name: row[name] for name in extra_columns})
        if "keypoints" in entry:
            flat = entry["keypoints"]
            if flat and isinstance(flat[0], list):  # points without visibility are visible
                flat = [value for point in flat for value in (*point, _SEEN)[:3]]
            entry["keypoints"] = flat
            labelled = entry.get("num_keypoints", sum(value > 0 for value in flat[2::3]))
            entry["num_keypoints"] = int(labelled)
        rows.append(entry)
    return rows


class _Shapes:
    """Polygons and masks of one side's rows, with derived values."""

    def __init__(self, side: pl.DataFrame, sizes: dict[Any, tuple[int, int]], called: str) -> None:
        from evalengine.geometry.masks import read_masks
        from evalengine.geometry.polygons import read_polygons

        self.sizes = sizes
        n = side.height
        self.there = np.zeros(n, bool)
        self.polygon_at = self.mask_at = np.full(n, -1, np.int64)
        self.polygons = self.masks = None
        if "polygon" in side.columns:
            rows = np.flatnonzero(side["polygon"].is_not_null().to_numpy())
            if rows.size:
                self.polygons = read_polygons(side["polygon"].gather(rows), side=called, rows=rows)
            self.polygon_at = np.full(n, -1, np.int64)
            self.polygon_at[rows] = np.arange(rows.size)
            self.there[rows] = True
        if "mask" in side.columns:
            rows = np.flatnonzero(side["mask"].is_not_null().to_numpy() & ~self.there)
            if rows.size:
                self.masks = read_masks(side["mask"].gather(rows), side=called, rows=rows)
            self.mask_at = np.full(n, -1, np.int64)
            self.mask_at[rows] = np.arange(rows.size)
            self.there[rows] = True

    def box(self, i: int, row: dict[str, Any]) -> list[float]:
        """Left, top, width and height of a row's box, or of its shape."""
        if row.get("xmin") is not None:
            width, height = row.get("box_width"), row.get("box_height")
            return [
                row["xmin"],
                row["ymin"],
                row["xmax"] - row["xmin"] if width is None else width,
                row["ymax"] - row["ymin"] if height is None else height,
            ]
        low = self._shape(i).boxes[self._at(i)]
        return [float(low[0]), float(low[1]), float(low[2] - low[0]), float(low[3] - low[1])]

    def area(self, i: int, row: dict[str, Any], box: list[float]) -> float:
        """As annotated; else of the shape, else of the box."""
        if row.get("area") is not None:
            return float(row["area"])
        if not self.there[i]:
            return box[2] * box[3]
        return float(self._shape(i).area[self._at(i)])

    def segmentation(self, i: int, row: dict[str, Any]) -> Any:
        """Return flat rings, or a run-length mask with compressed counts.

        Raises:
            InputError: a polygon with holes in an image of unknown size.
        """
        from evalengine.geometry.masks import to_rle
        from evalengine.geometry.polygons import rasterise

        at = self._at(i)
        if self.polygon_at[i] < 0:
            assert self.masks is not None
            return to_rle(self.masks)[at]
        assert self.polygons is not None
        one = self.polygons.take(np.array([at]))
        rings = one.rings
        if (np.diff(rings.part_start) == 1).all():
            offsets = rings.ring_start
            return [rings.xy[first:last].reshape(-1).tolist() for first, last in pairwise(offsets)]
        size = self.sizes.get(row["datum_id"])
        if size is None:
            raise InputError(
                f"{one.place.named(0)}: a polygon with holes, which COCO has as a mask only, of"
                f" image {row['datum_id']!r}, whose size is not known. Give a table of datum_id,"
                f" width and height as {option('datums', 'TABLE')}.",
                code="image_size_missing",
                value=row["datum_id"],
            )
        masks = rasterise(one, np.array([size[0]]), np.array([size[1]]))
        return to_rle(masks)[0]

    def _shape(self, i: int) -> Any:
        return self.polygons if self.polygon_at[i] >= 0 else self.masks

    def _at(self, i: int) -> int:
        return int(max(self.polygon_at[i], self.mask_at[i]))
