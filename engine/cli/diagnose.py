"""The command that looks for everything that may be wrong."""

from __future__ import annotations

import sys
from typing import Any

import click

from .base import FOR_PEOPLE, WithOptions, arguments, with_format, with_tables


@click.command(cls=WithOptions)
@click.argument("predictions", type=click.Path())
@click.argument("ground_truths", required=False, type=click.Path())
@click.option("--top", type=click.IntRange(1), default=10, show_default=True,
              help="How many to show.")  # fmt: skip
@with_format
@with_tables
def diagnose(
    predictions: str,
    ground_truths: str | None,
    top: int,
    form: str,
    datums: str | None,
    labels: str | None,
    storage: tuple[str, ...],
    **fields: Any,
) -> None:
    """Name what is most likely wrong in the run or in its tables, the likeliest first.

    Warnings, labels taken for others, labels and slices worse than the rest, ground truths that are
    likely wrong, and duplicate datums, by how much of what is wrong each explains.

    \b
    Example:
      evalengine diagnose preds.parquet gts.parquet --datums images.parquet
    """
    from ..diagnosing import diagnose as run
    from ..report.frames import aligned, markdown_frame
    from ..report.show import show_frame, write_text

    given = arguments(storage, datums, labels, fields)
    found = run(predictions, ground_truths, **given).head(top)
    if form in FOR_PEOPLE:
        made = aligned if form == "table" else markdown_frame
        write_text(made(found) if found.height else "nothing is wrong\n", sys.stdout)
    else:
        show_frame(found, form, name="findings")
