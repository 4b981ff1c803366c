"""References and contexts of texts: one a row, or a list of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from evalengine.schemas.wording import option

from .problems import count_of
from .vectors import check_vectors

if TYPE_CHECKING:
    from .checks import Check

_LISTS = ("reference", "contexts")


def check_references(check: Check, seen: Mapping[str, Any]) -> None:
    """Refuse nulls within lists, unless nulls may be skipped; empty lists are lists."""
    check_vectors(check, seen)
    for column in check.columns:
        if column.name in _LISTS and not column.nullable:
            _check(check, column.name)


def _check(check: Check, name: str) -> None:
    values = check.frame.get_column(name, default=None)
    if values is None or not isinstance(values.dtype, pl.List):
        return
    if values.explode(empty_as_null=False, keep_nulls=False).null_count():
        where = pl.col(name).list.eval(pl.element().is_null()).list.any()
        n = check.count(where)
        check.add(
            "null_in_list", name, n,
            f"{check.named([name])}: {count_of(n, 'row')} with a null in the list,"
            f" {check.rows(where, [name])}. Fill or remove these, or write"
            f" {option('nulls', 'skip')}, or {option('nulls', 'empty')} if they are empty texts.",
        )  # fmt: skip
