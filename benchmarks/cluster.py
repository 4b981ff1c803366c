"""CPU of a run on a cluster of this machine, against the same run in one process within a limit.

    python benchmarks/cluster.py --images 1e6 --folder /mnt/large --write-docs

A scheduler and its workers are separate processes, reached by address as on other machines. CPU is
of all processes: the first, the scheduler and its helpers, and the workers. The start of workers,
the import of the package and the loading of kernels are counted separately and in total.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import measuring
import reporting
import scale

WORKERS = 2
GOAL = 1.3
IDLE = 5.0  # seconds during which the processes of an idle cluster are watched


class Usage(threading.Thread):
    """CPU seconds of processes and their descendants, including ended ones.

    Workers may end without being counted by their parent, so all are polled.
    """

    def __init__(self, roots: Sequence[int]) -> None:
        super().__init__(daemon=True)
        self._roots, self._seen, self._over = roots, dict[int, float](), threading.Event()
        self.start()

    def run(self) -> None:
        while not self._over.wait(0.05):
            self.seconds()

    def seconds(self) -> float:
        """Return the sum until now."""
        waiting = [*self._roots]
        while waiting:
            pid = waiting.pop()
            with suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                used = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
                self._seen[pid] = max(used, self._seen.get(pid, 0.0))
                for file in Path(f"/proc/{pid}/task").glob("*/children"):
                    waiting += map(int, file.read_text().split())
        return sum(self._seen.values())

    def stop(self) -> None:
        """End the thread."""
        self._over.set()
        self.join()


@contextmanager
def processes(*commands: list[str], environment: dict[str, str] | None = None) -> Iterator[Any]:
    """Run commands in the background until the end of the context."""
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
    """Start a scheduler with workers; return its address and the ids of the processes."""
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
    """Start a node; return its address and the id of the process that started it."""
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


def files_of(options: argparse.Namespace, images: int) -> list[Path]:
    """Return tables of so many images."""
    sides = scale.sides_of(options.task)
    return [scale.table_file(options.folder, options.task, side, images) for side in sides]


def sizes(options: argparse.Namespace) -> tuple[int, int]:
    """Return the numbers of images of the smaller and the larger run."""
    return options.images // 4, options.images


def child(options: argparse.Namespace) -> None:
    """Score as many images as each input line says; print a line before and after each run."""
    import evalengine as ee

    how: dict[str, Any] = {"memory_limit": options.limit, "scratch": str(options.folder)}
    if options.child != "threads":
        how |= {"executor": options.child, "address": options.address}
    print(json.dumps({}), flush=True)
    while line := sys.stdin.readline():
        card = ee.score(*map(str, files_of(options, int(line))), task=options.task, **how)
        run = card.run
        frames = "".join(card.frame(name).write_csv() for name in card.frames)
        rows = sum(one["rows"] for one in run["inputs"].values())
        values = {"rows": rows, "buckets": run["buckets"], "numbers": scale.hash_of(frames)}
        print(json.dumps(values), flush=True)


def measured(options: argparse.Namespace, executor: str) -> dict[str, Any]:
    """Measure CPU seconds until processes are ready, of the first run, and of later ones."""
    with ExitStack() as stack:
        address, roots = "", []
        if executor != "threads":
            address, roots = stack.enter_context(CLUSTERS[executor]())
        usage = Usage(roots)
        stack.callback(usage.stop)
        time.sleep(IDLE)
        before = usage.seconds()
        time.sleep(IDLE)
        idle = (usage.seconds() - before) / IDLE
        process = subprocess.Popen(
            [sys.executable, __file__, *sys.argv[1:], "--child", executor, "--address", address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        roots.append(process.pid)
        stack.callback(process.wait)
        assert process.stdin is not None
        assert process.stdout is not None
        stack.callback(process.stdin.close)
        process.stdout.readline()
        start = usage.seconds()
        runs: list[dict[str, Any]] = []
        for images in (sizes(options)[0], *options.runs * sizes(options)):
            began, before = time.perf_counter(), usage.seconds()
            process.stdin.write(f"{images}\n")
            process.stdin.flush()
            values = json.loads(process.stdout.readline())
            wall, cpu = time.perf_counter() - began, usage.seconds() - before
            runs.append({**values, "wall": wall, "cpu": cpu, "net": cpu - idle * wall})
        first, few, many = runs[0], runs[1::2], runs[2::2]
        rows = many[0]["rows"] - few[0]["rows"]

        def per_row(name: str) -> float:
            return (middle(many, name) - middle(few, name)) / rows

        return {
            **many[0],
            "start": start,
            "idle": idle,
            "first": first["cpu"],
            "few": middle(few, "cpu"),
            "many": middle(many, "cpu"),
            "wall": middle(many, "wall"),
            "row": 1e6 * per_row("cpu"),
            "net_row": 1e6 * per_row("net"),
            "few_rows": few[0]["rows"],
        }


def middle(runs: list[dict[str, Any]], name: str) -> float:
    """Return the median of a figure."""
    return statistics.median(run[name] for run in runs)


def page(results: dict[str, dict[str, Any]], options: argparse.Namespace) -> str:
    """Format the section as Markdown."""
    own, m = results["threads"], measuring.machine()
    names = ["one process", *(f"`{name}`" for name in results if name != "threads")]

    def line(title: str, one: Any) -> list[str]:
        return [title, *(f"{one(run):.2f}" for run in results.values())]

    def in_total(run: dict[str, Any]) -> float:
        return float(run["start"] + run["first"] + run["many"])

    few, many = f"{own['few_rows'] / 1e6:,.1f} M rows", f"{own['rows'] / 1e6:,.1f} M rows"
    rows = [
        ["buckets", *(str(run["buckets"]) for run in results.values())],
        line("CPU, start of all processes", lambda run: run["start"]),
        line(f"CPU, first run, {few}", lambda run: run["first"]),
        line(f"CPU, later run, {few}", lambda run: run["few"]),
        line(f"CPU, later run, {many}", lambda run: run["many"]),
        line(f"wall, later run, {many}", lambda run: run["wall"]),
        line("CPU of idle processes per second", lambda run: run["idle"]),
        line("CPU per million rows more", lambda run: run["row"]),
        line("the same, relative", lambda run: run["row"] / own["row"]),
        line("the same, without idle CPU", lambda run: run["net_row"] / own["net_row"]),
        line("start, first run and a large one, relative", lambda r: in_total(r) / in_total(own)),
    ]
    most = max(run["net_row"] for run in results.values()) / own["net_row"]
    return "\n\n".join(
        [
            f"## CPU on a cluster: {options.task}, {own['rows'] / 1e6:,.1f} million rows",
            f"Tables of {sizes(options)[0]:,} and {options.images:,} generated images, a limit of"
            f" {options.limit}; {WORKERS} workers that read the tables. CPU seconds are of all"
            " processes; a million rows more cost the difference of both sizes. Ray starts workers"
            " anew for each run. The numbers of all runs are the same.",
            reporting.table(["", *names], rows),
            f"Without start and the CPU that processes of a cluster use while they are idle, a row"
            f" costs at most {most:.2f} times the CPU of a run in one process (at most {GOAL}:"
            f" {'reached' if most <= GOAL else 'missed'}).",
            f"{m['cpu']}, {m['cores']} cores (shared; load average"
            f" {m['load_average']} at the end), {m['system']}, Python {m['python']}; medians of"
            f" {options.runs} later runs. Repeat with `python benchmarks/cluster.py"
            f" {' '.join('DIR' if one == str(options.folder) else one for one in sys.argv[1:])}`.",
        ]
    )


def main() -> int:
    """Measure, print, and write the page if requested."""
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
    for images in sizes(options):
        if not all(file.exists() for file in files_of(options, images)):
            scale.make(options.folder, options.task, images)
    results = {}
    for executor in ("threads", *options.executors):
        results[executor] = measured(options, executor)
        print(executor, json.dumps(results[executor]), file=sys.stderr, flush=True)
    if len({run["numbers"] for run in results.values()}) > 1:
        print("the numbers differ between runs", file=sys.stderr)
        return 1
    text = page(results, options)
    print(text)
    if options.write_docs:
        reporting.write_docs(f"cluster-{options.task}", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
