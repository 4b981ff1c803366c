"""Columns found by name, and contracts of tables."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any

import msgspec
import polars as pl

from .. import metrics
from ..schemas import tables
from ..schemas.contract import TABLE, Column, Table
from ..schemas.errors import N_EXAMPLES, InputError, OptionError, TruthsMissingError, did_you_mean
from ..schemas.options import Options
from ..schemas.wording import option
from . import dtypes
from .files import Source
from .ids import common_start
from .problems import ChecksFailed, Note, Problem, count_of, listing

# Columns with a level in their name, such as ``q0.1``, ``p90`` and ``lo-80``.


def with_numbered(
    table: Table, options: Options, schema: Mapping[str, Any], *, needed: bool
) -> Table:
    """Replace the contract's numbered column by one column per level, ascending.

    Args:
        needed: whether ambiguous names are refused if there are no other candidates.
    """
    optional: list[Column] = []
    named: dict[str, tuple[str, ...]] = {name: (name,) for name in table.any_of}
    for column in table.optional:
        levels = _levels(column, options, schema, needed=needed) if column.numbered else [column]
        named[column.name] = tuple(one.name for one in levels) or (column.name,)
        optional += levels
    return msgspec.structs.replace(
        table,
        optional=tuple(optional),
        any_of=tuple(level for name in table.any_of for level in named[name]),
    )


def numbered_columns(column: Column, names: Iterable[str]) -> list[str]:
    """Return the names that are such a column."""
    if not column.numbered:
        return []
    return [name for name in names if re.fullmatch(column.numbered, name.casefold())]


def levels_in(column: Column, names: Iterable[str]) -> list[str]:
    """Return the names that are such a column; if there are none, the ambiguous ones."""
    here = list(names)
    return numbered_columns(column, here) or [
        name for name in here if column.unclear and re.fullmatch(column.unclear, name.casefold())
    ]


def _levels(
    column: Column, options: Options, schema: Mapping[str, Any], *, needed: bool
) -> list[Column]:
    renames = options.columns or {}
    levels: dict[float, list[str]] = {}
    for name in schema:
        match = re.fullmatch(column.numbered, renames.get(name, name).casefold())
        if match is not None:
            levels.setdefault(_level(next(filter(None, match.groups())), name), []).append(name)
    used = {*renames, *(name for names in levels.values() for name in names)}
    unclear = [
        name
        for name in schema
        if column.unclear and name not in used and re.fullmatch(column.unclear, name.casefold())
    ]
    if unclear and (levels or needed):
        first = unclear[0]
        digit = int(first[-1])
        ways = " or ".join(
            option("columns", {first: f"{column.name}{level!r}"})
            for level in (digit / 100, digit / 10)
        )
        clear = [name for names in levels.values() for name in names]
        neighbours = f" next to {listing(clear)}" if clear else ""
        raise InputError(
            f"{listing(unclear)} may be columns of {column.name}{neighbours}, in percent or in "
            f"tenths. To give each level, write {ways}; or remove them from the table.",
            code="ambiguous_column",
            columns=unclear,
        )
    return [
        msgspec.structs.replace(
            column,
            name=f"{column.name}{level!r}",
            aliases=(_chosen(column, level, levels[level], renames, schema),),
            numbered="",
            below=f"{column.below}{level!r}" if column.below else "",
        )
        for level in sorted(levels)
    ]


def _level(text: str, column: str) -> float:
    """Parse a level in (0, 1); values of 1 or more are percent."""
    number = Decimal(text)
    level = float(number if number < 1 else number / 100)
    if not 0 < level < 1:
        raise InputError(
            f"column {column!r}: levels are between 0 and 1, both excluded.",
            code="wrong_name",
            column=column,
        )
    return level


def _chosen(
    column: Column,
    level: float,
    names: list[str],
    renames: Mapping[str, str],
    schema: Mapping[str, pl.DataType],
) -> str:
    """The one column of a level: that of ``columns``, or of the model whose column it names."""
    for fits in (lambda own: own in renames, lambda own: own.startswith(tuple(renames))):
        chosen = [name for name in names if fits(name)]
        if len(chosen) == 1:
            return chosen[0]
    if len(names) == 1:
        return names[0]
    begun = [
        [one for one in schema if name.startswith(tuple(one + sign for sign in "-_. "))]
        for name in names
    ]
    models = [max(some, key=len) for some in begun if some]
    if len({*models}) == len(names):  # other choices leave the other levels of a model
        way = (
            f"They are of several models. To score one, write"
            f" {option('columns', {models[0]: 'prediction'})}; to compare them, use"
            f" `evalengine compare` with {option('predictions', models)}."
        )
    else:
        ways = (option("columns", {name: f"{column.name}{level!r}"}) for name in names[:2])
        way = f"Remove all but one, or choose: write {' or '.join(ways)}."
    raise InputError(
        f"columns {listing(names)} are all of {column.name}{level!r}. {way}",
        code="column_twice",
        column=column.name,
        columns=names,
    )


# Tables of a run with their columns.


class Naming(msgspec.Struct):
    """Mapping of one table's columns to the contract's.

    Attributes:
        exprs: canonical name to an expression of canonical dtype.
        recognised: name in the input to canonical names, if they differ.
        wide: contracts of score columns, if each label has one.
        constant: series that never change in training: the key of a row, and their names by key.
    """

    exprs: dict[str, pl.Expr] = msgspec.field(default_factory=dict)
    recognised: dict[str, str] = msgspec.field(default_factory=dict)
    problems: list[Problem] = msgspec.field(default_factory=list)
    notes: list[Note] = msgspec.field(default_factory=list)
    wide: tuple[Column, ...] = ()
    labels: tuple[Any, ...] = ()
    constant: tuple[pl.Expr, dict[Any, str]] | None = None

    @property
    def used(self) -> set[str]:
        """Own names of the columns that are read."""
        return {name for expr in self.exprs.values() for name in expr.meta.root_names()}


class Side(msgspec.Struct):
    """One table between source and frame."""

    source: Source
    table: Table
    schema: dict[str, pl.DataType]
    naming: Naming = msgspec.field(default_factory=Naming)

    def has(self, names: Iterable[str]) -> bool:
        """Return whether all names are columns of the input, or canonical ones."""
        return all(name in self.schema or name in self.naming.exprs for name in names)


# Lookup of canonical columns among a table's columns: exact name, user's name, aliases.


class Finder:
    """Columns of one table, and those already claimed.

    Args:
        columns: the user's mapping, name in the input to canonical name.
        names: canonical names of the table; by default any.
        slices: slice columns, which are read as another column only if no other candidate is there.
    """

    def __init__(
        self,
        schema: Mapping[str, pl.DataType],
        side: str,
        columns: Mapping[str, str] | None = None,
        names: Container[str] | None = None,
        slices: Container[str] = (),
    ) -> None:
        self.schema = schema
        self.slices = slices
        self._folded = [*zip(map(dtypes.folded, schema), schema, strict=True)]
        self.side = side
        self.mapped: dict[str, str] = {}
        self.used: set[str] = set()
        self.problems: list[Problem] = []
        for original, target in (columns or {}).items():
            if original not in schema or (names is not None and target not in names):
                continue
            if target in self.mapped:
                self.refuse(
                    target,
                    f"{option('columns')} names both {self.mapped[target]!r} and {original!r} for"
                    f" {target!r}; keep one of them.",
                    "column_twice",
                    columns=[self.mapped[target], original],
                )
            else:
                self.mapped[target] = original
                self.used.add(original)

    def exact(self, name: str) -> str | None:
        """Return the column that the user mapped to a canonical name, or that of the name."""
        if name in self.mapped:
            return self.mapped[name]
        if name in self.schema and name not in self.used:
            self.used.add(name)
            return name
        return None

    def candidates(self, names: Iterable[str]) -> list[str]:
        """Unclaimed columns that bear one of these names, whatever their case."""
        folded = {*map(dtypes.folded, names)}
        return [
            column for name, column in self._folded if name in folded and column not in self.used
        ]

    def by_alias(self, column: Column) -> str | None:
        """The one unclaimed column that bears an alias; two are a problem, not a guess."""
        matches = self.candidates((column.name, *column.aliases))
        if len(matches) > 1:
            matches = [name for name in matches if name not in self.slices] or matches
        if column.weak and self.side == TABLE and self.candidates(column.kin):
            matches = [name for name in matches if dtypes.folded(name) not in column.weak]
        if column.spare:
            sure = [name for name in matches if dtypes.folded(name) not in column.spare]
            fit = [
                name for name in matches if isinstance(self.schema[name], (pl.String, pl.Struct))
            ]
            matches = sure or (fit if len(fit) == 1 else [])
        return self.one_of(matches, column)

    def one_of(self, candidates: list[str], column: Column) -> str | None:
        """Claim the candidates for a column; several are a problem."""
        if len(candidates) > 1:
            ways = " or ".join(option("columns", {name: column.name}) for name in candidates)
            names = ", ".join(repr(name) for name in candidates[:-1]) + f" and {candidates[-1]!r}"
            self.refuse(
                column.name,
                f"columns {names} could each be {column.name!r}. To choose, write {ways}.",
                "ambiguous_column",
                columns=candidates,
            )
        self.used.update(candidates)
        return candidates[0] if candidates else None

    def find(self, column: Column) -> str | None:
        """Return a column by the user's mapping, exact name, then alias."""
        return self.exact(column.name) or self.by_alias(column)

    def refuse(self, column: str, message: str, kind: str, /, **facts: Any) -> None:
        """Record a problem of a column."""
        self.problems.append(Problem(self.side, column, message, kind=kind, facts=facts))

    def refuse_dtype(self, column: Column, name: str) -> None:
        """Record that a column has another dtype than its contract."""
        self.refuse(column.name, dtypes.wrong_type(column, name, self.schema[name]), "wrong_dtype")

    def missing(self, column: Column) -> None:
        """Record that a required column is not there, with the nearest ones that are."""
        message = f"column {column.name!r} is missing. {self.offer(column)}{column.otherwise}"
        self.refuse(column.name, message, "column_missing")

    def offer(self, column: Column) -> str:
        """Return a hint on candidates for a missing column, and on how to map one."""
        for target, mine in self.mapped.items():
            if mine == column.name:
                return f"{option('columns', {mine: target})} reads that column as {target!r}."
        free = [name for name in self.schema if name not in self.used]
        similar = nearest((column.name, *column.aliases), free)
        similar = similar or [name for name in free if dtypes.folded(name) in column.kin]
        available = ", ".join(self.schema) or "none"
        if len(available) > 400:
            available = available[:400] + ", ..."
        message = option("columns", {similar[0] if similar else "mine": column.name})
        hint = f"To use {similar[0]!r}" if similar else "If it has another name"
        return f"Columns there: {available}. {hint}, write {message}.{_spans(self.schema)}"


