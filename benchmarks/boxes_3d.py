"""Time nuScenes' evaluation of detections against nuscenes-devkit, in new processes.

    python benchmarks/boxes_3d.py [--peers-python PYTHON] [--samples 400]

PYTHON is an interpreter with nuscenes-devkit. The functions of its ``detection.algo`` are called on
files of results and ground truths in the same format, because its command needs the data set. There
are 40 ground truths and 80 detections per sample in ten labels, all within range. Seconds are of
complete processes, including imports and files; medians of several runs, contenders in turn.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))

from measuring import in_turn, print_costs

NAMES = ("car", "truck", "bus", "trailer", "construction_vehicle", "pedestrian", "motorcycle",
         "bicycle", "traffic_cone", "barrier")  # fmt: skip
OURS = """
import sys, evalengine as ee
folder, threads = sys.argv[1], int(sys.argv[2])
card = ee.score(folder + "/found.json", folder + "/truth.json", dialect="nuscenes",
                iou_type="distance", threads=threads)
print(round(card.value("NDS"), 10))
"""
DEVKIT = """
import json, os, sys, types
sys.modules["cv2"] = types.ModuleType("cv2")  # which the evaluation does not use
import nuscenes
from nuscenes.eval.common.loaders import EvalBoxes
from nuscenes.eval.detection.algo import accumulate, calc_ap, calc_tp
from nuscenes.eval.detection.constants import TP_METRICS
from nuscenes.eval.detection.data_classes import DetectionBox, DetectionConfig, DetectionMetrics
home = os.path.dirname(nuscenes.__file__)
cfg = DetectionConfig.deserialize(
    json.load(open(home + "/eval/detection/configs/detection_cvpr_2019.json")))
found, truth = (
    EvalBoxes.deserialize(json.load(open(f"{sys.argv[1]}/{side}.json"))["results"], DetectionBox)
    for side in ("found", "truth"))
metrics = DetectionMetrics(cfg)
none = {"traffic_cone": {"attr_err", "vel_err", "orient_err"}, "barrier": {"attr_err", "vel_err"}}
for name in cfg.class_names:
    for away in cfg.dist_ths:
        made = accumulate(truth, found, name, cfg.dist_fcn_callable, away)
        metrics.add_label_ap(name, away, calc_ap(made, cfg.min_recall, cfg.min_precision))
        if away == cfg.dist_th_tp:
            for one in TP_METRICS:
                value = float("nan")
                if one not in none.get(name, ()):
                    value = calc_tp(made, cfg.min_recall, one)
                metrics.add_label_tp(name, one, value)
print(round(metrics.nd_score, 10))
"""


def make_set(folder: Path, n_samples: int) -> None:
    """Write both sides in nuScenes' format."""
    import numpy as np

    rng = np.random.default_rng(1)
    truth, predicted = {}, {}
    for sample in range(n_samples):
        n = 40
        xy, yaw = rng.uniform(-45, 45, (n, 2)), rng.uniform(-3, 3, n)
        size, name = rng.uniform(0.5, 5, (n, 3)), rng.choice(NAMES, n)
        speed = rng.normal(size=(n, 2))
        truth[f"s{sample}"] = _boxes(sample, xy, yaw, size, name, speed, None)
        twice = np.r_[np.arange(n), np.arange(n)]
        many = 2 * n
        near = rng.random(many) < 0.6
        far = rng.uniform(-40, 40, (many, 2))
        away = np.where(near[:, None], rng.normal(0, 0.7, (many, 2)), far)
        score = np.clip(rng.random(many) * 0.6 + 0.4 * near, 0, 1)
        predicted[f"s{sample}"] = _boxes(
            sample, xy[twice] + away, yaw[twice] + rng.normal(0, 0.2, many),
            size[twice] * rng.uniform(0.8, 1.2, (many, 3)), name[twice],
            speed[twice] + rng.normal(0, 0.3, (many, 2)), score,
        )  # fmt: skip
    for side, boxes in (("truth", truth), ("found", predicted)):
        (folder / f"{side}.json").write_text(json.dumps({"meta": {}, "results": boxes}))


def _boxes(sample, xy, yaw, size, name, speed, score):  # type: ignore[no-untyped-def]
    import numpy as np

    return [
        {
            "sample_token": f"s{sample}", "translation": [*map(float, xy[i]), 1.0],
            "size": [*map(float, size[i])], "detection_name": str(name[i]),
            "rotation": [float(np.cos(yaw[i] / 2)), 0.0, 0.0, float(np.sin(yaw[i] / 2))],
            "velocity": [*map(float, speed[i])], "attribute_name": "vehicle.moving",
            "detection_score": -1.0 if score is None else float(score[i]),
            "num_pts": 5 if score is None else -1, "ego_translation": [5.0, 0.0, 0.0],
        }
        for i in range(len(yaw))
    ]  # fmt: skip


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        make_set(folder, given.samples)
        commands = {
            "evalengine, 1 thread": [sys.executable, "-c", OURS, folder, "1"],
            "evalengine, 2 threads": [sys.executable, "-c", OURS, folder, "2"],
            "nuscenes-devkit": [given.peers_python, "-W", "ignore", "-c", DEVKIT, folder],
        }
        done = in_turn(commands, given.runs)
    print_costs(done, "NDS")


if __name__ == "__main__":
    main()
