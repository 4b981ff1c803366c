"""Ranked lists per query: in rows with a score or rank, or one list per row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from evalengine.schemas.wording import option

from .problems import count_of

if TYPE_CHECKING:
    from .checks import Check

LISTS = ("retrieved", "relevant")


def check_order(check: Check, seen: Mapping[str, Any]) -> None:
    """Refuse documents without anything to order them by."""
    columns = check.frame.columns
    if "doc_id" in columns and "score" not in columns and "rank" not in columns:
        check.add(
            "column_missing", "score", None,
            "neither 'score' nor 'rank' is there: documents are ranked by one of them. If a column"
            f" is it, write {option('columns', {'mine': 'score'})}.",
        )  # fmt: skip


def check_items(check: Check, seen: Mapping[str, Any]) -> None:
    """Refuse nulls within lists; empty lists are lists."""
    for name in LISTS:
        values = check.frame.get_column(name, default=None)
        if values is None or not isinstance(values.dtype, pl.List):
            continue
        if values.explode(empty_as_null=False, keep_nulls=False).null_count():
            where = pl.col(name).list.eval(pl.element().is_null()).list.any()
            n = check.count(where)
            check.add(
                "null_in_list", name, n,
                f"{check.named([name])}: {count_of(n, 'row')} with a null in the list,"
                f" {check.rows(where, [name])}. Fill or remove these.",
            )  # fmt: skip
