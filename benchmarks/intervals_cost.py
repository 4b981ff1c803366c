"""Cost of intervals: runs with 1,000 resamples, against runs without, and against loops.

    python benchmarks/intervals_cost.py [CASE ...] [--runs N] [--quick] [--write-docs]

All calls of a case take turns in one process, on one thread, with tables in memory and kernels
compiled. The loops get the values of single datums; they only resample and add up.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import reporting

import evalengine as ee

DRAWS = 1000
Call = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """A run with intervals.

    Attributes:
        title: heading on the page.
        calls: function of the share of the full size; returns calls by name, the plain run first,
            the run with intervals second.
        goal: condition on the CPU seconds of both runs.
        goal_says: the condition in words.
    """

    title: str
    calls: Callable[[float], dict[str, Call]]
    goal: Callable[[float, float], bool]
    goal_says: str


def _score(tables: tuple[pl.DataFrame, ...], **options: Any) -> dict[str, Call]:
    def run(**more: Any) -> pl.DataFrame:
        return ee.score(*tables, threads=1, **options, **more).metrics

    return {"without": run, "with intervals": partial(run, intervals=0.95, draws=DRAWS)}


def _two_classes(scale: float) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    actual = rng.random(int(1_000_000 * scale)) < 0.3
    score = np.clip(rng.normal(0.4 + 0.2 * actual, 0.2), 0, 1)
    return pl.DataFrame({"score": score, "actual": actual})


def ranked(scale: float) -> dict[str, Call]:
    """Average precision of two classes, which needs the weight of each row in each resample."""
    return _score((_two_classes(scale),), metrics=["AP"])


def binary(scale: float) -> dict[str, Call]:
    """Scores of two classes, all default metrics; the loop has only ROC AUC and accuracy."""
    table = _two_classes(scale)
    n, score, actual = table.height, table["score"].to_numpy(), table["actual"].to_numpy()

    def loop() -> list[tuple[float, float]]:
        order = np.argsort(score)
        truth, right = actual[order], (score >= 0.5) == actual
        areas = []
        for draw in range(DRAWS // 20):  # a twentieth of the resamples, extrapolated
            weight = np.bincount(np.random.default_rng(draw).integers(0, n, n), minlength=n)
            sorted_weight = weight[order].astype(float)
            below = np.cumsum(sorted_weight * ~truth)
            positive = sorted_weight * truth
            area = (positive * below).sum() / (positive.sum() * below[-1])
            areas.append((area, (weight * right).sum() / n))
        return areas

    return {**_score((table,)), "NumPy loop, 50 draws": loop}


def labels(scale: float) -> dict[str, Call]:
    """Ten labels in five slices, all default metrics."""
    rng = np.random.default_rng(4)
    n = int(1_000_000 * scale)
    actual = rng.integers(0, 10, n)
    predicted = np.where(rng.random(n) < 0.8, actual, rng.integers(0, 10, n))
    names = np.array([f"label {i}" for i in range(10)])
    table = pl.DataFrame({"actual": names[actual], "predicted": names[predicted]})
    table = table.with_columns(day=pl.Series(rng.integers(0, 5, n)))
    return _score((table,), task="classification", by=["day"])


def queries(scale: float) -> dict[str, Call]:
    """Ten documents per query, all default metrics."""
    rng = np.random.default_rng(2)
    n = int(10_000 * scale)
    ids = np.repeat(np.arange(n), 10)
    documents = np.tile(np.arange(10), n)
    run = pl.DataFrame({"query_id": ids, "doc_id": documents, "score": rng.random(ids.size)})
    judged = pl.DataFrame({"query_id": ids, "doc_id": documents})
    judged = judged.with_columns(relevance=pl.Series((rng.random(ids.size) < 0.3).astype(int)))
    card = ee.score(run, judged, task="retrieval")
    wide = card.per_datum.drop_nulls("value").select("datum_id", "metric", "k", "value")
    values = np.stack([one["value"].to_numpy() for one in wide.partition_by("metric", "k")], 1)

    def loop() -> list[np.ndarray[Any, Any]]:
        rng = np.random.default_rng(0)
        return [values[rng.integers(0, n, n)].mean(axis=0) for _ in range(DRAWS)]

    return {**_score((run, judged), task="retrieval"), "NumPy loop": loop}


def texts(scale: float) -> dict[str, Call]:
    """Pairs of texts of 8 to 30 words: BLEU, chrF, WER, ROUGE."""
    rng = np.random.default_rng(3)
    words = np.array([f"w{i}" for i in range(3000)])
    n = int(20_000 * scale)
    references = [words[rng.zipf(1.3, rng.integers(8, 30)) % 3000] for _ in range(n)]
    predicted = [np.where(rng.random(one.size) < 0.2, rng.choice(words, one.size), one)
             for one in references]  # fmt: skip
    table = pl.DataFrame(
        {
            "text": [" ".join(one) for one in predicted],
            "reference": [" ".join(r) for r in references],
        }
    )
    return _score((table,), task="text", metrics=["BLEU", "chrF", "WER", "ROUGE"])


CASES = {
    "binary": Case(
        "Classification, 1 million rows of two classes, all default metrics",
        binary,
        lambda plain, drawn: drawn <= 5 * plain,
        "at most 5 times one run",
    ),
    "ranked": Case(
        "Classification, 1 million rows of two classes, AP",
        ranked,
        lambda plain, drawn: drawn <= 25 * plain,
        "at most 25 times one run",
    ),
    "labels": Case(
        "Classification, 1 million rows of ten labels, all default metrics, five slices",
        labels,
        lambda plain, drawn: drawn <= 5 * plain,
        "at most 5 times one run",
    ),
    "queries": Case(
        "Retrieval, 10,000 queries, all default metrics",
        queries,
        lambda plain, drawn: drawn - plain <= 1.0,
        "at most 1 s more",
    ),
    "texts": Case(
        "Texts, 20,000 pairs, BLEU, chrF, WER and ROUGE",
        texts,
        lambda plain, drawn: drawn - plain <= 2.0,
        "at most 2 s more",
    ),
}


def measured(case: Case, runs: int, scale: float) -> dict[str, tuple[float, float]]:
    """Return medians of CPU and wall seconds of every call, with calls in turn."""
    calls = case.calls(scale)
    for call in calls.values():
        call()  # kernels loaded, memory allocated
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for _ in range(runs):
        for name, call in calls.items():
            cpu, wall = time.process_time(), time.perf_counter()
            call()
            times[name].append((time.process_time() - cpu, time.perf_counter() - wall))
    return {
        name: (statistics.median(c for c, _ in some), statistics.median(w for _, w in some))
        for name, some in times.items()
    }


def page(results: dict[str, dict[str, tuple[float, float]]], runs: int, peak: float) -> str:
    """Format the section of the page."""
    lines = [
        "## Cost of intervals",
        "",
        f"1,000 resamples, one thread, tables in memory, kernels compiled; medians of {runs} runs"
        f" that take turns. Peak memory of the whole process: {peak:,.0f} MB. Load average"
        f" {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores, {date.today().isoformat()}.",
        "",
        "| | CPU s | wall s | |",
        "| --- | ---: | ---: | --- |",
    ]
    for name, times in results.items():
        case = CASES[name]
        (plain, _), (drawn, _), *_ = times.values()
        for i, (called, (cpu, wall)) in enumerate(times.items()):
            goal = ""
            if i == 1:
                met = "reached" if case.goal(plain, drawn) else "missed"
                goal = f"{drawn / plain:.0f} times, {case.goal_says}: {met}"
            title = f"{case.title}: {called}" if i == 0 else called
            lines.append(f"| {title} | {cpu:.3f} | {wall:.3f} | {goal} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="small tables")
    parser.add_argument("--write-docs", action="store_true", help="update docs/benchmarks/")
    given = parser.parse_args()
    unknown = set(given.cases) - set(CASES)
    if unknown:
        parser.error(f"no case {', '.join(unknown)}; there are {', '.join(CASES)}")
    scale = 0.02 if given.quick else 1.0
    results = {
        name: measured(CASES[name], given.runs, scale) for name in given.cases or list(CASES)
    }
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    text = page(results, given.runs, peak)
    print(text)
    if given.write_docs:
        reporting.write_docs("intervals-cost", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
