"""Commands of scheduled jobs: ``run`` and ``history``."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

import click

from .base import STATE, Command, debug
from .compare import annotate_error, check_junit, markdown_of, report_gates, with_junit

if TYPE_CHECKING:
    from ..jobs.running import JobPlan, JobResult

_GATE_FAILED, _BAD_INPUT, _FAILED = 1, 2, 3
_SIGNALLED = 128


@click.command(cls=Command)
@click.argument("job")
@click.option(
    "changes",
    "--set",
    multiple=True,
    metavar="NAME=VALUE",
    help="Value of one of the job's variables; repeatable.",
)
@click.option("--force", is_flag=True, help="Score again even if finished.")
@click.option(
    "--wait",
    type=float,
    default=0.0,
    metavar="SECONDS",
    help="Wait for another run that writes the same folder; 0.",
)
@click.option("--dry-run", is_flag=True, help="Only print which files would be read and written.")
@click.option(
    "--log-format",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="Log lines, on standard error: for people, or a JSON object each.",
)
@click.option(
    "form",
    "--format",
    type=click.Choice(("table", "github")),
    default="table",
    show_default=True,
    help="Gates as a table, or as annotations and a step summary for GitHub Actions.",
)
@with_junit
@click.option("--quiet", is_flag=True, help="Print only warnings, errors and failed gates.")
@debug
def run(
    job: str,
    changes: tuple[str, ...],
    force: bool,
    wait: float,
    dry_run: bool,
    log_format: str,
    form: str,
    junit: str | None,
    quiet: bool,
) -> int:
    """Run JOB, a TOML file: inputs, options, gates, outputs.

    A finished run is not repeated. Results appear all at once, and two runs never write the
    same folder at a time. Exit status: 0 done, 1 a gate failed, 2 wrong job or input, 3
    anything else, such as another run at work; 143 after SIGTERM, 130 after SIGINT.

    \b
    Example:
      evalengine run nightly.toml
      evalengine run nightly.toml --set date=2026-11-20 --log-format json
    """
    from ..jobs.process import ERROR, LockedError, Stopped, log_to, stoppable
    from ..jobs.running import plan_job, run_job
    from ..schemas.errors import PASSING, EvalengineError
    from ..schemas.wording import in_shell

    STATE["finish"] = True
    strange = [pair for pair in changes if not pair.partition("=")[1]]
    if strange:
        raise click.BadParameter(f"--set {strange[0]!r} is not of the form name=value.")
    check_junit(junit)
    variables = dict(pair.split("=", 1) for pair in changes)
    tell = log_to(form=log_format, job=os.path.basename(job).removesuffix(".toml"), quiet=quiet)

    def echo(message: str) -> None:
        if log_format == "json":  # every line of standard error is JSON then
            tell(message, level=ERROR)
        else:
            click.echo(f"evalengine: {message}", err=True)
            annotate_error(message)

    try:
        with stoppable():
            if dry_run:
                click.echo(_planned(plan_job(job, variables)), nl=False)
                return 0
            done = run_job(job, variables=variables, force=force, wait=wait, tell=tell)
            _print_result(done, form, junit, quiet=quiet)
            return _GATE_FAILED if done.gate_failed else 0
    except EvalengineError as error:
        if STATE["debug"]:
            raise
        echo(in_shell(error.message))
        return _FAILED if isinstance(error, (LockedError, *PASSING)) else _BAD_INPUT
    except Stopped as stopped:
        echo(f"stopped by {stopped}")
        sys.stdout.flush()
        sys.stderr.flush()
        if "multiprocessing" in sys.modules:  # no process remains to receive their results
            import multiprocessing

            for child in multiprocessing.active_children():
                child.kill()
        if "evalengine.outofcore.memory" in sys.modules:  # the thread will not do so itself
            sys.modules["evalengine.outofcore.memory"].delete_open()
        # Not sys.exit: the thread that was at work would be waited for, or die with noise.
        os._exit(_SIGNALLED + stopped.signal)


@click.command(cls=Command)
@click.argument("job", type=click.Path(exists=True))
@click.option(
    "form",
    "--format",
    type=click.Choice(("text", "json", "csv", "openmetrics")),
    default="text",
    show_default=True,
    help="Lines and a table for people; a row per night and number; or gauges with timestamps.",
)
@click.option(
    "--top",
    type=click.IntRange(1),
    default=14,
    show_default=True,
    metavar="N",
    help="Nights in the table of the format text.",
)
@debug
def history(job: str, form: str, top: int) -> None:
    """Print the numbers of JOB's runs over time.

    JOB is a job file, a folder of runs, or the folder of a job's history. Each number has a line of
    its values, its last value, and the night since which it is certainly better or worse.
    `evalengine report JOB` writes a page of the same.

    \b
    Example:
      evalengine history nightly.toml
      evalengine history runs --format csv > history.csv
    """
    from ..jobs.history import trends
    from ..report.text import write_frame, write_text
    from ..report.trend import history_frame, history_gauges, history_text

    job_trends, unread = trends(job)
    for message in unread:
        click.echo(f"warning: {message}", err=True)
    if form == "text":
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        write_text(history_text(job_trends, width, top), sys.stdout)
    elif form == "openmetrics":
        write_text(history_gauges(job_trends), sys.stdout)
    else:
        write_frame(history_frame(job_trends), form, sys.stdout, "history", {})


def _print_result(done: JobResult, form: str, junit: str | None, *, quiet: bool) -> None:
    """Report the result of a job and the verdicts of its gates."""
    card = done.card
    silent = quiet and not done.gate_failed
    if not silent:
        how = "done" if done.ran else "finished before (--force repeats it)"
        message = f"{done.plan.loaded.job.name}: {how}, in {done.plan.path}"
        click.echo(message, err=form == "github")
    report_gates(
        done.verdicts,
        about={
            "job": done.plan.loaded.job.name,
            "run_id": done.plan.run_id,
            "task": card.task,
            "dialect": card.dialect,
            **card.read,
        },
        junit=junit,
        form=form,
        warnings=card.warnings,
        result=lambda: markdown_of(card),
        table="" if silent else "out",
    )


def _planned(plan: JobPlan) -> str:
    lines = [f"job       {plan.loaded.job.name}", f"run       {plan.run_id}"]
    if plan.tables.partitions:
        lines.append(f"parts     {', '.join(plan.tables.partitions)}")
    for role, files in plan.tables.files.items():
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        lines.append(f"input     {role.replace('_', ' ')}: {files[0].name}{more}")
    lines += [f"gate      {gate.title}" for gate in plan.loaded.gates]
    lines.append(f"output    {plan.path}")
    return "\n".join(lines) + "\n"
