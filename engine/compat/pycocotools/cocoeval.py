"""``COCOeval`` and ``Params``, as in pycocotools."""

from __future__ import annotations

import copy
import time
import warnings
from array import array
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import chain, repeat
from operator import methodcaller
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from ...dialects import get
from ...executors import Threads
from ...exports.coco import arrays_of
from ...geometry.masks import Masks
from ...kernels.boxes import Piece
from ...schemas.arrays import Array
from ...schemas.errors import InputError, OptionError, ResultError, unknown
from ...schemas.options import Options
from ...tallies.datums import Datums, Labels, lie_close
from ...tallies.ranked import Interpolation, Ranked, Variants
from ...tallies.ranked_view import RankedView
from ...tasks.detection.encode import Batch, Side
from ...tasks.detection.keypoints import shapes_of
from ...tasks.detection.layers import Shapes
from ...tasks.detection.matching import Matched, overlap
from ...tasks.detection.overlaps import label_of
from ...tasks.detection.settings import NAMED, Settings
from ...tasks.detection.tallies import match_batch
from ...tasks.encoding import Workers
from .coco import COCO, Annotation, boxes, column, numbers, points, refuse
from .mask import masks_of, of_boxes, of_masks

# ``Params``: settings of an evaluation, with the names and defaults of pycocotools.

_SIDE = 1e5
_DETECTION = {
    "maxDets": [1, 10, 100],
    "areaRng": [[0**2, _SIDE**2], [0**2, 32**2], [32**2, 96**2], [96**2, _SIDE**2]],
    "areaRngLbl": ["all", "small", "medium", "large"],
}
_KEYPOINTS = {
    "maxDets": [20],
    "areaRng": [[0**2, _SIDE**2], [32**2, 96**2], [96**2, _SIDE**2]],
    "areaRngLbl": ["all", "medium", "large"],
    "kpt_oks_sigmas": np.array(NAMED["coco"]),
}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "bbox": _DETECTION,
    "segm": _DETECTION,
    "keypoints": _KEYPOINTS,
}
"""``iouType`` -> attributes that differ by it."""


class Params:
    """Settings of an evaluation.

    Args:
        iouType: ``bbox``, ``segm`` or ``keypoints``.

    Attributes:
        imgIds: ids of the images.
        catIds: ids of the categories.
        iouThrs: float64 [T], IoU thresholds.
        recThrs: float64 [R], ascending recall levels.
        maxDets: numbers of results per image and category that count.
        areaRng: [low, high] each, squared pixels, both included.
        areaRngLbl: their names.
        useCats: 1 to match within categories, 0 to ignore them.
        iouType: kind of comparison.
        kpt_oks_sigmas: float64 [k], only for ``keypoints``.
        useSegm: None; 0 or 1 are bbox and segm.

    Raises:
        OptionError: another ``iouType``.
    """

    imgIds: list[Any]
    catIds: list[Any]
    iouThrs: Any
    recThrs: Any
    maxDets: list[int]
    areaRng: list[Any]
    areaRngLbl: list[str]
    useCats: int
    useSegm: int | None
    kpt_oks_sigmas: Any

    def __init__(self, iouType: str = "segm") -> None:
        if iouType not in _DEFAULTS:
            raise unknown("iouType", iouType, _DEFAULTS, before="iouType not supported: ")
        self.imgIds, self.catIds = [], []
        self.iouThrs = np.linspace(0.5, 0.95, 10)
        self.recThrs = np.linspace(0.0, 1.0, 101)
        self.useCats = 1
        self.__dict__.update(copy.deepcopy(_DEFAULTS[iouType]))
        self.iouType = iouType
        self.useSegm = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Params:
        result = copy.copy(self)
        for name, value in self.__dict__.items():
            # Ids are never changed in place, and there may be very many of them.
            plain = name in ("imgIds", "catIds") and isinstance(value, list)
            result.__dict__[name] = list(value) if plain else copy.deepcopy(value, memo)
        return result


def thresholds(params: Params) -> list[float]:
    """Return the IoU thresholds.

    Raises:
        OptionError: none given, or one that is not above 0.
    """
    result = [float(iou) for iou in params.iouThrs]
    wrong = [iou for iou in result if not iou > 0]
    if wrong or not result:
        raise OptionError(
            f"params.iouThrs={result}: IoU thresholds are above 0.",
            code="option_value",
            option="iouThrs",
            value=result,
        )
    return result


