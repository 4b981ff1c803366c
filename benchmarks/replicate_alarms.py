"""False alarms and power of comparisons of models with several seeds each.

    python benchmarks/replicate_alarms.py [--sets N] [--draws N] [--cells NAME ...] [--store FILE]
        [--write-docs]

Two equal models (or, for power, one 4 points better) answer the same questions. Questions differ in
difficulty, and seeds in quality. An alarm is p at most 0.05. `one seed` compares the first seed of
each model, as is often done. The best possible test of the averages' difference knows its
distribution: it detects differences beyond 95 % of those between equal models. Set i of a cell
depends only on i and is stored in FILE, from which an interrupted run continues.
"""

from __future__ import annotations

import sys
import zlib
from typing import Any

import numpy as np
import polars as pl
import reporting
from scipy.special import expit
from simulating import simulate

Array = np.ndarray[Any, Any]
CELLS = {
    "5 seeds, equally good": (5, 200, 0.0),
    "5 seeds": (5, 200, 0.25),
    "3 seeds": (3, 200, 0.25),
    "2 seeds": (2, 200, 0.25),
    "5 seeds, 50 questions": (5, 50, 0.25),
}
"""Cell -> seeds of each model, questions, and standard deviation of seeds, in log odds."""
GAIN = 0.25  # of the better model, in log odds
METRICS = "Accuracy", "F1"


def runs(cell: str, i: int, gain: float) -> list[pl.DataFrame]:
    """Return tables of all seeds of the first model, then of the second."""
    seeds, n, spread = CELLS[cell]
    rng = np.random.default_rng([zlib.crc32(cell.encode()), i])
    target = rng.integers(0, 2, n)
    ease = rng.normal(1, 1.5, n)
    own = [ease + rng.normal(0, 0.7, n) + better for better in (0.0, gain)]
    made = []
    for level in own:
        for _ in range(seeds):
            right = rng.random(n) < expit(level + rng.normal(0, spread))
            prediction = np.where(right, target, 1 - target)
            made.append(pl.DataFrame({"target": target, "prediction": prediction}))
    return made


def measured(cell: str, i: int, draws: int, gain: float) -> dict[str, list[float]]:
    """Return p and difference of every metric in one set."""
    import evalengine as ee

    seeds = CELLS[cell][0]
    made = runs(cell, i, gain)
    options: dict[str, Any] = {
        "metrics": [*METRICS], "task": "classification", "draws": draws, "threads": 1,
    }  # fmt: skip
    names = ["a"] * seeds + ["b"] * seeds
    several = ee.compare(*made, names=names, **options).differences
    single = ee.compare(made[0], made[seeds], **options).differences
    rates = {}
    for kind, rows in (("", several), (" one seed", single)):
        for metric, average in (("Accuracy", None), ("F1", "macro")):
            row = rows.filter(metric=metric).filter(pl.col("average").eq_missing(average))
            p, gap = row["p"][0], row["difference"][0]
            rates[metric + kind] = [1.0 if p is None else p, gap or 0.0]
    return rates


def pair(cell: str, i: int, draws: int) -> list[dict[str, list[float]]]:
    """Return a set of equally good models, and a set whose second model is better."""
    return [measured(cell, i, draws, gain) for gain in (0.0, GAIN)]


def shares(equal: Array, better: Array) -> tuple[float, float, float]:
    """Return false alarms, power, and the power of the best possible test."""
    known = np.quantile(np.abs(equal[:, 1]), 0.95)
    return (
        float((equal[:, 0] <= 0.05).mean()),
        float((better[:, 0] <= 0.05).mean()),
        float((np.abs(better[:, 1]) > known).mean()),
    )


def as_table(stored: dict[str, Any]) -> str:
    rows = []
    for cell in filter(stored.__contains__, CELLS):
        every = [
            {name: np.array([rates[name] for rates in sets]) for name in sets[0]}
            for sets in zip(*stored[cell], strict=True)
        ]
        made = [shares(every[0][name], every[1][name]) for name in (*METRICS, "Accuracy one seed")]
        rows.append([cell, *(f"{a:.3f} ({b:.3f})" for a, b, _ in made), f"{made[0][2]:.3f}"])
    names = "Accuracy", "macro F1", "Accuracy, one seed each", "power of the best possible test"
    return reporting.table(["models", *names], rows)


def main() -> int:
    return simulate(__doc__, "replicate_alarms", [*CELLS], pair, as_table, sets=100, draws=200)


if __name__ == "__main__":
    sys.exit(main())
