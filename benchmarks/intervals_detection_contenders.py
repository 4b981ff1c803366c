"""Run one comparison of two detectors; intervals_detection.py starts it.

    python intervals_detection_contenders.py SECTION/CONTENDER FOLDER [WARM_UP_FOLDER]

Prints the line of JSON of contender.py; the values are the differences of COCO's twelve.
"""

from __future__ import annotations

import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path

# Last, so that module names of this folder do not shadow the contenders' own dependencies.
sys.path.append(str(Path(__file__).resolve().parent))

from contender import Lap, Run, Version, answer

DRAWS = 1000
TWELVE = {  # arguments of hotcoco: metric, IoU threshold, area range, most detections
    "AP": ("mAPAveragedOverIOUs", None, "all", 100),
    "AP50": ("mAP", 0.5, "all", 100),
    "AP75": ("mAP", 0.75, "all", 100),
    "APs": ("mAPAveragedOverIOUs", None, "small", 100),
    "APm": ("mAPAveragedOverIOUs", None, "medium", 100),
    "APl": ("mAPAveragedOverIOUs", None, "large", 100),
    "AR1": ("mAR", None, "all", 1),
    "AR10": ("mAR", None, "all", 10),
    "AR100": ("mAR", None, "all", 100),
    "ARs": ("mAR", None, "small", 100),
    "ARm": ("mAR", None, "medium", 100),
    "ARl": ("mAR", None, "large", 100),
}


def evalengine(contender: str) -> Run:
    """`evalengine-N`: N threads, from Parquet; intervals, p-values, single datums and flips."""
    import evalengine as ee

    threads = int(contender.split("-")[1])

    def run(folder: Path, lap: Lap) -> list[float]:
        names = ("predictions", "predictions_b", "groundtruths", "datums", "labels")
        first, second, truths, datums, labels = (folder / f"{name}.parquet" for name in names)
        comparison = ee.compare(
            first,
            second,
            ground_truths=truths,
            datums=datums,
            labels=labels,
            dialect="coco",
            metrics=sorted({metric for metric, *_ in TWELVE.values()}),
            draws=DRAWS,
            threads=threads,
        ).differences
        columns = ("metric", "iou_threshold", "area", "max_detections")
        rows = {row[:-1]: row[-1] for row in comparison.select(*columns, "difference").iter_rows()}
        lap("compare")
        return [rows[where] for where in TWELVE.values()]

    return run


def hotcoco(share: int) -> Run:
    """hotcoco's bootstrap from the JSON files, with one in ``share`` of the resamples."""
    from hotcoco import COCO, COCOeval, compare

    def run(folder: Path, lap: Lap) -> list[float]:
        truths = COCO(str(folder / "gt.json"))
        evaluations = []
        for name in ("dt.json", "dt_b.json"):
            evaluations.append(COCOeval(truths, truths.loadRes(str(folder / name)), "bbox"))
            evaluations[-1].evaluate()
        lap("evaluate")
        deltas = compare(*evaluations, n_bootstrap=DRAWS // share)["deltas"]
        lap("compare", share)
        return [deltas[name] for name in TWELVE]

    return run


def prepare(contender: str) -> tuple[Run, Version]:
    """Import the contender and return its function and version."""
    section, name = contender.split("/")
    if name.startswith("evalengine"):
        return evalengine(name), partial(version, "evalengine")
    return hotcoco(20 if section == "images-5000" else 10), partial(version, name)


if __name__ == "__main__":
    answer(prepare)
