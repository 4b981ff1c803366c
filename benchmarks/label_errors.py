"""Detection of planted label errors, against cleanlab and hotcoco, on the same tables.

    python benchmarks/label_errors.py --peers-python PEERS/bin/python

PEERS is an environment with cleanlab 2.9, hotcoco 1.3, scikit-learn and Polars. Classification is
scikit-learn's digits (1,797 images, 10 labels), with labels swapped at random; probabilities are
those of a logistic regression that was not trained on the fold. Detection is 1,000 images with
about 6 objects of 5 labels and a detector that misses, shifts, invents and confuses some. Then
labels are swapped, and ground truths are removed, shifted by half their size, doubled and invented.
cleanlab ranks images, hotcoco pairs of boxes, evalengine single ground truths; the order of images
is comparable. Precision is the share of planted errors among the first n, if n were planted.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent))

from measuring import spawn

DIGITS = """
import sys, json, numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
folder, share = sys.argv[1], float(sys.argv[2])
x, y = load_digits(return_X_y=True)
rng = np.random.default_rng(3)
planted = rng.random(y.size) < share
given = np.where(planted, (y + rng.integers(1, 10, y.size)) % 10, y)
p = cross_val_predict(LogisticRegression(max_iter=300), x / 16, given, cv=5, method="predict_proba")
np.savez(folder + "/digits.npz", p=p, given=given, planted=planted)
"""
CLEANLAB = """
import sys, json, time, numpy as np
d = np.load(sys.argv[1] + "/digits.npz")
from cleanlab.filter import find_label_issues
for _ in range(2):
    begun = time.process_time()
    order = find_label_issues(d["given"], d["p"], return_indices_ranked_by="normalized_margin",
                              n_jobs=1)
    spent = time.process_time() - begun
print(json.dumps([spent, order.tolist()]))
"""
OURS = """
import sys, json, time, numpy as np, polars as pl, evalengine as ee
d = np.load(sys.argv[1] + "/digits.npz")
n, k = d["p"].shape
found = pl.DataFrame({"datum_id": np.repeat(np.arange(n), k), "score": d["p"].ravel(),
                      "label_value": np.tile(np.arange(k), n)})
truth = pl.DataFrame({"datum_id": np.arange(n), "label_value": d["given"]})
for _ in range(2):
    begun = time.process_time()
    order = ee.find_label_errors(found, truth, metrics=["Accuracy"], threads=1).rows["datum_id"]
    spent = time.process_time() - begun
print(json.dumps([spent, order.to_list()]))
"""
BOXES_OURS = """
import sys, json, time, polars as pl, evalengine as ee
for _ in range(2):
    begun = time.process_time()
    rows = ee.find_label_errors(sys.argv[1] + "/dt.json", sys.argv[1] + "/gt.json", threads=1,
                                metrics=["mAP"]).rows
    spent = time.process_time() - begun
rows = rows.select("datum_id", "reason", "annotation_id", "prediction_row", "suspicion")
print(json.dumps([spent, rows.rows()]))
"""
BOXES_HOTCOCO = """
import sys, json, time, contextlib, io
from hotcoco import COCO, COCOeval
for _ in range(2):
    begun = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        gt = COCO(sys.argv[1] + "/gt.json")
        run = COCOeval(gt, gt.loadRes(sys.argv[1] + "/dt.json"), "bbox")
        run.evaluate()
        found = run.image_diagnostics(score_thr=0.1)["label_errors"]
    spent = time.process_time() - begun
rows = [(one["image_id"], one["type"], one.get("gt_id"), one["dt_id"] - 1, one["dt_score"])
        for one in sorted(found, key=lambda one: -one["dt_score"])]
print(json.dumps([spent, rows]))
"""
BOXES_CLEANLAB = """
import sys, json, time, numpy as np
from cleanlab.object_detection.rank import get_label_quality_scores
gt, dt = (json.load(open(f"{sys.argv[1]}/{side}.json")) for side in ("gt", "dt"))
n, k = len(gt["images"]), len(gt["categories"])
labels = [{"bboxes": [], "labels": []} for _ in range(n)]
found = [[[] for _ in range(k)] for _ in range(n)]
for one in gt["annotations"]:
    x, y, w, h = one["bbox"]
    labels[one["image_id"] - 1]["bboxes"].append([x, y, x + w, y + h])
    labels[one["image_id"] - 1]["labels"].append(one["category_id"] - 1)
for one in dt:
    x, y, w, h = one["bbox"]
    found[one["image_id"] - 1][one["category_id"] - 1].append([x, y, x + w, y + h, one["score"]])
labels = [{"bboxes": np.array(one["bboxes"]).reshape(-1, 4), "labels": np.array(one["labels"], int)}
          for one in labels]
found = [np.array([np.array(rows).reshape(-1, 5) for rows in one], dtype=object) for one in found]
begun = time.process_time()
score = get_label_quality_scores(labels, found, verbose=False)
spent = time.process_time() - begun
print(json.dumps([spent, [(i + 1, "image", None, None, 1 - score[i])
                          for i in np.argsort(score).tolist()]]))
