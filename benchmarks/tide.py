"""Time the types of detection errors against tidecv, side by side, in new processes.

    python benchmarks/tide.py --peers-python PEERS/bin/python [--size small] [--runs 3]

PEERS is an environment with tidecv 1.0.1 and NumPy below 2.3. The set is that of detection_data.py:
`small` has 5,000 images, 80 classes and 250,000 detections. evalengine runs mAP without and with
TIDE and TIDECounts, by its own rules and by dialect tidecv: the difference is the cost of the
errors. CPU in process is from files to costs; for evalengine, of a second run with everything
loaded. The other figures are of complete processes. Medians of several runs, contenders in turn.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))

from measuring import costs_of, in_turn

OURS = """
import json, sys, time, evalengine as ee
_, folder, dialect, metrics = sys.argv
for _ in range(2):  # the second is timed, with everything loaded
    ready = time.process_time()
    card = ee.score(f"{folder}/predictions.parquet", f"{folder}/groundtruths.parquet", threads=1,
                    dialect=dialect, metrics=metrics.split(","), iou_thresholds=[0.5])
    rows = card.metrics.to_dicts()
    inside = time.process_time() - ready
costs = [row["value"] for row in rows if row["metric"] == "TIDE" and row["label_value"] is None]
print(json.dumps([inside, [round(x, 4) for x in costs[:6]]]))
"""
THEIRS = """
import contextlib, io, json, sys, time
from tidecv import TIDE, Data, datasets
ready = time.process_time()
with contextlib.redirect_stdout(io.StringIO()):
    truths = Data("truth")  # datasets.COCO() asks for masks
    read = json.load(open(sys.argv[1] + "/gt.json"))
    for image in read["images"]:
        truths.add_image(image["id"], image["file_name"])
    for label in read["categories"]:
        truths.add_class(label["id"], label["name"])
    for row in read["annotations"]:
        add = truths.add_ignore_region if row["iscrowd"] else truths.add_ground_truth
        add(row["image_id"], row["category_id"], row["bbox"])
    found = datasets.COCOResult(sys.argv[1] + "/dt.json")
    tide = TIDE()
    run = tide.evaluate(truths, found, mode=TIDE.BOX)
    costs = run.fix_main_errors()
inside = time.process_time() - ready
print(json.dumps([inside, [round(float(x), 4) for x in costs.values()]]))
"""


def main() -> None:
    """Measure and print a table."""
    from detection_data import DATA, SIZES, make

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--size", choices=[*SIZES], default="small")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--data", type=Path, default=DATA)
    given = parser.parse_args()
    folder = make(given.size, given.data)
    ours = [sys.executable, "-c", OURS, folder]
    commands = {
        "evalengine, mAP alone": [*ours, "standard", "mAP"],
        "evalengine, with errors": [*ours, "standard", "mAP,TIDE,TIDECounts"],
        "evalengine, dialect tidecv": [*ours, "tidecv", "TIDEAP,TIDE,TIDECounts"],
        "tidecv": [given.peers_python, "-c", THEIRS, folder],
    }
    done = in_turn(commands, given.runs)
    print(
        "| | CPU s in process | CPU s | wall s | peak MB | costs |\n|---|---:|---:|---:|---:|---|"
    )
    for name, runs in done.items():
        cpu, wall, peak = costs_of(runs)
        answers = [json.loads(run.output.splitlines()[-1]) for run in runs]
        inside = statistics.median(answer[0] for answer in answers)
        costs = ", ".join(map(str, answers[0][1]))
        print(f"| {name} | {inside:.3f} | {cpu:.2f} | {wall:.2f} | {peak:.0f} | {costs} |")


if __name__ == "__main__":
    main()
