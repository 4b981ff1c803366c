"""One evaluation by the engine: rows matched once, and the arrays that are made of their tally."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from ...dialects import get
from ...executors import Threads
from ...exports.coco import arrays_of
from ...schemas.arrays import Array
from ...schemas.errors import OptionError
from ...schemas.options import Options
from ...tally.interpolation import Interpolation
from ...tally.ranked import Ranked
from ...tally.ranked_view import RankedView
from ...tasks.detection.matching import Matched
from ...tasks.detection.near import overlap
from ...tasks.detection.settings import Settings, resolve
from ...tasks.detection.tallies import met
from .cells import Cell, Grid, cells_of, ranked_of
from .coco import COCO
from .params import Params, thresholds
from .sides import labels_of, meet

_SETTINGS: Settings = resolve(Options(), get("detection", "coco"))
_NEEDS = frozenset({"iou_thresholds"})


def grid_of(params: Params) -> Grid:
    """Return the grid of cells that params describe.

    Raises:
        OptionError: no caps, or one below 1; an area range that is not a pair or is reversed.
    """
    caps = [int(cap) for cap in params.maxDets]
    if min(caps, default=0) < 1:
        raise OptionError(f"params.maxDets={params.maxDets}: caps are 1 or more.")
    for one in params.areaRng:
        if len(one) != 2 or not one[0] <= one[1]:
            raise OptionError(f"params.areaRng: {one} is not a range [low, high].")
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
                f"params.iouThrs: {missing} were not evaluated: call evaluate() again."
            )
        levels, of_level = np.unique(np.asarray(params.recThrs, np.float64), return_inverse=True)
        categories = _places(params.catIds, grid.categories)
        areas = _places([tuple(r) for r in params.areaRng], [tuple(r) for r in grid.ranges])
        caps = sorted({*params.maxDets} & {*grid.caps})
        wanted = _places(params.maxDets, caps)
        kept = set(params.imgIds)
        group = np.array([0 if image in kept else -1 for image in grid.images], np.int32)
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
        made = [categories, areas, wanted]
        whole = all(to == [*range(len(to))] == there for to, there in made)
        ascending = np.array_equal(of_level, np.arange(of_level.size))
        if whole and ascending and len(parts) == 1:
            return parts[0]
        k, a, m = (np.array(there, np.int64) for _, there in made)
        to_k, to_a, to_m = (np.array(to, np.int64) for to, _ in made)
        shape = len(params.catIds), len(params.areaRng), len(params.maxDets)
        out = {}
        for name in ("precision", "recall", "scores"):
            levelled = () if name == "recall" else (of_level.size,)
            out[name] = np.full((len(ious), *levelled, *shape), -1.0)
            if not parts:
                continue
            found = np.concatenate([part[name] for part in parts], axis=-2)
            found = found[:, of_level] if levelled else found
            at = to_k[:, None, None], to_a[:, None], to_m
            out[name][..., *at] = found[..., k[:, None, None], a[:, None], m]
        return out


def _places(wanted: Sequence[Any], there: Sequence[Any]) -> tuple[list[int], list[int]]:
    """Places of those of the wanted that are there, among the wanted and among those."""
    place = {one: i for i, one in enumerate(there)}
    kept = [i for i, one in enumerate(wanted) if one in place]
    return kept, [place[wanted[i]] for i in kept]


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
            apart=bool(params.useCats),
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
        return met(self.met.batch, self._settings, _NEEDS, Threads(), took=took)[0]

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
        for name, one, there in zip(
            ("category", "image"), (category, image), self._place, strict=True
        ):
            if one not in there:
                raise OptionError(f"{name} {one!r} is not among the {len(there):,} evaluated.")
        return self._place[0][category], self._place[1][image]

    @cached_property
    def _by_cell(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Rows of both sides by category and image: offsets and rows, results by score."""
        sides = self.met.batch.predictions, self.met.batch.ground_truths
        n_images = len(self.grid.images)
        ends = np.arange(n_images * len(self.grid.categories) + 1)
        found = []
        for side in sides:
            cell = side.label.astype(np.int64) * n_images + side.datum
            order = (
                np.lexsort((-side.pieces[0].score, cell))
                if side is sides[0]
                else cell.argsort(kind="stable")
            )
            found.append((np.searchsorted(cell[order], ends), order))
        return found[0], found[1]

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
        found = overlap(self.met.shapes, each, other, crowd, Threads())
        return found.reshape(rows.size, truths.size)
