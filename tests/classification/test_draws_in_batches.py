"""Weights of draws on tallies read in batches or counted: taken, or refused; never left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from classification.batches import saved
from classification.test_streaming import pair, table
from classification.test_streaming_grids import tables
from polars.testing import assert_frame_equal

import evalengine as ee
from evalengine import api, planner
from evalengine.executors import Threads
from evalengine.inputs.frames import checked_frames
from evalengine.tasks.classification import streaming, streaming_grids

rng = np.random.default_rng(5)
METRICS = ["ROCAUC", "AP", "ThresholdAtMaxF", "ROCCurve"]
GRIDS = ["ROCAUC", "mROCAUC", "Accuracy", "F1", "Counts", "PrecisionRecallCurve"]


def tallied(paths: list[Path], **options: Any) -> tuple[Any, Any, Any]:
    """The plan, and the tallies read in batches and whole."""
    chosen = ee.Options(**options)

    def opened() -> tuple[Any, Any]:
        sides = paths if len(paths) > 1 else [paths[0], None]
        return api._open(*sides, chosen, *[None] * 3)

    plan, inputs = opened()
    streamed = planner.streamed(plan, inputs, Threads(1))
    assert streamed is not None
    plan, inputs = opened()
    frames = checked_frames(inputs, plan.task, plan.options)
    return plan, streamed.tallies, planner.run(plan, frames, Threads(1))


def drawn(plan: Any, tallies: Any, weights: Any) -> dict[str, pl.DataFrame]:
    makers, _ = planner.summarise(plan, tallies, weights=weights)
    return {name: makers[name]() for name in ("metrics", "curves")}


def check(paths: list[Path], metrics: list[str], **options: Any) -> None:
    plan, streamed, whole = tallied(paths, metrics=metrics, **options)
    weights = rng.integers(0, 3, len(whole.datums))
    expected = drawn(plan, whole, weights)
    plain = drawn(plan, whole, None)
    assert not expected["metrics"].equals(plain["metrics"])
    for name, frame in drawn(plan, streamed, weights).items():
        assert_frame_equal(frame, expected[name], abs_tol=1e-12)


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("by", [(), ("part",)])
def test_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: bool, by: Any) -> None:
    monkeypatch.setattr(streaming, "_LARGE", 1)
    scores = rng.random(9_000)
    rows = table(np.round(scores, 2) if few else scores)
    rows = rows.with_columns(part=pl.Series(rng.integers(0, 5, 9_000)))
    check(saved(tmp_path, table=rows), METRICS, by=by)


def test_two_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "_LARGE", 1)
    check(saved(tmp_path, **pair(0, 3, 1)), METRICS)


def test_grids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming_grids, "_LARGE", 1)
    sides = dict(zip(("predictions", "groundtruths"), tables(), strict=True))
    check(saved(tmp_path, rows=100, **sides), GRIDS)


@pytest.mark.parametrize("by", [(), ("part",)])
def test_counts_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: Any) -> None:
    monkeypatch.setattr(streaming, "_LARGE", 1)
    rows = table(np.round(rng.random(9_000), 2))
    rows = rows.with_columns(part=pl.Series(rng.integers(0, 5, 9_000)))
    plan, streamed, whole = tallied(saved(tmp_path, table=rows), metrics=["ROCAUC"], by=by)
    with pytest.raises(RuntimeError, match="no rows to draw from"):
        drawn(plan, streamed, np.ones(len(whole.datums), np.int64))
