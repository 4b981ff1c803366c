"""Input files of a job, and runs that score only new partitions."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from ..atomic import written
from ..evaluation import own as own_values
from ..evaluation import planner
from ..evaluation.summary import Tallied
from ..executors import Threads
from ..geometry.rasters import RasterFiles
from ..ingest.files import by_extension
from ..ingest.opening import Tables
from ..ingest.problems import count_of
from ..ingest.sources.scanning import expand, is_remote, looks_wild
from ..ingest.sources.tables import open_source, schema_of
from ..progress import Step
from ..run import (
    Messages,
    card_of_tallies,
    messages_of,
    open_tables,
    rows_of,
    split_metrics,
    tally_run,
    unanswered,
)
from ..schemas.contract import RASTER
from ..schemas.errors import N_NAMES, InputError, OptionError, ReadError, invalid
from ..schemas.job import JobInputs
from ..schemas.options import Options
from ..schemas.results import Finding
from ..scorecard.card import Scorecard
from ..tallies import stored
from .loading import LoadedJob, filled, mark

# Raster files referred to by the tables of a job, and their changes.
#
# They may be many and large, so size and modification time replace content digests.

Stamp = tuple[int, int, int]
"""Size in bytes, time of change in nanoseconds, inode."""

_NAMES = {name.casefold() for name in (RASTER.name, *RASTER.aliases)}
"""Names of raster columns, in segmentation and in detection."""
_PARSED, _WITHOUT = "json", ("trec", "raster")
"""A format whose columns are not known before all of it is read, and those that point to none."""


class Pointed(msgspec.Struct, frozen=True):
    """Rasters of one table.

    Attributes:
        files: path in the table, resolved path (None if missing or remote), and its stamp.
    """

    files: tuple[tuple[str, str | None, Stamp | None], ...] = ()

    @property
    def digest(self) -> str:
        """Digest of paths, sizes and modification times; empty without rasters."""
        if not self.files:
            return ""
        # Not the inode: a copy that keeps its time is the same file.
        stamps = [[name, stamp[:2] if stamp else None] for name, _, stamp in self.files]
        return hashlib.sha256(msgspec.json.encode(stamps)).hexdigest()

    def changed(self) -> list[str]:
        """Return the paths of changed rasters."""
        return [
            name for name, path, stamp in self.files if path is not None and stamp_of(path) != stamp
        ]


def stamp_of(path: str) -> Stamp | None:
    """Return size, modification time and inode of a file; None if it does not exist."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


def rasters_of(path: str, columns: Mapping[str, str] | None) -> Pointed:
    """Return the rasters that a local table names.

    Args:
        columns: name in the input -> canonical name, as in the options.

    Raises:
        ReadError: the table cannot be read.
    """
    named = {column for column, name in (columns or {}).items() if name == RASTER.name}
    form = by_extension(path)
    if form in _WITHOUT or (form == _PARSED and not _mentions(path, named)):
        return Pointed()
    source = open_source(path)
    columns_read = [
        name
        for name, dtype in schema_of(source).items()
        if (name.casefold() in _NAMES or name in named) and dtype in (pl.String, pl.Categorical)
    ]
    if not columns_read:
        return Pointed()
    try:
        rows = source.frame.select(pl.col(columns_read).cast(pl.String)).collect()
    except pl.exceptions.PolarsError as error:
        raise ReadError(f"{path}: {error}.") from error
    paths = {one for name in columns_read for one in rows[name].drop_nulls().unique().to_list()}
    folder, rasters = os.path.dirname(path), []
    for one in sorted(paths):
        file = RasterFiles(folder).find(one)
        stamp = None if file is None else stamp_of(file)
        rasters.append((one, file if stamp else None, stamp))
    return Pointed(tuple(rasters))


def _mentions(path: str, named: set[str]) -> bool:
    """Return whether a JSON file has a key for rasters; avoids parsing COCO files, which have none.

    Searches for the keys as bytes, ignoring case.
    """
    sought = [f'"{name.casefold()}"'.encode() for name in _NAMES | named]
    longest = max(map(len, sought))
    with open(path, "rb") as file:
        tail = b""
        while block := file.read(1 << 22):
            text = (tail + block).lower()
            if any(one in text for one in sought):
                return True
            tail = block[-longest:]
    return False


