"""Commands that analyse a run."""

from __future__ import annotations

from typing import Any

import click

from ..schemas.label_errors import QUALITIES, WAYS
from .base import (
    FOR_PEOPLE,
    WithOptions,
    arguments,
    progress_line,
    show_found,
    tell_said,
    with_format,
    with_tables,
)

# Command ``calibration``.


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
        from ..findings.calibration import find_calibration

        found = find_calibration(run, ground_truths, progress=progress, **given)
    from ..report.findings import CALIBRATION
    from ..report.show import show_frame

    if bins or fit:
        show_frame(found.reliability if bins else found.isotonic, form, name="calibration")
        tell_said(found.said)
    else:
        show_found(found, form, CALIBRATION)


# The command that looks for everything that may be wrong.


@click.command(cls=WithOptions)
@click.argument("predictions", type=click.Path())
@click.argument("ground_truths", required=False, type=click.Path())
@click.option(
    "--top", type=click.IntRange(1), default=10, show_default=True, help="How many to show."
)
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
    """Name the most likely faults of a run or its tables.

    Warnings, labels that are confused, labels and slices worse than the rest, ground truths that
    are likely wrong, and duplicate datums, by how much of the error each explains.

    \b
    Example:
      evalengine diagnose preds.parquet gts.parquet --datums images.parquet
    """
    from ..findings.diagnose import diagnose as run
    from ..report.findings import DIAGNOSIS

    found = run(predictions, ground_truths, **arguments(storage, datums, labels, fields))
    show_found(found.first(top), form, DIAGNOSIS)


# Command ``errors``.


@click.command(cls=WithOptions)
@click.argument("run", type=click.Path())
@click.argument("ground_truths", required=False, type=click.Path())
@click.option(
    "--top", type=click.IntRange(1), default=50, show_default=True, help="How many to show."
)
@click.option("--rows", is_flag=True, help="Single rows that are wrong, with their boxes.")
@click.option(
    "--sort",
    type=click.Choice(("loss", "score")),
    default="loss",
    show_default=True,
    help="Order of rows: by how wrong their datums are, or by how sure predictions were.",
)
@with_format
@click.option(
    "--to",
    type=click.Choice(("label-studio", "cvat", "coco")),
    help="Write the rows for a tool that shows images instead; coco is for FiftyOne.",
)
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
    from ..report.findings import ERRORS, LAYOUT_OF_ROWS
    from ..schemas.wording import in_shell

    if rows and found.rows is None:
        asked = "--rows" if to is None else "--to"
        raise click.UsageError(in_shell(f"{asked}: {found.rowless}; omit {asked}."))
    said = (*found.said, *(found.said_of_rows if rows else ()))
    if to is not None and out is not None and found.rows is not None:
        images = found.write(to, out)
        click.echo(f"{out}: {len(found.rows)} errors in {images} images")
        tell_said(said)
    else:
        show_found(found, form, LAYOUT_OF_ROWS if rows else ERRORS, said)


# The command that explains a run, or one number of it.


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


# The command that lists ground truths that are likely wrong.


@click.command("label-errors", cls=WithOptions)
@click.argument("run", type=click.Path())
@click.argument("ground_truths", required=False, type=click.Path())
@click.option(
    "--top", type=click.IntRange(1), default=50, show_default=True, help="How many to show."
)
@click.option(
    "reasons",
    "--reason",
    multiple=True,
    metavar="REASON",
    help="Show only errors of this reason; repeatable.",
)
@click.option(
    "--filter-by",
    type=click.Choice(WAYS),
    help="In classification, the rule that picks datums [prune_by_noise_rate].",
)
@click.option(
    "--rank-by",
    type=click.Choice(QUALITIES),
    help="In classification, the score that orders them [normalized_margin].",
)
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
        from ..findings.label_errors import find_label_errors

        found = find_label_errors(
            run,
            ground_truths,
            top=top,
            reasons=reasons or None,
            filter_by=filter_by,
            rank_by=rank_by,
            progress=progress,
            **given,
        )
    from ..report.findings import LABEL_ERRORS

    show_found(found, form, LABEL_ERRORS)


# Command ``limits``.


@click.command(cls=WithOptions)
@click.argument("predictions", type=click.Path())
@click.argument("ground_truths", required=False, type=click.Path())
@click.option(
    "every",
    "--all",
    is_flag=True,
    help="Every row: also single labels, slices and numbers that do not move.",
)
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
    from ..findings.bounds import find_limits
    from ..report.findings import BOUNDS

    found = find_limits(predictions, ground_truths, **arguments(storage, datums, labels, fields))
    # Machine-readable formats omit the notes but include every row.
    said = None if form in FOR_PEOPLE else ()
    show_found(found.whole if every else found, form, BOUNDS, said)


# The command that finds the worst slices of a run.


@click.command(cls=WithOptions)
@click.argument("run", type=click.Path())
@click.argument("ground_truths", required=False, type=click.Path())
@click.option(
    "--top", type=click.IntRange(1), default=20, show_default=True, help="Slices to show."
)
@click.option(
    "--levels",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="Conditions of a slice at most.",
)
@click.option(
    "--least",
    type=click.IntRange(1),
    metavar="N",
    help="Datums of a slice at least; a hundredth of all unless given.",
)
@click.option(
    "--alpha",
    type=float,
    default=0.95,
    show_default=True,
    help="Weight of how bad a slice is against how large; 1: only how bad.",
)
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
    from ..report.findings import SLICES

    show_found(found, form, SLICES)


# The command that finds the score thresholds that serve best.


@click.command(cls=WithOptions)
@click.argument("run", type=click.Path())
@click.argument("ground_truths", required=False, type=click.Path())
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write the thresholds of one --metric for `score --thresholds`: .json, .csv or .parquet.",
)
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
        from ..findings.thresholds import find_thresholds

        found = find_thresholds(run, ground_truths, progress=progress, **given)
    from ..report.findings import THRESHOLDS

    show_found(found, form, THRESHOLDS)
    if output is not None:
        click.echo(f"{output}: {found.save(output)} thresholds", err=True)