def _spans(schema: Mapping[str, pl.DataType]) -> str:
    """Return the way to score columns such as ``start_frame`` and ``end_frame`` as spans; or ""."""
    stops: dict[str, str] = {}
    for end, pattern in tables.BOUND_PATTERNS.items():
        matches = [
            name
            for name, dtype in schema.items()
            if dtype.is_numeric() and "_" in name and re.fullmatch(pattern, name)
        ]
        if len(matches) != 1:
            return ""
        stops[matches[0]] = end
    task = tables.SPANS_PREDICTIONS.task
    return f" If rows are {task}, write {option('task', task)} and {option('columns', stops)}."


def nearest(words: Iterable[str], names: Iterable[str]) -> list[str]:
    """Names that resemble one of the words, best first, whatever their case."""
    folded = {name.casefold(): name for name in names}
    scored: dict[str, float] = {}
    for word in words:
        for match in difflib.get_close_matches(word.casefold(), folded, n=2, cutoff=0.7):
            ratio = difflib.SequenceMatcher(None, word.casefold(), match).ratio()
            scored[folded[match]] = max(ratio, scored.get(folded[match], 0.0))
    return sorted(scored, key=lambda name: -scored[name])


def find_related(
    schema: Mapping[str, pl.DataType], table: Table, renames: Mapping[str, str]
) -> dict[str, str]:
    """Find columns identified by related names of other columns.

    A model's forecast column is identified by its levels: ``AutoETS`` if there is
    ``AutoETS-lo-80``.

    Args:
        renames: the user's mapping, name in the input to canonical name.
    """
    if not renames and schema.keys() >= {*map(itemgetter(0), table.kin_pairs)}:
        return {}
    columns = {column.name: column for column in table.columns}
    levels = {name for one in table.columns for name in numbered_columns(one, schema)}
    all_names = {name for one in table.columns for name in (one.name, *one.aliases)}
    models = {
        mine
        for mine in {*schema} - levels
        if dtypes.folded(mine) not in all_names
        and any(one.startswith(tuple(mine + sign for sign in "-_. ")) for one in levels)
    }
    here = {mine: to for mine, to in renames.items() if mine in schema}
    result = {}
    for name, other in table.kin_pairs:
        find = Finder(schema, table.side, here)
        present, required = (
            find.exact(one)
            or find.candidates((one, *columns[one].aliases))
            or numbered_columns(columns[one], [*schema, *here.values()])
            for one in (other, name)
        )
        similar = [
            mine
            for mine in schema
            if mine in models or (dtypes.folded(mine) in columns[name].kin and mine not in levels)
        ]
        if present and not required and len(similar) == 1 and similar[0] not in here:
            result[similar[0]] = name
    return result


