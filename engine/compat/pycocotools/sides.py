"""Both sides of an evaluation, encoded for detection, with their source rows."""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from ...geometry.masks import Masks
from ...kernels.boxes import Piece
from ...schemas.arrays import Array
from ...tally.datums import Datums, Labels, lie_close
from ...tasks.detection.encode import Batch, Side
from ...tasks.detection.keypoints import shapes_of
from ...tasks.detection.layers import Shapes
from ...tasks.workers import Workers
from .annotations import Annotation, boxes, column, numbers, points, refuse
from .params import Params
from .regions import masks_of, of_boxes, of_masks

if TYPE_CHECKING:
    from .coco import COCO


RESULTS, TRUTHS = "results", "ground truths"


class Chosen(msgspec.Struct, frozen=True):
    """Selected rows of one side.

    Attributes:
        rows: in the order that breaks ties of scores.
        ids: [n].
        datum: int32 [n], image index.
        label: int32 [n], category index; 0 if categories do not count.
        score: [n], as given; only for results.
    """

    rows: Sequence[Annotation]
    ids: Sequence[Any]
    datum: Array
    label: Array
    score: list[Any]


class EvaluatedSides(msgspec.Struct, frozen=True):
    """Rows of an evaluation and their shapes.

    Attributes:
        results: rows of the results.
        truths: rows of the ground truths.
        batch: both, encoded.
        shown: shapes of both sides, per row.
    """

    results: Chosen
    truths: Chosen
    batch: Batch
    shown: tuple[Any, Any]

    @property
    def shapes(self) -> tuple[Shapes, Shapes]:
        """Shapes of both sides, per row."""
        return self.shown[0].shapes, self.shown[1].shapes


def choose(
    coco: COCO, images: Mapping[Any, int], categories: Mapping[Any, int], what: str, *, apart: bool
) -> Chosen:
    """Select the rows of some images and categories.

    Args:
        images: image id to index.
        categories: category id to index.
        what: name of the rows, for errors.
        apart: separate the categories; otherwise rows are sorted by category, then row.
    """
    rows, image_ids, ids = _rows(coco, images, what)
    datum, label = (
        _coded(values, places)
        for values, places in (
            (image_ids, images),
            (column(rows, "category_id", what), categories),
        )
    )
    number = np.flatnonzero((datum >= 0) & (label >= 0))
    if not apart:
        number = number[np.argsort(label[number], kind="stable")]
    if number.size < len(rows) or not apart:
        rows, ids = ([values[i] for i in number.tolist()] for values in (rows, ids))
        datum, label = datum[number], label[number]
    if not apart:
        label = np.zeros_like(label)
    return Chosen(rows, ids, datum, label, column(rows, "score", what) if what == RESULTS else [])


def _coded(values: Sequence[Any], places: Mapping[Any, int]) -> Array:
    """Return the index of each value, -1 if it has none, int32 [n]."""
    try:  # a table of small integers takes half the time of looking up one after the other
        found = np.frombuffer(array("q", values), np.int64)
        known = np.frombuffer(array("q", places), np.int64)
    except (TypeError, OverflowError):
        return np.fromiter(map(places.get, values, repeat(-1)), np.int32, len(values))
    low, high = int(found.min(initial=0)), int(found.max(initial=0))
    if not lie_close(low, high, 8 * len(values)):
        return np.fromiter(map(places.get, values, repeat(-1)), np.int32, len(values))
    table = np.full(high - low + 1, -1, np.int32)
    within = (known >= low) & (known <= high)
    table[known[within] - low] = np.flatnonzero(within)
    return table[found - low]


def _rows(
    coco: COCO, images: Mapping[Any, int], what: str
) -> tuple[Sequence[Annotation], Sequence[Any], Sequence[Any]]:
    """Rows, their images and their ids; of those with one id the last counts for each."""
    rows, image_ids = coco.rows(images, what)
    if coco.results:  # nobody has looked at them: their ids are still to be written
        return rows, image_ids, range(1, len(rows) + 1)
    ids = column(rows, "id", what)
    several = len(ids) - len({*ids})
    if several:
        warnings.warn(
            f"{what}: {several:,} of {len(ids):,} have the id of another one; the last of each id"
            " counts in their place, as in pycocotools. Number them anew to change that.",
            stacklevel=2,
        )
        rows = [coco.anns[i] for i in ids]
        image_ids = column(rows, "image_id", what)
    return rows, image_ids, ids


