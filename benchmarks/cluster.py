"""CPU of a run on a cluster of this machine, against the same run in one process within a limit.

    python benchmarks/cluster.py --images 1e6 --folder /mnt/large --write-docs

A scheduler and its workers are separate processes, reached by their address as those of other
machines are. CPU is of all processes: the first, the scheduler and its helpers, and the workers.
Worker start and the first run, which imports the package and loads kernels, are counted separately.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import measuring
import reporting
import scale

WORKERS = 2
GOAL = 1.3
IDLE = 5.0  # seconds for which the processes of a cluster are watched before they get work


def cpu_seconds(root: int) -> float:
    """User and system seconds of a process, its ended children, and all processes below it."""
    with suppress(OSError):
        fields = Path(f"/proc/{root}/stat").read_text().rpartition(")")[2].split()
        below = Path(f"/proc/{root}/task").glob("*/children")
        children = [int(one) for file in below for one in file.read_text().split()]
        ticks = sum(map(int, fields[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK") + sum(map(cpu_seconds, children))
    return 0.0


@contextmanager
def processes(*commands: list[str], environment: dict[str, str] | None = None) -> Iterator[Any]:
    """Run commands in the background; ended with the context."""
    with ExitStack() as stack:
        running = []
        for command in commands:
            process = subprocess.Popen(
                command,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **(environment or {})},
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
            running.append(process.pid)
        yield running


@contextmanager
def dask_cluster() -> Iterator[tuple[str, list[int]]]:
    """Address of a scheduler with workers, and the ids of their processes."""
    from distributed import Client

    place = Path(tempfile.mkdtemp()) / "scheduler.json"
    common = ["--scheduler-file", str(place)]
    run = [sys.executable, "-m"]
    scheduler = [*run, "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", *common]
    worker = [*run, "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", *common]
    with processes(scheduler, *WORKERS * [[*worker, "--no-dashboard"]]) as running:
        while not place.exists():
            time.sleep(0.1)
        with Client(scheduler_file=str(place), set_as_default=False) as client:
            client.wait_for_workers(WORKERS)
        yield json.loads(place.read_text())["address"], running


@contextmanager
def ray_cluster() -> Iterator[tuple[str, list[int]]]:
    """Address of a node, and the id of the process that started it."""
    start = (
        f"import ray, time; ray.init(num_cpus={WORKERS}, include_dashboard=False,"
        " object_store_memory=100 << 20); print(1, flush=True); time.sleep(1e6)"
    )
    node = subprocess.Popen([sys.executable, "-c", start], stdout=subprocess.PIPE)
    assert node.stdout is not None
    node.stdout.readline()
    try:
        yield "auto", [node.pid]
    finally:
        node.terminate()
        node.wait()


CLUSTERS = {"dask": dask_cluster, "ray": ray_cluster}


def child(options: argparse.Namespace) -> None:
    """Score again and again in this process; a line before the first run and after each."""
    import evalengine as ee

    sides = scale.sides_of(options.task)
    files = [str(scale.table_file(options.folder, options.task, s, options.images)) for s in sides]
    how: dict[str, Any] = {"memory_limit": options.limit, "scratch": str(options.folder)}
    if options.child != "threads":
        how |= {"executor": options.child, "address": options.address}
    print(json.dumps({}), flush=True)
    while sys.stdin.readline():
        card = ee.score(*files, task=options.task, **how)
        run = card.run
        frames = "".join(card.frame(name).write_csv() for name in card.frames)
        rows = sum(one["rows"] for one in run["inputs"].values())
        told = {"rows": rows, "buckets": run["buckets"], "numbers": scale.hash_of(frames)}
        print(json.dumps(told), flush=True)


def measured(options: argparse.Namespace, executor: str) -> dict[str, Any]:
    """CPU seconds until all processes are ready, of the first run, and of later ones."""
    with ExitStack() as stack:
        address, others, idle = "", [], 0.0
        if executor != "threads":
            address, others = stack.enter_context(CLUSTERS[executor]())
            before = sum(map(cpu_seconds, others))
            time.sleep(IDLE)
            idle = (sum(map(cpu_seconds, others)) - before) / IDLE
        process = subprocess.Popen(
            [sys.executable, __file__, *sys.argv[1:], "--child", executor, "--address", address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        stack.callback(process.wait)
        assert process.stdin is not None
        assert process.stdout is not None
        stack.callback(process.stdin.close)
        spent, own, walls = [idle * IDLE], [], []
        told: dict[str, Any] = {}
        for at in range(options.runs + 2):
            told = json.loads(process.stdout.readline())
            spent.append(sum(map(cpu_seconds, [process.pid, *others])))
            if at <= options.runs:
                process.stdin.write("again\n")
                process.stdin.flush()
            own.append(cpu_seconds(process.pid))
            walls.append(time.perf_counter())
        start, first, *later = (after - before for before, after in pairwise(spent))
        own_later = [after - before for before, after in pairwise(own[1:])]
        waited = [after - before for before, after in pairwise(walls[1:])]
        net = [cpu - idle * wall for cpu, wall in zip(later, waited, strict=True)]
        return {**told, "start": start, "first": first, "later": statistics.median(later),
                "own": statistics.median(own_later), "idle": idle,
                "net": statistics.median(net), "wall": statistics.median(waited)}  # fmt: skip


def page(found: dict[str, dict[str, Any]], options: argparse.Namespace) -> str:
    """The section, as Markdown."""
    own, m = found["threads"], measuring.machine()
    names = ["one process", *(f"`{name}`" for name in found if name != "threads")]

    def line(title: str, one: Any) -> list[str]:
        return [title, *(f"{one(run):.2f}" for run in found.values())]

    def together(run: dict[str, Any]) -> float:
        return float(run["start"] + run["first"])

    rows = [
        ["buckets", *(str(run["buckets"]) for run in found.values())],
        line("CPU, start of all processes", lambda run: run["start"]),
        line("CPU, first run", lambda run: run["first"]),
        line("CPU, later runs", lambda run: run["later"]),
        line("of these, first process", lambda run: run["own"]),
        line("wall, later runs", lambda run: run["wall"]),
        line("CPU of idle processes per second", lambda run: run["idle"]),
        line("CPU per million rows, later runs", lambda run: 1e6 * run["later"] / run["rows"]),
        line("later runs, relative", lambda run: run["later"] / own["later"]),
        line("the same without idle CPU", lambda run: run["net"] / own["later"]),
        line("start and first run, relative", lambda run: together(run) / together(own)),
    ]
    most = max(run["net"] for run in found.values()) / own["later"]
    return "\n\n".join(
        [
            f"## CPU on a cluster: {options.task}, {own['rows'] / 1e6:,.1f} million rows",
            f"Tables of {options.images:,} generated images, a limit of {options.limit};"
            f" {WORKERS} workers that read the tables. CPU seconds are of all processes. The"
            " numbers of all runs are the same.",
            reporting.table(["", *names], rows),
            f"Without the CPU that processes of a cluster use while they are idle, a row costs at"
            f" most {most:.2f} times the CPU of a run in one process (at most {GOAL}:"
            f" {'reached' if most <= GOAL else 'missed'}).",
            f"evalengine; {m['cpu']}, {m['cores']} cores (shared; load average"
            f" {m['load_average']} at the end), {m['system']}, Python {m['python']}; medians of"
            f" {options.runs} later runs. Repeat with `python benchmarks/cluster.py"
            f" {' '.join('DIR' if one == str(options.folder) else one for one in sys.argv[1:])}`.",
        ]
    )


def main() -> int:
    """Measure, print, and write the page if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", choices=("detection", "classification"), default="detection")
    parser.add_argument("--images", type=lambda text: int(float(text)), default=1_000_000)
    parser.add_argument("--limit", default="1GB")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/evalengine-scale"))
    parser.add_argument("--executors", nargs="+", choices=list(CLUSTERS), default=list(CLUSTERS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--write-docs", action="store_true", help="update docs/benchmarks/")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options)
        return 0
    options.folder.mkdir(parents=True, exist_ok=True)
    sides = scale.sides_of(options.task)
    files = [scale.table_file(options.folder, options.task, s, options.images) for s in sides]
    if not all(file.exists() for file in files):
        scale.make(options.folder, options.task, options.images)
    found = {}
    for executor in ("threads", *options.executors):
        found[executor] = measured(options, executor)
        print(executor, json.dumps(found[executor]), file=sys.stderr, flush=True)
    if len({run["numbers"] for run in found.values()}) > 1:
        print("the numbers differ between runs", file=sys.stderr)
        return 1
    text = page(found, options)
    print(text)
    if options.write_docs:
        reporting.write_docs(f"cluster-{options.task}", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
