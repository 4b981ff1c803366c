"""Recognition of columns and of the task."""

from __future__ import annotations

import re
import shlex
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import msgspec
import polars as pl

from .. import metrics
from ..schemas import tables
from ..schemas.contract import (
    ANGLE,
    DATUM_ID,
    DATUMS,
    GROUND_TRUTHS,
    LABELS,
    PREDICTIONS,
    TABLE,
    Column,
    Table,
)
from ..schemas.errors import InputError, OptionError, TruthsMissingError, did_you_mean, unknown
from ..schemas.options import Options
from ..schemas.wording import option
from . import dtypes
from .both_sides import LABEL_COLUMNS
from .dtypes import (
    SEPARATED,
    as_numbers,
    beyond_classes,
    decided,
    decided_by_names,
    folded,
    fractional,
    incomplete,
    numbers,
    numbers_in,
    refuse_marked,
)
from .geometry import SHAPED_NAMES
from .ids import formed
from .opening import Inputs
from .problems import Note, Problem, listing
from .recognise import (
    Finder,
    Naming,
    Side,
    contract,
    find_related,
    find_wide,
    has_column,
    levels_in,
    needs_two,
    numbered_columns,
    spared,
    stands_in,
    turned,
    with_calls,
)
from .shapes import SHAPES
from .sources.tables import head_of

# Column recognition: which of a table's columns is which of the contract's.


def check_columns(
    columns: Mapping[str, str], schemas: Mapping[str, tuple[Mapping[str, object], Table]]
) -> None:
    """Check ``columns=`` against all tables at once."""
    here = {name for schema, _ in schemas.values() for name in schema}
    canonical = {column.name for _, table in schemas.values() for column in table.columns}
    for original, target in columns.items():
        if target not in canonical:
            if message := turned(columns, here, [table for _, table in schemas.values()]):
                raise OptionError(message, code="columns_turned")
            before = f"{option('columns')}: "
            raise unknown("column of the contract", target, canonical, before=before)
        if original not in here:
            available = "; ".join(
                f"{side.replace('_', ' ')}: {', '.join(schema) or 'none'}"
                for side, (schema, _) in schemas.items()
            )
            raise InputError(
                f"{option('columns')}: no table has a column {original!r}."
                f"{did_you_mean(original, here)} Columns there: {available}.",
                code="column_missing",
                column=original,
            )


def recognise(
    schema: Mapping[str, pl.DataType],
    table: Table,
    columns: Mapping[str, str] | None = None,
    box_format: str | None = None,
    angle_format: str | None = None,
    score_columns: Any = None,
    id_format: Sequence[str] | None = None,
    label_format: Sequence[str] | None = None,
    slices: Container[str] = (),
) -> Naming:
    """Recognise a table's columns: exact names, then ``columns=``, then aliases.

    Args:
        columns: the user's mapping, name in the input to canonical name; takes precedence.
        score_columns: columns of one label's score each, if the contract allows it.
        slices: slice columns; of several candidates for a column, these are not.
    """
    find = Finder(schema, table.side, columns, table.names if columns else None, slices)
    shape = SHAPES[table.shape]
    wide = find_wide(find, score_columns) if score_columns is not None and table.wide else {}
    plain: list[Column] = []
    names: dict[str, str] = {}
    for column in table.columns:
        if column.name not in shape.columns:
            plain.append(column)
            if (name := find.exact(column.name)) is not None:
                names[column.name] = name
    # The shape first, so that an alias of something else never takes one of its columns.
    boxes = shape.find(find, box_format, angle_format) if shape.find is not None else None
    absent = []  # reported last, so that no column that another one takes is suggested
    for column in plain:
        if column.name not in names:
            name = find.by_alias(column) if len(find.used) < len(schema) else None
            if name is not None:
                names[column.name] = name
            elif column in table.required:
                absent.append(column)
    for column in absent:
        find.missing(column)
    if table.any_of and names.keys().isdisjoint(table.any_of):
        _none_of(find, table)
    for name, (_, original, _) in wide.items():
        names[name] = original
    columns_of_wide = tuple(map(itemgetter(0), wide.values()))
    exprs: dict[str, pl.Expr] = {}
    for column in (*plain, *columns_of_wide):
        if column.name not in names:
            continue
        mine = names[column.name]
        dtype = dtypes.canonical_dtype(column, schema[mine])
        if dtype is None:
            find.refuse_dtype(column, mine)
        else:
            exprs[column.name] = dtypes.cast(pl.col(mine), schema[mine], dtype)
            if column.nullable and column.kind in ("flag", "value") and dtype.is_float():
                exprs[column.name] = exprs[column.name].fill_nan(None)
            forms = id_format if column.name == table.datum else None
            if column.name in LABEL_COLUMNS:
                forms = label_format
            if forms:
                exprs[column.name] = formed(exprs[column.name], dtype, table, column, forms)
    recognised = {mine: name for name, mine in names.items() if mine != name}
    if boxes is not None:
        exprs |= boxes.exprs
        recognised |= boxes.recognised
    order = dict.fromkeys([*map(attrgetter("name"), table.columns), *exprs])
    return Naming(
        {name: exprs[name].alias(name) for name in order if name in exprs},
        recognised,
        find.problems,
        boxes.notes if boxes else [],
        columns_of_wide,
        tuple(map(itemgetter(2), wide.values())),
    )


