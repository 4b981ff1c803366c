"""Runs over time: a folder of runs, or a job's history, as trends."""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from .. import dialects
from .. import metrics as registry
from ..comparing import FREE
from ..ingest.problems import count_of
from ..report.summary import Line, headed, sections
from ..report.trend import Night, Series, Trend
from ..run import with_or_without
from ..schemas.arrays import Array
from ..schemas.errors import OptionError, ReadError, ResultError
from ..schemas.options import FIELDS, Options
from ..schemas.results import FAILED, METRICS, PASSED, SKIPPED
from ..schemas.wording import in_python
from ..scorecard.card import Scorecard, load
from ..scorecard.lookup import KEYS
from ..scorecard.storage import REPORT_FILE, RUN_FILE
from ..statistics.sequences import Change, are_few, changes
from ..statistics.sequences import Night as Observed
from .loading import load_job
from .records import JOB_FILE, NIGHTS_FILE, SUCCESS, Nights, read_success, recorded
from .sources import OPTIONS as FILES
from .verdicts import rows_of_gate

LEVEL = 0.95
"""Confidence of changes."""
_ROW = ("metric", *KEYS)
_GROUP = ("label_value", "slice", "slice_value")
_KIND = tuple(name for name in _ROW if name not in _GROUP)
_DAY = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)")
_STAMP = re.compile(rf"{_DAY.pattern}(?:[T_ ]\d{{2}}(?:[:-]?\d{{2}}){{0,2}}Z?)?")
_LOST = (ResultError, OptionError, ReadError)
_FRESH = ("content", "file", "observed")
"""Kinds of digests of ground truths, the most reliable first."""


class Run(msgspec.Struct):
    """One run, from its folder or from a job's history.

    Attributes:
        card: the scorecard; one from a history has only metrics.
        folder: None if only the history has the run.
        title: the folder as found or recorded.
        path: the same, relative to the folder of all runs.
        day: of the data: the last date in ``path``, else that of the variables or partitions.
        truths: digests of the ground truths that are known: kind -> digest.
        variables: of the job.
        partitions: that the numbers cover; empty without partitions, ``*`` if they are unknown.
        verdicts: status of each gate, in order, with its title.
        observed: what gates with ``always`` observed: gate -> partition, or name of the night.
    """

    card: Scorecard
    run_id: str
    job: str
    finished: str
    gates: str
    folder: Path | None
    title: str
    version: str = ""
    path: str = ""
    day: date | None = None
    truths: dict[str, str] = {}
    variables: dict[str, str] = {}
    partitions: list[str] = []
    verdicts: list[tuple[str, str]] = []
    observed: dict[str, dict[str, Observed]] = {}


def is_history(path: Any) -> bool:
    """Return whether this is the path of a job file, or of a folder that is not itself a run."""
    if not isinstance(path, (str, os.PathLike)):
        return False
    path = Path(path)
    if path.is_dir():
        return not (path / RUN_FILE).is_file() and not (path / "comparison.json").is_file()
    return path.suffix.lower() == ".toml" and path.is_file()


def trends(source: str | Path, page: Path | None = None) -> tuple[list[Trend], list[str]]:
    """Read runs over time.

    Args:
        source: a job file, a folder of runs, or a folder of a job's history.
        page: the file that will link to the runs' reports.

    Returns:
        a trend per job, task and, if a day has several runs, path without the date; and what could
        not be read.

    Raises:
        ResultError: no run was found.
    """
    runs, unread = _runs_of(Path(source))
    if not runs:
        more = f" {unread[0]}" if unread else ""
        raise ResultError(
            f"{source} has no runs: it is neither a folder of results that score --out or jobs"
            f" wrote, nor a job's history.{more}",
            code="no_runs",
        )
    subjects = _subjects(runs)
    result = []
    for (job, task, group), series in subjects.items():
        title = job or Path(source).resolve().name
        if len(subjects) > 1:
            title = f"{job}: {task}" if job else task.capitalize()
        result.append(_trend(f"{title}: {group}" if group else title, group, series, page, unread))
    return result, unread


