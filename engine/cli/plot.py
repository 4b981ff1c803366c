"""Command ``plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .base import Command, debug


@click.command(cls=Command)
@click.argument("run", type=click.Path())
@click.argument("kind", required=False)
@click.option(
    "-o", "--out", metavar="FILE", type=click.Path(dir_okay=False),
    help="An .svg, .png or .pdf file; KIND.svg unless given.",
)  # fmt: skip
@click.option("--label", metavar="LABEL", help="The only label to draw.")
@click.option("--iou", type=float, metavar="IOU", help="IoU threshold, of detection.")
@click.option("--metric", metavar="NAME", help="The metric to draw, of kinds that draw one.")
@click.option("--baseline", metavar="DIR", help="Earlier result, drawn dashed.")
@debug
def plot(
    run: str,
    kind: str | None,
    out: str | None,
    label: str | None,
    iou: float | None,
    metric: str | None,
    baseline: str | None,
) -> None:
    """Plot a figure of RUN.

    RUN is a folder that `score --out` or a job wrote. Without KIND the kinds available for this run
    are listed. Needs matplotlib: pip install 'evalengine[plot]'.

    \b
    Example:
      evalengine plot runs/tuesday
      evalengine plot runs/tuesday precision_recall -o pr.png --baseline runs/monday
    """
    from ..jobs.reports import scored_in
    from ..report.plots import FORMATS, Plots

    plots = Plots(scored_in(run))
    if kind is None:
        click.echo("\n".join(plots.kinds))
        return
    target = Path(out or f"{kind}.svg")
    if target.suffix.lower().lstrip(".") not in FORMATS:
        endings = ", ".join(f".{one}" for one in FORMATS)
        raise click.UsageError(f"-o {target}: the ending says the format, one of {endings}.")
    earlier = None if baseline is None else scored_in(baseline)
    chosen: dict[str, Any] = {"label_value": label, "iou_threshold": iou, "metric": metric}
    figure = plots.figure(kind, earlier, **chosen)
    from ..atomic import whole_file

    try:
        with whole_file(target, sweeps=True) as file:
            figure.savefig(file, dpi=150, format=target.suffix[1:].lower())
    except OSError as error:
        from ..schemas.errors import WriteError

        raise WriteError(f"cannot write {target}: {error.strerror or error}.") from error
    click.echo(f"the {kind} plot is in {target}", err=True)
