"""Incremental scoring of partitions with disjoint datums: only new ones are read and matched.

Each partition's tally is kept in a file, keyed by its content, the options and the version; the
tallies are merged. The numbers are bit-identical to one run over all partitions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..executors import Threads
from ..ingest.frames import checked_frames
from ..ingest.infer import infer_task
from ..ingest.opening import open_inputs
from ..ingest.problems import count_of
from ..plan import planner
from ..progress import Step
from ..schemas.errors import InputError, OptionError, ReadError, WriteError
from ..schemas.options import Options
from ..schemas.wording import option
from ..scorecard.card import Scorecard
from ..scoring import Told, card_of, told_of, unanswered
from ..tally import stored


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


class Kept(msgspec.Struct, frozen=True):
    """Metadata that is kept with a partition's tally.

    Attributes:
        rows: table -> number of rows.
        recognised: table -> column name in the input -> canonical name.
    """

    key: str
    task: str
    metrics: list[str]
    told: Told
    rows: dict[str, int]
    recognised: dict[str, dict[str, str]]


def score_parts(
    parts: Sequence[Part],
    options: Options,
    *,
    labels: Any = None,
    tell: Callable[[str], None] = lambda said: None,
    left: Callable[[], bool] = lambda: False,
) -> Scorecard:
    """Score partitions as one, reading those without a kept tally.

    Args:
        parts: in the order in which their rows count.
        labels: table or list of declared labels, the same for all partitions.
        tell: called with each step as it starts.
        left: returns True if the result is no longer needed.

    Raises:
        OptionError: limits, which need all rows.
        InputError: a partition breaks the contract, a datum occurs in two, or their columns differ.
    """
    begun = time.perf_counter()
    if options.limits:
        raise OptionError(
            f"{option('limits', True)}: parts that are kept hold no rows to match again; leave it"
            " out, or score the tables in one run."
        )
    threads = Threads(options.threads)
    kept: list[tuple[Kept, Any]] = []
    reused = 0
    damaged: list[str] = []
    for n, part in enumerate(parts):
        found, why = _found(part)
        if why:
            damaged.append(f"{part.name}: its kept tally could not be read, and is made again.")
            tell(f"{damaged[-1]} ({why})")
        reused += found is not None
        if found is None:
            tell(Step(f"matching {part.name}", n, len(parts), "parts"))
            try:
                found = _tallied(part, options, labels, threads, keep=not left())
            except InputError as error:
                said = f"{part.name}: {error.said}"
                raise (ReadError if isinstance(error, ReadError) else InputError)(
                    said, code=error.code, **error.facts
                ) from error
        kept.append(found)
    tell(f"merging {count_of(len(parts), 'part')}, {reused} of them kept from earlier runs")
    first = kept[0][0]
    for part, (one, _) in zip(parts, kept, strict=True):
        if (one.task, one.metrics) != (first.task, first.metrics):
            raise InputError(
                f"parts differ in what they can carry: {parts[0].name} is {first.task} with"
                f" {', '.join(first.metrics)}; {part.name} is {one.task} with"
                f" {', '.join(one.metrics)}. Give them the same columns, or name the metrics.",
                code="parts_differ",
                parts=[parts[0].name, part.name],
            )
    plan = planner.narrowed(planner.make_plan(options, first.task), first.metrics)
    try:
        tallies = planner.merge(plan, [tally for _, tally in kept])
    except InputError as error:
        raise InputError(
            f"{error.said}{_sharing(parts, [t for _, t in kept])}", code=error.code, **error.facts
        ) from error
    rows: dict[str, int] = {}
    for one, _ in kept:
        for table, count in one.rows.items():
            rows[table] = rows.get(table, 0) + count
    told = {
        "inputs": {
            table: {"source": f"{len(parts)} parts", "rows": count} for table, count in rows.items()
        },
        "datums": len(tallies.datums),
        "parts": {"all": len(parts), "reused": reused},
        "recognised": first.recognised,
    }
    told_of_parts = [(part.name, one.told) for part, (one, _) in zip(parts, kept, strict=True)]
    whole = Told(
        notes=(
            *damaged,
            *(f"{name}: {note}" for name, one in told_of_parts for note in one.notes),
        ),
        warnings=tuple(f"{name}: {note}" for name, one in told_of_parts for note in one.warnings),
        findings=tuple(
            msgspec.structs.replace(finding, message=f"{name}: {finding.message}")
            for name, one in told_of_parts
            for finding in one.findings
        ),
    )
    seconds = {"total": time.perf_counter() - begun}
    return card_of(plan, options, tallies, threads, told, seconds, whole)


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


def _found(part: Part) -> tuple[tuple[Kept, Any] | None, str]:
    """Return the kept data of a partition, or None; and the reason if an existing file is
    unreadable.
    """
    try:
        about = msgspec.convert(stored.head_of(part.tally)["about"], Kept)
        if about.key != part.key:
            return None, ""
        return (about, stored.load(part.tally)), ""
    except msgspec.ValidationError:  # of an earlier version
        return None, ""
    except Exception as error:  # whatever damage makes of it: the tally is made again
        return None, str(error) if part.tally.exists() else ""


def _tallied(
    part: Part, options: Options, labels: Any, threads: Threads, *, keep: bool
) -> tuple[Kept, Any]:
    inputs = open_inputs(
        part.predictions, part.ground_truths, datums=part.datums, labels=labels, options=options
    )
    task = infer_task(inputs, options)
    plan = planner.make_plan(options, task)
    frames = checked_frames(inputs, task, plan.options)
    plan = planner.fitted(plan, frames)
    tables = {**frames.sides, "datums": frames.datums, "labels": frames.labels}
    rows = {name: table.height for name, table in tables.items() if table is not None}
    tallies = planner.run(plan, frames, threads)
    frames.notes[:] = unanswered(plan, frames.notes)
    about = Kept(
        key=part.key,
        task=task,
        metrics=[metric.name for metric in plan.metrics],
        told=told_of(frames),
        rows=rows,
        recognised=frames.recognised,
    )
    if keep:
        try:
            part.tally.parent.mkdir(parents=True, exist_ok=True)
            stored.save(
                tallies,
                part.tally,
                fingerprint=plan.fingerprint,
                about=msgspec.to_builtins(about),
            )
        except OSError as error:
            raise WriteError(
                f"cannot write {part.tally}: {error}.", code="write_failed", file=str(part.tally)
            ) from error
    return about, tallies
