"""Dtypes that columns accept, and measured numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import numpy as np
import polars as pl

from .. import metrics
from ..schemas.contract import TABLE, Column
from ..schemas.errors import InputError
from ..schemas.options import DECLARED, Options
from ..schemas.tables import ARGUMENT_FIELDS, TOOL_FIELDS, contracts, task_names
from ..schemas.wording import option
from .problems import Note, count_of, listing

if TYPE_CHECKING:
    from .recognise import Side

# Numbers with fractions: measurements, not labels.


@lru_cache(maxsize=1 << 14)
def folded(name: str) -> str:
    """The name of a column whatever its case, with underscores for blanks and hyphens."""
    return _SEPARATORS.sub("_", name.strip().casefold())


_SEPARATORS = re.compile(r"[\s-]+")


def fractional(values: pl.Series) -> bool:
    """Return whether values are numbers, or lists of them, with a finite non-whole one."""
    if values.dtype.is_nested() and isinstance(values.dtype, (pl.List, pl.Array)):
        return fractional(values.explode(empty_as_null=False))
    if values.dtype.is_decimal():
        values = values.cast(pl.Float64)
    return values.dtype.is_float() and (values.is_finite() & (values != values.floor())).any()


def inferred_note(sides: Mapping[str, Any]) -> list[Note]:
    """Note that numbers with fractions were read as measurements, if they may be labels."""
    fields: list[str] = []
    others = set(task_names())
    for side in sides.values():
        names = {to: mine for mine, to in side.naming.recognised.items()}
        for name in side.table.measured:
            if name not in side.naming.exprs:
                return []  # only distributions: no other task
            fields.append(names.get(name, name))
            others = {one for one in others if _knows(one, folded(fields[-1]))}
        others -= {side.table.task} if side.table.measured else set()
    if not fields or not others:
        return []
    ways = " or ".join(option("task", one) for one in sorted(others))
    tasks = dict.fromkeys(side.table.task for side in sides.values() if side.table.measured)
    message = (
        f"task: {listing(fields)} are numbers with fractions, taken for {', '.join(tasks)}. If they"
        f" are classes or scores, write {ways}."
    )
    return [Note("task_inferred", message)]


@lru_cache(maxsize=4096)
def _knows(task: str, name: str, role: str = TABLE) -> bool:
    """Return whether a name is that of a required label column of a task."""
    table = contracts(task).get(role)
    if table is None or (role == TABLE and not table.wide):
        return False
    needed = (one for one in table.columns if one in table.required or one.name in table.any_of)
    return any(name in (one.name, *one.aliases) for one in needed)


def decided_by_names(task: str, role: str, names: Iterable[str]) -> bool:
    """Return whether a table's column names belong to only one task, whatever their values."""
    others = [one for one in task_names() if one != task]
    return not any(
        _knows(one, folded(name), at) for one in others for name in names for at in (role, TABLE)
    )


MISSING = (
    r"(?i)^(#?n/?a|n\.a\.|<na>|[-+]?nan|null|none|nil|nat|-{1,3}|\?|\.|missing"
    r"|#(value|ref|num|name|null|div/0)[!?]?)?$"
)
"""Texts that mean a missing value in R, pandas, SQL and Excel."""
_FEW = 10  # of so many texts one may be no number


class Texts(msgspec.Struct):
    """Summary of a text column that is numeric except for a few values.

    Attributes:
        marks: the distinct missing-value marks, the first few.
    """

    missing: int
    bad: int
    marks: list[str]
    rows: list[int]


def number_of(name: str) -> pl.Expr:
    """A column of texts as Float64, null if a text is no number."""
    text = pl.col(name).str.strip_chars()
    return pl.when(~text.str.contains(MISSING)).then(text.cast(pl.Float64, strict=False))


