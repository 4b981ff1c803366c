"""A run in bounded memory, from open tables to frames."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from .. import planner
from ..executors import Threads
from ..executors.pools import Pool
from ..inputs import meeting
from ..inputs.collecting import Prepared, Side
from ..inputs.frames import Frames, prepare, told_before
from ..inputs.opening import Inputs
from ..inputs.problems import ChecksFailed, Note, count_of, notes_of_parts, problems_of_parts
from ..inputs.relabel import hold_labels
from ..readers.source import Source
from ..schemas.contract import DATUMS, GROUND_TRUTHS, LABELS, PREDICTIONS, TABLE
from ..schemas.errors import InputError
from ..schemas.options import Options
from ..tally import stored
from ..tally.datums import Datums
from ..tally.grouped import RankedGroups
from ..tally.merging import merge_counts, merge_datums, merged_seconds
from .scratch import scratch_folder
from .sizing import Sizes, buckets, free_memory, limit_of, refused
from .splitting import Whole, heads_of, heights_of, split
from .stages import (
    Job,
    chunks,
    code_datums,
    group_file,
    merge_labels,
    part_file,
    tally_bucket,
    write_job,
)

Array = np.ndarray[Any, Any]
Tell = Callable[[str], None]


class Done(msgspec.Struct):
    """What a bounded run leaves behind.

    Attributes:
        plan: the plan, fitted.
        frames: name -> output frame.
        labels: label_key, label_value, label_name.
        notes: of the inputs.
        rows: table -> rows.
        n_datums: how many datums there are.
        recognised: table -> own column name -> canonical name.
        sources: table -> where it came from.
        seconds: step -> seconds of all workers.
        buckets: number of buckets.
    """

    plan: planner.Plan
    frames: dict[str, pl.DataFrame]
    labels: pl.DataFrame
    notes: list[Note]
    rows: dict[str, int]
    n_datums: int
    recognised: dict[str, dict[str, str]]
    sources: dict[str, str]
    seconds: dict[str, float]
    buckets: int


class Wanted(msgspec.Struct):
    """Tables that go through buckets, and how many.

    Attributes:
        ready: the tables before any row is read.
        heights: role to rows.
        sizes: memory and scratch that the run will need.
    """

    ready: Prepared
    heights: dict[str, int]
    sizes: Sizes


def wanted(
    plan: planner.Plan, inputs: Inputs, options: Options, pool: Pool
) -> tuple[Wanted | None, str]:
    """Whether a run goes through buckets; and why not, where a limit or a pool asked for it.

    Small inputs are told by the sizes of their files, before anything is looked at.

    Args:
        plan: the plan.
        inputs: the open tables.
        options: of the run.
        pool: where stages run.
    """
    asked = options.memory_limit is not None or pool.apart
    if not asked and not _large(inputs):
        return None, ""
    share = pool.share(limit_of(options.memory_limit))
    ready = prepare(inputs, plan.task, options)
    reason = refused(plan, ready, options)
    if reason:
        return None, reason if asked else ""
    heights = heights_of(ready)
    if not all(heights[role] for role in heights if role != DATUMS):
        return None, ""
    sizes = buckets(ready, heads_of(ready), heights, share, least=pool.least)
    return (None, "") if sizes.n < 2 else (Wanted(ready, heights, sizes), "")


def _large(inputs: Inputs) -> bool:
    """Whether files are so large that they may not fit into memory once they are read."""
    size = 0
    for source in inputs.sources.values():
        for file in source.files:
            try:
                size += os.path.getsize(file)
            except OSError:
                return False
    return size * _GROWTH > free_memory() // 2


_GROWTH = 12  # bytes in memory, at most, of a byte of compressed columns while they are matched


def run(found: Wanted, plan: planner.Plan, options: Options, pool: Pool, tell: Tell) -> Done:
    """Deal rows out, tally every bucket, merge, summarise.

    Args:
        found: as :func:`wanted` tells it.
        plan: the plan.
        options: of the run.
        pool: where stages run.
        tell: called with each step.

    Raises:
        InputError: the tables break their contract; counts and row numbers are of the whole.
        ScratchError: the scratch folder cannot hold the run.
    """
    ready, n = found.ready, found.sizes.n
    notes = told_before(ready, options)
    plan, fit_notes = _fitted(plan, ready)
    with scratch_folder(options.scratch, found.sizes.scratch) as folder:
        tell(f"dealing rows out to {n} buckets")
        whole = split(ready, found.heights, folder, n)
        notes += whole.notes
        grouped = plan.task == "detection"
        job = Job(
            _told(options, plan),
            plan.task,
            plan.needs,
            plan.fingerprint,
            _without_sources(ready),
            whole,
            found.sizes.chunks if grouped else 0,
        )
        write_job(folder, job)
        here = str(folder)
        tell("matching")
        _collected(pool.run(tally_bucket, [(here, b, pool.threads) for b in range(n)]))
        heads = [stored.head_of(part_file(folder, b))["about"] for b in range(n)]
        _check_met(heads, ready, whole)
        notes += _notes(heads, ready, whole, options)
        tell("merging")
        parts = list(range(n))
        if grouped:
            tallies, n_datums = _grouped(here, parts, heads, plan, found.sizes, pool)
        else:
            tallies = planner.merge(plan, [stored.load(part_file(folder, b)) for b in parts])
            n_datums = len(tallies.datums)
        told = getattr(plan.module, "label_notes", None)
        if told is not None:  # labels that only tallying finds
            notes = [note for note in notes if note.kind not in _OF_LABELS] + told(tallies)
        threads = Threads(options.threads)
        makers, _ = planner.summarise(plan, tallies, threads=threads)
        frames = {name: make() for name, make in makers.items()}
    return Done(
        plan=plan,
        frames=frames,
        labels=tallies.labels.frame,
        notes=notes + fit_notes,
        rows=_rows(heads, whole),
        n_datums=n_datums,
        recognised=heads[0]["recognised"],
        sources={role: side.source.description for role, side in ready.sides.items()},
        seconds=tallies.seconds,
        buckets=n,
    )


_OF_LABELS = (
    "labels_in_predictions_only",
    "labels_in_ground_truths_only",
    "labels_not_declared",
    "no_common_label_key",
)


def _told(options: Options, plan: planner.Plan) -> Options:
    """Options that name the metrics the tables carry, so that every process plans the same."""
    names = []
    for metric in plan.metrics:
        cuts = plan.cuts.get(metric.name)
        own = [metric.name] if cuts is None else [
            metric.name if k is None else f"{metric.name}@{k}" for k in cuts
        ]  # fmt: skip
        names += own
    return msgspec.structs.replace(options, metrics=tuple(names) if names else None)


def _fitted(plan: planner.Plan, ready: Prepared) -> tuple[planner.Plan, list[Note]]:
    """The plan for the tables' columns."""
    sides = {role: head for role, head in heads_of(ready).items() if role != DATUMS}
    wide = next((side.naming.labels for side in ready.sides.values() if side.naming.wide), None)
    labels = None if wide is None else pl.Series("score_labels", [str(one) for one in wide])
    frames = Frames(sides=sides, score_labels=labels)
    return planner.fitted(plan, frames), frames.notes


