"""Command ``limits``."""

from __future__ import annotations

from typing import Any

import click

from .base import FOR_PEOPLE, WithOptions, arguments, show_found, with_format, with_tables


@click.command(cls=WithOptions)
@click.argument("predictions", type=click.Path())
@click.argument("ground_truths", required=False, type=click.Path())
@click.option(
    "every", "--all", is_flag=True,
    help="Every row: of single labels and slices, and what does not move, too.",
)  # fmt: skip
@with_format
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
    """Show how far numbers could move under choices the protocol does not fix.

    These are the order of equal scores, in detection the cap, in retrieval the unjudged documents.
    `bound` qualifies lowest and highest: `exact`, reached and never passed; `at most`, never
    passed; `at least`, reached, and other choices may go further. The widest come first.
    PREDICTIONS may be a folder that `score --limits --out` wrote.

    \b
    Example:
      evalengine limits run.txt qrels.txt --metric nDCG@10,MAP
      evalengine limits preds.json gts.json --dialect coco --format csv
    """
    from ..finding_limits import find_limits
    from ..report.found_limits import LAYOUT

    found = find_limits(predictions, ground_truths, **arguments(storage, datums, labels, fields))
    # Machine-readable formats omit the notes but include every row.
    said = None if form in FOR_PEOPLE else ()
    show_found(found.whole if every else found, form, LAYOUT, said)