# Both sides of an evaluation, encoded for detection, with their source rows.

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
        geometry: shapes of both sides, per row.
    """

    results: Chosen
    truths: Chosen
    batch: Batch
    geometry: tuple[Any, Any]

    @property
    def shapes(self) -> tuple[Shapes, Shapes]:
        """Shapes of both sides, per row."""
        return self.geometry[0].shapes, self.geometry[1].shapes


def choose(
    coco: COCO,
    images: Mapping[Any, int],
    categories: Mapping[Any, int],
    what: str,
    *,
    per_category: bool,
) -> Chosen:
    """Select the rows of some images and categories.

    Args:
        images: image id to index.
        categories: category id to index.
        what: name of the rows, for errors.
        per_category: separate the categories; otherwise rows are sorted by category, then row.
    """
    rows, image_ids, ids = _rows(coco, images, what)
    datum, label = (
        _coded(values, places)
        for values, places in ((image_ids, images), (column(rows, "category_id", what), categories))
    )
    number = np.flatnonzero((datum >= 0) & (label >= 0))
    if not per_category:
        number = number[np.argsort(label[number], kind="stable")]
    if number.size < len(rows) or not per_category:
        rows, ids = ([values[i] for i in number.tolist()] for values in (rows, ids))
        datum, label = datum[number], label[number]
    if not per_category:
        label = np.zeros_like(label)
    return Chosen(rows, ids, datum, label, column(rows, "score", what) if what == RESULTS else [])


def _coded(values: Sequence[Any], places: Mapping[Any, int]) -> Array:
    """Return the index of each value, -1 if it has none, int32 [n]."""
    try:  # a table of small integers takes half the time of looking up one after the other
        integers = np.frombuffer(array("q", values), np.int64)
        keys = np.frombuffer(array("q", places), np.int64)
    except (TypeError, OverflowError):
        return np.fromiter(map(places.get, values, repeat(-1)), np.int32, len(values))
    low, high = int(integers.min(initial=0)), int(integers.max(initial=0))
    if not lie_close(low, high, 8 * len(values)):
        return np.fromiter(map(places.get, values, repeat(-1)), np.int32, len(values))
    table = np.full(high - low + 1, -1, np.int32)
    within = (keys >= low) & (keys <= high)
    table[keys[within] - low] = np.flatnonzero(within)
    return table[integers - low]


def _rows(
    coco: COCO, images: Mapping[Any, int], what: str
) -> tuple[Sequence[Annotation], Sequence[Any], Sequence[Any]]:
    """Rows, their images and their ids; of those with one id the last counts for each."""
    rows, image_ids = coco.rows(images, what)
    if coco.results:  # ids are assigned on first access
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
    per_category: bool,
    threads: Workers,
) -> EvaluatedSides:
    """Select and encode the results and ground truths of some images and categories.

    Args:
        sets: results and ground truths.
        images: ids.
        categories: ids.
        params: ``iouType``, a key of :data:`KINDS`, selects the comparison.
        per_category: whether to separate categories.

    Raises:
        InputError: rows without required keys, or that cannot be compared.
    """
    by_image, by_category = ({one: i for i, one in enumerate(ids)} for ids in (images, categories))
    ours, theirs = (
        choose(coco, by_image, by_category, what, per_category=per_category)
        for coco, what in zip(sets, (RESULTS, TRUTHS), strict=True)
    )
    our_geometry, their_geometry = KINDS[params.iouType](sets, (ours, theirs), params, threads)
    plain = isinstance(our_geometry, Boxes) and our_geometry.given_area is None
    score = numbers(ours.rows, ours.score, "score", RESULTS)
    n_labels = len(categories) if per_category else 1
    # Ground truths that are ignored, other than crowds.
    aside = their_geometry.shapes.set_aside if isinstance(their_geometry, Regions) else None
    batch = Batch(
        datums=Datums(None, pl.DataFrame(), rows=len(images)),
        labels=labels_of(n_labels),
        predictions=_side(ours, our_geometry, score, plain=plain),
        ground_truths=_side(theirs, their_geometry, np.zeros(0), plain=plain),
        single=False,
        crowd=np.array([*map(bool, map(methodcaller("get", "iscrowd"), theirs.rows))], np.bool_),
        ignore=np.zeros(len(theirs.rows), np.bool_) if aside is None else aside,
        area=_areas(theirs.rows, TRUTHS),
    )
    return EvaluatedSides(ours, theirs, batch, (our_geometry, their_geometry))


def labels_of(n: int) -> Labels:
    """Categories by their places."""
    frame = pl.DataFrame({"label_key": ["category"] * n, "label_value": [*range(n)]})
    return Labels(frame, np.zeros(n, np.int32), ("category",))


class Boxes:
    """Boxes as given.

    Args:
        boxes: float64 [n, 4], x, y, width and height.
        given_area: areas for the area ranges, if not width x height.
    """

    def __init__(self, boxes: Array, given_area: Array | None = None) -> None:
        self.boxes, self.given_area = boxes, given_area

    @cached_property
    def shapes(self) -> Shapes:
        return msgspec.structs.replace(of_boxes(self.boxes), given_area=self.given_area)


class Regions(NamedTuple):
    """Masks or keypoints."""

    shapes: Shapes


Geometry = Boxes | Regions


def _side(chosen: Chosen, geometry: Geometry, score: Array, *, plain: bool) -> Side:
    """Build one side for matching; plain boxes are matched without shapes."""
    corners: Any
    if plain and isinstance(geometry, Boxes):
        x, y, w, h = np.ascontiguousarray(geometry.boxes.T)
        piece = Piece((x, y, x + w, y + h), (w, h), score)
        return Side(chosen.datum, chosen.label, (piece,), None, pl.DataFrame())
    corners = tuple(np.ascontiguousarray(geometry.shapes.boxes.T))
    piece = Piece(corners, None, score)
    return Side(chosen.datum, chosen.label, (piece,), geometry.shapes, pl.DataFrame())


def _areas(rows: Sequence[Annotation], what: str) -> Array:
    """Return the areas for the area ranges, float64 [n]."""
    return numbers(rows, column(rows, "area", what), "area", what)


def _given_areas(
    area: Callable[[], Array], coco: COCO, rows: Sequence[Annotation], kind: str
) -> Any:
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
    areas = _given_areas(lambda: ours[:, 2] * ours[:, 3], sets[0], chosen[0].rows, "bbox")
    return Boxes(ours, areas), Boxes(theirs)


def _masks(
    sets: tuple[COCO, COCO], chosen: tuple[Chosen, Chosen], params: Params, threads: Workers
) -> tuple[Regions, Regions]:
    """Make masks of both sides; polygons are rasterised."""
    if sets[0].results != "segmentation":
        sets[0].complete()
    converted = []
    for coco, side, what in zip(sets, chosen, (RESULTS, TRUTHS), strict=True):
        regions = column(side.rows, "segmentation", what)
        sizes = np.zeros((2, len(side.rows)), np.int64)
        for i, row in enumerate(side.rows):
            image = coco.imgs.get(row["image_id"], {})
            sizes[:, i] = image.get("height", 0), image.get("width", 0)
        height, width = sizes[0], sizes[1]
        masks = masks_of(regions, height, width, what, threads.over)
        masks.measure(threads.over)
        converted.append((of_masks(masks), masks, side))
    _refuse_sizes([(masks, side) for _, masks, side in converted])
    ours, theirs = converted[0][0], converted[1][0]
    areas = _given_areas(lambda: ours.area, sets[0], chosen[0].rows, "segmentation")
    return Regions(msgspec.structs.replace(ours, given_area=areas)), Regions(theirs)


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
    results, truths = shapes_of(
        ours,
        theirs,
        boxes(rows, TRUTHS),
        _areas(rows, TRUTHS),
        numbers(rows, column(rows, "num_keypoints", TRUTHS), "num_keypoints", TRUTHS),
        chosen[1].label,
        np.full(n_labels, sigmas.size),
        (np.zeros(n_labels, np.int64), (sigmas * 2) ** 2),
    )
    areas = _given_areas(lambda: results.area, sets[0], chosen[0].rows, "keypoints")
    return Regions(msgspec.structs.replace(results, given_area=areas)), Regions(truths)


Kind = Callable[
    [tuple["COCO", "COCO"], tuple[Chosen, Chosen], Params, Workers], tuple[Geometry, Geometry]
]

KINDS: dict[str, Kind] = {"bbox": _boxes, "segm": _masks, "keypoints": _keypoints}
"""``iouType`` -> function that makes the compared shapes."""


# ``evalImgs``: outcomes per category, area range and image, written and read.

Cell = dict[str, Any]


class Grid(msgspec.Struct, frozen=True):
    """Grid of the cells: one per category, area range and image, in this order.

    Attributes:
        images: ids.
        categories: ids; only -1 if categories do not count.
        ranges: area ranges as given.
        thresholds: IoU thresholds as given.
        caps: numbers of top results per image and category that count; the largest was matched.
    """

    images: Sequence[Any]
    categories: Sequence[Any]
    ranges: Sequence[Any]
    thresholds: Sequence[float]
    caps: Sequence[int]

    @property
    def cap(self) -> int:
        """The largest."""
        return max(self.caps)


def bits_of(words: Array, variants: Variants) -> Array:
    """Words of bits by variant, bool [areas, thresholds, n]."""
    shape = len(variants.areas), len(variants.thresholds), words.shape[1]
    out = np.empty(shape, np.bool_)
    for bits, word in zip(words, variants.words, strict=True):
        for v in range(word.n_areas * word.n_thresholds):
            a, t = divmod(v, word.n_thresholds)
            at = word.first_area + a, word.first_threshold + t
            out[at] = (bits >> np.uint64(v)) & np.uint64(1) != 0
    return out


def words_of(bits: Array, variants: Variants) -> Array:
    """Pack bits into words, uint64 [words, n]."""
    out = np.zeros((len(variants.words), bits.shape[2]), np.uint64)
    for w, word in enumerate(variants.words):
        block = bits[word.places].reshape(word.n_areas * word.n_thresholds, bits.shape[2])
        for v, here in enumerate(block):
            out[w] |= here.astype(np.uint64) << np.uint64(v)
    return out


def cells_of(matched: Matched, results: Chosen, truths: Chosen, grid: Grid) -> list[Cell | None]:
    """Return all cells; None for those without rows.

    Args:
        matched: the match, with the ground truth of each result.
    """
    ranked = matched.ranked
    n_images, n_cells = len(grid.images), len(grid.images) * len(grid.categories)
    at = [ranked.variants.threshold_index(iou) for iou in grid.thresholds]
    # Sort results by category and image, best first; drop those beyond the cap.
    p_cell = label_of(ranked.start).astype(np.int64) * n_images + ranked.datum
    order = np.argsort(p_cell, kind="stable")
    order = order[ranked.rank[order] < grid.cap]
    p_start = np.searchsorted(p_cell[order], np.arange(n_cells + 1)).tolist()
    rows = ranked.row[order].tolist()
    dt_ids, scores = [results.ids[i] for i in rows], [results.score[i] for i in rows]
    dt_number = numbers(results.rows, results.ids, "id", RESULTS)[ranked.row]
    g_cell = label_of(ranked.gt_start).astype(np.int64) * n_images + ranked.gt_datum
    g_start = np.searchsorted(g_cell, np.arange(n_cells + 1)).tolist()
    gt_number = numbers(truths.rows, truths.ids, "id", TRUTHS)[ranked.gt_row]
    filled_cells = np.flatnonzero((np.diff(p_start) > 0) | (np.diff(g_start) > 0)).tolist()
    counted, ignored = (bits_of(w, ranked.variants) for w in (ranked.gt_counted, ranked.ignored))
    out: list[Cell | None] = [None] * (n_cells * len(grid.ranges))
    for a, area in enumerate(grid.ranges):
        took = matched.took[a][at]
        by_result = np.where(took >= 0, gt_number[took] if gt_number.size else 0.0, 0.0)[:, order]
        by_truth = np.zeros((len(at), gt_number.size))
        for t, of_threshold in enumerate(took):
            takers = np.flatnonzero(of_threshold >= 0)
            by_truth[t, of_threshold[takers]] = dt_number[takers]  # of several the last remains
        aside = ~counted[a, 0]
        last = np.lexsort((aside, g_cell))  # within a cell those that are ignored
        gt_ids = [truths.ids[i] for i in ranked.gt_row[last].tolist()]
        gt_aside, by_truth = aside[last].astype(np.int64), by_truth[:, last]
        set_aside = ignored[a][at][:, order]
        for cell in filled_cells:
            k, i = divmod(cell, n_images)
            p, g = (slice(start[cell], start[cell + 1]) for start in (p_start, g_start))
            out[(k * len(grid.ranges) + a) * n_images + i] = {
                "image_id": grid.images[i],
                "category_id": grid.categories[k],
                "aRng": area,
                "maxDet": grid.cap,
                "dtIds": dt_ids[p],
                "gtIds": gt_ids[g],
                "dtMatches": by_result[:, p],
                "gtMatches": by_truth[:, g],
                "dtScores": scores[p],
                "gtIgnore": gt_aside[g],
                "dtIgnore": set_aside[:, p],
            }
    return out


def ranked_of(cells: Sequence[Any], grid: Grid, area: int) -> Ranked:
    """Return the tally of one area range from cells, which may have been set by the user.

    Args:
        cells: all cells of the grid, mappings or None.
        area: index of the area range.

    Raises:
        InputError: a number of cells other than the grid's.
    """
    n_images, n_ranges = len(grid.images), len(grid.ranges)
    n_cells = n_images * n_ranges * len(grid.categories)
    if len(cells) != n_cells:
        raise InputError(
            f"evalImgs has {len(cells):,} entries, and {len(grid.categories):,} categories x"
            f" {n_ranges} area ranges x {n_images:,} images are {n_cells:,}: set params and"
            " _paramsEval to those that the entries are of.",
            code="lengths_differ",
            count=len(cells),
            of=n_cells,
        )
    distinct = sorted(set(grid.thresholds))
    at = [list(grid.thresholds).index(iou) for iou in distinct]
    variants = Variants(tuple(distinct), ((None, -np.inf, np.inf),))
    filled_cells = [
        (k, i, cell)
        for k in range(len(grid.categories))
        for i in range(n_images)
        if (cell := cells[(k * n_ranges + area) * n_images + i]) is not None
    ]
    n_thresholds = len(distinct)
    score = _flat(filled_cells, "dtScores")
    hit = _joined(filled_cells, "dtMatches", len(grid.thresholds)) != 0
    ignored = _joined(filled_cells, "dtIgnore", len(grid.thresholds)) != 0
    aside = _flat(filled_cells, "gtIgnore") != 0
    n, m = ([len(cell[key]) for *_, cell in filled_cells] for key in ("dtScores", "gtIgnore"))
    label, datum = (np.array([place[j] for place in filled_cells], np.int32) for j in (0, 1))
    p_label, p_datum = np.repeat(label, n), np.repeat(datum, n)
    rank = np.arange(score.size) - np.repeat(np.cumsum([0, *n])[:-1], n)
    order = np.lexsort((-score, p_label))
    bounds = np.arange(len(grid.categories) + 1)
    g_label = np.repeat(label, m)
    _find_zeros(hit, filled_cells, n)
    hit, ignored = hit[at][:, order], ignored[at][:, order]
    counted = np.repeat(~aside[None, None], n_thresholds, axis=1)
    return Ranked(
        variants=variants,
        start=np.searchsorted(p_label[order], bounds).astype(np.int64),
        score=score[order],
        datum=p_datum[order],
        row=order.astype(np.int64),
        rank=rank[order].astype(np.int32),
        hit=words_of((hit & ~ignored)[None], variants),
        ignored=words_of(ignored[None], variants),
        gt_start=np.searchsorted(g_label, bounds).astype(np.int64),
        gt_datum=np.repeat(datum, m),
        gt_row=np.arange(aside.size, dtype=np.int64),
        gt_counted=words_of(counted, variants),
        cap=grid.cap,
        single=False,
    )


def _find_zeros(hit: Array, cells: Sequence[tuple[int, int, Any]], n: Sequence[int]) -> None:
    """Mark results matched to a ground truth with id 0, by the match recorded on the ground truth.

    Args:
        hit: bool [thresholds, results], modified in place.
        n: number of results per cell.
    """
    lengths = [len(cell["gtIds"]) for *_, cell in cells]
    of_cell = np.repeat(np.arange(len(cells)), lengths)
    for c in np.unique(of_cell[_flat(cells, "gtIds") == 0]).tolist():
        cell = cells[c][2]
        ids = np.asarray(cell["dtIds"])
        here = hit[:, sum(n[:c]) :][:, : ids.size]
        for g in np.flatnonzero(np.asarray(cell["gtIds"]) == 0):
            by = np.asarray(cell["gtMatches"])[:, g, None]
            here |= (by != 0) & (by == ids)


def _flat(cells: Sequence[tuple[int, int, Any]], key: str) -> Array:
    """Values of all cells one after the other, float64."""
    return np.fromiter(chain.from_iterable(cell[key] for *_, cell in cells), np.float64)


def _joined(cells: Sequence[tuple[int, int, Any]], key: str, n_thresholds: int) -> Array:
    """Values by threshold of all cells side by side, [thresholds, n]."""
    return np.concatenate([np.zeros((n_thresholds, 0)), *(c[key] for *_, c in cells)], axis=1)


# One evaluation by the engine: rows matched once, and the arrays that are made of their tally.

_SETTINGS = Settings.resolve(Options(), get("detection", "coco"))
_NEEDS = frozenset({"iou_thresholds"})


def grid_of(params: Params) -> Grid:
    """Return the grid of cells that params describe.

    Raises:
        OptionError: no caps, or one below 1; an area range that is not a pair or is reversed.
    """
    caps = [int(cap) for cap in params.maxDets]
    if min(caps, default=0) < 1:
        raise OptionError(
            f"params.maxDets={params.maxDets}: caps are 1 or more.",
            code="option_value",
            option="maxDets",
        )
    for one in params.areaRng:
        if len(one) != 2 or not one[0] <= one[1]:
            raise OptionError(
                f"params.areaRng: {one} is not a range [low, high].",
                code="option_value",
                option="areaRng",
                value=one,
            )
    return Grid(
        images=list(params.imgIds),
        categories=list(params.catIds) if params.useCats else [-1],
        ranges=list(params.areaRng),
        thresholds=thresholds(params),
        caps=caps,
    )


class Tally(msgspec.Struct, frozen=True):
    """Ranked outcomes of all cells.

    Attributes:
        ranked: tallies whose concatenated area ranges are the grid's.
    """

    grid: Grid
    ranked: Sequence[Ranked]

    @staticmethod
    def of_cells(cells: Sequence[Any], grid: Grid) -> Tally:
        """From ``evalImgs`` as somebody gathered them."""
        ranked = [ranked_of(cells, grid, area) for area in range(len(grid.ranges))]
        return Tally(grid, ranked)

    def accumulated(self, params: Params) -> dict[str, Array]:
        """Return the arrays of ``eval``.

        Args:
            params: of the requested numbers; those that were not evaluated are -1.

        Raises:
            OptionError: IoU thresholds that were not evaluated.
        """
        grid, ious = self.grid, thresholds(params)
        missing = [iou for iou in ious if iou not in grid.thresholds]
        if missing:
            raise OptionError(
                f"params.iouThrs: {missing} were not evaluated: call evaluate() again.",
                code="not_evaluated",
                option="iouThrs",
                value=missing,
            )
        levels, of_level = np.unique(np.asarray(params.recThrs, np.float64), return_inverse=True)
        categories = _places(params.catIds, grid.categories)
        areas = _places([tuple(r) for r in params.areaRng], [tuple(r) for r in grid.ranges])
        caps = sorted({*params.maxDets} & {*grid.caps})
        cap_places = _places(params.maxDets, caps)
        chosen_images = set(params.imgIds)
        group = np.array([0 if image in chosen_images else -1 for image in grid.images], np.int32)
        parts = [
            arrays_of(
                RankedView(
                    ranked,
                    labels_of(len(grid.categories)),
                    interpolation=Interpolation(levels, epsilon=_SETTINGS.rules.epsilon),
                    caps=np.array(caps, np.int64),
                    group=group if group.any() else None,
                    over=Threads().over,
                ),
                ious,
            )
            for ranked in (self.ranked if grid.images and caps else ())
        ]
        selections = [categories, areas, cap_places]
        complete = all(to == [*range(len(to))] == source for to, source in selections)
        ascending = np.array_equal(of_level, np.arange(of_level.size))
        if complete and ascending and len(parts) == 1:
            return parts[0]
        k, a, m = (np.array(source, np.int64) for _, source in selections)
        to_k, to_a, to_m = (np.array(to, np.int64) for to, _ in selections)
        shape = len(params.catIds), len(params.areaRng), len(params.maxDets)
        out = {}
        for name in ("precision", "recall", "scores"):
            levelled = () if name == "recall" else (of_level.size,)
            out[name] = np.full((len(ious), *levelled, *shape), -1.0)
            if not parts:
                continue
            values = np.concatenate([part[name] for part in parts], axis=-2)
            values = values[:, of_level] if levelled else values
            at = to_k[:, None, None], to_a[:, None], to_m
            out[name][..., *at] = values[..., k[:, None, None], a[:, None], m]
        return out


def _places(requested: Sequence[Any], available: Sequence[Any]) -> tuple[list[int], list[int]]:
    """Return places of the wanted that are available, among the wanted and the available."""
    place = {one: i for i, one in enumerate(available)}
    positions = [i for i, one in enumerate(requested) if one in place]
    return positions, [place[requested[i]] for i in positions]


class Evaluation:
    """One evaluation: the compared rows and their outcomes.

    Args:
        sets: results and ground truths.

    Attributes:
        met: the rows.
    """

    def __init__(self, sets: tuple[COCO, COCO], params: Params) -> None:
        self.grid = grid_of(params)
        self.met = meet(
            sets,
            self.grid.images,
            list(params.catIds),
            params,
            per_category=bool(params.useCats),
            threads=Threads(),
        )
        self._settings = msgspec.structs.replace(
            _SETTINGS,
            iou_thresholds=tuple(sorted(set(self.grid.thresholds))),
            max_detections=(self.grid.cap,),
            areas=tuple((str(i), float(r[0]), float(r[1])) for i, r in enumerate(self.grid.ranges)),
        )
        self.tally = Tally(self.grid, [self._matched(took=False).ranked])

    def _matched(self, *, took: bool) -> Matched:
        return match_batch(self.met.batch, self._settings, _NEEDS, Threads(), took=took)[0]

    @cached_property
    def cells(self) -> list[Cell | None]:
        """``evalImgs``."""
        return cells_of(self._matched(took=True), self.met.results, self.met.truths, self.grid)

    @cached_property
    def _place(self) -> tuple[dict[Any, int], dict[Any, int]]:
        """Places of categories and images."""
        of_category, of_image = (
            {one: i for i, one in enumerate(ids)}
            for ids in (self.grid.categories, self.grid.images)
        )
        return of_category, of_image

    def place(self, category: Any, image: Any) -> tuple[int, int]:
        """Return the indices of a category and an image.

        Raises:
            OptionError: one that was not evaluated.
        """
        for name, one, index in zip(
            ("category", "image"), (category, image), self._place, strict=True
        ):
            if one not in index:
                raise OptionError(
                    f"{name} {one!r} is not among the {len(index):,} evaluated.",
                    code="not_evaluated",
                    option=name,
                    value=one,
                )
        return self._place[0][category], self._place[1][image]

    @cached_property
    def _by_cell(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Rows of both sides by category and image: offsets and rows, results by score."""
        sides = self.met.batch.predictions, self.met.batch.ground_truths
        n_images = len(self.grid.images)
        bounds = np.arange(n_images * len(self.grid.categories) + 1)
        grouped = []
        for side in sides:
            cell = side.label.astype(np.int64) * n_images + side.datum
            order = (
                np.lexsort((-side.pieces[0].score, cell))
                if side is sides[0]
                else cell.argsort(kind="stable")
            )
            grouped.append((np.searchsorted(cell[order], bounds), order))
        return grouped[0], grouped[1]

    def ious(self, image: Any, category: Any) -> Any:
        """See :meth:`COCOeval.computeIoU`."""
        k, i = self.place(category, image)
        cell = k * len(self.grid.images) + i
        (start, order), (gt_start, gt_order) = self._by_cell
        rows = order[start[cell] : start[cell + 1]][: self.grid.cap]
        truths = gt_order[gt_start[cell] : gt_start[cell + 1]]
        if not rows.size or not truths.size:
            return []
        each, other = np.repeat(rows, truths.size), np.tile(truths, rows.size)
        crowd = self.met.batch.crowd[other]
        overlaps = overlap(self.met.shapes, each, other, crowd, Threads())
        return overlaps.reshape(rows.size, truths.size)


