"""Table of the metrics of all runs of a job, as Parquet files or a Delta table."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from jobs.conftest import write_day
from refusals import refused

import evalengine as ee
from evalengine.jobs import records, running

Write = Callable[..., Path]


class TestHistory:
    @pytest.mark.parametrize("form", ["parquet", "delta"])
    def test_each_run_has_one_entry(self, write: Write, folder: Path, form: str) -> None:
        if form == "delta":
            pytest.importorskip("deltalake")
        path = write(('"history"', f'"history"\nhistory_format = "{form}"'))
        results = [
            ee.run_job(path, variables={"date": day}, force=force)
            for day, force in (("2026-11-19", False), ("2026-11-20", False), ("2026-11-20", True),
                               ("2026-11-20", False))
        ]  # fmt: skip
        target = folder / "history"
        table = pl.read_delta(str(target)) if form == "delta" else pl.read_parquet(target)
        counts = dict(table.group_by("run_id").len().iter_rows())
        height = results[0].card.metrics.height
        assert counts == {results[0].plan.run_id: height, results[1].plan.run_id: height}
        assert set(table["variables"]) == {'{"date": "2026-11-19"}', '{"date": "2026-11-20"}'}
        over_time = table.filter(
            (pl.col("metric") == "mAP")
            & (pl.col("iou_threshold") == 0.5)
            & pl.col("slice").is_null()
        )
        assert sorted(over_time["folder"]) == ["runs/2026-11-19", "runs/2026-11-20"]
        assert over_time["value"].to_list() == [1.0, 1.0]

    def test_a_lost_entry_is_added_by_the_next_run(self, write: Write, folder: Path) -> None:
        path = write()
        ee.run_job(path)
        [entry] = (folder / "history").iterdir()
        before = pl.read_parquet(entry)
        entry.unlink()
        ee.run_job(path)
        assert pl.read_parquet(entry).equals(before)

    @pytest.mark.parametrize("form", ["parquet", "delta"])
    @pytest.mark.parametrize("dies", [False, True])
    def test_the_latest_entry_matches_the_folder(
        self, dies: bool, form: str, write: Write, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The input changes and changes back; the last run may die before it adds its entry."""
        if form == "delta":
            pytest.importorskip("deltalake")
        path = write(('history = "history"', f'history = "history"\nhistory_format = "{form}"'))
        for wrong in (0, 3):
            write_day(folder, "2026-11-20", wrong=wrong)
            ee.run_job(path)
        write_day(folder, "2026-11-20", wrong=0)
        with monkeypatch.context() as patch:
            if dies:
                patch.setattr(running, "append_history", lambda *args, **named: False)
            latest = ee.run_job(path).card.value("mAP", iou_threshold=0.5)
        if dies:
            assert not ee.run_job(path).ran
        target = folder / "history"
        table = pl.read_delta(str(target)) if form == "delta" else pl.read_parquet(target)
        rows = table.filter(metric="mAP", iou_threshold=0.5).filter(pl.col("slice").is_null())
        assert rows.height == 2  # one row per run
        assert rows.sort("finished")["value"][-1] == latest == 1.0

    def test_concurrent_writers_of_a_delta_table(self, tmp_path: Path) -> None:
        pytest.importorskip("deltalake")
        target = str(tmp_path / "history")
        start = threading.Barrier(4)
        faults: list[Exception] = []

        def add(name: str) -> None:
            rows = pl.DataFrame({"run_id": [name] * 2, "value": [1.0, 2.0]})
            start.wait(60)
            try:
                records.append_history(rows, name, target, "delta", again=False)
            except Exception as error:
                faults.append(error)

        threads = [threading.Thread(target=add, args=(f"run{i}",)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert faults == []
        counts = dict(pl.read_delta(target).group_by("run_id").len().iter_rows())
        assert counts == {f"run{i}": 2 for i in range(4)}

    def test_a_delta_table_gets_new_columns(self, tmp_path: Path) -> None:
        pytest.importorskip("deltalake")
        target = str(tmp_path / "history")
        for name, more in (("a", {}), ("b", {"added": [3]})):
            rows = pl.DataFrame({"run_id": [name], "value": [1.0], **more})
            records.append_history(rows, name, target, "delta", again=False)
        assert pl.read_delta(target).sort("run_id")["added"].to_list() == [None, 3]

    def test_a_missing_delta_package_is_refused(
        self, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(__import__("sys").modules, "deltalake", None)
        with refused("package_missing", package="deltalake"):
            ee.run_job(write(('"history"', '"history"\nhistory_format = "delta"')))
