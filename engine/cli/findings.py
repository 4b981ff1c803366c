"""Commands that analyse a run, made from the signatures of the finders."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import click

from ..schemas.label_errors import QUALITIES, WAYS
from ..schemas.wording import in_shell
from .base import (
    FOR_PEOPLE,
    WithOptions,
    applying,
    arguments,
    print_finding,
    print_messages,
    progress_line,
    with_format,
    with_tables,
)

Check = Callable[..., None]


def _command(
    find: str,
    *options: Any,
    argument: str = "run",
    name: str | None = None,
    check: Check | None = None,
) -> Callable[[Callable[..., None]], click.Command]:
    """Make a command of a function that shows what a finder found.

    Options with the name of a parameter of the finder are passed to it, the others to the function.

    Args:
        find: module and name of the finder.
        options: decorators of click, in the order of the help.
        argument: name of the first argument in the help.
        name: of the command, if not that of the function.
        check: raises for options of the function that contradict each other; called with them, and
            ``options``, before the work.
    """

    def decorate(show: Callable[..., None]) -> click.Command:
        displayed = [one for one in inspect.signature(show).parameters if one != "finding"]

        def command(
            ground_truths: str | None,
            datums: str | None,
            labels: str | None,
            storage: tuple[str, ...],
            **fields: Any,
        ) -> None:
            module, _, function = find.rpartition(".")
            finder = getattr(import_module(f"..{module}", __package__), function)
            parameters = inspect.signature(finder).parameters
            run = fields.pop(argument)
            finder_options = {one: fields.pop(one) for one in [*fields] if one in parameters}
            display_options = {one: fields.pop(one) for one in displayed}
            keywords = arguments(storage, datums, labels, fields)
            if check is not None:
                check(options=keywords["options"], **display_options, **finder_options)
            with progress_line() as progress:
                finder_options |= {"progress": progress} if "progress" in parameters else {}
                finding = finder(run, ground_truths, **finder_options, **keywords)
            show(finding, **display_options)

        command.__doc__, command.__name__ = show.__doc__, show.__name__
        decorated = applying(
            click.argument(argument, type=click.Path()),
            click.argument("ground_truths", required=False, type=click.Path()),
            *options,
            with_tables,
        )(command)
        return click.command(name, cls=WithOptions)(decorated)

    return decorate


def _top(n: int, what: str = "How many to show.") -> Any:
    return click.option("--top", type=click.IntRange(1), default=n, show_default=True, help=what)


def _one_table(bins: bool, fit: bool, **_: Any) -> None:
    if bins and fit:
        raise click.UsageError("--bins and --fit are two tables: give one.")


@_command(
    "findings.calibration.find_calibration",
    click.option("--bins", is_flag=True, help="The reliability curve: every bin of every label."),
    click.option("--fit", is_flag=True, help="The isotonic fit: every block of every label."),
    with_format,
    check=_one_table,
)
def calibration(finding: Any, form: str, bins: bool, fit: bool) -> None:
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
    from ..report.show import show_frame

    if bins or fit:
        show_frame(finding.reliability if bins else finding.isotonic, form, name="calibration")
        print_messages(finding.messages)
    else:
        print_finding(finding, form)


@_command("findings.diagnose.diagnose", _top(10), with_format, argument="predictions")
def diagnose(finding: Any, form: str, top: int) -> None:
    """Name the most likely faults of a run or its tables.

    Warnings, labels that are confused, labels and slices worse than the rest, ground truths that
    are likely wrong, and duplicate datums, by how much of the error each explains.

    \b
    Example:
      evalengine diagnose preds.parquet gts.parquet --datums images.parquet
    """
    print_finding(finding.first(top), form)


def _of_rows(rows: bool, sort: str, to: str | None, out: str | None, **_: Any) -> None:
    if (to is None) != (out is None):
        raise click.UsageError("--to and --out belong together: give both.")
    if sort != "loss" and not rows and to is None:
        raise click.UsageError("--sort is of --rows: add it.")


@_command(
    "findings.errors.find_errors",
    _top(50),
    click.option("--rows", is_flag=True, help="Single rows that are wrong, with their boxes."),
    click.option(
        "--sort",
        type=click.Choice(("loss", "score")),
        default="loss",
        show_default=True,
        help="Order of rows: by how wrong their datums are, or by how sure predictions were.",
    ),
    with_format,
    click.option(
        "--to",
        type=click.Choice(("label-studio", "cvat", "coco")),
        help="Write the rows for a tool that shows images instead; coco is for FiftyOne.",
    ),
    click.option("-o", "--out", metavar="FILE", help="The file of --to."),
    check=_of_rows,
)
def errors(finding: Any, form: str, rows: bool, to: str | None, out: str | None) -> None:
    """List the errors of RUN, worst datums first.

    RUN is a folder that `score --out` wrote, or predictions, with GROUND_TRUTHS or as one table
    that contains both sides. Each datum is shown with its number and its errors; --rows lists the
    wrong predictions and the missed ground truths.

    \b
    Example:
      evalengine errors preds.parquet gts.parquet --top 20
      evalengine errors preds.parquet gts.parquet --rows --sort score \\
        --format csv
      evalengine errors preds.parquet gts.parquet --datums images.parquet \\
        --to cvat -o errors.xml
    """
    from ..findings.errors import ErrorRows
    from ..ingest.problems import count_of

    rows = rows or to is not None
    if rows and finding.rows is None:
        flag = "--rows" if to is None else "--to"
        raise click.UsageError(in_shell(f"{flag}: {finding.rowless}; omit {flag}."))
    notes = (*finding.messages, *(finding.row_messages if rows else ()))
    if to is not None:
        images = finding.write(to, out)
        click.echo(f"{out}: {count_of(len(finding.rows), 'error')} in {count_of(images, 'image')}")
        print_messages(notes)
    else:
        print_finding(ErrorRows(finding) if rows else finding, form, notes)


@click.command(cls=WithOptions)
@click.argument("predictions", required=False, type=click.Path())
@click.argument("ground_truths", required=False, type=click.Path())
@click.option("--number", metavar="NUMBER", help="Explain one number: 'AP[label=car,iou=0.5]'.")
@click.option("--rows", type=float, metavar="N", help="Forecast the cost of so many rows: 1e9.")
@click.option("--workers", type=int, metavar="N", help="Forecast the cost on so many workers.")
@with_tables
def explain(
    predictions: str | None,
    ground_truths: str | None,
    number: str | None,
    rows: float | None,
    workers: int | None,
    datums: str | None,
    labels: str | None,
    storage: tuple[str, ...],
    **fields: Any,
) -> None:
    """Print the steps that `score` would take.

    With --number, explain one number: its definition and rules, its support, the rows that were
    excluded, its bounds, and the rows behind it. PREDICTIONS may then be a folder that `score
    --out` wrote.

    With --rows or --workers, forecast CPU, time, memory and scratch of a run in bounded memory from
    measured runs, and the resource that ends first. Tables are optional; they show how large a row
    is.

    \b
    Example:
      evalengine explain preds.parquet gts.parquet --metric mAP --by weather
      evalengine explain --task detection --rows 1e9 --workers 32
      evalengine explain preds.parquet gts.parquet \\
        --number 'AP[label=car,iou=0.5]'
    """
    from ..api import explain as run

    more = arguments(storage, datums, labels, fields)
    click.echo(run(predictions, ground_truths, number=number, rows=rows, workers=workers, **more))


@_command(
    "findings.label_errors.find_label_errors",
    _top(50),
    click.option(
        "reasons",
        "--reason",
        multiple=True,
        metavar="REASON",
        callback=lambda _, __, value: value or None,
        help="Show only errors of this reason; repeatable.",
    ),
    click.option(
        "--filter-by",
        type=click.Choice(WAYS),
        help="In classification, the rule that picks datums [prune_by_noise_rate].",
    ),
    click.option(
        "--rank-by",
        type=click.Choice(QUALITIES),
        help="In classification, the score that orders them [normalized_margin].",
    ),
    with_format,
    name="label-errors",
)
def label_errors(finding: Any, form: str) -> None:
    """List ground truths that are likely wrong.

    The most suspicious come first. RUN is predictions, with GROUND_TRUTHS or as one table that
    contains both sides, or a folder that `score --metric LabelErrors --out` wrote. In
    classification labels are judged by confident learning, in detection by confident predictions
    that contradict them.

    \b
    Example:
      evalengine label-errors preds.parquet gts.parquet --top 20
      evalengine label-errors boxes.parquet truths.parquet --reason missing \\
        --format csv
    """
    print_finding(finding, form)


@_command(
    "findings.bounds.find_limits",
    click.option(
        "every",
        "--all",
        is_flag=True,
        help="Every row: also single labels, slices and numbers that do not move.",
    ),
    with_format,
    argument="predictions",
)
def limits(finding: Any, form: str, every: bool) -> None:
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
    # Machine-readable formats omit the notes but include every row.
    notes = None if form in FOR_PEOPLE else ()
    print_finding(finding.whole if every else finding, form, notes)


@_command(
    "findings.slices.find_slices",
    _top(20, "Slices to show."),
    click.option(
        "--levels",
        type=click.IntRange(1),
        default=3,
        show_default=True,
        help="Conditions of a slice at most.",
    ),
    click.option(
        "--least",
        type=click.IntRange(1),
        metavar="N",
        help="Datums of a slice at least; a hundredth of all unless given.",
    ),
    click.option(
        "--alpha",
        type=float,
        default=0.95,
        show_default=True,
        help="Weight of how bad a slice is against how large; 1: only how bad.",
    ),
    click.option(
        "--confirm", is_flag=True, help="Search one half of the datums, measure the other."
    ),
    with_format,
)
def slices(finding: Any, form: str) -> None:
    """Find the slices in which RUN is worst.

    RUN is a folder that `score --out` wrote, or predictions, with GROUND_TRUTHS or as one table
    that contains both sides. All slices of up to --levels conditions on the columns of the datums
    are searched for those whose datums are worst; the metric is then computed in each and
    elsewhere.

    \b
    Example:
      evalengine slices runs/monday --datums images.parquet
      evalengine slices preds.parquet gts.parquet --datums images.parquet \\
        --by weather,camera
    """
    print_finding(finding, form)


@_command(
    "findings.plan.find_plan",
    click.option("--half-width", type=float, metavar="WIDTH", help="Half of an interval's length."),
    click.option("--detect", type=float, metavar="DIFFERENCE", help="Difference to find."),
    click.option(
        "--power", type=float, default=0.8, show_default=True, help="Probability of finding it."
    ),
    click.option("--against", metavar="RUN", type=click.Path(), help="The run to compare with."),
    with_format,
)
def plan(finding: Any, form: str) -> None:
    """Plan how many datums, clusters and positives are needed, from a pilot RUN.

    --half-width is for the interval of each number. --detect is for a comparison of two runs over
    the same datums: --against is a second pilot run. `factor` is the needed data as a multiple of
    these.

    \b
    Example:
      evalengine plan runs/pilot --half-width 0.01
      evalengine plan runs/new --against runs/old --detect 0.005 --power 0.9 \\
        --cluster video
    """
    print_finding(finding, form)


def _one_rule(output: str | None, options: Any, **_: Any) -> None:
    if output is not None and len(options.metrics or ()) != 1:
        raise click.UsageError("--output is of one rule: name it with --metric.")


@_command(
    "findings.thresholds.find_thresholds",
    click.option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write the thresholds of one --metric for `score --thresholds`: .json, .csv or"
        " .parquet.",
    ),
    with_format,
    check=_one_rule,
)
def thresholds(finding: Any, form: str, output: str | None) -> None:
    """Find the best score threshold of each label.

    RUN is a folder that `score --out` wrote, or predictions, with GROUND_TRUTHS or as one table
    that contains both sides. --metric names the rules: ThresholdAtMaxF, ThresholdAtPrecision,
    ThresholdAtRecall, ThresholdAtFPR (classification), ThresholdAtCost, ThresholdAtEqualError; by
    default all. Each threshold comes with its result on data that did not choose it.

    \b
    Example:
      evalengine thresholds preds.parquet gts.parquet --metric ThresholdAtMaxF \\
        -o best.json
      evalengine score preds.parquet gts.parquet --thresholds best.json
    """
    print_finding(finding, form)
    if output is not None:
        from ..ingest.problems import count_of

        click.echo(f"{output}: {count_of(finding.save(output), 'threshold')}", err=True)
