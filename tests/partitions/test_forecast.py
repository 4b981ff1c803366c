"""Forecasts of large runs from recorded ones."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from merging.parts import Case
from partitions.cases import boxes, write_sides
from refusals import refused

import evalengine as ee
from evalengine import tasks
from evalengine.evaluation.planner import make_plan
from evalengine.executors.processes import Processes
from evalengine.outofcore import memory
from evalengine.outofcore import memory as module
from evalengine.outofcore.memory import (
    EACH_MACHINE,
    ONE_MACHINE,
    SCRATCH,
    closest,
    forecast,
    recorded,
    tally_bytes,
)
from evalengine.schemas.option_values import make_options

BILLION = 10**9


def plan_of(task: str = "detection", **options: Any) -> Any:
    return make_plan(make_options(None, task=task, **options), task)


def forecast_of(workers: int = 32, rows: float = BILLION, **options: Any) -> module.Forecast:
    result = forecast(plan_of(**options), rows, workers)
    assert result is not None
    return result


def test_recorded_runs_match_current_plans() -> None:
    """The recorded needs are those of the named metrics today."""
    about = recorded()
    assert about.machine
    assert about.measured
    for one in about.runs:
        assert {*one.needs} == plan_of(one.task, metrics=one.metrics or None).needs
        assert one.cpu_workers > 0
        assert one.scratch > 0


def test_runs_reserve_more_disk_than_they_use() -> None:
    """Otherwise a run could fill a disk that was accepted."""
    assert [one for one in recorded().runs if one.reserved < one.scratch] == []


def test_the_closest_run_covers_the_metrics() -> None:
    for task in ("classification", "detection"):
        for one in (one for one in recorded().runs if one.task == task):
            assert closest(plan_of(task, metrics=one.metrics or None)) == one
    exact = closest(plan_of("detection", metrics=["PrecisionRecallCurve"]))
    assert exact is not None
    assert exact.metrics == []
    mixed = closest(plan_of("text", metrics=["ROUGE1", "ROUGEL", "TER"]))  # no run covers these
    assert mixed is not None
    assert "ROUGE1" in mixed.metrics


def test_cost_is_linear_and_shared_by_workers() -> None:
    one, twice = forecast_of(1), forecast_of(1, 2 * BILLION)
    assert twice.cpu_workers == pytest.approx(2 * one.cpu_workers)
    assert twice.reserved == pytest.approx(2 * one.reserved)
    many = forecast_of(32)
    spread = one.seconds - one.cpu_first - one.slope.start
    assert many.seconds == pytest.approx(one.slope.start + one.cpu_first + spread / 32)
    assert forecast_of(10**6).seconds == forecast_of(10**6).least_seconds <= many.seconds


def test_the_scarcest_resource_bounds_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    usage = shutil.disk_usage(tmp_path)

    def free(size: int) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=size))

    free(10**15)
    result = forecast_of(memory_limit="512MiB", scratch=str(tmp_path / "new"))
    assert result.disk == (tmp_path, 10**15)
    assert min(result.suffices_for.values()) == result.suffices_for[ONE_MACHINE]
    assert result.memory > 512 << 20
    enough = forecast_of(memory_limit=33 * result.memory)
    assert min(enough.suffices_for.values()) >= BILLION
    assert min(forecast_of(memory_limit=31 * result.memory).suffices_for.values()) < BILLION
    enough = forecast_of(1, memory_limit=result.memory)
    assert min(enough.suffices_for.values()) >= BILLION
    free(10**9)
    result = forecast_of(memory_limit="64GB")
    assert min(result.suffices_for.values()) == result.suffices_for[SCRATCH] < BILLION


@pytest.mark.parametrize("limit", [64 * 10**9, 4 << 30, 512 << 20])
def test_local_workers_share_the_limit(limit: int) -> None:
    """A process has its pool's share of the limit; a machine with one worker has all of it."""
    pool = Processes(32)
    share = pool.share(limit)
    result = forecast_of(memory_limit=limit)
    assert (result.share, result.fitting) == (share, pool.workers)
    by_memory = {name: result.suffices_for[name] for name in (ONE_MACHINE, EACH_MACHINE)}
    bytes_per_row = result.slope.held
    assert by_memory == {
        name: pytest.approx(memory.MOST_BUCKETS * memory.bucket_room(size) / bytes_per_row)
        for name, size in ((ONE_MACHINE, share), (EACH_MACHINE, limit))
    }
    assert forecast_of(1, memory_limit=limit).share == limit


