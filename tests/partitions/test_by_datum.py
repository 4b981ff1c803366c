"""Tallies with one row per datum in buckets: slices, and per-datum frames in files."""

from __future__ import annotations

import gc
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from merging.parts import Case
from merging.test_parts import CASES
from msgspec import structs
from partitions.cases import FEW, boxes, in_buckets, same_as_in_memory, write_sides
from polars.testing import assert_frame_equal
from sizes import tune

import evalengine as ee
from evalengine.outofcore import driver

BY_DATUM = ("lists", "panoptic", "tracking", "regression")
"""Cases with different per-datum frames; ``test_runs`` covers all cases."""


@pytest.mark.parametrize(
    ("name", "rows"), [("lists", 1), ("lists", 10), ("regression", 10), ("text", 10**9)]
)
def test_per_datum_rows_are_made_in_chunks(
    name: str, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks of one datum, of a few and of all."""
    in_buckets(monkeypatch, structs.replace(FEW, run_rows=rows))
    task, draw = CASES[name]
    same_as_in_memory(draw(7), task, tmp_path)


def test_the_highest_relevance_is_that_of_all_buckets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One query has the highest relevance, by which metrics of all buckets are scaled."""
    in_buckets(monkeypatch)
    rng = np.random.default_rng(4)
    pairs = pl.DataFrame({"query_id": np.repeat(np.arange(20), 6), "doc_id": [*range(6)] * 20})
    run = pairs.with_columns(score=pl.Series(rng.random(120)))
    judged = pairs.with_columns(relevance=pl.Series(rng.integers(0, 3, 120)))
    judged = judged.with_columns(
        relevance=pl.when(pl.int_range(120) == 7).then(4).otherwise("relevance")
    )
    metrics = ["ERR", "INST", "INSQ", "BPM", "SDCG", "NERR8", "NERR9", "NERR10", "NERR11"]
    card = same_as_in_memory(Case((run, judged), {"metrics": metrics}), "retrieval", tmp_path)
    assert set(card.metrics["parameters"]) == {'{"max_relevance": 4.0}'}


def sliced(n: int = 40) -> Case:
    """Return a shuffled table of texts with slice columns of strings and numbers, some null."""
    rng = np.random.default_rng(3)
    words = ["the", "cat", "sat", "on", "a", "mat"]
    place = rng.permutation(n)
    table = pl.DataFrame(
        {
            "datum_id": [f"d{i}" for i in place],
            "text": [" ".join(rng.choice(words, 5)) for _ in place],
            "reference": [" ".join(rng.choice(words, 5)) for _ in place],
            "kind": [["x", "ä", None, "zz"][i % 4] for i in place],
            "level": [None if i % 7 == 0 else int(i % 5) - 2 for i in place],
        }
    )
    metrics = ["ROUGE1", "BLEU", "CorpusBLEU", "TER"]
    return Case((table,), {"metrics": metrics, "by": ["kind", "level", "kind*level"]})


def test_slices_in_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums of a group continue across buckets."""
    in_buckets(monkeypatch)
    card = same_as_in_memory(sliced(), "text", tmp_path)
    assert card.metrics["slice_value"].n_unique() > 20


def test_many_groups_are_processed_in_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    tune(group_cells=20)
    in_buckets(monkeypatch)
    same_as_in_memory(sliced(), "text", tmp_path)


@pytest.mark.slow
def test_processes_tally_buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch)
    task, draw = CASES["lists"]
    same_as_in_memory(draw(2), task, tmp_path, executor="processes", threads=2)


def in_files(
    case: Case, folder: Path, patch: pytest.MonkeyPatch, task: str = "text"
) -> tuple[ee.Scorecard, Any]:
    """Return a run with its per-datum frame in a file, and the run in memory."""
    in_buckets(patch)
    tune(datum_bytes=10**9)
    sides = write_sides(case, folder)
    whole = ee.score(*sides, task=task, **case.options, **case.tables)
    given: dict[str, Any] = {"memory_limit": "1GB", "scratch": str(folder / "s")}
    return ee.score(*sides, task=task, **case.options, **case.tables, **given), whole


@pytest.mark.parametrize("name", BY_DATUM)
def test_frames_in_files_are_those_of_a_run_in_memory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, draw = CASES[name]
    card, whole = in_files(draw(11), tmp_path, monkeypatch, task)
    assert card.run["buckets"] == FEW.n
    assert card.in_file("per_datum") is not None
    assert card.height("per_datum") == whole.per_datum.height > 0
    card.save(tmp_path / "out")
    saved = ee.load(tmp_path / "out")
    for frame in whole.frames:
        assert_frame_equal(saved.frame(frame), whole.frame(frame), check_exact=True)
        assert_frame_equal(card.frame(frame), whole.frame(frame), check_exact=True)


def test_a_frame_in_a_file_is_that_of_a_run_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays on disk until it is read, and its file is deleted with the scorecard."""
    card, whole = in_files(sliced(), tmp_path, monkeypatch)
    assert card.run["buckets"] == FEW.n
    file = card.in_file("per_datum")
    assert file is not None
    assert file.path.is_relative_to(tmp_path / "s")
    assert card.height("per_datum") == whole.per_datum.height
    assert card.in_file("per_datum") is file
    assert_frame_equal(card.per_datum, whole.per_datum, check_exact=True)
    assert card.in_file("per_datum") is None
    copy = pickle.loads(pickle.dumps(card))
    assert_frame_equal(copy.per_datum, whole.per_datum, check_exact=True)
    path = file.path
    del card, file
    gc.collect()
    assert not path.exists()
    assert os.listdir(tmp_path / "s") == []


def test_a_frame_in_a_file_is_saved_without_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card, whole = in_files(sliced(), tmp_path, monkeypatch)
    monkeypatch.setattr(driver.FrameFile, "__call__", lambda _: pytest.fail("it was read"))
    card.save(tmp_path / "out")
    del card
    gc.collect()
    assert os.listdir(tmp_path / "s") == []
    assert_frame_equal(ee.load(tmp_path / "out").per_datum, whole.per_datum, check_exact=True)


def test_too_little_disk_for_a_frame_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tune(datum_file_bytes=10**15)
    with pytest.raises(ee.ScratchError, match=r"scratch are needed"):
        in_files(sliced(), tmp_path, monkeypatch)
    assert os.listdir(tmp_path / "s") == []


def test_two_saved_copies_are_independent_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Damage to one copy changes neither the other nor the scorecard."""
    card, whole = in_files(sliced(), tmp_path, monkeypatch)
    for name in ("one", "two"):
        card.save(tmp_path / name)
    with (tmp_path / "one" / "per_datum.parquet").open("r+b") as file:
        file.write(bytes(100))
    assert_frame_equal(ee.load(tmp_path / "two").per_datum, whole.per_datum, check_exact=True)
    assert_frame_equal(card.per_datum, whole.per_datum, check_exact=True)


def test_slices_by_columns_with_special_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch)
    (table,) = sliced().sides
    odd = table.rename({"kind": "kind ", "level": "le*vel"}).with_columns(kind=pl.lit("k"))
    by = ["kind ", "kind", "le*vel", r"le\*vel*kind "]
    card = same_as_in_memory(Case((odd,), {"metrics": ["BLEU"], "by": by}), "text", tmp_path)
    assert set(by) <= set(card.metrics["slice"].to_list())
    judged = CASES["judged"][1](3)
    odd = judged.sides[0].with_columns(pl.col("datum_id").cast(pl.String).alias("a*b "))
    folder = tmp_path / "judged"
    folder.mkdir()
    same_as_in_memory(Case((odd,), {**judged.options, "by": ["a*b "]}), "judged", folder)


def shared_refusal(case: Case, task: str, folder: Path) -> str:
    """Return the message with which runs in memory and in buckets refuse the same tables."""
    sides = write_sides(case, folder)
    messages = []
    for given in ({}, {"memory_limit": "1GB", "scratch": str(folder / "s")}):
        with pytest.raises(ee.InputError) as error:
            ee.score(*sides, task=task, **case.options, **given)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    return messages[0]


def test_slice_values_that_vary_within_datums_are_counted_over_all_buckets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the first varying column and the datum of its first varying row."""
    in_buckets(monkeypatch)
    predictions, truths = boxes(60)
    index = pl.int_range(pl.len())
    varying = predictions.with_columns(
        even=pl.when(index > 100).then(index % 2).otherwise(0),
        late=pl.when(index < 60).then(index).otherwise(0),
    ).reverse()
    case = Case((varying, truths), {"by": ["even", "late"], "metrics": ["AP"]})
    messages = shared_refusal(case, "detection", tmp_path)
    assert "column 'even'" in messages
    assert "a datum: 27 datums" in messages
    assert "the first is 59" in messages
    sides = (predictions.with_columns(city=pl.col("datum_id")), truths.with_columns(city=index))
    messages = shared_refusal(
        Case(sides, {"by": ["city"], "metrics": ["AP"]}), "detection", tmp_path
    )
    assert "not constant" in messages
    other = truths.with_columns(city=pl.col("datum_id") + pl.col("datum_id") // 50)
    case = Case((sides[0], other), {"by": ["city"], "metrics": ["AP"]})
    messages = shared_refusal(case, "detection", tmp_path)
    assert "for 10 datums" in messages
    assert "first is 50" in messages
