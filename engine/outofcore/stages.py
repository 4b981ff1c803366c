"""Stages of a bounded run, and its tally by groups of labels whose rows stay on disk."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from hashlib import sha256
from itertools import count, pairwise
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from .. import scratch
from ..atomic import whole_file
from ..evaluation import limits, planner
from ..evaluation import own as own_values
from ..evaluation.limits import facts_of
from ..executors import Threads
from ..executors.pools import Pool
from ..ingest.collecting import Prepared
from ..ingest.digests import digests_of
from ..ingest.frames import Frames, Part, assemble
from ..ingest.ids import Bucket
from ..ingest.problems import ChecksFailed, PartRefused, problems_of_parts
from ..metrics.own import split
from ..schemas.arrays import Array
from ..schemas.contract import LABELS, ROW
from ..schemas.errors import InputError, OptionError, ScratchError
from ..schemas.options import Options
from ..tallies import stored
from ..tallies.datums import Datums
from ..tallies.merging import merge_counts, merge_datums, merge_ranked, merged_seconds, one_dtype
from ..tallies.ranked import (
    OF_ROWS,
    OF_TRUTHS,
    Ranked,
    RankedRun,
    Span,
    narrowed,
    of_labels,
    of_rows,
    with_datums,
    without_rows,
)
from ..tallies.ranked_view import Query
from ..tallies.stored import ROWS
from .memory import Sizes
from .shuffle import Whole, check_worker

# Job parameters on disk, verified by digest.
#
# Unpickling executes code, and a folder on a shared disk may be writable by others whatever its
# mode is. So every call brings the digest of the file that it reads.


def write_pickle(path: Path, thing: Any) -> str:
    """Write a thing for the stages of a run; the digest that they need to read it."""
    written = pickle.dumps(thing, protocol=5)
    scratch.write(path, written)
    return sha256(written).hexdigest()


def read_pickle(path: Path, digest: str) -> Any:
    """Load a stored object.

    Raises:
        ScratchError: the file has another digest.
    """
    content = scratch.read(path)
    if sha256(content).hexdigest() != digest:
        raise ScratchError(
            f"{path}: this run did not write this content; another process can write to the"
            " folder. Name a private scratch folder.",
            code="scratch_unsafe",
            file=str(path),
        )
    return pickle.loads(content)


# Stages of a bounded run: plain functions over files, callable in any process on any machine.
#
# Each writes one file atomically, and does not run if the file exists: repeating a stage after
# its worker died costs only the unfinished part.


class Job(msgspec.Struct):
    """Parameters of every stage, in a file of the scratch folder.

    Attributes:
        ready: the tables, without their sources.
        several: the task's facts about all rows in advance; None for other tasks.
        memory: bytes up to which the in-memory form of the tally is kept.
        highest: highest value, in the whole input, of the column that metrics scale by, or None.
        own: references of own metrics.
    """

    options: Options
    task: str
    needs: frozenset[str]
    fingerprint: str
    ready: Prepared
    whole: Whole
    ids: int
    memory: int = 0
    several: bool | None = None
    highest: float | None = None
    own: tuple[str, ...] = ()


def write_job(folder: Path, job: Job) -> str:
    """Write the job for the stages; return its digest."""
    for name in ("parts", "blocks", "groups"):
        scratch.make_folder(folder / name)
    return write_pickle(folder / _JOB, job)


_JOB = "job.pickle"


@lru_cache(maxsize=2)
def job_of(folder: str, digest: str) -> tuple[Job, planner.Plan]:
    """The job that stages of a folder work on, by its digest, and its plan."""
    check_worker(folder)
    job: Job = read_pickle(Path(folder) / _JOB, digest)
    plan = planner.make_plan(job.options, job.task)
    if job.highest is not None:
        assert plan.does.scaling is not None
        settings = plan.does.scaling.with_highest(plan.settings, job.highest)
        plan = msgspec.structs.replace(plan, settings=settings)
    return job, plan


def collected(failures: Sequence[BaseException | None]) -> None:
    """Raise the errors of some buckets, in the order of checks of a run in memory.

    Errors in rows come before those in slices, and those before other errors in tables or options;
    the first two are merged over all buckets. Failures of the run itself come first: they mean that
    not all rows were checked.
    """
    raised = [failure for failure in failures if failure is not None]
    for failure in raised:
        if not isinstance(failure, InputError | OptionError):
            raise failure
    problems = [failure for failure in raised if isinstance(failure, ChecksFailed)]
    if problems:
        merged = problems_of_parts(failure.problems for failure in problems)
        raise ChecksFailed(merged, problems[0].sources)
    refused = [failure for failure in raised if isinstance(failure, PartRefused)]
    if refused:
        step = min(one.step for one in refused)
        same = [one for one in refused if one.step == step]
        raise same[0].of_all(same)
    for failure in raised:
        raise failure


def part_file(folder: str | Path, bucket: int) -> Path:
    """Return the file of a bucket's tally."""
    return Path(folder) / "parts" / f"{bucket}.tally"


