"""Shuffle: all rows of a datum, on either side, go to one bucket.

Every table is read once, in ranges of consecutive rows, each a :class:`RowRange`
(:mod:`~evalengine.outofcore.shuffle_stage`). Each range reports its number of rows and its labels;
merged, these are the facts about the whole that buckets need.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from ..executors.pools import Pool
from ..ingest import meeting, wide
from ..ingest.collecting import Prepared, Side, rows_of
from ..ingest.problems import Note
from ..ingest.sources.explain import explain
from ..ingest.sources.tables import READ_FAILURES
from ..schemas.contract import DEFAULT_LABEL_KEY, GROUND_TRUTHS, LABELS, PREDICTIONS, ROW, TABLE
from ..schemas.tuning import tuning
from .shuffle_files import ends_of
from .shuffle_stage import (
    RowRange,
    Shuffle,
    batches,
    bucket_file,
    of_range,
    shuffle_range,
    shuffle_rows,
    together,
    told_of,
)

PER_BUCKET = (
    4  # ranges for each bucket worth having, so that an uneven one does not hold up the rest
)
MOST_FILES = 1 << 15  # of rows dealt out: ranges of all tables by buckets, about


class Whole(msgspec.Struct):
    """Facts about the whole input after the shuffle.

    Attributes:
        heights: role to number of rows after filtering.
        before: role to number of rows before filtering.
        blanks: role to a frame of its columns without rows.
        pairs: side to the distinct (label_key, label_value) of its rows, score columns under every
            key; also of the declared ones.
        labels: declared labels, or None.
        begins: role to the number of rows before each of its ranges.
        filled: role to the buckets with rows of each of its ranges.
        ahead: distinct combinations of the requested columns.
    """

    n: int
    heights: dict[str, int]
    before: dict[str, int]
    blanks: dict[str, pl.DataFrame]
    pairs: dict[str, pl.DataFrame]
    labels: pl.DataFrame | None
    notes: list[Note]
    begins: dict[str, tuple[int, ...]]
    filled: dict[str, list[frozenset[int]]]
    ahead: pl.DataFrame

    @property
    def known(self) -> pl.DataFrame | None:
        """Labels of all sides; None for tasks without labels."""
        of_rows = [frame for side, frame in self.pairs.items() if side != LABELS]
        return pl.concat(of_rows, how="vertical_relaxed").unique() if of_rows else None

    def rows_of_bucket(self, folder: Path, role: str, bucket: int) -> tuple[list[Path], list[int]]:
        """Return files of the rows of one table in a bucket, and the number of rows before each
        range.
        """
        ranges = [span for span, some in enumerate(self.filled[role]) if bucket in some]
        files = [bucket_file(folder, role, span, bucket) for span in ranges]
        return files, [self.begins[role][span] for span in ranges]

    def fullest(self, folder: Path) -> int:
        """Bytes of the rows of the largest bucket."""
        return max(
            sum(
                path.stat().st_size
                for role in self.filled
                for path in self.rows_of_bucket(folder, role, bucket)[0]
            )
            for bucket in range(self.n)
        )


def heads_of(ready: Prepared, rows: int = 1000) -> dict[str, pl.DataFrame]:
    """The first rows of every table but that of labels."""
    return {
        role: _read(ready, role, rows_of(role, side, ready.where, ready.plan).head(rows))
        for role, side in ready.sides.items()
        if role != LABELS
    }


def heights_of(ready: Prepared) -> dict[str, int]:
    """Rows of every table but that of labels, conditions not applied."""
    return {
        role: int(_read(ready, role, side.source.frame.select(pl.len())).item())
        for role, side in ready.sides.items()
        if role != LABELS
    }


def _read(ready: Prepared, role: str, query: pl.LazyFrame) -> pl.DataFrame:
    try:
        return query.collect()
    except READ_FAILURES as error:
        raise explain(ready.sides[role].source, error) from error


def split(
    ready: Prepared,
    heights: dict[str, int],
    folder: Path,
    n: int,
    pool: Pool,
    ahead: tuple[str, ...] = (),
) -> Whole:
    """Shuffle all rows: those of Parquet files on workers that can read them, others here.

    Args:
        heights: result of :func:`heights_of`.
        ahead: columns of a single table whose distinct combinations are collected.

    Raises:
        InputError: ids or labels that are integers on one side and strings on the other.
        ReadError: a file that cannot be read; names it.
    """
    (folder / "buckets").mkdir()
    heads = heads_of(ready)
    text = {role: side.source.text for role, side in ready.sides.items()}
    targets, notes = _targets(ready, heads, text)
    ranges = ranges_of_tables(ready, heads, heights, n, pool)
    calls: list[tuple[str, RowRange, bytes]] = []
    for role in heads:
        per = -(-max(1, heights[role]) // n)
        side = ready.sides[role]
        asked = ahead if role == TABLE else ()
        width = int(heads[role].estimated_size()) // max(1, heads[role].height)
        table = Shuffle(
            role,
            side,
            ready.where,
            ready.plan,
            targets[role],
            n,
            per,
            cuts=stretches(side, heads[role], heights[role]),
            ahead=asked,
            width=width,
        )
        if _by_workers(side, pool):
            ends = ends_of(side.source.files) if len(ranges[role]) > 1 else None
            calls += [
                (str(folder), span, pickle.dumps(of_range(table, ends, span)))
                for span in ranges[role]
            ]
        else:
            shuffle_rows(folder, ranges[role][0], table)
    for failure in pool.run(shuffle_range, calls) if calls else ():
        if failure is not None:
            raise failure
    told = {role: [told_of(folder, role, span) for span, *_ in ranges[role]] for role in heads}
    blanks = {}
    for role in heads:
        blank = heads[role].clear().cast(targets[role])  # type: ignore[arg-type]
        blanks[role] = blank.with_columns(pl.lit(0, dtype=pl.Int64).alias(ROW).head(0))
    key = ["label_key", "label_value"]
    pairs = together([one.pairs for parts in told.values() for one in parts])
    known = [frame.select(set(ahead) & {*frame.columns}) for frame in blanks.values()]
    known += [one.ahead for parts in told.values() for one in parts if one.ahead is not None]
    keys = [one.keys for parts in told.values() for one in parts if one.keys is not None]
    pairs |= _of_score_columns(ready, pairs, pl.concat(keys).unique() if keys else None)
    labels = _labels(ready)
    if labels is not None and pairs:
        pairs[LABELS] = meeting.label_pairs(labels)
    before = {
        role: (0, *accumulate(one.rows for one in parts[:-1])) for role, parts in told.items()
    }
    return Whole(
        n=n,
        heights={role: sum(one.rows for one in parts) for role, parts in told.items()},
        before={role: heights[role] for role in ready.where},
        blanks=blanks,
        pairs={side: frame.sort(key) for side, frame in pairs.items()},
        labels=labels,
        notes=notes,
        begins=before,
        filled={role: [frozenset(one.buckets) for one in parts] for role, parts in told.items()},
        ahead=pl.concat(known, how="diagonal").unique(),
    )


def _of_score_columns(
    ready: Prepared, pairs: dict[str, pl.DataFrame], keys: pl.Series | None
) -> dict[str, pl.DataFrame]:
    """Add the labels of score columns as predictions, and return them in the dtype of the true
    ones.

    A bucket knows only the label keys of its rows: with different labels its counts could not be
    added.

    Args:
        pairs: side to the labels of its rows.
        keys: the distinct label keys of the table with score columns, or None.
    """
    names = next((side.naming.labels for side in ready.sides.values() if side.naming.wide), None)
    if names is None or GROUND_TRUTHS not in pairs:
        return {}
    known = pairs[GROUND_TRUTHS]["label_value"].unique().sort()
    labels = wide.label_series(names, known.dtype if len(known) else None, known)
    frames = {GROUND_TRUTHS: pairs[GROUND_TRUTHS], meeting.SCORES: labels.to_frame()}
    meeting.same_kind(frames, meeting.LABEL_COLUMNS, {})
    own = pl.Series([DEFAULT_LABEL_KEY]) if keys is None else keys
    scored = own.alias("label_key").to_frame().join(frames[meeting.SCORES], how="cross")
    if PREDICTIONS in pairs:
        scored = pl.concat([pairs[PREDICTIONS], scored], how="vertical_relaxed").unique()
    return {GROUND_TRUTHS: frames[GROUND_TRUTHS], PREDICTIONS: scored}


def ranges_of_tables(
    ready: Prepared,
    heads: Mapping[str, pl.DataFrame],
    heights: Mapping[str, int],
    n: int,
    pool: Pool,
) -> dict[str, list[RowRange]]:
    """Return the ranges of rows in which each table is shuffled.

    Args:
        heights: role to number of rows before filtering.

    Returns:
        role to its ranges, in row order; a single one if this process shuffles the table, or if the
        bucket of a row depends on the number of filtered rows before it.
    """
    size = rows_of_range(sum(heights[role] for role in heads), n, pool.least)
    found: dict[str, list[RowRange]] = {}
    for role, head in heads.items():
        side = ready.sides[role]
        counted = side.table.datum not in head.columns and role in ready.where
        if counted or not _by_workers(side, pool):
            found[role] = [(0, 0, None)]
            continue
        cuts = _cuts(side.source.files, heights[role], size)
        ends = [*cuts[1:], None]
        found[role] = [
            (span, first, None if end is None else end - first)
            for span, (first, end) in enumerate(zip(cuts, ends, strict=True))
        ]
    return found


def rows_of_range(rows: int, n: int, least: int) -> int:
    """Return the approximate number of rows per range."""
    sizes = tuning()
    if sizes.range_rows is not None:
        return sizes.range_rows
    return max(sizes.shuffle_rows, -(-rows // (PER_BUCKET * least)), rows * n // MOST_FILES)


def stretches(side: Side, head: pl.DataFrame, height: int) -> tuple[int, ...]:
    """Return rows of local Parquet files at which a new query begins.

    Polars decodes about twenty row groups ahead, which may exceed a bucket.
    """
    files = side.source.files
    if side.source.format != "parquet" or not files:
        return ()
    each = head.estimated_size() / max(1, head.height) + 1
    return tuple(_cuts(files, height, max(1, int(tuning().query_bytes / each)))[1:])


def _by_workers(side: Side, pool: Pool) -> bool:
    """Return whether workers shuffle a table: Parquet allows reading rows without those before
    them.
    """
    return pool.reads_tables and side.source.format == "parquet"


def _cuts(files: Sequence[str], height: int, size: int) -> list[int]:
    """Return rows at which ranges of about ``size`` rows begin; at row group boundaries in local
    files.

    A row group is decoded as a whole, so sharing one between ranges doubles its cost. Boundaries in
    small files are ignored: each range then reads at most one more row group.
    """
    cuts = list(range(0, max(height, 1), size))
    if len(cuts) == 1 or not files or height // len(files) < size // 8:
        return cuts
    import pyarrow as pa  # only where tables are large
    import pyarrow.parquet as pq

    ends, at = [0], 0
    for file in files:
        try:
            footer = pq.read_metadata(file)
        except (pa.ArrowException, OSError):  # of a type that is not known there; or told below
            return cuts
        for group in range(footer.num_row_groups):
            at += footer.row_group(group).num_rows
            ends.append(at)
    bounds = np.array(ends)
    nearest = {int(bounds[np.abs(bounds - cut).argmin()]) for cut in cuts}
    return sorted(nearest - {height})


def rows_at(
    ready: Prepared, blanks: dict[str, pl.DataFrame], role: str, numbers: Sequence[int]
) -> pl.DataFrame:
    """Return the rows of a table by their numbers, with the numbers in column ``ROW``.

    Args:
        blanks: role to a frame of its columns without rows.
        numbers: ascending.
    """
    found = [blanks[role]]
    done = 0
    for batch in batches(role, ready.sides[role], ready.where, ready.plan):
        here = [number - done for number in numbers if done <= number < done + batch.height]
        if here:
            numbered = pl.Series(ROW, here, dtype=pl.Int64) + done
            found.append(batch[here].with_columns(numbered))
        done += batch.height
        if done > max(numbers):
            break
    return pl.concat(found, how="vertical_relaxed")


def _labels(ready: Prepared) -> pl.DataFrame | None:
    side = ready.sides.get(LABELS)
    if side is None:
        return None
    return _read(ready, LABELS, rows_of(LABELS, side, ready.where, ready.plan))


def _targets(
    ready: Prepared, heads: dict[str, pl.DataFrame], text: dict[str, bool]
) -> tuple[dict[str, dict[str, pl.DataType]], list[Note]]:
    """Return the common dtypes of ids and labels of all tables, and notes on them."""
    named = {
        role: head.rename({ready.sides[role].table.datum: "datum_id"}, strict=False)
        for role, head in heads.items()
    }
    before = {role: dict(frame.schema) for role, frame in named.items()}
    common = {
        column.name
        for role in named
        for column in ready.sides[role].table.columns
        if column.name in ready.sides[role].table.either and column.kind == "id"
    }
    notes: list[Note] = []
    for names in (("datum_id",), *((name,) for name in sorted(common)), meeting.LABEL_COLUMNS):
        notes += meeting.same_kind(named, names, text)
        meeting.check_kinds(named, names)
    targets: dict[str, dict[str, pl.DataType]] = {}
    for role, frame in named.items():
        own = ready.sides[role].table.datum
        targets[role] = {
            own if name == "datum_id" else name: dtype
            for name, dtype in frame.schema.items()
            if dtype != before[role][name]
        }
    return targets, notes