def unread(side: Side, named: Iterable[str], columns: Mapping[str, str] | None) -> list[Note]:
    """Return notes on unread columns that a user may expect to count.

    Args:
        named: columns of slices and conditions.
        columns: the user's mapping, name in the input to canonical name.
    """
    schema, table = side.schema, side.table
    used = {*side.naming.used, *named}
    notes: list[Note] = []
    here = {*map(folded, schema)} if table.unread else set[str]()
    for column, reason in table.unread:
        names = {*map(folded, (column.name, *column.aliases))}
        if names.isdisjoint(here):
            continue
        idle = [name for name in schema if folded(name) in names and name not in used]
        message = f"column {idle[0]!r} is not read: {reason}." if idle else ""
        read = [name for name in schema if folded(name) in names and name in side.naming.used]
        if idle and read:
            first = head_of(side.source, [read[0], *idle], _LOOKED_AT)
            idle = [name for name in idle if not first[name].equals(first[read[0]])]
            message = (
                f"column {read[0]!r} is read, not {listing(idle)}. To choose another, drop"
                f" {read[0]!r}."
            )
        elif column is ANGLE and not side.naming.exprs.keys().isdisjoint(SHAPED_NAMES):
            continue  # other shapes than upright boxes are compared
        if idle:
            message = f"{table.side.replace('_', ' ')}: {message}"
            notes.append(Note("unread_column", message, len(idle)))
    if len(schema) > len(side.naming.exprs):
        notes += _second_values(side, used, {*(columns or {}).values()})
    if table.wide and "score" not in side.naming.exprs:
        by_prefix: dict[str, list[str]] = {}
        for name, dtype in schema.items():
            if name not in used and dtype.is_float() and (match := _OF_SCORES.match(name)):
                by_prefix.setdefault(match[0], []).append(name)
        for prefix, some in by_prefix.items():
            if len(some) == 1:
                continue
            message = (
                f"{table.side.replace('_', ' ')}: {listing(some)} are not read. If they are scores"
                f" of a label each, write {option('score_columns', f'{prefix}*')}."
            )
            notes.append(Note("unread_column", message, len(some)))
    return notes


_VAGUE = ("y", "output")  # rather a coordinate, and the raw text of a model
_VALUES = frozenset({"prediction", "target", "score", "relevance"})
"""Columns of numbers in the tables of one side."""


def _second_values(side: Side, used: Container[str], mapped: set[str]) -> list[Note]:
    """Return notes on columns that could be values, next to one of the canonical name.

    Args:
        mapped: canonical names that the user has given a column.
    """
    notes, (schema, table) = [], (side.schema, side.table)
    values = {*chain(*table.values)} or _VALUES
    for column in table.columns:
        name = column.name
        if name not in values - mapped or name not in schema or name not in used:
            continue
        dtype = dtypes.canonical_dtype(column, schema[name])
        forecast = name == "target" and "x" not in map(folded, schema)
        vague = _VAGUE[1:] if forecast else _VAGUE  # of forecasts y is the target
        idle = [
            mine
            for mine in schema
            if folded(mine) in column.aliases and mine not in used
            if folded(mine) not in vague and (table.values or folded(mine) not in _VALUES)
            if dtypes.canonical_dtype(column, schema[mine]) == dtype
        ]
        if dtype is None or not idle:
            continue
        first = head_of(side.source, [name, *idle], _LOOKED_AT).select(
            dtypes.cast(pl.col(one), schema[one], dtype).alias(one) for one in (name, *idle)
        )
        if idle := [mine for mine in idle if not first[mine].equals(first[name])]:
            message = (
                f"{table.side.replace('_', ' ')}: column {name!r} is read, not {listing(idle)}. To"
                f" choose another, write {option('columns', {idle[0]: name})}."
            )
            notes.append(Note("unread_column", message, len(idle)))
    return notes


_OF_SCORES = re.compile(r"(p|prob|probs|proba|probability|score|scores|logits?)[_. -](?=.)", re.I)


def _none_of(find: Finder, table: Table) -> None:
    """Record that a table has none of several alternative columns."""
    columns = {column.name: column for column in table.columns}
    ways = []
    for name in table.any_of:
        if name in columns:
            also = ", ".join(columns[name].aliases[:3])
            ways.append(f"{name!r} ({also}, ...)" if also else repr(name))
    if table.wide:
        ways.append(f"one column of scores per label, named in {option('score_columns')}")
    available = ", ".join(find.schema) or "none"
    find.refuse(
        table.any_of[0],
        f"{table.lack}: expected {', or '.join(ways)}. Columns there: {available}. To use one of "
        f"them, write {option('columns', {'mine': table.any_of[0]})}.",
        "column_missing",
    )


def one_way(sides: Mapping[str, Side], *, by_rule: bool = False) -> None:
    """Drop columns that another column makes redundant.

    Rows of both sides are matched by the first suitable column that both have.

    Args:
        by_rule: whether a matching rule was given, so that the last one is read.
    """
    for side in sides.values():
        for first, second in side.table.instead:
            if first in side.naming.exprs:
                side.naming.exprs.pop(second, None)
    if not {PREDICTIONS, GROUND_TRUTHS} <= sides.keys():
        return
    ours, theirs = sides[PREDICTIONS].naming, sides[GROUND_TRUTHS].naming
    ways = sides[PREDICTIONS].table.either
    if not ways:
        return
    if by_rule:
        ways = ways[::-1]
    shared = [name for name in ways if name in ours.exprs and name in theirs.exprs]
    for naming in (ours, theirs):
        for name in ways:
            if shared and name != shared[0]:
                naming.exprs.pop(name, None)
    mine, other = ([name for name in ways if name in side.exprs] for side in (ours, theirs))
    if mine and other and not shared:
        ours.problems.append(
            Problem(
                PREDICTIONS,
                mine[0],
                f"the predictions have {mine[0]!r}, the ground truths {other[0]!r}: there is no"
                f" id to match by. Give both sides {' or both sides '.join(map(repr, ways))}.",
                kind="no_common_id",
            )
        )


def _bears(schema: Mapping[str, object], table: Table, excluded: Table) -> bool:
    """Return whether a table has a required column of only the other contract."""
    needed = [one for one in table.columns if one in table.required or one.name in table.any_of]
    names = {name for one in needed for name in (one.name, *one.aliases)}
    names -= {name for one in excluded.columns for name in (one.name, *one.aliases)}
    return any(folded(name) in names for name in schema)