def turned(columns: Mapping[str, str] | None, here: Iterable[str], tables: Iterable[Table]) -> str:
    """Return a message if ``columns=`` is reversed, with the correction; otherwise ""."""
    of_alias = {
        name: column.name
        for table in tables
        for column in table.columns
        for name in (*column.aliases, column.name)
    }
    canonical = {*of_alias.values()}
    wrong = {
        mine: to
        for mine, to in (columns or {}).items()
        if to in {*here} and to not in canonical and mine in of_alias
    }
    if not wrong:
        return ""
    right = {to: of_alias[mine] for mine, to in wrong.items()}
    return (
        f"{option('columns', wrong)} has its names the wrong way round: the table's own name"
        f" comes first. Write {option('columns', right)}."
    )


# Contract of one table of a run: the task's, modified by the options.

TEXTS = ("text", "texts", "text_list")
"""Kinds of columns whose nulls the option ``nulls`` may read as empty texts."""
SKIPPED = (*TEXTS, "vector", "vectors")
"""Kinds of columns whose nulls the option ``nulls`` may skip."""


def contract(task: str, role: str, options: Options, schema: Mapping[str, Any]) -> Table:
    """Return the contract of one table.

    Args:
        options: ``multilabel`` widens a key; ``nulls`` may allow null texts; ``score_columns``
            replace labels and scores; ``metrics`` may make columns unnecessary.
    """
    contracts = tables.contracts(task)
    if role not in contracts and task in tables.task_names():
        if role == TABLE:
            raise needs_two(task)
        if TABLE in contracts:
            raise InputError(
                f"{task} takes one table: remove the second one.", code="one_table_only", task=task
            )
    table = tables.table_for(task, role)
    if table.of_calls:
        table = with_calls(table, schema)
    if table.kin_pairs:
        table = _with_kin(table, options, schema)
    optional = table.optional
    table = _needed(table, task, options, schema)
    if table.stand_ins:
        table = _with_stand_ins(table, options, schema)
    if any(map(attrgetter("numbered"), table.optional)):
        answers = (one for one in optional if one.name in table.any_of)
        needed = options.metrics is not None or not any(
            has_column(one, options, schema) for one in answers
        )
        table = with_numbered(table, options, schema, needed=needed)
    if options.multilabel:
        table = msgspec.structs.replace(
            table,
            key=table.multilabel_key or table.key,
            shape=table.multilabel_shape or table.shape,
        )
    if options.nulls == "skip":
        table = msgspec.structs.replace(
            table,
            required=tuple(map(_may_lack, table.required)),
            optional=tuple(map(_may_lack, table.optional)),
        )
    if options.score_columns is not None and table.wide:
        table = msgspec.structs.replace(
            table,
            required=tuple(c for c in table.required if c.name not in table.wide),
            optional=tuple(c for c in table.optional if c.name not in table.wide),
            key=tuple(name for name in table.key if name not in table.wide),
            any_of=(),
        )
    return _with_value_columns(table, options, schema) if table.unpivoted else table


