"""The command that tells how far numbers could move."""

from __future__ import annotations

import sys
from typing import Any

import click

from .base import WithOptions, arguments, with_tables


@click.command(cls=WithOptions)
@click.argument("predictions", type=click.Path())
@click.argument("ground_truths", required=False, type=click.Path())
@click.option("every", "--all", is_flag=True, help="Numbers that do not move, too.")
@click.option(
    "form", "--format", type=click.Choice(("table", "json", "csv", "parquet", "markdown")),
    default="table", help="How to print them.",
)  # fmt: skip
@with_tables
def limits(
    predictions: str,
    ground_truths: str | None,
    every: bool,
    form: str,
    datums: str | None,
    labels: str | None,
    storage: tuple[str, ...],
    **fields: Any,
) -> None:
    """Tell how far each number could move by what the tables leave open.

    That is the order of equal scores, in detection and retrieval; the cap on detections; and in
    retrieval documents that nobody judged. Where `exact` is true no choice leads beyond lowest and
    highest.

    \b
    Example:
      evalengine limits run.txt qrels.txt --metric nDCG@10,MAP
      evalengine limits preds.json gts.json --dialect coco --format csv
    """
    from ..finding_limits import find_limits
    from ..report.frames import aligned, markdown_frame
    from ..report.show import show_frame, write_text

    found = find_limits(predictions, ground_truths, **arguments(storage, datums, labels, fields))
    if not every:
        found = found.remove(found["lowest"].eq_missing(found["highest"]))
    if form in ("table", "markdown"):
        made = aligned if form == "table" else markdown_frame
        write_text(made(found) if found.height else "no number could move\n", sys.stdout)
    else:
        show_frame(found, form, name="limits")
