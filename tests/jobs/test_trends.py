"""Trends over runs of a folder or a job's history: data, page, tables, command."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest
from jobs.conftest import write_day
from jobs.nights import FIRST, base, write_night
from refusals import refused
from report.test_page import Page

import evalengine as ee
from evalengine.cli import main
from evalengine.jobs import history
from evalengine.jobs.history import trends
from evalengine.jobs.records import Success, history_rows
from evalengine.jobs.verdicts import Verdict
from evalengine.report.page import MOST_BYTES
from evalengine.report.svg import svg
from evalengine.report.trend import (
    Night,
    Series,
    Trend,
    as_page,
    chart,
    gates_chart,
    gates_line,
    headline,
    history_frame,
    history_gauges,
    history_text,
    spark,
)
from evalengine.schemas.display import Band, Line
from evalengine.schemas.errors import OptionError, ResultError
from evalengine.scorecard.card import Scorecard
from evalengine.statistics.sequences import Change, changes
from evalengine.statistics.sequences import Night as Observed

Write = Callable[..., Path]


def day(night: int) -> str:
    return f"{FIRST + timedelta(days=night):%Y-%m-%d}"


@pytest.fixture(scope="module")
def card() -> Scorecard:
    return base()


@pytest.fixture(scope="module")
def values(card: Scorecard) -> np.ndarray:
    """Return values of 40 nights around those of the card."""
    start = card.metrics["value"].to_numpy()
    return np.asarray(start + np.random.default_rng(1).normal(0, 0.005, (40, start.size)))


@pytest.fixture(scope="module")
def runs(card: Scorecard, values: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of 40 nights: nights 10 to 12 failed, and every second has a page."""
    folder = tmp_path_factory.mktemp("nights") / "runs"
    for night, row in enumerate(values):
        status = "failed" if 10 <= night <= 12 else "passed"
        target = write_night(folder, card, night, row, status=status)
        if night % 2:
            (target / "report.html").write_text("a page")
    return folder


def write_history(
    folder: Path, card: Scorecard, night: int, values: np.ndarray, run_id: int | None = None,
    *, job: str = "nightly", shown: str | None = None, **variables: str,
) -> None:  # fmt: skip
    """Add a run without a folder to a history."""
    folder.mkdir(exist_ok=True)
    run_id = night if run_id is None else run_id
    at = (FIRST + timedelta(days=night, seconds=run_id)).isoformat()
    success = Success(
        run_id=f"{run_id:016d}", job=job, evalengine="0.1.0", started=at, finished=at,
        gates="passed",
    )  # fmt: skip
    history_rows(
        card.metrics.with_columns(value=pl.Series(values)), success,
        folder=shown or f"runs/{day(night)}", task=card.task, dialect=card.dialect,
        variables=variables,
    ).write_parquet(folder / f"{run_id:016d}.parquet")  # fmt: skip


def names(trend: Trend) -> list[str]:
    return [night.name for night in trend.nights]


def page_of(source: Path, path: Path) -> Page:
    return Page(ee.report(source, path).read_text(encoding="utf-8"))


def test_numbers_of_all_nights(runs: Path, card: Scorecard, values: np.ndarray) -> None:
    [trend], unread = trends(runs)
    assert unread == []
    assert [night.name for night in trend.nights] == [day(i) for i in range(40)]
    first = trend.series[0]
    assert (first.title, first.better) == ("Accuracy", "higher")
    assert first.values == pytest.approx(values[:, 0])
    reach = card.metrics.row(0, named=True)
    assert first.lower == pytest.approx(values[:, 0] + reach["lower"] - reach["value"])
    assert trend.gates == {
        "Accuracy >= 0.6": ["failed" if 10 <= i <= 12 else "passed" for i in range(40)]
    }
    assert first.bounds == [("Accuracy >= 0.6", 0.6)]
    assert first.failed == [10, 11, 12]
    assert first.changes == []


