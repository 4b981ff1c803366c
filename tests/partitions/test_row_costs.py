"""What classification in files takes: memory within the limit, and files read as rows grow."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from merging.parts import Case
from partitions import cases
from partitions.test_row_files import TINY, weights
from polars.testing import assert_frame_equal

import evalengine as ee
from evalengine.tally import stored


def entries_listed(n: int, folder: Path, patch: pytest.MonkeyPatch) -> int:
    """How many members of archives a run lists whose every scored label is a piece of its own."""
    listed = [0]
    opened = stored._archive

    def counting(path: Any) -> Any:
        archive = opened(path)
        listed[0] += len(archive.namelist())
        return archive

    folder.mkdir()
    cases.in_buckets(patch, TINY)
    patch.setattr(stored, "_archive", counting)
    rng = np.random.default_rng(2)
    table = pl.DataFrame({"datum_id": rng.permutation(n), "actual": rng.integers(0, 2, n)})
    table = table.with_columns(weights(rng, n), score=pl.Series(rng.random(n)))
    sides = cases.written(Case((table,), {}), folder, rows=n)
    ee.score(*sides, metrics=["AP", "F1"], memory_limit="1GB", scratch=str(folder))
    patch.undo()
    return listed[0]


def test_what_is_read_of_files_grows_as_their_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slabs and ranges open files of what is near them: twice the rows, twice the entries."""
    few = entries_listed(400, tmp_path / "few", monkeypatch)
    many = entries_listed(800, tmp_path / "many", monkeypatch)
    assert few < many < 2.5 * few


SCORE = """
import json, sys
import evalengine as ee
card = ee.score(sys.argv[1], threads=1, memory_limit=sys.argv[2], scratch=sys.argv[4],
                **json.loads(sys.argv[3]))
card.save(sys.argv[5])
with open("/proc/self/status") as status:
    print(next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM:")))
"""
"""The peak of this program alone: what rusage tells is that of its parent where it was larger."""


def long_table() -> pl.DataFrame:
    """Two million rows, which in memory take twice the limit."""
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
    """Fifteen million scores in a hundred columns, of a few bytes each before they are ordered."""
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
    """With slices and weights, and of labels taken together, whose scores are ordered twice."""
    limit = 640 << 20
    draw, options = LARGE[name]
    options = {**options, "by": ["part"], "task": "classification"}
    path, out = tmp_path / "table.parquet", tmp_path / "out"
    draw().write_parquet(path, row_group_size=20_000)
    told = subprocess.run(
        [sys.executable, "-c", SCORE, path, str(limit), json.dumps(options), tmp_path / "s", out],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(told.stdout) <= limit
    whole = ee.score(path, **options)
    assert_frame_equal(ee.load(out).metrics, whole.metrics, check_exact=True)
