"""A run in bounded memory, from open tables to frames."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from .. import scratch
from ..evaluation import limits, planner, summary
from ..evaluation.paging import page_frames
from ..executors import Threads
from ..executors.pools import Pool
from ..executors.processes import pool_of
from ..forked import ending_in_order
from ..ingest.both_sides import ONE_SIDED_LABELS
from ..ingest.collecting import Prepared, in_files, named_problems
from ..ingest.digests import of_buckets, option_digests
from ..ingest.files import Source
from ..ingest.frames import Frames
from ..ingest.id_mismatch import CommonIds, none_listed, note_few_common
from ..ingest.opening import Inputs
from ..ingest.preparing import early_notes, prepare
from ..ingest.problems import (
    OTHER_DOCUMENTS,
    UNMET,
    VOID_PREDICTED,
    ChecksFailed,
    DatumNouns,
    Note,
    count_of,
    notes_of_parts,
    refuse,
)
from ..ingest.recognise import Side
from ..ingest.relabel import hold_labels
from ..ingest.rules import reworded
from ..ingest.rules.columns import columns_read
from ..ingest.rules.values import of_labels
from ..ingest.where import no_rows
from ..metrics.own import OwnMetric
from ..progress import counting, step
from ..schemas.contract import DATUMS, GROUND_TRUTHS, LABELS, PREDICTIONS, TABLE
from ..schemas.errors import ResultError
from ..schemas.options import Options
from ..schemas.results import frame_schema
from ..schemas.tuning import tuning
from ..schemas.wording import option
from ..scorecard.storage import FrameFile, Paged
from ..tallies import stored
from ..tallies.merging import added
from ..tallies.stored import PartsDatums, Place
from .bucket_files import PER_FILE, find_repeats, repeated, unique_columns, without_unique_checks
from .memory import (
    BASE,
    Sizes,
    bucket_count,
    gigabytes,
    large,
    refuse_labels,
    refused,
    run_place,
    scratch_folder,
    sufficient_limit,
    too_full,
    too_many_labels,
    unclear,
)
from .shuffle import Whole, first_rows, heights_of, keys_of, range_folder, split
from .stages import (
    Job,
    bounds_frame,
    collected,
    memory_file,
    merged_by_labels,
    part_file,
    tally_bucket,
    write_job,
    write_values,
)

# Frames of a bounded run: in memory if small, otherwise written row by row.

SINGLE = "per_datum"
Maker = Callable[[], pl.DataFrame]


def frames_of(
    makers: Mapping[str, Maker], tallies: Any, plan: planner.Plan, scratch: str | None, limit: int
) -> dict[str, Maker]:
    """Return makers of the frames of a run whose tally is about to be deleted.

    Args:
        scratch: folder for files; the system's by default.
        limit: memory limit of the run in bytes.

    Raises:
        ScratchError: there is no room for a frame on disk.
    """
    frames: dict[str, Maker] = {}
    for name, make in makers.items():
        if name == SINGLE and plan.does.in_parts is not None and plan.does.in_parts.of_few:
            frames[name] = _of_single_datums(tallies, plan, scratch, limit)
        else:
            frames[name] = make().clone
    return frames


def frames_beyond(frames: Mapping[str, Maker], limit: int) -> list[Note]:
    """Note if the frames in memory exceed the limit.

    Args:
        frames: makers of each frame of a run, already called.
        limit: memory limit of the run in bytes.
    """
    sizes = {
        name: int(make().estimated_size())
        for name, make in frames.items()
        if not isinstance(make, FrameFile)
    }
    if BASE + sum(sizes.values()) <= limit:
        return []
    largest = max(sizes, key=lambda name: sizes[name])
    return [
        Note(
            "frames_beyond_limit",
            f"the frames take {gigabytes(sum(sizes.values()))} of memory in addition to the"
            f" {gigabytes(BASE)} of the process, more than the limit of {gigabytes(limit)}; the"
            f" largest is {largest!r}: ask for fewer metrics or slices that fill it.",
            facts={"largest": largest},
        )
    ]


def _of_single_datums(tallies: Any, plan: planner.Plan, scratch: str | None, limit: int) -> Maker:
    """The values of single datums: of each metric file by file, in the order of one frame."""
    in_parts = plan.does.in_parts
    assert in_parts is not None
    assert in_parts.rows is not None
    rows = in_parts.rows(tallies, plan.cuts_of_needs)
    parts = _single_datums(tallies, plan)
    if 2 * rows * tuning().datum_bytes <= limit - BASE:
        return pl.concat(parts).clone
    import pyarrow.parquet as pq

    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder(scratch, rows * tuning().datum_file_bytes))
        path = folder / f"{SINGLE}.parquet"
        writer = None
        for part in parts:
            table = part.to_arrow(compat_level=pl.CompatLevel.oldest())
            if writer is None:
                writer = stack.enter_context(pq.ParquetWriter(path, table.schema))
            writer.write_table(table)
        assert writer is not None
        writer.close()
        return FrameFile(path, rows, stack.pop_all().close)


def _single_datums(tallies: Any, plan: planner.Plan) -> Iterator[pl.DataFrame]:
    """Yield the frame in parts; without datums, one empty part."""
    assert plan.does.in_parts is not None
    assert plan.does.in_parts.of_few is not None
    columns = [one for group in tallies.stats.columns.values() for one in group]
    several = any(len(column.parameters) > 1 or column.parameters[0] for column in columns)
    schema = frame_schema(SINGLE, datum=tallies.datums.id_dtype)
    if not len(tallies.datums) or not plan.metrics:
        yield pl.DataFrame(schema={**schema, "parameters": pl.String()} if several else schema)
    for few, cuts in plan.does.in_parts.of_few(tallies, plan.cuts_of_needs):
        part = plan.does.own_frames(SINGLE, few, plan.settings, lambda make: [], cuts=cuts)
        if several or "parameters" in part.columns:
            schema = {**schema, "parameters": pl.String()}
        yield part.with_columns(
            pl.lit(None, dtype=dtype).alias(name)
            for name, dtype in schema.items()
            if name not in part.columns
        ).select(*schema)


# Merging of the table descriptions of all parts of a run in bounded memory.


def check_common_ids(heads: list[dict[str, Any]], ready: Prepared) -> list[Note]:
    """Refuse two sides without a common datum; warn if few are common."""
    shared = [head["met"] for head in heads if head["met"] is not None]
    if not shared:
        return []
    common = CommonIds.of_parts(shared)
    if not all(common.sizes):
        return []  # a condition may remove every row of a side
    unlisted = sum(
        note["count"]
        for head in heads
        for note in head["notes"]
        if note["kind"] == "datums_not_listed"
    )
    side = next(side for role, side in ready.sides.items() if role in (PREDICTIONS, TABLE))
    nouns = DatumNouns(side.table.datum, *side.table.unit)
    if unlisted == sum(common.sizes):
        raise none_listed(common.some[1], None, nouns)
    return note_few_common(common, listed=DATUMS in ready.sides and not unlisted, nouns=nouns)


def notes_of(
    heads: list[dict[str, Any]], ready: Prepared, whole: Whole, options: Options
) -> list[Note]:
    """Merge the notes of all buckets."""
    bucket_notes = [msgspec.convert(head["notes"], list[Note]) for head in heads]
    bucket_notes = _of_all(bucket_notes, heads)
    frames = dict(whole.blanks)
    if whole.labels is not None:
        frames[LABELS] = whole.labels
    if not whole.pairs:
        return _where(heads, ready, whole) + notes_of_parts(bucket_notes, reworded)
    _, label_notes = hold_labels(frames, options.label_map, whole.pairs)
    if any(note.kind in ONE_SIDED_LABELS for note in label_notes):
        label_notes += of_labels(ready, options, label_notes)
    return _where(heads, ready, whole) + notes_of_parts(bucket_notes, reworded) + label_notes


def _of_all(notes_by_bucket: list[list[Note]], heads: list[dict[str, Any]]) -> list[list[Note]]:
    """Notes of each bucket; a fact of all buckets is reported once, otherwise not at all."""
    sides = [
        bool(head["heights"].get(TABLE))
        or all(head["heights"].get(role) for role in (PREDICTIONS, GROUND_TRUTHS))
        for head in heads
    ]
    per_fact: dict[tuple[str, str], list[Note | None]] = {}
    for i, notes in enumerate(notes_by_bucket):
        for note in notes:
            if note.kind in (OTHER_DOCUMENTS, UNMET, VOID_PREDICTED):
                key = note.kind, repr(note.facts)
                per_fact.setdefault(key, [None] * len(notes_by_bucket))[i] = note
    common = []
    for (kind, _), each in per_fact.items():
        notes_of_buckets = [
            note
            for note, has_both_sides in zip(each, sides, strict=True)
            if has_both_sides or kind == UNMET
        ]
        if all(notes_of_buckets):
            common += [note for note in each if note][:1]
    rest = [
        [note for note in notes if (note.kind, repr(note.facts)) not in per_fact]
        for notes in notes_by_bucket
    ]
    return [*rest, common] if common else rest


def _where(heads: list[dict[str, Any]], ready: Prepared, whole: Whole) -> list[Note]:
    """Return notes on the number of rows removed by conditions, and a warning if none remain."""
    texts = dict.fromkeys(repr(condition.text) for condition in ready.where.values())
    notes = []
    rows = merged_heights(heads, whole)
    for role in (PREDICTIONS, GROUND_TRUTHS, TABLE, DATUMS):
        before = whole.before.get(role, whole.heights.get(role))
        if before is None or not ready.where or role not in rows:
            continue
        gone = before - rows[role]
        if role in ready.where or gone:
            notes.append(
                Note(
                    "where",
                    f"where {' and '.join(texts)} removed {gone:,} of"
                    f" {count_of(before, 'row')} of the {role.replace('_', ' ')}.",
                    gone,
                )
            )
    return notes + no_rows(ready.where, rows)


def merged_heights(heads: list[dict[str, Any]], whole: Whole) -> dict[str, int]:
    labels = {} if whole.labels is None else {LABELS: whole.labels.height}
    return added(head["heights"] for head in heads) | labels


class BucketPlan(msgspec.Struct):
    """Tables to be processed in buckets.

    Attributes:
        heads: role to its first rows.
        heights: role to number of rows.
        limit: memory limit in bytes.
    """

    ready: Prepared
    heads: dict[str, pl.DataFrame]
    heights: dict[str, int]
    sizes: Sizes
    limit: int


def plan_buckets(
    plan: planner.Plan,
    inputs: Inputs,
    options: Options,
    pool: Pool,
    n_own: int = 0,
    *,
    in_memory: bool = False,
    single: bool = False,
    rows: float | None = None,
) -> tuple[BucketPlan | None, str]:
    """Decide if a run uses buckets; otherwise return the reason, if a limit or a pool requested
    them.

    For runs that request it, or whose tables are :func:`large`.

    Args:
        n_own: number of own metrics.
        in_memory: the tally remains in memory after the run.
        single: return the plan also if it has only one bucket.
        rows: plan as if all tables together had so many rows.
    """
    required = options.memory_limit is not None or pool.apart
    requested = options.memory_limit
    limit = sufficient_limit(requested)
    share = pool.share(limit)
    if scratch.local(options.scratch) is None and options.scratch is not None:
        share = min(share, _MOST_SHARE)
    ready = prepare(inputs, plan.task, options)
    if pool.apart:
        pool.prepare(tally_bucket)
    reason = refused(ready, options)
    if not reason:
        heads = first_rows(ready)
        reason = unclear(plan, ready, heads)
    if reason:
        return None, reason if required else ""
    heights = heights_of(ready)
    if not all(heights[role] for role in heights if role != DATUMS):
        return None, ""
    if rows is not None:
        times = rows / sum(heights[role] for role in heights if role != DATUMS)
        heights = {role: max(1, round(height * times)) for role, height in heights.items()}
        requested = None  # the forecast itself reports how many rows a limit allows
    refuse(named_problems(ready.sides), {r: s.source.description for r, s in ready.sides.items()})
    of_datums = plan.does.in_parts is not None and plan.does.in_parts.of_few is not None
    more = in_memory or n_own or options.columns_of_datums or options.drawn or options.limits
    bucket_bytes, memory_bytes = plan.does.outcome_bytes(plan.settings, plan.needs)
    filed, recorded = _bytes_in_parts(plan, ready, heads), 0
    if filed is None:
        from .memory import tally_bytes

        recorded = tally_bytes(plan)
    sizes = bucket_count(
        ready,
        heads,
        heights,
        share,
        task=plan.task,
        least=pool.least,
        plain=not (more or of_datums),
        workers=limit // share,
        given=requested,
        filed=filed,
        outcomes=(bucket_bytes + n_own * _OWN_VALUE, memory_bytes + n_own * _OWN_VALUE),
        tally_row=recorded,
    )
    if sizes.n > 1 and requested is not None and (keys := keys_of(ready, heads)) is not None:
        too_full(keys.fullest, limit, share, plan.task, options)
        ahead = plan.does.fitted_by_rows is not None
        fitted = plan if ahead else fitted_to_heads(plan, ready, heads, [])[0]
        refuse_labels(fitted, keys.labels, keys.groups, options)
    return (
        (None, "")
        if sizes.n < 2 and not single
        else (BucketPlan(ready, heads, heights, sizes, limit), "")
    )


def describe_memory(
    plan: planner.Plan,
    inputs: Inputs,
    options: Options,
    rows: float | None = None,
    workers: int | None = None,
) -> list[str]:
    """Return lines on the use of buckets; empty if they are neither requested nor needed.

    Args:
        rows, workers: of a run to forecast, if any is given.

    Raises:
        OptionError: a memory limit that :func:`evalengine.score` would refuse.
    """
    forecast = rows is not None or workers is not None
    if options.memory_limit is None and not large(inputs) and not forecast:
        return []
    pool = pool_of(None, None, options.threads)
    parts, reason = plan_buckets(plan, inputs, options, pool, single=True, rows=rows)
    if forecast:
        from .memory import describe_forecast

        of_tables = None
        if parts is not None:
            of_tables = parts.sizes, sum(parts.heights[r] for r in parts.heights if r != DATUMS)
        return describe_forecast(plan, rows, workers, of_tables)
    if parts is not None and parts.sizes.n > 1:
        sizes = parts.sizes
        return [
            f"memory    {sizes.n} buckets on disk, each within {parts.limit / 1e9:.2f} GB; about"
            f" {sizes.scratch / 1e9:.2f} GB of scratch"
        ]
    if options.memory_limit is None:
        return []
    return [f"memory    all rows at once: {reason or 'they fit the limit'}"]


_MOST_SHARE = 4 << 30  # bytes of a bucket's memory, so that no file exceeds 5 GB, S3's limit
_OWN_VALUE = 64  # bytes of a value of an own metric, with its datum, metric, weight and slices


EstimateOf = Callable[[planner.Plan, Any, Threads], summary.Estimate | None]
"""Function that computes intervals for the numbers of a plan and its tallies."""


def run(
    bucket_plan: BucketPlan,
    plan: planner.Plan,
    options: Options,
    pool: Pool,
    estimate_of: EstimateOf | None,
    *,
    in_memory: bool = False,
    disk: ExitStack | None = None,
    own: Sequence[OwnMetric] = (),
    own_values: Path | None = None,
    storage: dict[str, str] | None = None,
) -> summary.Result:
    """Shuffle rows to buckets, tally every bucket, merge, summarise.

    Args:
        bucket_plan: result of :func:`plan_buckets`.
        estimate_of: computes intervals, if requested.
        in_memory: keep the tally in memory as far as the limit allows; otherwise only if it is
            small.
        disk: receives the scratch folder; the tally is usable until it is closed.
        own: own metrics.
        own_values: file to write with their values of single datums.
        storage: options of an object store that has the scratch files.

    Raises:
        ResultError: it is too large for that.
        InputError: the tables break their contract; counts and row numbers are of the whole.
        ScratchError: the scratch folder is too small for the run.
    """
    ready, n = bucket_plan.ready, bucket_plan.sizes.n
    notes = early_notes(ready, options)
    by_rows = plan.does.fitted_by_rows
    full_plan, ahead = plan, by_rows.columns if by_rows is not None else ()
    fit_notes: list[Note] = []
    if not ahead:
        plan, notes = fitted_to_heads(plan, ready, bucket_plan.heads, notes)
    needed = bucket_plan.sizes.scratch * (_BOUNDS_ROOM if options.limits else 1)
    with ending_in_order(), ExitStack() as stack:
        most = min(pool.share(bucket_plan.limit) // 4, tuning().object_bytes)
        folder, place = (disk or stack).enter_context(
            run_place(options.scratch, needed, storage, most)
        )
        if place is not None:
            pool = scratch.AttachedPool(pool, place)
        step(f"shuffling rows to {n} buckets")
        shuffled = split(
            ready,
            bucket_plan.heads,
            bucket_plan.heights,
            folder,
            n,
            pool,
            ahead,
            client_reads=bool(options.client_reads),
            most=None if place is None else most,
            mapped=options.label_map is not None,
        )
        notes += too_full(
            shuffled.fullest(folder),
            bucket_plan.limit,
            pool.share(bucket_plan.limit),
            plan.task,
            options,
        )
        several = None
        if ahead:
            plan, several = planner.may_fit(plan, shuffled.ahead)
        notes += shuffled.notes
        in_parts = plan.does.in_parts
        room = max(0, bucket_plan.limit - BASE) // _MERGED
        job = Job(
            explicit_metrics(options, plan),
            plan.task,
            plan.needs,
            plan.fingerprint,
            _without_sources(ready),
            shuffled,
            ids=max(1, bucket_plan.sizes.datums_at_once // (4 * n)),
            memory=room if in_memory else min(room, tuning().tally_bytes),
            several=several,
            highest=_highest(folder, shuffled, ready, plan),
            own=tuple(one.reference for one in own),
        )
        digest = write_job(folder, job)
        here = str(folder)
        repeats = _repeats(ready, shuffled, folder, pool)
        calls = [(here, b, pool.threads, digest) for b in range(n)]
        with counting("matching", n, "buckets"):
            done = pool.run(tally_bucket, calls)
        try:
            collected([*done, repeats])
        except ChecksFailed as failure:
            raise ChecksFailed(in_files(failure.problems, ready), failure.sources) from None
        heads = [stored.head_of(part_file(folder, b))["about"] for b in range(n)]
        if several is not None:
            assert by_rows is not None
            parts_of: list[Any] = [
                msgspec.convert(head["findings"], by_rows.findings) for head in heads
            ]
            plan, fit_notes = planner.fitted_late(full_plan, by_rows.merge(parts_of))
        if own_values is not None:
            write_values(here, n, own_values)
        notes += check_common_ids(heads, ready)
        notes += planner.worth_telling(plan, notes_of(heads, ready, shuffled, options))
        step("merging")
        parts = list(range(n))

        def merged(home: str) -> Any:
            return _merged(home, parts, plan, bucket_plan.sizes, pool)

        tallies, n_datums = merged(here)
        if (late := plan.does.late_notes) is not None:
            notes = [note for note in notes if note.kind not in late.kinds]
            notes += late.notes(tallies, plan.settings, plan.needs)
        too_many_labels(plan, tallies, options)
        # Views in files read one bucket at a time.
        threads = Threads(1 if in_parts else options.threads)
        estimate = None if estimate_of is None else estimate_of(plan, tallies, threads)
        makers, _ = summary.summarise(plan, tallies, threads=threads, estimate=estimate)
        step("making frames")
        if options.limits:
            moved = bounds_frame(
                here,
                parts,
                [head["limits"] for head in heads],
                plan,
                makers["metrics"](),
                pool,
                digest,
                lambda home: merged(home)[0],
            )
            makers = {**makers, limits.FRAME: lambda: moved}
        frames = frames_of(makers, tallies, plan, options.scratch, bucket_plan.limit)
        page = _page(plan, tallies, threads) if plan.paged else Paged()
        table = ready.sides.get(TABLE)
        unnamed = table is not None and table.table.datum not in bucket_plan.heads[TABLE].columns
        tallied = _tally_in_memory(here, parts, plan, options, job.memory, unnamed=unnamed)
        corrects = plan.does.judge and options.human is not None
        datums = None
        if corrects and options.columns_of_datums and isinstance(tallies.datums, PartsDatums):
            datums = tallies.datums.in_memory()
        if disk is not None:
            tallied = summary.Tallied(plan, tallies, threads)
        if in_memory and tallied is None:
            raise ResultError(
                f"{option('memory_limit', options.memory_limit)}: this search needs the tally of"
                " all datums in memory, which takes more than its share of the limit,"
                f" {gigabytes(job.memory)}. Raise it, or omit it.",
                code="memory_limit_too_small",
            )
        notes += frames_beyond({**frames, **page.makers}, bucket_plan.limit)
        notes += [] if estimate is None else estimate.notes()
    content = {**of_buckets([head["content"] for head in heads]), **option_digests(options)}
    return summary.Result(
        plan=plan,
        content=lambda: content,
        frames=frames,
        labels=tallies.labels.frame,
        notes=notes + fit_notes,
        rows=merged_heights(heads, shuffled),
        n_datums=n_datums,
        recognised=heads[0]["recognised"],
        sources={role: side.source.description for role, side in ready.sides.items()},
        seconds=tallies.seconds,
        facts={
            "buckets": n,
            "columns": columns_read(
                {role: (side.schema, side.naming) for role, side in ready.sides.items()},
                options.columns,
                tuple(ready.plan.homes),
                ready.where,
            ),
        },
        page=page,
        tallied=tallied,
        values=own_values,
        datums=datums,
    )


def _merged(
    folder: str, parts: list[int], plan: planner.Plan, sizes: Sizes, pool: Pool
) -> tuple[Any, int]:
    """Merge the tallies of all buckets in a folder; also return the number of datums."""
    if plan.does.by_labels:
        facts = [stored.head_of(part_file(folder, bucket))["about"] for bucket in parts]
        return merged_by_labels(folder, parts, facts, plan, sizes, pool)
    in_parts = plan.does.in_parts
    assert in_parts is not None
    files = [str(part_file(folder, bucket)) for bucket in parts]
    place = Place(scratch.local(folder), sizes.run_rows)
    tallies = in_parts.of_parts(files, place, plan.settings)
    return tallies, len(tallies.datums)


_BOUNDS_ROOM = 3  # times as much room for tallies if bounds are computed
_MERGED = 4  # bytes of memory per byte of kept tallies during their merge


def _tally_in_memory(
    folder: str, parts: list[int], plan: planner.Plan, options: Options, most: int, *, unnamed: bool
) -> summary.Tallied | None:
    """Return the in-memory tally of all buckets; None if it exceeds ``most`` bytes.

    Args:
        unnamed: the table has no ids of datums, whose ids are then the numbers of its rows.
    """
    files = [memory_file(folder, bucket) for bucket in parts]
    if not all(map(scratch.exists, files)) or sum(map(scratch.size, files)) > most:
        return None
    tallies = plan.does.merge([stored.load(file) for file in files], plan.settings)
    if unnamed:  # else it could not be compared with a run in memory, which has no ids
        datums = msgspec.structs.replace(tallies.datums, ids=None, rows=len(tallies.datums))
        tallies = msgspec.structs.replace(tallies, datums=datums)
    return summary.Tallied(plan, tallies, Threads(options.threads))


def _page(plan: planner.Plan, tallies: Any, threads: Threads) -> Paged:
    """The frames of the report, made while the tally is there."""
    frames = page_frames(plan, tallies, threads)
    missing = {**frames.missing, "worst": "the tally of single datums is too large to keep."}
    return Paged({name: make().clone for name, make in frames.makers.items()}, missing)


def _highest(folder: Path, whole: Whole, ready: Prepared, plan: planner.Plan) -> float | None:
    """Return the highest value of the column that metrics scale by, at least 0; or None."""
    column = None if plan.does.scaling is None else plan.does.scaling.column(plan.needs)
    if column is None:
        return None
    highs = [0.0]
    for role, blank in whole.blanks.items():
        if column not in blank.columns:
            highs += [1.0] if role in (GROUND_TRUTHS, TABLE) and whole.heights[role] else []
            continue
        values = pl.col(column).explode() if blank.schema[column].is_nested() else pl.col(column)
        for bucket in range(whole.n):
            high = whole.read_left(folder, role, bucket, ready).select(values.max()).item()
            highs += [] if high is None else [float(high)]
    return max(highs)


def _bytes_in_parts(
    plan: planner.Plan, ready: Prepared, heads: Mapping[str, pl.DataFrame]
) -> tuple[int, int] | None:
    """Bytes on disk of a unit and of a scored label whose parts stay in files; else None."""
    parts = plan.does.in_parts
    if parts is None or parts.bytes_on_disk is None:
        return None
    slices = len(ready.plan.by)
    return parts.bytes_on_disk(plan.metrics, plan.settings, plan.needs, heads, slices)


def _repeats(ready: Prepared, whole: Whole, folder: Path, pool: Pool) -> BaseException | None:
    """Check values that must be unique across buckets; return the error, if any."""
    ranges = {
        role: [(str(range_folder(folder, role, i)), before) for i, before in enumerate(begins)]
        for role, begins in whole.begins.items()
    }
    calls = [
        (str(folder), role, name, file, ranges[role])
        for role in whole.heights
        for name in unique_columns(ready.sides[role])
        if name in whole.blanks[role].columns
        for file in range(-(-whole.n // PER_FILE))
    ]
    if not calls:
        return None
    scratch.make_folder(folder / "repeats")
    collected(pool.run(find_repeats, calls))
    problems = repeated(folder, ready, whole.heights, whole.n)
    sources = {role: side.source.description for role, side in ready.sides.items()}
    return ChecksFailed(problems, sources) if problems else None


def explicit_metrics(options: Options, plan: planner.Plan) -> Options:
    """Options that name the metrics the tables carry, so that every process plans the same."""
    names = []
    for metric in plan.metrics:
        cuts = plan.cuts.get(metric.name)
        cut_names = (
            [metric.name]
            if cuts is None
            else [metric.name if k is None else f"{metric.name}@{k}" for k in cuts]
        )
        names += cut_names
    return msgspec.structs.replace(options, metrics=tuple(names) if names else None)


def fitted_to_heads(
    plan: planner.Plan, ready: Prepared, heads: Mapping[str, pl.DataFrame], notes: list[Note]
) -> tuple[planner.Plan, list[Note]]:
    """Fit the plan to the tables' columns; return it with the notes, including those on removed
    metrics.
    """
    sides = dict(heads)
    datums = sides.pop(DATUMS, None)
    wide = next((side.naming.labels for side in ready.sides.values() if side.naming.wide), None)
    labels = None if wide is None else pl.Series("score_labels", [str(one) for one in wide])
    frames = Frames(sides=sides, datums=datums, score_labels=labels, notes=notes)
    return planner.fitted(plan, frames), frames.notes


def _without_sources(ready: Prepared) -> Prepared:
    """The tables for another process: no rows, no files."""
    sides = {}
    for role, side in ready.sides.items():
        source = Source(
            pl.LazyFrame(), side.source.description, side.source.format, side.source.files[:1]
        )
        sides[role] = without_unique_checks(Side(source, side.table, side.schema, side.naming))
    prepared = Prepared(sides, ready.plan, ready.where)
    pickle.dumps(prepared)  # fails here, not in a worker
    return prepared
