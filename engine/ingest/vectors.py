"""Vectors of texts: numbers, all of them finite, and as many in every row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from evalengine.schemas.wording import option

from .problems import count_of

if TYPE_CHECKING:
    from .checks import Check

KINDS = ("vector", "vectors")
_SHOWN = 3


def check_vectors(check: Check, seen: Mapping[str, Any]) -> None:
    """Refuse vectors of different lengths, and nulls, NaN and infinity within them."""
    for column in check.columns:
        if column.kind in KINDS:
            _check(check, column.name, column.way_out, nulls=column.nullable)


def _check(check: Check, name: str, way: str, *, nulls: bool) -> None:
    vectors, row = _single(check.frame[name])
    wrong = vectors.is_null().to_numpy() & check.frame[name].is_not_null().to_numpy()[row]
    if wrong.any() and not nulls:
        _tell(
            check,
            "null_in_list",
            name,
            row[wrong],
            "with a null in the list",
            f"Fill or remove these, or write {option('nulls', 'skip')}.",
        )
    row = row[vectors.is_not_null().to_numpy()]
    vectors = vectors.drop_nulls()
    if not len(vectors):
        return
    length = _lengths(vectors)
    if length.min() != length.max() or length[0] == 0:
        counts = np.bincount(length)
        counts[0] = 0
        if not counts.any():
            way = way or "Embed the texts again."
            _tell(check, "wrong_length", name, row, "with vectors of no numbers", way)
            return
        usual = int(counts.argmax())
        wrong = length != usual
        others = ", ".join(map(str, np.unique(length[wrong])[:_SHOWN]))
        _tell(
            check,
            "wrong_length",
            name,
            row[wrong],
            f"with vectors of {others} numbers, where the others have {usual}",
            way or "All must come from one model.",
        )
    values = vectors.explode(empty_as_null=False, keep_nulls=True)
    array = values.to_numpy()  # null becomes NaN
    if not np.isfinite(array).all():
        of = np.repeat(row, length)
        _tell(
            check,
            "not_finite",
            name,
            of[~np.isfinite(array)],
            "with null, NaN or infinity in a vector",
            way or "Embed these texts again, or remove the rows.",
        )


def _single(values: pl.Series) -> tuple[pl.Series, np.ndarray[Any, Any]]:
    """Vectors one by one, and the row of each."""
    row = np.arange(len(values))
    inner = values.dtype.inner if isinstance(values.dtype, pl.List) else None
    if not isinstance(inner, (pl.List, pl.Array)):
        return values, row
    many = values.list.len().fill_null(0).to_numpy()
    return values.explode(empty_as_null=False, keep_nulls=False), np.repeat(row, many)


def _lengths(vectors: pl.Series) -> np.ndarray[Any, Any]:
    """Return the length of each vector; vectors are not null."""
    if isinstance(vectors.dtype, pl.Array):
        return np.full(len(vectors), vectors.dtype.shape[0])
    return vectors.list.len().to_numpy().astype(np.int64)


def _tell(
    check: Check, code: str, name: str, rows: np.ndarray[Any, Any], what: str, way: str
) -> None:
    """A problem with its rows; the vectors themselves would fill the page."""
    flags = np.zeros(check.frame.height, bool)
    flags[rows] = True
    shown = check.rows(pl.lit(pl.Series(flags)), []).replace(" ()", "")
    n = int(flags.sum())
    check.add(
        code,
        name,
        n,
        f"{check.named([name])}: {count_of(n, 'row')} {what}, {shown}. {way}",
    )
