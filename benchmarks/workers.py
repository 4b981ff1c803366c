"""One worker against two: the same run in bounded memory, by spawned processes or on Dask.

    python benchmarks/workers.py --images 1e6 --folder /mnt/large --write-docs
    python benchmarks/workers.py --task text --images 2e5 --folder /mnt/large --write-docs

Detections are those of scale.py, with a low cost per row: the gain of two workers depends on the
work that cannot be shared. Texts are the pairs of text_data.py with metrics of a high cost per row;
``--images`` is the number of pairs. Every run is a new process; runs with one and two workers take
turns. Wall seconds of each step are those of the first process; CPU seconds are those of the first
process and, separately, of its workers. On a shared machine, CPU shows the possible gain of two
workers: the work of the first process is not halved.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import measuring
import reporting
import scale

NAMES = {"detection": "workers", "text": "workers-text"}
"""Task -> its section of docs/benchmarks/."""
METRICS = {"detection": None, "text": ["ROUGE1", "ROUGE2", "ROUGEL", "chrF", "TER"]}
ABOUT = {
    "detection": "Detections and ground truths of {images:,} generated images",
    "text": "{images:,} pairs of generated texts of 60 words, ROUGE-1, -2 and -L, chrF and TER",
}
GOAL = 0.6
STEPS = ("read and dealt out", "tallied by workers", "merged and summarised")
_BEGINNINGS = {"matching": STEPS[0], "merging": STEPS[1]}


def tables(options: argparse.Namespace) -> list[Path]:
    """Return files of one side each, or of both."""
    sides = scale.sides_of("detection") if options.task == "detection" else ("pairs",)
    return [scale.table_file(options.folder, options.task, side, options.images) for side in sides]


def make(options: argparse.Namespace) -> None:
    """Write the files."""
    if options.task == "detection":
        scale.make(options.folder, options.task, options.images)
        return
    import numpy as np
    import text_data

    share = options.images / text_data.SIZES["pairs"][0]
    drawn = text_data.made("pairs", np.random.default_rng(8), share)["table"]
    (file,) = tables(options)
    drawn.write_parquet(file.with_suffix(".draft"), row_group_size=20_000)
    file.with_suffix(".draft").rename(file)


def cpu_seconds(who: int) -> float:
    """Return user and system seconds of this process, or of its ended children."""
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Run once in this process; return seconds by step and by process, and the values."""
    import evalengine as ee

    began = time.perf_counter()
    at = [began]
    walls: dict[str, float] = {}

    def on_step(step: str) -> None:
        if step in _BEGINNINGS:
            now = time.perf_counter()
            walls[_BEGINNINGS[step]] = now - at[0]
            at[0] = now

    card = ee.score(
        *(str(file) for file in tables(options)),
        task=options.task,
        metrics=METRICS[options.task],
        executor=options.executor,
        threads=options.child,
        memory_limit=options.limit,
        scratch=str(options.folder / "scratch"),
        progress=on_step,
    )
    end = time.perf_counter()
    walls[STEPS[2]] = end - at[0]
    info = card.run
    return {
        "workers": options.child,
        "wall": end - began,
        "walls": walls,
        "own_cpu": cpu_seconds(resource.RUSAGE_SELF),
        "workers_cpu": cpu_seconds(resource.RUSAGE_CHILDREN),
        "buckets": info["buckets"],
        "rows": sum(one["rows"] for one in info["inputs"].values()),
        "numbers": scale.hash_of("".join(card.frame(name).write_csv() for name in card.frames)),
        "evalengine": ee.__version__,
    }


def medians(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the median of each figure over runs with as many workers."""
    figures = ("wall", "own_cpu", "workers_cpu")
    values = {name: statistics.median(one[name] for one in runs) for name in figures}
    walls = {step: statistics.median(one["walls"][step] for one in runs) for step in STEPS}
    return {**runs[0], **values, "walls": walls}


def reachable(one: dict[str, Any]) -> float:
    """Return the best possible ratio of two workers to one: the CPU, with workers halved."""
    own, workers = one["own_cpu"], one["workers_cpu"]
    return float((own + workers / 2) / (own + workers))


def page(
    one: dict[str, Any], two: dict[str, Any], options: argparse.Namespace, m: dict[str, Any]
) -> str:
    """Format the section as Markdown."""
    columns = [one, two]
    rows = [["wall, all", *(f"{c['wall']:.1f}" for c in columns), ratio(one, two, "wall")]]
    rows += [
        [f"wall, {step}", *(f"{c['walls'][step]:.1f}" for c in columns),
         f"{two['walls'][step] / one['walls'][step]:.2f}"]
        for step in STEPS
    ]  # fmt: skip
    for label, name in (("first process", "own_cpu"), ("workers", "workers_cpu")):
        figures = [f"{c[name]:.1f}" for c in columns]
        rows.append([f"CPU, {label}", *figures, ratio(one, two, name)])
    measured = two["wall"] / one["wall"]
    message = "reached" if measured <= GOAL else "missed"
    return "\n\n".join(
        [
            f"## One worker against two: {options.task}, {one['rows'] / 1e6:,.1f} million rows",
            f"{ABOUT[options.task].format(images=options.images)}, executor `{options.executor}`, a"
            f" limit of {options.limit}, {one['buckets']} buckets with one worker and"
            f" {two['buckets']} with two; the numbers of all runs are the same. Seconds of `score`,"
            " workers' start included.",
            reporting.table(["", "one worker", "two workers", "two / one"], rows),
            f"Two workers take {measured:.2f} of one worker's time (at most {GOAL}: {message}); by"
            f" CPU seconds of one worker's runs {reachable(one):.2f} can be reached.",
            f"evalengine {one['evalengine']}; {m['cpu']}, {m['cores']} cores (shared; load average"
            f" {m['load_average']} at the start), {m['system']}, Python {m['python']}; medians of"
            f" {options.runs} runs. Repeat with `python benchmarks/workers.py"
            f" {' '.join(sys.argv[1:])}`.",
        ]
    )


def ratio(one: dict[str, Any], two: dict[str, Any], name: str) -> str:
    """Return two workers' figure divided by one worker's."""
    return f"{two[name] / one[name]:.2f}" if one[name] else ""


def main() -> int:
    """Measure, print, and write the page if requested."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", choices=list(NAMES), default="detection")
    parser.add_argument("--images", type=lambda text: int(float(text)), default=1_000_000)
    parser.add_argument("--limit", default="3GB")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/evalengine-scale"))
    parser.add_argument("--executor", choices=("processes", "dask"), default="processes")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--write-docs", action="store_true", help="update docs/benchmarks/")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        print(json.dumps(run(options)))
        return 0
    machine = measuring.machine()
    options.folder.mkdir(parents=True, exist_ok=True)
    if not all(file.exists() for file in tables(options)):
        make(options)
    measured_runs: dict[int, list[dict[str, Any]]] = {1: [], 2: []}
    for _ in range(options.runs):
        for workers, runs in measured_runs.items():
            process = measuring.spawn(
                [sys.executable, __file__, *sys.argv[1:], "--child", str(workers)]
            )
            runs.append(json.loads(process.output))
            print(json.dumps(runs[-1]), file=sys.stderr, flush=True)
    if len({one["numbers"] for runs in measured_runs.values() for one in runs}) > 1:
        print("the numbers differ between runs", file=sys.stderr)
        return 1
    text = page(medians(measured_runs[1]), medians(measured_runs[2]), options, machine)
    print(text)
    if options.write_docs:
        reporting.write_docs(NAMES[options.task], text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