# Lines that ``summarize`` prints: numbers of ``eval``, by ``iouType``.


class Line(NamedTuple):
    """One printed number.

    Attributes:
        of: ``precision`` or ``recall``, an array of ``eval``.
        place: index of the cap in ``maxDets``; None if ``cap`` is given.
        iou: the IoU threshold; None for the mean of all.
        area: name of the area range.
        cap: the cap itself, independent of ``maxDets``.
    """

    of: str
    place: int | None = None
    iou: float | None = None
    area: str = "all"
    cap: int = 0


_SIZES = ("small", "medium", "large")
_SUMMARIES_DETECTION = (
    Line("precision", cap=100),
    Line("precision", 2, 0.5),
    Line("precision", 2, 0.75),
    *(Line("precision", 2, area=size) for size in _SIZES),
    *(Line("recall", place) for place in range(3)),
    *(Line("recall", 2, area=size) for size in _SIZES),
)
_SUMMARIES_KEYPOINTS = tuple(
    Line(of, cap=20, **chosen)
    for of in ("precision", "recall")
    for chosen in ({}, {"iou": 0.5}, {"iou": 0.75}, {"area": "medium"}, {"area": "large"})
)
SUMMARIES = {
    "bbox": _SUMMARIES_DETECTION,
    "segm": _SUMMARIES_DETECTION,
    "keypoints": _SUMMARIES_KEYPOINTS,
}
"""``iouType`` -> its lines."""

