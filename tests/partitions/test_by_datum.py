"""Tallies of one row a datum in parts: slices, and frames of single datums in files."""

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
from partitions.cases import FEW, boxes, in_buckets, same_as_in_memory, written
from polars.testing import assert_frame_equal
from sizes import tune

import evalengine as ee
from evalengine.outofcore import driver

BY_DATUM = ("lists", "panoptic", "tracking", "regression")
"""Cases whose frames of single datums are unlike; those of all are made in ``test_runs``."""


@pytest.mark.parametrize(
    ("name", "rows"), [("lists", 1), ("lists", 10), ("regression", 10), ("text", 10**9)]
)
def test_single_datums_are_shown_some_at_a_time(
    name: str, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A datum at a time, a few, and all at once."""
    in_buckets(monkeypatch, structs.replace(FEW, run_rows=rows))
    task, draw = CASES[name]
    same_as_in_memory(draw(7), task, tmp_path)


def test_what_scales_by_the_highest_relevance_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One judgment of one query goes higher than any other: every part has to know of it."""
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
    """Texts in one table, rows in no order, by columns of words and of numbers, some null."""
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
    """Sums of every group go on from part to part."""
    in_buckets(monkeypatch)
    card = same_as_in_memory(sliced(), "text", tmp_path)
    assert card.metrics["slice_value"].n_unique() > 20


def test_many_groups_are_seen_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    tune(group_cells=20)
    in_buckets(monkeypatch)
    same_as_in_memory(sliced(), "text", tmp_path)


@pytest.mark.slow
def test_processes_make_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch)
    task, draw = CASES["lists"]
    same_as_in_memory(draw(2), task, tmp_path, executor="processes", threads=2)


def in_files(
    case: Case, folder: Path, patch: pytest.MonkeyPatch, task: str = "text"
) -> tuple[ee.Scorecard, Any]:
    """A run whose single datums are too many to be held, and the run in memory."""
    in_buckets(patch)
    tune(datum_bytes=10**9)
    sides = written(case, folder)
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
    """Until it is asked for it is on disk, and its file goes with the scorecard."""
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


def test_a_frame_for_which_there_is_no_room_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tune(datum_file_bytes=10**15)
    with pytest.raises(ee.ScratchError, match=r"scratch are needed"):
        in_files(sliced(), tmp_path, monkeypatch)
    assert os.listdir(tmp_path / "s") == []


def test_results_that_were_saved_twice_are_two_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written into one of them shows in no other, nor in the scorecard."""
    card, whole = in_files(sliced(), tmp_path, monkeypatch)
    for name in ("one", "two"):
        card.save(tmp_path / name)
    with (tmp_path / "one" / "per_datum.parquet").open("r+b") as file:
        file.write(bytes(100))
    assert_frame_equal(ee.load(tmp_path / "two").per_datum, whole.per_datum, check_exact=True)
    assert_frame_equal(card.per_datum, whole.per_datum, check_exact=True)


def test_slices_by_columns_of_odd_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def told_twice(case: Case, task: str, folder: Path) -> str:
    """The words in which a run in memory and one through buckets refuse the same tables."""
    sides = written(case, folder)
    said = []
    for given in ({}, {"memory_limit": "1GB", "scratch": str(folder / "s")}):
        with pytest.raises(ee.InputError) as error:
            ee.score(*sides, task=task, **case.options, **given)
        said.append(str(error.value))
    assert said[0] == said[1]
    return said[0]


def test_slices_that_vary_within_datums_are_counted_in_all_buckets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first by its row, of the first column that varies anywhere."""
    in_buckets(monkeypatch)
    predictions, truths = boxes(60)
    index = pl.int_range(pl.len())
    varying = predictions.with_columns(
        even=pl.when(index > 100).then(index % 2).otherwise(0),
        late=pl.when(index < 60).then(index).otherwise(0),
    ).reverse()
    case = Case((varying, truths), {"by": ["even", "late"], "metrics": ["AP"]})
    said = told_twice(case, "detection", tmp_path)
    assert "column 'even'" in said
    assert "a datum: 27 datums" in said
    assert "the first is 59" in said
    sides = (predictions.with_columns(city=pl.col("datum_id")), truths.with_columns(city=index))
    said = told_twice(Case(sides, {"by": ["city"], "metrics": ["AP"]}), "detection", tmp_path)
    assert "not constant" in said
    other = truths.with_columns(city=pl.col("datum_id") + pl.col("datum_id") // 50)
    case = Case((sides[0], other), {"by": ["city"], "metrics": ["AP"]})
    said = told_twice(case, "detection", tmp_path)
    assert "for 10 datums" in said
    assert "first is 50" in said
