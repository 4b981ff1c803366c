"""One page per task of its metrics: definition, formula, source, options, and an executed example.

MkDocs calls the functions whose names begin with `on_`. Examples are the output of `evalengine
score` on the bundled tables; `pages(examples=False)` omits them.
"""

from __future__ import annotations

import contextlib
import functools
import html
import importlib
import io
import os
import re
import shlex
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from latex2mathml.converter import convert

import evalengine as ee
from evalengine import dialects
from evalengine.cli import cli
from evalengine.metrics import registry
from evalengine.metrics.registry import Metric
from evalengine.schemas.contract import NAMES

FOLDER = "reference"
TABLES = Path(__file__).parent.parent / "examples"
NOTES = re.compile(r"^(note|also made): .*(\n .*)*\n?", re.M)
NUMBER = re.compile(r"^  [^–\n]*(?<![\w@.])-?\d[\d,.]*( [^–\n]*)?$", re.M)
MOST_LINES, MOST_ROWS = 24, 8
[PRINTED] = [one.type.choices for one in cli.commands["score"].params if one.name == "frame"]
"""Frames that `--frame` prints."""
SAME = ("label_key", "label_value", "statistic", "average", "iou_threshold", "k", "parameters")
"""Columns that identify the same row in several dialects."""
CUTS = {"k": "k", "iou_threshold": "IoU"}
"""The numeric ones among them, and their names on the page."""


def pages(*, examples: bool = True) -> dict[str, tuple[str, str]]:
    """Return address in the site -> title in its navigation, and Markdown."""
    return {
        f"{FOLDER}/metrics-{task}.md": (task.capitalize(), page(task, examples=examples))
        for task in NAMES
    }


@functools.cache
def made() -> dict[str, tuple[str, str]]:
    """Return the pages, made once per build."""
    return pages()