def point_out_swap(sides: Mapping[str, Side]) -> None:
    """Ask about swapped tables if a side is missing a column that only the other has, or has it
    under a name of the other side.
    """
    ours = sides[PREDICTIONS].naming
    for role, other in ((PREDICTIONS, GROUND_TRUTHS), (GROUND_TRUTHS, PREDICTIONS)):
        own_table, other_table = sides[role].table, sides[other].table
        problems = sides[role].naming.problems
        if not problems:
            continue
        if role == GROUND_TRUTHS and not _bears(sides[role].schema, other_table, own_table):
            continue
        for column in own_table.columns:
            if column not in own_table.required and column.name not in own_table.any_of:
                continue
            names = {folded(name) for name in (column.name, *column.aliases)}
            theirs = [name for name in sides[other].schema if folded(name) in names]
            same = (one for one in other_table.columns if one.name == column.name)
            turned = {alias for one in same for alias in one.aliases} - names
            swapped = [name for name in sides[role].schema if folded(name) in turned]
            for i, problem in enumerate(problems):
                if problem.column != column.name:
                    continue
                required = " is missing" in problem.message or own_table.any_of
                if swapped and problem.kind == "column_missing":
                    swap, hint = (
                        swapped[0],
                        f"{swapped[0]!r} is a name of {other.replace('_', ' ')}",
                    )
                elif column.name not in other_table.names and theirs and required:
                    swap, hint = theirs[0], f"The {other.replace('_', ' ')} have {theirs[0]!r}"
                else:
                    continue
                problems[i] = msgspec.structs.replace(
                    problem,
                    message=f"{problem.message} {hint}: are the two tables swapped?",
                    facts={**problem.facts, "swapped_with": swap},
                )
    truths = sides[GROUND_TRUTHS]
    for column in sides[PREDICTIONS].table.optional:
        if column.single and column.name not in ours.exprs and not ours.wide:
            names = {folded(name) for name in (column.name, *column.aliases)}
            theirs = [name for name in truths.schema if folded(name) in names]
            if theirs:
                values = head_of(truths.source, theirs[:1], _LOOKED_AT).to_series()
                varied = 2 * values.n_unique() >= len(values)  # unlike the steps of annotators
                ours.notes.append(
                    Note(
                        "tables_swapped",
                        f"predictions: no {column.name!r}, but the ground truths"
                        f" have {theirs[0]!r}: are the two tables swapped?",
                        warning=column.name == "score" and varied,
                    )
                )


# Inference of the task from the columns of the tables and the contracts' signs.

_LOOKED_AT = 1000  # rows inspected for fractional numbers
_Measured = Mapping[str, frozenset[str]]
"""Role -> own columns of numbers that a contract measures."""

_IDS = (DATUM_ID.name, *DATUM_ID.aliases, "id", "sample_id", "example_id", "row_id", "text_id")
"""Names of columns that name the rows of a table, whatever its task."""


class _Fit(msgspec.Struct, eq=False):
    """Evidence for one task: signs found on the deciding side, and on the other.

    ``refuted``: signs of the deciding side if a column contradicts the task; ``whole``: no side is
    missing a column; ``guest``: the shape whose complete tables belong to another task unless their
    format indicates this one; otherwise empty.
    """

    task: str
    here: set[str]
    there: set[str]
    all_names: frozenset[str]
    like: frozenset[str]
    complete: bool
    refuted: set[str]
    whole: bool
    guest: str


def infer_task(inputs: Inputs, options: Options | None = None) -> str:
    """Infer the task of tables: by :func:`_by_columns`, or text if labels are sentences."""
    options = options or Options()
    task = _by_columns(inputs, options)
    named = options.task or options.columns or options.score_columns or options.positive_label
    if (
        named
        or not any(table.wide for table in tables.contracts(task).values())
        or not all(metrics.has("text", name) for name in options.metrics or ())
    ):
        return task
    columns = _sentences(task, inputs, options)
    if unknown := {name: to for name, (to, is_text) in columns.items() if not is_text}:
        raise InputError(
            f"task: columns {listing(columns)} contain sentences, nearly all distinct. To compare "
            f"them as texts: {option('task', 'text')} with {option('columns', unknown)}; if each "
            f"is a class: {option('task', task)}.",
            code="task_unclear",
            columns=list(columns),
        )
    return "text" if columns else task


