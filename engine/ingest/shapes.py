"""Checks of columns that belong together, per kind of table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..schemas.arrays import Array
from ..schemas.contract import GROUND_TRUTHS, PREDICTIONS
from ..schemas.errors import N_EXAMPLES, InputError
from ..schemas.tables import VERDICT_KEY, WINNERS, A, B
from ..schemas.wording import option
from . import geometry
from .checks import REPAIR, Check, not_whole
from .geometry import (
    BOX_NAMES,
    GEOMETRY_NAMES,
    LENGTH,
    check_first,
    check_last,
    find_objects,
    has_objects,
)
from .ids import rows_repeat
from .problems import Note, listing, note_of
from .recognise import Finder, Naming

# Checks that bounds of predicted intervals and quantiles are ordered.


def check_bounds(check: Check, aggregates: Mapping[str, Any]) -> None:
    """Refuse lower bounds above upper ones; note columns that do not increase with their level.

    Bounds of intervals are quantiles, too: the interval of a higher level contains the others.
    """
    rising: list[str] = []
    intervals: list[tuple[float, str, str]] = []
    for column in check.columns:
        if column.rising:
            rising.append(column.name)
        if column.below and column.below in {one.name for one in check.columns}:
            bounds = [column.name, column.below]
            if _LEVEL.fullmatch(column.name):
                intervals.append((float(column.name[2:]), column.name, column.below))
            way = "Swap the ends, or remove these rows."
            check.refuse(
                "bounds_inverted", bounds, _above(*bounds), f"with {' above '.join(bounds)}", way
            )
    pairs = [*pairwise(rising)]
    for (_, low, high), (_, lower, higher) in pairwise(sorted(intervals)):
        pairs += [(lower, low), (high, higher)]
    if pairs:
        n = check.count(pl.any_horizontal(_above(*pair) for pair in pairs))
        if n:
            words = ("row has", "rows have", "a quantile above one of a higher level")
            check.notes.append(note_of("crossing_quantiles", n, words))


_LEVEL = re.compile(r"lo0\.\d+")


def _above(low: str, high: str) -> pl.Expr:
    """Low above high; NaN, which Polars sorts last, is reported elsewhere."""
    return (pl.col(low) > pl.col(high)) & pl.col(low).is_finite()


# One table with both sides: labels in lists, place against place, or as sets of labels.

_SIDES = ("actual", "predicted")


def _lengths_differ() -> pl.Expr:
    actual, predicted = (pl.col(name).list.len() for name in _SIDES)
    return actual != predicted


def screen_pairs(frame: pl.DataFrame) -> list[pl.Expr]:
    """Return an aggregate: whether any row's two lists differ in length."""
    if not all(isinstance(frame.schema.get(name), pl.List) for name in _SIDES):
        return []
    return [_lengths_differ().any().alias("uneven")]


def check_lists(check: Check, aggregates: Mapping[str, Any]) -> None:
    """Refuse lists combined with single labels or scores, of unequal length, or with nulls."""
    lists = [name for name in _SIDES if isinstance(check.frame.schema.get(name), pl.List)]
    if not lists:
        return
    others = [name for name in _SIDES if name not in lists and name in check.frame.columns]
    others += [name for name in check.frame.columns if name.split(":")[0] == "score"]
    if others or len(lists) < 2:
        others_have = (
            f"{check.named(others[:1])} has one value per row" if others else "no other does"
        )
        check.add(
            "lists_on_one_side",
            lists[0],
            f"{check.named(lists[:1])} has lists of labels, but {others_have}. Either both 'actual'"
            " and 'predicted' have lists, of equal length in each row and without scores, or"
            " neither does.",
        )
    if aggregates.get("uneven"):
        check.refuse(
            "unequal_lists",
            _SIDES,
            _lengths_differ(),
            "with lists of unequal length",
            "Each place of one list is compared with the same place of the other: cut or fill them"
            f" to equal length. If a datum has any number of labels, write"
            f" {option('multilabel', True)}.",
            column="predicted",
        )
    for name in lists:
        _elements(check, name)