def test_a_slice_that_falls(card: Scorecard, values: np.ndarray, tmp_path: Path) -> None:
    rows = values.copy()
    rows[20:, 4] -= 0.2
    for night, row in enumerate(rows):
        write_night(tmp_path / "runs", card, night, row)
    [trend], _ = trends(tmp_path / "runs")
    [moved] = trend.moved
    assert trend.searched == 3
    [change] = moved.changes
    assert (moved.by, moved.group, moved.reading(change)) == ("site", "s2", "worse")
    assert change.at == 20
    assert change.before - change.after == pytest.approx(0.2, abs=0.01)
    page = page_of(tmp_path / "runs", tmp_path / "a.html")
    assert page.tables["moved-0"][1][:4] == ["site", "s2", "Accuracy", day(20)]


def test_the_page(runs: Path) -> None:
    page = page_of(runs, runs.parent / "a.html")
    assert page.open == []
    assert len(page.ids) == len({*page.ids})
    assert "svg" in page.tags
    head, *rows = page.tables["nights-0"]
    assert head[:3] == ["night", "gates", "Accuracy"]
    assert [row[0] for row in rows] == [day(i) for i in reversed(range(40))]
    assert page.html.count('/report.html"') == 20
    assert f'href="runs/{day(39)}/report.html"' in page.html
    assert "failed in 3 of 40 runs" in page.html
    assert "http" not in page.html.replace("http://www.w3.org/2000/svg", "")


def test_the_history_of_deleted_runs(card: Scorecard, tmp_path: Path, values: np.ndarray) -> None:
    """A history without folders has the same numbers."""
    folder = tmp_path / "history"
    for night, row in enumerate(values[:5]):
        write_history(folder, card, night, row)
    [trend], _ = trends(folder)
    assert trend.series[0].title == "Accuracy"
    assert trend.series[0].values == pytest.approx(values[:5, 0])
    assert trend.series[0].better == "higher"
    assert any("history only" in note for note in trend.notes)


def test_a_job_joins_its_history_and_its_folders(write: Write, folder: Path) -> None:
    write_day(folder, "2026-11-21", first=0)
    path = write()
    ee.run_job(path)
    ee.run_job(path, variables={"date": "2026-11-21"})
    for source in (path, folder / "history", folder / "runs"):
        [trend], unread = trends(source)
        assert unread == []
        assert [night.name for night in trend.nights] == ["2026-11-20", "2026-11-21"]
        assert {night.gates for night in trend.nights} == {"passed"}


def test_other_options_break_the_line(card: Scorecard, values: np.ndarray, tmp_path: Path) -> None:
    other = card.options.replace(positive_label=0)
    shifted = values[:30].copy()
    shifted[15:] += 0.1  # the step coincides with the change of options
    for night, row in enumerate(shifted):
        write_night(tmp_path, card, night, row, options=other if night >= 15 else card.options)
    [trend], _ = trends(tmp_path)
    assert [i for i, night in enumerate(trend.nights) if night.breaks] == [15]
    assert "positive_label" in trend.nights[15].breaks
    assert trend.series[0].changes == []
    lines = [mark for mark in chart(trend, trend.series[0]).marks if isinstance(mark, Line)]
    assert [line.x[0] for line in lines if line.legend == "value"] == [trend.x[0], trend.x[15]]
    assert "positive_label" in as_page([trend], "a")


def test_missing_numbers_and_days_are_gaps(
    card: Scorecard, values: np.ndarray, tmp_path: Path
) -> None:
    without = card.metrics.filter(pl.col("metric") != "Accuracy")
    for night, row in enumerate(values[:10]):
        if night == 4:
            continue
        if night == 6:
            write_night(tmp_path, card, night, metrics=without)
        else:
            write_night(tmp_path, card, night, row)
    [trend], _ = trends(tmp_path)
    one = trend.series[0]
    assert [i for i, value in enumerate(one.values) if value is None] == [5]
    assert trend.x[4] - trend.x[3] == 2
    assert any("1 day has no run" in note for note in trend.notes)
    figure = chart(trend, one)
    line = next(m for m in figure.marks if isinstance(m, Line) and m.legend == "value")
    band = next(m for m in figure.marks if isinstance(m, Band))
    assert line.y[5] is None
    assert band.low[5] is None


