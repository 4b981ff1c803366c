"""False alarms and power of the tests of ``compare``, and false passes of gates with ``surely``.

    python benchmarks/alarms_of_tests.py [--sets N] [--draws N] [--seconds S] [--store FILE]
        [--write-docs]

Set i of a case depends only on the case and i, so that an interrupted run continues from FILE. Each
set has a pair of equally good runs and a pair whose second run is better. The same values are
tested by the best known test of the literature, computed here.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import reporting

import evalengine as ee
from evalengine.statistics.intervals import clopper_pearson, normal_cdf, t_cdf

Array = np.ndarray[Any, Any]
LEVEL = 0.05
CHUNK = 25  # sets between two writes of the store
Pair = tuple[pl.DataFrame, pl.DataFrame]

# Pairs of runs, and the best known tests.


def answers(rng: Any, n: int, gain: float) -> Pair:
    """Return binary labels; hard datums are hard for both runs."""
    chance = rng.beta(4, 1, n)
    right = [rng.random(n) < one for one in (chance, chance + gain * (1 - chance))]
    ids = np.arange(n)
    one, other = (
        pl.DataFrame({"datum_id": ids, "actual": 1, "predicted": r.astype(int)}) for r in right
    )
    return one, other


def scores(rng: Any, n: int, gain: float) -> Pair:
    """Return scores of which half the variance is shared; a third of the datums is positive."""
    actual = np.arange(n) < n // 3
    shared = rng.normal(size=n)
    runs = [
        shared + rng.normal(size=n) + (1.6 + more) * actual for more in (0.0, gain)
    ]  # runs on another scale have the same areas
    ids = np.arange(n)
    one, other = (
        pl.DataFrame({"datum_id": ids, "actual": actual, "score": 1 / (1 + np.exp(-run))})
        for run in runs
    )
    return one, other


def errors(rng: Any, n: int, gain: float) -> Pair:
    """Return errors of Student's t with 5 degrees of freedom, half shared."""
    target, shared = rng.normal(size=n), rng.standard_t(5, n)
    runs = [target + (shared + rng.standard_t(5, n)) * (1 - less) for less in (0.0, gain)]
    one, other = (
        pl.DataFrame({"datum_id": np.arange(n), "target": target, "prediction": run})
        for run in runs
    )
    return one, other


def mid_p(one: pl.DataFrame, other: pl.DataFrame) -> float:
    """McNemar's test with mid-p (Fagerland, Lydersen, Laake 2013)."""
    a, b = (run["actual"] == run["predicted"] for run in (one, other))
    gained, lost = int((~a & b).sum()), int((a & ~b).sum())
    n, least = gained + lost, min(gained, lost)
    if not n:
        return 1.0
    chances = [math.comb(n, k) / 2**n for k in range(least + 1)]
    return min(1.0, 2 * (sum(chances) - chances[-1] / 2))


def delong(one: pl.DataFrame, other: pl.DataFrame) -> float:
    """DeLong's test, from all pairs."""
    actual = one["actual"].to_numpy()
    placed = []
    for run in (one, other):
        score = run["score"].to_numpy()
        won = np.sign(score[actual][:, None] - score[~actual]) / 2 + 0.5
        placed.append((won.mean(1), won.mean(0)))
    gaps = [placed[1][i] - placed[0][i] for i in range(2)]
    variance = sum(gap.var(ddof=1) / gap.size for gap in gaps)
    z = abs(gaps[0].mean()) / math.sqrt(variance)
    return float(2 * normal_cdf(np.array([-z]))[0])


def paired_t(one: pl.DataFrame, other: pl.DataFrame) -> float:
    a, b = ((run["prediction"] - run["target"]).abs().to_numpy() for run in (one, other))
    gap = b - a
    t = abs(gap.mean()) / (gap.std(ddof=1) / math.sqrt(gap.size))
    return 2 * (1 - t_cdf(t, gap.size - 1))


class Case(NamedTuple):
    """Pairs of runs: task, metric, datums, gain, generator, best known test, tests."""

    task: str
    metric: str
    n: int
    gain: float
    make: Callable[[Any, int, float], Pair]
    best: Callable[[pl.DataFrame, pl.DataFrame], float]
    tests: tuple[str, ...]


ANSWERS = Case("classification", "Accuracy", 300, 0.4, answers, mid_p, ("randomisation", "mcnemar"))
AREAS = Case("classification", "ROCAUC", 150, 0.8, scores, delong, ("randomisation", "delong"))
ERRORS = Case("regression", "MAE", 60, 0.24, errors, paired_t, ("randomisation", "t"))
CASES = {
    "accuracy, 300 datums": ANSWERS,
    "accuracy, 40 datums": ANSWERS._replace(n=40, gain=0.95),
    "ROC AUC, 50 of 150 positive": AREAS,
    "ROC AUC, 10 of 30 positive": AREAS._replace(n=30, gain=2.0),
    "MAE, 60 datums": ERRORS,
    "MAE, 20 datums": ERRORS._replace(n=20, gain=0.4),
}


def tested(name: str, i: int, draws: int) -> dict[str, dict[str, float]]:
    """Return p of each test, for a pair of equal runs and a pair whose second run is better."""
    case, out = CASES[name], {}
    for kind, gain in (("alarms", 0.0), ("power", case.gain)):
        rng = np.random.default_rng([zlib.crc32(name.encode()), i])
        pair = case.make(rng, case.n, gain)
        rates = {"best": case.best(*pair)}
        for test in case.tests:
            compared = ee.compare(
                *pair, task=case.task, metrics=[case.metric], test=test, draws=draws, seed=i,
                threads=1,
            )  # fmt: skip
            rates[test] = compared.differences["p"][0]
        out[kind] = {key: 1.0 if p is None else p for key, p in rates.items()}
    return out


