"""Row checks of label maps, masks and polygons, beyond single columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from evalengine.schemas.contract import GROUND_TRUTHS, PREDICTIONS
from evalengine.schemas.wording import option

from .problems import Note, count_of

if TYPE_CHECKING:
    from .checks import Check

FORMS = ("raster", "mask", "polygon")
"""Columns of pixels; of several in one row the first is read."""


def check_rows(check: Check, seen: Mapping[str, Any]) -> None:
    """Every row has pixels; rows with a label have any form of them, others a label map."""
    forms = [name for name in FORMS if name in check.frame.columns]
    if not forms:  # missing, or of a dtype that holds no pixels: told by now
        return
    if "label_value" in check.frame.columns:
        _filled(check, forms)
    elif "raster" not in forms:
        check.add(
            "column_missing", "label_value", None,
            f"column 'label_value' is missing: a {' or '.join(forms)} is of one label. If a column"
            f" says which, write {option('columns', {'mine': 'label_value'})}; indices of"
            f" labels go into a column 'raster'.",
        )  # fmt: skip
    else:
        _filled(check, ["raster"])
        _once(check)


def maybe_scores(sides: Mapping[str, Any], sliced: Sequence[str]) -> list[Note]:
    """Find columns that may be scores of objects, if masks were read as pixel labels.

    Args:
        sides: side to its schema and its recognised columns.

    Returns:
        A note on fractions that only the predictions have, next to masks of one label each.
    """
    if not {PREDICTIONS, GROUND_TRUTHS} <= sides.keys():
        return []
    ours, theirs = sides[PREDICTIONS], sides[GROUND_TRUTHS]
    if ours.table.shape != "pixels" or "label_value" not in ours.naming.exprs:
        return []
    known = {*ours.naming.used, *sliced, *theirs.schema}
    found = [name for name, dtype in ours.schema.items() if dtype.is_float() and name not in known]
    told = {
        name.casefold()
        for column, _ in ours.table.unread
        for name in (column.name, *column.aliases)
    }
    found = [name for name in found if name.casefold() not in told]
    if not found:
        return []
    named = option("columns", {found[0]: "score"})
    said = (
        f"predictions: column {found[0]!r} is not read: masks are scored as labels of pixels"
        f" (segmentation). If it scores objects, write {named} for detection; if not,"
        f" {option('task', 'segmentation')} says so."
    )
    return [Note("maybe_scores", said, len(found))]


def _filled(check: Check, forms: list[str]) -> None:
    """Refuse rows without pixels of any form."""
    where = pl.all_horizontal(pl.col(name).is_null() for name in forms)
    n = check.count(where)
    if n:
        check.add(
            "geometry_missing", forms[0], n,
            f"{check.named(forms)}: {count_of(n, 'row')} without any pixels,"
            f" {check.rows(where, [])}. Fill or remove these rows.",
        )  # fmt: skip


def _once(check: Check) -> None:
    """Refuse a second label map of one datum and label key."""
    if "datum_id" not in check.frame.columns:  # told by now
        return
    key = [name for name in ("datum_id", "label_key") if name in check.frame.columns]
    where = pl.struct(key).is_duplicated()
    n = check.count(where)
    if n:
        check.add(
            "repeated_values", key[-1], n,
            f"{check.named(key)}: {count_of(n, 'row')} of a datum that has several label maps,"
            f" {check.rows(where, key)}. One label map says it all: give one row a"
            f" {' and '.join(key)}, or a column 'label_value' if each row is of one label.",
        )  # fmt: skip
