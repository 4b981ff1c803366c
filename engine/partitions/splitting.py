"""Rows dealt out to buckets: all rows of a datum, of either side, fall into one.

Every table is read once, in batches. What the buckets have to know of the whole is gathered on the
way: how many rows there are, and which labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..inputs import meeting, wide
from ..inputs.collecting import Prepared, rows_of
from ..inputs.problems import Note
from ..kernels.datum_hash import deal, hash_integers, hash_texts
from ..readers.explain import explain
from ..readers.tables import READ_FAILURES
from ..schemas.contract import (
    DEFAULT_LABEL_KEY,
    GROUND_TRUTHS,
    LABELS,
    PREDICTIONS,
    ROW,
    TABLE,
)
from ..tasks.packing import packed
from .repeats import PER_FILE, Writer, once_only

Array = np.ndarray[Any, Any]

BATCH = 200_000  # rows read at a time


class Whole(msgspec.Struct):
    """What is known of the whole input once it is dealt out.

    Attributes:
        n: number of buckets.
        heights: role to rows, conditions on them applied.
        before: role to rows before that, of the filtered ones.
        blanks: role to a frame of its columns without rows.
        pairs: side to the distinct (label_key, label_value) of its rows, score columns under every
            key; those declared, too.
        labels: declared labels, or None.
        notes: what bringing ids and labels to one dtype told.
        dealt: names of all files of rows.
    """

    n: int
    heights: dict[str, int]
    before: dict[str, int]
    blanks: dict[str, pl.DataFrame]
    pairs: dict[str, pl.DataFrame]
    labels: pl.DataFrame | None
    notes: list[Note]
    dealt: frozenset[str]

    @property
    def known(self) -> pl.DataFrame | None:
        """The labels of all sides; None of tasks without labels."""
        of_rows = [frame for side, frame in self.pairs.items() if side != LABELS]
        return pl.concat(of_rows, how="vertical_relaxed").unique() if of_rows else None


def bucket_file(folder: Path, role: str, bucket: int) -> Path:
    """Where the rows of one table in one bucket stand."""
    return folder / "buckets" / f"{role}-{bucket}.arrow"


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


def split(ready: Prepared, heights: dict[str, int], folder: Path, n: int) -> Whole:
    """Deal all rows out.

    Args:
        ready: the tables, of which no row is read yet.
        heights: as :func:`heights_of` tells them.
        folder: where the buckets go.
        n: number of buckets.

    Raises:
        InputError: ids or labels that are integers on one side and strings on the other.
        ReadError: a file that cannot be read, which is named.
    """
    import pyarrow as pa  # here, since every run asks this package whether it is needed

    (folder / "buckets").mkdir()
    heads = heads_of(ready)
    text = {role: side.source.text for role, side in ready.sides.items()}
    targets, notes = _targets(ready, heads, text)
    blanks, counted = {}, {}
    pairs: dict[str, pl.DataFrame] = {}
    keys: list[pl.Series] = []
    for role, side in ready.sides.items():
        if role == LABELS:
            continue
        datum = side.table.datum
        per = -(-max(1, heights[role]) // n)  # rows a bucket where rows are datums of their own
        done = 0
        with ExitStack() as stack:
            writers: dict[int, Any] = {}
            values = None
            if once := once_only(side):
                files = -(-n // PER_FILE)
                values = stack.enter_context(Writer(folder, role, once, files, _hashes))
            for batch in _batches(ready, role):
                rows = batch.with_columns(pl.col(c).cast(t) for c, t in targets[role].items())
                here = np.arange(done, done + rows.height, dtype=np.int64)
                if datum in rows.columns:
                    start, order = deal(_hashes(rows[datum]), n)
                else:
                    start, order = deal((here // per).astype(np.uint64), n)
                if values is not None:
                    values.write(rows.with_columns(pl.Series(ROW, here)))
                dealt = rows[order].with_columns(pl.Series(ROW, here[order])).to_arrow()
                for bucket in np.flatnonzero(np.diff(start)).tolist():
                    if bucket not in writers:
                        path = str(bucket_file(folder, role, bucket))
                        file = stack.enter_context(pa.OSFile(path, "wb"))
                        writers[bucket] = stack.enter_context(pa.ipc.new_file(file, dealt.schema))
                    few = dealt.slice(int(start[bucket]), int(start[bucket + 1] - start[bucket]))
                    writers[bucket].write_table(few)
                if role == TABLE or "label_value" in rows.columns:
                    for found, some in meeting.side_pairs({role: rows}).items():
                        some = some.drop_nulls()
                        known = [pairs[found], some] if found in pairs else [some]
                        pairs[found] = pl.concat(known, how="vertical_relaxed").unique()
                if side.naming.wide and "label_key" in rows.columns:
                    of_rows = rows["label_key"].drop_nulls().cast(pl.String)
                    keys = [pl.concat([*keys, of_rows]).unique()]
                done += rows.height
        counted[role] = done
        blank = heads[role].clear().cast(targets[role])  # type: ignore[arg-type]
        blanks[role] = blank.with_columns(pl.lit(0, dtype=pl.Int64).alias(ROW).head(0))
    key = ["label_key", "label_value"]
    pairs |= _of_score_columns(ready, pairs, keys)
    labels = _labels(ready)
    if labels is not None and pairs:
        pairs[LABELS] = meeting.label_pairs(labels)
    return Whole(
        n=n,
        heights=counted,
        before={role: heights[role] for role in ready.where},
        blanks=blanks,
        pairs={side: frame.sort(key) for side, frame in pairs.items()},
        labels=labels,
        notes=notes,
        dealt=frozenset(path.name for path in (folder / "buckets").iterdir()),
    )


def _of_score_columns(
    ready: Prepared, pairs: dict[str, pl.DataFrame], keys: Sequence[pl.Series]
) -> dict[str, pl.DataFrame]:
    """The labels of score columns, which are the predictions', and the true ones in their dtype.

    A bucket knows but the label keys of its own rows: of different labels its counts would not add
    up.

    Args:
        ready: the tables.
        pairs: side to the labels of its rows.
        keys: the distinct label keys of the table with score columns; none where it has no such
            column.
    """
    names = next((side.naming.labels for side in ready.sides.values() if side.naming.wide), None)
    if names is None or GROUND_TRUTHS not in pairs:
        return {}
    known = pairs[GROUND_TRUTHS]["label_value"].unique().sort()
    labels = wide.label_series(names, known.dtype if len(known) else None, known)
    frames = {GROUND_TRUTHS: pairs[GROUND_TRUTHS], meeting.SCORES: labels.to_frame()}
    meeting.same_kind(frames, meeting.LABEL_COLUMNS, {})
    own = keys[0] if keys else pl.Series([DEFAULT_LABEL_KEY])
    scored = own.alias("label_key").to_frame().join(frames[meeting.SCORES], how="cross")
    if PREDICTIONS in pairs:
        scored = pl.concat([pairs[PREDICTIONS], scored], how="vertical_relaxed").unique()
    return {GROUND_TRUTHS: frames[GROUND_TRUTHS], PREDICTIONS: scored}


def rows_at(
    ready: Prepared, blanks: dict[str, pl.DataFrame], role: str, numbers: Sequence[int]
) -> pl.DataFrame:
    """The rows of a table by their numbers, which they bear in the column ``ROW``.

    Args:
        ready: the tables.
        blanks: role to a frame of its columns without rows.
        role: which table.
        numbers: ascending.
    """
    found = [blanks[role]]
    done = 0
    for batch in _batches(ready, role):
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
    """Dtypes in which ids and labels of all tables meet, and what is told of them."""
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


def _batches(ready: Prepared, role: str) -> Iterator[pl.DataFrame]:
    side = ready.sides[role]
    query = rows_of(role, side, ready.where, ready.plan)
    try:
        yield from query.collect_batches(chunk_size=BATCH, maintain_order=True)
    except READ_FAILURES as error:
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            raise  # of what is written meanwhile
        raise explain(side.source, error) from error


def _hashes(ids: pl.Series) -> Array:
    """Hashes of ids, the same for equal ones of whatever side; nulls, told later, have one too."""
    if ids.dtype.is_integer():
        wide = pl.UInt64() if ids.dtype == pl.UInt64 else pl.Int64()
        return hash_integers(ids.cast(wide).fill_null(0).to_numpy())
    data, offsets = packed(ids.cast(pl.String).fill_null(""))
    return hash_texts(offsets, data)
