"""Ways of writing ids and labels alike on both sides: ``id_format`` and ``label_format``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from evalengine.schemas.contract import PREDICTIONS, Column, Table
from evalengine.schemas.errors import InputError, OptionError, unknown
from evalengine.schemas.wording import option

from . import dtypes
from .problems import count_of


class Form(NamedTuple):
    """One way of writing ids.

    Attributes:
        name: value of ``id_format``.
        write: strings to strings.
    """

    name: str
    differ: str
    write: Callable[[pl.Expr], pl.Expr]


_FOLDERS, _EXTENSION = r"^.*[/\\]", r"\.[A-Za-z][A-Za-z0-9]{0,4}$"
_ZEROS = r"^0+([0-9]+)$"


def _stem(ids: pl.Expr) -> pl.Expr:
    return ids.str.replace(_FOLDERS, "").str.replace(_EXTENSION, "")


def _last_number(ids: pl.Expr) -> pl.Expr:
    return pl.coalesce(ids.str.extract(r"([0-9]+)[^0-9]*$"), ids).str.replace(_ZEROS, "$1")


FORMS = {
    form.name: form
    for form in (
        Form("text", "type (integers and strings)", lambda ids: ids),
        Form("case", "letter case", lambda ids: ids.str.to_lowercase()),
        Form("blanks", "surrounding blanks", lambda ids: ids.str.strip_chars()),
        Form(
            "unicode",
            "Unicode form (composed or not, as file names of macOS)",
            lambda ids: ids.str.normalize("NFC"),
        ),
        Form("zeros", "leading zeros", lambda ids: ids.str.replace(_ZEROS, "$1")),
        Form("extension", "file extension", lambda ids: ids.str.replace(_EXTENSION, "")),
        Form("file", "folders", lambda ids: ids.str.replace(_FOLDERS, "")),
        Form("stem", "folders and file extension", _stem),
        Form("number", "everything but their last number", _last_number),
    )
}
_NUMBER = "number"
_STEP = re.compile(r"[+-][0-9]{1,9}")
_PREDICTED = ("predicted",)  # columns of one table that are the predictions'


def written(ids: pl.Expr, forms: Sequence[str]) -> pl.Expr:
    """Rewrite string ids in forms, one after the other.

    Args:
        forms: names of ``FORMS``, or regular expressions whose first group is the id; ids that do
            not match are unchanged.
    """
    for form in forms:
        known = FORMS.get(form)
        ids = known.write(ids) if known else pl.coalesce(ids.str.extract(form), ids)
    return ids


def stepped(ids: pl.Expr, step: int) -> pl.Expr:
    """Texts of whole numbers with a step added to them; other texts as they are."""
    moved = ids.cast(pl.Int64, strict=False) + step
    return pl.coalesce(moved.cast(pl.String), ids)


def check_forms(name: str, forms: Sequence[str] | None) -> None:
    """Refuse forms that do not exist.

    Raises:
        OptionError: neither a known name, nor a step such as +1, nor a regular expression.
    """
    for form in forms or ():
        if form in FORMS or _STEP.fullmatch(form):
            continue
        if "(" not in form:
            after = (
                " Or a step that is added to the predictions' (+1), or a regular expression whose"
                " first group is what counts: 'frame_([0-9]+)'."
            )
            raise unknown(name, form, FORMS, after=after)
        try:
            pl.select(pl.lit("").str.extract(form))
        except pl.exceptions.PolarsError as error:
            why = str(error).split("\n\n")[0]
            raise OptionError(
                f"{name}: {form!r} is not a regular expression that can be read: {why}."
            ) from None


def steps_of(forms: Sequence[str] | None) -> int:
    """Return the sum of the steps among forms, added to numbers of the predictions."""
    return sum(int(form) for form in forms or () if _STEP.fullmatch(form))


def formed(
    values: pl.Expr, dtype: pl.DataType, table: Table, column: Column, forms: Sequence[str]
) -> pl.Expr:
    """Apply ``id_format`` or ``label_format`` to ids or labels.

    Args:
        dtype: of ``values``; forms apply to strings and integers, also in lists.

    Raises:
        InputError: a step for values that are neither integers nor texts that end in a number.
    """
    if isinstance(dtype, pl.List):
        inner = dtypes.inner_of(dtype)
        return values.list.eval(formed(pl.element(), inner, table, column, forms))
    predicted = table.side == PREDICTIONS or column.name in _PREDICTED
    for i, form in enumerate(forms):
        if not _STEP.fullmatch(form):
            values = written(values.cast(pl.String), [form])
            dtype = pl.String()
        elif _NUMBER in forms[:i]:
            values = stepped(values, int(form)) if predicted else values
        elif not dtype.is_integer():
            raise InputError(
                f"{form} is added to integers, and the {table.side.replace('_', ' ')} have"
                f" {dtype} in {column.name}. Cast it, or leave the step out."
            )
        elif predicted:
            values = values + int(form)
    return values


def refuse_merged(
    rows: pl.LazyFrame, exprs: Mapping[str, pl.Expr], table: Table, forms: Sequence[str] | None
) -> None:
    """Refuse forms that merge distinct ids.

    Args:
        exprs: canonical name to expression; ids from :func:`formed`.

    Raises:
        InputError: names the first such ids.
    """
    if not forms or table.datum not in exprs:
        return
    new = exprs[table.datum]
    pairs = rows.select(old=new.meta.root_names()[0], new=new).drop_nulls().unique()
    met = pairs.filter(pl.col("new").is_duplicated()).sort("new", "old").collect()
    if met.height:
        n = met["new"].n_unique()
        first = met.filter(pl.col("new") == met["new"][0])["old"].head(3).to_list()
        raise InputError(
            f"{table.side.replace('_', ' ')}: {option('id_format', list(forms))} makes one"
            f" {table.datum} of several, {count_of(n, 'time')}, first {met['new'][0]!r} of"
            f" {', '.join(map(repr, first))}: these would be scored as one. Choose a form"
            " that keeps them apart."
        )
