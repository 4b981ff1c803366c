"""Run new processes and measure wall seconds, CPU seconds and peak memory; medians over runs.

POSIX only (os.wait4). This module and its callers have no large imports, because the kernel starts
a child's peak-memory counter at its parent's size.
"""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


class Failed(Exception):
    """Failed process; the message is the last line it wrote to stderr."""


@dataclass(frozen=True)
class Process:
    """Cost of one finished process, measured from outside."""

    wall: float  # seconds, including start-up and imports
    cpu: float  # seconds, user + system, all threads
    peak_mb: float
    output: str


def spawn(command: Sequence[str | Path], environment: dict[str, str] | None = None) -> Process:
    """Run one command to its end.

    Python writes bytecode, as for installed packages: otherwise every process would compile all
    modules of a checkout, which only the checkout would be charged for.
    """
    start = time.perf_counter()
    around = {**os.environ, **(environment or {})}
    around.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.Popen(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=around,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    # Contenders write one line to stdout and little to stderr: neither pipe can fill up.
    output = process.stdout.read()
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    process.stderr.close()
    if process.returncode != 0:
        raise Failed((errors.strip().splitlines() or [f"exit code {process.returncode}"])[-1])
    peak = usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e6 / 1024)
    return Process(wall, usage.ru_utime + usage.ru_stime, peak, output)


def folder_size(folder: Path, but: str = "") -> int:
    """Return the bytes on disk of all files below a folder, except in given subfolders."""
    total = 0
    for place, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if one != but]
        for name in names:
            with suppress(OSError):
                total += os.stat(os.path.join(place, name)).st_blocks * 512
    return total


def unnamed_size(pid: int) -> int:
    """Return the bytes on disk of deleted files that a process has open: Linux only, else 0."""
    sizes = {}
    for link in Path(f"/proc/{pid}/fd").glob("*"):
        with suppress(OSError):
            if os.readlink(link).endswith(" (deleted)"):
                file = os.stat(link)
                sizes[file.st_dev, file.st_ino] = file.st_blocks * 512
    return sum(sizes.values())


def in_turn(commands: Mapping[str, Sequence[str | Path]], runs: int) -> dict[str, list[Process]]:
    """Run each command several times, in turn."""
    done: dict[str, list[Process]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            done[name].append(spawn(command))
    return done


def costs_of(runs: Sequence[Process]) -> tuple[float, float, float]:
    """Return medians of CPU seconds, wall seconds and peak MB."""
    median = statistics.median
    return (
        median(run.cpu for run in runs),
        median(run.wall for run in runs),
        median(run.peak_mb for run in runs),
    )


def print_costs(
    done: Mapping[str, Sequence[Process]], title: str, noted: Callable[[str], Any] = str
) -> None:
    """Print a table of the cost of each command, with the last reported values."""
    print(f"| | CPU s | wall s | peak MB | {title} |\n|---|---:|---:|---:|---|")
    for name, runs in done.items():
        cpu, wall, peak = costs_of(runs)
        said = noted(runs[-1].output.strip())
        print(f"| {name} | {cpu:.2f} | {wall:.2f} | {peak:,.0f} | {said} |")


@dataclass(frozen=True)
class Contender:
    """A contender: its interpreter, script and number of runs."""

    name: str
    python: str
    runs: int
    whole: bool = True  # measured as a complete process as well
    script: str = "contender.py"
    section: str = ""  # part of the script's name, if there are several
    environment: Mapping[str, str] = field(default_factory=dict)  # additional environment variables


@dataclass(frozen=True)
class Measured:
    """Costs of each contender in each run, and its values, NaN if undefined."""

    inside: dict[str, list[dict[str, float]]]
    whole: dict[str, list[dict[str, float]]]
    numbers: dict[str, list[array[float]]]
    versions: dict[str, str]
    failures: dict[str, str]


def contend(
    contender: Contender, folder: Path, warm_up: Path | None
) -> tuple[Process, dict[str, Any]]:
    """Measure one contender once: the process, and the report of its script."""
    name, environment = contender.name, dict(contender.environment)
    if name.startswith("evalengine"):
        # "One thread" also applies to the dataframe library that reads the files.
        environment["POLARS_MAX_THREADS"] = name.split("-")[1]
    if contender.section:
        name = f"{contender.section}/{name}"
    # -P: module names of this folder must not shadow the contender's own dependencies.
    command: list[str | Path] = [contender.python, "-P", HERE / contender.script, name, folder]
    process = spawn([*command, *([warm_up] if warm_up else [])], environment)
    return process, json.loads(process.output.splitlines()[-1])


def take_turns(
    title: str, contenders: Sequence[Contender], folder: Path, warm_up: Path
) -> Measured:
    """Run all contenders in turn, each in process and, if requested, as a complete process."""
    measured = Measured({}, {}, {}, {}, {})

    def keep(name: str, report: dict[str, Any]) -> None:
        if report["numbers"] is not None:
            numbers = array("d", (math.nan if x is None else x for x in report["numbers"]))
            measured.numbers.setdefault(name, []).append(numbers)

    for run in range(max(contender.runs for contender in contenders)):
        for contender in contenders:
            name = contender.name
            if name in measured.failures or run >= contender.runs:
                continue
            print(f"{title}, run {run + 1}: {name}", file=sys.stderr)
            try:
                _, report = contend(contender, folder, warm_up)
                measured.inside.setdefault(name, []).append(in_process_sample(report))
                measured.versions[name] = report["version"]
                keep(name, report)
                if not contender.whole:
                    continue
                process, report = contend(contender, folder, None)
                sample = {"wall": process.wall, "cpu": process.cpu, "peak_mb": process.peak_mb}
                sample["import_wall"] = report["laps"]["import"]["wall"]
                measured.whole.setdefault(name, []).append(sample)
                keep(name, report)
            except Failed as failure:
                measured.failures[name] = str(failure)
                print(f"  failed: {failure}", file=sys.stderr)
    return measured


def medians(samples: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the median of every key over the runs."""
    return {key: statistics.median(sample[key] for sample in samples) for key in samples[0]}


def in_process_sample(report: dict[str, Any]) -> dict[str, float]:
    """Return one run's steps as flat figures; `total` is everything after the import."""
    sample: dict[str, float] = {"peak_mb": report["peak_mb"]}
    for kind in ("wall", "cpu"):
        steps = {name: lap[kind] for name, lap in report["laps"].items()}
        sample |= {f"{name}_{kind}": seconds for name, seconds in steps.items()}
        sample[f"total_{kind}"] = sum(steps.values()) - steps["import"]
        sample[f"loaded_{kind}"] = sample[f"total_{kind}"] - steps.get("load", 0.0)
    return sample


def machine() -> dict[str, Any]:
    """Describe the machine, as far as it matters for the figures."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load_average": round(os.getloadavg()[0], 2),
    }
