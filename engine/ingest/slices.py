"""Slices: groups of datums, from columns that are constant within a datum."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

import msgspec
import numpy as np
import polars as pl

from evalengine.schemas.contract import DATUMS, GROUND_TRUTHS, LABELS, PREDICTIONS, ROW, TABLE
from evalengine.schemas.errors import InputError, did_you_mean
from evalengine.schemas.wording import option

from ..schemas.arrays import Array
from . import dtypes
from .ids import DatumIds
from .problems import DatumNouns, Note, PartRefused, listing, note_of
from .recognise import Side

_LOOKED_AT = (DATUMS, TABLE, GROUND_TRUTHS, PREDICTIONS)


class SlicePlan(msgspec.Struct):
    """Origin of each slice column.

    Attributes:
        by: the entries as given, in order, distinct.
        parts: entry to its columns; several if crossed.
        homes: column name to the tables it is read from; the first with the datum decides.
        extra: table to the expressions to read in addition to canonical columns.
    """

    by: tuple[str, ...] = ()
    parts: dict[str, list[str]] = msgspec.field(default_factory=dict)
    homes: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    extra: dict[str, list[pl.Expr]] = msgspec.field(default_factory=dict)
    nouns: DatumNouns = DatumNouns()


_STAR = re.compile(r"(?<!\\)\*")


def split(entry: str, names: Container[str]) -> list[str]:
    r"""Split ``"weather*camera"`` into its two columns.

    A column with exactly this name takes precedence, including stars and blanks. In a cross, blanks
    around names are stripped unless a column has them, and ``\*`` is a literal star.
    """
    if entry in names:
        return [entry]
    pieces = [piece.replace(r"\*", "*") for piece in _STAR.split(entry)]
    return [piece if piece in names else piece.strip() for piece in pieces]


def plan_slices(
    by: tuple[str, ...], sides: Mapping[str, Side], nouns: DatumNouns, cluster: str | None = None
) -> SlicePlan:
    """Find every slice column: in the datums, the ground truths and the predictions."""
    entries = by if cluster is None else (*by, cluster)
    plan = SlicePlan(tuple(dict.fromkeys(entries)), nouns=nouns)
    names = {"datum_id", nouns.column}
    available = {
        name
        for role, side in sides.items()
        if role != LABELS
        for name in (*side.schema, *side.naming.exprs)
    }
    for entry in plan.by:
        option_name = "by" if entry in by else "cluster"
        plan.parts[entry] = split(entry, available)
        for piece in plan.parts[entry]:
            if piece in plan.homes:
                continue
            if piece in names and entry not in by:
                raise InputError(
                    f"cluster: {piece!r} is the {nouns.one} itself, which is resampled anyway: "
                    f"omit {option('cluster')}."
                )
            if piece in names:
                raise InputError(
                    f"by: {piece!r} is the {nouns.one} itself; to see each {nouns.one} by"
                    " itself, read per_datum, or copy the column under another name in"
                    f" {option('datums')} and slice by that."
                )
            plan.homes[piece] = _homes(piece, sides, entry, option_name)
            for role in plan.homes[piece]:
                if piece in sides[role].naming.exprs:
                    continue
                dtype, called = sides[role].schema[piece], role.replace("_", " ")
                if piece == ROW:
                    raise InputError(
                        f"{option_name}: rows are numbered here in a column named {piece!r}. Give"
                        f" the column of the {called} another name.",
                        code="reserved_name",
                        column=piece,
                    )
                if dtypes.foreign(dtype) or dtype.is_nested() or dtype in (pl.Binary, pl.Object):
                    raise InputError(
                        f"{option_name}: column {piece!r} of the {called} has dtype {dtype}; slices"
                        " and clusters need plain values (strings, integers, booleans, dates). Cast"
                        " it to String before scoring.",
                        code="wrong_dtype",
                        side=role,
                        column=piece,
                    )
                plan.extra.setdefault(role, []).append(pl.col(piece))
    return plan


def _homes(piece: str, sides: Mapping[str, Side], entry: str, option_name: str) -> tuple[str, ...]:
    homes = tuple(role for role in _LOOKED_AT if role in sides and sides[role].has([piece]))
    if homes:
        # A table of all datums is complete; either of the two sides may be incomplete.
        return homes[:1] if homes[0] == DATUMS else homes
    available = {name for role, side in sides.items() if role != LABELS for name in side.schema}
    within = f" (in {entry!r})" if entry != piece else ""
    looked = ", ".join(role.replace("_", " ") for role in _LOOKED_AT if role in sides)
    kind = "slice column" if option_name == "by" else "column"
    suggestion = did_you_mean(piece, available)
    raise InputError(
        f"{option_name}: no {kind} {piece!r}{within} in the {looked}.{suggestion}"
        f" Columns there: {', '.join(sorted(available)) or 'none'}.",
        code="column_missing",
        column=piece,
    )


def build_slices(
    plan: SlicePlan, frames: Mapping[str, pl.DataFrame], ids: DatumIds
) -> tuple[pl.DataFrame | None, list[Note]]:
    """Build one row per datum, one String column per entry of ``by``.

    Returns:
        datum_id and the slice columns, by ascending datum_id, null if a datum has no value; None
        without slices.
    """
    if not plan.by:
        return None, []
    roles = [role for role in _LOOKED_AT if any(role in homes for homes in plan.homes.values())]
    every = ids.values
    slices = pl.DataFrame({"datum_id": every})
    for role in roles:
        names = [name for name, homes in plan.homes.items() if role in homes]
        values = _per_datum(frames[role], names, ids.codes[role], len(every), role, plan.nouns)
        twice = {name: f"{name} {role}" for name in values.columns if name in slices.columns}
        slices = slices.hstack(values.rename(twice))
    for place, (name, homes) in enumerate(plan.homes.items()):
        if len(homes) > 1:
            slices = _agreed(slices, name, homes, plan.nouns, place)
    crossed = [
        _crossed([pl.col(f"__{piece}") for piece in plan.parts[entry]]).alias(entry)
        for entry in plan.by
    ]
    slices = slices.select("datum_id", *crossed)
    notes = []
    for entry in plan.by:
        without_value = slices.filter(pl.col(entry).is_null())["datum_id"]
        notes += _unsliced(
            len(without_value), (plan.nouns.one, plan.nouns.many), entry, without_value
        )
    return slices, notes


def slices_by_row(
    plan: SlicePlan, frames: Mapping[str, pl.DataFrame]
) -> tuple[pl.DataFrame | None, list[Note]]:
    """Build one row per row of a table whose rows are datums: without ids, joins or text.

    Returns:
        one column per entry of ``by`` in its dtype, crossed ones as String, null if a row has no
        value; None without slices.
    """
    if not plan.by:
        return None, []
    table = frames[TABLE]
    datum_columns: dict[str, pl.Series] = {}
    of_datums = [name for name, homes in plan.homes.items() if homes == (DATUMS,)]
    if of_datums:
        joined = table.select("datum_id").join(
            frames[DATUMS].select(
                "datum_id", *(pl.col(name).alias(f"__{name}") for name in of_datums)
            ),
            on="datum_id",
            how="left",
            maintain_order="left",
        )
        datum_columns = {name: joined[f"__{name}"] for name in of_datums}
    values = pl.DataFrame(
        {name: datum_columns[name] if name in datum_columns else table[name] for name in plan.homes}
    )
    columns: list[pl.Expr] = []
    for entry in plan.by:
        pieces = plan.parts[entry]
        if len(pieces) == 1:
            columns.append(pl.col(pieces[0]).alias(entry))
        else:
            columns.append(_crossed([_text(p, values.schema[p]) for p in pieces]).alias(entry))
    slices = values.select(columns)
    notes = []
    for entry in plan.by:
        if n := slices[entry].null_count():
            first = slices[entry].is_null().arg_true().head(5)
            lowest = table[ROW].gather(first) if ROW in table.columns else first
            notes += _unsliced(n, ("row (from 0)", "rows (from 0)"), entry, lowest)
    return slices, notes


def slice_text(values: pl.Series) -> pl.Series:
    """Format slice values as in ``slice_value``; for distinct values rather than rows."""
    return values.to_frame().select(_text(values.name, values.dtype)).to_series()


def _unsliced(n: int, words: tuple[str, str], entry: str, lowest: pl.Series) -> list[Note]:
    """Return a note on datums or rows without a slice value."""
    if not n:
        return []
    what = f"without a value of {entry!r}"
    return [note_of("datums_without_slice", n, (*words, what), lowest.head(5).to_list())]


def _agreed(
    slices: pl.DataFrame, name: str, homes: tuple[str, ...], nouns: DatumNouns, place: int
) -> pl.DataFrame:
    """One column from the two sides', which must not contradict each other."""
    first, second = f"__{name}", f"__{name} {homes[1]}"
    torn = slices.filter(pl.col(first) != pl.col(second))
    if torn.height:
        datum, one, other = torn.select("datum_id", first, second).row(0)
        raise PartRefused(
            (len(_LOOKED_AT), place),
            torn.height,
            datum,
            f"by: column {name!r} differs between the two sides for ",
            (nouns.one, nouns.many),
            f", the first is {datum!r} with"
            f" {one!r} in the {homes[0].replace('_', ' ')} and {other!r} in the {homes[1]}. Give"
            f" one value per {nouns.one}, e.g. in {option('datums')}.",
            "sides_differ",
            column=name,
        )
    return slices.with_columns(pl.coalesce(first, second).alias(first))


