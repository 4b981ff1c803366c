"""Rules of benchmarks/guard.py: exceeded budgets, required reasons, counted calls."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import evalengine as ee

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
OLD = {"a": {"calls": 1000, "files": 100, "code": 500, "peak_mb": 200}}


def named(**figures: int) -> dict[str, dict[str, int]]:
    return {"a": {**OLD["a"], **figures}}


@pytest.fixture
def guard(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import guard

    yield guard
    threading.setprofile(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("figures", "over"),
    [
        ({}, 0),
        ({"calls": 1050, "files": 105, "code": 525, "peak_mb": 240}, 0),
        ({"calls": 1051}, 1),
        ({"files": 106, "code": 526}, 2),
        ({"peak_mb": 241}, 1),
        ({"calls": 10, "peak_mb": 1}, 0),
        ({"kernels": 3}, 1),  # without a budget
    ],
)
def test_figures_exceed_their_budgets_by_their_tolerance(
    guard: ModuleType, figures: dict[str, int], over: int
) -> None:
    lines = guard.exceeded(named(**figures), OLD)
    assert len(lines) == over
    assert all(any(f"{value:,}" in line for line in lines) for value in figures.values() if over)


def test_works_without_budgets_are_reported(guard: ModuleType) -> None:
    assert len(guard.exceeded({"new": {"calls": 1, "files": 1}}, OLD)) == 2


@pytest.mark.parametrize(
    ("measured", "after"),
    [
        ({"calls": 999, "peak_mb": 190}, {"calls": 999, "peak_mb": 200}),  # memory is noise
        ({"calls": 1040, "peak_mb": 230}, {"calls": 1000, "peak_mb": 200}),  # within the tolerance
        ({"calls": 1060, "peak_mb": 150}, {"calls": 1060, "peak_mb": 150}),
    ],
)
def test_writing_lowers_budgets_and_raises_only_exceeded_ones(
    guard: ModuleType, measured: dict[str, int], after: dict[str, int]
) -> None:
    assert guard.new_budgets(named(**measured), OLD) == named(**after)


STEPS: list[tuple[list[tuple[str, dict[str, Any]]], int]] = [
    ([("", OLD)], 0),
    ([("", OLD), ("", named(calls=1001))], 1),
    ([("", OLD), ("one more rule", named(calls=1001))], 0),
    ([("", OLD), ("", named(calls=900))], 0),
    ([("", OLD), ("", named(calls=900)), ("", OLD)], 1),  # back up to an older budget
    ([("", OLD), ("", named(calls=1001, files=101)), ("", named(files=101))], 1),
    ([("", OLD), ("", named(calls=1001)), ("a reason, late", named(calls=1001, code=499))], 0),
    ([("", OLD), ("", named(calls=1001)), ("", OLD)], 0),
    (
        [("", OLD), ("", {}), ("", named(calls=1001))],
        1,
    ),  # removed, and added again with a higher value
    ([("", OLD), ("", {**OLD, "b": {"calls": 9}})], 0),  # a new work
    ([("", OLD), ("", {"b": {"calls": 9000}})], 1),  # renamed
    ([("", OLD), ("renamed", {"b": {"calls": 9000}})], 0),
    ([("", OLD), ("", {}), ("", OLD)], 0),
]


@pytest.mark.parametrize(("history", "missing"), STEPS)
def test_raised_budgets_need_a_reason(
    guard: ModuleType, history: list[tuple[str, dict[str, Any]]], missing: int
) -> None:
    commits = [(f"{i:040}", reason, works) for i, (reason, works) in enumerate(history)]
    assert len(guard.unexplained(commits)) == missing


def test_reasons_are_read_from_commits(guard: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "full" / "benchmarks"
    folder.mkdir(parents=True)
    path = folder / "guard.json"

    def git(*arguments: str, at: Path = folder) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, *arguments], cwd=at, check=True, capture_output=True)

    git("init", "-q", at=folder.parent)
    for message, works in (
        ("Budgets", OLD),
        ("Raise\n\nGuard-Raise: the new rule", named(calls=2000)),
        ("Guard-Raise: in the subject is no trailer\n\nBody.", named(calls=3000)),
    ):
        guard.write_budgets(path, works)
        git("add", ".")
        git("commit", "-q", "-m", message)
    history = guard.budget_history(path)
    assert [reason for _, reason, _ in history] == ["", "the new rule", ""]
    assert [works["a"]["calls"] for *_, works in history] == [1000, 2000, 3000]
    [line] = guard.unexplained(history)
    assert "3,000" in line
    assert history[-1][0][:10] in line
    git("clone", "-q", "--depth", "1", f"file://{tmp_path / 'full'}", "part", at=tmp_path)
    assert guard.budget_history(tmp_path / "part" / "benchmarks" / "guard.json") is None
    git("clone", "-q", str(tmp_path / "full"), "clone", at=tmp_path)
    assert guard.budget_history(tmp_path / "clone" / "benchmarks" / "guard.json") == history


def test_calls_on_all_threads_are_counted(guard: ModuleType) -> None:
    def one() -> None:
        pass

    def three() -> None:
        for _ in range(3):
            one()

    def on_a_thread() -> None:
        thread = threading.Thread(target=three)
        thread.start()
        thread.join()

    def figures(call: Callable[[], object]) -> int:
        return int(guard.Counter().measure(call)["calls"])

    assert figures(three) == 4
    assert figures(on_a_thread) > 5
    assert guard.Counter().measure(three) == {"calls": 4, "files": 0, "code": 0}
    ee.precision_recall_fscore(["a"], ["a"])  # the first call imports
    result = guard.Counter().measure(lambda: ee.precision_recall_fscore(["a"], ["a"]))
    assert result["code"] >= result["files"] > 2
    assert result["calls"] > result["code"]


def test_every_work_has_a_budget_and_two_sets(guard: ModuleType) -> None:
    stored = json.loads(guard.BUDGETS.read_text("utf-8"))
    assert list(stored["works"]) == list(guard.WORKS)
    for name, work in guard.WORKS.items():
        warm, exact = guard.warm_up_set(work), guard.exact_set(work)
        assert warm[0] == exact[0]
        assert warm[1] < exact[1]
        assert warm[2] != exact[2]
        figures = {"kernels"} if work.kind == "empty" else {"calls", "files", "code"}
        assert set(stored["works"][name]) == {*figures, "peak_mb"}


def test_small_works_run_on_both_sets(guard: ModuleType, tmp_path: Path) -> None:
    works = [work for work in guard.WORKS.values() if work.data == "small"]
    sets = {made(work) for work in works for made in (guard.exact_set, guard.warm_up_set)}
    for one in sets:
        guard.make(tmp_path, *one)
    for work in works:
        for made in (guard.exact_set, guard.warm_up_set):
            folder = tmp_path / guard.place(*made(work))
            assert guard.input_mb(work, folder) > 0
            if work.kind == "memory":
                assert guard.prepare(work, folder)()["value"].is_not_null().any()


def test_required_comparisons_fail_if_they_cannot_run(
    guard: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "BUDGETS", tmp_path / "guard.json")
    guard.BUDGETS.write_text('{"python": "2.7", "works": {}}')
    assert guard.run_exact([], write=False) == 0
    assert guard.run_exact([], write=False, require=True) == 1


def test_works_missing_in_a_pin_have_a_hyphen(guard: ModuleType) -> None:
    work = guard.WORKS["LVIS"]
    figures = {"cpu": 2.0, "wall": 1.0, "peak_mb": 1234.0}
    medians = {("LVIS", "new"): {**figures, "cpu": 1.0}, ("LVIS", "checkout"): figures}
    text = guard.page([work], ["old", "new", "checkout"], medians, "here.")
    assert f"| LVIS | {work.size} | - | 1.000 | 2.000 | - | 2.00 |" in text
    assert "| LVIS | - | 1.000 | 1.000 | - | 1,234 | 1,234 |" in text
