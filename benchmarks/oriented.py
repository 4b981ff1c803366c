"""Time oriented boxes against Shapely, OpenCV and hotcoco, side by side, in new processes.

    python benchmarks/oriented.py [--peers-python PYTHON] [--pairs 1000000] [--images 5000]

PYTHON is an interpreter with hotcoco, shapely and opencv-python-headless. There are two sections:
IoUs of pairs of boxes, half of them close to each other; and COCO's twelve values of a synthetic
set with 7 ground truths and 50 detections per image in 15 labels. For pairs, seconds are those of
the computation only, from arrays of five numbers in memory to IoUs; loops process the first
fiftieth of the pairs. For the set, seconds are those of the second call in a process, from files to
numbers with one thread, and those of the complete process with two calls.
Medians of several runs, contenders in turn.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))

from measuring import costs_of, in_turn, spawn

PAIRS = """
import json, sys, time
import numpy as np
a, b = np.load(sys.argv[1] + "/pairs.npy")
every = int(sys.argv[2])
a, b = a[::every], b[::every]
{prepare}
wall, cpu = time.perf_counter(), time.process_time()
{work}
took = time.process_time() - cpu, time.perf_counter() - wall
print(json.dumps([*took, len(a), float(np.mean(iou))]))
"""
CORNERS = """
def corners(boxes):
    cos, sin = np.cos(boxes[:, 4]), np.sin(boxes[:, 4])
    out = np.empty((len(boxes), 4, 2))
    for k, (i, j) in enumerate(((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5))):
        u, v = i * boxes[:, 2], j * boxes[:, 3]
        out[:, k, 0] = boxes[:, 0] + u * cos - v * sin
        out[:, k, 1] = boxes[:, 1] + u * sin + v * cos
    return out
import shapely
"""
OURS = """
from evalengine.geometry.polygons import corners_of
from evalengine.kernels.boxes import measure_quads, shared_quad_areas
def ious(a, b):
    one, two = (measure_quads(corners_of(side[:, :4], side[:, 4])) for side in (a, b))
    each = np.arange(len(a), dtype=np.int32)
    shared = shared_quad_areas(one[:3], two[:3], each, each)
    return shared / (one[1] + two[1] - shared)
ious(a[:2], b[:2])
"""
VECTORS = """
one, two = (shapely.polygons(corners(side)) for side in (a, b))
shared = shapely.area(shapely.intersection(one, two))
iou = shared / (shapely.area(one) + shapely.area(two) - shared)
"""
LOOP = """
one, two = corners(a), corners(b)
iou = []
for p, q in zip(one, two):
    p, q = shapely.Polygon(p), shapely.Polygon(q)
    shared = p.intersection(q).area
    iou.append(shared / (p.area + q.area - shared))
"""
OPENCV = """
iou = []
for p, q in zip(a.tolist(), b.tolist()):
    kind, points = cv2.rotatedRectangleIntersection(
        (p[:2], p[2:4], math.degrees(p[4])), (q[:2], q[2:4], math.degrees(q[4])))
    shared = cv2.contourArea(cv2.convexHull(points)) if kind else 0.0
    iou.append(shared / (p[2] * p[3] + q[2] * q[3] - shared))
"""
SCORED = """
import sys, time, evalengine as ee
folder, kind = sys.argv[1:]
for _ in range(2):
    begin = time.process_time()
    card = ee.score(f"{folder}/found.{kind}", f"{folder}/truth.{kind}", dialect="coco",
                    iou_type="obb", angle_format="radians-clockwise", threads=1)
    stats = [round(float(x), 12) for x in card.to_coco()["stats"]]
    took = time.process_time() - begin
print([took, *stats])
"""
HOTCOCO = """
import os, sys, time, warnings
warnings.simplefilter("ignore")
import hotcoco
null, kept = os.open(os.devnull, os.O_WRONLY), os.dup(1)  # it prints beneath Python
os.dup2(null, 1)
for _ in range(2):
    begin = time.process_time()
    truth = hotcoco.COCO(sys.argv[1] + "/truth.json")
    made = hotcoco.COCOeval(truth, truth.loadRes(sys.argv[1] + "/found.json"), "obb")
    made.evaluate()
    made.accumulate()
    made.summarize()
    took = time.process_time() - begin
