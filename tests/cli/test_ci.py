"""Output for CI servers: JUnit XML, GitHub's annotations and summary, and the action's step."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import classifier_runs
import pytest
from refusals import refused

from evalengine.jobs.gates import parse_gates
from evalengine.jobs.reports import command, summarise, workflow_commands, write_junit
from evalengine.jobs.verdicts import Verdict
from evalengine.schemas.errors import WriteError
from evalengine.schemas.results import FAILED, PASSED, SKIPPED

Run = Callable[..., tuple[int, str, str]]
ACTION = Path(__file__).parent.parent.parent / "integrations" / "github"
NASTY = 'F1[label="<a>&\x07\ud800"] >= 1'
VERDICTS = [
    Verdict("mAP >= baseline - 0.01 surely", "", FAILED, 0.7, 0.79, 0.8, "10 of 12 datums",
            1.0, -0.2, 0.1, "difference", 0.95, 99.5, 1234),
    Verdict(NASTY, "label=a, b", SKIPPED, None, None, reason="50 %\nno earlier run"),
    Verdict("mAP >= 0.5", "", PASSED, 0.7, 0.5, support=12),
]  # fmt: skip


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder with planted runs, without GitHub's variables."""
    for name in list(os.environ):
        if name.startswith(("GITHUB_", "INPUT_", "RUNNER_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(classifier_runs.write_all(tmp_path))
    return tmp_path


class TestJUnit:
    def test_one_test_case_per_verdict(self, tmp_path: Path) -> None:
        path = tmp_path / "junit.xml"
        write_junit(path, VERDICTS, "evalengine", {"task": "detection", "dialect": "<coco>"})
        suite = ET.parse(path).getroot()[0]
        counts = {name: suite.get(name) for name in ("tests", "failures", "skipped")}
        assert counts == {"tests": "3", "failures": "1", "skipped": "1"}
        about = {one.get("name"): one.get("value") for one in suite.findall("properties/property")}
        assert about == {"task": "detection", "dialect": "<coco>"}
        failed, skipped, passed = suite.findall("testcase")
        assert failed.get("name") == "mAP >= baseline - 0.01 surely"
        message = failed[1].get("message", "")
        assert message.startswith("value 0.7, bound 0.79, baseline 0.8, 95 %")
        assert message.endswith("[-0.2000, +0.1000], 1,234 datums; 10 of 12 datums")
        own = {one.get("name"): one.get("value") for one in failed.findall("properties/property")}
        assert (own["n"], own["support"], own["lower"]) == ("1234", "99.5", "-0.2")
        assert skipped.get("name") == r'F1[label="<a>&\x07\ud800"] >= 1 [label=a, b]'
        assert [one.tag for one in skipped] == ["properties", "skipped"]
        assert [one.tag for one in passed] == ["properties"]

    def test_files_are_written_whole(self, tmp_path: Path) -> None:
        path = tmp_path / "junit.xml"
        path.write_text("before")
        with pytest.raises(WriteError):
            write_junit(tmp_path / "gone" / "junit.xml", VERDICTS, "e", {})
        with pytest.raises(AttributeError):
            write_junit(path, [object()], "e", {})  # type: ignore[list-item]
        assert path.read_text() == "before"
        assert [one.name for one in tmp_path.iterdir()] == ["junit.xml"]

    def test_it_needs_gates(self, run: Run, runs: Path) -> None:
        status, _, err = run("score", "base.parquet", "truths.parquet", "--junit", "j.xml")
        assert (status, "--fail-under" in err) == (2, True)
        gate = ("--fail-under", "F1 > 0", "--junit", "gone/j.xml")
        status, _, err = run("score", "base.parquet", "truths.parquet", *gate)
        assert (status, "gone/j.xml" in err) == (2, True)


class TestCommands:
    def test_messages_are_escaped(self) -> None:
        assert command("error", "a:b,c%\n::", "x:y,z%\r\n::warning::") == (
            "::error title=a%3Ab%2Cc%25\\n%3A%3A::x:y,z%25%0D%0A::warning::"
        )

    def test_one_line_per_verdict(self) -> None:
        lines = workflow_commands(VERDICTS, ["no label\nmeets"], "a is b").splitlines()
        assert [line.split(" ")[0] for line in lines] == [
            "::error", "::warning", "::warning", "::notice",
        ]  # fmt: skip
        assert "title=mAP >= baseline - 0.01 surely" in lines[0]
        assert "50 %25\\nno earlier run" in lines[1]
        assert lines[3].endswith("1 of 3 failed, 1 skipped; a is b")
        assert workflow_commands([], []) == ""

    def test_a_summary_has_its_size(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "summary.md"
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
        path.write_text("before\n")
        assert summarise(VERDICTS, "the result\n")
        text = path.read_text()
        assert text.startswith("before\n## evalengine\n")
        assert "1 of 3 failed, 1 skipped**" in text
        assert text.endswith("\n\nthe result\n\n")
        summarise([], "line\n" * 400_000)
        assert path.stat().st_size < 1 << 20
        assert path.read_text().endswith("1 MiB at most)\n\n")
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
        with refused("write_failed", WriteError):
            summarise([], "")
        monkeypatch.delenv("GITHUB_STEP_SUMMARY")
        assert not summarise([], "")


SCORE = ("score", "worse.parquet", "truths.parquet", "--metric", "Accuracy,F1")
GATES = (
    "--fail-under", "Accuracy >= baseline - 0.05 surely", "--fail-if", "Accuracy < 0.1",
)  # fmt: skip


class TestScore:
    def test_gates_of_both_kinds(self, run: Run, runs: Path) -> None:
        assert run("score", "base.parquet", "truths.parquet", "--out", "base")[0] == 0
        status, out, err = run(*SCORE, *GATES, "--baseline", "base", "--junit", "j.xml")
        assert status == 1
        assert out.startswith("classification")
        assert "::" not in err
        rows = err.splitlines()[2:]
        assert re.match(r"failed +Acc.* difference \[-0\.2\d+, -0\.1\d+\] +400", rows[0])
        assert "Accuracy < 0.1" in rows[1]
        assert rows[1].startswith("passed ")
        assert ET.parse("j.xml").getroot()[0].get("failures") == "1"
        again = ("score", "unlucky.parquet", "truths.parquet")
        assert run(*again, *GATES, "--baseline", "base")[0] == 0

    def test_gates_alone_make_intervals(self, run: Run, runs: Path) -> None:
        plain = run(*SCORE, "--format", "csv")[1]
        gated = run(*SCORE, "--format", "csv", "--fail-under", "Accuracy >= 0.6 surely")[1]
        assert ",se," not in plain
        assert ",se," in gated

    def test_mistakes_stop_before_the_work(
        self, run: Run, runs: Path, received: dict[str, object]
    ) -> None:
        for gate, message in (
            ("Accuracy[knd=x] >= 0.5", "mean 'kind'"),
            ("Precision >= 0.5", "metric of this run"),
            ("Accuracy >= baseline * 0.9 surely", "share"),
            ("Accuracy >= baseline surely", "--baseline DIR"),
        ):
            status, _, err = run(*SCORE, "--by", "kind", "--fail-if", gate)
            assert (status, message in err) == (2, True), err
        gate = ("--fail-if", "Accuracy < baseline surely", "--baseline", "gone")
        status, _, err = run(*SCORE, *gate, "--executor", "processes")
        assert (status, "does not keep" in err) == (2, True), err
        assert not received

    def test_github(self, run: Run, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        gate = ("--fail-under", "Accuracy >= 0.85")
        status, out, err = run(*SCORE, *gate, "--format", "github")
        assert status == 1
        assert out.splitlines()[0] == (
            "::error title=Accuracy >= 0.85 failed::value 0.7, bound 0.85"
        )
        assert err.splitlines()[0] == "gates: 1 of 1 failed"
        assert "GITHUB_STEP_SUMMARY" in err
        monkeypatch.setenv("GITHUB_ACTIONS", "true")
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
        status, out, err = run(*SCORE, *gate)
        assert out.startswith("classification, dialect")
        assert "::error title=Accuracy >= 0.85" in err
        summary = Path("summary.md").read_text()
        assert "| failed | Accuracy" in summary
        assert "| Accuracy | 0.7000 |" in summary
        status, out, err = run(*SCORE, *gate, "--format", "json")
        assert (status, "::" in out + err) == (1, False)
        status, _, err = run("score", "gone.parquet")
        assert status == 2
        assert "\n::error title=evalengine::" in err


class TestCompare:
    @pytest.mark.parametrize(
        ("second", "gates", "status"),
        [
            ("same", ["--fail-under", "Accuracy >= baseline - 0.05 surely"], 0),
            ("same", ["--fail-if", "Accuracy < baseline surely"], 0),
            ("unlucky", ["--fail-if", "Accuracy < baseline surely"], 0),
            ("unlucky", ["--fail-if", "Accuracy < baseline"], 1),
            ("worse", ["--fail-if", "Accuracy < baseline surely"], 1),
            ("worse", ["--fail-under", "F1[label=a] >= baseline - 0.05 surely"], 1),
            ("worse", ["--fail-under", "F1[kind=*] >= baseline surely", "--by", "kind"], 1),
            ("better", ["--fail-under", "Accuracy >= 0.95"], 0),
            ("better", ["--fail-under", "Accuracy >= 0.95 surely"], 2),
            ("better", ["--fail-under", "Accuracy[kind=x] >= 0.95"], 2),
            ("better", ["--fail-under", "Recall >= 0.95", "--metric", "F1"], 2),
        ],
    )
    def test_status(self, run: Run, runs: Path, second: str, gates: list[str], status: int) -> None:
        files = ("base.parquet", f"{second}.parquet", "-g", "truths.parquet", "--draws", "200")
        got, _, err = run("compare", *files, *gates)
        assert got == status, err

    def test_saved_runs_and_github(
        self, run: Run, runs: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("base", "worse"):
            args = ("--metric", "Accuracy,F1", "--by", "kind", "--out", f"runs/{name}")
            assert run("score", f"{name}.parquet", "truths.parquet", *args)[0] == 0
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
        gate = ("--fail-if", "F1[kind=*] < baseline surely", "--junit", "j.xml")
        status, out, _ = run("compare", "runs/base", "runs/worse", *gate, "--format", "github")
        assert status == 1
        assert [line.split()[0] for line in out.splitlines()] == ["::error", "::error", "::notice"]
        assert "worse than base" in out
        assert "worse than base" in Path("summary.md").read_text()
        assert ET.parse("j.xml").getroot()[0].get("tests") == "2"
        wrong = ("--fail-if", "Recall < baseline")
        status, _, err = run("compare", "runs/base", "runs/worse", *wrong)
        assert (status, "this run" in err) == (2, True)

    def test_percentages_of_runs_are_refused(self, run: Run, runs: Path) -> None:
        files = ("base.parquet", "worse.parquet", "-g", "truths.parquet", "--draws", "200")
        assert run("score", *files[0::3], "--metric", "F1", "--out", "runs/base")[0] == 0
        for sides in (files, ("runs/base", "runs/base")):
            status, _, err = run("compare", *sides, "--fail-under", "F1 >= 95")
            assert (status, "write 0.95" in err) == (2, True)

    def test_gates_compare_two_runs(self, run: Run, runs: Path) -> None:
        files = ("base.parquet", "same.parquet", "worse.parquet", "-g", "truths.parquet")
        status, _, err = run("compare", *files, "--fail-if", "F1 < baseline")
        assert (status, "two runs" in err) == (2, True)


def test_jobs(run: Run, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("job.toml").write_text(
        'name = "one"\nmetrics = ["Accuracy"]\nfail_if = ["Accuracy < 0.95 surely"]\n'
        '[inputs]\npredictions = "base.parquet"\nground_truths = "truths.parquet"\n'
    )
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    status, out, _ = run("run", "job.toml", "--format", "github", "--junit", "j.xml")
    assert status == 1
    assert "Accuracy < 0.95 surely failed::value 0.9" in out.splitlines()[0]
    assert "| Accuracy | 0.9000" in Path("summary.md").read_text()
    assert ET.parse("j.xml").getroot()[0].get("failures") == "1"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    status, out, _ = run("run", "job.toml")
    assert out.startswith("one: finished before")
    assert "::error title=fail" in out
    assert "Accuracy < 0.95 surely failed::" in out


class TestAction:
    @pytest.fixture
    def step(self, runs: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
        """Run the action's script with given inputs and fake GitHub variables."""
        monkeypatch.setenv("GITHUB_ACTIONS", "true")
        for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
            monkeypatch.setenv(name, str(runs / name.lower()))
        monkeypatch.setenv("RUNNER_TEMP", str(runs / "temp"))

        def call(**inputs: str) -> int:
            fake = {f"INPUT_{name}": value for name, value in inputs.items()}
            done = subprocess.run(
                [sys.executable, str(ACTION / "run.py")],
                env={**os.environ, **fake},
                capture_output=True,
                text=True,
                check=False,
                timeout=120,
            )
            self.said = done.stdout + done.stderr
            return done.returncode

        return call

    def outputs(self, runs: Path) -> dict[str, str]:
        lines = (runs / "github_output").read_text().splitlines()
        (runs / "github_output").unlink()
        return dict(line.split("=", 1) for line in lines)

    @pytest.mark.slow
    def test_a_pull_request(self, step: Callable[..., int], runs: Path) -> None:
        inputs = {
            "GROUND_TRUTHS": "truths.parquet",
            "BASELINE": "base.parquet",
            "OPTIONS": "--metric Accuracy,F1 --by 'kind' --draws 200",
            "FAIL_UNDER": "Accuracy >= baseline - 0.05 surely\n\nF1[kind=*] > 0.5\n",
            "FAIL_IF": "Accuracy < baseline surely",
        }
        assert step(PREDICTIONS="worse.parquet", **inputs) == 1, self.said
        outputs = self.outputs(runs)
        assert outputs == {"status": "failed", "report": str(runs / "temp" / "evalengine")}
        suite = ET.parse(Path(outputs["report"]) / "junit.xml").getroot()[0]
        assert (suite.get("tests"), suite.get("failures")) == ("4", "2")
        assert "Accuracy < baseline surely" in self.said
        assert "gates: 2 of 4 failed" in (runs / "github_step_summary").read_text()
        # The result is the baseline of the next pull request.
        saved = (Path(outputs["report"]) / "result").rename(runs / "kept")
        inputs["BASELINE"] = str(saved)
        assert step(PREDICTIONS="better.parquet", **inputs) == 0, self.said
        assert self.outputs(runs)["status"] == "passed"

    def test_failures(self, step: Callable[..., int], runs: Path) -> None:
        assert step(PREDICTIONS="$(touch evil); gone.parquet", FAIL_UNDER="F1 > 0") == 2
        assert self.outputs(runs)["status"] == "error"
        assert "::error title=evalengine::" in self.said
        assert not (runs / "evil").exists()

    def test_inputs_match_the_script(self) -> None:
        text = (ACTION / "action.yml").read_text()
        declared = set(re.findall(r"^  ([a-z-]+):$", text.split("outputs:")[0], re.MULTILINE))
        passed = dict(re.findall(r"(INPUT_\w+): \$\{\{ inputs\.([a-z-]+) \}\}", text))
        assert set(passed.values()) == declared
        read = set(re.findall(r'(?:given|lines)\("(\w+)"', (ACTION / "run.py").read_text()))
        assert {f"INPUT_{name}" for name in read} == set(passed)
        assert "://" not in text + (ACTION / "run.py").read_text()

    def test_the_documented_workflow_has_valid_inputs(self) -> None:
        declared = set(re.findall(r"^  ([a-z-]+):$", (ACTION / "action.yml").read_text(), re.M))
        workflow = ACTION.parent.parent / "docs" / "jobs" / "github_pull_request.yml"
        step = workflow.read_text().split("actions/evalengine\n")[1].split("      - uses")[0]
        used = re.findall(r"^          ([a-z-]+):", step, re.M)
        assert {"predictions", "fail-under", "fail-if"} <= set(used) <= declared
        for gates in re.findall(r"fail-\w+: \|\n((?: {12}.*\n)+)", step):
            assert parse_gates([line.strip() for line in gates.splitlines()])

    def test_installed_packages(self, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        spec = importlib.util.spec_from_file_location("action_run", ACTION / "run.py")
        assert spec is not None
        assert spec.loader is not None
        script: ModuleType = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(script)
        called: list[list[str]] = []
        monkeypatch.setattr(script.subprocess, "call", lambda words: called.append(words) or 0)
        (runs / "own.whl").touch()
        for version in ("", "1.2.3", "own.whl"):
            monkeypatch.setenv("INPUT_VERSION", version)
            assert script.install() == 0
        assert [words[-1] for words in called] == ["evalengine==1.2.3", "own.whl"]