def _by_columns(inputs: Inputs, options: Options) -> str:
    """Infer the task from the columns.

    A task fits if the predictions, or the one table, have one of its contract's ``signs`` and none
    of its ``unless``. If two fit, the one whose signs are all signs of the other is dropped (boxes
    have labels, labels have no boxes), unless the table is complete for one task and the other task
    only accepts its columns. If several remain, those with all required columns win. Tasks without
    a requested metric give way to those that have them all.

    Args:
        options: ``task`` wins, then ``columns`` if only one task has all columns they name;
            ``score_columns``, ``metrics`` and ``training`` count.
    """
    for derived in _MADE:
        if options.task == derived.task or (options.metrics and options.task is None):
            _refuse_unmade(derived, inputs, options)
    if options.task is not None:
        return options.task
    for table in tables.TABLES:
        for name in table.decided_by:
            if getattr(options, name) is not None:
                return table.task
    for source in inputs.sources.values():
        if source.task:
            return source.task
    roles = [role for role in (TABLE, PREDICTIONS, GROUND_TRUTHS) if role in inputs.sources]
    if options.columns and (named := _named_by_hand(inputs, roles, options)):
        return named
    filled = [role for role in roles if inputs.schemas[role]] or roles
    measured = _measured(inputs, filled, options)
    fits = [_fit(task, filled, inputs, options, measured) for task in tables.task_names()]
    for refuted in (fit.refuted for fit in fits if fit.refuted):
        if any(fit.complete and fit.here and refuted <= fit.all_names for fit in fits):
            continue  # a task that reads all of these
        # The predictions are missing columns of the other task; its contract gives the best
        # message.
        likely = [
            fit.task for fit in fits if fit.there and refuted & fit.all_names and not fit.here
        ]
        if len(likely) == 1:
            return likely[0]
    modest = {
        task
        for task in tables.task_names()
        if any(table.defers for role, table in tables.contracts(task).items() if role in filled)
    }
    fitting = [fit for fit in fits if fit.here]

    def shares(fit: _Fit, guest: _Fit) -> bool:
        """Return whether both sides have the shape that a guest shares with a task."""
        return not fit.guest and guest.guest in fit.here and bool(fit.there)

    # A metric's name decides between tasks that the columns allow, and only between those.
    requested = options.metrics or ()
    able = [fit for fit in fitting if all(metrics.has(fit.task, name) for name in requested)]
    for chosen in (able or fitting, fitting):
        left = _left(chosen, filled, modest)
        if len(left) > 1:
            break
        torn = [
            fit
            for fit in fits
            if left
            and fit.task not in modest
            and fit.there - left[0].all_names - left[0].like
            and not _stays(left[0], fit)
            and not (shares(left[0], fit) and fit in fitting and fit not in chosen)
            and not _reads(left[0], fit, filled, inputs)
        ]
        if left and not torn:
            enough = left[0].whole or options.metrics
            return left[0].task if enough else _all_but_one(inputs, filled, options) or left[0].task
    if len(left) == 1:
        if cut := [fit.task for fit in torn if _partly(fit.task, filled[0], inputs, options)]:
            return cut[0]  # its contract names the missing columns
        first, rest = (role.replace("_", " ") for role in (filled[0], filled[-1]))
        one, other = left[0].task, torn[0].task
        raise InputError(
            f"task: the {first} look like {one}, the {rest} like {other}. To choose, write "
            f"{option('task', one)} or {option('task', other)}.",
            code="task_ambiguous",
            tasks=[one, other],
        )
    if left:
        names = " or ".join(repr(fit.task) for fit in left)
        raise InputError(
            f"task: the columns fit {names}. To choose, write {option('task', left[0].task)}."
        )
    if filled == [TABLE]:  # a column identified by related names
        one_table = {task: tables.contracts(task).get(TABLE) for task in tables.task_names()}
        likely = [
            task
            for task, table in one_table.items()
            if table is not None
            and find_related(
                inputs.schemas[TABLE],
                table,
                {mine: to for mine, to in (options.columns or {}).items() if to in table.names},
            )
        ]
        if len(likely) == 1:
            return likely[0]
    here = {name for role in roles for name in inputs.schemas[role]}
    every = [table for task in tables.task_names() for table in tables.contracts(task).values()]
    if way := turned(options.columns, here, every):
        raise OptionError(way, code="columns_turned")
    raise InputError(_none(inputs, filled, options), code="task_unknown")


def with_canonical_columns(inputs: Inputs, options: Options) -> Options:
    """Replace aliases among the targets of ``columns``, such as ``y_true``, by the columns that the
    task knows by them.
    """
    requested = options.columns or {}
    canonical = {column.name for table in tables.TABLES for column in table.columns}
    here = {name for schema in inputs.schemas.values() for name in schema}
    every_alias = {
        alias for table in tables.TABLES for one in table.columns for alias in one.aliases
    }
    aliased = {m: to for m, to in requested.items() if m in here and to in every_alias - canonical}
    if not aliased:
        return options
    rest = {mine: to for mine, to in requested.items() if mine not in aliased} or None
    named = Inputs({}, {}, inputs.room)
    for role, source in inputs.sources.items():  # as if the columns had these names
        renames = {mine: to for mine, to in aliased.items() if mine in inputs.schemas[role]}
        frame = source.frame.drop([*renames.values()], strict=False).rename(renames)
        named.sources[role] = msgspec.structs.replace(source, frame=frame)
        schema = inputs.schemas[role].items()
        left = {name: dtype for name, dtype in schema if name not in renames.values()}
        named.schemas[role] = {renames.get(name, name): dtype for name, dtype in left.items()}
    task = options.task or infer_task(named, options.replace(columns=rest))
    columns = dict(requested)
    for mine, to in aliased.items():
        meant = {
            column.name
            for role, schema in inputs.schemas.items()
            if mine in schema
            for column in tables.table_for(task, role).columns
            if to in column.aliases
        }
        if len(meant) == 1:
            columns[mine] = meant.pop()
    return options.replace(columns=columns)


def _sentences(labelled: str, inputs: Inputs, options: Options) -> dict[str, tuple[str, bool]]:
    """Columns of labels that are sentences, nearly all distinct, and few equal on both sides.

    Returns:
        User's name to the column of texts, and whether texts are known by that name; may be empty.
    """
    result: dict[str, tuple[str, bool]] = {}
    seen: list[set[str]] = []
    for role in inputs.sources.keys() & {TABLE, PREDICTIONS, GROUND_TRUTHS}:
        texts_of: dict[str, tuple[str, bool]] = {}
        for task in (labelled, "text"):
            table = tables.contracts(task)[role]
            find = _finder(table, inputs, role, options, {})
            for column in table.columns:
                to = _TEXTS.get(column.name) if task != "text" else column.name
                name = _first(find, column)
                if to and name and (task != "text" or to in table.signs):
                    texts_of[name] = to, task == "text"
        sizes = inputs.sources[role].footprints
        # Texts beyond the limit are refused later; reading them here would take their memory.
        long = any(name in sizes and sizes[name].cell for name in texts_of)
        if not texts_of or long or any(find.schema[name] != pl.String for name in texts_of):
            return {}
        head = head_of(inputs.sources[role], [*texts_of], _LOOKED_AT)
        few = pl.all().str.count_matches(r"\S+").median().fill_null(0) < _SENTENCE
        few |= pl.all().n_unique() < _DISTINCT * pl.len()
        if head.select(pl.any_horizontal(few)).item():
            return {}
        seen += [{*texts} for texts in head]
        result |= texts_of
    return result if len(seen) == 2 and 2 * len(seen[0] & seen[1]) < len(seen[0]) else {}


