"""Progress reporting: counted by workers, shown to callers, silent without a listener."""

from __future__ import annotations

import io
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from partitions.cases import in_buckets

import evalengine as ee
from evalengine import progress
from evalengine.progress import Step, counting, one_done, reminded, reports_progress, show_progress

EXAMPLES = Path(__file__).parent.parent / "examples" / "detection"
TABLES = [str(EXAMPLES / f"{name}.parquet") for name in ("predictions", "groundtruths")]


def steps_of(**given: Any) -> list[Step]:
    events: list[str] = []
    ee.score(*TABLES, progress=events.append, **given)
    assert all(isinstance(step, str) for step in events)
    return [step for step in events if isinstance(step, Step)]


def test_resamples_are_counted() -> None:
    """There are resamples for the intervals, then half-samples for mAP corrected for small sets."""
    draws = [step for step in steps_of(intervals=95, draws=200, threads=2) if step == "drawing"]
    assert {step.total for step in draws} == {200, 20}
    assert max(step.done for step in draws) == 200


def test_buckets_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch)
    steps = [step for step in steps_of(memory_limit="1GB") if step == "matching"]
    assert steps[0].done == 0
    assert steps[-1].done == steps[0].total >= 2
    assert {step.unit for step in steps} == {"buckets"}


def test_threads_count_together() -> None:
    events: list[Any] = []

    @reports_progress
    def work(*, progress: Any) -> None:
        with counting("at it", 400, "things") as count:
            threads = [
                threading.Thread(target=lambda: [count(1) for _ in range(100)]) for _ in range(4)
            ]
            for one in threads:
                one.start()
            for one in threads:
                one.join()

    work(progress=events.append)
    assert [step.done for step in events] == sorted(step.done for step in events)
    assert events[-1].done == 400


def test_a_listener_may_score() -> None:
    """Its run is not counted for the run that it listens to, which once deadlocked."""
    events: list[str] = []

    @reports_progress
    def work(*, progress: Any = None) -> None:
        with counting("at it", 2, "things"):
            one_done()
            one_done()

    def hear(step: str) -> None:
        events.append(step)
        one_done()
        work()
        work(progress=lambda _: None)

    thread = threading.Thread(target=lambda: work(progress=hear), daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    assert [step.done for step in events if isinstance(step, Step)] in ([0, 2], [0, 1, 2])


def test_without_a_listener() -> None:
    with counting("at it", 3, "things") as count:
        count(1)
        one_done()
    assert ee.score(*TABLES).value("mAP", iou_threshold=0.5) is not None


def test_it_is_called_at_most_ten_times_per_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    events: list[Any] = []

    @reports_progress
    def work(*, progress: Any) -> None:
        with counting("at it", 1000, "things") as count:
            for _ in range(1000):
                clock[0] += 0.01
                count(1)

    work(progress=events.append)
    assert 90 <= len(events) <= 103
    assert events[-1].done == 1000


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_progress_and_remaining_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    out = Terminal()
    with show_progress(out) as tell:
        tell("reading")
        time.sleep(0.15)
        tell(Step("matching", 3, 17, "buckets"))
        time.sleep(0.3)
    text = out.getvalue()
    assert "reading" in text
    assert "3/17" in text.replace(" ", "")
    assert "buckets" in text
    assert "0:00:00" in text


def test_a_long_step_is_logged_repeatedly() -> None:
    lines: list[str] = []
    with reminded(lines.append, every=0.05) as tell:
        tell("reading")
        tell(Step("matching", 0, 4, "buckets"))
        tell(Step("matching", 3, 4, "buckets"))
        time.sleep(0.3)
    assert lines[:2] == ["reading", "matching"]
    assert lines[2].startswith("matching, 3 of 4 buckets")
    n = len(lines)
    time.sleep(0.15)
    assert len(lines) == n  # nothing after the end


def test_a_short_step_is_logged_once() -> None:
    lines: list[str] = []
    with reminded(lines.append, every=10) as tell:
        for _ in range(5):
            tell("reading")
    assert lines == ["reading"]


def test_an_error_ends_the_display_and_the_reminder() -> None:
    before, made = {*threading.enumerate()}, set[threading.Thread]()

    def fail() -> None:
        made.update({*threading.enumerate()} - before)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), reminded(print), show_progress(Terminal()):
        fail()
    assert "reminder" in [one.name for one in made]
    for one in made:  # pools may have other threads, which remain
        one.join(10)
        assert not one.is_alive()


def test_progress_true_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    card = ee.score(*TABLES, progress=True)
    assert card.frames == ("metrics", "curves")
    assert capsys.readouterr().out == ""
