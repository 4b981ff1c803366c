"""Coverage of intervals by metric and support: few positives, rare labels, clusters, weights.

    python benchmarks/few_datums.py [--sets N] [--draws N] [--cells NAME ...] [--store FILE]
        [--write-docs]

Sets are numbered, and set i of a cell depends only on i. An interrupted run continues from FILE,
and further sets are added to it. The interval is each metric's default. The table has the share of
intervals that contain the truth, and the shares that are too high and too low.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import reporting

Array = np.ndarray[Any, Any]
Made = tuple[pl.DataFrame, dict[str, Any]]
SUPPORTS = 4, 10, 20, 30, 100, 1000
LEVEL = 0.95
SHARE_RARE = 0.2  # share of positives in sets of labels
NAMES = "sets", "covered", "high", "low", "none"


def labels(rng: np.random.Generator, support: int) -> Made:
    """Return a rare label, found in 70 % of its datums and falsely in 10 % of the others."""
    n = round(support / SHARE_RARE)
    target = np.arange(n) < support
    seen = np.where(target, rng.random(n) < 0.7, rng.random(n) < 0.1)
    names = np.array(["other", "rare"])
    frame = pl.DataFrame(
        {"target": names[target.astype(int)], "prediction": names[seen.astype(int)]}
    )
    return frame, {"task": "classification"}


def scores(rng: np.random.Generator, support: int, gap: float) -> Made:
    """Return normal scores, a fifth positive, with means ``gap`` standard deviations apart."""
    actual = np.arange(round(support / SHARE_RARE)) < support
    score = rng.normal(0, 1, actual.size) + gap * actual
    return pl.DataFrame({"score": score, "actual": actual}), {"task": "classification"}


def clustered(rng: np.random.Generator, support: int) -> Made:
    """Return ``support`` documents of ten datums, with varying accuracy around 0.8."""
    doc = np.repeat(np.arange(support), 10)
    right = rng.random(doc.size) < rng.beta(4, 1, support)[doc]
    frame = pl.DataFrame({"target": ["a"] * doc.size, "prediction": np.where(right, "a", "b")})
    return frame.with_columns(doc=doc), {"task": "classification", "cluster": "doc"}


def weighed(rng: np.random.Generator, support: int) -> Made:
    """Return datums of accuracy 0.8 with log-normal weights."""
    right = rng.random(support) < 0.8
    frame = pl.DataFrame({"target": ["a"] * support, "prediction": np.where(right, "a", "b")})
    return frame.with_columns(weight=rng.lognormal(0, 1, support)), {"task": "classification"}


def errors(rng: np.random.Generator, support: int) -> Made:
    """Return errors of Student's t with 5 degrees of freedom."""
    target = rng.normal(0, 2, support)
    predicted = target + rng.standard_t(5, support)
    return pl.DataFrame({"target": target, "prediction": predicted}), {"task": "regression"}


def series(rng: np.random.Generator, support: int) -> Made:
    """Return errors of ``support`` series of eight rows, each with an offset."""
    code = np.repeat(np.arange(support), 8)
    target = rng.normal(0, 2, code.size)
    predicted = target + rng.normal(rng.normal(0, 1, support)[code], 1)
    frame = pl.DataFrame({"target": target, "prediction": predicted, "doc": code})
    return frame, {"task": "regression", "cluster": "doc"}


Row = dict[str, Any]
CELLS: dict[str, tuple[Callable[[np.random.Generator, int], Made], dict[str, Row]]] = {
    "labels": (
        labels,
        {
            "Recall": {"label_value": "rare"},
            "Precision": {"label_value": "rare"},
            "F1": {"label_value": "rare"},
            "Accuracy": {},
            "BalancedAccuracy": {},
            "MCC": {},
            "CohenKappa": {},
        },
    ),
    "area 0.8": (lambda rng, n: scores(rng, n, 1.19), {"ROCAUC": {}}),
    "area 0.95": (lambda rng, n: scores(rng, n, 2.326), {"ROCAUC": {}}),
    "clusters": (clustered, {"Accuracy": {}}),
    "weights": (weighed, {"Accuracy": {}}),
    "errors": (errors, {"MAE": {}, "RMSE": {}}),
    "series": (series, {"MAE": {}}),
}
"""Cell -> generator of a set, and its metrics with their rows.

Support is the number of positives, documents, datums or series.
"""
LARGE = 200_000  # support from which the truth is computed