def check_sets(check: Check, aggregates: Mapping[str, Any]) -> None:
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
            f"{check.named(['label_key'])} next to lists of labels: these are of one key. Give "
            "two tables, predictions and ground truths, with a row for each label of a datum.",
        )
    for name in _SIDES:
        if name in check.frame.columns:
            _elements(check, name)
            wrong = pl.col(name).list.n_unique() != pl.col(name).list.len()
            way = "Each label of a datum may appear once."
            check.refuse("repeated_in_list", [name], wrong, "with a label twice in the list", way)


def _refuse_nulls(check: Check, name: str, way: str = "Fill or remove these.") -> pl.Series | None:
    """Refuse nulls within lists; return the elements, or None for another column."""
    if not isinstance(check.frame.schema.get(name), pl.List):
        return None
    values = check.frame[name].explode(empty_as_null=False, keep_nulls=False)
    if values.null_count():
        where = pl.col(name).list.eval(pl.element().is_null()).list.any()
        check.refuse("null_in_list", [name], where, "with a null in the list", way)
    return values


def _elements(check: Check, name: str) -> None:
    """Apply the checks of single labels to labels in lists."""
    values, element = _refuse_nulls(check, name), pl.element()
    if values is None or not values.dtype.is_float():
        return
    if not values.is_finite().all():
        where = pl.col(name).list.eval(~element.is_finite()).list.any()
        check.refuse("not_finite", [name], where, "with NaN or infinity", REPAIR)
    if values.to_frame("x").select((not_whole(pl.col("x")) & pl.col("x").is_finite()).any()).item():
        where = pl.col(name).list.eval(not_whole(element) & element.is_finite()).list.any()
        column = next(one for one in check.columns if one.name == name)
        check.refuse_value("not_whole", column, where)


# Ranked lists per query: in rows with a score or rank, or one list per row.

LISTS = ("retrieved", "relevant")
_CALLS = ("predicted_trajectory", "reference_trajectory")


def check_order(check: Check, aggregates: Mapping[str, Any]) -> None:
    """Refuse documents without anything to order them by."""
    columns = check.frame.columns
    if "doc_id" in columns and "score" not in columns and "rank" not in columns:
        check.add(
            "column_missing",
            "score",
            "no 'score' and no 'rank': documents are ranked by one of them. To use another "
            f"column, write {option('columns', {'mine': 'score'})}.",
        )


def check_items(check: Check, aggregates: Mapping[str, Any]) -> None:
    """Refuse nulls within lists; empty lists are lists."""
    for name in (*LISTS, *_CALLS):
        _refuse_nulls(check, name)


# Row checks of segments, beyond single columns.

_FORMS = ("raster", "mask")


def check_segments(check: Check, aggregates: Mapping[str, Any]) -> None:
    """Check that every row has pixels, a label and, in a map, a unique id."""
    columns = check.frame.columns
    forms = [name for name in _FORMS if name in columns]
    if not forms or "datum_id" not in columns:  # already reported
        return
    none = pl.lit(None, pl.Int64)
    segment = pl.col("segment_id") if "segment_id" in columns else none
    label = pl.col("label_value") if "label_value" in columns else none
    mask = pl.col("mask").is_not_null() if "mask" in columns else pl.lit(value=False)
    raster = pl.col("raster").is_not_null() if "raster" in columns else pl.lit(value=False)
    fill, name_it = "Fill or remove these rows.", "Name the label of each segment."
    unmasked = raster & ~mask
    for code, where, name, message, way in (
        ("geometry_missing", ~mask & ~raster, forms[0], "without any pixels", fill),
        ("null_values", mask & label.is_null(), "label_value", "with a mask and no label", name_it),
        (
            "null_values",
            unmasked & label.is_null() & segment.is_not_null(),
            "label_value",
            "with a segment and no label",
            name_it,
        ),
        (
            "null_values",
            unmasked & label.is_not_null() & segment.is_null(),
            "segment_id",
            "with a label and no segment_id, so its pixels in the map are unknown",
            "Give each segment its id.",
        ),
    ):
        check.refuse(code, [name], where, message, way, value_columns=[])
    if "segment_id" in columns:
        check.refuse(
            "repeated_values",
            ["segment_id"],
            pl.struct("datum_id", "segment_id").is_duplicated() & segment.is_not_null(),
            "of an image in which their id appears more than once",
            "An id is of one segment: merge these rows, or give them distinct ids.",
        )