# Where runs are.


def _runs_of(source: Path) -> tuple[list[Run], list[str]]:
    runs: dict[str, Run] = {}
    unread: list[str] = []
    folders: list[Path] = []
    histories: list[tuple[str, Path]] = []
    if source.is_file():
        loaded = load_job(source)
        outputs = loaded.job.outputs
        folders = [Path(name) for name in glob.glob(loaded.matching(loaded.earlier))]
        if outputs.history is not None:
            histories = [(loaded.resolve(outputs.history), source.parent)]
    else:
        folders = _folders(source)
        if not folders:
            histories = [(str(source), source.parent)]
    for folder in folders:
        if not (folder / RUN_FILE).is_file():
            continue
        try:
            run = _of_folder(folder)
        except _LOST as error:
            unread.append(f"{folder}: {in_python(error.message)}")
            continue
        if run is not None:
            runs[run.run_id] = run
    for target, folder_of_job in histories:
        for run in _of_history(target, folder_of_job, runs, unread):
            runs.setdefault(run.run_id, run)
    if source.is_file():
        runs = {name: run for name, run in runs.items() if run.job == loaded.job.name}
        for run in runs.values() if loaded.job.inputs.partition is not None else ():
            run.partitions = run.partitions or ["*"]
    root = source if source.is_dir() and folders else source.parent
    for run in runs.values():
        run.path = os.path.relpath(run.title, root)
        run.day = _day(run.path) or _day_of_data(run)
    return [*runs.values()], unread


def _subjects(runs: Iterable[Run]) -> dict[tuple[str, str, str], list[Run]]:
    """The latest run of each folder, by job, task and path, in the order of days or times."""
    latest: dict[tuple[str, str, str], Run] = {}
    for run in sorted(runs, key=lambda one: one.finished):
        latest[run.job, run.card.task, run.title] = run
    subjects: dict[tuple[str, str], list[Run]] = {}
    for run in latest.values():
        subjects.setdefault((run.job, run.card.task), []).append(run)
    return {
        (job, task, group): _in_order(group_runs)
        for (job, task), every in subjects.items()
        for group, group_runs in _by_path(every).items()
    }