def test_a_forecast_of_tables_uses_their_columns(tmp_path: Path) -> None:
    """Longer ids need more disk."""
    predictions, truths = boxes()
    wide = [one.with_columns(one["datum_id"].cast(str) + 90 * "x") for one in (predictions, truths)]
    result: list[list[float]] = []
    for name, sides in (("a", (predictions, truths)), ("b", wide)):
        (tmp_path / name).mkdir()
        paths = write_sides(Case(tuple(sides), {}), tmp_path / name)
        lines = ee.explain(*paths, rows=BILLION, workers=32).splitlines()
        words = {line.split()[0]: line.split() for line in lines}
        result.append([float(words[of][1].replace(",", "")) for of in ("scratch", "memory")])
    (scratch, need), (large_scratch, large_need) = result
    assert large_scratch > scratch + 80
    assert large_need > need
    rows = predictions.height + truths.height
    assert f"{rows:,} of all tables, on 3 workers" in ee.explain(*paths, workers=3)


def test_a_forecast_from_few_rows_assumes_many_buckets(tmp_path: Path) -> None:
    """The table has one bucket; a billion rows have many, whose files are deleted one by one."""
    assert ee.explain(*write_sides(Case(boxes(), {}), tmp_path), rows=1)
    lines = ee.explain(*write_sides(Case(boxes(), {}), tmp_path), rows=BILLION).splitlines()
    (scratch,) = (line.split() for line in lines if line.startswith("scratch"))
    reserved, used = (float(scratch[i]) for i in (1, -2))
    assert used < reserved < 3 * used


def test_recorded_tallies_raise_the_reserved_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every row reserves the recorded bytes of its tallies, if these exceed the default."""
    paths = write_sides(Case(boxes(), {}), tmp_path)
    result = []
    for size in (10_000, 30_000):
        monkeypatch.setattr(module, "tally_bytes", lambda _, size=size: size)
        lines = ee.explain(*paths, rows=BILLION).splitlines()
        [scratch] = (line.split()[1] for line in lines if line.startswith("scratch"))
        result.append(float(scratch.replace(",", "")))
    assert result[1] - result[0] == pytest.approx(20_000, abs=0.2)  # GB
    one = recorded().runs[0]
    assert tally_bytes(plan_of(one.task, metrics=one.metrics or None)) > 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (0.0423, "0.042 s"), (4.56, "4.6 s"), (86.4, "86 s"), (150, "2.5 min"),
     (7199, "120 min"), (10_000, "2.8 h"), (4e6, "1,111 h")],
)  # fmt: skip
def test_times_have_two_digits(seconds: float, text: str) -> None:
    assert module._time(seconds) == text


def test_tasks_without_a_recorded_run() -> None:
    task = next(one for one in tasks.NAMES if one not in {run.task for run in recorded().runs})
    assert forecast(plan_of(task), BILLION, 1) is None
    assert task in ee.explain(task=task, rows=BILLION)


def test_values_out_of_range() -> None:
    with refused("option_missing", option="rows"):
        ee.explain(task="detection", workers=2)
    with refused("option_value", option="workers"):
        ee.explain(task="detection", rows=5, workers=0)
    for workers in (1.5, "2"):
        with refused("option_value", option="workers"):
            ee.explain(task="detection", rows=5, workers=workers)  # type: ignore[arg-type]
    for rows in (0, -3, 2.5, float("nan"), float("inf"), "1e9"):
        with refused("option_value", option="rows"):
            ee.explain(task="detection", rows=rows)  # type: ignore[arg-type]
    for given in ({"rows": 5}, {"workers": 2}):
        with refused("options_conflict"):
            ee.explain(*boxes(), number="mAP", **given)  # type: ignore[arg-type]
