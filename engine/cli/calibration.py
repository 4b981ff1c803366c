"""Command ``calibration``."""

from __future__ import annotations

from typing import Any

import click

from .base import (
    WithOptions,
    arguments,
    progress_line,
    show_found,
    tell_said,
    with_format,
    with_tables,
)


@click.command(cls=WithOptions)
@click.argument("run", type=click.Path())
@click.argument("ground_truths", required=False, type=click.Path())
@click.option("--bins", is_flag=True, help="The reliability curve: every bin of every label.")
@click.option("--fit", is_flag=True, help="The isotonic fit: every block of every label.")
@with_format
@with_tables
def calibration(
    run: str,
    ground_truths: str | None,
    bins: bool,
    fit: bool,
    form: str,
    datums: str | None,
    labels: str | None,
    storage: tuple[str, ...],
    **fields: Any,
) -> None:
    """Show how well scores are calibrated.

    RUN is a folder that `score --out` wrote, or predictions, with GROUND_TRUTHS or as one table
    that contains both sides. Scores are compared with the share of rows that are right. A
    temperature and an isotonic fit are shown with the error before and after, also on held-out
    data. The run itself is not changed.

    \b
    Example:
      evalengine calibration preds.parquet gts.parquet --n-bins 10
      evalengine calibration runs/monday --bins --format csv
    """
    if bins and fit:
        raise click.UsageError("--bins and --fit are two tables: give one.")
    given = arguments(storage, datums, labels, fields)
    with progress_line() as progress:
        from ..finding_calibration import find_calibration

        found = find_calibration(run, ground_truths, progress=progress, **given)
    from ..report.found_calibration import LAYOUT
    from ..report.show import show_frame

    if bins or fit:
        show_frame(found.reliability if bins else found.isotonic, form, name="calibration")
        tell_said(found.said)
    else:
        show_found(found, form, LAYOUT)
