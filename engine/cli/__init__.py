"""Thin command-line layer. Commands import on call, so that ``--help`` imports only click."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from .._version import __version__
from .base import (
    FORMATS,
    STATE,
    Commands,
    OutputRefused,
    PipeClosed,
    WithOptions,
    arguments,
    debug,
    print_notes,
    progress_line,
    with_tables,
)
from .compare import Keeper, annotate_error, compare, markdown_of, report_gates, with_gates
from .completion import completes
from .findings import (
    calibration,
    diagnose,
    errors,
    explain,
    label_errors,
    limits,
    plan,
    slices,
    thresholds,
)
from .jobs import history, run
from .judge import judge
from .outputs import convert, demo, plot, report, verify, with_images, written

if TYPE_CHECKING:
    from ..schemas.named import Task

DONE, GATE_FAILED, BAD_INPUT, FAILED, INTERRUPTED = 0, 1, 2, 3, 130

_FORMATS = (*FORMATS, "github")
_EXPORTS = (
    *("coco", "continuous-eval", "openmetrics", "otlp", "panoptic", "phoenix", "ragas", "remem"),
    *("trec", "valor"),
)
_FRAMES = (
    *("metrics", "curves", "examples", "confusion", "outcomes", "errors", "per_datum"),
    *("to_label", "spread"),
)
_LISTINGS = ("text", "json", "csv", "markdown")


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="evalengine")
@click.option(
    "--no-plugins",
    is_flag=True,
    help="Run no code of other packages: own metrics, readers, executors.",
)
@debug
def cli(*, no_plugins: bool) -> None:
    """Score predictions against ground truths, table against table.

    \b
    Example:
      evalengine score predictions.parquet ground_truths.parquet
      evalengine score detections.json instances.json --dialect coco

    Exit status: 0 done, 1 a gate failed, 2 wrong usage or bad input, 3 anything else.
    """
    if no_plugins:
        os.environ["EVALENGINE_NO_PLUGINS"] = "1"


@cli.command()
def plugins() -> None:
    """List metrics, readers and executors of installed packages, without importing them.

    \b
    Example:
      evalengine plugins
    """
    from ..metrics.own import plugins as installed

    lines = [
        f"{group}  {name}  {entry.value}"
        for group in ("metrics", "readers", "executors")
        for name, entry in sorted(installed(group).items())
    ]
    click.echo("\n".join(lines) or "no installed package has any")


@cli.command(cls=WithOptions)
@click.argument("predictions", type=click.Path())
@click.argument("ground_truths", required=False, type=click.Path())
@click.option("-o", "--out", metavar="DIR", help="Write all frames and run.json into a folder.")
@click.option("--overwrite", is_flag=True, help="Let --out replace an earlier result.")
@click.option(
    "form",
    "--format",
    type=click.Choice(_FORMATS),
    help="Output format; default: table, or csv with --frame. github: annotations and a step"
    " summary for GitHub Actions.",
)
@click.option(
    "frame",
    "--frame",
    type=click.Choice(_FRAMES),
    help="Print this frame instead, in any of the formats; csv unless --format is given.",
)
@click.option(
    "--export",
    type=click.Choice(_EXPORTS),
    help="Print another tool's shape instead: JSON, or the text of trec and openmetrics.",
)
@click.option(
    "--sort",
    metavar="COLUMN",
    help="Order of labels and slices: value (worst first), label, support, or a column's title.",
)
@click.option("--top", metavar="N", help="Rows of each table; all for every row.")
@click.option("--wide", is_flag=True, help="Every column, whatever the terminal's width.")
@click.option(
    "--report", metavar="FILE", type=click.Path(dir_okay=False), help="Write an HTML page about it."
)
@with_images
@with_gates
@click.option(
    "--baseline",
    metavar="DIR",
    help="Earlier result (--out) that gates and the report call the baseline.",
)
@click.option(
    "--executor",
    metavar="NAME",
    help="Executor (threads, processes, dask, ray, or that of a plugin); threads.",
)
@click.option("--address", metavar="URL", help="Scheduler of --executor dask; a local one if none.")
@click.option("--strict", "warned", is_flag=True, help="Exit with 1 if there is a warning.")
@with_tables
def score(
    predictions: str,
    ground_truths: str | None,
    out: str | None,
    overwrite: bool,
    form: str | None,
    frame: str | None,
    export: str | None,
    sort: str | None,
    top: str | None,
    wide: bool,
    report: str | None,
    images: str | None,
    gates: tuple[str, ...],
    fail_if: tuple[str, ...],
    junit: str | None,
    baseline: str | None,
    executor: str | None,
    address: str | None,
    warned: bool,
    datums: str | None,
    labels: str | None,
    storage: tuple[str, ...],
    **fields: Any,
) -> int:
    """Score PREDICTIONS against GROUND_TRUTHS.

    Prints the metrics. In many tasks one table may contain both sides; the task follows from the
    columns. A table is a path or glob of Parquet, Arrow IPC, CSV or JSONL; COCO's JSON; a folder of
    YOLO, Pascal VOC, CVAT, LabelMe or DOTA labels, or of label maps; a TREC run. `score --help
    TASK` shows the options of a task.

    \b
    Example:
      evalengine score preds.parquet gts.parquet --by weather --out runs/monday
      evalengine score runs/predict/labels data/labels/val
      evalengine score preds.csv gts.csv --metric mAP,AP --iou 0.5,0.75 \\
        --format json
      evalengine score preds.csv gts.csv --fail-under 'mAP[iou=0.5] >= 0.42'
    """
    STATE["finish"] = bool(gates or fail_if or warned or out or report)
    keywords = arguments(storage, datums, labels, fields)
    if export is not None and (form or frame):
        raise click.UsageError("--export has a fixed format: omit --format and --frame.")
    if form == "github" and frame:
        raise click.UsageError("--format github prints the whole result: omit --frame.")
    form = form or ("table" if frame is None else "csv")
    if form == "parquet" and out is None and sys.stdout.isatty():
        raise click.UsageError("--format parquet on a terminal needs --out DIR, or a pipe.")
    from ..report.tables import look as looked

    look = looked(sort, top, wide=wide)
    if out is not None:
        from ..scorecard.storage import check_target

        check_target(out, overwrite=overwrite)
    if report is not None:
        from ..reporting import check_report

        check_report(report)
    elif images is not None:
        raise click.UsageError("--images is for the report: add --report FILE.")
    keeper = Keeper(gates, fail_if, baseline, keywords["options"], junit, executor, report)
    keywords["options"] = keeper.options
    with progress_line() as progress:
        from ..ingest.opening import Tables
        from ..run import score_tables

        options = keywords.pop("options")
        card = score_tables(
            Tables(predictions, ground_truths, **keywords),
            options,
            executor=executor,
            address=address,
            progress=progress,
            # A default set that is kept can be reported on later.
            paged=report is not None or (out is not None and options.metrics is None),
            planned=keeper.check,
        )
        keeper.note(card)
        card.require_frame(frame or "metrics")
        if out is not None:
            if progress:
                progress("writing")
            card.save(out, overwrite=overwrite)
    refused = None
    if export is not None:
        from ..exports.rows import as_text

        click.echo(as_text(card, export), nl=False)
        print_notes(card)
    elif form != "github" and (form != "parquet" or not sys.stdout.isatty()):
        from ..report.show import show_anyhow, show_frame

        if frame is None:
            refused = show_anyhow(card, form, look, written=out is not None)
        else:
            show_frame(card.frame(frame), form, name=frame, card=card)
        if frame is not None or form in ("csv", "parquet"):
            print_notes(card)
        if frame is None and form in ("csv", "parquet"):
            from ..report.summary import also_made

            if extra_frames := also_made(card, written=out is not None):
                click.echo(extra_frames, err=True)
    if out is not None:
        from ..scorecard.storage import tally_bytes

        n_bytes = tally_bytes(out)
        size = f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 1e5 else f"{n_bytes / 1e3:.0f} kB"
        message = f", with {size} for comparing" if n_bytes else ""
        click.echo(f"{', '.join(card.frames)} and run.json are in {out}{message}", err=True)
    verdicts = keeper.judge(card)
    if report is not None:
        written(
            report,
            card,
            baseline=keeper.earlier,
            named=baseline,
            verdicts=verdicts,
            images=images,
            folder=out,
        )
    failed = report_gates(
        verdicts,
        about={"evalengine": __version__, "task": card.task, "dialect": card.dialect, **card.read},
        junit=junit,
        form=None if frame or export else form,
        warnings=card.warnings,
        result=lambda: markdown_of(card),
    )
    if refused is not None:
        raise refused
    return GATE_FAILED if failed or (warned and card.warnings) else DONE


for _command in (
    demo,
    run,
    history,
    compare,
    diagnose,
    errors,
    label_errors,
    limits,
    plan,
    slices,
    thresholds,
    calibration,
    convert,
    report,
    plot,
    verify,
):
    cli.add_command(_command)


@cli.command(cls=WithOptions)
@click.argument("predictions", type=click.Path())
@click.argument("ground_truths", required=False, type=click.Path())
@click.option("form", "--format", type=click.Choice(("text", "json")), default="text")
@with_tables
def check(
    predictions: str,
    ground_truths: str | None,
    form: str,
    datums: str | None,
    labels: str | None,
    storage: tuple[str, ...],
    **fields: Any,
) -> int:
    """Read and check the tables without scoring them.

    Exits with 1 if a warning means that the numbers would be meaningless.

    \b
    Example:
      evalengine check preds.parquet gts.parquet
    """
    from ..api import check as run
    from ..report import show
    from ..schemas.errors import EvalengineError
    from ..schemas.wording import in_shell

    try:
        report = run(predictions, ground_truths, **arguments(storage, datums, labels, fields))
    except EvalengineError as error:
        if form == "json":
            click.echo(show.refused(in_shell(error.message)))
        raise
    click.echo(show.checked(report, form))
    return GATE_FAILED if report.warnings else DONE


cli.add_command(explain)


@cli.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN RUN ...")
@click.option("--method", default="rrf", show_default=True, metavar="NAME", help="See below.")
@click.option(
    "--normalisation", metavar="NAME", help="Normalisation of scores, for methods that use them."
)
@click.option("--weights", metavar="X,...", help="One number for each run.")
@click.option("--k", type=float, default=60.0, show_default=True, help="Constant of rrf.")
@click.option(
    "--persistence", type=float, default=0.8, show_default=True, help="Persistence of rbc."
)
@click.option("--gamma", type=float, default=1.0, show_default=True, help="Exponent of gmnz.")
@click.option("--columns", multiple=True, metavar="MINE=NAME", help="Own column=its name here.")
@click.option("--tag", default="evalengine", show_default=True, help="Last field of TREC's lines.")
@click.option("-o", "--out", metavar="PATH", help="A .parquet or .run file; else lines of a run.")
@debug
def fuse(
    runs: tuple[str, ...],
    weights: str | None,
    columns: tuple[str, ...],
    tag: str,
    out: str | None,
    **given: Any,
) -> None:
    """Fuse runs of the same queries into one.

    The result is printed as a TREC run, or written. Methods: rrf, borda, isr, log_isr, rbc and
    condorcet take ranks; combsum, combmnz, combanz, combmax, combmin, combmed, gmnz, wsum and
    mixed take scores, after a normalisation by min-max, max, sum, zmuv, rank or borda.

    \b
    Example:
      evalengine fuse bm25.run dense.run --method rrf --out fused.run
      evalengine fuse bm25.run dense.parquet --method wsum \\
        --normalisation min-max --weights 0.3,0.7
    """
    from ..fusion import fuse as run
    from ..fusion import write
    from .options import Listed, Pairs

    weighed = None if weights is None else Listed(float).convert(weights, None, None)
    named = dict(pair for text in columns for pair in Pairs().convert(text, None, None))
    fused = run(runs, weights=weighed, columns=named or None, **given)
    if out is not None:
        write(fused, out, tag)
        click.echo(f"{out}: {fused.height} rows")
    else:
        from ..exports.trec import trec_lines

        click.echo(trec_lines(fused, tag), nl=False)


cli.add_command(judge)


@cli.command()
@click.argument("names", nargs=-1, shell_complete=completes("metrics"))
@click.option(
    "--task", metavar="NAME", shell_complete=completes("task"), help="Metrics of one task only."
)
@click.option("form", "--format", type=click.Choice(_LISTINGS), default="text", show_default=True)
@debug
def metrics(names: tuple[str, ...], task: str | None, form: str) -> None:
    """List every metric: definition, range, formula, source.

    \b
    Example:
      evalengine metrics mAP AR
      evalengine metrics --task detection --format csv
    """
    from ..api import metrics_table
    from ..report import show

    click.echo(show.metrics_listing(metrics_table(), names, task, form), nl=False)


@cli.command()
@click.argument("names", nargs=-1)
@click.option("form", "--format", type=click.Choice(_LISTINGS), default="text", show_default=True)
@debug
def schemas(names: tuple[str, ...], form: str) -> None:
    """Print the columns of tables and frames.

    `schemas job` prints the JSON Schema of a job file.

    \b
    Example:
      evalengine schemas predictions
      evalengine schemas metrics --format json
      evalengine schemas job > job.schema.json
    """
    if names == ("job",):
        import json

        from ..schemas.job import json_schema

        click.echo(json.dumps(json_schema(), indent=2))
        return
    from ..report import show

    click.echo(show.schemas_listing(names, form), nl=False)


@cli.command()
@click.option(
    "--task", metavar="NAME", shell_complete=completes("task"), help="Kernels of one task only."
)
@debug
def warmup(task: Task | None) -> None:
    """Compile every kernel now, for image builds.

    \b
    Example:
      RUN evalengine warmup
      RUN evalengine warmup --task retrieval
    """
    import time

    from ..api import warmup as run
    from ..kernels.folder import cache_folder

    begun = time.perf_counter()
    run(task)
    folder = cache_folder()
    location = f"kept in {folder}" if folder else "not kept: no folder can be written"
    click.echo(f"kernels compiled in {time.perf_counter() - begun:.1f} s, {location}")


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; errors become a message and an exit status.

    Args:
        args: arguments; by default those of the process.

    Returns:
        exit status: 0 done, 1 a gate failed, 2 usage or bad input, 3 temporary failures (a full
            disk, an endpoint that does not answer) and anything else.
    """
    from ..forked import ending_in_order

    STATE.update(dict.fromkeys(STATE, False))
    with ending_in_order():
        return _status_of(list(sys.argv[1:] if args is None else args))


