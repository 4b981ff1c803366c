"""Bias of mAP in small sets, and intervals around corrected numbers.

    python benchmarks/map_bias.py [--sets N] [--draws N] [--cells NAME ...] [--store FILE]
        [--write-docs]

Sets are sampled from a population of 20,000 images, whose mAP is known. Set i of a cell depends
only on i, and is kept in FILE, where a run that was stopped goes on. Candidates differ in how fast
the excess falls with the number of datums; all follow from one run. Loss:
docs/decisions/intervals.md.
"""

from __future__ import annotations

import sys
from typing import Any

import interval_coverage_data as data
import numpy as np
import reporting
from simulating import simulate

Array = np.ndarray[Any, Any]
CELLS = {
    "5 classes, 10": ("boxes", 20),
    "5 classes, 100": ("boxes", 200),
    "40 classes, 10": ("classes", 20),
    "40 classes, 100": ("classes", 200),
    "5 classes, 30": ("boxes", 60),
    "5 classes, 1,000": ("boxes", 2000),
}
"""Cell -> study of interval_coverage_data.py, and images; the last two are held back."""
HELD_BACK = 2
RATES = {"halves, n^-1/2": 0.5, "halves, n^-2/3": 2 / 3, "halves, n^-1": 1.0}
NUMBERS = "value", "lower", "upper", "bias", "corrected"


def measured(cell: str, i: int, draws: int) -> list[float]:
    """Number, recentred interval, bias of resamples and corrected number of one set."""
    import evalengine as ee

    study, images = data.STUDIES[CELLS[cell][0]], CELLS[cell][1]
    sides = study.sample(np.random.default_rng((i, images)), images)
    frame = ee.score(
        *sides, metrics=["mAPAveragedOverIOUs"], intervals=0.95, draws=draws, seed=i, threads=1
    ).metrics
    row = frame.row(0, named=True)
    return [np.nan if row[name] is None else row[name] for name in NUMBERS]


def candidates(rows: Array) -> dict[str, tuple[Array, Array, Array]]:
    """Numbers and ends of every candidate, [sets] each."""
    from evalengine.statistics.resamples import _RATE

    value, lower, upper, bias, corrected = rows.T
    gap = (value - corrected) * (2**_RATE - 1)  # of halves
    excess = {"none": 0 * value, "bootstrap": bias}
    excess |= {name: gap / (2**rate - 1) for name, rate in RATES.items()}
    return {name: (value - e, lower - e, upper - e) for name, e in excess.items()}


def as_table(kept: dict[str, list[list[float]]]) -> str:
    names, losses, rows = ["none", "bootstrap", *RATES], {}, []
    for cell in filter(kept.__contains__, CELLS):
        study = data.STUDIES[CELLS[cell][0]]
        (truth,) = next(values for name, values in study.truth().items() if "mAP" in name)
        shown = []
        for name, (value, low, high) in candidates(np.array(kept[cell])).items():
            coverage = ((low <= truth) & (truth <= high)).mean()
            spread = np.subtract(*np.quantile(value, [0.975, 0.025]))
            loss = abs(coverage - 0.95) + 0.1 * abs((high - low).mean() / spread - 1)
            losses.setdefault(name, []).append(loss)
            shown.append(f"{value.mean() - truth:+.4f}, {coverage:.3f}")
        rows.append([cell, f"{truth:.3f}", *shown])
    n = len(CELLS) - HELD_BACK
    mean = [
        f"{np.mean(losses[x][:n]):.3f} / {np.mean(losses[x][n:] or [np.nan]):.3f}" for x in names
    ]
    rows.append(["loss", "", *mean])
    return reporting.table(["set", "truth", *names], rows)


def main() -> int:
    return simulate(__doc__, "map_bias", [*CELLS], measured, as_table, sets=50, draws=200)


if __name__ == "__main__":
    sys.exit(main())
