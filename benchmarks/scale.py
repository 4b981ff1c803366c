"""Detections beyond memory: generated, scored within a limit, held against a run in memory.

    python benchmarks/scale.py --images 10e6 --limit 2GB --folder /mnt/large --write-docs

``--images`` says how many images are made, with about ten detections and five ground truths each;
``--in-memory`` how many of them are scored in memory for the rate to compare with. Every run is a
fresh process. Tables that are there from an earlier run are used again.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

import measuring

STEP = 100_000  # images made at a time
LABELS = 80
PAGE = measuring.HERE.parent / "docs" / "benchmarks.md"
BEGIN, END = "<!-- scale -->", "<!-- end of scale -->"
BILLION = 1_000_000_000
SCRATCH = 175  # bytes a row: its columns, and its place in two tallies


def make(folder: Path, images: int) -> None:
    """Write ``predictions.parquet`` and ``truths.parquet`` of so many images, in little memory."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(8)

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

    writers: dict[str, Any] = {}
    for first in range(0, images, STEP):
        many = min(STEP, images - first)
        truths = drawn(first, many, 5)
        kept = rng.random(truths[0].size) < 0.8
        found = [column[kept] for column in truths]
        found[2] = found[2] + rng.normal(0, 5, found[2].shape).astype(np.float32)
        wrong = drawn(first, many, 6)
        score = np.r_[rng.beta(4, 2, found[0].size), rng.beta(1.5, 5, wrong[0].size)]
        both = [np.concatenate(pair) for pair in zip(found, wrong, strict=True)]
        order = np.argsort(both[0], kind="stable")
        made = {
            "predictions": table(
                *(column[order] for column in both), score=score[order].astype(np.float32)
            ),
            "truths": table(*truths),
        }
        for name, rows in made.items():
            if name not in writers:
                path = folder / f"{name}-{images}.draft"
                writers[name] = pq.ParquetWriter(path, rows.schema)
            writers[name].write_table(rows)
    for name, writer in writers.items():
        writer.close()
        (folder / f"{name}-{images}.draft").rename(folder / f"{name}-{images}.parquet")


def score(folder: Path, images: int, limit: str, executor: str | None, threads: int | None) -> None:
    """Score in this process and print what there was, as JSON."""
    import evalengine as ee

    given: dict[str, Any] = {"task": "detection", "threads": threads, "executor": executor}
    if limit:
        given |= {"memory_limit": limit, "scratch": str(folder / "scratch")}
    card = ee.score(*(str(folder / f"{side}-{images}.parquet") for side in SIDES), **given)
    run = card._run() if callable(card._run) else card._run
    rows = {name: one["rows"] for name, one in run["inputs"].items()}
    digest = card.frame("metrics").write_csv() + card.frame("curves").write_csv()
    print(
        json.dumps(
            {
                "rows": sum(rows.values()),
                "buckets": run.get("buckets", 0),
                "frames": hash_of(digest),
            }
        )
    )


SIDES = ("predictions", "truths")


def hash_of(text: str) -> str:
    """A few digits that tell results apart."""
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()[:16]


def measured(arguments: argparse.Namespace, images: int, limit: str) -> dict[str, Any]:
    """One run in a fresh process, with its cost."""
    command: list[str | Path] = [
        sys.executable, __file__, "--child", limit, "--images", str(images), "--folder",
        arguments.folder, "--executor", arguments.executor,
    ]  # fmt: skip
    if arguments.threads:
        command += ["--threads", str(arguments.threads)]
    process = measuring.spawn(command)
    found = json.loads(process.output)
    return {**found, "wall": process.wall, "cpu": process.cpu, "peak_mb": process.peak_mb,
            "images": images, "limit": limit}  # fmt: skip


def lines(runs: list[dict[str, Any]], command: str) -> str:
    """The runs as Markdown."""
    plain = next((run for run in runs if not run["limit"]), None)
    out = [
        BEGIN,
        "## Beyond memory",
        "",
        "Detections and ground truths of generated images, one Parquet file a side; the default"
        " metrics. Rows are of both sides. CPU is of all threads, imports included.",
        "",
        "| images | rows | limit | buckets | peak | wall | CPU | CPU a million rows |",
        "|---|---|---|---|---|---|---|---|",
    ]
    out += [
        f"| {run['images']:,} | {run['rows']:,} | {run['limit'] or 'none'} |"
        f" {run['buckets'] or 'in memory'} | {run['peak_mb']:,.0f} MB | {run['wall']:,.0f} s |"
        f" {run['cpu']:,.0f} s | {1e6 * run['cpu'] / run['rows']:.2f} s |"
        for run in runs
    ]
    largest = runs[-1]
    if plain is not None and largest["limit"]:
        ratio = largest["cpu"] / largest["rows"] / (plain["cpu"] / plain["rows"])
        out += ["", f"CPU a row, within {largest['limit']} against in memory: {ratio:.2f}."]
    factor = BILLION / largest["rows"]
    out += [
        "",
        f"Projected from {largest['rows']:,} rows to a billion, on this machine:"
        f" {largest['buckets'] * factor:,.0f} buckets, {largest['wall'] * factor / 3600:.1f} hours"
        f" ({largest['cpu'] * factor / 3600:.1f} of CPU), {SCRATCH * BILLION / 1e9:,.0f} GB of"
        " scratch.",
        "",
        f"Made by `{command}` on {measuring.platform.machine()},"
        f" {measuring.platform.python_version()}.",
        END,
    ]
    return "\n".join(out)


def write_docs(text: str) -> None:
    """Put the section into the page, in place of an earlier one."""
    page = PAGE.read_text("utf-8")
    old = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.S)
    page = old.sub(lambda _: text, page) if old.search(page) else f"{page.rstrip()}\n\n{text}\n"
    PAGE.write_text(page, "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=lambda text: int(float(text)), default=100_000)
    parser.add_argument("--in-memory", type=lambda text: int(float(text)), default=0)
    parser.add_argument("--limit", default="2GB")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/evalengine-scale"))
    parser.add_argument("--executor", default="threads")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--write-docs", action="store_true", help="update docs/benchmarks.md")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        executor = arguments.executor if arguments.executor != "threads" else None
        score(arguments.folder, arguments.images, arguments.child, executor, arguments.threads)
        return
    arguments.folder.mkdir(parents=True, exist_ok=True)
    runs = []
    for images, limit in ((arguments.in_memory, ""), (arguments.images, arguments.limit)):
        if not images:
            continue
        if not all((arguments.folder / f"{side}-{images}.parquet").exists() for side in SIDES):
            make(arguments.folder, images)
        runs.append(measured(arguments, images, limit))
        print(json.dumps(runs[-1]), flush=True)
    if len(runs) == 2 and runs[0]["images"] == runs[1]["images"]:
        same = runs[0]["frames"] == runs[1]["frames"]
        print("the same numbers" if same else "NOT the same numbers", flush=True)
        if not same:
            sys.exit(1)
    text = lines(runs, " ".join(["python benchmarks/scale.py", *sys.argv[1:]]))
    print(text)
    if arguments.write_docs:
        write_docs(text)


if __name__ == "__main__":
    main()