def memory_file(folder: str | Path, bucket: int) -> Path:
    """Return the file of a bucket's tally in its in-memory form, while those of all are small."""
    return Path(folder) / "parts" / f"{bucket}.kept"


def group_file(folder: str | Path, group: int, span: int = 0) -> Path:
    """Return the file of the rows of a group of labels, or of one range of their scores."""
    return Path(folder) / "groups" / f"{group}-{span}.tally"


def tally_bucket(folder: str, bucket: int, threads: int, digest: str) -> None:
    """Check and tally the rows of one bucket.

    Raises:
        InputError: the rows break their contract; row numbers are those of the whole input.
    """
    target = part_file(folder, bucket)
    if scratch.exists(target):
        return
    job, plan = job_of(folder, digest)
    checked, files = rows_of_bucket(folder, bucket, job, target)
    if checked is None:
        return
    heights = {role: frame.height for role, frame in checked.sides.items()}
    if checked.datums is not None:
        heights["datums"] = checked.datums.height
    common_ids = checked.common_ids
    results: dict[str, Any] = {}
    own_metrics = split(job.own, lambda name: False)[1]
    values = own_values.measured(own_metrics, checked) if own_metrics else None
    table = checked.table
    numbers = table[ROW] if table is not None and ROW in table.columns else None
    content = digests_of(checked.tables, Options())
    if job.options.limits:
        results["limits"] = facts_of(plan, checked)
    if job.several is None:
        tallies = plan.does.tally(checked, plan.settings, job.needs, Threads(threads))
    else:
        assert plan.does.fitted_by_rows is not None
        tallies, findings = plan.does.fitted_by_rows.tally(
            checked, plan.settings, job.needs, Threads(threads), several=job.several
        )
        results["findings"] = msgspec.to_builtins(findings)
    if values is not None:
        values = own_values.with_slices(values, own_metrics, tallies.datums, numbers)
        with whole_file(values_file(folder, bucket)) as file:
            values.write_parquet(file)
    notes = [msgspec.to_builtins(note) for note in checked.notes]
    about = {
        "notes": notes,
        "heights": heights,
        "met": None if common_ids is None else common_ids.plain,
        "recognised": checked.recognised,
        "content": content,
        **results,
    }
    if stored.bytes_of(tallies) * job.whole.n <= 2 * job.memory:
        stored.save(tallies, memory_file(folder, bucket), lasting=False)
    write_tally(target, tallies, job, plan, about)
    if not job.options.limits:
        scratch.delete(files)


def values_file(folder: str | Path, bucket: int) -> Path:
    """Return the file of the values of own metrics in a bucket."""
    return Path(folder) / "parts" / f"{bucket}.values.parquet"


def write_values(folder: str | Path, n: int, target: Path) -> None:
    """Write the values of own metrics in all buckets to one file."""
    files = [values_file(folder, bucket) for bucket in range(n)]
    parts = [pl.scan_parquet(scratch.readable(file)) for file in files if scratch.exists(file)]
    own_values.stacked(parts).sink_parquet(target)


def rows_of_bucket(
    folder: str, bucket: int, job: Job, target: Path
) -> tuple[Frames | None, list[Path]]:
    """Return the checked rows of one bucket, and their files.

    Args:
        target: the output; if it exists and the rows are deleted, they are None.

    Raises:
        InputError: the rows break their contract; row numbers are those of the whole input.
    """
    input_facts = job.whole
    paths = [
        path
        for role in input_facts.blanks
        for path in input_facts.rows_of_bucket(Path(folder), role, bucket)[0]
    ]
    try:
        frames = {role: input_facts.read(Path(folder), role, bucket) for role in input_facts.blanks}
    except FileNotFoundError as error:
        if scratch.exists(target):  # another worker, taken for dead, has done it meanwhile
            return None, []
        raise ScratchError(
            f"{error.filename or folder}: rows of bucket {bucket} were deleted during the run. Run"
            " it again, and do not touch its scratch folder.",
            code="scratch_deleted",
            bucket=bucket,
        ) from error
    if input_facts.labels is not None:
        frames[LABELS] = input_facts.labels
    part = Part(input_facts.pairs, input_facts.all_labels, Bucket(bucket, input_facts.n))
    return assemble(job.ready, frames, {}, job.options, part), paths


