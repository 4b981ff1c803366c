"""Help of commands with all options: short, for one task, for all."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator

import click
import pytest
from new_process import python

from evalengine import dialects
from evalengine.cli import cli
from evalengine.cli.options import generated
from evalengine.schemas.contract import NAMES
from evalengine.schemas.options import DECLARED, FIELDS, TOPICS, Options, checked, help_texts

Run = Callable[..., tuple[int, str, str]]


def flags(text: str) -> set[str]:
    """Return the options that have a line in a help text."""
    lines = [line for line in text.splitlines() if re.match(r"  (-\w, )?--", line)]
    return {flag for line in lines for flag in re.findall(r"--([a-z-]+)", line.split("  ")[1])}


def flag(name: str) -> str:
    return name.replace("_", "-")


def read_by(task: str) -> set[str]:
    """Return the options that a task reads."""
    return {name for name in FIELDS if task in (DECLARED[name].tasks or NAMES)}


def test_every_option_has_a_topic_a_text_and_known_tasks() -> None:
    assert {one.topic for one in DECLARED.values()} == set(TOPICS)
    assert {task for one in DECLARED.values() for task in one.tasks} <= set(NAMES)
    assert [option.name for option in generated()] == list(FIELDS)
    assert all(option.help for option in generated())


def test_help_texts_do_not_depend_on_the_indentation_of_docstrings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python 3.13 removes indentation when it compiles a module."""
    texts = help_texts()
    monkeypatch.setattr(Options, "__doc__", inspect.getdoc(Options))
    assert set(FIELDS) <= set(texts)
    assert help_texts() == texts


@pytest.mark.parametrize("task", NAMES)
def test_defaults_are_accepted(task: str) -> None:
    for dialect in dialects.names(task):
        for name in read_by(task):
            value = dialects.get(task, dialect).default(name)
            value = DECLARED[name].default if value is None else value
            if value is not None and (task, name) != ("judged", "smoothing"):
                assert checked(name, value, task) == value


@pytest.mark.parametrize("task", NAMES)
def test_defaults_of_dialects_are_of_options_that_the_task_reads(task: str) -> None:
    for name in dialects.names(task):
        assert set(dialects.get(task, name).defaults) <= read_by(task)


@pytest.mark.parametrize("command", ["score", "check", "explain", "compare", "slices"])
def test_short_help_has_the_options_of_all_tasks(run: Run, command: str) -> None:
    status, out, _ = run(command, "--help")
    assert status == 0
    assert flags(out) & {flag(name) for name in FIELDS} == {
        flag(name) for name in FIELDS if not DECLARED[name].tasks
    }
    assert len(out.splitlines()) <= 95
    assert f"{command} --help TASK" in out
    assert "jackknife, wilson, logit, log or delong)" in " ".join(out.split())
    assert all(task in out for task in NAMES)
    assert f"evalengine {command} " in out.partition("Example:")[2]


@pytest.mark.parametrize("task", NAMES)
def test_help_of_a_task_has_its_options(run: Run, task: str) -> None:
    status, out, _ = run("score", "--help", task)
    assert status == 0
    assert flags(out) & {flag(name) for name in FIELDS} == {flag(name) for name in read_by(task)}
    for name in dialects.names(task):
        assert re.search(rf"^  {re.escape(name)}  ", out, re.M)
    assert out == run("score", "-h", task)[1]
    assert out == run("score", "nowhere.parquet", "--task", task, "--help")[1]


def test_help_of_all(run: Run) -> None:
    out = run("score", "--help", "all")[1]
    assert {flag(name) for name in FIELDS} <= flags(out)
    assert {"out", "format", "fail-under", "datums", "help"} <= flags(out)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("detection", r"coco .* --max-detections 1, 10, 100; --area-range all=0:1e\+10, small=0:1"),
        ("detection", r"standard .* --iou 0.5 to 0.95 by 0.05; --iou-to-return 0.5, 0.75;"),
        ("classification", r"sklearn .* --zero-division 0 "),
        (
            "retrieval",
            r"standard .* --no-complete; .* ir-measures .* --complete; --persistence 0.8",
        ),
        ("text", r"sacrebleu .* --metric CorpusBLEU; --smoothing exp; --tokenizer 13a"),
    ],
)
def test_defaults_by_dialect(run: Run, task: str, message: str) -> None:
    out = run("score", "--help", task)[1].partition("\nDialects")[2]
    assert re.search(message, " ".join(out.replace("-\n", "-").split()))


def test_a_mistyped_task_suggests_the_nearest(run: Run) -> None:
    status, out, err = run("score", "--help", "detction")
    assert (status, out) == (2, "")
    assert "you mean 'detection'?" in err


def test_help_of_a_task_imports_no_dataframes() -> None:
    code = "from evalengine.cli import main; assert main(['score', '--help', 'detection']) == 0"
    tail = "\nimport sys; print(sorted({'polars', 'numpy', 'numba'} & set(sys.modules)))"
    assert python(code + tail, strict=False).stdout.splitlines()[-1] == "[]"


def test_names_of_help_do_not_depend_on_the_first_context() -> None:
    first = (
        "from evalengine.cli import cli, main; cli.commands['score'].make_context('', ['x', 'y'])"
    )
    python(f"{first}; assert main(['score', '-h', 'text']) == 0", strict=False)


def commands(group: click.Group, *names: str) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        yield (*names, name)
        if isinstance(command, click.Group):
            yield from commands(command, *names, name)


@pytest.mark.parametrize("words", [(), *commands(cli)], ids=" ".join)
def test_examples_are_not_rewrapped(run: Run, words: tuple[str, ...]) -> None:
    _, out, _ = run(*words, "--help")
    lines = out.splitlines()
    assert not any("Example: " in line for line in lines)
    if "  Example:" not in lines:
        return
    example = lines[lines.index("  Example:") + 1 :]
    example = example[: example.index("")]
    for before, line in zip(["", *example], example, strict=False):
        goes_on = before.endswith("\\")
        assert re.match(r" {6}\S" if goes_on else r" {4}(RUN )?evalengine ", line), line
        assert line.count("evalengine ") == 1 or goes_on or "verify" in line
