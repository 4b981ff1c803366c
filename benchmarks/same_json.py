"""Time COCO's and LVIS's numbers from the same JSON files, in process, one thread each.

    python benchmarks/same_json.py --peers-python PEERS/bin/python [--rounds 3] [WORK ...]

PEERS is an environment with hotcoco and ultrafast-pycocotools. Each measurement is a new process
that computes the numbers twice, so that imports are done and kernels are compiled, and times the
third call from files to numbers. Contenders take turns. The median of the runs is one figure; the
table has the lowest and the highest of all rounds. The run fails if the numbers differ.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))

import keypoints
import lvis
from measuring import spawn

ONE_THREAD = dict.fromkeys(("POLARS_MAX_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS"), "1")
TIMED = """
import json, os, resource, sys
truth, found, kind = sys.argv[1:4]
null, output = os.open(os.devnull, os.O_WRONLY), os.dup(1)  # some print from compiled code
os.dup2(null, 1)
def seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
{call}
for _ in range(3):
    start = seconds()
    numbers = call()
    took = seconds() - start
sys.stdout.flush()
os.dup2(output, 1)
print(json.dumps([took, [round(float(x), 12) for x in numbers]]))
"""
OURS = """
import evalengine as ee
metrics = ["mAP"] if kind == "lvis" else None
geometry = "keypoints" if kind == "keypoints" else None
dialect = "lvis" if kind == "lvis" else "coco"
def call():
    card = ee.score(found, truth, dialect=dialect, metrics=metrics, iou_type=geometry, threads=1)
    return sorted(card.to_lvis()["stats"]) if kind == "lvis" else card.to_coco()["stats"]
"""
HOTCOCO = """
from hotcoco import COCO, COCOeval, LVISeval
def call():
    objects = COCO(truth)
    results = objects.load_res(found)
    if kind == "lvis":
        run = LVISeval(objects, results, "bbox")
        run.run()
        return sorted(run.get_results().values())  # in another order
    run = COCOeval(objects, results, kind)
    run.evaluate()
    run.accumulate()
    run.summarize()
    return run.stats
"""
ULTRAFAST = """
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
def call():
    objects = COCO(truth)
    run = COCOeval(objects, objects.loadRes(found), kind)
    run.evaluate()
    run.accumulate()
    run.summarize()
    return run.stats
"""
PEERS = {
    "hotcoco": HOTCOCO,
    "ultrafast-pycocotools": ULTRAFAST.replace("pycocotools.", "ultrafast_pycocotools."),
}
WORKS = {
    "boxes": ("bbox", ["hotcoco", "ultrafast-pycocotools"]),
    "lvis": ("lvis", ["hotcoco"]),
    "keypoints": ("keypoints", ["hotcoco"]),
}
"""Work -> kind of evaluation, and the peers that can do it."""


def files_of(work: str, folder: Path) -> tuple[Path, Path]:
    """Make the files of a work, unless they exist: ground truths and results."""
    from detection_data import make

    if work == "keypoints":
        keypoints.make(folder / work, 50_000)
        return folder / work / "people.json", folder / work / "found.json"
    if work == "lvis":
        lvis.make(folder / work, 2_000)
        return folder / work / "gt.json", folder / work / "dt.json"
    made = make("small", folder)
    return made / "gt.json", made / "dt.json"


def medians(
    commands: dict[str, Sequence[str | Path]], runs: int
) -> tuple[dict[str, float], list[list[float]]]:
    """Median CPU seconds of each contender, and the numbers of all, which take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    numbers: list[list[float]] = []
    for _ in range(runs):
        for name, command in commands.items():
            took, values = json.loads(spawn(command, ONE_THREAD).output)
            seconds[name].append(took)
            numbers += [values] if values not in numbers else []
    return {name: statistics.median(several) for name, several in seconds.items()}, numbers


def main() -> None:
    """Measure the works and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("works", nargs="*", default=[*WORKS], metavar="WORK", help=", ".join(WORKS))
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", default=os.path.join(tempfile.gettempdir(), "same-json"))
    given = parser.parse_args()
    print("| work | best peer | its CPU s | ours | ratio | ratios |\n|---|---|---:|---:|---:|---|")
    for work in given.works:
        kind, peers = WORKS[work]
        files = files_of(work, Path(given.data))
        command = [given.peers_python, "-P", "-c"]
        commands: dict[str, Sequence[str | Path]] = {
            "evalengine": [sys.executable, "-P", "-c", TIMED.format(call=OURS), *files, kind]
        }
        for peer in peers:
            commands[peer] = [*command, TIMED.format(call=PEERS[peer]), *files, kind]
        rounds = [medians(commands, given.runs) for _ in range(given.rounds)]
        differing = [one for _, numbers in rounds for one in numbers]
        if any(one != differing[0] for one in differing):
            raise SystemExit(f"{work}: the numbers differ: {differing}")
        costs = [cost for cost, _ in rounds]
        best = min(peers, key=lambda peer: statistics.median(cost[peer] for cost in costs))
        ratios = sorted(cost["evalengine"] / cost[best] for cost in costs)
        theirs, ours = (sorted(cost[name] for cost in costs) for name in (best, "evalengine"))
        print(
            f"| {work} | {best} | {theirs[0]:.2f} to {theirs[-1]:.2f} | {ours[0]:.2f} to"
            f" {ours[-1]:.2f} | {ratios[0]:.2f} to {ratios[-1]:.2f} |"
            f" {', '.join(f'{ratio:.2f}' for ratio in ratios)} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