def on_config(config: Any) -> Any:
    """Add the pages to the end of the navigation's reference."""
    listed = [{title: address} for address, (title, _) in made().items()]
    [reference] = [part["Reference"] for part in config["nav"] if "Reference" in part]
    reference.append({"Metrics": listed})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages to the written ones."""
    from mkdocs.structure.files import File

    for address, (_, text) in made().items():
        files.append(File.generated(config, address, content=text))
    return files


def page(task: str, *, examples: bool) -> str:
    """Format every metric of a task, by family."""
    about = {name: dialects.get(task, name).about for name in dialects.names(task)}
    shown = Examples(task) if examples else None
    lines = [
        f"# Metrics of {task}",
        'Asked for with `--metric NAME` in a shell, `metrics=["NAME"]` in Python. The'
        " examples are run in the folder `examples` of the repository; notes are left out. Where a"
        " dialect has another number for the same tables, it stands below; [dialects](#dialects)"
        " says whose each is.",
    ]
    home = importlib.import_module(f"evalengine.tasks.{task}.metrics")
    modules = getattr(home, "MODULES", ())  # one file if the task has few metrics
    families = [importlib.import_module(f"{home.__name__}.{name}") for name in modules] or [home]
    for family in families:
        title = (family.__doc__ or task).partition("\n")[0].rstrip(".")
        lines.append(f"## {title}")
        for metric in family.METRICS:
            lines += [f"### {metric.name}", *described(metric)]
            lines += shown.of(metric) if shown else ()
    lines += ["## Dialects", "| dialect | whose numbers |\n| --- | --- |"]
    lines[-1] += "".join(f"\n| `{name}` | {plain(text)} |" for name, text in about.items())
    lines.append(f"`evalengine score --help {task}` has the defaults that each sets otherwise.")
    return "\n\n".join(lines) + "\n"


def described(metric: Metric) -> Iterator[str]:
    """Format definition, formula and properties of a metric."""
    yield plain(metric.definition)
    if metric.formula:
        yield formula(metric)
    else:
        yield f"It lists rows, of which a formula says nothing: the frame `{metric.frame}`."
    better = metric.better
    low, high = metric.range
    direction = f"{better} is better" if better in ("higher", "lower") else "no direction"
    properties = {
        "range": f"{low:g} to {high:g}, {direction}",
        "averages": code(metric.averages),
        "frame": "" if metric.frame == "metrics" else f"`{metric.frame}`",
        "options": code(metric.params),
        "also written": code(metric.aliases),
        "source": plain(metric.source),
    }
    yield "\n".join(f"- {name}: {value}" for name, value in properties.items() if value)


def formula(metric: Metric) -> str:
    """Format a formula and its symbols as HTML that is not parsed as Markdown."""
    named = registry.symbols(metric)
    rows = "".join(
        f"<tr><td>{mathml(tex)}</td><td>{html.escape(meaning)}</td></tr>"
        for tex, meaning in named.items()
    )
    where = f'<table class="symbols">{rows}</table>' if rows else ""
    shown = mathml(metric.formula, display="block")
    return f'<div class="formula" data-search-exclude>{shown}{where}</div>'


def mathml(tex: str, display: str = "inline") -> str:
    """Return a formula as MathML, with its TeX as the alternative text."""
    shown: str = convert(tex, display=display)
    return shown.replace("<math", f'<math alttext="{html.escape(tex)}"', 1)


class Example(NamedTuple):
    """A command and its output.

    Attributes:
        words: words of the command, after ``evalengine score``.
        printed: output without notes.
        piped: suffix of the command line.
    """

    words: tuple[str, ...]
    printed: str
    piped: str = ""


class Examples:
    """Examples of a task's metrics, and their values in other dialects."""

    def __init__(self, task: str) -> None:
        self.task = task
        self.found = {
            metric.name: complete(metric, example(metric, lines_of(task)))
            for metric in registry.all_metrics(task).values()
        }
        by_tables: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for name, one in self.found.items():
            if "--metric" in one.words:
                by_tables[one.words[: one.words.index("--metric")]].append(name)
        self.elsewhere: dict[str, dict[str, str]] = defaultdict(dict)
        for words, names in by_tables.items():
            if "--dialect" not in words:
                self.compare(words, names)

    def compare(self, words: tuple[str, ...], names: list[str]) -> None:
        """Record differences of a dialect's values on the same tables."""
        usual = numbers(words, names)
        for dialect in dialects.names(self.task)[1:]:
            theirs = numbers((*words, "--dialect", dialect), names)
            for name in names:
                told = difference(usual.get(name), theirs.get(name))
                if told:
                    self.elsewhere[name][dialect] = told

    def of(self, metric: Metric) -> Iterator[str]:
        """Return the example of a metric."""
        words, printed, piped = self.found[metric.name]
        command = f"{shlex.join(('evalengine', 'score', *words))} {piped}".rstrip()
        yield f"```console\n$ {command}\n{printed}\n```"
        alike: dict[str, list[str]] = defaultdict(list)
        for dialect, told in self.elsewhere[metric.name].items():
            alike[told].append(dialect)
        if alike:
            rows = [f"- {code(names)}: {told}" for told, names in alike.items()]
            yield "In other dialects:\n\n" + "\n".join(rows)


@functools.cache
def lines_of(task: str) -> tuple[tuple[str, ...], ...]:
    """Return tables of a task, as arguments of `score`; those of `evalengine demo` are first."""
    demos = tomllib.loads((TABLES / "demos.toml").read_text("utf-8"))
    more = tomllib.loads((TABLES / "metrics" / "examples.toml").read_text("utf-8"))
    lines = ([demos[task]] if task in demos else []) + more.get(task, [])
    return tuple(without_slices(shlex.split(line)) for line in lines)


def without_slices(words: list[str]) -> tuple[str, ...]:
    """Return the command without slices."""
    if "--by" in words:
        at = words.index("--by")
        words = words[:at] + words[at + 2 :]
    return tuple(words)


def example(metric: Metric, lines: Iterable[tuple[str, ...]]) -> Example | None:
    """Return an example from the first tables with a value; otherwise, one with the reason."""
    best = None
    for line in lines:
        words = (*line, *asked_for(metric))
        rows = metric.frame in PRINTED and metric.frame not in ("metrics", "confusion")
        if rows:
            words = (*words, "--frame", metric.frame)
        with contextlib.suppress(ee.OptionError, ee.InputError):
            printed = run(words)
            if rows:
                return Example(
                    words, "\n".join(printed.split("\n")[:MOST_ROWS]), f"| head -{MOST_ROWS}"
                )
            told = printed if metric.frame not in PRINTED else NOTES.sub("", printed)
            found = Example(words, cut(told.strip("\n")))
            if NUMBER.search(printed):
                return found
            best = best or found
    return best


