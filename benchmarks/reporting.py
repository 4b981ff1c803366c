"""Benchmark results as Markdown, written between markers into the pages of docs/benchmarks/."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

PAGES = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"
PEERS = ["ultrafast-pycocotools", "hotcoco", "faster-coco-eval", "pycocotools"]
NAMES = {
    "evalengine-1": "**evalengine**, 1 thread",
    "evalengine-2": "**evalengine**, 2 threads",
    "evalengine-2-frames": "**evalengine**, 2 threads, dataframes in memory",
    "evalengine-1-json": "**evalengine**, 1 thread, JSON",
    "evalengine-2-json": "**evalengine**, 2 threads, JSON",
    "evalengine-2-all": "**evalengine**, 2 threads, all metrics",
}
TITLES = {
    "small": "Boxes, 5,000 images x 80 classes, 251 k detections, 35.5 k ground truths",
    "json": "The same boxes from the same JSON files, 251 k detections",
    "large": "Boxes, 40,000 images x 365 classes, 4.0 M detections, 595 k ground truths",
}
ABOUT_SCORING = """\
From files to COCO's twelve numbers, every measurement in a fresh process, contenders taking turns.
evalengine reads Parquet, the others the same boxes as COCO JSON (the one format they read). CPU is
user + system seconds over all threads. *Loaded* excludes reading: for the peers the JSON is
parsed and indexed before the clock starts, for evalengine (its row with dataframes) the Parquet
files are read into dataframes. *Relative* is to the fastest peer's figure of the same column: below
1 is faster than every peer. Peers use as many threads as they like.
"""
ABOUT_JSON = """\
The set above. Every contender reads the same two files, so that the ratios are of reading and
computing alike; the tables above compare evalengine's Parquet with the peers' JSON.
"""
IN_PROCESS = (
    "In process: imports done, kernels compiled, one tiny set scored before the clock starts."
)
WHOLE = """\
Whole process: interpreter start, imports, files to numbers, exit, seen from outside; bytecode and
compiled kernels come from the disk."""
ABOUT_VALOR = """\
valor-lite computes other metrics by other rules (every score threshold, no crowd, no area ranges):
its numbers are not comparable with COCO's and its time is here for orientation. Its *loaded* is
ingest, finalise and compute in memory, its objects having been built."""
ABOUT_ALL = """\
*All metrics* is {count} metrics in the standard dialect at 10 IoU and 19 score thresholds, with
confusion matrix, per class, three slice columns and all frames made, against the twelve numbers."""


def table(header: list[str], rows: list[list[str]]) -> str:
    """Format a Markdown table whose first column is text and the others figures."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def quotient(value: float) -> str:
    """Format with two decimals, or with one significant digit if those would be zeros."""
    return f"{value:.2f}" if value >= 0.01 or not value else f"{value:.1g}"


def relative(value: float | None, best: float | None) -> str:
    return "" if value is None or not best else quotient(value / best)


def best(
    contenders: dict[str, Any], kind: str, key: str, peers: Collection[str] = PEERS
) -> float | None:
    """Return the lowest figure among the peers that compute the same values."""
    values = [contenders[n][kind][key] for n in peers if n in contenders and contenders[n][kind]]
    return min(values, default=None)


def agreement(contender: dict[str, Any]) -> str:
    gap = contender["difference"]
    if gap is None:
        return "other metrics"
    if gap == float("inf"):
        return "other numbers"
    return "identical to the bit" if gap == 0 else f"differ by up to {gap:.1e}"


def in_process_table(contenders: dict[str, Any], reference: str | None) -> str:
    kind = "in_process"
    wall, cpu = (best(contenders, kind, f"total_{k}") for k in ("wall", "cpu"))
    rows = []
    for name, contender in contenders.items():
        f = contender[kind]
        split = "load_wall" in f  # reading was timed separately
        same = contender["difference"] is not None  # otherwise the work differs: no ratio
        rows.append(
            [
                NAMES.get(name, f"{name} {contender['version']}"),
                seconds(f["total_wall"]),
                relative(f["total_wall"], wall if same else None),
                seconds(f["total_cpu"]),
                relative(f["total_cpu"], cpu if same else None),
                seconds(f["loaded_wall"] if split else None),
                seconds(f["loaded_cpu"] if split else None),
                "reference" if name == reference else agreement(contender),
            ]
        )
    header = ["", "wall s", "relative", "CPU s", "relative", "wall s, loaded", "CPU s, loaded"]
    return table([*header, "12 numbers"], rows)


def whole_table(
    contenders: dict[str, Any], peers: Collection[str] = PEERS, names: dict[str, str] = NAMES
) -> str:
    wall, cpu, peak = (best(contenders, "whole", k, peers) for k in ("wall", "cpu", "peak_mb"))
    rows = []
    for name, contender in contenders.items():
        f = contender["whole"]
        if f and contender["difference"] is not None:
            rows.append(
                [
                    names.get(name, f"{name} {contender['version']}"),
                    seconds(f["wall"]),
                    relative(f["wall"], wall),
                    seconds(f["cpu"]),
                    relative(f["cpu"], cpu),
                    f"{f['peak_mb']:.0f}",
                    relative(f["peak_mb"], peak),
                    seconds(f["import_wall"]),
                ]
            )
    header = ["", "wall s", "relative", "CPU s", "relative", "peak MB", "relative"]
    return table([*header, "of it import, wall s"], rows)