def write_tally(
    target: Path, tallies: Any, job: Job, plan: planner.Plan, about: dict[str, Any]
) -> None:
    """Write the tally of a bucket in its task's partial form, with metadata."""
    extra: dict[str, Any] = {}
    entries: dict[str, Any]
    if plan.does.in_parts is not None:
        entries = plan.does.in_parts.things(tallies, plan.settings, plan.metrics)
    else:
        entries, extra = _split_tally(tallies, job)
    metadata = {**about, **extra}
    stored.save(entries, target, fingerprint=job.fingerprint, about=metadata, lasting=False)


def _split_tally(tallies: Any, job: Job) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split a tally into ranked rows and blocks of datum ids.

    Returns:
        parts by name, and metadata: rows of each label, first id and size of each block.
    """
    ranked: Ranked = tallies.ranked
    ids = tallies.datums.id
    datums = tallies.datums if is_named(tallies) else Datums(None, pl.DataFrame(), None, len(ids))
    stripped = msgspec.structs.replace(tallies, ranked=without_rows(ranked), datums=datums)
    entries: dict[str, Any] = {stored.WHOLE: stripped, ROWS: narrowed(ranked)}
    blocks = []
    for at in range(0, len(ids), job.ids):
        entries[f"ids-{at}"] = few_ids = ids.slice(at, job.ids)
        blocks.append([few_ids[0], len(few_ids)])
    sizes = np.diff(ranked.start) + np.diff(ranked.gt_start)
    return entries, {"labels": sizes.tolist(), "ids": blocks}


def is_named(tallies: Any) -> bool:
    """Return whether ids, slices or keys of datums are needed after all are numbered."""
    datums = tallies.datums
    described = bool(datums.slices.width) or datums.dataset is not None
    return tallies.has_more or described or datums.keys is not None


# Datums numbered in ascending order of id over all buckets, a range of ids at a time.


def codes_file(folder: str | Path, bucket: int) -> Path:
    """Return the path of the codes of a bucket's datums among all datums."""
    return Path(folder) / "parts" / f"{bucket}.codes"


def codes_of(folder: str, bucket: int) -> Array:
    """The codes of a bucket's datums among all datums, int32 [n]."""
    with scratch.opened(codes_file(folder, bucket)) as file:
        return np.frombuffer(file.read(), np.int32)


def code_datums(folder: str, parts: Sequence[int], at_once: int) -> int:
    """Number all datums in ascending order of id, a range of ids at a time.

    Args:
        folder: the scratch folder, whose ``parts`` get one file of codes per bucket.
    """
    sources = [_Ids(folder, bucket) for bucket in parts]
    cuts, range_size = [], 0
    for first, size in sorted(block for source in sources for block in source.blocks):
        if range_size and range_size + size > at_once // 2:
            cuts.append(first)
            range_size = 0
        range_size += size
    before = 0
    with ExitStack() as stack:
        files = [stack.enter_context(whole_file(codes_file(folder, bucket))) for bucket in parts]
        for cut in [*cuts, None]:
            few = [source.below(cut) for source in sources]
            filled = [ids for ids in few if ids is not None]
            if not filled:
                continue
            order = one_dtype(filled, "datum ids").arg_sort().to_numpy()
            code = np.empty(order.size, np.int32)
            code[order] = np.arange(before, before + order.size, dtype=np.int32)
            begin = 0
            for file, ids in zip(files, few, strict=True):
                end = begin + (0 if ids is None else len(ids))
                file.write(code[begin:end].tobytes())
                begin = end
            before += order.size
    return before


