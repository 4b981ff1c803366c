"""Run one evaluator in one process; pycocotools_calls.py starts it once per measurement.

    python pycocotools_calls_contenders.py SECTION/CONTENDER FOLDER [WARM_UP_FOLDER]

Prints the line of JSON of contender.py; the values are COCO's twelve for boxes. Needs only the
evaluator.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

# Last, so that module names of this folder do not shadow the contenders' own dependencies.
sys.path.append(str(Path(__file__).resolve().parent))

from contender import AREAS_AND_CAPS, PEERS, Lap, Run, Version, answer

OURS = "evalengine.compat.pycocotools"
HAVE = {"evalengine-2": ("evalengine", f"{OURS}.coco", f"{OURS}.cocoeval", "COCOeval"), **PEERS}
TAKE_DICTS = ("hotcoco", "ultrafast-pycocotools", "faster-coco-eval")  # in place of a file name


def caller(name: str, *, files: bool) -> Run:
    """Evaluator with pycocotools' calls."""
    _, data_module, module, evaluator = HAVE[name]
    coco = import_module(data_module).COCO
    coco_eval = getattr(import_module(module), evaluator)

    def of_rows(truths: Any) -> Any:
        if name in TAKE_DICTS:
            return coco(truths)
        made = coco()
        made.dataset = truths
        made.createIndex()
        return made

    def run(folder: Path, lap: Lap) -> list[float]:
        paths = [folder / f"{side}.json" for side in ("gt", "dt")]
        if files:
            truths = coco(str(paths[0]))
            results = truths.loadRes(str(paths[1]))
        else:
            rows = [json.loads(path.read_bytes()) for path in paths]
            lap("rows", times=0)  # which a caller has in memory
            truths = of_rows(rows[0])
            results = truths.loadRes(rows[1])
        lap("load")
        evaluation = coco_eval(truths, results, "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
        numbers = [float(x) for x in evaluation.stats[:AREAS_AND_CAPS]]
        lap("evaluate")
        return numbers

    return run


def prepare(name: str) -> tuple[Run, Version]:
    """Import the contender and return its function and version."""
    section, contender = name.split("/")
    return caller(contender, files=section == "files"), partial(version, HAVE[contender][0])


if __name__ == "__main__":
    answer(prepare)
