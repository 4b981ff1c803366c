"""Runs of jobs: repeated runs, failures, baselines, gates, locks, executors, log."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from jobs.conftest import write_day
from refusals import refused

import evalengine as ee
from evalengine import atomic
from evalengine import run as scoring
from evalengine.jobs import process, records, running
from evalengine.jobs.process import LockedError, locked, log_to
from evalengine.jobs.running import plan_job
from evalengine.schemas.errors import ChangedError, InputError, ResultError, WriteError
from evalengine.scorecard import storage

Write = Callable[..., Path]
LAST = ("gates = [", 'baseline = "last"\ngates = ["mAP[iou=0.5] >= baseline - 0.05", ')


def statuses(result: Any) -> list[str]:
    return [one.status for one in result.verdicts]


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that receives the arguments of every call of ``score_tables``."""
    calls: list[Any] = []
    score = scoring.score_tables

    def counted(*args: Any, **named: Any) -> ee.Scorecard:
        calls.append(args)
        return score(*args, **named)

    monkeypatch.setattr(scoring, "score_tables", counted)
    return calls


class TestRepeatedRuns:
    def test_the_result_equals_score(self, write: Write, folder: Path) -> None:
        result = ee.run_job(write())
        tables = folder / "tables" / "date=2026-11-20"
        plain = ee.score(
            str(tables / "predictions.parquet"), str(tables / "truths.parquet"), by="weather"
        )
        assert result.ran
        assert statuses(result) == ["passed"]
        assert result.card.metrics.equals(plain.metrics)
        assert {*content(folder / "runs" / "2026-11-20")} == {
            "_SUCCESS", "job.json", "run.json", "labels.parquet", "metrics.parquet",
            "curves.parquet", "tally.zip",
            *(f"page_{name}.parquet" for name in ("curves", "thresholds", "confusion", "worst")),
        }  # fmt: skip
        assert {path.name for path in (folder / "runs").iterdir()} == {
            "2026-11-20", ".2026-11-20.lock",
        }  # fmt: skip
        details = json.loads((folder / "runs/2026-11-20/job.json").read_text())
        assert details["variables"] == {"date": "2026-11-20"}
        assert details["inputs"]["ground_truths"][0]["name"] == (
            "tables/date=2026-11-20/truths.parquet"
        )

    def test_it_is_not_repeated_unless_forced(
        self, write: Write, folder: Path, scored: list[Any]
    ) -> None:
        path = write()
        ee.run_job(path)
        before = content(folder / "runs" / "2026-11-20")
        repeated = ee.run_job(path)
        assert (repeated.ran, statuses(repeated), len(scored)) == (False, ["passed"], 1)
        assert content(folder / "runs" / "2026-11-20") == before
        forced = ee.run_job(path, force=True)
        assert (forced.ran, len(scored)) == (True, 2)
        assert forced.plan.run_id == repeated.plan.run_id
        after = content(folder / "runs" / "2026-11-20")
        assert after["metrics.parquet"] == before["metrics.parquet"]
        assert after["_SUCCESS"] != before["_SUCCESS"]
        assert len(list((folder / "history").iterdir())) == 1

    def test_changed_inputs_replace_it(self, write: Write, folder: Path, scored: list[Any]) -> None:
        path = write()
        first = ee.run_job(path)
        write_day(folder, "2026-11-20", wrong=3)
        second = ee.run_job(path)
        assert (second.ran, len(scored)) == (True, 2)
        assert first.plan.run_id != second.plan.run_id
        assert first.plan.folder == second.plan.folder
        assert second.card.value("mAP", iou_threshold=0.5) < 1

    def test_a_damaged_result_is_made_again(self, write: Write, scored: list[Any]) -> None:
        path = write()
        result = ee.run_job(path)
        (result.plan.folder / "curves.parquet").write_bytes(b"PAR1")
        assert ee.run_job(path).ran
        assert len(scored) == 2
        assert result.card.curves.height

    def test_remains_of_a_killed_run_are_deleted(self, write: Write, folder: Path) -> None:
        path = write()
        draft = folder / "runs" / ".2026-11-20.12345678.new"
        draft.mkdir(parents=True)
        (draft / "metrics.parquet").write_bytes(b"PAR")
        messages: list[str] = []
        ee.run_job(path, tell=lambda text, **facts: messages.append(text))
        assert not draft.exists()
        assert any(one.startswith("deleted files") for one in messages)

    def test_other_files_are_never_replaced(self, write: Write, folder: Path) -> None:
        (folder / "runs" / "2026-11-20").mkdir(parents=True)
        (folder / "runs" / "2026-11-20" / "thesis.txt").write_text("dear")
        with pytest.raises(ResultError, match="something other"):
            ee.run_job(write())
        assert content(folder / "runs" / "2026-11-20") == {"thesis.txt": b"dear"}


