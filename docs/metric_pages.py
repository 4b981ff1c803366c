"""A page a task of its metrics: definition, formula, source, options, and an example that is run.

MkDocs calls the functions whose names begin with `on_`. Examples are what `evalengine score` prints
of the bundled tables, run here; `pages(examples=False)` leaves them out.
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
"""Columns by which a row of one dialect is that of another."""
CUTS = {"k": "k", "iou_threshold": "IoU"}
"""Those of them that are numbers, and what they are called."""


def pages(*, examples: bool = True) -> dict[str, tuple[str, str]]:
    """Address in the site -> title in its navigation, and Markdown."""
    return {
        f"{FOLDER}/metrics-{task}.md": (task.capitalize(), page(task, examples=examples))
        for task in NAMES
    }


@functools.cache
def made() -> dict[str, tuple[str, str]]:
    """The pages, made once a build."""
    return pages()


def on_config(config: Any) -> Any:
    """Put the pages at the end of the navigation's reference."""
    listed = [{title: address} for address, (title, _) in made().items()]
    [reference] = [part["Reference"] for part in config["nav"] if "Reference" in part]
    reference.append({"Metrics": listed})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages to those that are written."""
    from mkdocs.structure.files import File

    for address, (_, text) in made().items():
        files.append(File.generated(config, address, content=text))
    return files


def page(task: str, *, examples: bool) -> str:
    """Every metric of a task, by family."""
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
    """Definition, formula, and what else is known of a metric."""
    yield plain(metric.definition)
    if metric.formula:
        yield formula(metric)
    else:
        yield f"It lists rows, of which a formula says nothing: the frame `{metric.frame}`."
    better = metric.better
    low, high = metric.range
    direction = f"{better} is better" if better in ("higher", "lower") else "no direction"
    said = {
        "range": f"{low:g} to {high:g}, {direction}",
        "averages": code(metric.averages),
        "frame": "" if metric.frame == "metrics" else f"`{metric.frame}`",
        "options": code(metric.params),
        "also written": code(metric.aliases),
        "source": plain(metric.source),
    }
    yield "\n".join(f"- {name}: {value}" for name, value in said.items() if value)


def formula(metric: Metric) -> str:
    """A formula and what its symbols stand for, as HTML that is no Markdown."""
    named = registry.symbols(metric)
    rows = "".join(
        f"<tr><td>{mathml(tex)}</td><td>{html.escape(meaning)}</td></tr>"
        for tex, meaning in named.items()
    )
    where = f'<table class="symbols">{rows}</table>' if rows else ""
    shown = mathml(metric.formula, display="block")
    return f'<div class="formula" data-search-exclude>{shown}{where}</div>'


def mathml(tex: str, display: str = "inline") -> str:
    """A formula as MathML, with its TeX as the alternative text."""
    shown: str = convert(tex, display=display)
    return shown.replace("<math", f'<math alttext="{html.escape(tex)}"', 1)


class Example(NamedTuple):
    """What a command prints.

    Attributes:
        words: of the command, behind ``evalengine score``.
        printed: what it printed, without notes.
        piped: what stands behind it.
    """

    words: tuple[str, ...]
    printed: str
    piped: str = ""


class Examples:
    """Examples of a task's metrics, and what they are in other dialects."""

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
        """Note where a dialect's numbers of the same tables are others."""
        usual = numbers(words, names)
        for dialect in dialects.names(self.task)[1:]:
            theirs = numbers((*words, "--dialect", dialect), names)
            for name in names:
                told = difference(usual.get(name), theirs.get(name))
                if told:
                    self.elsewhere[name][dialect] = told

    def of(self, metric: Metric) -> Iterator[str]:
        """What the page shows of a metric."""
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
    """Tables of a task, as arguments of `score`, those first that `evalengine demo` has."""
    demos = tomllib.loads((TABLES / "demos.toml").read_text("utf-8"))
    more = tomllib.loads((TABLES / "metrics" / "examples.toml").read_text("utf-8"))
    lines = ([demos[task]] if task in demos else []) + more.get(task, [])
    return tuple(without_slices(shlex.split(line)) for line in lines)


def without_slices(words: list[str]) -> tuple[str, ...]:
    """A command that scores all datums alone."""
    if "--by" in words:
        at = words.index("--by")
        words = words[:at] + words[at + 2 :]
    return tuple(words)


def example(metric: Metric, lines: Iterable[tuple[str, ...]]) -> Example | None:
    """The first of some tables of which a metric has a number; else one that says why not."""
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
    """The example, if it has a number or rows; the site is not built otherwise."""
    if found is not None:
        rows = found.printed.count("\n") > 1 or f"also made: {metric.frame}" in found.printed
        number = NUMBER.search(found.printed) or metric.frame == "confusion"
        if rows if metric.frame != "metrics" else number:
            return found
    raise ValueError(f"{metric.task}: no example of {metric.name} has a number")


def asked_for(metric: Metric) -> tuple[str, str]:
    """The option that asks for a metric; values have statistics of the table's metrics."""
    if registry.is_open(metric.task):
        return "--statistic", {"Quantile": "p95"}.get(metric.name, metric.name.lower())
    return "--metric", metric.name


def run(words: Iterable[str]) -> str:
    """What `evalengine score` prints, in the folder of the tables."""
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
    """The first lines of what is long."""
    lines = printed.split("\n")
    left = len(lines) - MOST_LINES
    return printed if left < 2 else "\n".join([*lines[:MOST_LINES], f"... ({left} more lines)"])


def numbers(words: tuple[str, ...], names: list[str]) -> dict[str, pl.DataFrame]:
    """Metric -> its rows of the frame `metrics`; those that can be computed.

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
    """The first number that is another in a dialect, as the page says it; empty without one.

    Of sizes and caps those that leave nothing out are compared.
    """
    if ours is None or theirs is None:
        return ""
    # Parameters may tell the rows of one dialect apart, and the dialects from each other.
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
    """A number as tables show it."""
    return "none" if value is None else f"{value:.4f}"


def code(names: Iterable[str]) -> str:
    """Names with commas between them, as code."""
    return ", ".join(f"`{name}`" for name in names)


def plain(text: str) -> str:
    """Text in which nothing is markup."""
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", html.escape(text, quote=False))