_SENTENCE, _DISTINCT = 4, 0.9  # median words, share of distinct texts
_TEXTS = {"label_value": "text", "predicted": "text", "actual": "reference"}


def _named_by_hand(inputs: Inputs, roles: list[str], options: Options) -> str:
    """Return the only task that has all the columns that ``columns`` names; otherwise ""."""
    requested = {*(options.columns or {}).values()}
    able = []
    for task in tables.task_names():
        contracts = [tables.contracts(task).get(role) for role in roles]
        contracts += [
            tables.table_for(task, role) for role in (DATUMS, LABELS) if role in inputs.sources
        ]
        columns = [column for table in contracts if table is not None for column in table.columns]
        if None not in contracts and all(
            any(one.name == name or numbered_columns(one, [name]) for one in columns)
            for name in requested
        ):
            able.append(task)
    if len(able) != 1:
        return ""
    texts = any(  # such as labels, mapped to a measured column
        inputs.schemas[role].get(mine) == pl.String
        and numbers_in(head_of(inputs.sources[role], [mine], _LOOKED_AT).lazy(), mine) is None
        for role, table in tables.contracts(able[0]).items()
        if role in inputs.schemas
        for mine, to in (options.columns or {}).items()
        if to in table.measured
    )
    return "" if texts else able[0]


_MADE = [table for table in tables.TABLES if table.made_of]


def _refuse_unmade(product: Table, inputs: Inputs, options: Options) -> None:
    """Refuse a table that is the input of a command that makes the scored one."""
    role = next((one for one in (TABLE, PREDICTIONS) if inputs.schemas.get(one)), None)
    if role is None:
        return
    source = tables.contracts(product.task)[product.made_of]

    schema = inputs.schemas[role]
    texts = {name: dtype for name, dtype in schema.items() if not dtype.is_numeric()}

    def has_any(table: Table, names: Sequence[str], schema: Mapping[str, pl.DataType]) -> bool:
        matches = [column for column in table.columns if column.name in names]
        return any(has_column(column, options, schema) for column in matches)

    if has_any(product, product.signs, schema) or not has_any(source, source.any_of, texts):
        return
    named = tuple(options.metrics or ())
    if options.task is None and [
        task for task in tables.task_names() if all(metrics.has(task, name) for name in named)
    ] != [product.task]:
        return
    named = tuple(named or metrics.names(product.task)[:1])
    path = inputs.sources[role].files[:1]
    command, call = product.made_by
    shell = command.format(
        data=shlex.quote(str(path[0])) if path else "TABLE.parquet", metrics=",".join(named)
    )
    python = call.format(data=repr(str(path[0])) if path else "table", metrics=[*named])
    raise InputError(
        f"{', '.join(named)}: the table has no column {listing(product.signs)}. Make a table that"
        f" has one first: {shell} (in Python {python}).",
        code="column_missing",
        column=product.signs[0],
    )


def _left(fitting: Sequence[_Fit], filled: list[str], modest: set[str]) -> list[_Fit]:
    """Return the fitting tasks that yield to no other."""
    likely = [fit for fit in fitting if fit.task not in modest]
    if filled == [TABLE] and not any(fit.complete for fit in likely):
        likely = [fit for fit in fitting if fit.complete] or likely
    likely = likely or list(fitting)
    left = [fit for fit in likely if not any(_gives_way(fit, other) for other in likely)]
    if len(left) > 1:
        left = [fit for fit in left if fit.complete] or left
    return left


def _measured(inputs: Inputs, roles: list[str], options: Options) -> _Measured:
    """Return columns on every side that a contract measures, recognised by fractions or names;
    otherwise empty.

    Texts that are numbers except for a few count as numbers.
    """
    for task in tables.task_names():
        contracts = tables.contracts(task)
        if not all(role in contracts and contracts[role].measured for role in roles):
            continue
        sides = [_side(contracts[role], inputs, role, options) for role in roles]
        result: dict[str, frozenset[str]] = {}
        heads: list[list[list[pl.Series]]] = []
        mended = False
        for role, (groups, *_) in zip(roles, sides, strict=False):
            names = [name for group in groups for name in group if name is not None]
            if not names or any(None in group for group in groups):
                break
            values = head_of(inputs.sources[role], names, _LOOKED_AT)
            if texts := [one for one in values if one.dtype == pl.String]:
                if all(one.dtype == pl.String or one.dtype.is_numeric() for one in values):
                    refuse_marked(texts, *SEPARATED)
                    decimal = all(one.str.contains(r"\d[.,]\d").any() for one in texts)
                    if decimal or len(texts) < values.width:
                        refuse_marked(texts, "percent signs")
                others = any(fractional(one) for head in heads for group in head for one in group)
                rows = inputs.sources[role].frame
                values, changed = as_numbers(values, rows, measured=others)
                mended = mended or changed
            if not all(map(numbers, values)):
                break
            result[role] = frozenset(names)
            heads.append([[values[name] for name in group if name is not None] for group in groups])
        if not result or len(result) < len(roles):
            continue
        plain = (
            any(side.spread for side in sides)
            or decided(task, options)
            or all(decided_by_names(task, role, names) for role, names in result.items())
        )
        if not plain and (answer := sides[0].answer) is not None:
            plain = decided_by_names(task, roles[0], [answer])
        series = [group for head in heads for group in head]
        if plain or all(any(map(fractional, group)) for group in series):
            return result
        single = [len(group) for group in series] == [1, 1]
        if not single:
            continue
        named = all(metrics.has(task, name) for name in options.metrics or ())
        if mended and named and fractional(series[0][0]):  # texts such as '0.37' are no labels
            return result
        if beyond_classes(series[0][0], series[1][0], options):
            frames = {role: inputs.sources[role].frame for role in result}
            if mended or any(incomplete(frames[role], names) for role, names in result.items()):
                return result  # whose error names the rows without a number
    return {}