def meet(
    sets: tuple[COCO, COCO],
    images: Sequence[Any],
    categories: Sequence[Any],
    params: Params,
    *,
    apart: bool,
    threads: Workers,
) -> EvaluatedSides:
    """Select and encode the results and ground truths of some images and categories.

    Args:
        sets: results and ground truths.
        images: ids.
        categories: ids.
        params: ``iouType``, a key of :data:`KINDS`, selects the comparison.
        apart: whether to separate categories.

    Raises:
        InputError: rows without required keys, or that cannot be compared.
    """
    by_image, by_category = ({one: i for i, one in enumerate(ids)} for ids in (images, categories))
    ours, theirs = (
        choose(coco, by_image, by_category, what, apart=apart)
        for coco, what in zip(sets, (RESULTS, TRUTHS), strict=True)
    )
    ours_shown, theirs_shown = KINDS[params.iouType](sets, (ours, theirs), params, threads)
    plain = isinstance(ours_shown, Boxes) and ours_shown.told_area is None
    score = numbers(ours.rows, ours.score, "score", RESULTS)
    n_labels = len(categories) if apart else 1
    batch = Batch(
        datums=Datums(None, pl.DataFrame(), rows=len(images)),
        labels=labels_of(n_labels),
        predictions=_side(ours, ours_shown, score, plain=plain),
        ground_truths=_side(theirs, theirs_shown, np.zeros(0), plain=plain),
        single=False,
        crowd=np.array([*map(bool, map(methodcaller("get", "iscrowd"), theirs.rows))], np.bool_),
        ignore=_set_aside(theirs_shown, len(theirs.rows)),
        area=_areas(theirs.rows, TRUTHS),
    )
    return EvaluatedSides(ours, theirs, batch, (ours_shown, theirs_shown))


def labels_of(n: int) -> Labels:
    """Categories by their places."""
    frame = pl.DataFrame({"label_key": ["category"] * n, "label_value": [*range(n)]})
    return Labels(frame, np.zeros(n, np.int32), ("category",))


class Boxes:
    """Boxes as given.

    Args:
        boxes: float64 [n, 4], x, y, width and height.
        told_area: areas for the area ranges, if not width x height.
    """

    def __init__(self, boxes: Array, told_area: Array | None = None) -> None:
        self.boxes, self.told_area = boxes, told_area

    @cached_property
    def shapes(self) -> Shapes:
        return msgspec.structs.replace(of_boxes(self.boxes), told_area=self.told_area)


class Regions(NamedTuple):
    """Masks or keypoints."""

    shapes: Shapes


Shown = Boxes | Regions


def _side(chosen: Chosen, shown: Shown, score: Array, *, plain: bool) -> Side:
    """Build one side for matching; plain boxes are matched without shapes."""
    corners: Any
    if plain and isinstance(shown, Boxes):
        x, y, w, h = np.ascontiguousarray(shown.boxes.T)
        piece = Piece((x, y, x + w, y + h), (w, h), score)
        return Side(chosen.datum, chosen.label, (piece,), None, pl.DataFrame())
    corners = tuple(np.ascontiguousarray(shown.shapes.boxes.T))
    piece = Piece(corners, None, score)
    return Side(chosen.datum, chosen.label, (piece,), shown.shapes, pl.DataFrame())


def _set_aside(truths: Shown, n: int) -> Array:
    """Return the ignored ground truths other than crowds, bool [n]."""
    aside = truths.shapes.set_aside if isinstance(truths, Regions) else None
    return np.zeros(n, np.bool_) if aside is None else aside


def _areas(rows: Sequence[Annotation], what: str) -> Array:
    """Return the areas for the area ranges, float64 [n]."""
    return numbers(rows, column(rows, "area", what), "area", what)


def _told(area: Callable[[], Array], coco: COCO, rows: Sequence[Annotation], kind: str) -> Any:
    """Return the areas given with results; None if they equal those of the shapes."""
    if coco.results == kind:
        return None  # those that loadRes would write into them
    coco.complete()
    areas = _areas(rows, RESULTS)
    return None if np.array_equal(areas, area()) else areas


