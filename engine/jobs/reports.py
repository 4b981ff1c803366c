"""The report of a run on disk, with the gates and the baseline of the job that made it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..report.page import Gate
from ..reporting import make_report
from ..schemas.errors import ResultError
from ..schemas.options import Options
from ..scorecard.card import Scorecard, load
from .records import read_success, recorded
from .showing import named, ordered, sentence
from .verdicts import Verdict


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
) -> Path:
    """Write one HTML file about a run: verdict, numbers, labels, curves, slices, errors, examples.

    It needs no network and no server, is at most two megabytes, and is readable without scripts.

    Args:
        run: a :class:`evalengine.Scorecard`, or the folder of a saved one.
        path: the file, ending in .html; an existing one is replaced.
        baseline: an earlier run, as ``run``; by default that of the job that made the run.
        title: of the page; by default the run's folder or job.
        images: folder of pictures by datum id, for thumbnails of the worst datums.
        verdicts: on gates; by default those of the job that made the run.
        options: level, draws and seed of the comparison with the baseline.
        progress: called with the name of each step.

    Returns:
        the file.

    Raises:
        InputError: the baseline was scored by other rules.
        OptionError: the file does not end in .html.
        ResultError: a folder contains no result.
        WriteError: the disk refused.

    Example:
        >>> import evalengine as ee
        >>> ee.report("runs/tuesday", "report.html", baseline="runs/monday")  # doctest: +SKIP
    """
    card = scored_in(run)
    folder = card.folder
    success = None if folder is None else read_success(folder)
    if folder is not None and verdicts is None:
        verdicts = recorded(folder)
    name = "baseline" if baseline is None or isinstance(baseline, Scorecard) else str(baseline)
    earlier = None if baseline is None else scored_in(baseline)
    if earlier is None and success is not None and success.baseline_folder is not None:
        name = success.baseline_folder
        earlier = _there(Path(name))
    return make_report(
        card,
        path,
        baseline=earlier,
        names=_names(name, folder),
        title=title or _title(card, folder, None if success is None else success.job),
        gates=gate_lines(verdicts or ()),
        images=images,
        options=options,
        progress=progress,
    )


def gate_lines(verdicts: Sequence[Verdict]) -> list[Gate]:
    """Verdicts as the report shows them, failed ones first."""
    return [Gate(one.status, named(one), sentence(one)) for one in ordered(verdicts)]


def scored_in(run: Any) -> Scorecard:
    """Return a scorecard, or the saved one in a folder.

    Raises:
        ResultError: there is none, or it is a comparison.
    """
    if isinstance(run, Scorecard):
        return run
    found = load(run)
    if not isinstance(found, Scorecard):
        raise ResultError(f"{run} is a comparison: give its two runs, the earlier as the baseline.")
    return found


def _there(folder: Path) -> Scorecard | None:
    """A baseline that may have gone since the run."""
    try:
        return scored_in(folder)
    except ResultError:
        return None


def _names(baseline: str, folder: Path | None) -> tuple[str, str]:
    """Return the names of the baseline and the run: their folders, if these differ."""
    if folder is None:
        return Path(baseline).name, "this run"
    short = Path(baseline).name, folder.resolve().name
    return short if short[0] != short[1] else (baseline, "this run")


def _title(card: Scorecard, folder: Path | None, job: str | None) -> str:
    if folder is None:
        return ""
    return f"{job}: {folder.name}" if job else f"{card.task.capitalize()}: {folder.resolve().name}"