def _status_of(argv: list[str]) -> int:
    """Run a command; return its exit status."""
    try:
        status = cli.main(argv or ["--help"], prog_name="evalengine", standalone_mode=False)
        return status if isinstance(status, int) else DONE
    except click.ClickException as error:
        error.show()
        return BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except PipeClosed:
        _let_go()
        return DONE
    except OutputRefused as error:
        _let_go()
        click.echo(f"evalengine: standard output cannot be written: {error.strerror}.", err=True)
        return FAILED
    except Exception as error:
        return _report(error)
    except BaseException as error:
        # A panic of compiled code is no Exception, and Python would end with 1, a failed gate's.
        if type(error).__name__ != "PanicException":
            raise
        return _report(error)


def _let_go() -> None:
    """Discard output that Python would flush to standard output at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(error: BaseException) -> int:
    from ..schemas.errors import PASSING, EvalengineError
    from ..schemas.wording import in_shell

    if STATE["debug"]:
        import traceback

        traceback.print_exc()
    ours = isinstance(error, EvalengineError)
    kind = "" if ours else f"{type(error).__name__}: "
    message = in_shell(error.message) if isinstance(error, EvalengineError) else str(error)
    click.echo(f"evalengine: {kind}{message}", err=True)
    annotate_error(f"{kind}{message}")
    if not ours and not STATE["debug"]:
        click.echo("This should not happen; --debug shows the traceback.", err=True)
    return BAD_INPUT if ours and not isinstance(error, PASSING) else FAILED
