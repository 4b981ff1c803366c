"""Every example in README.md and docs/ is run, and prints what the page says.

``console`` blocks: each line after ``$ `` is a command, what follows is all it prints. ``python``
blocks: doctest sessions, one namespace a page. ``bash`` blocks set up from nothing; CI runs those.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from judge.server import serving

from evalengine.cli import main
from evalengine.jobs.loading import load_job

ROOT = Path(__file__).parent.parent
FOLDERS = ("", "coming-from", "how-to", "start")
PAGES = [
    ROOT / "README.md",
    *(page for folder in FOLDERS for page in sorted((ROOT / "docs" / folder).glob("*.md"))),
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)
HEAD = re.compile(r"(.*) \| head -(\d+)")
INTO = re.compile(r"(.*?) (2?)> ([\w.]+)( 2>&1)?")
QUOTED = re.compile(r"'[^']*'")


def blocks(page: Path, language: str) -> list[str]:
    return [body for found, body in BLOCK.findall(page.read_text("utf-8")) if found == language]


def sessions(body: str) -> list[tuple[str, str]]:
    """Commands and what they print."""
    found: list[tuple[str, list[str]]] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and found[-1][0].endswith("\\") and not found[-1][1]:
            found[-1] = (found[-1][0][:-1] + line.strip(), [])
        else:
            found[-1][1].append(line)
    return [(command, "\n".join(output).strip("\n")) for command, output in found]


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A folder with the examples in it, so that what a page writes does not land in the tree."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    server = Path("tests", "judge", "server.py")
    (tmp_path / server.parent).mkdir(parents=True)
    shutil.copy(ROOT / server, tmp_path / server)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    with serving() as running:  # the judge of docs/judged.md
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield tmp_path


@pytest.fixture
def answer(capsys):
    """What a command prints, on its output and then on its errors.

    A process of its own where a shell is needed or asked for, as for what a new user types first;
    the command line's own function otherwise, which spares a start a command.
    """

    def by_shell(command: str) -> str:
        done = subprocess.run(
            command, shell=True, capture_output=True, text=True, check=False, timeout=120
        )
        return done.stdout + done.stderr

    def call(command: str, shell: bool) -> str:
        own, first, into = command, None, INTO.fullmatch(command)
        if found := HEAD.fullmatch(command):
            own, first = found[1], int(found[2])
        elif into:
            own = into[1]
        plain = QUOTED.sub("", own)
        if shell or not own.startswith("evalengine ") or set(plain) & set("|<>&;$`*"):
            return by_shell(command)
        main(shlex.split(own)[1:])
        out, err = capsys.readouterr()
        if into:
            file, rest = (err, out) if into[2] else (out, err)
            Path(into[3]).write_text(file + (rest if into[4] else ""), "utf-8")
            return "" if into[4] else rest
        return "".join(out.splitlines(keepends=True)[:first]) + err

    return call


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=[pytest.mark.slow] * (page.name == "jobs.md"))
        for page in PAGES
        if blocks(page, "console")
    ],
)
def test_console_sessions(page, workplace, answer):
    for place, body in enumerate(blocks(page, "console")):
        for command, expected in sessions(body):
            told = answer(command, shell=page.name == "README.md" and place == 0)
            printed = "\n".join(line.rstrip() for line in told.splitlines())
            assert printed.strip("\n") == expected, f"{page.name}: $ {command}"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name
)
def test_python_sessions(page, workplace):
    text = "\n".join(blocks(page, "python"))
    assert ">>>" in text, f"{page.name} has python blocks that are not doctest sessions"
    session = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    report: list[str] = []
    failed = doctest.DocTestRunner(optionflags=flags).run(session, out=report.append).failed
    assert failed == 0, "".join(report)


def test_the_job_to_copy_can_be_loaded(tmp_path):
    [body] = blocks(ROOT / "docs" / "start" / "nightly.md", "toml")
    (tmp_path / "nightly.toml").write_text(body)
    assert load_job(tmp_path / "nightly.toml").job.name == "nightly"


def test_the_two_setup_commands_are_single_lines():
    found = [
        body for body in blocks(ROOT / "README.md", "bash") if body.startswith("python3 -m venv")
    ]
    assert len(found) == 2
    for body in found:
        assert len(re.sub(r"\\\n\s*", "", body).strip().splitlines()) == 1


def test_pages_name_existing_modules():
    path = re.compile(r"(?<![\w/.])(?:engine|kernels|schemas)/[\w/]+\.py\b")
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "CONTRIBUTING.md"]
    named = {(page.name, name) for page in pages for name in path.findall(page.read_text("utf-8"))}
    assert len(named) > 100
    assert not [one for one in sorted(named) if not (ROOT / one[1]).is_file()]
