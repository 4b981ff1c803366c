"""The entry: whatever the user gave for either side becomes checked frames of fixed dtypes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import polars as pl

from evalengine.readers.explain import explain
from evalengine.readers.source import Source
from evalengine.readers.tables import READ_FAILURES, open_source, schema_of
from evalengine.schemas import tables
from evalengine.schemas.options import Options
from evalengine.schemas.tables import DATUMS, GROUND_TRUTHS, LABELS, PREDICTIONS, Table

from . import dtypes, meeting
from .checks import check_side, finish
from .distinct import distinct
from .lists import open_datums, open_labels
from .names import Naming, check_columns, point_out_swap, recognise
from .problems import Note, Problem, refuse
from .relabel import hold_labels
from .slices import SlicePlan, build_slices, plan_slices
from .where import Condition, filtered, keep_datums, plan_where
from .where import Table as Named

ROLES = (PREDICTIONS, GROUND_TRUTHS, DATUMS, LABELS)


class Frames(msgspec.Struct, kw_only=True):
    """Both sides, checked: canonical columns, canonical dtypes, nothing null that may not be.

    Attributes:
        predictions: columns of the contract that are there. ``label_key`` is absent where every
            row has the key ``label``.
        ground_truths: the same; flags are Boolean.
        datums: all datums, where a table of them was given or came along.
        labels: declared labels, where a table of them was given or came along.
        slices: datum_id and one String column per entry of ``by``; None without ``by``.
        label_map: side to label_key, label_value, new_label_key, new_label_value, a row for every
            distinct label; the frames keep the old labels. None without a label map, and where
            it brought integers and strings together: then the frames have the new labels.
        datum_ids: side to its distinct datum ids, ascending.
        label_pairs: side to its distinct labels (label_key, label_value), as in the frames.
        recognised: side to own name and canonical name, where they differ.
        notes: what the user should know.
        sources: side to where it came from.
    """

    predictions: pl.DataFrame
    ground_truths: pl.DataFrame
    datums: pl.DataFrame | None = None
    labels: pl.DataFrame | None = None
    slices: pl.DataFrame | None = None
    label_map: dict[str, pl.DataFrame] | None = None
    datum_ids: dict[str, pl.Series] = msgspec.field(default_factory=dict)
    label_pairs: dict[str, pl.DataFrame] = msgspec.field(default_factory=dict)
    recognised: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    notes: list[Note] = msgspec.field(default_factory=list)
    sources: dict[str, str] = msgspec.field(default_factory=dict)


class _Side(msgspec.Struct):
    """One table on its way from source to frame."""

    source: Source
    table: Table
    schema: dict[str, pl.DataType]
    naming: Naming


def load_frames(
    predictions: Any,
    ground_truths: Any,
    *,
    datums: Any = None,
    labels: Any = None,
    options: Options | None = None,
    storage_options: dict[str, str] | None = None,
    task: str = "detection",
) -> Frames:
    """Read, recognise, filter and check all tables of a run.

    Args:
        predictions: path, glob, list of paths, or table.
        ground_truths: the same; a COCO ground-truth file brings datums and labels along.
        datums: table or list of all datum ids.
        labels: table or list of declared labels.
        options: columns, box_format, where, by and label_map are used here.
        storage_options: for remote paths, as Polars takes them.
        task: whose contract holds, unless the options say so.

    Raises:
        ReadError: a file that is missing or cannot be read.
        InputError: everything else about the tables, all problems of a side at once.
        OptionError: names in the options that do not exist.
    """
    options = options or Options()
    sides = _open(predictions, ground_truths, datums, labels, options, storage_options, task)
    sources = {role: side.source.description for role, side in sides.items()}
    plan = plan_slices(options.by, {role: (s.schema, s.naming) for role, s in sides.items()})
    named = {r: Named(s.schema, s.naming) for r, s in sides.items() if r != LABELS}
    where = plan_where(options.where, named, plan.pieces)
    frames, before = _collect(sides, where, plan)
    notes = [Note(*note) for side in sides.values() for note in side.source.notes]
    problems: list[Problem] = []
    for role, side in sides.items():
        found, told, frames[role] = _checked(side, frames[role], filtered=role in where)
        problems += found
        notes += told
    refuse(problems, sources)
    notes += _kinds(sides, frames)
    notes += keep_datums(frames, where, before)
    ids = {role: distinct(frame["datum_id"]) for role, frame in frames.items() if role != LABELS}
    meeting.check_meet(ids)
    notes += meeting.datum_notes(ids)
    pairs, mapping, told = hold_labels(frames, options.label_map)
    notes += told
    slices, told = build_slices(plan, frames, ids)
    return Frames(
        predictions=plan.without(PREDICTIONS, frames[PREDICTIONS]),
        ground_truths=plan.without(GROUND_TRUTHS, frames[GROUND_TRUTHS]),
        datums=plan.without(DATUMS, frames[DATUMS]) if DATUMS in frames else None,
        labels=frames.get(LABELS),
        slices=slices,
        label_map=mapping,
        datum_ids=ids,
        label_pairs=pairs,
        recognised={role: side.naming.recognised for role, side in sides.items()},
        notes=notes + told,
        sources=sources,
    )


def _open(
    predictions: Any,
    ground_truths: Any,
    datums: Any,
    labels: Any,
    options: Options,
    storage_options: dict[str, str] | None,
    task: str,
) -> dict[str, _Side]:
    """Open every table that is there and recognise its columns."""
    task = options.task or task
    sources: dict[str, Source] = {}
    for role, thing in ((PREDICTIONS, predictions), (GROUND_TRUTHS, ground_truths)):
        sources[role] = open_source(
            thing, storage_options=storage_options, box_format=options.box_format
        )
    truths = sources[GROUND_TRUTHS]
    for role, given, along, opener in (
        (DATUMS, datums, truths.datums, open_datums),
        (LABELS, labels, truths.labels, open_labels),
    ):
        if given is not None:
            sources[role] = opener(given, storage_options)
        elif along is not None:
            sources[role] = Source(along.lazy(), truths.description, truths.format)
    contracts = {role: tables.table_for(task, role) for role in sources}
    schemas = {role: schema_of(source) for role, source in sources.items()}
    check_columns(options.columns, {role: (schemas[role], contracts[role]) for role in sources})
    namings = {role: _naming(schemas[role], contracts[role], options) for role in sources}
    point_out_swap(namings, schemas)
    return {
        role: _Side(source, contracts[role], schemas[role], namings[role])
        for role, source in sources.items()
    }


def _naming(schema: dict[str, pl.DataType], table: Table, options: Options) -> Naming:
    """A side without any column is an empty side; it has nothing to recognise."""
    if not schema and table.side in (PREDICTIONS, GROUND_TRUTHS):
        return Naming({}, {}, [], [])
    return recognise(schema, table, options.columns, options.box_format)


def _collect(
    sides: dict[str, _Side], where: dict[str, Condition], plan: SlicePlan
) -> tuple[dict[str, pl.DataFrame], dict[str, int]]:
    """All tables in one go, and how many rows the filtered ones had before."""
    queries: dict[tuple[str, str], pl.LazyFrame] = {}
    for role, side in sides.items():
        lazy = side.source.frame
        if role in where:
            queries[role, "count"] = lazy.select(pl.len())
            lazy = filtered(lazy, Named(side.schema, side.naming), where[role])
        columns = [*side.naming.exprs.values(), *plan.extra.get(role, ())]
        queries[role, "rows"] = lazy.select(columns)
    try:
        found = dict(zip(queries, pl.collect_all(list(queries.values())), strict=True))
    except READ_FAILURES as error:
        for (role, _), query in queries.items():
            try:
                query.collect()
            except READ_FAILURES as alone:
                raise explain(sides[role].source, alone) from alone
        raise explain(sides[PREDICTIONS].source, error) from error
    frames = {role: frame for (role, what), frame in found.items() if what == "rows"}
    before = {role: frame.item() for (role, what), frame in found.items() if what == "count"}
    return frames, before


def _checked(
    side: _Side, frame: pl.DataFrame, *, filtered: bool
) -> tuple[list[Problem], list[Note], pl.DataFrame]:
    """Problems and notes of one side, and its frame in final dtypes."""
    empty = frame.height == 0 and not _rows(side)
    problems = [
        problem
        for problem in side.naming.problems
        if not (empty and _has(side.schema, side.naming, problem.column))
    ]
    found, notes = check_side(frame, side.table, side.naming.recognised, filtered=filtered)
    problems += found
    notes = [*side.naming.notes, *notes]
    if problems:
        return problems, notes, frame
    if frame.height == 0:
        return [], notes, _without_rows(frame, side.table)
    return [], notes, finish(dtypes.fit_integers(frame), side.table)


def _rows(side: _Side) -> int:
    """Rows of a side of which no column could be selected."""
    return int(side.source.frame.select(pl.len()).collect().item()) if side.schema else 0


def _has(schema: Mapping[str, Any], naming: Naming, column: str) -> bool:
    """Whether a column with a problem is there (so that only its type can be wrong)."""
    own = {name for name, canonical in naming.recognised.items() if column in canonical.split(", ")}
    return column in schema or bool(own)


def _without_rows(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """A side without rows has all required columns, whatever their dtypes were."""
    names = [column.name for column in table.required]
    names += [column.name for column in table.optional if column.name in frame.columns]
    kinds = {column.name: column for column in table.columns}
    extra = {name: dtype for name, dtype in frame.schema.items() if name not in names}
    schema: dict[str, pl.DataType] = {}
    for name in names:
        default = dtypes.DEFAULTS.get(kinds[name].kind, pl.String())
        flag = kinds[name].kind == "flag"
        schema[name] = default if flag or name not in frame.columns else frame.schema[name]
    return pl.DataFrame(schema={**schema, **extra})


def _kinds(sides: dict[str, _Side], frames: dict[str, pl.DataFrame]) -> list[Note]:
    """Datum ids of all tables in one dtype; labels may differ until the label map is applied."""
    text = {role: side.source.text for role, side in sides.items()}
    notes = meeting.same_kind(frames, "datum_id", text)
    meeting.check_kinds(frames, "datum_id")
    return notes + meeting.same_kind(frames, "label_value", text)