_ROLES = ("predictions", "ground_truths", "datums", "labels")
_SIDES = ("predictions", "ground_truths")
_WHOLE = ("labels", "label_map", "training", "human")
"""Inputs that all partitions share; every other table is read per partition."""
OPTIONS = ("label_map", "training", "human")
"""Options that may be files."""
_CLASS = re.compile(r"\[!?\]?[^\]]*\]")


class File(msgspec.Struct, frozen=True):
    """One input file, or a remote path.

    Attributes:
        path: relative to the working folder.
        name: relative to the job file.
        partition: value of the partition variable in its path, or None.
        bytes: its size; None if remote.
        sha256: digest of its content; of the job's ``version`` if remote.
        stamp: size, modification time and inode, to detect changes.
        rasters: raster files that it refers to.
    """

    path: str
    name: str
    partition: str | None
    bytes: int | None
    sha256: str
    stamp: Stamp | None = None
    rasters: Pointed = Pointed()

    @property
    def digests(self) -> list[str]:
        """Digests of its content, and of its rasters if there are any."""
        return [digest for digest in (self.sha256, self.rasters.digest) if digest]


class JobTables(msgspec.Struct, frozen=True):
    """Inputs of a job.

    Attributes:
        files: role to files, in the order they are read.
        partitions: values of the partition variable, ascending; empty without one.
    """

    files: dict[str, tuple[File, ...]]
    partitions: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Digest of the content of all files, whatever their paths; empty if one is remote."""
        files = [
            (role, file)
            for role, files_of_role in sorted(self.files.items())
            for file in files_of_role
        ]
        if any(file.bytes is None for _, file in files):
            return ""
        content = [[role, *file.digests] for role, file in files]
        return hashlib.sha256(msgspec.json.encode(content)).hexdigest()[:16]

    def paths(self, role: str) -> str | list[str] | None:
        """Return the argument of ``score`` for a role."""
        files = self.files.get(role, ())
        if not files:
            return None
        return files[0].path if len(files) == 1 else [file.path for file in files]

    def of_partition(self, role: str, value: str) -> str | list[str] | None:
        """Return the argument of ``score`` for a role in one partition."""
        files = tuple(file for file in self.files.get(role, ()) if file.partition == value)
        return JobTables({role: files}).paths(role)

    def key_of(self, value: str) -> list[list[str]]:
        """Role and digests of every file that a partition's numbers depend on, in order."""
        return [
            [role, *file.digests]
            for role, files in self.files.items()
            for file in files
            if file.partition in (None, value)
        ]

    def changed(self) -> list[str]:
        """Return the names of changed files and rasters."""
        local = [file for files in self.files.values() for file in files if file.stamp is not None]
        tables = [file.name for file in local if stamp_of(file.path) != file.stamp]
        return tables + [name for file in local for name in file.rasters.changed()]


def find_inputs(loaded: LoadedJob) -> JobTables:
    """Find the input files of a job, with digests of their content.

    Raises:
        ReadError: a path that does not exist.
        InputError: a partition that only one side has, a required one that is missing, or none at
            all.
        OptionError: remote paths without a version, or a partition variable in no path.
    """
    inputs = loaded.job.inputs
    files: dict[str, list[File]] = {}
    for role in _ROLES:
        value = getattr(inputs, role)
        if value is not None:
            patterns = [value] if isinstance(value, str) else value
            files[role] = [
                file for pattern in patterns for file in _files(loaded, pattern, inputs.version)
            ]
    for role in OPTIONS:
        value = getattr(loaded.options, role)
        if isinstance(value, str) and "=" not in value:
            files[role] = _files(loaded, value, None)
    if inputs.partition is None:
        return JobTables(_digested(loaded, files))
    return _in_partitions(loaded, files)


