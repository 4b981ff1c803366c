"""Run one evaluator in one process; segmentation.py starts it once per measurement.

    python segmentation_contenders.py SECTION/CONTENDER FOLDER [WARM_UP_FOLDER]

Prints the line of JSON of contender.py. The values are IoU of each of 19 classes, and their mean.
Arrays are loaded before the clock starts; files are read and decoded within it. Every contender
gets the pixels in the form that costs it the least work: bytes, or the dtype it requires.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

# Last, so that module names of this folder do not shadow the contenders' own dependencies.
sys.path.append(str(Path(__file__).resolve().parent))

from contender import Lap, Run, Version, answer

CLASSES = 19
IN_MEMORY = ("counts", "noise")
ROWS = 512  # of a strip of the large pair

Confusion = Any  # counts [19, 19] of truth and prediction
Counter = Callable[[Any, Any], Confusion]  # of one pair


def evalengine(section: str, contender: str) -> Run:
    """`evalengine-N`: N threads."""
    import evalengine as ee

    threads = int(contender.split("-")[1])
    labels = list(range(CLASSES))

    def run(folder: Path, lap: Lap) -> list[float | None]:
        if section in IN_MEMORY:
            sides: Any = arrays(folder)[::-1]
        else:
            sides = [folder / f"{name}.parquet" for name in ("found", "truth")]
        lap("load", 0)
        card = ee.score(*sides, labels=labels, metrics=["IOU", "mIOU"], threads=threads)
        per_label = [card.value("IOU", label_value=label) for label in labels]
        numbers = [*per_label, card.value("mIOU")]
        lap("evaluate")
        return numbers

    return run


def arrays(folder: Path) -> tuple[Any, Any]:
    """Read truths and predictions, uint8 [n, h, w], into memory."""
    import numpy as np

    return np.load(folder / "truth.npy"), np.load(folder / "found.npy")


def opened(section: str, contender: str, folder: Path) -> Iterator[tuple[Any, Any]]:
    """Yield pairs from files; for the large pair, strips."""
    names = [sorted(folder.glob(f"{side}*.*if")) or sorted(folder.glob(f"{side}*.png"))
             for side in ("truth", "found")]  # fmt: skip
    if contender == "opencv":
        import cv2

        for pair in zip(*names, strict=True):
            truth, error = (cv2.imread(str(path), cv2.IMREAD_UNCHANGED) for path in pair)
            yield truth, error
        return
    import warnings

    import rasterio

    warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
    for one, other in zip(*names, strict=True):
        with rasterio.open(one) as truth, rasterio.open(other) as error:
            rows = ROWS if section == "windows" else truth.height
            for top in range(0, truth.height, rows):
                window = ((top, min(top + rows, truth.height)), (0, truth.width))
                yield truth.read(1, window=window), error.read(1, window=window)


def with_numpy() -> Counter:
    import numpy as np

    def count(truth: Any, predicted: Any) -> Confusion:
        joint = truth.ravel().astype(np.uint16) * CLASSES + predicted.ravel()
        return np.bincount(joint, minlength=CLASSES * CLASSES).reshape(CLASSES, CLASSES)

    return count


def with_opencv() -> Counter:
    import cv2

    def count(truth: Any, predicted: Any) -> Confusion:
        sizes, ranges = [CLASSES] * 2, [0, CLASSES] * 2
        return cv2.calcHist([truth, predicted], [0, 1], None, sizes, ranges).astype("int64")

    return count


def with_sklearn() -> Counter:
    from sklearn.metrics import confusion_matrix

    labels = list(range(CLASSES))
    return lambda truth, predicted: confusion_matrix(
        truth.ravel(), predicted.ravel(), labels=labels
    )


def with_torchmetrics() -> Counter:
    import torch
    from torchmetrics.functional.classification import multiclass_confusion_matrix

    def count(truth: Any, predicted: Any) -> Confusion:
        sides = (torch.from_numpy(side) for side in (predicted, truth))
        return multiclass_confusion_matrix(*sides, CLASSES, validate_args=False).numpy()

    return count


def with_polars() -> Counter:
    import numpy as np
    import polars as pl

    def count(truth: Any, predicted: Any) -> Confusion:
        pixels = pl.DataFrame({"truth": truth.ravel(), "found": predicted.ravel()})
        cells = pixels.group_by("truth", "found").len()
        out = np.zeros((CLASSES, CLASSES), np.int64)
        out[cells["truth"].to_numpy(), cells["found"].to_numpy()] = cells["len"].to_numpy()
        return out

    return count


COUNTERS: dict[str, Callable[[], Counter]] = {
    "numpy": with_numpy,
    "opencv": with_opencv,
    "scikit-learn": with_sklearn,
    "torchmetrics": with_torchmetrics,
    "polars": with_polars,
    "rasterio": with_numpy,
}
DISTRIBUTIONS = {"opencv": "opencv-python-headless", "read-once": "numpy"}


def peer(section: str, contender: str) -> Run:
    """Add up a confusion matrix per pair."""
    import numpy as np

    count = COUNTERS[contender]()

    def run(folder: Path, lap: Lap) -> list[float | None]:
        if section in IN_MEMORY:
            pairs: Any = zip(*arrays(folder), strict=True)
        else:
            pairs = opened(section, contender, folder)
        lap("load", 0)
        confusion = np.zeros((CLASSES, CLASSES), np.int64)
        for truth, predicted in pairs:
            confusion += count(truth, predicted)
        right = confusion.diagonal()
        union = confusion.sum(0) + confusion.sum(1) - right
        iou = [float(r / u) if u else None for r, u in zip(right, union, strict=True)]
        defined = [value for value in iou if value is not None]
        numbers = [*iou, sum(defined) / len(defined)]
        lap("evaluate")
        return numbers

    return run


def read_once() -> Run:
    """Not an evaluator: the maximum of all words, which reads every byte once."""

    def run(folder: Path, lap: Lap) -> list[float | None]:
        sides = [side.reshape(-1).view("uint64") for side in arrays(folder)]
        lap("load", 0)
        most = max(int(side.max()) for side in sides)
        lap("evaluate")
        return [None if most else 0.0] * (CLASSES + 1)

    return run


def prepare(name: str) -> tuple[Run, Version]:
    """Import the contender and return its function and version."""
    section, contender = name.split("/")
    version_of = partial(version, DISTRIBUTIONS.get(contender, contender))
    if contender.startswith("evalengine"):
        return evalengine(section, contender), partial(version, "evalengine")
    if contender == "read-once":
        return read_once(), version_of
    return peer(section, contender), version_of


if __name__ == "__main__":
    answer(prepare)