def _with_value_columns(table: Table, options: Options, schema: Mapping[str, Any]) -> Table:
    """Replace metric and value by one column per metric, if rows have these.

    By default all columns of numbers and booleans are metrics, except ids, weights and slices.
    """
    instead = [column for column in table.required if column.name in table.unpivoted]
    requested = options.metrics or ()
    for other in table.of_metrics if requested and not {*requested} & {*schema} else ():
        if all(re.fullmatch(other.names, name) for name in requested):
            datum = next(column for column in table.columns if column.name == table.datum)
            return msgspec.structs.replace(
                table,
                required=(*other.required, datum),
                optional=tuple(one for one in table.optional if one.name in other.optional),
                key=(),
                unread=(*table.unread, *other.unread),
            )
    if options.value_columns is None and any(has_column(one, options, schema) for one in instead):
        return table
    others = [column for column in table.columns if column not in instead]
    if options.value_columns is None:
        other_names = {dtypes.folded(name) for one in others for name in (one.name, *one.aliases)}
        other_names.update(
            (options.columns or {}), *(entry.split("*") for entry in options.columns_of_datums)
        )
        names = tuple(
            name
            for name, dtype in schema.items()
            if (dtype.is_numeric() or dtype == pl.Boolean)
            and not {name, dtypes.folded(name)} & other_names
            and not re.search(r"(?i)(^|_)(id|index)$|^(unnamed: 0)?$", name)
        )
        if not names:
            return table
    else:
        names = tuple(dict.fromkeys(options.value_columns))
        conflicts = [name for name in names if name in {one.name for one in others}]
        if conflicts:
            raise InputError(
                f"{option('value_columns', conflicts)}: the name of a column with another meaning."
                " Rename it.",
                code="reserved_name",
                column=conflicts[0],
            )
    datum = next(one for one in others if one.name == table.datum)
    repeated = any(
        has_column(one, options, schema) for one in others if one.name in table.key and one != datum
    )
    return msgspec.structs.replace(
        table,
        required=tuple(
            Column(name, "value", f"Values of {name!r}.", nullable=True) for name in names
        ),
        optional=tuple(others),
        key=tuple(name for name in table.key if name not in table.unpivoted),
        long=repeated and has_column(datum, options, schema),
    )


