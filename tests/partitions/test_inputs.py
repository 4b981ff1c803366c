"""Inputs of runs in buckets: object stores, many files, row groups of any size."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from merging.parts import Case
from object_store import object_store
from partitions.cases import (
    FEW,
    WIDE,
    boxes,
    in_buckets,
    in_row_ranges,
    same_as_in_memory,
    write_sides,
)
from refusals import refused
from sizes import tune

import evalengine as ee
from evalengine.ingest.opening import Tables, open_inputs
from evalengine.outofcore import memory, shuffle
from evalengine.outofcore import shuffle as shuffle_stage
from evalengine.outofcore.memory import scratch_folder
from evalengine.schemas.errors import ScratchError

SOME = ["mAP", "Counts"]


def check_run(sides: list[Any], whole: ee.Scorecard, scratch: Path, **how: Any) -> ee.Scorecard:
    """Check that a run in buckets has the metrics and notes of a run in memory."""
    card = ee.score(*sides, task="detection", metrics=SOME, scratch=str(scratch), **how)
    assert card.run["buckets"] == FEW.n
    assert card.metrics.equals(whole.metrics)
    assert card.notes == whole.notes
    assert os.listdir(scratch) == []
    return card


def write_files(folder: Path, files: int, **how: Any) -> list[pl.DataFrame]:
    """Write both sides as Parquet files of about equal size; return the tables."""
    sides = list(boxes(200))
    for name, side in zip(("predictions", "truths"), sides, strict=True):
        (folder / name).mkdir(parents=True)
        step = -(-side.height // files)
        for i, first in enumerate(range(0, side.height, step)):
            path = folder / name / f"{i:05}.parquet"
            side.slice(first, step).write_parquet(path, **how)
    return sides


def test_an_object_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Globs of Parquet files are scored in memory, within a limit, and in buckets if too large."""
    whole = ee.score(*write_files(tmp_path / "o", 5), task="detection", metrics=SOME)
    with object_store(tmp_path / "o") as store:
        remote = [store.path(f"{name}/*.parquet") for name in ("predictions", "truths")]
        own = {"storage_options": store.options}
        card = ee.score(*remote, task="detection", metrics=SOME, **own)
        assert "buckets" not in card.run
        assert card.metrics.equals(whole.metrics)
        in_buckets(monkeypatch, WIDE)
        check_run(remote, whole, tmp_path / "s", memory_limit="1GB", **own)
        monkeypatch.setattr(memory, "free_memory", lambda: 200_000)
        card = ee.score(*remote, task="detection", metrics=SOME, scratch=str(tmp_path / "s"), **own)
        assert card.run["buckets"]
        assert card.metrics.equals(whole.metrics)
        monkeypatch.setattr(memory, "free_memory", lambda: 10**9)
        card = ee.score(*remote, task="detection", **own)
        assert "buckets" not in card.run
        assert {"LIST", "GET"} <= {how for how, _ in store.asked}
        nothing = store.path("predictions/night*/*.parquet")
        with refused("file_missing", file=nothing):
            ee.score(nothing, remote[1], task="detection", **own)


def test_files_of_a_twelfth_of_half_the_free_memory_are_scored_in_buckets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, 1)
    sides = [tmp_path / name / "00000.parquet" for name in ("predictions", "truths")]
    size = sum(side.stat().st_size for side in sides)
    for share, buckets in ((22, True), (40, False)):
        monkeypatch.setattr(memory, "free_memory", lambda free=share * size: free)
        inputs = open_inputs(Tables(*map(str, sides)))
        assert memory.large(inputs) == buckets


def test_a_truncated_object_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch, WIDE)
    write_files(tmp_path / "o", 3)
    broken = tmp_path / "o" / "truths" / "00001.parquet"
    broken.write_bytes(broken.read_bytes()[:-30])
    with object_store(tmp_path / "o") as store:
        remote = [store.path(f"{name}/*.parquet") for name in ("predictions", "truths")]
        for how in ({}, {"memory_limit": "1GB", "scratch": str(tmp_path / "s")}):
            with pytest.raises(ee.ReadError, match="truths"):
                ee.score(*remote, task="detection", storage_options=store.options, **how)
    assert not (tmp_path / "s").exists() or os.listdir(tmp_path / "s") == []