def _by_path(runs: list[Run]) -> dict[str, list[Run]]:
    """Divide runs by their paths without the date, if that is what tells runs of a day apart."""
    per_day = Counter(_day(run.path) for run in runs)
    paths = [os.path.normpath(_STAMP.sub("", run.path)) for run in runs]
    most = max(per_day.values())
    if None in per_day or most < 2 or not 1 < len({*paths}) <= max(most, len(runs) // 2):
        return {"": runs}
    common = os.path.commonpath(paths)
    groups: dict[str, list[Run]] = {}
    for path, run in zip(paths, runs, strict=True):
        groups.setdefault(os.path.relpath(path, common or ".").strip("-_. "), []).append(run)
    return groups


def _in_order(runs: list[Run]) -> list[Run]:
    if all(run.day for run in runs):
        return sorted(runs, key=lambda run: (run.day, run.path, run.finished))
    return sorted(runs, key=lambda run: run.finished)


def _day_of_data(run: Run) -> date | None:
    """The day of a run whose folder has none: its variable ``date``, else the last of all."""
    days = [_day(text) for text in (*run.variables.values(), *run.partitions)]
    last = max((day for day in days if day is not None), default=None)
    return _day(run.variables.get("date", "")) or last


def _day(name: str) -> date | None:
    for digits in reversed(_DAY.findall(name)):
        try:
            return date(*map(int, digits))
        except ValueError:
            continue
    return None


def _folders(source: Path) -> list[Path]:
    """Folders of results below a folder, without the baselines that runs keep."""
    folders = []
    for name, below, files in os.walk(source):
        below[:] = sorted(one for one in below if not one.startswith("."))
        if RUN_FILE in files:
            folders.append(Path(name))
            below.clear()
    return folders


def _of_folder(folder: Path) -> Run | None:
    """The run in a folder; None for a comparison.

    Raises:
        ResultError: it is damaged, or of a job that did not end.
    """
    card = load(folder)
    if not isinstance(card, Scorecard):
        return None
    success = read_success(folder)
    if success is None and (folder / JOB_FILE).is_file():
        raise ResultError(
            f"{folder}: no {SUCCESS}, so the job's run did not end. Run it again.",
            code="file_missing",
        )
    truths = {
        "content": card.run.get("content", {}).get("ground_truths"),
        "file": card.run.get("inputs", {}).get("ground_truths", {}).get("sha256"),
    }
    about: dict[str, Any] = {
        "card": card,
        "folder": folder,
        "title": str(folder),
        "version": str(card.run.get("evalengine", "")),
        "truths": {kind: str(digest) for kind, digest in truths.items() if digest},
    }
    if success is None:
        finished = str(card.run.get("scored") or "")
        if not finished:
            changed = (folder / RUN_FILE).stat().st_mtime
            finished = datetime.fromtimestamp(changed, UTC).isoformat()
        return Run(run_id=str(folder), job="", finished=finished, gates="", **about)
    record = recorded(folder)
    about["observed"] = _observed(folder)
    digests = {one.digest for by_name in about["observed"].values() for one in by_name.values()}
    if len(digests) == 1 and "" not in digests:
        about["truths"]["observed"] = digests.pop()
    return Run(
        run_id=success.run_id,
        job=success.job,
        finished=success.finished,
        gates=success.gates if record.gates or success.gates != PASSED else "",
        variables=record.variables,
        partitions=record.partitions,
        verdicts=[(one.gate, one.status) for one in record.gates],
        **about,
    )


def _observed(folder: Path) -> dict[str, dict[str, Observed]]:
    """Observations of the run itself for gates with ``always``, without earlier nights."""
    try:
        seen = msgspec.json.decode((folder / NIGHTS_FILE).read_bytes(), type=Nights).seen
    except (OSError, msgspec.DecodeError, RecursionError):
        return {}
    last = max((one.finished for by_name in seen.values() for one in by_name.values()), default="")
    return {
        gate: {name: one for name, one in by_name.items() if one.finished == last}
        for gate, by_name in seen.items()
    }


def _of_history(
    target: str, folder_of_job: Path, read: dict[str, Run], unread: list[str]
) -> list[Run]:
    """Runs of a history, from their folders if these still have them."""
    runs = []
    for rows in _tables(target, unread):
        if not {"run_id", "job", "finished", "folder", "task", "dialect", "gates"} <= {
            *rows.columns
        }:
            unread.append(f"{target}: not a job's history")
            continue
        for (run_id,), run_rows in rows.group_by("run_id", maintain_order=True):
            if str(run_id) in read:
                continue
            first = run_rows.row(0, named=True)
            folder = folder_of_job / first["folder"]
            success = read_success(folder)
            if success is not None and success.run_id == run_id:
                try:
                    run = _of_folder(folder)
                except _LOST as error:
                    unread.append(f"{folder}: {in_python(error.message)}")
                else:
                    if run is not None:
                        runs.append(run)
                        continue
            run = Run(
                card=_card(first["task"], first["dialect"], run_rows),
                run_id=str(run_id),
                job=first["job"],
                finished=first["finished"].isoformat(),
                gates=first["gates"],
                folder=None,
                title=str(folder),
                version=first.get("evalengine") or "",
                variables=_variables(first.get("variables")),
            )
            runs.append(run)
    return runs


def _variables(text: Any) -> dict[str, str]:
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, str])
    except msgspec.DecodeError:
        return {}


