"""Time COCO's keypoint values against its evaluators, side by side, in new processes.

    python benchmarks/keypoints.py [--peers-python PYTHON] [--people 50000]

PYTHON is an interpreter with pycocotools, faster-coco-eval and hotcoco. The set is synthetic: two
and a half people per image on average; a tenth of them have no labelled point, and a fiftieth are
crowds. There is one detection near each person, and as many elsewhere, with coordinates of three
decimals. CPU and wall seconds are of complete processes, including imports and files; medians of
several runs, contenders in turn. For comparison, both files are also parsed by Python's json and by
msgspec, without any evaluation.
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

OURS = """
import sys, evalengine as ee
folder = sys.argv[1]
card = ee.score(folder + "/found.json", folder + "/people.json", dialect="coco",
                iou_type="keypoints", threads=int(sys.argv[2]))
print([round(float(x), 12) for x in card.to_coco()["stats"]])
"""
THEIRS = """
import contextlib, importlib, io, os, sys
data, module, evaluator, folder = sys.argv[2:5] + [sys.argv[1]]
COCO, Eval = importlib.import_module(data).COCO, getattr(importlib.import_module(module), evaluator)
null, kept = os.open(os.devnull, os.O_WRONLY), os.dup(1)  # some print beneath Python
os.dup2(null, 1)
truth = COCO(folder + "/people.json")
made = Eval(truth, truth.loadRes(folder + "/found.json"), "keypoints")
made.evaluate()
made.accumulate()
made.summarize()
sys.stdout.flush()
os.dup2(kept, 1)
print([round(float(x), 12) for x in made.stats])
"""
READING = """
import sys
from importlib import import_module
for side in ("people", "found"):
    import_module(sys.argv[2]).{0}(open(f"{{sys.argv[1]}}/{{side}}.json", "rb").read())
"""
PEERS = {
    "pycocotools": ("pycocotools.coco", "pycocotools.cocoeval", "COCOeval"),
    "faster-coco-eval": ("faster_coco_eval", "faster_coco_eval", "COCOeval_faster"),
    "hotcoco": ("hotcoco", "hotcoco", "COCOeval"),
}


def make(folder: Path, people: int, seed: int = 1) -> None:
    """Write the set, unless it exists."""
    import numpy as np

    if (folder / "found.json").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    n_images = people * 2 // 5
    image = np.sort(rng.integers(1, n_images + 1, people))
    height = np.exp(rng.uniform(np.log(30), np.log(400), people))
    pose = rng.uniform([-0.2, 0.0], [0.2, 1.0], (17, 2))
    place = rng.uniform(0, [560, 400], (people, 2))
    points = place[:, None] + (pose + rng.normal(0, 0.03, (people, 17, 2))) * height[:, None, None]
    seen = rng.choice([0, 1, 2], (people, 17), p=[0.3, 0.1, 0.6])
    seen[rng.random(people) < 0.1] = 0
    low, size = points.min(axis=1), np.ptp(points, axis=1)
    share = rng.uniform(0.3, 0.8, people)
    crowd = rng.random(people) < 0.02
    annotations = []
    for i in range(people):
        numbers = np.c_[np.round(points[i]) * (seen[i] > 0)[:, None], seen[i]].astype(int)
        annotations.append(
            {
                "id": i + 1,
                "image_id": int(image[i]),
                "category_id": 1,
                "keypoints": numbers.ravel().tolist(),
                "num_keypoints": int((seen[i] > 0).sum()),
                "bbox": np.round([*low[i], *size[i]], 2).tolist(),
                "area": round(float(size[i].prod() * share[i]), 4),
                "iscrowd": int(crowd[i]),
            }
        )
    predicted = []
    for i in range(people):
        spread = height[i] * rng.exponential(0.03)
        near = points[i] + rng.normal(0, spread, (17, 2))
        far = rng.uniform(0, [560, 400]) + pose * rng.uniform(30, 400)
        good = float(np.clip(rng.normal(0.7, 0.2), 0.01, 1))
        for guess, score in ((near, good), (far, float(rng.uniform(0, 0.6)))):
            numbers = np.c_[np.round(guess, 3), np.ones(17)].ravel().tolist()
            predicted.append(
                {
                    "image_id": int(image[i]),
                    "category_id": 1,
                    "keypoints": numbers,
                    "score": round(score, 4),
                }
            )
    images = [{"id": i, "width": 640, "height": 480} for i in range(1, n_images + 1)]
    document = {
        "images": images,
        "annotations": annotations,
        "categories": [{"id": 1, "name": "person"}],
    }
    (folder / "people.json").write_text(json.dumps(document))
    (folder / "found.json").write_text(json.dumps(predicted))


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--people", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--data", default=os.path.join(tempfile.gettempdir(), "keypoint-set"))
    given = parser.parse_args()
    folder = Path(given.data) / str(given.people)
    make(folder, given.people)
    commands = {
        "evalengine, 1 thread": [sys.executable, "-c", OURS, folder, "1"],
        "evalengine, 2 threads": [sys.executable, "-c", OURS, folder, "2"],
        **{
            name: [given.peers_python, "-c", THEIRS, folder, *modules]
            for name, modules in PEERS.items()
        },
        "reading alone, json": [sys.executable, "-c", READING.format("loads"), folder, "json"],
        "reading alone, msgspec": [
            sys.executable,
            "-c",
            READING.format("decode"),
            folder,
            "msgspec.json",
        ],
    }
    done = in_turn(commands, given.runs)
    print_costs(done, "AP", lambda said: said.strip("[]").split(",")[0])
    numbers = {name: runs[-1].output.strip() for name, runs in done.items()}
    print("\n" + "\n".join(f"{name}: {said}" for name, said in numbers.items() if said))


if __name__ == "__main__":
    main()
