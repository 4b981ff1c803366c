"""``COCOeval``: results held against ground truths, in pycocotools' calls and arrays."""

from __future__ import annotations

import copy
import time
from collections import defaultdict
from datetime import datetime
from typing import Any

import numpy as np

from ...schemas.errors import OptionError, ResultError
from .cells import Cell
from .coco import COCO
from .evaluation import Evaluation, Tally, grid_of
from .params import Params
from .summaries import SUMMARIES, number

Array = np.ndarray[Any, Any]


class COCOeval:
    """Results held against ground truths.

    ``params`` are set, then come :meth:`evaluate`, :meth:`accumulate` and :meth:`summarize`.

    Args:
        cocoGt: the ground truths.
        cocoDt: the results.
        iouType: what is compared: ``bbox``, ``segm`` or ``keypoints``.

    Attributes:
        params: what is looked at.
        eval: after :meth:`accumulate`: ``precision`` and ``scores`` [T, R, K, A, M], ``recall``
            [T, K, A, M], -1 where undefined, ``counts``, ``params`` and ``date``.
        stats: after :meth:`summarize`: the numbers it printed, float64.

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
        """Match the results of ``params``' images and categories.

        Raises:
            InputError: rows that lack what is needed, or cannot be compared.
            OptionError: an IoU threshold that is not above 0, an area range upside down.
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
        """What became of each category, area range and image, in this order: a dict, or None.

        Made when it is first asked for. Another list may be set, such as one gathered from
        several processes, and is then what :meth:`accumulate` reads.
        """
        if self._cells is None and self._run is not None:
            self._cells = self._run.cells
        return self._cells

    @evalImgs.setter
    def evalImgs(self, cells: Any) -> None:
        self._cells = cells

    def evaluateImg(self, imgId: Any, catId: Any, aRng: Any, maxDet: int) -> Cell | None:
        """One entry of :attr:`evalImgs`.

        Args:
            imgId: an image among ``params.imgIds``.
            catId: a category among ``params.catIds``; -1 where they do not count.
            aRng: one of ``params.areaRng``.
            maxDet: the largest of ``params.maxDets``.

        Raises:
            OptionError: what was not evaluated.
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
        """(image id, category id) to the IoU of each result with each ground truth, as
        :meth:`computeIoU` has them. Made when it is first asked for.
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
        """IoU of an image's results of a category with its ground truths.

        Args:
            imgId: an image among ``params.imgIds``.
            catId: a category among ``params.catIds``; -1 where they do not count.

        Returns:
            float64 [n, m], results by descending score, as many as count, ground truths as they
            stand; an empty list where one side is empty.

        Raises:
            OptionError: what was not evaluated.
        """
        return self._evaluated().ious(imgId, catId)

    computeOks = computeIoU

    @property
    def _gts(self) -> dict[tuple[Any, Any], list[Any]]:
        """(image id, category id) to ground truths, for evaluators that match by themselves."""
        found = _by_cell(self._evaluated().met.truths.rows)
        for rows in found.values():
            for row in rows:
                row["ignore"] = row.get("iscrowd", 0)
                if self.params.iouType == "keypoints":
                    row["ignore"] = row["num_keypoints"] == 0 or row["ignore"]
        return found

    @property
    def _dts(self) -> dict[tuple[Any, Any], list[Any]]:
        """(image id, category id) to results, likewise."""
        if self.cocoDt is not None:
            self.cocoDt.complete()
        return _by_cell(self._evaluated().met.results.rows)

    def _evaluated(self) -> Evaluation:
        if self._run is None:
            raise ResultError("Please run evaluate() first.")
        return self._run

    def accumulate(self, p: Params | None = None) -> None:
        """Make :attr:`eval`.

        Args:
            p: params of which numbers are wanted, perhaps of fewer images, categories, area
                ranges and caps than were evaluated; those of the evaluation unless given.

        Raises:
            ResultError: nothing was evaluated.
            OptionError: IoU thresholds that were not evaluated.
        """
        began = time.time()
        print("Accumulating evaluation results...")
        evaluated = self._paramsEval
        if not isinstance(evaluated, Params):
            print("Please run evaluate() first")
            raise ResultError("Please run evaluate() first.")
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
        """Print the numbers of ``iouType`` and keep them as :attr:`stats`.

        Raises:
            ResultError: :meth:`accumulate` was not called.
        """
        if not self.eval:
            raise ResultError("Please run accumulate() first.")
        stats = []
        for line in SUMMARIES[self.params.iouType]:
            mean, said = number(line, self.eval, self.params)
            print(said)
            stats.append(mean)
        self.stats = np.array(stats, np.float64)


def _by_cell(rows: Any) -> dict[tuple[Any, Any], list[Any]]:
    found: dict[tuple[Any, Any], list[Any]] = defaultdict(list)
    for row in rows:
        found[row["image_id"], row["category_id"]].append(row)
    return found