_TITLES = {"precision": ("Average Precision", "(AP)"), "recall": ("Average Recall", "(AR)")}


def number(line: Line, accumulated: Mapping[str, Any], params: Params) -> tuple[float, str]:
    """Return a number, -1 if undefined, and its printed line.

    Args:
        accumulated: ``eval``.
        params: defines the axes of the arrays.
    """
    cap = line.cap if line.place is None else params.maxDets[line.place]
    values: Array = accumulated[line.of]
    if line.iou is not None:
        values = values[np.flatnonzero(np.asarray(params.iouThrs) == line.iou)]
    areas = [i for i, name in enumerate(params.areaRngLbl) if name == line.area]
    caps = [i for i, one in enumerate(params.maxDets) if one == cap]
    values = values[..., areas, caps]
    defined = values[values > -1]
    mean: Any = np.mean(defined) if defined.size else -1
    iou = f"{params.iouThrs[0]:0.2f}:{params.iouThrs[-1]:0.2f}"
    if line.iou is not None:
        iou = f"{line.iou:0.2f}"
    title, short = _TITLES[line.of]
    message = f"IoU={iou:<9} | area={line.area:>6s} | maxDets={cap:>3d} ] = {mean:0.3f}"
    return mean, f" {title:<18} {short} @[ {message}"


