"""Peak memory of classification in buckets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import evalengine as ee

SCORE = """
import json, re, sys, threading, time
import evalengine as ee
peak = 0
def watch():
    global peak
    while True:
        with open("/proc/self/status") as status:
            peak = max(peak, int(re.search(r"RssAnon:\\s+(\\d+)", status.read())[1]) << 10)
        time.sleep(0.002)
threading.Thread(target=watch, daemon=True).start()
card = ee.score(sys.argv[1], threads=1, memory_limit=sys.argv[2], scratch=sys.argv[4],
                **json.loads(sys.argv[3]))
card.save(sys.argv[5])
print(peak)
"""
"""Program that prints its peak of anonymous memory; mapped files do not count."""


def long_table() -> pl.DataFrame:
    """Return two million rows, which need twice the limit in memory."""
    n = 2_000_000
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "datum_id": rng.permutation(n),
            "actual": rng.integers(0, 2, n),
            "score": rng.random(n),
            "weight": rng.random(n),
            "part": rng.integers(0, 4, n),
        }
    )


def wide_table() -> pl.DataFrame:
    """Return 15 million scores in 100 columns, which need much more memory once sorted."""
    n, width = 150_000, 100
    rng = np.random.default_rng(0)
    names = [f"{i:03}" for i in range(width)]
    columns = {f"p_{name}": rng.random(n, np.float32) for name in names}
    actual = pl.Series("actual", names)[rng.integers(0, width, n)]
    return pl.DataFrame({**columns, "part": rng.integers(0, 3, n)}).with_columns(actual)


LARGE: dict[str, tuple[Any, dict[str, Any]]] = {
    "long": (
        long_table,
        {"metrics": ["F1", "ROCAUC", "AP", "LogLoss", "ECE", "TopKAccuracy", "ThresholdAtMaxF"]},
    ),
    "wide": (
        wide_table,
        {
            "metrics": ["AP", "F1", "ROCAUC", "LogLoss", "TopKAccuracy"],
            "average": "micro",
            "score_columns": "p_*",
        },
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_memory_stays_within_the_limit(name: str, tmp_path: Path) -> None:
    """Slices and weights, and micro averages, whose scores are sorted twice."""
    limit = 640 << 20
    draw, options = LARGE[name]
    options = {**options, "by": ["part"], "task": "classification"}
    path, out = tmp_path / "table.parquet", tmp_path / "out"
    draw().write_parquet(path, row_group_size=20_000)
    result = subprocess.run(
        [sys.executable, "-c", SCORE, path, str(limit), json.dumps(options), tmp_path / "s", out],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(result.stdout) <= limit
    whole = ee.score(path, **options)
    assert_frame_equal(ee.load(out).metrics, whole.metrics, check_exact=True)
