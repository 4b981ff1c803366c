"""Memory limits with tables of unusual shapes: refused early, or within the limit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evalengine as ee
from evalengine.outofcore.memory import bytes_of_limit

COMMAND = """
import re, sys
from evalengine.cli import main
status = main(sys.argv[1:])
with open("/proc/self/status") as file:
    peak = re.search(r"VmHWM:\\s+(\\d+)", file.read())[1]
print("\\npeak", int(peak) << 10)
sys.exit(status)
"""

Files = tuple[Path, ...]


def score(*arguments: object) -> tuple[int, int, str]:
    """Run ``evalengine score`` in a process; return its status, peak of memory and messages."""
    command = [sys.executable, "-c", COMMAND, "score", *map(str, arguments), "--threads", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, int(done.stdout.rpartition("peak ")[2]), done.stderr


def written(path: Path, columns: dict[str, Any], rows: int | None = None) -> Path:
    pq.write_table(pa.table(columns), path, row_group_size=rows, compression="zstd")
    return path


def boxes(folder: Path, ids: Any, labels: Any, **more: Any) -> Files:
    """Write detections and the same boxes as ground truths."""
    at = np.arange(len(ids)) % 900.0
    columns = {"datum_id": ids, "label_value": labels, "xmin": at, "ymin": at, "xmax": at + 9}
    columns |= {"ymax": at + 9, **more}
    truths = written(folder / "g.parquet", columns, 100_000)
    return written(folder / "p.parquet", {**columns, "score": at / 900}, 100_000), truths


def many_labels(folder: Path) -> Files:
    at = np.arange(1_000_000)
    return boxes(folder, at // 5, at % 200_000)


def one_datum(folder: Path) -> Files:
    """Write boxes of which 90 % are of one image."""
    at = np.arange(1_500_000)
    return boxes(folder, np.where(at % 10 > 0, 0, at), np.zeros(at.size, np.int64))


def long_lists(folder: Path) -> Files:
    """Write a row of 200 MB, which is some kilobytes when compressed."""
    values = pa.array(np.zeros(12_500_000))
    cell = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
    columns = {"datum_id": [1], "embedding": cell, "reference_embedding": cell}
    return (written(folder / "t.parquet", columns),)


def many_slices(folder: Path) -> Files:
    """Write boxes of 10,000 slices, which have 40 variants (thresholds and sizes) each."""
    at = np.arange(300_000)
    return boxes(folder, at // 10, at % 5, part=at // 10 % 10_000)


REFUSED: dict[str, Callable[[Path], Files]] = {
    "200,000 labels": many_labels,
    "one datum of 1,350,000 boxes": one_datum,
    "a list of 100 MB": long_lists,
    "10,000 slices": many_slices,
}


@pytest.mark.parametrize("shape", REFUSED)
def test_refused_before_rows_are_shuffled(shape: str, tmp_path: Path) -> None:
    files = REFUSED[shape](tmp_path)
    scratch = tmp_path / "scratch"
    more = ("--dialect", "coco", "--by", "part") if shape == "10,000 slices" else ()
    status, peak, messages = score(*files, *more, "--memory-limit", "512MB", "--scratch", scratch)
    assert status == 2
    assert "Give at least --memory-limit" in messages
    assert not scratch.exists()
    assert peak < 300 << 20


@pytest.mark.slow
def test_thousands_of_thresholds_stay_within_the_limit(tmp_path: Path) -> None:
    """Each of 60,000 rows has 40 words of outcomes instead of one."""
    at = np.arange(30_000)
    files = boxes(tmp_path, at // 10, at % 5)
    ious = [f"--iou={0.3 + i / 5000:.6f}" for i in range(2500)]
    status, peak, messages = score(*files, *ious, "--task", "detection", "--memory-limit", "512MB")
    assert status == 0, messages
    assert peak <= bytes_of_limit("512MB")


def test_calls_are_linear_in_the_number_of_score_columns() -> None:
    """Counts calls of Python and C functions, which do not depend on the machine's load."""

    def calls(columns: int) -> int:
        names = [f"c{i}" for i in range(columns)]
        scores = dict.fromkeys(names, np.linspace(0, 1, 4))
        table = pl.DataFrame({**scores, "actual": names[:4]})
        made = 0

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal made
            made += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            ee.score(table, score_columns="c*", metrics=["TopKAccuracy"])
        finally:
            sys.setprofile(None)
        return made

    calls(10)
    assert calls(4000) < 12 * calls(400)
