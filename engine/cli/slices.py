"""The command that finds the worst slices of a run."""

from __future__ import annotations

from typing import Any

import click

from .base import WithOptions, arguments, progress_line, show_found, with_format, with_tables


@click.command(cls=WithOptions)
@click.argument("run", type=click.Path())
@click.argument("ground_truths", required=False, type=click.Path())
@click.option(
    "--top", type=click.IntRange(1), default=20, show_default=True, help="Slices to show."
)
@click.option(
    "--levels", type=click.IntRange(1), default=3, show_default=True,
    help="Conditions of a slice at most.",
)  # fmt: skip
@click.option(
    "--least", type=click.IntRange(1), metavar="N",
    help="Datums of a slice at least; a hundredth of all unless given.",
)  # fmt: skip
@click.option(
    "--alpha", type=float, default=0.95, show_default=True,
    help="Weight of how bad a slice is against how large; 1 for bad alone.",
)  # fmt: skip
@click.option("--confirm", is_flag=True, help="Search one half of the datums, measure the other.")
@with_format
@with_tables
def slices(
    run: str,
    ground_truths: str | None,
    top: int,
    levels: int,
    least: int | None,
    alpha: float,
    confirm: bool,
    form: str,
    datums: str | None,
    labels: str | None,
    storage: tuple[str, ...],
    **fields: Any,
) -> None:
    """Find the slices in which RUN is worst.

    RUN is a folder that `score --out` wrote, or predictions, with GROUND_TRUTHS or as one table
    that contains both sides. All slices of up to --levels conditions on the columns of the datums
    are searched for those whose datums are worst; the metric is then computed in each and
    elsewhere.

    \b
    Example:
      evalengine slices runs/monday --datums images.parquet
      evalengine slices preds.parquet gts.parquet --datums images.parquet --by weather,camera
    """
    given = arguments(storage, datums, labels, fields)
    with progress_line() as progress:
        from ..api import find_slices

        found = find_slices(
            run,
            ground_truths,
            top=top,
            levels=levels,
            least=least,
            alpha=alpha,
            confirm=confirm,
            progress=progress,
            **given,
        )
    from ..report.found_slices import LAYOUT

    show_found(found, form, LAYOUT)
