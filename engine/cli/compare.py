"""The command ``compare``, and gates of ``score`` and ``compare``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._version import __version__
from .base import STATE, WithOptions, applying, arguments, progress_line, with_tables
from .completion import completes

if TYPE_CHECKING:
    from ..evaluation.planner import Plan
    from ..jobs.verdicts import Verdict
    from ..schemas.options import Options
    from ..scorecard.card import Scorecard
    from ..statistics.comparison import Comparison

# Gates of the commands ``score`` and ``compare``, and how they are reported to CI.

with_junit = click.option(
    "--junit", metavar="FILE", type=click.Path(dir_okay=False), help="Write gates as JUnit XML."
)
with_gates = applying(
    click.option(
        "gates",
        "--fail-under",
        multiple=True,
        metavar="GATE",
        shell_complete=completes("metrics"),
        help="Exit with 1 unless it is true; repeatable. E.g. 'mAP[iou=0.5] >= 0.42',"
        " 'recall[label=cat] >= baseline - 0.01', 'F1[weather=*] > 0.8', 'mAP >= baseline -"
        " 0.01 surely'.",
    ),
    click.option(
        "fail_if",
        "--fail-if",
        multiple=True,
        metavar="GATE",
        shell_complete=completes("metrics"),
        help="Exit with 1 if it is true; repeatable. E.g. 'mAP < baseline surely'.",
    ),
    with_junit,
)


def check_junit(junit: str | None) -> None:
    """Refuse a file that cannot be written, before the work."""
    if junit is not None and not os.access(Path(junit).absolute().parent, os.W_OK):
        raise click.UsageError(f"--junit {junit}: its folder does not exist, or cannot be written.")


class Keeper:
    """Gates of ``score``, parsed before any work.

    Args:
        gates: conditions that must be true.
        fail_if: conditions that must be false.
        baseline: folder of an earlier result.
        junit: file for verdicts.
        report: file of the report, which also shows the baseline.

    Attributes:
        options: of the run, with the intervals that gates need.
        earlier: the earlier result; None without one.

    Raises:
        OptionError: a gate that cannot be parsed, or about a number that is not computed.
        ResultError: the baseline is no result, or has no data for these gates.
    """

    def __init__(
        self,
        gates: Sequence[str],
        fail_if: Sequence[str],
        baseline: str | None,
        options: Options,
        junit: str | None,
        executor: str | None,
        report: str | None = None,
    ) -> None:
        self.options = options
        self._gates: Sequence[Any] = ()
        self.earlier: Scorecard | None = None
        check_junit(junit)
        if not gates and not fail_if:
            if baseline is not None and report is None:
                raise click.UsageError(
                    "--baseline is for gates and the report: add --fail-under GATE or --report."
                )
            if junit is not None:
                raise click.UsageError("--junit is for gates: add --fail-under GATE.")
            if baseline is not None:
                self.earlier = scored(baseline)
            return
        from ..jobs.gates import check_gates, parse_gates
        from ..jobs.verdicts import hold, refuse_workers, with_intervals

        self._gates = parse_gates(gates, fail_if)
        check_gates(self._gates, options)
        refuse_workers(self._gates, executor)
        self.options = with_intervals(options, self._gates)
        needing = [gate for gate in self._gates if gate.needs_baseline]
        if needing and baseline is None:
            raise click.UsageError(
                f"gate {needing[0].text!r} needs a baseline: name an earlier result with"
                " --baseline DIR."
            )
        if baseline is not None:
            self.earlier = scored(baseline)
            hold(self._gates, self.earlier)

    def check(self, plan: Plan, own: Sequence[str]) -> None:
        """Refuse gates about no metric of any task, nor an own one."""
        if self._gates:
            from ..jobs.gates import refuse_unknown

            refuse_unknown(self._gates, plan, own)

    def note(self, card: Scorecard) -> None:
        """Report changes since the baseline."""
        if self.earlier is not None:
            from ..comparing import note_changes

            gated = any(gate.needs_baseline for gate in self._gates)
            note_changes(self.earlier, card, gated=gated)

    def judge(self, card: Scorecard) -> list[Verdict]:
        """The verdicts on a scorecard."""
        if not self._gates:
            return []
        from ..jobs.verdicts import (
            compare_with,
            judge_gates,
            means_differ_in_datums,
            numbers_of,
            watch_of,
        )

        earlier = self.earlier
        return judge_gates(
            self._gates,
            numbers_of(card),
            None if earlier is None else numbers_of(earlier),
            compare=compare_with(earlier, card),
            differ=means_differ_in_datums(earlier, card),
            watch=watch_of(self._gates, card, earlier),
        )


def scored(folder: str) -> Scorecard:
    """Return the saved scorecard in a folder.

    Raises:
        ResultError: there is none, or the folder contains a comparison.
    """
    from ..jobs.reports import scored_in

    return scored_in(folder)


def compared_gates(
    gates: Sequence[str],
    fail_if: Sequence[str],
    runs: Sequence[str],
    options: Options,
    junit: str | None,
    names: Sequence[str] | None = (),
) -> Callable[[Comparison], list[Verdict]]:
    """Return a function that applies gates to a comparison: the first run is the baseline.

    Args:
        names: of the runs; None if the table knows them.

    Raises:
        OptionError: a gate that cannot be parsed, or about a number that is not computed.
    """
    check_junit(junit)
    if not gates and not fail_if:
        if junit is not None:
            raise click.UsageError("--junit is for gates: add --fail-under GATE.")
        return lambda comparison: []
    two = click.UsageError("gates are of two runs: the first is the baseline of the second.")
    if names is not None and len(names) != 2:
        raise two
    from ..jobs.gates import check_gates, parse_gates, refuse_ranges
    from ..jobs.verdicts import compared_numbers, judge_gates, refuse_own_intervals
    from ..run import is_saved
    from ..scorecard.card import load

    parsed = parse_gates(gates, fail_if)
    refuse_own_intervals(parsed)
    saved = load(runs[-1]) if is_saved(runs[-1]) else None
    if saved is not None:
        options = options.replace(
            by=options.by or saved.options.by,
            metrics=options.metrics or tuple(saved.directions),
            task=saved.task,
            dialect=saved.dialect,
        )
    check_gates(parsed, options)

    def judge(comparison: Comparison) -> list[Verdict]:
        if len(comparison.runs) != 2:
            raise two
        refuse_ranges(parsed, comparison.task)
        earlier, run, margins = compared_numbers(
            comparison, None if saved is None else saved.labels
        )
        gaps = (margins.rows["coverage"].fill_null(1.0) < 1).any()
        return judge_gates(
            parsed, run, earlier, compare=lambda metrics, slices: margins, differ=gaps
        )

    return judge


def markdown_of(card: Scorecard) -> str:
    """A scorecard for GitHub's summary."""
    from ..report.summary import markdown

    return markdown(card)