def goals(size: str, contenders: dict[str, Any]) -> str:
    """Project targets of this size next to the measured figures."""
    ours, alone = contenders.get("evalengine-2"), contenders.get("evalengine-1")
    everything = contenders.get("evalengine-2-all")
    if not ours or best(contenders, "whole", "wall") is None:
        return ""

    def ratio(kind: str, key: str) -> float:
        return float(ours[kind][key] / best(contenders, kind, key))

    inside = {"small": 1 / 3, "large": 1 / 2}[size]
    lines = [
        ("in process, wall, against the fastest peer", ratio("in_process", "total_wall"), inside),
        ("in process, CPU, against the thriftiest peer", ratio("in_process", "total_cpu"), inside),
        (
            "whole process, wall, against the fastest peer",
            ratio("whole", "wall"),
            {"small": 2.5, "large": 1 / 1.5}[size],
        ),
    ]
    if size == "large":
        lines.append(("peak memory, against the leanest peer", ratio("whole", "peak_mb"), 1.0))
    if alone:
        gain = ours["in_process"]["total_wall"] / alone["in_process"]["total_wall"]
        lines.append(("two threads against one, wall", gain, 1.0))
    if everything:
        for kind, word in (("wall", "wall"), ("cpu", "CPU")):
            cost = everything["in_process"][f"total_{kind}"] / ours["in_process"][f"total_{kind}"]
            limit = {"small": 8.0, "large": 4.0}[size]
            lines.append((f"all metrics against the twelve numbers, {word}", cost, limit))
    rows = [
        [name, f"{value:.2f}", f"{limit:.2f}", "reached" if value <= limit else "**missed**"]
        for name, value, limit in lines
    ]
    # Speed does not count if the values differ.
    gap = ours["difference"]
    if gap is not None:
        verdict = "reached" if gap == 0 else "**missed**"
        rows.append(["largest difference in the twelve numbers", f"{gap:.1e}", "0", verdict])
    return table(["evalengine, 2 threads", "measured", "at most", ""], rows)


def scoring(result: dict[str, Any]) -> list[str]:
    contenders, size = result["contenders"], result["section"]
    peers_seen = [n for n in PEERS if n in contenders]
    parts = [ABOUT_JSON if size == "json" else ABOUT_SCORING]
    if result["reference"]:
        parts[0] += f"*12 numbers* are compared with {result['reference']}'s, in every run.\n"
    parts += [IN_PROCESS, in_process_table(contenders, result["reference"])]
    if any(c["whole"] for c in contenders.values()):
        parts += [WHOLE, whole_table(contenders)]
    if "valor-lite" in contenders:
        parts.append(ABOUT_VALOR)
    if "evalengine-2-all" in contenders:
        from contender import ALL_METRICS

        parts.append(ABOUT_ALL.format(count=len(ALL_METRICS)))
    if peers_seen and (met := goals(size, contenders)):
        parts.append(met)
    for name, failure in result["failures"].items():
        parts.append(f"{name} could not be measured ({failure.split(':')[0]}).")
    slow = sorted({c["runs"] for c in contenders.values()} - {result["runs"]})
    runs = f"medians of {result['runs']} runs"
    if slow:
        runs += f" ({', '.join(map(str, slow))} for the slowest)"
    return [*parts, footer(result, runs)]


def footer(result: dict[str, Any], runs: str, script: str = "detection", more: str = "") -> str:
    """Describe machine, date and method; `more`: further options of the command."""
    m = result["machine"]
    return (
        f"{m['cpu']}, {m['cores']} cores (shared; load average {m['load_average']} at the start), "
        f"{m['system']}, Python {m['python']}, {result['date']}; {runs}. Repeat with "
        f"`python benchmarks/{script}.py {result['section']} --runs {result['runs']} "
        f"--peers-python PEERS/bin/python{more} --write-docs`."
    )


def section(result: dict[str, Any]) -> str:
    """Format one section, heading and body."""
    name = result["section"]
    parts = [f"## {TITLES[name]}", *scoring(result)]
    return "\n\n".join(part.rstrip() for part in parts)


def write_docs(name: str, text: str, folder: Path = PAGES) -> None:
    """Replace the section of the same name, or write it to a separate page."""
    begin, end = (f"<!-- benchmark {name}: {mark} -->\n" for mark in ("begin", "end"))
    text = f"{begin}{text}\n{end}"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    for path in folder.glob("*.md"):
        page = path.read_text(encoding="utf-8")
        if pattern.search(page):
            path.write_text(pattern.sub(lambda _: text, page), encoding="utf-8")
            return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(f"# Benchmark {name}\n\n{text}", encoding="utf-8")