class _Side(NamedTuple):
    """Columns of one side by the kind of quantity that a contract measures.

    ``spread``: the predictions are only a distribution, and no other column may be a label or its
    score; then names decide, whatever the values. ``answer``: the column of single predicted
    numbers.
    """

    groups: list[list[str | None]]
    spread: bool
    answer: str | None


def _side(table: Table, inputs: Inputs, role: str, options: Options) -> _Side:
    columns = {column.name: column for column in table.columns}
    find = _finder(table, inputs, role, options, {})
    answers = [columns[one] for one in table.any_of]
    groups: list[list[str | None]] = []
    rest, spread, answer = set(inputs.schemas[role]), False, None
    for column in (columns[one] for one in table.measured):
        original = find.mapped.get(column.name, _first(find, column))
        others: list[str] = []  # alternatives to the answer
        if original is None and column in answers:
            rest_of = [one for one in answers if one is not column]
            others = [name for one in rest_of for name in levels_in(one, find.schema)]
            others += [name for one in rest_of if (name := _first(find, one)) is not None]
        groups.append([*others] or [original])
        answer = original if column in answers and not others else answer
        spread = spread or bool(others)
        rest -= set() if column in answers or original is None else {original}
    renames = options.columns or {}
    single = (
        spread
        and options.score_columns is None
        and decided_by_names(table.task, TABLE, [renames.get(name, name) for name in rest])
    )
    return _Side(groups, single, answer)


def _first(find: Finder, column: Column) -> str | None:
    """The one column that bears a name or an alias; None if there is none, or several."""
    names = find.candidates((column.name,)) or find.candidates(column.aliases)
    return names[0] if len(names) == 1 else None


def _fit(
    task: str, roles: list[str], inputs: Inputs, options: Options, measured: _Measured
) -> _Fit:
    contracts = tables.contracts(task)
    if TABLE in roles and TABLE in contracts and contracts[TABLE].of_calls:
        contracts = {TABLE: with_calls(contracts[TABLE], inputs.schemas[TABLE])}
    signs = {
        role: _signs(contracts[role], inputs, role, options, measured)
        if role in contracts
        else set()
        for role in roles
    }
    pairs = [(contracts[role], role) for role in roles if role in contracts]
    refuted: set[str] = set()
    for table, role in pairs:
        find = _finder(table, inputs, role, options, {})
        given = {to for mine, to in (options.columns or {}).items() if mine in find.schema}
        if any(
            column.name in given or find.candidates((column.name, *column.aliases))
            for column in table.unless
        ):  # a column contradicts the task
            refuted = signs[roles[0]]
            signs = {role: set() for role in roles}
            break
    rest = {sign for role in roles[1:] for sign in signs[role]}
    canonical = frozenset(name for table, _ in pairs for name in (*table.names, table.shape))
    like = frozenset(name for table, _ in pairs for name in table.like)
    usable = {
        role
        for table, role in pairs
        if not _missing(table, _finder(table, inputs, role, options, measured), options)
    }
    by_format = any(inputs.sources[role].format in table.formats for table, role in pairs)
    return _Fit(
        task,
        signs[roles[0]],
        rest,
        canonical,
        like,
        roles[0] in usable,
        refuted,
        all(signs[role] and role in usable for role in roles),
        next((table.shape for table, _ in pairs if table.all_signs and not by_format), ""),
    )


def _missing(table: Table, find: Finder, options: Options) -> list[Column]:
    """Return required columns outside the contract's shape that are missing, and one of
    alternatives if there is none of them.
    """
    columns = {column.name: column for column in table.columns}
    wide = options.score_columns is not None and table.wide
    missing = [
        column
        for column in table.required
        if column.name not in SHAPES[table.shape].columns
        and not find.exact(column.name)
        and not find.candidates((column.name, *column.aliases))
    ]
    if (
        table.any_of
        and not wide
        and not any(_has(find, columns[name]) for name in table.any_of if name in columns)
    ):
        missing.insert(0, next(columns[name] for name in table.any_of if name in columns))
    return missing


def _has(find: Finder, column: Column) -> bool:
    return bool(
        find.exact(column.name)
        or find.candidates((column.name, *column.aliases))
        or levels_in(column, find.schema)
    )


_LISTS = frozenset({pl.List, pl.Array})


def _finder(
    table: Table, inputs: Inputs, role: str, options: Options, measured: _Measured
) -> Finder:
    """Return a table's columns, with the user's mapping.

    Measured numbers are not labels: only contracts of measured numbers find them.
    """
    find = Finder(inputs.schemas[role], role, options.columns, table.names)
    if not table.measured:
        find.used.update(measured.get(role, ()))
    if not table.of_calls and not _LISTS.isdisjoint(map(type, find.schema.values())):
        find.used.update(dtypes.calls_in(find.schema))
    return find


def _signs(
    table: Table, inputs: Inputs, role: str, options: Options, measured: _Measured
) -> set[str]:
    """The signs of a contract that a table has."""
    find = _finder(table, inputs, role, options, measured)
    if table.measured and role not in measured:
        return set()
    columns = {column.name: column for column in table.columns}
    shape = SHAPES[table.shape]
    result = {
        sign
        for sign in table.signs
        if sign not in shape.columns
        and (find.exact(sign) or find.candidates(_telling(columns[sign], table, find)))
    }
    schema = inputs.schemas[role]
    result |= {
        pair[0]
        for pair in table.stand_ins
        if pair[0] in table.signs and stands_in(table, pair, options, schema)
    }
    if table.measured and any(_has(find, columns[name]) for name in table.any_of):
        result |= set(table.signs) & set(table.any_of)
    if table.defers and not set(table.signs) - spared(table, options) <= result:
        result = set()
    if table.all_signs and not set(table.signs) <= result:
        return {table.shape} if inputs.sources[role].format in table.formats else set()
    if inputs.sources[role].format in table.formats or (shape.present and shape.present(find)):
        result.add(table.shape)
    if options.score_columns is not None and table.wide:
        result |= set(table.signs)
    return result


