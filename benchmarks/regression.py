"""Time ten metrics of regression, of all rows and of 100 groups, against scikit-learn and Polars.

    python benchmarks/regression.py [--rows 20000000] [--runs 3]

The input is one Parquet file of predictions, targets and a group. Contenders take turns, each in a
separate process with one thread, which has scored a small table before: evalengine; scikit-learn's
functions (NumPy's for MeanError and Pearson) over the columns and over the rows of each group,
split by Polars; Polars' own expressions; and, as a lower limit, reading the three columns and
summing them. Figures are medians of CPU seconds from file to values. Then intervals of three
metrics, of all rows and with the groups.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

METRICS = (
    "MAE", "MSE", "RMSE", "MAPE", "MedianAE", "R2", "ExplainedVariance", "MaxError", "MeanError",
    "Pearson",
)  # fmt: skip
INTERVALS = ("MAE", "RMSE", "R2")
DRAWS = 1000
GROUPS = 100


def write(path: Path, rows: int, seed: int = 0) -> None:
    """Write positive targets, and predictions that deviate by a fifth."""
    rng = np.random.default_rng(seed)
    target = rng.gamma(3, 20, rows) + 0.5
    pl.DataFrame(
        {
            "prediction": target * rng.lognormal(0, 0.2, rows),
            "target": target,
            "store": rng.integers(0, GROUPS, rows).astype(np.int32),
        }
    ).write_parquet(path)


def evalengine(path: Path) -> list[float]:
    import evalengine as ee

    options: dict[str, Any] = {"metrics": METRICS, "by": ["store"], "threads": 1}
    rows = ee.score(path, task="regression", **options).metrics
    return list(rows.filter(pl.col("slice").is_null())["value"])


def scikit_learn(path: Path) -> list[float]:
    from sklearn import metrics

    calls = [
        metrics.mean_absolute_error,
        metrics.mean_squared_error,
        metrics.root_mean_squared_error,
        metrics.mean_absolute_percentage_error,
        metrics.median_absolute_error,
        metrics.r2_score,
        metrics.explained_variance_score,
        metrics.max_error,
        lambda t, p: (p - t).mean(),
        lambda t, p: np.corrcoef(t, p)[0, 1],
    ]
    table = pl.read_parquet(path)

    def numbers(some: pl.DataFrame) -> list[float]:
        sides = some["target"].to_numpy(), some["prediction"].to_numpy()
        return [float(call(*sides)) for call in calls]

    whole = numbers(table)
    for group in table.partition_by("store"):
        numbers(group)
    return whole


def polars(path: Path) -> list[float]:
    target = pl.col("target")
    error = pl.col("prediction") - target
    squares = ((target - target.mean()) ** 2).sum()
    numbers = [
        error.abs().mean().alias("MAE"),
        (error**2).mean().alias("MSE"),
        (error**2).mean().sqrt().alias("RMSE"),
        (error.abs() / target.abs()).mean().alias("MAPE"),
        error.abs().median().alias("MedianAE"),
        (1 - (error**2).sum() / squares).alias("R2"),
        (1 - error.var() / target.var()).alias("ExplainedVariance"),
        error.abs().max().alias("MaxError"),
        error.mean().alias("MeanError"),
        pl.corr(target, "prediction").alias("Pearson"),
    ]
    table = pl.read_parquet(path)
    table.lazy().group_by("store").agg(numbers).collect()
    return list(table.lazy().select(numbers).collect().row(0))


def reading(path: Path) -> list[float]:
    table = pl.read_parquet(path)
    return [float(table[name].sum()) for name in table.columns]


def _intervals(path: Path, by: list[str]) -> list[float]:
    import evalengine as ee

    options: dict[str, Any] = {"metrics": INTERVALS, "by": by, "threads": 1, "draws": DRAWS}
    rows = ee.score(path, task="regression", intervals=0.95, **options).metrics
    return list(rows["lower"])


CONTENDERS: dict[str, Callable[[Path], list[float]]] = {
    "evalengine": evalengine,
    "scikit-learn": scikit_learn,
    "Polars": polars,
    "reading and one sum": reading,
}
INTERVALS_OF: dict[str, Callable[[Path], list[float]]] = {
    "intervals of all rows": lambda path: _intervals(path, []),
    "intervals, and of each group": lambda path: _intervals(path, ["store"]),
}


def measure(name: str, path: Path, small: Path) -> dict[str, Any]:
    """Return CPU and wall seconds, peak memory and values, in this process."""
    call = {**CONTENDERS, **INTERVALS_OF}[name]
    call(small)
    cpu, wall = time.process_time(), time.perf_counter()
    numbers = call(path)
    return {
        "cpu": time.process_time() - cpu,
        "wall": time.perf_counter() - wall,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2,
        "numbers": numbers,
    }


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--drawn", type=int, default=200_000, help="rows that intervals are of")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.only:
        rows = "drawn.parquet" if asked.only in INTERVALS_OF else "rows.parquet"
        files = asked.folder / rows, asked.folder / "small.parquet"
        print(json.dumps(measure(asked.only, *files)))
        return
    names = [*CONTENDERS, *(INTERVALS_OF if asked.drawn else ())]
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "rows.parquet", asked.rows)
        write(Path(folder) / "small.parquet", 50_000)
        write(Path(folder) / "drawn.parquet", asked.drawn)
        one = {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        for _ in range(asked.runs):
            for name, runs in results.items():
                line = [sys.executable, __file__, "--only", name, "--folder", folder]
                done = subprocess.run(
                    line, env=os.environ | one, check=True, capture_output=True, text=True
                )
                runs.append(json.loads(done.stdout.splitlines()[-1]))
    ours, *others = (np.array(results[name][0]["numbers"]) for name in tuple(CONTENDERS)[:3])
    deviations = [f"{(np.abs(ours - their) / np.abs(their)).max():.1e}" for their in others]
    print(
        f"{asked.rows:,} rows, {GROUPS} groups; numbers apart by at most {' and '.join(deviations)}"
    )
    print("| | CPU s | wall s | peak GiB |\n| --- | ---: | ---: | ---: |")
    for name, runs in results.items():
        cells = (statistics.median(run[key] for run in runs) for key in ("cpu", "wall", "peak"))
        print(f"| {name} | {' | '.join(f'{cell:.2f}' for cell in cells)} |")


if __name__ == "__main__":
    main()
