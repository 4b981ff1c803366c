"""Time KITTI's evaluation of 2-D boxes against its common port for detectors.

    python benchmarks/kitti.py [--port EVAL] [--images 3769]

EVAL is ``eval.py`` of OpenPCDet's ``kitti_object_eval_python``, which Numba compiles; without a GPU
only its 2-D boxes run. The set has as many images as the validation set, with 10 objects and 20
detections each, as KITTI's text files. Seconds are of complete processes, including imports and
files. The port compiles in every process; a run on one image shows that share. Medians of several
runs, in turn.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))

from measuring import in_turn, print_costs

NAMES = ("Car", "Pedestrian", "Cyclist", "Van", "DontCare")
OURS = """
import sys, evalengine as ee
folder, threads = sys.argv[1], int(sys.argv[2])
made = ee.score(folder + "/found", folder + "/truth", dialect="kitti", threads=threads).to_kitti()
print(f"{made['Car_image/moderate_R40']:.6f}")
"""
PORT = """
import importlib.util, sys, types, warnings
from pathlib import Path
import numpy as np
warnings.filterwarnings("ignore")
sys.modules["rotate_iou"] = types.SimpleNamespace(rotate_iou_gpu_eval=None)  # boxes in space alone
text = Path(sys.argv[2]).read_text().replace("from .rotate_iou", "from rotate_iou")
(Path(sys.argv[1]) / "kitti_port.py").write_text(text)
sys.path.insert(0, sys.argv[1])
import kitti_port as port

def annotations(folder):
    every = []
    for file in sorted(Path(folder).glob("*.txt"))[: int(sys.argv[3])]:
        lines = [line.split() for line in file.read_text().splitlines()]
        numbers = np.array([line[1:] for line in lines], float).reshape(len(lines), -1)
        one = {"name": np.array([line[0] for line in lines]), "truncated": numbers[:, 0],
               "occluded": numbers[:, 1], "alpha": numbers[:, 2], "bbox": numbers[:, 3:7]}
        every.append(one | ({"score": numbers[:, 14]} if numbers.shape[1] > 14 else {}))
    return every

sides = [annotations(f"{sys.argv[1]}/{side}") for side in ("truth", "found")]
ious = np.array([[[0.7, 0.5, 0.5]] * 3])
made = port.eval_class(*sides, [0, 1, 2], [0, 1, 2], 0, ious, compute_aos=True)
print(f"{made['precision'][0, 1, 0, 1:].mean() * 100:.6f}")
"""


def make_set(folder: Path, n_images: int) -> None:
    """Write both sides as KITTI's text files."""
    import numpy as np

    rng = np.random.default_rng(1)
    for side in ("truth", "found"):
        (folder / side).mkdir()
    space = "1.5 1.6 3.9 1 1 9 0"
    for image in range(n_images):
        corner, extent = rng.uniform(0, [1100, 250], (10, 2)), rng.uniform(20, 150, (10, 2))
        name = rng.choice(NAMES, 10, p=[0.6, 0.15, 0.1, 0.1, 0.05])
        lines = [
            f"{name[i]} {rng.choice([0, 0.2]):.2f} {rng.integers(0, 3)} {rng.uniform(-3, 3):.2f}"
            f" {_box(corner[i], extent[i])} {space}"
            for i in range(10)
        ]
        (folder / "truth" / f"{image:06}.txt").write_text("\n".join(lines) + "\n")
        lines = []
        for i in range(20):
            near = rng.random() < 0.6
            at = corner[i % 10] + rng.normal(0, 2, 2) if near else rng.uniform(0, [1100, 250])
            size = extent[i % 10] * rng.uniform(0.9, 1.1, 2)
            score = min(1.0, rng.random() * 0.6 + 0.4 * near)
            label = "Car" if name[i % 10] in NAMES[3:] else name[i % 10]
            lines.append(f"{label} -1 -1 {rng.uniform(-3, 3):.2f} {_box(at, size)} {space} {score}")
        (folder / "found" / f"{image:06}.txt").write_text("\n".join(lines) + "\n")


def _box(corner, extent) -> str:  # type: ignore[no-untyped-def]
    return " ".join(f"{value:.2f}" for value in (*corner, *(corner + extent)))


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port")
    parser.add_argument("--images", type=int, default=3769)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        make_set(folder, given.images)
        commands = {
            f"evalengine, {n} threads": [sys.executable, "-c", OURS, folder, str(n)] for n in (1, 2)
        }
        if given.port:
            for message, n in (("OpenPCDet's port", given.images), ("the same, one image", 1)):
                commands[message] = [sys.executable, "-c", PORT, folder, given.port, str(n)]
        done = in_turn(commands, given.runs)
    print_costs(done, "AP of cars, moderate")


if __name__ == "__main__":
    main()
