"""Bias of mAP in small sets, and intervals around corrected values.

    python benchmarks/map_bias.py [--sets N] [--draws N] [--cells NAME ...] [--store FILE]
        [--write-docs]

Sets are sampled from a population of 20,000 images, whose mAP is known. Set i of a cell depends
only on i and is stored in FILE, from which an interrupted run continues. Candidates differ in how
fast the excess falls with the number of datums, and all follow from one run; the last column has
the interval of evalengine. Rules: docs/decisions/intervals.md.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import interval_coverage_data as data
import numpy as np
import polars as pl
import reporting
from simulating import simulate

Array = np.ndarray[Any, Any]
CELLS: dict[str, tuple[int, dict[str, Any]]] = {
    "5 classes, 10": (20, {}),
    "5 classes, 30": (60, {}),
    "5 classes, 100": (200, {}),
    "5 classes, 1,000": (2000, {}),
    "40 classes, 10": (20, {"classes": 40}),
    "40 classes, 30": (60, {"classes": 40}),
    "40 classes, 100": (200, {"classes": 40}),
    "12 classes, 20": (40, {"classes": 12}),
    "20 classes by Zipf's law, 30": (60, {"classes": 20, "zipf": True}),
    "5 classes, 75 in 30 videos": (30, {"frames": 5}),
}
"""Classes and ground truths per class -> images (or videos), and arguments of `data.images`."""
RATES = {"halves, n^-1/2": 0.5, "halves, n^-2/3": 2 / 3, "halves, n^-1": 1.0}
NUMBERS = "value", "lower", "upper", "bias", "corrected", "corrected_lower", "corrected_upper"
METRIC = "mAPAveragedOverIOUs"


@cache
def truth_of(cell: str) -> float:
    """Return mAP of the population."""
    import evalengine as ee

    tables = [side.table for side in data.images(**CELLS[cell][1])]
    return float(ee.score(*tables, metrics=[METRIC]).metrics["value"][0])


def measured(cell: str, i: int, draws: int) -> list[float]:
    """Return value, recentred interval, bias of resamples, corrected value and its interval."""
    import evalengine as ee

    n, population = CELLS[cell]
    frames = population.get("frames", 1)
    rng = np.random.default_rng((i, n))
    tables = data.drawn_from(data.images(**population), rng, n, frames)
    if frames > 1:
        tables = tuple(one.with_columns(video=pl.col("datum_id") // frames) for one in tables)
    frame = ee.score(
        *tables,
        metrics=[METRIC],
        intervals=0.95,
        draws=draws,
        seed=i,
        threads=1,
        cluster="video" if frames > 1 else None,
    ).metrics
    row = frame.row(0, named=True)
    return [np.nan if row[name] is None else row[name] for name in NUMBERS]


def candidates(rows: Array) -> dict[str, tuple[Array, Array, Array]]:
    """Return values and bounds of every candidate, [sets] each."""
    from evalengine.statistics.resamples import _RATE

    value, lower, upper, bias, *corrected = rows.T
    gap = (value - corrected[0]) * (2**_RATE - 1)  # of halves
    excess = {"none": 0 * value, "bootstrap": bias}
    excess |= {name: gap / (2**rate - 1) for name, rate in RATES.items()}
    moved = {name: (value - e, lower - e, upper - e) for name, e in excess.items()}
    return moved | {"corrected": tuple(corrected)}


def as_table(stored: dict[str, list[list[float]]]) -> str:
    names, rows = ["none", "bootstrap", *RATES, "corrected"], []
    for cell in filter(stored.__contains__, CELLS):
        truth, shown = truth_of(cell), []
        for name, (value, low, high) in candidates(np.array(stored[cell])).items():
            above, below = (low > truth).mean(), (high < truth).mean()
            sides = f" ({above:.3f}, {below:.3f})" if name == "corrected" else ""
            shown.append(f"{value.mean() - truth:+.4f}, {1 - above - below:.3f}{sides}")
        rows.append([cell, f"{truth:.3f}", *shown])
    return reporting.table(["set", "truth", *names], rows)


def main() -> int:
    return simulate(__doc__, "map_bias", [*CELLS], measured, as_table, sets=50, draws=1000)


if __name__ == "__main__":
    sys.exit(main())
