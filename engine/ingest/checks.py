"""One pass over one side: a single query of aggregates; rows are looked up only if it fails."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from evalengine.schemas.arrays import Array
from evalengine.schemas.contract import ROW, TABLE, Column, Table
from evalengine.schemas.options import DECLARED
from evalengine.schemas.wording import option, sql_name

from ..schemas.errors import N_EXAMPLES
from .dtypes import or_measured
from .ids import ALL, Bucket, has_repeats, rows_repeat
from .problems import Note, Problem, Words
from .recognise import SKIPPED, TEXTS

if TYPE_CHECKING:
    from .shapes import Shape

_CONTEXT = (
    "datum_id",
    "query_id",
    "doc_id",
    "label_value",
    "actual",
    "predicted",
    "score",
    "series",
)
_LOOKED_AT = 1000  # labels inspected for repetitions
_MANY = 20  # of them at least
_BY_CHANCE = 1e-8  # chance up to which halves that agree are copies
_LATER = 100  # step of the checks after those of single values
LAST = 1000  # step of the last checks
_INT64_END = float(2**63)
REPAIR = "Repair or remove these rows."
_WHOLE = {
    "label": "Labels are integers, strings or booleans; numbers between them are scores, or"
    " thresholds are to be applied first.",
    "whole": "Frames, indexes, ids of pixels and counts are whole: round or repair them.",
}
"""Kinds of columns that require whole numbers -> remedy otherwise."""


def check_side(
    frame: pl.DataFrame,
    table: Table,
    shape: Shape,
    recognised: Mapping[str, str] | None = None,
    *,
    filtered: bool = False,
    bucket: Bucket = ALL,
) -> tuple[list[Problem], list[Note]]:
    """Check every value of one side against the contract."""
    check = Check(frame, table, shape, recognised or {}, filtered=filtered)
    check.bucket = bucket
    if frame.height:
        check.run()
    return check.problems, check.notes


class Check:
    """Check of one side, which the checks of shapes read from and report to.

    Attributes:
        sound: column to the rows in which its nulls are not yet reported.
        step: incremented with each check, to order problems.
    """

    def __init__(
        self,
        frame: pl.DataFrame,
        table: Table,
        shape: Shape,
        recognised: Mapping[str, str],
        *,
        filtered: bool,
    ) -> None:
        self.shape = shape
        self.sound: dict[str, pl.Expr] = {}
        self.counted = f"rows that {option('where')} keeps" if filtered else "rows"
        self.frame = frame
        self.schema = frame.schema
        self.side, self.selects = table.side, table.filtered
        self.task = table.task
        self.key, self._declared = table.key, table.columns
        self._required = table.required
        self.datum, self.unit = table.datum, table.unit[0]
        self.several = table.multilabel_key or None
        self.columns = [column for column in table.columns if column.name in self.schema]
        self.origins: dict[str, list[str]] = {}
        for mine, canonical in recognised.items():
            for name in canonical.split(", "):
                self.origins.setdefault(name, []).append(mine)
        self.problems: list[Problem] = []
        self.notes: list[Note] = []
        self.bucket = ALL
        self.step = 1

    def run(self) -> None:
        """Check everything."""
        seen = self._screen()
        if self.shape.first is not None:
            self.shape.first(self, seen)
        self.step += 1
        holes = [
            column.name
            for column in self.columns
            if not column.nullable and self.frame[column.name].null_count()
        ]
        if holes:
            self._nulls(holes)
        if not all(map(_clean, seen.values())):
            self.step += 1
            self._not_finite(seen)
            for rule in ("not_whole", "not_a_flag", "too_low", "too_high"):
                self.step += 1
                for column in self.columns:
                    if seen.get(f"{rule} {column.name}"):
                        self.refuse_value(rule, column, self._wrong(column)[rule])
        self.step = _LATER
        if self.shape.last is not None:
            self.shape.last(self, seen)
        self._repeated()
        self._hardly_repeated()

    def _screen(self) -> dict[str, Any]:
        """Run one query of cheap aggregates that reveal anything wrong.

        A sum is NaN or infinite if any value is (a finite column may overflow; the check of rows
        then finds no problem).
        """
        aggregates: list[pl.Expr] = []
        for column in self.columns:
            name = column.name
            if self.schema[name].is_float():
                aggregates.append(pl.col(name).sum().alias(f"sum {name}"))
            for rule, wrong in self._wrong(column).items():
                aggregates.append(wrong.any().alias(f"{rule} {name}"))
        if self.shape.screen is not None:
            aggregates += self.shape.screen(self.frame)
        return self.frame.select(aggregates).row(0, named=True) if aggregates else {}

    def _wrong(self, column: Column) -> dict[str, pl.Expr]:
        """Return the rules of a column's values: code -> the wrong ones."""
        values, dtype = pl.col(column.name), self.schema[column.name]
        rules: dict[str, pl.Expr] = {}
        if column.kind in _WHOLE and dtype.is_float():
            rules["not_whole"] = not_whole(values) & values.is_finite()
        if column.kind == "flag" and dtype != pl.Boolean:
            rules["not_a_flag"] = (values != 0) & (values != 1)
        if column.low is not None:
            rules["too_low"] = values < column.low
        if (high := column.high) is not None:  # or too small without being 0
            wide = (values > high) | ((values > 0) & (values < 1 / high))
            rules["too_high"] = wide & values.is_finite()
        return rules

    def _nulls(self, holes: list[str]) -> None:
        for names in self._grouped(holes):
            where = pl.any_horizontal(pl.col(name).is_null() for name in names)
            if names[0] in self.sound:
                where &= self.sound[names[0]]
            if meaning := next((c.null_meaning for c in self.columns if c.name == names[0]), ""):
                way = "Add them, or remove these columns."
                self.refuse("null_values", names, where, f"of {meaning}", way)
                continue
            how = f", e.g. with {option('where', f'{sql_name(self.own(names[0]))} IS NOT NULL')}"
            way = f"Fill or remove these rows{how if self.selects else ''}{self._skip(names)}."
            self.refuse("null_values", names, where, "", way, unit=("null", "nulls"))

    def _skip(self, names: list[str]) -> str:
        """Return the remedy by the option ``nulls`` for nulls in these columns; otherwise ""."""
        kinds = {column.kind for column in self.columns if column.name in names}
        if self.task not in DECLARED["nulls"].tasks or not kinds <= set(SKIPPED):
            return ""
        skip = f", or write {option('nulls', 'skip')} to skip their datums"
        if not kinds <= set(TEXTS):
            return skip
        return f"{skip}, or {option('nulls', 'empty')} if they are empty texts"

    def _not_finite(self, aggregates: Mapping[str, Any]) -> None:
        suspicious = [
            column.name
            for column in self.columns
            if not _clean(aggregates.get(f"sum {column.name}"))
        ]
        for names in self._grouped(suspicious):
            bad = [name for name in names if self.count(~pl.col(name).is_finite())]
            if bad:
                where = pl.any_horizontal(~pl.col(name).is_finite() for name in bad)
                self.refuse("not_finite", bad, where, "with NaN or infinity", REPAIR)

    def refuse_value(self, rule: str, column: Column, where: pl.Expr) -> None:
        """Refuse values of a column that break a rule."""
        if rule == "not_whole":
            what = "with a number that is not whole"
            way = f"{_WHOLE[column.kind]}{or_measured([self.own(column.name)])}"
        elif rule == "not_a_flag":
            what, way = "with a value other than 0 and 1", "Write 0 or 1."
        elif rule == "too_low":
            hint = self.shape.low_hint if column.name in self.shape.columns else ""
            what, way = f"below {column.low:g}", f"Repair or remove these rows{hint}."
        else:
            high = column.high or math.inf
            what = f"above {high:g}, or above 0 and below {1 / high:g}, whose sums and products may"
            what += " overflow float64"
            way = "Multiply or divide all values of the column by one number."
        self.refuse(rule, [column.name], where, what, way)

    def _hardly_repeated(self) -> None:
        """Note labels that may be measured numbers: whole ones that mostly occur once."""
        for column in self.columns:
            values = self.frame[column.name].head(_LOOKED_AT)
            if column.kind not in ("id", "label") or not values.dtype.is_numeric():
                continue
            if len(values) < _MANY or 10 * values.n_unique() < 9 * len(values):
                continue
            if way := or_measured([self.own(column.name)]):
                message = (
                    f"{self.side.replace('_', ' ')}: {self.named([column.name])}: whole numbers"
                    f" that hardly repeat are taken for labels.{way}"
                )
                self.notes.append(Note("numbers_as_labels", message))

    def _repeated(self) -> None:
        for column in self.columns:
            if column.unique and has_repeats(self.frame[column.name]):
                not_null = pl.col(column.name).is_not_null()
                self._repeats([column.name], pl.col(column.name).is_duplicated() & not_null)
        key = [*filter(self.schema.__contains__, self.key)]
        if self.datum in self.key and self.datum not in key:
            self.note_doubled()  # every row is a separate datum, or ids are refused already
            return
        if key and rows_repeat(self.frame, key, self.bucket):
            required = {column.name for column in self._required}
            if required.isdisjoint({*self.key} - {*key}):  # a missing column is reported instead
                self._repeats(key, pl.struct(key).is_duplicated())

    def note_doubled(self) -> None:
        """Warn if the second half of rows that no key identifies repeats the first."""
        n, frame = self.frame.height // 2, self.frame
        if self.side != TABLE or 2 * n < max(frame.height, 2 * _MANY) or ROW in self.schema:
            return
        if frame.row(0) != frame.row(n) or any(one.is_nested() for one in self.schema.values()):
            return
        half = frame.head(n)
        if not half.equals(frame.slice(n)) or half.n_unique() < _MANY:
            return
        values = half.select(pl.exclude(self.datum)).hash_rows().value_counts()["count"].to_numpy()
        if n * math.log(((values / n) ** 2).sum()) > math.log(_BY_CHANCE):
            return  # values are too alike
        message = (
            f"table: the last {n:,} rows repeat the first {n:,}, value by value: was a file read"
            " twice? Give it once."
        )
        self.notes.append(Note("rows_doubled", message, n, warning=True))

    def _repeats(self, names: list[str], where: pl.Expr) -> None:
        """Report a key that occurs in several rows."""
        self.step = LAST
        self.refuse(
            "repeated_values",
            names,
            where,
            f"with {'a value' if len(names) == 1 else 'values'} in more than one row",
            f"Each may appear once; was a file read twice?{self._way_out(names)}",
            column=names[-1],
            values=self.frame.filter(where).select(names).n_unique(),
            key=names,
        )

    def _way_out(self, names: list[str]) -> str:
        others = [one.name for one in self._declared if one.repeats and one.name not in names]
        if others:
            return f" Rows that repeat on purpose have a column {' or '.join(others)}."
        if self.side == TABLE and self.datum in names:
            return f" Without a {self.datum} column every row is a separate {self.unit}."
        if self.several is not None and "label_value" not in names:
            return (
                " If a datum may have several labels, write"
                f" {option('multilabel', True)}; if they answer several"
                " questions, name these in a column label_key."
            )
        return ""

    def _grouped(self, names: list[str]) -> list[list[str]]:
        """A shape's columns are spoken of together, others one by one."""
        shape_columns = [name for name in names if name in self.shape.columns]
        single = [[name] for name in names if name not in self.shape.columns]
        return single + ([shape_columns] if shape_columns else [])

    def own(self, name: str) -> str:
        """The name a column has in the user's table."""
        return self.origins.get(name, [name])[0]

    def named(self, names: Sequence[str]) -> str:
        """``columns 'xmin', 'xmax' (from 'left', 'right')``."""
        origins = list(dict.fromkeys(mine for name in names for mine in self.origins.get(name, [])))
        seen = f" (from {', '.join(map(repr, origins))})" if origins else ""
        word = "column" if len(names) == 1 else "columns"
        return f"{word} {', '.join(map(repr, names))}{seen}"

    def count(self, where: pl.Expr) -> int:
        return int(self.frame.select(where.sum()).item())

    def refuse(
        self,
        code: str,
        names: Sequence[str],
        where: pl.Expr | Array,
        what: str,
        way: str = "Fill or remove these rows.",
        *,
        unit: tuple[str, str] = ("row", "rows"),
        value_columns: Sequence[str] | None = None,
        column: str = "",
        **facts: Any,
    ) -> int:
        """Report rows, if there are any; return their number.

        Args:
            names: columns that the message names.
            where: the rows, as an expression or flags.
            what: phrase behind their number.
            value_columns: columns whose values are shown, if not those of ``names``.
            column: column of the problem, if not the first of ``names``.
        """
        if not isinstance(where, pl.Expr):
            where = pl.lit(pl.Series(where))
        n = self.count(where)
        if n:
            verb = "has" if len(names) == 1 else "have"
            before = self.named(names) + (": " if what else f" {verb} ")
            what = f"{' ' * bool(what)}{what}, first ({self.counted} count from 0): "
            words = Words(before, *unit, what, f". {way}")
            rows = self._rows(where, names if value_columns is None else value_columns)
            self.add(code, column or names[0], words.describe(n, rows), n, rows, words, **facts)
        return n

    def _rows(self, where: pl.Expr, names: Sequence[str]) -> tuple[tuple[int, str], ...]:
        """Return the first rows: number, and ``row 3 (datum_id=7, score=nan)``."""
        context = [name for name in _CONTEXT if name in self.frame.columns and name not in names]
        table = self.frame.lazy()
        if ROW not in self.frame.columns:
            table = table.with_row_index(ROW)
        rows = table.filter(where).select(ROW, *context, *names).head(N_EXAMPLES).collect()
        examples = []
        for row in rows.iter_rows(named=True):
            number = row.pop(ROW)
            values = (f"{self.shape.helpers.get(key, key)}={row[key]!r}" for key in row)
            examples.append((number, f"row {number} ({', '.join(values)})".removesuffix(" ()")))
        return tuple(examples)

    def add(
        self,
        code: str,
        column: str,
        message: str,
        count: int | None = None,
        quoted_rows: tuple[tuple[int, str], ...] = (),
        words: Words | None = None,
        **facts: Any,
    ) -> None:
        """Report a problem."""
        self.problems.append(
            Problem(self.side, column, message, count, quoted_rows, self.step, code, facts, words)
        )


