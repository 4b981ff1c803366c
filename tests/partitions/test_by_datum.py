"""Tallies of one row a datum merged in files: pieces of any size, slices, frames in files."""

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
from partitions.cases import FEW, in_buckets, same_as_in_memory, written
from polars.testing import assert_frame_equal

import evalengine as ee
from evalengine.partitions import datum_blocks, frame_files, sizing

BY_DATUM = ("retrieval", "lists", "text", "segmentation")


def sizes(piece: int) -> sizing.Sizes:
    """Four buckets, and pieces of so many bytes."""
    return sizing.Sizes(n=4, scratch=1000, group_rows=20, datums_at_once=3, chunks=8, piece=piece)


@pytest.mark.parametrize("piece", [1, 10**9])
@pytest.mark.parametrize("name", BY_DATUM)
def test_pieces_of_any_size(
    name: str, piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A datum each, and all in one."""
    in_buckets(monkeypatch, sizes(piece))
    task, draw = CASES[name]
    same_as_in_memory(draw(7), task, tmp_path)


def sliced(n: int = 60) -> Case:
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
    """Sums of every group go on from piece to piece in the order of datums."""
    in_buckets(monkeypatch)
    card = same_as_in_memory(sliced(), "text", tmp_path)
    assert card.metrics["slice_value"].n_unique() > 20


def test_many_groups_are_seen_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evalengine import planner

    monkeypatch.setattr(planner, "_GROUP_CELLS", 20)
    in_buckets(monkeypatch)
    same_as_in_memory(sliced(), "text", tmp_path)


def test_processes_merge_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch)
    task, draw = CASES["lists"]
    same_as_in_memory(draw(2), task, tmp_path, executor="processes", threads=2)


def in_files(case: Case, folder: Path, patch: pytest.MonkeyPatch) -> tuple[ee.Scorecard, Any]:
    """A run whose single datums are too many to be held, and the run in memory."""
    in_buckets(patch)
    patch.setattr(frame_files, "_ROW", 10**9)
    sides = written(case, folder)
    whole = ee.score(*sides, task="text", **case.options)
    given: dict[str, Any] = {"memory_limit": "1GB", "scratch": str(folder / "s")}
    return ee.score(*sides, task="text", **case.options, **given), whole


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
    monkeypatch.setattr(frame_files.FrameFile, "__call__", lambda _: pytest.fail("it was read"))
    card.save(tmp_path / "out")
    del card
    gc.collect()
    assert os.listdir(tmp_path / "s") == []
    assert_frame_equal(ee.load(tmp_path / "out").per_datum, whole.per_datum, check_exact=True)


def test_a_frame_for_which_there_is_no_room_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame_files, "_PACKED", 10**15)
    with pytest.raises(ee.ScratchError, match=r"scratch are needed"):
        in_files(sliced(), tmp_path, monkeypatch)
    assert os.listdir(tmp_path / "s") == []


def test_bytes_of_a_tally_are_counted() -> None:
    from merging.parts import plan_of, tallied

    case = sliced()
    tallies = tallied(case, plan_of(case, "text"))
    values = sum(column.values.nbytes for made in tallies.stats.columns.values() for column in made)
    assert values < datum_blocks.size_of(tallies) < values + 200 * len(tallies.datums)
