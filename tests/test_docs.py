"""Every example in README.md and docs/ is executed and prints the output on the page.

``console`` blocks: each line after ``$ `` is a command, followed by its complete output. ``python``
blocks: doctest sessions, one namespace per page. ``bash`` blocks are complete setups, which only CI
runs. ``toml`` and ``py`` blocks that begin with a file name are files for the sessions.
"""

from __future__ import annotations

import ast
import doctest
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import click
import pytest
from judge.server import serving

from evalengine.cli import cli, main
from evalengine.dialects import names as names_of_dialects
from evalengine.schemas.contract import NAMES

ROOT = Path(__file__).parent.parent
FOLDERS = ("", "coming-from", "how-to", "start")
PAGES = [
    ROOT / "README.md",
    *(page for folder in FOLDERS for page in sorted((ROOT / "docs" / folder).glob("*.md"))),
]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)
HEAD = re.compile(r"(.*) \| head -(\d+)")
INTO = re.compile(r"(.*?) (2?)> ([\w.]+)( 2>&1)?")
QUOTED = re.compile(r"'[^']*'")
NAMED = re.compile(r"# (\w+\.(?:toml|py))\n")
INLINE = re.compile(r"`(evalengine [^`]+)`")


def blocks(page: Path, language: str) -> list[str]:
    return [body for found, body in BLOCK.findall(page.read_text("utf-8")) if found == language]


def sessions(body: str) -> list[tuple[str, str]]:
    """Return commands and their expected output."""
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
    """Return a folder with a copy of the examples, so that pages do not write into the tree."""
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
    """Return the output of a command, then its errors.

    The command runs in a new process if ``shell`` is set, as for a new user's first command, or if
    it needs a shell; otherwise in this process, which is faster.
    """

    def by_shell(command: str) -> str:
        done = subprocess.run(
            command, shell=True, capture_output=True, text=True, check=False, timeout=120
        )
        return done.stdout + done.stderr

    def call(command: str, shell: bool) -> str:
        own, first, into = command, None, INTO.fullmatch(command)
        if match := HEAD.fullmatch(command):
            own, first = match[1], int(match[2])
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
    for body in blocks(page, "toml") + blocks(page, "py"):
        if name := NAMED.match(body):
            Path(name[1]).write_text(body, "utf-8")
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


def unexecuted(page: Path) -> list[str]:
    """Return commands of a page that no test runs: within sentences, and in other blocks.

    They need the reader's files, a cluster, a model or a network.
    """
    text = page.read_text("utf-8")
    shell = [body for name in ("bash", "sh", "text", "") for body in blocks(page, name)]
    lines = [line for body in shell for line in body.replace("\\\n", " ").splitlines()]
    lines += [" ".join(one.split()) for one in INLINE.findall(BLOCK.sub("", text))]
    return [line for line in lines if re.match(r"evalengine (?!\d)", line)]  # no citation lines


def test_commands_that_are_not_executed_have_known_options():
    known = {name for task in NAMES for name in names_of_dialects(task)}
    written = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for page, line in [(path.name, line) for path in written for line in unexecuted(path)]:
        typed = takewhile(lambda word: word not in ("|", ">", "&"), shlex.split(line)[1:])
        words, command = [word for word in typed if word != "..."], cli
        while isinstance(command, click.Group) and words and words[0][0] != "-":
            command = command.get_command(click.Context(command), words.pop(0))
            if command is None:
                pytest.fail(f"{page}: no such command: {line}")
        try:
            given, _, _ = command.make_parser(click.Context(command)).parse_args([*words, "X"])
        except click.UsageError as error:
            pytest.fail(f"{page}: {line}: {error.format_message()}")
        assert given.get("dialect") in {None, *known}, f"{page}: {line}"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "py")], ids=lambda page: page.name
)
def test_code_that_needs_other_packages_compiles(page):
    for body in blocks(page, "py"):
        for node in ast.walk(ast.parse(body)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("evalengine"):
                spec = importlib.util.find_spec(node.module)
                assert spec is not None
                assert all(name.name in Path(spec.origin).read_text("utf-8") for name in node.names)


def test_no_page_and_no_message_installs_from_an_index():
    places = ("docs", "engine", "schemas", "integrations", "examples")
    found = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in [
            ROOT / "README.md",
            *(path for one in places for path in (ROOT / one).rglob("*")),
        ]
        if path.suffix in (".md", ".py", ".yml", ".toml", ".ipynb", ".html")
        for line in path.read_text("utf-8").splitlines()
        if re.search(r"(?:pip install|uv add)(?: -\S+)* '?evalengine\b(?!\[)", line)
    ]
    assert found == []


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
