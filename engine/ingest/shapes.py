"""Checks of columns that belong together, per kind of table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..schemas.arrays import Array
from ..schemas.contract import GROUND_TRUTHS, PREDICTIONS
from ..schemas.errors import InputError
from ..schemas.tables import VERDICT_KEY
from ..schemas.wording import option
from . import geometry
from .checks import Check
from .geometry import (
    BOX_NAMES,
    GEOMETRY_NAMES,
    LENGTH,
    Boxes,
    check_first,
    check_last,
    find_objects,
    has_objects,
)
from .ids import rows_repeat
from .problems import Note, count_of, listing, note_of
from .recognise import Finder

# Checks that bounds of predicted intervals and quantiles are ordered.


def check_ends(check: Check, seen: Mapping[str, Any]) -> None:
    """Refuse lower bounds above upper ones; note columns that do not increase with their level."""
    names = {column.name for column in check.columns}
    for column in check.columns:
        if column.below not in names:
            continue
        ends = [column.name, column.below]
        wrong = _above(*ends)
        n = check.count(wrong)
        if n:
            check.add(
                "bounds_inverted",
                column.name,
                n,
                f"{check.named(ends)}: {count_of(n, 'row')} with {' above '.join(ends)},"
                f" {check.rows(wrong, ends)}. Swap the ends, or remove these rows.",
            )
    rising = [column.name for column in check.columns if column.rising]
    if len(rising) > 1:
        crossed = pl.any_horizontal(_above(*pair) for pair in pairwise(rising))
        n = check.count(crossed)
        if n:
            words = ("row has", "rows have", "a quantile above one of a higher level")
            check.notes.append(note_of("crossing_quantiles", n, words))


def _above(low: str, high: str) -> pl.Expr:
    """Return an expression for low above high; NaN, which Polars sorts last, is reported
    elsewhere.
    """
    return (pl.col(low) > pl.col(high)) & pl.col(low).is_finite()


# One table with both sides: labels in lists, place against place, or as sets of labels.

_SIDES = ("actual", "predicted")


def screen_pairs(frame: pl.DataFrame) -> list[pl.Expr]:
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
            "not_lists",
            single[0],
            None,
            f"{check.named(single[:1])} has one value per row. With {option('multilabel', True)} "
            "one table has lists of labels in 'actual', and in 'predicted' or in place of it a "
            f"column of scores for every label ({option('score_columns')}). Or give two tables, "
            "predictions and ground truths, with a row for each label of a datum.",
        )
        return
    if "label_key" in check.frame.columns:
        check.add(
            "label_key_beside_lists",
            "label_key",
            None,
            f"{check.named(['label_key'])} next to lists of labels: these are of one key. Give "
            "two tables, predictions and ground truths, with a row for each label of a datum.",
        )
    for name in _SIDES:
        if name not in check.frame.columns:
            continue
        _elements(check, name)
        wrong = pl.col(name).list.n_unique() != pl.col(name).list.len()
        n = check.count(wrong)
        if n:
            check.add(
                "repeated_in_list",
                name,
                n,
                f"{check.named([name])}: {count_of(n, 'row')} with a label twice in the list,"
                f" {check.rows(wrong, [name])}. Each label of a datum may appear once.",
            )


def _alone(check: Check, name: str, others: list[str]) -> None:
    beside = f"{check.named(others[:1])} has one value per row" if others else "no other does"
    check.add(
        "lists_on_one_side",
        name,
        None,
        f"{check.named([name])} has lists of labels, but {beside}. Either both 'actual' and "
        "'predicted' have lists, of equal length in each row and without scores, or neither does.",
    )


def _uneven(check: Check) -> None:
    actual, predicted = (pl.col(name).list.len() for name in _SIDES)
    wrong = actual != predicted
    n = check.count(wrong)
    check.add(
        "unequal_lists",
        "predicted",
        n,
        f"{check.named(_SIDES)}: {count_of(n, 'row')} with lists of unequal length,"
        f" {check.rows(wrong, _SIDES)}. Each place of one list is compared with the same place of"
        " the other; cut or fill them to equal length.",
    )


def _elements(check: Check, name: str) -> None:
    """Apply the checks of single labels to labels in lists."""
    from .checks import not_whole

    values = check.frame[name].explode(empty_as_null=False, keep_nulls=False)
    element = pl.element()
    if values.null_count():
        where = pl.col(name).list.eval(element.is_null()).list.any()
        n = check.count(where)
        check.add(
            "null_in_list",
            name,
            n,
            f"{check.named([name])}: {count_of(n, 'row')} with a null in the list,"
            f" {check.rows(where, [name])}. Fill or remove these.",
        )
    if not values.dtype.is_float():
        return
    if not values.is_finite().all():
        where = pl.col(name).list.eval(~element.is_finite()).list.any()
        n = check.count(where)
        check.add(
            "not_finite",
            name,
            n,
            f"{check.named([name])}: {count_of(n, 'row')} with NaN or infinity,"
            f" {check.rows(where, [name])}. Repair or remove these rows.",
        )
    found = values.to_frame("x").select((not_whole(pl.col("x")) & pl.col("x").is_finite()).any())
    if found.item():
        where = pl.col(name).list.eval(not_whole(element) & element.is_finite()).list.any()
        n = check.count(where)
        check.add("not_whole", name, n, check.fractional(name, n, where))


# Ranked lists per query: in rows with a score or rank, or one list per row.

LISTS = ("retrieved", "relevant")


def check_order(check: Check, seen: Mapping[str, Any]) -> None:
    """Refuse documents without anything to order them by."""
    columns = check.frame.columns
    if "doc_id" in columns and "score" not in columns and "rank" not in columns:
        check.add(
            "column_missing",
            "score",
            None,
            "no 'score' and no 'rank': documents are ranked by one of them. To use another "
            f"column, write {option('columns', {'mine': 'score'})}.",
        )


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
                "null_in_list",
                name,
                n,
                f"{check.named([name])}: {count_of(n, 'row')} with a null in the list,"
                f" {check.rows(where, [name])}. Fill or remove these.",
            )


# Row checks of segments, beyond single columns.

_FORMS = ("raster", "mask")


def check_segments(check: Check, seen: Mapping[str, Any]) -> None:
    """Check that every row has pixels, an id if it is in a map, and a label; ids are unique per
    datum.
    """
    columns = check.frame.columns
    forms = [name for name in _FORMS if name in columns]
    if not forms or "datum_id" not in columns:  # already reported
        return
    none = pl.lit(None, pl.Int64)
    segment = pl.col("segment_id") if "segment_id" in columns else none
    label = pl.col("label_value") if "label_value" in columns else none
    mask = pl.col("mask").is_not_null() if "mask" in columns else pl.lit(value=False)
    raster = pl.col("raster").is_not_null() if "raster" in columns else pl.lit(value=False)
    for code, where, name, said, way in (
        (
            "geometry_missing",
            ~mask & ~raster,
            forms[0],
            "without any pixels",
            "Fill or remove these rows.",
        ),
        (
            "null_values",
            mask & label.is_null(),
            "label_value",
            "with a mask and no label",
            "Name the label of each segment.",
        ),
        (
            "null_values",
            raster & ~mask & label.is_null() & segment.is_not_null(),
            "label_value",
            "with a segment and no label",
            "Name the label of each segment.",
        ),
        (
            "null_values",
            raster & ~mask & label.is_not_null() & segment.is_null(),
            "segment_id",
            "with a label and no segment_id, so its pixels in the map are unknown",
            "Give each segment its id.",
        ),
    ):
        n = check.count(where)
        if n:
            check.add(
                code,
                name,
                n,
                f"{check.named([name])}: {count_of(n, 'row')} {said},"
                f" {check.rows(where, [])}. {way}",
            )
    if "segment_id" not in columns:
        return
    key = pl.struct("datum_id", "segment_id")
    twice = key.is_duplicated() & segment.is_not_null()
    n = check.count(twice)
    if n:
        check.add(
            "repeated_values",
            "segment_id",
            n,
            f"{check.named(['segment_id'])}: {count_of(n, 'row')} of an image in which their id "
            f"appears more than once, {check.rows(twice, ['segment_id'])}. An id is of one "
            "segment: merge these rows, or give them distinct ids.",
        )


# Vectors of texts: numbers, all of them finite, and as many in every row.

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
            f"with vectors of {others} numbers, but the others have {usual}",
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
    check.add(code, name, n, f"{check.named([name])}: {count_of(n, 'row')} {what}, {shown}. {way}")


# References and contexts of texts: one a row, or a list of them.

_LISTS = ("reference", "contexts")


def check_references(check: Check, seen: Mapping[str, Any]) -> None:
    """Refuse nulls within lists, unless nulls may be skipped; empty lists are lists."""
    check_vectors(check, seen)
    for column in check.columns:
        if column.name in _LISTS and not column.nullable:
            _check_column(check, column.name)


def _check_column(check: Check, name: str) -> None:
    values = check.frame.get_column(name, default=None)
    if values is None or not isinstance(values.dtype, pl.List):
        return
    if values.explode(empty_as_null=False, keep_nulls=False).null_count():
        where = pl.col(name).list.eval(pl.element().is_null()).list.any()
        n = check.count(where)
        check.add(
            "null_in_list",
            name,
            n,
            f"{check.named([name])}: {count_of(n, 'row')} with a null in the list,"
            f" {check.rows(where, [name])}. Fill or remove these, or write"
            f" {option('nulls', 'skip')}, or {option('nulls', 'empty')} if they are empty texts.",
        )


# Tables of verdicts: every one once.


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
            "repeated_values",
            "item_index",
            n,
            f"{check.named(key)}: {count_of(n, 'row')} of which another has the same values,"
            f" {check.rows(where, key)}. Each verdict may appear once; was a file read twice?"
            f" Several"
            " judgments of one item are distinguished by judgment_index.",
        )


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
            "null_values",
            "item_index",
            n,
            f"{check.named(['item_index'])}: {count_of(n, 'row')} without an index, although "
            f"verdicts of the same set have one, {check.rows(where, together)}. Give all of them "
            "their places, or none: then the rows' order counts.",
        )


# Row checks of label maps, masks and polygons, beyond single columns.

FORMS = ("raster", "mask", "polygon")
"""Columns of pixels; of several in one row the first is read."""


def check_rows(check: Check, seen: Mapping[str, Any]) -> None:
    """Every row has pixels; rows with a label have any form of them, others a label map."""
    forms = [name for name in FORMS if name in check.frame.columns]
    if not forms:  # missing, or not a dtype of pixels: already reported
        return
    if "label_value" in check.frame.columns:
        _filled(check, forms)
    elif "raster" not in forms:
        check.add(
            "column_missing",
            "label_value",
            None,
            f"column 'label_value' is missing: a {' or '.join(forms)} is of one label. If "
            f"another column has it, write {option('columns', {'mine': 'label_value'})}; indices "
            "of labels go into a column 'raster'.",
        )
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
        f"predictions: column {found[0]!r} is not read: masks are scored as labels of pixels "
        f"(segmentation). If it scores objects, write {named} for detection; if not, "
        f"{option('task', 'segmentation')}."
    )
    return [Note("maybe_scores", said, len(found))]


def _filled(check: Check, forms: list[str]) -> None:
    """Refuse rows without pixels of any form."""
    where = pl.all_horizontal(pl.col(name).is_null() for name in forms)
    n = check.count(where)
    if n:
        check.add(
            "geometry_missing",
            forms[0],
            n,
            f"{check.named(forms)}: {count_of(n, 'row')} without any pixels,"
            f" {check.rows(where, [])}. Fill or remove these rows.",
        )


def _once(check: Check) -> None:
    """Refuse a second label map of one datum and label key."""
    if "datum_id" not in check.frame.columns:  # already reported
        return
    key = [name for name in ("datum_id", "label_key") if name in check.frame.columns]
    where = pl.struct(key).is_duplicated()
    n = check.count(where)
    if n:
        check.add(
            "repeated_values",
            key[-1],
            n,
            f"{check.named(key)}: {count_of(n, 'row')} of a datum that has several label maps, "
            f"{check.rows(where, key)}. One label map is enough: give one row per "
            f"{' and '.join(key)}, or a column 'label_value' if each row is of one label.",
        )


# Shapes: groups of a contract's columns with common checks, such as boxes or a pair of labels.
#
# A contract in ``schemas.tables`` names its shape.


def _nothing(check: Check, seen: Mapping[str, Any]) -> None:
    """Accept a shape without checks."""


class Shape(msgspec.Struct, frozen=True):
    """Group of columns with common checks.

    Attributes:
        together: canonical columns found by ``find`` and named together.
        find: recognises them; problems go to the finder's list.
        present: whether a table has them, for inferring the task.
        first: checked before nulls.
        helpers: columns that only checks need, and the word for each in messages.
        low_hint: question if one of the columns is too low.
    """

    together: tuple[str, ...] = ()
    find: Callable[[Finder, str | None, str | None], Boxes] | None = None
    present: Callable[[Finder], bool] | None = None
    screen: Callable[[pl.DataFrame], list[pl.Expr]] = lambda frame: []
    first: Callable[[Check, Mapping[str, Any]], None] = _nothing
    last: Callable[[Check, Mapping[str, Any]], None] = _nothing
    helpers: Mapping[str, str] = msgspec.field(default_factory=dict)
    low_hint: str = ""


SHAPES: dict[str, Shape] = {
    "": Shape(),
    "boxes": Shape(
        together=(*BOX_NAMES, "bbox", *GEOMETRY_NAMES, "keypoints", "box3d"),
        find=find_objects,
        present=has_objects,
        screen=geometry.screen_boxes,
        first=check_first,
        last=check_last,
        helpers={LENGTH: "length"},
        low_hint=" (are the boxes corners rather than extents?)",
    ),
    "pixels": Shape(first=check_rows),
    "segments": Shape(first=check_segments),
    "pair": Shape(screen=screen_pairs, first=check_lists),
    "sets": Shape(first=check_sets),
    "ranked": Shape(first=check_order),
    "lists": Shape(first=check_items),
    "verdicts": Shape(last=check_verdicts),
    "references": Shape(first=check_references),
    "vectors": Shape(first=check_vectors),
    "values": Shape(first=check_vectors, last=check_ends),
}
"""Shape by the name a contract gives it."""


# Checks of list ranks: unique within a list, and gaps.

_EXACT = 2.0**52  # whole floats below it have exact differences
_ROOM = 2.0**62


def check_ranks(query: Array, rank: Array, queries: pl.Series, table: str) -> str | None:
    """Refuse a rank that two documents of a query share; report gaps.

    Args:
        query: int32 or int64 [n], code of each row's query.
        rank: float64 [n], finite.

    Returns:
        A note on gaps, or None.

    Raises:
        InputError: names the first rows that share a rank.
    """
    if not rank.size:
        return None
    if _shared(query, rank):
        _refuse(query, rank, queries, table)
    low, high = np.full(len(queries), np.inf), np.full(len(queries), -np.inf)
    np.minimum.at(low, query, rank)
    np.maximum.at(high, query, rank)
    count = np.bincount(query, minlength=len(queries))
    gaps = np.flatnonzero((count > 0) & (high - low + 1 != count))
    if not gaps.size:
        return None
    named = listing([queries[int(code)] for code in gaps[:5]], gaps.size)
    return (
        f"the ranks of {gaps.size:,} {'query' if gaps.size == 1 else 'queries'} have gaps:"
        f" {named}; documents are counted in their order, the lowest rank as the first."
    )


def _shared(query: Array, rank: Array) -> bool:
    """Return whether two rows have the same query and rank; whole ranks are packed into one
    integer.
    """
    low, high = float(rank.min()), float(rank.max())
    span = high - low + 1
    exact = max(-low, high) < _EXACT and (float(query.max()) + 1) * span < _ROOM
    if not (exact and bool((rank == np.floor(rank)).all())):
        return rows_repeat(pl.DataFrame({"query": query, "rank": rank}), ["query", "rank"])
    key = query.astype(np.int64) * int(span) + (rank - low).astype(np.int64)
    return rows_repeat(pl.DataFrame({"key": key}), ["key"])


def _refuse(query: Array, rank: Array, queries: pl.Series, table: str) -> None:
    rows = pl.DataFrame({"query": query, "rank": rank}).with_row_index("row")
    shared = rows.filter(pl.struct("query", "rank").is_duplicated())
    first = ", ".join(
        f"row {row} (query_id={queries[code]!r}, rank={place:g})"
        for row, code, place in shared.head(3).iter_rows()
    )
    raise InputError(
        f"{table}: column 'rank' has ties: {shared.height:,} rows share their rank with"
        f" another document of the query, first (rows count from 0): {first}. Give a score, or"
        " ranks that all differ.",
        code="tied_ranks",
        column="rank",
        count=shared.height,
    )