def _tables(target: str, unread: list[str]) -> Any:
    """The tables of a history: a frame per file, or of a Delta table."""
    if "://" in target or (Path(target) / "_delta_log").is_dir():
        yield pl.read_delta(target)
        return
    for path in sorted(Path(target).glob("*.parquet")):
        try:
            yield pl.read_parquet(path, glob=False)
        except (OSError, pl.exceptions.PolarsError) as error:
            unread.append(f"{path}: {error}")


def _card(task: str, dialect: str, rows: pl.DataFrame) -> Scorecard:
    """A scorecard of the rows of a history."""
    frame = rows.select(
        pl.col(name) if name in rows.columns else pl.lit(None, dtype or pl.String).alias(name)
        for name, dtype in METRICS.items()
    )
    metrics = registry.all_metrics(task)
    better = dialects.get(task, dialect).better if dialect in dialects.names(task) else {}
    labels = pl.DataFrame(
        schema=dict.fromkeys(("label_key", "label_value", "label_name"), pl.String)
    )
    return Scorecard(
        task=task,
        dialect=dialect,
        options=Options(),
        frames={"metrics": lambda: frame},
        labels=labels,
        run={},
        directions={
            name: better.get(name, metrics[name].better)
            for name in frame["metric"].unique()
            if name in metrics
        },
    )


# Runs as a trend.


def _trend(title: str, group: str, runs: list[Run], page: Path | None, unread: list[str]) -> Trend:
    """The trend of runs of one job and task."""
    breaks = [""] + [_other_rules(a, b) for a, b in pairwise(runs)]
    lines, groups = _select_rows(runs, breaks, unread)
    frame = _collect(runs, lines, [*groups], unread)
    frame, infinite = _without_infinite(frame)
    starts = [0, *(i for i, why in enumerate(breaks) if i and why)]
    segments = [*zip(starts, [*starts[1:], len(runs)], strict=True)]
    latest = runs[-1].card
    gates, bounds = _statuses_and_bounds(runs)
    frame = _with_trials(frame, runs, bounds)
    parts = Counter(part for run in runs for part in {*run.partitions})
    deleted = any(run.folder is None for run in runs)
    overlapping = len(runs) > 1 and bool(parts) and (deleted or max(parts.values()) > 1)
    searched = [] if overlapping else segments
    overall = _series_of(frame.filter(group=False), runs, searched, latest, lines, {})
    every = _series_of(frame.filter(group=True), runs, searched, latest, {}, groups)
    headline = [_with_gates(one, bounds, gates) for one in overall]
    names = _names(runs)
    notes = _notes(runs, infinite, overlapping=overlapping)
    x = _places(runs)
    days = f", {names[0]}" + f" to {names[-1]}" * (len(runs) > 1)
    nights = f"{len(runs):,} nights" if len(runs) != 1 else "1 night"
    jobs = f"{latest.task}, dialect {latest.dialect}: {nights}{days}"
    missing = int(x[-1] - x[0]) + 1 - len({*x}) if _dated(runs) else 0
    if missing > 0:
        days = "days have" if missing > 1 else "day has"
        notes.append(f"{missing:,} {days} no run between the first night and the last.")
    return Trend(
        title=title,
        about=jobs,
        nights=[
            _night(run, name, why, runs[i - 1] if i else None, page, group)
            for i, (run, name, why) in enumerate(zip(runs, names, breaks, strict=True))
        ],
        x=x,
        series=headline,
        moved=[one for one in every if one.changes],
        searched=0 if overlapping else len(every),
        gates=gates,
        notes=notes,
        level=LEVEL,
        independent=not overlapping,
    )


def _dated(runs: list[Run]) -> bool:
    days = {run.day for run in runs}
    return None not in days and len(days) == len(runs)


def _places(runs: list[Run]) -> list[float]:
    if _dated(runs):
        return [float(run.day.toordinal()) for run in runs if run.day]
    return [float(i) for i in range(len(runs))]


