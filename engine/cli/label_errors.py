"""The command that lists ground truths that are likely wrong."""

from __future__ import annotations

from typing import Any

import click

from ..schemas.label_errors import QUALITIES, WAYS
from .base import WithOptions, arguments, progress_line, show_found, with_format, with_tables


@click.command("label-errors", cls=WithOptions)
@click.argument("run", type=click.Path())
@click.argument("ground_truths", required=False, type=click.Path())
@click.option("--top", type=click.IntRange(1), default=50, show_default=True,
              help="How many to show.")  # fmt: skip
@click.option("reasons", "--reason", multiple=True, metavar="REASON",
              help="Show errors of this reason alone; repeatable.")  # fmt: skip
@click.option("--filter-by", type=click.Choice(WAYS),
              help="In classification, what picks datums [prune_by_noise_rate].")  # fmt: skip
@click.option("--rank-by", type=click.Choice(QUALITIES),
              help="In classification, what orders them [normalized_margin].")  # fmt: skip
@with_format
@with_tables
def label_errors(
    run: str,
    ground_truths: str | None,
    top: int,
    reasons: tuple[str, ...],
    filter_by: str,
    rank_by: str,
    form: str,
    datums: str | None,
    labels: str | None,
    storage: tuple[str, ...],
    **fields: Any,
) -> None:
    """List ground truths that are likely wrong.

    The most suspicious come first. RUN is predictions, with GROUND_TRUTHS or as one table that
    contains both sides, or a folder that `score --metric LabelErrors --out` wrote. In
    classification labels are judged by confident learning, in detection by confident predictions
    that contradict them.

    \b
    Example:
      evalengine label-errors preds.parquet gts.parquet --top 20
      evalengine label-errors boxes.parquet truths.parquet --reason missing --format csv
    """
    given = arguments(storage, datums, labels, fields)
    with progress_line() as progress:
        from ..finding_label_errors import find_label_errors

        found = find_label_errors(
            run, ground_truths, top=top, reasons=reasons or None, filter_by=filter_by,
            rank_by=rank_by, progress=progress, **given,
        )  # fmt: skip
    from ..report.found_label_errors import LAYOUT

    show_found(found, form, LAYOUT)