class TestFailures:
    def test_inputs_that_change_during_the_run(
        self, write: Write, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        score = scoring.score_tables

        def slow(*args: Any, **named: Any) -> ee.Scorecard:
            card = score(*args, **named)
            write_day(folder, "2026-11-20", wrong=1)
            return card

        monkeypatch.setattr(scoring, "score_tables", slow)
        with refused("inputs_changed", ChangedError, count=2):
            ee.run_job(write())
        assert [path.name for path in (folder / "runs").iterdir()] == [".2026-11-20.lock"]

    def test_inputs_truncated_during_the_run(
        self, write: Write, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The error is that the input changed, not that it is damaged."""
        score = scoring.score_tables

        def meanwhile(*args: Any, **named: Any) -> ee.Scorecard:
            table = folder / "tables/date=2026-11-20/predictions.parquet"
            table.write_bytes(table.read_bytes()[:-100])
            return score(*args, **named)

        monkeypatch.setattr(scoring, "score_tables", meanwhile)
        with refused("inputs_changed", ChangedError, count=1):
            ee.run_job(write())

    def test_invalid_inputs_keep_the_old_result(self, write: Write, folder: Path) -> None:
        path = write()
        ee.run_job(path)
        before = content(folder / "runs" / "2026-11-20")
        table = folder / "tables/date=2026-11-20/predictions.parquet"
        pl.read_parquet(table).with_columns(score=pl.lit(float("nan"))).write_parquet(table)
        with pytest.raises(InputError, match="score"):
            ee.run_job(path)
        assert content(folder / "runs" / "2026-11-20") == before
        events = [json.loads(line) for line in (folder / "lineage.jsonl").read_text().splitlines()]
        assert [event["eventType"] for event in events] == ["START", "COMPLETE", "START", "FAIL"]

    @pytest.mark.parametrize("after", range(6))
    def test_a_full_disk_keeps_the_old_result(
        self, write: Write, folder: Path, monkeypatch: pytest.MonkeyPatch, after: int
    ) -> None:
        path = write()
        ee.run_job(path)
        before = content(folder / "runs" / "2026-11-20")
        write_day(folder, "2026-11-20", wrong=2)
        remaining = [after]

        def broken(path: Path) -> None:
            remaining[0] -= 1
            if remaining[0] < 0:
                raise OSError(28, "No space left on device")

        monkeypatch.setattr(storage, "sync", broken)
        monkeypatch.setattr(records, "sync", broken)
        monkeypatch.setattr(atomic, "sync", broken)
        with pytest.raises(ResultError, match="No space left"):
            ee.run_job(path)
        assert content(folder / "runs" / "2026-11-20") == before
        assert {path.name for path in (folder / "runs").iterdir()} == {
            "2026-11-20", ".2026-11-20.lock",
        }  # fmt: skip


class TestBaseline:
    def test_last_is_the_newest_run_that_passed(self, write: Write, folder: Path) -> None:
        path = write(LAST)
        write_day(folder, "2026-11-20", wrong=4, first=100)
        nights = {
            day: ee.run_job(path, variables={"date": day})
            for day in ("2026-11-19", "2026-11-20", "2026-11-21")
        }
        assert statuses(nights["2026-11-19"]) == ["skipped", "passed"]
        assert statuses(nights["2026-11-20"])[0] == "failed"
        assert nights["2026-11-20"].gate_failed
        assert statuses(nights["2026-11-21"]) == ["passed", "passed"]
        assert nights["2026-11-21"].verdicts[0].baseline == 1.0
        # A repeated run keeps its baseline although later runs exist.
        repeated = ee.run_job(path, variables={"date": "2026-11-19"}, force=True)
        assert statuses(repeated) == ["skipped", "passed"]

    def test_last_in_a_folder_of_one_name(self, write: Write, folder: Path) -> None:
        path = write(LAST, ("runs/{date}", "runs/latest"))
        assert statuses(ee.run_job(path)) == ["skipped", "passed"]
        write_day(folder, "2026-11-20", wrong=1)
        second = ee.run_job(path)
        assert second.verdicts[0].baseline == 1.0
        for force in (False, True):
            repeated = ee.run_job(path, force=force)
            assert repeated.verdicts == second.verdicts

    def test_a_damaged_baseline_is_skipped(
        self, write: Write, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = write(LAST)
        for day in ("2026-11-19", "2026-11-20"):
            ee.run_job(path, variables={"date": day})
        (path.parent / "runs" / "2026-11-20" / "metrics.parquet").write_bytes(b"PAR1")
        capsys.readouterr()
        tell = log_to(form="json")
        run = ee.run_job(path, variables={"date": "2026-11-21"}, tell=tell)
        assert run.verdicts[0].baseline == 1.0
        lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
        (warning,) = [line["message"] for line in lines if line["level"] == "warning"]
        assert warning.startswith("not taken as")

    def test_a_failed_night_passes_on_its_baseline(self, write: Write, folder: Path) -> None:
        path = write(LAST, ("runs/{date}", "runs/latest"))
        ee.run_job(path)
        for wrong, expected in ((4, "failed"), (5, "failed"), (0, "passed")):
            write_day(folder, "2026-11-20", wrong=wrong, first=1000 * wrong)
            night = ee.run_job(path)
            assert statuses(night)[0] == expected, wrong
            assert night.verdicts[0].baseline == 1.0
        # The night that passed is the next one's baseline.
        write_day(folder, "2026-11-20", wrong=1)
        before = json.loads((folder / "runs/latest/_SUCCESS").read_text())
        assert ee.run_job(path).verdicts[0].baseline == 1.0
        after = json.loads((folder / "runs/latest/_SUCCESS").read_text())
        assert after["baseline_finished"] == before["finished"]

    def test_a_run_is_never_its_own_baseline(self, write: Write, folder: Path) -> None:
        """A failed run in between had this run as its baseline."""
        path = write(LAST, ("runs/{date}", "runs/latest"))
        write_day(folder, "2026-11-20", wrong=1)
        ee.run_job(path)
        write_day(folder, "2026-11-20", wrong=0)
        second = ee.run_job(path)
        write_day(folder, "2026-11-20", wrong=5)
        assert statuses(ee.run_job(path))[0] == "failed"
        write_day(folder, "2026-11-20", wrong=0)
        messages: list[str] = []
        repeated = ee.run_job(path, tell=lambda text, **_: messages.append(text))
        assert (repeated.plan.run_id, statuses(second)[0]) == (second.plan.run_id, "passed")
        assert statuses(repeated)[0] == "skipped"
        assert any("its own baseline" in text for text in messages)

    def test_a_run_with_a_new_gate_ignores_later_runs(self, write: Write, folder: Path) -> None:
        for day in ("2026-11-19", "2026-11-20"):
            ee.run_job(write(), variables={"date": day})
        for day, expected in (("2026-11-19", "skipped"), ("2026-11-20", "passed")):
            repeated = ee.run_job(write(LAST), variables={"date": day})
            assert (repeated.ran, statuses(repeated)) == (False, [expected, "passed"])

    def test_a_folder_named_like_a_glob(self, write: Write, folder: Path) -> None:
        write(LAST, ("tables/date={date}/pred", "tables/date={date}/p*d"))
        odd = folder.with_name("[prod] *?")
        folder.rename(odd)
        ee.run_job(odd / "job.toml", variables={"date": "2026-11-19"})
        assert statuses(ee.run_job(odd / "job.toml")) == ["passed", "passed"]

    def test_a_missing_baseline_is_refused_before_any_work(
        self, write: Write, scored: list[Any]
    ) -> None:
        with refused("file_missing", ResultError):
            ee.run_job(write((LAST[0], LAST[1].replace('"last"', '"runs/release"'))))
        assert scored == []

    def test_a_named_baseline(self, write: Write, folder: Path) -> None:
        ee.run_job(write(("runs/{date}", "runs/release")), variables={"date": "2026-11-19"})
        named = (LAST[0], LAST[1].replace('"last"', '"runs/release"'))
        assert statuses(ee.run_job(write(named))) == ["passed", "passed"]
        (folder / "runs" / "release" / "run.json").unlink()
        with pytest.raises(ResultError, match=r"no run\.json"):
            ee.run_job(write(named), variables={"date": "2026-11-21"})

    def test_gates_without_a_baseline(self, write: Write) -> None:
        with refused("option_missing", option="baseline"):
            ee.run_job(write((LAST[0], LAST[1].replace('baseline = "last"\n', ""))))


class TestGates:
    def test_a_gate_without_a_row_keeps_the_result(self, write: Write, scored: list[Any]) -> None:
        wrong = ("mAP[iou=0.5]", "mAP[iou=0.55, weather=snow]")
        with refused("no_such_row", ResultError, metric="mAP", column="iou_threshold"):
            ee.run_job(write(wrong))
        corrected = ee.run_job(write())
        assert (corrected.ran, statuses(corrected), len(scored)) == (False, ["passed"], 1)
        success = json.loads((corrected.plan.folder / "_SUCCESS").read_text())
        assert success["gates"] == "passed"
        assert pl.read_parquet(corrected.plan.folder.parents[1] / "history")["gates"][0] == "passed"

    def test_empty_tables_are_not_blamed_on_gates(self, write: Write, folder: Path) -> None:
        for path in (folder / "tables" / "date=2026-11-20").glob("*.parquet"):
            pl.read_parquet(path).clear().write_parquet(path)
        with refused("no_such_row", ResultError) as caught:
            ee.run_job(write())
        assert "correct the gate" not in str(caught.value)

    def test_changed_gates_are_checked_without_scoring(
        self, write: Write, folder: Path, scored: list[Any]
    ) -> None:
        ee.run_job(write())
        strict = ee.run_job(write((">= 0.5", "> 1")))
        assert (strict.ran, strict.gate_failed, len(scored)) == (False, True, 1)
        assert '"failed"' in (strict.plan.folder / "_SUCCESS").read_text()


class TestLock:
    def test_concurrent_runs(
        self, write: Write, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path, begun, go_on = write(), threading.Event(), threading.Event()
        score = scoring.score_tables

        def slow(*args: Any, **named: Any) -> ee.Scorecard:
            begun.set()
            assert go_on.wait(60)
            return score(*args, **named)

        monkeypatch.setattr(scoring, "score_tables", slow)
        results: list[Any] = []
        first = threading.Thread(target=lambda: results.append(ee.run_job(path)))
        first.start()
        assert begun.wait(60)
        with pytest.raises(LockedError) as caught:
            ee.run_job(path)
        message = str(caught.value)
        assert f"'nightly' (process {os.getpid()} on " in message
        assert "since 20" in message
        assert "2026-11-20. Two runs" in message
        assert caught.value.code == "locked"
        with refused("locked", LockedError):
            ee.run_job(path, wait=0.3)
        second = threading.Thread(target=lambda: results.append(ee.run_job(path, wait=60)))
        second.start()
        go_on.set()
        first.join(60)
        second.join(60)
        assert sorted(result.ran for result in results) == [False, True]

    def test_inputs_that_change_during_the_wait(
        self, write: Write, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path, acquire = write(), process._acquire
        ee.run_job(path)

        def late(*args: Any) -> None:
            write_day(folder, "2026-11-20", wrong=7)
            acquire(*args)

        monkeypatch.setattr(process, "_acquire", late)
        result = ee.run_job(path, wait=60)
        assert result.ran
        assert result.gate_failed
        write(("runs/{date}", "runs/{run_id}"))
        write_day(folder, "2026-11-20")
        with refused("inputs_changed"):
            ee.run_job(path, wait=60)

    @pytest.mark.skipif(os.name == "nt", reason="locks there are no files' modes")
    @pytest.mark.parametrize(
        ("folder_mode", "mode"), [(0o755, 0o600), (0o775, 0o660), (0o1777, 0o600)]
    )
    def test_a_lock_has_the_permissions_of_its_folder(
        self, tmp_path: Path, folder_mode: int, mode: int
    ) -> None:
        home, before = tmp_path / "home", os.umask(0)
        try:
            home.mkdir()
            home.chmod(folder_mode)
            lock = home / ".run.lock"
            for _ in range(2):
                with locked(home / "run", "a"):
                    assert lock.stat().st_mode & 0o777 == mode
                lock.chmod(0o666)  # the mode of an earlier version
        finally:
            os.umask(before)

    def test_names_that_link_to_one_folder_share_its_lock(self, tmp_path: Path) -> None:
        (tmp_path / "store" / "run").mkdir(parents=True)
        (tmp_path / "latest").symlink_to(tmp_path / "store" / "run")
        with (
            locked(tmp_path / "store" / "run", "a"),
            refused("locked", LockedError),
            locked(tmp_path / "latest", "b"),
        ):
            raise AssertionError

    @pytest.mark.parametrize("name", ["file/run", "file/a/run"])
    def test_a_lock_below_a_file_is_refused(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(WriteError, match="cannot write"), locked(tmp_path / name, "a"):
            raise AssertionError

    @pytest.mark.skipif(os.name == "nt", reason="links and pipes are made otherwise there")
    def test_a_link_or_a_pipe_in_place_of_a_lock_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "mine").write_text("dear")
        (tmp_path / ".link.lock").symlink_to(tmp_path / "mine")
        os.mkfifo(tmp_path / ".pipe.lock")
        for name in ("link", "pipe"):
            with pytest.raises(WriteError, match="cannot write"), locked(tmp_path / name, "a"):
                raise AssertionError
        assert (tmp_path / "mine").read_text() == "dear"

    def test_the_lock_of_a_dead_process_is_taken_over(self, tmp_path: Path) -> None:
        dead = process.Holder("nightly", 4711, "here", "2026-11-20 02:00:00 UTC")
        (tmp_path / ".run.lock").write_bytes(b"\n" + msgspec.json.encode(dead))
        messages: list[str] = []
        with locked(tmp_path / "run", "nightly", tell=messages.append):
            holder = msgspec.json.decode((tmp_path / ".run.lock").read_bytes())
            assert holder["pid"] == os.getpid()
        (message,) = messages
        assert "process 4711 on here" in message
        assert "2026-11-20 02:00:00 UTC" in message
        assert (tmp_path / ".run.lock").read_bytes() == b""

    def test_waiting_is_reported_once(self, tmp_path: Path) -> None:
        messages: list[str] = []
        with (
            locked(tmp_path / "run", "a"),
            refused("locked", LockedError),
            locked(tmp_path / "run", "b", wait=0.5, tell=messages.append),
        ):
            raise AssertionError
        assert len(messages) == 1
        assert messages[0].startswith("waiting: another run")
        assert "job 'a'" in messages[0]


def test_partitions_are_scored_together(write: Write, folder: Path) -> None:
    parts = ("[outputs]", 'partition = "date"\n[outputs]')
    path = write(parts, ('[variables]\ndate = "2026-11-20"\n', ""), ("runs/{date}", "runs/all"))
    result = ee.run_job(path)
    assert result.card.run["datums"] == 30
    sides = (str(folder / "tables" / "*" / f"{name}.parquet") for name in ("predictions", "truths"))
    assert result.card.metrics.equals(ee.score(*sides, by="weather").metrics)
    assert not ee.run_job(path).ran
    write_day(folder, "2026-11-22", first=300)
    assert ee.run_job(path).card.run["datums"] == 40


def test_the_executor_of_a_job_is_used(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, score = [], scoring.score_tables

    def recording(*args: Any, **named: Any) -> ee.Scorecard:
        calls.append(named | {"options": args[1]})
        return score(*args, **(named | {"executor": None, "address": None}))

    monkeypatch.setattr(scoring, "score_tables", recording)
    plain = plan_job(write()).run_id
    where = 'executor = "dask"\naddress = "tcp://here:1"\nby ='
    path = write(("by =", where), ("[outputs]", '[options]\nscratch = "large"\n[outputs]'))
    ee.run_job(path)
    assert (calls[0]["executor"], calls[0]["address"]) == ("dask", "tcp://here:1")
    assert calls[0]["options"].scratch == str(path.parent / "large")
    assert plan_job(path).run_id == plain  # it changes no number


@pytest.mark.slow
def test_processes_give_the_same_numbers(write: Write) -> None:
    plain = ee.run_job(write(("runs/{date}", "runs/plain"))).card
    pooled = ee.run_job(
        write(("runs/{date}", "runs/apart"), ("by =", 'executor="processes"\nby ='))
    )
    assert pooled.card.run["buckets"]
    assert pooled.card.metrics.equals(plain.metrics)


def test_the_log_and_its_forms(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    ee.run_job(write(), tell=log_to(form="json", job="nightly"))
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    messages = [line["message"] for line in lines]
    assert messages[:2] == ["planned", "reading and checking"]
    assert messages[-2:] == ["writing", "done"]
    assert {line["job"] for line in lines} == {"nightly"}
    assert {line["level"] for line in lines} == {"info"}
    ee.run_job(write(), tell=log_to(job="nightly"))
    assert "nightly: finished before" in capsys.readouterr().err
    ee.run_job(write(), tell=log_to(quiet=True))
    assert capsys.readouterr().err == ""


def test_every_exported_name_exists() -> None:
    assert all(hasattr(running, name) for name in running.__all__)