def _names(runs: list[Run]) -> list[str]:
    """Days if all differ, else names of folders if all differ and are no run ids, else times."""
    if _dated(runs):
        return [str(run.day) for run in runs]
    names = [Path(run.title).name for run in runs]
    by_id = any(name == run.run_id for name, run in zip(names, runs, strict=True))
    if len({*names}) == len(runs) and not by_id:
        return names
    return [run.finished[:19].replace("T", " ") for run in runs]


def _night(
    run: Run, name: str, why: str, before: Run | None, page: Path | None, group: str
) -> Night:
    link = ""
    if run.folder is not None and page is not None and (run.folder / REPORT_FILE).is_file():
        report = (run.folder / REPORT_FILE).resolve()
        link = Path(os.path.relpath(report, page.resolve().parent)).as_posix()
    remark = ""
    if before is not None and before.version != run.version:
        remark = f"evalengine {run.version} instead of {before.version}"
    facts = {
        "run_id": run.run_id,
        "job": run.job,
        "task": run.card.task,
        "dialect": run.card.dialect,
        "folder": run.title,
        "group": group,
        "day": name if name == str(run.day) else "",
    }
    return Night(name, run.finished, run.gates, link, why, remark, facts)


def _other_rules(before: Run, after: Run) -> str:
    """Why the numbers of a run do not continue those of the run before; empty if they do."""
    a, b = before.card, after.card
    reasons = []
    if a.dialect != b.dialect:
        reasons.append(f"dialect {b.dialect} instead of {a.dialect}")
    if before.folder is not None and after.folder is not None:
        for name in FIELDS:
            if name in (*FREE, *FILES, "columns", "dialect"):
                continue
            old, new = getattr(a.options, name), getattr(b.options, name)
            if _without_days(old, before) != _without_days(new, after):
                reasons.append(
                    f"{with_or_without(name, new)} instead of {with_or_without(name, old)}"
                )
    return in_python("; ".join(reasons))


def _without_days(value: Any, run: Run) -> Any:
    """Replace the days of a run in the text of an option, since they differ every night."""
    if isinstance(value, dict):
        return {key: _without_days(one, run) for key, one in value.items()}
    if not isinstance(value, str):
        return value
    days = {run.day, *map(_day, run.variables.values())}
    return _DAY.sub(lambda match: "{date}" if _day(match[0]) in days else match[0], value)


def _select_rows(
    runs: list[Run], breaks: list[str], unread: list[str]
) -> tuple[dict[tuple[Any, ...], Line], dict[tuple[Any, ...], str]]:
    """Return the rows to show: of the last run, and of the last run before each change of options.

    Returns:
        key of each headline row -> its line, and columns that identify the metric of slices and
        labels -> its title.
    """
    last = [len(runs) - 1, *(i - 1 for i in range(len(runs) - 1, 0, -1) if breaks[i])]
    lines: dict[tuple[Any, ...], Line] = {}
    groups: dict[tuple[Any, ...], str] = {}
    for i in last:
        try:
            every = sections(runs[i].card)
        except _LOST as error:
            unread.append(f"{runs[i].title}: {in_python(error.message)}")
            continue
        for section in every:
            named = f"{section.label_key}: " if headed(section, every) else ""
            for line in section.headline:
                row = msgspec.structs.replace(line, title=f"{named}{line.title}")
                lines.setdefault(_key(line.row), row)
            grids = [grid for grid in (section.labels, *section.slices) if grid is not None]
            for grid in grids:
                first = next((row.rows[0] for row in grid.rows if row.rows and row.rows[0]), None)
                if first is not None:
                    groups.setdefault(tuple(first[name] for name in _KIND), grid.columns[0])
    return lines, groups


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(
        str(row[name]) if name == "label_value" and row[name] is not None else row.get(name)
        for name in _ROW
    )