def complete(metric: Metric, found: Example | None) -> Example:
    """Return the example if it has a value or rows; otherwise the build fails."""
    if found is not None:
        rows = found.printed.count("\n") > 1 or f"also made: {metric.frame}" in found.printed
        number = NUMBER.search(found.printed) or metric.frame == "confusion"
        if rows if metric.frame != "metrics" else number:
            return found
    raise ValueError(f"{metric.task}: no example of {metric.name} has a number")


def asked_for(metric: Metric) -> tuple[str, str]:
    """Return the option that selects a metric; values have statistics of the table's metrics."""
    if registry.is_open(metric.task):
        return "--statistic", {"Quantile": "p95"}.get(metric.name, metric.name.lower())
    return "--metric", metric.name


def run(words: Iterable[str]) -> str:
    """Return the output of `evalengine score` in the folder of the tables."""
    printed, before = io.StringIO(), Path.cwd()
    os.chdir(TABLES)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            cli.commands["score"].main(
                list(words), prog_name="evalengine score", standalone_mode=False
            )
    finally:
        os.chdir(before)
    return printed.getvalue()


def cut(printed: str) -> str:
    """Return the first lines of a long text."""
    lines = printed.split("\n")
    left = len(lines) - MOST_LINES
    return printed if left < 2 else "\n".join([*lines[:MOST_LINES], f"... ({left} more lines)"])


def numbers(words: tuple[str, ...], names: list[str]) -> dict[str, pl.DataFrame]:
    """Return metric -> its rows of the frame `metrics`, for those that can be computed.

    A dialect that refuses the tables does so for the first and the last metric too.
    """
    asked = [word for name in names for word in ("--metric", name)]
    with tempfile.TemporaryDirectory() as folder:
        try:
            run((*words, *asked, "--out", folder))
        except (ee.OptionError, ee.InputError) as error:
            if len(names) == 1:
                return {}
            first, *others, last = names
            found = numbers(words, [first]) | numbers(words, [last])
            if not found and error.code != "metric_unfit":
                return {}
            return found | {
                name: one for each in others for name, one in numbers(words, [each]).items()
            }
        rows = ee.load(folder).metrics
    return {str(key[0]): own for key, own in rows.group_by("metric", maintain_order=True)}


def difference(ours: pl.DataFrame | None, theirs: pl.DataFrame | None) -> str:
    """Describe the first value that differs in a dialect; empty if none does.

    Among area ranges and caps, those that exclude nothing are compared.
    """
    if ours is None or theirs is None:
        return ""
    # Parameters may distinguish rows within a dialect, and dialects from each other.
    keys = SAME if set(ours["parameters"]) & set(theirs["parameters"]) else SAME[:-1]
    sides = [
        side.filter(pl.col("area").is_null() | (pl.col("area") == "all"))
        .sort("max_detections", descending=True, nulls_last=False, maintain_order=True)
        .unique(keys, keep="first", maintain_order=True)
        for side in (ours, theirs)
    ]
    both = sides[0].join(sides[1], on=keys, nulls_equal=True, suffix="_theirs")
    for row in both.iter_rows(named=True):
        mine, other = row["value"], row["value_theirs"]
        if mine != other and not (mine and other and abs(mine - other) < 1e-9 * abs(mine)):
            told = [str(row[name]) for name in ("label_value", "average", "statistic") if row[name]]
            told += [f"{name} {row[column]:g}" for column, name in CUTS.items() if row[column]]
            at = f" ({', '.join(told)})" if told else ""
            return f"{number(other)} instead of {number(mine)}{at}"
    return ""


def number(value: float | None) -> str:
    """Format a number as tables do."""
    return "none" if value is None else f"{value:.4f}"


def code(names: Iterable[str]) -> str:
    """Format names as code, separated by commas."""
    return ", ".join(f"`{name}`" for name in names)


def plain(text: str) -> str:
    """Escape all markup in a text."""
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", html.escape(text, quote=False))