def with_calls(table: Table, schema: Mapping[str, Any]) -> Table:
    """Return the contract with further names of columns, if they contain tool calls."""
    tool_columns = {*map(dtypes.folded, dtypes.calls_in(schema))}

    def add_tool_alias(column: Column) -> Column:
        more = tool_columns.intersection(table.of_calls.get(column.name, ()))
        return msgspec.structs.replace(column, aliases=(*column.aliases, *sorted(more)))

    return msgspec.structs.replace(table, required=tuple(map(add_tool_alias, table.required)))


def _with_kin(table: Table, options: Options, schema: Mapping[str, Any]) -> Table:
    """The contract in which columns that are called by kin of their names are known by these."""
    related = find_related(schema, table, options.columns or {})
    if not related:
        return table
    kin = {name: mine for mine, name in related.items()}

    def add_kin_alias(column: Column) -> Column:
        more = (kin[column.name],) if column.name in kin else ()
        return msgspec.structs.replace(column, aliases=(*column.aliases, *more))

    return msgspec.structs.replace(
        table,
        required=tuple(map(add_kin_alias, table.required)),
        optional=tuple(map(add_kin_alias, table.optional)),
    )


def spared(table: Table, options: Options) -> frozenset[str]:
    """Return required columns of one table that no metric requested by name reads.

    Args:
        options: ``metrics`` and options that their groups depend on; unknown names read everything.
    """
    if table.side != TABLE or not options.metrics or not metrics.of_any(table.task, "spares"):
        return frozenset()
    if not all(map(partial(metrics.has, table.task), options.metrics)):
        return frozenset()
    every = [frozenset(metric.spares) for metric in _requested(table.task, options)]
    return frozenset.intersection(*every)