"""


def precision(order: list[Any], planted: set[Any]) -> tuple[float, float]:
    """Return the precision among as many as were planted, and the average precision."""
    hits = np.array([one in planted for one in order], float)
    at = hits.cumsum() / np.arange(1, hits.size + 1)
    return float(hits[: len(planted)].sum() / len(planted)), float((at * hits).sum() / len(planted))


def plant(folder: Path, seed: int = 5) -> dict[str, set[Any]]:
    """Write a set with planted errors; return planted ground truths, predictions and images."""
    rng = np.random.default_rng(seed)
    truths: list[dict[str, Any]] = []
    detections: list[dict[str, Any]] = []
    planted: dict[str, set[Any]] = {"truth": set(), "prediction": set(), "image": set()}

    def add(rows: list[dict[str, Any]], image: int, label: int, box: Any, **more: Any) -> int:
        rows.append({"id": len(rows) + 1, "image_id": image, "category_id": label,
                     "bbox": [round(float(v), 2) for v in box], **more})  # fmt: skip
        return len(rows)

    def true(image: int, label: int, box: Any) -> int:
        return add(truths, image, label, box, area=float(box[2] * box[3]), iscrowd=0)

    for image in range(1, 1001):
        for _ in range(rng.poisson(6)):
            size = np.exp(rng.normal(4, 0.6, 2)).clip(12, 300)
            box = np.r_[rng.uniform(0, 640 - size[0]), rng.uniform(0, 480 - size[1]), size]
            label = int(rng.integers(1, 6))
            seen = None
            if rng.random() < 0.85:
                off = box + rng.normal(0, 0.05, 4) * np.r_[size, size]
                predicted = label if rng.random() < 0.95 else int(rng.integers(1, 6))
                score = float(rng.beta(6, 2) if predicted == label else rng.beta(3, 3))
                seen = add(detections, image, predicted, off, score=round(score, 4)) - 1
            kind = rng.choice(["", "swap", "shift", "double", "lost"], p=[0.96, *[0.01] * 4])
            if kind == "lost" and seen is not None:
                planted["prediction"].add(seen)
                planted["image"].add(image)
                continue
            given = label % 5 + 1 if kind == "swap" else label
            moved = np.r_[box[:2] + 0.4 * size * rng.choice([-1, 1], 2), size]
            at = true(image, given, moved if kind == "shift" else box)
            if kind == "double":
                at = true(image, label, box + rng.normal(0, 0.01, 4) * np.r_[size, size])
            if kind in ("swap", "shift", "double"):
                planted["truth"].add(at)
                planted["image"].add(image)
        for _ in range(rng.poisson(1)):  # invented by the detector
            box = np.r_[rng.uniform(0, 500), rng.uniform(0, 400), rng.uniform(15, 80, 2)]
            add(detections, image, int(rng.integers(1, 6)), box, score=round(rng.beta(2, 5), 4))
        if rng.random() < 0.05:  # errors of an annotator
            box = np.r_[rng.uniform(0, 500), rng.uniform(0, 400), rng.uniform(15, 80, 2)]
            planted["truth"].add(true(image, int(rng.integers(1, 6)), box))
            planted["image"].add(image)
    images = [{"id": i, "width": 640, "height": 480, "file_name": f"{i}.jpg"} for i in
              range(1, 1001)]  # fmt: skip
    labels = [{"id": k, "name": f"label {k}"} for k in range(1, 6)]
    (folder / "gt.json").write_text(
        json.dumps({"images": images, "categories": labels, "annotations": truths})
    )
    (folder / "dt.json").write_text(json.dumps(detections))
    return planted


def main() -> None:
    """Plant, rank, and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers-python", default=sys.executable)
    given = parser.parse_args()
    ours, theirs = sys.executable, given.peers_python
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print("| labels of digits | wrong | precision | average precision | picked | CPU s |")
        print("|---|---:|---:|---:|---:|---:|")
        for share in ("0.05", "0.1", "0.2"):
            spawn([theirs, "-c", DIGITS, name, share])
            planted = set(np.flatnonzero(np.load(folder / "digits.npz")["planted"]).tolist())
            for who, command in (("evalengine", [ours, "-c", OURS]),
                                 ("cleanlab", [theirs, "-c", CLEANLAB])):  # fmt: skip
                seconds, order = json.loads(spawn([*command, name]).output.splitlines()[-1])
                first, average = precision(order, planted)
                print(f"| {who} | {len(planted)} | {first:.3f} | {average:.3f} | {len(order)} |"
                      f" {seconds:.3f} |")  # fmt: skip
        planted = plant(folder)
        rows_planted = {("truth", one) for one in planted["truth"]}
        rows_planted |= {("prediction", one) for one in planted["prediction"]}
        print()
        print("| boxes | precision of rows | average precision | of images | average precision |"
              " CPU s |\n|---|---:|---:|---:|---:|---:|")  # fmt: skip
        for who, command in (("evalengine", [ours, "-c", BOXES_OURS]),
                             ("hotcoco", [theirs, "-c", BOXES_HOTCOCO]),
                             ("cleanlab", [theirs, "-c", BOXES_CLEANLAB])):  # fmt: skip
            seconds, rows = json.loads(spawn([*command, name]).output.splitlines()[-1])
            images = list(dict.fromkeys(row[0] for row in rows))
            of_rows = ["", ""]
            if who != "cleanlab":
                order = [("truth", row[2]) if row[2] is not None else ("prediction", row[3])
                         for row in rows]  # fmt: skip
                of_rows = [f"{x:.3f}" for x in precision(list(dict.fromkeys(order)), rows_planted)]
            of_images = [f"{x:.3f}" for x in precision(images, planted["image"])]
            print(f"| {who} | {' | '.join(of_rows + of_images)} | {seconds:.3f} |")
        print(f"\n{len(rows_planted)} rows in {len(planted['image'])} images were planted.")


if __name__ == "__main__":
    main()
