"""Help of commands that take every option: short, or of one task, with the defaults by dialect."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ..dialects import Dialect

ALL = "all"
"""What asks for the options of all tasks."""
_SHORT = ""
_ASKED = "evalengine.help"

_OWN = {
    "datums": "Names",
    "labels": "Names",
    "storage": "Where it runs",
    "executor": "Where it runs",
    "address": "Where it runs",
    **dict.fromkeys(("gates", "fail_if", "junit", "baseline", "warned"), "Gates"),
    **dict.fromkeys(("out", "overwrite", "form", "frame", "export", "sort", "wide"), "Output"),
    **dict.fromkeys(("top", "report", "images", "debug", "_help"), "Output"),
}
"""Options of the commands' own -> what they are about; the rest stand first."""
_CLAUSE = re.compile(r"[;:.] .*", re.S)


def help_option(names: Iterable[str]) -> click.Option:
    """``--help``, which may name a task."""
    return click.Option(
        [*names, "_help"],
        is_flag=False,
        flag_value=_SHORT,
        metavar="[TASK]",
        expose_value=False,
        is_eager=True,
        callback=_answer,
        shell_complete=_tasks,
        help=f"This page; with a TASK its options in full; {ALL} for all of them.",
    )


def _tasks(ctx: click.Context, param: click.Parameter, begun: str) -> list[str]:
    from ..schemas.task_names import NAMES

    return [name for name in (*NAMES, ALL) if name.startswith(begun)]


def _answer(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    from ..schemas.errors import unknown
    from ..schemas.task_names import NAMES

    if value is None or ctx.resilient_parsing:
        return
    asked = value or ctx.params.get("task") or _SHORT
    if asked not in (_SHORT, ALL, *NAMES):
        raise click.BadParameter(unknown("task", asked, (*NAMES, ALL)), ctx, param)
    ctx.meta[_ASKED] = asked
    click.echo(ctx.get_help(), color=ctx.color)
    ctx.exit()


def write_options(
    ctx: click.Context, formatter: click.HelpFormatter, params: list[click.Parameter]
) -> None:
    """The options in groups: those of all tasks in short, or those of the task asked for."""
    from ..schemas.option_groups import TASKS_OF
    from ..schemas.task_names import NAMES

    asked = ctx.meta.get(_ASKED, _SHORT)
    shown = () if asked == _SHORT else NAMES if asked == ALL else (asked,)
    options = {
        param.name: param
        for param in params
        if isinstance(param, click.Option)
        and (param.name not in TASKS_OF or set(shown) & set(TASKS_OF[param.name]))
    }
    for title, names in _sections(list(options), shown):
        rows = [row for name in names if (row := options[name].get_help_record(ctx))]
        if asked == _SHORT:
            rows = [(flags, _CLAUSE.sub("", said.rstrip("."))) for flags, said in rows]
        with formatter.section(title):
            formatter.write_dl(rows)
    if len(shown) == 1:
        _write_dialects(formatter, asked, options)
    if asked == _SHORT:
        with formatter.section("Options of one task"):
            formatter.write_text(
                f"{ctx.command_path} {ctx.help_option_names[-1]} TASK shows them, with the defaults"
                f" by dialect; TASK is one of {', '.join(NAMES)}, or {ALL}."
            )


def _sections(names: list[str], tasks: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Titles and the options below them; one of several tasks stands below the first's alone."""
    from ..schemas.option_groups import GROUPS

    title_of: dict[str, str] = {}
    for group in GROUPS:
        if not group.tasks or set(group.tasks) & set(tasks):
            for name in group.options:
                title_of.setdefault(name, group.title)
    title_of |= _OWN
    for title in dict.fromkeys(("Options", *title_of.values())):
        here = [name for name in title_of if name in names and title_of[name] == title]
        here += [name for name in names if title == "Options" and name not in title_of]
        if here:
            yield title, here


def _write_dialects(
    formatter: click.HelpFormatter, task: str, options: dict[str, click.Option]
) -> None:
    """The dialects of a task, whose numbers each gives, and the options that it sets otherwise."""
    from .. import dialects

    standard = dialects.get(task, "standard")
    usual = {name: _shown(standard, name) for name in options}
    rows = []
    for name in dialects.names(task):
        dialect = dialects.get(task, name)
        own = {option: _shown(dialect, option) for option in options}
        said = [
            _written(options[option], value)
            for option, value in own.items()
            if (value != _NONE if dialect is standard else value != usual[option])
        ]
        rows.append((name, f"{dialect.about.rstrip('.')}. {'; '.join(said)}".strip()))
    with formatter.section("Dialects, and the defaults that differ from standard's"):
        formatter.write_dl(rows)


def _written(option: click.Option, value: str) -> str:
    """The option with a value behind its shortest long name."""
    if option.is_flag:
        return option.opts[0] if value == str(True) else option.secondary_opts[0]
    return f"{min((one for one in option.opts if one.startswith('--')), key=len)} {value}"


_NONE = "none"


def _shown(dialect: Dialect, name: str) -> str:
    """A dialect's default of an option in words."""
    value = dialect.default(name)
    if isinstance(value, dict):
        return ", ".join(f"{key}={low:g}:{high:g}" for key, (low, high) in value.items()) or _NONE
    values = value if isinstance(value, tuple) else () if value is None else (value,)
    return _evenly(values) or ", ".join(map(_plain, values)) or _NONE


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _evenly(values: tuple[Any, ...]) -> str:
    """``0.05 to 0.95 by 0.05`` of four numbers or more with equal steps; else nothing."""
    if len(values) < 4 or not isinstance(values[0], float):
        return ""
    step = (values[-1] - values[0]) / (len(values) - 1)
    even = all(math.isclose(b - a, step, abs_tol=1e-9) for a, b in pairwise(values))
    return f"{values[0]:g} to {values[-1]:g} by {step:g}" if even else ""
