"""Completion in the shell: names of tasks, dialects, metrics, columns, charts and bundled sets."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial

import click

ALL = "all"
"""Argument of ``--help`` that shows the options of all tasks."""
_INPUTS = ("predictions", "ground_truths", "datums")
_READ = 1 << 25  # bytes of a file that is read as a whole
_LAZY = (".parquet", ".csv", ".tsv", ".arrow", ".feather", ".ipc")


def completes(kind: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return the function by which click completes values of a kind, one of :data:`_KNOWN`."""
    return partial(_begun, kind)


def _begun(kind: str, ctx: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Names that begin so, in any case; of lists those of the piece behind the last comma."""
    before, comma, piece = begun.rpartition(",")
    return [
        before + comma + one
        for one in dict.fromkeys(_CANDIDATES[kind](ctx))
        if one.casefold().startswith(piece.casefold())
    ]


def _tasks(ctx: click.Context) -> tuple[str, ...]:
    from ..schemas.contract import NAMES

    return NAMES


def _select_tasks(ctx: click.Context) -> tuple[str, ...]:
    """The task that was given, or all."""
    names = _tasks(ctx)
    return (ctx.params["task"],) if ctx.params.get("task") in names else names


def _help(ctx: click.Context) -> tuple[str, ...]:
    return (*_tasks(ctx), ALL)


def _dialects(ctx: click.Context) -> Iterable[str]:
    from .. import dialects

    return (one for task in _select_tasks(ctx) for one in dialects.names(task))


def _metrics(ctx: click.Context) -> Iterable[str]:
    from .. import metrics

    return (one for task in _select_tasks(ctx) for one in metrics.names(task))


def _columns(ctx: click.Context) -> Iterable[str]:
    """Columns of the tables that the command has so far."""
    from ..ingest.sources.tables import open_source

    # click has not assigned arguments while an option has no value.
    for path in (*ctx.args, *(ctx.params.get(name) for name in _INPUTS)):
        if not isinstance(path, str) or not os.path.isfile(path):
            continue
        if path.lower().endswith(_LAZY) or os.path.getsize(path) <= _READ:
            try:
                yield from open_source(path).frame.collect_schema().names()
            except Exception:  # a file that cannot be read has no names to offer
                continue


def _plots(ctx: click.Context) -> Iterable[str]:
    from ..report.charts import KINDS

    return KINDS


def demos() -> dict[str, str]:
    """Bundled sets: name -> arguments of ``score``; the first is the default."""
    import tomllib
    from importlib.resources import files

    text = files("evalengine.examples").joinpath("demos.toml").read_text("utf-8")
    lines: dict[str, str] = tomllib.loads(text)
    return lines


_CANDIDATES: dict[str, Callable[[click.Context], Iterable[str]]] = {
    "task": _tasks,
    "task of help": _help,
    "dialect": _dialects,
    "metrics": _metrics,
    "columns": _columns,
    "plots": _plots,
    "demos": lambda ctx: demos(),
}
OF_FIELDS = {
    "task": "task",
    "dialect": "dialect",
    "metrics": "metrics",
    **dict.fromkeys(("by", "spread", "cluster"), "columns"),
}
"""Option -> kind of its values."""
