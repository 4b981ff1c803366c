"""``COCOeval``: evaluation with the calls and arrays of pycocotools."""

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
        found = _by_cell(self._evaluated().met.truths.rows)
        for rows in found.values():
            for row in rows:
                row["ignore"] = row.get("iscrowd", 0)
                if self.params.iouType == "keypoints":
                    row["ignore"] = row["num_keypoints"] == 0 or row["ignore"]
        return found

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
        """Print the numbers of ``iouType`` and store them as :attr:`stats`.

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