def _without_sources(ready: Prepared) -> Prepared:
    """The tables for another process: no rows, no files."""
    sides = {}
    for role, side in ready.sides.items():
        source = Source(
            pl.LazyFrame(),
            side.source.description,
            side.source.format,
            side.source.files[:1],
        )
        sides[role] = Side(source, side.table, side.schema, side.naming)
    bare = Prepared(sides, ready.plan, ready.where)
    pickle.dumps(bare)  # fails here, not in a worker
    return bare


def _collected(failures: Sequence[BaseException | None]) -> None:
    """Raise what went wrong in some buckets: problems of their rows together."""
    found = [failure for failure in failures if failure is not None]
    problems = [failure for failure in found if isinstance(failure, ChecksFailed)]
    for failure in found:
        if not isinstance(failure, ChecksFailed):
            raise failure
    if problems:
        together = problems_of_parts(failure.problems for failure in problems)
        raise ChecksFailed(together, problems[0].sources)


def _check_met(heads: list[dict[str, Any]], ready: Prepared, whole: Whole) -> None:
    """Refuse two sides without a common datum."""
    met = [head["met"] for head in heads if head["met"] is not None]
    if not met or any(common for _, common, _ in met):
        return
    unlisted = any(note[0] == "datums_not_listed" for head in heads for note in head["notes"])
    if DATUMS in ready.sides and not unlisted:
        return
    side = next(side for role, side in ready.sides.items() if role in (PREDICTIONS, TABLE))
    ours, theirs = (
        (
            sum(sizes[i] for sizes, _, _ in met),
            pl.Series([one for _, _, lowest in met for one in lowest[i]]).sort(),
        )
        for i in (0, 1)
    )
    meeting.refuse_apart(ours, theirs, meeting.Speech(side.table.datum, *side.table.unit))


