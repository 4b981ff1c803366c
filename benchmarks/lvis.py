"""Time LVIS's thirteen values against hotcoco, side by side, in new processes.

    python benchmarks/lvis.py --peers-python PEERS/bin/python [--images 20000] [--runs 3]

PEERS is an environment with hotcoco. The set has 150 detections per image of 1,203 classes,
generated as in detection_data.py. Half of the classes that were falsely detected in an image are
listed as checked there. evalengine reads it as LVIS's JSON and as Parquet, hotcoco as JSON. CPU and
wall seconds are of complete processes, including imports; medians of several runs, contenders in
turn.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))

from measuring import in_turn, print_costs

CLASSES = 1203

FILES = """
import sys, evalengine as ee
card = ee.score(sys.argv[1] + "/dt.json", sys.argv[1] + "/gt.json", dialect="lvis",
                metrics=["mAP"], threads=int(sys.argv[2]))
print([round(x, 12) for x in card.to_lvis()["stats"]])
"""
TABLES = """
import sys, evalengine as ee
names = ("predictions", "groundtruths", "datums", "labels")
found, truth, datums, labels = (f"{sys.argv[1]}/{name}.parquet" for name in names)
card = ee.score(found, truth, datums=datums, labels=labels, dialect="lvis", metrics=["mAP"],
                threads=int(sys.argv[2]))
print([round(x, 12) for x in card.to_lvis()["stats"]])
"""
THEIRS = """
import contextlib, io, sys
from hotcoco import COCO, LVISeval
truth = COCO(sys.argv[1] + "/gt.json")
found = truth.load_res(sys.argv[1] + "/dt.json")
with contextlib.redirect_stdout(io.StringIO()):
    run = LVISeval(truth, found, "bbox")
    run.run()
numbers = run.get_results()
print([round(float(x), 12) for x in numbers.values()])
"""


def make(folder: Path, images: int, seed: int = 1) -> None:
    """Write the set, unless it exists."""
    import numpy as np
    import polars as pl
    from detection_data import Size, coco, tables

    if (folder / "dt.json").exists():
        return
    size = Size("lvis", images, CLASSES, images * 25 // 2, images * 150)
    frames = tables(size, seed)
    keys = ["datum_id", "label_value"]
    seen = frames["predictions"].select(keys).unique(maintain_order=True)
    absent = seen.join(frames["groundtruths"].select(keys), on=keys, how="anti")
    absent = absent.gather_every(2).group_by("datum_id").agg(negative_labels="label_value")
    datums = frames["datums"].join(absent, on="datum_id", how="left", maintain_order="left")
    none = pl.lit([], pl.List(pl.Int64))
    frames["datums"] = datums.with_columns(
        pl.col("negative_labels").fill_null(none), partial_labels=none
    )
    often = np.random.default_rng(seed).choice(["r", "c", "f"], CLASSES, p=[0.28, 0.38, 0.34])
    frames["labels"] = frames["labels"].with_columns(frequency=pl.Series(often))
    folder.mkdir(parents=True, exist_ok=True)
    truths, predicted = coco(frames)
    read = json.loads(truths)
    lists = frames["datums"].select("negative_labels").to_series().to_list()
    for image, absent_here in zip(read["images"], lists, strict=True):
        image |= {"neg_category_ids": absent_here, "not_exhaustive_category_ids": []}
    for category, frequency in zip(read["categories"], often, strict=True):
        category["frequency"] = str(frequency)
    for annotation in read["annotations"]:
        del annotation["iscrowd"]
    for name, frame in frames.items():
        frame.write_parquet(folder / f"{name}.parquet")
    (folder / "gt.json").write_text(json.dumps(read))
    (folder / "dt.json").write_text(predicted)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--data", default=os.path.join(tempfile.gettempdir(), "lvis-set"))
    given = parser.parse_args()
    folder = Path(given.data) / str(given.images)
    make(folder, given.images)
    commands = {
        "evalengine, JSON, 1 thread": [sys.executable, "-c", FILES, folder, "1"],
        "evalengine, Parquet, 1 thread": [sys.executable, "-c", TABLES, folder, "1"],
        "evalengine, JSON, 2 threads": [sys.executable, "-c", FILES, folder, "2"],
        "hotcoco, JSON": [given.peers_python, "-c", THEIRS, folder],
    }
    done = in_turn(commands, given.runs)
    print_costs(done, "AP", lambda said: json.loads(said)[0])


if __name__ == "__main__":
    main()
