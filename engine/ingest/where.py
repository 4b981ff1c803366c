"""Conditions on rows (``where``)."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from itertools import product

import msgspec
import polars as pl

from ..schemas.contract import DATUMS, GROUND_TRUTHS, PREDICTIONS, TABLE
from ..schemas.errors import InputError, did_you_mean, unknown
from ..schemas.wording import option, sql_name
from .dtypes import moments
from .ids import distinct
from .problems import Note, count_of
from .recognise import Side

# Lazy mapping of filtered row numbers to source rows, for error messages.


class RemainingRows:
    """Rows of a table that remain after filters, in order.

    Args:
        first: returns the numbers, from 0, of the rows that the first condition kept; called at
            most once, on demand. None if that condition is among the masks.
    """

    def __init__(self, first: Callable[[], pl.Series] | None = None) -> None:
        self._first = first
        self._masks: list[pl.Series] = []
        self._numbers: pl.Series | None = None

    def only(self, mask: pl.Series) -> None:
        """Filter the remaining rows by a Boolean ``mask``."""
        self._masks.append(mask)
        self._numbers = None

    def filtered(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return what remains of the rows that the first condition kept."""
        for mask in self._masks:
            frame = frame.filter(mask)
        return frame

    def number(self, row: int) -> int:
        """Return the row number in the source, from 0, of a remaining row."""
        if self._numbers is None:
            masks = iter(self._masks)
            numbers = next(masks).arg_true() if self._first is None else self._first()
            for mask in masks:
                numbers = numbers.filter(mask)
            self._numbers = numbers
        return int(self._numbers[row])


# ``where``: SQL conditions on rows, applied to the tables that have their columns.

SIDES = (PREDICTIONS, GROUND_TRUTHS, TABLE)


def _extended(frame: pl.LazyFrame, side: Side, names: list[str]) -> pl.LazyFrame:
    """Add canonical columns that are named but missing under that name."""
    exprs = side.naming.exprs
    extra = [exprs[name] for name in names if name not in side.schema and name in exprs]
    return frame.with_columns(extra) if extra else frame


class Condition(msgspec.Struct):
    """One condition on one table.

    Attributes:
        whole_datums: whether a datum it removes is removed from every table.
    """

    text: str
    expr: pl.Expr
    names: list[str]
    whole_datums: bool = False


def plan_where(
    where: str | Mapping[str, str] | None, tables: Mapping[str, Side], by: tuple[str, ...] = ()
) -> dict[str, Condition]:
    """Assign conditions to tables.

    A single string applies to the predictions, the ground truths or both, whichever have its
    columns. If the table of datums has them, or if they are slice columns that only one side has,
    whole datums are kept or removed on every side.
    """
    if not where:
        return {}
    if isinstance(where, str):
        plan = _one_for_all(parse(where), tables, by)
    else:
        plan = _one_each(where, tables)
    return {side: _checked(condition, tables[side], side) for side, condition in plan.items()}


def filtered(frame: pl.LazyFrame, table: Side, condition: Condition) -> pl.LazyFrame:
    """Return the rows that satisfy the condition, in order."""
    return _extended(frame, table, condition.names).filter(condition.expr)


def parse(text: str) -> Condition:
    """Parse an SQL condition.

    Raises:
        InputError: it is none, or names no column.
    """
    try:
        expr = pl.sql_expr(text)
        names = list(dict.fromkeys(expr.meta.root_names()))
    except (pl.exceptions.PolarsError, ValueError) as error:
        raise InputError(
            f"{option('where', text)}: not an SQL condition: {_first_line(error)}. Write one"
            " such as \"score > 0.1 AND weather = 'rain'\" (strings in single quotes).",
            code="not_a_condition",
            value=text,
        ) from None
    if not names:
        raise InputError(
            f"{option('where', text)}: names no column.", code="not_a_condition", value=text
        )
    return Condition(text, expr, names)


def _one_each(where: Mapping[str, str], tables: Mapping[str, Side]) -> dict[str, Condition]:
    plan = {}
    for side, text in where.items():
        if side not in (*SIDES, DATUMS):
            raise unknown("table", side, (*SIDES, DATUMS), before="where: ")
        if side not in tables and TABLE in tables and side != DATUMS:
            raise InputError(
                f"where: a condition on {side.replace('_', ' ')}, but one table has both sides: "
                f"write only {text!r}.",
                code="where_side",
                side=side,
            )
        if side not in tables:
            raise InputError(
                f"where: a condition on {side}, but no {side}= were given.",
                code="where_side",
                side=side,
            )
        condition = parse(text)
        if not tables[side].has(condition.names):
            raise InputError(
                _no_column(condition, {side: tables[side]}),
                code="column_missing",
                columns=condition.names,
            )
        condition.whole_datums = side == DATUMS
        plan[side] = condition
    return plan