# Vectors of texts: numbers, all of them finite, and as many in every row.

KINDS = ("vector", "vectors")


def check_vectors(check: Check, aggregates: Mapping[str, Any]) -> None:
    """Refuse vectors of different lengths, and nulls, NaN and infinity within them."""
    for column in check.columns:
        if column.kind in KINDS:
            _check(check, column.name, column.way_out, nulls=column.nullable)


def _check(check: Check, name: str, way: str, *, nulls: bool) -> None:
    vectors = column = check.frame[name]
    row = np.arange(len(column))
    inner = column.dtype.inner if isinstance(column.dtype, pl.List) else None
    if isinstance(inner, (pl.List, pl.Array)):  # several vectors a row
        row = np.repeat(row, column.list.len().fill_null(0).to_numpy())
        vectors = column.explode(empty_as_null=False, keep_nulls=False)

    def refuse(code: str, rows: np.ndarray[Any, Any], what: str, way: str) -> None:
        flags = np.zeros(check.frame.height, bool)
        flags[rows] = True
        # Vectors would fill the page.
        check.refuse(code, [name], flags, what, way, value_columns=[])

    wrong = vectors.is_null().to_numpy() & column.is_not_null().to_numpy()[row]
    if wrong.any() and not nulls:
        skip = f"Fill or remove these, or write {option('nulls', 'skip')}."
        refuse("null_in_list", row[wrong], "with a null in the list", skip)
    row = row[vectors.is_not_null().to_numpy()]
    vectors = vectors.drop_nulls()
    if not len(vectors):
        return
    if isinstance(vectors.dtype, pl.Array):
        length = np.full(len(vectors), vectors.dtype.shape[0])
    else:
        length = vectors.list.len().to_numpy().astype(np.int64)
    if length.min() != length.max() or length[0] == 0:
        counts = np.bincount(length)
        counts[0] = 0
        if not counts.any():
            refuse(
                "wrong_length", row, "with vectors of no numbers", way or "Embed the texts again."
            )
            return
        usual = int(counts.argmax())
        wrong = length != usual
        others = ", ".join(map(str, np.unique(length[wrong])[:N_EXAMPLES]))
        what = f"with vectors of {others} numbers, but the others have {usual}"
        refuse("wrong_length", row[wrong], what, way or "All must come from one model.")
    values = vectors.explode(empty_as_null=False, keep_nulls=True)
    finite = np.isfinite(values.to_numpy())  # null becomes NaN
    if not finite.all():
        repair = way or "Embed these texts again, or remove the rows."
        bad = np.repeat(row, length)[~finite]
        refuse("not_finite", bad, "with null, NaN or infinity in a vector", repair)


# References and contexts of texts: one a row, or a list of them.

_LISTS = ("reference", "contexts")


def check_references(check: Check, aggregates: Mapping[str, Any]) -> None:
    """Refuse nulls within lists, unless nulls may be skipped; empty lists are lists."""
    check_vectors(check, aggregates)
    for column in check.columns:
        if column.name in _LISTS and not column.nullable:
            way = (
                f"Fill or remove these, or write {option('nulls', 'skip')}, or"
                f" {option('nulls', 'empty')} if they are empty texts."
            )
            _refuse_nulls(check, column.name, way)


# Tables of verdicts: every one once.


def check_verdicts(check: Check, aggregates: Mapping[str, Any]) -> None:
    """Refuse gaps in indexes, and repeated verdicts."""
    columns = check.frame.columns
    check.step += 1
    if "item_index" not in columns:
        check.note_doubled()  # verdicts are counted by their rows
        return
    key = [name for name in VERDICT_KEY if name in columns]
    _check_holes(check, key)
    check.step += 1
    named = check.frame.filter(pl.col("item_index").is_not_null())
    if not rows_repeat(named.select(pl.struct(key).hash().alias("key")), ["key"]):
        return
    check.refuse(
        "repeated_values",
        key,
        pl.struct(key).is_duplicated() & pl.col("item_index").is_not_null(),
        "of which another has the same values",
        "Each verdict may appear once; was a file read twice? Several judgments of one item are"
        " distinguished by judgment_index.",
        column="item_index",
    )


