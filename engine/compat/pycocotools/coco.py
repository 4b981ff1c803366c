"""``COCO``: a data set or results, as in pycocotools."""

from __future__ import annotations

import copy
import json
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...ingest.sources.json_rows import NotFlat, scan
from ...kernels import uncollected
from ...kernels.boxes import Points
from ...schemas.arrays import Array
from ...schemas.errors import N_EXAMPLES, InputError
from . import mask

# Annotations, a dict each: columns of them, and errors that name those that do not fit.

Annotation = dict[str, Any]


class FileRows(Sequence[Annotation]):
    """Results of a JSON file: columns of boxes, until their dicts are asked for.

    Raises:
        NotFlat: the file needs a general parser.
    """

    def __init__(self, path: str | Path) -> None:
        self._path, self._text = path, Path(path).read_bytes()
        if b'"caption"' in self._text:  # results with captions are no boxes
            raise NotFlat
        names = ("image_id", "category_id", "score", "bbox")
        frame = pl.concat(scan(self._text, names), how="vertical_relaxed")
        types = frame.dtypes
        whole, numeric = {types[0], types[1]} == {pl.Int64}, types[2].is_numeric()
        four = types[3] == pl.Array(pl.Float64, 4)
        if not (whole and numeric and four) or any(one.null_count() for one in frame):
            raise NotFlat
        self.columns = {name: frame[name].to_numpy() for name in names}
        self._size = frame.height

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, at: Any) -> Any:
        return self.dicts[at]

    def __iter__(self) -> Iterator[Annotation]:
        return iter(self.dicts)

    @cached_property
    def dicts(self) -> list[Annotation]:
        """The objects of the file; callers may change them, so that the columns are dropped."""
        rows: list[Annotation] = _decoded(self._path, self._text)
        self.columns, self._text = {}, b""
        return rows


def column(rows: Sequence[Annotation], key: str, what: str = "results") -> list[Any]:
    """Return one value of each row.

    Raises:
        InputError: rows without it, or that are not dicts.
    """
    if isinstance(rows, FileRows) and key in rows.columns:
        return rows.columns[key].tolist()
    try:
        return list(map(itemgetter(key), rows))
    except (KeyError, TypeError, IndexError):
        pass
    refuse(rows, [not isinstance(row, Mapping) for row in rows], "that are not dicts", what)
    refuse(rows, [key not in row for row in rows], f"without {key!r}", what)
    return [row[key] for row in rows]


def refuse(rows: Sequence[Annotation], wrong: Sequence[bool], why: str, what: str) -> None:
    """Raise if any row is wrong.

    Args:
        wrong: flag per row, [n].
        why: follows their number: ``without ...``, ``whose ...``.
        what: name of the rows in the message.

    Raises:
        InputError: gives the count and the first rows.
    """
    at = [i for i, is_wrong in enumerate(wrong) if is_wrong]
    if at:
        short = (f"row {i}, {repr(rows[i])[:100]}" for i in at[:N_EXAMPLES])
        examples = "; ".join(short)
        raise InputError(
            f"{what}: {len(at):,} of {len(rows):,} {why}, first (rows count from 0): {examples}.",
            code="wrong_rows",
            side=what,
            field=why.split("'")[1] if "'" in why else None,
            count=len(at),
            of=len(rows),
            rows=at[:N_EXAMPLES],
        )


def numbers(rows: Sequence[Annotation], values: Sequence[Any], key: str, what: str) -> Array:
    """Convert values to finite numbers, float64 [n].

    Args:
        rows: rows of the values, for errors.
        key: name of the values, for errors.
        what: name of the rows, for errors.

    Raises:
        InputError: rows whose value is not a finite number.
    """
    result = _floats(lambda: values, len(values))
    wrong: list[bool] = (~np.isfinite(result)).tolist()
    if any(wrong):
        refuse(rows, wrong, f"whose {key!r} is not a finite number", what)
    return result