def _one_for_all(
    condition: Condition, tables: Mapping[str, Side], by: tuple[str, ...]
) -> dict[str, Condition]:
    names = condition.names
    sides = [side for side in SIDES if side in tables and tables[side].has(names)]
    homes = [*sides, DATUMS] if DATUMS in tables and tables[DATUMS].has(names) else sides
    for side, other, name in product(homes, homes, names):  # as width, or score of BEIR's judgments
        if name in tables[side].naming.recognised and name in tables[other].naming.exprs:
            raise InputError(
                f"{option('where', condition.text)}: {name!r} is a column of the {_words(side)}"
                f" and, with another meaning, of the {_words(other)}. To choose: "
                f"{option('where', {side: condition.text})} or"
                f" {option('where', {other: condition.text})}.",
                code="ambiguous_column",
                column=name,
            )
    if DATUMS in homes:
        condition.whole_datums = True
        return {DATUMS: condition}
    if len(sides) == 1 and sides != [TABLE] and set(names) <= set(by):
        condition.whole_datums = True
    if not sides:
        raise InputError(
            _no_column(condition, tables), code="column_missing", columns=condition.names
        )
    return dict.fromkeys(sides, condition)


def _no_column(condition: Condition, tables: Mapping[str, Side]) -> str:
    everything = {
        name for table in tables.values() for name in (*table.schema, *table.naming.exprs)
    }
    lost = [name for name in condition.names if name not in everything]
    if lost:
        hint = did_you_mean(lost[0], everything)
        if not hint:
            quotes = " (Strings go in single quotes.)" if '"' in condition.text else ""
            hint = f" Columns there: {', '.join(sorted(everything))}.{quotes}"
        return (
            f"{option('where', condition.text)}: no column {lost[0]!r} in {_names(tables)}.{hint}"
        )
    places = [
        f"{name!r} in {_names([side for side, table in tables.items() if table.has([name])])}"
        for name in condition.names
    ]
    return (
        f"{option('where', condition.text)}: no single table has all its columns:"
        f" {'; '.join(places)}. Write one condition per table:"
        f" {option('where', {'predictions': '...', 'datums': '...'})}."
    )


def _names(sides: Mapping[str, Side] | list[str]) -> str:
    return " or ".join(map(_words, sides))


def _words(side: str) -> str:
    return side.replace("_", " ")


def _checked(condition: Condition, table: Side, side: str) -> Condition:
    """Check a condition on an empty table, so that a wrong type is refused before rows are read.

    Returns:
        The condition; texts that are compared with dates and times are cast to these.
    """
    empty = _extended(pl.DataFrame(schema=table.schema).lazy(), table, condition.names)
    try:
        dtype = empty.select(condition.expr.alias("where")).collect().schema["where"]
    except pl.exceptions.PolarsError as error:
        schema = empty.collect_schema()
        times = {name: schema[name] for name in condition.names if schema[name].is_temporal()}
        text, invalid = _with_times(condition.text, times)
        if not invalid and text != condition.text:
            cast = msgspec.structs.replace(condition, expr=parse(text).expr)
            with contextlib.suppress(pl.exceptions.PolarsError):
                empty.select(cast.expr).collect()
                return cast
        kinds = ", ".join(f"{name} is {schema[name]}" for name in condition.names)
        why = _first_line(error).partition(" (create native")[0]
        if invalid:
            why = f"the column's type has no value {', '.join(invalid)}"
        if times:
            name = sql_name(next(iter(times)))
            why += (
                f". Compare the column itself with a text of its type ({name} >= '2020-01-31',"
                " '2020-01-31 12:00:00' or '12:00:00'), or write DATE '2020-01-31'"
            )
        raise InputError(
            f"{option('where', condition.text)}: cannot be applied to the {side.replace('_', ' ')}:"
            f" {why}; {kinds}.",
            code="wrong_dtype",
            side=side,
            columns=condition.names,
        ) from None
    if dtype != pl.Boolean:
        raise InputError(
            f"{option('where', condition.text)}: not a condition but a value of type {dtype}."
            f' Compare it: "{condition.text} > 0", "{condition.text} = \'a\'".',
            code="not_a_condition",
            value=condition.text,
        )
    return condition


_TEXT = r"(?:\b(?i:date|time|timestamp)\s+)?'(?:[^']|'')*'"
_COMPARED = r"\s*(?:[<>!]=|<>|[<>=])\s*"


