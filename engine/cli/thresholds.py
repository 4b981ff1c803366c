"""The command that finds the score thresholds that serve best."""

from __future__ import annotations

from typing import Any

import click

from .base import WithOptions, arguments, progress_line, show_found, with_format, with_tables


@click.command(cls=WithOptions)
@click.argument("run", type=click.Path())
@click.argument("ground_truths", required=False, type=click.Path())
@click.option(
    "-o", "--output", metavar="FILE",
    help="Write the thresholds of one --metric for `score --thresholds`: .json, .csv or .parquet.",
)  # fmt: skip
@with_format
@with_tables
def thresholds(
    run: str,
    ground_truths: str | None,
    output: str | None,
    form: str,
    datums: str | None,
    labels: str | None,
    storage: tuple[str, ...],
    **fields: Any,
) -> None:
    """Find the best score threshold of each label.

    RUN is a folder that `score --out` wrote, or predictions, with GROUND_TRUTHS or as one table
    that contains both sides. --metric names the rules: ThresholdAtMaxF, ThresholdAtPrecision,
    ThresholdAtRecall, ThresholdAtFPR (classification), ThresholdAtCost, ThresholdAtEqualError; by
    default all. Each threshold comes with its result on data that did not choose it.

    \b
    Example:
      evalengine thresholds preds.parquet gts.parquet --metric ThresholdAtMaxF -o best.json
      evalengine score preds.parquet gts.parquet --thresholds best.json
    """
    given = arguments(storage, datums, labels, fields)
    if output is not None and len(given["options"].metrics or ()) != 1:
        raise click.UsageError("--output is of one rule: name it with --metric.")
    with progress_line() as progress:
        from ..finding_thresholds import find_thresholds

        found = find_thresholds(run, ground_truths, progress=progress, **given)
    from ..report.found_thresholds import LAYOUT

    show_found(found, form, LAYOUT)
    if output is not None:
        click.echo(f"{output}: {found.save(output)} thresholds", err=True)
