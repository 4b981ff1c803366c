"""The entry: whatever the user gave for either side becomes checked frames of fixed dtypes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Protocol, TypeVar

import msgspec
import polars as pl

from evalengine.schemas.contract import DATUMS, GROUND_TRUTHS, LABELS, PREDICTIONS, TABLE
from evalengine.schemas.options import Options

from ..geometry.rasters import RasterFiles
from . import both_sides, recognise
from .collecting import Prepared, checked, collect, in_files
from .id_mismatch import CommonIds, check_meet, common_ids, nearly
from .ids import ALL, Bucket, DatumIds, distinct, is_signed, rows_repeat
from .opening import Inputs
from .preparing import early_notes, prepare
from .problems import Note, Problem, refuse
from .recognise import Naming, Side
from .relabel import hold_labels, new_labels
from .rules.columns import columns_read
from .rules.values import of_labels
from .slices import build_slices, slices_by_row
from .where import SIDES, Condition, RemainingRows, filtered, keep_datums, no_rows

# Run independent callables, serially or in an executor.

R = TypeVar("R")
S = TypeVar("S")


class Each(Protocol):
    """Makes calls, perhaps side by side."""

    def __call__(self, calls: Sequence[Callable[[], R]]) -> list[R]:
        """The results in order; of several errors the first one in order is raised."""
        ...


def in_turn(calls: Sequence[Callable[[], R]]) -> list[R]:
    """Make calls one after the other; the results in order."""
    return [call() for call in calls]


def both(each: Each, first: Callable[[], R], second: Callable[[], S]) -> tuple[R, S]:
    """Run two independent steps; return both results."""
    one: Any
    other: Any
    calls: list[Callable[[], Any]] = [first, second]
    one, other = each(calls)
    return one, other


_NUMBER = "number of the row"
_UNMATCHED_DATUMS = {"datums_without_predictions", "datums_without_ground_truths"}


class Frames(msgspec.Struct, kw_only=True):
    """All tables, checked: canonical columns and dtypes, no forbidden nulls.

    Attributes:
        sides: role to the contract's columns that are present: predictions and ground truths, or
            one table with both. ``label_key`` is absent if every row has the key ``label``; flags
            are Boolean; columns of ``score_columns`` are named ``score:`` and the label.
        score_labels: labels of those columns, in their order; None without ``score_columns``.
        datums: all datums, if a table of them was given or came with a file.
        labels: declared labels, if a table of them was given or came with a file.
        slices: with ``by_row`` one row per row of the table, one column per entry of ``by`` in its
            dtype (crossed ones String), without datum_id; otherwise one row per datum, datum_id and
            one String column per entry of ``by``. None without ``by``.
        by_row: whether each row of a single table is a datum.
        same_order: whether both sides have the same datum ids row by row.
        ids: datum ids of all tables with the codes of the present rows, if the checks needed them.
        bucket: of the datum ids, if these are integers.
        label_map: side to label_key, label_value, new_label_key, new_label_value, one row per
            distinct label; the frames keep the old labels. In one table ``actual`` is the side of
            the ground truths, ``predicted`` and score labels that of the predictions. None without
            a label map, and if it unified integers and strings: then the frames have the new
            labels.
        recognised: role to name in the input and canonical name, if they differ.
        sources: role to origin.
        folders: role to allowed locations of raster paths in the table.
        remaining: role to the remaining rows of its source, if some were removed.
        columns: makes :func:`~evalengine.ingest.rules.columns.columns_read` of the tables.
        whole: whether these are all datums, not those of a bucket, whose notes are merged.
        heights: rows of predictions and ground truths before a task drops some of them.
        drawn: whether datums have keys for resampling; ``cluster`` is the slice column of the
            clusters.
    """

    sides: dict[str, pl.DataFrame]
    score_labels: pl.Series | None = None
    datums: pl.DataFrame | None = None
    labels: pl.DataFrame | None = None
    slices: pl.DataFrame | None = None
    by_row: bool = False
    same_order: bool = False
    ids: DatumIds | None = None
    bucket: Bucket = ALL
    label_map: dict[str, pl.DataFrame] | None = None
    all_labels: pl.DataFrame | None = None
    common_ids: CommonIds | None = None
    recognised: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    notes: list[Note] = msgspec.field(default_factory=list)
    sources: dict[str, str] = msgspec.field(default_factory=dict)
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    folders: dict[str, RasterFiles] = msgspec.field(default_factory=dict)
    remaining: dict[str, RemainingRows] = msgspec.field(default_factory=dict)
    columns: Callable[[], dict[str, dict[str, Any]]] = dict
    whole: bool = True
    heights: tuple[int, int] | None = None
    drawn: bool = False
    cluster: str | None = None

    @property
    def predictions(self) -> pl.DataFrame:
        """Predictions, if they are a separate table."""
        return self.sides[PREDICTIONS]

    @predictions.setter
    def predictions(self, frame: pl.DataFrame) -> None:
        self.sides[PREDICTIONS] = frame

    @property
    def ground_truths(self) -> pl.DataFrame:
        """Ground truths, if they are a separate table."""
        return self.sides[GROUND_TRUTHS]

    @ground_truths.setter
    def ground_truths(self, frame: pl.DataFrame) -> None:
        self.sides[GROUND_TRUTHS] = frame

    @property
    def table(self) -> pl.DataFrame | None:
        """Single table with both sides, if given; otherwise None."""
        return self.sides.get(TABLE)

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """Copies of all tables, whose columns may be removed from the frames themselves."""
        tables = {}
        for name, table in (*self.sides.items(), (DATUMS, self.datums), (LABELS, self.labels)):
            if table is not None:
                tables[name] = table.clone()
        return tables


class Part(msgspec.Struct):
    """Facts about the whole input that a part of it needs.

    Attributes:
        pairs: side to the distinct (label_key, label_value) of all its rows.
        all_labels: label_key and label_value of all sides, before any label map.
        bucket: of its datum ids, if these are integers.
    """

    pairs: dict[str, pl.DataFrame]
    all_labels: pl.DataFrame | None
    bucket: Bucket

    @property
    def labels(self) -> pl.Series | None:
        """The distinct label values of the ground truths."""
        side = self.pairs.get(GROUND_TRUTHS)
        return None if side is None else side["label_value"].unique().sort()


def checked_frames(inputs: Inputs, task: str, options: Options, each: Each = in_turn) -> Frames:
    """Read, recognise, filter and check open tables.

    Raises:
        ReadError: a file that cannot be read.
        InputError: all other problems of the tables, all of a side at once.
        OptionError: names in the options that do not exist.
    """
    ready = prepare(inputs, task, options)
    frames, before = collect(ready.sides, ready.where, ready.plan)
    return assemble(ready, frames, before, options, each=each)


def assemble(
    ready: Prepared,
    frames: dict[str, pl.DataFrame],
    before: dict[str, int],
    options: Options,
    part: Part | None = None,
    each: Each = in_turn,
) -> Frames:
    """Check and combine rows that were read."""
    sides, plan, where, nouns = ready.sides, ready.plan, ready.where, ready.plan.nouns
    notes = [] if part is not None else early_notes(ready, options, frames)
    problems: list[Problem] = []
    sources: dict[str, str] = {}
    text: dict[str, bool] = {}
    bucket = None if part is None else part.bucket
    if bucket is not None and not all(
        is_signed(frames[role][side.table.datum])
        for role, side in sides.items()
        if side.table.datum in frames[role].columns
    ):
        bucket = ALL  # dealt by hashes of ids
    calls, tagged = [], False
    for role, side in sides.items():
        sources[role], text[role] = side.source.description, side.source.format == "csv"
        tagged |= side.source.format == "tags"  # their sentences were compared
        calls.append(partial(checked, side, frames[role], bucket, filtered=role in where))
    looked_at = each(calls)
    for role, (more_problems, more_notes, frames[role]) in zip(sides, looked_at, strict=True):
        problems += more_problems
        notes += more_notes if part is None or role != LABELS else []
    if problems:
        swapped = [note.message for note in notes if note.kind == "tables_swapped"]
        problems += [
            Problem(PREDICTIONS, "", message, kind="tables_swapped") for message in swapped
        ]
        refuse(in_files(problems, ready), sources)
    for role, side in sides.items():
        if side.table.datum != "datum_id" and side.table.datum in frames[role].columns:
            frames[role] = frames[role].rename({side.table.datum: "datum_id"})
    same: list[Note] = []
    for name in ("datum_id", *_common(sides)):
        if len({*both_sides.dtypes_of(frames, (name,))}) > 1:
            same += both_sides.same_kind(frames, (name,), text)
            both_sides.check_kinds(frames, (name,), nouns)
    label_dtypes = both_sides.dtypes_of(frames, both_sides.LABEL_COLUMNS)
    labelled = (  # labels may disagree, or be marks of missing values
        options.label_map is not None
        or len(label_dtypes) > 1
        or any(not (one.is_integer() or one == pl.Boolean) for one in label_dtypes)
    )
    if labelled and len({*label_dtypes}) > 1:
        same += both_sides.same_kind(frames, both_sides.LABEL_COLUMNS, text)
    if options.score_columns is not None:
        labels_of_parts = None if part is None else part.labels
        _add_score_labels(sides, frames, labels_of_parts, mapped=options.label_map is not None)
    remaining: dict[str, RemainingRows] = {}
    if where:
        remaining = {
            role: _filtered_rows(sides[role], condition) for role, condition in where.items()
        }
        same += keep_datums(frames, where, before, remaining)
    if part is None:
        notes += same
        if "no_entities" not in map(attrgetter("kind"), notes):
            notes += no_rows(where, {role: frame.height for role, frame in frames.items()})
    by_row, same_order = _by_row(sides, frames, bucket or ALL), _same_order(frames)
    keyed: dict[str, pl.Series] = {}
    counted = part is not None and TABLE not in frames  # by all parts, those without a gap too
    if counted or DATUMS in frames or not (same_order or by_row) or (plan.by and not by_row):
        keyed_roles = (
            DATUMS,
            *(role for role in SIDES if not (same_order and role == PREDICTIONS)),
        )
        keyed = {
            role: frames[role]["datum_id"]
            for role in keyed_roles
            if role in frames and "datum_id" in frames[role].columns
        }

    def of_datums() -> tuple[DatumIds, list[Note]]:
        ids = DatumIds.of(keyed, bucket or ALL)
        if same_order:
            for by_side in (ids.codes, ids.there):
                by_side[PREDICTIONS] = by_side[GROUND_TRUTHS]
        match_notes = []
        if part is None and not same_order and not tagged:
            match_notes = check_meet(ids, nouns, frames)
        along = sources.get(DATUMS) == sources.get(GROUND_TRUTHS)
        more_notes = both_sides.datum_notes(
            ids, nouns, came_along=along, rows=frames, whole=part is None
        )
        if part is None and {note.kind for note in more_notes} >= _UNMATCHED_DATUMS:
            more_notes += nearly(ids, nouns)
        if tagged:  # sentences without entities are no lack
            more_notes = [note for note in more_notes if note.kind == "datums_not_listed"]
        return ids, match_notes + more_notes

    label_pairs = None if part is None else part.pairs
    labels_checked = partial(hold_labels, frames, options.label_map, label_pairs)
    ids: DatumIds | None = None
    mapping: dict[str, pl.DataFrame] | None = None
    notes_of_labels: list[Note] = []
    more_notes = []
    if keyed and labelled:
        (ids, more_notes), (mapping, notes_of_labels) = both(each, of_datums, labels_checked)
    elif keyed:
        ids, more_notes = of_datums()
    elif labelled:
        mapping, notes_of_labels = labels_checked()
    notes += more_notes
    if part is None:
        notes += [
            *notes_of_labels,
            *(of_labels(ready, options, notes_of_labels) if notes_of_labels else []),
        ]
    else:  # the others are of labels, not of rows
        notes += [note for note in notes_of_labels if note.kind in both_sides.TEXTS_AS_LABELS]
    slices = None
    if plan.by:
        if by_row:
            slices, more_notes = slices_by_row(plan, frames)
        else:
            assert ids is not None
            slices, more_notes = build_slices(plan, frames, ids)
        notes += more_notes
    score_labels = None
    for role, side in sides.items():
        if side.naming.wide:
            score_labels = frames.pop(both_sides.SCORES)["label_value"].alias("score_labels")
            column_names = [column.name for column in side.naming.wide]
            frames[role] = recognise.renamed(frames[role], column_names, score_labels)
            final = dict(
                zip(
                    column_names,
                    (f"{recognise.PREFIX}{label}" for label in score_labels),
                    strict=True,
                )
            )
            named = {mine: final.get(n, n) for mine, n in side.naming.recognised.items()}
            side.naming.recognised = {mine: n for mine, n in named.items() if mine != n}
    all_labels = None if part is None else part.all_labels
    if part is not None and part.pairs and options.label_map is not None and mapping is None:
        all_labels = new_labels(options.label_map, part.pairs)  # those of the frames are new, too
    recognised: dict[str, dict[str, str]] = {}
    facts: dict[str, str] = {}
    folders: dict[str, RasterFiles] = {}
    read: dict[str, tuple[Mapping[str, pl.DataType], Naming]] = {}
    for role, side in sides.items():
        recognised[role] = side.naming.recognised
        facts |= side.source.facts
        folder = os.path.dirname(side.source.files[0]) if side.source.files else ""
        folders[role] = RasterFiles(folder, options.raster_root, bool(options.remote_rasters))
        read[role] = side.schema, side.naming
        if role in plan.extra:  # read only for slices
            column_names = [expr.meta.output_name() for expr in plan.extra[role]]
            frames[role] = frames[role].drop(column_names)
    return Frames(
        drawn=options.drawn,
        cluster=options.cluster,
        sides={role: frames[role] for role in SIDES if role in frames},
        score_labels=score_labels,
        datums=frames.get(DATUMS),
        labels=frames.get(LABELS),
        slices=slices,
        by_row=by_row,
        same_order=same_order,
        ids=ids,
        bucket=bucket or ALL,
        label_map=mapping,
        whole=part is None,
        all_labels=all_labels,
        common_ids=None if part is None or tagged else common_ids(ids, frames),
        recognised=recognised,
        notes=notes,
        sources=sources,
        facts=facts,
        folders=folders,
        remaining=remaining,
        columns=partial(columns_read, read, options.columns, tuple(plan.homes), where),
    )


def _common(sides: Mapping[str, Side]) -> tuple[str, ...]:
    """Return the id columns, in addition to datum ids, on which rows of the two sides match."""
    id_columns: set[str] = set()
    for role, side in sides.items():
        if role in SIDES and side.table.either:
            for column in side.table.columns:
                if column.name in side.table.either and column.kind == "id":
                    id_columns.add(column.name)
    return tuple(sorted(id_columns))


def _add_score_labels(
    sides: dict[str, Side],
    frames: dict[str, pl.DataFrame],
    all_labels: pl.Series | None,
    *,
    mapped: bool,
) -> None:
    """Add the labels of score columns as a table, in the dtype of the true ones."""
    for role, side in sides.items():
        if side.naming.wide:
            truths, name = (role, "actual") if role == TABLE else (GROUND_TRUTHS, "label_value")
            values = frames[truths][name]
            if isinstance(values.dtype, pl.List):
                values = values.explode(empty_as_null=False)
            dtype = values.dtype if len(values) else None
            true_labels = distinct(values) if len(values) else values
            if all_labels is not None and len(all_labels):
                dtype, true_labels = all_labels.dtype, all_labels
            labels = recognise.label_series(side.naming.labels, dtype, true_labels)
            frames[both_sides.SCORES] = labels.to_frame()
            both_sides.same_kind(frames, both_sides.LABEL_COLUMNS, {})
            if not mapped:
                recognise.check_scored(side.naming.labels, labels, true_labels)


def _by_row(sides: dict[str, Side], frames: dict[str, pl.DataFrame], bucket: Bucket) -> bool:
    """Return whether each row of a single table is a datum."""
    if TABLE not in frames or sides[TABLE].table.long:
        return False
    table = frames[TABLE]
    keyed = "label_key" in table.columns and "datum_id" in table.columns
    return not (keyed and rows_repeat(table, ["datum_id"], bucket))


def _same_order(frames: dict[str, pl.DataFrame]) -> bool:
    """Return whether both sides have the same datum ids row by row, so that no join is needed."""
    if TABLE in frames:
        return False
    ours, theirs = frames[PREDICTIONS]["datum_id"], frames[GROUND_TRUTHS]["datum_id"]
    # A look at the first few spares most others: comparing long strings all over memory is slow.
    similar = len(ours) == len(theirs) and ours.head(1000).equals(theirs.head(1000))
    return similar and ours.equals(theirs)


def _filtered_rows(side: Side, condition: Condition) -> RemainingRows:
    """Return the rows that satisfy a condition; evaluated on the source again on demand.

    Numbering rows on the way would prevent predicate pushdown.
    """

    def numbers() -> pl.Series:
        numbered = side.source.frame.with_row_index(_NUMBER)
        return filtered(numbered, side, condition).select(_NUMBER).collect().to_series()

    return RemainingRows(numbers)
