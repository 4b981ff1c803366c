"""Example schedules in docs/jobs, whose commands, options and times must be valid."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from evalengine.cli import cli

FOLDER = Path(__file__).parents[2] / "docs" / "jobs"
COMMAND = re.compile(r"evalengine (run .*)")


def commands(name: str) -> list[str]:
    return [match[1] for match in COMMAND.finditer((FOLDER / name).read_text("utf-8"))]


def test_the_page_links_every_file() -> None:
    page = (FOLDER.parent / "jobs.md").read_text("utf-8")
    assert {path.name for path in FOLDER.iterdir()} == set(re.findall(r"\(jobs/([^)]+)\)", page))


@pytest.mark.parametrize("name", ["crontab", "evalengine-nightly.service", "github_actions.yml"])
def test_commands_are_valid(name: str) -> None:
    examples = commands(name)
    assert examples
    for command in examples:
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
    assert "%" not in fields[5]  # cron ends the command there


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
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
