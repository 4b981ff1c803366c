"""Time evalengine's classification against other ways to the same numbers, side by side.

    python benchmarks/classification.py binary distinct two-tables grouped long \\
        --peers-python PEERS/bin/python --torch-python TORCH/bin/python --write-docs

The sections are the sets of classification_data.py; `--scale 0.02` tries everything on small ones.
Every measurement is a fresh process; contenders take turns, so that a busy moment of the machine
hits all of them; figures are medians. PEERS is an environment with scikit-learn,
scikit-learn-intelex, polars, polars-ds, duckdb and pyarrow, TORCH one with torchmetrics, torch and
polars.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import subprocess
import sys
from array import array
from pathlib import Path
from typing import Any

from classification_reporting import page
from measuring import Contender, machine, medians, take_turns
from reporting import write_docs

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
WARM_UP = 0.01  # share of the size that is scored before the clock starts
WARM_UPS = {"grouped": 0.1}  # kernels for many groups have to be met
OURS = ["evalengine-1", "evalengine-2"]
SECTIONS = {
    "binary": [
        *OURS,
        "sklearnex",
        "scikit-learn",
        "polars-rank",
        "polars-places",
        "polars-ds",
        "duckdb",
        "torchmetrics",
    ],
    "distinct": [
        *OURS,
        "sklearnex",
        "scikit-learn",
        "polars-rank",
        "polars-counts",
        "polars-ds",
        "duckdb",
        "torchmetrics",
    ],
    "two-tables": [*OURS, "polars-rank", "polars-places", "duckdb", "sklearnex"],
    "grouped": [*OURS, "polars-window", "polars-aggregate", "polars-ds", "duckdb", "scikit-learn"],
    "long": [
        *OURS,
        "evalengine-2-labels",
        "evalengine-2-ids",
        "polars-long",
        "numpy-matrix",
        "sklearnex",
        "scikit-learn",
    ],
}
REFERENCES = [
    "scikit-learn",
    "polars-rank",
    "polars-window",
    "polars-long",
]  # the first of all rows
SAMPLED = {("grouped", "scikit-learn")}  # timed on a part, so no figures as a whole process


def measure(section: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measure one section's contenders, in process and as whole processes."""
    scales = [f"{scale:g}" for scale in (WARM_UPS.get(section, WARM_UP), options.scale)]
    script = HERE / "classification_data.py"
    command = [options.python, script, section, "--out", options.data, "--scale", *scales]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    warm_up, folder = (
        options.data / "classification" / (section if scale == "1" else f"{section}-{scale}")
        for scale in scales
    )
    pythons = {"evalengine": options.python, "torchmetrics": options.torch_python}
    names = [n for n in SECTIONS[section] if not options.contenders or n in options.contenders]
    measured = take_turns(
        section,
        [
            Contender(
                name,
                str(pythons.get(name.split("-")[0]) or options.peers_python),
                options.runs,
                whole=(section, name) not in SAMPLED,
                script="classification_contenders.py",
                section=section,
            )
            for name in names
        ],
        folder,
        warm_up,
    )
    full = [
        n for n in (*REFERENCES, *names) if n in measured.numbers and (section, n) not in SAMPLED
    ]
    reference = full[0] if full else None
    return {
        "section": section,
        "scale": options.scale,
        "contenders": {
            name: {
                "version": measured.versions[name],
                "runs": len(samples),
                "sampled": (section, name) in SAMPLED,
                "in_process": medians(samples),
                "whole": medians(measured.whole[name]) if name in measured.whole else None,
                "difference": difference(
                    measured.numbers[name], measured.numbers[reference or name][0]
                ),
                "samples": {"in_process": samples, "whole": measured.whole.get(name, [])},
            }
            for name, samples in measured.inside.items()
        },
        "numbers": len(measured.numbers[reference][0]) if reference else 0,
        "failures": measured.failures,
        "reference": reference,
    }


def difference(mine: list[array[float]], reference: array[float]) -> float:
    """Largest difference of any run's numbers from the reference's; infinite where one has none.

    Fewer numbers than the reference has are those of an evenly spaced sample, beginning with the
    first.
    """
    largest = 0.0
    for run in mine:
        step = math.ceil(len(reference) / len(run))
        for a, b in zip(run, reference[::step], strict=True):
            if math.isnan(a) != math.isnan(b):
                return math.inf
            if not math.isnan(a):
                largest = max(largest, abs(a - b))
    return largest


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Benchmark classification.")
    parser.add_argument("sections", nargs="+", choices=list(SECTIONS))
    parser.add_argument("--python", default=sys.executable, help="interpreter with evalengine")
    parser.add_argument("--peers-python", default=sys.executable, help="interpreter with the peers")
    parser.add_argument("--torch-python", help="the one with torchmetrics (default: the peers')")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the sets' size")
    every = sorted({name for names in SECTIONS.values() for name in names})
    parser.add_argument("--contenders", nargs="+", choices=every)
    parser.add_argument("--data", type=Path, default=HERE / ".data")
    parser.add_argument("--out", type=Path, help="folder of the JSON (default: DATA/results)")
    parser.add_argument("--write-docs", action="store_true", help="update the page")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs" / "benchmarks.md")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    out = options.out or options.data / "results"
    out.mkdir(parents=True, exist_ok=True)
    for section in options.sections:
        context = {"machine": machine(), "date": datetime.date.today().isoformat()}
        result = measure(section, options) | context | {"runs": options.runs}
        path = out / f"classification-{section}.json"
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(f"written: {path}", file=sys.stderr)
        text = page(result)
        if options.write_docs:
            write_docs(f"classification-{section}", text, options.docs)
        else:
            print(text, flush=True)


if __name__ == "__main__":
    main()
