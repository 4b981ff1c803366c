"""Gate results as text, JUnit XML, GitHub annotations and report pages."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl

from ..atomic import whole_file, written
from ..report.page import Gate, write_page
from ..report.text import as_text, markdown, plain, table_of
from ..report.trend import as_page
from ..reporting import check_report, make_report
from ..schemas.errors import OptionError, ResultError
from ..schemas.options import Options
from ..schemas.results import FAILED, SKIPPED
from ..schemas.wording import option
from ..scorecard.card import Scorecard, load
from .history import is_history, trends
from .records import read_success, recorded
from .verdicts import Verdict

# Verdicts for people: one line on all gates, and a table that begins with those that failed.

_ORDER = (FAILED, SKIPPED)


def gates_table(verdicts: Sequence[Verdict]) -> str:
    """Format all verdicts, failed ones first, with enough digits to distinguish numbers."""
    return f"{headline(verdicts)}\n{as_text(_frame(verdicts))}"


def headline(verdicts: Sequence[Verdict]) -> str:
    bad = sum(one.status == FAILED for one in verdicts)
    left = sum(one.status == SKIPPED for one in verdicts)
    message = f"{bad} of {len(verdicts)} failed" if bad else f"{len(verdicts) - left} passed"
    return f"gates: {message}" + (f", {left} skipped" if left else "")


def named(one: Verdict) -> str:
    """Return a gate's name, with its row if it has several."""
    return f"{one.gate} [{one.row}]" if one.row else one.gate


def sentence(one: Verdict) -> str:
    """Return the numbers behind a verdict, in one line."""
    parts = [
        f"{name} {_number(value)}"
        for name, value in (("value", one.value), ("bound", one.bound), ("baseline", one.baseline))
        if value is not None
    ]
    if one.level is not None:
        parts.append(f"{100 * one.level:g} % interval of the {_interval(one)}")
    if one.n is not None:
        parts.append(f"{one.n:,} datums")
    return "; ".join(filter(None, (", ".join(parts), one.reason)))


