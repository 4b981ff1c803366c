"""Tables of verdicts: every one once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from evalengine.schemas.judged_tables import VERDICT_KEY

from .problems import count_of
from .repeats import rows_repeat

if TYPE_CHECKING:
    from .checks import Check


def check_verdicts(check: Check, seen: Mapping[str, Any]) -> None:
    """Refuse gaps in indexes, and repeated verdicts."""
    columns = check.frame.columns
    check.step += 1
    if "item_index" not in columns:
        return  # verdicts are counted by their rows
    key = [name for name in VERDICT_KEY if name in columns]
    _check_holes(check, key)
    check.step += 1
    named = check.frame.filter(pl.col("item_index").is_not_null())
    if not rows_repeat(named.select(pl.struct(key).hash().alias("key")), ["key"]):
        return
    where = pl.struct(key).is_duplicated() & pl.col("item_index").is_not_null()
    n = check.count(where)
    if n:
        check.add(
            "repeated_values", "item_index", n,
            f"{check.named(key)}: {count_of(n, 'row')} of which another has the same values,"
            f" {check.rows(where, key)}. Each verdict may appear once; was a file read twice?"
            f" Several"
            " judgments of one item are distinguished by judgment_index.",
        )  # fmt: skip


def _check_holes(check: Check, key: list[str]) -> None:
    """Refuse sets in which only some verdicts have an index."""
    lacks = pl.col("item_index").is_null() & pl.col("verdict").is_not_null()
    if not check.frame["item_index"].null_count() or not check.count(lacks):
        return
    together = [name for name in key if name != "item_index"]
    where = lacks & pl.col("item_index").is_not_null().any().over(together)
    n = check.count(where)
    if n:
        check.add(
            "null_values", "item_index", n,
            f"{check.named(['item_index'])}: {count_of(n, 'row')} without an index beside verdicts"
            f" of the same set that have one, {check.rows(where, together)}. Give all of them"
            " their places, or none: then the rows' order counts.",
        )  # fmt: skip
