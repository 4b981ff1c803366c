"""One table with both sides: labels in lists, place against place, or as sets of labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from ..schemas.wording import option
from .problems import count_of

if TYPE_CHECKING:
    from .checks import Check

_SIDES = ("actual", "predicted")


def screen(frame: pl.DataFrame) -> list[pl.Expr]:
    """Return an aggregate: whether any row's two lists differ in length."""
    if not all(isinstance(frame.schema.get(name), pl.List) for name in _SIDES):
        return []
    actual, predicted = (pl.col(name).list.len() for name in _SIDES)
    return [(actual != predicted).any().alias("uneven")]


def check_lists(check: Check, seen: Mapping[str, Any]) -> None:
    """Refuse lists combined with single labels or scores, of unequal length, or with nulls."""
    lists = [name for name in _SIDES if isinstance(check.frame.schema.get(name), pl.List)]
    if not lists:
        return
    rest = [name for name in _SIDES if name not in lists and name in check.frame.columns]
    scores = [name for name in check.frame.columns if name.split(":")[0] == "score"]
    if rest or scores or len(lists) < 2:
        _alone(check, lists[0], [*rest, *scores])
    if seen.get("uneven"):
        _uneven(check)
    for name in lists:
        _elements(check, name)


def check_sets(check: Check, seen: Mapping[str, Any]) -> None:
    """Refuse values other than lists of distinct labels, all true or predicted ones of a datum."""
    single = [
        name
        for name in (*_SIDES, "score")
        if name in check.frame.columns and not isinstance(check.frame.schema[name], pl.List)
    ]
    if single:
        check.add(
            "not_lists", single[0], None,
            f"{check.named(single[:1])} holds one value a row. With {option('multilabel', True)}"
            " one table has lists of labels in 'actual', and in 'predicted' or in place of it a"
            f" column of scores for every label ({option('score_columns')}). Or give two tables,"
            " predictions and ground truths, with a row for each label of a datum.",
        )  # fmt: skip
        return
    if "label_key" in check.frame.columns:
        check.add(
            "label_key_beside_lists", "label_key", None,
            f"{check.named(['label_key'])} beside lists of labels: these are of one key. Give two"
            " tables, predictions and ground truths, with a row for each label of a datum.",
        )  # fmt: skip
    for name in _SIDES:
        if name not in check.frame.columns:
            continue
        _elements(check, name)
        wrong = pl.col(name).list.n_unique() != pl.col(name).list.len()
        n = check.count(wrong)
        if n:
            check.add(
                "repeated_in_list", name, n,
                f"{check.named([name])}: {count_of(n, 'row')} with a label twice in the list,"
                f" {check.rows(wrong, [name])}. Each label of a datum may appear once.",
            )  # fmt: skip


def _alone(check: Check, name: str, others: list[str]) -> None:
    beside = f"{check.named(others[:1])} holds one value a row" if others else "no other does"
    check.add(
        "lists_on_one_side", name, None,
        f"{check.named([name])} holds lists of labels, but {beside}. Either both 'actual' and"
        " 'predicted' hold lists, of equal length in each row and without scores, or neither"
        " does.",
    )  # fmt: skip


def _uneven(check: Check) -> None:
    actual, predicted = (pl.col(name).list.len() for name in _SIDES)
    wrong = actual != predicted
    n = check.count(wrong)
    check.add(
        "unequal_lists", "predicted", n,
        f"{check.named(_SIDES)}: {count_of(n, 'row')} with lists of unequal length,"
        f" {check.rows(wrong, _SIDES)}. Each place of one list is compared with the same place of"
        " the other; cut or fill them to equal length.",
    )  # fmt: skip


def _elements(check: Check, name: str) -> None:
    """Apply the checks of single labels to labels in lists."""
    from .checks import not_whole

    values = check.frame[name].explode(empty_as_null=False, keep_nulls=False)
    element = pl.element()
    if values.null_count():
        where = pl.col(name).list.eval(element.is_null()).list.any()
        n = check.count(where)
        check.add(
            "null_in_list", name, n,
            f"{check.named([name])}: {count_of(n, 'row')} with a null in the list,"
            f" {check.rows(where, [name])}. Fill or remove these.",
        )  # fmt: skip
    if not values.dtype.is_float():
        return
    if not values.is_finite().all():
        where = pl.col(name).list.eval(~element.is_finite()).list.any()
        n = check.count(where)
        check.add(
            "not_finite", name, n,
            f"{check.named([name])}: {count_of(n, 'row')} with NaN or infinity,"
            f" {check.rows(where, [name])}. Repair or remove these rows.",
        )  # fmt: skip
    found = values.to_frame("x").select((not_whole(pl.col("x")) & pl.col("x").is_finite()).any())
    if found.item():
        where = pl.col(name).list.eval(not_whole(element) & element.is_finite()).list.any()
        n = check.count(where)
        check.add("not_whole", name, n, check.fractional(name, n, where))