def ordered(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Verdicts, failed ones first."""
    return sorted(
        verdicts, key=lambda one: _ORDER.index(one.status) if one.status in _ORDER else len(_ORDER)
    )


def _frame(verdicts: Sequence[Verdict]) -> pl.DataFrame:
    rows = [
        {
            "status": one.status,
            "gate": plain(one.gate),
            "row": plain(one.row) or None,
            "value": _number(one.value),
            "bound": _number(one.bound),
            "baseline": _number(one.baseline),
            "interval": _interval(one) or None,
            "n": None if one.n is None else f"{one.n:,}",
            "reason": plain(one.reason) or None,
        }
        for one in ordered(verdicts)
    ]
    columns = ("status", "gate", "row", "value", "bound", "baseline", "interval", "n", "reason")
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String))


def _interval(one: Verdict) -> str:
    if one.lower is None or one.upper is None:
        return ""
    sign = "+" if one.interval_of == "difference" else ""
    return f"{one.interval_of} [{one.lower:{sign}.4f}, {one.upper:{sign}.4f}]"


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.6g}"


# Verdicts as JUnit XML, which CI servers read: a test case a verdict.

_NUMBERS = (
    "value",
    "bound",
    "baseline",
    "interval_of",
    "lower",
    "upper",
    "level",
    "n",
    "support",
    "coverage",
)


def write_junit(
    path: str | Path, verdicts: Sequence[Verdict], name: str, about: Mapping[str, object]
) -> None:
    """Write verdicts to a file, atomically.

    Raises:
        WriteError: the file cannot be written.
    """
    suite = ET.Element(
        "testsuite",
        name=plain(name),
        tests=str(len(verdicts)),
        failures=str(sum(one.status == FAILED for one in verdicts)),
        skipped=str(sum(one.status == SKIPPED for one in verdicts)),
        errors="0",
    )
    _properties(suite, about)
    for one in verdicts:
        case = ET.SubElement(suite, "testcase", classname=plain(name), name=plain(named(one)))
        numbers = {key: getattr(one, key) for key in _NUMBERS}
        _properties(case, {key: value for key, value in numbers.items() if value not in (None, "")})
        message = plain(sentence(one))
        if one.status == FAILED:
            ET.SubElement(case, "failure", message=message, type="gate").text = message
        elif one.status == SKIPPED:
            ET.SubElement(case, "skipped", message=message)
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    with written(path), whole_file(path, sweeps=True) as file:
        ET.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)
        file.write(b"\n")


def _properties(element: ET.Element, about: Mapping[str, object]) -> None:
    if about:
        group = ET.SubElement(element, "properties")
        for key, value in about.items():
            ET.SubElement(group, "property", name=key, value=plain(str(value)))


# Verdicts for GitHub Actions: workflow commands that annotate a run, and the step's summary.
#
# https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands

_KINDS = {FAILED: "error", SKIPPED: "warning"}
_SUMMARY = "GITHUB_STEP_SUMMARY"
_MOST = 1_000_000
"""Bytes of a summary; GitHub takes 1 MiB a step."""


def command(kind: str, title: str, message: str) -> str:
    """Return a workflow command: ``error``, ``warning`` or ``notice``, with escaped content."""
    title = _escaped(plain(title)).replace(":", "%3A").replace(",", "%2C")
    return f"::{kind} title={title}::{_escaped(message)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def workflow_commands(
    verdicts: Sequence[Verdict], warnings: Sequence[str], notice: str = ""
) -> str:
    """Return workflow commands for failed and skipped gates, warnings, and the result.

    Args:
        notice: one-line result, in addition to the gates.
    """
    lines = [
        command(_KINDS[one.status], f"{named(one)} {one.status}", plain(sentence(one)))
        for status in _KINDS
        for one in verdicts
        if one.status == status
    ]
    lines += [command("warning", "evalengine", plain(warning)) for warning in warnings]
    notices = [headline(verdicts)] if verdicts else []
    notices += [notice] if notice else []
    lines += [command("notice", "evalengine", plain("; ".join(notices)))] if notices else []
    return "".join(f"{line}\n" for line in lines)


def summarise(verdicts: Sequence[Verdict], result: str) -> bool:
    """Append gates and result to the step's summary.

    Returns:
        whether the environment names a file for that.

    Raises:
        WriteError: it cannot be written.
    """
    path = os.environ.get(_SUMMARY)
    if not path:
        return False
    parts = ["## evalengine", result]
    if verdicts:
        parts.insert(1, f"**{headline(verdicts)}**\n\n{markdown(table_of(_frame(verdicts)))}\n")
    text = "\n\n".join(part.rstrip("\n") for part in parts) + "\n\n"
    encoded = text.encode("utf-8", "replace")
    if len(encoded) > _MOST:
        lines = encoded[:_MOST].rpartition(b"\n")[0]
        encoded = lines + b"\n\n(cut: a summary has 1 MiB at most)\n\n"
    with written(path), open(path, "ab") as file:
        file.write(encoded)
    return True


# The report of a run on disk, with the gates and the baseline of the job that made it.


def report(
    run: Any,
    path: str | Path,
    *,
    baseline: Any = None,
    title: str = "",
    images: str | Path | None = None,
    verdicts: Sequence[Verdict] | None = None,
    options: Options | None = None,
    progress: Callable[[str], None] | bool | None = None,
    warn: Callable[[str], None] | None = None,
) -> Path:
    """Write one HTML file about a run, or about runs over time.

    A run: verdict, numbers, labels, curves, slices, errors, examples. A folder of runs, a job file
    or a job's history: every number by night with its interval, gates, changes, and links to the
    pages of the runs.

    It needs no network and no server, is at most two megabytes, and is readable without scripts.

    Args:
        run: a :class:`evalengine.Scorecard`, or the folder of a saved one; or a folder of such
            folders, a job file, or the folder of a job's history.
        path: the file, ending in .html; an existing one is replaced.
        baseline: an earlier run, as ``run``; by default that of the job that made the run.
        title: of the page; by default the run's folder or job.
        images: folder of pictures by datum id, for thumbnails of the worst datums.
        verdicts: on gates; by default those of the job that made the run.
        options: level, draws and seed of the comparison with the baseline.
        progress: called with the name of each step.
        warn: called with a sentence on each run over time that could not be read; the page has
            them in any case.

    Returns:
        the file.

    Raises:
        InputError: the baseline was scored by other rules.
        OptionError: the file does not end in .html, or the run is neither scorecard nor path.
        ResultError: a folder contains no result.
        WriteError: the disk refused.

    Example:
        >>> import evalengine as ee
        >>> ee.report("runs/tuesday", "report.html", baseline="runs/monday")  # doctest: +SKIP
    """
    if not isinstance(run, Scorecard) and is_history(run):
        return _trends(Path(run), path, title, baseline, images, warn)
    card = scored_in(run)
    folder = card.folder
    success = None if folder is None else read_success(folder)
    stored = folder is not None and verdicts is None
    if folder is not None and verdicts is None:
        verdicts = recorded(folder).gates
    name = "baseline" if baseline is None or isinstance(baseline, Scorecard) else str(baseline)
    earlier = None if baseline is None else scored_in(baseline)
    if earlier is None and success is not None and success.baseline_folder is not None:
        name = success.baseline_folder
        with suppress(ResultError):  # it may have gone since the run
            earlier = scored_in(Path(name))
    if not title and folder is not None:
        made_by = card.task.capitalize() if success is None else success.job
        title = f"{made_by}: {folder.resolve().name if success is None else folder.name}"
    return make_report(
        card,
        path,
        baseline=earlier,
        names=_names(name, folder),
        title=title,
        gates=gate_lines(verdicts or (), stored=stored),
        images=images,
        options=options,
        progress=progress,
    )


def _trends(
    source: Path,
    path: str | Path,
    title: str,
    baseline: Any,
    images: str | Path | None,
    warn: Callable[[str], None] | None,
) -> Path:
    """Write the page about runs over time."""
    for name, value in (("baseline", baseline), ("images", images)):
        if value is not None:
            raise OptionError(
                f"{source} has several runs: {option(name, value)} is for the report of one.",
                code="options_conflict",
                options=[name],
            )
    check_report(path)
    series, unread = trends(source, Path(path))
    if warn is not None:
        for message in unread:
            warn(message)
    if not title:
        title = series[0].title if len(series) == 1 else source.resolve().name
    return write_page(as_page(series, title, unread), path)


def gate_lines(verdicts: Sequence[Verdict], *, stored: bool = False) -> list[Gate]:
    """Verdicts as the report shows them, failed ones first.

    Args:
        stored: the folder of the run has them, so that no command repeats them.
    """
    return [
        Gate(one.status, named(one), sentence(one), "" if stored else one.gate)
        for one in ordered(verdicts)
    ]


def scored_in(run: Any) -> Scorecard:
    """Return a scorecard, or the saved one in a folder.

    Raises:
        OptionError: neither a scorecard nor a path.
        ResultError: there is none, or it is a comparison.
    """
    if isinstance(run, Scorecard):
        return run
    if not isinstance(run, (str, os.PathLike)):
        raise OptionError(
            f"a report is about a scorecard or the folder of one, not {type(run).__name__}: score"
            " the table first, with evalengine.score.",
            code="wrong_type",
            option="run",
        )
    result = load(os.fspath(run))
    if not isinstance(result, Scorecard):
        raise ResultError(f"{run} is a comparison: give its two runs, the earlier as the baseline.")
    return result


def _names(baseline: str, folder: Path | None) -> tuple[str, str]:
    """Return the names of the baseline and the run: their folders, if these differ."""
    if folder is None:
        return Path(baseline).name, "this run"
    short = Path(baseline).name, folder.resolve().name
    return short if short[0] != short[1] else (baseline, "this run")
