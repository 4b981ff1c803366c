"""Steps before reading rows: recognise columns, plan conditions and slices."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import polars as pl

from evalengine.schemas.contract import DATUMS, GROUND_TRUTHS, LABELS, PREDICTIONS, TABLE, Table
from evalengine.schemas.errors import InputError
from evalengine.schemas.options import Options
from evalengine.schemas.wording import option

from . import rules, splits
from .collecting import Prepared, Side
from .contracts import TEXTS, contract
from .dtypes import canonical_dtype
from .file_memory import refuse_expanding
from .file_overlap import overlapping
from .geometry_choice import leave_unread
from .id_forms import check_forms, refuse_merged
from .label_maps import maybe_scores
from .measured import inferred_note, reread
from .names import Naming, check_columns, one_way, point_out_swap, recognise, unread
from .opening import Inputs
from .problems import Note, Problem, refuse
from .relabel import named_classes
from .rounding import rounded
from .rules import columns, values
from .slices import plan_slices
from .speech import Speech
from .together import ids_together
from .training import step_columns
from .where import SIDES, plan_where
from .where import Table as Named


def prepare(inputs: Inputs, task: str, options: Options) -> Prepared:
    """Columns recognised, slices and conditions planned: all that is done before rows are read."""
    sides = _recognised(inputs, task, options)
    speech = speech_of(sides)
    known = {role: (side.schema, side.naming) for role, side in sides.items()}
    plan = plan_slices(options.by, known, speech, options.cluster)
    tables = {r: Named(s.schema, s.naming) for r, s in sides.items() if r != LABELS}
    return Prepared(sides, plan, plan_where(options.where, tables, plan.pieces))


def told_before(
    ready: Prepared, options: Options, frames: Mapping[str, pl.DataFrame] | None = None
) -> list[Note]:
    """Return the notes on columns, and on integers that floats cannot represent.

    Args:
        frames: role to rows of canonical columns, as far as read.

    Raises:
        InputError: columns suggest another task than the inferred one.
    """
    sides = ready.sides
    signals, evidence = columns.evidence_of(ready, options)
    task = next(side.table.task for role, side in sides.items() if role in SIDES)
    told: list[Note] = []
    problems: list[Problem] = []
    for role, side in sides.items():
        schema, naming = side.schema, side.naming
        if role in SIDES and (
            naming.constant is not None
            or not values.MODELS.isdisjoint(map(str.casefold, schema))
            or (task == "text" and pl.List in schema.values())
            or ("prediction" in naming.exprs and len(schema) > len(naming.exprs))
        ):
            found, known = values.evidence_of(ready, options)
            if found:
                told, problems = rules.apply(values.RULES, task, found, known)
            break
    if evidence is not None and not problems:
        more, problems = rules.apply(columns.RULES, task, signals, evidence)
        told += more
    if problems:
        refuse(problems, {role: side.source.description for role, side in sides.items()})
    sources = [side.source for side in sides.values()]
    notes = [Note(*warning, warning=True) for source in sources for warning in source.warnings]
    notes += [Note(*note) for source in sources for note in source.notes]
    for side in sides.values():
        notes += unread(side.schema, side.naming, side.table, ready.plan.pieces)
    notes += [*told, *overlapping(sides), *rounded(sides, ready.where, frames)]
    notes += [] if ready.where else splits.without_predictions(sides, frames)
    if options.task is None:
        notes += maybe_scores(sides, ready.plan.pieces)
        notes += inferred_note(sides) if options.metrics is None else []
    return notes


def speech_of(sides: Mapping[str, Side]) -> Speech:
    """Return the task's nouns for datums."""
    table = next(side.table for role, side in sides.items() if role in SIDES)
    return Speech(table.datum, *table.unit)


def _recognised(inputs: Inputs, task: str, options: Options) -> dict[str, Side]:
    """Recognise the columns of every table, against its contract."""
    schemas = inputs.schemas
    check_forms("id_format", options.id_format)
    check_forms("label_format", options.label_format)
    contracts = {role: contract(task, role, options, schemas[role]) for role in inputs.sources}
    check_columns(options.columns, {role: (schemas[role], contracts[role]) for role in contracts})
    if options.score_columns is not None and not any(t.wide for t in contracts.values()):
        raise InputError(f"score_columns: {task} has none; leave the option out.")
    namings = {role: _naming(schemas[role], contracts[role], options) for role in contracts}
    for role, naming in namings.items():
        source = inputs.sources[role]
        if source.held and (own := sorted(naming.used & source.held.keys())):
            refuse_expanding(inputs.room, map(source.held.__getitem__, own), source.description)
    again = {
        role
        for role, naming in namings.items()
        if naming.problems and reread(inputs.sources[role], schemas[role], contracts[role], naming)
    }
    again |= named_classes(inputs.sources, schemas, contracts, namings)
    for role in again:
        namings[role] = _naming(schemas[role], contracts[role], options)
    if options.nulls == "empty":
        for role, naming in namings.items():
            _fill_texts(naming, contracts[role], schemas[role])
    one_way(namings, contracts, by_rule=options.match is not None)
    ids_together(task, contracts, inputs.sources, schemas, namings, options)
    step_columns(task, contracts, inputs.sources, schemas, namings, options)
    point_out_swap(namings, schemas, contracts)
    leave_unread(namings, contracts, inputs.sources, options)
    if TABLE in namings and DATUMS in namings:
        datum = contracts[TABLE].datum
        if datum not in namings[TABLE].exprs:
            raise InputError(
                f"datums: the table has no {datum} that they could be found by. Give it one, or"
                f" say which column it is: {option('columns', {'mine': datum})}."
            )
    for role, table in contracts.items():
        refuse_merged(inputs.sources[role].frame, namings[role].exprs, table, options.id_format)
    sides = {}
    for role, table in contracts.items():
        whole = msgspec.structs.replace(table, optional=(*table.optional, *namings[role].wide))
        sides[role] = Side(inputs.sources[role], whole, schemas[role], namings[role])
    return sides


def _fill_texts(naming: Naming, table: Table, schema: dict[str, pl.DataType]) -> None:
    """Read nulls in columns of texts as empty texts."""
    for column in table.columns:
        expr = naming.exprs.get(column.name)
        if column.kind not in TEXTS or expr is None:
            continue
        (own,) = expr.meta.root_names()
        if isinstance(canonical_dtype(column, schema[own]), pl.List):
            empty = pl.lit([""], dtype=pl.List(pl.String))
            expr = expr.list.eval(pl.element().fill_null("")).fill_null(empty)
        else:
            expr = expr.fill_null("")
        naming.exprs[column.name] = expr


def _naming(schema: dict[str, pl.DataType], table: Table, options: Options) -> Naming:
    """Recognise a table's columns; a table without columns is an empty side."""
    if not schema and table.side in (PREDICTIONS, GROUND_TRUTHS):
        return Naming({}, {}, [], [])
    return recognise(
        schema,
        table,
        options.columns,
        options.box_format,
        options.angle_format,
        options.score_columns,
        options.id_format,
        options.label_format,
    )
