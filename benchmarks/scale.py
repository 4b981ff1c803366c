"""Tables beyond memory: generated, scored within a limit, and compared with a run in memory.

    python benchmarks/scale.py --images 10e6 20e6 --in-memory 1e6 --limit 2GB --folder /mnt/large
    python benchmarks/scale.py --task classification --images 5e6 --in-memory 1e6 --limit 2GB
    python benchmarks/scale.py --task judged --images 4.2e5 --in-memory 4.2e5 --limit 1GiB

``--images`` is the number of images that are made and scored within the limit, one run after the
other. Each has about ten detections and five ground truths, or ten scored labels and one truth; for
other tasks it is the number of datums with verdicts, pairs of texts, or pairs of label maps.
``--in-memory`` is the number that is scored in memory, to compare rates. Every run is a new
process. Tables of an earlier run are used again; ``--tidy`` deletes each after its run. ``--group``
is a control group, such as /sys/fs/cgroup/memory/mine, whose limit you have set: runs with a limit
join it, so that the system enforces it. ``--resume`` skips runs that an interrupted call has
finished in the same folder. ``--write-docs`` writes the figures into docs/benchmarks/.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measuring
import reporting
import scale_data

STEP = 100_000  # images made at a time
LABELS = 80
CLASSES = 10
BILLION = 1_000_000_000
HEADINGS = {
    "detection": (
        "## Beyond memory: detection",
        "Detections and ground truths of generated images, one Parquet file a side; the default"
        " metrics. Rows are of both sides. CPU is of all threads, imports included. Scratch is the"
        " most on disk at once, files without names included. Peak is resident memory, mapped files"
        " included.",
    ),
    "classification": (
        "## Beyond memory: classification",
        "Ten scored labels and one true label of each generated image, one Parquet file a side; the"
        " default metrics, of counts and of areas under ROC curves. Rows are of both sides.",
    ),
    **scale_data.HEADINGS,
}


def make(folder: Path, task: str, images: int) -> None:
    """Write both tables of so many images, in little memory."""
    import numpy as np
    import pyarrow.parquet as pq

    rng = np.random.default_rng(8)
    writers: dict[str, Any] = {}
    step = scale_data.STEPS.get(task, STEP)
    for first in range(0, images, step):
        for name, rows in DRAWN[task](rng, first, min(step, images - first)).items():
            if name not in writers:
                path = table_file(folder, task, name, images).with_suffix(".draft")
                writers[name] = pq.ParquetWriter(path, rows.schema)
            writers[name].write_table(rows)
    for name, writer in writers.items():
        writer.close()
        path = table_file(folder, task, name, images)
        path.with_suffix(".draft").rename(path)


def table_file(folder: Path, task: str, side: str, images: int) -> Path:
    """Return the path of a table."""
    return folder / f"{task}-{side}-{images}.parquet"


def detections(rng: Any, first: int, many: int) -> dict[str, Any]:
    """Make predictions and ground truths of some images, as Arrow tables."""
    import numpy as np
    import pyarrow as pa

    def table(datum: Any, label: Any, low: Any, size: Any, **more: Any) -> Any:
        high = low + size
        return pa.table(
            {
                "datum_id": datum, "label_value": label, **more,
                "xmin": low[:, 0], "ymin": low[:, 1], "xmax": high[:, 0], "ymax": high[:, 1],
            }
        )  # fmt: skip

    def drawn(first: int, many: int, each: float) -> tuple[Any, ...]:
        datum = np.repeat(np.arange(first, first + many), rng.poisson(each, many))
        label = (LABELS * rng.random(datum.size) ** 2).astype(np.int16)
        low = 600 * rng.random((datum.size, 2), dtype=np.float32)
        return datum, label, low, 4 + 100 * rng.random((datum.size, 2), dtype=np.float32)

    truths = drawn(first, many, 5)
    kept = rng.random(truths[0].size) < 0.8
    columns = [column[kept] for column in truths]
    columns[2] = columns[2] + rng.normal(0, 5, columns[2].shape).astype(np.float32)
    wrong = drawn(first, many, 6)
    score = np.r_[rng.beta(4, 2, columns[0].size), rng.beta(1.5, 5, wrong[0].size)]
    both = [np.concatenate(pair) for pair in zip(columns, wrong, strict=True)]
    order = np.argsort(both[0], kind="stable")
    return {
        "predictions": table(
            *(column[order] for column in both), score=score[order].astype(np.float32)
        ),
        "truths": table(*truths),
    }


def scored_labels(rng: Any, first: int, many: int) -> dict[str, Any]:
    """Make ten scored labels and one true label of some images, as Arrow tables."""
    import numpy as np
    import pyarrow as pa

    datum = np.arange(first, first + many)
    truth = (CLASSES * rng.random(many) ** 1.5).astype(np.int16)
    score = rng.gamma(1.0, size=(many, CLASSES))
    score[np.arange(many), truth] += rng.gamma(3.0, size=many)
    score /= score.sum(axis=1, keepdims=True)
    return {
        "predictions": pa.table(
            {
                "datum_id": np.repeat(datum, CLASSES),
                "label_value": np.tile(np.arange(CLASSES, dtype=np.int16), many),
                "score": score.ravel().astype(np.float32),
            }
        ),
        "truths": pa.table({"datum_id": datum, "label_value": truth}),
    }


DRAWN: dict[str, Callable[[Any, int, int], dict[str, Any]]] = {
    "detection": detections,
    "classification": scored_labels,
    **scale_data.DRAWN,
}


def score(
    folder: Path, task: str, images: int, limit: str, executor: str | None, threads: int | None
) -> None:
    """Score in this process and print the results as JSON."""
    import evalengine as ee

    given: dict[str, Any] = {"task": task, "threads": threads, "executor": executor}
    given |= scale_data.GIVEN.get(task, {})
    if limit:
        given |= {"memory_limit": limit, "scratch": str(folder / "scratch")}
    card = ee.score(
        *(str(table_file(folder, task, side, images)) for side in sides_of(task)), **given
    )
    run = card._run() if callable(card._run) else card._run
    rows = {name: one["rows"] for name, one in run["inputs"].items()}
    digest = "".join(card.frame(name).write_csv() for name in FRAMES if name in card.frames)
    print(
        json.dumps(
            {
                "rows": sum(rows.values()),
                "buckets": run.get("buckets", 0),
                "frames": hash_of(digest),
            }
        )
    )


def sides_of(task: str) -> tuple[str, ...]:
    """Return the tables of a task."""
    return scale_data.SIDES.get(task, ("predictions", "truths"))


FRAMES = ("metrics", "curves")


def hash_of(text: str) -> str:
    """Return a short hash that distinguishes results."""
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()[:16]


def measured(arguments: argparse.Namespace, images: int, limit: str) -> dict[str, Any]:
    """Measure one run in a new process."""
    command: list[str | Path] = [
        sys.executable, __file__, "--child", limit, "--images", str(images), "--folder",
        arguments.folder, "--executor", arguments.executor, "--task", arguments.task,
    ]  # fmt: skip
    if arguments.group and limit:
        command += ["--group", arguments.group]
    if arguments.threads:
        command += ["--threads", str(arguments.threads)]
    scratch, over = 0, threading.Event()

    def look() -> None:
        nonlocal scratch
        while not over.wait(0.1):
            used = measuring.folder_size(arguments.folder / "scratch")
            for file in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
                used += sum(map(measuring.unnamed_size, map(int, file.read_text().split())))
            scratch = max(scratch, used)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    process = measuring.spawn(command)
    over.set()
    watcher.join()
    result = json.loads(process.output)
    return {**result, "wall": process.wall, "cpu": process.cpu, "peak_mb": process.peak_mb,
            "scratch": scratch, "images": images, "limit": limit}  # fmt: skip


def lines(task: str, runs: list[dict[str, Any]], command: str, *, group: bool) -> str:
    """Format the runs as Markdown."""
    plain = next((run for run in runs if not run["limit"]), None)
    out = [
        HEADINGS[task][0],
        "",
        HEADINGS[task][1],
        "",
        "| images | rows | limit | buckets | peak | scratch | scratch per row | wall | CPU |"
        " CPU per million rows |",
        "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    out += [
        f"| {run['images']:,} | {run['rows']:,} | {run['limit'] or 'none'} |"
        f" {run['buckets'] or 'in memory'} | {run['peak_mb']:,.0f} MB |"
        f" {run['scratch'] / 1e9:,.2f} GB | {run['scratch'] / run['rows']:.1f} bytes |"
        f" {run['wall']:,.0f} s |"
        f" {run['cpu']:,.0f} s | {1e6 * run['cpu'] / run['rows']:.2f} s |"
        for run in runs
    ]
    largest = runs[-1]
    if plain is not None and largest["limit"]:
        ratio = rate(largest) / rate(plain)
        out += ["", f"CPU per row, within {largest['limit']} against in memory: {ratio:.2f}."]
    bounded = [run for run in runs if run["buckets"]]
    if len(bounded) > 1:
        ratio = rate(largest) / rate(bounded[0])
        out += ["", f"CPU per row of {largest['rows']:,} rows against {bounded[0]['rows']:,} within"
                f" the same limit: {ratio:.2f}."]  # fmt: skip
    if group:
        out += ["", "The runs within the limit were in a control group that enforces it, page cache"
                " included."]  # fmt: skip
    if task in ("detection", "classification") and largest["rows"] < 0.9 * BILLION:
        factor = BILLION / largest["rows"]
        out += [
            "",
            f"Projected from {largest['rows']:,} rows to a billion, on this machine:"
            f" {largest['buckets'] * factor:,.0f} buckets,"
            f" {largest['wall'] * factor / 3600:.1f} hours"
            f" ({largest['cpu'] * factor / 3600:.1f} of CPU),"
            f" {largest['scratch'] * factor / 1e9:,.0f} GB of scratch.",
        ]
    out += [
        "",
        f"Made by `{command}` on {measuring.platform.machine()},"
        f" {measuring.platform.python_version()}.",
    ]
    return "\n".join(out)


def rate(run: dict[str, Any]) -> float:
    """Return CPU seconds per row."""
    return float(run["cpu"] / run["rows"])


def main() -> None:
    def number(text: str) -> int:
        return int(float(text))

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", choices=list(HEADINGS), default="detection")
    parser.add_argument("--images", type=number, nargs="+", default=[100_000])
    parser.add_argument("--in-memory", type=number, default=0)
    parser.add_argument("--limit", default="2GB")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/evalengine-scale"))
    parser.add_argument("--executor", default="threads")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--group", type=Path, help="control group of memory for runs with a limit")
    parser.add_argument("--tidy", action="store_true", help="delete each run's tables after it")
    parser.add_argument("--resume", action="store_true", help="keep the runs that are done")
    parser.add_argument("--write-docs", action="store_true", help="update docs/benchmarks/")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    task, folder = arguments.task, arguments.folder
    if arguments.child is not None:
        if arguments.group:
            (arguments.group / "cgroup.procs").write_text(str(os.getpid()))
        executor = arguments.executor if arguments.executor != "threads" else None
        images = arguments.images[0]
        score(folder, task, images, arguments.child, executor, arguments.threads)
        return
    folder.mkdir(parents=True, exist_ok=True)
    done = folder / f"{task}.jsonl"
    known = done.read_text().splitlines() if arguments.resume and done.exists() else []
    runs: list[dict[str, Any]] = [json.loads(line) for line in known]
    wanted = [(arguments.in_memory, "")] if arguments.in_memory else []
    wanted += [(images, arguments.limit) for images in arguments.images]
    finished = {(run["images"], run["limit"]) for run in runs}
    wanted = [one for one in wanted if one not in finished]
    for at, (images, limit) in enumerate(wanted):
        files = [table_file(folder, task, side, images) for side in sides_of(task)]
        if not all(file.exists() for file in files):
            make(folder, task, images)
        runs.append(measured(arguments, images, limit))
        print(json.dumps(runs[-1]), flush=True)
        done.write_text("".join(json.dumps(run) + "\n" for run in runs))
        if arguments.tidy and images not in [later for later, _ in wanted[at + 1 :]]:
            for file in files:
                file.unlink()
    runs.sort(key=lambda run: (bool(run["limit"]), run["rows"]))
    differ = [
        images
        for images in {run["images"] for run in runs}
        if len({run["frames"] for run in runs if run["images"] == images}) > 1
    ]
    if differ:
        print(f"NOT the same numbers for {differ} images", flush=True)
        sys.exit(1)
    places = {str(folder): "DIR", str(arguments.group): "GROUP"}
    given = [places.get(one, one) for one in sys.argv[1:] if one != "--resume"]
    text = lines(
        task, runs, " ".join(["python benchmarks/scale.py", *given]), group=bool(arguments.group)
    )
    print(text)
    if arguments.write_docs:
        reporting.write_docs(f"scale-{task}", text)


if __name__ == "__main__":
    main()
