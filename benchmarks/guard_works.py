"""Works of guard.py: the table of calls, their data sets, and one call in the current process.

The module imports nothing large, because it also runs in the interpreters of the pinned commits,
whose packages may not have a feature. Only `make` needs the generators; it runs in the interpreter
of the checkout.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))

SEED, WARM_UP_SEED = 20261128, 7
WARM_UP = 0.6  # size of the warm-up set, as a share of the set of the exact figures


@dataclass(frozen=True)
class Work:
    """One call of the public interface on synthetic data.

    Attributes:
        name: key in guard.json and row of the published table.
        data: key of MAKERS.
        size: full size, in words.
        exact: share of the full size for exact figures.
        sides: files of the data set, in the order of the call's arguments.
        options: options of the call.
        tables: options that are files of the data set.
        kind: "files" passes paths, "memory" loaded tables, "compare" calls `ee.compare`; "first"
            runs in a process that has called nothing, "empty" also without compiled kernels.
        calls: number of calls that are timed together.
        full: share of the full size for timed figures.
    """

    name: str
    data: str
    size: str
    exact: float
    sides: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)
    kind: str = "files"
    calls: int = 1
    full: float = 1.0

    @property
    def since(self) -> str | None:
        """Commit that added the feature, if the first pin does not have it."""
        return SINCE.get(self.name, SINCE.get(self.name.partition(",")[0]))


SINCE = {  # features that the first pin does not have, and the commits that added them
    "keypoints": "7867d7e5", "LVIS": "dfa8b320", "oriented boxes": "02e89f58",
    "panoptic": "9695370f", "tracking": "ca2b719f", "regression": "448554d1",
    "intervals of AP": "9946a489", "intervals of counts": "9946a489", "compare": "efc0f82d",
}  # fmt: skip
BOTH = ("predictions.parquet", "groundtruths.parquet")
COCO = {"dialect": "coco"}
IMAGES = {"datums": "datums.parquet", "labels": "labels.parquet"}
AUC = {"task": "classification", "metrics": ["ROCAUC"]}
BOUNDED = {"memory_limit": "448MiB"}
ERRORS = ["MAE", "MSE", "RMSE", "MAPE", "MedianAE", "R2", "MaxError", "MeanError", "Pearson"]
MEASURES = ["nDCG@10", "MAP", "MRR", "Recall@100"]
HARD = ["Accuracy", "Precision", "Recall", "F1"]


def _small(name: str, rows: int, *sides: str, **options: Any) -> Work:
    """Return works of few rows in memory, as in a loop: 50 calls are timed."""
    options = {"task": name.partition(",")[0], **options}
    share = rows / 100
    return Work(f"{name}, {rows} rows", "small", f"50 calls of {rows} rows", share,
                sides, options, kind="memory", calls=50, full=share)  # fmt: skip


_WORKS = (
    Work("boxes, Parquet", "boxes", "5,000 images, 80 classes, 250 k detections", 0.2, BOTH, COCO,
         IMAGES),
    Work("boxes, JSON", "boxes", "5,000 images, 80 classes, 250 k detections", 0.2,
         ("dt.json", "gt.json"), COCO),
    Work("masks", "masks", "1,000 images, 50 k masks", 0.1, BOTH, {**COCO, "iou_type": "segm"},
         IMAGES),
    Work("keypoints", "keypoints", "10,000 people, 20 k detections, JSON", 0.2,
         ("found.json", "people.json"), {**COCO, "iou_type": "keypoints"}),
    Work("LVIS", "lvis", "2,000 images, 1,203 classes, 300 k detections", 0.1, BOTH,
         {"dialect": "lvis", "metrics": ["mAP"]}, IMAGES),
    Work("oriented boxes", "oriented", "1,000 images, 50 k detections", 0.2,
         ("found.parquet", "truth.parquet"),
         {**COCO, "iou_type": "obb", "angle_format": "radians-clockwise"}),
    Work("panoptic", "panoptic", "100 pairs of PNG, 640 x 480", 0.06, ("pred.json", "gt.json"),
         COCO),
    Work("tracking", "tracking", "7 sequences, 5,316 frames, 105 k ground truths", 0.1,
         ("whole/tracker/data", "whole/gt"), {"task": "tracking", "dialect": "mot"}),
    Work("mIoU", "maps", "100 pairs of maps in memory, 1,024 x 1,024, 19 classes", 0.1,
         ("found.npy", "truth.npy"), {"labels": list(range(19)), "metrics": ["IOU", "mIOU"]},
         kind="memory"),
    Work("ROC AUC", "auc", "20 M rows", 0.1, ("plain.parquet",), AUC),
    Work("ROC AUC, datum_id", "auc", "20 M rows", 0.1, ("ids.parquet",), AUC),
    Work("ROC AUC, weighted", "auc", "20 M rows", 0.1, ("weighted.parquet",), AUC),
    Work("ROC AUC, groups", "auc", "20 M rows, 20,000 groups", 0.1, ("grouped.parquet",),
         {**AUC, "by": ["group"]}),
    Work("F1, long tables", "long", "50,000 datums x 100 labels, 5 M rows", 0.1, BOTH,
         {"metrics": HARD}),
    Work("retrieval", "retrieval", "10,000 queries x 1,000 documents, 10 M rows", 0.02,
         ("run.parquet", "qrels.parquet"), {"metrics": MEASURES}),
    Work("ROUGE", "texts", "20,000 pairs of 60 words", 0.05, ("table.parquet",),
         {"task": "text", "metrics": ["ROUGE"]}),
    Work("BLEU", "texts", "20,000 pairs of 60 words, corpus BLEU", 0.05, ("table.parquet",),
         {"task": "text", "metrics": ["CorpusBLEU"], "dialect": "sacrebleu"}),
    Work("regression", "regression", "2 M rows, nine metrics", 0.1, ("table.parquet",),
         {"task": "regression", "metrics": ERRORS}),
    Work("regression, groups", "regression", "2 M rows, nine metrics, 100 groups", 0.1,
         ("table.parquet",), {"task": "regression", "metrics": ERRORS, "by": ["store"]}),
    Work("bounded ROC AUC", "auc", "5 M rows through files", 0.1, ("plain.parquet",),
         {**AUC, **BOUNDED}, full=0.25),
    Work("bounded AP", "boxes", "5,000 images, 250 k detections through files", 1.0, BOTH,
         {**COCO, **BOUNDED}, IMAGES),
    Work("intervals of AP", "pair", "1,000 images, 50 k detections, 100 draws", 0.2, BOTH,
         {**COCO, "metrics": ["mAP"], "intervals": 0.95, "draws": 100}, IMAGES),
    Work("intervals of counts", "long", "1,000 datums x 100 labels, 1,000 draws", 0.02, BOTH,
         {"metrics": HARD, "intervals": 0.95, "draws": 1000}, full=0.02),
    Work("compare", "pair", "two detectors, 1,000 images, 50 k detections each, 100 draws", 0.2,
         ("predictions.parquet", "predictions_b.parquet"), {**COCO, "draws": 100},
         {**IMAGES, "ground_truths": "groundtruths.parquet"}, kind="compare"),
    _small("detection", 100, "boxes.parquet", "objects.parquet"),
    _small("tracking", 100, "tracks.parquet", "persons.parquet"),
    Work("segmentation, 4 maps", "small", "50 calls of 4 maps, 256 x 256, in lists", 1.0,
         ("found_maps.parquet", "maps.parquet"), {"task": "segmentation"}, kind="memory", calls=50),
    _small("classification", 100, "labelled.parquet", "labels.parquet"),
    _small("regression", 100, "numbers.parquet"),
    _small("retrieval", 100, "run.parquet", "qrels.parquet"),
    _small("text", 100, "texts.parquet"),
    _small("judged", 100, "verdicts.parquet"),
    _small("regression, MAE", 5, "numbers.parquet", metrics=["MAE"]),
    _small("classification, weighted ROC AUC", 5, "weighted.parquet", metrics=["ROCAUC"]),
    _small("retrieval, nDCG", 5, "run.parquet", "qrels.parquet", metrics=["nDCG"]),
    _small("detection, AP", 5, "boxes.parquet", "objects.parquet", metrics=["AP"]),
    Work("first call, detection", "small", "whole process, compiled kernels", 1.0,
         ("boxes.parquet", "objects.parquet"), kind="first"),
    Work("first call, ROC AUC", "small", "whole process, compiled kernels", 1.0,
         ("weighted.parquet",), AUC, kind="first"),
    Work("first run, detection", "small", "whole process, empty kernel folder", 1.0,
         ("boxes.parquet", "objects.parquet"), kind="empty"),
)  # fmt: skip
WORKS = {work.name: work for work in _WORKS}


def boxes(folder: Path, share: float, seed: int) -> None:
    from detection_data import Size, coco, tables

    images = round(5_000 * share)
    frames = tables(Size("guard", images, 80, round(7.1 * images), 50 * images), seed)
    _write(folder, frames)
    for name, text in zip(("gt", "dt"), coco(frames), strict=True):
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


def masks(folder: Path, share: float, seed: int) -> None:
    import masks_data
    import numpy as np

    _write(folder, masks_data.segm(np.random.default_rng(seed), share / 5))


def keypoints(folder: Path, share: float, seed: int) -> None:
    import keypoints as maker

    maker.make(folder, round(10_000 * share), seed)


def lvis(folder: Path, share: float, seed: int) -> None:
    import lvis as maker

    maker.make(folder, round(2_000 * share), seed)


def oriented(folder: Path, share: float, seed: int) -> None:
    import oriented as maker

    maker.make_set(folder, round(1_000 * share), seed)


def panoptic(folder: Path, share: float, seed: int) -> None:
    import panoptic as maker

    maker.make(folder, round(100 * share), seed)


def tracking(folder: Path, share: float, seed: int) -> None:
    import tracking as maker

    lengths = {name: round(length * share) for name, length in maker.BOXES.lengths.items()}
    maker.make(folder, maker.BOXES._replace(lengths=lengths), seed)


def maps(folder: Path, share: float, seed: int) -> None:
    from segmentation_data import SECTIONS, Order

    SECTIONS["counts"](Order(folder, share / 5, seed, workers=1))


def auc(folder: Path, share: float, seed: int) -> None:
    import numpy as np
    import polars as pl
    from classification_data import ROWS, scored

    rng = np.random.default_rng(seed)
    rows = round(ROWS * share)
    actual, score = scored(rng, rows)
    plain = pl.DataFrame({"actual": actual, "score": score})
    more = {
        "plain": {},
        "ids": {"datum_id": rng.permutation(rows)},
        "weighted": {"weight": rng.gamma(2.0, 0.5, rows)},
        "grouped": {"group": rng.integers(0, max(rows // 1_000, 1), rows, dtype=np.int32)},
    }
    _write(folder, {name: plain.with_columns(**_series(own)) for name, own in more.items()})


def long(folder: Path, share: float, seed: int) -> None:
    import numpy as np
    from classification_data import SECTIONS

    _write(folder, SECTIONS["long"](np.random.default_rng(seed), share / 4), BOTH)


def retrieval(folder: Path, share: float, seed: int) -> None:
    import numpy as np
    from retrieval_data import ids

    _write(folder, ids(np.random.default_rng(seed), share), ("run.parquet", "qrels.parquet"))


def texts(folder: Path, share: float, seed: int) -> None:
    import numpy as np
    from text_data import SECTIONS

    _write(folder, SECTIONS["pairs"](np.random.default_rng(seed), share))


def regression(folder: Path, share: float, seed: int) -> None:
    import regression as maker

    maker.write(folder / "table.parquet", round(2_000_000 * share), seed)


def pair(folder: Path, share: float, seed: int) -> None:
    import numpy as np
    from intervals_detection_data import made

    _write(folder, made("images-1000", np.random.default_rng(seed), share))


def small(folder: Path, share: float, seed: int) -> None:
    """Return tables of 100 rows for the calls of each task: two labels, ten rows per datum."""
    import numpy as np
    import polars as pl
    import scale_data

    rng = np.random.default_rng(seed)
    n = round(100 * share)
    row, true = np.arange(n), np.arange(n) % 2
    score, many = rng.random(n), -(-n // scale_data.VERDICTS)
    low = rng.uniform(0, 400, (n, 2))
    high = low + rng.uniform(20, 200, (n, 2))
    moved = np.column_stack([low, high]) + rng.normal(0, 4, (n, 4))

    def corners(box: Any) -> dict[str, Any]:
        return dict(zip(("xmin", "ymin", "xmax", "ymax"), box.T, strict=True))

    truth, predicted = corners(np.column_stack([low, high])), corners(moved)
    image = {"datum_id": row // 10, "label_value": true}
    frame = {"sequence": np.repeat("a", n), "frame": row // 4 + 1}
    query = {"query_id": row // 10, "doc_id": row % 10}
    label_maps = scale_data.label_maps(rng, 0, -(-n // 25))
    tables = {
        "boxes": {**image, "score": score, **predicted},
        "objects": {**image, **truth},
        "tracks": {**frame, "track_id": row % 4, **predicted},
        "persons": {**frame, "object_id": row % 4, **truth},
        "labelled": {"datum_id": np.repeat(row, 2), "label_value": np.tile([0, 1], n),
                     "score": np.column_stack([score, 1 - score]).ravel()},
        "labels": {"datum_id": row, "label_value": true},
        "weighted": {"actual": true, "score": score, "weight": rng.uniform(0.5, 2, n)},
        "numbers": {"prediction": score, "target": rng.random(n)},
        "run": {**query, "score": score},
        "qrels": {**query, "relevance": true},
    }  # fmt: skip
    frames = {name: pl.DataFrame(columns) for name, columns in tables.items()}
    for name, made in (
        ("found_maps", label_maps["predictions"]),
        ("maps", label_maps["truths"]),
        ("texts", scale_data.texts(rng, 0, n)["table"]),
        ("verdicts", scale_data.verdicts(rng, 0, many)["table"]),
    ):
        frames[name] = pl.DataFrame(made)
    _write(folder, frames)


def _series(columns: Mapping[str, Any]) -> dict[str, Any]:
    import polars as pl

    return {name: pl.Series(values) for name, values in columns.items()}


def _write(folder: Path, frames: Mapping[str, Any], names: tuple[str, ...] = ()) -> None:
    """Write frames as Parquet: all of them, or those whose files are named."""
    for name, frame in frames.items():
        file = f"{name}.parquet"
        if not isinstance(frame, str) and not name.endswith(".txt") and file in (names or (file,)):
            frame.write_parquet(folder / file)


MAKERS: dict[str, Callable[[Path, float, int], None]] = {
    "boxes": boxes, "masks": masks, "keypoints": keypoints, "lvis": lvis, "oriented": oriented,
    "panoptic": panoptic, "tracking": tracking, "maps": maps, "auc": auc, "long": long,
    "retrieval": retrieval, "texts": texts, "regression": regression, "pair": pair, "small": small,
}  # fmt: skip


def place(data: str, share: float, seed: int) -> str:
    """Return the name of a data set's folder."""
    return f"{data}-{share:g}-{seed}"