def _in_partitions(loaded: LoadedJob, candidates: dict[str, list[File]]) -> JobTables:
    """The files of the partitions that are asked for, the same on every side."""
    inputs = loaded.job.inputs
    selected: dict[str, list[File]] = {}
    sides: dict[str, set[str]] = {}
    for role, files in candidates.items():
        selected[role] = [
            file for file in files if file.partition is None or in_window(inputs, file.partition)
        ]
        selected[role].sort(key=lambda file: file.partition or "")
        if any(file.partition is not None for file in files):
            sides[role] = {file.partition for file in selected[role] if file.partition is not None}
    if not sides:
        raise OptionError(
            f"inputs.partition: no path has {{{inputs.partition}}} in it.",
            code="partition_misfit",
            option="inputs.partition",
        )
    for role in candidates:
        if role not in sides and role not in _WHOLE:
            raise OptionError(
                f"inputs.{role}: with a partition every table but labels is read by partitions, so"
                f" write {{{inputs.partition}}} into its path, too.",
                code="partition_misfit",
                option=f"inputs.{role}",
            )
    every = set().union(*sides.values())
    if not every:
        between = f"from {inputs.first or 'the first'} to {inputs.last or 'the last'}"
        raise InputError(
            f"no partition of {inputs.partition} {between} is there.",
            code="partitions_missing",
            values=[],
        )
    required = [inputs.required] if isinstance(inputs.required, str) else inputs.required or []
    missing = sorted({*required} - every)
    if missing:
        raise InputError(
            f"{len(missing)} of the partitions of {inputs.partition} in inputs.required are not"
            f" there: {listed(missing)}. Wait for them, or take them out of inputs.required.",
            code="partitions_missing",
            values=missing,
        )
    for role, side in sides.items():
        if every - side:
            raise InputError(
                f"{role}: {len(every - side)} of {len(every)} partitions of {inputs.partition} are"
                f" missing: {listed(sorted(every - side))}. Wait for them, or skip them with"
                " inputs.first and inputs.last.",
                code="partitions_missing",
                values=sorted(every - side),
                side=role,
                of=len(every),
            )
    return JobTables(_digested(loaded, selected), tuple(sorted(every)))


_LOGIN = re.compile(r"(?<=://)[^/@]*@")


def without_secrets(address: str) -> str:
    """An address without user, password, or the query of a web address, which may sign it."""
    cleaned = _LOGIN.sub("", address)
    return re.split(r"[?#]", cleaned)[0] if cleaned.startswith(("http://", "https://")) else cleaned


def in_window(inputs: JobInputs, value: str) -> bool:
    """Return whether a partition is within the requested range."""
    return (inputs.first is None or inputs.first <= value) and (
        inputs.last is None or value <= inputs.last
    )


def _files(loaded: LoadedJob, pattern: str, version: str | None) -> list[File]:
    name = loaded.job.inputs.partition
    variable = mark(name) if name is not None else "\x00"
    path = loaded.resolve(pattern)
    if variable in pattern or looks_wild([pattern]):
        path = loaded.matching(pattern)
    if is_remote(pattern):
        if version is None:
            raise OptionError(
                f"inputs: {pattern.replace(variable, '*')} is remote, and its content is not read"
                " twice: identify it with inputs.version, such as a date or a snapshot.",
                code="option_missing",
                option="inputs.version",
            )
        if variable in pattern:
            raise OptionError(
                "inputs.partition is for local files: remote folders are not listed.",
                code="partition_misfit",
                option="inputs.partition",
            )
        digest = hashlib.sha256(version.encode()).hexdigest()
        return [File(path, without_secrets(pattern), None, None, digest)]
    if variable not in path:
        matches: list[tuple[str, str | None]] = [(file, None) for file in expand(path)]
    else:
        shape = _shape(path, variable)
        matches = [
            (file, matched[1])
            for file in expand(filled(path, {name or "": "*"}))
            if (matched := shape.fullmatch(file)) is not None
        ]
    base = loaded.path.parent
    return [
        File(file, os.path.relpath(file, base).replace(os.sep, "/"), value, None, "")
        for file, value in matches
    ]


def _shape(path: str, variable: str) -> re.Pattern[str]:
    """A glob with a variable in it as a regular expression, whose first group is the value."""
    parts, place, seen = [], 0, False
    while place < len(path):
        if path.startswith(variable, place):
            # By name: a digit behind it would become part of a number.
            parts.append("(?P=value)" if seen else f"(?P<value>[^{re.escape(os.sep)}]+)")
            seen, place = True, place + len(variable)
        elif path.startswith("**", place):
            parts.append(".*")
            # "**/" matches no folder at all, too.
            place += 3 if path.startswith("**/", place) else 2
        elif path[place] in "*?":
            parts.append("[^/]*" if path[place] == "*" else "[^/]")
            place += 1
        elif path[place] == "[" and (some := _CLASS.match(path, place)):
            body = re.sub(r"[\\\[&~|^]", r"\\\g<0>", some[0][1:-1])
            parts.append(f"[^{body[1:]}]" if body.startswith("!") else f"[{body}]")
            place = some.end()
        else:
            parts.append(re.escape(path[place]))
            place += 1
    return re.compile("".join(parts))