class _Ids:
    """Ids of one bucket, read block by block in order."""

    def __init__(self, folder: str, bucket: int) -> None:
        self._part = part_file(folder, bucket)
        blocks = stored.head_of(self._part)["about"]["ids"]
        self.blocks: list[tuple[Any, int]] = [(first, size) for first, size in blocks]
        self._read = self._at = 0  # blocks, and the ids in them
        self._waiting: pl.Series | None = None

    def below(self, cut: Any) -> pl.Series | None:
        """Return the next ids below a value; all remaining ones for None."""
        names = []
        while self._read < len(self.blocks):
            first, size = self.blocks[self._read]
            if cut is not None and first >= cut:
                break
            names.append(f"ids-{self._at}")
            self._at += size
            self._read += 1
        ids: list[pl.Series] = [] if self._waiting is None else [self._waiting]
        if names:
            ids += stored.load_several(self._part, names)
        if not ids:
            return None
        here = pl.concat(ids)
        end = len(here) if cut is None else int(here.search_sorted(cut, "left"))
        self._waiting = here.slice(end) if end < len(here) else None
        return here.slice(0, end) if end else None


# Bounds of numbers in bounded memory: buckets tallied at each extreme of a choice.

Merged = Callable[[str], Any]
"""The tally of all buckets, from a folder with their parts."""


def end_folder(folder: str | Path, end: str) -> Path:
    """Return the folder for the parts of one extreme of a choice."""
    return Path(folder) / "limits" / end


def tally_extremes(
    folder: str, bucket: int, threads: int, digest: str, facts_of_choices: list[Any]
) -> None:
    """Tally the rows of one bucket at each extreme of each choice."""
    job, plan = job_of(folder, digest)
    chosen = limits.choices(plan, facts_of_choices)
    paths = [
        part_file(end_folder(folder, limits.name_of(limit, n)), bucket)
        for limit, facts in chosen
        for n in range(len(limit.settings(plan.settings, facts)))
    ]
    if all(map(scratch.exists, paths)):
        return
    frames, files = rows_of_bucket(folder, bucket, job, paths[-1])
    if frames is None:
        return
    for end, tallies in limits.extreme_tallies(plan, frames, chosen, None, Threads(threads)):
        write_tally(part_file(end_folder(folder, end), bucket), tallies, job, plan, {})
    scratch.delete(files)


def bounds_frame(
    folder: str,
    parts: list[int],
    facts_of_choices: Sequence[Any],
    plan: planner.Plan,
    values: pl.DataFrame,
    pool: Pool,
    digest: str,
    merged: Merged,
) -> pl.DataFrame:
    """Compute the frame ``limits`` of a run.

    Args:
        values: the frame ``metrics``.
        merged: from a folder of parts to the merged tally.
    """
    chosen = limits.choices(plan, facts_of_choices)
    if not chosen:
        return limits.table(plan, values, [], {}, Threads(1))
    names = [
        limits.name_of(limit, n)
        for limit, facts in chosen
        for n in range(len(limit.settings(plan.settings, facts)))
    ]
    with ExitStack() as stack:
        for name in names:
            home = end_folder(folder, name)
            for inside in ("parts", "blocks", "groups"):
                scratch.make_folder(home / inside, parents=True)
            stack.callback(scratch.delete_folder, home)
        calls = [(folder, bucket, pool.threads, digest, [*facts_of_choices]) for bucket in parts]
        collected(pool.run(tally_extremes, calls))
        extremes = {name: merged(str(end_folder(folder, name))) for name in names}
        return limits.table(plan, values, chosen, extremes, Threads(1))


# Labels larger than memory, split into score ranges common to all buckets.
#
# A bucket's rows of a label are sorted: by descending score, then descending tie, then datum. A
# sample of the rows of all buckets gives ranges of about equal size; the rows of a bucket in a
# range are found by binary search.


Key = tuple[float, float, int]
"""Sort key of a label's rows, ascending: negative score, negative tie (0 without ties), datum."""


class ScoreRange(NamedTuple):
    """Rows of one label in a range of keys: range ``number`` of ``of``.

    It begins at key ``first`` and ends before ``after``; None for the first and the last.
    """

    number: int
    of: int
    first: Key | None
    after: Key | None


