"""Shared parts of the commands: lookup, common options, progress."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..schemas.wording import to_shell
from .completion import ALL, completes

if TYPE_CHECKING:
    from ..dialects import Dialect
    from ..schemas.options import Option

# Help of commands that take every option: short, or of one task, with the defaults by dialect.

_SHORT = ""
_TOPIC = "evalengine.help"

_OWN = {
    "datums": "Names",
    "labels": "Names",
    "storage": "Execution",
    "executor": "Execution",
    "address": "Execution",
    **dict.fromkeys(("gates", "fail_if", "junit", "baseline", "warned"), "Gates"),
    **dict.fromkeys(("out", "overwrite", "form", "frame", "export", "sort", "wide"), "Output"),
    **dict.fromkeys(("top", "report", "images", "debug", "_help"), "Output"),
}
"""Option defined by the commands -> help section; the rest come first."""
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
        shell_complete=completes("task of help"),
        help=f"This page; with a TASK its options in full; {ALL} for all of them.",
    )


def _answer(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    from ..schemas.contract import NAMES
    from ..schemas.errors import unknown

    if value is None or ctx.resilient_parsing:
        return
    topic = value or ctx.params.get("task") or _SHORT
    if topic not in (_SHORT, ALL, *NAMES):
        raise click.BadParameter(unknown("task", topic, (*NAMES, ALL)).message, ctx, param)
    ctx.meta[_TOPIC] = topic
    click.echo(ctx.get_help(), color=ctx.color)
    ctx.exit()


def write_options(
    ctx: click.Context, formatter: click.HelpFormatter, params: list[click.Parameter]
) -> None:
    """The options in groups: those of all tasks in short, or those of the task asked for."""
    from ..schemas.contract import NAMES
    from ..schemas.options import DECLARED

    topic = ctx.meta.get(_TOPIC, _SHORT)
    displayed_tasks = () if topic == _SHORT else NAMES if topic == ALL else (topic,)
    options = {
        param.name: param
        for param in params
        if isinstance(param, click.Option)
        and (param.name not in DECLARED or _read_by(DECLARED[param.name], displayed_tasks))
    }
    for title, names in _sections(list(options), displayed_tasks):
        rows = [row for name in names if (row := options[name].get_help_record(ctx))]
        if topic == _SHORT:
            rows = [(flags, _CLAUSE.sub("", about.rstrip("."))) for flags, about in rows]
        with formatter.section(title):
            formatter.write_dl(rows)
    if len(displayed_tasks) == 1:
        _write_dialects(formatter, topic, options)
    if topic == _SHORT:
        with formatter.section("Options of one task"):
            formatter.write_text(
                f"{ctx.command_path} {ctx.help_option_names[-1]} TASK shows them, with the defaults"
                f" by dialect; TASK is one of {', '.join(NAMES)}, or {ALL}."
            )


def _sections(names: list[str], tasks: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield section titles and their options."""
    from ..schemas.options import DECLARED, TOPICS

    by_topic = sorted(DECLARED, key=lambda name: TOPICS.index(DECLARED[name].topic))
    title_of = {name: DECLARED[name].topic for name in by_topic if _read_by(DECLARED[name], tasks)}
    title_of |= _OWN
    for title in dict.fromkeys(("Options", *title_of.values())):
        here = [name for name in title_of if name in names and title_of[name] == title]
        here += [name for name in names if title == "Options" and name not in title_of]
        if here:
            yield title, here


def _read_by(declared: Option, tasks: Iterable[str]) -> bool:
    """Return whether some of the tasks read an option."""
    return not declared.tasks or not set(declared.tasks).isdisjoint(tasks)


