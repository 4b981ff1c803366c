"""The example schedules in docs/jobs: their commands, options and dates are ones that exist."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import evalengine as ee
from evalengine.cli import cli

FOLDER = Path(__file__).parents[2] / "docs" / "jobs"
COMMAND = re.compile(r"evalengine (run .*)")


def commands(name: str) -> list[str]:
    return [found[1] for found in COMMAND.finditer((FOLDER / name).read_text("utf-8"))]


def test_the_page_links_every_file() -> None:
    page = (FOLDER.parent / "jobs.md").read_text("utf-8")
    assert {path.name for path in FOLDER.iterdir()} == set(re.findall(r"\(jobs/([^)]+)\)", page))


@pytest.mark.parametrize("name", ["crontab", "evalengine-nightly.service", "github_actions.yml"])
def test_commands_are_ones_that_exist(name: str) -> None:
    found = commands(name)
    assert found
    for command in found:
        args = shlex.split(re.sub(r"\$\{.*\}|\$\(.*\)", "x", command))[1:]
        context = cli.commands["run"].make_context("run", args)
        assert context.params["job"].endswith("nightly.toml")


def test_the_crontab_has_five_fields_and_a_command() -> None:
    [line] = [line for line in (FOLDER / "crontab").read_text().splitlines() if line[:1].isdigit()]
    fields = line.split(maxsplit=5)
    limits = ((0, 59), (0, 23))
    assert all(low <= int(field) <= high
               for field, (low, high) in zip(fields, limits, strict=False))  # fmt: skip
    assert fields[2:5] == ["*"] * 3
    assert "%" not in fields[5]  # cron would end the line there


@pytest.mark.parametrize("name", ["airflow_dag.py", "dagster_job.py"])
def test_programs_call_what_exists(name: str) -> None:
    tree = ast.parse((FOLDER / name).read_text("utf-8"))
    called = {
        node.func.attr: {keyword.arg for keyword in node.keywords}
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "ee"
    }
    for function, keywords in called.items():
        annotated = set(getattr(ee, function).__annotations__)
        assert keywords <= annotated, keywords - annotated
    lists = [
        [item.value for item in node.elts if isinstance(item, ast.Constant)]
        for node in ast.walk(tree)
        if isinstance(node, ast.List)
    ]
    options = {option for one in cli.commands["run"].params for option in one.opts}
    for words in lists:
        if words[:2] == ["evalengine", "run"]:
            assert {word for word in words if word.startswith("--")} <= options
            called["run"] = set()
    assert called


def loaded(name: str, job: Path, **modules: ModuleType) -> dict[str, Any]:
    """The program run with stand-ins for the packages that it is for."""
    text = (FOLDER / name).read_text("utf-8").replace("/srv/evaluation/nightly.toml", str(job))
    space: dict[str, Any] = {"__name__": name}
    with pytest.MonkeyPatch.context() as patch:
        for module, stand_in in modules.items():
            patch.setitem(sys.modules, module.replace("__", "."), stand_in)
        exec(compile(text, name, "exec", dont_inherit=True), space)
    return space


def module(**members: Any) -> ModuleType:
    made = ModuleType("stand-in")
    made.__dict__.update(members)
    return made


class TestAirflow:
    """What Airflow 3 makes of the file; its own packages are too large for tests."""

    @pytest.fixture
    def evaluate(self, folder: Path) -> Callable[..., None]:
        tasks: list[Callable[..., None]] = []

        class Fail(Exception):
            pass

        class Retry(Exception):
            pass

        def task(function: Callable[..., None]) -> Callable[[], None]:
            # Airflow's own rule: what it fills in has no default but None.
            assert inspect.signature(function).parameters["ds"].default is None
            return lambda: tasks.append(function)

        def dag(**options: Any) -> Any:
            assert options["schedule"] == "15 2 * * *"
            return lambda function: function

        loaded(
            "airflow_dag.py",
            folder / "job.toml",
            airflow=module(),
            airflow__exceptions=module(AirflowException=Retry, AirflowFailException=Fail),
            airflow__sdk=module(dag=dag, task=task),
        )
        [found] = tasks
        return found

    def test_it_runs_the_night_before(
        self, evaluate: Callable[..., None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        statuses = iter((0, 1, 2, 3))
        commands: list[list[str]] = []

        def ran(command: list[str], *, check: bool) -> subprocess.CompletedProcess[str]:
            commands.append(command)
            return subprocess.CompletedProcess(command, next(statuses))

        monkeypatch.setattr(subprocess, "run", ran)
        evaluate(ds="2026-11-20")
        context = cli.commands["run"].make_context("run", commands[0][2:])
        assert context.params["changes"] == ("date=2026-11-19",)
        for kind in ("Fail", "Fail", "Retry"):
            with pytest.raises(Exception, match="ended with") as caught:
                evaluate(ds="2026-11-20")
            assert type(caught.value).__name__ == kind

    def test_a_run_without_a_date_fails(self, evaluate: Callable[..., None]) -> None:
        with pytest.raises(Exception, match="logical date"):
            evaluate()


def test_the_dagster_asset_runs_its_night(folder: Path) -> None:
    def asset(**options: Any) -> Any:
        return lambda function: function

    def keep(**named: Any) -> SimpleNamespace:
        return SimpleNamespace(**named)

    def any_of(*args: Any, **named: Any) -> None:
        return None

    names = ("DailyPartitionsDefinition", "AssetCheckSpec", "RetryPolicy", "define_asset_job",
             "build_schedule_from_partitioned_job", "Definitions")  # fmt: skip
    stand_in = module(
        asset=asset,
        MaterializeResult=keep,
        AssetCheckResult=keep,
        AssetExecutionContext=SimpleNamespace,
        **dict.fromkeys(names, any_of),
    )
    space = loaded("dagster_job.py", folder / "job.toml", dagster=stand_in)
    # Dagster looks at the annotation itself, which is not to be a text.
    context = inspect.signature(space["evaluation"]).parameters["context"]
    assert context.annotation is SimpleNamespace
    done = space["evaluation"](SimpleNamespace(partition_key="2026-11-19"))
    assert done.metadata["folder"] == str(folder / "runs" / "2026-11-19")
    [check] = done.check_results
    assert (check.passed, check.metadata) == (True, {"failed": []})


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    analyse = shutil.which("systemd-analyze")
    if analyse is None:
        pytest.skip("systemd is not here")
    for path in FOLDER.glob("evalengine-nightly.*"):
        program = tmp_path / "evalengine"
        program.touch(mode=0o755)
        text = path.read_text().replace("/srv/evaluation/.venv/bin/evalengine", str(program))
        (tmp_path / path.name).write_text(text)
    done = subprocess.run(
        [analyse, "verify", "--man=no", *map(str, tmp_path.glob("*.*"))],
        capture_output=True,
        text=True,
        check=False,
    )
    ours = [line for line in done.stderr.splitlines() if "evalengine-nightly" in line]
    assert ours == []
