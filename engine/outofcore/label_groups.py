"""The tally of all buckets by groups of labels, whose rows stay on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
from ..evaluation import planner
from ..executors.pools import Pool
from ..schemas.arrays import Array
from ..tallies import stored
from ..tallies.datums import Datums
from ..tallies.merging import merge_counts, merge_datums, merge_ranked, merged_seconds
from ..tallies.ranked import (
    OF_ROWS,
    OF_TRUTHS,
    Ranked,
    RankedRun,
    Span,
    of_labels,
    of_rows,
    with_datums,
)
from ..tallies.ranked_view import Query
from ..tallies.stored import ROWS
from .memory import Sizes
from .stages import (
    code_datums,
    codes_of,
    collected,
    group_file,
    is_named,
    part_file,
    read_pickle,
    write_pickle,
)

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