def rows_by_number(made: Made, metrics: dict[str, Row], **options: Any) -> dict[str, Row]:
    import evalengine as ee

    frame, more = made
    if "intervals" not in options:
        more = {"task": more["task"]}
    card = ee.score(frame, metrics=[*metrics], threads=1, **more, **options)
    return {
        name: card.metrics.filter(
            pl.col("metric") == name,
            pl.col("average").is_null(),
            *(pl.col(column) == value for column, value in row.items()),
        ).row(0, named=True)
        for name, row in metrics.items()
    }


def seed_of(cell: str, support: int, i: int) -> list[int]:
    return [zlib.crc32(cell.encode()), support, i]


def measured(
    cell: str, support: int, first: int, last: int, draws: int
) -> dict[str, dict[str, int]]:
    """Count intervals over some sets, by metric."""
    make, metrics = CELLS[cell]
    truth = rows_by_number(make(np.random.default_rng(seed_of(cell, 0, 0)), LARGE), metrics)
    out = {name: dict.fromkeys(NAMES, 0) for name in metrics}
    for i in range(first, last):
        made = make(np.random.default_rng(seed_of(cell, support, i)), support)
        rows = rows_by_number(made, metrics, intervals=LEVEL, draws=draws, seed=i)
        for name, row in rows.items():
            low, high, true = row["lower"], row["upper"], truth[name]["value"]
            kind = (
                "none"
                if low is None
                else "high"
                if low > true
                else "low"
                if high < true
                else "covered"
            )
            out[name]["sets"] += 1
            out[name][kind] += 1
    return out


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--cells", nargs="*", default=[*CELLS], choices=[*CELLS])
    parser.add_argument("--store", type=Path, default=Path("few_datums.json"))
    parser.add_argument("--write-docs", action="store_true")
    given = parser.parse_args()
    stored = json.loads(given.store.read_text()) if given.store.exists() else {}
    begin = time.perf_counter()
    for cell in given.cells:
        for support in SUPPORTS:
            known = stored.setdefault(cell, {}).setdefault(str(support), {})
            have = max((one["sets"] for one in known.values()), default=0)
            for at in range(have, given.sets, 50):
                more = measured(cell, support, at, min(at + 50, given.sets), given.draws)
                for name, counts in more.items():
                    old = known.setdefault(name, dict.fromkeys(NAMES, 0))
                    known[name] = {key: old[key] + counts[key] for key in NAMES}
                given.store.write_text(json.dumps(stored))
            print(f"{cell}, {support}: {time.perf_counter() - begin:.0f} s", file=sys.stderr)
    table = as_table(stored)
    print(table)
    if given.write_docs:
        reporting.write_docs("few-datums", table, reporting.PAGES.parent)
    return 0


def as_table(stored: dict[str, Any]) -> str:
    """Format coverage by metric and support; in brackets, lower bounds above the truth."""
    lines = [
        "| set | metric | " + " | ".join(f"{one:,}" for one in SUPPORTS) + " |",
        "| --- | --- |" + " ---: |" * len(SUPPORTS),
    ]
    for cell, of_cell in stored.items():
        for metric in CELLS[cell][1]:
            shown = []
            for support in SUPPORTS:
                one = of_cell.get(str(support), {}).get(metric)
                n = one["sets"] - one["none"] if one else 0
                shown.append(f"{one['covered'] / n:.3f} ({one['high'] / n:.3f})" if n else "")
                if one and one["none"]:
                    shown[-1] += f", none in {one['none'] / one['sets']:.0%}"
            lines.append(f"| {cell} | {metric} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
