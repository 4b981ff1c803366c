"""Run one evaluator in one process; detection.py starts it once per measurement.

    python contender.py CONTENDER FOLDER [WARM_UP_FOLDER]

Prints one line of JSON: wall and CPU seconds (user + system, all threads) of the import and of each
step from files to values, the peak resident memory and the twelve COCO values. With a warm-up
folder that small set is scored first, so that imports, compilation and lazy initialisation are not
timed. Without one the process does the work of a user's script, once.

Needs only the evaluator, because it also runs in the peers' interpreter. Output of evaluators is
discarded.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

Run = Callable[[Path, "Lap"], "Sequence[float | None] | None"]
Version = Callable[[], str]

AREAS_AND_CAPS = 12  # number of values in COCO's summary
IOUS = [round(0.5 + 0.05 * i, 2) for i in range(10)]
SCORES = [round(0.05 * i, 2) for i in range(1, 20)]
SLICES = ["weather", "camera", "time_of_day"]
ALL_METRICS = [
    "AP",
    "APAveragedOverIOUs",
    "mAP",
    "mAPAveragedOverIOUs",
    "AR",
    "mAR",
    "Counts",
    "Precision",
    "Recall",
    "F1",
    "Accuracy",
    "PrecisionRecallCurve",
    "DetailedPrecisionRecallCurve",
    "ConfusionMatrix",
]
PEERS = {  # contender: distribution, module of COCO, module of the evaluator, its class
    "pycocotools": ("pycocotools", "pycocotools.coco", "pycocotools.cocoeval", "COCOeval"),
    "faster-coco-eval": (
        "faster-coco-eval",
        "faster_coco_eval",
        "faster_coco_eval",
        "COCOeval_faster",
    ),
    "hotcoco": ("hotcoco", "hotcoco", "hotcoco", "COCOeval"),
    "ultrafast-pycocotools": (
        "ultrafast-pycocotools",
        "ultrafast_pycocotools",
        "ultrafast_pycocotools",
        "COCOeval",
    ),
}


class Lap(Protocol):
    """Callback that ends a step; with `times`, the step did only that fraction of the work."""

    def __call__(self, name: str, times: int = 1) -> None: ...


def coco_peer(name: str) -> Run:
    """Evaluator with pycocotools' interface, from the two JSON files."""
    _, data_module, module, evaluator = PEERS[name]
    coco = import_module(data_module).COCO
    coco_eval = getattr(import_module(module), evaluator)

    def run(folder: Path, lap: Lap) -> list[float]:
        truths = coco(str(folder / "gt.json"))
        results = truths.loadRes(str(folder / "dt.json"))
        lap("load")
        evaluation = coco_eval(truths, results, "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
        numbers = [float(x) for x in evaluation.stats[:AREAS_AND_CAPS]]
        lap("evaluate")
        return numbers

    return run


def valor_lite() -> Run:
    """valor-lite's in-memory loader for boxes; Parquet is first converted to its objects."""
    import pyarrow.parquet as pq
    from valor_lite.object_detection import BoundingBox, Detection, Loader

    def boxes(path: Path) -> dict[int, list[Any]]:
        table = pq.read_table(path).to_pydict()
        scores = table.get("score")
        by_datum: dict[int, list[Any]] = {}
        for i, datum in enumerate(table["datum_id"]):
            box = BoundingBox(
                uid=str(i),
                xmin=table["xmin"][i],
                xmax=table["xmax"][i],
                ymin=table["ymin"][i],
                ymax=table["ymax"][i],
                labels=[str(table["label_value"][i])],
                scores=[scores[i]] if scores else [],
            )
            by_datum.setdefault(datum, []).append(box)
        return by_datum

    def run(folder: Path, lap: Lap) -> None:
        predictions = boxes(folder / "predictions.parquet")
        truths = boxes(folder / "groundtruths.parquet")
        detections = [
            Detection(
                uid=str(datum),
                groundtruths=truths.get(datum, []),
                predictions=predictions.get(datum, []),
            )
            for datum in sorted(predictions.keys() | truths.keys())
        ]
        lap("load")
        loader = Loader.in_memory()
        loader.add_bounding_boxes(detections)
        lap("ingest")
        evaluator = loader.finalize()
        lap("finalize")
        evaluator.compute_precision_recall(iou_thresholds=IOUS, score_thresholds=SCORES)
        lap("compute")

    return run


def evalengine(variant: str) -> Run:
    """`evalengine-N`: the twelve values from Parquet with N threads.

    `-json`: from COCO's two JSON files; `-frames`: from dataframes in memory, which are read in a
    separate step; `-all`: every metric of the task, three slices, all frames.
    """
    import evalengine as ee

    _, count, *rest = variant.split("-")
    threads = int(count)

    def twelve(predictions: object, truths: object) -> list[float]:
        card = ee.score(predictions, truths, dialect="coco", threads=threads)
        return [float(x) for x in card.to_coco()["stats"]]

    def from_files(folder: Path, lap: Lap) -> list[float]:
        numbers = twelve(folder / "predictions.parquet", folder / "groundtruths.parquet")
        lap("evaluate")
        return numbers

    def from_json(folder: Path, lap: Lap) -> list[float]:
        numbers = twelve(folder / "dt.json", folder / "gt.json")
        lap("evaluate")
        return numbers

    def from_frames(folder: Path, lap: Lap) -> list[float]:
        import polars as pl

        predictions = pl.read_parquet(folder / "predictions.parquet")
        truths = pl.read_parquet(folder / "groundtruths.parquet")
        lap("load")
        numbers = twelve(predictions, truths)
        lap("evaluate")
        return numbers

    def everything(folder: Path, lap: Lap) -> None:
        card = ee.score(
            folder / "predictions.parquet",
            folder / "groundtruths.parquet",
            dialect="standard",
            metrics=ALL_METRICS,
            iou_thresholds=IOUS,
            score_thresholds=SCORES,
            by=SLICES,
            datums=folder / "datums.parquet",
            threads=threads,
        )
        for frame in map(card.frame, ("metrics", "curves", "examples", "confusion")):
            len(frame)
        lap("evaluate")

    runs = {"": from_files, "json": from_json, "frames": from_frames, "all": everything}
    return runs["".join(rest)]


def prepare(contender: str) -> tuple[Run, Version]:
    """Import the contender and return its function and version."""
    if contender.startswith("evalengine"):
        return evalengine(contender), partial(version, "evalengine")
    if contender == "valor-lite":
        return valor_lite(), partial(version, "valor-lite")
    return coco_peer(contender), partial(version, PEERS[contender][0])


def in_one_step(numbers: Callable[[Path], Any]) -> Run:
    """Return a function from a folder to its values, timed as one step; NaN becomes None."""

    def run(folder: Path, lap: Lap) -> list[float | None]:
        result = numbers(folder)
        lap("evaluate")
        return [None if value is None or value != value else float(value) for value in result]

    return run


USED = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)  # a contender may be a program