def _floats(values: Callable[[], Iterable[Any]], n: int) -> Array:
    """Convert n values to float64; NaN for those that are not numbers."""

    def number(value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            return float("nan")

    try:
        return np.fromiter(values(), np.float64, n)
    except (TypeError, ValueError, OverflowError):
        return np.array([number(value) for value in values()], np.float64)


def boxes(rows: Sequence[Annotation], what: str) -> Array:
    """x, y, width and height, float64 [n, 4]."""
    if isinstance(rows, FileRows) and rows.columns:
        return rows.columns["bbox"]
    values = column(rows, "bbox", what)
    try:
        fours = {*map(len, values)} <= {4}
    except TypeError:
        fours = False
    if not fours:
        short = [not hasattr(box, "__len__") or len(box) != 4 for box in values]
        refuse(rows, short, "whose 'bbox' is not four numbers", what)
    result = _floats(lambda: chain.from_iterable(values), 4 * len(values)).reshape(-1, 4)
    finite = np.isfinite(result)
    if not finite.all():
        odd = [not all(four) for four in finite.tolist()]
        refuse(rows, odd, "whose 'bbox' is not four finite numbers", what)
    return result


def points(rows: Sequence[Annotation], k: int, what: str) -> Points:
    """Return the keypoints of rows.

    Args:
        k: number of keypoints per row.
        what: name of the rows, for errors.

    Raises:
        InputError: rows with another number of keypoints, or numbers that are not finite.
    """
    values = column(rows, "keypoints", what)
    odd = [not hasattr(one, "__len__") or len(one) != 3 * k for one in values]
    refuse(rows, odd, f"whose 'keypoints' are not {k} times x, y and visibility", what)
    flat = _floats(lambda: chain.from_iterable(values), 3 * k * len(values))
    finite = np.isfinite(flat.reshape(len(values), 3 * k))
    odd = [not all(row) for row in finite.tolist()] if not finite.all() else []
    refuse(rows, odd, "whose 'keypoints' are not finite", what)
    return Points(np.arange(len(values) + 1, dtype=np.int64) * (3 * k), flat)


# ``COCO``: a data set, or results on it, as pycocotools' users look them up.

_INDEX = ("anns", "imgToAnns", "catToImgs")


class NotOfThisSet(InputError, AssertionError):
    """Results on images that the data set does not have; pycocotools fails an assertion there."""


class COCO:
    """Data set in COCO's JSON, or results on one.

    Annotations stay the dicts that were given. The keys that ``loadRes`` adds to results (``id``,
    ``area``, ``iscrowd``, a ``bbox`` or ``segmentation``) are added on first access; an evaluation
    does not need them.

    Args:
        annotation_file: a JSON file; None for an empty set: then set ``dataset`` and call
            :meth:`createIndex`.

    Attributes:
        dataset: content of the file: ``images``, ``annotations``, ``categories``, ``info``.
        imgs: image id to image.
        cats: category id to category.
        anns: annotation id to annotation.
        imgToAnns: image id to its annotations.
        catToImgs: category id to the image ids of its annotations.

    Raises:
        InputError: a file that is not JSON, or not one object.
    """

    def __init__(self, annotation_file: str | Path | None = None) -> None:
        self._dataset: dict[str, Any] = {}
        self._rows: Sequence[Annotation] = []
        self._results: str | None = None
        self._images: list[Any] | None = None
        self._clear()
        if annotation_file is not None:
            print("loading annotations into memory...")
            began = time.time()
            dataset = _decoded(annotation_file)
            if not isinstance(dataset, dict):
                raise InputError(
                    f"{annotation_file}: annotation file format {type(dataset)} not supported; an"
                    " object with images, annotations and categories is needed. A list of results"
                    " goes to loadRes.",
                    code="wrong_shape",
                    file=annotation_file,
                )
            print(f"Done (t={time.time() - began:0.2f}s)")
            self.dataset = dataset
            self.createIndex()

    def _clear(self) -> None:
        self.imgs: dict[Any, dict[str, Any]] = {}
        self.cats: dict[Any, dict[str, Any]] = {}
        for name in _INDEX:
            self.__dict__.pop(name, None)

    @property
    def dataset(self) -> dict[str, Any]:
        """Content of the file."""
        self.complete()
        return self._dataset

    @dataset.setter
    def dataset(self, given: dict[str, Any]) -> None:
        self._dataset, self._results = given, None

    @cached_property
    def anns(self) -> dict[Any, Annotation]:
        """Annotation id to annotation."""
        self.complete()
        return {row["id"]: row for row in self._rows}

    @cached_property
    def imgToAnns(self) -> dict[Any, list[Annotation]]:
        """Image id to its annotations, in their order."""
        self.complete()
        result: dict[Any, list[Annotation]] = defaultdict(list)
        for row in self._rows:
            result[row["image_id"]].append(row)
        return result

    @cached_property
    def catToImgs(self) -> dict[Any, list[Any]]:
        """Category id to the image id of each of its annotations."""
        result: dict[Any, list[Any]] = defaultdict(list)
        for row in self._rows if "categories" in self._dataset else ():
            result[row["category_id"]].append(row["image_id"])
        return result

    @property
    def results(self) -> str | None:
        """Kind of results, ``bbox`` or ``segmentation``, whose areas are not yet computed;
        otherwise None.
        """
        return self._results

    def complete(self) -> None:
        """Add the keys of ``loadRes`` to results, if not done yet."""
        kind, self._results = self._results, None
        if kind is not None:
            if isinstance(self._rows, FileRows):
                self._rows = self._dataset["annotations"] = self._rows.dicts
            added = _COMPLETED[kind](self._rows)
            for number, (row, more) in enumerate(zip(self._rows, added, strict=True), 1):
                row.update(more, id=number)

    def createIndex(self) -> None:
        """Take up the images, categories and annotations of ``dataset``."""
        print("creating index...")
        self._clear()
        dataset = self._dataset
        rows = dataset.get("annotations", ())
        self._rows, self._images = rows if isinstance(rows, FileRows) else list(rows), None
        self.imgs = {image["id"]: image for image in dataset.get("images", ())}
        self.cats = {category["id"]: category for category in dataset.get("categories", ())}
        print("index created!")

    def rows(self, images: Collection[Any], what: str) -> tuple[Sequence[Annotation], list[Any]]:
        """Return the annotations and their image ids, in lookup order.

        Args:
            images: required image ids; annotations of other images may be included.
            what: name of the annotations, for errors.
        """
        few = self._results is None and 4 * len(images) < len(self.imgs)
        if not few and not {*_INDEX[:2]} & {*self.__dict__}:
            ids = column(self._rows, "image_id", what) if self._images is None else self._images
            return self._rows, ids
        chosen = [i for i in images if i in self.imgToAnns] if few else self.imgToAnns
        selected = [self.anns[row["id"]] for i in chosen for row in self.imgToAnns[i]]
        return selected, column(selected, "image_id", what)

    def info(self) -> None:
        """Print the section "info" of the file."""
        for key, value in self._dataset["info"].items():
            print(f"{key}: {value}")

    def getAnnIds(
        self,
        imgIds: Any = (),
        catIds: Any = (),
        areaRng: Sequence[float] = (),
        iscrowd: bool | None = None,
    ) -> list[Any]:
        """Return the ids of the annotations that match all conditions.

        Args:
            imgIds: image ids, or one.
            catIds: category ids, or one.
            areaRng: bounds of the area, both excluded.
            iscrowd: True for only crowd regions, False for none.
        """
        images, categories = _several(imgIds), _several(catIds)
        rows: Iterable[Annotation]
        if len(images):
            rows = chain.from_iterable(self.imgToAnns[i] for i in images if i in self.imgToAnns)
        else:
            rows = self.dataset["annotations"]
        if len(categories):
            category_ids = categories
            with suppress(TypeError):  # ids that cannot be hashed
                category_ids = set(categories)
            rows = (row for row in rows if row["category_id"] in category_ids)
        if len(areaRng):
            rows = (row for row in rows if areaRng[0] < row["area"] < areaRng[1])
        if iscrowd is not None:
            rows = (row for row in rows if row["iscrowd"] == iscrowd)
        return [row["id"] for row in rows]

    def getCatIds(self, catNms: Any = (), supNms: Any = (), catIds: Any = ()) -> list[Any]:
        """Return the ids of the categories that match all conditions.

        Args:
            catNms: names, or one.
            supNms: supercategories, or one.
            catIds: ids, or one.
        """
        rows = self._dataset["categories"]
        for key, values in (("name", catNms), ("supercategory", supNms), ("id", catIds)):
            requested = _several(values)
            if len(requested):
                rows = [row for row in rows if row[key] in requested]
        return [row["id"] for row in rows]

    def getImgIds(self, imgIds: Any = (), catIds: Any = ()) -> list[Any]:
        """Return the ids of the images that match all conditions.

        Args:
            imgIds: candidates, or one.
            catIds: required categories, or one: an image needs annotations of each.
        """
        images, categories = _several(imgIds), _several(catIds)
        if not len(images) and not len(categories):
            return list(self.imgs)
        ids = set(images)
        for i, category in enumerate(categories):
            of_category = set(self.catToImgs.get(category, ()))
            ids = of_category if i == 0 and not ids else ids & of_category
        return list(ids)

    def loadAnns(self, ids: Any = ()) -> list[Annotation]:
        """The annotations of these ids, or of this one."""
        return [self.anns[i] for i in _several(ids)]

    def loadCats(self, ids: Any = ()) -> list[dict[str, Any]]:
        """The categories of these ids, or of this one."""
        return [self.cats[i] for i in _several(ids)]

    def loadImgs(self, ids: Any = ()) -> list[dict[str, Any]]:
        """The images of these ids, or of this one."""
        return [self.imgs[i] for i in _several(ids)]

    def loadRes(self, resFile: Any) -> COCO:
        """Load results on the images of this set.

        Args:
            resFile: a list of dicts, a JSON file of one, or an array [N, 7] of image id, x, y,
                width, height, score and category id. May be empty.

        Raises:
            InputError: a file that is not JSON; not a list of dicts; rows without required keys;
                :class:`NotOfThisSet`, which is also an ``AssertionError``, for unknown images.
        """
        result = COCO()
        print("Loading and preparing results...")
        began = time.time()
        if isinstance(resFile, (str, Path)):
            rows = _results_of(resFile)
        elif isinstance(resFile, np.ndarray):
            rows = self.loadNumpyAnnotations(resFile)
        else:
            rows = resFile
        if not isinstance(rows, (list, FileRows)):
            raise InputError(
                f"results in not an array of objects, but {type(rows).__name__}: a list of dicts, a"
                " JSON file of one or an array [N, 7] is needed.",
                code="wrong_shape",
            )
        images = self._refuse_others(rows)
        if isinstance(rows, FileRows):
            kinds = ["bbox"]
        else:
            first = rows[0] if rows else {}
            kinds = [key for key in _COMPLETED if key in first and first[key] != []]
        result._dataset = {
            "info": copy.deepcopy(self._dataset.get("info", {})),
            "images": list(self._dataset.get("images", ())),
            "annotations": rows,
        }
        if kinds[:1] == ["caption"]:
            named = {row["image_id"] for row in rows}
            result._dataset["images"] = [i for i in result._dataset["images"] if i["id"] in named]
        elif kinds or not rows:
            result._dataset["categories"] = copy.deepcopy(self._dataset.get("categories", []))
        result._results = kinds[0] if kinds else None
        print(f"DONE (t={time.time() - began:0.2f}s)")
        result.createIndex()
        result._images = images
        return result

    def _refuse_others(self, rows: Sequence[Annotation]) -> list[Any]:
        """Return the images of results; refuse unknown ones."""
        ids = column(rows, "image_id")
        if not {*ids} <= self.imgs.keys():
            other = [i for i in ids if i not in self.imgs]
            examples = ", ".join(map(repr, other[:N_EXAMPLES]))
            raise NotOfThisSet(
                f"Results do not correspond to current coco set: {len(other):,} of {len(rows):,}"
                f" have an image_id that is not among the {len(self.imgs):,} images, first"
                f" {examples}.",
                code="unknown_ids",
                count=len(other),
                of=len(rows),
            )
        return ids

    def loadNumpyAnnotations(self, data: Array) -> list[Annotation]:
        """Convert an array of results to dicts.

        Args:
            data: [N, 7] of image id, x, y, width, height, score and category id.

        Raises:
            InputError: another shape.
        """
        if data.ndim != 2 or data.shape[1] != 7:
            raise InputError(
                f"results: an array [N, 7] is needed, this has the shape {data.shape}.",
                code="wrong_shape",
                shape=data.shape,
            )
        values = data.tolist()
        return [
            {"image_id": int(i), "bbox": [x, y, w, h], "score": s, "category_id": int(c)}
            for i, x, y, w, h, s, c in values
        ]

    def annToRLE(self, ann: Annotation) -> dict[str, Any]:
        """The mask of an annotation as a compressed code."""
        image, region = self.imgs[ann["image_id"]], ann["segmentation"]
        if isinstance(region, list):
            return mask.merge(mask.frPyObjects(region, image["height"], image["width"]))
        if isinstance(region["counts"], list):
            return mask.frPyObjects(region, image["height"], image["width"])
        return region

    def annToMask(self, ann: Annotation) -> Array:
        """The mask of an annotation, uint8 [height, width]."""
        return mask.decode(self.annToRLE(ann))

    def showAnns(self, anns: Any, draw_bbox: bool = False) -> None:
        """Raise NotImplementedError: there is no plotting here."""
        raise NotImplementedError(
            "showAnns plots, which is not supported. annToMask returns the pixels."
        )

    def download(self, tarDir: Any = None, imgIds: Any = ()) -> None:
        """Raise NotImplementedError: images are not downloaded."""
        raise NotImplementedError("download fetches images, which is not supported.")


def _of_boxes(rows: Sequence[Annotation]) -> Iterator[Annotation]:
    for row in rows:
        x, y, w, h = row["bbox"]
        fields = {"area": w * h, "iscrowd": 0}
        if "segmentation" not in row:
            fields["segmentation"] = [[x, y, x, y + h, x + w, y + h, x + w, y]]
        yield fields


def _of_masks(rows: Sequence[Annotation]) -> Iterator[Annotation]:
    regions = column(rows, "segmentation")
    for row, area, box in zip(rows, mask.area(regions), mask.toBbox(regions), strict=True):
        yield {"area": area, "iscrowd": 0} | ({} if "bbox" in row else {"bbox": box})


def _of_keypoints(rows: Sequence[Annotation]) -> Iterator[Annotation]:
    for points in column(rows, "keypoints"):
        x, y = points[0::3], points[1::3]
        left, top, w, h = min(x), min(y), max(x) - min(x), max(y) - min(y)
        yield {"area": w * h, "bbox": [left, top, w, h]}


_COMPLETED = {
    "caption": lambda rows: ({} for _ in rows),
    "bbox": _of_boxes,
    "segmentation": _of_masks,
    "keypoints": _of_keypoints,
}
"""Key of the first result, first match wins -> function that yields the missing keys of each."""


def _results_of(path: str | Path) -> Any:
    try:
        return FileRows(path)
    except (NotFlat, pl.exceptions.PolarsError):
        return _decoded(path)


def _decoded(path: str | Path, text: bytes | None = None) -> Any:
    text = Path(path).read_bytes() if text is None else text
    with suppress(msgspec.DecodeError, RecursionError), uncollected():
        return msgspec.json.decode(text)
    try:  # NaN and Infinity, which Python writes
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is not JSON: {error}.", code="file_unreadable", file=path
        ) from None


def _several(value: Any) -> Any:
    return value if hasattr(value, "__iter__") and hasattr(value, "__len__") else [value]
