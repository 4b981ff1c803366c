"""Time panoptic quality against panopticapi, side by side, in new processes.

    python benchmarks/panoptic.py --panopticapi CHECKOUT [--peers-python PYTHON] [--pairs 1000]

CHECKOUT is a clone of github.com/cocodataset/panopticapi, PYTHON an interpreter with NumPy and
Pillow. The pairs are 640 x 480 images with 8 to 30 segments, with irregular outlines like those of
people; the predictions are the truths shifted, with a tenth of the segments merged or renamed. For
comparison, readers decode all images without evaluation. CPU and wall seconds are of complete
processes, including imports; medians of several runs, contenders in turn.
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

HEIGHT, WIDTH, CATEGORIES = 480, 640, 20

OURS = """
import sys, evalengine as ee
card = ee.score(sys.argv[1] + "/pred.json", sys.argv[1] + "/gt.json", dialect="coco",
                threads=int(sys.argv[2]))
print([card.value(name) for name in ("PQ", "SQ", "RQ")])
"""
THEIRS = """
import contextlib, io, json, sys
sys.path.insert(0, sys.argv[2])
from panopticapi.evaluation import pq_compute_single_core
folder = sys.argv[1]
gt, pred = (json.load(open(f"{folder}/{side}.json")) for side in ("gt", "pred"))
found = {one["image_id"]: one for one in pred["annotations"]}
pairs = [(one, found[one["image_id"]]) for one in gt["annotations"]]
categories = {one["id"]: one for one in gt["categories"]}
with contextlib.redirect_stdout(io.StringIO()):
    stat = pq_compute_single_core(0, pairs, f"{folder}/gt", f"{folder}/pred", categories)
whole, _ = stat.pq_average(categories, isthing=None)
print([float(whole[name]) for name in ("pq", "sq", "rq")])
"""
PILLOW = """
import glob, sys, numpy as np, PIL.Image
print(sum(int(np.asarray(PIL.Image.open(path))[0, 0, 0])
          for path in sorted(glob.glob(sys.argv[1] + "/*/*.png"))))
"""
GDAL = """
import glob, sys, warnings, rasterio
warnings.simplefilter("ignore")
total = 0
for path in sorted(glob.glob(sys.argv[1] + "/*/*.png")):
    with rasterio.open(path) as file:
        total += int(file.read()[0, 0, 0])
print(total)
"""


def make(folder: Path, pairs: int, seed: int = 1) -> None:
    """Write the set, unless it exists."""
    import numpy as np
    import rasterio

    if (folder / "pred.json").exists():
        return
    rng = np.random.default_rng(seed)
    kind = {"driver": "PNG", "height": HEIGHT, "width": WIDTH, "count": 3, "dtype": "uint8"}
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    sides: dict[str, list[object]] = {"gt": [], "pred": []}
    for image in range(pairs):
        truth = np.zeros((HEIGHT, WIDTH), np.int64)
        ids = rng.choice((1 << 24) - 1, int(rng.integers(8, 30)), replace=False) + 1
        for one in ids:
            wave = 1 + 0.2 * np.sin(rng.uniform(2, 9) * np.arctan2(y - 240, x - 320))
            cy, cx, ry, rx = rng.uniform((0, 0, 20, 20), (HEIGHT, WIDTH, 160, 200))
            ragged = rng.normal(0, 0.03, (HEIGHT // 8, WIDTH // 8)).repeat(8, 0).repeat(8, 1)
            truth[((y - cy) / ry) ** 2 + ((x - cx) / rx) ** 2 < wave + ragged] = one
        predicted = np.roll(truth, rng.integers(-6, 7, 2), (0, 1))
        ids = np.unique(truth[truth > 0])
        label = {int(one): int(rng.integers(1, CATEGORIES + 1)) for one in ids}
        for one in rng.choice(ids, max(1, ids.size // 10), replace=False):
            predicted[predicted == one] = rng.choice(ids)
        for side, pixels in (("gt", truth), ("pred", predicted)):
            here, area = np.unique(pixels[pixels > 0], return_counts=True)
            infos = [
                {"id": int(one), "category_id": label[int(one)], "area": int(n), "iscrowd": 0}
                for one, n in zip(here, area, strict=True)
            ]
            name = f"{image:05}.png"
            sides[side].append({"image_id": image, "file_name": name, "segments_info": infos})
            (folder / side).mkdir(parents=True, exist_ok=True)
            colours = np.stack([pixels % 256, pixels // 256 % 256, pixels // 65536])
            with rasterio.open(folder / side / name, "w", **kind) as file:
                file.write(colours.astype(np.uint8))
    categories = [{"id": i, "name": str(i), "isthing": i % 2} for i in range(1, CATEGORIES + 1)]
    images = [
        {"id": i, "file_name": f"{i:05}.png", "height": HEIGHT, "width": WIDTH}
        for i in range(pairs)
    ]
    for side, segments in sides.items():
        (folder / f"{side}.json").write_text(
            json.dumps({"annotations": segments, "categories": categories, "images": images})
        )


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--panopticapi", required=True, help="a checkout")
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--data", default=os.path.join(tempfile.gettempdir(), "panoptic-set"))
    given = parser.parse_args()
    folder = Path(given.data) / str(given.pairs)
    make(folder, given.pairs)
    peers = given.peers_python
    commands = {
        "evalengine, 1 thread": [sys.executable, "-c", OURS, folder, "1"],
        "evalengine, 2 threads": [sys.executable, "-c", OURS, folder, "2"],
        "panopticapi, 1 core": [peers, "-c", THEIRS, folder, given.panopticapi],
        "reading alone, Pillow": [peers, "-c", PILLOW, folder],
        "reading alone, GDAL": [sys.executable, "-c", GDAL, folder],
    }
    done = in_turn(commands, given.runs)
    print_costs(done, "numbers")


if __name__ == "__main__":
    main()
