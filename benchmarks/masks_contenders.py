"""Run one evaluator in one process; masks.py starts it once per measurement.

    python masks_contenders.py SECTION/CONTENDER FOLDER [WARM_UP_FOLDER]

Prints the line of JSON of contender.py; the values are COCO's twelve for masks. Needs only the
evaluator.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

# Last, so that module names of this folder do not shadow the contenders' own dependencies.
sys.path.append(str(Path(__file__).resolve().parent))

import polygon_pairs
from contender import AREAS_AND_CAPS, PEERS, Run, Version, answer, in_one_step

Numbers = Callable[[Path], Any]


def evalengine(contender: str) -> Numbers:
    """`evalengine-N`: N threads, from Parquet with columns of masks and polygons.

    `-json`: from the two files of COCO.
    """
    import evalengine as ee

    _, threads, *kind = contender.split("-")
    options: dict[str, Any] = {"dialect": "coco", "iou_type": "segm", "threads": int(threads)}

    def from_parquet(folder: Path) -> list[float]:
        names = ("predictions", "groundtruths", "datums", "labels")
        predicted, truths, datums, labels = (folder / f"{name}.parquet" for name in names)
        card = ee.score(predicted, truths, datums=datums, labels=labels, **options)
        stats: list[float] = card.to_coco()["stats"]
        return stats

    def from_json(folder: Path) -> list[float]:
        card = ee.score(folder / "dt.json", folder / "gt.json", **options)
        stats: list[float] = card.to_coco()["stats"]
        return stats

    return from_json if kind == ["json"] else from_parquet


def coco_peer(name: str) -> Numbers:
    """Evaluator with pycocotools' interface, from the two JSON files."""
    _, data_module, module, evaluator = PEERS[name]
    coco = import_module(data_module).COCO
    coco_eval = getattr(import_module(module), evaluator)

    def run(folder: Path) -> list[float]:
        truths = coco(str(folder / "gt.json"))
        evaluation = coco_eval(truths, truths.loadRes(str(folder / "dt.json")), "segm")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
        return [float(x) for x in evaluation.stats[:AREAS_AND_CAPS]]

    return run


def prepare(name: str) -> tuple[Run, Version]:
    """Import the contender and return its function and version."""
    section, contender = name.split("/")
    if section == "pairs":
        if contender.startswith("evalengine"):
            return polygon_pairs.evalengine(contender), partial(version, "evalengine")
        distribution, made = polygon_pairs.PEERS[contender]
        return made(), partial(version, distribution)
    if contender.startswith("evalengine"):
        return in_one_step(evalengine(contender)), partial(version, "evalengine")
    return in_one_step(coco_peer(contender)), partial(version, PEERS[contender][0])


if __name__ == "__main__":
    answer(prepare)