def _digested(
    loaded: LoadedJob, listed: Mapping[str, Iterable[File]]
) -> dict[str, tuple[File, ...]]:
    """The same files with digests of their content; tables of either side with their rasters."""
    columns = loaded.options.columns

    def of_role(role: str, file: File) -> File:
        if file.sha256:  # remote
            return file
        digested = _with_digest(file)
        if role not in _SIDES:
            return digested
        return msgspec.structs.replace(digested, rasters=rasters_of(file.path, columns))

    return {role: tuple(of_role(role, file) for file in files) for role, files in listed.items()}


def _with_digest(file: File) -> File:
    try:
        stamp = stamp_of(file.path)
        with open(file.path, "rb") as opened:
            sha256 = hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise ReadError(f"{file.path}: {error.strerror or error}.") from None
    return msgspec.structs.replace(
        file, sha256=sha256, stamp=stamp, bytes=stamp[0] if stamp else None
    )


_ROWS = ("rows", "first", "lowest", "highest", "values", "ids", "datums")
"""Facts that are rows or their values."""
_TEXT = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ROW = rf"(?:{_TEXT}|\([^()]*\)|-?\d[\w.:-]*\b)"
_LIST = re.compile(
    rf"(?:(?<=: )|(?<=first )|(?<=row )|(?<=rows )){_ROW}(?:, {_ROW})*(?: and [\d,]+ more)?"
)
_COUNT = re.compile(
    rf"((?<!\w)(?:{_TEXT})(?!\w))|\b\d[\d,]*(?:\.\d+)?%?(?: \w+)?"
    r"|\b(?:is|are|was|were|has|have|its|their|it|they|do|does)\b|s\b",
    re.IGNORECASE,
)
"""Text in quotes; or a number with its noun, and words that depend on singular or plural."""


def _subject(finding: Finding) -> str:
    """Return what a note is about: code and facts without numbers and rows, or such a message."""
    facts = [
        (name, value if isinstance(value, str) else [*value])
        for name, value in sorted(finding.facts.items())
        if value
        and name not in _ROWS
        and isinstance(value, (str, list, tuple))
        and all(isinstance(one, str) for one in value)
    ]
    message = _COUNT.sub(lambda match: match[1] or "", _LIST.sub("", finding.message))
    return f"{finding.code} {facts or message}"


def _without_truths(messages: Messages) -> list[Finding]:
    return [one for one in messages.findings if one.code == "no_ground_truths"]


def _as_notes(messages: Messages, findings: Sequence[Finding]) -> Messages:
    """Return the messages, with some warnings as notes."""
    texts = {finding.message for finding in findings}
    return Messages(
        messages.notes,
        tuple(warning for warning in messages.warnings if warning not in texts),
        tuple(
            msgspec.structs.replace(one, severity="note") if one in findings else one
            for one in messages.findings
        ),
    )


def _of_all(by_part: Mapping[str, Messages]) -> Messages:
    """Merge the notes of partitions that are about the same; name the partitions.

    Findings are kept per partition. One without ground truths is a note if another has some.
    """
    if not all(_without_truths(one) for one in by_part.values()):
        by_part = {part: _as_notes(one, _without_truths(one)) for part, one in by_part.items()}
    groups: dict[tuple[str, int, bool], dict[str, str]] = {}
    findings = []
    for part, one in by_part.items():
        subjects = {finding.message: _subject(finding) for finding in one.findings}
        seen: Counter[str] = Counter()
        for note in one.notes:
            subject = subjects.get(note, note)
            seen[subject] += 1
            groups.setdefault((subject, seen[subject], note in one.warnings), {})[part] = note
        findings += [
            msgspec.structs.replace(finding, message=f"{part}: {finding.message}")
            for finding in one.findings
        ]
    notes, warnings = [], []
    for (*_, warning), of in groups.items():
        first = next(iter(of.values()))
        same = [part for part, note in of.items() if note == first]
        others = [part for part in of if part not in same]
        also = f" Other counts or rows in {listed(others)}." if others else ""
        notes.append(f"{listed(same)}: {first}{also}")
        warnings += notes[-1:] if warning else []
    return Messages(tuple(notes), tuple(warnings), tuple(findings))


