"""The command that compares runs."""

from __future__ import annotations

import sys
from typing import Any

import click

from .._version import __version__
from .base import WithOptions, arguments, progress_line, with_tables
from .gates import compared_gates, told_gates, with_gates

_GATE_FAILED = 1
_FORMATS = ("table", "markdown", "latex", "json", "csv", "parquet", "github")


@click.command(cls=WithOptions)
@click.argument("runs", nargs=-1, required=True, type=click.Path())
@click.option(
    "ground_truths",
    "-g",
    "--ground-truths",
    "--qrels",
    metavar="PATH",
    type=click.Path(),
    help="Ground truths, where runs are tables of predictions alone.",
)
@click.option("names", "--name", multiple=True, help="What a run is called; once for each.")
@click.option("--common", is_flag=True, help="Leave out datums that not all runs have.")
@click.option(
    "--adjust",
    type=click.Choice(("holm", "bh", "none")),
    default="holm",
    show_default=True,
    help="How p-values of several numbers are adjusted.",
)
@click.option(
    "--test",
    type=click.Choice(("randomisation", "t", "mcnemar")),
    default="randomisation",
    show_default=True,
    help="Where p-values come from: any number, means over datums, shares of datums.",
)
@click.option(
    "--missing",
    type=click.Choice(("skip", "zero", "worst")),
    default="skip",
    show_default=True,
    help="How means count datums of which only some runs have a value.",
)
@click.option("-o", "--out", metavar="DIR", help="Write the comparison into a folder.")
@click.option("--overwrite", is_flag=True, help="Let --out replace an earlier comparison.")
@click.option(
    "form", "--format", type=click.Choice(_FORMATS), default="table", help="How to print it."
)
@click.option(
    "frame",
    "--frame",
    type=click.Choice(("differences", "flips")),
    help="Print the rows of a frame instead, as csv unless --format is json, parquet or markdown.",
)
@with_gates
@with_tables
def compare(
    runs: tuple[str, ...],
    ground_truths: str | None,
    names: tuple[str, ...],
    common: bool,
    adjust: str,
    test: str,
    missing: str,
    out: str | None,
    overwrite: bool,
    form: str,
    frame: str | None,
    gates: tuple[str, ...],
    fail_if: tuple[str, ...],
    junit: str | None,
    datums: str | None,
    labels: str | None,
    storage: tuple[str, ...],
    **fields: Any,
) -> int:
    """Compare RUNS on the same datums: are differences larger than chance?

    A run is a folder that `score --out` wrote, or predictions, with --ground-truths or as one table
    that contains both sides. Differences are the second run minus the first; with more than two
    runs every pair is compared. Gates compare the second of two runs with the first.

    \b
    Example:
      evalengine compare runs/monday runs/tuesday
      evalengine compare a.parquet b.parquet --ground-truths gts.parquet --by weather
      evalengine compare a.parquet b.parquet -g gts.parquet --cluster video --format markdown
      evalengine compare runs/main runs/mine --fail-under 'mAP >= baseline - 0.01 surely'
    """
    given = arguments(storage, datums, labels, fields)
    if len(runs) < 2:
        raise click.UsageError("compare needs two runs or more.")
    if form == "github" and frame:
        raise click.UsageError("--format github is of the comparison: leave --frame out.")
    judge = compared_gates(gates, fail_if, runs, given["options"], junit)
    with progress_line() as progress:
        from ..api import compare as run

        found = run(
            *runs,
            ground_truths=ground_truths,
            names=names or None,
            common=common,
            adjust=adjust,
            test=test,
            missing=missing,
            progress=progress,
            **given,
        )
        if out is not None:
            found.save(out, overwrite=overwrite)
    if frame is not None:
        from ..report.show import show_frame

        shown = "csv" if form in ("table", "latex") else form
        show_frame(getattr(found, frame), shown, name=frame)
    elif form != "github":
        from ..report.comparison import show

        show(found, form)
    if frame is not None or form in ("csv", "parquet", "latex"):
        from ..report.summary import plain

        for note in found.notes:
            click.echo(f"note: {plain(note)}", err=True)
    if out is not None:
        click.echo(f"differences, flips and comparison.json are in {out}", err=True)
    sys.stdout.flush()
    failed = told_gates(
        judge(found),
        about={
            "evalengine": __version__,
            "task": found.task,
            "dialect": found.dialect,
            "datums": found.n,
        },
        junit=junit,
        form=None if frame else form,
        warnings=found.warnings,
        notice=found.verdict,
        result=lambda: _markdown(found),
    )
    return _GATE_FAILED if failed else 0


def _markdown(found: Any) -> str:
    from ..report.comparison import as_markdown

    return as_markdown(found)