def _telling(column: Column, table: Table, find: Finder) -> tuple[str, ...]:
    """The names under which a column is a sign in one table."""
    names = (column.name, *column.aliases)
    others = [one for one in table.columns if one.name in (table.either[:1] or table.any_of)]
    others_present = any(find.candidates((one.name, *one.aliases)) for one in others)
    if not column.weak or others_present or (table.either and not find.candidates(_IDS)):
        return names
    return tuple(name for name in names if name not in column.weak)


def _gives_way(fit: _Fit, other: _Fit) -> bool:
    """Return whether another task explains all signs of this one, and more."""
    if _stays(fit, other) or _stays(other, fit):
        return bool(fit.guest)
    return fit.here <= other.all_names and not other.here <= fit.all_names


def _stays(fit: _Fit, guest: _Fit) -> bool:
    """Return whether tables are complete for one task, and therefore not a guest's."""
    return fit.whole and not fit.guest and guest.guest in fit.here


def _reads(fit: _Fit, other: _Fit, roles: list[str], inputs: Inputs) -> bool:
    """Return whether tables are complete for one task, which reads the other's signs too."""
    if not fit.whole or other.here:
        return False
    for role in roles[1:]:
        ours, theirs = (tables.contracts(one.task).get(role) for one in (fit, other))
        if ours is None or theirs is None:
            return False
        signs = [column for column in theirs.columns if column.name in other.there]
        if len(signs) < len(other.there):
            return False  # a shape, or a format
        of_signs, own_names = (
            {folded(name) for column in columns for name in (column.name, *column.aliases)}
            for columns in (signs, ours.columns)
        )
        if not of_signs & {*map(folded, inputs.schemas[role])} <= own_names:
            return False
    return True


def _swapped(inputs: Inputs, roles: list[str], options: Options) -> str:
    """Return a message if the two tables are swapped for a task; otherwise ""."""
    if roles != [PREDICTIONS, GROUND_TRUTHS]:
        return ""
    turn = dict(zip(roles, roles[::-1], strict=True))
    turned = Inputs(
        {turn.get(role, role): source for role, source in inputs.sources.items()},
        {turn.get(role, role): schema for role, schema in inputs.schemas.items()},
    )
    measured = _measured(turned, roles, options)
    fits = [_fit(task, roles, turned, options, measured) for task in tables.task_names()]
    fitting = _left([fit for fit in fits if fit.here and fit.whole], roles, set())
    if len(fitting) != 1:
        return ""
    return (
        f"the predictions have {listing(list(inputs.schemas[PREDICTIONS]))}, the ground truths"
        f" {listing(list(inputs.schemas[GROUND_TRUTHS]))}, which is {fitting[0].task} the other way"
        " round: are the two tables swapped? The predictions come first."
    )


def _ready_values(inputs: Inputs, options: Options) -> str:
    """Return the task of a table of datums with columns of numbers, which are reported as they are;
    or "".
    """
    schema = inputs.schemas.get(TABLE, {})
    for table in (one for one in tables.TABLES if one.unpivoted and one.side == TABLE):
        datum = next(column for column in table.columns if column.name == table.datum)
        canonical = {column.name for column in table.columns}
        columns = contract(table.task, TABLE, options, schema).required
        rest = [column.name for column in columns if column.name not in canonical]
        if rest and has_column(datum, options, schema):
            return (
                f" If {listing(rest)} {'is a result' if len(rest) == 1 else 'are results'} per row,"
                f" such as verdicts or scores of a judge, write {option('task', table.task)} for"
                " the means."
            )
    return ""


def _none(inputs: Inputs, roles: list[str], options: Options) -> str:
    """Return the message if no task fits: a missing table, swapped ones, or requirements."""
    if way := _swapped(inputs, roles, options):
        return way
    left: list[_Fit] = []
    if roles == [TABLE]:
        moved = Inputs({PREDICTIONS: inputs.sources[TABLE]}, {PREDICTIONS: inputs.schemas[TABLE]})
        fits = [_fit(task, [PREDICTIONS], moved, options, {}) for task in tables.task_names()]
        half = [fit for fit in fits if fit.here]
        left = [fit for fit in half if not any(_gives_way(fit, other) for other in half)]
        if left:  # an id alone fits any task
            _, known, free = _gaps(left[0].task, [PREDICTIONS], moved, options)
            left = left if known > 1 or not free[PREDICTIONS] else []
        if len(left) == 1 and TABLE not in tables.contracts(left[0].task):
            raise needs_two(left[0].task)
    if not any(inputs.schemas[role] for role in roles):
        what = "the table has" if roles == [TABLE] else "both tables have"
        return (
            f"task: it cannot be inferred from the columns: {what} neither columns nor rows. "
            f"Check the input, or choose one of {listing(tables.task_names())}: write "
            f"{option('task')}."
        )
    columns = "; ".join(
        f"{role.replace('_', ' ')}: {', '.join(inputs.schemas[role]) or 'none'}" for role in roles
    )
    if len(left) == 1:
        more = _gaps(left[0].task, roles, inputs, options)[0]
        raise TruthsMissingError(
            f"task: the table has only the columns of {left[0].task} predictions: give the "
            f"ground truths as a second table, or add {_named(more, roles)} to it. Columns there: "
            f"{columns}. To name columns, write"
            f" {option('columns')}.{_ready_values(inputs, options)}",
            code="truths_missing",
            task=left[0].task,
        )
    second = " A table with only predictions needs the ground truths as a second one."
    return (
        f"task: it cannot be inferred from the columns. Columns there: {columns}."
        f"{_nearest(roles, inputs, options)}{second if roles == [TABLE] else ''}"
        f"{_ready_values(inputs, options)}"
    )


