"""Each run's metrics in one table over time: Parquet files, or a Delta table."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import evalengine as ee
from evalengine.jobs import history
from evalengine.schemas.errors import OptionError

Write = Callable[..., Path]


class TestHistory:
    @pytest.mark.parametrize("form", ["parquet", "delta"])
    def test_each_run_stands_once(self, write: Write, folder: Path, form: str) -> None:
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

    def test_delta_that_others_write_at_once(self, tmp_path: Path) -> None:
        pytest.importorskip("deltalake")
        target = str(tmp_path / "history")
        start = threading.Barrier(4)
        faults: list[Exception] = []

        def add(name: str) -> None:
            rows = pl.DataFrame({"run_id": [name] * 2, "value": [1.0, 2.0]})
            start.wait(60)
            try:
                history.append(rows, name, target, "delta", again=False)
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

    def test_delta_takes_columns_that_came_later(self, tmp_path: Path) -> None:
        pytest.importorskip("deltalake")
        target = str(tmp_path / "history")
        for name, more in (("a", {}), ("b", {"added": [3]})):
            rows = pl.DataFrame({"run_id": [name], "value": [1.0], **more})
            history.append(rows, name, target, "delta", again=False)
        assert pl.read_delta(target).sort("run_id")["added"].to_list() == [None, 3]

    def test_delta_that_is_not_installed(
        self, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(__import__("sys").modules, "deltalake", None)
        with pytest.raises(OptionError, match=r"pip install 'evalengine\[delta\]'"):
            ee.run_job(write(('"history"', '"history"\nhistory_format = "delta"')))
