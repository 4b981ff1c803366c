"""Reading of all tables in one pass, and checks against their contracts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import polars as pl

from evalengine.ingest.sources.coco import plainly
from evalengine.ingest.sources.formats import explain
from evalengine.ingest.sources.scanning import scan
from evalengine.ingest.sources.tables import READ_FAILURES
from evalengine.schemas.contract import Table
from evalengine.schemas.errors import InputError
from evalengine.schemas.wording import option, sql_name, sql_text

from . import dtypes
from .checks import LAST, check_side, finish
from .ids import ALL, Bucket
from .problems import Note, Problem, listing
from .recognise import Side
from .shapes import SHAPES
from .slices import SlicePlan
from .where import Condition, filtered


class Prepared(msgspec.Struct):
    """All tables before any row is read.

    Attributes:
        sides: role to table.
        where: role to the condition on its rows.
    """

    sides: dict[str, Side]
    plan: SlicePlan
    where: dict[str, Condition]


def rows_of(role: str, side: Side, where: Mapping[str, Condition], plan: SlicePlan) -> pl.LazyFrame:
    """Return the canonical and slice columns of one table, filtered by its condition."""
    lazy = side.source.frame
    if role in where:
        lazy = filtered(lazy, side, where[role])
    return lazy.select([*side.naming.exprs.values(), *plan.extra.get(role, ())])


def collect(
    sides: dict[str, Side], where: dict[str, Condition], plan: SlicePlan
) -> tuple[dict[str, pl.DataFrame], dict[str, int]]:
    """All tables in one go, and how many rows the filtered ones had before."""
    queries: dict[tuple[str, str], pl.LazyFrame] = {}
    for role, side in sides.items():
        if role in where:
            queries[role, "count"] = side.source.frame.select(pl.len())
        queries[role, "rows"] = rows_of(role, side, where, plan)
    try:
        results = pl.collect_all(list(queries.values()))
    except InputError as error:
        raise plainly(error) from None
    except READ_FAILURES as error:
        for (role, _), query in queries.items():
            try:
                query.collect()
            except READ_FAILURES as cause:
                raise explain(sides[role].source, cause) from cause
        raise explain(next(iter(sides.values())).source, error) from error
    frames: dict[str, pl.DataFrame] = {}
    before: dict[str, int] = {}
    for (role, what), frame in zip(queries, results, strict=True):
        if what == "rows":
            frames[role] = frame
        else:
            before[role] = frame.item()
    return frames, before


def checked(
    side: Side, frame: pl.DataFrame, bucket: Bucket | None, *, filtered: bool
) -> tuple[list[Problem], list[Note], pl.DataFrame]:
    """Problems and notes of one side, and its frame in final dtypes.

    Args:
        bucket: of its datum ids; None for the whole table.
    """
    schema, naming, part = side.schema, side.naming, bucket is not None
    problems: list[Problem] = []
    untyped: set[str] = set()
    if naming.problems:
        empty = frame.height == 0 and not part
        if empty and schema:  # no column could be selected, perhaps
            empty = not side.source.frame.select(pl.len()).collect().item()
        if empty:
            # Columns without values have arbitrary dtypes: those of an empty CSV are all strings.
            table_columns = {
                *schema,
                *(one for to in naming.recognised.values() for one in to.split(", ")),
            }
            untyped = {one.column for one in naming.problems if one.column in table_columns}
        sound = (one for one in naming.problems if one.column not in untyped)
        problems = [_with_texts(side, one) for one in sound]
    shape = SHAPES[side.table.shape]
    refused, notes = check_side(
        frame, side.table, shape, naming.recognised, filtered=filtered, bucket=bucket or ALL
    )
    reported = {problem.column for problem in problems if problem.column} if refused else set()
    for problem in refused:
        if problem.column not in reported:
            missing_texts = side.source.missing.get(problem.column)
            more = (
                f" In this column {listing(missing_texts)} is read as missing."
                if missing_texts
                else ""
            )
            problems.append(problem.extended(more))
    notes = [*naming.notes, *notes]
    if problems:
        repeated = not part and not filtered and side.table.key
        problems = [
            _with_groups(side, one) if repeated and one.step == LAST else one for one in problems
        ]
        return problems, notes, frame
    if frame.height == 0:
        return [], notes, dtypes.fit_integers(_without_rows(frame, side.table, untyped))
    return [], notes, finish(dtypes.fit_integers(frame), side.table, shape)


def named_problems(sides: Mapping[str, Side]) -> list[Problem]:
    """Problems of the columns of all sides, known before their rows are checked."""
    return [_with_texts(side, one) for side in sides.values() for one in side.naming.problems]


def in_files(problems: Sequence[Problem], ready: Prepared) -> list[Problem]:
    """Add the file of the first row that each problem names, if its table has several files."""
    lengths: dict[str, list[tuple[str, int]]] = {}
    result = []
    for problem in problems:
        roles = [role for role, side in ready.sides.items() if side.table.side == problem.side]
        role = roles[0] if roles else ""
        if problem.rows and role and role not in lengths:
            lengths[role] = _rows_by_file(ready, role)
        row = problem.rows[0][0] if problem.rows else 0
        for file, rows in lengths.get(role, ()) if problem.rows else ():
            if row < rows:
                more = f" Row {problem.rows[0][0]} is row {row} of {file}."
                facts = {**problem.facts, "file": file, "row_of_file": row}
                problem = msgspec.structs.replace(problem.extended(more), facts=facts)
                break
            row -= rows
        result.append(problem)
    return result


def _rows_by_file(ready: Prepared, role: str) -> list[tuple[str, int]]:
    """Return the files of a table and their rows; empty if rows are not those of several files."""
    source = ready.sides[role].source
    if len(source.files) < 2 or role in ready.where or source.format not in _BY_ROWS:
        return []
    queries = [scan([file], source.format).select(pl.len()) for file in source.files]
    *rows, total = pl.collect_all([*queries, source.frame.select(pl.len())])
    counts = [int(one.item()) for one in rows]
    return [*zip(source.files, counts, strict=True)] if sum(counts) == total.item() else []


_BY_ROWS = ("parquet", "ipc", "csv", "ndjson")

_GROUPS = 50  # distinct values of a column that may each get a separate table


def _with_groups(side: Side, problem: Problem) -> Problem:
    """Extend a problem of repeated keys by an unread column that distinguishes the rows."""
    exprs, used = side.naming.exprs, side.naming.used
    key = [exprs[name] for name in side.table.key if name in exprs]
    for column, dtype in side.schema.items():
        if column in used or not (dtype in (pl.String, pl.Categorical) or dtype.is_integer()):
            continue
        rows, values, distinct = (
            side.source.frame.select(
                rows=pl.len(),
                values=pl.col(column).n_unique(),
                distinct=pl.struct(*key, pl.col(column).alias("")).n_unique(),
            )
            .collect()
            .row(0)
        )
        if rows == distinct and 1 < values <= min(_GROUPS, rows // 2):
            first = side.source.frame.select(column).head(1).collect().item()
            literal = repr(first) if dtype.is_integer() else sql_text(str(first))
            return problem.extended(
                f" Column {column!r} differs between these rows: score one of its"
                f" {values} values at a time, {option('where', f'{sql_name(column)} = {literal}')}."
            )
    return problem


def _with_texts(side: Side, problem: Problem) -> Problem:
    """Extend a problem of a text column with expected numbers by the texts that are not numbers."""
    kinds = {column.name: column.kind for column in side.table.columns}
    originals = {name: mine for mine, name in side.naming.recognised.items()}
    kind = kinds.get(problem.column)
    name = originals.get(problem.column, problem.column)
    if problem.kind == "wrong_dtype" and "columns" in problem.facts:  # of one box
        kind, (name,) = "number", problem.facts["columns"]
    if kind not in ("number", "value", "flag") or side.schema.get(name) != pl.String:
        return problem
    text = pl.col(name)
    number = text.cast(pl.Float64, strict=False)
    if kind == "flag":
        number = pl.coalesce(number, dtypes.boolean_of(name).cast(pl.Float64))
    strange = text.is_not_null() & ~number.is_finite().fill_null(value=False)
    rows = side.source.frame.select(row=pl.int_range(pl.len()), text=text, strange=strange)
    commas = pl.col("text").str.contains(r"^\s*[-+]?[.,]?\d[\d.,' ]*$") & pl.col("strange")
    counted, filled, decimal = (
        rows.select(pl.col("strange").sum(), pl.col("text").count(), commas=commas.sum())
        .collect()
        .row(0)
    )
    if not counted:
        return problem
    first = rows.filter("strange").head(3).collect()
    examples = "; ".join(f"row {row}: {value[:40]!r}" for row, value, _ in first.iter_rows())
    few = " For missing values, use empty fields, or remove the rows."
    point = " Write decimal points, and no separators of thousands." if decimal == counted else ""
    if first["text"].str.contains(r"^\s*[-+]?[\d.]+\s*%\s*$").all():
        point = " Write percentages as shares: 0.87 for 87%."
    return problem.extended(
        f" {counted} of {filled} texts are not numbers, first (rows count from 0): {examples}."
        f"{point or (few if counted < filled else '')}"
    )


def _without_rows(frame: pl.DataFrame, table: Table, untyped: set[str]) -> pl.DataFrame:
    """Give a table without rows its canonical columns and dtypes."""
    present = {*frame.columns, *untyped}
    names = [column.name for column in table.required]
    names += [column.name for column in table.optional if column.name in present]
    kinds = {column.name: column for column in table.columns}
    extra = {name: dtype for name, dtype in frame.schema.items() if name not in names}
    schema: dict[str, pl.DataType] = {}
    for name in names:
        default = dtypes.KINDS[kinds[name].kind].default
        flag = kinds[name].kind == "flag"
        schema[name] = default if flag or name not in frame.columns else frame.schema[name]
    return pl.DataFrame(schema={**schema, **extra})