def _check_holes(check: Check, key: list[str]) -> None:
    """Refuse sets in which only some verdicts have an index."""
    missing = pl.col("item_index").is_null() & pl.col("verdict").is_not_null()
    if not check.frame["item_index"].null_count() or not check.count(missing):
        return
    key_columns = [name for name in key if name != "item_index"]
    check.refuse(
        "null_values",
        ["item_index"],
        missing & pl.col("item_index").is_not_null().any().over(key_columns),
        "without an index, although verdicts of the same set have one",
        "Give all of them their places, or none: then the rows' order counts.",
        value_columns=key_columns,
    )


# Two models per row, and one of them or a word as the winner.


def check_models(check: Check, aggregates: Mapping[str, Any]) -> None:
    """Refuse models named like a word, compared with themselves, and unknown winners."""
    models = ["model_a", "model_b"]
    if not {*models, "winner"} <= {*check.frame.columns}:
        return
    check.step += 1
    words = ", ".join(WINNERS)
    for name in models:
        check.refuse(
            "model_named_like_a_word",
            [name],
            pl.col(name).str.strip_chars().str.to_lowercase().is_in(list(WINNERS)),
            "that would be mistaken for a word of column 'winner'",
            f"The words are {words}. Rename these models.",
        )
    check.step += 1
    same = pl.col("model_a").str.strip_chars() == pl.col("model_b").str.strip_chars()
    check.refuse("same_model", models, same, "with a model against itself", "Remove these rows.")
    check.step += 1
    complete = pl.all_horizontal(pl.col(name).is_not_null() for name in (*models, "winner"))
    check.refuse(
        "unknown_winner",
        ["winner"],
        complete & winner().is_null(),
        "with a winner that is neither of the row's models, nor a, b, tie or both_bad",
        "Repair or remove these rows.",
        value_columns=[*models, "winner"],
    )


def winner() -> pl.Expr:
    """Return an expression for ``a``, ``b`` or ``tie`` of each row; null if unknown."""
    one, a, b = (pl.col(name).str.strip_chars() for name in ("winner", "model_a", "model_b"))
    word = one.str.to_lowercase().replace_strict(WINNERS, default=None, return_dtype=pl.String)
    return pl.when(one == a).then(pl.lit(A)).when(one == b).then(pl.lit(B)).otherwise(word)


# Row checks of label maps, masks and polygons, beyond single columns.

FORMS = ("raster", "mask", "polygon")
"""Columns of pixels; of several in one row the first is read."""


def check_rows(check: Check, aggregates: Mapping[str, Any]) -> None:
    """Every row has pixels; rows with a label have any form of them, others one label map."""
    columns = check.frame.columns
    forms = [name for name in FORMS if name in columns]
    if not forms:  # missing, or not a dtype of pixels: already reported
        return
    labelled = "label_value" in columns
    if not labelled and "raster" not in forms:
        check.add(
            "column_missing",
            "label_value",
            f"column 'label_value' is missing: a {' or '.join(forms)} is of one label. If "
            f"another column has it, write {option('columns', {'mine': 'label_value'})}; indices "
            "of labels go into a column 'raster'.",
        )
        return
    forms = forms if labelled else ["raster"]
    where = pl.all_horizontal(pl.col(name).is_null() for name in forms)
    check.refuse("geometry_missing", forms, where, "without any pixels", value_columns=[])
    if labelled or "datum_id" not in columns:
        return
    key = [name for name in ("datum_id", "label_key") if name in columns]
    check.refuse(
        "repeated_values",
        key,
        pl.struct(key).is_duplicated(),
        "of a datum that has several label maps",
        f"One label map is enough: give one row per {' and '.join(key)}, or a column 'label_value'"
        " if each row is of one label.",
        column=key[-1],
    )