def _write_dialects(
    formatter: click.HelpFormatter, task: str, options: dict[str, click.Option]
) -> None:
    """The dialects of a task, whose numbers each gives, and the options that it sets otherwise."""
    from .. import dialects

    standard = dialects.get(task, "standard")
    usual = {name: _default_text(standard, name) for name in options}
    rows = []
    for name in dialects.names(task):
        dialect = dialects.get(task, name)
        values = {option: _default_text(dialect, option) for option in options}
        settings = [
            _written(options[option], value)
            for option, value in values.items()
            if (value != _NONE if dialect is standard else value != usual[option])
        ]
        rows.append((name, f"{dialect.about.rstrip('.')}. {'; '.join(settings)}".strip()))
    with formatter.section("Dialects, and the defaults that differ from standard's"):
        formatter.write_dl(rows)


def _written(option: click.Option, value: str) -> str:
    """The option with a value behind its shortest long name."""
    if option.is_flag:
        return option.opts[0] if value == str(True) else option.secondary_opts[0]
    return f"{min((one for one in option.opts if one.startswith('--')), key=len)} {value}"


_NONE = "none"


def _default_text(dialect: Dialect, name: str) -> str:
    """A dialect's default of an option in words."""
    value = dialect.default(name)
    if isinstance(value, dict):
        return ", ".join(f"{key}={low:g}:{high:g}" for key, (low, high) in value.items()) or _NONE
    values = value if isinstance(value, tuple) else () if value is None else (value,)
    plain = (f"{one:g}" if isinstance(one, float) else str(one) for one in values)
    return _evenly(values) or ", ".join(plain) or _NONE


def _evenly(values: tuple[Any, ...]) -> str:
    """Return ``0.05 to 0.95 by 0.05`` for four or more floats with equal steps; otherwise ""."""
    if len(values) < 4 or not isinstance(values[0], float):
        return ""
    step = (values[-1] - values[0]) / (len(values) - 1)
    even = all(math.isclose(b - a, step, abs_tol=1e-9) for a, b in pairwise(values))
    return f"{values[0]:g} to {values[-1]:g} by {step:g}" if even else ""


C = TypeVar("C", bound=Callable[..., Any])

STATE = {"debug": False, "finish": False}
"""``debug``: the current command was called with --debug; ``finish``: its work goes on if nobody
reads its output, since its status or files count."""


class PipeClosed(Exception):
    """Signal that the reader of the output closed the pipe, as ``head`` does; not an error."""


class OutputRefused(OSError):
    """Standard output cannot be written: its disk is full, or gone."""


_OUTPUTS = ("out", "output", "report", "junit")
"""Parameters that name output files."""
_NO_PATHS = ("name", "names", "kind")
"""Arguments that name no file."""


class Command(click.Command):
    """A command that refuses outputs that are its inputs."""

    def invoke(self, ctx: click.Context) -> Any:
        outputs: dict[str, str] = {}
        inputs: list[str] = []
        for param in self.get_params(ctx):
            value = ctx.params.get(param.name or "")
            texts = [value] if isinstance(value, str) else value
            if not isinstance(texts, (list, tuple)):
                continue
            paths = [text for text in texts if isinstance(text, str)]
            if param.name in _OUTPUTS:
                outputs |= dict.fromkeys(paths, param.opts[-1])
            elif isinstance(param, click.Argument) or param.name in ("baseline", "images"):
                inputs += paths if param.name not in _NO_PATHS else []
            else:  # a word may be the name of a folder, too
                inputs += filter(os.path.isfile, paths)
        if not outputs:
            return super().invoke(ctx)
        from ..atomic import protecting

        with protecting(outputs, inputs, replaces="overwrite" in ctx.params):
            return super().invoke(ctx)