def _collect(
    runs: list[Run],
    lines: dict[tuple[Any, ...], Line],
    groups: list[tuple[Any, ...]],
    unread: list[str],
) -> pl.DataFrame:
    """The wanted rows of all runs: ``night``, ``group``, identity, value, interval, trials."""
    types = {name: METRICS[name] or pl.String for name in _ROW}
    requested = pl.DataFrame([*lines], schema=types, orient="row")
    kinds = pl.DataFrame(groups, schema={name: types[name] for name in _KIND}, orient="row")
    numbers = ("value", "lower", "upper", "trials")
    parts = []
    for night, run in enumerate(runs):
        try:
            rows = run.card.metrics
        except _LOST as error:
            unread.append(f"{run.title}: {in_python(error.message)}")
            continue
        rows = rows.select(
            pl.lit(night, pl.UInt32).alias("night"),
            *(pl.col(name).cast(dtype) for name, dtype in types.items()),
            *(
                pl.col(name).cast(pl.Float64)
                if name in rows.columns
                else pl.lit(None, pl.Float64).alias(name)
                for name in numbers
            ),
        )
        overall = rows.join(requested, on=[*_ROW], how="semi", nulls_equal=True)
        of_group = rows.filter(pl.col("slice").is_not_null() != pl.col("label_value").is_not_null())
        of_group = of_group.join(kinds, on=[*_KIND], how="semi", nulls_equal=True)
        of_group = of_group.join(requested, on=[*_ROW], how="anti", nulls_equal=True)
        parts += [overall.with_columns(group=False), of_group.with_columns(group=True)]
    schema = {
        "night": pl.UInt32,
        **types,
        **dict.fromkeys(numbers, pl.Float64),
        "group": pl.Boolean,
    }
    return pl.concat(parts) if parts else pl.DataFrame(schema=schema)