def listed(names: Sequence[str]) -> str:
    rest = len(names) - N_NAMES
    return ", ".join(names[:N_NAMES]) + (f" and {rest} more" if rest > 0 else "")


# Incremental scoring of partitions with disjoint datums: only new ones are read and matched.
#
# Each partition's tally is kept in a file, keyed by its content, the options and the version; the
# tallies are merged. The numbers are bit-identical to one run over all partitions.


class Part(msgspec.Struct, frozen=True):
    """Partition: tables of some of the datums, disjoint from all others.

    Attributes:
        predictions: as ``score`` takes them.
        ground_truths: as ``score`` takes them.
    """

    name: str
    predictions: Any
    ground_truths: Any
    datums: Any
    key: str
    tally: Path


class StoredPartition(msgspec.Struct, frozen=True):
    """Metadata that is kept with a partition's tally.

    Attributes:
        iou_type: the compared geometry, if the options, the dialect or the data choose one.
        rows: table -> number of rows.
        recognised: table -> column name in the input -> canonical name.
    """

    key: str
    task: str
    metrics: list[str]
    messages: Messages = msgspec.field(name="told")
    rows: dict[str, int]
    recognised: dict[str, dict[str, str]]
    iou_type: str | None = None


def score_parts(
    parts: Sequence[Part],
    options: Options,
    *,
    labels: Any = None,
    tell: Callable[[str], None] = lambda message: None,
    left: Callable[[], bool] = lambda: False,
    tallied: dict[str, Tallied] | None = None,
) -> Scorecard:
    """Score partitions as one, reading those without a kept tally.

    Args:
        parts: in the order in which their rows count.
        labels: table or list of declared labels, the same for all partitions.
        tell: called with each step as it starts.
        left: returns True if the result is no longer needed.
        tallied: receives each partition as a run.

    Raises:
        OptionError: limits, which need all rows; own metrics that no module defines.
        InputError: a partition breaks the contract, a datum occurs in two, or their columns differ.
    """
    begun = time.perf_counter()
    if options.limits:
        raise invalid(
            "limits",
            True,
            "kept partitions have no rows to match again; omit it, or score the tables in one run.",
        )
    threads = Threads(options.threads)
    tallied_parts: list[_Entry] = []
    names, own_metrics = split_metrics(options)
    entry_names = (stored.WHOLE, *[_OWN] * bool(own_metrics))
    reused = 0
    damaged: list[str] = []
    for n, part in enumerate(parts):
        entry, why = _load_partition(part, entry_names)
        if why:
            damaged.append(f"{part.name}: its kept tally could not be read, and is made again.")
            tell(f"{damaged[-1]} ({why})")
        reused += entry is not None
        if entry is None:
            tell(Step(f"matching {part.name}", n, len(parts), "parts"))
            try:
                entry = _tallied(part, options, labels, threads, keep=not left())
            except InputError as error:
                message = f"{part.name}: {error.message}"
                raise (ReadError if isinstance(error, ReadError) else InputError)(
                    message, code=error.code, **error.facts
                ) from error
        tallied_parts.append(entry)
    tell(f"merging {count_of(len(parts), 'part')}, {reused} of them kept from earlier runs")
    first = tallied_parts[0][0]
    for part, (one, *_) in zip(parts, tallied_parts, strict=True):
        if _kind_of(one) != _kind_of(first):
            raise InputError(
                f"partitions support different metrics: {parts[0].name} is {_kind_of(first)};"
                f" {part.name} is {_kind_of(one)}. Give them the same columns, or name the"
                " metrics.",
                code="parts_differ",
                parts=[parts[0].name, part.name],
            )
    original = options
    if own_metrics:
        options = options.replace(metrics=names or None)
    if first.iou_type is not None:
        options = options.replace(iou_type=first.iou_type)
    plan = planner.narrowed(planner.make_plan(options, first.task), first.metrics)
    try:
        tallies = planner.merge(plan, [tally for _, tally, _ in tallied_parts])
    except InputError as error:
        sharing = _sharing(parts, [tally for _, tally, _ in tallied_parts])
        raise InputError(f"{error.message}{sharing}", code=error.code, **error.facts) from error
    facts = own_values.facts_of(own_metrics)
    of_values = own_values.plan_of(options, first.task, facts) if own_metrics else None
    if tallied is not None:
        for part, (_, tally, values) in zip(parts, tallied_parts, strict=True):
            own_tallied = None if of_values is None else Tallied(of_values, values, threads)
            tallied[part.name] = Tallied(plan, tally, threads, own_tallied)
    rows: dict[str, int] = {}
    for one, *_ in tallied_parts:
        for table, count in one.rows.items():
            rows[table] = rows.get(table, 0) + count
    by_part = {
        part.name: one.messages for part, (one, *_) in zip(parts, tallied_parts, strict=True)
    }
    messages = Messages(notes=tuple(damaged)) + _of_all(by_part)
    card = card_of_tallies(
        plan,
        options,
        tallies,
        threads,
        messages,
        rows=rows,
        recognised=first.recognised,
        sources=dict.fromkeys(rows, f"{len(parts)} parts"),
        facts={"parts": {"all": len(parts), "reused": reused}},
        seconds={"total": time.perf_counter() - begun},
    )
    if of_values is not None:
        values = planner.merge(of_values, [values for _, _, values in tallied_parts])
        own_options = own_values.options_of(options, first.task, facts)
        card.add_own(card_of_tallies(of_values, own_options, values, threads, Messages()), facts)
        card.options = original
    return card