def numbers_in(values: pl.LazyFrame, name: str) -> Texts | None:
    """Summarise the non-numeric values of a text column; None if most are not numbers."""
    absent = pl.col(name).str.strip_chars().str.contains(MISSING)
    parsed = values.select(text=pl.col(name), absent=absent, number=number_of(name).is_not_null())
    filled, missing, numbers = (
        parsed.select(pl.col("text").count(), pl.col("absent").sum(), pl.col("number").sum())
        .collect()
        .row(0)
    )
    bad = filled - missing - numbers
    if not numbers or bad > max(1, filled // _FEW):
        return None
    if not missing:
        return Texts(0, bad, [], [])
    rows = parsed.with_row_index("row").filter("absent").select("row", "text").head(1000).collect()
    examples = rows["text"].unique(maintain_order=True).head(3).to_list()
    return Texts(missing, bad, examples, rows["row"].head(3).to_list())


def marked_numbers(rows: pl.LazyFrame, schema: Mapping[str, pl.DataType]) -> list[str]:
    """Return the text columns of numbers and a few marks of missing values, or of many numbers
    with fractions and a few other texts.

    Codes such as '02134' are no numbers, and a few different ones may be versions or grades.
    """
    texts = [name for name, dtype in schema.items() if dtype == pl.String]
    head = rows.select(texts).head(1000).collect() if texts else pl.DataFrame()
    result = []
    for one in head:
        if not _begins_with_digit(one) or one.str.contains(r"^\s*0\d").any():
            continue
        if (summary := numbers_in(rows, one.name)) is not None:
            number = head.select(number_of(one.name)).to_series().drop_nulls()
            many = number.n_unique() > min(2 * _FEW, len(number) // 2)
            if many and fractional(number) if summary.bad else summary.missing:
                result.append(one.name)
    return result


def _begins_with_digit(texts: pl.Series) -> bool:
    """Return whether any of the first texts begins with a digit, a sign or a point."""
    return any(text.strip().lstrip("+-.")[:1].isdigit() for text in texts.head(_FEW).drop_nulls())


def as_numbers(
    values: pl.DataFrame, rows: pl.LazyFrame, *, measured: bool = False
) -> tuple[pl.DataFrame, bool]:
    """Convert text columns that are numeric except for a few values; also return whether there is
    any.

    Texts that are all whole numbers stay texts, as they may be labels.

    Args:
        rows: all rows; read if the first ones do not show why a column is text.
        measured: whether another table has a column of numbers with fractions.
    """
    changed = []
    measured = measured or any(map(fractional, values))
    for one in values:
        if one.dtype != pl.String or not _begins_with_digit(one):
            continue
        texts = numbers_in(values.lazy(), one.name)
        if texts is None:
            continue
        number = values.select(number_of(one.name).alias(one.name)).to_series()
        if not (texts.missing or texts.bad or fractional(number)) and measured:
            texts = numbers_in(rows, one.name)
        if texts is not None and (texts.missing or texts.bad or fractional(number)):
            changed.append(number)
    return values.with_columns(changed), bool(changed)


_NUMBERS = ("number", "whole", "flag", "value")  # kinds of columns
_WHOLE = ("id", "label", "whole")  # kinds of columns that whole decimals are


def reread(side: Side) -> bool:
    """Read numeric texts and marks of missing values as numbers and nulls, and whole decimals as
    ids; return whether any column changed, so that columns must be recognised again.
    """
    source, schema, table, naming = side.source, side.schema, side.table, side.naming
    kinds = {column.name: column.kind for column in table.columns}
    originals = {name: mine for mine, to in naming.recognised.items() for name in to.split(", ")}
    names = {
        originals.get(problem.column, problem.column): problem.column
        for problem in naming.problems
        if kinds.get(problem.column) in (*_NUMBERS, *_WHOLE)
    }
    changed = False
    for problem in naming.problems:
        for name in problem.facts.get("columns", ()) if problem.kind == "wrong_dtype" else ():
            empty = source.frame.select(pl.col(name).is_null().all())
            if schema[name] == pl.String and empty.collect().item():
                source.frame = source.frame.with_columns(pl.lit(None).alias(name))
                schema[name], changed = pl.Null(), True
    for name, column in names.items():
        dtype = schema.get(name)
        if isinstance(dtype, pl.Decimal) and dtype.scale == 0 and kinds[column] in _WHOLE:
            cast = pl.col(name).cast(pl.Int64, strict=False)
            beyond = source.frame.select((cast.is_null() & pl.col(name).is_not_null()).any())
            schema[name] = pl.String() if beyond.collect().item() else pl.Int64()
            source.frame = source.frame.with_columns(pl.col(name).cast(schema[name]))
            changed = True
            continue
        if kinds[column] not in _NUMBERS:
            continue
        if (
            kinds[column] in ("flag", "value")
            and schema.get(name) == pl.String
            and _words(source.frame, name)
        ):
            source.frame = source.frame.with_columns(boolean_of(name).alias(name))
            schema[name] = pl.Boolean()
            changed = True
            continue
        texts = numbers_in(source.frame, name) if schema.get(name) == pl.String else None
        if texts is None or texts.bad or not (texts.missing or source.text):
            continue  # in a CSV all texts are numbers if some have leading zeros
        source.frame = source.frame.with_columns(number_of(name).alias(name))
        schema[name], changed = pl.Float64(), True
        if not texts.missing:
            continue
        source.missing[column] = texts.marks
        rows = ", ".join(f"{row:,}" for row in texts.rows)
        message = (
            f"{table.side.replace('_', ' ')}: column {name!r}: {count_of(texts.missing, 'text')}"
            f" ({listing(texts.marks)}) read as missing, first rows (from 0): {rows}."
        )
        source.notes += (Note("texts_missing", message, texts.missing),)
    return changed


def boolean_of(name: str) -> pl.Expr:
    """A column of the words true and false as booleans, null for marks of missing values."""
    text = pl.col(name).str.strip_chars().str.to_lowercase()
    return pl.when(text.is_in(["true", "false"])).then(text == "true")


def _words(rows: pl.LazyFrame, name: str) -> bool:
    """Return whether all texts are true, false, or marks of missing values, with some of those."""
    is_boolean = boolean_of(name).is_not_null()
    absent = pl.col(name).str.strip_chars().str.contains(MISSING).fill_null(value=True)
    return all(rows.select(is_boolean.any(), every=(is_boolean | absent).all()).collect().row(0))


_MARKED = {
    "thousands separators": (
        ",",
        r"^\s*[-+\u2212]?(\d{1,3}|[1-9]\d{0,2}(,\d{3})+)(\.\d*)?\s*$",
        "Remove them: pl.col(name).str.replace_all(',', '').cast(pl.Float64). For decimal commas"
        " write decimal points",
    ),
    "decimal commas": (
        ",",
        r"^\s*[-+\u2212]?[\d.\s]*(,\d+)?\s*$",
        "Write decimal points and no separators of thousands: pl.col(name)"
        r".str.replace_all(r'[.\s]', '').str.replace(',', '.').cast(pl.Float64)",
    ),
    "points between thousands": (
        r"\..*\.",  # texts with one point are decimals
        r"^\s*[-+\u2212]?(\d{1,3}|[1-9]\d{0,2}(\.\d{3})+)\s*$",
        "Remove them: pl.col(name).str.replace_all('.', '', literal=True).cast(pl.Float64)",
    ),
    "blanks or apostrophes between thousands": (
        r"\d['’]\d{3}|\d\s\d{3}\.\d",  # blanks between whole numbers may separate several
        r"^\s*[-+\u2212]?\d{1,3}([\s'’]\d{3})*(\.\d*)?\s*$",
        "Remove them, and cast the column to pl.Float64",
    ),
    "signs of a currency": (
        r"[$€£¥₹].*\d[.,]\d|\d[.,]\d.*[$€£¥₹]",
        r"^\s*[-+\u2212]?\s*[$€£¥₹]?\s*[-+\u2212]?[\d.,]+\s*[$€£¥₹]?\s*$",
        r"Remove them: pl.col(name).str.replace_all(r'[$€£¥₹,\s]', '').cast(pl.Float64)",
    ),
    "the minus sign U+2212": (
        "\u2212[0-9.]*[.][0-9]",
        r"^\s*[-+\u2212]?[\d.]+\s*$",
        "Write '-', and cast the column to pl.Float64",
    ),
    "percent signs": ("%", r"^\s*[-+\u2212]?[\d.,]+\s*%?\s*$", "Write shares: 0.87 for 87%"),
}
"""Name -> mark that some texts contain, pattern of all texts, and the remedy."""
SEPARATED = tuple(name for name in _MARKED if name != "percent signs")


def refuse_marked(texts: Sequence[pl.Series], *names: str) -> None:
    """Refuse text columns of numbers with separators or other signs, read as labels.

    Marks of missing values do not matter, nor does a tenth of other texts, except lists of three
    numbers and more, next to which ``1,2`` is a list of labels.
    """
    for name in names:
        mark, pattern, remedy = _MARKED[name]
        filled = [one.filter(~one.str.strip_chars().str.contains(MISSING)) for one in texts]
        fitting = [one.filter(one.str.contains(pattern)) for one in filled]
        marked = [one.filter(one.str.contains(mark)) for one in fitting]
        others = [one.filter(~one.str.contains(pattern)) for one in filled]
        if not all(map(len, marked)) or any(
            len(other) > len(one) // _FEW or other.str.contains(r"\d\s*,\s*\d.*,\s*\d").any()
            for one, other in zip(filled, others, strict=True)
        ):
            continue
        several = "s" * (len(texts) > 1)
        first = marked[0].unique(maintain_order=True).head(3).to_list()
        raise InputError(
            f"column{several} {listing([one.name for one in texts])}: texts that look like numbers"
            f" with {name}, first {listing(first)}. {remedy}; if they are"
            f" labels, name their task: {option('task')}.",
            code="wrong_dtype",
            columns=[one.name for one in texts],
        )


def or_measured(names: Iterable[str]) -> str:
    """Return the remedy if label columns contain numbers that a task measures.

    Args:
        names: columns in the input; the result is empty if no name is that of a measurement.
    """
    tasks = _measuring()
    matches = {tasks[name] for name in map(folded, names) if name in tasks}
    ways = " or ".join(option("task", task) for task in sorted(matches))
    return f" If they are measured numbers, write {ways}." if ways else ""


@cache
def _measuring() -> dict[str, str]:
    """Names of columns that contain measured numbers -> task."""
    tasks: dict[str, str] = {}
    for task in task_names():
        for table in contracts(task).values():
            columns = (one for one in table.columns if one.name in table.measured)
            for name in (name for one in columns for name in (one.name, *one.aliases)):
                tasks.setdefault(name, task)
    return tasks


def measured_pair(ours: pl.Series, theirs: pl.Series, options: Options) -> tuple[str, str] | None:
    """Return the columns of two series of numbers, for a task that measures them; None for others.

    Numeric texts on one side, except for a few, count as numbers.

    Args:
        options: with ``task``, or metrics of only one such task, whole numbers and rows of several
            numbers count as measurements too.
    """
    for task in task_names():
        table = contracts(task).get(TABLE)
        if table is None or not table.measured or options.task not in (None, task):
            continue
        mended = False
        if (ours.dtype == pl.String) != (theirs.dtype == pl.String):
            frame = pl.DataFrame([ours.alias("0"), theirs.alias("1")])
            sides, mended = as_numbers(frame, frame.lazy())
            ours, theirs = sides
        fits = numbers(ours) and numbers(theirs)
        if fits and options.task is None and not decided(task, options):
            fits = fractional(ours) and fractional(theirs) and not ours.dtype.is_nested()
            if not fits and beyond_classes(ours, theirs, options):
                frame = pl.DataFrame([ours.alias("0"), theirs.alias("1")])
                fits = mended or incomplete(frame.lazy(), frame.columns)
        return table.values[0] if fits else None
    return None


def decided(task: str, options: Options) -> bool:
    """Return whether metrics or options belong to only this task among those of one table."""
    if options.metrics:
        one_table = (one for one in task_names() if TABLE in contracts(one))
        able = [one for one in one_table if all(metrics.has(one, name) for name in options.metrics)]
        return able == [task]
    return options.training is not None and task in DECLARED["training"].tasks


_DECIDED = 2  # distinct true values that may be the classes of scores


def incomplete(rows: pl.LazyFrame, names: Iterable[str]) -> bool:
    """Test for a missing value in columns: null, NaN, or a text that is no number."""
    number = pl.col(*names).cast(pl.Float64, strict=False).fill_nan(None)
    return bool(rows.select(pl.any_horizontal(number.is_null().any())).collect().item())


def beyond_classes(ours: pl.Series, theirs: pl.Series, options: Options) -> bool:
    """Return whether numbers are neither classes nor scores, though the true ones are whole.

    Predictions have fractions and are not all within [0, 1], and there are more than two true
    values.
    """
    return (
        options.positive_label is None
        and ours.dtype.is_numeric()
        and theirs.dtype.is_numeric()
        and fractional(ours)
        and not fractional(theirs)
        and not bool(ours.is_between(0, 1).all())
        and theirs.n_unique() > _DECIDED
    )


def numbers(values: pl.Series) -> bool:
    """Return whether values are numbers, or rows of several."""
    if not isinstance(values.dtype, (pl.Array, pl.List)):
        return values.dtype.is_numeric()
    inner = values.dtype.inner
    return isinstance(inner, pl.DataType) and inner.is_numeric()


def several_targets(
    ours: pl.Series, theirs: pl.Series, names: pl.Series | None, pair: tuple[str, str]
) -> pl.DataFrame:
    """Convert rows of several numbers to a table with one row per datum and target."""
    sides = [_matrix(one) for one in (ours, theirs)]
    shapes = [side.shape for side in sides]
    if shapes[0] != shapes[1]:
        raise InputError(
            f"the predictions have the shape {shapes[0]}, the ground truths {shapes[1]}. Give both"
            " one row per datum and one column per target.",
            code="shapes_differ",
            shapes=shapes,
        )
    rows, wide = shapes[0]
    if names is not None and len(names) != wide:
        raise InputError(
            f"the arrays have {count_of(wide, 'target')} a datum, and labels names {len(names):,}."
            " Name each column's target, in their order.",
            code="lengths_differ",
            option="labels",
            count=len(names),
            of=wide,
        )
    digits = len(str(wide - 1))
    keys = [f"{i:0{digits}d}" for i in range(wide)] if names is None else names.to_list()
    key = pl.Series("label_key", keys, dtype=pl.String)
    return pl.DataFrame(
        {
            "datum_id": np.repeat(np.arange(rows), wide),
            "label_key": key.gather(np.tile(np.arange(wide), rows)),
            pair[0]: sides[0].ravel(),
            pair[1]: sides[1].ravel(),
        }
    )


def _matrix(values: pl.Series) -> np.ndarray[Any, Any]:
    """Rows of as many numbers each as an array of two dimensions; of single ones a column."""
    if not values.dtype.is_nested():
        return values.cast(pl.Float64).to_numpy().reshape(-1, 1)
    lengths = values.list.len() if isinstance(values.dtype, pl.List) else values.arr.len()
    if lengths.null_count() or lengths.n_unique() > 1:
        raise InputError(
            "rows have unlike many numbers: give each datum a number a target.",
            code="lengths_differ",
        )
    flat = values.explode(empty_as_null=False).cast(pl.Float64).to_numpy()
    return flat.reshape(len(values), width_of(values))


def width_of(rows: pl.Series) -> int:
    """Return the number of values per row, if all rows have as many; 0 of no lists."""
    if isinstance(rows.dtype, pl.Array):
        return rows.dtype.size
    return len(rows[0]) if len(rows) else 0


# Accepted dtypes per kind of column, and conversions to the canonical ones.

_INTEGERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)
TEXTS = (pl.String, pl.Categorical, pl.Enum)


def canonical_dtype(column: Column, dtype: pl.DataType) -> pl.DataType | None:
    """Return the canonical dtype of a column, or None if the given dtype is not accepted.

    An all-null column (dtype Null) is accepted for every kind; nulls are checked later. Flags and
    labels stay numeric until their values are checked.
    """
    if dtype == pl.Boolean and column.booleans:
        return pl.Int64()
    if dtype == pl.Null:
        return KINDS[column.kind].default
    if column.single and dtype == pl.Float32:
        return dtype
    return KINDS[column.kind].accepts(dtype)


def foreign(dtype: pl.DataType) -> bool:
    """Return whether a dtype is another library's, such as periods and intervals of pandas."""
    return isinstance(dtype, getattr(pl, "BaseExtension", ()))


def element(dtype: pl.List | pl.Array) -> pl.DataType:
    """The dtype of the elements of lists or arrays."""
    return dtype.inner if isinstance(dtype.inner, pl.DataType) else dtype.inner()


def widened(dtype: pl.DataType) -> pl.DataType:
    """Return the dtype with floats of 16 bits, also in lists and arrays, as those of 32."""
    if isinstance(dtype, pl.Array):
        return pl.Array(widened(element(dtype)), dtype.size)
    if isinstance(dtype, pl.List):
        return pl.List(widened(element(dtype)))
    return pl.Float32() if dtype == pl.Float16 else dtype


def numbers_within(dtype: pl.DataType) -> int:
    """Return the number of list levels around numbers; 0 for other dtypes."""
    depth, inner = within(dtype)
    return depth if inner.is_numeric() or inner == pl.Null else 0


def within(dtype: pl.DataType) -> tuple[int, pl.DataType]:
    """Return the number of list or array levels, and the inner dtype."""
    depth = 0
    while isinstance(dtype, (pl.List, pl.Array)):
        depth += 1
        dtype = element(dtype)
    return depth, dtype


def _mask(dtype: pl.DataType) -> pl.DataType | None:
    """Structs of a run-length mask, or rows of pixels."""
    if isinstance(dtype, pl.Struct):
        names = {field.name for field in dtype.fields}
        return dtype if "size" in names and len(names) > 1 else None
    depth, inner = within(dtype)
    pixels = inner.is_numeric() or inner in (pl.Null, pl.Boolean)
    return dtype if depth == 2 and pixels else None


def _vector(dtype: pl.DataType) -> pl.DataType | None:
    """Lists or arrays of floats; single precision stays as it is."""
    if not isinstance(dtype, (pl.List, pl.Array)):
        return None
    inner = element(dtype)
    if inner.is_nested() or not (inner.is_numeric() or inner == pl.Null):
        return None
    floats = inner if inner in (pl.Float32, pl.Float64) else pl.Float64()
    return pl.Array(floats, dtype.shape[0]) if isinstance(dtype, pl.Array) else pl.List(floats)


def _vectors(dtype: pl.DataType) -> pl.DataType | None:
    if isinstance(dtype, pl.Array) and len(dtype.shape) > 1:
        dtype = pl.List(pl.Array(within(dtype)[1], dtype.shape[1:]))
    inner = dtype.inner if isinstance(dtype, pl.List) else None
    if isinstance(inner, (pl.List, pl.Array)):
        vector = _vector(inner)
        return None if vector is None else pl.List(vector)
    return _vector(dtype)


def _label(dtype: pl.DataType) -> pl.DataType | None:
    if isinstance(dtype, (pl.List, pl.Array)):
        inner = element(dtype)
        if isinstance(dtype, pl.Array) and len(dtype.shape) > 1:
            return None
        if inner.is_nested():
            return None
        label = pl.String() if inner == pl.Null else _label(inner)
        return pl.List(label) if label is not None else None
    return dtype if dtype == pl.Boolean or dtype.is_float() or dtype in _INTEGERS else _id(dtype)


def _items(dtype: pl.DataType) -> pl.DataType | None:
    if not isinstance(dtype, (pl.List, pl.Array)):
        return None
    inner = element(dtype)
    item = pl.String() if inner == pl.Null else _id(inner)
    return pl.List(item) if item is not None else None


def _raster(dtype: pl.DataType) -> pl.DataType | None:
    """Paths, or pixels: arrays of whole numbers as objects or two lists deep."""
    if isinstance(dtype, TEXTS):
        return pl.String()
    if dtype == pl.Object:
        return dtype
    depth, inner = within(dtype)
    integral = inner == pl.Boolean or inner.is_integer()
    return dtype if depth == 2 and integral else None


def _id(dtype: pl.DataType) -> pl.DataType | None:
    if isinstance(dtype, TEXTS):
        return pl.String()
    if dtype == pl.UInt64:
        return pl.UInt64()
    if dtype == pl.Int128:  # integers beyond 64 bits in CSV: names, by their digits
        return pl.String()
    return pl.Int64() if dtype in _INTEGERS else None


def cast(expr: pl.Expr, dtype: pl.DataType, target: pl.DataType) -> pl.Expr:
    """Cast an expression if the dtype differs; a text becomes a list, a struct JSON."""
    if dtype == pl.Struct and target == pl.String:
        return expr.struct.json_encode()
    lists = isinstance(dtype, (pl.List, pl.Array)) and element(dtype) == pl.Struct
    if lists and target == _LIST_OF_TEXTS:
        expr = expr.arr.to_list() if isinstance(dtype, pl.Array) else expr
        call = pl.element().struct
        as_text = dtype == CALLS_AS_TEXT
        return expr.list.eval(call.field(JSON_TEXT) if as_text else call.json_encode())
    if isinstance(target, pl.List) and not dtype.is_nested():
        one = expr.cast(target.inner)
        return pl.when(one.is_not_null()).then(pl.concat_list(one))
    return expr if dtype == target else expr.cast(target)


def kind_of(dtype: pl.DataType) -> str:
    """``integers``, ``strings`` or ``booleans``, for sentences about ids and labels."""
    dtype = inner_of(dtype)
    return {pl.String: "strings", pl.Boolean: "booleans"}.get(dtype.base_type(), "integers")


def inner_of(dtype: pl.DataType) -> pl.DataType:
    return element(dtype) if isinstance(dtype, pl.List) else dtype


def common(column_dtypes: Sequence[pl.DataType]) -> pl.DataType:
    """Return the common dtype of ids or labels: strings, booleans if all are, or integers."""
    if any(dtype == pl.String for dtype in column_dtypes):
        return pl.String()
    if len(set(column_dtypes)) == 1:
        return column_dtypes[0]
    return pl.UInt64() if any(dtype == pl.UInt64 for dtype in column_dtypes) else pl.Int64()


def like(dtype: pl.DataType, target: pl.DataType) -> pl.DataType:
    """Return the target dtype, in a list if the given dtype is a list."""
    return pl.List(target) if isinstance(dtype, pl.List) else target


class Kind(NamedTuple):
    """Kind of column.

    Attributes:
        default: dtype of columns without values.
        words: its values, for messages.
        way_out: remedy for another dtype.
        accepts: returns the canonical dtype of another one; None if it cannot serve.
    """

    default: pl.DataType
    words: str
    way_out: str
    accepts: Callable[[pl.DataType], pl.DataType | None]


def _text(dtype: pl.DataType) -> pl.DataType | None:
    return pl.String() if isinstance(dtype, TEXTS) or dtype.is_integer() else None


def _texts(dtype: pl.DataType) -> pl.DataType | None:
    if not isinstance(dtype, (pl.List, pl.Array)):
        return _text(dtype)
    inner = element(dtype)
    return pl.List(pl.String()) if inner == pl.Null or _text(inner) is not None else None


JSON_TEXT = "__evalengine_json"
"""Only field of structs that contain a tool call as JSON text."""
CALLS_AS_TEXT = pl.List(pl.Struct({JSON_TEXT: pl.String}))
_NAMES_OF_TOOLS = {*TOOL_FIELDS[1:], "function", "tool_calls", "function_call", JSON_TEXT}


def calls_in(schema: Mapping[str, pl.DataType]) -> list[str]:
    """Return the columns of lists of tool calls: structs with a tool's name, or of blocks."""
    columns = []
    for name, dtype in schema.items():
        if not isinstance(dtype, (pl.List, pl.Array)):
            continue
        if isinstance(inner := dtype.inner, pl.Struct):
            fields = {field.name: field.dtype for field in inner.fields}
            if _of_calls(fields.keys(), blocks=isinstance(fields.get("content"), pl.List)):
                columns.append(name)
    return columns


def are_calls(objects: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether objects are tool calls, or messages with some, as :func:`calls_in` does."""
    fields = {key for one in objects for key in one}
    return _of_calls(fields, blocks=any(isinstance(one.get("content"), list) for one in objects))


def _of_calls(fields: Set[str], *, blocks: bool) -> bool:
    named = TOOL_FIELDS[0] in fields and not fields.isdisjoint(ARGUMENT_FIELDS)
    return named or ("role" in fields and blocks) or not fields.isdisjoint(_NAMES_OF_TOOLS)


def _calls(dtype: pl.DataType) -> pl.DataType | None:
    inner = element(dtype) if isinstance(dtype, (pl.List, pl.Array)) else dtype
    texts = isinstance(inner, TEXTS) or inner in (pl.Struct, pl.Null)
    return _LIST_OF_TEXTS if texts and dtype != pl.Struct else None


def _number(dtype: pl.DataType) -> pl.DataType | None:
    return pl.Float64() if dtype.is_numeric() else None


_LIST_OF_TEXTS, _LIST_OF_NUMBERS = pl.List(pl.String()), pl.List(pl.Float64())
KINDS = {
    "id": Kind(
        pl.String(), "integers or strings", "Cast it, e.g. to Int64 or String, before scoring.", _id
    ),
    "label": Kind(
        pl.String(),
        "integers, strings or booleans, or lists of those",
        "Cast it, e.g. to Int64, String or Boolean, before scoring.",
        _label,
    ),
    "items": Kind(
        _LIST_OF_TEXTS,
        "lists of integers or strings",
        "Give one list per row, e.g. by group_by('query_id').agg('doc_id').",
        _items,
    ),
    "text": Kind(pl.String(), "strings", "Cast it to String before scoring.", _text),
    "calls": Kind(
        _LIST_OF_TEXTS, "lists of structs, or of strings", "Give each row a list.", _calls
    ),
    "json": Kind(
        pl.String(),
        "structs or JSON as text",
        "Give each row a struct, or a JSON object as text.",
        lambda one: pl.String() if isinstance(one, (*TEXTS, pl.Struct)) else None,
    ),
    "raster": Kind(
        pl.String(),
        "paths of rasters, or rows of pixels: whole numbers in lists or arrays, two deep",
        "Give a path a row, or pl.Array(pl.UInt8, (height, width)).",
        _raster,
    ),
    "text_list": Kind(
        _LIST_OF_TEXTS,
        "strings or lists of strings",
        "Give one string, or one list of strings, a row.",
        lambda one: (
            _LIST_OF_TEXTS if isinstance(one, TEXTS) or _items(one) == _LIST_OF_TEXTS else None
        ),
    ),
    "verdict": Kind(
        pl.String(),
        "strings, numbers or booleans",
        "Give one word a row.",
        lambda one: (
            pl.String() if isinstance(one, TEXTS) or one.is_numeric() or one == pl.Boolean else None
        ),
    ),
    "texts": Kind(
        pl.String(),
        "strings, or lists of strings",
        "Cast it to String or List(String) before scoring.",
        _texts,
    ),
    "vector": Kind(
        _LIST_OF_NUMBERS,
        "lists or arrays of numbers",
        "Give each row its vector as a list or array of floats.",
        _vector,
    ),
    "vectors": Kind(
        _LIST_OF_NUMBERS,
        "lists or arrays of numbers, or lists of those",
        "Give each row its vector, or a list of vectors, of floats.",
        _vectors,
    ),
    "value": Kind(
        pl.Float64(),
        "numbers or booleans",
        "Cast it to Float64 before scoring.",
        lambda one: one if one == pl.Boolean else _number(one),
    ),
    "number": Kind(pl.Float64(), "numbers", "Cast it to Float64 before scoring.", _number),
    "any": Kind(
        pl.String(),
        "plain values",
        "Give numbers, strings, dates or times.",
        lambda one: None if one.is_nested() or one == pl.Object or foreign(one) else one,
    ),
    "whole": Kind(
        pl.Int64(),
        "whole numbers",
        "Cast it to Int64 before scoring.",
        # pandas makes floats from integers with gaps
        lambda one: pl.Int64() if one.is_integer() else pl.Float64() if one.is_float() else None,
    ),
    "flag": Kind(
        pl.Boolean(),
        "booleans, or 0 and 1",
        "Write true and false, or 0 and 1 as numbers.",
        lambda one: one if one == pl.Boolean or one.is_numeric() else None,
    ),
    "list": Kind(
        _LIST_OF_NUMBERS,
        "lists of four numbers",
        "Give lists or arrays of numbers, or four columns xmin, ymin, xmax, ymax.",
        lambda one: None,
    ),
    "polygon": Kind(
        pl.List(_LIST_OF_NUMBERS),
        "lists of rings, WKB, or strings of WKT or GeoJSON",
        "Give each row a list of rings [[x, y, x, y, ...], ...], or WKB.",
        lambda one: one if one in (pl.Binary, pl.String) or numbers_within(one) else None,
    ),
    "mask": Kind(
        pl.Struct({"size": pl.List(pl.Int64()), "counts": pl.String()}),
        "structs of size and counts, or rows of pixels",
        "Give each row {'size': [height, width], 'counts': ...}, as pycocotools encodes it.",
        _mask,
    ),
    "keypoints": Kind(
        _LIST_OF_NUMBERS,
        "lists of numbers, or of points",
        "Give each row one list [x, y, visibility, x, y, visibility, ...].",
        lambda one: _LIST_OF_NUMBERS if numbers_within(one) in (1, 2) else None,
    ),
}
"""Kinds of columns by name."""
_NUMBERS_IN_TEXT = "pl.List(pl.Float64)"
_AS_JSON = {"items": "pl.List(pl.String)"} | dict.fromkeys(
    ("list", "vector", "vectors", "keypoints"), _NUMBERS_IN_TEXT
)
"""Kind of column -> type of its lists, written as JSON in texts."""
_UNSIGNED = getattr(pl, "UInt128", pl.Int128)  # of later versions


def wrong_type(column: Column, original: str, dtype: pl.DataType) -> str:
    """The sentence about a column whose dtype cannot serve."""
    seen = f" (from {original!r})" if original != column.name else ""
    advice = column.way_out or KINDS[column.kind].way_out
    if column.single and dtype == pl.Boolean:
        advice = "True and false are not scores; predicted labels need none."
    if column.single and dtype.is_nested():
        advice = f"Give each label a separate column and name these in {option('score_columns')}."
    if not column.way_out and column.kind in _AS_JSON and isinstance(dtype, TEXTS):
        json = "JSON (no single quotes)" if column.kind == "items" else "JSON"
        boxes = ", or four columns xmin, ymin, xmax, ymax" if column.kind == "list" else ""
        advice = (
            f"Text such as [1, 2] in a CSV is no list: give JSON Lines or Parquet{boxes}. Polars"
            f" decodes texts of {json}: .str.json_decode({_AS_JSON[column.kind]})."
        )
    if column.kind == "id" and dtype.is_float():
        advice = (
            "Ids and labels stay as they are, so that 1.0 never matches 1 by accident: write whole"
            " numbers as integers (in pandas a missing value turns them into floats). Ids such as"
            " 12e4567 are numbers in a CSV: read it with polars.read_csv(..., infer_schema=False),"
            " and give the table, or give Parquet."
        )
    expected = KINDS[column.kind].words
    if dtype in (pl.Int128, _UNSIGNED):
        expected, advice = "numbers of at most 64 bits", "Cast it to Int64 or UInt64 if they fit"
        advice += ", else to String." if column.kind in ("id", "label") else "."
    if column.kind in ("id", "label") and (dtype.is_float() or dtype.is_decimal()):
        advice += or_measured([original])
    return f"column {column.name!r}{seen} has dtype {dtype}; it must contain {expected}. {advice}"


def fit_integers(frame: pl.DataFrame) -> pl.DataFrame:
    """Cast UInt64 ids that fit to Int64, so that both sides have the same dtype."""
    if not {pl.UInt64(), pl.List(pl.UInt64())} & {*frame.dtypes}:
        return frame
    small = []
    for series in frame.iter_columns():
        if inner_of(series.dtype) == pl.UInt64:
            nested = isinstance(series.dtype, pl.List)
            top = series.list.max().max() if nested else series.max()
            if top is None or (isinstance(top, int) and top < 2**63):
                small.append(series.cast(like(series.dtype, pl.Int64())))
    return frame.with_columns(small) if small else frame


def stacked(frames: Sequence[pl.DataFrame], *, rechunk: bool = True) -> pl.DataFrame:
    """Concatenate rows; integers beyond Int64 in one frame make their column unsigned in all."""
    large = {name for one in frames for name, dtype in one.schema.items() if dtype == pl.UInt64}
    if large:
        unsigned = pl.col(sorted(large)).cast(pl.UInt64)
        frames = [frame.with_columns(unsigned) for frame in frames]
    return pl.concat(frames, rechunk=rechunk, how="vertical_relaxed")


# Times, as comparable values.

_ZONE = r"(?:Z|[+-]\d\d:?\d\d)$"
_ISO = rf"^\d{{4}}-\d\d(?:-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:{_ZONE[:-1]})?)?)?$"
_ZONED = rf":\d\d(?:\.\d+)?{_ZONE}"
_FORMAT = "%Y-%m-%d %H:%M:%S%.f"
_TIME = pl.Datetime("us")


def instants(texts: pl.Series, zone: str | None) -> pl.Series:
    """Parse ISO texts with an offset, or those without if no zone is given; null for others.

    Null also for years that nanoseconds cannot represent, which would wrap around.
    """
    zoned = texts.str.contains(_ZONED)
    fits = texts.str.slice(0, 4).is_between("1678", "2261")
    parsed = moments(texts.set((zoned if zone is None else ~zoned) | ~fits, None), "ns")
    if zone is None:
        return parsed
    return parsed.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)


def moments(times: pl.Series, unit: Literal["us", "ns"] = "us") -> pl.Series:
    """Convert times to a comparable dtype: ISO text is parsed, null if invalid.

    Args:
        unit: of parsed text.
    """
    if isinstance(times.dtype, TEXTS):
        text = times.cast(pl.String)
        text = text.set(~text.str.contains(_ISO), None).str.replace("T", " ")
        zoned = text.str.contains(_ZONED)
        text = text + text.str.len_bytes().replace_strict(
            {7: "-01 00:00:00", 10: " 00:00:00", 16: ":00"}, default="", return_dtype=pl.String
        )
        if not zoned.any():
            return text.str.to_datetime(_FORMAT, strict=False, time_unit=unit)
        text = text.str.replace("Z$", "+00:00").str.replace(r"( \d\d:\d\d)([+-])", "$1:00$2")
        aware = text.str.to_datetime(f"{_FORMAT}%z", strict=False, time_unit=unit)
        return aware.dt.convert_time_zone("UTC")
    if times.dtype == pl.Date:
        return times.cast(_TIME)
    if isinstance(times.dtype, pl.Datetime):
        zone = None if times.dtype.time_zone is None else "UTC"
        return times.cast(pl.Datetime("us", zone))
    return times.cast(pl.Int64) if times.dtype.is_integer() else times
