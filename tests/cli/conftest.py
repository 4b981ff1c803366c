"""Fixtures that run the command within the test process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fabricated
import polars as pl
import pytest
from msgspec import structs

import evalengine as ee
from evalengine import run as scoring
from evalengine.cli import main
from evalengine.ingest.opening import Tables

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command and return its status, output and errors."""

    def call(*args: str) -> tuple[int, str, str]:
        status = main(args)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Arguments that ``score`` received; it returns a fabricated card."""
    calls: dict[str, Any] = {}

    def score(tables: Tables, options: ee.Options, **arguments: Any) -> ee.Scorecard:
        calls.update(arguments, **structs.asdict(tables), options=options)
        return fabricated.card()

    monkeypatch.setattr(scoring, "score_tables", score)
    return calls


@pytest.fixture
def tables(tmp_path: Path) -> tuple[str, str]:
    """Write a small pair of tables and return their paths."""
    box = {"xmin": [0.0, 5.0], "ymin": [0.0, 5.0], "xmax": [4.0, 9.0], "ymax": [4.0, 9.0]}
    truths = pl.DataFrame({"datum_id": [1, 2], "label_value": ["cat", "dog"], **box})
    truths.write_parquet(tmp_path / "gts.parquet")
    truths.with_columns(score=pl.lit(0.9)).write_parquet(tmp_path / "preds.parquet")
    return str(tmp_path / "preds.parquet"), str(tmp_path / "gts.parquet")