def maybe_scores(sides: Mapping[str, Any], sliced: Sequence[str]) -> list[Note]:
    """Find columns that may be scores of objects, if masks were read as pixel labels.

    Returns:
        A note on fractions that only the predictions have, next to masks of one label each.
    """
    if not {PREDICTIONS, GROUND_TRUTHS} <= sides.keys():
        return []
    ours, theirs = sides[PREDICTIONS], sides[GROUND_TRUTHS]
    if ours.table.shape != "pixels" or "label_value" not in ours.naming.exprs:
        return []
    read = {*ours.naming.used, *sliced, *theirs.schema}
    floats = [name for name, dtype in ours.schema.items() if dtype.is_float() and name not in read]
    recognised = {
        name.casefold()
        for column, _ in ours.table.unread
        for name in (column.name, *column.aliases)
    }
    floats = [name for name in floats if name.casefold() not in recognised]
    if not floats:
        return []
    named = option("columns", {floats[0]: "score"})
    message = (
        f"predictions: column {floats[0]!r} is not read: masks are scored as labels of pixels "
        f"(segmentation). If it scores objects, write {named} for detection; if not, "
        f"{option('task', 'segmentation')}."
    )
    return [Note("maybe_scores", message, len(floats))]


# Spans: ends after starts.


def check_spans(check: Check, aggregates: Mapping[str, Any]) -> None:
    """Refuse spans that end before they begin; note empty ones."""
    if not {"start", "end"} <= {*check.frame.columns}:
        return
    columns = ["start", "end"]
    way = "Swap the two, or remove these rows; 'end' is a place, not a length."
    before = pl.col("end") < pl.col("start")
    check.refuse("inverted_spans", columns, before, "whose end is before their start", way)
    empty = check.count(pl.col("end") == pl.col("start"))
    if empty:
        way = f"no length; if 'end' is their last place, write {option('span_ends', 'inclusive')}"
        words = "span has", "spans have", way
        whose = f"{check.side.replace('_', ' ')}: "
        check.notes.append(note_of("empty_spans", empty, words, before=whose))


# Shapes: groups of a contract's columns with common checks, such as boxes or a pair of labels.
#
# A contract in ``schemas.tables`` names its shape.


class Shape(msgspec.Struct, frozen=True):
    """Group of columns with common checks.

    Attributes:
        columns: canonical columns found by ``find`` and named together.
        find: recognises them; problems go to the finder's list.
        present: whether a table has them, for inferring the task.
        first: checked before nulls.
        helpers: columns that only checks need, and the word for each in messages.
        low_hint: question if one of the columns is too low.
    """

    columns: tuple[str, ...] = ()
    find: Callable[[Finder, str | None, str | None], Naming] | None = None
    present: Callable[[Finder], bool] | None = None
    screen: Callable[[pl.DataFrame], list[pl.Expr]] | None = None
    first: Callable[[Check, Mapping[str, Any]], None] | None = None
    last: Callable[[Check, Mapping[str, Any]], None] | None = None
    helpers: Mapping[str, str] = msgspec.field(default_factory=dict)
    low_hint: str = ""


SHAPES: dict[str, Shape] = {
    "": Shape(),
    "boxes": Shape(
        columns=(*BOX_NAMES, "bbox", *GEOMETRY_NAMES, "keypoints", "box3d"),
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
    "ends": Shape(last=check_spans),
    "models": Shape(last=check_models),
    "references": Shape(first=check_references),
    "vectors": Shape(first=check_vectors),
    "values": Shape(first=check_vectors, last=check_bounds),
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
    """
    if not rank.size:
        return None
    if _shared(query, rank):
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
    """Return whether two rows have the same query and rank."""
    low, high = float(rank.min()), float(rank.max())
    span = high - low + 1
    exact = max(-low, high) < _EXACT and (float(query.max()) + 1) * span < _ROOM
    if not (exact and bool((rank == np.floor(rank)).all())):
        return rows_repeat(pl.DataFrame({"query": query, "rank": rank}), ["query", "rank"])
    key = query.astype(np.int64) * int(span) + (rank - low).astype(np.int64)
    return rows_repeat(pl.DataFrame({"key": key}), ["key"])