sys.stdout.flush()
os.dup2(kept, 1)
print([took, *(round(float(x), 12) for x in made.stats)])
"""


def make_pairs(folder: Path, n: int) -> None:
    """Write pairs of boxes, centre, size and radians: half near each other, half anywhere."""
    import numpy as np

    rng = np.random.default_rng(1)
    one = np.column_stack(
        [rng.uniform(0, 200, (n, 2)), np.exp(rng.uniform(1, 4.5, (n, 2))), rng.uniform(-3, 3, n)]
    )
    two = one[rng.permutation(n)]
    near = rng.random(n) < 0.5
    shift = rng.normal(0, 0.1, (n, 5)) * np.column_stack([one[:, 2:4], one[:, 2:4], np.ones(n)])
    two[near] = (one + shift)[near]
    two[:, 2:4] = np.abs(two[:, 2:4]) + 0.5
    np.save(folder / "pairs.npy", np.stack([one, two]))


def make_set(folder: Path, n_images: int, seed: int = 2) -> None:
    """Write a set as Parquet and as COCO JSON with a field obb."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(seed)
    n, m = 7 * n_images, 50 * n_images
    image = np.repeat(np.arange(1, n_images + 1), 7)
    label = rng.integers(1, 16, n)
    boxes = np.column_stack(
        [rng.uniform(0, 1024, (n, 2)), np.exp(rng.uniform(1.5, 5, (n, 2))), rng.uniform(-3, 3, n)]
    )
    of = np.repeat(np.arange(n_images), 50) * 7 + rng.integers(0, 7, m)
    noise = rng.normal(0, 0.15, (m, 5)) * rng.exponential(1, (m, 1))
    predicted = boxes[of] + noise * np.column_stack([boxes[of, 2:4], boxes[of, 2:4], np.ones(m)])
    predicted[:, 2:4] = np.abs(predicted[:, 2:4]) + 0.5
    other = rng.random(m) < 0.2
    guess = np.where(other, rng.integers(1, 16, m), label[of])
    score = np.round(rng.random(m), 5)
    boxes, predicted = np.round(boxes, 4), np.round(predicted, 4)
    sides = {
        "truth": {"datum_id": image, "label_value": label, "obb": boxes},
        "found": {"datum_id": image[of], "label_value": guess, "score": score, "obb": predicted},
    }
    for name, columns in sides.items():
        listed = pl.Series(columns["obb"].tolist(), dtype=pl.List(pl.Float64))
        pl.DataFrame({**columns, "obb": listed}).write_parquet(folder / f"{name}.parquet")
    rows = {
        name: [
            {
                "id": i + 1, "image_id": int(columns["datum_id"][i]), "bbox": box[:4],
                "category_id": int(columns["label_value"][i]), "obb": box, "iscrowd": 0,
                "area": box[2] * box[3],
            }
            for i, box in enumerate(columns["obb"].tolist())
        ]
        for name, columns in sides.items()
    }  # fmt: skip
    for row, one in zip(rows["found"], score.tolist(), strict=True):
        row["score"] = one
    document = {
        "images": [{"id": i, "width": 1024, "height": 1024} for i in range(1, n_images + 1)],
        "categories": [{"id": i, "name": str(i)} for i in range(1, 16)],
        "annotations": rows["truth"],
    }
    (folder / "truth.json").write_text(json.dumps(document))
    (folder / "found.json").write_text(json.dumps(rows["found"]))


def main() -> None:
    """Measure and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--images", type=int, default=5_000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    peers = given.peers_python
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        make_pairs(folder, given.pairs)
        make_set(folder, given.images)
        whole = {
            "evalengine, exact": (sys.executable, OURS, "iou = ious(a, b)", 1),
            "Shapely, arrays": (peers, CORNERS, VECTORS, 1),
            "Shapely, a loop": (peers, CORNERS, LOOP, 50),
            "OpenCV, a loop": (peers, "import cv2, math", OPENCV, 50),
        }
        timed: dict[str, list[list[float]]] = {name: [] for name in whole}
        for _ in range(given.runs):
            for name, (python, prepare, work, every) in whole.items():
                code = PAIRS.format(prepare=prepare, work=work)
                ran = spawn([python, "-c", code, folder, str(every)])
                timed[name].append(json.loads(ran.output))
        print("| | CPU s of 1 M pairs | wall s | mean IoU |\n|---|---:|---:|---:|")
        for name, runs in timed.items():
            cpu, wall = (statistics.median(1e6 * run[i] / run[2] for run in runs) for i in (0, 1))
            print(f"| {name} | {cpu:.3f} | {wall:.3f} | {runs[0][3]:.9f} |")
        commands = {
            "evalengine, JSON": [sys.executable, "-c", SCORED, folder, "json"],
            "evalengine, Parquet": [sys.executable, "-c", SCORED, folder, "parquet"],
            "hotcoco, JSON": [peers, "-c", HOTCOCO, folder],
        }
        done = in_turn(commands, given.runs)
    print("\n| | second call, CPU s | two calls, whole process, CPU s | AP |\n|---|---:|---:|---|")
    for name, ran in done.items():
        cpu, *_ = costs_of(ran)
        answers = [json.loads(process.output) for process in ran]
        second = statistics.median(answer[0] for answer in answers)
        print(f"| {name} | {second:.3f} | {cpu:.2f} | {answers[0][1]} |")
    print("\n" + "\n".join(f"{name}: {ran[-1].output.strip()}" for name, ran in done.items()))


if __name__ == "__main__":
    main()
