"""Fixtures: a folder with tables and a job file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

JOB = """
name = "nightly"
by = ["weather"]
gates = ["mAP[iou=0.5] >= 0.5"]

[variables]
date = "2026-11-20"

[inputs]
predictions = "tables/date={date}/predictions.parquet"
ground_truths = "tables/date={date}/truths.parquet"

[outputs]
folder = "runs/{date}"
history = "history"
lineage = "lineage.jsonl"
"""

DAYS = ("2026-11-19", "2026-11-20", "2026-11-21")
Write = Callable[..., Path]


def write_day(folder: Path, day: str, *, wrong: int = 0, first: int = 0) -> None:
    """Write the tables of one day: ten datums with one box each; ``wrong`` boxes are misplaced."""
    ids = list(range(first, first + 10))
    truths = pl.DataFrame(
        {
            "datum_id": ids,
            "label_value": ["cat", "dog"] * 5,
            "weather": ["rain", "rain", "sun", "sun", "sun"] * 2,
            "xmin": [0.0] * 10,
            "ymin": [0.0] * 10,
            "xmax": [10.0] * 10,
            "ymax": [10.0] * 10,
        }
    )
    shift = pl.Series([50.0 if place < wrong else 0.0 for place in range(10)])
    predictions = truths.with_columns(
        pl.col("xmin", "xmax") + shift, score=pl.Series([0.9 - place / 20 for place in range(10)])
    )
    target = folder / "tables" / f"date={day}"
    target.mkdir(parents=True, exist_ok=True)
    predictions.write_parquet(target / "predictions.parquet")
    truths.write_parquet(target / "truths.parquet")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the job :data:`JOB` and tables of three days with distinct datums."""
    for place, day in enumerate(DAYS):
        write_day(tmp_path, day, first=100 * place)
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path


@pytest.fixture
def write(folder: Path) -> Write:
    """Return a function that writes a job file, by default :data:`JOB`, with replacements."""

    def made(*pairs: tuple[str, str], text: str = JOB) -> Path:
        for old, new in pairs:
            assert old in text, old
            text = text.replace(old, new)
        path = folder / "job.toml"
        path.write_text(text)
        return path

    return made
