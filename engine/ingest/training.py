"""Option ``training``: step sizes of the training series, for scaling errors."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import polars as pl

from evalengine.schemas.contract import PREDICTIONS, TRAINING, Table
from evalengine.schemas.errors import InputError
from evalengine.schemas.option_values import TableObject
from evalengine.schemas.options import Options
from evalengine.schemas.tables import contracts
from evalengine.schemas.wording import option

from ..schemas.arrays import Array
from . import dtypes
from .dtypes import TEXTS, moments
from .files import Source
from .infer import recognise
from .problems import Note, Problem, count_of, listing, note_of, refuse
from .recognise import Finder, Naming, Side
from .sources.tables import open_source, schema_of

_BY = ("series", "label_key")
_UNEVEN = 0.1  # difference of a season's length from the usual, as of years


class Steps(msgspec.Struct, frozen=True):
    """Steps of the series of a training table.

    Attributes:
        rows: series, label_key and time, if present, and target.
        keys: of each series, from :func:`key_of`.
        code: int64 [n], index of the series of each step.
        step: float64 [n].
        many: int64 [series], number of steps.
    """

    rows: pl.DataFrame
    by: tuple[str, ...]
    keys: pl.Series
    names: list[str]
    code: Array
    step: Array
    many: Array

    def mean(self, power: int) -> tuple[pl.Series, list[str]]:
        """Return the exact mean of a power of the steps per series, and the series with an
        overflow.

        0 if a series has no steps, null if the mean exceeds doubles.
        """
        from evalengine.kernels.sums import ExactSums

        size = np.zeros(self.many.size)
        np.maximum.at(size, self.code, np.abs(self.step))
        _, up = np.frexp(np.where(np.isfinite(size), size, 0))
        with np.errstate(under="ignore", over="ignore"):
            # The largest step of a series is about 1, so that its powers are, too.
            scaled = np.ldexp(np.abs(self.step), -up[self.code])
            scaled[~np.isfinite(scaled)] = 0
            total = ExactSums(self.many.size).add(scaled**power, self.code).rounded()
            mean = np.divide(total, self.many, out=np.zeros(total.size), where=self.many > 0)
            mean = np.ldexp(mean, power * up)
        beyond = ~np.isfinite(size) | ~np.isfinite(mean)
        beyond |= (size > 0) & (mean < np.finfo(np.float64).tiny)
        mean[beyond] = np.nan
        return pl.Series(mean, nan_to_null=True), [self.names[i] for i in np.flatnonzero(beyond)]


def key_of(columns: Sequence[pl.Expr]) -> pl.Expr:
    """Combine the columns that identify series into one injective value."""
    if len(columns) == 1:
        return columns[0]
    first, second = (column.cast(pl.String) for column in columns)
    return pl.concat_str(first.str.len_bytes().cast(pl.String), first, second, separator="/")


def read_steps(contract: Table, options: Options, side: Naming) -> Steps:
    """Return the steps of a training table over one season.

    Args:
        side: receives the table's notes.
    """
    training = options.training
    thing = training.table if isinstance(training, TableObject) else training
    source = open_source(list(thing) if isinstance(thing, tuple) else thing)
    naming = recognise(schema_of(source), contract, options.columns)
    refuse(naming.problems, {TRAINING: source.description})
    rows = source.frame.select(list(naming.exprs.values())).collect()
    by = tuple(name for name in _BY if name in rows.columns)
    order = [*by, *(["time"] if "time" in rows.columns else [])]
    wrong = rows.select(
        pl.col("target").is_null() | ~pl.col("target").is_finite(),
        *(pl.col(name).is_null() for name in order),
    )
    _refuse_rows(wrong, source.description)
    if "time" not in order:
        message = (
            "training: without a column of time, values of a series follow each other as rows do"
        )
        side.notes.append(Note("training_in_row_order", f"{message}."))
    else:
        rows = _timed(rows, by, source.description)
    rows = rows.sort(order, maintain_order=True)
    if isinstance(training, TableObject):
        training.digest = digest_of(rows)
    season = options.seasonality or 1
    value = rows["target"].to_numpy()
    key = rows.select((key_of([pl.col(name) for name in by]) if by else pl.lit("")).alias("key"))
    keys = key["key"].unique(maintain_order=True)
    code = key["key"].rle_id().to_numpy().astype(np.int64) if by else np.zeros(value.size, np.int64)
    first = rows.select(by).unique(maintain_order=True) if by else pl.DataFrame()
    names = ["/".join(map(str, one)) for one in first.iter_rows()] if by else ["all rows"]
    ahead, back = slice(season, None), slice(None, max(rows.height - season, 0))
    same = code[ahead] == code[back]
    if season > 1 and "time" in order:
        _note_uneven(moments(rows["time"]), season, code, side)
    with np.errstate(over="ignore"):
        step = (value[ahead] - value[back])[same]
    many = np.bincount(code[ahead][same], minlength=len(keys))
    if short := [names[i] for i in np.flatnonzero(many == 0)]:
        what = f"of no more than {count_of(season, 'value')} in training, whose scale is 0"
        side.notes.append(note_of("short_training", len(short), ("series", "series", what), short))
    return Steps(rows, by, keys, names, code[ahead][same], step, many)


def _note_uneven(times: pl.Series, season: int, code: Array, side: Naming) -> None:
    """Note values that are not as far from the one a season before as most of their series are."""
    if times.has_nulls() or not (times.dtype.is_temporal() or times.dtype.is_integer()):
        return
    at = times.to_physical().cast(pl.Int64)
    rows = pl.DataFrame({"series": code, "ahead": at - at.shift(season)})
    of = rows.filter(pl.col("series") == pl.col("series").shift(season))
    usual = pl.col("ahead").median().over("series")
    n = of.filter((pl.col("ahead") - usual).abs() > _UNEVEN * usual).height
    if n:
        message = (
            f"training: {n:,} of {count_of(of.height, 'value')} are compared with one that is not"
            f" as long before as usual. Steps of {option('seasonality', season)} are rows, so that"
            " missing times shift the season: fill them first."
        )
        side.notes.append(Note("training_uneven", message, n, facts={"count": n, "of": of.height}))


def _timed(rows: pl.DataFrame, by: Sequence[str], description: str) -> pl.DataFrame:
    """Check that rows can be sorted by time, with one row per time and series."""
    several = rows.height > (rows.select(by).n_unique() if by else 1)
    if isinstance(rows.schema["time"], TEXTS) and several:
        text = rows["time"].cast(pl.String)
        times = moments(text)
        bad = text.filter(times.is_null())
        if len(bad):
            raise InputError(
                f"training ({description}): column 'time' is text, and {count_of(len(bad), 'row')}"
                f" of it no ISO time (2024-01-31, 2024-01-31 12:00:00), first"
                f" {listing(bad.head(3).to_list())}. Text has another order than time: cast it to a"
                " date or a number.",
                code="wrong_dtype",
                table="training",
                column="time",
                count=len(bad),
            )
        rows = rows.with_columns(times.alias("time"))
    keys = [*by, "time"]
    if (n := int(rows.select(pl.struct(keys).is_duplicated().sum()).item())) > 0:
        twice = rows.filter(pl.struct(keys).is_duplicated()).select(keys).row(0)
        keyed = "" if "label_key" in by else " If it has several targets, name them in label_key."
        raise InputError(
            f"training ({description}): {count_of(n, 'row')} of one series at one time,"
            f" first {listing(map(str, twice))}. Each time may appear once in a series; was a file"
            f" read twice?{keyed}",
            code="repeated_values",
            table="training",
            count=n,
        )
    return rows


def digest_of(rows: pl.DataFrame) -> str:
    """Return a digest of a table, independent of the order of its rows and its source."""
    digest = hashlib.sha256()
    for column in rows.select(sorted(rows.columns)).iter_columns():
        values = moments(column) if column.name == "time" else column
        values = column if values.has_nulls() else values
        digest.update(f"{column.name} {values.dtype} {len(values)}\n".encode())
        if values.dtype == pl.Float64:
            digest.update(values.to_numpy().tobytes())
        else:
            text = values.cast(pl.String).fill_null("")
            digest.update(text.str.len_bytes().to_numpy().tobytes())
            digest.update("".join(text).encode())
    return digest.hexdigest()


def scored_in_training(
    steps: Steps, own: Mapping[str, pl.Expr], frame: pl.LazyFrame, before: str
) -> list[Note]:
    """Note rows whose series and time occur in the training table."""
    names = [*steps.by, "time"]
    theirs = steps.rows.select(*steps.by, moments(steps.rows["time"]))
    ours = frame.select(own[name].alias(name) for name in names)
    dtype = theirs.schema["time"]

    def as_theirs(times: pl.Series) -> pl.Series:
        converted = moments(times)
        if converted.dtype == dtype:
            return converted
        return pl.Series(times.name, [None], dtype).new_from_index(0, len(times))  # no match

    ours = ours.with_columns(
        pl.col("time").map_batches(as_theirs, return_dtype=dtype, is_elementwise=True)
    )
    if ours.collect_schema() != theirs.schema:
        return []
    shared = ours.join(theirs.lazy(), on=names, how="semi").select(pl.len())
    n = int(shared.collect(engine="streaming").item())
    if not n:
        return []
    what = "of a series and time that training has: errors there are not those of forecasts"
    return [note_of("scored_in_training", n, ("row", "rows", what), (), before)]


def _refuse_rows(wrong: pl.DataFrame, description: str) -> None:
    n = int(wrong.select(pl.any_horizontal(pl.all()).sum()).item())
    if n or not wrong.height:
        first = wrong.with_row_index("row").filter(pl.any_horizontal(pl.exclude("row")))["row"]
        what = f"{count_of(n, 'row')} with a null or a value that is not finite, first (rows count"
        raise InputError(
            f"training ({description}): "
            + (f"{what} from 0): {listing(first.head(3).to_list())}." if n else "no rows.")
            + " Repair or remove them.",
            code="null_values",
            table="training",
        )


_NO_SERIES = "series that the training table does not have"
_NO_TARGETS = "series and targets that the training table does not have"
_BEYOND = (
    "series whose steps in training, or the squares of these, overflow float64 ({}: measure all "
    "values in another unit)"
)


def step_columns(task: str, sides: Mapping[str, Side], options: Options) -> None:
    """Add the columns derived from training, if metrics read them.

    Args:
        sides: contracts, expressions and notes are changed in place.
    """
    if TRAINING not in contracts(task):
        return
    derived = [
        (role, column)
        for role, side in sides.items()
        for column in side.table.optional
        if column.steps
    ]
    for role, column in derived:
        if column.name in sides[role].naming.exprs:
            raise InputError(
                f"{option('training')} and the column {column.name!r} of the "
                f"{role.replace('_', ' ')} give the same information: omit one of them.",
                code="options_conflict",
                option="training",
                column=column.name,
            )
    if not derived:
        return
    first = next(iter(sides.values())).naming
    steps = read_steps(contracts(task)[TRAINING], options, first)
    for role, column in derived:
        side = sides[role]
        columns, problems = _own(contracts(task)[role], side.schema, options, role)
        refuse([one for one in problems if one.column != "time"], {})
        key = _key(steps, columns, side.source, role)
        values, beyond = steps.mean(column.steps)
        expr = (
            pl.lit(values[0], pl.Float64)
            if key is None
            else key.replace_strict(steps.keys, values, default=None, return_dtype=pl.Float64)
        )
        side.naming.exprs[column.name] = expr.alias(column.name)
        flat = np.flatnonzero((values == 0).fill_null(value=False).to_numpy() & (steps.many > 0))
        if flat.size:
            names = {steps.keys[int(i)]: steps.names[i] for i in flat}
            side.naming.constant = pl.lit("") if key is None else key, names
        meaning = _NO_SERIES if "label_key" not in steps.by else _NO_TARGETS
        if beyond:
            meaning = f"{_BEYOND.format(listing(beyond))}, or {meaning}"
        new = msgspec.structs.replace(column, null_meaning=meaning)
        optional = [new if one.name == new.name else one for one in side.table.optional]
        side.table = msgspec.structs.replace(side.table, optional=tuple(optional))
    for role in (PREDICTIONS, derived[0][0]):
        if role not in sides:
            continue
        columns = _own(contracts(task)[role], sides[role].schema, options, role)[0]
        if {*steps.by, "time"} <= columns.keys() & {*steps.rows.columns}:
            exprs = {name: value for name, (value, _) in columns.items()}
            before = f"{role.replace('_', ' ')}: {'before where, ' if options.where else ''}"
            frame = sides[role].source.frame
            sides[role].naming.notes += scored_in_training(steps, exprs, frame, before)
            break


def _key(
    steps: Steps, columns: Mapping[str, tuple[pl.Expr, pl.DataType]], source: Source, role: str
) -> pl.Expr | None:
    """Return the key expression that assigns steps to rows; None if all rows have the same."""
    by = [name for name in ("series", "label_key") if name in columns]
    where = role.replace("_", " ")
    if ("series" in by) != ("series" in steps.by):
        names = ("training table", where)
        without, having = names if "series" in by else names[::-1]
        raise InputError(
            f"training: the {having} has a column of series and the {without} has none. Give both"
            f" the series, or name that column: {option('columns', {'mine': 'series'})}.",
            code="column_missing",
            column="series",
        )
    here = {name: columns[name][0] for name in by}
    if "label_key" in steps.by and "label_key" not in by:
        targets = steps.rows["label_key"].unique()
        if len(targets) > 1:
            raise InputError(
                f"training has {len(targets):,} targets (label_key), and the {where} no column of"
                " them: give it label_key, or give the rows of one target as training.",
                code="targets_differ",
                table="training",
                count=len(targets),
            )
        here["label_key"] = pl.lit(targets[0])
    if "label_key" in by and "label_key" not in steps.by:
        every = source.frame.select(columns["label_key"][0].n_unique())
        many = int(every.collect(engine="streaming").item())
        if many > 1:
            raise InputError(
                f"training has no column label_key, and the {where} has {many:,} targets: give each"
                " its own rows in training, with the column label_key.",
                code="targets_differ",
                table="training",
                count=many,
            )
    if "series" in by:
        ours, theirs = columns["series"][1], steps.rows.schema["series"]
        if (ours == pl.String) != (theirs == pl.String):
            raise InputError(
                f"training: its series are {dtypes.kind_of(theirs)}, those of the {where}"
                f" {dtypes.kind_of(ours)}. Cast one of them.",
                code="types_differ",
                table="training",
                column="series",
            )
    return None if not steps.by else key_of([here[name] for name in steps.by])


def _own(
    contract: Table, schema: Mapping[str, pl.DataType], options: Options, role: str
) -> tuple[dict[str, tuple[pl.Expr, pl.DataType]], list[Problem]]:
    """Return the columns of a table that assign steps to a row, and its time.

    Returns:
        value and dtype of the readable ones; problems of the others.
    """
    find = Finder(schema, role, options.columns)
    columns = {}
    for column in contract.columns:
        if column.name not in ("series", "label_key", "time") or not (mine := find.find(column)):
            continue
        dtype = dtypes.canonical_dtype(column, schema[mine])
        if dtype is None:
            find.refuse_dtype(column, mine)
        else:
            columns[column.name] = dtypes.cast(pl.col(mine), schema[mine], dtype), dtype
    unsure = {one.column for one in find.problems}
    return {name: one for name, one in columns.items() if name not in unsure}, find.problems