_Gaps = list[tuple[str, tuple[Column, ...]]]
"""Required columns that a table does not have: its role, and columns that go together."""


def _gaps(
    task: str, roles: list[str], inputs: Inputs, options: Options
) -> tuple[_Gaps, int, dict[str, list[str]]]:
    """Return required columns that are missing, the number of known ones, and the unknown ones."""
    gaps: _Gaps = []
    recognised, free = 0, {}
    for role in roles:
        table = tables.contracts(task)[role]
        find, shape = _finder(table, inputs, role, options, {}), SHAPES[table.shape]
        gaps += [(role, (column,)) for column in _missing(table, find, options)]
        if shape.present is not None and not shape.present(find):
            gaps.append((role, tuple(c for c in table.required if c.name in shape.columns)))
        named = {folded(n) for c in table.columns for n in (c.name, *c.aliases)}
        free[role] = [name for name in find.schema if folded(name) not in named]
        recognised += len(find.schema) - len(free[role])
    return gaps, recognised, free


def _partly(task: str, role: str, inputs: Inputs, options: Options) -> bool:
    """Return whether a table has several columns of a task's shape, but not all that it takes."""
    table = tables.contracts(task)[role]
    find, shape = _finder(table, inputs, role, options, {}), SHAPES[table.shape]
    several = sum(_has(find, one) for one in table.columns if one.name in shape.columns) > 1
    return several and shape.present is not None and not shape.present(find)


def _all_but_one(inputs: Inputs, roles: list[str], options: Options) -> str:
    """Return a task with all of its signs but one, such as tracks without a sequence; or ""."""
    for task in tables.task_names():
        present = [tables.contracts(task).get(role) for role in roles]
        if all(table is not None and table.all_signs for table in present):
            gaps = _gaps(task, roles, inputs, options)[0]
            if len(gaps) == len(roles) and len({columns for _, columns in gaps}) == 1:
                return task
    return ""


def _named(gaps: _Gaps, roles: list[str]) -> str:
    """List missing columns: ``'target' (y_true, ...)``, with their side if there are two."""
    return "; ".join(
        f"{' and '.join(repr(column.name) for column in columns)}"
        f" ({', '.join([*columns[0].aliases[:3], '...'])})"
        f"{'' if roles == [TABLE] else ' of the ' + role.replace('_', ' ')}"
        for role, columns in gaps
    )


def headless(roles: Iterable[str], inputs: Inputs) -> str:
    """Return that the first line of a CSV looks like data; or ""."""
    for role in roles:
        names = inputs.sources[role].frame.collect_schema().names()
        if inputs.sources[role].format != "csv" or not names:
            continue
        fields = names[0].split() if len(names) == 1 else names
        if any(map(like_data, fields)):
            lines = (
                " Lines separated by blanks are read if each has the 4 fields of qrels (query 0"
                " document relevance) or the 6 of a run (query Q0 document rank score name)."
                if len(fields) > len(names)
                else ""
            )
            return (
                f" Line 1 of the {role.replace('_', ' ')} looks like data"
                f" ({' '.join(fields[:4])!r}): the first line of a CSV is read as the names of its"
                f" columns. Add one with names.{lines}"
            )
    return ""


def like_data(name: str) -> bool:
    """Return whether the name of a column is a number."""
    return re.fullmatch(r"[-+]?\d+(\.\d+)?", name) is not None


def _may_measure(
    task: str, gaps: _Gaps, n_columns: int, free: dict[str, list[str]], inputs: Inputs
) -> bool:
    """Return whether a task is of measured numbers, and unknown columns are floats for all gaps."""
    if not all(tables.contracts(task)[role].measured for role in free):
        return False
    floats = [
        name
        for role, names in free.items()
        for name in names
        if inputs.schemas[role][name].is_float()
    ]
    return len(floats) > len(gaps) > 1


def _nearest(roles: list[str], inputs: Inputs, options: Options) -> str:
    """Return the columns that the nearest task misses; without known columns, the tasks."""
    able = [task for task in tables.task_names() if {*roles} <= tables.contracts(task).keys()]
    every = {task: _gaps(task, roles, inputs, options) for task in able}
    task = min(
        every,
        key=lambda one: (
            len(every[one][0]) - every[one][1],
            len(every[one][0]),
            not _may_measure(one, *every[one], inputs),
        ),
    )
    gaps, recognised, free = every[task]
    without_header = headless(
        [role for role in roles if len(free[role]) == len(inputs.schemas[role])], inputs
    )
    if not recognised or not gaps or without_header:
        way = f" To see the columns that a task needs, write {option('task')} ({', '.join(able)})."
        return without_header + way
    mapping = {}
    for role, columns in gaps:
        if len(columns) == 1 and [one for one, _ in gaps].count(role) == 1 == len(free[role]):
            mapping[free[role][0]] = columns[0].name
    way = option("columns", mapping or {"mine": gaps[0][1][0].name})
    several = ""
    table = tables.contracts(task).get(TABLE) if roles == [TABLE] else None
    answers = [] if table is None else [*table.any_of, *(answer for answer, _ in table.values)]
    if len(gaps) == 1 and gaps[0][1][0].name in answers and len(free[TABLE]) > 1:
        models = option("predictions", free[TABLE][:4])
        several = (
            f" If several columns are it, one per model, use `evalengine compare` with {models}."
        )
    role = gaps[0][0]
    floats = [one for one in free[role] if inputs.schemas[role][one].is_float()]
    if tables.contracts(task)[role].wide and len(floats) > 1:
        several += (
            f" If each label has a column of scores, write {option('score_columns', floats)}."
        )
    return (
        f" The nearest task is {task}; it needs {_named(gaps, roles)}. To name columns, write"
        f" {way}; for another task, {option('task')}.{several}"
    )