def _kind_of(part: StoredPartition) -> str:
    """Task, compared geometry and metrics of a partition, in words."""
    geometry = "" if part.iou_type is None else f" of {part.iou_type}"
    return f"{part.task}{geometry} with {', '.join(part.metrics)}"


def _sharing(parts: Sequence[Part], tallies: Sequence[Any]) -> str:
    """The first two parts that have a datum in common, in words; empty without any."""
    for i, one in enumerate(tallies):
        for j, other in enumerate(tallies[:i]):
            ours, theirs = one.datums.ids, other.datums.ids
            if ours is None or theirs is None or ours.dtype != theirs.dtype:
                continue
            common = ours.filter(ours.is_in(theirs.implode()))
            if len(common):
                return f" {parts[j].name} and {parts[i].name} share {len(common):,} of them."
    return ""


_Entry = tuple[StoredPartition, Any, Any]
"""Metadata of a partition, its tally, and that of the values of own metrics, if there are any."""

_OWN = "own"
"""Name in the file of a partition of the tally of the values of own metrics."""


def _load_partition(part: Part, names: Sequence[str]) -> tuple[_Entry | None, str]:
    """Return the kept data of a partition, or None; and the reason if an existing file is
    unreadable.

    Args:
        names: of the tallies in its file.
    """
    try:
        about = msgspec.convert(stored.head_of(part.tally)["about"], StoredPartition)
        if about.key != part.key:
            return None, ""
        tallies, *values = stored.load_several(part.tally, names)
        return (about, tallies, values[0] if values else None), ""
    except msgspec.ValidationError:  # of an earlier version
        return None, ""
    except Exception as error:  # whatever damage makes of it: the tally is made again
        return None, str(error) if part.tally.exists() else ""


def _tallied(part: Part, options: Options, labels: Any, threads: Threads, *, keep: bool) -> _Entry:
    run = open_tables(Tables(part.predictions, part.ground_truths, part.datums, labels), options)
    for one in run.own:
        if not one.importable or not one.digest:
            raise invalid(
                "metrics",
                one.name,
                "tallies of partitions are kept between runs, which would not notice that this"
                " function changed. Define it in a module.",
            )
    frames, tallied = tally_run(run, threads)
    plan, rows = run.plan, rows_of(frames)
    frames.notes[:] = unanswered(plan, frames.notes)
    about = StoredPartition(
        key=part.key,
        task=plan.task,
        iou_type=run.options.iou_type,
        metrics=[metric.name for metric in plan.metrics],
        messages=messages_of(frames.notes, frames.recognised),
        rows=rows,
        recognised=frames.recognised,
    )
    if keep:
        with written(part.tally):
            part.tally.parent.mkdir(parents=True, exist_ok=True)
            entries = {stored.WHOLE: tallied.tallies}
            if tallied.own is not None:
                entries[_OWN] = tallied.own.tallies
            stored.save(
                entries, part.tally, fingerprint=plan.fingerprint, about=msgspec.to_builtins(about)
            )
    return about, tallied.tallies, None if tallied.own is None else tallied.own.tallies