# Gates with ``surely`` whose value is exactly at the threshold: passes are false.


def share_gate(rng: Any, n: int, share: float) -> tuple[pl.DataFrame, dict[str, Any], float]:
    right = rng.random(n) < share
    table = pl.DataFrame({"actual": 1, "predicted": right.astype(int)})
    return table, {"metrics": ["Accuracy"]}, share


def f1_gate(rng: Any, n: int, share: float) -> tuple[pl.DataFrame, dict[str, Any], float]:
    actual = rng.random(n) < share
    seen = np.where(actual, rng.random(n) < 0.8, rng.random(n) < 0.1)
    truth = 2 * 0.8 * share / (0.8 * share + 0.1 * (1 - share) + share)
    table = pl.DataFrame({"actual": actual.astype(int), "predicted": seen.astype(int)})
    return table, {"metrics": ["F1"]}, truth


def area_gate(rng: Any, n: int, share: float) -> tuple[pl.DataFrame, dict[str, Any], float]:
    actual = np.arange(n) < round(share * n)
    score = rng.normal(size=n) + math.sqrt(2) * 1.2815515655446004 * actual  # an area of 0.9
    return pl.DataFrame({"actual": actual, "score": score}), {"metrics": ["ROCAUC"]}, 0.9


GATES: dict[str, tuple[Any, int, float]] = {
    **{f"Accuracy 0.9, {n} datums": (share_gate, n, 0.9) for n in (20, 100, 500)},
    **{f"F1 of a label, {n} positives": (f1_gate, 5 * n, 0.2) for n in (4, 20, 100)},
    **{f"ROC AUC 0.9, {n} positives": (area_gate, 5 * n, 0.2) for n in (4, 20, 100)},
}


def passed(name: str, i: int, draws: int) -> float:
    """Return 1 if a gate at the true value passes, otherwise 0."""
    make, n, share = GATES[name]
    rng = np.random.default_rng([zlib.crc32(name.encode()), i])
    table, options, truth = make(rng, n, share)
    card = ee.score(table, task="classification", intervals=0.95, draws=draws, seed=i, threads=1,
                    **options)  # fmt: skip
    rows = card.metrics.filter(pl.col("average").is_null())
    if "label_value" in rows.columns and rows["label_value"].null_count() < rows.height:
        rows = rows.filter(pl.col("label_value").cast(pl.String).is_in(["1", "true"]))
    if not rows.height:
        return 0.0
    row = rows.row(0, named=True)
    low = row["lower"]
    if row["trials"] is not None:
        low, _ = clopper_pearson(row["value"], row["trials"], 0.95)
    return float(low is not None and low > truth)


# The simulation.


def add(stored: dict[str, Any], name: str, i: int, draws: int) -> None:
    if name in GATES:
        stored["passes"] = stored.get("passes", 0) + passed(name, i, draws)
        return
    for kind, of_test in tested(name, i, draws).items():
        for test, p in of_test.items():
            key = f"{kind} {test}"
            stored[key] = stored.get(key, 0) + int(p <= LEVEL)


def table(stored: dict[str, Any]) -> str:
    """Format shares of sets.

    A ! marks false alarms above nominal + 2 SE, and power more than 3 points below the best known
    test.
    """
    lines = [
        "| case | test | false alarms | power | best known test: false alarms | power |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for name, case in CASES.items():
        counts = stored.get(name, {"sets": 0})
        n = counts["sets"]
        if not n:
            continue
        most = LEVEL + 2 * math.sqrt(LEVEL * (1 - LEVEL) / n)
        best = [counts[f"{kind} best"] / n for kind in ("alarms", "power")]
        for test in case.tests:
            alarms, power = (counts[f"{kind} {test}"] / n for kind in ("alarms", "power"))
            flags = " !" if alarms > most else "", " !" if power < best[1] - 0.03 else ""
            lines.append(
                f"| {name} | {test} | {alarms:.3f}{flags[0]} | {power:.3f}{flags[1]}"
                f" | {best[0]:.3f} | {best[1]:.3f} |"
            )
    lines += ["", "| gate at its bound | false passes (nominal 0.025) |", "| --- | ---: |"]
    for name in GATES:
        counts = stored.get(name, {"sets": 0})
        n = counts["sets"]
        if n:
            share, most = counts["passes"] / n, 0.025 + 2 * math.sqrt(0.025 * 0.975 / n)
            lines.append(f"| `{name}` | {share:.3f}{' !' if share > most else ''} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=2400.0, help="stop after")
    parser.add_argument("--store", type=Path, default=Path("alarms_of_tests.json"))
    parser.add_argument("--write-docs", action="store_true")
    given = parser.parse_args()
    stored = json.loads(given.store.read_text()) if given.store.exists() else {}
    end = time.process_time() + given.seconds
    for upto in range(CHUNK, given.sets + 1, CHUNK):
        for name in (*CASES, *GATES):
            counts = stored.setdefault(name, {"sets": 0})
            if counts["sets"] >= upto or time.process_time() > end:
                continue
            for i in range(counts["sets"], upto):
                add(counts, name, i, given.draws)
            counts["sets"] = upto
        given.store.write_text(json.dumps(stored))
        print(f"{upto} sets: {time.process_time():.0f} s", file=sys.stderr, flush=True)
    print(table(stored))
    if given.write_docs:
        reporting.write_docs("alarms-of-tests", table(stored), reporting.PAGES.parent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