def ranges_of(buckets: Sequence[tuple[Ranked, Array]], most: int) -> list[ScoreRange]:
    """Split a label into ranges of about ``most`` rows; at least one.

    Args:
        buckets: the rows of the label in each, and the codes of its datums in the whole.
        most: approximate number of rows per range.
    """
    rows = sum(ranked.score.size + ranked.gt_datum.size for ranked, _ in buckets)
    every = max(1, most // (4 * len(buckets)))
    some = slice(every // 2, None, every)
    keys: list[Key] = []
    for ranked, codes in buckets:
        score = ranked.score[some]
        tie = ranked.tie[some] if ranked.tie.size else np.zeros(score.size)
        columns = (-score, -tie, codes[ranked.datum[some]])
        keys += zip(*(column.tolist() for column in columns), strict=True)
    keys.sort()
    n = max(1, -(-rows // most))
    chosen = [keys[at * len(keys) // n] for at in range(1, n) if keys]
    cuts = [None, *dict.fromkeys(chosen), None]
    return [ScoreRange(i, len(cuts) - 1, *bounds) for i, bounds in enumerate(pairwise(cuts))]


def place(ranked: Ranked, codes: Array, key: Key) -> int:
    """Count the rows of one label before a key, by binary search.

    Args:
        codes: int32 [datums], ascending, the codes of its datums in the whole.
    """
    begin, end = 0, ranked.score.size
    for values, value in zip((ranked.score, ranked.tie), key, strict=False):
        if values.size:  # descending; of ties there may be none
            rising = values[begin:end][::-1]
            begin, end = (
                end - int(np.searchsorted(rising, -value, "right")),
                end - int(np.searchsorted(rising, -value, "left")),
            )
    datum = np.searchsorted(codes, key[2])
    return begin + int(np.searchsorted(ranked.datum[begin:end], datum, "left"))


def within(ranked: Ranked, codes: Array, span: ScoreRange) -> Ranked:
    """Return the rows of one bucket in a range, with datum codes of the whole.

    Ground truths have no score: each range takes an equal share of them.

    Args:
        codes: int32 [datums], ascending, the codes of their datums in the whole.
    """
    n, m = ranked.score.size, ranked.gt_datum.size
    rows = (
        0 if span.first is None else place(ranked, codes, span.first),
        n if span.after is None else place(ranked, codes, span.after),
    )
    truths = span.number * m // span.of, (span.number + 1) * m // span.of
    return with_datums(of_rows(ranked, rows, truths), codes)


# View queries per label group, computed by workers, one file per answer.


def answer_span(home: str, number: int, span: Span, digest: str) -> None:
    """Answer a query for one span of labels."""
    target = Path(home) / f"{number}.npz"
    if scratch.exists(target):
        return
    query: Query = read_pickle(Path(home) / _QUERY, digest)
    with whole_file(target) as file:
        np.savez(file, *query.answer(span))


_QUERY = "query.pickle"


class OnWorkers:
    """Run queries on workers, the largest spans first."""

    def __init__(self, folder: str, pool: Pool) -> None:
        self._home = Path(folder) / "answers"
        self._pool = pool
        self._numbers = count()
        self._lock = Lock()  # views of several slices may ask at a time

    def __call__(self, query: Query, spans: Sequence[Span]) -> list[tuple[Array, ...]]:
        """Arrays of every span, in their order."""
        with self._lock:
            home = self._home / str(next(self._numbers))
            scratch.make_folder(home, parents=True)
            digest = write_pickle(home / _QUERY, query)
            sizes = [-sum(map(scratch.size, span.blocks)) for span in spans]  # type: ignore[arg-type]
            order = np.argsort(sizes, kind="stable").tolist()
            collected(
                self._pool.run(answer_span, [(str(home), one, spans[one], digest) for one in order])
            )
            result = [_answer(Path(home) / f"{number}.npz") for number in range(len(spans))]
            scratch.delete_folder(home)
        return result


def _answer(file: Path) -> tuple[Array, ...]:
    """Arrays as they were written, in their order."""
    with np.load(scratch.readable(file), allow_pickle=False) as arrays:
        return tuple(arrays[name] for name in arrays.files)


# The stage that merges the rows of labels from all buckets: whole labels or ranges of scores.


def _rows_of(
    folder: str, labels: tuple[int, int], parts: Sequence[int]
) -> Iterator[tuple[Ranked, Array]]:
    """Yield the mapped rows of some labels per bucket, and the codes of its datums in the whole."""
    cache = _MAPPED.get(folder, {})
    for bucket in parts:
        file = part_file(folder, bucket)
        if scratch.local(str(file)) is None:
            some = stored.mapped_rows(file, ROWS, lambda rows: of_labels(rows, *labels), _STARTS)
            yield some, codes_of(folder, bucket)
            continue
        if bucket not in cache:
            mapping = scratch.mapped(file)
            mapping.scatter()
            cache[bucket] = stored.mapped(file, ROWS, mapping), mapping
        rows, mapping = cache[bucket]
        some = of_labels(rows, *labels)
        mapping.fetch(getattr(some, name) for name in OF_ROWS + OF_TRUTHS)
        yield some, codes_of(folder, bucket)


_STARTS = ("start", "gt_start")


_MAPPED: dict[str, dict[int, tuple[Ranked, scratch.Mapped]]] = {}
"""Folders whose buckets this process is merging, and their mapped rows: a file has many labels."""


@contextmanager
def _mapped_once(folder: str) -> Iterator[None]:
    """Map each bucket's rows once per merge, not once per group of labels."""
    _MAPPED[folder] = {}
    try:
        yield
    finally:
        del _MAPPED[folder]


def merge_rows(
    folder: str, group: int, labels: tuple[int, int], span: ScoreRange | None, parts: Sequence[int]
) -> None:
    """Merge the rows of some labels from all buckets: all of them, or one range of scores.

    Args:
        span: the range of a split label; otherwise None.
    """
    target = group_file(folder, group, 0 if span is None else span.number)
    if scratch.exists(target):
        return
    rows, before = [], 0
    for few, codes in _rows_of(folder, labels, parts):
        if span is not None and span.first is not None:
            before += place(few, codes, span.first)
        rows.append(with_datums(few, codes) if span is None else within(few, codes, span))
    # Labels have equal codes in all buckets; rows have the datum codes of the whole.
    n_labels = labels[1] - labels[0]
    same = [np.arange(n_labels, dtype=np.int32)] * len(rows)
    stored.save(merge_ranked(rows, None, same, n_labels, before), target, lasting=False)
    for _, mapping in _MAPPED.get(folder, {}).values():
        mapping.release()


def merged_by_labels(
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
    even = -(-int(per_label.sum()) // (2 * pool.least)) if pool.apart else sizes.group_rows
    bounds = label_groups(per_label, min(even, sizes.group_rows))
    calls: list[tuple[int, tuple[Any, ...]]] = []  # rows, about, and the call
    spans: list[Span] = []
    with _mapped_once(folder):
        for group, labels in enumerate(pairwise(bounds)):
            rows = int(per_label[slice(*labels)].sum())
            ranges: Sequence[ScoreRange | None] = [None]
            if rows > sizes.group_rows:  # a single label that exceeds the limit
                ranges = ranges_of([*_rows_of(folder, labels, parts)], sizes.group_rows // 4)
            about = rows // len(ranges)
            calls += [(about, (folder, group, labels, span, parts)) for span in ranges]
            files = tuple(str(group_file(folder, group, at)) for at in range(len(ranges)))
            spans.append(Span(files, *labels))
        # Largest first, so that no worker waits long at the end.
        calls.sort(key=itemgetter(0), reverse=True)
        if calls:
            collected(pool.run(merge_rows, [call for _, call in calls]))
    tallies = [stored.load(part_file(folder, bucket)) for bucket in parts]
    first_part = tallies[0]
    datums = Datums(None, pl.DataFrame(), None, total)
    merged = first_part
    if is_named(first_part):
        datums, _ = merge_datums([one.datums for one in tallies])
        uncrossed = [msgspec.structs.replace(one, crossed=None) for one in tallies]
        merged = plan.does.merge(uncrossed, plan.settings)
    crossed = [one.crossed for one in tallies if one.crossed is not None]
    crossings = None
    if crossed:
        codes = [codes_of(folder, bucket) for bucket in parts]
        same = np.arange(len(merged.labels), dtype=np.int32)
        crossings = merge_counts(crossed, codes, [same] * len(parts))
    ranked = RankedRun(
        first_part.ranked,
        tuple(spans),
        int(per_label.sum()),
        sizes.at_once,
        OnWorkers(folder, pool) if pool.apart else None,
    )
    return (
        msgspec.structs.replace(
            merged, datums=datums, ranked=ranked, crossed=crossings, seconds=merged_seconds(tallies)
        ),
        total,
    )


def label_groups(rows: Array, most: int) -> list[int]:
    """Return bounds of groups of consecutive labels with at most ``most`` rows; a larger label
    forms a group.

    Args:
        rows: int64 [n], rows of each label.
    """
    bounds, total = [0], 0
    for label, size in enumerate(rows.tolist()):
        if total and total + size > most:
            bounds.append(label)
            total = 0
        total += size
    if rows.size or len(bounds) == 1:
        bounds.append(int(rows.size))
    return bounds