def test_one_night(card: Scorecard, tmp_path: Path) -> None:
    write_night(tmp_path / "runs", card, 0)
    [trend], _ = trends(tmp_path / "runs")
    assert len(trend.nights) == 1
    page = page_of(tmp_path / "runs", tmp_path / "a.html")
    assert len(page.tables["nights-0"]) == 2


def test_jobs_and_tasks_have_sections(card: Scorecard, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    write_night(folder / "a", card, 0, job="a")
    write_night(folder / "a", card, 1, job="a")
    write_night(folder / "b", card, 0, job="b")
    table = pl.DataFrame({"prediction": [1.0, 2.0], "target": [1.0, 3.0]})
    ee.score(table, metrics=["MAE"]).save(folder / "single")
    every, _ = trends(folder)
    assert [(one.title, len(one.nights)) for one in every] == [
        ("a: classification", 2), ("b: classification", 1), ("Regression", 1),
    ]  # fmt: skip
    page = page_of(folder, tmp_path / "a.html")
    assert {"trend-0", "trend-1", "trend-2"} <= {*page.ids}


def test_a_damaged_run_is_named(card: Scorecard, tmp_path: Path) -> None:
    write_night(tmp_path, card, 0)
    broken = write_night(tmp_path, card, 1)
    (broken / "metrics.parquet").write_bytes(b"PAR1")
    [trend], unread = trends(tmp_path)
    assert len(trend.nights) == 1
    assert len(unread) == 1
    assert "metrics.parquet" in unread[0]
    assert "metrics.parquet" in as_page([trend], "a", unread)


def test_an_unfinished_run_of_a_job_is_named(card: Scorecard, tmp_path: Path) -> None:
    write_night(tmp_path, card, 0)
    unfinished = write_night(tmp_path, card, 1)
    (unfinished / "job.json").write_text("{}")
    (unfinished / "_SUCCESS").unlink(missing_ok=True)
    [trend], unread = trends(tmp_path)
    assert len(trend.nights) == 1
    assert str(unfinished) in unread[0]


def test_nights_of_the_same_data_are_no_new_datums(card: Scorecard, tmp_path: Path) -> None:
    """The same 200 datums in 16 nights do not count as 3,200."""
    start = card.metrics["value"].to_numpy()
    for same in (True, False):
        folder = tmp_path / str(same)
        for night in range(16):
            row = start - 0.15 * (night >= 8)
            write_night(folder, card, night, row, truth="one" if same else None)
    [repeated], _ = trends(tmp_path / "True")
    [fresh], _ = trends(tmp_path / "False")
    assert repeated.series[0].changes == []
    assert [change.at for change in fresh.series[0].changes] == [8]


def test_nights_of_always_give_datums(tmp_path: Path) -> None:
    """Without intervals, the numbers of datums are those of gates with ``always``."""
    rng = np.random.default_rng(0)
    (tmp_path / "tables").mkdir()
    for night in range(8):
        actual = rng.integers(0, 2, 400)
        wrong = rng.random(400) < (0.1 if night < 4 else 0.5)
        table = {
            "datum_id": [f"{night} {i}" for i in range(400)],
            "actual": actual,
            "predicted": np.where(wrong, 1 - actual, actual),
        }
        pl.DataFrame(table).write_parquet(tmp_path / "tables" / f"{day(night)}.parquet")
    job = tmp_path / "job.toml"
    job.write_text(
        'name = "a"\nmodel = "m"\nmetrics = ["Accuracy"]\ngates = ["Accuracy >= 0.3 always"]\n'
        '[variables]\ndate = "{yesterday}"\n[inputs]\npredictions = "tables/{date}.parquet"\n'
        '[outputs]\nfolder = "runs/{date}"\n'
    )
    for night in range(8):
        ee.run_job(job, variables={"date": day(night)})
    [trend], _ = trends(tmp_path / "runs")
    assert [change.at for change in trend.series[0].changes] == [4]


@pytest.mark.parametrize("nights_with_digest", [[], [0], [*range(15)]])
def test_datums_that_may_be_the_same_are_not_new(
    card: Scorecard, tmp_path: Path, nights_with_digest: list[int]
) -> None:
    """Changes are searched only if the ground truths of every night have a digest."""
    start = card.metrics["value"].to_numpy()
    for night in range(16):
        truth = None if night in nights_with_digest else ""
        write_night(tmp_path, card, night, start - 0.15 * (night >= 8), truth=truth)
    [trend], _ = trends(tmp_path)
    assert trend.series[0].changes == []


def test_runs_that_share_partitions(card: Scorecard, values: np.ndarray, tmp_path: Path) -> None:
    """Changes are not searched in cumulative numbers, which are not independent."""
    rows = values[:30].copy()
    rows[15:] -= 0.3
    for night, row in enumerate(rows):
        every = [day(i) for i in range(night + 1)]
        write_night(tmp_path / "all", card, night, row, partitions=every)
        write_night(tmp_path / "last", card, night, row, partitions=every[-1:])
    [shared], _ = trends(tmp_path / "all")
    [separate], _ = trends(tmp_path / "last")
    assert (shared.series[0].changes, shared.moved, shared.searched) == ([], [], 0)
    assert any("not searched" in note for note in shared.notes)
    assert "No change" not in as_page([shared], "a")
    assert [change.at for change in separate.series[0].changes] == [15]


def test_a_job_of_partitions(tmp_path: Path) -> None:
    """A folder named by a run id has the day of its last partition."""
    (tmp_path / "in").mkdir()
    job = tmp_path / "job.toml"
    job.write_text(
        'name = "a"\nmodel = "m"\nmetrics = ["Accuracy"]\n[inputs]\n'
        'predictions = "in/{night}.parquet"\npartition = "night"\n'
        '[outputs]\nfolder = "runs/{run_id}"\nhistory = "history"\n'
    )
    for night in range(3):
        table = {"datum_id": [f"{night} {i}" for i in range(9)], "actual": [0, 1, 1] * 3}
        pl.DataFrame(table).with_columns(predicted="actual").write_parquet(
            tmp_path / "in" / f"{day(night)}.parquet"
        )
        ee.run_job(job)
    [trend], _ = trends(job)
    assert names(trend) == [day(0), day(1), day(2)]
    assert not trend.independent
    shutil.rmtree(tmp_path / "runs")
    [deleted], _ = trends(job)
    assert (len(deleted.nights), deleted.independent) == (3, False)


def observed(n: float = 500, share: float = 0.9, **changes: object) -> Observed:
    counts = [n * (1 - share), *[0.0] * 19, n * share]
    given = {"counts": counts, "finished": "2024", "digest": f"{share} {changes}", **changes}
    return Observed(share, **given)


@pytest.mark.parametrize(
    ("facts", "at"),
    [
        ({}, [4]),
        ({"limits": (0.0, 2.0)}, []),
        ({"counts": [20.0] * 21}, []),
        ({"digest": ""}, []),
        ({"digest": "the same"}, []),
    ],
)
def test_changes_need_shares_of_new_datums(
    card: Scorecard, tmp_path: Path, facts: dict[str, object], at: list[int]
) -> None:
    frame = card.metrics.with_columns(trials=pl.lit(None, card.metrics.schema["trials"]))
    for night in range(8):
        share = 0.9 if night < 4 else 0.5
        moved = frame.with_columns(value=pl.lit(share))
        given = {"digest": str(night), **facts}
        write_night(
            tmp_path, card, night, metrics=moved, truth="", observed=observed(share=share, **given)
        )
    [trend], _ = trends(tmp_path)
    assert [change.at for change in trend.series[0].changes] == at


def test_observations_belong_to_their_run(card: Scorecard, tmp_path: Path) -> None:
    """Observations of earlier nights, which newer files repeat, are counted once."""
    frame = card.metrics.with_columns(trials=pl.lit(None, card.metrics.schema["trials"]))
    for night in range(8):
        share = 0.9 if night < 4 else 0.5
        folder = write_night(
            tmp_path / "runs", card, night, metrics=frame.with_columns(value=pl.lit(share)),
            truth="", observed=observed(share=share, finished="2025", digest=str(night)),
        )  # fmt: skip
        file = folder / "nights.json"
        nights = json.loads(file.read_text())
        [by_name] = nights["seen"].values()
        one = dict(by_name["a night"], finished="2024", counts=[1e6, *[0.0] * 19, 1e6], digest="a")
        by_name["before"] = one
        file.write_text(json.dumps(nights))
    [trend], _ = trends(tmp_path / "runs")
    [change] = trend.series[0].changes
    assert change.at == 4
    history = tmp_path / "history"
    for night in range(4):
        shutil.rmtree(tmp_path / "runs" / day(night))
        row = frame["value"].to_numpy() * 0 + 0.9
        write_history(history, card, night, row)
    job = tmp_path / "job.toml"
    job.write_text(
        'name = "nightly"\nmodel = "m"\n[variables]\ndate = "a"\n[inputs]\n'
        'predictions = "{date}.parquet"\n[outputs]\nfolder = "runs/{date}"\nhistory = "history"\n'
    )
    [joined], _ = trends(job)
    assert len(joined.nights) == 8
    assert joined.series[0].changes == []  # the deleted nights' numbers of datums are unknown


def test_a_job_shows_its_own_runs(card: Scorecard, write: Write, folder: Path) -> None:
    """Other jobs may write into the same folders and history."""
    path = write()
    ee.run_job(path)
    write_night(folder / "runs", card, 0, job="other")
    write_history(folder / "history", card, 1, card.metrics["value"].to_numpy(), job="another")
    [trend], _ = trends(path)
    assert (names(trend), trend.nights[0].facts["job"]) == (["2026-11-20"], "nightly")
    assert {one.nights[0].facts["job"] for one in trends(folder / "runs")[0]} == {
        "nightly", "other",
    }  # fmt: skip


def test_each_model_has_a_trend(card: Scorecard, tmp_path: Path) -> None:
    for night in range(3):
        for model in ("a", "b"):
            card.save(tmp_path / "x" / day(night) / model)
            card.save(tmp_path / "y" / f"{model}-{day(night)}")
            card.save(tmp_path / "z" / f"{day(night)}-{model}{night}")
    for name in ("x", "y"):
        every, _ = trends(tmp_path / name)
        assert {one.title.rsplit(": ")[-1]: names(one) for one in every} == {
            model: [day(0), day(1), day(2)] for model in ("a", "b")
        }
    gauges = history_gauges(trends(tmp_path / "x")[0])
    assert gauges.count('group="a"') == gauges.count('group="b"') > 0
    [mixed], _ = trends(tmp_path / "z")  # the paths do not show which runs belong together
    assert len(mixed.nights) == 6
    assert any("same day" in note for note in mixed.notes)


def test_the_order_is_that_of_days(card: Scorecard, tmp_path: Path) -> None:
    """The time of scoring does not matter; runs of one day are ordered by name."""
    for night in range(4):
        write_night(tmp_path / "days", card, night, finished=FIRST - timedelta(days=night))
    [trend], _ = trends(tmp_path / "days")
    assert names(trend) == [day(i) for i in range(4)]
    for i, hour in enumerate(("18", "12", "06")):
        at = FIRST + timedelta(hours=i)
        write_night(tmp_path / "hours", card, i, name=f"{day(0)}T{hour}", finished=at)
    [trend], _ = trends(tmp_path / "hours")
    assert names(trend) == [f"{day(0)}T{hour}" for hour in ("06", "12", "18")]


def test_names_of_folders_without_a_day(card: Scorecard, tmp_path: Path) -> None:
    """The name is the date in the variables, otherwise the time of scoring."""
    for name, variables in (
        ("date", {"date": day(1), "until": day(3)}),
        ("last", {"a": "b", "until": day(3)}),
        ("none", {}),
    ):
        for i in range(2):
            moved = {key: value.replace("2024", f"202{4 + i}") for key, value in variables.items()}
            at = FIRST + timedelta(seconds=i)
            write_night(
                tmp_path / name, card, i, name=f"nightly{i:015d}", finished=at, variables=moved
            )
    for name, first in (("date", day(1)), ("last", day(3)), ("none", "2024-01-01 00:00:00")):
        [trend], _ = trends(tmp_path / name)
        second = "2024-01-01 00:00:01" if name == "none" else first.replace("2024", "2025")
        assert names(trend) == [first, second]
    write_history(
        tmp_path / "history", card, 0, card.metrics["value"].to_numpy(), shown="a", date=day(5)
    )
    [trend], _ = trends(tmp_path / "history")
    assert names(trend) == [day(5)]


def test_the_latest_run_of_a_folder_counts(card: Scorecard, tmp_path: Path) -> None:
    start = card.metrics["value"].to_numpy()
    for run_id, shift in ((1, 0.0), (2, 0.1)):
        write_history(tmp_path / "history", card, 0, start + shift, run_id)
    [trend], _ = trends(tmp_path / "history")
    assert trend.series[0].values == [pytest.approx(start[0] + 0.1)]


@pytest.mark.parametrize(
    "order", [("passed", "failed", "skipped"), ("skipped", "failed", "passed")]
)
def test_a_gate_of_several_rows_has_its_worst_status(
    card: Scorecard, tmp_path: Path, order: tuple[str, ...]
) -> None:
    for night, some in enumerate((order, [one for one in order if one != "failed"])):
        verdicts = [Verdict("Accuracy[site=*] >= 0.6", one, one, None, 0.6) for one in some]
        write_night(tmp_path, card, night, verdicts=verdicts)
    [trend], _ = trends(tmp_path)
    assert trend.gates == {"Accuracy[site=*] >= 0.6": ["failed", "passed"]}


def test_segments_share_the_errors(
    card: Scorecard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels: list[float] = []

    def search(values: np.ndarray, trials: np.ndarray | None, level: float) -> list[list[Change]]:
        levels.append(level)
        return changes(values, trials, level)

    monkeypatch.setattr(history, "changes", search)
    for night in range(4):
        options = card.options.replace(positive_label=night % 2)
        write_night(tmp_path, card, night, options=options)
    trends(tmp_path)
    assert levels == pytest.approx([1 - 0.05 / 4] * 8)


def test_options_that_differ_every_night(card: Scorecard, tmp_path: Path) -> None:
    """File names, column names and the night's date do not break the line."""
    for night in range(4):
        options = card.options.replace(
            columns={f"column {night}": "score"}, training=f"training of {night}.parquet",
            where=f"day = '{day(night)}' and {'a' if night < 3 else 'b'}",
        )  # fmt: skip
        write_night(tmp_path, card, night, options=options)
    [trend], _ = trends(tmp_path)
    assert [bool(night.breaks) for night in trend.nights] == [False, False, False, True]


def test_infinite_numbers_are_gaps(card: Scorecard, tmp_path: Path) -> None:
    whole = pl.col("slice").is_null()
    for night in range(3):
        frame = card.metrics
        if night == 1:
            frame = frame.with_columns(
                value=pl.when(whole).then(float("inf")).otherwise("value"), lower=float("-inf")
            )
        write_night(tmp_path / "runs", card, night, metrics=frame)
    [trend], _ = trends(tmp_path / "runs")
    one = trend.series[0]
    assert [value is None for value in one.values] == [False, True, False]
    assert [value is None for value in one.upper] == [False, True, False]
    assert any("infinite" in note for note in trend.notes)
    page_of(tmp_path / "runs", tmp_path / "a.html")
    assert "inf" not in history_gauges([trend]).lower()
    assert spark(one.values) in history_text([trend])


def test_times_of_gauges(card: Scorecard, tmp_path: Path) -> None:
    """The time is the day, otherwise the time of scoring; equal times keep both gauges."""
    write_night(tmp_path / "days", card, 3, finished=FIRST + timedelta(days=90))
    for night in range(2):
        write_night(tmp_path / "names", card, night, name=f"run {night}", finished=FIRST)
    gauges = {name: history_gauges(trends(tmp_path / name)[0]) for name in ("days", "names")}
    times = {
        name: {line.split()[-1] for line in text.splitlines() if line[0] != "#"}
        for name, text in gauges.items()
    }
    assert [float(one) for one in times["days"]] == [(FIRST + timedelta(days=3)).timestamp()]
    assert [float(one) for one in times["names"]] == [FIRST.timestamp()]
    assert gauges["names"].count("evalengine_gates_passed{") == 2
    assert gauges["names"].count("run_id=") == gauges["names"].count("{") // 2


def test_a_thousand_nights_are_a_small_page() -> None:
    """The page has 30 numbers and 30 gates that fail every second night."""
    rng = np.random.default_rng(0)
    n = 1000
    nights = [
        Night(day(i), f"{day(i)}T00:00:00+00:00", ("passed", "failed")[i % 2],
              f"../somewhere/far/away/runs/{day(i)}/report.html", "", "a remark of some length")
        for i in range(n)
    ]  # fmt: skip
    numbers = rng.normal(0.7, 0.01, (30, n))
    series = [
        Series(f"number {i}", row.tolist(), (row - 0.05).tolist(), (row + 0.05).tolist(), "higher",
               failed=[*range(1, n, 2)])
        for i, row in enumerate(numbers)
    ]  # fmt: skip
    gates = {f"gate {i} >= 0.5": ["passed", "failed"] * (n // 2) for i in range(30)}
    trend = Trend("a", "b", nights, [float(i) for i in range(n)], series, [], 0, gates)
    page = as_page([trend], "a")
    assert len(page.encode()) <= MOST_BYTES
    assert len(Page(page).tables["nights-0"]) == n + 1
    assert as_page([trend], "a") == page


@pytest.mark.parametrize("form", ["text", "json", "csv", "openmetrics"])
def test_the_command(runs: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", str(runs), "--format", form]) == 0
    out = capsys.readouterr().out
    [trend], _ = trends(runs)
    last = trend.series[0].values[-1]
    if form == "text":
        assert f"{last:.4f}" in out
        assert spark(trend.series[0].values) in out
        assert out.count("2024-02-") >= 9
    elif form == "openmetrics":
        assert out == history_gauges([trend])
        assert out.endswith("# EOF\n")
        assert out.count("evalengine_gates_passed{") == 40
    else:
        frame = (
            pl.DataFrame(json.loads(out)["history"])
            if form == "json"
            else pl.read_csv(out.encode())
        )
        assert frame.height == 40 * len(trend.series) == history_frame([trend]).height
        assert frame.filter(number="Accuracy")["value"][-1] == pytest.approx(last)


def test_spark_lines() -> None:
    assert spark([0.0, 1.0, 2.0, None, 7.0]) == "▁▂▃ █"
    assert spark([3.0, 3.0]) == "▄▄"
    assert len(spark([float(i) for i in range(1000)])) == 40
    assert spark([]) == ""


def test_refusals(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with refused("no_runs", ResultError):
        ee.report(tmp_path / "empty", tmp_path / "a.html")
    with refused("options_conflict", OptionError, options=["baseline"]):
        ee.report(runs, tmp_path / "a.html", baseline=runs / day(0))
    with refused("wrong_type", OptionError, option="run"):
        ee.report(pl.DataFrame({"a": [1]}), tmp_path / "a.html")


def test_the_summary_names_failed_gates_and_too_few_nights() -> None:
    nights = [Night("2026-11-20", "", "passed"), Night("2026-11-21", "", "failed")]
    gates = {
        "AP[label=pedestrian] >= baseline - 0.05": ["passed", "failed"],
        "AP >= 0": ["passed"] * 2,
    }
    one = Series("AP", [0.5, 0.4], few=True)
    trend = Trend("nightly", "", nights, [0.0, 1.0], [one], gates=gates)
    assert headline(trend) == "2026-11-21: AP 0.4000. 2 runs are too few to name a change."
    assert gates_line(trend) == (
        "Gates of 2026-11-21: failed: AP[label=pedestrian] >= baseline - 0.05. Gates failed in 1 of"
        " 2 runs, last in 2026-11-21."
    )
    long = msgspec.structs.replace(
        trend, gates={f"{'a' * 60} {gate}": of for gate, of in gates.items()}
    )
    short = msgspec.structs.replace(trend, gates={"AP >= 0": ["passed"] * 2})
    for shown, names in ((long, ["2026-11-21"]), (short, ["2026-11-20", "2026-11-21"])):
        made = gates_chart(shown)
        assert made
        image = svg(made)  # overlapping names are omitted, except the last
        assert [name for name in ("2026-11-20", "2026-11-21") if f">{name}<" in image] == names