def peak_megabytes() -> float:
    """Return the peak resident memory of this process or a child, in MB.

    The system counts bytes on macOS, KiB elsewhere.
    """
    peak = max(resource.getrusage(who).ru_maxrss for who in USED)
    return peak / (1e6 if sys.platform == "darwin" else 1e6 / 1024)


def clock() -> tuple[float, float]:
    """Return wall seconds, and CPU seconds of this process and of ended children."""
    child = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter(), time.process_time() + child.ru_utime + child.ru_stime


def answer(prepare: Callable[[str], tuple[Run, Version]]) -> None:
    """Measure the contender on the command line, and print the report."""
    contender, folder, *warm_up = sys.argv[1:]
    stdout = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    laps: dict[str, dict[str, float]] = {}
    last = clock()

    def lap(name: str, times: int = 1) -> None:
        nonlocal last
        now = clock()
        laps[name] = {"wall": (now[0] - last[0]) * times, "cpu": (now[1] - last[1]) * times}
        last = now

    run, version_of = prepare(contender)
    lap("import")
    for small in warm_up:
        run(Path(small), lambda name, times=1: None)
    last = clock()
    numbers = run(Path(folder), lap)
    report = {
        "laps": laps,
        "numbers": numbers,
        "peak_mb": peak_megabytes(),
        "version": version_of(),
    }
    json.dump(report, stdout)
    stdout.close()


if __name__ == "__main__":
    answer(prepare)