def _crossed(columns: list[pl.Expr]) -> pl.Expr:
    """Values joined by ``*``, so that none merge: of a value, ``*`` becomes ``\\*``, ``\\`` two."""
    if len(columns) == 1:
        return columns[0]
    texts = [
        column.str.replace_all("\\", r"\\", literal=True).str.replace_all("*", r"\*", literal=True)
        for column in columns
    ]
    return pl.concat_str(texts, separator="*")


def _text(name: str, dtype: pl.DataType) -> pl.Expr:
    """A slice value as text; whole numbers without a fraction, whatever their dtype."""
    column = pl.col(name)
    if dtype.is_float():
        integral = (column == column.round()).all()
        return (
            pl.when(integral)
            .then(column.cast(pl.Int64, strict=False).cast(pl.String))
            .otherwise(column.cast(pl.String))
        )
    if isinstance(dtype, pl.Duration):
        return column.dt.to_string("polars")  # 1d 5s
    return column.cast(pl.String)


def _per_datum(
    frame: pl.DataFrame, names: list[str], code: Array, n: int, role: str, nouns: DatumNouns
) -> pl.DataFrame:
    """Return values per datum as text, null if a datum has no row."""
    values = frame.select(
        (_text(name, frame.schema[name]) if frame.schema[name].is_float() else pl.col(name)).alias(
            f"__{name}"
        )
        for name in names
    )
    first = np.full(n, -1, np.int32)
    first[code[::-1]] = np.arange(code.size - 1, -1, -1, dtype=np.int32)
    if np.count_nonzero(first >= 0) < code.size:  # some datums have several rows
        of_first = values.select(pl.all().gather(first[code]))
        if any(not column.equals(of_first[column.name]) for column in values):
            texts = [frame["datum_id"], *([frame[ROW]] if ROW in frame.columns else [])]
            texts += [values.select(_text(one, kind))[one] for one, kind in values.schema.items()]
            _refuse_varying(pl.DataFrame(texts), names, role, nouns)
    at = pl.Series(first)
    if n and first.min() < 0:
        at = at.set(at < 0, None)
    return values.select(pl.all().gather(at)).select(
        _text(name, dtype) for name, dtype in values.schema.items()
    )


_OF_LABELS = {"label_value": "; numbers of each label are there without slices"}


def _refuse_varying(values: pl.DataFrame, names: list[str], role: str, nouns: DatumNouns) -> None:
    """Refuse columns with several values in a datum; in a part rows bear the numbers they have."""
    if ROW not in values.columns:
        values = values.with_row_index(ROW)
    for place, name in enumerate(names):
        several = (
            values.group_by("datum_id", maintain_order=True)
            .agg(pl.col(f"__{name}").unique(maintain_order=True), pl.col(ROW).first())
            .filter(pl.col(f"__{name}").list.len() > 1)
        )
        if several.height:
            datum, distinct, row = several.row(0)
            raise PartRefused(
                (_LOOKED_AT.index(role), place),
                several.height,
                row,
                f"by: column {name!r} of the {role.replace('_', ' ')} is not constant within a"
                f" {nouns.one}: ",
                (f"{nouns.one} has", f"{nouns.many} have"),
                f" several values, the first is {datum!r} with"
                f" {listing(distinct, most=2)}. A slice is a group of {nouns.many}; give one value"
                f" per {nouns.one}, e.g. in {option('datums')}{_OF_LABELS.get(name, '')}.",
                "varies_within_datum",
                column=name,
            )