class Commands(click.Group):
    """A group that keeps its commands' order and answers a mistyped one with the nearest."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            from ..schemas.errors import did_you_mean

            names = self.list_commands(ctx)
            usual = "score" if "score" in names else names[0]
            if "run" in names and args[0].endswith(".toml"):
                usual = "run"
            hint = did_you_mean(args[0], names)
            if os.path.splitext(args[0])[1] or os.path.exists(args[0]):
                hint = f" For a file or folder write: {ctx.command_path} {usual} {args[0]}"
                if not os.path.exists(args[0]):
                    hint = f" There is no such file either.{hint}"
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        # click itself ends the process with 1 on a closed pipe, which is our "a gate failed".
        try:
            with to_shell():
                done = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            raise PipeClosed from None
        return done


_GATES = ("--gate", "--gates", "--require", "--assert")
"""Names of gates in other tools."""


class WithOptions(Command):
    """A command with every option of ``Options``, made when they are first looked at."""

    _grown = False

    def get_help_option(self, ctx: click.Context) -> click.Option:
        names = self.get_help_option_names(ctx)
        if self._help_option is None or {*names} != {*self._help_option.opts}:
            self._help_option = help_option(names)
        return self._help_option

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_options(ctx, formatter, self.get_params(ctx))

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        if not self._grown:
            from .options import generated

            self._grown = True
            self.params += generated()
        return super().get_params(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            from ..schemas.options import explain_foreign_name
            from ..schemas.wording import in_shell

            if error.option_name in _GATES:
                raise click.UsageError(
                    f"No such option {error.option_name}. It is --fail-under here, or --fail-if.",
                    ctx,
                ) from None
            message = explain_foreign_name(error.option_name.lstrip("-"))
            if message is None:
                raise
            message = message.replace(error.option_name.lstrip("-"), error.option_name, 1)
            raise click.UsageError(in_shell(message), ctx) from None


def _debug(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    STATE["debug"] = STATE["debug"] or value


debug = click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_debug,
    help="Show the full traceback of an error.",
)


def applying(*options: Callable[..., Any]) -> Callable[[C], C]:
    """Make one decorator of several, in the order of the help."""

    def decorate(command: C) -> C:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


with_tables = applying(
    click.option("--datums", metavar="PATH", help="Table of all datum ids, with slice columns."),
    click.option("--labels", metavar="PATH", help="Table of the declared labels and their names."),
    click.option(
        "storage",
        "--storage-option",
        multiple=True,
        metavar="KEY=VALUE",
        help="Credentials and the like for s3://, gs:// and az:// paths; repeatable.",
    ),
    debug,
)


FORMATS = ("table", "json", "csv", "parquet", "markdown")
"""Forms of frames."""

FOR_PEOPLE = (FORMATS[0], FORMATS[-1])
"""Formats that show notes."""

with_format = click.option(
    "form", "--format", type=click.Choice(FORMATS), default="table", help="Output format."
)


def arguments(storage: Sequence[str], datums: Any, labels: Any, fields: Any) -> dict[str, Any]:
    """Arguments of the call behind a command."""
    from ..schemas.option_values import make_options

    strange = [pair for pair in storage if "=" not in pair]
    if strange:
        raise click.BadParameter(f"{strange[0]!r} is not of the form key=value.")
    return {
        "options": make_options(**fields),
        "datums": datums,
        "labels": labels,
        "storage_options": dict(pair.split("=", 1) for pair in storage) or None,
    }


@contextmanager
def progress_line() -> Iterator[Callable[[str], None] | None]:
    """Yield a callback for step names that updates a line on a terminal; None without one."""
    if not sys.stderr.isatty():
        yield None
        return
    from ..progress import show_progress

    with show_progress() as tell:
        yield tell


def print_finding(finding: Any, form: str, notes: Sequence[str] | None = None) -> None:
    """Print a finding; notes go to standard error if the format has no place for them.

    Args:
        notes: by default all of the finding.
    """
    from ..findings import show
    from ..schemas.wording import in_shell

    notes = finding.messages if notes is None else notes
    show(finding, form, sys.stdout, [in_shell(note) for note in notes])
    if form not in FOR_PEOPLE:
        print_messages(notes)


def print_messages(notes: Sequence[str]) -> None:
    """Notes on standard error, options marked as in :mod:`..schemas.wording`."""
    from ..schemas.wording import in_shell

    for note in notes:
        click.echo(f"note: {in_shell(note)}", err=True)


def print_notes(card: Any) -> None:
    """Print a scorecard's notes on standard error, if standard output has no place for them."""
    from ..report.summary import ordered_notes
    from ..report.text import plain

    for kind, note in ordered_notes(card):
        click.echo(f"{kind}: {plain(note)}", err=True)