def _boxes(
    sets: tuple[COCO, COCO], chosen: tuple[Chosen, Chosen], params: Params, threads: Workers
) -> tuple[Boxes, Boxes]:
    """Boxes as they are given."""
    if sets[0].results != "bbox":
        sets[0].complete()
    ours, theirs = (
        boxes(side.rows, what) for side, what in zip(chosen, (RESULTS, TRUTHS), strict=True)
    )
    told = _told(lambda: ours[:, 2] * ours[:, 3], sets[0], chosen[0].rows, "bbox")
    return Boxes(ours, told), Boxes(theirs)


def _masks(
    sets: tuple[COCO, COCO], chosen: tuple[Chosen, Chosen], params: Params, threads: Workers
) -> tuple[Regions, Regions]:
    """Make masks of both sides; polygons are rasterised."""
    if sets[0].results != "segmentation":
        sets[0].complete()
    made = []
    for coco, side, what in zip(sets, chosen, (RESULTS, TRUTHS), strict=True):
        regions = column(side.rows, "segmentation", what)
        height, width = _sizes(coco, side)
        masks = masks_of(regions, height, width, what, threads.over)
        masks.measure(threads.over)
        made.append((of_masks(masks), masks, side))
    _refuse_sizes([(masks, side) for _, masks, side in made])
    ours, theirs = made[0][0], made[1][0]
    told = _told(lambda: ours.area, sets[0], chosen[0].rows, "segmentation")
    return Regions(msgspec.structs.replace(ours, told_area=told)), Regions(theirs)


def _sizes(coco: COCO, side: Chosen) -> tuple[Array, Array]:
    """Return height and width of each row's image, int64 [n]; 0 if unknown."""
    found = np.zeros((2, len(side.rows)), np.int64)
    for i, row in enumerate(side.rows):
        image = coco.imgs.get(row["image_id"], {})
        found[:, i] = image.get("height", 0), image.get("width", 0)
    return found[0], found[1]


def _refuse_sizes(sides: Sequence[tuple[Masks, Chosen]]) -> None:
    """Refuse masks of one image that differ in size: they have no common pixel grid."""
    size = np.concatenate([(m.height << np.int64(32)) | m.width for m, _ in sides])
    datum = np.concatenate([side.datum for _, side in sides])
    first = np.zeros(int(datum.max(initial=-1)) + 1, np.int64)
    first[datum] = size
    wrong = size != first[datum]
    for (masks, side), what in zip(sides, (RESULTS, TRUTHS), strict=True):
        mine, wrong = wrong[: len(masks)], wrong[len(masks) :]
        if mine.any():
            why = "whose mask is not of the size of others on its image"
            refuse(side.rows, mine.tolist(), why, what)


def _keypoints(
    sets: tuple[COCO, COCO], chosen: tuple[Chosen, Chosen], params: Params, threads: Workers
) -> tuple[Regions, Regions]:
    """Make keypoints of both sides, compared by OKS with ``kpt_oks_sigmas``."""
    sigmas = np.asarray(params.kpt_oks_sigmas, np.float64)
    ours, theirs = (
        points(side.rows, sigmas.size, what)
        for side, what in zip(chosen, (RESULTS, TRUTHS), strict=True)
    )
    rows = chosen[1].rows
    n_labels = int(max(side.label.max(initial=-1) for side in chosen)) + 1
    found, truths = shapes_of(
        ours,
        theirs,
        boxes(rows, TRUTHS),
        _areas(rows, TRUTHS),
        numbers(rows, column(rows, "num_keypoints", TRUTHS), "num_keypoints", TRUTHS),
        chosen[1].label,
        np.full(n_labels, sigmas.size),
        (np.zeros(n_labels, np.int64), (sigmas * 2) ** 2),
    )
    told = _told(lambda: found.area, sets[0], chosen[0].rows, "keypoints")
    return Regions(msgspec.structs.replace(found, told_area=told)), Regions(truths)


Kind = Callable[
    [tuple["COCO", "COCO"], tuple[Chosen, Chosen], Params, Workers], tuple[Shown, Shown]
]

KINDS: dict[str, Kind] = {"bbox": _boxes, "segm": _masks, "keypoints": _keypoints}
"""``iouType`` -> function that makes the compared shapes."""