def _requested(task: str, options: Options) -> list[metrics.Metric]:
    """Metrics that the options name; unknown names are skipped."""
    result: list[metrics.Metric] = []
    for name in options.metrics or ():
        if metrics.has(task, name):
            group = metrics.group_of(task, name)
            members = (name,) if group is None else group(options)
            result += map(
                partial(metrics.metric_of, task), filter(partial(metrics.has, task), members)
            )
    return result


def _needed(table: Table, task: str, options: Options, schema: Mapping[str, Any]) -> Table:
    """Remove columns that no requested metric and no slice reads.

    Without ``metrics``, columns that count only on request are kept if they are the only ones that
    satisfy an "any of" requirement. Columns that ``columns`` names are always kept.
    """
    required, metrics_given = table.required, options.metrics is not None
    if left_out := spared(table, options):
        required = tuple(one for one in required if one.name not in left_out)
    read: set[str] = set()
    for metric in _requested(task, options):
        read.update(metric.reads)
    sliced: set[str] = set()
    for entry in options.columns_of_datums:
        sliced.update(entry.split("*"))
    on_request = metrics_given
    if not metrics_given and any(map(attrgetter("named"), table.optional)):
        usual = [one for one in table.optional if one.name in table.any_of and not one.named]
        # Whether an "any of" requirement needs no column that counts only on request.
        on_request = not usual or any(has_column(one, options, schema) for one in usual)
    by_hand = {*(options.columns or {}).values()}
    some_read = metrics.of_any(task, "reads")
    optional = []
    for one in table.optional:
        if one.sliced:
            needed = one.name in sliced or one.name in read
        elif metrics_given:
            needed = one.name in read or one.name not in some_read
        else:
            needed = not (one.named and on_request)
        if needed or one.name in by_hand or (by_hand and numbered_columns(one, by_hand)):
            optional.append(one)
    return msgspec.structs.replace(table, required=required, optional=tuple(optional))


def _with_stand_ins(table: Table, options: Options, schema: Mapping[str, Any]) -> Table:
    """Require substitute columns instead of the originals, if only the substitutes are present."""
    columns = {column.name: column for column in table.columns}
    for first, second in table.stand_ins:
        if not {first, second} <= columns.keys() or not stands_in(
            table, (first, second), options, schema
        ):
            continue
        required = [columns[second if one.name == first else one.name] for one in table.required]
        optional = [one for one in table.optional if one.name != second]
        table = msgspec.structs.replace(table, required=tuple(required), optional=tuple(optional))
    return table


def stands_in(
    table: Table, pair: tuple[str, str], options: Options, schema: Mapping[str, Any]
) -> bool:
    """Return whether a table has the second column of a pair and not the first."""
    columns = {column.name: column for column in table.columns}
    first, second = (has_column(columns[name], options, schema) for name in pair)
    return second and not first