def _clean(value: Any) -> bool:
    """Return whether an aggregate shows no problem: not True, and finite if it is a float."""
    return value is not True and (not isinstance(value, float) or value - value == 0)


def not_whole(values: pl.Expr) -> pl.Expr:
    """Return an expression for numbers with a fraction, or beyond 64-bit integers."""
    return (values != values.floor()) | (values.abs() >= _INT64_END)


def finish(frame: pl.DataFrame, table: Table, shape: Shape) -> pl.DataFrame:
    """Checked columns in their last dtype: flags Boolean, whole numbers Int64; helpers go."""
    last: list[pl.Expr] = []
    schema = frame.schema
    for column in table.columns:
        dtype = schema.get(column.name)
        if dtype is None:
            continue
        if column.kind == "flag" and dtype != pl.Boolean:
            last.append(pl.col(column.name).cast(pl.Boolean))
        if column.kind in _WHOLE and dtype.is_float():
            last.append(pl.col(column.name).cast(pl.Int64))
        if column.kind == "label" and isinstance(dtype, pl.List) and dtype.inner.is_float():
            last.append(pl.col(column.name).cast(pl.List(pl.Int64)))
    if last:
        frame = frame.with_columns(last)
    helpers = schema.keys() & shape.helpers
    return frame.drop(helpers) if helpers else frame
