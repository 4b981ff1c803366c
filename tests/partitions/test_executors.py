"""Executors: errors, results equal to one process, repeated stages, late workers."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest
from merging.parts import Case
from merging.test_parts import CASES
from partitions.cases import InlinePool, boxes, in_buckets, same_as_in_memory, work_in, write_sides
from partitions.test_classification import listed
from refusals import refused
from sizes import tune

import evalengine as ee
from evalengine.executors import Threads
from evalengine.executors.processes import pool_of
from evalengine.outofcore import shuffle


def test_errors_of_processes_are_those_of_the_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch)
    predictions, truths = boxes()
    sides = write_sides(Case((predictions.with_columns(xmax=-1.0), truths), {}), tmp_path)
    with pytest.raises(ee.InputError, match="180 inverted boxes"):
        ee.score(*sides, task="detection", executor="processes", threads=2, scratch=str(tmp_path))


def test_names_of_executors() -> None:
    with refused("unknown_name", value="process"):
        pool_of("process", None, None)
    with pytest.raises(ee.OptionError, match="address"):
        pool_of("processes", "tcp://127.0.0.1:1", None)


@pytest.mark.slow
def test_finished_stages_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repeated call of a stage does not rewrite its files."""
    from evalengine.outofcore import stages

    in_buckets(monkeypatch)
    seen: dict[str, Any] = {}

    class Twice:
        threads, least, apart, reads_tables = 1, 1, True, True

        def refusal(self, function: Any, call: Any) -> str:
            return ""

        def share(self, limit: int) -> int:
            return limit

        def run(self, function: Any, calls: Any) -> list[Any]:
            for call in calls:
                function(*call)
            files = [path for path in Path(calls[0][0]).rglob("*") if path.is_file()]
            before = {path: path.stat().st_mtime_ns for path in files}
            assert before
            time.sleep(0.01)
            for call in calls:
                function(*call)
            seen[function.__name__] = before == {p: p.stat().st_mtime_ns for p in files}
            return [None] * len(calls)

        def prepare(self, function: Any) -> None:
            pass

        def close(self) -> None:
            pass

    work_in(monkeypatch, Twice())
    task, draw = CASES["detection"]
    same_as_in_memory(draw(1), task, tmp_path, executor="processes")
    assert {stages.tally_bucket.__name__, stages.merge_rows.__name__} <= seen.keys()
    assert all(seen.values())
    same_as_in_memory(listed(1, "listed"), "classification", tmp_path, executor="processes")
    assert all(seen.values())


def test_threads_return_every_result() -> None:
    """A short switch interval lets one thread end its work between two steps of another."""
    threads, interval = Threads(2), sys.getswitchinterval()
    calls = [lambda: 1, lambda: 2, lambda: 3]
    sys.setswitchinterval(1e-6)
    try:
        assert all(threads.each(calls) == [1, 2, 3] for _ in range(3000))
    finally:
        sys.setswitchinterval(interval)


class LateWorker(InlinePool):
    """Pool in which every second range of rows is read by a late worker with other files."""

    def __init__(self, file: str, other: bytes | None) -> None:
        super().__init__()
        self.file, self.other = Path(file), other

    def run(self, function: Any, calls: Any) -> list[BaseException | None]:
        results = []
        for number, call in enumerate(calls):
            original = self.file.read_bytes()
            if function is shuffle.shuffle_range and number % 2:
                self.file.unlink()
                if self.other is not None:
                    self.file.write_bytes(self.other)
            results += super().run(function, [call])
            self.file.write_bytes(original)
        return results


@pytest.mark.parametrize("missing", [True, False])
def test_ranges_that_a_late_worker_cannot_read_are_read_by_the_client(
    missing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker has no such file, or another file of that name."""
    in_buckets(monkeypatch)
    predictions, truths = boxes()
    other = tmp_path / "other.parquet"
    predictions.head(100).write_parquet(other, row_group_size=7)
    sides = write_sides(Case((predictions, truths), {}), tmp_path)
    whole = ee.score(*sides, task="detection")
    pool = LateWorker(sides[0], None if missing else other.read_bytes())
    work_in(monkeypatch, pool)
    tune(range_rows=50)
    card = ee.score(*sides, task="detection", executor="processes", scratch=str(tmp_path / "s"))
    assert card.metrics.equals(whole.metrics)
    (note,) = (one for one in card.findings if one.code == "client_reads")
    assert (note.facts["side"], note.facts["count"]) == ("predictions", 2)
    assert "because a worker could not" in note.message
