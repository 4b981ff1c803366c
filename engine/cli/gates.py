"""Gates of the commands ``score`` and ``compare``, and how they are reported to CI."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ..jobs.verdicts import Verdict
    from ..schemas.options import Options
    from ..scorecard.card import Scorecard
    from ..statistics.comparison import Comparison

C = TypeVar("C", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "gates",
        "--fail-under",
        multiple=True,
        metavar="GATE",
        help="Exit with 1 unless it holds; repeatable. E.g. 'mAP[iou=0.5] >= 0.42',"
        " 'recall[label=cat] >= baseline - 0.01', 'F1[weather=*] > 0.8',"
        " 'mAP >= baseline - 0.01 surely'.",
    ),
    click.option(
        "fail_if",
        "--fail-if",
        multiple=True,
        metavar="GATE",
        help="Exit with 1 if it holds; repeatable. E.g. 'mAP < baseline surely'.",
    ),
)
_junit = click.option(
    "--junit", metavar="FILE", type=click.Path(dir_okay=False), help="Write gates as JUnit XML."
)


def with_gates(command: C) -> C:
    """The options of gates."""
    for option in reversed((*_OPTIONS, _junit)):
        command = option(command)
    return command


with_junit = _junit


def check_junit(junit: str | None) -> None:
    """Refuse a file that cannot be written, before the work."""
    if junit is not None and not os.access(Path(junit).absolute().parent, os.W_OK):
        raise click.UsageError(f"--junit {junit}: its folder is not there, or cannot be written.")


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
        from ..jobs.checking import check_gates
        from ..jobs.gates import parse_gates
        from ..jobs.surely import hold, refuse_workers, with_intervals

        self._gates = parse_gates(gates, fail_if)
        check_gates(self._gates, options)
        refuse_workers(self._gates, executor)
        self.options = with_intervals(options, self._gates)
        needing = [gate for gate in self._gates if gate.needs_baseline]
        if needing and baseline is None:
            raise click.UsageError(
                f"gate {needing[0].text!r} speaks of a baseline: say which earlier result with"
                " --baseline DIR."
            )
        if baseline is not None:
            self.earlier = scored(baseline)
            hold(self._gates, self.earlier)

    def judge(self, card: Scorecard) -> list[Verdict]:
        """The verdicts on a scorecard."""
        if not self._gates:
            return []
        from ..jobs.surely import answer_apart, compare_with
        from ..jobs.verdicts import judge_gates, numbers_of

        earlier = self.earlier
        return judge_gates(
            self._gates,
            numbers_of(card),
            None if earlier is None else numbers_of(earlier),
            compare=compare_with(earlier, card),
            apart=answer_apart(earlier, card),
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
) -> Callable[[Comparison], list[Verdict]]:
    """Return a function that applies gates to a comparison: the first run is the baseline.

    Raises:
        OptionError: a gate that cannot be parsed, or about a number that is not computed.
    """
    check_junit(junit)
    if not gates and not fail_if:
        if junit is not None:
            raise click.UsageError("--junit is for gates: add --fail-under GATE.")
        return lambda comparison: []
    if len(runs) != 2:
        raise click.UsageError("gates are of two runs: the first is the baseline of the second.")
    from ..held_runs import is_saved
    from ..jobs.checking import check_gates
    from ..jobs.gates import parse_gates
    from ..jobs.surely import compared_numbers, refuse_own_intervals
    from ..jobs.verdicts import judge_gates
    from ..scorecard.card import load

    parsed = parse_gates(gates, fail_if)
    refuse_own_intervals(parsed)
    saved = load(runs[1]) if is_saved(runs[1]) else None
    if saved is not None:
        options = options.replace(
            by=options.by or saved.options.by,
            metrics=options.metrics or tuple(saved.directions),
            task=saved.task,
            dialect=saved.dialect,
        )
    check_gates(parsed, options)

    def judge(comparison: Comparison) -> list[Verdict]:
        earlier, run, margins = compared_numbers(
            comparison, None if saved is None else saved.labels
        )
        gaps = (margins.rows["coverage"].fill_null(1.0) < 1).any()
        return judge_gates(
            parsed, run, earlier, compare=lambda metrics, slices: margins, apart=gaps
        )

    return judge


def on_github(form: str | None) -> bool:
    """Return whether to write GitHub annotations: by format, or for tables within GitHub
    Actions.
    """
    return form == "github" or (form == "table" and os.environ.get("GITHUB_ACTIONS") == "true")


def markdown_of(card: Scorecard) -> str:
    """A scorecard for GitHub's summary."""
    from ..report.summary import markdown

    return markdown(card)


def told_error(said: str) -> None:
    """Annotate a run of GitHub Actions with a fatal error."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        from ..jobs.github import command

        click.echo(command("error", "evalengine", said), err=True)


def told_gates(
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
        from ..jobs.junit import write_junit

        write_junit(junit, verdicts, "evalengine", about)
    if verdicts and table:
        from ..jobs.showing import gates_table

        click.echo(gates_table(verdicts), err=table == "err" or form == "github", nl=False)
    if on_github(form):
        from ..jobs.github import summarise, workflow_commands

        err = table == "err" and form != "github"
        click.echo(workflow_commands(verdicts, warnings, notice), err=err, nl=False)
        if not summarise(verdicts, result()) and form == "github":
            click.echo("GITHUB_STEP_SUMMARY is not set: no summary is written", err=True)
    if not verdicts:
        return False
    from ..jobs.verdicts import failed

    return bool(failed(verdicts))