def _with_times(text: str, times: Mapping[str, pl.DataType]) -> tuple[str, list[str]]:
    """Rewrite comparisons of dates and times with texts as those of their numbers.

    Args:
        times: columns of dates and times -> dtype.

    Returns:
        The condition, and the texts that are no values of their column.
    """
    invalid: list[str] = []
    names = {sql_name(name): name for name in times} | {f'"{name}"': name for name in times}
    if not names:
        return text, invalid
    column = rf"(?<![\w.])(?:{'|'.join(map(re.escape, names))})(?![\w.(])"
    several = rf"\s*\(\s*{_TEXT}(?:\s*,\s*{_TEXT})*\s*\)"
    between = rf"\s+{_TEXT}\s+(?i:and)\s+{_TEXT}"
    pattern = (
        rf"(?P<compared>{_TEXT}{_COMPARED}{column}"
        rf"|{column}(?:{_COMPARED}{_TEXT}|\s+(?i:not\s+)?(?:(?i:in){several}|(?i:between){between})))"
        rf'|{_TEXT}|"[^"]*"'
    )

    def number(given: str, dtype: pl.DataType) -> str:
        value = _physical(given.partition("'")[2][:-1], dtype)
        if value is None:
            invalid.append(given)
        return str(value)

    def rewritten(match: re.Match[str]) -> str:
        if match["compared"] is None:
            return match[0]
        name = re.search(column, re.sub(_TEXT, "", match[0]))
        assert name is not None
        dtype = times[names[name[0]]]
        parts = re.split(f"({_TEXT})", match[0])
        parts[::2] = [re.sub(column, r"CAST(\g<0> AS BIGINT)", one) for one in parts[::2]]
        parts[1::2] = [number(one, dtype) for one in parts[1::2]]
        return "".join(parts)

    return re.sub(pattern, rewritten, text), invalid


def _physical(text: str, dtype: pl.DataType) -> int | None:
    """Return the number that represents a date or time of a dtype; None if it is not exact."""
    text = text.strip()
    given = pl.Series([text])
    try:
        if dtype == pl.Time:
            given += ":00" if len(text) == len("12:00") else ""
            parsed = given.str.to_time("%H:%M:%S%.f", strict=False)
        else:
            day = given.str.contains(r"^\d{4}-\d\d-\d\d")
            parsed = moments(given.set(~day, None), "ns" if "1678" <= text[:4] < "2262" else "us")
            own, zone = (getattr(one, "time_zone", None) for one in (parsed.dtype, dtype))
            if own and not zone:
                return None
            parsed = parsed.dt.replace_time_zone(zone) if zone and not own else parsed
        value = parsed.cast(dtype)
        exact = value.cast(parsed.dtype) == parsed
    except pl.exceptions.PolarsError:  # an hour that a change of clocks skips or repeats
        return None
    return value.to_physical()[0] if exact[0] else None


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def keep_datums(
    frames: dict[str, pl.DataFrame],
    where: dict[str, Condition],
    before: dict[str, int],
    left: dict[str, RemainingRows],
) -> list[Note]:
    """Remove the rows of datums that a condition removed; return notes on removed rows.

    Args:
        frames: side to its frame, filtered by its condition; modified in place.
        left: side to its remaining source rows; modified in place.
    """
    height = {role: before.get(role, frame.height) for role, frame in frames.items()}
    for role, condition in where.items():
        if condition.whole_datums:
            remaining = distinct(frames[role]["datum_id"]).implode()
            for other in (*SIDES, DATUMS):
                if other in frames and other != role:
                    mask = frames[other].select(pl.col("datum_id").is_in(remaining)).to_series()
                    frames[other] = frames[other].filter(mask)
                    left.setdefault(other, RemainingRows()).only(mask)
    if not where:
        return []
    text = " and ".join(dict.fromkeys(repr(condition.text) for condition in where.values()))
    notes = []
    for role in (*SIDES, DATUMS):
        if role in frames and (role in where or frames[role].height < height[role]):
            gone = height[role] - frames[role].height
            notes.append(
                Note(
                    "where",
                    f"where {text} removed {gone:,} of"
                    f" {count_of(height[role], 'row')} of the {role.replace('_', ' ')}.",
                    gone,
                )
            )
    return notes


def no_rows(where: dict[str, Condition], rows: Mapping[str, int]) -> list[Note]:
    """Return the warning that no side, or the ground truths, have any rows after filtering.

    Missing ground truths are deliberate, and no warning, if a table of datums lists the datums.

    Args:
        rows: number of rows of each table.
    """
    if not any(map(rows.get, SIDES)):
        message = "no row remains after filtering" if where else "no table has a row"
        return [Note("no_rows", f"{message}: there are no numbers.", 0, warning=True)]
    if rows.get(GROUND_TRUTHS, 1) or DATUMS in rows:
        return []
    message = f"the ground truths have no row{' after filtering' if where else ''}"
    way = f"Change {option('where')}." if where else "Is it the right file?"
    return [
        Note("no_ground_truths", f"{message}: numbers are undefined or 0. {way}", 0, warning=True)
    ]
