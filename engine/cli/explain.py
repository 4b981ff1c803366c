"""The command that explains a run, or one number of it."""

from __future__ import annotations

from typing import Any

import click

from .base import WithOptions, arguments, with_tables


@click.command(cls=WithOptions)
@click.argument("predictions", required=False, type=click.Path())
@click.argument("ground_truths", required=False, type=click.Path())
@click.option("--number", metavar="NUMBER", help="Explain one number: 'AP[label=car,iou=0.5]'.")
@with_tables
def explain(
    predictions: str | None,
    ground_truths: str | None,
    number: str | None,
    datums: str | None,
    labels: str | None,
    storage: tuple[str, ...],
    **fields: Any,
) -> None:
    """Print the steps that `score` would take.

    With --number, explain one number: its definition and rules, its support, the rows that were
    excluded, its bounds, and the rows behind it. PREDICTIONS may then be a folder that `score
    --out` wrote.

    \b
    Example:
      evalengine explain preds.parquet gts.parquet --metric mAP --by weather
      evalengine explain preds.parquet gts.parquet --number 'AP[label=car,iou=0.5]'
    """
    from ..api import explain as run

    click.echo(
        run(predictions, ground_truths, number=number, **arguments(storage, datums, labels, fields))
    )
