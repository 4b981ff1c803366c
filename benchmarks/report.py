"""Cost and size of the page of a run: `evalengine report` on saved runs.

    python benchmarks/report.py [CASE ...] [--runs N] [--quick] [--write-docs]

Each run is scored by `evalengine score --out`, and its page made by `evalengine report`. Both are
complete processes with kernels compiled, in turn.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import measuring
import reporting

EXAMPLES = measuring.HERE.parent / "examples"
COMMAND = Path(sys.executable).with_name("evalengine")
MOST_MB = 2.0
MOST_TIMES = 1.5


@dataclass(frozen=True)
class Case:
    """A run whose page is made.

    Attributes:
        title: heading on the page of benchmarks.
        make: function of a folder and the share of the full size; returns the arguments of
            ``score``.
        has_target: whether the target for CPU seconds applies.
    """

    title: str
    make: Callable[[Path, float], list[str]]
    has_target: bool = False


def images(folder: Path, scale: float) -> list[str]:
    """Make 250,000 boxes on 5,000 images."""
    import detection_data

    made = detection_data.make("small" if scale == 1 else "tiny")
    return [str(made / f"{name}.parquet") for name in ("predictions", "groundtruths")]


def binary(folder: Path, scale: float) -> list[str]:
    """Make scores of two classes."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(1)
    n = int(20_000_000 * scale)
    actual = rng.random(n) < 0.3
    score = np.clip(rng.normal(0.4 + 0.2 * actual, 0.2), 0, 1)
    pl.DataFrame({"score": score, "actual": actual}).write_parquet(folder / "table.parquet")
    return [str(folder / "table.parquet")]


def many_labels(folder: Path, scale: float) -> list[str]:
    """Make 1,200 labels with names, 120,000 rows, 300 slices."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(2)
    n = int(120_000 * scale)
    truth = rng.permutation(n) % 1200
    predicted = np.where(rng.random(n) < 0.7, truth, rng.integers(0, 1200, n))
    names = np.array([f"a kind of thing, number {i}" for i in range(1200)])
    site = [f"site {i}" for i in rng.integers(0, 300, n)]
    table = {"actual": names[truth], "predicted": names[predicted], "site": site}
    pl.DataFrame(table).write_parquet(folder / "table.parquet")
    return [str(folder / "table.parquet"), "--by", "site"]


def example(*names: str) -> Callable[[Path, float], list[str]]:
    """Use a bundled example."""
    return lambda folder, scale: [str(EXAMPLES / f"{name}.parquet") for name in names]


CASES = {
    "images": Case("Boxes, 5,000 images, 250,000 detections", images, has_target=True),
    "binary": Case("Two classes, 20 million rows", binary),
    "labels": Case("1,200 labels, 120,000 rows, 300 slices", many_labels),
    "detection": Case(
        "Example: detection", example("detection/predictions", "detection/groundtruths")
    ),
    "classification": Case(
        "Example: classification",
        example("classification/predictions", "classification/groundtruths"),
    ),
    "segmentation": Case(
        "Example: segmentation", example("segmentation/predicted", "segmentation/truth")
    ),
    "retrieval": Case("Example: retrieval", example("retrieval/run", "retrieval/qrels")),
    "text": Case("Example: text", example("text/predictions", "text/references")),
    "judged": Case("Example: judged", example("judged/verdicts")),
}


@dataclass(frozen=True)
class Measured:
    """Medians of a case: the run, its page, and the page's size."""

    run: measuring.Process
    page: measuring.Process
    megabytes: float


def made(name: str, folder: Path, scale: float) -> list[str]:
    """Write the tables of a case and return the arguments of ``score``."""
    return CASES[name].make(folder, scale)


def measured(name: str, runs: int, scale: float) -> Measured:
    """Measure the run and the page, in turn."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        # In a separate process: a child's peak memory begins at this one's.
        fresh = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=fresh) as maker:
            tables = maker.submit(made, name, folder, scale).result()
        saved, page = folder / "run", folder / "page.html"
        score = [COMMAND, "score", *tables, "--out", saved, "--overwrite", "--format", "csv"]
        report = [COMMAND, "report", saved, "-o", page]
        for command in (score, report):
            measuring.spawn(command)  # kernels compiled, files cached
        every = [(measuring.spawn(score), measuring.spawn(report)) for _ in range(runs)]
        megabytes = page.stat().st_size / 1e6
    run, report_made = (_median([one[side] for one in every]) for side in (0, 1))
    return Measured(run, report_made, megabytes)


def _median(some: list[measuring.Process]) -> measuring.Process:
    wall, cpu, peak = (
        statistics.median(getattr(one, name) for one in some) for name in ("wall", "cpu", "peak_mb")
    )
    return measuring.Process(wall, cpu, peak, "")


def section(results: dict[str, Measured], runs: int) -> str:
    """Format the section of the page of benchmarks."""
    lines = [
        "## Cost of a report",
        "",
        "`evalengine score --out`, then `evalengine report` on the saved run: whole processes,"
        f" kernels compiled; medians of {runs} runs that take turns.",
        "",
        "| | run: CPU s | page: CPU s | wall s | peak MB | page MB | page / run |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for name, one in results.items():
        times = one.page.cpu / one.run.cpu
        message = f"{times:.2f}"
        if CASES[name].has_target:
            message += f", at most {MOST_TIMES:g}: {'reached' if times <= MOST_TIMES else 'missed'}"
        lines.append(
            f"| {CASES[name].title} | {one.run.cpu:.2f} | {one.page.cpu:.2f} | {one.page.wall:.2f}"
            f" | {one.page.peak_mb:,.0f} | {one.megabytes:.2f} | {message} |"
        )
    largest = max(one.megabytes for one in results.values())
    met = "reached" if largest <= MOST_MB else "missed"
    lines += ["", f"The largest page has {largest:.2f} MB, at most {MOST_MB:g}: {met}."]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="small tables")
    parser.add_argument("--write-docs", action="store_true", help="update docs/benchmarks/")
    given = parser.parse_args()
    unknown = set(given.cases) - set(CASES)
    if unknown:
        parser.error(f"no case {', '.join(unknown)}; there are {', '.join(CASES)}")
    scale = 0.02 if given.quick else 1.0
    results = {name: measured(name, given.runs, scale) for name in given.cases or list(CASES)}
    text = section(results, given.runs)
    print(text)
    if given.write_docs:
        reporting.write_docs("report", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
