"""Command ``report``, and its parts used by ``score``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .base import Command, debug, progress_line

if TYPE_CHECKING:
    from ..jobs.verdicts import Verdict
    from ..scorecard.card import Scorecard

C = TypeVar("C", bound=Callable[..., Any])

_images = click.option(
    "--images",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False),
    help="Pictures by datum id; the report shows those of the worst datums, small.",
)


def with_images(command: C) -> C:
    """The option for pictures in a report."""
    return _images(command)


@click.command(cls=Command)
@click.argument("run", type=click.Path())
@click.option(
    "-o", "--out", metavar="FILE", type=click.Path(dir_okay=False), default="report.html",
    show_default=True, help="The HTML file; one that is there is replaced.",
)  # fmt: skip
@click.option(
    "--baseline",
    metavar="DIR",
    help="Earlier result; that of the job that made the run unless given.",
)
@click.option("--title", metavar="TEXT", help="Of the page; the folder's name unless given.")
@with_images
@click.option("--draws", type=click.IntRange(1), metavar="N", help="Draws of the comparison; 1000.")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Of those draws; 0.")
@debug
def report(
    run: str,
    out: str,
    baseline: str | None,
    title: str | None,
    images: str | None,
    draws: int | None,
    seed: int | None,
) -> None:
    """Write one HTML page about RUN.

    RUN is a folder that `score --out` or a job wrote. The page needs no network and no server:
    verdict, numbers, labels, curves, slices, errors, the worst datums, notes, and the origin of it
    all. With a baseline, differences are shown with their intervals.

    \b
    Example:
      evalengine score preds.parquet gts.parquet --out runs/tuesday
      evalengine report runs/tuesday --baseline runs/monday -o report.html
    """
    from ..schemas.option_values import make_options

    with progress_line() as progress:
        from ..jobs.reports import report as make

        made = make(
            run,
            out,
            baseline=baseline,
            title=title or "",
            images=images,
            options=make_options(draws=draws, seed=seed),
            progress=progress,
        )
    _tell(made)


def written(
    path: str,
    card: Scorecard,
    *,
    baseline: Scorecard | None,
    named: str | None,
    verdicts: Sequence[Verdict],
    images: str | None,
) -> None:
    """Write the report of a run that was scored just now."""
    from ..jobs.reports import gate_lines
    from ..reporting import make_report

    with progress_line() as progress:
        made = make_report(
            card,
            path,
            baseline=baseline,
            names=(named or "baseline", "this run"),
            gates=gate_lines(verdicts),
            images=images,
            progress=progress,
        )
    _tell(made)


def _tell(path: Any) -> None:
    click.echo(f"the report is in {path}", err=True)
