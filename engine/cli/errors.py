"""Command ``errors``."""

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
@click.option(
    "--top", type=click.IntRange(1), default=50, show_default=True, help="How many to show."
)
@click.option("--rows", is_flag=True, help="Single rows that are wrong, with their boxes.")
@click.option(
    "--sort", type=click.Choice(("loss", "score")), default="loss", show_default=True,
    help="Order of rows: by how wrong their datums are, or by how sure predictions were.",
)  # fmt: skip
@with_format
@click.option(
    "--to", type=click.Choice(("label-studio", "cvat", "coco")),
    help="Write the rows for a tool that shows images instead; coco is for FiftyOne.",
)  # fmt: skip
@click.option("-o", "--out", metavar="FILE", help="The file of --to.")
@with_tables
def errors(
    run: str,
    ground_truths: str | None,
    top: int,
    rows: bool,
    sort: str,
    form: str,
    to: str | None,
    out: str | None,
    datums: str | None,
    labels: str | None,
    storage: tuple[str, ...],
    **fields: Any,
) -> None:
    """List the errors of RUN, worst datums first.

    RUN is a folder that `score --out` wrote, or predictions, with GROUND_TRUTHS or as one table
    that contains both sides. Each datum is shown with its number and its errors; --rows lists the
    wrong predictions and the missed ground truths.

    \b
    Example:
      evalengine errors preds.parquet gts.parquet --top 20
      evalengine errors preds.parquet gts.parquet --rows --sort score --format csv
      evalengine errors preds.parquet gts.parquet --datums images.parquet --to cvat -o errors.xml
    """
    if (to is None) != (out is None):
        raise click.UsageError("--to and --out belong together: give both.")
    rows = rows or to is not None
    if sort != "loss" and not rows:
        raise click.UsageError("--sort is of --rows: add it.")
    given = arguments(storage, datums, labels, fields)
    with progress_line() as progress:
        from ..api import find_errors

        found = find_errors(run, ground_truths, top=top, sort=sort, progress=progress, **given)
    from ..report.found_errors import LAYOUT, LAYOUT_OF_ROWS
    from ..schemas.wording import in_shell

    if rows and found.rows is None:
        asked = "--rows" if to is None else "--to"
        raise click.UsageError(in_shell(f"{asked}: {found.rowless}; leave {asked} out."))
    said = (*found.said, *(found.said_of_rows if rows else ()))
    if to is not None and out is not None and found.rows is not None:
        images = found.write(to, out)
        click.echo(f"{out}: {len(found.rows)} errors in {images} images")
        tell_said(said)
    else:
        show_found(found, form, LAYOUT_OF_ROWS if rows else LAYOUT, said)
