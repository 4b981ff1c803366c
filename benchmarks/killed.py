"""Kill workers during runs; every run must give the values of a run in memory.

    python benchmarks/killed.py --executor dask --images 2e5 --folder /mnt/large --write-docs

Detections of scale.py are scored repeatedly on a cluster of this machine. Meanwhile random workers
are killed by SIGKILL one after the other, up to a given number.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import measuring
import reporting
import scale

WORKERS = 4


@contextmanager
def dask_cluster() -> Iterator[tuple[str, Callable[[], list[int]]]]:
    """Return the address of a cluster that replaces workers, and a function for busy ones."""
    from distributed import Client, LocalCluster

    module, workers, over = "distributed.cli.dask_worker", {}, threading.Event()
    with (
        LocalCluster(n_workers=0, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        address = cluster.scheduler_address

        def replace() -> None:
            names = count()
            while not over.wait(0.2):
                for name in [name for name, one in workers.items() if one.poll() is not None]:
                    del workers[name]
                while len(workers) < WORKERS:
                    name = f"w{next(names)}"
                    command = [sys.executable, "-m", module, address, "--name", name]
                    command += ["--nthreads", "1", "--no-nanny", "--no-dashboard"]
                    workers[name] = subprocess.Popen(command, stderr=subprocess.DEVNULL)

        def busy() -> list[int]:
            names = {
                where: one["name"] for where, one in client.scheduler_info()["workers"].items()
            }
            return [workers[names[where]].pid for where, has in client.processing().items() if has]

        keeper = threading.Thread(target=replace)
        keeper.start()
        try:
            client.wait_for_workers(WORKERS)
            yield address, busy
        finally:
            over.set()
            keeper.join()
            for one in workers.values():
                one.kill()
                one.wait()


@contextmanager
def ray_cluster() -> Iterator[tuple[str, Callable[[], list[int]]]]:
    """Return the address of a cluster that replaces workers, and a function for busy ones."""
    import psutil
    import ray

    ray.init(num_cpus=WORKERS, include_dashboard=False, object_store_memory=100 << 20)

    def busy() -> list[int]:
        pids = []
        for one in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                if one.cmdline()[:1] == ["ray::caught"]:
                    pids.append(one.pid)
        return pids

    try:
        yield "auto", busy
    finally:
        ray.shutdown()


CLUSTERS = {"dask": dask_cluster, "ray": ray_cluster}


def killing(
    pids: Callable[[], list[int]],
    killed: list[int],
    kills: int,
    over: threading.Event,
    every: float,
) -> None:
    """Kill a random worker every ``every`` seconds on average, while several work."""
    chance = random.Random(8)
    seconds = every
    while len(killed) < kills and not over.wait(seconds):
        seconds = 0.2
        with suppress(Exception):  # the list of workers may fail to answer while one dies
            alive = pids()
            if len(alive) > 1:  # otherwise the last one has all work and is killed again and again
                killed.append(chance.choice(alive))
                os.kill(killed[-1], signal.SIGKILL)
                seconds = every * (0.5 + chance.random())


def main() -> int:
    """Score until enough workers were killed; print and write the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--executor", choices=list(CLUSTERS), default="dask")
    parser.add_argument("--images", type=lambda text: int(float(text)), default=200_000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--every", type=float, default=1.5, help="seconds from kill to kill")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/evalengine-scale"))
    parser.add_argument("--write-docs", action="store_true", help="update docs/benchmarks/")
    options = parser.parse_args()
    import evalengine as ee

    machine = measuring.machine()
    options.folder.mkdir(parents=True, exist_ok=True)
    files = [
        scale.table_file(options.folder, "detection", side, options.images)
        for side in scale.sides_of("detection")
    ]
    if not all(file.exists() for file in files):
        scale.make(options.folder, "detection", options.images)
    given: dict[str, Any] = {"task": "detection"}

    def numbers(**how: Any) -> str:
        card = ee.score(*(str(file) for file in files), **given, **how)
        return scale.hash_of("".join(card.frame(name).write_csv() for name in card.frames))

    expected = numbers()
    killed: list[int] = []
    problems: list[str] = []
    refused = 0
    with CLUSTERS[options.executor]() as (address, pids):
        how = {"executor": options.executor, "address": address, "memory_limit": "600MiB"}
        began = time.perf_counter()
        over = threading.Event()
        args = (pids, killed, options.kills, over, options.every)
        killer = threading.Thread(target=killing, args=args)
        killer.start()
        try:
            while len(killed) < options.kills:
                try:
                    problems.append(numbers(scratch=str(options.folder), **how))
                except ee.ExecutorError as error:
                    if error.code != "workers_died":
                        raise
                    refused += 1
                done = f"run {len(problems)}: {len(killed)} killed, {refused} refused"
                differ = sum(one != expected for one in problems)
                print(f"{done}, {differ} differ", file=sys.stderr, flush=True)
        finally:
            over.set()
            killer.join()
        took = time.perf_counter() - began
    differ = sum(one != expected for one in problems)
    ended = f"{refused} more ended with an error: no bucket was finished while many workers died."
    text = "\n\n".join(
        [
            f"## Killed workers: {options.executor}",
            f"{len(killed)} busy workers of a cluster with {WORKERS} cores were killed by SIGKILL"
            f" in {len(problems)} runs of {options.images:,} images, {took / len(problems):.0f} s"
            f" each. All numbers of all frames are those of the run in memory, to the bit, in"
            f" {len(problems) - differ} of {len(problems)} runs."
            f" {ended if refused else 'No run ended with an error.'}",
            f"evalengine {ee.__version__}; {machine['cpu']}, {machine['cores']} cores (shared),"
            f" {machine['system']}, Python {machine['python']}. Repeat with `python"
            f" benchmarks/killed.py {' '.join(sys.argv[1:])}`.",
        ]
    )
    print(text)
    if options.write_docs:
        reporting.write_docs(f"killed-{options.executor}", text)
    return differ


if __name__ == "__main__":
    sys.exit(main())