def _notes(
    heads: list[dict[str, Any]], ready: Prepared, whole: Whole, options: Options
) -> list[Note]:
    """What the rows tell, of the whole."""
    found = [
        [Note(kind, said, count, words and tuple(words), tuple(lowest))
         for kind, said, count, words, lowest in head["notes"]]
        for head in heads
    ]  # fmt: skip
    frames = dict(whole.blanks)
    if whole.labels is not None:
        frames[LABELS] = whole.labels
    if not whole.pairs:
        return _where(heads, ready, whole) + notes_of_parts(found)
    _, told = hold_labels(frames, options.label_map, whole.pairs)
    return _where(heads, ready, whole) + notes_of_parts(found) + told


def _where(heads: list[dict[str, Any]], ready: Prepared, whole: Whole) -> list[Note]:
    """How many rows conditions removed."""
    texts = dict.fromkeys(repr(condition.text) for condition in ready.where.values())
    notes = []
    rows = _rows(heads, whole)
    for role in (PREDICTIONS, GROUND_TRUTHS, TABLE, DATUMS):
        before = whole.before.get(role, whole.heights.get(role))
        if before is None or not ready.where or role not in rows:
            continue
        gone = before - rows[role]
        if role in ready.where or gone:
            notes.append(
                Note("where", f"where {' and '.join(texts)} removed {gone:,} of"
                     f" {count_of(before, 'row')} of the {role.replace('_', ' ')}.", gone)
            )  # fmt: skip
    return notes


def _rows(heads: list[dict[str, Any]], whole: Whole) -> dict[str, int]:
    rows: dict[str, int] = {}
    for head in heads:
        for role, height in head["heights"].items():
            rows[role] = rows.get(role, 0) + height
    if whole.labels is not None:
        rows[LABELS] = whole.labels.height
    return rows


def _grouped(
    folder: str,
    parts: list[int],
    heads: list[dict[str, Any]],
    plan: planner.Plan,
    sizes: Sizes,
    pool: Pool,
) -> tuple[Any, int]:
    """The tally of all buckets, whose ranked rows stay on disk by groups of labels."""
    per_label: Array = np.array([head["labels"] for head in heads], np.int64).sum(axis=0)
    total = code_datums(folder, parts, sizes.datums_at_once)
    named_chunks = chunks(per_label.size, sizes.chunks)
    per_chunk = np.array([per_label[a:b].sum() for a, b in named_chunks.values()], np.int64)
    cuts = label_groups(per_chunk, sizes.group_rows)
    names = list(named_chunks)
    bounds = [*(named_chunks[names[cut]][0] for cut in cuts[:-1]), int(per_label.size)]
    calls = [
        (folder, group, names[first:last], parts)
        for group, (first, last) in enumerate(pairwise(cuts))
    ]
    _collected(pool.run(merge_labels, calls))
    tallies = [stored.load(part_file(folder, bucket)) for bucket in parts]
    first = tallies[0]
    named = bool(first.datums.slices.width) or first.examples is not None
    named = named or first.outcomes is not None or first.datums.dataset is not None
    datums = Datums(None, pl.DataFrame(), None, total)
    if named:
        datums, _ = merge_datums([one.datums for one in tallies])
    empty = [msgspec.structs.replace(one, crossed=None) for one in tallies]
    whole = planner.merge(plan, empty) if named else first
    crossed = [one.crossed for one in tallies if one.crossed is not None]
    codes = [np.load(Path(folder) / "parts" / f"{bucket}.npy") for bucket in parts]
    same = np.arange(len(first.labels), dtype=np.int32)
    files = tuple(str(group_file(folder, group)) for group in range(len(calls)))
    single = {one.ranked.single for one in tallies}
    if len(single) > 1:
        raise InputError("scores differ in precision between files: cast them to one.")
    ranked = RankedGroups(files, tuple(bounds), first.ranked, int(per_label.sum()))
    return (
        msgspec.structs.replace(
            whole,
            datums=datums,
            ranked=ranked,
            crossed=merge_counts(crossed, codes, [same] * len(parts)) if crossed else None,
            seconds=merged_seconds(tallies),
        ),
        total,
    )


def label_groups(rows: Array, most: int) -> list[int]:
    """Bounds of groups of consecutive labels of at most so many rows; a larger one stands alone.

    Args:
        rows: int64 [n], rows of each label or chunk of labels.
        most: rows of a group.
    """
    bounds, held = [0], 0
    for label, size in enumerate(rows.tolist()):
        if held and held + size > most:
            bounds.append(label)
            held = 0
        held += size
    if rows.size or len(bounds) == 1:
        bounds.append(int(rows.size))
    return bounds
