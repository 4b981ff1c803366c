"""Cost per row of runs in bounded memory, which ``evalengine explain --rows`` extrapolates.

    python benchmarks/slopes.py --folder /mnt/large --write
    python benchmarks/slopes.py --folder /mnt/large --only retrieval

Two spawned workers score every work at two sizes; the slopes are the differences. CPU is of the
first process and of the workers. Scratch is the largest size of the scratch folder, which is
polled. ``--write`` replaces the works that ran in ``engine/outofcore/slopes.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import threading
import time
from pathlib import Path
from typing import Any

import measuring
import scale

FILE = measuring.HERE.parent / "engine/outofcore/slopes.json"
WORKERS = 2
LIMIT = "2GiB"
WORKS: dict[str, tuple[str, list[str], int]] = {
    "detection": ("detection", [], 800_000),
    "detection-map": ("detection", ["mAP"], 800_000),
    "classification": ("classification", [], 2_000_000),
    "classification-hard": ("classification", ["Accuracy", "F1"], 2_000_000),
    "classification-auc": ("classification", ["ROCAUC"], 2_000_000),
    "retrieval": ("retrieval", [], 60_000),
    "retrieval-ndcg": ("retrieval", ["nDCG"], 60_000),
    "regression": ("regression", ["MAE", "RMSE", "R2"], 6_000_000),
    "values": ("values", [], 1_500_000),
    "preferences": ("preferences", [], 3_000_000),
    "spans": ("spans", ["F1"], 400_000),
    "tracking": ("tracking", [], 2_000),
    "text-rouge": ("text", ["ROUGE1", "ROUGEL", "BLEU"], 300_000),
    "text-chrf": ("text", ["chrF", "TER"], 100_000),
    "judged": ("judged", [], 200_000),
    "segmentation": ("segmentation", [], 3_000),
}
"""Name -> task, metrics (None for the default), datums of the larger run."""


def run(folder: Path, name: str, datums: int) -> dict[str, Any]:
    """Run once in this process; return the cost of this process and of the workers."""
    import evalengine as ee
    from evalengine.evaluation import planner
    from evalengine.executors.pools import InTurn
    from evalengine.ingest.opening import Tables, open_inputs
    from evalengine.outofcore.driver import plan_buckets
    from evalengine.schemas.option_values import make_options

    task, metrics, _ = WORKS[name]
    paths = [str(scale.table_file(folder, task, side, datums)) for side in scale.sides_of(task)]
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    given = {"task": task, "metrics": metrics or None, "memory_limit": LIMIT}
    options = make_options(None, **given)
    plan = planner.make_plan(options, task)
    inputs = open_inputs(Tables(*paths), options)
    bucket_plan, reason = plan_buckets(plan, inputs, options, InTurn(1), single=True)
    assert bucket_plan is not None, reason
    peak, tally, watching, over = 0, 0, 0.0, threading.Event()

    def look() -> None:
        nonlocal peak, tally, watching
        while not over.wait(0.02):
            unnamed = measuring.unnamed_size(os.getpid())
            peak = max(peak, measuring.folder_size(scratch) + unnamed)
            tally = max(tally, measuring.folder_size(scratch, "buckets") + unnamed)
        watching = time.thread_time()

    watcher = threading.Thread(target=look)
    watcher.start()
    card = ee.score(*paths, **given, executor="processes", threads=WORKERS, scratch=str(scratch))
    over.set()
    watcher.join()
    own, theirs = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    info = card.run
    rows = sum(one["rows"] for one in info["inputs"].values())
    return {
        "rows": rows,
        "needs": sorted(plan.needs),
        "cpu_first": own.ru_utime + own.ru_stime - watching,
        "cpu_workers": theirs.ru_utime + theirs.ru_stime,
        "held": bucket_plan.sizes.held,
        "scratch": peak,
        "tally": tally,
        "reserved": bucket_plan.sizes.scratch,
        "buckets": info["buckets"],
        "evalengine": ee.__version__,
    }


def measure(folder: Path, name: str) -> tuple[dict[str, Any], str]:
    """Return the slopes of one work."""
    task, metrics, most = WORKS[name]
    runs = []
    for datums in (most // 4, most // 4, most):  # the first one also compiles
        if not scale.table_file(folder, task, scale.sides_of(task)[0], datums).exists():
            scale.make(folder, task, datums)
        child = [sys.executable, __file__, "--folder", folder, "--child", f"{name}:{datums}"]
        runs.append(json.loads(measuring.spawn(child).output))
        print(name, json.dumps(runs[-1]), file=sys.stderr, flush=True)
    _, few, many = runs
    rows = many["rows"] - few["rows"]

    def slope(key: str, scale: float = 1.0) -> float:
        return max(0.0, round(scale * (many[key] - few[key]) / rows, 4))

    first, workers = slope("cpu_first", 1e6), slope("cpu_workers", 1e6)
    spent = few["cpu_first"] + few["cpu_workers"] / WORKERS
    start = spent - few["rows"] / 1e6 * (first + workers / WORKERS)
    result = {
        "task": task,
        "metrics": metrics,
        "needs": many["needs"],
        "rows": many["rows"],
        "start": round(max(0.0, start), 1),
        "cpu_first": first,
        "cpu_workers": workers,
        "held": round(many["held"] / many["rows"], 1),
        "scratch": round(many["scratch"] / many["rows"], 1),
        "tally": round(many["tally"] / many["rows"], 1),
        "reserved": round(many["reserved"] / many["rows"], 1),
    }
    return result, many["evalengine"]


def main() -> int:
    """Measure, print, and replace the recorded slopes if requested."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("/tmp/evalengine-scale"))
    parser.add_argument("--only", nargs="+", choices=list(WORKS), default=list(WORKS))
    parser.add_argument("--write", action="store_true", help=f"update {FILE.name}")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, datums = options.child.split(":")
        print(json.dumps(run(options.folder, name, int(datums))))
        return 0
    options.folder.mkdir(parents=True, exist_ok=True)
    machine = measuring.machine()
    stored = json.loads(FILE.read_text()) if FILE.exists() else {"runs": []}
    for name in options.only:
        result, version = measure(options.folder, name)
        print(json.dumps(result), flush=True)
        others = [
            one
            for one in stored["runs"]
            if (one["task"], one["metrics"]) != (result["task"], result["metrics"])
        ]
        stored = {
            "machine": f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}, Python"
            f" {machine['python']}",
            "measured": time.strftime("%Y-%m-%d"),
            "evalengine": version,
            "runs": [*others, result],
        }
        if options.write:
            FILE.write_text(json.dumps(stored, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
