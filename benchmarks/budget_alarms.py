"""False alarms and power of a job whose conditions to fail share a budget.

    python benchmarks/budget_alarms.py [--sets N] [--draws N] [--cells NAME ...] [--store FILE]
        [--write-docs]

A job compares a classifier of ten labels with a baseline over the same 1,000 datums, by 22 rows:
Recall and Precision of every label, Accuracy and macro F1, all `< baseline surely`. A false alarm
is a failed job although both are equally good. Set i of a cell depends only on i and is stored in
FILE, from which an interrupted run continues.
"""

from __future__ import annotations

import sys
import zlib
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
import reporting
from simulating import simulate

Array = np.ndarray[Any, Any]
LABELS, DATUMS, RIGHT = 10, 1000, 0.85
CELLS = {
    "equal": (0, 0.0),
    "one label, 12 points worse": (1, 0.12),
    "all labels, 3 points worse": (LABELS, 0.03),
}
"""Cell -> labels that are worse, and by how much."""
CONDITIONS = tuple(
    f"{name} < baseline surely"
    for name in ("Recall[label=*]", "Precision[label=*]", "Accuracy", "F1[average=macro]")
)
BUDGET = 0.05


def tables(cell: str, i: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the datums of the baseline and of the run, of different difficulty."""
    many, worse = CELLS[cell]
    rng, normal = np.random.default_rng([zlib.crc32(cell.encode()), i]), NormalDist()
    actual = rng.integers(0, LABELS, DATUMS)
    ease = rng.normal(0, 1, DATUMS)  # shared by both, so that errors are alike
    right = [
        (ease + rng.normal(0, 1, DATUMS)) / np.sqrt(2) < [normal.inv_cdf(one) for one in share]
        for share in (np.full(DATUMS, RIGHT), RIGHT - worse * (actual < many))
    ]
    names = np.array([f"label {k}" for k in range(LABELS)])
    other = (actual + rng.integers(1, LABELS, DATUMS)) % LABELS
    made = [
        pl.DataFrame({
            "datum_id": np.arange(DATUMS),
            "actual": names[actual],
            "predicted": names[np.where(one, actual, other)],
        })
        for one in right
    ]  # fmt: skip
    return made[0], made[1]


def failed(cell: str, i: int, draws: int) -> dict[str, bool]:
    """Return whether the job fails: with the budget, without it, and by rows at 0.025 each."""
    import evalengine as ee
    from evalengine.jobs.gates import parse_gates
    from evalengine.jobs.verdicts import compared_numbers, judge_gates

    metrics = ["Accuracy", "Recall", "Precision", "F1"]
    made = ee.compare(
        *tables(cell, i), metrics=metrics, task="classification", draws=draws, threads=1
    )
    earlier, run, margins = compared_numbers(made, None)
    gates = parse_gates([], CONDITIONS)

    def judged(budget: float | None) -> list[Any]:
        return judge_gates(gates, run, earlier, compare=lambda m, s: margins, budget=budget)

    shared, alone = judged(BUDGET), judged(None)
    return {
        "budget": any(one.status == "failed" for one in shared),
        "each condition at 0.025": any(one.status == "failed" for one in alone),
        "each row at 0.025": any(one.p is not None and one.p <= 0.025 for one in alone),
    }


def as_table(stored: dict[str, Any]) -> str:
    rows = []
    for cell in filter(stored.__contains__, CELLS):
        kinds = stored[cell][0]
        rows.append([cell, *(f"{np.mean([o[kind] for o in stored[cell]]):.3f}" for kind in kinds)])
    header = ["run", "one budget of 0.05", "each condition at 0.025", "each row at 0.025"]
    return reporting.table(header, rows)


def main() -> int:
    return simulate(__doc__, "budget_alarms", [*CELLS], failed, as_table, sets=100, draws=400)


if __name__ == "__main__":
    sys.exit(main())