@pytest.mark.parametrize("layout", ["rows", "one group", "files"])
def test_row_groups_and_files_of_any_size(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row groups of one row, one row group for all rows, and a file for every few rows."""
    in_buckets(monkeypatch, WIDE)
    files, size = {"rows": (1, 1), "one group": (1, 10**9), "files": (60, 10**9)}[layout]
    tables = write_files(tmp_path / "o", files, row_group_size=size)
    whole = ee.score(*tables, task="detection", metrics=SOME)
    sides = [str(tmp_path / "o" / name / "*.parquet") for name in ("predictions", "truths")]
    check_run(sides, whole, tmp_path / "s", memory_limit="1GB")


def test_scratch_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """Root may write everywhere, so the test changes its effective user."""
    home = tmp_path / "s"
    home.mkdir(mode=0o500)
    user = os.geteuid()
    os.seteuid(user or 65534)
    try:
        with (
            refused("scratch_unusable", ScratchError, file=str(home)),
            scratch_folder(str(home), 0),
        ):
            raise AssertionError("there is one")
    finally:
        os.seteuid(user)
    assert os.listdir(home) == []


def test_scratch_that_is_not_a_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch)
    for name in ("file", "file/below"):
        (tmp_path / "file").touch()
        with refused("scratch_unusable", ScratchError):
            ee.score(*boxes(), task="detection", memory_limit="1GB", scratch=str(tmp_path / name))
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("where", [None, "score > 0.3"])
@pytest.mark.parametrize("named", [False, True])
def test_large_files_are_read_by_several_queries(
    where: str | None, named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows keep their numbers, and a query reads ahead only within its own rows."""
    in_buckets(monkeypatch)
    tune(query_bytes=1)
    read: list[int] = []
    real = shuffle_stage.batches

    def counting(*given: Any) -> Any:
        read.append(1)
        return real(*given)

    monkeypatch.setattr(shuffle_stage, "batches", counting)
    table = boxes(60)[0].select(pl.col("score"), actual=pl.col("label_value") % 2)
    if named:
        table = table.with_columns(datum_id=pl.int_range(pl.len()).reverse())
    options = {"metrics": ["AP", "LogLoss"], **({} if where is None else {"where": where})}
    same_as_in_memory(Case((table,), options), "classification", tmp_path, files=2)
    assert len(read) > 8


def test_queries_start_at_row_groups(tmp_path: Path) -> None:
    """Only large local Parquet files are split."""
    from evalengine.ingest.opening import Tables, open_inputs
    from evalengine.ingest.preparing import prepare
    from evalengine.schemas.options import Options

    path = tmp_path / "table.parquet"
    table = pl.DataFrame({"actual": [0, 1] * 600_000, "score": [0.25] * 1_200_000})
    table.write_parquet(path, row_group_size=150_000)
    starts = []
    for given in (str(path), table):
        side = prepare(open_inputs(Tables(given)), "classification", Options()).sides["table"]
        starts.append(shuffle.query_starts(side, table.head(10), table.height))
    assert starts[1] == ()
    assert len(starts[0]) == 0  # all rows fit into one query of 48 MB
    wide = pl.DataFrame({"note": [str(i) * 400 for i in range(10)]})
    side = prepare(open_inputs(Tables(str(path))), "classification", Options()).sides["table"]
    cuts = shuffle.query_starts(side, wide, table.height)
    assert len(cuts) > 3
    assert all(cut % 150_000 == 0 for cut in cuts)


@pytest.mark.parametrize("where", [None, "keep"])
@pytest.mark.parametrize("units", [False, True])
@pytest.mark.parametrize("wide", [False, True])
def test_scores_outside_0_and_1_are_counted_over_all_buckets(
    wide: bool, units: bool, where: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns, count and first rows are over all buckets; one column is invalid in one bucket."""
    rng = np.random.default_rng(3)
    table = pl.DataFrame(
        {
            "datum_id": rng.permutation(90),
            "keep": rng.random(90) > 0.2,
            "one": rng.random(90) * 1.2 - 0.1,
            "two": np.where(np.arange(90) == 70, 2.0, 0.5),
            "three": rng.random(90),
        }
    )
    options: dict[str, Any] = {"metrics": ["LogLoss"]}
    if wide:
        table = table.with_columns(actual=pl.lit("one"))
        options["score_columns"] = ["three", "two", "one"]
    else:
        table = table.select("datum_id", "keep", score="one", actual=pl.col("datum_id") % 2)
    if where is not None:
        options["where"] = where
    in_buckets(monkeypatch)
    how: dict[str, Any] = {}
    if units:
        in_row_ranges(monkeypatch, 13)
        how["executor"] = "processes"
    (path,) = write_sides(Case((table,), {}), tmp_path)
    messages = []
    for given in ({}, {"memory_limit": "1GB", "scratch": str(tmp_path / "scratch"), **how}):
        with pytest.raises(ee.InputError, match=r"values outside \[0, 1\], first") as failure:
            ee.score(path, task="classification", **options, **given)
        messages.append(str(failure.value))
    assert messages[0] == messages[1]
    assert ("keeps count" in messages[0]) == (where is not None)


def test_unsigned_ids_and_scores_beyond_one_in_some_buckets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Integer columns are unsigned in all buckets if one needs it; notes of all are added."""
    ids = pl.Series([2**63 + 5, *range(1, 12)], dtype=pl.UInt64)
    corners = {"xmin": 0.0, "ymin": 0.0, "xmax": 9.0, "ymax": 9.0}
    truths = pl.DataFrame({"datum_id": ids, "label_value": ids}).with_columns(
        **{name: pl.lit(at) for name, at in corners.items()}
    )
    found = truths.with_columns(score=pl.Series([-1.0, *(x / 2 for x in range(11))]))
    in_buckets(monkeypatch)
    options = {"metrics": ["mAP", "Outcomes", "Errors", "PerDatum"], "iou_thresholds": [0.5]}
    card = same_as_in_memory(Case((found, truths), options), "detection", tmp_path)
    assert card.outcomes["datum_id"].dtype == pl.UInt64
    assert "predictions: 9 scores outside [0, 1]" in str(card.notes)


def test_unsigned_ids_of_annotations_in_buckets_without_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corners = {"xmin": 0.0, "ymin": 0.0, "xmax": 9.0, "ymax": 9.0}
    found = pl.DataFrame({"datum_id": range(12), "label_value": "a", "score": 0.5} | corners)
    truths = found.head(1).drop("score")
    truths = truths.with_columns(annotation_id=pl.Series([7], dtype=pl.UInt64))
    in_buckets(monkeypatch)
    same_as_in_memory(Case((found, truths), {"metrics": ["Outcomes"]}), "detection", tmp_path)


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("task", ["detection", "retrieval"])
def test_labels_and_highest_grade_without_those_of_removed_datums(
    task: str, listed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch)
    datum = "datum_id" if task == "detection" else "query_id"
    gone = pl.int_range(180) // 3 % 3 > 0
    relabelled = pl.when(gone).then(9).otherwise("label_value").alias("label_value")
    found, true = (frame.with_columns(relabelled) for frame in boxes())
    metric = "mAP"
    if task == "retrieval":
        found = found.select("score", query_id="datum_id", doc_id=pl.int_range(pl.len()))
        metric, true = "ERR@3", found.select(datum, "doc_id", relevance=gone.cast(pl.Int8) + 1)
    kinds = found.select(datum, kind=gone.cast(pl.Int8)).unique()
    options = {"where": "kind = 0", "by": ["kind"], "metrics": [metric]}
    tables = {"datums": kinds} if listed else {}
    if not listed:
        true = true.join(kinds, on=datum)
    same_as_in_memory(Case((found, true), options, tables=tables), task, tmp_path)
