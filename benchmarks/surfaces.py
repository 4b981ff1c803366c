"""Time HD95 of masks against other packages, side by side, in new processes.

    python benchmarks/surfaces.py [--peers-python PYTHON] [--pairs 200] [--runs 5]

PYTHON is an interpreter with MONAI, medpy and surface-distance (mikan-rs 0.1.4 panics on images,
which are one layer to it). Pairs are masks of 512 x 512 with irregular borders, of a tenth to a
half of the image; the prediction is the truth shifted by up to five pixels, with another border.
Arrays of bytes are in memory, and everything is imported and has scored three pairs before the
clock starts: seconds are those of the pairs only, peak memory is of the complete process. Medians
of several runs, contenders in turn.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))

from measuring import Process, spawn

SIDE = 512

TIMED = """
import json, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
truth, found = np.load(sys.argv[1]), np.load(sys.argv[2])
{code}
mean_hd95(found[:3], truth[:3])
start, wall = time.process_time(), time.perf_counter()
value = mean_hd95(found, truth)
print(json.dumps([time.process_time() - start, time.perf_counter() - wall, float(value)]))
"""
OURS = """
import evalengine as ee
def mean_hd95(found, truth):
    return ee.score(found, truth, background=0, metrics=["HD95"], threads={threads},
                    dialect="{dialect}").value("HD95", label_value=1)
"""
EACH = """
def mean_hd95(found, truth):
    return np.mean([one(*pair) for pair in zip(found.astype(bool), truth.astype(bool))])
"""
MONAI = """
import torch
from monai.metrics import compute_hausdorff_distance
def one(found, truth):
    sides = (torch.from_numpy(side)[None, None] for side in (found, truth))
    return float(compute_hausdorff_distance(*sides, include_background=True, percentile=95))
"""
MEDPY = """
from medpy.metric.binary import hd95 as one
"""
DEEPMIND = """
import scipy.ndimage
np.Inf = np.inf
if not hasattr(scipy.ndimage, "filters"):
    scipy.ndimage.filters = scipy.ndimage.morphology = scipy.ndimage
import surface_distance
def one(found, truth):
    apart = surface_distance.compute_surface_distances(truth, found, (1, 1))
    return surface_distance.compute_robust_hausdorff(apart, 95)
"""


def make(folder: Path, pairs: int) -> list[Path]:
    """Write truth.npy and found.npy, uint8 [n, 512, 512], unless they exist."""
    import numpy as np

    paths = [folder / f"{side}-{pairs}.npy" for side in ("truth", "found")]
    if all(path.exists() for path in paths):
        return paths
    rng = np.random.default_rng(1)
    y, x = np.mgrid[:SIDE, :SIDE]

    def blob(centre: Any, radii: Any, waves: Any) -> Any:
        angle = np.arctan2(y - centre[0], x - centre[1])
        edge = (
            1
            + 0.15 * np.sin(waves * angle)
            + rng.normal(0, 0.02, (64, 64)).repeat(8, 0).repeat(8, 1)
        )
        return ((y - centre[0]) / radii[0]) ** 2 + ((x - centre[1]) / radii[1]) ** 2 < edge

    sides: list[list[Any]] = [[], []]
    for _ in range(pairs):
        centre, radii = rng.uniform(200, 312, 2), rng.uniform(90, 200, 2)
        waves = rng.integers(2, 9)
        sides[0].append(blob(centre, radii, waves))
        sides[1].append(blob(centre + rng.uniform(-5, 5, 2), radii, waves))
    folder.mkdir(parents=True, exist_ok=True)
    for path, masks in zip(paths, sides, strict=True):
        np.save(path, np.array(masks, np.uint8))
    return paths


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--data", default=Path(tempfile.gettempdir()) / "surfaces-set", type=Path)
    given = parser.parse_args()
    paths = make(given.data, given.pairs)
    contenders = {
        "**evalengine**, 1 thread": (sys.executable, OURS.format(threads=1, dialect="standard")),
        "**evalengine**, 2 threads": (sys.executable, OURS.format(threads=2, dialect="standard")),
        "**evalengine**, `medpy`, 1 thread": (
            sys.executable,
            OURS.format(threads=1, dialect="medpy"),
        ),
        "MONAI": (given.peers_python, MONAI + EACH),
        "medpy": (given.peers_python, MEDPY + EACH),
        "surface-distance": (given.peers_python, DEEPMIND + EACH),
    }
    done: dict[str, list[tuple[Process, list[float]]]] = {name: [] for name in contenders}
    for _ in range(given.runs):
        for name, (python, code) in contenders.items():
            process = spawn([python, "-c", TIMED.format(code=code), *paths])
            done[name].append((process, json.loads(process.output)))
    print("| | CPU s | wall s | peak MB | mean HD95 |\n| --- | ---: | ---: | ---: | ---: |")
    for name, runs in done.items():
        cpu, wall = (statistics.median(inside[place] for _, inside in runs) for place in (0, 1))
        peak = statistics.median(process.peak_mb for process, _ in runs)
        print(f"| {name} | {cpu:.3f} | {wall:.3f} | {peak:.0f} | {runs[0][1][2]:.9f} |")


if __name__ == "__main__":
    main()
