"""Judged metrics: a million verdicts scored, and concurrent requests to a slow endpoint.

    python benchmarks/judged.py [--verdicts N] [--requests N] [--concurrency N] [--latency S]
        [--runs N]

The endpoint is the loopback server of the tests, in a separate process. The lower limit for any
client is requests / concurrency rounds of the server's latency. Without latency, all time is spent
in evalengine.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SERVER = Path(__file__).resolve().parents[1] / "tests" / "judge" / "server.py"
_ONE_PART = (
    "AnswerRelevance",
    "Bias",
    "Toxicity",
    "ContextPrecision",
    "ContextRecall",
    "ContextRelevance",
    "Faithfulness",
    "Hallucination",
    "LLMContextRecall",
)
_SET = 8  # verdicts of one unit


def table(rows: int, path: Path) -> None:
    """Return random verdicts of nine metrics, eight per datum and metric, with reasons."""
    import numpy as np
    import polars as pl

    chance = np.random.default_rng(3)
    at = np.arange(rows)
    sets = at // _SET
    pl.DataFrame(
        {
            "datum_id": sets // len(_ONE_PART),
            "metric": pl.Series(_ONE_PART).gather(sets % len(_ONE_PART)),
            "item_index": at % _SET,
            "items": np.minimum(_SET, rows - sets * _SET),
            "verdict": np.where(chance.random(rows) < 0.6, "yes", "no"),
            "statement": pl.Series(at).cast(pl.String) + " is what the text says here.",
            "reason": pl.Series(["The contexts say so."]).new_from_index(0, rows),
            "status": pl.Series(["ok"]).new_from_index(0, rows),
        }
    ).write_parquet(path)


def scored(path: Path) -> tuple[float, float]:
    """Return wall and CPU seconds from the file to all frames."""
    import evalengine as ee

    wall, cpu = time.perf_counter(), time.process_time()
    card = ee.score(path, task="judged")
    assert card.metrics["scored"].sum() == card.metrics["support"].sum() > 0
    assert card.per_datum.height > 0
    return time.perf_counter() - wall, time.process_time() - cpu


def judged(folder: Path, requests: int, concurrency: int, latency: float) -> tuple[float, float]:
    """Return wall and CPU seconds from rows to values, one request per row."""
    import polars as pl

    import evalengine as ee

    rows = pl.DataFrame(
        {"text": [f"Text {i}." for i in range(requests)], "contexts": [["c"]] * requests}
    )
    address = folder / "url"
    server = subprocess.Popen([sys.executable, SERVER, address, str(latency), folder / "log"])
    try:
        while not address.exists():
            time.sleep(0.02)
        wall, cpu = time.perf_counter(), time.process_time()
        done = ee.judge(
            rows,
            metrics="Hallucination",
            model="loopback",
            base_url=address.read_text(),
            cache=str(folder / "cache"),
            concurrency=concurrency,
        )
        seconds = time.perf_counter() - wall, time.process_time() - cpu
    finally:
        server.kill()
        server.wait()
    assert done.usage.answers == done.verdicts.height == requests
    return seconds


def print_seconds(name: str, runs: list[tuple[float, float]], floor: float | None = None) -> None:
    wall, cpu = (statistics.median(column) for column in zip(*runs, strict=True))
    against = "" if floor is None else f", {wall / floor:.2f} times the floor of {floor:.1f} s"
    print(f"{name}: wall {wall:.2f} s, CPU {cpu:.2f} s{against} (median of {len(runs)})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--verdicts", type=int, default=1_000_000)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.5)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    os.environ["NO_PROXY"] = "127.0.0.1"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "verdicts.parquet"
        table(given.verdicts, path)
        scored(path)
        print_seconds(
            f"{given.verdicts:,} verdicts scored", [scored(path) for _ in range(given.runs)]
        )
    several = []
    for _ in range(given.runs):
        with tempfile.TemporaryDirectory() as name:
            several.append(judged(Path(name), given.requests, given.concurrency, given.latency))
    floor = math.ceil(given.requests / given.concurrency) * given.latency
    print_seconds(f"{given.requests:,} requests, {given.concurrency} at once", several, floor)


if __name__ == "__main__":
    main()