def annotate_error(message: str) -> None:
    """Annotate a run of GitHub Actions with a fatal error."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        from ..jobs.reports import command

        click.echo(command("error", "evalengine", message), err=True)


def report_gates(
    verdicts: Sequence[Verdict],
    *,
    about: Mapping[str, object],
    junit: str | None = None,
    form: str | None = None,
    warnings: Sequence[str] = (),
    notice: str = "",
    result: Callable[[], str] = str,
    table: str = "err",
) -> bool:
    """Report the verdicts of gates: as a table, a JUnit file, and on GitHub if requested or
    detected.

    Args:
        about: properties of the run: task, dialect and so on.
        junit: path for JUnit XML.
        form: output format of the command.
        warnings: of the run, for GitHub.
        notice: one-line result, for GitHub.
        result: makes the Markdown result for GitHub's summary.
        table: ``err`` or ``out``, the stream for the table; no table if empty.

    Returns:
        whether a gate failed.
    """
    if junit is not None:
        from ..jobs.reports import write_junit

        write_junit(junit, verdicts, "evalengine", about)
    if verdicts and table:
        from ..jobs.reports import gates_table

        click.echo(gates_table(verdicts), err=table == "err" or form == "github", nl=False)
    if form == "github" or (form == "table" and os.environ.get("GITHUB_ACTIONS") == "true"):
        from ..jobs.reports import summarise, workflow_commands

        err = table == "err" and form != "github"
        click.echo(workflow_commands(verdicts, warnings, notice), err=err, nl=False)
        if not summarise(verdicts, result()) and form == "github":
            click.echo("GITHUB_STEP_SUMMARY is not set: no summary is written", err=True)
    if not verdicts:
        return False
    from ..jobs.verdicts import failed

    return bool(failed(verdicts))


# The command that compares runs.

_GATE_FAILED = 1
_FORMATS = ("table", "markdown", "latex", "json", "csv", "parquet", "github")


def _check_report(path: str, runs: Sequence[str], names: Sequence[str]) -> None:
    """Refuse a report that cannot be written, before the work."""
    from ..reporting import check_report
    from ..run import is_saved

    check_report(path)
    if len(runs) != 2 or not all(map(is_saved, runs)) or len(set(names)) == 1:
        raise click.UsageError(
            "--report is of two saved runs: write them with `evalengine score --out DIR`."
        )


def _write_report(
    path: str, runs: Sequence[str], verdicts: Sequence[Verdict], options: Options
) -> None:
    """Write the page of a saved run with another as its baseline."""
    from ..jobs.reports import report

    with progress_line() as progress:
        page = report(
            runs[1],
            path,
            baseline=runs[0],
            verdicts=verdicts,
            options=options.replace(intervals=None),
            progress=progress,
        )
    click.echo(f"the report is in {page}", err=True)


@click.command(cls=WithOptions)
@click.argument("runs", nargs=-1, required=True, type=click.Path())
@click.option(
    "ground_truths",
    "-g",
    "--ground-truths",
    "--qrels",
    metavar="PATH",
    type=click.Path(),
    help="Ground truths, if runs are tables of predictions only.",
)
@click.option("names", "--name", multiple=True, help="Name of a run; once per run.")
@click.option(
    "predictions",
    "--predictions",
    metavar="COLUMN,...",
    multiple=True,
    help="Columns of predictions in one table, one per model; each is a run. Columns of scores:"
    " --columns A=score,B=score.",
)
@click.option(
    "--model", metavar="COLUMN", help="Column of models in one table; the rows of each are a run."
)
@click.option(
    "--replicate",
    metavar="COLUMN",
    help="Column of seeds or checkpoints of a model. Runs with the same --name are such, too.",
)
@click.option("--common", is_flag=True, help="Skip datums that not all runs have.")
@click.option(
    "--adjust",
    type=click.Choice(("holm", "bh", "none")),
    default="holm",
    show_default=True,
    help="How p-values of several numbers are adjusted.",
)
@click.option(
    "--test",
    type=click.Choice(("randomisation", "t", "mcnemar", "delong")),
    default="randomisation",
    show_default=True,
    help="Test: of any number, means over datums, shares of datums, ROC AUC.",
)
@click.option(
    "--missing",
    type=click.Choice(("skip", "zero", "worst")),
    default="skip",
    show_default=True,
    help="How means count datums of which only some runs have a value.",
)
@click.option("-o", "--out", metavar="DIR", help="Write the comparison into a folder.")
@click.option("--overwrite", is_flag=True, help="Let --out replace an earlier comparison.")
@click.option(
    "form", "--format", type=click.Choice(_FORMATS), default="table", help="How to print it."
)
@click.option(
    "frame",
    "--frame",
    type=click.Choice(("differences", "flips")),
    help="Print the rows of a frame instead, as csv unless --format is json, parquet or markdown.",
)
@click.option(
    "report",
    "--report",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="HTML page about the second of two saved runs, with the first as its baseline.",
)
@with_gates
@with_tables
def compare(
    runs: tuple[str, ...],
    ground_truths: str | None,
    names: tuple[str, ...],
    predictions: tuple[str, ...],
    model: str | None,
    replicate: str | None,
    common: bool,
    adjust: str,
    test: str,
    missing: str,
    out: str | None,
    overwrite: bool,
    form: str,
    frame: str | None,
    report: str | None,
    gates: tuple[str, ...],
    fail_if: tuple[str, ...],
    junit: str | None,
    datums: str | None,
    labels: str | None,
    storage: tuple[str, ...],
    **fields: Any,
) -> int:
    """Compare RUNS on the same datums: are differences larger than chance?

    A run is a folder that `score --out` wrote, or predictions, with --ground-truths or as one table
    that contains both sides. One table may have several models, in columns or rows. Differences are
    the second run minus the first; with more than two runs every pair is compared. Gates compare
    the second of two runs with the first.

    \b
    Example:
      evalengine compare runs/monday runs/tuesday
      evalengine compare a.parquet b.parquet -g gts.parquet --by weather
      evalengine compare a.csv b.csv -g gts.csv --cluster video --format markdown
      evalengine compare forecasts.parquet --predictions AutoARIMA,AutoETS
      evalengine compare runs/a runs/b --fail-under 'mAP >= baseline - 0.01 surely'
    """
    STATE["finish"] = bool(gates or fail_if or out or report)
    keywords = arguments(storage, datums, labels, fields)
    from .options import Listed

    columns = [one for text in predictions for one in Listed(str).convert(text, None, None)]
    if form == "github" and frame:
        raise click.UsageError("--format github prints the comparison: omit --frame.")
    several = names or columns or (runs if model is None else None)
    judge = compared_gates(gates, fail_if, runs, keywords["options"], junit, several)
    if report is not None:
        _check_report(report, runs, names)
    with progress_line() as progress:
        from ..comparing import compare as run

        result = run(
            *runs,
            ground_truths=ground_truths,
            names=names or None,
            predictions=columns or None,
            model=model,
            replicate=replicate,
            common=common,
            adjust=adjust,
            test=test,
            missing=missing,
            progress=progress,
            **keywords,
        )
        if out is not None:
            result.save(out, overwrite=overwrite)
    if frame is not None:
        from ..report.show import show_frame

        table_form = "csv" if form in ("table", "latex") else form
        show_frame(getattr(result, frame), table_form, name=frame)
    elif form != "github":
        from ..report.show import show_comparison

        show_comparison(result, form)
    if frame is not None or form in ("csv", "parquet", "latex"):
        from ..report.text import plain

        for note in result.notes:
            click.echo(f"note: {plain(note)}", err=True)
    if out is not None:
        click.echo(f"differences, flips and comparison.json are in {out}", err=True)
    sys.stdout.flush()
    from ..report.show import as_markdown

    verdicts = judge(result)
    if report is not None:
        _write_report(report, runs, verdicts, keywords["options"])
    failed = report_gates(
        verdicts,
        about={
            "evalengine": __version__,
            "task": result.task,
            "dialect": result.dialect,
            "datums": result.n,
        },
        junit=junit,
        form=None if frame else form,
        warnings=result.warnings,
        notice=result.verdict,
        result=lambda: as_markdown(result),
    )
    return _GATE_FAILED if failed else 0