def _without_infinite(frame: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Replace infinite values and intervals by missing ones, and count the headline values."""
    infinite = frame.filter(pl.col("value").is_infinite(), ~pl.col("group")).height
    finite_bounds = pl.col("lower").is_finite() & pl.col("upper").is_finite()
    return frame.with_columns(
        pl.when(pl.col("value").is_finite()).then("value").alias("value"),
        *(
            pl.when(finite_bounds & pl.col("value").is_finite()).then(name).alias(name)
            for name in ("lower", "upper")
        ),
    ), infinite


def _series_of(
    frame: pl.DataFrame,
    runs: list[Run],
    segments: list[tuple[int, int]],
    card: Scorecard,
    lines: dict[tuple[Any, ...], Line],
    titles: dict[tuple[Any, ...], str],
) -> list[Series]:
    """Numbers of a frame over the nights, with their changes; those of ``lines`` in their order."""
    ids = frame.select(_ROW).unique(maintain_order=True).with_row_index("place")
    rows = [*ids.drop("place").iter_rows(named=True)]
    placed = frame.join(ids, on=[*_ROW], how="left", nulls_equal=True)
    at = placed["place"].to_numpy(), placed["night"].to_numpy()

    def matrix(name: str) -> Array:
        out = np.full((len(rows), len(runs)), np.nan)
        out[at] = placed[name].fill_null(float("nan")).to_numpy()
        return out

    values, lower, upper, trials = map(matrix, ("value", "lower", "upper", "trials"))
    by_row: list[list[Change]] = [[] for _ in rows]
    few = np.zeros(len(rows), bool)
    for start, end in segments:
        level = 1 - (1 - LEVEL) / len(segments)
        inside = slice(start, end)
        n = trials[:, inside] if _have_new_datums(runs[inside]) else None
        few = are_few(values[:, inside], n)
        for row_changes, new in zip(by_row, changes(values[:, inside], n, level), strict=True):
            row_changes += [one._replace(at=one.at + start, seen=one.seen + start) for one in new]
    series = []
    for i, row in enumerate(rows):
        line = lines.get(_key(row))
        group = " ".join(str(row[name]) for name in ("slice_value", "label_value") if row[name])
        series.append(
            Series(
                title=titles[tuple(row[name] for name in _KIND)] if line is None else line.title,
                values=_listed(values[i]),
                lower=_listed(lower[i]),
                upper=_listed(upper[i]),
                better=card.directions.get(row["metric"], "neither"),
                counted=line is not None and line.counted,
                changes=by_row[i],
                few=bool(few[i]),
                row=row,
                group=group,
                by=row["slice"] or "label",
            )
        )
    order = {key: i for i, key in enumerate(lines)}
    return sorted(series, key=lambda one: order.get(_key(one.row), 0)) if lines else series


def _have_new_datums(runs: list[Run]) -> bool:
    """Return whether the ground truths of all runs are known and differ."""
    for kind in _FRESH:
        digests = {run.truths[kind] for run in runs if kind in run.truths}
        if all(kind in run.truths for run in runs):
            return len(digests) == len(runs)
    return False


def _listed(values: Array) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


def _statuses_and_bounds(
    runs: list[Run],
) -> tuple[dict[str, list[str]], dict[tuple[Any, ...], list[tuple[str, float]]]]:
    """Return the status of each gate per night, and the gates with a number on single rows."""
    statuses: dict[str, list[str]] = {}
    rank = ("", SKIPPED, PASSED, FAILED)
    for night, run in enumerate(runs):
        for gate, status in run.verdicts:
            line = statuses.setdefault(gate, [""] * len(runs))
            line[night] = max(line[night], status, key=rank.index)
    bounds: dict[tuple[Any, ...], list[tuple[str, float]]] = {}
    for text in statuses:
        for row, bound in rows_of_gate(text, runs[-1].card):
            bounds.setdefault(_key(row), []).append((text, bound))
    return statuses, bounds


def _with_trials(
    frame: pl.DataFrame, runs: list[Run], bounds: dict[tuple[Any, ...], list[tuple[str, float]]]
) -> pl.DataFrame:
    """Add the datums of shares that gates with ``always`` counted, if the runs do not have them."""
    sums = {
        (night, *key): sum(one.counts)
        for key, gates in bounds.items()
        for text, _ in gates
        for night, run in enumerate(runs)
        for one in run.observed.get(text, {}).values()
        if one.counts is not None and not any(one.counts[1:-1]) and one.limits == (0.0, 1.0)
    }
    schema = {name: frame.schema[name] for name in ("night", *_ROW)} | {"counted": pl.Float64}
    counted = pl.DataFrame([(*key, n) for key, n in sums.items()], schema, orient="row")
    joined = frame.join(counted, on=["night", *_ROW], how="left", nulls_equal=True)
    return joined.with_columns(pl.coalesce("trials", "counted").alias("trials")).drop("counted")


def _with_gates(
    one: Series, bounds: dict[tuple[Any, ...], list[tuple[str, float]]], gates: dict[str, list[str]]
) -> Series:
    row_bounds = bounds.get(_key(one.row), [])
    failed = {
        i for text, _ in row_bounds for i, status in enumerate(gates[text]) if status == FAILED
    }
    fixed = [(text, bound) for text, bound in row_bounds if not np.isnan(bound)]
    return msgspec.structs.replace(one, bounds=fixed, failed=sorted(failed))


def _notes(runs: list[Run], infinite: int, *, overlapping: bool) -> list[str]:
    notes = []
    gone = sum(run.folder is None for run in runs)
    if gone:
        notes.append(
            f"{gone:,} of {len(runs):,} runs are known from the history only: their gates are not"
            " listed one by one, and changed options and datums of several runs are not noticed."
        )
    if overlapping:
        notes.append(
            "Changes were not searched: each number covers all partitions of its run, so runs share"
            " datums. Gates with always take each partition once."
        )
    if infinite:
        notes.append(f"{count_of(infinite, 'infinite value')} shown as missing.")
    if all(run.day for run in runs) and not _dated(runs):
        notes.append("Several runs are of the same day; they are in the order of their folders.")
    return notes
