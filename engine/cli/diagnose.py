"""The command that looks for everything that may be wrong."""

from __future__ import annotations

from typing import Any

import click

from .base import WithOptions, arguments, show_found, with_format, with_tables


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
    """Name what is most likely wrong in a run or its tables.

    Warnings, labels that are confused, labels and slices worse than the rest, ground truths that
    are likely wrong, and duplicate datums, by how much of the error each explains.

    \b
    Example:
      evalengine diagnose preds.parquet gts.parquet --datums images.parquet
    """
    from ..diagnosing import diagnose as run
    from ..report.found_diagnosis import LAYOUT

    found = run(predictions, ground_truths, **arguments(storage, datums, labels, fields))
    show_found(found.first(top), form, LAYOUT)