# ``COCOeval``: evaluation with the calls and arrays of pycocotools.


class COCOeval:
    """Evaluation of results against ground truths.

    Set ``params``, then call :meth:`evaluate`, :meth:`accumulate` and :meth:`summarize`.

    Args:
        cocoGt: the ground truths.
        cocoDt: the results.
        iouType: ``bbox``, ``segm`` or ``keypoints``.

    Attributes:
        params: settings of the evaluation.
        eval: after :meth:`accumulate`: ``precision`` and ``scores`` [T, R, K, A, M], ``recall`` [T,
            K, A, M], -1 if undefined, ``counts``, ``params`` and ``date``.
        stats: after :meth:`summarize`: the printed numbers, float64.

    Raises:
        OptionError: another ``iouType``.
    """

    def __init__(
        self, cocoGt: COCO | None = None, cocoDt: COCO | None = None, iouType: str = "segm"
    ) -> None:
        self.cocoGt, self.cocoDt = cocoGt, cocoDt
        self.params = Params(iouType=iouType)
        self._paramsEval: Any = {}
        self._run: Evaluation | None = None
        self._cells: Any = defaultdict(list)
        self._pairs: dict[tuple[Any, Any], Any] | None = {}
        self.eval: dict[str, Any] = {}
        self.stats: Any = []
        if cocoGt is not None:
            self.params.imgIds = sorted(cocoGt.getImgIds())
            self.params.catIds = sorted(cocoGt.getCatIds())

    def evaluate(self) -> None:
        """Match the results of the images and categories in ``params``.

        Raises:
            InputError: rows without required keys, or that cannot be compared.
            OptionError: an IoU threshold that is not above 0, a reversed area range.
        """
        began = time.time()
        print("Running per image evaluation...")
        p = self.params
        if p.useSegm is not None:
            p.iouType = "segm" if p.useSegm == 1 else "bbox"
            print(f"useSegm (deprecated) is not None. Running {p.iouType} evaluation")
        print(f"Evaluate annotation type *{p.iouType}*")
        p.imgIds = list(np.unique(p.imgIds))
        if p.useCats:
            p.catIds = list(np.unique(p.catIds))
        p.maxDets = sorted(p.maxDets)
        self._prepare()
        self._paramsEval = copy.deepcopy(p)
        print(f"DONE (t={time.time() - began:0.2f}s).")

    def _prepare(self) -> None:
        """Match by the present ``params``; evaluators of others call this, then evaluateImg."""
        if self.cocoGt is None or self.cocoDt is None:
            raise ResultError("COCOeval needs cocoGt and cocoDt to evaluate.")
        self._run = Evaluation((self.cocoDt, self.cocoGt), self.params)
        self._cells = self._pairs = None
        self.eval = {}

    @property
    def evalImgs(self) -> Any:
        """Outcome per category, area range and image, in this order: a dict, or None.

        Computed on first access. Another list may be set, such as one gathered from several
        processes; :meth:`accumulate` then reads it.
        """
        if self._cells is None and self._run is not None:
            self._cells = self._run.cells
        return self._cells

    @evalImgs.setter
    def evalImgs(self, cells: Any) -> None:
        self._cells = cells

    def evaluateImg(self, imgId: Any, catId: Any, aRng: Any, maxDet: int) -> Cell | None:
        """Return one entry of :attr:`evalImgs`.

        Args:
            imgId: an image in ``params.imgIds``.
            catId: a category in ``params.catIds``; -1 if categories do not count.
            aRng: one of ``params.areaRng``.
            maxDet: the largest of ``params.maxDets``.

        Raises:
            OptionError: a cell that was not evaluated.
        """
        run = self._evaluated()
        if maxDet != run.grid.cap:
            raise OptionError(f"maxDet={maxDet}: {run.grid.cap} were matched, params' largest.")
        k, i = run.place(catId, imgId)
        ranges = [tuple(one) for one in run.grid.ranges]
        if tuple(aRng) not in ranges:
            raise OptionError(f"aRng={aRng} is not among params.areaRng, which are {ranges}.")
        a = ranges.index(tuple(aRng))
        return run.cells[(k * len(ranges) + a) * len(run.grid.images) + i]

    @property
    def ious(self) -> Any:
        """(image id, category id) to the IoU matrix of :meth:`computeIoU`; computed on first
        access.
        """
        if self._pairs is None and self._run is not None:
            grid = self._run.grid
            self._pairs = {
                (i, k): self.computeIoU(i, k) for i in grid.images for k in grid.categories
            }
        return self._pairs

    @ious.setter
    def ious(self, given: Any) -> None:
        self._pairs = given

    def computeIoU(self, imgId: Any, catId: Any) -> Any:
        """Compute the IoU of an image's results of a category with its ground truths.

        Args:
            imgId: an image in ``params.imgIds``.
            catId: a category in ``params.catIds``; -1 if categories do not count.

        Returns:
            float64 [n, m]: results by descending score up to the cap, ground truths in input order;
            an empty list if one side is empty.

        Raises:
            OptionError: a cell that was not evaluated.
        """
        return self._evaluated().ious(imgId, catId)

    computeOks = computeIoU

    @property
    def _gts(self) -> dict[tuple[Any, Any], list[Any]]:
        """(image id, category id) to ground truths, for evaluators that match by themselves."""
        result = _by_cell(self._evaluated().met.truths.rows)
        for rows in result.values():
            for row in rows:
                row["ignore"] = row.get("iscrowd", 0)
                if self.params.iouType == "keypoints":
                    row["ignore"] = row["num_keypoints"] == 0 or row["ignore"]
        return result

    @property
    def _dts(self) -> dict[tuple[Any, Any], list[Any]]:
        """(image id, category id) to results."""
        if self.cocoDt is not None:
            self.cocoDt.complete()
        return _by_cell(self._evaluated().met.results.rows)

    def _evaluated(self) -> Evaluation:
        if self._run is None:
            raise ResultError("Please run evaluate() first.")
        return self._run

    def accumulate(self, p: Params | None = None) -> None:
        """Compute :attr:`eval`.

        Args:
            p: params of the requested numbers, perhaps with fewer images, categories, area ranges
                and caps than were evaluated; by default those of the evaluation.

        Raises:
            ResultError: :meth:`evaluate` was not called.
            OptionError: IoU thresholds that were not evaluated.
        """
        began = time.time()
        print("Accumulating evaluation results...")
        evaluated = self._paramsEval
        if not isinstance(evaluated, Params):
            print("Please run evaluate() first")
            raise ResultError("Please run evaluate() first.", code="not_evaluated")
        p = self.params if p is None else p
        if p.useCats != 1:
            p.catIds = [-1]
        if self._cells is None:
            tally = self._evaluated().tally
        else:
            tally = Tally.of_cells(list(self._cells), grid_of(evaluated))
        self.eval = {
            "params": p,
            "counts": [len(of) for of in (p.iouThrs, p.recThrs, p.catIds, p.areaRng, p.maxDets)],
            "date": datetime.now().strftime("%Y-%m-%d %H:%M:%S"),
            **tally.accumulated(p),
        }
        print(f"DONE (t={time.time() - began:0.2f}s).")

    def summarize(self) -> None:
        """Print the numbers of ``iouType`` and store them as :attr:`stats`.

        Raises:
            ResultError: :meth:`accumulate` was not called.
        """
        if not self.eval:
            raise ResultError("Please run accumulate() first.", code="not_evaluated")
        stats = []
        for line in SUMMARIES[self.params.iouType]:
            mean, text = number(line, self.eval, self.params)
            print(text)
            stats.append(mean)
        self.stats = np.array(stats, np.float64)


def _by_cell(rows: Any) -> dict[tuple[Any, Any], list[Any]]:
    result: dict[tuple[Any, Any], list[Any]] = defaultdict(list)
    for row in rows:
        result[row["image_id"], row["category_id"]].append(row)
    return result