def has_column(column: Column, options: Options, schema: Mapping[str, Any]) -> bool:
    """Return whether a table has a column under any of its names."""
    renames = options.columns or {}
    targets = {*map(renames.__getitem__, renames.keys() & schema.keys())}
    here = {*map(dtypes.folded, schema.keys() - renames.keys())}
    return (
        column.name in targets
        or not here.isdisjoint(map(dtypes.folded, (column.name, *column.aliases)))
        or bool(numbered_columns(column, [*here, *targets]))
    )


def _may_lack(column: Column) -> Column:
    skipped = column.kind in SKIPPED
    return msgspec.structs.replace(column, nullable=True) if skipped else column


def needs_two(task: str) -> TruthsMissingError:
    """Return the error for one table if two are required."""
    return TruthsMissingError(
        f"{task} needs two tables: give the ground truths as the second one, after the"
        " predictions.",
        code="truths_missing",
        task=task,
    )


# ``score_columns``: a column of scores per label, by names or by labels mapped to names.

PREFIX = "score:"
"""Prefix of canonical names of score columns; the label follows."""

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


def find_wide(find: Finder, score_columns: Any) -> dict[str, tuple[Column, str, Any]]:
    """Find the score columns of a table; missing ones are added to the finder's problems.

    Args:
        score_columns: the option, names or a mapping of labels to names.

    Returns:
        Preliminary canonical name to contract, column and label; the label is the column name if
        only names were given.
    """
    pairs = (
        list(score_columns.items())
        if isinstance(score_columns, Mapping)
        else _expanded(find, score_columns)
    )
    owners = [name for _, name in pairs]
    for name in dict.fromkeys(owners):
        if name not in find.schema:
            find.refuse(
                "score_columns",
                f"score_columns: there is no column {name!r}.{did_you_mean(name, find.schema)}"
                f" Columns there: {', '.join(find.schema) or 'none'}.",
                "column_missing",
                column=name,
            )
        elif owners.count(name) > 1:
            find.refuse(
                "score_columns",
                f"score_columns: column {name!r} appears there more than once; each has the "
                "scores of one label.",
                "column_twice",
                column=name,
            )
    find.used.update(owners)
    wide = {}
    for label, name in pairs:
        if name in find.schema:
            canonical = f"{PREFIX}{label}"
            column = Column(canonical, "number", f"Score of {label!r}.", single=True)
            wide[canonical] = column, name, label
    return wide


def _expanded(find: Finder, patterns: Sequence[str]) -> list[tuple[str, str]]:
    """Names with patterns replaced by the columns they fit, in the table's order."""
    names: list[str] = []
    for name in patterns:
        if name in find.schema or "*" not in name:
            names.append(name)
            continue
        fitting = [column for column in find.schema if fnmatch.fnmatchcase(column, name)]
        names += [column for column in fitting if column not in names] or [name]
    return [(name, name) for name in names]


def label_series(
    names: Sequence[Any], dtype: pl.DataType | None, true_labels: pl.Series
) -> pl.Series:
    """Return the labels of score columns in the dtype of the true labels."""
    texts = [label for label in names if isinstance(label, str)]
    if texts and len(texts) < len(names):
        raise OptionError(
            f"score_columns: labels are partly strings, partly numbers ({listing(names)}). Write"
            " all in the type the tables have.",
            code="types_mixed",
            option="score_columns",
        )
    if not texts:
        as_integers = not all(isinstance(label, bool) for label in names)
        labels = pl.Series("label_value", [int(x) if as_integers else x for x in names])
    elif dtype is None or dtype == pl.String:
        true_texts = set(true_labels.cast(pl.String).to_list()) if len(true_labels) else set()
        short = _stripped(texts)
        labels = pl.Series(
            "label_value",
            (short if true_texts.isdisjoint(texts) and not true_texts.isdisjoint(short) else texts),
            dtype=pl.String,
        )
    else:
        labels = pl.Series("label_value", _parsed(texts, dtype, true_labels), dtype=dtype)
    if labels.n_unique() < len(labels):
        twice = labels.filter(labels.is_duplicated()).unique(maintain_order=True).to_list()
        raise InputError(
            f"score_columns: {count_of(len(twice), 'label')} with more than one column:"
            f" {listing(twice)}. Each label has one column of scores.",
            code="column_twice",
            option="score_columns",
            count=len(twice),
        )
    return labels