def exact_set(work: Work) -> tuple[str, float, int]:
    """Return the arguments of `make` for the set of the exact figures."""
    return work.data, work.exact, SEED


def warm_up_set(work: Work) -> tuple[str, float, int]:
    """Return the arguments of `make` for the warm-up set: smaller, and of another seed."""
    return work.data, work.exact * WARM_UP, WARM_UP_SEED


def full_set(work: Work) -> tuple[str, float, int]:
    """Return the arguments of `make` for the set of the timed figures."""
    return work.data, work.full, SEED


def make(root: Path, data: str, share: float, seed: int) -> None:
    """Make one data set, unless it exists, with the size in memory of each of its files."""
    import polars as pl

    folder = root / place(data, share, seed)
    if folder.exists():
        return
    draft = folder.with_name(f"{folder.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    MAKERS[data](draft, share, seed)
    files = [path for path in draft.rglob("*") if path.is_file()]
    sizes = {
        str(path.relative_to(draft)): pl.read_parquet(path).estimated_size()
        if path.suffix == ".parquet"
        else path.stat().st_size
        for path in files
    }
    (draft / "sizes.json").write_text(json.dumps(sizes), encoding="utf-8")
    draft.rename(folder)


def input_mb(work: Work, folder: Path) -> float:
    """Return the size of a work's input in MB: Parquet as loaded by Polars, other files on disk."""
    sizes = json.loads((folder / "sizes.json").read_text(encoding="utf-8"))
    given = (*work.sides, *work.tables.values())
    return sum(size for file, size in sizes.items() if file.startswith(given)) / 1e6


def prepare(work: Work, folder: Path) -> Callable[[], Any]:
    """Return the call of a work, which returns its frame of results; load tables in memory."""
    sides: list[Any] = [str(folder / side) for side in work.sides]
    if work.kind == "memory":
        sides = [_loaded(side) for side in sides]
    options = {name: str(folder / file) for name, file in work.tables.items()}
    options |= {**work.options, "threads": 1}
    scratch = tempfile.TemporaryDirectory() if "memory_limit" in options else None

    def call() -> Any:
        import evalengine as ee

        if work.kind == "compare":
            return ee.compare(*sides, **options).differences
        if scratch:
            card = ee.score(*sides, **options, scratch=scratch.name)
            assert card.run["buckets"], "the tables fit into the memory limit"
            return card.metrics
        return ee.score(*sides, **options).metrics

    return call


def _loaded(path: str) -> Any:
    if path.endswith(".npy"):
        import numpy as np

        return np.load(path)
    import polars as pl

    return pl.read_parquet(path)
