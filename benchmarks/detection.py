"""Time evalengine against other detection evaluators, side by side.

    python benchmarks/detection.py small json --peers-python PEERS/bin/python --write-docs

`small` and `large` score the sets of detection_data.py, `json` the small one from the same JSON for
all contenders. Every measurement is a new process; contenders take turns, so that a busy moment of
the machine affects all of them; figures are medians. PEERS is an environment with hotcoco,
ultrafast-pycocotools, faster-coco-eval, pycocotools, valor-lite, numpy and pyarrow.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from array import array
from pathlib import Path
from typing import Any

from measuring import Contender, machine, medians, take_turns
from reporting import section as page
from reporting import write_docs

HERE = Path(__file__).resolve().parent
OURS = ["evalengine-1", "evalengine-2", "evalengine-2-frames", "evalengine-2-all"]
FAST = ["ultrafast-pycocotools", "hotcoco"]
SAME_FILES = ["evalengine-1-json", "evalengine-2-json", *FAST]
SLOW = ["faster-coco-eval", "pycocotools", "valor-lite"]
REFERENCES = ["pycocotools", "ultrafast-pycocotools"]  # the first that ran is the reference


def score_size(size: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measure all contenders on one set, in process and as complete processes."""
    data = "small" if size == "json" else size
    subprocess.run(
        [options.python, HERE / "detection_data.py", "tiny", data, "--out", options.data],
        check=True,
    )
    folder, tiny = options.data / data, options.data / "tiny"
    slow = SLOW if size != "large" or options.slow_at_large else []
    usual = SAME_FILES if size == "json" else [*OURS, *FAST, *slow]
    contenders = options.contenders or usual
    ours, peers = str(options.python), str(options.peers_python)
    measured = take_turns(
        size,
        [
            Contender(
                name,
                ours if name.startswith("evalengine") else peers,
                min(options.runs, options.slow_runs) if name in SLOW else options.runs,
                whole=name not in SLOW,  # start-up is negligible
            )
            for name in contenders
        ],
        folder,
        tiny,
    )
    whole, numbers = measured.whole, measured.numbers
    reference = next((name for name in REFERENCES if name in numbers), None)
    return {
        "section": size,
        "contenders": {
            name: {
                "version": measured.versions[name],
                "runs": len(samples),
                "in_process": medians(samples),
                "whole": medians(whole[name]) if name in whole else None,
                "numbers": list(numbers[name][0]) if name in numbers else None,
                "difference": difference(numbers.get(name), numbers.get(reference or "")),
                "samples": {"in_process": samples, "whole": whole.get(name, [])},
            }
            for name, samples in measured.inside.items()
        },
        "failures": measured.failures,
        "reference": reference,
    }


def difference(
    mine: list[array[float]] | None, reference: list[array[float]] | None
) -> float | None:
    """Return the largest difference of any run's twelve values from the reference."""
    if not mine or not reference:
        return None
    return max(abs(a - b) for run in mine for a, b in zip(run, reference[0], strict=True))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Benchmark box detection.")
    parser.add_argument("sections", nargs="+", choices=["small", "json", "large"])
    parser.add_argument("--python", default=sys.executable, help="interpreter with evalengine")
    parser.add_argument("--peers-python", default=sys.executable, help="interpreter with the peers")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--slow-runs", type=int, default=1, help="runs of the slow contenders")
    parser.add_argument("--slow-at-large", action="store_true", help=f"run {SLOW} there as well")
    parser.add_argument("--contenders", nargs="+", choices=[*OURS, *SAME_FILES, *SLOW])
    parser.add_argument("--data", type=Path, default=HERE / ".data")
    parser.add_argument("--out", type=Path, help="folder of the JSON (default: DATA/results)")
    parser.add_argument("--write-docs", action="store_true", help="update docs/benchmarks/")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    out = options.out or options.data / "results"
    out.mkdir(parents=True, exist_ok=True)
    for section in options.sections:
        context = {"machine": machine(), "date": datetime.date.today().isoformat()}
        result = score_size(section, options)
        result |= context | {"runs": options.runs}
        path = out / f"detection-{section}.json"
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(f"written: {path}", file=sys.stderr)
        if options.write_docs:
            write_docs(section, page(result))


if __name__ == "__main__":
    main()