def check_scored(names: Sequence[Any], labels: pl.Series, true_labels: pl.Series) -> None:
    """Refuse score columns if a true label has none, as scikit-learn does."""
    if true_labels.dtype != labels.dtype:
        return
    unscored = true_labels.filter(~true_labels.is_in(labels.implode())).sort().to_list()
    if not unscored:
        return
    odd = [names[at] for at, label in enumerate(labels) if label not in true_labels]
    pairs = list(zip(map(str, unscored), [*map(str, odd), *["..."] * len(unscored)], strict=False))
    example = dict(pairs[:N_EXAMPLES]) | ({"...": "..."} if len(pairs) > N_EXAMPLES else {})
    are = f" ({listing(odd)} {'is' if len(odd) == 1 else 'are'} no true label)" if odd else ""
    message = (
        f"score_columns: {count_of(len(unscored), 'true label')} without a column of scores:"
        f" {listing(unscored)}{are}. Give each label a column, with all others:"
        f" {option('score_columns', example)}; or remove the rows of the label."
        + (_BINARY if len(labels) == 1 and len(true_labels) == 2 else "")
    )
    facts = {"labels": unscored, "columns": odd, "count": len(unscored), "of": len(true_labels)}
    problem = Problem(
        "", "score_columns", message, len(unscored), kind="labels_without_scores", facts=facts
    )
    raise ChecksFailed([problem], {})


_BINARY = (
    " Of two classes with one column of scores, give a single table with the columns 'actual' and"
    f" 'score', joined by id; {option('positive_label')} names the class of the scores, if not 1."
)


def _stripped(names: Sequence[str]) -> list[str]:
    """Strip the common prefix of names, up to its last ``_``, ``-``, ``.``, ``:`` or similar.

    A single name loses a prefix such as ``score_`` or ``prob_``.
    """
    if len(names) == 1:
        return [re.sub(r"^(scores?|prob(a|ability)?|p|pred|logit)[_\-.: /]", "", names[0])]
    cut = re.match(r".*[_\-.: /]", common_start(names))
    short = [name[cut.end() :] for name in names] if cut else list(names)
    return short if all(short) else list(names)


def _parsed(names: list[str], dtype: pl.DataType, true_labels: pl.Series) -> list[Any]:
    for candidate in (names, _stripped(names), [re.sub(r"^[^0-9+-]+", "", n) for n in names]):
        if dtype == pl.Boolean:
            if all(name.casefold() in _BOOLEANS for name in candidate):
                return [_BOOLEANS[name.casefold()] for name in candidate]
        elif all(_WHOLE.fullmatch(name) for name in candidate):
            return [int(name) for name in candidate]
    binary = len(names) == 1 and len(true_labels) == 2
    # One column is of the positive label.
    ordered = true_labels.sort(descending=binary).head(2).to_list()
    example = dict(zip(map(str, ordered), names, strict=False))
    raise InputError(
        f"score_columns: the true labels are {dtypes.kind_of(dtype)} "
        f"({listing(true_labels.head(3).to_list())}), which {listing(names, most=3)} cannot be. "
        f"Assign columns to labels: {option('score_columns', {**example, '...': '...'})}."
        + (_BINARY if binary else ""),
        code="types_differ",
        option="score_columns",
        example=example,
    )


def renamed(frame: pl.DataFrame, names: Sequence[str], labels: pl.Series) -> pl.DataFrame:
    """The table with its score columns named after their labels, all of one dtype."""
    if len({*frame.select(names).dtypes}) > 1:
        frame = frame.with_columns(pl.col(names).cast(pl.Float64))
    return frame.rename({n: f"{PREFIX}{label}" for n, label in zip(names, labels, strict=True)})
