"""Time chosen thresholds and fits of scores against scikit-learn's, side by side.

    python benchmarks/thresholds.py [--runs 3]

1,000,000 scores of one label, a binary table: the threshold with the largest F1 against
``precision_recall_curve`` and an argmax; the isotonic fit against ``IsotonicRegression``, both from
scores and outcomes in memory. Then the work of the command on 5,000 images, 200,000 boxes and 80
labels that are already scored: all rules with and without intervals, and calibration. CPU and wall
seconds, and the peak of additional memory (Linux), medians of several runs in turn, everything
loaded; one thread.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import precision_recall_curve

import evalengine as ee
from evalengine.metrics.thresholds import Curve, fitted_isotonic, segments_of
from evalengine.tallies.ranked_points import Points

ROWS = 1_000_000
IMAGES, EACH, LABELS = 5_000, 40, 80


def table() -> pl.DataFrame:
    """Return scores whose square is the probability of being right."""
    rng = np.random.default_rng(0)
    score = rng.random(ROWS)
    return pl.DataFrame({"actual": rng.random(ROWS) < score**2, "score": score})


def boxes() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return boxes, one in five of them true, with informative scores."""
    rng = np.random.default_rng(1)
    n = IMAGES * EACH
    there = rng.random(n) < 0.2
    x, y = rng.random(n) * 600, rng.random(n) * 400
    predicted = pl.DataFrame(
        {"datum_id": np.repeat(np.arange(IMAGES), EACH), "label_value": rng.integers(0, LABELS, n),
         "xmin": x, "ymin": y, "xmax": x + 40, "ymax": y + 40}
    )  # fmt: skip
    score = there * 0.3 + rng.random(n) * 0.7
    return predicted.with_columns(score=pl.Series(score)), predicted.filter(pl.Series(there))


def contenders() -> dict[str, Callable[[], Any]]:
    rows = table()
    right, score = rows["actual"].to_numpy(), rows["score"].to_numpy()

    def largest_f() -> float:
        precision, recall, thresholds = precision_recall_curve(right, score)
        f = 2 * precision * recall / np.maximum(precision + recall, 1e-12)
        return float(thresholds[f[:-1].argmax()])

    def own_fit() -> Any:
        order = np.argsort(-score)
        tp = np.cumsum(right[order], dtype=np.float64)
        points = Points(np.array([0, ROWS]), score[order], tp, np.arange(1, ROWS + 1) - tp)
        shown = lambda: np.ones(1, bool)  # noqa: E731
        return fitted_isotonic(segments_of(Curve(lambda: [points], tp[-1:], None, shown)))

    card = ee.score(*boxes(), threads=1)
    metric = {"metrics": ["ThresholdAtMaxF"], "threads": 1}
    return {
        "largest F1 of a million scores: evalengine": lambda: ee.score(rows, **metric).value(
            "ThresholdAtMaxF", statistic="threshold"
        ),
        "largest F1 of a million scores: scikit-learn": largest_f,
        "isotonic fit of a million scores: evalengine": own_fit,
        "isotonic fit of a million scores: scikit-learn": lambda: IsotonicRegression().fit(
            score, right
        ),
        "5 rules x 81 of boxes, held out, 20 draws": lambda: ee.find_thresholds(card, draws=20),
        "5 rules x 81 of boxes, held out, 200 draws": lambda: ee.find_thresholds(card),
        "calibration of 81, both fits, held out, 20 draws": lambda: ee.find_calibration(
            card, draws=20
        ),
    }


def status(name: str) -> float:
    """Return a memory size of this process in megabytes, from Linux's status file."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return float(next(one for one in lines if one.startswith(name)).split()[1]) / 1e3


def reset_peak() -> float:
    """Reset the peak of memory and return the current size in megabytes."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    return status("VmRSS")


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    every = contenders()
    taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in every}
    for turn in range(runs + 1):
        for name, call in every.items():
            before = reset_peak()
            wall, ready = time.perf_counter(), time.process_time()
            call()
            spent = time.process_time() - ready, time.perf_counter() - wall
            if turn:  # the first call loads everything
                taken[name].append((*spent, status("VmHWM") - before))
    print("| | CPU s | wall s | peak MB above |\n| --- | ---: | ---: | ---: |")
    for name, figures in taken.items():
        cpu, wall, peak = map(statistics.median, zip(*figures, strict=True))
        print(f"| {name} | {cpu:.3f} | {wall:.3f} | {peak:.0f} |")


if __name__ == "__main__":
    main()
